/* The optimizer of a parameter table: see adamw.h. */
#include "train/adamw.h"

/* Matrices; not biases and layer norms. */
static int row_decays(const qkvi_param *row) { return row->rank > 1; }

qkv_status qkvi_adamw_make(const qkvi_param_table *table, qkvi_adamw *adamw, qkv_error *error) {
    size_t n_chunks = 0;
    memset(adamw, 0, sizeof *adamw);
    for (int64_t r = 0; r < table->n_rows; r++)
        n_chunks += qkvi_adamw_chunks(table->rows[r].n_elems);
    if (n_chunks > QKVI_ADAMW_MAX_CHUNKS)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "the model is too large to train");
    adamw->chunks = qkvi_malloc_array(n_chunks, sizeof *adamw->chunks);
    adamw->partial = qkvi_malloc_array(n_chunks, sizeof *adamw->partial);
    if (!adamw->chunks || !adamw->partial) {
        qkvi_adamw_free(adamw);
        return qkvi_no_memory(error, "the optimizer");
    }
    for (int64_t r = 0; r < table->n_rows; r++) {
        const qkvi_param *const row = &table->rows[r];
        qkvi_adamw_add(adamw, 0, row->offset, row->n_elems, row_decays(row));
    }
    return QKV_OK;
}

void qkvi_adamw_free(qkvi_adamw *adamw) {
    free(adamw->chunks);
    free(adamw->partial);
    memset(adamw, 0, sizeof *adamw);
}

double qkvi_adamw_run(qkv_ctx *ctx, const qkvi_adamw *adamw, int64_t t, double rate,
                      const float *grads, float *params, float *m, float *v) {
    const qkvi_adamw_arrays arenas = { grads, params, m, v };
    return qkvi_adamw_update(ctx, adamw, t, rate, &arenas);
}

double qkvi_schedule_rate(double peak, int64_t warmup, int64_t n_steps, int64_t step) {
    if (step < warmup) return peak * (double)(step + 1) / (double)warmup;
    return peak * (double)(n_steps - step) / (double)(n_steps - warmup);
}
