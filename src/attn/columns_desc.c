/* What a pass over columns, or a rectangle of weights, is asked for: checked. See columns.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "attn/blocks.h"
#include "attn/call_arrays.h"
#include "attn/columns.h"
#include "attn/columns_part.h"
#include "attn/desc_packed.h"
#include "attn/problem.h"
#include "core/options.h"

/* ---- Numbers --------------------------------------------------------------------------------- */

/* What is not asked for counts as 0. */
static qkv_status read_numbers(qkvi_columns_problem *x, qkv_error *e) {
    qkv_attention_columns *w = &x->want;
    const bool by_tile = w->tile_mass || w->tile_peak;
    QKV_TRY(qkvi_option_check("columns", "n_tiles_q", w->n_tiles_q, 0, QKV_COLUMNS_MAX_TILES, e));
    QKV_TRY(qkvi_option_check("columns", "n_tiles_k", w->n_tiles_k, 0, QKV_COLUMNS_MAX_TILES, e));
    QKV_TRY(qkvi_option_check("columns", "n_diagonals", w->n_diagonals, 0, 2 * QKVI_MAX_SIZE, e));
    QKV_TRY(qkvi_option_check("columns", "first_diagonal", w->first_diagonal, -4 * QKVI_MAX_SIZE,
                              4 * QKVI_MAX_SIZE, e));
    QKV_TRY(qkvi_option_require("columns", by_tile || w->tile_rows, w->n_tiles_q,
                                "tile_mass, tile_peak or tile_rows", "n_tiles_q", e));
    QKV_TRY(qkvi_option_require("columns", by_tile, w->n_tiles_k, "tile_mass or tile_peak",
                                "n_tiles_k", e));
    if (!(w->tiny >= 0) || !isfinite(w->tiny))
        return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                              "columns.tiny = %g is not a finite number of 0 or more",
                              (double)w->tiny);
    x->by_key = w->received || w->n_queries || w->largest || w->largest_query || w->entropy;
    if (!x->by_key) memset(w->stride, 0, sizeof w->stride); /* addresses are computed even so */
    if (!by_tile && !w->tile_rows) w->n_tiles_q = 0;
    if (!by_tile) w->n_tiles_k = 0;
    if (!w->diagonal && !w->diagonal_rows) w->n_diagonals = 0;
    x->tiles = by_tile;
    x->diagonals = w->n_diagonals > 0;
    x->all = x->tiles || x->diagonals || w->n_queries || w->largest || w->largest_query ||
             w->entropy || w->n_cells || w->n_tiny;
    if (x->by_key) QKV_TRY(qkvi_check_packed_stride(&x->p, "columns", w->stride, e));
    if (!w->row_weights) return QKV_OK;
    return qkvi_check_packed_stride(&x->p, "columns.row_weights", w->row_weights_stride, e);
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

/* [n_batch][n_heads][key], nullable. */
static void add_keys(const qkvi_columns_problem *x, qkvi_arrays *all, const char *name,
                     const void *data, size_t element) {
    const qkvi_problem *p = &x->p;
    const int64_t size[4] = { qkvi_n_arrays(p), p->n_heads, x->rows_k, 1 };
    if (!data) return;
    qkvi_array *keys = qkvi_arrays_add(all, name, data, size, x->want.stride, true);
    keys->elem_bytes = (int64_t)element;
    keys->strides = "columns.stride";
}

/*
 * [n_batch][n_heads][n][m], dense, nullable. Products that overflow are refused with the strides.
 */
static void add_dense(qkvi_arrays *all, const qkvi_problem *p, const char *name, const void *data,
                      int64_t n, int64_t m, size_t element) {
    const int64_t size[4] = { p->n_batch, p->n_heads, n, m };
    int64_t stride[3] = { 0, 0, m };
    if (!data) return;
    if (__builtin_mul_overflow(n, m, &stride[1])) stride[1] = INT64_MAX;
    if (__builtin_mul_overflow(stride[1], p->n_heads, &stride[0])) stride[0] = INT64_MAX;
    qkvi_arrays_add(all, name, data, size, stride, true)->elem_bytes = (int64_t)element;
}

static void add_columns(const qkvi_columns_problem *x, qkvi_arrays *all) {
    const qkvi_problem *p = &x->p;
    const qkv_attention_columns *w = &x->want;
    const int64_t rows[4] = { qkvi_n_arrays(p), p->n_heads, qkvi_rows_q(p), 1 };
    add_keys(x, all, "columns.received", w->received, sizeof *w->received);
    add_keys(x, all, "columns.n_queries", w->n_queries, sizeof *w->n_queries);
    add_keys(x, all, "columns.largest", w->largest, sizeof *w->largest);
    add_keys(x, all, "columns.largest_query", w->largest_query, sizeof *w->largest_query);
    add_keys(x, all, "columns.entropy", w->entropy, sizeof *w->entropy);
    add_dense(all, p, "columns.diagonal", w->diagonal, 1, w->n_diagonals, sizeof *w->diagonal);
    add_dense(all, p, "columns.diagonal_rows", w->diagonal_rows, 1, w->n_diagonals,
              sizeof *w->diagonal_rows);
    add_dense(all, p, "columns.tile_mass", w->tile_mass, w->n_tiles_q, w->n_tiles_k,
              sizeof *w->tile_mass);
    add_dense(all, p, "columns.tile_peak", w->tile_peak, w->n_tiles_q, w->n_tiles_k,
              sizeof *w->tile_peak);
    add_dense(all, p, "columns.tile_rows", w->tile_rows, 1, w->n_tiles_q, sizeof *w->tile_rows);
    add_dense(all, p, "columns.n_cells", w->n_cells, 1, 1, sizeof *w->n_cells);
    add_dense(all, p, "columns.n_tiny", w->n_tiny, 1, 1, sizeof *w->n_tiny);
    add_dense(all, p, "columns.n_empty_rows", w->n_empty_rows, 1, 1, sizeof *w->n_empty_rows);
    add_dense(all, p, "columns.n_nan_rows", w->n_nan_rows, 1, 1, sizeof *w->n_nan_rows);
    if (w->row_weights)
        qkvi_arrays_add(all, "columns.row_weights", w->row_weights, rows, w->row_weights_stride,
                        false);
}

bool qkvi_columns_asks_nothing(const qkvi_columns_problem *x) {
    const qkv_attention_columns *w = &x->want;
    return !x->by_key && !x->tiles && !x->diagonals && !w->tile_rows && !w->n_cells && !w->n_tiny &&
           !w->n_empty_rows && !w->n_nan_rows;
}

/* Whatever repeats is looked at once. */
static qkv_status check_weights(const qkvi_columns_problem *x, qkv_error *e) {
    const qkvi_problem *p = &x->p;
    const int64_t *const stride = x->want.row_weights_stride;
    int64_t size[3] = { qkvi_n_arrays(p), p->n_heads, qkvi_rows_q(p) };
    if (!x->want.row_weights || !size[0] || !size[1] || !size[2]) return QKV_OK;
    for (int n = 0; n < 3; n++)
        if (stride[n] == 0) size[n] = 1;
    for (int64_t b = 0; b < size[0]; b++)
        for (int64_t h = 0; h < size[1]; h++)
            for (int64_t i = 0; i < size[2]; i++) {
                const float weight =
                    x->want.row_weights[b * stride[0] + h * stride[1] + i * stride[2]];
                if (!isfinite(weight))
                    return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                                          "columns.row_weights[%" PRId64 "][%" PRId64 "][%" PRId64
                                          "] = %g is not finite",
                                          b, h, i, (double)weight);
            }
    return QKV_OK;
}

static qkv_status refuse_stats(const qkvi_problem *p, qkv_error *e) {
    if (!p->has_stats) return QKV_OK;
    return qkvi_error_set(e, QKV_ERR_UNSUPPORTED,
                          "QKV_SET_STATS: the pass over columns has no statistics of rows; forward "
                          "has");
}

static qkv_status read_desc(const qkv_attention_desc *desc, qkvi_columns_problem *x, qkv_error *e) {
    QKV_TRY(qkvi_problem_read(desc, &x->p, e));
    x->rows_k = qkvi_rows_k(&x->p);
    return refuse_stats(&x->p, e);
}

/* all_q: call_arrays.h. */
static void add_inputs(const qkvi_columns_problem *x, int64_t all_q, qkvi_arrays *all) {
    const qkvi_problem *const p = &x->p;
    qkvi_shapes s = qkvi_shapes_of(p);
    s.k[2] = x->rows_k;
    qkvi_add_typed(all, "q", p->q, p->dtype, s.q, p->q_stride, false);
    qkvi_add_typed(all, "k", p->k, p->dtype, s.k, p->k_stride, false);
    qkvi_arrays_add(all, "lse", p->lse, s.lse, p->lse_stride, false);
    qkvi_add_rules(all, p, all_q);
}

static void rest(qkvi_columns_problem *x) {
    const qkvi_problem *p = &x->p;
    const int64_t keys[4] = { qkvi_n_arrays(p), p->n_heads, x->rows_k, 1 };
    qkvi_rest_strides(&x->p);
    qkvi_rest((int64_t[4]){ keys[0], p->n_kv_heads, x->rows_k, p->head_dim }, x->p.k_stride, 3);
    qkvi_rest(keys, x->want.stride, 3);
    qkvi_rest(qkvi_shapes_of(p).lse, x->want.row_weights_stride, 3);
}

/* ---- Entrances ------------------------------------------------------------------------------- */

static qkv_status read_want(const qkv_attention_columns *given, qkvi_columns_problem *x,
                            qkv_error *e) {
    if (!given) return qkvi_error_set(e, QKV_ERR_ARGUMENT, "columns is NULL");
    x->want = (qkv_attention_columns){ 0 };
    QKV_TRY(qkvi_options_read(&x->want, sizeof x->want, given, "columns", e));
    return read_numbers(x, e);
}

/* Arrays of a call whose descriptor, and what it asks for, have been read. */
static qkv_status read_arrays(const void *q, const void *k, const float *lse,
                              const qkv_call_options *call, int64_t all_q, qkvi_columns_problem *x,
                              qkv_error *e) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(qkvi_add_workspace(&all, call, e));
    x->p.q = q;
    x->p.k = k;
    x->p.lse = (float *)(uintptr_t)lse; /* read only here */
    add_inputs(x, all_q, &all);
    add_columns(x, &all);
    QKV_TRY(qkvi_arrays_check(&all, true, e));
    QKV_TRY(qkvi_blocks_check(&x->p, all_q, &all, e));
    QKV_TRY(check_weights(x, e));
    rest(x);
    return QKV_OK;
}

qkv_status qkvi_columns_shape(const qkv_attention_desc *desc, const qkv_attention_columns *given,
                              qkvi_columns_problem *x, qkv_error *e) {
    qkvi_arrays all = { .count = 0 };
    *x = (qkvi_columns_problem){ .all = false };
    QKV_TRY(read_desc(desc, x, e));
    QKV_TRY(read_want(given, x, e));
    add_inputs(x, x->p.len_q, &all);
    add_columns(x, &all);
    return qkvi_arrays_check(&all, false, e);
}

qkv_status qkvi_columns_read(const qkv_attention_desc *desc, const void *q, const void *k,
                             const float *lse, const qkv_attention_columns *given,
                             const qkv_call_options *call, qkvi_columns_problem *x, qkv_error *e) {
    *x = (qkvi_columns_problem){ .all = false };
    QKV_TRY(read_desc(desc, x, e));
    QKV_TRY(read_want(given, x, e));
    return read_arrays(q, k, lse, call, x->p.len_q, x, e);
}

/* What is not of a key needs whole rows, or a sum that goes from block to block of all keys. */
static qkv_status refuse_maps(const qkv_attention_columns *w, qkv_error *e) {
    const struct {
        const void *data;
        const char *name;
    } refused[] = { { w->diagonal, "diagonal" },    { w->diagonal_rows, "diagonal_rows" },
                    { w->tile_mass, "tile_mass" },  { w->tile_peak, "tile_peak" },
                    { w->tile_rows, "tile_rows" },  { w->n_empty_rows, "n_empty_rows" },
                    { w->n_nan_rows, "n_nan_rows" } };
    for (size_t n = 0; n < sizeof refused / sizeof *refused; n++)
        if (refused[n].data)
            return qkvi_error_set(e, QKV_ERR_UNSUPPORTED,
                                  "columns.%s: a sequence in pieces has sums of keys alone",
                                  refused[n].name);
    return QKV_OK;
}

qkv_status qkvi_columns_piece(const qkv_attention_desc *desc, const qkvi_piece *piece,
                              const void *q, const void *k, const float *lse,
                              const qkv_attention_columns *given, qkvi_columns_problem *x,
                              qkv_error *e) {
    *x = (qkvi_columns_problem){ .all = false };
    QKV_TRY(qkvi_piece_read(desc, piece, &x->p, e));
    QKV_TRY(refuse_stats(&x->p, e));
    QKV_TRY(read_want(given, x, e));
    QKV_TRY(refuse_maps(&x->want, e));
    x->p.len_q = piece->len_q;
    x->rows_k = piece->len_k;
    QKV_TRY(read_arrays(q, k, lse, NULL, piece->all_q, x, e));
    x->p.first_q = piece->first_q;
    x->p.first_k = piece->first_k;
    return QKV_OK;
}

/* ---- A rectangle ----------------------------------------------------------------------------- */

static qkv_status check_interval(const char *from, const char *to, int64_t begin, int64_t end,
                                 const char *limit_name, int64_t limit, qkv_error *e) {
    if (begin < 0 || begin > end)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                              "%s = %" PRId64 " is not in [0, %s = %" PRId64 "]", from, begin, to,
                              end);
    if (end > limit)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                              "%s = %" PRId64 " is greater than the %" PRId64 " %s", to, end, limit,
                              limit_name);
    return QKV_OK;
}

static qkv_status check_rectangle(const qkvi_problem *p, const qkvi_rectangle *r, qkv_error *e) {
    if (r->b < 0 || r->b >= p->n_batch)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "b = %" PRId64 " is not in [0, %" PRId64 ")",
                              r->b, p->n_batch);
    if (r->h < 0 || r->h >= p->n_heads)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "h = %" PRId64 " is not in [0, %" PRId64 ")",
                              r->h, p->n_heads);
    QKV_TRY(check_interval("i0", "i1", r->i0, r->i1, "queries", qkvi_len_q(p, r->b), e));
    QKV_TRY(check_interval("j0", "j1", r->j0, r->j1, "keys", qkvi_len_k(p, r->b), e));
    const double cells = (double)(r->i1 - r->i0) * (double)(r->j1 - r->j0);
    if (cells > QKV_WEIGHTS_MAX_CELLS)
        return qkvi_error_set(
            e, QKV_ERR_LIMIT,
            "(i1 - i0) (j1 - j0) = %.0f weights are more than "
            "QKV_WEIGHTS_MAX_CELLS = %d; without a limit: "
            "qkv_attention_columns_pass (columns, diagonals, tiles), QKV_SET_STATS "
            "(rows)",
            cells, (int)QKV_WEIGHTS_MAX_CELLS);
    return QKV_OK;
}

qkv_status qkvi_weights_read(const qkv_attention_desc *desc, const void *q, const void *k,
                             const float *lse, const qkvi_rectangle *r,
                             const qkv_call_options *call, qkvi_columns_problem *x, qkv_error *e) {
    qkvi_arrays all = { .count = 0 };
    *x = (qkvi_columns_problem){ .all = false };
    QKV_TRY(read_desc(desc, x, e));
    QKV_TRY(check_rectangle(&x->p, r, e));
    QKV_TRY(qkvi_add_workspace(&all, call, e));
    x->p.q = q;
    x->p.k = k;
    x->p.lse = (float *)(uintptr_t)lse;
    add_inputs(x, x->p.len_q, &all);
    const int64_t size[4] = { 1, 1, r->i1 - r->i0, r->j1 - r->j0 }, stride[3] = { 0, 0, r->row };
    qkvi_arrays_add(&all, "p", r->out, size, stride, true);
    QKV_TRY(qkvi_arrays_check(&all, true, e));
    QKV_TRY(qkvi_blocks_check(&x->p, x->p.len_q, &all, e));
    rest(x);
    return QKV_OK;
}
