/* sockets.h by POSIX. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "serve/sockets.h"

enum { MOST_WAITED = 64 };

/* No other thread starts programs meanwhile. */
static int kept_private(int number) {
    if (number < 0) return -1;
    if (fcntl(number, F_SETFD, FD_CLOEXEC) == 0 && fcntl(number, F_SETFL, O_NONBLOCK) == 0)
        return number;
    close(number);
    return -1;
}

int sockets_begin(void) { return 0; }

int socket_listen(int *port, int most) {
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)*port),
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t n = sizeof at;
    const int one = 1, number = kept_private(socket(AF_INET, SOCK_STREAM, 0));
    if (number < 0) return -1;
    if (setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        bind(number, (const struct sockaddr *)&at, n) == 0 && listen(number, most) == 0 &&
        getsockname(number, (struct sockaddr *)&at, &n) == 0) {
        *port = ntohs(at.sin_port);
        return number;
    }
    const int cause = errno;
    close(number);
    errno = cause;
    return -1;
}

int socket_accept(int listener) {
    const int number = kept_private(accept(listener, NULL, NULL));
#if defined(SO_NOSIGPIPE) /* where send has no MSG_NOSIGNAL */
    const int one = 1;
    if (number >= 0) setsockopt(number, SOL_SOCKET, SO_NOSIGPIPE, &one, sizeof one);
#endif
    return number;
}

void socket_close(int number) { close(number); }

int64_t socket_receive(int number, void *bytes, size_t n) {
    ssize_t got;
    do got = recv(number, bytes, n, 0);
    while (got < 0 && errno == EINTR);
    return got;
}

int64_t socket_send(int number, const void *bytes, size_t n) {
#if defined(MSG_NOSIGNAL)
    const int flags = MSG_NOSIGNAL;
#else
    const int flags = 0;
#endif
    ssize_t sent;
    do sent = send(number, bytes, n, flags);
    while (sent < 0 && errno == EINTR);
    return sent;
}

void socket_end_sending(int number) { shutdown(number, SHUT_WR); }

/* Bytes behind a request hide the end behind them where the system does not tell of it. */
#if defined(POLLRDHUP)
enum { HANGS_UP = POLLRDHUP };
bool socket_hung_up(int number) {
    struct pollfd polled = { .fd = number, .events = HANGS_UP };
    return poll(&polled, 1, 0) > 0;
}
#else
enum { HANGS_UP = 0 };
bool socket_hung_up(int number) {
    char byte;
    const ssize_t got = recv(number, &byte, 1, MSG_PEEK);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}
#endif

int socket_bell(int ends[2]) {
    ends[0] = ends[1] = -1;
    if (pipe(ends) != 0) return -1;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    return 0;
}

void socket_wake(const int ends[2]) {
    while (write(ends[1], "", 1) < 0 && errno == EINTR) {
    }
}

void socket_hush(const int ends[2]) {
    char byte;
    while (read(ends[0], &byte, 1) < 0 && errno == EINTR) {
    }
}

static short events_of(enum socket_event event) {
    return event == SOCKET_READS ? POLLIN : event == SOCKET_WRITES ? POLLOUT : HANGS_UP;
}

/* A signal that comes between the question and the waiting ends the waiting, too, by ppoll. */
void sockets_wait(struct socket_waited *list, int n, const int *stop) {
    struct pollfd polled[MOST_WAITED];
    sigset_t held, before;
    if (n > MOST_WAITED) return;
    for (int i = 0; i < n; i++)
        polled[i] = (struct pollfd){ .fd = list[i].number, .events = events_of(list[i].event) };
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &held, &before);
    int found = -1;
#if defined(__linux__)
    const struct timespec second = { .tv_sec = 1 };
    if (!*stop) found = ppoll(polled, (nfds_t)n, &second, &before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
#else /* at most a second late */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!*stop) found = poll(polled, (nfds_t)n, 1000);
#endif
    for (int i = 0; i < n; i++) list[i].met = found > 0 && polled[i].revents;
}
