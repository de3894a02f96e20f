// Paths: what they lead to, and which errors they are. Each line is the same on every Linux. Its
// argument is an empty folder on a disk.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *top, *program;
static int number;

static void said(const char *what, long result) {
    printf("%d %s: %s\n", ++number, what, result < 0 ? strerrorname_np(errno) : "yes");
}
#define TRY(x) do { errno = 0; said(#x, (long)(x)); } while (0)

static void put(const char *name, const char *text) {
    int file = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (file < 0 || write(file, text, strlen(text)) < 0)
        perror(name), exit(2);
    close(file);
}

static int closed(int file) {
    if (file >= 0)
        close(file);
    return file;
}

static void content(const char *name) {
    char text[100] = "";
    int file = open(name, O_RDONLY);
    if (file < 0) {
        said(name, -1);
        return;
    }
    if (read(file, text, sizeof text - 1) < 0)
        strcpy(text, strerrorname_np(errno));
    close(file);
    printf("%d %s says %s\n", ++number, name, text);
}

// A path without that of the folder.
static void shown(const char *what, const char *path) {
    size_t length = strlen(top);
    int below = !strncmp(path, top, length);
    printf("%d %s is %s%s\n", ++number, what, below ? "TOP" : "", below ? path + length : path);
}

static void here(const char *what) {
    char path[5000];
    long got = syscall(SYS_getcwd, path, sizeof path);
    if (got < 0)
        said(what, -1);
    else
        shown(what, path);
}

static void link_of(const char *what, const char *name) {
    char text[5000];
    long got = readlink(name, text, sizeof text - 1);
    if (got < 0) {
        said(what, -1);
        return;
    }
    text[got] = 0;
    shown(what, text);
}

static void dots(void) {
    mkdir("d", 0755), mkdir("d/s", 0755);
    put("d/x", "inner"), put("x", "outer"), symlink("d/s", "l");
    content("l/../x");
    TRY(unlink("l/../x"));
    TRY(access("d/x", F_OK));
    TRY(access("x", F_OK));
    TRY(closed(open("none/../x", O_RDONLY)));
    TRY(closed(open("x/../x", O_RDONLY)));
    TRY(closed(open("x/.", O_RDONLY)));
    TRY(closed(open("d/./s/../../x", O_RDONLY)));
    TRY(rename("d/.", "e"));
    TRY(rename("d", "e/.."));
    TRY(rmdir("d/s/."));
    TRY(rmdir("d/s/.."));
    TRY(unlink("d/."));
    TRY(mkdir("d/..", 0755));
    TRY(mkdir("d/.", 0755));
    TRY(closed(open("d/..", O_CREAT | O_WRONLY, 0644)));
    struct stat root, up;
    stat("/", &root), stat("/../../..", &up);
    printf("%d %d\n", ++number, root.st_ino == up.st_ino);
}

static void slashes(void) {
    mkdir("t", 0755), put("f", "file"), symlink("t", "tl"), symlink("f", "fl");
    symlink("nothing", "nl");
    TRY(closed(open("f/", O_RDONLY)));
    TRY(closed(open("new/", O_CREAT | O_WRONLY, 0644)));
    TRY(closed(open("t/", O_RDONLY)));
    TRY(closed(open("fl/", O_RDONLY)));
    TRY(access("f/", F_OK));
    TRY(unlink("f/"));
    TRY(unlink("fl/"));
    TRY(mkdir("made/", 0755));
    TRY(rmdir("made//"));
    TRY(rmdir("tl/"));
    TRY(rmdir("tl"));
    TRY(mkdir("nl/", 0755));
    TRY(mkdir("nl", 0755));
    TRY(symlink("a", "sym/"));
    TRY(mkfifo("fifo/", 0644));
    TRY(link("f", "hard/"));
    TRY(rename("f", "g/"));
    TRY(rename("f/", "g"));
    TRY(rename("t", "t2/"));
    TRY(rename("t2/", "t"));
    TRY(rename("tl/", "tl2"));
    TRY(truncate("f/", 0));
    struct stat of;
    TRY(lstat("tl/", &of));
    printf("%d %d\n", ++number, S_ISDIR(of.st_mode));
    TRY(readlink("tl/", (char[9]){0}, 9));
    TRY(stat("", &of));
    TRY(closed(open("", O_RDONLY)));
    TRY(unlink(""));
    TRY(rename("f", ""));
    TRY(chdir(""));
    TRY(symlink("", "empty"));
}

static void links(void) {
    symlink("self", "self"), symlink("pong", "ping"), symlink("ping/x", "pong");
    TRY(closed(open("self", O_RDONLY)));
    TRY(closed(open("ping/y", O_RDONLY)));
    TRY(closed(open("self", O_RDONLY | O_NOFOLLOW)));
    put("end", "end");
    char from[20], to[20];
    symlink("end", "c1");
    for (int i = 2; i <= 42; i++) {
        sprintf(from, "c%d", i), sprintf(to, "c%d", i - 1);
        symlink(to, from);
    }
    content("c40");
    content("c41");
    TRY(closed(open("nl", O_CREAT | O_EXCL | O_WRONLY, 0644)));
    TRY(closed(open("nl", O_CREAT | O_WRONLY, 0644)));
    TRY(access("nothing", F_OK));
    TRY(closed(open("fl", O_RDONLY | O_NOFOLLOW)));
    TRY(closed(open("tl", O_RDONLY | O_DIRECTORY | O_NOFOLLOW)));
    TRY(closed(open("f", O_RDONLY | O_DIRECTORY)));
    TRY(closed(open("t", O_WRONLY)));
    TRY(closed(open("t", O_RDONLY | O_CREAT, 0644)));
    TRY(closed(open("f", O_CREAT | O_EXCL | O_WRONLY, 0644)));
}

static void lengths(void) {
    char name[300], path[5000];
    memset(name, 'n', 255), name[255] = 0;
    TRY(mkdir(name, 0755));
    TRY(rmdir(name));
    name[255] = 'n', name[256] = 0;
    TRY(mkdir(name, 0755));
    TRY(access(name, F_OK));
    memset(path, '/', 4095), path[4094] = 'f', path[4095] = 0;
    TRY(access(path, F_OK));
    path[4094] = '/', path[4095] = '/', path[4096] = 0;
    TRY(access(path, F_OK));
    // Deeper than a path is long.
    char part[200];
    memset(part, 'p', 150), part[150] = 0;
    int fd = open(".", O_RDONLY);
    for (int i = 0; i < 40; i++)
        if (mkdir(part, 0755) || chdir(part))
            perror("deep"), exit(2);
    put("deep", "deep");
    content("deep");
    here("deep");
    for (int i = 0; i < 40; i++)
        if (unlink("deep") * 0 || chdir("..") || rmdir(part))
            perror("back"), exit(2);
    struct stat a, b;
    stat(".", &a), fstat(fd, &b);
    printf("%d %d\n", ++number, a.st_ino == b.st_ino);
    close(fd);
}

static void places(void) {
    mkdir("p", 0755), mkdir("p/q", 0755), mkdir("p/q/r", 0755), put("p/q/r/f", "there");
    int fd = open("p/q", O_RDONLY | O_DIRECTORY), file = open("p/q/r/f", O_RDONLY);
    chdir("p/q/r");
    here("before");
    rename("../../../p", "../../../renamed");
    here("after its ancestor was renamed");
    content("f");
    link_of("cwd", "/proc/self/cwd");
    TRY(closed(openat(fd, "r/f", O_RDONLY)));
    char name[50];
    sprintf(name, "/proc/self/fd/%d", fd);
    link_of("fd", name);
    mkdir("../../../other", 0755);
    rename("../../q", "../../../other/q");
    here("after a move");
    link_of("fd", name);
    TRY(closed(openat(fd, "../q/r/f", O_RDONLY)));
    unlink("f");
    sprintf(name, "/proc/self/fd/%d", file);
    content(name);
    mkdir("gone", 0755), chdir("gone");
    rmdir("../gone");
    here("removed");
    TRY(closed(open("new", O_CREAT | O_WRONLY, 0644)));
    TRY(mkdir("new", 0755));
    TRY(closed(open(".", O_RDONLY)));
    struct stat of;
    TRY(stat(".", &of));
    printf("%d %d\n", ++number, (int)of.st_nlink);
    TRY(fchdir(fd));
    here("fchdir");
    TRY(fchdir(file));
    TRY(openat(file, "x", O_RDONLY));
    TRY(openat(99, "x", O_RDONLY));
    TRY(closed(openat(99, "/dev/null", O_RDONLY)));
    chdir(top);
    TRY(rename("other", "other/q/under"));
    TRY(rename("other", "f"));
    TRY(rename("f", "other"));
    TRY(rmdir("other"));
    TRY(fchmodat(AT_FDCWD, "f", 0600, 0));
    TRY(fstatat(AT_FDCWD, "f", &of, 0x10));
    TRY(faccessat(AT_FDCWD, "f", 8, 0));
    TRY(syscall(SYS_renameat2, AT_FDCWD, "f", AT_FDCWD, "g", 3));
    TRY(linkat(AT_FDCWD, "f", AT_FDCWD, "g", 0x10));
    TRY(unlinkat(AT_FDCWD, "f", 0x10));
    close(fd), close(file);
}

static void again(void) {
    put("a", "abc");
    int fd = open("a", O_RDWR);
    char text[20] = "", name[50];
    read(fd, text, 2);
    sprintf(name, "/dev/fd/%d", fd);
    content(name);
    sprintf(name, "/proc/self/fd/%d", fd);
    int more = open(name, O_WRONLY | O_APPEND);
    TRY(write(more, "d", 1));
    content("a");
    close(more), close(fd);
    int both[2];
    pipe(both);
    write(both[1], "piped", 5);
    sprintf(name, "/dev/fd/%d", both[0]);
    content(name);
    // With the other end closed already nobody waits for it.
    write(both[1], "rest", 4);
    close(both[1]);
    content(name);
    content(name);
    close(both[0]);
    fd = open("t", O_RDONLY);
    put("t/in", "in");
    sprintf(name, "/proc/self/fd/%d/in", fd);
    content(name);
    close(fd);
    fd = open("t", O_PATH | O_DIRECTORY);
    TRY(read(fd, text, 1));
    TRY(closed(openat(fd, "in", O_RDONLY)));
    TRY(fchmod(fd, 0700));
    TRY(syscall(SYS_getdents64, fd, text, sizeof text));
    close(fd);
    fd = open("fl", O_PATH | O_NOFOLLOW);
    struct stat of;
    TRY(fstat(fd, &of));
    printf("%d %d %d\n", ++number, S_ISLNK(of.st_mode), (int)readlinkat(fd, "", text, sizeof text));
    close(fd);
    fd = open("a", O_RDWR);
    TRY(fcntl(fd, F_SETFL, O_APPEND));
    pwrite(fd, "e", 1, 0);
    content("a");
    TRY(lseek(fd, 1L << 62, SEEK_SET));
    struct iovec list[1025] = {{text, 1}};
    TRY(readv(fd, list, 1024));
    TRY(readv(fd, list, 1025));
    TRY(dup3(fd, fd, 0));
    TRY(dup3(fd, 50, 1));
    TRY(pipe2(both, 0x12345));
    close(fd);
    char exe[5000] = "", *real = realpath(program, 0);
    TRY(readlink("/proc/self/exe", exe, sizeof exe));
    printf("%d %d\n", ++number, real && !strcmp(exe, real));
    TRY(closed(open("/proc/self/exe", O_RDONLY)));
}

static void listed(void) {
    mkdir("many", 0755);
    char name[30];
    for (int i = 0; i < 30; i++)
        sprintf(name, "many/%d", i), put(name, "");
    DIR *list = opendir("many");
    long places[40];
    char names[40][20];
    int count = 0, good = 0;
    for (struct dirent *entry;;) {
        places[count] = telldir(list);
        if (!(entry = readdir(list)))
            break;
        strcpy(names[count++], entry->d_name);
    }
    for (int i = 0; i < count; i++) {
        seekdir(list, places[i]);
        struct dirent *entry = readdir(list);
        good += entry && !strcmp(entry->d_name, names[i]);
    }
    printf("%d %d of %d\n", ++number, good, count);
    closedir(list);
    mkdir("g", 0755), chown("g", 0, 77), chmod("g", 02755), mkdir("g/in", 0755), put("g/f", "");
    struct stat in, f;
    stat("g/in", &in), stat("g/f", &f);
    printf("%d %d %d %d\n", ++number, !!(in.st_mode & S_ISGID), in.st_gid, f.st_gid);
}

int main(int count, char **words) {
    setvbuf(stdout, 0, _IOLBF, 0);
    if (count < 2 || chdir(words[1]) < 0)
        perror("a folder"), exit(2);
    top = getcwd(0, 0), program = words[0];
    umask(022);
    dots();
    slashes();
    links();
    lengths();
    places();
    again();
    listed();
    return 0;
}
