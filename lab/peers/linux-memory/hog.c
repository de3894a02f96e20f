/* Programs that want more memory than there is, beside one that wants little. Each of them is ended
 * by SIGKILL, and this one goes on as if they had not been. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE (1ul << 20)
#define MOST (1ul << 36)
#define OWN (4ul << 20)

static char *map(size_t bytes, int how)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        _exit(1);
    return at;
}

static void stores(void)
{
    char *at = map(MOST, MAP_PRIVATE);
    for (size_t done = 0; done < MOST; done += PIECE)
        memset(at + done, 1, PIECE);
}

/* What is stored by calls. */
static void reads(void)
{
    char *at = map(MOST, MAP_PRIVATE);
    int zeros = open("/dev/zero", O_RDONLY);
    for (size_t done = 0; done < MOST; done += PIECE / 16)
        if (read(zeros, at + done, PIECE / 16) != PIECE / 16)
            _exit(2);
}

static void shares(void)
{
    char *at = map(MOST, MAP_SHARED);
    for (size_t done = 0; done < MOST; done += PIECE)
        memset(at + done, 1, PIECE);
}

static void *all_stores(void *with)
{
    stores();
    return with;
}

static void threads(void)
{
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, all_stores, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
}

/* A child that has the same pages, and writes to them, and has such a child. Whichever is ended, this
 * one ends so. Where there is no memory for one more child, the last takes what there is. */
static void children(void)
{
    size_t part = 24ul << 20;
    char *at = map(part, MAP_PRIVATE);
    memset(at, 1, part);
    for (int i = 0; i < 64; i++) {
        pid_t id = fork();
        if (id < 0)
            stores();
        if (id != 0) {
            int how = 0;
            waitpid(id, &how, 0);
            raise(WIFSIGNALED(how) ? WTERMSIG(how) : SIGTERM);
        }
        for (size_t done = 0; done < part; done += 4096)
            at[done]++;
    }
}

static int end_of(void (*hog)(void), char *quiet, unsigned round)
{
    fflush(stdout);
    pid_t id = fork();
    if (id == 0) {
        setpgid(0, 0);
        hog();
        _exit(4);
    }
    int how;
    while (waitpid(id, &how, WNOHANG) == 0) {
        /* It goes on meanwhile, with memory of its own. */
        for (size_t i = 0; i < OWN; i += 4096) {
            if (quiet[i] != (char)round)
                _exit(5);
            quiet[i] = (char)(round + 1);
        }
        round++;
        usleep(1000);
    }
    for (size_t i = 0; i < OWN; i += 4096)
        if (quiet[i] != (char)round)
            _exit(6);
    memset(quiet, 0, OWN);
    kill(-id, SIGKILL);
    return WIFSIGNALED(how) ? WTERMSIG(how) : 100 + WEXITSTATUS(how);
}

int main(void)
{
    char *quiet = map(OWN, MAP_PRIVATE);
    for (int round = 0; round < 3; round++) {
        printf("stores: %d\n", end_of(stores, quiet, 0));
        printf("reads: %d\n", end_of(reads, quiet, 0));
        printf("shares: %d\n", end_of(shares, quiet, 0));
        printf("threads: %d\n", end_of(threads, quiet, 0));
        printf("children: %d\n", end_of(children, quiet, 0));
    }
    char *large = map(64ul << 20, MAP_PRIVATE);
    memset(large, 1, 64ul << 20);
    puts("done");
    return 0;
}
