/*
 * Sockets of 127.0.0.1, which never block, and waiting for them. Only os_sockets_*.c know systems.
 * Where a call fails it returns -1, and errno says why.
 */
#ifndef QKV_CLI_SERVE_SOCKETS_H
#define QKV_CLI_SERVE_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Before any other call. */
int sockets_begin(void);

/* A socket that listens, for at most `most` at once that wait. *port 0: any, which is told. */
int socket_listen(int *port, int most);
int socket_accept(int listener);
void socket_close(int number);

/* As many bytes as there are; EAGAIN: none yet. 0: the other side has sent all. */
int64_t socket_receive(int number, void *bytes, size_t n);
/* As many bytes as have room; EAGAIN: none yet. */
int64_t socket_send(int number, const void *bytes, size_t n);
void socket_end_sending(int number);
/* The other side has closed it, or its direction. */
bool socket_hung_up(int number);

/* What a thread says to another one that waits: ends[0] can be read once socket_wake was called. */
int socket_bell(int ends[2]);
void socket_wake(const int ends[2]);
void socket_hush(const int ends[2]);

enum socket_event { SOCKET_NOTHING, SOCKET_READS, SOCKET_WRITES, SOCKET_HANGS_UP };

/* number -1: left out. */
struct socket_waited {
    int number;
    enum socket_event event;
    bool met; /* also where there was an error */
};
/* Waits for one of them, for a second at most, and not if *stop is or becomes set by a signal. */
void sockets_wait(struct socket_waited *list, int n, const int *stop);

#endif
