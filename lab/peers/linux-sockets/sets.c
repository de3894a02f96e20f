/* Sets of what one waits for, and counters (epoll(7), eventfd(2)): each line is the same on
   Linux. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *name(long result) { return result < 0 ? strerrorname_np(errno) : "done"; }
#define SAY(text, call) printf("%s: %s\n", text, name(call))
static char *volatile nowhere = (char *)8;
static void nothing(int signal) { (void)signal; }

static void nap(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static int change(int set, int what, int file, uint32_t events, uint64_t data) {
    struct epoll_event event = {.events = events, .data.u64 = data};
    return epoll_ctl(set, what, file, &event);
}

static int compare(const void *one, const void *other) {
    const struct epoll_event *a = one, *b = other;
    return a->data.u64 < b->data.u64 ? -1 : a->data.u64 > b->data.u64;
}

/* What is told, by number. */
static void wait_for(const char *text, int set, int most, int time) {
    struct epoll_event events[32];
    int count = epoll_wait(set, events, most, time);
    printf("%s:", text);
    if (count < 0)
        printf(" %s", name(-1));
    else
        qsort(events, count, sizeof *events, compare);
    for (int i = 0; i < count; i++)
        printf(" %lu=%x", (unsigned long)events[i].data.u64, events[i].events);
    printf("\n");
}

static void levels(void) {
    int set = epoll_create1(EPOLL_CLOEXEC), pair[2], ends[2];
    char bytes[8];
    printf("cloexec %d\n", fcntl(set, F_GETFD));
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || pipe(ends))
        return;
    SAY("add", change(set, EPOLL_CTL_ADD, pair[0], EPOLLIN, 1));
    SAY("twice", change(set, EPOLL_CTL_ADD, pair[0], EPOLLIN, 1));
    wait_for("nothing", set, 32, 0);
    write(pair[1], "ab", 2);
    wait_for("level", set, 32, -1), wait_for("still", set, 32, -1);
    read(pair[0], bytes, 1), wait_for("less", set, 32, 0);
    read(pair[0], bytes, 1), wait_for("none", set, 32, 0);
    SAY("change", change(set, EPOLL_CTL_MOD, pair[0], EPOLLIN | EPOLLOUT | EPOLLET, 2));
    wait_for("edge", set, 32, 0), wait_for("no edge", set, 32, 0);
    write(pair[1], "ab", 2), wait_for("comes", set, 32, 0);
    write(pair[1], "cd", 2), wait_for("more comes", set, 32, 0);
    read(pair[0], bytes, 1), wait_for("read some", set, 32, 0);
    read(pair[0], bytes, 8), wait_for("read all", set, 32, 0);
    SAY("once", change(set, EPOLL_CTL_MOD, pair[0], EPOLLOUT | EPOLLONESHOT, 3));
    wait_for("once", set, 32, 0), wait_for("not again", set, 32, 0);
    close(pair[1]), wait_for("no end", set, 32, 0);
    SAY("anew", change(set, EPOLL_CTL_MOD, pair[0], EPOLLIN | EPOLLRDHUP, 4));
    wait_for("end", set, 32, 0);
    int copy = dup(pair[0]);
    close(pair[0]), wait_for("another descriptor", set, 32, 0);
    SAY("that is none", change(set, EPOLL_CTL_MOD, copy, EPOLLIN, 4));
    close(copy), wait_for("closed", set, 32, 0);
    /* Pipes. */
    SAY("to read", change(set, EPOLL_CTL_ADD, ends[0], EPOLLIN | EPOLLET, 5));
    SAY("to write", change(set, EPOLL_CTL_ADD, ends[1], EPOLLOUT | EPOLLET, 6));
    wait_for("pipe", set, 32, 0);
    write(ends[1], "abc", 3), wait_for("written", set, 32, 0);
    read(ends[0], bytes, 1), wait_for("read some", set, 32, 0);
    write(ends[1], "d", 1), wait_for("written", set, 32, 0);
    SAY("by level", change(set, EPOLL_CTL_MOD, ends[0], EPOLLIN, 7));
    wait_for("one of two", set, 1, 0);
    close(ends[1]), wait_for("hung up", set, 32, 0);
    SAY("removed", epoll_ctl(set, EPOLL_CTL_DEL, ends[0], NULL));
    SAY("removed", epoll_ctl(set, EPOLL_CTL_DEL, ends[0], NULL));
    wait_for("empty", set, 32, 0);
    close(ends[0]), close(set);
}

static void mistakes(void) {
    int set = epoll_create1(0), file = open("/etc/passwd", O_RDONLY), odd = dup(0), pair[2];
    struct epoll_event event;
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    SAY("flags", epoll_create1(1)), SAY("size", epoll_create(0));
    SAY("plain file", change(set, EPOLL_CTL_ADD, file, EPOLLIN, 1));
    SAY("itself", change(set, EPOLL_CTL_ADD, set, EPOLLIN, 1));
    SAY("no set", change(pair[0], EPOLL_CTL_ADD, pair[1], EPOLLIN, 1));
    SAY("what", change(set, 9, pair[1], EPOLLIN, 1));
    SAY("bad", change(set, EPOLL_CTL_ADD, 999, EPOLLIN, 1)), SAY("bad", change(999, EPOLL_CTL_ADD, 0, EPOLLIN, 1));
    SAY("not in", change(set, EPOLL_CTL_MOD, pair[0], EPOLLIN, 1));
    SAY("fault", epoll_ctl(set, EPOLL_CTL_ADD, pair[0], (void *)nowhere));
    SAY("none", epoll_wait(set, &event, 0, 0)), SAY("fewer", epoll_wait(set, &event, -1, 0));
    SAY("exclusive", change(set, EPOLL_CTL_ADD, pair[0], EPOLLIN | EPOLLEXCLUSIVE | EPOLLET, 1));
    SAY("changed", change(set, EPOLL_CTL_MOD, pair[0], EPOLLIN, 1));
    SAY("exclusive once", change(set, EPOLL_CTL_ADD, pair[1], EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT, 1));
    write(pair[1], "x", 1);
    SAY("to nowhere", epoll_wait(set, (void *)nowhere, 1, 0));
    SAY("read", read(set, &event, sizeof event));
    wait_for("told again", set, 1, 0);
    close(odd), close(file), close(set), close(pair[0]), close(pair[1]);
}

static void nested(void) {
    int outer = epoll_create1(0), inner = epoll_create1(0), counter = eventfd(0, EFD_NONBLOCK);
    uint64_t number = 1;
    SAY("inner", change(outer, EPOLL_CTL_ADD, inner, EPOLLIN, 1));
    SAY("circle", change(inner, EPOLL_CTL_ADD, outer, EPOLLIN, 1));
    SAY("counter", change(inner, EPOLL_CTL_ADD, counter, EPOLLIN, 2));
    wait_for("nothing", outer, 32, 0);
    write(counter, &number, 8);
    wait_for("outside", outer, 32, 1000), wait_for("inside", inner, 32, 1000);
    struct pollfd list = {outer, POLLIN, 0};
    int polled = poll(&list, 1, 0);
    printf("polled %d %x\n", polled, list.revents);
    read(counter, &number, 8);
    wait_for("outside", outer, 32, 0);
    printf("polled %d\n", poll(&list, 1, 0));
    if (fork() == 0) {
        nap(100), write(counter, &number, 8);
        _exit(0);
    }
    wait_for("from within", outer, 32, 10000);
    wait(NULL);
    close(outer), close(inner), close(counter);
    int sets[8], depth = 0;
    for (int i = 0; i < 8; i++)
        sets[i] = epoll_create1(0);
    while (depth < 7 && change(sets[depth], EPOLL_CTL_ADD, sets[depth + 1], EPOLLIN, 1) == 0)
        depth++;
    printf("deep: %s %d\n", name(-1), depth >= 4 && depth < 7);
    for (int i = 0; i < 8; i++)
        close(sets[i]);
}

static void waits(void) {
    int set = epoll_create1(0), pair[2], status;
    struct epoll_event event;
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    change(set, EPOLL_CTL_ADD, pair[0], EPOLLIN, 1);
    long before = now();
    wait_for("time", set, 1, 120);
    printf("waited %d\n", now() - before >= 119);
    struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    pid_t self = getpid();
    if (fork() == 0) {
        nap(100), kill(self, SIGUSR1), nap(100), write(pair[1], "x", 1);
        _exit(0);
    }
    wait_for("broken off", set, 1, -1), wait_for("comes", set, 1, -1);
    wait(NULL);
    char byte;
    read(pair[0], &byte, 1);
    sigset_t all;
    sigfillset(&all);
    if (fork() == 0) {
        nap(50), kill(self, SIGUSR1), nap(50), write(pair[1], "x", 1);
        _exit(0);
    }
    printf("masked %d\n", epoll_pwait(set, &event, 1, -1, &all));
    wait(NULL);
    read(pair[0], &byte, 1);
    pid_t child = fork();
    if (child == 0)
        _exit(epoll_wait(set, &event, 1, -1));
    nap(50), kill(child, SIGKILL), waitpid(child, &status, 0);
    printf("killed %d\n", status);
    close(pair[0]), close(pair[1]), close(set);
}

static int shared, done, counters[64];
static void *worker(void *none) {
    struct epoll_event event;
    uint64_t number;
    (void)none;
    while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST))
        if (epoll_wait(shared, &event, 1, 20) == 1)
            if (read(counters[event.data.u32], &number, 8) == 8)
                __atomic_fetch_add(&done, number, __ATOMIC_SEQ_CST), __atomic_fetch_sub(&done, number, __ATOMIC_SEQ_CST);
    return NULL;
}

/* Many sources by edge, several waiting threads: each number is read by someone. */
static void many(void) {
    pthread_t threads[4];
    uint64_t number = 1;
    long left = 0;
    shared = epoll_create1(0);
    for (int i = 0; i < 64; i++) {
        counters[i] = eventfd(0, EFD_NONBLOCK);
        change(shared, EPOLL_CTL_ADD, counters[i], i % 2 ? EPOLLIN | EPOLLET : EPOLLIN, i);
    }
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < 5000; i++)
        write(counters[i % 64], &number, 8);
    for (int turn = 0; turn < 500; turn++) {
        struct pollfd list[64];
        for (int i = 0; i < 64; i++)
            list[i] = (struct pollfd){counters[i], POLLIN, 0};
        left = poll(list, 64, 0);
        if (left == 0)
            break;
        nap(10);
    }
    __atomic_store_n(&done, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("left %ld\n", left);
    for (int i = 0; i < 64; i++)
        close(counters[i]);
    close(shared);
}

static void eventfds(void) {
    uint64_t number = 5;
    int counter = eventfd(3, EFD_NONBLOCK | EFD_CLOEXEC), one = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
    printf("flags %d %x\n", fcntl(counter, F_GETFD), fcntl(counter, F_GETFL));
    SAY("odd flags", eventfd(0, 0x10));
    SAY("add", write(counter, &number, 8));
    SAY("take", read(counter, &number, 8)), printf("%lu\n", (unsigned long)number);
    SAY("none", read(counter, &number, 8));
    SAY("short", read(counter, &number, 7)), SAY("short", write(counter, &number, 4));
    number = UINT64_MAX, SAY("most", write(counter, &number, 8));
    number--, SAY("less", write(counter, &number, 8)), SAY("full", write(counter, &number, 8));
    struct pollfd list = {counter, POLLIN | POLLOUT, 0};
    poll(&list, 1, 0), printf("full %x\n", list.revents);
    SAY("take", read(counter, &number, 8)), printf("%lx\n", (unsigned long)number);
    poll(&list, 1, 0), printf("empty %x\n", list.revents);
    SAY("one", read(one, &number, 8)), printf("%lu\n", (unsigned long)number);
    SAY("one", read(one, &number, 8)), SAY("none", read(one, &number, 8));
    fcntl(counter, F_SETFL, 0);
    if (fork() == 0) {
        number = 7, nap(50), write(counter, &number, 8);
        _exit(0);
    }
    SAY("waits", read(counter, &number, 8)), printf("%lu\n", (unsigned long)number);
    wait(NULL);
    SAY("seek", lseek(counter, 0, SEEK_SET));
    close(counter), close(one);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    levels();
    mistakes();
    nested();
    waits();
    many();
    eventfds();
    return 0;
}
