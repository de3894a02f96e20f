/*
 * The work of `cargo xtask bench ring3`: what a program asks of its kernel, counted by the
 * processor's time-stamp counter. The same file runs on Trefoil and on Debian's kernel, so it needs
 * no library: it makes its system calls itself (numbers and structures of Linux, asm/unistd_64.h).
 *
 * A line for each row: `ring3 TICKS NAME`, the least of all rounds for one operation. A row that a
 * system refuses is `ring3 - NAME`.
 */

typedef unsigned long u64;
typedef long s64;

enum {
    READ = 0, WRITE = 1, OPEN = 2, CLOSE = 3, MMAP = 9, MUNMAP = 11, SIGACTION = 13, PIPE = 22,
    GETPID = 39, CLONE = 56, FORK = 57, EXECVE = 59, WAIT4 = 61, KILL = 62, FUTEX = 202,
    EXIT_GROUP = 231,
};

enum { PAGE = 4096, PAGES = 256, MIB = 1 << 20 };
enum { SIGUSR1 = 10, SA_RESTORER = 0x04000000 };
/* PROT_READ and PROT_WRITE; MAP_PRIVATE and MAP_ANONYMOUS. */
enum { READ_WRITE = 3, ANONYMOUS = 0x22 };
/* VM, FS, FILES, SIGHAND, THREAD, SYSVSEM, PARENT_SETTID, CHILD_CLEARTID. */
enum { THREAD = 0x100 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x40000 | 0x100000 | 0x200000 };
enum { FUTEX_WAIT = 0 };

static s64 call(s64 number, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
    s64 result;
    register u64 r10 __asm__("r10") = d;
    register u64 r8 __asm__("r8") = e;
    register u64 r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#define CALL0(n) call(n, 0, 0, 0, 0, 0, 0)
#define CALL1(n, a) call(n, (u64)(a), 0, 0, 0, 0, 0)
#define CALL2(n, a, b) call(n, (u64)(a), (u64)(b), 0, 0, 0, 0)
#define CALL3(n, a, b, c) call(n, (u64)(a), (u64)(b), (u64)(c), 0, 0, 0)
#define CALL4(n, a, b, c, d) call(n, (u64)(a), (u64)(b), (u64)(c), (u64)(d), 0, 0)

static u64 now(void)
{
    unsigned low, high;
    __asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high)::"memory");
    return (u64)high << 32 | low;
}

static void die(const char *why)
{
    u64 length = 0;
    while (why[length])
        length++;
    CALL3(WRITE, 1, "ring3 failed: ", 14);
    CALL3(WRITE, 1, why, length);
    CALL3(WRITE, 1, "\n", 1);
    CALL1(EXIT_GROUP, 1);
}

/* Tells a figure; less than zero: there is none. */
static void tell(s64 ticks, const char *name)
{
    char line[128], digits[24];
    u64 at = 0, count = 0, length = 0;
    for (const char *text = "ring3 "; *text; text++)
        line[at++] = *text;
    if (ticks < 0)
        line[at++] = '-';
    else
        do
            digits[count++] = '0' + ticks % 10;
        while ((ticks /= 10) > 0);
    while (count > 0)
        line[at++] = digits[--count];
    line[at++] = ' ';
    while (name[length])
        line[at++] = name[length++];
    line[at++] = '\n';
    if (CALL3(WRITE, 1, line, at) != (s64)at)
        die("write");
}

/* What `work` takes for one of `count`, in the best of `rounds`. */
static s64 best(s64 (*work)(u64 count), u64 count, u64 rounds)
{
    s64 least = -1;
    while (rounds-- > 0) {
        s64 ticks = work(count);
        if (ticks < 0)
            return -1;
        if (least < 0 || ticks < least)
            least = ticks;
    }
    return (least + (s64)count / 2) / (s64)count;
}

static s64 null_call(u64 count)
{
    u64 begin = now();
    for (u64 i = 0; i < count; i++)
        CALL0(GETPID);
    return now() - begin;
}

static s64 read_byte(u64 count)
{
    char byte;
    s64 file = CALL3(OPEN, "/dev/zero", 0, 0);
    if (file < 0)
        die("/dev/zero");
    u64 begin = now();
    for (u64 i = 0; i < count; i++)
        if (CALL3(READ, file, &byte, 1) != 1)
            die("read");
    u64 end = now();
    CALL1(CLOSE, file);
    return end - begin;
}

static volatile u64 taken;

static void handler(int signal)
{
    (void)signal;
    taken++;
}

__asm__(".text\nrestorer: mov $15, %eax\nsyscall\n");
void restorer(void) __asm__("restorer");

struct action {
    void (*function)(int);
    u64 flags;
    void (*restorer)(void);
    u64 mask;
};

static const struct action ACTION = {handler, SA_RESTORER, restorer, 0};

static s64 signal_installed(u64 count)
{
    u64 begin = now();
    for (u64 i = 0; i < count; i++)
        if (CALL4(SIGACTION, SIGUSR1, &ACTION, 0, 8) != 0)
            die("sigaction");
    return now() - begin;
}

static s64 signal_taken(u64 count)
{
    s64 self = CALL0(GETPID);
    taken = 0;
    u64 begin = now();
    for (u64 i = 0; i < count; i++)
        CALL2(KILL, self, SIGUSR1);
    u64 end = now();
    if (taken != count)
        die("signals");
    return end - begin;
}

static char *map(u64 bytes)
{
    s64 at = call(MMAP, 0, bytes, READ_WRITE, ANONYMOUS, -1UL, 0);
    if (at < 0 && at > -PAGE)
        die("mmap");
    return (char *)at;
}

static void touch(volatile char *at, u64 pages)
{
    for (u64 page = 0; page < pages; page++)
        at[page * PAGE] = 1;
}

static s64 anonymous_fault(u64 count)
{
    char *at = map(count * PAGE);
    u64 begin = now();
    touch(at, count);
    u64 end = now();
    CALL2(MUNMAP, at, count * PAGE);
    return end - begin;
}

static void wait_for(s64 child)
{
    int status = -1;
    if (CALL4(WAIT4, child, &status, 0, 0) != child || status != 0)
        die("wait4");
}

/* The parent writes while the child, which has the pages as well, waits for the end of a pipe. */
static s64 copy_fault(u64 count)
{
    char *at = map(count * PAGE);
    int ends[2];
    char byte;
    touch(at, count);
    if (CALL1(PIPE, ends) != 0)
        die("pipe");
    s64 child = CALL0(FORK);
    if (child < 0)
        die("fork");
    if (child == 0) {
        CALL1(CLOSE, ends[1]);
        CALL3(READ, ends[0], &byte, 1);
        CALL1(EXIT_GROUP, 0);
    }
    u64 begin = now();
    touch(at, count);
    u64 end = now();
    CALL1(CLOSE, ends[1]);
    CALL1(CLOSE, ends[0]);
    wait_for(child);
    CALL2(MUNMAP, at, count * PAGE);
    return end - begin;
}

static s64 map_and_unmap(u64 count)
{
    u64 begin = now();
    for (u64 i = 0; i < count; i++)
        if (CALL2(MUNMAP, map(MIB), MIB) != 0)
            die("munmap");
    return now() - begin;
}

static s64 fork_and_wait(u64 count)
{
    u64 begin = now();
    for (u64 i = 0; i < count; i++) {
        s64 child = CALL0(FORK);
        if (child < 0)
            die("fork");
        if (child == 0)
            CALL1(EXIT_GROUP, 0);
        wait_for(child);
    }
    return now() - begin;
}

static s64 fork_and_exec(u64 count)
{
    static const char *const words[] = {"ring3", "end", 0};
    u64 begin = now();
    for (u64 i = 0; i < count; i++) {
        s64 child = CALL0(FORK);
        if (child < 0)
            die("fork");
        if (child == 0) {
            CALL3(EXECVE, "/proc/self/exe", words, words + 2);
            CALL1(EXIT_GROUP, 1);
        }
        wait_for(child);
    }
    return now() - begin;
}

/* A byte goes around `ring` processes, from pipe to pipe, `count` times. */
static s64 around(u64 count, int ring)
{
    int ends[16][2];
    s64 children[16];
    char byte = 0;
    for (int i = 0; i < ring; i++)
        if (CALL1(PIPE, ends[i]) != 0)
            die("pipe");
    for (int i = 1; i < ring; i++) {
        children[i] = CALL0(FORK);
        if (children[i] < 0)
            die("fork");
        if (children[i] != 0)
            continue;
        for (u64 turn = 0; turn <= count; turn++) {
            CALL3(READ, ends[i - 1][0], &byte, 1);
            CALL3(WRITE, ends[i][1], &byte, 1);
        }
        CALL1(EXIT_GROUP, 0);
    }
    u64 begin = 0;
    for (u64 turn = 0; turn <= count; turn++) {
        /* The first time around is not counted: pages are copied. */
        if (turn == 1)
            begin = now();
        CALL3(WRITE, ends[0][1], &byte, 1);
        if (CALL3(READ, ends[ring - 1][0], &byte, 1) != 1)
            die("ring");
    }
    u64 end = now();
    for (int i = 1; i < ring; i++)
        wait_for(children[i]);
    for (int i = 0; i < ring; i++) {
        CALL1(CLOSE, ends[i][0]);
        CALL1(CLOSE, ends[i][1]);
    }
    return end - begin;
}

static s64 pipe_alone(u64 count)
{
    int ends[2];
    char byte = 0;
    if (CALL1(PIPE, ends) != 0)
        die("pipe");
    u64 begin = now();
    for (u64 i = 0; i < count; i++) {
        CALL3(WRITE, ends[1], &byte, 1);
        if (CALL3(READ, ends[0], &byte, 1) != 1)
            die("pipe");
    }
    u64 end = now();
    CALL1(CLOSE, ends[0]);
    CALL1(CLOSE, ends[1]);
    return end - begin;
}

static s64 around_two(u64 count) { return around(count, 2); }
static s64 around_sixteen(u64 count) { return around(count / 16, 16); }

/* A thread that ends at once: clone(THREAD), with a stack that begins with its function. */
static s64 begin_thread(char *end_of_stack, unsigned *number)
{
    s64 result;
    register u64 r10 __asm__("r10") = (u64)number;
    register u64 r8 __asm__("r8") = 0;
    __asm__ volatile("syscall\n"
                     "test %%eax, %%eax\n"
                     "jnz 1f\n"
                     "mov $60, %%eax\n"
                     "xor %%edi, %%edi\n"
                     "syscall\n"
                     "1:"
                     : "=a"(result)
                     : "a"((u64)CLONE), "D"((u64)THREAD), "S"(end_of_stack), "d"(number),
                       "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}

static s64 thread_joined(u64 count)
{
    static unsigned number;
    char *stack = map(4 * PAGE);
    touch(stack, 4);
    u64 begin = now();
    for (u64 i = 0; i < count; i++) {
        if (begin_thread(stack + 4 * PAGE, &number) < 0) {
            CALL2(MUNMAP, stack, 4 * PAGE);
            return -1;
        }
        for (;;) {
            unsigned there = *(volatile unsigned *)&number;
            if (there == 0)
                break;
            CALL4(FUTEX, &number, FUTEX_WAIT, there, 0);
        }
    }
    u64 end = now();
    CALL2(MUNMAP, stack, 4 * PAGE);
    return end - begin;
}

__attribute__((used)) static void work(u64 *stack)
{
    char **words = (char **)(stack + 1);
    if (stack[0] == 2 && words[1][0] == 'e')
        CALL1(EXIT_GROUP, 0);
    CALL4(SIGACTION, SIGUSR1, &ACTION, 0, 8);
    tell(best(null_call, 1000, 20), "null call (getpid)");
    tell(best(read_byte, 1000, 20), "read of one byte of /dev/zero");
    tell(best(signal_installed, 1000, 20), "signal handler installed");
    tell(best(signal_taken, 100, 20), "signal sent to itself and taken");
    tell(best(anonymous_fault, PAGES, 20), "page fault, anonymous");
    tell(best(copy_fault, PAGES, 10), "page fault, copy on write");
    tell(best(map_and_unmap, 100, 20), "mmap and munmap of 1 MiB");
    tell(best(fork_and_wait, 10, 10), "fork, exit, wait");
    tell(best(fork_and_exec, 10, 10), "fork, exec, exit, wait");
    tell(best(pipe_alone, 100, 20), "a byte through a pipe, one process");
    tell(best(around_two, 100, 10), "pipe round trip, 2 processes");
    tell(best(around_sixteen, 320, 10), "a step around 16 processes");
    tell(best(thread_joined, 10, 10), "thread made and joined");
    CALL3(WRITE, 1, "ring3 done\n", 11);
    CALL1(EXIT_GROUP, 0);
}

__asm__(".text\n.global _start\n_start: mov %rsp, %rdi\nand $-16, %rsp\ncall work\nhlt\n");
