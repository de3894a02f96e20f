// Sockets of IPv4: a program that is its own peer, by the loopback address, and says what is not
// as on Linux.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAY(is_so)                                                                                 \
    do {                                                                                           \
        if (!(is_so)) {                                                                            \
            printf("line %d: not so: %s (errno %d)\n", __LINE__, #is_so, errno);                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define FAILS(call, why)                                                                           \
    do {                                                                                           \
        errno = 0;                                                                                 \
        long result = (long)(call);                                                                \
        if (result != -1 || errno != (why)) {                                                      \
            printf("line %d: %s gives %ld, errno %d\n", __LINE__, #call, result, errno);           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static struct sockaddr_in at(const char *host, int port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, host, &name.sin_addr);
    return name;
}

static int tcp(int flags) {
    int s = socket(AF_INET, SOCK_STREAM | flags, 0);
    SAY(s >= 0);
    return s;
}

static int to(int s, const char *host, int port) {
    struct sockaddr_in name = at(host, port);
    return connect(s, (struct sockaddr *)&name, sizeof name);
}

static int put(int s, const char *host, int port) {
    struct sockaddr_in name = at(host, port);
    return bind(s, (struct sockaddr *)&name, sizeof name);
}

static int port_of(int s) {
    struct sockaddr_in name;
    socklen_t length = sizeof name;
    SAY(getsockname(s, (struct sockaddr *)&name, &length) == 0 && length == sizeof name);
    return ntohs(name.sin_port);
}

static int polled(int s, int events, int milliseconds) {
    struct pollfd entry = {.fd = s, .events = events};
    SAY(poll(&entry, 1, milliseconds) >= 0);
    return entry.revents;
}

static int error_of(int s) {
    int error = -1;
    socklen_t length = sizeof error;
    SAY(getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &length) == 0);
    return error;
}

static int listener(int *port) {
    int s = tcp(0);
    SAY(put(s, "127.0.0.1", 0) == 0);
    *port = port_of(s);
    SAY(*port > 0);
    SAY(listen(s, 5) == 0);
    SAY(port_of(s) == *port);
    return s;
}

// Two ends of a connection.
static void pair(int ends[2]) {
    int port, l = listener(&port);
    ends[0] = tcp(0);
    SAY(to(ends[0], "127.0.0.1", port) == 0);
    struct sockaddr_in peer;
    socklen_t length = sizeof peer;
    ends[1] = accept(l, (struct sockaddr *)&peer, &length);
    SAY(ends[1] >= 0 && ntohs(peer.sin_port) == port_of(ends[0]));
    SAY(peer.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    close(l);
}

static void wrong_calls(void) {
    int s = tcp(0);
    char byte = 'x';
    FAILS(recv(s, &byte, 1, 0), ENOTCONN);
    FAILS(send(s, &byte, 1, MSG_NOSIGNAL), EPIPE);
    FAILS(accept(s, NULL, NULL), EINVAL);
    FAILS(shutdown(s, SHUT_WR), ENOTCONN);
    FAILS(to(s, "127.0.0.1", 1), ECONNREFUSED);
    FAILS(put(s, "192.0.2.1", 80), EADDRNOTAVAIL);
    FAILS(socket(AF_INET, 77, 0), EINVAL);
    FAILS(socket(77, SOCK_STREAM, 0), EAFNOSUPPORT);
    FAILS(accept(0, NULL, NULL), ENOTSOCK);
    struct sockaddr_in name = at("127.0.0.1", 1);
    FAILS(connect(s, (struct sockaddr *)&name, 3), EINVAL);
    FAILS(connect(s, (struct sockaddr *)8, sizeof name), EFAULT);
    struct stat told;
    SAY(fstat(s, &told) == 0 && S_ISSOCK(told.st_mode));
    FAILS(lseek(s, 0, SEEK_SET), ESPIPE);
    close(s);
    FAILS(listen(s, 1), EBADF);
}

static void names_and_ports(void) {
    int port, l = listener(&port), second = tcp(0);
    FAILS(put(second, "127.0.0.1", port), EADDRINUSE);
    FAILS(put(second, "0.0.0.0", port), EADDRINUSE);
    close(l);
    SAY(put(second, "127.0.0.1", port) == 0);
    FAILS(put(second, "127.0.0.1", port), EINVAL);
    close(second);
    int ends[2];
    pair(ends);
    struct sockaddr_in name;
    socklen_t length = sizeof name;
    SAY(getpeername(ends[0], (struct sockaddr *)&name, &length) == 0);
    SAY(ntohs(name.sin_port) == port_of(ends[1]));
    FAILS(to(ends[0], "127.0.0.1", 1), EISCONN);
    close(ends[0]);
    close(ends[1]);
}

static void ends_and_errors(void) {
    int ends[2];
    char room[8];
    pair(ends);
    SAY(polled(ends[0], POLLIN | POLLOUT, 0) == POLLOUT);
    SAY(write(ends[1], "abc", 3) == 3);
    SAY(polled(ends[0], POLLIN, 5000) == POLLIN);
    SAY(recv(ends[0], room, 8, MSG_PEEK) == 3 && recv(ends[0], room, 2, 0) == 2);
    SAY(read(ends[0], room, 8) == 1 && room[0] == 'c');
    FAILS(recv(ends[0], room, 8, MSG_DONTWAIT), EAGAIN);
    // One way is closed, and the other one goes on.
    SAY(shutdown(ends[1], SHUT_WR) == 0);
    SAY(read(ends[0], room, 8) == 0 && read(ends[0], room, 8) == 0);
    FAILS(send(ends[1], "x", 1, MSG_NOSIGNAL), EPIPE);
    SAY(write(ends[0], "de", 2) == 2 && read(ends[1], room, 8) == 2);
    close(ends[0]);
    SAY(read(ends[1], room, 8) == 0);
    close(ends[1]);
    // A close with something unread resets the connection.
    pair(ends);
    SAY(write(ends[1], "unread", 6) == 6);
    SAY(polled(ends[0], POLLIN, 5000) == POLLIN);
    close(ends[0]);
    SAY(polled(ends[1], POLLIN, 5000) & POLLIN);
    int got = read(ends[1], room, 8);
    SAY(got == -1 && errno == ECONNRESET);
    SAY(read(ends[1], room, 8) == 0);
    FAILS(send(ends[1], "x", 1, MSG_NOSIGNAL), EPIPE);
    signal(SIGPIPE, SIG_IGN);
    FAILS(write(ends[1], "x", 1), EPIPE);
    close(ends[1]);
}

static void without_waiting(void) {
    int port, l = listener(&port);
    SAY(fcntl(l, F_SETFL, O_NONBLOCK) == 0 && (fcntl(l, F_GETFL) & O_NONBLOCK));
    FAILS(accept(l, NULL, NULL), EAGAIN);
    int s = tcp(SOCK_NONBLOCK);
    int begun = to(s, "127.0.0.1", port);
    SAY(begun == 0 || errno == EINPROGRESS);
    SAY(polled(s, POLLOUT, 5000) == POLLOUT && error_of(s) == 0);
    SAY(polled(l, POLLIN, 5000) == POLLIN);
    int other = accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    SAY(other >= 0 && (fcntl(other, F_GETFL) & O_NONBLOCK) && fcntl(other, F_GETFD) == FD_CLOEXEC);
    char room[4096];
    memset(room, 'x', sizeof room);
    FAILS(read(other, room, 1), EAGAIN);
    long sent = 0, got = 0, more;
    while ((more = write(s, room, sizeof room)) > 0)
        sent += more;
    SAY(errno == EAGAIN && sent > 10000);
    while (got < sent) {
        SAY(polled(other, POLLIN, 5000) & POLLIN);
        while ((more = read(other, room, sizeof room)) > 0)
            got += more;
    }
    SAY(got == sent && polled(s, POLLOUT, 5000) == POLLOUT);
    int on = 1;
    SAY(setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
    close(s);
    close(other);
    close(l);
    // Nobody listens there now.
    s = tcp(SOCK_NONBLOCK);
    begun = to(s, "127.0.0.1", port);
    SAY(begun == -1 && (errno == EINPROGRESS || errno == ECONNREFUSED));
    if (errno == EINPROGRESS) {
        SAY(polled(s, POLLOUT, 5000) & POLLERR);
        SAY(error_of(s) == ECONNREFUSED && error_of(s) == 0);
    }
    close(s);
}

static void handler(int signal) { (void)signal; }

static void broken_off(void) {
    int port, l = listener(&port);
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGALRM, &action, NULL);
    alarm(1);
    FAILS(accept(l, NULL, NULL), EINTR);
    close(l);
}

#define MUCH (3 << 20)
static void *pump(void *end) {
    char *bytes = malloc(MUCH);
    for (long i = 0; i < MUCH; i++)
        bytes[i] = i * 7 + i / 251;
    SAY(write((long)end, bytes, MUCH) == MUCH);
    SAY(shutdown((long)end, SHUT_WR) == 0);
    free(bytes);
    return NULL;
}

static void much(void) {
    int ends[2];
    pthread_t thread;
    pair(ends);
    SAY(pthread_create(&thread, NULL, pump, (void *)(long)ends[0]) == 0);
    static unsigned char room[10000];
    long got = 0, more;
    while ((more = read(ends[1], room, sizeof room)) > 0)
        for (long i = 0; i < more; i++, got++)
            SAY(room[i] == (unsigned char)(got * 7 + got / 251));
    SAY(more == 0 && got == MUCH);
    pthread_join(thread, NULL);
    close(ends[0]);
    close(ends[1]);
}

// Gives back what each of `count` peers sends, at `port` of all addresses.
static void serve(int port, int count) {
    int l = tcp(0), on = 1;
    setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    SAY(put(l, "0.0.0.0", port) == 0 && listen(l, 16) == 0);
    printf("listening\n");
    fflush(stdout);
    while (count-- > 0) {
        char room[8192];
        int s = accept(l, NULL, NULL), got;
        SAY(s >= 0);
        while ((got = read(s, room, sizeof room)) > 0)
            if (write(s, room, got) != got)
                break;
        close(s);
    }
}

int main(int count, char **words) {
    if (count > 2) {
        serve(atoi(words[1]), atoi(words[2]));
        return 0;
    }
    wrong_calls();
    names_and_ports();
    ends_and_errors();
    without_waiting();
    broken_off();
    much();
    // None is left behind: more of them, one after the other, than there may be at once.
    for (int i = 0; i < 300; i++) {
        int ends[2];
        pair(ends);
        close(ends[i & 1]);
        close(ends[~i & 1]);
    }
    printf("as on Linux\n");
    return 0;
}
