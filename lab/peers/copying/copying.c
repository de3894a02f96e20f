/* Reads and writes a file in pieces of awkward sizes, and says what it has seen: for tests that
 * count how often each byte is copied on its way, and for those that compare with the host.
 *
 * copying -c 'FOLDER WHAT': idle, read, write, check, gather, append, faults, few, tiny, many, sums. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define BYTES (8 << 20)
#define PIECE 100001

static unsigned char buffer[PIECE + 4096];
static char path[256];

static void die(const char *what)
{
    printf("%s: %s\n", what, strerror(errno));
    exit(1);
}

static unsigned char value(long at)
{
    return (unsigned char)(at * 7 + at / 251 + at / 65521);
}

static int file(const char *folder, const char *name, int flags)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, flags, 0644);
    if (fd < 0)
        die(path);
    return fd;
}

/* All of a file, by its position; at an odd address. */
static void sum(const char *folder, const char *name)
{
    int fd = file(folder, name, O_RDONLY);
    unsigned long sum = 0, all = 0;
    for (;;) {
        ssize_t count = read(fd, buffer + 3, PIECE);
        if (count < 0)
            die("read");
        if (count == 0)
            break;
        for (ssize_t i = 0; i < count; i++)
            sum = sum * 31 + buffer[3 + i];
        all += count;
    }
    printf("%s: %lu bytes, sum %lx\n", name, all, sum);
    close(fd);
}

static void fill(long at, long count)
{
    for (long i = 0; i < count; i++)
        buffer[3 + i] = value(at + i);
}

/* All of a file, newly made. */
static void make(const char *folder, int flags)
{
    int fd = file(folder, "made", O_WRONLY | O_CREAT | flags);
    long from = lseek(fd, 0, SEEK_END);
    for (long at = 0; at < BYTES;) {
        long count = BYTES - at < PIECE ? BYTES - at : PIECE;
        fill(at, count);
        ssize_t done = write(fd, buffer + 3, count);
        if (done != count)
            die("write");
        at += done;
    }
    printf("made: from %ld to %ld\n", from, (long)lseek(fd, 0, SEEK_CUR));
    close(fd);
}

/* So many small files, each written in one go. */
static void several(const char *folder, int files, long count)
{
    char name[16];
    for (int n = 0; n < files; n++) {
        snprintf(name, sizeof name, "small%d", n);
        int fd = file(folder, name, O_WRONLY | O_CREAT | O_TRUNC);
        fill(n * count, count);
        if (write(fd, buffer + 3, count) != count)
            die("write");
        close(fd);
    }
    printf("several: %d of %ld bytes\n", files, count);
}

/* All small files that there are. */
static void sums(const char *folder)
{
    unsigned long sum = 0, all = 0;
    int n = 0, fd;
    for (;; n++) {
        snprintf(path, sizeof path, "%s/small%d", folder, n);
        if ((fd = open(path, O_RDONLY)) < 0)
            break;
        ssize_t count = read(fd, buffer + 3, PIECE);
        for (ssize_t i = 0; i < count; i++)
            sum = sum * 31 + buffer[3 + i];
        all += count;
        close(fd);
    }
    printf("small: %d, %lu bytes, sum %lx\n", n, all, sum);
}

/* By pieces that lie apart, at places of their own. */
static void gather(const char *folder)
{
    int fd = file(folder, "made", O_RDWR | O_CREAT | O_TRUNC);
    static unsigned char parts[3][50000];
    struct iovec all[4] = {{parts[0] + 1, 49999}, {parts[1], 0}, {parts[1], 31}, {parts[2], 50000}};
    for (int part = 0; part < 3; part++)
        for (int i = 0; i < 50000; i++)
            parts[part][i] = value(part * 50000 + i);
    for (int round = 0; round < 40; round++)
        if (pwritev(fd, all, 4, round * 90001L) != 49999 + 31 + 50000)
            die("pwritev");
    if (writev(fd, all, 4) != 49999 + 31 + 50000)
        die("writev");
    memset(parts, 0, sizeof parts);
    if (preadv(fd, all, 4, 12345) != 49999 + 31 + 50000)
        die("preadv");
    unsigned long sum = 0;
    for (int part = 0; part < 3; part++)
        for (int i = 0; i < 50000; i++)
            sum = sum * 31 + parts[part][i];
    printf("gathered: sum %lx, at %ld\n", sum, (long)lseek(fd, 0, SEEK_CUR));
    all[3].iov_len = (size_t)-1;
    ssize_t done = readv(fd, all, 4);
    printf("too much: %ld, %s\n", (long)done, strerror(errno));
    done = readv(fd, all, 1025);
    printf("too many: %ld, %s\n", (long)done, strerror(errno));
    close(fd);
}

/* What is not there, or not for this; and what is only partly there. */
static void faults(const char *folder)
{
    int fd = file(folder, "made", O_RDWR | O_CREAT | O_TRUNC);
    unsigned char *pages = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        die("mmap");
    for (int i = 0; i < 40 * 4096; i++)
        pages[i] = value(i);
    munmap(pages + 40 * 4096, 24 * 4096);
    mprotect(pages + 30 * 4096, 10 * 4096, PROT_READ);
    errno = 0;
    ssize_t done = write(fd, pages + 40 * 4096, 100);
    printf("write of nothing: %ld, %s\n", (long)done, strerror(errno));
    done = write(fd, pages + 20 * 4096 + 5, 64 * 4096);
    printf("write up to the end: %s\n", done > 0 && done <= 20 * 4096 - 5 ? "part" : "all or none");
    ftruncate(fd, 0);
    done = pwrite(fd, pages, 40 * 4096, 7);
    printf("write of all: %ld\n", (long)done);
    errno = 0;
    done = pread(fd, pages + 35 * 4096, 100, 0);
    printf("read to what may be read only: %ld, %s\n", (long)done, strerror(errno));
    errno = 0;
    done = pread(fd, pages + 45 * 4096, 100, 0);
    printf("read to nothing: %ld, %s\n", (long)done, strerror(errno));
    done = pread(fd, pages + 25 * 4096 + 9, 20 * 4096, 0);
    printf("read up to the end: %s\n", done > 0 && done <= 5 * 4096 - 9 ? "part" : "all or none");
    errno = 0;
    done = pread(fd, (void *)0xffffffff80000000ul, 100, 0);
    printf("read to the kernel: %ld, %s\n", (long)done, strerror(errno));
    unsigned char *fresh = mmap(NULL, 40 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    done = pread(fd, fresh + 1, 40 * 4096 - 1, 8);
    printf("read to fresh pages: %ld, %s\n", (long)done, memcmp(fresh + 1, pages + 1, 25 * 4096) ? "other" : "same");
    /* Its own pages. */
    ftruncate(fd, 40 * 4096);
    unsigned char *own = mmap(NULL, 40 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (own == MAP_FAILED)
        die("mmap of it");
    done = pread(fd, own, 4096, 8192);
    printf("read to its own page: %ld, %s\n", (long)done, memcmp(own, own + 8192, 4096) ? "other" : "same");
    done = pwrite(fd, own + 4096, 4096, 5 * 4096);
    printf("write from its own page: %ld, %s\n", (long)done, memcmp(own + 4096, own + 5 * 4096, 4096) ? "other" : "same");
    printf("%d\n", fsync(fd));
    close(fd);
}

int main(int argc, char **argv)
{
    char folder[128], what[32];
    if (argc < 3 || sscanf(argv[2], "%127s %31s", folder, what) != 2)
        return 2;
    if (!strcmp(what, "read"))
        sum(folder, "big");
    else if (!strcmp(what, "check"))
        sum(folder, "made");
    else if (!strcmp(what, "write"))
        make(folder, O_TRUNC);
    else if (!strcmp(what, "append"))
        make(folder, O_APPEND);
    else if (!strcmp(what, "gather"))
        gather(folder);
    else if (!strcmp(what, "faults"))
        faults(folder);
    else if (!strcmp(what, "few"))
        several(folder, 100, 20000);
    else if (!strcmp(what, "tiny"))
        several(folder, 200, 4000);
    else if (!strcmp(what, "many"))
        several(folder, 600, 5000);
    else if (!strcmp(what, "sums"))
        sums(folder);
    else
        printf("%s\n", what);
    return 0;
}
