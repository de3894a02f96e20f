// Maps and reads files of a disk, beside the same on Linux: `sh -c "FOLDER WHAT"`.
//
// - sums: sums of a large file, by a shared mapping an eighth at a time, and by read(); a private
//   mapping that is written to; what is behind the end of a file, in its page and in the next.
// - cut: waits until a mapped file becomes shorter, and says what is there then.
// - bad: what is refused.
// - some: which of some pages of a large file can be read.
// - share: writes to a file through a mapping that a child shares, beside write() and read(), behind
//   its end, and where it becomes shorter.
// - churn: writes to a mapping for some seconds, of which it knows what there has to be, and reads
//   another file by a private one meanwhile.
// - rest: writes to a mapping, asks nobody for anything for a while, and writes to it again.
// - sync: writes to pages of a mapping and stores them, round after round, and says when it has.
// - ahead: asks for parts of a file on a slow disk, by each call that does, and reads them later.
// - together: meets faults in parts of a file whose reads the disk keeps back, and reads and writes
//   what is there of it, and what comes at once, meanwhile.
// - waits: meets faults in such parts, and makes a file when it has.
// - parts: brings parts of files to the disk, and what is refused of that.
// - fill: writes to the pages of a hole until the disk is full.
// - stamps: writes files, stores to their pages through mappings before those are on the disk, for
//   some seconds, and looks whether each store has moved the times of change.
#define _GNU_SOURCE
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

// The map of a new file of so many bytes, and the file.
static unsigned char *made(const char *name, size_t size, int *file)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	*file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (*file < 0 || ftruncate(*file, size))
		printf("%s: error %d\n", name, errno);
	unsigned char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
	if (map == MAP_FAILED) {
		printf("not mapped: %d\n", errno);
		_exit(1);
	}
	return map;
}

// Writes a byte; the signal that it costs, negative, or 0.
static int put(volatile unsigned char *at, unsigned char byte)
{
	int signal = sigsetjmp(back, 1);
	if (!signal)
		*at = byte;
	return -signal;
}

static void share(void)
{
	int file;
	size_t size = 64 * PAGE + 100;
	unsigned char *map = made("shared", size, &file), byte[4] = "";
	for (size_t at = 0; at < size; at += 7)
		map[at] = at / 7;
	uint64_t before = sum(1, map, size);
	if (fork() == 0) {
		for (size_t page = 0; page < 64; page += 3)
			memset(map + page * PAGE + 10, 'c', 50);
		_exit(before != sum(1, map, 10));
	}
	wait(NULL);
	printf("child's: %c, sums differ: %d\n", map[3 * PAGE + 59], before != sum(1, map, size));
	// What is mapped, written and read is one.
	ssize_t wrote = pwrite(file, "XYZ", 3, 5 * PAGE - 1), count = pread(file, byte, 3, 3 * PAGE + 58);
	printf("by write: %zd %c%c, by read: %zd %.2s\n", wrote, map[5 * PAGE - 1], map[5 * PAGE], count, byte);
	printf("stored: %d, later: %d, wrong: %d %d\n", msync(map, size, MS_SYNC), msync(map, PAGE, MS_ASYNC),
		msync(map + 1, PAGE, MS_SYNC), msync(map, PAGE, MS_SYNC | MS_ASYNC));
	map[PAGE] = 'm';
	// Behind the end it is nobody's, and zeros once it is the file's.
	memset(map + size, '!', 300);
	int stored = fsync(file), longer = ftruncate(file, size + 200);
	count = pread(file, byte, 1, size + 150);
	printf("behind the end: %d %d, read %zd: %d, mapped: %d\n", stored, longer, count, byte[0], map[size + 199]);
	memset(map + size + 200, '?', 100);
	lseek(file, 0, SEEK_END);
	wrote = pwrite(file, "end", 3, size + 290);
	printf("a hole: %zd, %d%d %c\n", wrote, map[size + 200], map[size + 289], map[size + 290]);
	printf("two pages behind: %d\n", put(map + 66 * PAGE, 1));
	// It becomes shorter, and has another end.
	ftruncate(file, 10 * PAGE + 1);
	printf("cut: %d %d %d, %d\n", put(map + 12 * PAGE, 1), look(map + 12 * PAGE), map[10 * PAGE + 1], put(map + 10 * PAGE, 'e'));
	munmap(map + 2 * PAGE, PAGE);
	printf("unmapped: %d, beside it %d\n", put(map + 2 * PAGE, 1), put(map + PAGE + 5, 'b'));
	mprotect(map, PAGE, PROT_READ);
	printf("not to be written: %d, %d\n", put(map, 1), mprotect(map, PAGE, PROT_READ | PROT_WRITE));
	printf("again: %d\n", put(map, 'a'));
	close(file);
	map[9 * PAGE] = 'z';
}

// What page `page` has in its round `round`.
static uint64_t mark(size_t page, size_t round)
{
	return (page * 1000003 + round) * 0x9e3779b97f4a7c15;
}

static void churn(void)
{
	enum { PAGES = 200, ROUNDS = 40 };
	int file, big = opened("big"), bad = 0;
	size_t size = size_of(big) < 800 * PAGE ? size_of(big) : 800 * PAGE, round;
	unsigned char *map = made("churned", PAGES * PAGE, &file);
	unsigned char *own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, big, 0);
	uint64_t right = sum(1, own + PAGE, size - PAGE);
	memset(own, 'o', 100);
	printf("begun\n");
	fflush(stdout);
	for (round = 1; round <= ROUNDS; round++) {
		for (size_t page = round % 3; page < PAGES; page += 3) {
			uint64_t *words = (uint64_t *)(map + page * PAGE);
			for (size_t word = 0; word < PAGE / 8; word += 61) {
				bad += round > 3 && words[word] != mark(page, round - 3);
				words[word] = mark(page, round);
			}
		}
		bad += round % 8 == 0 && (msync(map, PAGES * PAGE, MS_SYNC) || right != sum(1, own + PAGE, size - PAGE));
		bad += own[99] != 'o';
		pause_for(50);
	}
	printf("rounds %zu, wrong %d, %d\n", round, bad, fsync(file));
}

static void rest(void)
{
	int file;
	unsigned char *map = made("rested", 4 * PAGE, &file), *other = made("unwritten", 4 * PAGE, &file);
	int first = put(map, 'a') | put(map + PAGE, 'b');
	printf("begun\n");
	fflush(stdout);
	pause_for(4000);
	int then = put(map + PAGE, 'B') | put(map + 2 * PAGE, 'c'), others = put(other + PAGE, 'o');
	printf("first %d, then %d, %d: %c%c%c\n", first, then, others, map[0], map[PAGE], map[2 * PAGE]);
}

static void sync_rounds(void)
{
	int file;
	uint64_t *map = (uint64_t *)made("synced", 40 * PAGE, &file);
	for (uint64_t round = 1; round < 100000; round++) {
		for (int page = 0; page < 40; page++)
			map[page * PAGE / 8] = round;
		if (msync(map, 40 * PAGE, MS_SYNC))
			break;
		printf("acknowledged %lu\n", round);
		fflush(stdout);
	}
}

static void fill(void)
{
	int file, before, far;
	size_t pages = 100000, page;
	unsigned char *old = made("old", 20 * PAGE, &before);
	memset(old, 'o', 20 * PAGE);
	msync(old, 20 * PAGE, MS_SYNC);
	unsigned char *map = made("hole", pages * PAGE, &file);
	for (page = 0; page < pages && (far = put(map + page * PAGE, 'x')) == 0; page++)
		;
	printf("full: %d, early %d, late %d\n", far, page < 100, page == pages);
	// What has its place is written to, and what was written is there.
	int bad = 0;
	for (size_t at = 0; at < 20; at++)
		bad += put(old + at * PAGE, 'n') != 0;
	for (size_t at = 0; at < page; at++)
		bad += map[at * PAGE] != 'x';
	printf("wrong: %d, stored: %d %d\n", bad, fsync(before), fsync(file));
	ftruncate(file, PAGE);
	printf("room again: %d\n", ftruncate(file, 50 * PAGE) ? 1 : put(map + 40 * PAGE, 'r'));
}

static double seconds(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static void ahead(void)
{
	enum { PART = 192 << 10 };
	static unsigned char bytes[PART];
	int file = opened("big"), asked = 0, there = 0;
	double before = seconds();
	there += pread(file, bytes, PART, 0) == PART;
	double cold = seconds() - before;
	unsigned char *map = mmap(NULL, PART, PROT_READ, MAP_SHARED, file, 6 * PART);
	before = seconds();
	asked |= readahead(file, 2 * PART, PART);
	asked |= posix_fadvise(file, 4 * PART, PART, POSIX_FADV_WILLNEED);
	asked |= madvise(map, PART, MADV_WILLNEED);
	double soon = seconds() - before;
	pause_for(4000 * cold + 500);
	before = seconds();
	there += pread(file, bytes, PART, 2 * PART) == PART;
	there += pread(file, bytes, PART, 4 * PART) == PART;
	uint64_t got = sum(0, map, PART);
	double warm = seconds() - before;
	there += pread(file, bytes, PART, 6 * PART) == PART && sum(0, bytes, PART) == got;
	printf("asked: %d, there: %d, soon: %d %d\n", asked, there, soon < cold / 4, warm < cold / 4);
}

// A process that says what it finds in a page.
static void looked(unsigned char *map, int page)
{
	if (fork() == 0) {
		int found = look(map + page * PAGE);
		printf("page %d: %d\n", page, found);
		fflush(stdout);
		_exit(0);
	}
}

static void together(void)
{
	char path[512];
	static unsigned char bytes[PAGE];
	snprintf(path, sizeof path, "%s/big", folder);
	int file = open(path, O_RDWR), right = 0;
	size_t size = size_of(file);
	unsigned char *map = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
	int first = look(map);
	looked(map, 100);
	looked(map, 200);
	looked(map, 400);
	looked(map, 400);
	for (int round = 0; round < 20; round++) {
		pause_for(50);
		right += pread(file, bytes, 100, PAGE) == 100 && bytes[0] == map[PAGE];
		right += look(map) == first;
	}
	right += look(map + 300 * PAGE) >= 0;
	// Last: a second later it is stored, which on a disk like this waits for all reads.
	memset(bytes, 19, 100);
	right += pwrite(file, bytes, 100, 2 * PAGE + 50) == 100;
	right += map[2 * PAGE + 50] == 19;
	right += pwrite(file, "middle", 6, 350 * PAGE + 7) == 6;
	right += map[350 * PAGE + 7] == 'm';
	printf("beside: %d\n", right);
	fflush(stdout);
	while (wait(NULL) > 0)
		;
	printf("then: %d %d %d\n", look(map + 100 * PAGE), look(map + 400 * PAGE), look(map + 401 * PAGE));
}

static void waits(void)
{
	int file = opened("big");
	unsigned char *map = mmap(NULL, size_of(file), PROT_READ, MAP_SHARED, file, 0);
	look(map);
	looked(map, 100);
	looked(map, 200);
	pause_for(500);
	char path[512];
	snprintf(path, sizeof path, "%s/began", folder);
	close(open(path, O_WRONLY | O_CREAT, 0644));
	while (wait(NULL) > 0)
		;
	printf("then: %d\n", look(map + 101 * PAGE));
}

static void parts(void)
{
	int file, ends[2];
	unsigned char *map = made("parts", 20 * PAGE, &file);
	put(map + 3 * PAGE, 'a');
	pwrite(file, "bcd", 3, 7 * PAGE + 5);
	printf("range: %d", sync_file_range(file, 7 * PAGE, PAGE, 7));
	printf(" %d", sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE));
	printf(" %d", sync_file_range(file, 0, PAGE, 8) ? errno : 0);
	printf(" %d\n", sync_file_range(file, -1, PAGE, 7) ? errno : 0);
	printf("part: %d", msync(map + 3 * PAGE, PAGE, MS_SYNC));
	printf(" %d %d %d\n", fdatasync(file), syncfs(file), fdatasync(77) ? errno : 0);
	pipe(ends);
	printf("refused: %d", sync_file_range(ends[0], 0, 0, 7) ? errno : 0);
	printf(" %d", readahead(ends[0], 0, PAGE) ? errno : 0);
	printf(" %d", posix_fadvise(ends[0], 0, PAGE, POSIX_FADV_WILLNEED));
	printf(" %d", posix_fadvise(file, 0, PAGE, 17));
	printf(" %d\n", posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL));
}

// A file whose page was written and is not on the disk yet.
struct stamped {
	int file;
	unsigned char *map;
	struct timespec written;
};

static int is_later(struct timespec time, struct timespec than)
{
	return time.tv_sec > than.tv_sec || (time.tv_sec == than.tv_sec && time.tv_nsec > than.tv_nsec);
}

// Whether the times of change are behind that of the write.
static int has_moved(const char *path, struct stamped *of)
{
	struct stat now;
	if (stat(path, &now))
		return 0;
	return is_later(now.st_mtim, of->written) && is_later(now.st_ctim, of->written);
}

static void stamps(void)
{
	enum { FILES = 60 };
	static struct stamped all[FILES];
	static char paths[FILES][300];
	static unsigned char content[3 * PAGE];
	int stored = 0, synced = 0, at_last = 0, set = 0;
	printf("begun\n");
	fflush(stdout);
	for (int at = 0; at < FILES; at++) {
		struct stamped *of = &all[at];
		struct stat now;
		snprintf(paths[at], sizeof paths[at], "%s/stamped%d", folder, at);
		of->file = open(paths[at], O_RDWR | O_CREAT | O_TRUNC, 0644);
		if (write(of->file, content, sizeof content) != sizeof content || fstat(of->file, &now))
			printf("%s: error %d\n", paths[at], errno);
		of->written = now.st_mtim;
		of->map = mmap(NULL, sizeof content, PROT_READ | PROT_WRITE, MAP_SHARED, of->file, 0);
		// Every other page was read before it is written to.
		int before = at % 2 ? look(of->map + PAGE) : 0;
		pause_for(40);
		before |= put(of->map + PAGE, 's');
		stored += before == 0 && has_moved(paths[at], of);
		if (at % 3 == 0)
			synced += fsync(of->file) == 0 && has_moved(paths[at], of);
		if (at % 4 == 0) {
			// What is set counts until the next store, also to a page that was written to.
			struct timespec old[2] = {{1000, 0}, {1000, 0}};
			futimens(of->file, old);
			fstat(of->file, &now);
			set += now.st_mtim.tv_sec == 1000;
			put(of->map + (at % 8 ? PAGE : 2 * PAGE), 't');
		}
	}
	for (int at = 0; at < FILES; at++) {
		munmap(all[at].map, sizeof content);
		close(all[at].file);
	}
	sync();
	for (int at = 0; at < FILES; at++)
		at_last += has_moved(paths[at], &all[at]);
	printf("moved by stores: %d, synced %d, set %d, at last %d\n", stored, synced, set, at_last);
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
	else if (!strcmp(what, "share"))
		share();
	else if (!strcmp(what, "churn"))
		churn();
	else if (!strcmp(what, "rest"))
		rest();
	else if (!strcmp(what, "sync"))
		sync_rounds();
	else if (!strcmp(what, "ahead"))
		ahead();
	else if (!strcmp(what, "together"))
		together();
	else if (!strcmp(what, "waits"))
		waits();
	else if (!strcmp(what, "parts"))
		parts();
	else if (!strcmp(what, "fill"))
		fill();
	else if (!strcmp(what, "stamps"))
		stamps();
	else
		bad();
	return 0;
}
