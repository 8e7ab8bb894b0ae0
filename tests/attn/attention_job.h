/*
 * A job: forward, backward, merge and the pass over columns, large enough for eight threads and
 * three blocks of keys; and its results, which must be the same wherever and however often it runs.
 */
#ifndef QKV_TESTS_ATTENTION_JOB_H
#define QKV_TESTS_ATTENTION_JOB_H

#include <stdbool.h>
#include <string.h>

#include <qkv/columns.h>

#include "attn/attention_problem.h"

typedef struct job {
    problem p;
    float *merged_o, *merged_lse;
    float *columns; /* received, entropy, diagonals, tiles of all heads */
} job;

enum { JOB_OUTPUTS = 8, JOB_TILES = 9 };

static inline int64_t job_columns(const problem *p) {
    const int64_t of_head = 2 * p->d.len_k + p->d.len_q + p->d.len_k - 1 + JOB_TILES * JOB_TILES;
    return p->d.n_batch * p->d.n_heads * of_head;
}

static inline job job_new(void) {
    rng r = { 17 };
    job j = { .p = problem_new(&r, 2, 4, 2, 64, 520, 16, 16) };
    j.p.d.flags = QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
    j.p.d.q_offset = 500;
    j.merged_o = floats(n_o(&j.p));
    j.merged_lse = floats(rows_q(&j.p));
    j.columns = floats(job_columns(&j.p));
    return j;
}

static inline void job_free(job *j) {
    problem_free(&j->p);
    free(j->merged_o);
    free(j->merged_lse);
    free(j->columns);
}

/* The outputs and how many floats each has. */
static inline void job_outputs(const job *j, float *outputs[JOB_OUTPUTS], int64_t n[JOB_OUTPUTS]) {
    const problem *p = &j->p;
    float *const all[] = { p->o,   p->lse,      p->d_q,        p->d_k,
                           p->d_v, j->merged_o, j->merged_lse, j->columns };
    const int64_t sizes[] = { n_o(p), rows_q(p), n_q(p),    n_k(p),
                              n_v(p), n_o(p),    rows_q(p), job_columns(p) };
    memcpy(outputs, all, sizeof all);
    memcpy(n, sizes, sizeof sizes);
}

static inline void job_clear(job *j) {
    float *outputs[JOB_OUTPUTS];
    int64_t n[JOB_OUTPUTS];
    job_outputs(j, outputs, n);
    for (int a = 0; a < JOB_OUTPUTS; a++) memset(outputs[a], 0xA5, (size_t)n[a] * sizeof(float));
}

static inline qkv_status job_do_columns(qkv_ctx *ctx, job *j) {
    const problem *p = &j->p;
    const int64_t heads = p->d.n_batch * p->d.n_heads, keys = heads * p->d.len_k;
    qkv_attention_columns c;
    qkv_attention_columns_contiguous(&c, &p->d);
    c.received = j->columns;
    c.entropy = c.received + keys;
    c.diagonal = c.entropy + keys;
    c.tile_mass = c.diagonal + heads * c.n_diagonals;
    c.n_tiles_q = c.n_tiles_k = JOB_TILES;
    return qkv_attention_columns_pass(ctx, &p->d, p->q, p->k, p->lse, &c, NULL);
}

/* All four calls on cleared outputs; the first status that is not QKV_OK. */
static inline qkv_status job_do(qkv_ctx *ctx, job *j) {
    job_clear(j);
    const qkv_status status = problem_call(ctx, &j->p);
    const void *const o_parts[] = { j->p.o, j->p.d_o };
    const float *const lse_parts[] = { j->p.lse, j->p.q };
    if (status != QKV_OK) return status;
    const qkv_status merged =
        qkv_attention_merge(ctx, &j->p.d, 2, o_parts, lse_parts, j->merged_o, j->merged_lse);
    return merged == QKV_OK ? job_do_columns(ctx, j) : merged;
}

static inline bool job_same(const job *x, const job *y) {
    float *a[JOB_OUTPUTS], *b[JOB_OUTPUTS];
    int64_t n[JOB_OUTPUTS];
    job_outputs(x, a, n);
    job_outputs(y, b, n);
    for (int i = 0; i < JOB_OUTPUTS; i++)
        if (memcmp(a[i], b[i], (size_t)n[i] * sizeof(float)) != 0) return false;
    return true;
}

/* The expected results: by one thread and the scalar build. */
static inline job job_answer(void) {
    job j = job_new();
    qkv_ctx *ctx = context_on("scalar", 1);
    assert_int_equal(job_do(ctx, &j), QKV_OK);
    qkv_ctx_free(ctx);
    return j;
}

/* Runs a job of its own and compares it, without assertions: for child processes and threads. */
static inline bool job_right(qkv_ctx *ctx, const job *answer) {
    job j = job_new();
    const bool right = job_do(ctx, &j) == QKV_OK && job_same(&j, answer);
    job_free(&j);
    return right;
}

#endif
