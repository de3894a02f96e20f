/* Where mappings come, and how they grow, shrink and move. It prints the same on every Linux. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096ul
#define RW (PROT_READ | PROT_WRITE)
#define ANY (MAP_PRIVATE | MAP_ANONYMOUS)
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static sigjmp_buf back;

static void caught(int number) { siglongjmp(back, number); }

/* The signal that reading, or writing, a byte brings; 0: none. */
static int touch(volatile char *at, int write)
{
    int number = sigsetjmp(back, 1);
    if (number == 0) {
        if (write)
            *at = 1;
        else
            (void)*at;
    }
    return number;
}

static char *map(size_t pages) { return mmap(NULL, pages * PAGE, RW, ANY, -1, 0); }

/* 0, or the error. */
static int error(void *at) { return at == MAP_FAILED ? errno : 0; }
static int fails(int result) { return result == 0 ? 0 : errno; }

/* A mapping far below the others leaves room for more. */
static void low(void)
{
    char *low = mmap((void *)0x20000, PAGE, RW, ANY | MAP_FIXED, -1, 0);
    int bad = 0;
    for (int i = 0; i < 100; i++)
        bad += error(map(1000)) != 0;
    printf("low: %d, %d\n", low == (char *)0x20000, bad);
    munmap(low, PAGE);
}

/* Addresses that were given back are used again. */
static void again(void)
{
    char *first = map(1 << 20), *most = first;
    munmap(first, PAGE << 20);
    for (int i = 0; i < 1000; i++) {
        char *next = map(1 << 20);
        if (next < most)
            most = next;
        char *other = map(1);
        munmap(next, PAGE << 20);
        munmap(other, PAGE);
    }
    printf("again: %d\n", first - most <= (long)(PAGE << 20));
}

static void hints(void)
{
    char *at = map(16);
    munmap(at, 16 * PAGE);
    char *hinted = mmap(at + 3 * PAGE, PAGE, RW, ANY, -1, 0);
    char *taken = mmap(at + 3 * PAGE, PAGE, RW, ANY, -1, 0);
    char *odd = mmap(at + 5 * PAGE + 1, PAGE, RW, ANY, -1, 0);
    printf("hints: %d %d %d\n", hinted == at + 3 * PAGE, taken != at + 3 * PAGE && !error(taken),
           (uintptr_t)odd % PAGE == 0);
    void *no = mmap(hinted, PAGE, RW, ANY | MAP_FIXED_NOREPLACE, -1, 0);
    printf("taken: %d\n", error(no));
    void *yes = mmap(at + 8 * PAGE, PAGE, RW, ANY | MAP_FIXED_NOREPLACE, -1, 0);
    printf("free: %d\n", yes == at + 8 * PAGE);
    printf("crooked: %d\n", error(mmap(at + 1, PAGE, RW, ANY | MAP_FIXED, -1, 0)));
    printf("too far: %d\n", error(mmap((void *)(1ul << 47), PAGE, RW, ANY | MAP_FIXED, -1, 0)));
    printf("too much: %d\n", error(mmap(NULL, 1ul << 47, PROT_NONE, ANY | MAP_NORESERVE, -1, 0)));
}

static void rights(void)
{
    char *at = map(10);
    memset(at, 1, 10 * PAGE);
    munmap(at + 5 * PAGE, PAGE);
    int result = fails(mprotect(at, 10 * PAGE, PROT_READ));
    printf("over a hole: %d, %d %d\n", result, touch(at, 1), touch(at + 9 * PAGE, 1));
    printf("of a hole: %d\n", fails(mprotect(at + 5 * PAGE, PAGE, PROT_READ)));
    result = fails(madvise(at + 3 * PAGE, 4 * PAGE, MADV_DONTNEED));
    printf("not needed: %d, %d %d %d\n", result, at[2 * PAGE], at[3 * PAGE], at[6 * PAGE]);
    printf("stored: %d %d\n", fails(msync(at, 5 * PAGE, MS_SYNC)), fails(msync(at, 6 * PAGE, MS_SYNC)));
    int fd = open("places.file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(fd, 4 * PAGE) != 0)
        exit(3);
    close(fd);
    fd = open("places.file", O_RDONLY);
    char *shared = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    char *own = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    printf("only read: %d %d\n", fails(mprotect(shared, PAGE, RW)), fails(mprotect(own, PAGE, RW)));
    close(fd);
}

static void fill(char *at, size_t pages)
{
    for (size_t page = 0; page < pages; page++)
        *(size_t *)(at + page * PAGE) = page + 7;
}

/* How many pages are not as they were filled. */
static size_t wrong(char *at, size_t pages)
{
    size_t wrong = 0;
    for (size_t page = 0; page < pages; page++)
        wrong += *(size_t *)(at + page * PAGE) != page + 7;
    return wrong;
}

static void moves(void)
{
    char *at = map(3000), *wall = mmap(at + 1500 * PAGE, PAGE, PROT_NONE, ANY | MAP_FIXED, -1, 0);
    fill(at, 1500);
    at[1499 * PAGE + 100] = 9;
    printf("in place: %d\n", error(mremap(at, 1500 * PAGE, 1600 * PAGE, 0)));
    char *to = mremap(at, 1500 * PAGE, 3000 * PAGE, MREMAP_MAYMOVE);
    printf("moved: %d, %zu, %d %d\n", to != at && !error(to), wrong(to, 1500), to[1499 * PAGE + 100],
           to[2999 * PAGE]);
    printf("gone: %d %d, %d\n", touch(at, 0), touch(at + 1499 * PAGE, 1), touch(wall, 0));
    char *less = mremap(to, 3000 * PAGE, 10 * PAGE, 0);
    printf("less: %d, %zu, %d %d\n", less == to, wrong(to, 10), touch(to + 10 * PAGE, 0),
           touch(to + 2999 * PAGE, 0));
    char *more = mremap(to, 10 * PAGE, 20 * PAGE, 0);
    printf("more: %d, %zu %d\n", more == to, wrong(to, 10), to[19 * PAGE]);
    char *place = map(40);
    memset(place, 5, 40 * PAGE);
    char *there = mremap(to, 10 * PAGE, 5 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place + 10 * PAGE);
    printf("there: %d, %zu, %d %d, %d %d\n", there == place + 10 * PAGE, wrong(there, 5),
           place[9 * PAGE], place[15 * PAGE], touch(to, 0), to[10 * PAGE]);
    mprotect(there, 5 * PAGE, PROT_READ);
    char *read = mremap(there, 5 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
    printf("only read: %zu, %d %d\n", wrong(read, 5), touch(read, 1), touch(read + 7 * PAGE, 1));
    mprotect(read, 8 * PAGE, PROT_NONE);
    char *none = mremap(read, 8 * PAGE, 4000 * PAGE, MREMAP_MAYMOVE);
    int denied = touch(none, 0);
    mprotect(none, 4000 * PAGE, RW);
    printf("nothing: %d, %zu\n", denied, wrong(none, 5));
}

static void bad_moves(void)
{
    char *at = map(10), *to = map(10);
    munmap(at + 5 * PAGE, PAGE);
    printf("crooked: %d\n", error(mremap(at + 1, PAGE, 2 * PAGE, MREMAP_MAYMOVE)));
    printf("to none: %d\n", error(mremap(at, PAGE, 0, MREMAP_MAYMOVE)));
    printf("of a hole: %d\n", error(mremap(at + 5 * PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE)));
    printf("over a hole: %d\n", error(mremap(at, 10 * PAGE, 20 * PAGE, MREMAP_MAYMOVE)));
    printf("onto itself: %d\n", error(mremap(at, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + PAGE)));
    printf("onto crooked: %d\n", error(mremap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to + 1)));
    printf("fixed alone: %d\n", error(mremap(at, PAGE, PAGE, MREMAP_FIXED, to)));
    printf("unknown: %d\n", error(mremap(at, PAGE, PAGE, 64)));
    printf("too much: %d\n", error(mremap(at, PAGE, 1ul << 46, MREMAP_MAYMOVE)));
    printf("still: %d %d\n", touch(at, 1), touch(to, 1));
}

static void shared_moves(void)
{
    int fd = open("places.file", O_RDWR);
    char *file = mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
    fill(file, 4);
    char *own = mmap(NULL, 4 * PAGE, RW, MAP_PRIVATE, fd, 0);
    own[PAGE] = 99;
    char *place = map(100);
    char *there = mremap(file + PAGE, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    there[PAGE + 100] = 4;
    char byte = 0;
    if (pread(fd, &byte, 1, 2 * PAGE + 100) != 1)
        exit(4);
    printf("a file: %d, %zu, %d, %d %d\n", there == place, *(size_t *)there, byte, touch(file + PAGE, 0),
           touch(file + 3 * PAGE, 0));
    char *moved = mremap(own, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
    printf("its copy: %d %d, %d\n", moved[PAGE], moved[3 * PAGE], touch(moved + 5 * PAGE, 0));
    char *zeros = mmap(NULL, 4 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    zeros[0] = 1;
    char *wall = mmap(zeros + 4 * PAGE, PAGE, PROT_NONE, ANY | MAP_FIXED_NOREPLACE, -1, 0);
    char *longer = mremap(zeros, 4 * PAGE, 6 * PAGE, MREMAP_MAYMOVE);
    fflush(stdout);
    pid_t id = fork();
    if (id == 0) {
        longer[1] = 2;
        _exit(touch(longer + 5 * PAGE, 1));
    }
    int how = -1;
    waitpid(id, &how, 0);
    (void)wall;
    printf("zeros: %d %d, %d\n", longer[0], longer[1], WEXITSTATUS(how));
    close(fd);
}

/* As a program's arrays grow. */
static void grows(void)
{
    size_t count = 1000;
    unsigned *array = malloc(count * sizeof *array);
    size_t filled = 0, wrong = 0;
    while (count < 8000000) {
        for (; filled < count; filled++)
            array[filled] = filled * 2654435761u;
        count += count / 3;
        array = realloc(array, count * sizeof *array);
    }
    for (size_t i = 0; i < filled; i++)
        wrong += array[i] != (unsigned)(i * 2654435761u);
    array = realloc(array, 4000);
    printf("grown: %zu wrong, %u\n", wrong, array[999]);
    free(array);
}

int main(void)
{
    struct sigaction action = {.sa_handler = caught};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    low();
    again();
    hints();
    rights();
    moves();
    bad_moves();
    shared_moves();
    grows();
    unlink("places.file");
    puts("done");
    return 0;
}
