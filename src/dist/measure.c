/* See measure.h. */
#include "dist/measure.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/os.h"
#include "dist/ordered.h"

enum {
    HEADS = 8,
    QUERIES = 192,
    KEYS = 2048,
    DIM = 128,
    LONG_BYTES = 1 << 20, /* of a message whose bytes take the time */
    LONG_ROUNDS = 8,
    SHORT_ROUNDS = 64
};

/* ---- Operations ------------------------------------------------------------------------------ */

/* Attention of zeros on this rank alone, as every rank computes it at the same time. */
static qkv_status attend(qkvi_group *alone, qkv_ctx *ctx, qkv_dtype dtype, char *memory) {
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, HEADS, HEADS, QUERIES, KEYS, DIM, DIM);
    d.dtype = dtype;
    char *const k = memory, *const q = k + HEADS * KEYS * DIM * 4;
    const qkvi_dist_arrays arrays = { q, k, k, q + HEADS * QUERIES * DIM * 4, NULL };
    return qkvi_ordered_pass(alone, ctx, QKV_OK, &d, &arrays);
}

/* The second call: the first finds memory. */
static qkv_status measure_operations(qkv_ctx *ctx, qkv_dtype dtype, char *memory, qkvi_rates *rates,
                                     qkv_error *error) {
    qkvi_transport self = qkvi_transport_self();
    qkvi_group *const alone = qkvi_group_new(&self);
    if (!alone) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory to measure with");
    qkv_status status = attend(alone, ctx, dtype, memory);
    const double begun = qkvi_os_seconds();
    if (status == QKV_OK) status = attend(alone, ctx, dtype, memory);
    const double seconds = qkvi_os_seconds() - begun;
    if (status != QKV_OK) *error = alone->error;
    rates->flops_per_second = 4.0 * HEADS * QUERIES * KEYS * DIM / (seconds > 0 ? seconds : 1e-9);
    qkvi_group_free(alone);
    return status;
}

/* ---- Messages -------------------------------------------------------------------------------- */

/*
 * Each rank sends to the next and receives from the one before, n_rounds times; seconds of a round.
 */
static qkv_status go_round(qkvi_group *group, char *memory, size_t bytes, int n_rounds,
                           double *seconds) {
    qkvi_transport *const t = group->transport;
    const int next = (t->rank + 1) % t->size, before = (t->rank + t->size - 1) % t->size;
    const double begun = qkvi_os_seconds();
    for (int n = 0; n < n_rounds; n++) {
        qkvi_request *const r = group->requests;
        qkv_status status = t->ops->irecv(t, memory, bytes, before, &r[0], &group->error);
        if (status == QKV_OK)
            status = t->ops->isend(t, memory + LONG_BYTES, bytes, next, &r[1], &group->error);
        if (status != QKV_OK) {
            group->broken = true;
            return status;
        }
        QKV_TRY(qkvi_group_wait(group, r, 2));
    }
    *seconds = (qkvi_os_seconds() - begun) / n_rounds;
    return QKV_OK;
}

static qkv_status measure_messages(qkvi_group *group, char *memory, qkvi_rates *rates) {
    double of_short = 0, of_long = 0;
    if (group->transport->size == 1) return QKV_OK;
    QKV_TRY(go_round(group, memory, LONG_BYTES, 1, &of_long)); /* connections are made */
    QKV_TRY(go_round(group, memory, 1, SHORT_ROUNDS, &of_short));
    QKV_TRY(go_round(group, memory, LONG_BYTES, LONG_ROUNDS, &of_long));
    const double rest = of_long - of_short;
    rates->seconds_per_message = of_short;
    rates->bytes_per_second = LONG_BYTES / (rest > 1e-9 ? rest : 1e-9);
    return QKV_OK;
}

/* ---- The call -------------------------------------------------------------------------------- */

/* The slowest rank holds up the others. */
static qkv_status agree_on_rates(qkvi_group *group, qkvi_rates *rates) {
    qkvi_record record = { 0 };
    memcpy(record.value, rates, sizeof *rates);
    QKV_TRY(qkvi_group_exchange(group, &record));
    for (int rank = 0; rank < group->transport->size; rank++) {
        qkvi_rates r;
        memcpy(&r, group->records[rank].value, sizeof r);
        if (r.flops_per_second < rates->flops_per_second)
            rates->flops_per_second = r.flops_per_second;
        if (r.bytes_per_second < rates->bytes_per_second)
            rates->bytes_per_second = r.bytes_per_second;
        if (r.seconds_per_message > rates->seconds_per_message)
            rates->seconds_per_message = r.seconds_per_message;
    }
    return QKV_OK;
}

static qkv_status measure(qkvi_group *group, qkv_ctx *ctx, qkv_status status, qkv_dtype dtype,
                          qkvi_rates *rates) {
    const size_t bytes = (size_t)HEADS * DIM * 4 * (KEYS + 2 * QUERIES);
    QKV_TRY(qkvi_group_agree(group, status));
    char *const memory = qkvi_aligned_array(bytes, 1);
    *rates = (qkvi_rates){ 0 };
    if (memory) memset(memory, 0, bytes);
    status = memory ? QKV_OK : qkvi_group_fail(group, QKV_ERR_MEMORY, "no memory to measure with");
    status = qkvi_group_agree(group, status);
    if (status == QKV_OK)
        status =
            qkvi_group_agree(group, measure_operations(ctx, dtype, memory, rates, &group->error));
    if (status == QKV_OK) status = measure_messages(group, memory, rates);
    if (status == QKV_OK) status = agree_on_rates(group, rates);
    qkvi_aligned_free(memory);
    return status;
}

qkv_status qkvi_measure(qkvi_group *group, qkv_ctx *ctx, const qkv_error *refused, qkv_dtype dtype,
                        qkvi_rates *rates) {
    const qkv_status begun = qkvi_call_begin(group, ctx);
    const qkv_status status = qkvi_call_refuse(group, begun, refused);
    return qkvi_call_end(group, ctx, begun, measure(group, ctx, status, dtype, rates));
}
