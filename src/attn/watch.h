/*
 * What the caller of a long call may watch: progress, reported on his own thread, and a flag with
 * which he ends it. One watch belongs to one call; all its threads share it.
 *
 *     qkvi_watch watch = qkvi_watch_begin(call, total);
 *     while (!qkvi_watch_cancelled(&watch) && …) { a piece; qkvi_watch_done_one(&watch); }
 *     return qkvi_watch_end(&watch, ctx);
 */
#ifndef QKVI_ATTN_WATCH_H
#define QKVI_ATTN_WATCH_H

#include <pthread.h>

#include "attn/ctx.h"

typedef struct qkvi_watch {
    const qkv_call_options *call;
    pthread_t caller;
    int64_t total; /* pieces of the whole call */
    atomic_llong done;
    atomic_bool cancelled;
} qkvi_watch;

/* On the caller's thread, which is the one that gets the reports. call is not NULL. */
qkvi_watch qkvi_watch_begin(const qkv_call_options *call, int64_t total);

/* Has the caller's flag been raised? Once true, true for all threads. */
bool qkvi_watch_cancelled(qkvi_watch *watch);

void qkvi_watch_done_one(qkvi_watch *watch);

/* QKV_OK, or QKV_ERR_CANCELLED with its message if some thread saw the flag. */
qkv_status qkvi_watch_end(qkvi_watch *watch, qkv_ctx *ctx);

#endif
