/* Sockets of the machine (unix(7)): each line is the same on Linux. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *name(long result) { return result < 0 ? strerrorname_np(errno) : "done"; }
#define SAY(text, call) printf("%s: %s\n", text, name(call))
#define COUNT(text, call)                                                                          \
    do {                                                                                           \
        long got = (call);                                                                         \
        got < 0 ? printf("%s: %s\n", text, name(got)) : printf("%s: %ld\n", text, got);            \
    } while (0)

static char many[1 << 20];
static int pipes_seen;
/* An address where nothing is. */
static char *volatile wrong = (char *)8;
static void count_pipe(int signal) { (void)signal, pipes_seen++; }
static void nothing(int signal) { (void)signal; }

static void nap(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void bits(const char *text, int file) {
    struct pollfd list = {file, POLLIN | POLLOUT | POLLRDHUP | POLLPRI, 0};
    poll(&list, 1, 0);
    printf("%s: %x\n", text, list.revents);
}

static int option(int file, int what) {
    int value = -1;
    socklen_t length = sizeof value;
    return getsockopt(file, SOL_SOCKET, what, &value, &length) ? -errno : value;
}

static socklen_t address(struct sockaddr_un *to, const char *path) {
    memset(to, 0, sizeof *to);
    to->sun_family = AF_UNIX;
    size_t length = strlen(path + 1) + 1;
    memcpy(to->sun_path, path, length);
    return offsetof(struct sockaddr_un, sun_path) + length + (path[0] != 0);
}

static ssize_t give(int over, const char *text, const int *files, int count, int flags) {
    struct iovec piece = {(char *)text, strlen(text)};
    char control[CMSG_SPACE(300 * sizeof(int))];
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (count) {
        message.msg_control = control, message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *part = CMSG_FIRSTHDR(&message);
        part->cmsg_level = SOL_SOCKET, part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(part), files, count * sizeof(int));
    }
    return sendmsg(over, &message, flags);
}

/* Receives, and says what came; the first descriptor, if any. */
static int take(const char *text, int over, size_t room, size_t control_room, int flags) {
    char bytes[100] = "", control[1000];
    struct iovec piece = {bytes, room};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    message.msg_control = control, message.msg_controllen = control_room;
    ssize_t count = recvmsg(over, &message, flags);
    int first = -1;
    if (count < 0) {
        printf("%s: %s\n", text, name(-1));
        return -1;
    }
    printf("%s: %zd '%.*s' flags %x", text, count, (int)room, bytes, message.msg_flags);
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
        size_t length = part->cmsg_len - CMSG_LEN(0);
        if (part->cmsg_type == SCM_RIGHTS) {
            int files[60];
            memcpy(files, CMSG_DATA(part), length);
            printf(" files %zu", length / 4);
            for (size_t i = 0; i < length / 4; i++)
                i ? close(files[i]) : (first = files[i]);
        } else if (part->cmsg_type == SCM_CREDENTIALS) {
            struct ucred who;
            memcpy(&who, CMSG_DATA(part), sizeof who);
            printf(" from %s %d %d", who.pid == getpid() ? "self" : who.pid ? "other" : "0", who.uid, who.gid);
        }
    }
    printf(" control %zu\n", (size_t)message.msg_controllen);
    return first;
}

static void streams(void) {
    int pair[2];
    char bytes[16] = "";
    SAY("odd type", socketpair(AF_UNIX, 77, 0, pair));
    SAY("odd protocol", socketpair(AF_UNIX, SOCK_STREAM, 9, pair));
    SAY("odd family", socketpair(77, SOCK_STREAM, 0, pair));
    SAY("pair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    printf("cloexec %d type %d domain %d error %d\n", fcntl(pair[0], F_GETFD), option(pair[0], SO_TYPE),
           option(pair[0], SO_DOMAIN), option(pair[0], SO_ERROR));
    printf("buffers %d %d\n", option(pair[0], SO_SNDBUF), option(pair[0], SO_RCVBUF));
    struct stat of;
    fstat(pair[0], &of);
    printf("mode %o\n", of.st_mode);
    SAY("seek", lseek(pair[0], 0, SEEK_SET));
    bits("fresh", pair[0]);
    COUNT("write", write(pair[0], "hello", 5));
    COUNT("send", send(pair[0], " world", 6, 0));
    bits("to read", pair[1]);
    int waiting = 0;
    ioctl(pair[1], FIONREAD, &waiting);
    printf("waiting %d\n", waiting);
    COUNT("look", recv(pair[1], bytes, 15, MSG_PEEK));
    COUNT("read", read(pair[1], bytes, 3));
    COUNT("rest", recv(pair[1], bytes, 15, 0));
    printf("%s\n", bytes);
    COUNT("nothing", recv(pair[1], bytes, 15, MSG_DONTWAIT));
    COUNT("none sent", send(pair[0], "", 0, 0));
    COUNT("out of band", recv(pair[1], bytes, 1, MSG_OOB));
    struct timeval quarter = {0, 250000};
    setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &quarter, sizeof quarter);
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    COUNT("timeout", recv(pair[1], bytes, 15, 0));
    clock_gettime(CLOCK_MONOTONIC, &after);
    long passed = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    printf("waited: %d\n", passed >= 249);
    SAY("shut", shutdown(pair[0], SHUT_WR));
    SAY("shut oddly", shutdown(pair[0], 5));
    bits("half ended", pair[1]), bits("shut half", pair[0]);
    COUNT("end", read(pair[1], bytes, 15));
    signal(SIGPIPE, count_pipe);
    COUNT("send after", send(pair[0], "x", 1, MSG_NOSIGNAL));
    printf("signals %d\n", pipes_seen);
    COUNT("write after", write(pair[0], "x", 1));
    printf("signals %d\n", pipes_seen);
    COUNT("other way", write(pair[1], "back", 4));
    COUNT("comes", read(pair[0], bytes, 15));
    COUNT("unread", write(pair[1], "left", 4));
    close(pair[0]);
    bits("reset", pair[1]);
    COUNT("read reset", read(pair[1], bytes, 15));
    COUNT("then the end", read(pair[1], bytes, 15));
    bits("ended", pair[1]);
    close(pair[1]);
    SAY("closed", send(pair[1], "x", 1, 0));
    int file = open("/dev/null", O_RDWR);
    SAY("no socket", send(file, "x", 1, 0));
    SAY("no socket", listen(file, 1));
    close(file);
}

/* A writer waits for room and ends with all bytes; a reader for all of them. */
static void flow(void) {
    int pair[2], status;
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    long filled = 0, count;
    while ((count = write(pair[0], many, 4096)) > 0)
        filled += count;
    printf("full: %s %d\n", name(count), filled >= 64 << 10 && filled <= 1 << 20);
    bits("full", pair[0]);
    for (long got = 0; got < filled; got += read(pair[1], many, sizeof many))
        ;
    bits("empty", pair[0]);
    fcntl(pair[0], F_SETFL, 0);
    printf("flags %x\n", fcntl(pair[0], F_GETFL));
    for (size_t i = 0; i < sizeof many; i++)
        many[i] = i % 251;
    if (fork() == 0) {
        close(pair[1]);
        _exit(write(pair[0], many, sizeof many) != sizeof many);
    }
    close(pair[0]);
    memset(many, 0, sizeof many);
    nap(50);
    COUNT("all", recv(pair[1], many, 200000, MSG_WAITALL));
    long wrong = 0, got = 200000;
    while ((count = read(pair[1], many + got, sizeof many - got)) > 0)
        got += count;
    for (size_t i = 0; i < sizeof many; i++)
        wrong += many[i] != (char)(i % 251);
    wait(&status);
    printf("got %ld wrong %ld status %d\n", got, wrong, status);
    close(pair[1]);
    /* Signals end waits. */
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    struct sigaction action = {.sa_handler = nothing};
    sigaction(SIGUSR1, &action, NULL);
    pid_t self = getpid();
    if (fork() == 0) {
        nap(100), kill(self, SIGUSR1), nap(100), kill(self, SIGUSR1);
        nap(100), write(pair[1], "late", 4);
        _exit(0);
    }
    COUNT("broken off", read(pair[0], many, 4));
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, NULL);
    COUNT("gone on with", read(pair[0], many, 4));
    wait(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(read(pair[0], many, 4));
    nap(50), kill(child, SIGKILL), waitpid(child, &status, 0);
    printf("killed %d\n", status);
    close(pair[0]), close(pair[1]);
}

static void messages(int type, const char *text) {
    int pair[2];
    char bytes[8] = "";
    printf("-- %s\n", text);
    socketpair(AF_UNIX, type, 0, pair);
    bits("fresh", pair[0]);
    COUNT("one", send(pair[0], "abcdef", 6, 0));
    COUNT("two", send(pair[0], "gh", 2, MSG_EOR));
    COUNT("none", send(pair[0], "", 0, 0));
    int waiting = 0;
    ioctl(pair[1], FIONREAD, &waiting);
    printf("waiting %d\n", waiting);
    COUNT("look", recv(pair[1], bytes, 3, MSG_PEEK | MSG_TRUNC));
    take("cut", pair[1], 3, 0, 0);
    take("whole", pair[1], 9, 0, 0);
    take("empty", pair[1], 9, 0, 0);
    COUNT("no more", recv(pair[1], bytes, 3, MSG_DONTWAIT));
    COUNT("too long", send(pair[0], many, 900000, 0));
    int small = 1;
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    printf("least buffer %d\n", option(pair[0], SO_SNDBUF));
    COUNT("long", send(pair[0], many, 4576, MSG_DONTWAIT));
    COUNT("longer", send(pair[0], many, 4577, MSG_DONTWAIT));
    SAY("no room", send(pair[0], many, 4000, MSG_DONTWAIT));
    struct iovec two[2] = {{"ab", 2}, {"cd", 2}};
    COUNT("other way", writev(pair[1], two, 2));
    COUNT("as one", read(pair[0], bytes, 8));
    close(pair[1]);
    bits("closed", pair[0]);
    COUNT("send", send(pair[0], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
    COUNT("again", send(pair[0], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
    COUNT("receive", recv(pair[0], bytes, 8, MSG_DONTWAIT));
    close(pair[0]);
}

static void rights(void) {
    int pair[2], ends[2], first;
    char bytes[8] = "";
    printf("-- descriptors\n");
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    if (pipe(ends))
        return;
    int files[300];
    for (int i = 0; i < 300; i++)
        files[i] = ends[i % 2];
    COUNT("before", send(pair[0], "a", 1, 0));
    COUNT("give", give(pair[0], "bc", files + 1, 1, 0));
    COUNT("behind", send(pair[0], "d", 1, 0));
    first = take("look", pair[1], 9, 100, MSG_PEEK);
    close(first);
    first = take("take", pair[1], 9, 100, MSG_CMSG_CLOEXEC);
    printf("cloexec %d\n", fcntl(first, F_GETFD));
    write(first, "through", 7);
    COUNT("through", read(ends[0], bytes, 8));
    close(first);
    take("rest", pair[1], 9, 100, 0);
    give(pair[0], "e", files, 5, 0);
    close(take("little room", pair[1], 9, CMSG_LEN(8), 0));
    give(pair[0], "f", files, 2, 0);
    take("no room", pair[1], 9, 0, 0);
    give(pair[0], "g", files, 2, 0);
    COUNT("by read", read(pair[1], bytes, 8));
    COUNT("most", give(pair[0], "h", files, 253, 0));
    COUNT("too many", give(pair[0], "h", files, 254, 0));
    files[0] = 999;
    COUNT("bad", give(pair[0], "h", files, 1, 0));
    close(pair[0]), close(pair[1]);
    /* What was in a socket that is closed is closed. */
    close(ends[0]), close(ends[1]);
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    if (pipe(ends))
        return;
    COUNT("by datagram", give(pair[0], "x", ends + 1, 1, 0));
    close(ends[1]);
    COUNT("held", (fcntl(ends[0], F_SETFL, O_NONBLOCK), read(ends[0], bytes, 1)));
    close(pair[0]), close(pair[1]);
    COUNT("let go", read(ends[0], bytes, 1));
    close(ends[0]);
    /* A connection, over a connection. */
    int inner[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair), socketpair(AF_UNIX, SOCK_STREAM, 0, inner);
    COUNT("socket", give(pair[0], "s", inner + 1, 1, 0));
    close(inner[1]);
    COUNT("into it", write(inner[0], "deep", 4));
    first = take("socket", pair[1], 9, 100, 0);
    COUNT("out of it", read(first, bytes, 8));
    close(first), close(inner[0]);
    close(pair[0]), close(pair[1]);
}

static void senders(void) {
    int pair[2], on = 1;
    printf("-- senders\n");
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    struct ucred who;
    socklen_t length = sizeof who;
    getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &who, &length);
    printf("peer %d %d %d %d\n", who.pid == getpid(), who.uid, who.gid, length);
    send(pair[0], "before", 6, 0);
    setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    printf("passes %d\n", option(pair[1], SO_PASSCRED));
    send(pair[0], "after", 5, 0);
    take("one", pair[1], 20, 100, 0);
    take("other", pair[1], 20, 100, 0);
    if (fork() == 0) {
        send(pair[0], "child", 5, 0);
        _exit(0);
    }
    wait(NULL);
    send(pair[0], "self", 4, 0);
    take("child", pair[1], 20, 100, 0);
    int file = dup(0);
    give(pair[0], "+", &file, 1, 0);
    close(file);
    take("self", pair[1], 4, 100, 0);
    close(take("both", pair[1], 20, 100, 0));
    struct iovec piece = {"said", 4};
    char control[CMSG_SPACE(sizeof who)];
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET, part->cmsg_type = SCM_CREDENTIALS, part->cmsg_len = CMSG_LEN(sizeof who);
    who.pid = getpid(), who.uid = 0, who.gid = 0;
    memcpy(CMSG_DATA(part), &who, sizeof who);
    COUNT("said", sendmsg(pair[0], &message, 0));
    part->cmsg_len = 3;
    COUNT("wrong", sendmsg(pair[0], &message, 0));
    part->cmsg_len = CMSG_LEN(sizeof who), part->cmsg_type = 99;
    COUNT("odd", sendmsg(pair[0], &message, 0));
    take("said", pair[1], 20, 100, 0);
    take("little", (send(pair[0], "x", 1, 0), pair[1]), 20, 20, 0);
    close(pair[0]), close(pair[1]);
}

static void tell(const char *text, int result, struct sockaddr_un *of, socklen_t length) {
    if (result < 0) {
        printf("%s: %s\n", text, name(-1));
        return;
    }
    printf("%s: %d bytes family %d '", text, length, length ? of->sun_family : 0);
    for (size_t i = 2; i < length; i++)
        putchar(of->sun_path[i - 2] ? of->sun_path[i - 2] : '@');
    printf("'\n");
}

static void own_name(const char *text, int (*ask)(int, struct sockaddr *, socklen_t *), int file,
                     socklen_t room) {
    struct sockaddr_un told;
    socklen_t length = room;
    memset(&told, 0, sizeof told);
    int result = ask(file, (void *)&told, &length);
    printf("%d: ", length), tell(text, result, &told, length < room ? length : room);
}

static void names(const char *path, int type) {
    struct sockaddr_un own, told;
    socklen_t length = address(&own, path), room;
    char bytes[32] = "";
    int listener = socket(AF_UNIX, type, 0), client = socket(AF_UNIX, type, 0), server, other;
    printf("-- names %s\n", path[0] ? path : path + 1);
    bits("new", client);
    SAY("unbound", listen(listener, 1));
    SAY("nobody", connect(client, (void *)&own, length));
    SAY("bind", bind(listener, (void *)&own, length));
    if (!path[0])
        SAY("again", bind(listener, (void *)&own, length));
    SAY("taken", bind(client, (void *)&own, length));
    SAY("not listening", connect(client, (void *)&own, length));
    SAY("not accepting", accept(listener, NULL, NULL));
    own_name("own name", getsockname, listener, sizeof told);
    own_name("no name", getsockname, client, sizeof told);
    own_name("cut name", getsockname, listener, 4);
    own_name("no peer", getpeername, client, sizeof told);
    COUNT("unconnected", send(client, "x", 1, MSG_NOSIGNAL));
    COUNT("unconnected", recv(client, bytes, 1, MSG_DONTWAIT));
    SAY("listen", listen(listener, 0));
    printf("accepts %d %d\n", option(listener, SO_ACCEPTCONN), option(client, SO_ACCEPTCONN));
    fcntl(listener, F_SETFL, O_NONBLOCK);
    SAY("too early", accept(listener, NULL, NULL));
    bits("listening", listener);
    SAY("connect", connect(client, (void *)&own, length));
    bits("connected", client), bits("to accept", listener);
    COUNT("early", send(client, "early", 5, 0));
    other = socket(AF_UNIX, type | SOCK_NONBLOCK, 0);
    SAY("backlog", connect(other, (void *)&own, length));
    room = sizeof told, server = accept4(listener, (void *)&told, &room, SOCK_CLOEXEC | SOCK_NONBLOCK);
    tell("accepted", server, &told, room);
    printf("flags %d %x\n", fcntl(server, F_GETFD), fcntl(server, F_GETFL));
    own_name("server", getsockname, server, sizeof told);
    own_name("its peer", getpeername, client, sizeof told);
    room = sizeof told;
    COUNT("comes", recvfrom(server, bytes, 32, 0, (void *)&told, &room));
    tell("from", 0, &told, room);
    COUNT("nothing", recv(server, bytes, 32, 0));
    COUNT("to a name", sendto(client, "x", 1, 0, (void *)&own, length));
    SAY("connected", connect(client, (void *)&own, length));
    SAY("listen connected", listen(client, 1));
    struct ucred who;
    room = sizeof who, getsockopt(client, SOL_SOCKET, SO_PEERCRED, &who, &room);
    printf("listener is self %d\n", who.pid == getpid());
    SAY("room now", connect(other, (void *)&own, length));
    close(listener);
    bits("never accepted", other);
    COUNT("never accepted", recv(other, bytes, 1, 0));
    SAY("gone", connect(socket(AF_UNIX, type, 0), (void *)&own, length));
    if (path[0]) {
        struct stat of;
        SAY("stays", stat(path, &of));
        printf("mode %o\n", of.st_mode);
        SAY("open", open(path, O_RDWR));
        SAY("taken", bind(socket(AF_UNIX, type, 0), (void *)&own, length));
        SAY("unlink", unlink(path));
        SAY("none", connect(socket(AF_UNIX, type, 0), (void *)&own, length));
    }
    close(server), close(client), close(other);
}

static void datagrams(void) {
    struct sockaddr_un own, back, told;
    char bytes[32] = "";
    printf("-- datagrams with names\n");
    socklen_t length = address(&own, "\0a datagram's"), small = address(&back, "\0another"), room;
    int server = socket(AF_UNIX, SOCK_DGRAM, 0), client = socket(AF_UNIX, SOCK_DGRAM, 0);
    COUNT("nobody", sendto(client, "x", 1, 0, (void *)&own, length));
    COUNT("nowhere", send(client, "x", 1, 0));
    SAY("bind", bind(server, (void *)&own, length)), SAY("bind", bind(client, (void *)&back, small));
    SAY("listen", listen(server, 1)), SAY("accept", accept(server, NULL, NULL));
    COUNT("to it", sendto(client, "hello", 5, 0, (void *)&own, length));
    room = sizeof told;
    COUNT("comes", recvfrom(server, bytes, 32, 0, (void *)&told, &room));
    tell("from", 0, &told, room);
    int stream = socket(AF_UNIX, SOCK_STREAM, 0);
    SAY("wrong kind", connect(stream, (void *)&own, length));
    COUNT("stream to", sendto(stream, "x", 1, MSG_NOSIGNAL, (void *)&own, length));
    SAY("connect", connect(client, (void *)&own, length));
    bits("connected", client);
    COUNT("send", send(client, "a", 1, 0));
    SAY("shut", shutdown(server, SHUT_RD));
    COUNT("refused", send(client, "a", 1, MSG_NOSIGNAL));
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    SAY("no more", connect(client, &none, sizeof none));
    COUNT("unconnected", send(client, "a", 1, 0));
    COUNT("to itself", sendto(client, "me", 2, 0, (void *)&back, small));
    COUNT("comes", recv(client, bytes, 32, 0));
    /* Who is connected takes nothing from others. */
    int third = socket(AF_UNIX, SOCK_DGRAM, 0);
    SAY("connect", connect(client, (void *)&back, small));
    COUNT("not from others", sendto(third, "x", 1, 0, (void *)&back, small));
    close(server), close(client), close(third), close(stream);
    int numbered = socket(AF_UNIX, SOCK_DGRAM, 0);
    sa_family_t family = AF_UNIX;
    SAY("any name", bind(numbered, (void *)&family, sizeof family));
    room = sizeof told, getsockname(numbered, (void *)&told, &room);
    printf("%d bytes, abstract %d\n", room, told.sun_path[0] == 0);
    close(numbered);
}

static void mistakes(void) {
    struct sockaddr_un own;
    socklen_t length = address(&own, "\0x");
    int on = 1, file = socket(AF_UNIX, SOCK_STREAM, 0);
    printf("-- mistakes\n");
    SAY("family", socket(77, SOCK_STREAM, 0)), SAY("type", socket(AF_UNIX, 99, 0));
    SAY("flags", socket(AF_UNIX, SOCK_STREAM | 0x100000, 0));
    SAY("long", bind(file, (void *)&own, 200)), SAY("short", bind(file, (void *)&own, 1));
    SAY("negative", bind(file, (void *)&own, -1)), SAY("fault", bind(file, (void *)wrong, 20));
    own.sun_family = 9;
    SAY("family", bind(file, (void *)&own, length)), SAY("family", connect(file, (void *)&own, length));
    SAY("option", setsockopt(file, SOL_SOCKET, 999, &on, 4));
    SAY("option", getsockopt(file, SOL_SOCKET, 999, &on, &length));
    SAY("level", setsockopt(file, 77, SO_REUSEADDR, &on, 4));
    SAY("small", setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, 3));
    SAY("set type", setsockopt(file, SOL_SOCKET, SO_TYPE, &on, 4));
    SAY("reuse", setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, 4));
    SAY("linger", setsockopt(file, SOL_SOCKET, SO_LINGER, (int[2]){1, 5}, 8));
    printf("reuse %d\n", option(file, SO_REUSEADDR));
    SAY("accept flags", accept4(file, NULL, NULL, 1));
    struct msghdr message = {.msg_iovlen = 5000};
    SAY("pieces", sendmsg(file, &message, 0));
    SAY("fault", sendmsg(file, (void *)wrong, 0)), SAY("fault", recvmsg(file, (void *)wrong, 0));
    SAY("to nowhere", socketpair(AF_UNIX, SOCK_STREAM, 0, (int *)wrong));
    int next = dup(0);
    printf("left open %d\n", next - file);
    close(next), close(file);
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    write(pair[0], "kept", 4);
    COUNT("read fault", read(pair[1], (void *)wrong, 4));
    char bytes[8] = "";
    COUNT("kept", read(pair[1], bytes, 8));
    COUNT("write fault", write(pair[0], (void *)wrong, 4));
    close(pair[0]), close(pair[1]);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    umask(022);
    streams();
    flow();
    messages(SOCK_DGRAM, "datagrams"), messages(SOCK_SEQPACKET, "packets");
    rights();
    senders();
    names("\0abstract", SOCK_STREAM), names("\0packets", SOCK_SEQPACKET);
    names("/tmp/linux-sockets", SOCK_STREAM);
    datagrams();
    mistakes();
    return 0;
}
