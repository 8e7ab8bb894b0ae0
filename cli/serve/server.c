/* The address and the loop of a server: see serve.h. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/serve.h"

void html_put(FILE *out, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        switch (bytes[i]) {
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '&': fputs("&amp;", out); break;
        case '"': fputs("&quot;", out); break;
        case '\'': fputs("&#39;", out); break;
        default: fputc(bytes[i], out);
        }
    }
}

/* A random word, which cannot be guessed. */
static int make_token(struct server *server) {
    unsigned char bytes[TOKEN_LETTERS / 2];
    size_t n = 0;
    while (n < sizeof bytes) {
        const ssize_t more = getrandom(bytes + n, sizeof bytes - n, 0);
        if (more < 0 && errno != EINTR)
            return cli_fail("--serve: no random numbers: %s", strerror(errno));
        if (more > 0) n += (size_t)more;
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(server->token + 2 * i, 3, "%02x", (unsigned)bytes[i]);
    return EXIT_OK;
}

static int listen_here(struct server *server) {
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)server->site->port),
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t n = sizeof at;
    const int one = 1;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool listens =
        server->listener >= 0 &&
        setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        bind(server->listener, (const struct sockaddr *)&at, n) == 0 &&
        listen(server->listener, SERVE_MOST) == 0 &&
        getsockname(server->listener, (struct sockaddr *)&at, &n) == 0;
    if (!listens && server->site->port)
        return cli_fail("--port: 127.0.0.1:%d: %s", server->site->port, strerror(errno));
    if (!listens) return cli_fail("--serve: 127.0.0.1: %s", strerror(errno));
    server->port = ntohs(at.sin_port);
    return EXIT_OK;
}

/* Waits until something can be done; a signal that comes before ends the waiting, too. */
static void wait_for(struct pollfd *list, nfds_t n) {
    const struct timespec second = { .tv_sec = 1 };
    sigset_t stop, before;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &stop, &before);
    if (!cli_cancelled && ppoll(list, n, &second, &before) < 0)
        for (nfds_t i = 0; i < n; i++) list[i].revents = 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void accept_one(const struct server *server, struct connection *list) {
    int place = 0;
    while (place < SERVE_MOST && list[place].phase != CONNECTION_FREE) place++;
    if (place == SERVE_MOST) return;
    const int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) connection_begin(&list[place], fd);
}

/* The one that waits longest, if the worker is free for it. */
static void compute_next(struct worker *worker, struct connection *list) {
    struct connection *next = NULL;
    for (int i = 0; i < SERVE_MOST && !worker->busy; i++)
        if (connection_waits(&list[i]) && (!next || list[i].number < next->number)) next = &list[i];
    if (next && !worker_begin(worker, next)) {
        struct serve_answer answer = { .status = 0 };
        serve_refuse(&answer, 500);
        connection_answer(next, &answer);
    }
}

static short events_of(enum connection_phase phase) {
    if (phase == CONNECTION_WAITS) return POLLRDHUP;
    return phase == CONNECTION_WRITES ? POLLOUT : POLLIN;
}

/* Once: all connections that have something, and a new one if there is room. */
static void turn(struct server *server, struct worker *worker, struct connection *list) {
    enum { LISTENER = SERVE_MOST, WORKER, POLLED };
    struct pollfd polled[POLLED] = { { .fd = -1 } };
    bool room = false;
    for (int i = 0; i < SERVE_MOST; i++) {
        const enum connection_phase phase = list[i].phase;
        polled[i] = (struct pollfd){ .fd = phase == CONNECTION_FREE ? -1 : list[i].fd,
                                     .events = events_of(phase) };
        room = room || phase == CONNECTION_FREE;
    }
    polled[LISTENER] = (struct pollfd){ .fd = room ? server->listener : -1, .events = POLLIN };
    polled[WORKER] = (struct pollfd){ .fd = worker->ends[0], .events = POLLIN };
    wait_for(polled, POLLED);
    for (int i = 0; i < SERVE_MOST && !cli_cancelled; i++) {
        if (list[i].phase != CONNECTION_FREE) connection_step(&list[i], server);
        if (list[i].phase == CONNECTION_FREE) worker_forget(worker, &list[i]);
    }
    if (!cli_cancelled && polled[WORKER].revents) worker_end(worker);
    if (!cli_cancelled && polled[LISTENER].revents) accept_one(server, list);
    if (!cli_cancelled) compute_next(worker, list);
}

int serve(const struct serve_site *site) {
    struct server server = { .site = site, .listener = -1 };
    struct connection list[SERVE_MOST] = { { .phase = CONNECTION_FREE } };
    struct worker worker;
    if (!worker_open(&worker, site)) return cli_fail("--serve: %s", strerror(errno));
    int code = make_token(&server);
    if (code == EXIT_OK) code = listen_here(&server);
    if (code == EXIT_OK) {
        printf("http://127.0.0.1:%d/%s/\n", server.port, server.token);
        if (!cli_flush()) code = EXIT_FAILED;
    }
    if (code == EXIT_OK)
        cli_note(site->quiet, "qkv: open this address in a browser; Ctrl-C ends it");
    while (code == EXIT_OK && !cli_cancelled) turn(&server, &worker, list);
    worker_close(&worker);
    for (int i = 0; i < SERVE_MOST; i++) connection_close(&list[i]);
    if (server.listener >= 0) close(server.listener);
    return code;
}
