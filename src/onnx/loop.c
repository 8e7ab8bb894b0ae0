/* See loop.h. */
#include "onnx/loop.h"

#include <math.h>
#include <string.h>

#include "attn/mask.h"
#include "attn/watch.h"
#include "onnx/exp.h"

typedef struct pass {
    const qkvi_onnx *x;
    void *y, *qk;
    int64_t n_blocks; /* of a head */
    int64_t n_units;
    qkvi_onnx_slot *slots;
    atomic_llong next;
    qkvi_watch watch;
} pass;

/* Some queries of one head of one batch. */
typedef struct unit {
    int64_t b, h, g, i0;
    int n_rows;
    qkvi_rules rules;
} unit;

static int64_t blocks_of_head(const qkvi_onnx *x) {
    return qkvi_ceil_div(x->len_q, QKVI_ONNX_ROWS);
}

int qkvi_onnx_loop_threads(const qkvi_onnx *x, int max_threads) {
    const int64_t n_units = x->n_batch * x->n_heads * blocks_of_head(x);
    return (int)qkvi_min_i64(n_units, max_threads);
}

qkvi_onnx_slot *qkvi_onnx_lay_out_loop(const qkvi_onnx *x, int n_threads, qkvi_cutter *cutter) {
    qkvi_onnx_slot measured, *slots = qkvi_cut(cutter, n_threads, sizeof *slots);
    const size_t rows = QKVI_ONNX_ROWS, row_bytes = rows * sizeof(double);
    for (int n = 0; n < n_threads; n++) {
        qkvi_onnx_slot *to = slots ? &slots[n] : &measured;
        to->s = qkvi_cut(cutter, x->len_k, row_bytes);
        to->sees = qkvi_cut(cutter, x->len_k, rows * sizeof *to->sees);
        to->q = qkvi_cut(cutter, x->head_dim, row_bytes);
        to->y = qkvi_cut(cutter, x->head_dim_v, row_bytes);
        to->k = qkvi_cut(cutter, x->head_dim, sizeof *to->k);
        to->v = qkvi_cut(cutter, x->head_dim_v, sizeof *to->v);
    }
    return slots;
}

/* ---- Who sees whom --------------------------------------------------------------------------- */

static unit unit_at(const pass *p, int64_t index) {
    const qkvi_onnx *x = p->x;
    const int64_t head = index / p->n_blocks;
    unit u = { .b = head / x->n_heads, .h = head % x->n_heads };
    u.g = u.h / (x->n_heads / x->n_kv_heads);
    u.i0 = index % p->n_blocks * QKVI_ONNX_ROWS;
    u.n_rows = (int)qkvi_min_i64(QKVI_ONNX_ROWS, x->len_q - u.i0);
    const int64_t nonpad =
        x->has_nonpad ? ((const int64_t *)x->node.nonpad_kv_seqlen.data)[u.b] : x->len_k;
    u.rules = (qkvi_rules){
        .n_queries = x->len_q,
        .n_keys = qkvi_min_i64(nonpad, x->mask_len),
        .offset = x->has_nonpad ? nonpad - x->len_q : x->len_past,
        .left = x->left,
        .right = x->right,
        .causal_end = x->node.is_causal ? 0 : QKVI_NO_WINDOW,
    };
    return u;
}

/* Fills `sees` of a row by position and by a mask of bools, which is one byte an element. */
static void fill_sees(const qkvi_onnx *x, const unit *u, int64_t i, bool *sees) {
    const qkvi_range keys = qkvi_keys_of(&u->rules, i);
    const int64_t *stride = x->mask_stride;
    memset(sees, 0, (size_t)x->len_k * sizeof *sees);
    for (int64_t j = keys.begin; j < keys.end; j++) sees[j] = true;
    if (!x->has_mask || x->node.attn_mask.type != QKV_ONNX_BOOL || keys.begin == keys.end) return;
    const uint8_t *mask = (const uint8_t *)x->node.attn_mask.data + u->b * stride[0] +
                          u->h * stride[1] + i * stride[2];
    for (int64_t j = keys.begin; j < keys.end; j++) sees[j] = mask[j * stride[3]] != 0;
}

/* Adds a mask of numbers to the scores of keys that are seen; -infinity hides. */
static void add_mask(const qkvi_onnx *x, const unit *u, int64_t i, double *s, bool *sees) {
    const qkv_onnx_tensor *mask = &x->node.attn_mask;
    const int64_t *stride = x->mask_stride;
    const int64_t at = u->b * stride[0] + u->h * stride[1] + i * stride[2];
    const bool adds = x->has_mask && mask->type != QKV_ONNX_BOOL;
    for (int64_t j = 0; j < x->len_k; j++) {
        double added = 0;
        if (adds && sees[j]) qkvi_onnx_load(mask->type, mask->data, at + j * stride[3], 1, &added);
        if (added == -INFINITY) sees[j] = false;
        s[j] = sees[j] ? s[j] + added : -INFINITY;
    }
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */

/* Row j of keys or values: of the past, or of K or V. */
static void load_key(const qkvi_onnx *x, const unit *u, int64_t j, double *to) {
    const bool past = j < x->len_past;
    const int64_t *stride = past ? x->past_k_stride : x->k_stride;
    const qkv_onnx_tensor *from = past ? &x->node.past_key : &x->node.K;
    const int64_t row = past ? j : j - x->len_past;
    qkvi_onnx_load(x->type, from->data, u->b * stride[0] + u->g * stride[1] + row * stride[2],
                   x->head_dim, to);
}

static void load_value(const qkvi_onnx *x, const unit *u, int64_t j, double *to) {
    const bool past = j < x->len_past;
    const int64_t *stride = past ? x->past_v_stride : x->v_stride;
    const qkv_onnx_tensor *from = past ? &x->node.past_value : &x->node.V;
    const int64_t row = past ? j : j - x->len_past;
    qkvi_onnx_load(x->type_v, from->data, u->b * stride[0] + u->g * stride[1] + row * stride[2],
                   x->head_dim_v, to);
}

static double dot(const double *a, const double *b, int64_t n) {
    double lane[8] = { 0 };
    int64_t c = 0;
    for (; c + 8 <= n; c += 8)
        for (int l = 0; l < 8; l++) lane[l] += a[c + l] * b[c + l];
    for (int l = 0; c < n; c++, l++) lane[l] += a[c] * b[c];
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static bool some_row_sees(const qkvi_onnx *x, const qkvi_onnx_slot *slot, int n_rows, int64_t j) {
    for (int r = 0; r < n_rows; r++)
        if (slot->sees[r * x->len_k + j]) return true;
    return false;
}

static void fill_scores(const qkvi_onnx *x, const unit *u, bool all, qkvi_onnx_slot *slot) {
    for (int r = 0; r < u->n_rows; r++) {
        const int64_t at =
            u->b * x->q_stride[0] + u->h * x->q_stride[1] + (u->i0 + r) * x->q_stride[2];
        qkvi_onnx_load(x->type, x->node.Q.data, at, x->head_dim, slot->q + r * x->head_dim);
    }
    for (int64_t j = 0; j < x->len_k; j++) {
        if (!all && !some_row_sees(x, slot, u->n_rows, j)) {
            for (int r = 0; r < u->n_rows; r++) slot->s[r * x->len_k + j] = 0;
            continue;
        }
        load_key(x, u, j, slot->k);
        for (int r = 0; r < u->n_rows; r++)
            slot->s[r * x->len_k + j] =
                x->scale * dot(slot->q + r * x->head_dim, slot->k, x->head_dim);
    }
}

static void cap_scores(double softcap, double *s, int64_t n) {
    for (int64_t j = 0; j < n; j++) s[j] = softcap * qkvi_onnx_tanh(s[j] / softcap);
}

/*
 * Scores become weights. A row that sees a NaN or +infinity, or nothing but -infinity, becomes NaN.
 */
static void softmax(double *s, const bool *sees, int64_t n) {
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++)
        if (sees[j] && !(s[j] <= largest)) {
            largest = s[j];
            if (isnan(largest)) break;
        }
    for (int64_t j = 0; j < n; j++) {
        s[j] = sees[j] ? qkvi_onnx_exp(s[j] - largest) : 0;
        sum += s[j];
    }
    for (int64_t j = 0; j < n; j++)
        if (sees[j]) s[j] /= sum;
}

static void add_values(const qkvi_onnx *x, const unit *u, qkvi_onnx_slot *slot) {
    const int64_t dim = x->head_dim_v;
    for (int64_t c = 0; c < u->n_rows * dim; c++) slot->y[c] = 0;
    for (int64_t j = 0; j < x->len_k; j++) {
        if (!some_row_sees(x, slot, u->n_rows, j)) continue;
        load_value(x, u, j, slot->v);
        for (int r = 0; r < u->n_rows; r++) {
            const double weight = slot->s[r * x->len_k + j];
            double *const y = slot->y + r * dim;
            if (!slot->sees[r * x->len_k + j]) continue;
            for (int64_t c = 0; c < dim; c++) y[c] += weight * slot->v[c];
        }
    }
}

/* ---- Units ----------------------------------------------------------------------------------- */

static void store_stage(const pass *p, const unit *u, int64_t stage, int r, const double *s) {
    const qkvi_onnx *x = p->x;
    if (!p->qk || x->node.qk_matmul_output_mode != stage) return;
    const int64_t row = (u->b * x->n_heads + u->h) * x->len_q + u->i0 + r;
    qkvi_onnx_store(x->type, p->qk, row * x->len_k, x->len_k, s);
}

static void run_unit(const pass *p, const unit *u, qkvi_onnx_slot *slot) {
    const qkvi_onnx *x = p->x;
    for (int r = 0; r < u->n_rows; r++) fill_sees(x, u, u->i0 + r, slot->sees + r * x->len_k);
    fill_scores(x, u, p->qk && x->node.qk_matmul_output_mode < 2, slot);
    for (int r = 0; r < u->n_rows; r++) {
        double *const s = slot->s + r * x->len_k;
        bool *const sees = slot->sees + r * x->len_k;
        store_stage(p, u, 0, r, s);
        if (x->node.softcap > 0) cap_scores((double)x->node.softcap, s, x->len_k);
        store_stage(p, u, 1, r, s);
        add_mask(x, u, u->i0 + r, s, sees);
        store_stage(p, u, 2, r, s);
        softmax(s, sees, x->len_k);
        store_stage(p, u, 3, r, s);
    }
    if (!p->y) return;
    add_values(x, u, slot);
    for (int r = 0; r < u->n_rows; r++) {
        const int64_t at =
            u->b * x->y_stride[0] + u->h * x->y_stride[1] + (u->i0 + r) * x->y_stride[2];
        qkvi_onnx_store(x->type, p->y, at, x->head_dim_v, slot->y + r * x->head_dim_v);
    }
}

static void run_units(void *argument, int thread) {
    pass *p = argument;
    for (int64_t n;
         n = atomic_fetch_add(&p->next, 1), n < p->n_units && !qkvi_watch_cancelled(&p->watch);) {
        const unit u = unit_at(p, n);
        run_unit(p, &u, &p->slots[thread]);
        qkvi_watch_done_one(&p->watch);
    }
}

qkv_status qkvi_onnx_loop(qkv_ctx *ctx, const qkvi_onnx *x, void *y, void *qk, int n_threads,
                          qkvi_onnx_slot *slots, const qkv_call_options *call) {
    pass p = { .x = x, .y = y, .qk = qk, .n_blocks = blocks_of_head(x), .slots = slots };
    p.n_units = x->n_batch * x->n_heads * p.n_blocks;
    p.watch = qkvi_watch_begin(call, p.n_units);
    qkvi_pool_run(ctx->pool, n_threads, run_units, &p);
    return qkvi_watch_end(&p.watch, ctx);
}
