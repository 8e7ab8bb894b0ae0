/* Cases over ranks: see ranks_case.h. */
#include "bench/ranks_case.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/job.h"

static bool is_scheme(const struct ranks_case *c, const char *scheme) {
    return strcmp(c->scheme, scheme) == 0;
}
static bool is_zigzag(const struct ranks_case *c) { return is_scheme(c, "zigzag"); }

/* 0 in the table: one for each rank. */
static int64_t heads_of(const struct ranks_case *c) {
    return c->n_heads ? c->n_heads : ranks_size();
}
static int64_t kv_heads_of(const struct ranks_case *c) {
    return c->n_kv_heads ? c->n_kv_heads : ranks_size();
}

/* ---- The table ------------------------------------------------------------------------------- */

static const struct ranks_case cases[] = {
    { "ordered", BENCH_FORWARD, false, 1, 1, 64 },  { "ordered", BENCH_FORWARD, true, 1, 1, 64 },
    { "ring", BENCH_FORWARD, false, 1, 1, 64 },     { "ring", BENCH_FORWARD, true, 1, 1, 64 },
    { "zigzag", BENCH_FORWARD, false, 1, 1, 64 },   { "zigzag", BENCH_FORWARD, true, 1, 1, 64 },
    { "ulysses", BENCH_FORWARD, false, 0, 0, 64 },  { "ulysses", BENCH_FORWARD, true, 0, 0, 64 },
    { "ordered", BENCH_BACKWARD, false, 1, 1, 64 }, { "ordered", BENCH_BACKWARD, true, 1, 1, 64 },
    { "ordered", BENCH_COLUMNS, false, 1, 1, 64 },  { "ordered", BENCH_COLUMNS, true, 1, 1, 64 },
    { "ordered", BENCH_DECODE, false, 32, 8, 128 }, { "tree", BENCH_DECODE, false, 32, 8, 128 },
};

const struct ranks_case *ranks_case_at(int index) {
    return index < CLI_COUNT(cases) ? &cases[index] : NULL;
}

void ranks_case_name(const struct ranks_case *c, int64_t len, char name[100]) {
    static const char *const calls[] = { "forward", "backward", "both", "decode", "columns" };
    char heads[48];
    snprintf(heads, sizeof heads, "H%" PRId64, heads_of(c));
    if (c->n_kv_heads != c->n_heads) text_append(heads, sizeof heads, ":%" PRId64, kv_heads_of(c));
    snprintf(name, 100, "%s %s f32 %s L%" PRId64 " D%" PRId64 "%s", calls[c->call], c->scheme,
             heads, len, c->head_dim, c->causal ? " causal" : "");
}

bool ranks_case_is(const struct ranks_case *c, int64_t len, const char *word) {
    char name[100], spaced[102];
    const size_t n = strlen(word);
    ranks_case_name(c, len, name);
    if (strcmp(name, word) == 0) return true;
    snprintf(spaced, sizeof spaced, " %s ", name);
    for (const char *at = spaced; n > 0 && (at = strstr(at, word)); at++)
        if (at[-1] == ' ' && at[n] == ' ') return true;
    return false;
}

bool ranks_case_has(const struct ranks_case *c, enum ranks_part part) {
    return part != PART_COMPUTE || !(c->call == BENCH_BACKWARD && c->causal);
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

bool ranks_bench_make(struct ranks_bench *b, const struct ranks_case *c, int64_t len) {
    const bool decodes = c->call == BENCH_DECODE;
    const int64_t len_q = decodes ? 1 : len;
    const int64_t n_heads = heads_of(c), n_kv_heads = kv_heads_of(c);
    const int64_t n_q = n_heads * len_q * c->head_dim, n_k = n_kv_heads * len * c->head_dim;
    const int64_t n_all = c->call == BENCH_BACKWARD ? 3 * n_q + n_q + 4 * n_k : 2 * n_q + 2 * n_k;
    const int64_t n_lse = n_heads * len_q;
    *b = (struct ranks_bench){ .c = c, .len = len };
    const int64_t n_received = c->call == BENCH_COLUMNS ? n_heads * len : 0;
    float *const x = malloc((size_t)(n_all + n_lse + n_received) * sizeof(float));
    if (!x) return false;
    b->memory = x;
    uint32_t state = 1;
    for (int64_t i = 0; i < n_all; i++) x[i] = (float)bench_random(&state) / (1 << 23) - 1;
    qkv_attention_desc_contiguous(&b->desc, 1, n_heads, n_kv_heads, len_q, len, c->head_dim,
                                  c->head_dim);
    qkv_attention_grads_contiguous(&b->grads, &b->desc);
    qkv_attention_columns_contiguous(&b->columns, &b->desc);
    b->columns.received = x + n_all + n_lse;
    if (c->causal) b->desc.flags |= QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
    b->q = (char *)x;
    b->o = (char *)(x + n_q);
    b->k = (char *)(x + 2 * n_q);
    b->v = (char *)(x + 2 * n_q + n_k);
    b->lse = x + n_all;
    for (int64_t i = 0; i < n_lse; i++) b->lse[i] = 20;
    if (c->call != BENCH_BACKWARD) return true;
    b->grads.d_k = x + 2 * n_q + 2 * n_k;
    b->grads.d_v = x + 2 * n_q + 3 * n_k;
    b->grads.d_o = x + 2 * n_q + 4 * n_k;
    b->grads.d_q = x + 3 * n_q + 4 * n_k;
    return true;
}

void ranks_bench_free(struct ranks_bench *b) {
    free(b->memory);
    qkv_ctx_free(b->ctx);
    qkv_ctx_free(b->all_ctx);
    *b = (struct ranks_bench){ .c = NULL };
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

/*
 * Where a rank's rows begin. Causal rows see more the later they are: pieces of the same work end
 * at roots of the share, and at seams of 256 rows; for columns, of which early keys are seen more,
 * from the other end. Zigzag does that by itself, ulysses shares heads, and backward has both.
 */
static int64_t piece_begin(const struct ranks_bench *b, int rank) {
    enum { SEAM = 256 };
    const int size = ranks_size();
    const bool by_root = b->c->causal && b->c->call == BENCH_FORWARD && !is_zigzag(b->c) &&
                         !is_scheme(b->c, "ulysses");
    const double len = (double)b->len, share = (double)rank / size;
    if (b->c->causal && b->c->call == BENCH_COLUMNS && rank < size)
        return (int64_t)((1 - sqrt(1 - share)) * len / SEAM + 0.5) * SEAM;
    if (!by_root || rank == size) return b->len / size * rank;
    return (int64_t)(sqrt(share) * len / SEAM + 0.5) * SEAM;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static int64_t bytes_to(const struct ranks_bench *b, int64_t row) {
    return row * b->c->head_dim * (int64_t)sizeof(float);
}

/* Rows [at, at + n) of queries against keys from 0 on, or against this rank's. */
static struct ranks_call call_of(const struct ranks_bench *b, qkv_attention_desc *desc,
                                 qkv_attention_grads *grads, int64_t at, int64_t n) {
    *desc = b->desc;
    *grads = b->grads;
    desc->len_q = n;
    const int64_t bytes = bytes_to(b, at);
    struct ranks_call call = { .ctx = b->ctx,
                               .desc = desc,
                               .q = b->q + bytes,
                               .k = b->k,
                               .v = b->v,
                               .o = b->o + bytes,
                               .lse = b->lse + at,
                               .scheme = b->c->scheme,
                               .columns = b->c->call == BENCH_COLUMNS ? &b->columns : NULL };
    if (b->c->call == BENCH_BACKWARD) {
        call.grads = grads;
        grads->d_o = (const char *)grads->d_o + bytes;
        grads->d_q = (char *)grads->d_q + bytes;
    }
    return call;
}

static qkv_status pieces(const struct ranks_bench *b, bool no_keys, qkv_error *error) {
    const int64_t at = piece_begin(b, ranks_rank()), n = piece_begin(b, ranks_rank() + 1) - at;
    qkv_attention_desc desc;
    qkv_attention_grads grads;
    struct ranks_call call = call_of(b, &desc, &grads, at, n);
    desc.len_k = n;
    call.k = b->k + bytes_to(b, at);
    call.v = b->v + bytes_to(b, at);
    if (b->c->call == BENCH_BACKWARD) {
        grads.d_k = (char *)grads.d_k + bytes_to(b, at);
        grads.d_v = (char *)grads.d_v + bytes_to(b, at);
    }
    if (no_keys) {
        desc.flags |= QKV_SET_KV_LEN;
        desc.kv_len = &b->no_keys;
    }
    return ranks_compute(&call, error);
}

/* Of this rank's keys, with all queries. */
static qkv_status columns_alone(const struct ranks_bench *b, qkv_error *error) {
    const int64_t at = piece_begin(b, ranks_rank());
    qkv_attention_desc desc;
    qkv_attention_grads grads;
    struct ranks_call call = call_of(b, &desc, &grads, 0, b->len);
    desc.len_k = piece_begin(b, ranks_rank() + 1) - at;
    desc.q_offset = -at;
    call.k = b->k + bytes_to(b, at);
    call.alone = true;
    return ranks_compute(&call, error);
}

/* In ulysses a rank has all tokens of its share of heads. */
static qkv_status share_alone(const struct ranks_bench *b, qkv_error *error) {
    qkv_attention_desc desc;
    qkv_attention_grads grads;
    struct ranks_call call = call_of(b, &desc, &grads, 0, b->len);
    desc.n_heads /= ranks_size();
    desc.n_kv_heads /= ranks_size();
    call.alone = true;
    return ranks_compute(&call, error);
}

/* In zigzag a rank has two runs, whose queries see other keys. */
static qkv_status runs_alone(const struct ranks_bench *b, qkv_error *error) {
    const int rank = ranks_rank(), size = ranks_size(), n_runs = is_zigzag(b->c) ? 2 : 1;
    const int64_t run_len = b->len / size / 2;
    int64_t begin[2] = { piece_begin(b, rank), run_len * (2 * size - 1 - rank) };
    int64_t n[2] = { piece_begin(b, rank + 1) - begin[0], run_len };
    qkv_status status = QKV_OK;
    if (n_runs == 2) {
        begin[0] = run_len * rank;
        n[0] = run_len;
    }
    for (int i = 0; i < n_runs && status == QKV_OK; i++) {
        qkv_attention_desc desc;
        qkv_attention_grads grads;
        struct ranks_call call = call_of(b, &desc, &grads, begin[i], n[i]);
        call.alone = true;
        desc.q_offset = begin[i];
        if (n_runs == 2) call.scheme = "ring";
        status = ranks_compute(&call, error);
    }
    return status;
}

/*
 * Messages are sums of each split of 1,024 keys but the rank's own: a rank with one split sends as
 * much.
 */
static qkv_status decode(const struct ranks_bench *b, enum ranks_part part, qkv_error *error) {
    enum { SPLIT = 1024 };
    const int64_t n = b->len / ranks_size();
    qkv_attention_desc desc = b->desc;
    qkv_kv_view view;
    qkv_kv_view_contiguous(&view, &b->desc, QKV_F32);
    view.k = b->k + bytes_to(b, n * ranks_rank());
    view.v = b->v + bytes_to(b, n * ranks_rank());
    desc.len_k = part == PART_TRANSFER && n > SPLIT ? SPLIT : n;
    const struct ranks_call call = { .ctx = b->ctx,
                                     .desc = &desc,
                                     .q = b->q,
                                     .o = b->o,
                                     .lse = b->lse,
                                     .view = &view,
                                     .scheme = b->c->scheme,
                                     .alone = part == PART_COMPUTE };
    return ranks_compute(&call, error);
}

static qkv_status one_process(const struct ranks_bench *b, qkv_error *error) {
    qkv_kv_view view;
    qkv_status status;
    if (ranks_rank() > 0) return QKV_OK;
    if (b->c->call == BENCH_DECODE) {
        qkv_kv_view_contiguous(&view, &b->desc, QKV_F32);
        view.k = b->k;
        view.v = b->v;
        status = qkv_attention_decode(b->all_ctx, &b->desc, b->q, &view, b->o, b->lse, NULL);
    } else if (b->c->call == BENCH_COLUMNS) {
        status =
            qkv_attention_columns_pass(b->all_ctx, &b->desc, b->q, b->k, b->lse, &b->columns, NULL);
    } else if (b->c->call == BENCH_BACKWARD) {
        status = qkv_attention_backward(b->all_ctx, &b->desc, b->q, b->k, b->v, b->o, b->lse,
                                        &b->grads, NULL);
    } else {
        status = qkv_attention_forward(b->all_ctx, &b->desc, b->q, b->k, b->v, b->o, b->lse, NULL);
    }
    if (status != QKV_OK) text_error(error, status, "%s", qkv_ctx_message(b->all_ctx));
    return status;
}

qkv_status ranks_bench_run(struct ranks_bench *b, enum ranks_part part, qkv_error *error) {
    if (part == PART_ONE) return one_process(b, error);
    if (b->c->call == BENCH_DECODE) return decode(b, part, error);
    if (part != PART_COMPUTE) return pieces(b, part == PART_TRANSFER, error);
    if (b->c->call == BENCH_COLUMNS) return columns_alone(b, error);
    return is_scheme(b->c, "ulysses") ? share_alone(b, error) : runs_alone(b, error);
}
