// Two writers and one who cuts, on one file, while what is below may crash: each call that was
// answered has happened once, whole, and in one order with the others. The arguments: a file that is
// not there yet, and how many rounds.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// More than one piece of what a call moves.
enum { BIG = 600 << 10, SLOTS = 64, SLOT = 4096 };
static const char *name;
static int rounds, wrong;

// Appends big records of one letter; they must not be mixed with the other's.
static void *appends(void *letter) {
    int file = open(name, O_WRONLY | O_APPEND);
    char *text = malloc(BIG);
    memset(text, *(char *)letter, BIG);
    for (int i = 0; i < rounds; i++)
        if (write(file, text, BIG) != BIG)
            wrong++, perror("append");
    close(file);
    free(text);
    return 0;
}

// Each of these writes numbers to slots of its own and looks whether the last one is still there,
// while the other does the same beside it and a third cuts and extends far behind.
static void *counts(void *first) {
    int file = open(name, O_RDWR);
    int last[SLOTS] = {0}, seen;
    for (int i = 0; i < rounds * 40; i++) {
        int slot = i % (SLOTS / 2);
        long at = (2L * slot + *(int *)first) * SLOT;
        if (pread(file, &seen, sizeof seen, at) != sizeof seen || seen != last[slot])
            wrong++, fprintf(stderr, "slot %d: %d in place of %d\n", slot, seen, last[slot]);
        last[slot] = i + 1;
        if (pwrite(file, &last[slot], sizeof seen, at) != sizeof seen)
            wrong++, perror("write");
    }
    close(file);
    return 0;
}

static void *cuts(void *unused) {
    int file = open(name, O_RDWR);
    for (int i = 0; i < rounds * 20; i++) {
        long length = SLOTS * SLOT + 1 + i % 7 * 1000;
        if (ftruncate(file, length))
            wrong++, perror("cut");
        struct stat of;
        if (fstat(file, &of) || of.st_size != length)
            wrong++, fprintf(stderr, "%ld long in place of %ld\n", (long)of.st_size, length);
    }
    close(file);
    return unused;
}

int main(int count, char **words) {
    if (count < 3)
        return 2;
    name = words[1], rounds = atoi(words[2]);
    close(open(name, O_CREAT | O_WRONLY, 0644));
    pthread_t a, b, c;
    char letters[2] = {'a', 'b'};
    pthread_create(&a, 0, appends, &letters[0]);
    pthread_create(&b, 0, appends, &letters[1]);
    pthread_join(a, 0), pthread_join(b, 0);
    int file = open(name, O_RDONLY);
    char *text = malloc(BIG);
    int found[2] = {0, 0};
    while (read(file, text, BIG) == BIG) {
        for (int i = 1; i < BIG; i++)
            if (text[i] != text[0]) {
                wrong++, fprintf(stderr, "a record is mixed at %d\n", i);
                break;
            }
        found[text[0] == 'b']++;
    }
    close(file);
    printf("%d %d\n", found[0], found[1]);
    if (truncate(name, 0) || truncate(name, SLOTS * SLOT))
        perror("truncate");
    int numbers[2] = {0, 1};
    pthread_create(&a, 0, counts, &numbers[0]);
    pthread_create(&b, 0, counts, &numbers[1]);
    pthread_create(&c, 0, cuts, 0);
    pthread_join(a, 0), pthread_join(b, 0), pthread_join(c, 0);
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
