/*
 * Threads of a static glibc program: what it prints is the same on every system that runs it. The
 * tests `static-threads-*` have it run on Trefoil and on the host. The argument says what is done:
 * `all` that ends by itself, or `wait`.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CROWD = 100, STEPS = 200 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long counter, turn;
static __thread long own;

static void expect(int holds, const char *what)
{
    if (!holds) {
        printf("failed: %s (%s)\n", what, strerror(errno));
        fflush(stdout);
        _exit(1);
    }
}

static pthread_t start(void *(*work)(void *), long argument)
{
    pthread_t thread;
    int why = pthread_create(&thread, NULL, work, (void *)argument);
    errno = why;
    expect(why == 0, "pthread_create");
    return thread;
}

static long join(pthread_t thread)
{
    void *result;
    expect(pthread_join(thread, &result) == 0, "pthread_join");
    return (long)result;
}

/* Each has a word of its own, and all share one behind a lock. */
static void *count(void *argument)
{
    for (int i = 0; i < STEPS; i++) {
        pthread_mutex_lock(&mutex);
        long seen = counter;
        if (i % 16 == 0)
            sched_yield();
        counter = seen + 1;
        pthread_mutex_unlock(&mutex);
        own++;
    }
    return (void *)(own + (long)argument);
}

static void crowd(void)
{
    pthread_t threads[CROWD];
    long sum = 0;
    counter = 0;
    for (long i = 0; i < CROWD; i++)
        threads[i] = start(count, i);
    for (int i = 0; i < CROWD; i++)
        sum += join(threads[i]);
    printf("crowd: %ld %ld %ld\n", counter, sum, own);
}

/* Threads take turns. */
static void *take_turns(void *argument)
{
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&mutex);
        while (turn % 4 != (long)argument)
            pthread_cond_wait(&changed, &mutex);
        turn++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void turns(void)
{
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        threads[i] = start(take_turns, i);
    for (int i = 0; i < 4; i++)
        join(threads[i]);
    printf("turns: %ld\n", turn);
}

static long since(const struct timespec *begin, clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (now.tv_sec - begin->tv_sec) * 1000 + (now.tv_nsec - begin->tv_nsec) / 1000000;
}

/* Waits that nobody ends, by both clocks. */
static void times(void)
{
    for (int i = 0; i < 2; i++) {
        clockid_t clock = i ? CLOCK_MONOTONIC : CLOCK_REALTIME;
        struct timespec begin, end;
        clock_gettime(clock, &begin);
        end = begin;
        end.tv_nsec += 60000000;
        end.tv_sec += end.tv_nsec / 1000000000;
        end.tv_nsec %= 1000000000;
        pthread_mutex_lock(&mutex);
        int why = pthread_cond_clockwait(&changed, &mutex, clock, &end);
        pthread_mutex_unlock(&mutex);
        printf("times: %d %d\n", why == ETIMEDOUT, since(&begin, clock) >= 60);
    }
}

/* A lock whose owner ends is the next one's, who is told. */
static pthread_mutex_t robust;

static void *die_with_it(void *argument)
{
    pthread_mutex_lock(&robust);
    usleep(20000);
    return argument;
}

static void owners(void)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &kind);
    for (int i = 0; i < 3; i++) {
        pthread_t thread = start(die_with_it, 0);
        usleep(5000 * i);
        if (i == 0)
            join(thread);
        int why = pthread_mutex_lock(&robust);
        if (why == 0) {
            /* It came first. */
            pthread_mutex_unlock(&robust);
            join(thread);
            why = pthread_mutex_lock(&robust);
        } else if (i > 0) {
            join(thread);
        }
        printf("owners: %d\n", why == EOWNERDEAD);
        pthread_mutex_consistent(&robust);
        pthread_mutex_unlock(&robust);
    }
}

/* A signal to a thread is that thread's. */
static volatile long taken_by;
static volatile int waits;

static void note(int signal)
{
    (void)signal;
    taken_by = own;
}

static void *wait_for_signal(void *argument)
{
    own = (long)argument;
    __atomic_fetch_add(&waits, 1, __ATOMIC_SEQ_CST);
    while (waits < 100) {
        if (own == 7)
            usleep(1000);
    }
    return NULL;
}

static void signals(void)
{
    struct sigaction action = {.sa_handler = note};
    sigaction(SIGUSR1, &action, NULL);
    own = 1;
    pthread_t sleeper = start(wait_for_signal, 7), busy = start(wait_for_signal, 8);
    while (waits < 2)
        sched_yield();
    pthread_t all[] = {sleeper, busy, pthread_self()};
    for (int i = 0; i < 3; i++) {
        taken_by = 0;
        expect(pthread_kill(all[i], SIGUSR1) == 0, "pthread_kill");
        while (taken_by == 0)
            sched_yield();
        printf("signals: %ld\n", taken_by);
    }
    /* Only one of them does not put it off. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    taken_by = 0;
    kill(getpid(), SIGUSR1);
    while (taken_by == 0)
        sched_yield();
    printf("signals: %d\n", taken_by != 1);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    waits = 100;
    join(sleeper);
    join(busy);
    printf("signals: %d\n", syscall(SYS_tgkill, getpid(), 99999, SIGUSR1) == -1 && errno == ESRCH);
}

/* Who computes with a number that looks like the result of a call is not set back by a signal. */
static void *send_many(void *argument)
{
    for (int i = 0; i < 50; i++) {
        pthread_kill(*(pthread_t *)argument, SIGUSR2);
        usleep(200);
    }
    return NULL;
}

static void numbers(void)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
    pthread_t self = pthread_self(), sender;
    long wrong = 0;
    sigaction(SIGUSR2, &action, NULL);
    sender = start(send_many, (long)&self);
    for (int i = 0; i < 100; i++) {
        long count = 0, steps = 200000, number = -EINTR;
        __asm__ volatile("1: inc %0\ndec %1\njnz 1b" : "+r"(count), "+r"(steps), "+a"(number));
        wrong += count != 200000 || number != -EINTR;
    }
    join(sender);
    printf("numbers: %ld\n", wrong);
}

/* A descriptor that is replaced is nobody else's in between. */
static void *open_and_close(void *argument)
{
    while (waits >= 100) {
        int file = open("/dev/null", O_RDONLY);
        if (file >= 0)
            close(file);
    }
    return argument;
}

static void descriptors(void)
{
    struct stat stat;
    int ends[2], wrong = 0, place;
    expect(pipe(ends) == 0, "pipe");
    place = dup(ends[0]);
    waits = 100;
    pthread_t others[3];
    for (int i = 0; i < 3; i++)
        others[i] = start(open_and_close, 0);
    for (int i = 0; i < 20000; i++) {
        wrong += dup2(ends[0], place) != place || fstat(place, &stat) != 0 ||
                 !S_ISFIFO(stat.st_mode);
    }
    waits = 0;
    for (int i = 0; i < 3; i++)
        join(others[i]);
    close(place);
    close(ends[0]);
    close(ends[1]);
    printf("descriptors: %d\n", wrong);
}

/* A word is looked at before it is waited for; calls that ask for nonsense are refused. */
static void words(void)
{
    static unsigned word = 5;
    struct timespec bad = {0, 1000000000};
    char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = 0;
    printf("words:");
    syscall(SYS_futex, &word, 0, 4, NULL, NULL, 0);
    printf(" %d", errno == EAGAIN);
    syscall(SYS_futex, (char *)&word + 1, 0, 5, NULL, NULL, 0);
    printf(" %d", errno == EINVAL);
    syscall(SYS_futex, page, 0, 0, NULL, NULL, 0);
    printf(" %d", errno == EFAULT);
    syscall(SYS_futex, &word, 0, 5, &bad, NULL, 0);
    printf(" %d", errno == EINVAL);
    syscall(SYS_futex, &word, 9, 5, NULL, NULL, 0);
    printf(" %d", errno == EINVAL);
    syscall(SYS_futex, 1UL << 63, 0, 5, NULL, NULL, 0);
    printf(" %d\n", errno == EFAULT);
}

static void *wait_for_ever(void *argument)
{
    static unsigned word;
    if (argument)
        for (;;)
            ;
    syscall(SYS_futex, &word, 0, 0, NULL, NULL, 0);
    return NULL;
}

static void many_wait(void)
{
    for (int i = 0; i < 20; i++)
        start(wait_for_ever, i == 3);
    usleep(20000);
}

static void *leave(void *argument)
{
    usleep(20000);
    exit((long)argument);
}

static void *become(void *argument)
{
    usleep(20000);
    execl("/proc/self/exe", argument, "became", NULL);
    return NULL;
}

/* What a child of its own says of how it ended. */
static void child(const char *what, void (*work)(void))
{
    fflush(stdout);
    pid_t child = fork();
    expect(child >= 0, "fork");
    if (child == 0) {
        work();
        fflush(stdout);
        _exit(0);
    }
    int status;
    expect(waitpid(child, &status, 0) == child, "waitpid");
    printf("%s: %x\n", what, status);
}

static void first_exits(void)
{
    many_wait();
    exit(3);
}

static void other_exits(void)
{
    many_wait();
    start(leave, 4);
    pause();
}

static void first_ends_alone(void)
{
    start(leave, 5);
    pthread_exit(NULL);
}

static void one_crashes(void)
{
    volatile int *volatile nowhere = NULL;
    many_wait();
    *nowhere = 1;
}

static void *killed(void *argument)
{
    kill(getpid(), SIGKILL);
    return argument;
}

static void one_kills(void)
{
    many_wait();
    start(killed, 0);
    pause();
}

static void first_becomes(void)
{
    many_wait();
    become("first");
}

static void other_becomes(void)
{
    many_wait();
    start(become, (long)"other");
    pause();
}

static void *fork_one(void *argument)
{
    child("in a thread", turns);
    return argument;
}

static void forks(void)
{
    join(start(fork_one, 0));
}

static void all(void)
{
    crowd();
    turns();
    times();
    owners();
    signals();
    numbers();
    descriptors();
    words();
    forks();
    child("first exits", first_exits);
    child("other exits", other_exits);
    child("first ends alone", first_ends_alone);
    child("one crashes", one_crashes);
    child("one kills", one_kills);
    child("first becomes another", first_becomes);
    child("other becomes another", other_becomes);
}

int main(int count, char **words)
{
    /* A shell would be given its line so. */
    const char *what = count > 2 && !strcmp(words[1], "-c") ? words[2] : words[count > 1];
    if (!strcmp(what, "all"))
        all();
    else if (!strcmp(what, "became"))
        printf("became: %s %d %ld\n", words[0], getpid() == gettid(), own);
    else if (!strcmp(what, "wait")) {
        many_wait();
        printf("waiting\n");
        fflush(stdout);
        pause();
    }
    return 0;
}
