/* See watch.h. */
#include "attn/watch.h"

#include "core/cancel.h"

qkvi_watch qkvi_watch_begin(const qkv_call_options *call, int64_t total) {
    return (qkvi_watch){ .call = call, .caller = pthread_self(), .total = total };
}

bool qkvi_watch_cancelled(qkvi_watch *watch) {
    if (qkvi_is_raised(watch->call->cancel)) atomic_store(&watch->cancelled, true);
    return atomic_load(&watch->cancelled);
}

void qkvi_watch_done_one(qkvi_watch *watch) {
    const long long done = atomic_fetch_add(&watch->done, 1) + 1;
    const qkv_call_options *const call = watch->call;
    if (call->progress && pthread_equal(pthread_self(), watch->caller))
        call->progress(call->progress_user, done, watch->total);
}

qkv_status qkvi_watch_end(qkvi_watch *watch, qkv_ctx *ctx) {
    if (!atomic_load(&watch->cancelled)) return QKV_OK;
    return qkvi_ctx_fail(ctx, QKV_ERR_CANCELLED, "cancelled by the caller's flag");
}
