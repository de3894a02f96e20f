/* SIGKILL ends a program whatever it has asked for: each call by its number with arguments that
   mean far too much, and what takes long by itself. Prints who was still there. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LAST 462
#define PATTERNS 8
#define AT_ONCE 6
/* How long a killed one may take, in seconds. One that hangs is there for ever, and the machine may
   be slow. */
#define PATIENCE 20

static unsigned long words[4096] __attribute__((aligned(4096)));
static char *area;
static const size_t area_size = 64 << 20;

/* Numbers of calls that would end, or stop, more than the one that makes them. */
static int is_left_out(int number) {
    static const int list[] = {SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo,
                               SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal, SYS_reboot, SYS_vhangup};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i] == number)
            return 1;
    return 0;
}

static void call(int number, int pattern) {
    unsigned long buffer = (unsigned long)words, big = 1ul << 62, user = 1ul << 47;
    unsigned long a[PATTERNS][6] = {
        {0, 0, 0, 0, 0, 0},
        {-1, -1, -1, -1, -1, -1},
        {user, big, 4, 0, 0, 0},
        {buffer, big, big, buffer, buffer, big},
        {buffer, 24, 4, buffer, 0, 0},
        {3, buffer, big, 0, 0, 0},
        {4, buffer, 1024, buffer, buffer, 0},
        {(unsigned long)area, area_size * 4096, 3, 0x4022, -1, 0},
    };
    unsigned long *w = a[pattern];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        words[i] = i % 3 == 0 ? buffer + 10 : i % 3 == 1 ? big : -1ul;
    /* A path, a time, and a list of locks are in the same place. */
    if (pattern == 4)
        words[0] = words[1] = 1ul << 40;
    syscall(number, w[0], w[1], w[2], w[3], w[4], w[5]);
}

static void *idle(void *unused) {
    for (;;)
        pause();
    return unused;
}

static void robust(void) {
    static struct { void *next; long offset; void *pending; } head;
    static struct { void *next; char rest[64]; } entry;
    pthread_t thread;
    pthread_create(&thread, NULL, idle, NULL);
    entry.next = &head;
    head.next = &entry;
    head.offset = 10;
    syscall(SYS_set_robust_list, &head, sizeof head);
    syscall(SYS_exit, 0);
}

static void robust_circle(void) {
    static long list[3], lock[2];
    pthread_t thread;
    pthread_create(&thread, NULL, idle, NULL);
    list[0] = (long)lock, list[1] = 1, lock[0] = (long)list;
    syscall(SYS_set_robust_list, list, 24);
    syscall(SYS_exit, 0);
}

static void advice(void) {
    syscall(SYS_madvise, 1ul << 47, 1ul << 62, MADV_DONTNEED);
    syscall(SYS_madvise, 0, 1ul << 46, MADV_DONTNEED);
    pause();
}

static void great_fork(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *much = mmap(NULL, 1ul << 45, PROT_READ | PROT_WRITE, flags, -1, 0);
    fork();
    mprotect(much, 1ul << 45, PROT_READ);
    munmap(much, 1ul << 45);
    pause();
}

static volatile int stop;

static void *flip(void *unused) {
    char *last = area + area_size - 4096;
    while (!stop) {
        mprotect(last, 4096, PROT_READ);
        mprotect(last, 4096, PROT_READ | PROT_WRITE);
        madvise(last, 4096, MADV_DONTNEED);
    }
    return unused;
}

/* The last page changes its rights all the while, in a copy of the memory as well. */
static void flipped(int stores) {
    pthread_t thread;
    pthread_create(&thread, NULL, flip, NULL);
    int zero = open("/dev/zero", O_RDONLY);
    for (int i = 0; i < 20; i++)
        if (fork() == 0) {
            if (stores)
                area[area_size - 1] = 2;
            else
                while (read(zero, area + area_size - 1, 1) != 1)
                    ;
            break;
        }
    pause();
}

static void flipped_stores(void) { flipped(1); }
static void flipped_reads(void) { flipped(0); }

static void sleeper(void) {
    struct timespec never = {-1, 0}, long_time = {1l << 62, 0};
    nanosleep(&never, NULL);
    nanosleep(&long_time, NULL);
}

static void waits_for_input(void) {
    char byte;
    if (read(0, &byte, 1) >= 0)
        pause();
}

static void much_at_once(void) {
    int zero = open("/dev/zero", O_RDONLY), nothing = open("/dev/null", O_WRONLY);
    for (;;) {
        read(zero, area, 1ul << 62);
        write(nothing, area, 1ul << 62);
    }
}

static void loop(void) {
    for (;;)
        ;
}

static void (*const long_ones[])(void) = {
    robust, robust_circle, advice, great_fork, flipped_stores, flipped_reads,
    sleeper, waits_for_input, much_at_once, loop,
};
static const char *const names[] = {
    "robust list", "circle of locks", "advice", "great fork", "stores beside mprotect",
    "reads beside mprotect", "sleep", "read of the console", "endless reads", "loop",
};

static pid_t begin(void (*what)(void), int number, int pattern) {
    pid_t child = fork();
    if (child != 0)
        return child;
    setpgid(0, 0);
    int pipes[2];
    if (number >= 0 && number != SYS_read) {
        close(0);
        open("/dev/null", O_RDONLY);
    }
    if (pipe(pipes))
        _exit(1);
    if (what)
        what();
    else
        call(number, pattern);
    /* What has come back does no harm; what it has made may be there. */
    _exit(0);
}

/* Whether a process and its group are gone soon. */
static int is_gone(pid_t child) {
    struct timespec little = {0, 2000000};
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
    for (time_t end = time(NULL) + PATIENCE; time(NULL) < end; nanosleep(&little, NULL))
        if (waitpid(child, NULL, WNOHANG) == child)
            return 1;
    return 0;
}

int main(void) {
    int begun = 0, left = 0, status;
    /* Each kind of child waits for nobody. */
    signal(SIGALRM, SIG_IGN);
    area = mmap(NULL, area_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED)
        return 1;
    for (size_t i = 0; i < area_size; i += 2 << 20)
        area[i] = 1;
    area[area_size - 1] = 1;
    for (size_t i = 0; i < sizeof long_ones / sizeof *long_ones; i++) {
        pid_t child = begin(long_ones[i], -1, 0);
        usleep(300000);
        begun++;
        if (child < 0 || !is_gone(child))
            left++, printf("still there: %s\n", names[i]);
    }
    for (int first = 0; first <= LAST; first += AT_ONCE) {
        pid_t children[AT_ONCE * PATTERNS];
        int count = 0;
        for (int number = first; number < first + AT_ONCE && number <= LAST; number++)
            for (int pattern = 0; pattern < PATTERNS; pattern++) {
                pid_t child = is_left_out(number) ? 0 : begin(NULL, number, pattern);
                if (child < 0)
                    printf("no process for call %d: %s\n", number, strerror(errno));
                children[count++] = child;
            }
        usleep(50000);
        for (int i = 0; i < count; i++) {
            if (children[i] <= 0)
                continue;
            begun++;
            if (!is_gone(children[i]))
                left++, printf("still there: call %d with %d\n", first + i / PATTERNS, i % PATTERNS);
        }
        /* Some have made processes that are nobody's now, or this one's. */
        while (waitpid(-1, &status, WNOHANG) > 0)
            ;
    }
    printf("begun %d, still there %d\n", begun, left);
    return 0;
}
