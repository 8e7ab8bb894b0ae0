/* See decode_plan.h. */
#include "attn/decode_plan.h"

#include "attn/plan.h"
#include "attn/stats.h"

enum {
    UNITS_PER_THREAD = 4, /* from so many on, sharing out whole units is balanced well enough */
    /*
     * products that are worth a thread: few, because a model's threads are awake between its
     * layers. Weights in int8 of SmolLM2-135M's shape, 128 tokens before: 4 % more a second than 1
     * << 20 (Zen 5, two threads)
     */
    THREAD_WORK = 1 << 18,
    LOAD_WORK = 4,            /* products that take as long as reading an element */
    MOST_ELEMENTS = 32 * 2048 /* of the rows of a block; beyond, fewer rows */
};

/* Splits that a window lets a block of rows look into, at most. */
static int64_t count_splits(const qkvi_problem *p) {
    const int64_t all = qkvi_ceil_div(p->len_k, QKVI_DECODE_SPLIT);
    const int64_t right = p->causal && !p->prefix_len ? 0 : p->window_right;
    if (p->window_left == QKVI_NO_WINDOW || right == QKVI_NO_WINDOW) return all;
    const int64_t keys = p->window_left + right + p->len_q; /* at most: their queries' windows */
    return qkvi_min_i64(all, qkvi_ceil_div(keys, QKVI_DECODE_SPLIT) + 1);
}

static int choose_threads(const qkvi_problem *p, int n_threads) {
    const double rows = (double)(p->n_batch * p->n_heads * p->len_q);
    const double loads = LOAD_WORK * (double)(p->n_batch * p->n_kv_heads);
    const double work = (rows + loads) * (double)p->len_k * (double)(p->head_dim + p->head_dim_v);
    const double worth = 1 + work / THREAD_WORK;
    return worth < n_threads ? (int)worth : n_threads;
}

/* Blocks of at most n_rows rows. */
static void cut_rows(const qkvi_problem *p, int64_t n_rows, qkvi_decode_plan *plan) {
    plan->n_rows = (int)qkvi_max_i64(n_rows, 1);
    if (p->n_batch && p->n_heads && p->len_q) {
        plan->n_row_blocks = qkvi_ceil_div(p->heads_per_kv * p->len_q, plan->n_rows);
        plan->n_units = p->n_batch * p->n_kv_heads * plan->n_row_blocks;
    }
    plan->sums_at =
        sizeof(qkvi_decode_part) + (size_t)plan->n_rows * (size_t)plan->o_row * sizeof(float);
    plan->part_bytes = plan->sums_at + (size_t)plan->n_rows * plan->sums_bytes;
}

static int64_t most_rows(const qkvi_decode_plan *plan) {
    const int64_t widest = qkvi_max_i64(qkvi_max_i64(plan->q_row, plan->o_row), 1);
    return qkvi_min_i64(QKVI_DECODE_ROWS, MOST_ELEMENTS / widest);
}

void qkvi_decode_plan_make(const qkvi_problem *p, int n_threads, qkvi_decode_plan *plan) {
    *plan = (qkvi_decode_plan){
        .n_threads = choose_threads(p, n_threads),
        .n_splits = qkvi_max_i64(count_splits(p), 1),
        .q_row = qkvi_round_up(p->head_dim, 16),
        .o_row = qkvi_round_up(p->head_dim_v, 16),
        .sums_bytes = qkvi_stats_sums_bytes(p),
    };
    cut_rows(p, most_rows(plan), plan);
    plan->shared =
        plan->n_threads > 1 && plan->n_units < (int64_t)UNITS_PER_THREAD * plan->n_threads;
    qkvi_split_scale(p->scale, &plan->q_factor, &plan->scale);
}

void qkvi_decode_plan_pieces(const qkvi_problem *p, int n_threads, int64_t n_splits,
                             qkvi_decode_plan *plan) {
    qkvi_decode_plan_make(p, n_threads, plan);
    cut_rows(p, qkvi_min_i64(plan->n_rows, p->heads_per_kv * p->len_q), plan);
    plan->n_splits = n_splits;
    plan->shared = true;
}

static void lay_out_stats(qkvi_cutter *cutter, const qkvi_decode_plan *plan,
                          qkvi_decode_slot *slot) {
    qkvi_decode_stats *stats = qkvi_cut(cutter, 1, sizeof *stats);
    qkvi_attend_stats *of = qkvi_cut(cutter, plan->n_rows, sizeof *of);
    qkvi_attend_scratch *scratch = qkvi_cut(cutter, 1, sizeof *scratch);
    slot->stats = stats;
    if (!stats) return;
    *stats = (qkvi_decode_stats){
        .of = of, .scratch = scratch, .sums_at = plan->sums_at, .sums_bytes = plan->sums_bytes
    };
}

static void lay_out_slot(qkvi_cutter *cutter, const qkvi_decode_plan *plan,
                         qkvi_decode_slot *slot) {
    const int64_t stage = qkvi_max_i64(plan->q_row, plan->o_row);
    slot->scratch = qkvi_cut(cutter, 1, sizeof *slot->scratch);
    slot->rows = qkvi_cut(cutter, plan->n_rows, sizeof *slot->rows);
    slot->q = qkvi_cut(cutter, plan->n_rows, (size_t)plan->q_row * sizeof *slot->q);
    slot->block = qkvi_cut(cutter, plan->n_rows, (size_t)plan->o_row * sizeof *slot->block);
    slot->stage = qkvi_cut(cutter, QKVI_DECODE_GROUP, (size_t)stage * sizeof(float));
    slot->stats = NULL;
    if (plan->sums_bytes) lay_out_stats(cutter, plan, slot);
    for (int n = 0; n < 2; n++) slot->parts[n] = qkvi_cut(cutter, !plan->shared, plan->part_bytes);
}

void qkvi_decode_lay_out(const qkvi_problem *p, qkvi_cutter *cutter, qkvi_decode_plan *plan) {
    qkvi_decode_slot slot;
    plan->slots = qkvi_cut(cutter, plan->n_threads, sizeof *plan->slots);
    for (int n = 0; n < plan->n_threads; n++)
        lay_out_slot(cutter, plan, plan->slots ? &plan->slots[n] : &slot);
    plan->stats = p->has_stats ? qkvi_stats_lay_out(p, cutter, plan->n_threads) : NULL;
    if (!plan->shared) return;
    plan->left = qkvi_cut(cutter, plan->n_units, sizeof *plan->left);
    plan->parts = qkvi_cut(cutter, plan->n_units * plan->n_splits, plan->part_bytes);
}
