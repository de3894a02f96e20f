/* Results that programs rely on: each line is the same on Linux. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *text(long result) { return result < 0 ? strerrorname_np(errno) : "done"; }
static void nothing(int number) { (void)number; }
static char many[1 << 20];

static void nap(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* A blocking write goes on to its end; what is written as one is read as one. */
static void pipes(void) {
    int ends[2], status;
    long all = 0, count, torn = 0, records = 0;
    char a[100], b[100], record[200];
    if (pipe(ends))
        return;
    if (fork() == 0) {
        close(ends[1]);
        nap(100);
        while ((count = read(ends[0], many, sizeof many)) > 0)
            all += count;
        _exit(all != 600000);
    }
    printf("a write of 600000: %zd", write(ends[1], many, 600000));
    close(ends[0]), close(ends[1]);
    wait(&status);
    printf(", read: %d\n", status);
    if (pipe(ends))
        return;
    for (int writer = 0; writer < 4; writer++)
        if (fork() == 0) {
            memset(a, 'a' + writer, sizeof a), memset(b, 'a' + writer, sizeof b);
            struct iovec both[2] = {{a, sizeof a}, {b, sizeof b}};
            for (int i = 0; i < 1000; i++)
                if (writev(ends[1], both, 2) != 200)
                    _exit(1);
            _exit(0);
        }
    close(ends[1]);
    for (;;) {
        int got = 0;
        while (got < 200 && (count = read(ends[0], record + got, 200 - got)) > 0)
            got += count;
        if (got < 200)
            break;
        records++;
        torn += memcmp(record, record + 1, 199) != 0;
    }
    while (wait(NULL) > 0)
        ;
    printf("records: %ld, torn: %ld\n", records, torn);
    if (pipe(ends) || write(ends[1], "abcd", 4) != 4)
        return;
    struct iovec two[2] = {{a, 4}, {b, 4}};
    printf("readv of what is there: %zd\n", readv(ends[0], two, 2));
    char *end = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(end + 4096, 4096);
    if (write(ends[1], "abcdefgh", 8) != 8)
        return;
    printf("read over the end: %s", text(read(ends[0], end + 4092, 8)));
    memset(a, 0, sizeof a);
    printf(", then %zd %s\n", read(ends[0], a, 8), a);
    int zero = open("/dev/zero", O_RDONLY);
    printf("a large read: %zd\n", read(zero, many, sizeof many));
}

static void times(void) {
    struct timespec odd = {-1, 0}, one = {1, 0}, left = {9, 9};
    time_t now = 77;
    syscall(SYS_time, &now);
    printf("time: %d", now == time(NULL) || now + 1 == time(NULL));
    printf(", odd: %s", text(nanosleep(&odd, NULL)));
    printf(", clock 99: %s\n", text(clock_gettime(99, &odd)));
    struct sigaction action = {.sa_handler = nothing};
    sigaction(SIGUSR1, &action, NULL);
    pid_t self = getpid();
    if (fork() == 0) {
        nap(300);
        kill(self, SIGUSR1);
        _exit(0);
    }
    printf("sleep: %s", text(nanosleep(&one, &left)));
    printf(", left: %d\n", left.tv_sec == 0 && left.tv_nsec > 0);
    wait(NULL);
}

static void numbers(void) {
    int ends[2] = {-1, -1}, next;
    printf("dup3: %s", text(dup3(1, 1, 0)));
    printf(", pipe2: %s", text(pipe2(ends, 0x12345)));
    next = dup(1), close(next);
    printf(", to nowhere: %s", text(syscall(SYS_pipe2, 8, 0)));
    printf(", left open: %d", dup(1) != next);
    printf(", sets: %s", text(syscall(SYS_rt_sigprocmask, 0, NULL, NULL, 4)));
    printf(" %s\n", text(syscall(SYS_rt_sigaction, 10, NULL, NULL, 16)));
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    pipes();
    times();
    numbers();
    return 0;
}
