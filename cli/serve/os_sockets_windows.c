/*
 * sockets.h by Winsock. A handle of the kernel has at most 32 bits that count, so a socket is an
 * int here, too. A bell is a pair of sockets, since pipes cannot be waited for together with them.
 */
#include <winsock2.h>
#include <ws2tcpip.h>

#include <errno.h>

#include "serve/sockets.h"

enum { MOST_WAITED = 64 };

static int failed(void) {
    const int code = WSAGetLastError();
    errno = code == WSAEWOULDBLOCK    ? EAGAIN
            : code == WSAEADDRINUSE   ? EADDRINUSE
            : code == WSAEACCES       ? EACCES
            : code == WSAECONNRESET   ? ECONNRESET
            : code == WSAECONNABORTED ? ECONNRESET
            : code == WSAEMFILE       ? EMFILE
                                      : EIO;
    return -1;
}

int sockets_begin(void) {
    WSADATA about;
    return WSAStartup(MAKEWORD(2, 2), &about) == 0 ? 0 : failed();
}

static int taken(SOCKET found, bool waits) {
    u_long is_on = !waits;
    if (found == INVALID_SOCKET) return failed();
    SetHandleInformation((HANDLE)found, HANDLE_FLAG_INHERIT, 0);
    if (ioctlsocket(found, (long)FIONBIO, &is_on) == 0) return (int)found;
    failed();
    closesocket(found);
    return -1;
}

/* SO_REUSEADDR would let another program have the same port here. */
int socket_listen(int *port, int most) {
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((u_short)*port) };
    int n = sizeof at;
    const int number = taken(socket(AF_INET, SOCK_STREAM, 0), false), one = 1;
    if (number < 0) return -1;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (setsockopt((SOCKET)number, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, (const char *)&one,
                   sizeof one) == 0 &&
        bind((SOCKET)number, (const struct sockaddr *)&at, n) == 0 &&
        listen((SOCKET)number, most) == 0 &&
        getsockname((SOCKET)number, (struct sockaddr *)&at, &n) == 0) {
        *port = ntohs(at.sin_port);
        return number;
    }
    failed();
    closesocket((SOCKET)number);
    return -1;
}

int socket_accept(int listener) { return taken(accept((SOCKET)listener, NULL, NULL), false); }
void socket_close(int number) { closesocket((SOCKET)number); }

static int part(size_t n) { return n < 1 << 20 ? (int)n : 1 << 20; }

int64_t socket_receive(int number, void *bytes, size_t n) {
    const int got = recv((SOCKET)number, bytes, part(n), 0);
    return got >= 0 ? got : failed();
}
int64_t socket_send(int number, const void *bytes, size_t n) {
    const int sent = send((SOCKET)number, bytes, part(n), 0);
    return sent >= 0 ? sent : failed();
}
void socket_end_sending(int number) { shutdown((SOCKET)number, SD_SEND); }

/* Bytes behind a request hide the end behind them. */
bool socket_hung_up(int number) {
    char byte;
    const int got = recv((SOCKET)number, &byte, 1, MSG_PEEK);
    return got == 0 || (got < 0 && WSAGetLastError() != WSAEWOULDBLOCK);
}

int socket_bell(int ends[2]) {
    struct sockaddr_in at = { .sin_family = AF_INET };
    int port = 0;
    const int listener = socket_listen(&port, 1);
    ends[0] = ends[1] = -1;
    if (listener < 0) return -1;
    at.sin_port = htons((u_short)port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ends[1] = taken(socket(AF_INET, SOCK_STREAM, 0), true);
    if (ends[1] >= 0 && connect((SOCKET)ends[1], (const struct sockaddr *)&at, sizeof at) == 0) {
        u_long waits = 0;
        ioctlsocket((SOCKET)listener, (long)FIONBIO, &waits);
        ends[0] = taken(accept((SOCKET)listener, NULL, NULL), true);
    }
    socket_close(listener);
    if (ends[0] >= 0) return 0;
    failed();
    if (ends[1] >= 0) socket_close(ends[1]);
    return -1;
}

void socket_wake(const int ends[2]) { send((SOCKET)ends[1], "", 1, 0); }
void socket_hush(const int ends[2]) {
    char byte;
    recv((SOCKET)ends[0], &byte, 1, 0);
}

/* Ctrl-C sets *stop on another thread, and ends no waiting: it may be a second late. */
void sockets_wait(struct socket_waited *list, int n, const int *stop) {
    WSAPOLLFD polled[MOST_WAITED];
    int places[MOST_WAITED], n_polled = 0;
    for (int i = 0; i < n && n_polled < MOST_WAITED; i++) {
        list[i].met = false;
        if (list[i].number < 0) continue;
        places[n_polled] = i;
        polled[n_polled++] = (WSAPOLLFD){ .fd = (SOCKET)list[i].number,
                                          .events = list[i].event == SOCKET_READS    ? POLLRDNORM
                                                    : list[i].event == SOCKET_WRITES ? POLLWRNORM
                                                                                     : 0 };
    }
    if (*stop || WSAPoll(polled, (ULONG)n_polled, 1000) <= 0) return;
    for (int i = 0; i < n_polled; i++) list[places[i]].met = polled[i].revents;
}
