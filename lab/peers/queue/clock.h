/* What the processor has done, for programs on Linux that count it, and their end by an error. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void need(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "queuebench: %s: %s\n", what, strerror(errno));
    exit(1);
}

static unsigned long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ul + time.tv_nsec;
}

/* Nanoseconds that the only processor has been idle. */
static unsigned long idle(void)
{
    static char text[1 << 16];
    static const char field[] = ".idle_sleeptime";
    int list = open("/proc/timer_list", O_RDONLY);
    need(list >= 0, "/proc/timer_list");
    size_t length = 0;
    for (ssize_t got; length < sizeof text - 1; length += got) {
        got = read(list, text + length, sizeof text - 1 - length);
        need(got >= 0, "/proc/timer_list");
        if (got == 0)
            break;
    }
    close(list);
    text[length] = 0;
    char *found = strstr(text, field);
    need(found != NULL, "the idle time in /proc/timer_list");
    found = strchr(found, ':');
    need(found != NULL, "the idle time in /proc/timer_list");
    return strtoul(found + 1, NULL, 10);
}
