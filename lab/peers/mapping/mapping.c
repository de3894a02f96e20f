// Maps and reads files of a disk, beside the same on Linux: `sh -c "FOLDER WHAT"`.
//
// - sums: sums of a large file, by a shared mapping an eighth at a time, and by read(); a private
//   mapping that is written to; what is behind the end of a file, in its page and in the next.
// - cut: waits until a mapped file becomes shorter, and says what is there then.
// - bad: what is refused.
// - some: which of some pages of a large file can be read.
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define PARTS 8

static char folder[256];
static sigjmp_buf back;

static void caught(int signal)
{
	siglongjmp(back, signal);
}

// The byte at an address, or the signal that it costs, negative.
static int look(const volatile unsigned char *at)
{
	int signal = sigsetjmp(back, 1);
	return signal ? -signal : *at;
}

static uint64_t sum(uint64_t state, const unsigned char *bytes, size_t count)
{
	for (size_t n = 0; n < count; n++)
		state = (state ^ bytes[n]) * 0x100000001b3;
	return state;
}

static int opened(const char *name)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	int file = open(path, O_RDONLY);
	if (file < 0)
		printf("%s: error %d\n", name, errno);
	return file;
}

static size_t size_of(int file)
{
	struct stat stat;
	return fstat(file, &stat) ? 0 : stat.st_size;
}

static void pause_for(long milliseconds)
{
	struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
	nanosleep(&time, NULL);
}

static void sums(void)
{
	int big = opened("big"), text = opened("text/a.txt");
	size_t size = size_of(big), length = size_of(text);
	unsigned char *map = mmap(NULL, size, PROT_READ, MAP_SHARED, big, 0);
	unsigned char *own = mmap(NULL, length + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, text, 0);
	if (map == MAP_FAILED || own == MAP_FAILED) {
		printf("not mapped: %d\n", errno);
		return;
	}
	uint64_t first = sum(1, own, length);
	memset(own + PAGE, 'x', 100);
	printf("begun\n");
	fflush(stdout);
	for (int part = 0; part < PARTS; part++) {
		printf("part %d: %016lx\n", part, sum(1, map + size / PARTS * part, size / PARTS));
		fflush(stdout);
		pause_for(300);
	}
	// A child has the same, and what it writes is its own.
	if (fork() == 0) {
		own[PAGE] = 'y';
		printf("child: %016lx %c\n", sum(1, map, PAGE * 10), own[PAGE + 1]);
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
	printf("private: %c%c, sums differ: %d\n", own[PAGE], own[PAGE + 99], first != sum(1, own, length));
	static unsigned char bytes[1 << 16];
	uint64_t state = 1;
	size_t all = 0;
	for (ssize_t count; (count = read(big, bytes, sizeof bytes)) > 0; all += count)
		state = sum(state, bytes, count);
	printf("read %zu: %016lx, by the map %d\n", all, state, state == sum(1, map, size));
	state = 1;
	for (ssize_t count; (count = read(text, bytes, 1000)) > 0;)
		state = sum(state, bytes, count);
	printf("text as before: %d\n", state == first);
	size_t zeros = 0;
	for (size_t at = length; at % PAGE; at++)
		zeros += own[at] == 0;
	printf("behind the end: %zu of %zu, %d\n", zeros, -length % PAGE, look(own + length + PAGE));
	munmap(map + PAGE, PAGE);
	printf("unmapped: %d, beside it %d %d\n", look(map + PAGE), look(map), look(map + 2 * PAGE));
}

static void cut(void)
{
	int file = opened("t");
	unsigned char *map = mmap(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, file, 0);
	printf("before: %c %c\n", look(map), look(map + 2 * PAGE));
	fflush(stdout);
	while (size_of(file) >= 2 * PAGE)
		pause_for(50);
	pause_for(200);
	printf("after: %c %d %d\n", look(map), look(map + 10), look(map + 2 * PAGE));
}

static void bad(void)
{
	int file = opened("text/b.txt"), deep = opened("link"), none = opened("nothing");
	void *map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	printf("to be written: %d %d\n", map == MAP_FAILED, errno);
	map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 100);
	printf("not at a page: %d %d\n", map == MAP_FAILED, errno);
	map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, none, 0);
	printf("no file: %d %d\n", map == MAP_FAILED, errno);
	unsigned char *far = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, 1L << 40);
	printf("far behind the end: %d\n", look(far));
	unsigned char *shared = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, deep, 0);
	close(deep);
	int signal = sigsetjmp(back, 1);
	if (!signal)
		*(volatile unsigned char *)shared = 1;
	printf("written to: %d, then %c\n", signal, shared[0]);
	unsigned char byte;
	ssize_t some = read(file, &byte, 1);
	lseek(file, 0, SEEK_END);
	printf("read: %zd, at the end %zd\n", some, read(file, &byte, 1));
}

static void some(void)
{
	int file = opened("big");
	unsigned char *map = mmap(NULL, 200 * PAGE, PROT_READ, MAP_SHARED, file, 0), byte;
	for (int page = 97; page < 103; page++)
		printf("page %d: %s\n", page, look(map + page * PAGE) < 0 ? "none" : "there");
	lseek(file, 100 * PAGE, SEEK_SET);
	printf("read: %zd", read(file, &byte, 1));
	lseek(file, 101 * PAGE, SEEK_SET);
	printf(", behind it %zd\n", read(file, &byte, 1));
}

int main(int count, char **words)
{
	char what[16] = "";
	if (count < 3 || sscanf(words[2], "%255s %15s", folder, what) != 2)
		return 2;
	signal(SIGBUS, caught);
	signal(SIGSEGV, caught);
	if (!strcmp(what, "sums"))
		sums();
	else if (!strcmp(what, "cut"))
		cut();
	else if (!strcmp(what, "some"))
		some();
	else
		bad();
	return 0;
}
