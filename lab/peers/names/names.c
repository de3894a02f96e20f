// What is known of files besides their content, as a Linux program asks for it: `sh -c "FOLDER
// WHAT"`. What it says is the same on Linux, for who is user 0.
//
// - times: nanoseconds, set and told, and what a change does to them.
// - owners: chown and its kin, whole modes, and which of its lives an inode has.
// - moves: renameat2 with its flags.
// - nodes: devices, pipes and sockets, made, told and opened.
// - pipes: pipes with a name, opened from both sides, and pipes that do not wait.
// - holes: where data and holes are, and holes that are made.
// - swap: exchanges two names for some seconds, and looks at what is behind them.
// - replaced: replaces a file, a link and a directory all the time, and goes by their names.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOREPLACE 1
#define EXCHANGE 2
#define GET_VERSION 0x80087601

static int result(long value)
{
	return value < 0 ? -errno : (int)value;
}

static int make(const char *name, int mode, const char *text)
{
	int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (file < 0 || write(file, text, strlen(text)) < 0 || fchmod(file, mode) < 0)
		printf("%s: error %d\n", name, errno);
	return file;
}

static struct stat look(const char *name)
{
	struct stat of = {0};
	if (lstat(name, &of) < 0)
		printf("%s: error %d\n", name, errno);
	return of;
}

static void tell(const char *name)
{
	struct stat of = look(name);
	printf("%s %o %u:%u %u:%u\n", name, of.st_mode, of.st_uid, of.st_gid, major(of.st_rdev),
	       minor(of.st_rdev));
}

static int64_t number(struct timespec time)
{
	return time.tv_sec * 1000000000 + time.tv_nsec;
}

static void tell_times(const char *name)
{
	struct stat of = look(name);
	printf("%s %ld %ld\n", name, number(of.st_atim), number(of.st_mtim));
}

static void times(void)
{
	int file = make("timed", 0644, "x");
	struct timespec set[2] = {{1000000000, 1}, {981173106, 123456789}};
	printf("set %d\n", result(futimens(file, set)));
	tell_times("timed");
	struct statx more = {0};
	printf("statx %d", result(statx(file, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &more)));
	printf(" %lld.%u %o %llu\n", (long long)more.stx_mtime.tv_sec, more.stx_mtime.tv_nsec,
	       more.stx_mode, (unsigned long long)more.stx_size);
	printf("flags %d\n", result(statx(file, "", 1, STATX_BASIC_STATS, &more)));
	int64_t before = number(look("timed").st_ctim);
	usleep(20000);
	struct timespec none[2] = {{5, UTIME_OMIT}, {5, UTIME_OMIT}};
	printf("none %d", result(utimensat(AT_FDCWD, "timed", none, 0)));
	printf(" %s\n", number(look("timed").st_ctim) == before ? "stays" : "changed");
	struct timespec now[2] = {{5, UTIME_OMIT}, {5, UTIME_NOW}};
	printf("now %d", result(utimensat(AT_FDCWD, "timed", now, 0)));
	struct stat of = look("timed");
	printf(" %ld %s\n", number(of.st_atim), number(of.st_mtim) > before ? "later" : "earlier");
	struct timespec wrong[2] = {{5, 1000000000}, {5, 0}};
	printf("wrong %d\n", result(utimensat(AT_FDCWD, "timed", wrong, 0)));
	int moved = 0;
	for (int round = 0; round < 10; round++) {
		before = number(look("timed").st_mtim);
		usleep(20000);
		if (pwrite(file, "y", 1, 0) != 1)
			printf("write: error %d\n", errno);
		moved += number(look("timed").st_mtim) > before;
	}
	printf("moved %d\n", moved);
	printf("link %d", result(symlink("timed", "link")));
	printf(" %d\n", result(utimensat(AT_FDCWD, "link", set, AT_SYMLINK_NOFOLLOW)));
	tell_times("link");
	printf("kept %d\n", number(look("timed").st_mtim) != 981173106123456789);
	struct { long accessed, modified; } whole = {11, 22};
	struct timeval micro[2] = {{33, 444444}, {55, 666666}}, many[2] = {{1, 0}, {2, 1000000}};
	printf("utime %d\n", result(syscall(SYS_utime, "timed", &whole)));
	tell_times("timed");
	printf("utimes %d\n", result(syscall(SYS_utimes, "link", micro)));
	tell_times("timed");
	printf("many %d\n", result(syscall(SYS_utimes, "timed", many)));
	printf("futimesat %d\n", result(syscall(SYS_futimesat, file, NULL, &set[0])));
	micro[0].tv_sec = 77;
	printf("futimesat %d\n", result(syscall(SYS_futimesat, file, NULL, micro)));
	printf("futimesat %d\n", result(syscall(SYS_futimesat, AT_FDCWD, "none", micro)));
	tell_times("timed");
	printf("no path %d\n", result(syscall(SYS_utime, NULL, &whole)));
	printf("no times %d\n", result(syscall(SYS_utime, "timed", (void *)8)));
	printf("utime now %d", result(syscall(SYS_utime, "timed", NULL)));
	printf(" %d\n", number(look("timed").st_mtim) > before);
	printf("last %d\n", result(futimens(file, set)));
	printf("stored %d\n", result(fsync(file)));
	tell_times("timed");
}

static void owners(void)
{
	int file = make("owned", 06755, "x");
	printf("chown %d\n", result(chown("owned", 1000, 70000)));
	tell("owned");
	printf("fchown %d\n", result(fchown(file, -1, 5)));
	tell("owned");
	printf("link %d", result(symlink("owned", "link")));
	printf(" %d\n", result(lchown("link", 7, 8)));
	tell("link");
	tell("owned");
	printf("at %d\n", result(fchownat(file, "", 9, -1, AT_EMPTY_PATH)));
	tell("owned");
	printf("flags %d\n", result(fchownat(AT_FDCWD, "owned", 1, 1, 0x4000)));
	printf("none %d\n", result(chown("nothing", 1, 1)));
	umask(0);
	printf("mkdir %d\n", result(mkdir("sticky", 07777)));
	tell("sticky");
	printf("chmod %d\n", result(chmod("sticky", 03775)));
	printf("chown %d\n", result(chown("sticky", 3, 4)));
	tell("sticky");
	int folder = open("sticky", O_RDONLY | O_DIRECTORY);
	printf("fchmod %d", result(fchmod(folder, 0700)));
	printf(" fchown %d\n", result(fchown(folder, 0, 0)));
	tell("sticky");
	unsigned lives[2] = {0};
	ino_t inodes[2];
	for (int life = 0; life < 2; life++) {
		int again = make("again", 0600, "x");
		inodes[life] = look("again").st_ino;
		if (ioctl(again, GET_VERSION, &lives[life]) < 0)
			printf("version: error %d\n", errno);
		close(again);
		unlink("again");
	}
	int same = inodes[0] == inodes[1] && lives[0] == lives[1];
	printf("lives %s\n", same ? "look the same" : "are told apart");
}

static int move(const char *from, const char *to, unsigned flags)
{
	return result(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags));
}

static void say(const char *name)
{
	char text[16] = "nothing";
	int file = open(name, O_RDONLY);
	ssize_t count = read(file, text, sizeof text - 1);
	if (count >= 0)
		text[count] = 0;
	else if (errno == EISDIR)
		strcpy(text, "directory");
	printf("%s %s\n", name, text);
	close(file);
}

static void moves(void)
{
	make("one", 0644, "1");
	make("two", 0644, "2");
	mkdir("d", 0755);
	mkdir("d/e", 0755);
	make("d/f", 0644, "f");
	printf("there %d", move("one", "two", NOREPLACE));
	printf(" itself %d", move("one", "one", NOREPLACE));
	printf(" none %d", move("none", "new", NOREPLACE));
	printf(" new %d\n", move("one", "three", NOREPLACE));
	say("one");
	say("three");
	printf("files %d\n", move("two", "three", EXCHANGE));
	say("two");
	say("three");
	printf("none %d", move("two", "none", EXCHANGE));
	printf(" %d\n", move("none", "two", EXCHANGE));
	printf("kinds %d\n", move("two", "d", EXCHANGE));
	say("d");
	say("two/f");
	printf("deep %d\n", move("three", "two/e", EXCHANGE));
	say("two/e");
	printf("up %ld %ld\n", (long)look("three/..").st_ino - (long)look(".").st_ino,
	       (long)look("two").st_nlink);
	printf("inside %d", move("two", "two/f", EXCHANGE));
	printf(" %d\n", move("two/f", "two", EXCHANGE));
	printf("itself %d\n", move("two", "two", EXCHANGE));
	printf("both %d", move("two", "d", NOREPLACE | EXCHANGE));
	printf(" odd %d\n", move("two", "d", 8));
}

static void nodes(void)
{
	umask(022);
	printf("make %d", result(mknod("pipe", S_IFIFO | 0666, 0)));
	printf(" %d", result(mknod("tty", S_IFCHR | 0620, makedev(240, 7))));
	printf(" %d", result(mknod("null", S_IFCHR | 0666, makedev(1, 3))));
	printf(" %d", result(mknod("zero", S_IFCHR | 0666, makedev(1, 5))));
	printf(" %d", result(mknod("large", S_IFBLK | 0660, makedev(259, 70000))));
	printf(" %d", result(mknod("socket", S_IFSOCK | 0600, 0)));
	printf(" %d\n", result(mknod("file", S_IFREG | 04755, 0)));
	const char *all[] = {"pipe", "tty", "null", "zero", "large", "socket", "file"};
	for (int at = 0; at < 7; at++)
		tell(all[at]);
	printf("there %d", result(mknod("pipe", S_IFIFO | 0600, 0)));
	printf(" directory %d", result(mknod("folder", S_IFDIR | 0700, 0)));
	printf(" odd %d\n", result(mknod("odd", S_IFLNK | 0700, 0)));
	for (int at = 0; at < 7; at++) {
		// A pipe that nobody reads is not opened for writing either.
		int flags = strcmp(all[at], "file") ? O_WRONLY | O_NONBLOCK : O_RDONLY;
		int file = result(open(all[at], flags));
		printf("open %s %d\n", all[at], file < 0 ? file : 0);
	}
	char bytes[4] = "abcd";
	int null = open("null", O_RDWR), zero = open("zero", O_RDONLY);
	printf("null %ld", (long)write(null, bytes, 4));
	printf(" %ld", (long)read(null, bytes, 4));
	printf(" zero %ld", (long)read(zero, bytes, 4));
	printf(" %d\n", bytes[0] | bytes[3]);
	printf("cut %d\n", result(truncate("pipe", 0)));
	printf("move %d", move("tty", "moved", 0));
	printf(" remove %d\n", result(unlink("zero")));
	tell("moved");
	DIR *folder = opendir(".");
	int kinds[16] = {0};
	for (struct dirent *entry; (entry = readdir(folder));)
		kinds[entry->d_type & 15] += strchr("lmnps", entry->d_name[0]) != NULL;
	printf("kinds %d %d %d %d\n", kinds[DT_FIFO], kinds[DT_CHR], kinds[DT_BLK], kinds[DT_SOCK]);
}

static void seek(int file, int64_t from)
{
	off_t data = lseek(file, from, SEEK_DATA);
	int why = data < 0 ? errno : 0;
	off_t hole = lseek(file, from, SEEK_HOLE);
	printf("%ld: %ld %ld\n", (long)from, why ? -(long)why : (long)data,
	       hole < 0 ? -(long)errno : (long)hole);
}

static int punch(int file, int64_t offset, int64_t length)
{
	return result(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length));
}

static void places(int file)
{
	for (int64_t from = 0; from <= 1048576; from += 131072)
		seek(file, from);
	seek(file, 4096);
	seek(file, 5000);
	seek(file, 528383);
	seek(file, -1);
}

static void ignore(int signal)
{
	(void)signal;
}

static int flags_of(int file)
{
	return fcntl(file, F_GETFL) & (O_ACCMODE | O_NONBLOCK);
}

static int polled(int file, int events)
{
	struct pollfd wanted = {file, events, 0};
	poll(&wanted, 1, 0);
	return wanted.revents & events;
}

// All that `poll` tells of a descriptor.
static int told(int file, int events)
{
	struct pollfd wanted = {file, events, 0};
	int count = poll(&wanted, 1, 100);
	return count * 1000 + wanted.revents;
}

// Reads to the end.
static void drain(int file)
{
	char bytes[64] = "";
	size_t all = 0;
	for (ssize_t count; (count = read(file, bytes + all, 16)) > 0 && all < 40;)
		all += count;
	close(file);
	printf("read %s\n", bytes);
}

// One end waits for the other, whichever is opened first, and a signal breaks it off.
static void meet(int first, int second)
{
	pid_t parent = getpid(), child = fork();
	if (child == 0) {
		usleep(first ? 0 : 50000);
		int file = open("p", O_WRONLY);
		_exit(write(file, "hello", 5) == 5 ? 0 : 1);
	}
	usleep(second ? 50000 : 0);
	drain(open("p", O_RDONLY));
	int status;
	waitpid(child, &status, 0);
	printf("status %d\n", status);
	child = fork();
	if (child == 0) {
		usleep(50000);
		kill(parent, SIGUSR1);
		_exit(0);
	}
	printf("signal %d\n", result(open("p", first ? O_RDONLY : O_WRONLY)));
	waitpid(child, &status, 0);
}

static void pipes(void)
{
	struct sigaction action = {.sa_handler = ignore};
	sigaction(SIGUSR1, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	char bytes[8] = "";
	printf("make %d\n", result(mkfifo("p", 0640)));
	printf("alone %d\n", result(open("p", O_WRONLY | O_NONBLOCK)));
	int reader = open("p", O_RDONLY | O_NONBLOCK);
	printf("early %d poll %d\n", result(read(reader, bytes, 8)), polled(reader, POLLIN));
	int writer = open("p", O_WRONLY | O_NONBLOCK);
	printf("empty %d poll %d", result(read(reader, bytes, 8)), polled(reader, POLLIN));
	printf(" flags %o %o\n", flags_of(reader), flags_of(writer));
	printf("write %d", result(write(writer, "abc", 3)));
	printf(" poll %d wrong %d %d\n", polled(reader, POLLIN), result(write(reader, "x", 1)),
	       result(read(writer, bytes, 1)));
	close(reader);
	printf("broken %d poll %d", result(write(writer, "d", 1)), told(writer, POLLOUT));
	reader = open("p", O_RDONLY);
	printf(" kept %d %.3s\n", result(read(reader, bytes, 8)), bytes);
	write(writer, "e", 1);
	close(writer);
	printf("rest %d", told(reader, POLLIN));
	read(reader, bytes, 8);
	printf(" nothing %d %d none %d %d\n", told(reader, POLLIN), told(reader, 0), told(99, POLLIN), told(-1, 0));
	printf("end %d seek %d\n", result(read(reader, bytes, 8)), result(lseek(reader, 0, SEEK_SET)));
	close(reader);
	meet(0, 1);
	meet(1, 0);
	int both = open("p", O_RDWR);
	printf("both %d", result(write(both, "xy", 2)));
	printf(" %d %o\n", result(read(both, bytes, 8)), flags_of(both));
	unlink("p");
	mkfifo("p", 0600);
	struct stat of = {0};
	fstat(both, &of);
	printf("removed %o %d other %d\n", of.st_mode, (int)of.st_nlink,
	       result(open("p", O_WRONLY | O_NONBLOCK)));
	printf("mode %d", result(fchmod(both, 0606)));
	fstat(both, &of);
	printf(" %o\n", of.st_mode);
	int ends[2], all = 0, count;
	printf("unnamed %d", result(pipe2(ends, O_NONBLOCK)));
	printf(" %d", result(read(ends[0], bytes, 8)));
	static char page[4096];
	while ((count = result(write(ends[1], page, sizeof page))) > 0)
		all += count;
	printf(" full %d %d poll %d\n", all, count, polled(ends[1], POLLOUT));
	printf("set %d", result(fcntl(ends[0], F_SETFL, 0)));
	printf(" %o %o\n", flags_of(ends[0]), flags_of(ends[1]));
}

/* Whether a hole leaves the file as long as it was, with zeros in the hole and nowhere else. */
static int is_right(const char *name, long size, long offset, long length, int stored)
{
	static char bytes[70000], seen[70001];
	memset(bytes, 'G', sizeof bytes);
	int file = make(name, 0644, "");
	if (pwrite(file, bytes, size, 0) != size)
		printf("write: error %d\n", errno);
	if (stored)
		fsync(file);
	int punched = punch(file, offset, length);
	for (long at = offset; at < offset + length && at < size; at++)
		bytes[at] = 0;
	long count = pread(file, seen, sizeof seen, 0);
	int right = punched == 0 && look(name).st_size == size && count == size &&
		    memcmp(bytes, seen, size) == 0;
	if (!right)
		printf("size %ld, hole %ld+%ld: %d, read %ld\n", size, offset, length, punched, count);
	close(file);
	return right;
}

static void corners(void)
{
	long sizes[] = {1, 5, 4095, 4096, 4097, 5000, 20000, 70000}, lengths[] = {1, 10, 5000, 100000};
	int right = 0, all = 0;
	for (int n = 0; n < 8; n++) {
		long size = sizes[n], last = size - size % 4096;
		long offsets[] = {0, 1, size / 2, size - 1, size, size + 1, last};
		for (int m = 0; m < 7 * 4; m++, all += 2)
			for (int stored = 0; stored < 2; stored++)
				right += is_right("corner", size, offsets[m / 4], lengths[m % 4], stored);
	}
	printf("corners %d of %d\n", right, all);
}

static void holes(void)
{
	static char page[4096], seen[8192];
	memset(page, 'x', sizeof page);
	int file = make("holes", 0644, "");
	if (pwrite(file, page, 4096, 0) + pwrite(file, page, 4096, 524288) != 8192)
		printf("write: error %d\n", errno);
	printf("length %d\n", result(ftruncate(file, 1048576)));
	places(file);
	printf("stored %d\n", result(fsync(file)));
	places(file);
	char *mapped = mmap(NULL, 1048576, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	mapped[786432 + 5] = 'm';
	seek(file, 528384);
	seek(file, 786432);
	munmap(mapped, 1048576);
	printf("punch %d\n", punch(file, 520000, 10000));
	seek(file, 4096);
	printf("part %d\n", punch(file, 100, 50));
	seek(file, 0);
	printf("read %ld", (long)pread(file, seen, 8192, 0));
	printf(" %d %d %d %d\n", seen[99], seen[100], seen[149], seen[150]);
	printf("pread %ld", (long)pread(file, seen, 1, 524288));
	printf(" %d\n", seen[0]);
	printf("again %ld\n", (long)pwrite(file, page, 10, 524288));
	seek(file, 4096);
	printf("behind %d", punch(file, 1048000, 99999));
	printf(" %ld\n", (long)look("holes").st_size);
	printf("all %d\n", punch(file, 0, 1048576));
	seek(file, 0);
	printf("blocks %ld\n", (long)look("holes").st_blocks);
	printf("none %d", punch(file, 0, 0));
	printf(" negative %d", punch(file, -5, 9));
	printf(" size %d\n", result(fallocate(file, FALLOC_FL_PUNCH_HOLE, 0, 9)));
	int readable = open("holes", O_RDONLY);
	printf("reader %d", punch(readable, 0, 9));
	int folder = open(".", O_RDONLY), ends[2];
	printf(" pipe %d", result(pipe(ends)));
	printf(" %d", punch(ends[1], 0, 9));
	printf(" %d\n", result(lseek(ends[0], 0, SEEK_DATA)));
	printf("stored %d\n", result(fsync(folder)));
	corners();
}

static void swap(void)
{
	const char *names[2] = {"left", "right"};
	close(make("left", 0644, "0"));
	close(make("right", 0644, "1"));
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int64_t end = number(now) + 4000000000;
	long count = 0, wrong = 0;
	do {
		int error = move("left", "right", EXCHANGE);
		if (error)
			printf("exchange: error %d\n", error);
		count++;
		for (int at = 0; at < 2; at++) {
			char byte = 0;
			int file = open(names[at], O_RDONLY);
			if (read(file, &byte, 1) != 1 || byte != '0' + (count + at) % 2)
				wrong++;
			close(file);
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (number(now) < end);
	printf("exchanged often: %d, wrong: %ld\n", count > 20, wrong);
}

// Whether a file has what it is to have; negative: it cannot be opened.
static int whole(const char *name)
{
	char text[16];
	int file = open(name, O_RDONLY);
	if (file < 0)
		return -errno;
	int is_whole = read(file, text, sizeof text) == 5;
	close(file);
	return is_whole;
}

// What is done with names that are replaced: 1, 0 if it was wrong, or an error.
static int by_open(void) { return whole("file"); }
static int by_link(void) { return whole("link"); }
static int by_access(void) { return access("file", R_OK) ? -errno : 1; }
static int by_chmod(void) { return chmod("file", 0600) ? -errno : 1; }
static int by_utimes(void) { return utimes("file", NULL) ? -errno : 1; }
static int by_truncate(void) { return truncate("file", 5) ? -errno : 1; }

static int by_stat(void)
{
	struct stat of;
	return stat("file", &of) ? -errno : of.st_size == 5;
}

static int by_readlink(void)
{
	char text[16];
	ssize_t length = readlink("link", text, sizeof text);
	return length < 0 ? -errno : length == 4;
}

static int by_naming(void)
{
	if (link("file", "other"))
		return -errno;
	int is_whole = whole("other");
	return unlink("other") ? -errno : is_whole;
}

// As long as it has a file in it the directory cannot be replaced.
static int by_making(void)
{
	int file = open("folder/inside", O_WRONLY | O_CREAT, 0644);
	if (file < 0)
		return -errno;
	close(file);
	return unlink("folder/inside") ? -errno : 1;
}

// Others make and remove it.
static int by_creating(void)
{
	int file = open("come and gone", O_WRONLY | O_CREAT, 0644);
	if (file < 0)
		return -errno;
	close(file);
	unlink("come and gone");
	return 1;
}

static void replace(void)
{
	close(make("file.new", 0644, "whole"));
	move("file.new", "file", 0);
	symlink("file", "link.new");
	move("link.new", "link", 0);
	mkdir("folder.new", 0755);
	if (move("folder.new", "folder", 0))
		rmdir("folder.new");
	close(open("come and gone", O_WRONLY | O_CREAT, 0644));
	unlink("come and gone");
}

static void replaced(void)
{
	struct {
		const char *name;
		int (*way)(void);
	} ways[] = {{"open", by_open}, {"stat", by_stat}, {"access", by_access}, {"chmod", by_chmod},
		    {"utimes", by_utimes}, {"truncate", by_truncate}, {"readlink", by_readlink},
		    {"link", by_link}, {"naming", by_naming}, {"making", by_making},
		    {"creating", by_creating}};
	replace();
	for (size_t at = 0; at < sizeof ways / sizeof *ways; at++) {
		int child = fork(), missing = 0, wrong = 0, error = 0;
		long count = 0;
		if (!child) {
			for (int round = 0; round < 150; round++)
				replace();
			_exit(0);
		}
		for (; waitpid(child, NULL, WNOHANG) == 0; count++) {
			int answer = ways[at].way();
			missing += answer < 0;
			wrong += answer == 0;
			error = answer < 0 ? answer : error;
		}
		printf("%s: often %d, missing %d, wrong %d, error %d\n", ways[at].name, count > 20, missing, wrong, error);
	}
}

int main(int count, char **arguments)
{
	char folder[256], what[32];
	if (count < 3 || sscanf(arguments[2], "%255s %31s", folder, what) != 2 || chdir(folder) < 0)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 1024);
	mkdir(what, 0755);
	if (chdir(what) < 0)
		return 3;
	struct {
		const char *name;
		void (*run)(void);
	} parts[] = {{"times", times}, {"owners", owners}, {"moves", moves},
		     {"nodes", nodes}, {"holes", holes},   {"swap", swap},
		     {"pipes", pipes}, {"replaced", replaced}};
	for (size_t at = 0; at < sizeof parts / sizeof *parts; at++)
		if (!strcmp(parts[at].name, what))
			return parts[at].run(), 0;
	return 4;
}
