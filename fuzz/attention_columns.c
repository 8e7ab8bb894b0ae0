/* See attention_columns.h. */
#include "fuzz/attention_columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/attention_run.h"

enum { MOST_ELEMS = 1 << 20, MOST_BYTES = 8 << 20, KEYS = 5 };

/* Now and then one is not asked for: NULL. */
static void *new_array(attention_columns *x, int at, int64_t n, size_t elem_bytes,
                       uint64_t *state) {
    columns_array *a = &x->a[at];
    a->elem_bytes = elem_bytes;
    if (n < 0 || n > MOST_ELEMS || attention_next_random(state) % 8 == 0) return NULL;
    a->n = (size_t)n;
    a->data = malloc(a->n * elem_bytes + !n);
    FUZZ_CHECK(a->data);
    memset(a->data, 0x7e, a->n * elem_bytes);
    return a->data;
}

/* Strides that hold each key's place, or hostile ones; elements up to the last, -1: too many. */
static int64_t place_keys(const attention_case *c, const qkv_attention_desc *d,
                          qkv_attention_columns *w, uint64_t *state) {
    const int64_t arrays = attention_packed(c) ? 1 : d->n_batch, rows = attention_rows(c, true);
    w->stride[2] = attention_value(state, 1, 2);
    w->stride[1] = attention_value(state, rows * 2, rows * 2 + 3);
    const int64_t batch = (int64_t)((uint64_t)w->stride[1] * (uint64_t)d->n_heads);
    w->stride[0] = attention_packed(c) ? 0 : attention_value(state, batch, -1);
    const int64_t size[3] = { arrays, d->n_heads, rows };
    int64_t end = 1;
    if (!arrays || !d->n_heads || !rows) return 0;
    for (int n = 0; n < 3; n++) {
        int64_t step;
        if (__builtin_mul_overflow(size[n] - 1, w->stride[n], &step) || step < 0 ||
            step > MOST_ELEMS)
            return -1;
        end += step;
    }
    return end;
}

static void choose(const attention_case *c, const qkv_attention_desc *d, attention_columns *x) {
    uint64_t state = c->seed ^ 0xC01;
    qkv_attention_columns *w = &x->want;
    const int64_t heads = d->n_batch * d->n_heads, rows = attention_rows(c, false);
    qkv_attention_columns_contiguous(w, d);
    const int64_t keys = place_keys(c, d, w, &state);
    w->first_diagonal = attention_value(&state, -d->len_k, d->len_q);
    w->n_diagonals = attention_value(&state, 0, 300);
    w->n_tiles_q = attention_value(&state, 1, 20);
    w->n_tiles_k = attention_value(&state, 1, 300);
    w->tiny = (float)(state % 100) / 1000;
    const int64_t tiles =
        w->n_tiles_q < 0 || w->n_tiles_k < 0 || w->n_tiles_q > 9999 || w->n_tiles_k > 9999
            ? 0
            : heads * w->n_tiles_q * w->n_tiles_k;
    const int64_t some_diagonals = w->n_diagonals > 0 && w->n_diagonals <= MOST_ELEMS;
    const int64_t diagonals = some_diagonals ? heads * w->n_diagonals : 0;
    const size_t f = sizeof(float), n = sizeof(int64_t);
    w->received = new_array(x, 0, keys, f, &state);
    w->largest = new_array(x, 1, keys, f, &state);
    w->entropy = new_array(x, 2, keys, f, &state);
    w->n_queries = new_array(x, 3, keys, n, &state);
    w->largest_query = new_array(x, 4, keys, n, &state);
    w->diagonal = new_array(x, KEYS, diagonals, f, &state);
    w->diagonal_rows = new_array(x, 6, diagonals, n, &state);
    w->tile_mass = new_array(x, 7, tiles, f, &state);
    w->tile_peak = new_array(x, 8, tiles, f, &state);
    w->tile_rows = new_array(x, 9, tiles ? heads * w->n_tiles_q : 0, n, &state);
    w->n_cells = new_array(x, 10, heads, n, &state);
    w->n_tiny = new_array(x, 11, heads, n, &state);
    w->n_empty_rows = new_array(x, 12, heads, n, &state);
    w->n_nan_rows = new_array(x, 13, heads, n, &state);
    if (state & 1) return; /* one row of weights for all */
    x->row_weights = malloc((size_t)rows * sizeof *x->row_weights + !rows);
    FUZZ_CHECK(x->row_weights);
    for (int64_t i = 0; i < rows; i++)
        x->row_weights[i] = (float)(int64_t)attention_next_random(&state) * 0x1p-63f;
    w->row_weights = x->row_weights;
    w->row_weights_stride[0] = w->row_weights_stride[1] = 0;
}

/* A random one, in the workspace of a pass that is asked for nothing. */
static void run_weights(qkv_ctx *ctx, const attention_case *c, const qkv_attention_desc *d,
                        const void *q, const void *k, const float *lse, attention_columns *x) {
    uint64_t state = c->seed ^ 0xC02;
    qkv_attention_columns nothing;
    size_t bytes = 0;
    const int64_t b = attention_value(&state, 0, d->n_batch - 1);
    const int64_t h = attention_value(&state, 0, d->n_heads - 1);
    const int64_t i0 = attention_value(&state, 0, d->len_q),
                  j0 = attention_value(&state, 0, d->len_k);
    const int64_t i1 = attention_value(&state, i0, d->len_q);
    const int64_t j1 = attention_value(&state, j0, d->len_k);
    const bool sane =
        i0 >= 0 && i0 <= i1 && i1 <= d->len_q && j0 >= 0 && j0 <= j1 && j1 <= d->len_k;
    float *p = sane ? new_array(x, 14, (i1 - i0) * (j1 - j0), sizeof *p, &state) : NULL;
    qkv_attention_columns_contiguous(&nothing, d);
    const qkv_status status = qkv_attention_columns_workspace(ctx, d, &nothing, &bytes);
    if (!attention_accepted(ctx, status) || bytes > MOST_BYTES) return; /* strides of lse */
    const qkv_call_options call = attention_with_workspace(bytes);
    x->weights = qkv_attention_weights(ctx, d, q, k, lse, b, h, i0, i1, j0, j1, p,
                                       sane && j1 > j0 ? j1 - j0 : 1, &call);
    free(call.workspace);
    attention_accepted(ctx, x->weights);
}

bool attention_columns_run(qkv_ctx *ctx, const attention_case *c, const qkv_attention_desc *desc,
                           const void *q, const void *k, const float *lse, attention_columns *x) {
    size_t bytes = 0;
    memset(x, 0, sizeof *x);
    choose(c, desc, x);
    const qkv_status status = qkv_attention_columns_workspace(ctx, desc, &x->want, &bytes);
    if (!attention_accepted(ctx, status)) bytes = 0;
    if (bytes > MOST_BYTES) return false;
    const qkv_call_options call = attention_with_workspace(bytes);
    x->pass = qkv_attention_columns_pass(ctx, desc, q, k, lse, &x->want, &call);
    free(call.workspace);
    if (attention_accepted(ctx, x->pass)) FUZZ_CHECK(status == QKV_OK);
    run_weights(ctx, c, desc, q, k, lse, x);
    return true;
}

void attention_columns_free(attention_columns *x) {
    for (int n = 0; n < COLUMNS_ARRAYS; n++) free(x->a[n].data);
    free(x->row_weights);
}

static bool same_floats(const columns_array *a, const columns_array *b) {
    const float *x = a->data, *y = b->data;
    for (size_t i = 0; i < a->n; i++)
        if (memcmp(x + i, y + i, sizeof *x) != 0 && !(isnan(x[i]) && isnan(y[i]))) return false;
    return true;
}

void attention_columns_compare(const attention_columns *x, const attention_columns *y) {
    FUZZ_CHECK(x->pass == y->pass && x->weights == y->weights);
    for (int n = 0; n < COLUMNS_ARRAYS; n++) {
        const columns_array *a = &x->a[n], *b = &y->a[n];
        FUZZ_CHECK(a->n == b->n);
        if (!a->n) continue;
        FUZZ_CHECK(a->elem_bytes == sizeof(float)
                       ? same_floats(a, b)
                       : memcmp(a->data, b->data, a->n * a->elem_bytes) == 0);
    }
}
