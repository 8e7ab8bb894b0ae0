/* The thread that computes answers: see serve.h. Its signals are the server's. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "serve/serve.h"

bool worker_open(struct worker *worker, const struct serve_site *site) {
    *worker = (struct worker){ .site = site, .ends = { -1, -1 } };
    return pipe2(worker->ends, O_CLOEXEC) == 0;
}

static void *compute(void *argument) {
    struct worker *const worker = argument;
    worker->site->compute(worker->site->user, &worker->request, &worker->answer);
    while (write(worker->ends[1], "", 1) < 0 && errno == EINTR) {
    }
    return NULL;
}

bool worker_begin(struct worker *worker, struct connection *connection) {
    sigset_t all, before;
    if (http_parse(connection->in, connection->n_in, &worker->request) != HTTP_WHOLE) return false;
    worker->answer = (struct serve_answer){ .status = 0 };
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    worker->busy = pthread_create(&worker->thread, NULL, compute, worker) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
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
    char byte;
    while (read(worker->ends[0], &byte, 1) < 0 && errno == EINTR) {
    }
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
    close(worker->ends[0]);
    close(worker->ends[1]);
}
