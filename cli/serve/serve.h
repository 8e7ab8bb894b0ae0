/*
 * A server of HTTP/1.1 for one person: on 127.0.0.1 only, and only for who knows its address, which
 * has a random word in it. What is there is answered at once; what must be computed waits for a
 * thread that does one after the other, and is dropped if the other side ends before its turn.
 *
 * A request is refused before its body is read unless its Host is this server (a name elsewhere may
 * lead here), its path has the word, and, of a POST, its Origin is a page of this server.
 */
#ifndef QKV_CLI_SERVE_SERVE_H
#define QKV_CLI_SERVE_SERVE_H

#include <pthread.h>

#include "common/cli.h"
#include "serve/http.h"

/* Bytes are malloc's, and freed by the server. A policy is a Content-Security-Policy. */
struct serve_answer {
    int status;
    const char *type, *policy;
    char *bytes;
    size_t n;
};

struct serve_site {
    int port; /* 0: any that is free */
    bool quiet;
    /*
     * Answers a request, whose path goes on with `name` behind the word: "", "page". false:
     * `compute` must.
     */
    bool (*answer)(void *user, const struct http_request *request, struct http_text name,
                   struct serve_answer *answer);
    /* On a thread of its own, beside `answer`. */
    void (*compute)(void *user, const struct http_request *request, struct serve_answer *answer);
    void *user;
};

/* Prints the address, and answers until cli_cancelled. An exit code, having said what is wrong. */
int serve(const struct serve_site *site);

/* Plain words in place of a page: "404 Not Found". */
void serve_refuse(struct serve_answer *answer, int status);

/* A text in HTML, also in quotation marks. */
void html_put(FILE *out, const char *bytes, size_t n);

/* ---- Connections (connection.c) -------------------------------------------------------------- */

enum { TOKEN_LETTERS = 32, SERVE_MOST = 32 };

struct server {
    const struct serve_site *site;
    int listener, port;
    char token[TOKEN_LETTERS + 1];
    int64_t n_waited; /* connections that ever did */
};

enum connection_phase {
    CONNECTION_FREE,
    CONNECTION_READS,
    CONNECTION_WAITS, /* its request is whole, and must be computed, or is */
    CONNECTION_WRITES,
    CONNECTION_ENDS
};

/* From its first byte to its last. Times are those of cli_seconds. */
struct connection {
    enum connection_phase phase;
    int fd;
    double until; /* when its phase has taken too long */
    bool judged;  /* its lines were whole, and nothing was wrong with them */
    char *in, *out;
    size_t n_in, room, n_out, n_sent;
    int64_t number; /* of those that wait: the smallest is first */
};

void connection_begin(struct connection *connection, int fd);
/* Reads or writes what can be without waiting, and answers a request that is whole. */
void connection_step(struct connection *connection, struct server *server);
/*
 * Does it wait to be computed? Nothing more is read of it then; if the other side has ended, be it
 * in one direction, it is closed.
 */
bool connection_waits(struct connection *connection);
/* Takes the bytes of the answer. */
void connection_answer(struct connection *connection, struct serve_answer *answer);
void connection_close(struct connection *connection);

/* ---- What is computed (worker.c) ------------------------------------------------------------- */

/* One request at a time, on a thread. */
struct worker {
    const struct serve_site *site;
    pthread_t thread;
    int ends[2];                   /* a pipe: a byte when the thread is done */
    struct connection *connection; /* whose it is; NULL: nobody's any more */
    bool busy;
    char *in; /* bytes of the request */
    struct http_request request;
    struct serve_answer answer;
};

/* false: errno says why. */
bool worker_open(struct worker *worker, const struct serve_site *site);
/* Computes what the connection waits for, and takes the bytes of its request. false: cannot. */
bool worker_begin(struct worker *worker, struct connection *connection);
/* After the pipe had its byte: the answer goes to the connection, if that is there still. */
void worker_end(struct worker *worker);
/* The connection is closed: its answer is nobody's. */
void worker_forget(struct worker *worker, const struct connection *connection);
/* Waits for the thread. */
void worker_close(struct worker *worker);

#endif
