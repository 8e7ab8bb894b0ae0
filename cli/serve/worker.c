/* The thread that computes answers: see serve.h. Its signals are the server's. */
#include <stdlib.h>

#include "core/os.h"
#include "serve/serve.h"
#include "serve/sockets.h"

bool worker_open(struct worker *worker, const struct serve_site *site) {
    *worker = (struct worker){ .site = site, .ends = { -1, -1 } };
    return socket_bell(worker->ends) == 0;
}

static void *compute(void *argument) {
    struct worker *const worker = argument;
    worker->site->compute(worker->site->user, &worker->request, &worker->answer);
    socket_wake(worker->ends);
    return NULL;
}

bool worker_begin(struct worker *worker, struct connection *connection) {
    qkvi_os_signals before;
    if (http_parse(connection->in, connection->n_in, &worker->request) != HTTP_WHOLE) return false;
    worker->answer = (struct serve_answer){ .status = 0 };
    qkvi_os_hold_signals(&before);
    worker->busy = pthread_create(&worker->thread, NULL, compute, worker) == 0;
    qkvi_os_let_signals(&before);
    if (!worker->busy) return false;
    worker->connection = connection;
    worker->in = connection->in;
    connection->in = NULL;
    return true;
}

/* Its answer is whole then. */
static void join(struct worker *worker) {
    pthread_join(worker->thread, NULL);
    worker->busy = false;
    free(worker->in);
    worker->in = NULL;
}

void worker_end(struct worker *worker) {
    socket_hush(worker->ends);
    join(worker);
    if (!worker->answer.status) serve_refuse(&worker->answer, 500);
    if (worker->connection)
        connection_answer(worker->connection, &worker->answer);
    else
        free(worker->answer.bytes);
    worker->connection = NULL;
}

void worker_forget(struct worker *worker, const struct connection *connection) {
    if (worker->connection == connection) worker->connection = NULL;
}

void worker_close(struct worker *worker) {
    if (worker->busy) {
        join(worker);
        free(worker->answer.bytes);
    }
    socket_close(worker->ends[0]);
    socket_close(worker->ends[1]);
}
