/*
 * What a request of 4 KiB takes Debian's `fio` and the kernel under it, for `cargo xtask bench
 * queue`: the way that the trade measures disks by. The argument is the disk. `fio` asks past the
 * page cache by libaio, one request at a time and 32, is told by interrupts, and reads the clock as
 * seldom as it can.
 *
 * The clock of the machine counts instructions. A run with few requests and one with many differ in
 * the requests alone: what the many take more, without the time that the processor was idle, is
 * divided by their number. Of each the best run counts. So the start of `fio` and its end are not counted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

enum { FEW = 256, MANY = 1280, ROUNDS = 5 };

/* Runs it on 256 KiB of the disk, again and again until so many requests are done. */
static void run(const char *disk, int writes, int batch, int requests)
{
    char file[64], depth[64], submit[64], complete[64], bytes[64];
    snprintf(file, sizeof file, "--filename=%s", disk);
    snprintf(depth, sizeof depth, "--iodepth=%d", batch);
    snprintf(submit, sizeof submit, "--iodepth_batch_submit=%d", batch);
    snprintf(complete, sizeof complete, "--iodepth_batch_complete_min=%d", batch);
    snprintf(bytes, sizeof bytes, "--io_size=%d", requests * 4096);
    pid_t child = fork();
    need(child >= 0, "fork");
    if (child == 0) {
        int nothing = open("/dev/null", O_WRONLY);
        need(nothing >= 0, "/dev/null");
        dup2(nothing, STDOUT_FILENO);
        execl("/usr/bin/fio", "fio", "--name=work", file, "--ioengine=libaio", "--direct=1",
              "--bs=4k", "--size=256k", bytes, writes ? "--rw=write" : "--rw=read", depth, submit,
              complete, "--thread", "--gtod_reduce=1", "--invalidate=0", "--allow_file_create=0",
              (char *)NULL);
        need(0, "fio");
    }
    int status;
    need(waitpid(child, &status, 0) == child, "waitpid");
    errno = 0;
    need(WIFEXITED(status) && WEXITSTATUS(status) == 0, "fio's end");
}

static unsigned long busy(const char *disk, int writes, int batch, int requests)
{
    unsigned long before = idle(), start = now();
    run(disk, writes, batch, requests);
    unsigned long took = now() - start;
    return took - (idle() - before);
}

static unsigned long least(unsigned long one, unsigned long other)
{
    return one < other ? one : other;
}

int main(int count, char **words)
{
    need(count == 2, "usage: fio-work DISK");
    static const int batches[] = {1, 32};
    for (int writes = 0; writes < 2; writes++)
        for (int which = 0; which < 2; which++) {
            int batch = batches[which];
            unsigned long few = -1ul, many = -1ul;
            for (int round = 0; round < ROUNDS; round++) {
                few = least(few, busy(words[1], writes, batch, FEW));
                many = least(many, busy(words[1], writes, batch, MANY));
            }
            need(many > few, "more requests took less");
            printf("queuebench instructions \"%s of 4 KiB, batch %d, fio\" %lu\n",
                   writes ? "write" : "read", batch,
                   (many - few) / (MANY - FEW));
            fflush(stdout);
        }
    return 0;
}
