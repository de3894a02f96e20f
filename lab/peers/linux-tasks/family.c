/* Processes and what they are to each other. Each line is the same on Linux. With an argument:
   bombs, which meet the limits of this system. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int came, shared, hung_up, went_on;

static void count(int number) {
    if (number == SIGHUP)
        hung_up++;
    else if (number == SIGCONT)
        went_on++;
    else
        came++;
}

static void handle(int number, void (*handler)(int), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaction(number, &action, NULL);
}

static const char *text(long result) { return result < 0 ? strerrorname_np(errno) : "done"; }

static void nap(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&time, &time) < 0)
        ;
}

static void spawns(void) {
    char *none[] = {"/nowhere", NULL}, *yes[] = {"/bin/true", NULL};
    pid_t child;
    int status = -1;
    printf("spawn of nothing: %s\n", strerrorname_np(posix_spawn(&child, none[0], NULL, NULL, none, environ)));
    printf("spawn: %d\n", posix_spawn(&child, yes[0], NULL, NULL, yes, environ));
    waitpid(child, &status, 0);
    printf("spawned one ends with %d\n", status);
    child = vfork();
    if (child == 0) {
        nap(50);
        shared = 7;
        _exit(3);
    }
    printf("child of vfork has written %d", shared);
    waitpid(child, &status, 0);
    printf(" and ends with %x\n", status);
}

static pid_t lends_for_ever(void) {
    pid_t child = fork();
    if (child == 0) {
        if (vfork() == 0) {
            /* It outlives the lender, and keeps nobody waiting for what it would print. */
            close(1), close(2);
            nap(3000);
            _exit(0);
        }
        _exit(0);
    }
    return child;
}

static void children(void) {
    int status, failed = 0;
    handle(SIGCHLD, SIG_IGN, 0);
    for (int i = 0; i < 1500; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (child < 0)
            failed++, nap(10);
    }
    printf("%s for ignored children", text(wait(&status)));
    printf(", forks that failed: %d\n", failed);
    handle(SIGCHLD, count, SA_NOCLDWAIT);
    came = 0;
    if (fork() == 0)
        _exit(0);
    printf("%s without waits", text(wait(&status)));
    printf(", signals: %d\n", came);
    handle(SIGCHLD, count, SA_NOCLDSTOP);
    came = 0;
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    kill(child, SIGSTOP);
    printf("stopped: %d", waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    kill(child, SIGCONT);
    printf(", goes on: %d", waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status));
    printf(", signals: %d", came);
    kill(child, SIGKILL);
    siginfo_t info;
    memset(&info, 0, sizeof info);
    printf(", waitid: %d", waitid(P_PID, child, &info, WEXITED | WNOWAIT));
    printf(" %d %d %d", info.si_pid == child, info.si_code == CLD_KILLED, info.si_status);
    printf(", again: %d", waitpid(child, &status, 0) == child);
    printf(", %s\n", text(waitpid(child, &status, 0)));
    printf("odd options: %s", text(waitpid(-1, &status, 0x100)));
    printf(" %s", text(waitid(P_ALL, 0, &info, WNOHANG)));
    printf(" %s\n", text(waitid(77, 0, &info, WEXITED)));
    child = lends_for_ever();
    nap(100);
    kill(child, SIGKILL);
    printf("killed while it lends: %d\n", waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

static void odd_clones(void) {
    long flags[] = {CLONE_SIGHAND, CLONE_THREAD, CLONE_THREAD | CLONE_VM};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        printf("clone of %lx: %s\n", flags[i], text(syscall(SYS_clone, flags[i], 0, 0, 0, 0)));
    int status;
    handle(SIGUSR1, count, 0);
    pid_t child = syscall(SYS_clone, SIGUSR1, 0, 0, 0, 0);
    if (child == 0)
        _exit(0);
    printf("a child that sends another signal: %s", text(waitpid(child, &status, WNOHANG)));
    printf(" %d\n", waitpid(child, &status, __WALL) == child);
}

static void orphans(void) {
    int ends[2], parent = 0;
    if (pipe(ends))
        return;
    if (fork() == 0) {
        if (fork() == 0) {
            while (getppid() != 1)
                nap(5);
            parent = getppid();
            if (write(ends[1], &parent, sizeof parent) < 0)
                _exit(1);
        }
        _exit(0);
    }
    wait(NULL);
    printf("orphan's parent: %d", read(ends[0], &parent, sizeof parent) > 0 ? parent : -1);
    printf(", process 1: %s", text(kill(1, 0)));
    /* A group that is stopped and has nobody left is told so. */
    if (fork() == 0) {
        setsid();
        pid_t child = fork();
        if (child == 0) {
            setpgid(0, 0);
            handle(SIGHUP, count, 0);
            handle(SIGCONT, count, 0);
            kill(getpid(), SIGTSTP);
            while (!hung_up || !went_on)
                nap(5);
            /* Now nobody could let it go on, so it does not stop. */
            kill(getpid(), SIGTSTP);
            parent = 77;
            if (write(ends[1], &parent, sizeof parent) < 0)
                _exit(1);
            _exit(0);
        }
        waitpid(child, NULL, WUNTRACED);
        _exit(0);
    }
    wait(NULL);
    printf(", stopped orphan: %d\n", read(ends[0], &parent, sizeof parent) > 0 ? parent : -1);
}

static void sessions(void) {
    pid_t child = fork();
    if (child != 0) {
        waitpid(child, NULL, 0);
        return;
    }
    pid_t session = setsid();
    printf("session: %d %d %d", session == getpid(), getsid(0) == session, getpgid(0) == session);
    printf(", once more: %s", text(setsid()));
    printf(", leader: %s", text(setpgid(0, 0)));
    printf(", nobody: %s", text(setpgid(1 << 21, 0)));
    printf(", negative: %s\n", text(setpgid(0, -4)));
    child = fork();
    if (child == 0)
        for (;;)
            pause();
    printf("group of nobody: %s", text(setpgid(child, 1 << 21)));
    printf(", own: %s", text(setpgid(child, child)));
    printf(", its group: %d", getpgid(child) == child);
    printf(", back: %s", text(setpgid(child, session)));
    printf(", signal to nobody: %s\n", text(kill(-(1 << 21), 0)));
    kill(child, SIGKILL);
    wait(NULL);
    child = fork();
    if (child == 0) {
        execl("/bin/sleep", "sleep", "100", NULL);
        _exit(1);
    }
    nap(500);
    printf("after exec: %s\n", text(setpgid(child, child)));
    fflush(stdout);
    kill(child, SIGKILL);
    wait(NULL);
    _exit(0);
}

static void *idle(void *unused) {
    for (;;)
        pause();
    return unused;
}

/* Another user's processes, which are counted by themselves. */
static pid_t fork_as_user(void) {
    pid_t child = fork();
    if (child == 0 && (setgid(1000) || setuid(1000)))
        _exit(9);
    return child;
}

/* Forks as a user until that is refused, or, if `wanted`, until it is not. */
static void try_as_user(const char *what, int wanted) {
    fflush(stdout);
    if (fork_as_user() == 0) {
        pid_t one;
        int why = 0;
        for (int tries = 0; tries < 3000; tries++) {
            if ((one = fork()) == 0)
                _exit(0);
            why = errno;
            if ((one > 0) == wanted)
                break;
            if (one > 0)
                waitpid(one, NULL, 0);
            nap(10);
        }
        printf("%s: %s\n", what, one < 0 ? strerrorname_np(why) : "a process");
        _exit(0);
    }
}

/* What is more than a user may have is an error, and nothing else ends by it. */
static void bombs(void) {
    int made = 0, most = 0, error = 0;
    pid_t bomb = fork_as_user(), holders[20];
    if (bomb == 0) {
        setpgid(0, 0);
        while (fork() >= 0 || errno == EAGAIN)
            if (errno == EAGAIN)
                pause();
        _exit(1);
    }
    setpgid(bomb, bomb);
    try_as_user("beside a bomb", 0);
    /* The bomb itself waits for ever. */
    wait(NULL);
    pid_t one = fork();
    if (one == 0)
        _exit(0);
    printf("another user: %s\n", one < 0 ? strerrorname_np(errno) : "a process");
    kill(-bomb, SIGKILL);
    while (wait(NULL) > 0 || errno == EINTR)
        ;
    try_as_user("behind it", 1);
    wait(NULL);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    bomb = fork();
    if (bomb == 0) {
        pthread_t thread;
        while ((error = pthread_create(&thread, &small, idle, NULL)) == 0)
            made++;
        printf("threads: %d %s\n", made > 500, strerrorname_np(error));
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    for (int i = 0; i < 20; i++) {
        bomb = fork();
        if (bomb == 0) {
            static char bytes[1 << 16];
            int ends[2];
            for (most = 0; most < 110 && pipe(ends) == 0; most++) {
                fcntl(ends[1], F_SETFL, O_NONBLOCK);
                while (write(ends[1], bytes, sizeof bytes) > 0)
                    ;
            }
            for (;;)
                pause();
        }
        holders[i] = bomb;
    }
    nap(3000);
    printf("still here\n");
    for (int i = 0; i < 20; i++)
        kill(holders[i], SIGKILL);
}

int main(int count_of, char **arguments) {
    (void)arguments;
    setvbuf(stdout, NULL, _IONBF, 0);
    /* Whoever has begun this may ignore some. */
    for (int number = 1; number < 32; number++)
        signal(number, SIG_DFL);
    if (count_of > 1) {
        bombs();
        return 0;
    }
    spawns();
    children();
    odd_clones();
    orphans();
    sessions();
    return 0;
}
