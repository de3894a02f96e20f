/* What a program may rely on around its signal handlers. Each line that is printed is the same on
   Linux and here; a number that counts mistakes is zero. */
#define _GNU_SOURCE
#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t came;
static volatile double sink;
static siginfo_t seen;
static sigjmp_buf back;
static char *stack_low, *stack_high;
static volatile int on_stack;

static void set(int number, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigaction(number, &action, NULL);
}

static void computes(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    double sum = 0;
    for (int i = 1; i < 50; i++)
        sum += sqrt(i * 3.0) / (i + 0.5);
    fesetround(FE_DOWNWARD);
    sink = sum;
    came++;
}

static double sum_of_roots(void) {
    double sum = 0;
    for (int i = 1; i < 3000; i++)
        sum += sqrt(i) * 1.25 - i / 3.0;
    return sum;
}

static void floats(void) {
    struct itimerval often = {{0, 700}, {0, 700}}, never = {{0, 0}, {0, 0}};
    double right = sum_of_roots();
    int wrong = 0;
    set(SIGALRM, computes, SA_RESTART);
    setitimer(ITIMER_REAL, &often, NULL);
    while (came < 200)
        wrong += sum_of_roots() != right;
    setitimer(ITIMER_REAL, &never, NULL);
    printf("sums that handlers changed: %d\n", wrong);
    printf("rounding that handlers changed: %d\n", fegetround() != FE_TONEAREST);
}

static void *rounds(void *unused) {
    (void)unused;
    return (void *)(long)(fegetround() == FE_UPWARD);
}

static void inheritance(void) {
    int status;
    pthread_t thread;
    void *result;
    fesetround(FE_UPWARD);
    if (fork() == 0)
        _exit(fegetround() == FE_UPWARD ? 0 : 1);
    wait(&status);
    pthread_create(&thread, NULL, rounds, NULL);
    pthread_join(thread, &result);
    fesetround(FE_TONEAREST);
    printf("rounding of a child and a thread: %d %ld\n", WEXITSTATUS(status), (long)result);
}

static void jumps(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    siglongjmp(back, 1);
}

static void long_jumps(void) {
    volatile int count = 0;
    set(SIGUSR1, jumps, 0);
    while (count < 10000) {
        if (sigsetjmp(back, 1) == 0)
            raise(SIGUSR1);
        count++;
    }
    printf("jumps out of handlers: %d\n", count);
}

static void counts(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    seen = *info;
    came++;
}

static void queues(void) {
    sigset_t all, old;
    set(SIGRTMIN, counts, 0);
    set(SIGUSR2, counts, 0);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    came = 0;
    for (int i = 0; i < 100; i++) {
        kill(getpid(), SIGRTMIN);
        kill(getpid(), SIGUSR2);
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    printf("signals of a hundred, queued and not: %d\n", (int)came);
    printf("sent by this process: %d\n", seen.si_pid == getpid() && seen.si_code == SI_USER);
}

static void faults(int number, siginfo_t *info, void *context) {
    char here;
    (void)number, (void)context;
    seen = *info;
    on_stack = &here > stack_low && &here < stack_high;
    siglongjmp(back, 1);
}

static void bad_addresses(void) {
    static char stack[65536];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack}, told;
    char *volatile nowhere = (char *)0x1230;
    stack_low = stack;
    stack_high = stack + sizeof stack;
    sigaltstack(&other, NULL);
    set(SIGSEGV, faults, SA_ONSTACK);
    if (sigsetjmp(back, 1) == 0)
        *nowhere = 1;
    sigaltstack(NULL, &told);
    printf("fault at %p, code %d, on the other stack: %d, told: %d\n", seen.si_addr, seen.si_code,
           on_stack, told.ss_sp == stack && told.ss_flags == 0);
}

static void children(void) {
    set(SIGCHLD, counts, SA_RESTART);
    came = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    while (!came)
        usleep(1000);
    printf("child: %d, code %d, status %d\n", seen.si_pid == child, seen.si_code, seen.si_status);
    wait(NULL);
}

static void restarts(void) {
    int ends[2];
    char byte;
    struct itimerval soon = {{0, 0}, {0, 30000}};
    for (int restart = 0; restart < 2; restart++) {
        pipe(ends);
        set(SIGALRM, counts, restart ? SA_RESTART : 0);
        if (fork() == 0) {
            usleep(150000);
            write(ends[1], "x", 1);
            _exit(0);
        }
        setitimer(ITIMER_REAL, &soon, NULL);
        errno = 0;
        ssize_t count = read(ends[0], &byte, 1);
        printf("read under a signal: %zd %s\n", count, count < 0 ? strerror(errno) : "");
        signal(SIGCHLD, SIG_DFL);
        wait(NULL);
    }
}

static void ended_by(void) {
    int status;
    if (fork() == 0) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        signal(SIGSEGV, SIG_IGN);
        *(volatile int *)16 = 1;
        _exit(0);
    }
    wait(&status);
    printf("a fault that is put off and ignored ends with %d\n", WTERMSIG(status));
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    floats();
    inheritance();
    long_jumps();
    queues();
    bad_addresses();
    children();
    restarts();
    ended_by();
    return 0;
}
