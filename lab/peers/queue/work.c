/*
 * The work of `cargo xtask bench queue` (see `domains/testing/queuebench`) on Linux: 4 KiB read from
 * a disk and written to it, past the page cache, by `pread` and `pwrite` and by a ring of io_uring
 * with registered buffers and a registered file. It is linked statically and calls the kernel
 * without a library for the ring. The arguments are the disk and, where the driver can be asked
 * without interrupts, `polled`.
 *
 * The clock of the machine counts instructions. Polled is the time of the calls that submit and of
 * those that find answers, without those that find none. Else it is all that the processor did,
 * interrupts included, but not the time that it was idle.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"

enum { BYTES = 4096, REQUESTS = 64, ROUNDS = 12 };

static void tell(const char *verb, const char *how, unsigned long value)
{
    printf("queuebench instructions \"%s of 4 KiB%s\" %lu\n", verb, how, value);
    fflush(stdout);
}

static int disk;
static unsigned char *buffers;

static unsigned long by_calls(int writes)
{
    unsigned long before = idle(), start = now();
    for (long number = 0; number < REQUESTS; number++) {
        long at = number * BYTES;
        ssize_t done = writes ? pwrite(disk, buffers, BYTES, at) : pread(disk, buffers, BYTES, at);
        need(done == BYTES, "a call");
    }
    unsigned long took = now() - start;
    return took - (idle() - before);
}

/* A ring of io_uring. */
static struct {
    int file;
    unsigned *tail, *mask, *array, *head, *end, *ends_mask;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *ends;
} ring;

static unsigned char *shared(size_t bytes, off_t what)
{
    int flags = MAP_SHARED | MAP_POPULATE;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, ring.file, what);
    need(at != MAP_FAILED, "a ring's memory");
    return at;
}

static void open_ring(int polled)
{
    struct io_uring_params params = {.flags = polled ? IORING_SETUP_IOPOLL : 0};
    ring.file = syscall(SYS_io_uring_setup, REQUESTS, &params);
    need(ring.file >= 0, "io_uring_setup");
    unsigned char *to = shared(params.sq_off.array + params.sq_entries * sizeof(unsigned),
                               IORING_OFF_SQ_RING);
    unsigned char *from = shared(params.cq_off.cqes + params.cq_entries * sizeof(*ring.ends),
                                 IORING_OFF_CQ_RING);
    ring.tail = (unsigned *)(to + params.sq_off.tail);
    ring.mask = (unsigned *)(to + params.sq_off.ring_mask);
    ring.array = (unsigned *)(to + params.sq_off.array);
    ring.head = (unsigned *)(from + params.cq_off.head);
    ring.end = (unsigned *)(from + params.cq_off.tail);
    ring.ends_mask = (unsigned *)(from + params.cq_off.ring_mask);
    ring.ends = (struct io_uring_cqe *)(from + params.cq_off.cqes);
    ring.entries = (struct io_uring_sqe *)shared(params.sq_entries * sizeof(*ring.entries),
                                                 IORING_OFF_SQES);
    struct iovec all = {buffers, REQUESTS * BYTES};
    need(syscall(SYS_io_uring_register, ring.file, IORING_REGISTER_BUFFERS, &all, 1) == 0,
         "registered buffers");
    need(syscall(SYS_io_uring_register, ring.file, IORING_REGISTER_FILES, &disk, 1) == 0,
         "a registered file");
}

/* Puts the requests of a batch into the ring. */
static void fill(int writes, long first, unsigned batch)
{
    unsigned tail = *ring.tail;
    for (unsigned number = 0; number < batch; number++, tail++) {
        unsigned slot = tail & *ring.mask;
        struct io_uring_sqe *entry = &ring.entries[slot];
        memset(entry, 0, sizeof *entry);
        entry->opcode = writes ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
        entry->flags = IOSQE_FIXED_FILE;
        entry->off = (first + number) * BYTES;
        entry->addr = (unsigned long)(buffers + (first + number) * BYTES);
        entry->len = BYTES;
        ring.array[slot] = slot;
    }
    __atomic_store_n(ring.tail, tail, __ATOMIC_RELEASE);
}

/* Takes the answers that there are; how many. */
static unsigned take(void)
{
    unsigned head = *ring.head, end = __atomic_load_n(ring.end, __ATOMIC_ACQUIRE);
    unsigned count = end - head;
    for (; head != end; head++)
        if (ring.ends[head & *ring.ends_mask].res != BYTES) {
            errno = -ring.ends[head & *ring.ends_mask].res;
            need(0, "a request");
        }
    __atomic_store_n(ring.head, head, __ATOMIC_RELEASE);
    return count;
}

static long enter(unsigned submit, unsigned wait, unsigned flags)
{
    long done = syscall(SYS_io_uring_enter, ring.file, submit, wait, flags, NULL, 0);
    need(done >= 0, "io_uring_enter");
    return done;
}

static unsigned long polled(int writes, unsigned batch)
{
    unsigned long took = 0;
    for (long first = 0; first < REQUESTS; first += batch) {
        unsigned long start = now();
        fill(writes, first, batch);
        need(enter(batch, 0, 0) == batch, "a batch");
        took += now() - start;
        for (unsigned left = batch; left > 0;) {
            usleep(1000);
            start = now();
            enter(0, 0, IORING_ENTER_GETEVENTS);
            unsigned count = take();
            if (count > 0)
                took += now() - start;
            left -= count;
        }
    }
    return took;
}

static unsigned long by_event(int writes, unsigned batch)
{
    unsigned long before = idle(), start = now();
    for (long first = 0; first < REQUESTS; first += batch) {
        fill(writes, first, batch);
        need(enter(batch, batch, IORING_ENTER_GETEVENTS) == batch, "a batch");
        for (unsigned left = batch; left > 0;) {
            left -= take();
            if (left > 0)
                enter(0, left, IORING_ENTER_GETEVENTS);
        }
    }
    unsigned long took = now() - start;
    return took - (idle() - before);
}

typedef unsigned long work(int writes, unsigned batch);

static unsigned long calls(int writes, unsigned batch)
{
    (void)batch;
    return by_calls(writes);
}

static void row(const char *how, work *work, unsigned batch)
{
    for (int writes = 0; writes < 2; writes++) {
        unsigned long best = -1ul;
        for (int round = 0; round < ROUNDS; round++) {
            unsigned long took = work(writes, batch) / REQUESTS;
            best = took < best ? took : best;
        }
        tell(writes ? "write" : "read", how, best);
    }
}

int main(int count, char **words)
{
    need(count >= 2, "usage: queuebench DISK [polled]");
    disk = open(words[1], O_RDWR | O_DIRECT);
    need(disk >= 0, words[1]);
    buffers = aligned_alloc(BYTES, REQUESTS * BYTES);
    need(buffers != NULL, "no memory");
    memset(buffers, 0, REQUESTS * BYTES);
    if (count > 2) {
        open_ring(1);
        row(", batch 1, polled", polled, 1);
        row(", batch 32, polled", polled, 32);
        return 0;
    }
    row(" by a call", calls, 1);
    open_ring(0);
    row(", batch 1, by event", by_event, 1);
    row(", batch 32, by event", by_event, 32);
    return 0;
}
