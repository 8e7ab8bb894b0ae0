/*
 * One connection: reads a request, writes an answer, and waits a little for the client to close it;
 * otherwise bytes that the client still sends would reset the connection before it has read the
 * answer. Each phase has a time limit.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "serve/serve.h"
#include "serve/sockets.h"

static const double read_seconds = 5, write_seconds = 60, end_seconds = 1;

void connection_begin(struct connection *connection, int fd) {
    *connection = (struct connection){ .phase = CONNECTION_READS,
                                       .fd = fd,
                                       .until = cli_seconds() + read_seconds };
}

void connection_close(struct connection *connection) {
    if (connection->phase == CONNECTION_FREE) return;
    socket_close(connection->fd);
    free(connection->in);
    free(connection->out);
    *connection = (struct connection){ .phase = CONNECTION_FREE };
}

/* ---- Answers --------------------------------------------------------------------------------- */

static const char headers[] = "HTTP/1.1 %d %s\r\n"
                              "Content-Type: %s\r\n"
                              "Content-Length: %zu\r\n"
                              "Content-Security-Policy: %s\r\n"
                              "%s"
                              "X-Content-Type-Options: nosniff\r\n"
                              "Referrer-Policy: same-origin\r\n"
                              "Cross-Origin-Opener-Policy: same-origin\r\n"
                              "Cross-Origin-Resource-Policy: same-origin\r\n"
                              "Cache-Control: no-store\r\n"
                              "Connection: close\r\n\r\n";

void connection_answer(struct connection *connection, struct serve_answer *answer) {
    enum { HEAD = 1500 };
    const char *const allow = answer->status == 405 ? "Allow: GET, POST\r\n" : "";
    char *const out = malloc(HEAD + answer->n);
    const int n = out ? snprintf(out, HEAD, headers, answer->status, http_reason(answer->status),
                                 answer->type, answer->n, answer->policy, allow)
                      : -1;
    free(connection->in);
    connection->in = NULL;
    connection->out = out;
    if (n > 0 && n < HEAD) {
        if (answer->n > 0) memcpy(out + n, answer->bytes, answer->n);
        connection->n_out = (size_t)n + answer->n;
        connection->phase = CONNECTION_WRITES;
        connection->until = cli_seconds() + write_seconds;
    } else {
        connection_close(connection);
    }
    free(answer->bytes);
}

void serve_refuse(struct serve_answer *answer, int status) {
    free(answer->bytes);
    *answer = (struct serve_answer){ .status = status,
                                     .type = "text/plain; charset=utf-8",
                                     .policy = "default-src 'none'; frame-ancestors 'self'" };
    answer->bytes = malloc(80);
    if (answer->bytes)
        answer->n = (size_t)snprintf(answer->bytes, 80, "%d %s\n", status, http_reason(status));
}

static void refuse(struct connection *connection, int status) {
    struct serve_answer answer = { .status = 0 };
    serve_refuse(&answer, status);
    connection_answer(connection, &answer);
}

/* ---- What is wrong with a request ------------------------------------------------------------ */

/* Host, or the end of an Origin: a port that is 80 is not named. */
static bool is_here(const struct server *server, struct http_text host) {
    static const char *const names[] = { "127.0.0.1", "localhost" };
    for (int i = 0; i < CLI_COUNT(names); i++) {
        char name[32];
        snprintf(name, sizeof name, "%s:%d", names[i], server->port);
        if (http_is(host, name) || (server->port == 80 && http_is(host, names[i]))) return true;
    }
    return false;
}

/* A page of this server, as the browser that shows it calls it. */
static bool is_own(struct http_text origin, struct http_text host) {
    static const char scheme[] = "http://";
    const size_t n = sizeof scheme - 1;
    return origin.at && origin.n == n + host.n && memcmp(origin.at, scheme, n) == 0 &&
           memcmp(origin.at + n, host.at, host.n) == 0;
}

/* "/WORD/" and what follows. */
static bool has_token(const struct server *server, struct http_text path) {
    return path.n >= TOKEN_LETTERS + 2 && path.at[TOKEN_LETTERS + 1] == '/' &&
           http_same_secret(path.at + 1, server->token, TOKEN_LETTERS);
}

/* Of lines that are whole; 0: nothing. */
static int wrong_with(const struct server *server, const struct http_request *request) {
    if (!is_here(server, request->host) || !has_token(server, request->path)) return 403;
    return request->is_post && !is_own(request->origin, request->host) ? 403 : 0;
}

/* ---- Phases ---------------------------------------------------------------------------------- */

static void answer_whole(struct connection *connection, struct server *server,
                         const struct http_request *request) {
    const size_t before = TOKEN_LETTERS + 2;
    const struct http_text name = { request->path.at + before, request->path.n - before };
    struct serve_answer answer = { .status = 0 };
    if (server->site->answer(server->site->user, request, name, &answer)) {
        connection_answer(connection, &answer);
    } else {
        connection->phase = CONNECTION_WAITS;
        connection->until = INFINITY;
        connection->number = server->n_waited++;
    }
}

/* After some bytes came: is it a request by now? */
static void look_at(struct connection *connection, struct server *server) {
    struct http_request request;
    const enum http_state state = http_parse(connection->in, connection->n_in, &request);
    if (state == HTTP_REFUSED) {
        refuse(connection, request.refused);
        return;
    }
    if (state == HTTP_MORE) return;
    const int wrong = connection->judged ? 0 : wrong_with(server, &request);
    connection->judged = true;
    if (wrong)
        refuse(connection, wrong);
    else if (state == HTTP_WHOLE)
        answer_whole(connection, server, &request);
}

static bool make_room(struct connection *connection) {
    enum { PART = 16384 };
    if (connection->room - connection->n_in >= PART) return true;
    const size_t room = 2 * connection->room + PART;
    char *const more = room <= 2 * (HTTP_MOST + PART) ? realloc(connection->in, room) : NULL;
    if (!more) return false;
    connection->in = more;
    connection->room = room;
    return true;
}

static void read_some(struct connection *connection, struct server *server) {
    while (connection->phase == CONNECTION_READS) {
        if (!make_room(connection)) {
            connection_close(connection);
            return;
        }
        const int64_t n = socket_receive(connection->fd, connection->in + connection->n_in,
                                         connection->room - connection->n_in);
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) {
            connection_close(connection);
            return;
        }
        connection->n_in += (size_t)n;
        look_at(connection, server);
    }
}

static void write_some(struct connection *connection) {
    while (connection->n_sent < connection->n_out) {
        const int64_t n = socket_send(connection->fd, connection->out + connection->n_sent,
                                      connection->n_out - connection->n_sent);
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0) {
            connection_close(connection);
            return;
        }
        connection->n_sent += (size_t)n;
    }
    socket_end_sending(connection->fd);
    connection->phase = CONNECTION_ENDS;
    connection->until = cli_seconds() + end_seconds;
}

/* What comes after an answer is not read; its end ends the connection. */
static void drop_some(struct connection *connection) {
    char bytes[4096];
    int64_t n;
    do n = socket_receive(connection->fd, bytes, sizeof bytes);
    while (n > 0 && cli_seconds() < connection->until);
    if (n >= 0 || errno != EAGAIN) connection_close(connection);
}

bool connection_waits(struct connection *connection) {
    if (connection->phase != CONNECTION_WAITS) return false;
    if (socket_hung_up(connection->fd)) connection_close(connection);
    return connection->phase == CONNECTION_WAITS;
}

void connection_step(struct connection *connection, struct server *server) {
    if (connection_waits(connection)) return;
    if (connection->phase == CONNECTION_READS) read_some(connection, server);
    if (connection->phase == CONNECTION_WRITES) write_some(connection);
    if (connection->phase == CONNECTION_ENDS) drop_some(connection);
    if (connection->phase == CONNECTION_FREE || cli_seconds() < connection->until) return;
    /* a request that stopped in its middle is told so */
    if (connection->phase == CONNECTION_READS && connection->n_in > 0)
        refuse(connection, 408);
    else
        connection_close(connection);
}
