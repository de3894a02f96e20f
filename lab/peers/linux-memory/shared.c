/* What processes can rely on about memory that they share. It prints the same on every Linux. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
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

static void *zeros(size_t pages)
{
    void *at = mmap(NULL, pages * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        printf("no zeros: %d\n", errno);
        exit(2);
    }
    return at;
}

static void *own(size_t pages)
{
    return mmap(NULL, pages * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static pid_t child(int (*work)(void *), void *with)
{
    fflush(stdout);
    pid_t id = fork();
    if (id == 0)
        _exit(work(with));
    return id;
}

/* How a child ended: its status, or a hundred more than its signal. */
static int end_of(pid_t id)
{
    int how = -1;
    waitpid(id, &how, 0);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 100 + WTERMSIG(how);
}

static long futex(void *at, int what, long value, long time, void *other, int last)
{
    long result = syscall(SYS_futex, at, what, value, time, other, last);
    return result < 0 ? -errno : result;
}

static int answers(void *with)
{
    char *at = with;
    if (at[0] != 'p' || at[99 * PAGE] != 0)
        return 1;
    at[1] = 'c';
    at[99 * PAGE] = 'd';
    munmap(at + 50 * PAGE, PAGE);
    mprotect(at, PAGE, PROT_READ);
    at[0] = 'x';
    return 2;
}

static int writes_below(void *with)
{
    char *at = with;
    pid_t id = child(answers, at);
    int end = end_of(id);
    at[2] = 'g';
    return end;
}

static void over_fork(void)
{
    char *at = zeros(100), *other = zeros(1);
    at[0] = 'p';
    at[50 * PAGE] = 'm';
    int end = end_of(child(writes_below, at));
    printf("over forks: %d, %c%c%c %c %c %d\n", end, at[0], at[1], at[2], at[50 * PAGE], at[99 * PAGE],
           other[0]);
    int result = madvise(at, 100 * PAGE, MADV_DONTNEED);
    printf("not needed: %d, %c%c\n", result, at[0], at[1]);
    munmap(at, 50 * PAGE);
    printf("the rest: %c %c\n", at[50 * PAGE], at[99 * PAGE]);
    munmap(at + 50 * PAGE, 50 * PAGE);
    char *again = zeros(100);
    printf("again: %d %d\n", again[0], again[99 * PAGE]);
    char *large = zeros(1 << 20);
    large[(1ul << 32) - 1] = 7;
    printf("4 GiB: %d %d\n", large[0], large[(1ul << 32) - 1]);
    munmap(large, 1ul << 32);
    void *bad = mmap(NULL, PAGE, RW, MAP_ANONYMOUS, -1, 0);
    printf("neither: %d %d\n", bad == MAP_FAILED, errno);
    bad = mmap(NULL, 0, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    printf("none: %d %d\n", bad == MAP_FAILED, errno);
}

/* In one object, that processes have at one address, or at two. */
struct common {
    pthread_mutex_t lock;
    pthread_cond_t turn;
    sem_t sem;
    int whose, count, sum;
    int word, other;
};

static struct common *begin(struct common *common)
{
    pthread_mutexattr_t lock;
    pthread_mutexattr_init(&lock);
    pthread_mutexattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&lock, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&common->lock, &lock);
    pthread_condattr_t turn;
    pthread_condattr_init(&turn);
    pthread_condattr_setpshared(&turn, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&common->turn, &turn);
    sem_init(&common->sem, 1, 0);
    return common;
}

static void takes_turns(struct common *common, int own)
{
    for (int i = 0; i < 500; i++) {
        pthread_mutex_lock(&common->lock);
        while (common->whose != own)
            pthread_cond_wait(&common->turn, &common->lock);
        common->whose = !own;
        common->sum = common->sum * 3 % 1009 + own;
        pthread_cond_broadcast(&common->turn);
        pthread_mutex_unlock(&common->lock);
    }
    sem_post(&common->sem);
}

static int second(void *with)
{
    takes_turns(with, 1);
    return 0;
}

static int second_elsewhere(void *with)
{
    (void)with;
    int fd = open("shared.file", O_RDWR);
    own(3);
    void *at = mmap(NULL, 2 * PAGE, RW, MAP_SHARED, fd, 0);
    if (at == with)
        return 9;
    takes_turns((void *)((char *)at + PAGE), 1);
    return 0;
}

static void turns(const char *name, struct common *common, int (*other)(void *))
{
    begin(common);
    pid_t id = child(other, common);
    takes_turns(common, 0);
    sem_wait(&common->sem);
    sem_wait(&common->sem);
    printf("turns %s: %d, %d\n", name, end_of(id), common->sum);
}

static int waits_privately(void *with)
{
    struct common *common = with;
    struct timespec soon = {0, 300000000};
    sem_post(&common->sem);
    return -futex(&common->word, FUTEX_WAIT_PRIVATE, 0, (long)&soon, NULL, 0);
}

static int waits(void *with)
{
    struct common *common = with;
    sem_post(&common->sem);
    return -futex(&common->word, FUTEX_WAIT, 0, 0, NULL, 0);
}

static long wake_until(void *at, int what, long count)
{
    long woken = 0, all = 0;
    while (all < count && woken >= 0) {
        woken = futex(at, what, count, 0, NULL, 0);
        all += woken;
        usleep(1000);
    }
    return woken < 0 ? woken : all;
}

static void words(struct common *common)
{
    /* The word of another process is another one if it is said to be private. */
    pid_t id = child(waits_privately, common);
    sem_wait(&common->sem);
    usleep(100000);
    long shared = futex(&common->word, FUTEX_WAKE, 9, 0, NULL, 0);
    long private = futex(&common->word, FUTEX_WAKE_PRIVATE, 9, 0, NULL, 0);
    printf("private: %ld %ld, %d\n", shared, private, end_of(id));
    pid_t ids[3];
    for (int i = 0; i < 3; i++)
        ids[i] = child(waits, common);
    for (int i = 0; i < 3; i++)
        sem_wait(&common->sem);
    long all = wake_until(&common->word, FUTEX_WAKE, 3);
    printf("woken: %ld, %d %d %d\n", all, end_of(ids[0]), end_of(ids[1]), end_of(ids[2]));
    for (int i = 0; i < 3; i++)
        ids[i] = child(waits, common);
    long moved = 0;
    while (moved < 3) {
        long result = futex(&common->word, FUTEX_CMP_REQUEUE, 0, 9, &common->other, 0);
        if (result < 0)
            printf("moved: %ld\n", result);
        moved += result;
        usleep(1000);
    }
    long rest = futex(&common->word, FUTEX_WAKE, 9, 0, NULL, 0);
    all = futex(&common->other, FUTEX_WAKE, 1, 0, NULL, 0);
    all += futex(&common->other, FUTEX_WAKE, 9, 0, NULL, 0);
    printf("moved: %ld, %ld, %ld, %d %d %d\n", moved, rest, all, end_of(ids[0]), end_of(ids[1]),
           end_of(ids[2]));
    printf("another value: %ld\n", futex(&common->word, FUTEX_CMP_REQUEUE, 1, 1, &common->other, 5));
    printf("odd counts: %ld %ld\n", futex(&common->word, FUTEX_REQUEUE, -1, 1, &common->other, 0),
           futex(&common->word, FUTEX_REQUEUE, 1, -1, &common->other, 0));
    void *gone = own(1);
    munmap(gone, PAGE);
    printf("nothing: %ld %ld, %ld %ld\n", futex(gone, FUTEX_WAKE, 1, 0, NULL, 0),
           futex(gone, FUTEX_WAKE_PRIVATE, 1, 0, NULL, 0),
           futex(gone, FUTEX_WAIT_PRIVATE, 0, 0, NULL, 0),
           futex((void *)(1ul << 62), FUTEX_WAKE_PRIVATE, 1, 0, NULL, 0));
    printf("no word: %ld\n", futex((char *)common + 1, FUTEX_WAKE, 1, 0, NULL, 0));
}

static void *ends_later(void *word)
{
    struct timespec soon = {0, 300000000};
    long *result = word;
    *result = futex(result + 1, FUTEX_WAIT_PRIVATE, 0, (long)&soon, NULL, 0);
    return NULL;
}

/* A private waiter is not woken by a shared wake-up, nor the other way round. */
static void private_or_not(void)
{
    long *words = own(1);
    pthread_t thread;
    pthread_create(&thread, NULL, ends_later, words);
    usleep(100000);
    long woken = futex(words + 1, FUTEX_WAKE, 1, 0, NULL, 0);
    pthread_join(thread, NULL);
    printf("not said: %ld, %ld\n", woken, words[0]);
}

static int dies_with_it(void *with)
{
    struct common *common = with;
    pthread_mutex_lock(&common->lock);
    sem_post(&common->sem);
    usleep(200000);
    kill(getpid(), SIGKILL);
    return 0;
}

static int becomes_another(void *with)
{
    struct common *common = with;
    pthread_mutex_lock(&common->lock);
    sem_post(&common->sem);
    usleep(200000);
    execl("/bin/true", "true", NULL);
    return 9;
}

/* Whoever waits for a robust lock learns that its owner has gone. */
static void robust(const char *how, struct common *common, int (*work)(void *))
{
    begin(common);
    pid_t id = child(work, common);
    sem_wait(&common->sem);
    int result = pthread_mutex_lock(&common->lock);
    int mended = pthread_mutex_consistent(&common->lock);
    pthread_mutex_unlock(&common->lock);
    int again = pthread_mutex_lock(&common->lock);
    pthread_mutex_unlock(&common->lock);
    printf("%s: %d %d %d, %d\n", how, result, mended, again, end_of(id));
}

int main(void)
{
    over_fork();
    turns("in zeros", zeros(1), second);
    int fd = open("shared.file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(fd, 2 * PAGE) != 0)
        return 3;
    struct common *there = mmap(NULL, PAGE, RW, MAP_SHARED, fd, PAGE);
    turns("in a file", there, second_elsewhere);
    begin(there);
    words(there);
    words(begin(zeros(1)));
    private_or_not();
    robust("killed, in zeros", zeros(1), dies_with_it);
    robust("killed, in a file", there, dies_with_it);
    robust("another program", zeros(1), becomes_another);
    unlink("shared.file");
    puts("done");
    return 0;
}
