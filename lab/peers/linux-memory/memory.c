/* What a program can rely on about its memory. It prints the same on every Linux. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define RW (PROT_READ | PROT_WRITE)
#define ANY (MAP_PRIVATE | MAP_ANONYMOUS)

static sigjmp_buf back;
static volatile int is_over;
static volatile long stored;

static __thread int may_be_caught;

/* Only what the first thread tries may go wrong. */
static void caught(int number)
{
    if (!may_be_caught)
        _exit(100 + number);
    siglongjmp(back, number);
}

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

static void *map(size_t pages) { return mmap(NULL, pages * PAGE, RW, ANY, -1, 0); }

static int file_of(const char *name, int pages)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    char page[PAGE];
    for (int i = 0; i < pages; i++) {
        memset(page, 'a' + i, PAGE);
        if (write(fd, page, PAGE) != PAGE)
            exit(3);
    }
    return fd;
}

static void not_needed(void)
{
    char *zeros = map(2048);
    memset(zeros, 7, 2048 * PAGE);
    int result = madvise(zeros + PAGE, 2046 * PAGE, MADV_DONTNEED);
    printf("not needed: %d, %d %d %d %d\n", result, zeros[0], zeros[PAGE], zeros[2046 * PAGE],
           zeros[2047 * PAGE]);
    int fd = file_of("memory.file", 2);
    char *file = mmap(NULL, 2 * PAGE, RW, MAP_PRIVATE, fd, 0);
    file[0] = 'x';
    file[PAGE] = 'y';
    result = madvise(file, PAGE, MADV_DONTNEED);
    printf("of a file: %d, %c %c\n", result, file[0], file[PAGE]);
    char *shared = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
    shared[1] = 'z';
    result = madvise(shared, PAGE, MADV_DONTNEED);
    printf("shared: %d, %c\n", result, shared[1]);
    result = madvise((void *)(1ul << 47), 1ul << 62, MADV_DONTNEED);
    printf("all that there is: %d\n", result);
    result = madvise(zeros + PAGE + 1, PAGE, MADV_DONTNEED);
    printf("no page: %d %d\n", result, errno);
    munmap(zeros, 2048 * PAGE);
    close(fd);
}

static void behind_the_end(void)
{
    int fd = file_of("memory.file", 2);
    char *file = mmap(NULL, 16 * PAGE, RW, MAP_SHARED, fd, 0);
    printf("two of sixteen: %d %d %d\n", touch(file + PAGE, 0), touch(file + 2 * PAGE, 0),
           touch(file + 15 * PAGE, 1));
    char *all_behind = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 64 * PAGE);
    printf("far behind: %d\n", touch(all_behind, 0));
    if (ftruncate(fd, 10 * PAGE) != 0)
        exit(4);
    printf("longer: %d %d %d\n", touch(file + 9 * PAGE, 1), file[8 * PAGE], touch(file + 10 * PAGE, 0));
    if (ftruncate(fd, PAGE) != 0)
        exit(5);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(touch(file, 0) == 0 ? touch(file + PAGE, 0) : 99);
    int how = -1;
    waitpid(child, &how, 0);
    printf("a child of a shorter one: %d\n", child > 0 ? WEXITSTATUS(how) : -1);
    close(fd);
}

static void *stores(void *at)
{
    while (!is_over) {
        *(volatile long *)at = 1;
        stored++;
    }
    return NULL;
}

/* A thread that stores all the while meets no hole. */
static void in_place(void)
{
    char *at = map(64);
    pthread_t thread;
    is_over = 0;
    pthread_create(&thread, NULL, stores, at + 9 * PAGE);
    while (stored == 0)
        ;
    int failed = 0;
    for (int i = 0; i < 3000; i++)
        failed += mmap(at, 64 * PAGE, RW, ANY | MAP_FIXED, -1, 0) != at;
    long before = stored;
    while (stored < before + 100)
        ;
    is_over = 1;
    pthread_join(thread, NULL);
    printf("in place: %d %ld\n", failed, *(long *)(at + 9 * PAGE));
}

static void *protects(void *at)
{
    for (int i = 0; !is_over; i++)
        mprotect(at, 256 * PAGE, i % 2 ? PROT_READ : RW);
    return NULL;
}

/* What a child has is what there was at one moment: a page that it may write to it can write to. */
static void forks(void)
{
    char *at = map(256);
    memset(at, 1, 256 * PAGE);
    pthread_t thread;
    is_over = 0;
    pthread_create(&thread, NULL, protects, at);
    int odd = 0;
    fflush(stdout);
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();
        if (child == 0) {
            int first = touch(at, 1), last = touch(at + 255 * PAGE, 1);
            _exit(first != last);
        }
        int how = -1;
        waitpid(child, &how, 0);
        odd += how != 0;
    }
    is_over = 1;
    pthread_join(thread, NULL);
    printf("forks beside mprotect: %d\n", odd);
}

static void words(void)
{
    int *word = map(1);
    *word = 5;
    mprotect(word, PAGE, PROT_READ);
    struct timespec soon = {0, 1000000};
    long result = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 4, &soon, NULL, 0);
    printf("another value: %ld %d\n", result, errno);
    result = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 5, &soon, NULL, 0);
    printf("this value: %ld %d\n", result, errno);
    munmap(word, PAGE);
    result = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 5, &soon, NULL, 0);
    printf("no value: %ld %d\n", result, errno);
}

/* A list of locks with an entry that is no word does not keep a thread from ending. */
static void *odd_list(void *unused)
{
    static struct {
        void *next;
        long offset;
        void *pending;
    } head;
    head.next = &head;
    head.offset = 1;
    head.pending = (void *)&stored;
    syscall(SYS_set_robust_list, &head, sizeof head);
    return unused;
}

int main(void)
{
    may_be_caught = 1;
    struct sigaction action = {.sa_handler = caught};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    not_needed();
    behind_the_end();
    in_place();
    forks();
    words();
    pthread_t thread;
    pthread_create(&thread, NULL, odd_list, NULL);
    pthread_join(thread, NULL);
    unlink("memory.file");
    puts("done");
    return 0;
}
