// What a user may do with files, and what not: it builds a tree as root, becomes the user 1000 with
// the groups 1000 and 50, and prints what each attempt came to. It prints the same on every Linux
// (with fs.protected_symlinks = fs.protected_regular = 0, where that would make a difference nothing
// is asked). Its argument is a folder that can be written to.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int number;

static void said(const char *what, long result) {
    printf("%d %s: %s\n", ++number, what, result < 0 ? strerrorname_np(errno) : "yes");
}
#define TRY(x) do { errno = 0; said(#x, (long)(x)); } while (0)

static void fail(const char *what) {
    perror(what);
    exit(2);
}
static void need(long result, const char *what) {
    if (result < 0)
        fail(what);
}
#define NEED(x) need((long)(x), #x)

static void put(const char *name, mode_t mode, uid_t user, gid_t group) {
    int file = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    need(file, name);
    NEED(write(file, "#!/bin/sh\n", 10));
    close(file);
    need(chown(name, user, group), name);
    need(chmod(name, mode), name);
}
static void folder(const char *name, mode_t mode, uid_t user, gid_t group) {
    need(mkdir(name, 0700), name);
    need(chown(name, user, group), name);
    need(chmod(name, mode), name);
}

static int closed(int file) {
    if (file >= 0)
        close(file);
    return file;
}
static int reads(const char *name) { return closed(open(name, O_RDONLY)); }
static int writes(const char *name) { return closed(open(name, O_WRONLY)); }
static int makes(const char *name) { return closed(open(name, O_CREAT | O_WRONLY, 0644)); }
static int cuts(const char *name) { return closed(open(name, O_RDONLY | O_TRUNC)); }

// Whether a program can be executed: 0, or the error of `execve`.
static int runs(const char *name) {
    int result[2];
    NEED(pipe2(result, O_CLOEXEC));
    pid_t child = fork();
    if (child == 0) {
        execl(name, name, (char *)0);
        int error = errno;
        NEED(write(result[1], &error, sizeof error));
        _exit(1);
    }
    close(result[1]);
    int error = 0;
    long got = read(result[0], &error, sizeof error);
    close(result[0]);
    waitpid(child, 0, 0);
    if (got == sizeof error) {
        errno = error;
        return -1;
    }
    return 0;
}

static void told(const char *name) {
    struct stat of;
    if (lstat(name, &of) < 0)
        said(name, -1);
    else
        printf("%d %s: %o %d %d\n", ++number, name, of.st_mode, of.st_uid, of.st_gid);
}

static void build(void) {
    umask(0);
    folder("open", 0755, 0, 0);
    put("open/r", 0644, 0, 0);
    put("open/none", 0600, 0, 0);
    put("open/w", 0622, 0, 0);
    put("open/x", 0711, 0, 0);
    put("open/rx", 0755, 0, 0);
    put("open/group", 0640, 0, 50);
    put("open/notgroup", 0604, 0, 50);
    put("open/notown", 0077, 1000, 1000);
    put("open/own", 0644, 1000, 1000);
    put("open/all", 0666, 0, 0);
    NEED(symlink("/nowhere", "open/link"));
    NEED(mkfifo("open/pipe", 0600));
    folder("search", 0711, 0, 0);
    put("search/f", 0644, 0, 0);
    folder("list", 0744, 0, 0);
    put("list/f", 0666, 0, 0);
    folder("shut", 0700, 0, 0);
    put("shut/f", 0666, 0, 0);
    folder("shut/in", 0777, 0, 0);
    folder("sticky", 01777, 0, 0);
    put("sticky/theirs", 0666, 0, 0);
    put("sticky/mine", 0644, 1000, 1000);
    folder("ownsticky", 01777, 1000, 1000);
    put("ownsticky/theirs", 0600, 0, 0);
    folder("free", 0777, 0, 0);
    put("free/theirs", 0600, 0, 0);
    folder("free/dir", 0755, 0, 0);
    folder("free/moved", 0755, 1000, 1000);
    folder("shared", 02777, 0, 77);
    folder("mine", 0755, 1000, 1000);
    NEED(symlink("../shut/f", "mine/toshut"));
}

static void opening(void) {
    TRY(reads("open/r"));
    TRY(writes("open/r"));
    TRY(reads("open/none"));
    TRY(reads("open/w"));
    TRY(writes("open/w"));
    TRY(cuts("open/r"));
    TRY(cuts("open/w"));
    TRY(reads("open/group"));
    TRY(reads("open/notgroup"));
    TRY(reads("open/notown"));
    TRY(writes("open/own"));
    TRY(reads("open/pipe"));
    TRY(closed(open("open/r", O_RDONLY | O_NOATIME)));
    TRY(closed(open("open/own", O_RDONLY | O_NOATIME)));
    TRY(closed(open("open/none", O_PATH)));
    TRY(runs("open/r"));
    TRY(runs("open/x"));
    TRY(runs("open/rx"));
    TRY(runs("open"));
    TRY(runs("shut/f"));
}

static void looking(void) {
    struct stat of;
    TRY(stat("open/none", &of));
    TRY(stat("search/f", &of));
    TRY(reads("search"));
    TRY(reads("list"));
    TRY(stat("list/f", &of));
    TRY(stat("list/.", &of));
    TRY(stat("list/nothing", &of));
    TRY(stat("shut", &of));
    TRY(stat("shut/f", &of));
    TRY(stat("shut/..", &of));
    TRY(stat("shut/in/x", &of));
    TRY(stat("mine/toshut", &of));
    TRY(lstat("mine/toshut", &of));
    TRY(chdir("shut"));
    TRY(chdir("list"));
    TRY(truncate("open/r", 1));
    TRY(truncate("open/all", 1));
    char text[64];
    TRY(readlink("shut/x", text, sizeof text));
}

static void changing(void) {
    TRY(makes("open/new"));
    TRY(makes("open/all"));
    TRY(makes("free/new"));
    told("free/new");
    TRY(makes("shut/new"));
    TRY(mkdir("open/newdir", 0755));
    TRY(mkdir("open", 0755));
    TRY(symlink("x", "open/newlink"));
    TRY(unlink("open/r"));
    TRY(unlink("sticky/theirs"));
    TRY(unlink("sticky/mine"));
    TRY(unlink("ownsticky/theirs"));
    TRY(unlink("free/theirs"));
    TRY(rmdir("free/dir"));
    TRY(rename("open/own", "free/own"));
    TRY(rename("sticky/theirs", "free/stolen"));
    TRY(makes("sticky/another"));
    TRY(rename("sticky/another", "sticky/theirs"));
    TRY(rename("free/new", "mine/new"));
    TRY(rename("free/moved", "mine/moved"));
    TRY(mkdir("mine/d", 0777));
    TRY(link("open/r", "mine/r"));
    TRY(link("open/all", "mine/all"));
    TRY(link("open/own", "mine/own"));
    TRY(link("mine/own", "open/own2"));
    TRY(mknod("mine/device", S_IFCHR | 0666, 0x103));
    TRY(mkfifo("mine/pipe", 0644));
    TRY(makes("shared/f"));
    told("shared/f");
    TRY(mkdir("shared/d", 0755));
    told("shared/d");
    TRY(mkdir("shared/d/e", 0700));
    told("shared/d/e");
    TRY(mkfifo("shared/p", 0600));
    told("shared/p");
    TRY(symlink("x", "shared/l"));
    told("shared/l");
}

static void attributes(void) {
    TRY(chmod("open/r", 0666));
    TRY(chmod("open/own", 0600));
    TRY(chmod("mine", 02755));
    told("mine");
    TRY(chmod("shared/f", 02755));
    told("shared/f");
    TRY(chown("open/own", 0, -1));
    TRY(chown("open/own", -1, 50));
    TRY(chown("open/own", -1, 77));
    TRY(chown("open/own", 1000, 1000));
    TRY(chown("open/r", -1, 50));
    TRY(chown("open/r", -1, -1));
    TRY(lchown("open/link", -1, 50));
    TRY(utimensat(AT_FDCWD, "open/r", 0, 0));
    TRY(utimensat(AT_FDCWD, "open/all", 0, 0));
    struct timespec some[2] = {{1, 2}, {3, 4}};
    TRY(utimensat(AT_FDCWD, "open/all", some, 0));
    TRY(utimensat(AT_FDCWD, "open/own", some, 0));
    TRY(access("open/r", R_OK));
    TRY(access("open/r", W_OK));
    TRY(access("open/rx", X_OK | R_OK));
    TRY(access("open/r", X_OK));
    TRY(access("shut/f", F_OK));
    TRY(access("open/r", 8));
}

static void asking(void) {
    TRY(setuid(0));
    TRY(setgid(0));
    TRY(setreuid(0, -1));
    TRY(setresuid(-1, 5, -1));
    TRY(setuid(1000));
    gid_t none[1];
    TRY(setgroups(0, none));
    gid_t groups[8];
    int count = getgroups(8, groups);
    printf("groups %d %d\n", count, count > 0 ? (int)groups[0] : -1);
    TRY(kill(getppid(), 0));
    TRY(kill(getpid(), 0));
    TRY(writes("/etc/passwd"));
    TRY(makes("/etc/new"));
    TRY(reads("/etc/shadow"));
    TRY(reads("/dev/null"));
    TRY(writes("/dev/null"));
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/fd", getppid());
    TRY(reads(name));
    snprintf(name, sizeof name, "/proc/%d/cwd", getppid());
    char text[256];
    errno = 0;
    said("readlink /proc/PARENT/cwd", readlink(name, text, sizeof text));
    struct stat of;
    NEED(stat("/proc/self", &of));
    printf("own %d %d\n", (int)of.st_uid, (int)of.st_gid);
}

// A process that is the user for a while, by its effective ids, and root else.
static void halves(void) {
    NEED(setresgid(-1, 1000, -1));
    NEED(setresuid(-1, 1000, -1));
    TRY(reads("open/none"));
    TRY(access("open/none", R_OK));
    TRY(faccessat(AT_FDCWD, "open/none", R_OK, AT_EACCESS));
    TRY(makes("free/half"));
    told("free/half");
    uid_t real, effective, saved;
    NEED(getresuid(&real, &effective, &saved));
    printf("ids %d %d %d\n", real, effective, saved);
    TRY(setuid(0));
    NEED(getresuid(&real, &effective, &saved));
    printf("ids %d %d %d\n", real, effective, saved);
    NEED(setegid(0));
    TRY(reads("open/none"));
    TRY(access("open/all", X_OK));
    TRY(access("open/x", X_OK));
    printf("fs %ld %ld\n", syscall(SYS_setfsuid, 1000), syscall(SYS_setfsuid, -1));
    TRY(reads("open/none"));
    TRY(kill(1, 0));
}

int main(int count, char **words) {
    setvbuf(stdout, 0, _IOLBF, 0);
    if (count < 2 || chdir(words[1]) < 0)
        fail("a folder");
    build();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        gid_t groups[] = {50, 1000};
        umask(022);
        NEED(setgroups(2, groups));
        NEED(setresgid(1000, 1000, 1000));
        NEED(setresuid(1000, 1000, 1000));
        opening();
        looking();
        changing();
        attributes();
        asking();
        return 0;
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("child %d\n", status);
    number = 200;
    umask(022);
    halves();
    return 0;
}
