/* What sockets, sets and counters of a user may take: each line is this system's own. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *name(long result) { return result < 0 ? strerrorname_np(errno) : "done"; }
#define SAY(text, call) printf("%s: %s\n", text, name(call))
#define PAIRS 200

static char many[32 << 10];
static int pairs[PAIRS][2];

static ssize_t give(int over, int file, int count) {
    int files[253];
    struct iovec piece = {"x", 1};
    char control[CMSG_SPACE(sizeof files)];
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control};
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET, part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (int i = 0; i < count; i++)
        files[i] = file;
    memcpy(CMSG_DATA(part), files, count * sizeof(int));
    return sendmsg(over, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Fills sockets until the user has no more; how many bytes. What is tried then has an error. */
static long fill(int says) {
    long all = 0;
    for (int i = 0; i < PAIRS; i++)
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pairs[i]))
            pairs[i][0] = pairs[i][1] = -1;
    int set = epoll_create1(0), spare = eventfd(0, 0), errors[4] = {0};
    for (size_t part = sizeof many; part > 0; part /= 2)
        for (int i = 0; i < 2 * PAIRS; i++) {
            long count;
            while ((count = write(pairs[i / 2][i % 2], many, part)) > 0)
                all += count;
            errors[errno == EAGAIN ? 0 : errno == ENOBUFS ? 1 : 2]++;
        }
    if (says) {
        struct epoll_event event = {.events = EPOLLIN};
        printf("some full %d, no memory %d, other %d\n", errors[0] > 0, errors[1] > 0, errors[2]);
        SAY("socket", socket(AF_UNIX, SOCK_STREAM, 0));
        SAY("counter", eventfd(0, 0)), SAY("set", epoll_create1(0));
        SAY("item", epoll_ctl(set, EPOLL_CTL_ADD, spare, &event));
        /* Pipes are another matter, and what there is goes on. */
        int ends[2];
        SAY("pipe", pipe(ends)), close(ends[0]), close(ends[1]);
        all -= read(pairs[0][0], many, sizeof many);
        SAY("after a read", send(pairs[0][1], many, 100, 0));
        all += 100;
    }
    for (int i = 0; i < PAIRS; i++)
        close(pairs[i][0]), close(pairs[i][1]);
    close(set), close(spare);
    return all;
}

/* Descriptors in messages are counted, and sockets are in no circle. */
static void flying(void) {
    int pair[2], other[2], ends[2], count = 0;
    char bytes[8];
    if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || socketpair(AF_UNIX, SOCK_STREAM, 0, other))
        return;
    while (give(pair[0], ends[0], 250) == 1)
        count++;
    printf("in messages: %d %s\n", 250 * count, name(-1));
    while (recv(pair[1], bytes, 1, MSG_DONTWAIT) == 1)
        ;
    SAY("again", give(pair[0], ends[0], 250));
    while (recv(pair[1], bytes, 1, MSG_DONTWAIT) == 1)
        ;
    SAY("into itself", give(pair[0], pair[1], 1));
    SAY("one into the other", give(pair[0], other[1], 1));
    SAY("and back", give(other[0], pair[1], 1));
    SAY("own end", give(pair[0], pair[0], 1));
    recv(pair[1], bytes, 1, 0), recv(pair[1], bytes, 1, 0);
    SAY("when it is taken out", give(other[0], pair[1], 1));
    close(other[0]), close(other[1]), close(pair[0]), close(pair[1]);
    /* One in the other, deep: all is closed with the first. */
    int first[2], last;
    socketpair(AF_UNIX, SOCK_STREAM, 0, first), last = dup(first[0]);
    for (count = 0; count < 900; count++) {
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
        if (give(last, pair[1], 1) != 1)
            break;
        close(last), close(pair[1]), last = pair[0];
    }
    printf("deep: %d, the last: %s\n", count, name(give(last, ends[1], 1) - 1));
    close(ends[1]), close(last), close(first[0]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    SAY("held", read(ends[0], bytes, 1));
    close(first[1]);
    printf("let go: %zd\n", read(ends[0], bytes, 1));
    close(ends[0]);
}

/* Those that wait are killed while others go on: nothing stays behind. */
static void killed(void) {
    for (int turn = 0; turn < 40; turn++) {
        int pair[2], set = epoll_create1(0);
        struct epoll_event event = {.events = EPOLLIN};
        socketpair(AF_UNIX, turn % 2 ? SOCK_STREAM : SOCK_SEQPACKET, 0, pair);
        epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event);
        pid_t child[3];
        for (int i = 0; i < 3; i++)
            if ((child[i] = fork()) == 0)
                for (;;) {
                    if (i == 0)
                        send(pair[0], many, 3000, 0);
                    else if (i == 1)
                        recv(pair[1], many, 2000, 0);
                    else
                        epoll_wait(set, &event, 1, -1);
                }
        usleep(1000 * (turn % 7));
        for (int i = 0; i < 3; i++)
            kill(child[i], SIGKILL);
        for (int i = 0; i < 3; i++)
            waitpid(child[i], NULL, 0);
        close(pair[0]), close(pair[1]), close(set);
    }
    printf("killed\n");
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    long first = fill(1);
    flying();
    killed();
    printf("as much again: %d\n", fill(0) >= first);
    return 0;
}
