/* The embedding of qkv/layers.h. */
#include <inttypes.h>
#include <string.h>

#include "core/options.h"
#include "layer/call.h"
#include "layer/embed.h"
#include "qkv/layers.h"

static qkv_status read_desc(qkv_ctx *ctx, const qkv_embedding_desc *given, qkv_embedding_desc *d) {
    if (!given) return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "desc is NULL");
    *d = qkv_embedding_desc_init(0, 0, 0, NULL);
    QKV_TRY(qkvi_options_read(d, sizeof *d, given, "qkv_embedding_desc", &ctx->error));
    QKV_TRY(qkvi_call_rows(ctx, d->n_rows, d->n));
    return qkvi_call_size(ctx, "n_entries", d->n_entries, 1);
}

static void add_ids(const qkv_embedding_desc *d, qkvi_arrays *all) {
    qkvi_call_input(all, "ids", d->ids, 1, d->n_rows)->elem_bytes = sizeof *d->ids;
}

static qkv_status check_ids(qkv_ctx *ctx, const qkv_embedding_desc *d) {
    for (int64_t r = 0; r < d->n_rows; r++)
        if (d->ids[r] < 0 || d->ids[r] >= d->n_entries)
            return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT,
                                 "ids[%" PRId64 "] = %" PRId32 " is not in 0 ... %" PRId64, r,
                                 d->ids[r], d->n_entries - 1);
    return QKV_OK;
}

static qkv_status forward(qkv_ctx *ctx, const qkv_embedding_desc *desc, const float *table,
                          float *y) {
    qkvi_arrays all = { .count = 0 };
    qkv_embedding_desc d;
    QKV_TRY(read_desc(ctx, desc, &d));
    add_ids(&d, &all);
    qkvi_call_input(&all, "table", table, d.n_entries, d.n);
    qkvi_call_output(&all, "y", y, d.n_rows, d.n);
    QKV_TRY(qkvi_call_arrays(ctx, &all));
    QKV_TRY(check_ids(ctx, &d));
    qkvi_gather(ctx, d.n, d.n_rows, d.ids, d.scale, d.add, table, y);
    return QKV_OK;
}

qkv_status qkv_embedding_forward(qkv_ctx *ctx, const qkv_embedding_desc *desc, const float *table,
                                 float *y) {
    QKV_TRY(qkvi_ctx_begin(ctx));
    return qkvi_ctx_end(ctx, forward(ctx, desc, table, y));
}

typedef struct space {
    int64_t n_elems;
    int32_t *scratch;
} space;

static void lay_out(void *argument, qkvi_cutter *cutter) {
    space *const s = argument;
    s->scratch = qkvi_cut(cutter, s->n_elems, sizeof *s->scratch);
}

static qkv_status backward(qkv_ctx *ctx, const qkv_embedding_desc *desc, const float *d_y,
                           float *d_table) {
    qkvi_arrays all = { .count = 0 };
    qkv_embedding_desc d;
    QKV_TRY(read_desc(ctx, desc, &d));
    add_ids(&d, &all);
    qkvi_call_input(&all, "d_y", d_y, d.n_rows, d.n);
    qkvi_call_output(&all, "d_table", d_table, d.n_entries, d.n);
    QKV_TRY(qkvi_call_arrays(ctx, &all));
    QKV_TRY(check_ids(ctx, &d));
    space s = { .n_elems = d.n_entries + d.n_rows };
    QKV_TRY(qkvi_call_memory(ctx, lay_out, &s));
    if (!d.add) memset(d_table, 0, (size_t)(d.n_entries * d.n) * sizeof *d_table);
    qkvi_scatter(ctx, d.n, d.n_entries, -1, d.n_rows, d.ids, d.scale, d_y, d_table, s.scratch);
    return QKV_OK;
}

qkv_status qkv_embedding_backward(qkv_ctx *ctx, const qkv_embedding_desc *desc, const float *d_y,
                                  float *d_table) {
    QKV_TRY(qkvi_ctx_begin(ctx));
    return qkvi_ctx_end(ctx, backward(ctx, desc, d_y, d_table));
}
