/* Ranks as threads: a queue of posts for each pair of ranks, one lock for all. See world.h. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "dist/world.h"

typedef struct post {
    struct post *next;
    char *data;
    size_t bytes;
    qkvi_request *request;
} post;

/* Messages from one rank to another: either some were sent, or some are expected, never both. */
typedef struct channel {
    post *sent, *expected;
} channel;

typedef struct world {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    channel *channels; /* [from][to] */
} world;

typedef struct member {
    qkvi_transport base;
    world *world;
    rank_main *main;
    void *user;
    int result;
} member;

static void append(post **list, post *p) {
    while (*list) list = &(*list)->next;
    *list = p;
}

static void finish(post **list) {
    post *const p = *list;
    p->request->word[0]--;
    *list = p->next;
    free(p);
}

/* Under the lock. */
static void match(channel *c) {
    while (c->sent && c->expected) {
        assert(c->sent->bytes == c->expected->bytes);
        if (c->sent->bytes) memcpy(c->expected->data, c->sent->data, c->sent->bytes);
        finish(&c->sent);
        finish(&c->expected);
    }
}

static qkv_status enter(member *m, int from, int to, const void *data, size_t bytes,
                        qkvi_request *request) {
    world *const w = m->world;
    channel *const c = &w->channels[from * m->base.size + to];
    post *const p = malloc(sizeof *p);
    assert(p);
    *p = (post){ NULL, (char *)(uintptr_t)data, bytes, request };
    pthread_mutex_lock(&w->lock);
    request->word[0]++;
    append(from == m->base.rank ? &c->sent : &c->expected, p);
    match(c);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return QKV_OK;
}

static qkv_status isend(qkvi_transport *t, const void *data, size_t bytes, int to,
                        qkvi_request *request, qkv_error *error) {
    (void)error;
    return enter((member *)t, t->rank, to, data, bytes, request);
}

static qkv_status irecv(qkvi_transport *t, void *data, size_t bytes, int from,
                        qkvi_request *request, qkv_error *error) {
    (void)error;
    return enter((member *)t, from, t->rank, data, bytes, request);
}

static qkv_status test(qkvi_transport *t, qkvi_request *requests, int n, bool *done,
                       qkv_error *error) {
    world *const w = ((member *)t)->world;
    (void)error;
    pthread_mutex_lock(&w->lock);
    *done = world_all_done(requests, n);
    pthread_mutex_unlock(&w->lock);
    return QKV_OK;
}

static qkv_status wait(qkvi_transport *t, qkvi_request *requests, int n, qkv_error *error) {
    world *const w = ((member *)t)->world;
    (void)error;
    pthread_mutex_lock(&w->lock);
    while (!world_all_done(requests, n)) pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return QKV_OK;
}

static void *thread_main(void *argument) {
    member *const m = argument;
    m->result = m->main(&m->base, m->user);
    return NULL;
}

int world_of_threads(int size, rank_main *main, void *user) {
    static const qkvi_transport_ops ops = {
        isend, irecv, world_ibcast, test, wait, world_allgather
    };
    world w = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
                calloc((size_t)(size * size), sizeof(channel)) };
    member *const members = calloc((size_t)size, sizeof *members);
    pthread_t *const threads = calloc((size_t)size, sizeof *threads);
    int failed = 0;
    assert(w.channels && members && threads);
    for (int rank = 0; rank < size; rank++) {
        members[rank] = (member){ { &ops, rank, size }, &w, main, user, 0 };
        if (pthread_create(&threads[rank], NULL, thread_main, &members[rank])) abort();
    }
    for (int rank = 0; rank < size; rank++) {
        pthread_join(threads[rank], NULL);
        failed += members[rank].result != 0;
    }
    free(w.channels);
    free(members);
    free(threads);
    return failed;
}
