/* The address and the loop of a server: see serve.h. */
#include <errno.h>

#include "common/os.h"
#include "core/os.h"
#include "serve/serve.h"
#include "serve/sockets.h"

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

static int failed(const char *what) {
    char reason[128];
    return cli_fail("%s: %s", what, qkvi_os_reason(errno, reason, sizeof reason));
}

/* A random word, which cannot be guessed. */
static int make_token(struct server *server) {
    unsigned char bytes[TOKEN_LETTERS / 2];
    if (os_random(bytes, sizeof bytes) != 0) return failed("--serve: no random numbers");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(server->token + 2 * i, 3, "%02x", (unsigned)bytes[i]);
    return EXIT_OK;
}

static int listen_here(struct server *server) {
    server->port = server->site->port;
    server->listener = socket_listen(&server->port, SERVE_MOST);
    if (server->listener >= 0) return EXIT_OK;
    char reason[128];
    const char *const why = qkvi_os_reason(errno, reason, sizeof reason);
    if (!server->port) return cli_fail("--serve: 127.0.0.1: %s", why);
    return cli_fail("--port: 127.0.0.1:%d: %s", server->port, why);
}

static void accept_one(const struct server *server, struct connection *list) {
    int place = 0;
    while (place < SERVE_MOST && list[place].phase != CONNECTION_FREE) place++;
    if (place == SERVE_MOST) return;
    const int fd = socket_accept(server->listener);
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

static enum socket_event event_of(enum connection_phase phase) {
    if (phase == CONNECTION_WAITS) return SOCKET_HANGS_UP;
    return phase == CONNECTION_WRITES ? SOCKET_WRITES : SOCKET_READS;
}

/* Once: all connections that have something, and a new one if there is room. */
static void turn(struct server *server, struct worker *worker, struct connection *list) {
    enum { LISTENER = SERVE_MOST, WORKER, WAITED };
    struct socket_waited waited[WAITED] = { { .number = -1 } };
    bool room = false;
    for (int i = 0; i < SERVE_MOST; i++) {
        const enum connection_phase phase = list[i].phase;
        waited[i] = (struct socket_waited){ .number = phase == CONNECTION_FREE ? -1 : list[i].fd,
                                            .event = event_of(phase) };
        room = room || phase == CONNECTION_FREE;
    }
    waited[LISTENER] = (struct socket_waited){ room ? server->listener : -1, SOCKET_READS, false };
    waited[WORKER] = (struct socket_waited){ worker->ends[0], SOCKET_READS, false };
    sockets_wait(waited, WAITED, &cli_cancelled);
    for (int i = 0; i < SERVE_MOST && !cli_cancelled; i++) {
        if (list[i].phase != CONNECTION_FREE) connection_step(&list[i], server);
        if (list[i].phase == CONNECTION_FREE) worker_forget(worker, &list[i]);
    }
    if (!cli_cancelled && waited[WORKER].met) worker_end(worker);
    if (!cli_cancelled && waited[LISTENER].met) accept_one(server, list);
    if (!cli_cancelled) compute_next(worker, list);
}

int serve(const struct serve_site *site) {
    struct server server = { .site = site, .listener = -1 };
    struct connection list[SERVE_MOST] = { { .phase = CONNECTION_FREE } };
    struct worker worker;
    if (sockets_begin() != 0 || !worker_open(&worker, site)) return failed("--serve");
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
    if (server.listener >= 0) socket_close(server.listener);
    return code;
}
