// What a static program's small work on files of a disk takes: `sh -c FOLDER`, on the personality
// `linux` and on Debian's kernel. All of it is cached but what is read from the disk, so a clock that
// counts the guest's instructions tells what the systems do. A line for each phase, as `filebench` has them: what it
// is, how often, and how many nanoseconds.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PIECE 4096
#define PIECES 256
#define ROUNDS 8
#define FILES 100
#define SMALL 1000
#define THERE 1000

static char buffer[PIECE];
static char folder[256];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void tell(const char *what, long amount, long begin)
{
	printf("filebench \"%s by a static program\" %ld %ld\n", what, amount, now() - begin);
	fflush(stdout);
}

static void name(char *path, const char *prefix, int number)
{
	snprintf(path, 300, "%s/%s%d", folder, prefix, number);
}

// Pieces of a file, which are all in memory the second time.
static void pieces(void)
{
	char path[300];
	name(path, "large", 0);
	int file = open(path, O_RDWR | O_CREAT, 0644);
	if (file < 0)
		die(path);
	long begin = 0;
	for (int round = 0; round <= ROUNDS; round++) {
		if (round == 1)
			begin = now();
		for (long at = 0; at < PIECES; at++)
			if (pwrite(file, buffer, PIECE, at * PIECE) != PIECE)
				die("pwrite");
	}
	tell("write of 4 KiB, cached,", (long)PIECES * ROUNDS, begin);
	for (int round = 0; round <= ROUNDS; round++) {
		if (round == 1)
			begin = now();
		for (long at = 0; at < PIECES; at++)
			if (pread(file, buffer, PIECE, at * PIECE) != PIECE)
				die("pread");
	}
	tell("read of 4 KiB, cached,", (long)PIECES * ROUNDS, begin);
	close(file);
}

// Small files, made and removed; the second time, when the directory has its blocks.
static void files(void)
{
	char path[300];
	for (int round = 0; round < 2; round++) {
		long begin = now();
		for (int number = 0; number < FILES; number++) {
			name(path, "small", number);
			int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
			if (file < 0 || write(file, buffer, SMALL) != SMALL || close(file) != 0)
				die(path);
		}
		if (round == 1)
			tell("create", FILES, begin);
		begin = now();
		for (int number = 0; number < FILES; number++) {
			name(path, "small", number);
			int file = open(path, O_RDONLY);
			if (file < 0 || read(file, buffer, PIECE) != SMALL || close(file) != 0)
				die(path);
		}
		if (round == 1)
			tell("first read", FILES, begin);
		begin = now();
		for (int number = 0; number < FILES; number++) {
			name(path, "small", number);
			if (unlink(path) != 0)
				die(path);
		}
		if (round == 1)
			tell("remove", FILES, begin);
	}
}

// Small files that are on the disk, read for the first time, and again.
static void there(void)
{
	static const char *const what[] = {"read from the disk", "read again"};
	char path[300];
	for (int round = 0; round < 2; round++) {
		long begin = now();
		for (int number = 0; number < THERE; number++) {
			name(path, "there/file", number);
			int file = open(path, O_RDONLY);
			if (file < 0 || read(file, buffer, PIECE) != SMALL || close(file) != 0)
				die(path);
		}
		tell(what[round], THERE, begin);
	}
}

int main(int count, char **arguments)
{
	if (count != 3 || strcmp(arguments[1], "-c") != 0 || strlen(arguments[2]) >= sizeof folder)
		return 2;
	strcpy(folder, arguments[2]);
	memset(buffer, 7, sizeof buffer);
	pieces();
	files();
	there();
	sync();
	return 0;
}
