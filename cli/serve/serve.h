/*
 * A server of HTTP/1.1 for one person: on 127.0.0.1 only, and only for clients that know the random
 * token in its address. Requests that need no computing are answered at once; others wait for a
 * thread, which computes one after the other, and are dropped if the client closes the connection
 * before that.
 *
 * A request is refused before its body is read unless its Host is this server (against DNS
 * rebinding), its path begins with the token, and, for a POST, its Origin is this server.
 */
#ifndef QKV_CLI_SERVE_SERVE_H
#define QKV_CLI_SERVE_SERVE_H

#include <pthread.h>

#include "common/cli.h"
#include "serve/http.h"

/* An answer. The server frees bytes, from malloc. policy: Content-Security-Policy. */
struct serve_answer {
    int status;
    const char *type, *policy;
    char *bytes;
    size_t n;
};

struct serve_site {
    int port; /* 0: any free port */
    bool quiet;
    /*
     * Answers a request at once; name: its path after the token, "" or "page". False: `compute`
     * must answer it.
     */
    bool (*answer)(void *user, const struct http_request *request, struct http_text name,
                   struct serve_answer *answer);
    /* Called on a thread of its own, at the same time as `answer`. */
    void (*compute)(void *user, const struct http_request *request, struct serve_answer *answer);
    void *user;
};

/*
 * Prints the address, and answers requests until cli_cancelled is set. Returns an exit code, having
 * said what is wrong.
 */
int serve(const struct serve_site *site);

/* Makes an answer in plain text: "404 Not Found". */
void serve_refuse(struct serve_answer *answer, int status);

/* Writes a text, escaped for HTML and for attributes in quotation marks. */
void html_put(FILE *out, const char *bytes, size_t n);

/* ---- Connections (connection.c) -------------------------------------------------------------- */

enum { TOKEN_LETTERS = 32, SERVE_MOST = 32 };

struct server {
    const struct serve_site *site;
    int listener, port;
    char token[TOKEN_LETTERS + 1];
    int64_t n_waited; /* how many connections have waited so far */
};

enum connection_phase {
    CONNECTION_FREE,
    CONNECTION_READS,
    CONNECTION_WAITS, /* its request is complete, and waits or is being computed */
    CONNECTION_WRITES,
    CONNECTION_ENDS
};

/* A connection. Times are those of cli_seconds. */
struct connection {
    enum connection_phase phase;
    int fd;
    double until; /* the time limit of its phase */
    bool judged;  /* its lines are complete and accepted */
    char *in, *out;
    size_t n_in, room, n_out, n_sent;
    int64_t number; /* of waiting connections the one with the smallest number is next */
};

void connection_begin(struct connection *connection, int fd);
/* Reads or writes as much as possible without blocking, and answers a complete request. */
void connection_step(struct connection *connection, struct server *server);
/*
 * Does it wait to be computed? Then nothing more is read from it. If the client has closed the
 * connection, or one direction of it, it is closed here.
 */
bool connection_waits(struct connection *connection);
/* Begins to send an answer, whose bytes it takes. */
void connection_answer(struct connection *connection, struct serve_answer *answer);
void connection_close(struct connection *connection);

/* ---- The thread that computes answers (worker.c) --------------------------------------------- */

/* Computes one request at a time. */
struct worker {
    const struct serve_site *site;
    pthread_t thread;
    int ends[2];                   /* a bell (sockets.h), which the thread rings when it is done */
    struct connection *connection; /* whose request it is; NULL: that was closed */
    bool busy;
    char *in; /* bytes of the request */
    struct http_request request;
    struct serve_answer answer;
};

/* False: errno says why. */
bool worker_open(struct worker *worker, const struct serve_site *site);
/* Begins to compute the request of a connection, whose bytes it takes. False: it cannot. */
bool worker_begin(struct worker *worker, struct connection *connection);
/* To be called when the pipe has a byte: gives the answer to the connection, if it is open. */
void worker_end(struct worker *worker);
/* To be called when a connection is closed: its answer will be dropped. */
void worker_forget(struct worker *worker, const struct connection *connection);
/* Waits for the thread. */
void worker_close(struct worker *worker);

#endif
