/*
 * Forward pass: who computes what. The arithmetic is in kernels/tmpl/attend.h.
 *
 * K and V of a key/value head are packed once and shared by all blocks of 96 queries of all query heads of its group. Where there
 * are many heads, a thread takes a head at a time and packs it for itself; where there are few, all threads pack one head
 * together and then share out its blocks of queries, the last first, because under a causal mask these are the longest.
 *
 * A row's result depends on its query, its keys and the options alone: nothing here forms a sum.
 *
 * Memory: each thread's scratch, and one packed head, or one for each thread; docs/numerics.md has the formula.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "attn/ctx.h"
#include "attn/mask.h"
#include "kernels/table.h"

enum {
    HEADS_PER_THREAD = 4, /* from so many on, sharing out whole heads balances well enough */
    SERIAL_PRODUCTS =
        200000 /* below this many multiplications waking a thread costs more than it brings */
};

/* One packed head. */
typedef struct packed {
    float *k, *v;
    uint8_t *v_nonfinite;
} packed;

/* One key/value head of one batch, and what its queries see. */
typedef struct head {
    int64_t b, g;
    qkvi_rules rules;
    qkvi_range keys;   /* all that some query sees */
    int64_t first_key; /* the first block's */
} head;

typedef struct pass {
    const qkvi_problem *p;
    const qkvi_kernels *kernels;
    const qkv_call_options *call;
    int n_threads;
    bool shared;     /* all threads work on one head */
    packed *packs;   /* [shared ? 1 : n_threads] */
    float **scratch; /* [n_threads] */
    int64_t n_heads, n_query_blocks, n_key_blocks;
    head now; /* if shared */
    atomic_llong next, done;
    atomic_bool cancelled;
    pthread_t caller;
} pass;

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static head head_at(const qkvi_problem *p, int64_t index) {
    head w = { .b = index / p->n_kv_heads, .g = index % p->n_kv_heads };
    w.rules = qkvi_rules_of(p, w.b);
    if (w.rules.n_queries > 0) w.keys = qkvi_keys_of_block(&w.rules, 0, w.rules.n_queries);
    w.first_key = w.keys.begin / QKVI_KEY_BLOCK * QKVI_KEY_BLOCK;
    return w;
}

/* ---- packing ---- */

/* The keys [begin, end) of one panel whose first columns have no key. */
static void pack_late_keys(const float *k, int64_t k_row, int64_t begin, int64_t end, int64_t dim,
                           float *panel) {
    memset(panel, 0, (size_t)(dim * QKVI_PANEL) * sizeof *panel);
    for (int64_t j = begin; j < end; j++)
        for (int64_t c = 0; c < dim; c++) panel[c * QKVI_PANEL + j % QKVI_PANEL] = k[j * k_row + c];
}

static void pack_block(const pass *x, const head *w, const packed *to, int64_t index) {
    const qkvi_problem *p = x->p;
    const int64_t block = w->first_key + index * QKVI_KEY_BLOCK;
    const int64_t end = qkvi_min_i64(block + QKVI_KEY_BLOCK, w->keys.end);
    int64_t begin = qkvi_max_i64(block, w->keys.begin);
    const float *k = p->k + w->b * p->k_stride[0] + w->g * p->k_stride[1];
    const float *v = p->v + w->b * p->v_stride[0] + w->g * p->v_stride[1];
    float *values = to->v + index * QKVI_KEY_BLOCK * qkvi_round_up(p->head_dim_v, QKVI_PANEL);
    to->v_nonfinite[index] = !x->kernels->bwd.pack_channels(
        v + begin * p->v_stride[2], p->v_stride[2], end - begin, p->head_dim_v, QKVI_KEY_BLOCK,
        values + (begin - block) * QKVI_PANEL);

    float *panels = to->k + (block - w->first_key) * p->head_dim;
    if (begin % QKVI_PANEL != 0) {
        const int64_t stop = qkvi_min_i64(qkvi_round_up(begin, QKVI_PANEL), end);
        pack_late_keys(k, p->k_stride[2], begin, stop, p->head_dim,
                       panels + (begin - block) / QKVI_PANEL * QKVI_PANEL * p->head_dim);
        begin = stop;
    }
    if (begin < end)
        x->kernels->bwd.pack_keys(k + begin * p->k_stride[2], p->k_stride[2], end - begin,
                                  p->head_dim, panels + (begin - block) * p->head_dim);
}

static int64_t blocks_of(const head *w) {
    return ceil_div(w->keys.end - w->first_key, QKVI_KEY_BLOCK);
}

/* ---- a block of queries ---- */

static void set_mask(const qkvi_problem *p, const head *w, int64_t h, int64_t i, qkvi_attend *a) {
    if (p->mask_type == QKV_MASK_NONE) return;
    a->mask_kind = p->mask_type == QKV_MASK_F32 ? QKVI_MASK_FLOATS : QKVI_MASK_BYTES;
    a->mask = qkvi_mask_row(p, w->b, h, i);
    a->mask_row = p->mask_stride[2];
    a->mask_key = p->mask_stride[3];
}

static void attend(const pass *x, const head *w, const packed *from, float *scratch, int64_t h,
                   int64_t i) {
    const qkvi_problem *p = x->p;
    qkvi_attend a = {
        .n_rows = (int)qkvi_min_i64(QKVI_QUERY_BLOCK, w->rules.n_queries - i),
        .head_dim = p->head_dim,
        .head_dim_v = p->head_dim_v,
        .q = p->q + w->b * p->q_stride[0] + h * p->q_stride[1] + i * p->q_stride[2],
        .q_row = p->q_stride[2],
        .o = p->o + w->b * p->o_stride[0] + h * p->o_stride[1] + i * p->o_stride[2],
        .o_row = p->o_stride[2],
        .lse_row = p->lse_stride[2],
        .position = i + w->rules.offset,
        .left = w->rules.left,
        .right = w->rules.right,
        .n_keys = w->rules.n_keys,
        .first_key = w->first_key,
        .keys_begin = w->keys.begin,
        .k_panels = from->k,
        .v_panels = from->v,
        .v_nonfinite = from->v_nonfinite,
        .scale = p->scale,
        .softcap = p->has_softcap ? p->softcap : 0.0f,
        .scratch = scratch,
    };
    if (p->lse)
        a.lse = p->lse + w->b * p->lse_stride[0] + h * p->lse_stride[1] + i * p->lse_stride[2];
    set_mask(p, w, h, i, &a);
    x->kernels->attend_block(&a);
}

/* Block number `index` of a head's group, the last rows first. False past the end of the rows. */
static void attend_nth(const pass *x, const head *w, const packed *from, float *scratch,
                       int64_t index) {
    const int64_t n_blocks = ceil_div(w->rules.n_queries, QKVI_QUERY_BLOCK);
    if (index >= n_blocks * x->p->heads_per_kv) return;
    const int64_t h = w->g * x->p->heads_per_kv + index % x->p->heads_per_kv;
    const int64_t block = n_blocks - 1 - index / x->p->heads_per_kv;
    attend(x, w, from, scratch, h, block * QKVI_QUERY_BLOCK);
}

/* ---- tasks ---- */

static bool is_cancelled(pass *x) {
    if (x->call && x->call->cancel && *(const volatile int *)x->call->cancel)
        atomic_store(&x->cancelled, true);
    return atomic_load(&x->cancelled);
}

static void report_progress(pass *x, int64_t n_blocks) {
    const long long done = atomic_fetch_add(&x->done, n_blocks) + n_blocks;
    if (x->call && x->call->progress && pthread_equal(pthread_self(), x->caller))
        x->call->progress(x->call->progress_user, done,
                          x->n_heads * x->n_query_blocks * x->p->heads_per_kv);
}

static void run_heads(void *argument, int index) {
    pass *x = argument;
    const int64_t n_blocks = x->n_query_blocks * x->p->heads_per_kv;
    while (!is_cancelled(x)) {
        const long long nth = atomic_fetch_add(&x->next, 1);
        if (nth >= x->n_heads) return;
        const head w = head_at(x->p, nth);
        for (int64_t block = 0; block < blocks_of(&w); block++)
            pack_block(x, &w, &x->packs[index], block);
        for (int64_t n = 0; n < n_blocks && !is_cancelled(x); n++)
            attend_nth(x, &w, &x->packs[index], x->scratch[index], n);
        report_progress(x, n_blocks);
    }
}

static void pack_shared(void *argument, int index) {
    (void)index;
    pass *x = argument;
    for (;;) {
        const long long block = atomic_fetch_add(&x->next, 1);
        if (block >= blocks_of(&x->now)) return;
        pack_block(x, &x->now, &x->packs[0], block);
    }
}

static void run_shared(void *argument, int index) {
    pass *x = argument;
    while (!is_cancelled(x)) {
        const long long nth = atomic_fetch_add(&x->next, 1);
        if (nth >= x->n_query_blocks * x->p->heads_per_kv) return;
        attend_nth(x, &x->now, &x->packs[0], x->scratch[index], nth);
        report_progress(x, 1);
    }
}

static void run(pass *x, qkvi_pool *pool) {
    if (!x->shared) {
        qkvi_pool_run(pool, x->n_threads, run_heads, x);
        return;
    }
    for (int64_t index = 0; index < x->n_heads && !is_cancelled(x); index++) {
        x->now = head_at(x->p, index);
        atomic_store(&x->next, 0);
        qkvi_pool_run(pool, x->n_threads, pack_shared, x);
        atomic_store(&x->next, 0);
        qkvi_pool_run(pool, x->n_threads, run_shared, x);
    }
}

/* ---- plan and workspace ---- */

/* n_batch * n_heads * len_q fits (desc.h); as a double the number of products cannot overflow. */
static void plan(pass *x, const qkvi_problem *p, const qkv_ctx *ctx) {
    const double products = (double)(p->n_batch * p->n_heads * p->len_q) * (double)p->len_k *
                            (double)(p->head_dim + p->head_dim_v);
    x->p = p;
    x->kernels = ctx->kernels;
    x->caller = pthread_self();
    x->n_heads = p->n_batch * p->n_kv_heads;
    x->n_query_blocks = ceil_div(p->len_q, QKVI_QUERY_BLOCK);
    x->n_key_blocks = ceil_div(p->len_k, QKVI_KEY_BLOCK);
    x->n_threads = products < SERIAL_PRODUCTS ? 1 : qkvi_pool_threads(ctx->pool);
    x->shared = x->n_threads > 1 && x->n_heads < (int64_t)HEADS_PER_THREAD * x->n_threads;
    if (!x->shared && x->n_threads > x->n_heads)
        x->n_threads = x->n_heads > 0 ? (int)x->n_heads : 1;
}

static void lay_out(qkvi_cutter *cutter, pass *x) {
    const qkvi_problem *p = x->p;
    const int n_packs = x->shared ? 1 : x->n_threads;
    const int64_t n_keys = x->n_key_blocks * QKVI_KEY_BLOCK;
    x->packs = qkvi_cut(cutter, n_packs, sizeof *x->packs);
    x->scratch = qkvi_cut(cutter, x->n_threads, sizeof *x->scratch);
    for (int n = 0; n < n_packs; n++) {
        const packed pack = {
            .k = qkvi_cut(cutter, n_keys * p->head_dim, sizeof(float)),
            .v = qkvi_cut(cutter, n_keys * qkvi_round_up(p->head_dim_v, QKVI_PANEL), sizeof(float)),
            .v_nonfinite = qkvi_cut(cutter, x->n_key_blocks, 1),
        };
        if (x->packs) x->packs[n] = pack;
    }
    for (int n = 0; n < x->n_threads; n++) {
        const int64_t n_elems = qkvi_attend_scratch_elems(p->head_dim, p->head_dim_v);
        float *const scratch = qkvi_cut(cutter, n_elems, sizeof *scratch);
        if (x->scratch) x->scratch[n] = scratch;
    }
}

static qkv_status size_of(pass *x, qkv_ctx *ctx, size_t *bytes) {
    qkvi_cutter cutter = { 0 };
    lay_out(&cutter, x);
    if (cutter.overflow)
        return qkvi_ctx_fail(ctx, QKV_ERR_MEMORY, "the workspace does not fit the address space");
    *bytes = cutter.used_bytes;
    return QKV_OK;
}

static qkv_status forward(qkv_ctx *ctx, const qkvi_problem *p, const qkv_call_options *call) {
    pass x = { .call = call };
    size_t bytes = 0;
    void *block;
    plan(&x, p, ctx);
    QKV_TRY(size_of(&x, ctx, &bytes));
    QKV_TRY(qkvi_ctx_workspace(ctx, call, bytes, &block));
    qkvi_cutter cutter = qkvi_cutter_on(block);
    lay_out(&cutter, &x);
    run(&x, ctx->pool);
    return atomic_load(&x.cancelled)
               ? qkvi_ctx_fail(ctx, QKV_ERR_CANCELLED, "cancelled by the caller's flag")
               : QKV_OK;
}

qkv_status qkv_attention_forward(qkv_ctx *ctx, const qkv_attention_desc *desc, const void *q,
                                 const void *k, const void *v, void *o, float *lse,
                                 const qkv_call_options *call) {
    qkvi_problem problem;
    QKV_TRY(qkvi_ctx_begin(ctx));
    qkv_status status = qkvi_problem_forward(desc, q, k, v, o, lse, &problem, &ctx->error);
    if (status == QKV_OK) status = forward(ctx, &problem, call);
    return qkvi_ctx_end(ctx, status);
}

qkv_status qkv_attention_workspace(qkv_ctx *ctx, const qkv_attention_desc *desc, size_t *bytes) {
    qkvi_problem problem;
    QKV_TRY(qkvi_ctx_begin(ctx));
    qkv_status status = qkvi_problem_shape(desc, &problem, &ctx->error);
    if (status == QKV_OK && !bytes) status = qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "bytes is NULL");
    if (status == QKV_OK) {
        pass x = { .call = NULL };
        plan(&x, &problem, ctx);
        status = size_of(&x, ctx, bytes);
    }
    return qkvi_ctx_end(ctx, status);
}
