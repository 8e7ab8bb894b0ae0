/*
 * A server of HTTP/1.1 for one person: on 127.0.0.1 only, and only for who knows its address, which
 * has a random word in it. One request at a time is answered.
 *
 * A request is refused before its body is read unless its Host is this server (a name elsewhere may
 * lead here), its path has the word, and, of a POST, its Origin is a page of this server.
 */
#ifndef QKV_CLI_SERVE_SERVE_H
#define QKV_CLI_SERVE_SERVE_H

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
    /* Answers a request, whose path goes on with `name` behind the word: "", "page". */
    void (*answer)(void *user, const struct http_request *request, struct http_text name,
                   struct serve_answer *answer);
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
};

enum connection_phase { CONNECTION_FREE, CONNECTION_READS, CONNECTION_WRITES, CONNECTION_ENDS };

/* From its first byte to its last. Times are those of cli_seconds. */
struct connection {
    enum connection_phase phase;
    int fd;
    double until; /* when its phase has taken too long */
    bool judged;  /* its lines were whole, and nothing was wrong with them */
    char *in, *out;
    size_t n_in, room, n_out, n_sent;
};

void connection_begin(struct connection *connection, int fd);
/* Reads or writes what can be without waiting, and answers a request that is whole. */
void connection_step(struct connection *connection, const struct server *server);
void connection_close(struct connection *connection);

#endif
