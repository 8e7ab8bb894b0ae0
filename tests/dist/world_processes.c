/*
 * Ranks as processes: a socket for each pair of ranks. Each message is preceded by its length, so
 * that two ranks that disagree fail. See world.h.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dist/world.h"

typedef struct post {
    struct post *next;
    char *data;
    uint64_t bytes, header, done; /* done: of the header's and the data's bytes */
    qkvi_request *request;
} post;

typedef struct peer {
    int socket;
    post *out, *in;
} peer;

typedef struct process {
    qkvi_transport base;
    peer *peers;
} process;

/* ---- Progress -------------------------------------------------------------------------------- */

static void finish(post **list) {
    post *const p = *list;
    p->request->word[0]--;
    *list = p->next;
    free(p);
}

/* What is left of the header, or else of the data. */
static size_t rest_of(post *p, char **at) {
    const uint64_t header = sizeof p->header;
    if (p->done < header) {
        *at = (char *)&p->header + p->done;
        return header - p->done;
    }
    *at = p->data + (p->done - header);
    return p->bytes - (p->done - header);
}

/* One step of the first post of a list; *moved: something happened. */
static qkv_status step(int socket, post **list, bool out, bool *moved, qkv_error *error) {
    post *const p = *list;
    char *at;
    const size_t rest = rest_of(p, &at);
    const ssize_t n = rest == 0 ? 0
                      : out     ? send(socket, at, rest, MSG_NOSIGNAL | MSG_DONTWAIT)
                                : recv(socket, at, rest, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return QKV_OK;
    if (rest > 0 && n <= 0)
        return qkvi_error_set(error, QKV_ERR_IO, "a rank has gone: %s",
                              n < 0 ? strerror(errno) : "end of its messages");
    *moved = true;
    p->done += (uint64_t)n;
    if (p->done < sizeof p->header) return QKV_OK;
    if (p->header != p->bytes)
        return qkvi_error_set(error, QKV_ERR_IO, "a message has the wrong length");
    if (p->done == p->bytes + sizeof p->header) finish(list);
    return QKV_OK;
}

static qkv_status progress(process *w, bool *moved, qkv_error *error) {
    *moved = false;
    for (int rank = 0; rank < w->base.size; rank++) {
        peer *const p = &w->peers[rank];
        if (p->out) QKV_TRY(step(p->socket, &p->out, true, moved, error));
        if (p->in) QKV_TRY(step(p->socket, &p->in, false, moved, error));
    }
    return QKV_OK;
}

static void sleep_until_ready(process *w) {
    struct pollfd list[64];
    nfds_t n = 0;
    for (int rank = 0; rank < w->base.size; rank++) {
        const peer *const p = &w->peers[rank];
        const short events = (short)((p->out ? POLLOUT : 0) | (p->in ? POLLIN : 0));
        if (events) list[n++] = (struct pollfd){ p->socket, events, 0 };
    }
    poll(list, n, 1000);
}

/* ---- The table ------------------------------------------------------------------------------- */

static qkv_status enter(post **list, const void *data, size_t bytes, uint64_t header,
                        qkvi_request *request) {
    post *const p = malloc(sizeof *p);
    assert(p);
    *p = (post){ NULL, (char *)(uintptr_t)data, bytes, header, 0, request };
    request->word[0]++;
    while (*list) list = &(*list)->next;
    *list = p;
    return QKV_OK;
}

static qkv_status isend(qkvi_transport *t, const void *data, size_t bytes, int to,
                        qkvi_request *request, qkv_error *error) {
    (void)error;
    return enter(&((process *)t)->peers[to].out, data, bytes, bytes, request);
}

static qkv_status irecv(qkvi_transport *t, void *data, size_t bytes, int from,
                        qkvi_request *request, qkv_error *error) {
    (void)error;
    return enter(&((process *)t)->peers[from].in, data, bytes, 0, request);
}

static qkv_status test(qkvi_transport *t, qkvi_request *requests, int n, bool *done,
                       qkv_error *error) {
    bool moved;
    QKV_TRY(progress((process *)t, &moved, error));
    *done = world_all_done(requests, n);
    return QKV_OK;
}

static qkv_status wait_all(qkvi_transport *t, qkvi_request *requests, int n, qkv_error *error) {
    bool moved;
    while (!world_all_done(requests, n)) {
        QKV_TRY(progress((process *)t, &moved, error));
        if (!moved) sleep_until_ready((process *)t);
    }
    return QKV_OK;
}

/* ---- The world ------------------------------------------------------------------------------- */

/* Frees sockets, its copy of the caller's: a leak checker looks at each process when it exits. */
static void run_rank(int rank, int size, int (*sockets)[2], rank_main *main, void *user) {
    static const qkvi_transport_ops ops = { isend, irecv,    world_ibcast,
                                            test,  wait_all, world_allgather };
    process w = { { &ops, rank, size }, calloc((size_t)size, sizeof *w.peers) };
    assert(w.peers);
    for (int a = 0; a < size; a++)
        for (int b = a + 1; b < size; b++) {
            int *const pair = sockets[a * size + b];
            if (a == rank) w.peers[b].socket = pair[0];
            if (b == rank) w.peers[a].socket = pair[1];
            if (a != rank) close(pair[0]);
            if (b != rank) close(pair[1]);
        }
    free(sockets);
    const int result = main(&w.base, user);
    free(w.peers);
    exit(result);
}

int world_of_processes(int size, rank_main *main, void *user) {
    int(*const sockets)[2] = calloc((size_t)(size * size), sizeof *sockets);
    int failed = 0, status;
    assert(sockets && size <= 64);
    for (int a = 0; a < size; a++)
        for (int b = a + 1; b < size; b++)
            if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[a * size + b])) abort();
    for (int rank = 0; rank < size; rank++) {
        const pid_t pid = fork();
        if (pid < 0) abort();
        if (pid == 0) run_rank(rank, size, sockets, main, user);
    }
    for (int a = 0; a < size; a++)
        for (int b = a + 1; b < size; b++) {
            close(sockets[a * size + b][0]);
            close(sockets[a * size + b][1]);
        }
    for (int rank = 0; rank < size; rank++) {
        wait(&status);
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    free(sockets);
    return failed;
}
