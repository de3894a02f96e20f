/*
 * The work of `cargo xtask bench memory` with address spaces (see `domains/testing/memorybench`) on
 * Linux, with the nearest that it has: a file of tmpfs that is mapped shared, private memory that is
 * forked, and, for pages that are made clean, two mappings that are made read-only. It is linked
 * statically. The only argument is the file.
 *
 * The clock of the machine counts instructions, so the best round is exact.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 256, LARGE = 4096, CALLS = 64, ROUNDS = 20 };

static void need(int holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    exit(1);
}

static unsigned long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ul + time.tv_nsec;
}

static void tell(const char *name, unsigned long value)
{
    printf("memorybench instructions \"%s\" %lu\n", name, value);
    fflush(stdout);
}

static unsigned char *map(int flags, int file, unsigned long pages)
{
    void *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, flags, file, 0);
    need(at != MAP_FAILED, "mmap");
    return at;
}

static void maps(const char *name, int file, unsigned long pages)
{
    unsigned long best = -1ul;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned long start = now();
        for (int call = 0; call < CALLS; call++)
            need(munmap(map(MAP_SHARED, file, pages), pages * PAGE) == 0, "munmap");
        unsigned long took = (now() - start) / CALLS;
        best = took < best ? took : best;
    }
    tell(name, best);
}

/* Forks; the child waits for the end of the pipe that it is given, and ends. */
static int forked(int pipes[2])
{
    need(pipe(pipes) == 0, "pipe");
    int child = fork();
    need(child >= 0, "fork");
    if (child == 0) {
        char byte;
        close(pipes[1]);
        _exit(read(pipes[0], &byte, 1) != 0);
    }
    close(pipes[0]);
    return child;
}

static void end(int child, int pipes[2])
{
    int status;
    close(pipes[1]);
    need(waitpid(child, &status, 0) == child && status == 0, "child");
}

static void forks(void)
{
    volatile unsigned char *at = map(MAP_PRIVATE | MAP_ANONYMOUS, -1, LARGE);
    unsigned long whole = -1ul, fault = -1ul;
    int pipes[2];
    need(madvise((void *)at, LARGE * (unsigned long)PAGE, MADV_NOHUGEPAGE) == 0, "madvise");
    for (int page = 0; page < LARGE; page++)
        at[page * (unsigned long)PAGE] = 1;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned long start = now();
        int child = fork();
        need(child >= 0, "fork");
        if (child == 0)
            _exit(0);
        int status;
        need(waitpid(child, &status, 0) == child, "waitpid");
        unsigned long took = now() - start;
        whole = took < whole ? took : whole;
        child = forked(pipes);
        start = now();
        for (int page = 0; page < PAGES; page++)
            at[page * (unsigned long)PAGE] = round;
        took = (now() - start) / PAGES;
        fault = took < fault ? took : fault;
        end(child, pipes);
    }
    tell("fork of 16 MiB, and the child's end", whole);
    tell("copy-on-write fault", fault);
}

static void clean(int file)
{
    volatile unsigned char *both[2] = {map(MAP_SHARED, file, PAGES), map(MAP_SHARED, file, PAGES)};
    unsigned long best = -1ul;
    for (int round = 0; round < ROUNDS; round++) {
        for (int page = 0; page < PAGES; page++)
            both[0][page * PAGE] = both[1][page * PAGE] = round;
        unsigned long start = now();
        for (int at = 0; at < 2; at++)
            need(mprotect((void *)both[at], PAGES * PAGE, PROT_READ) == 0, "mprotect");
        unsigned long took = now() - start;
        best = took < best ? took : best;
        for (int at = 0; at < 2; at++)
            need(mprotect((void *)both[at], PAGES * PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
    }
    tell("clean of 256 pages mapped twice", best);
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "usage: spaces FILE\n");
        return 2;
    }
    int file = open(arguments[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    need(file >= 0 && ftruncate(file, PAGES * PAGE) == 0, arguments[1]);
    maps("map and unmap of 1 page", file, 1);
    maps("map and unmap of 16 pages", file, 16);
    maps("map and unmap of 256 pages", file, PAGES);
    forks();
    clean(file);
    return 0;
}
