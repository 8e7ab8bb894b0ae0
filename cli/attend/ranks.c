/*
 * `qkv attend --mpi`: each rank reads its rows of q, k and v, computes its piece of the problem,
 * and sends its rows of the results to the first rank, which writes all files.
 */
#include <stdlib.h>
#include <string.h>

#include "attend/attend.h"
#include "common/conflicts.h"
#include "common/hash.h"
#include "common/job.h"
#include "common/ranks.h"
#include "common/session.h"

/* What is of whole arrays, or printed. */
static const struct option_conflict inputs[] = {
    { .these = "--mpi",
      .with = "--mask|--mask-bits|--block-mask|--cu-seqlens|--grad-out|--stats|--json|--x" },
    { .these = "--mpi", .without = "-o|--explain", .message = "%s goes with -o" },
};

int attend_ranks_check(const struct cli_command *command, const struct attend_options *options) {
    return conflicts_check(command, options, 0, inputs, CLI_COUNT(inputs));
}

/* ---- The piece ------------------------------------------------------------------------------- */

/*
 * The problem of the whole sequence becomes that of this rank's rows, which lie densely in its
 * arrays.
 */
static void take_piece(const struct attend_problem *problem, qkv_attention_desc *desc) {
    const struct attend_rows *const rows = &problem->rows;
    qkv_attention_desc piece;
    *desc = problem->desc;
    qkv_attention_desc_contiguous(&piece, desc->n_batch, desc->n_heads, desc->n_kv_heads, rows->n_q,
                                  rows->n_k, desc->head_dim, desc->head_dim_v);
    desc->len_q = rows->n_q;
    desc->len_k = rows->n_k;
    memcpy(desc->q_stride, piece.q_stride, sizeof piece.q_stride);
    memcpy(desc->k_stride, piece.k_stride, sizeof piece.k_stride);
    memcpy(desc->v_stride, piece.v_stride, sizeof piece.v_stride);
    memcpy(desc->o_stride, piece.o_stride, sizeof piece.o_stride);
    memcpy(desc->lse_stride, piece.lse_stride, sizeof piece.lse_stride);
    if (desc->seg_q) desc->seg_q += rows->first_q;
}

/* --explain: what each scheme would cost on these ranks. */
static int explain(qkv_ctx *ctx, const struct attend_problem *problem) {
    qkv_attention_desc desc;
    qkv_error error;
    char costs[RANKS_COSTS_BYTES];
    take_piece(problem, &desc);
    const struct ranks_call call = { .ctx = ctx, .desc = &desc };
    const qkv_status status = ranks_costs(&call, costs, &error);
    if (status == QKV_OK && ranks_rank() == 0) fputs(costs, stdout);
    return cli_status(status, &error);
}

static int compute(qkv_ctx *ctx, const struct attend_problem *problem,
                   struct attend_results *mine) {
    qkv_attention_desc desc;
    qkv_error error;
    take_piece(problem, &desc);
    const struct ranks_call call = { .ctx = ctx,
                                     .desc = &desc,
                                     .q = problem->q->data,
                                     .k = problem->k->data,
                                     .v = problem->v->data,
                                     .o = mine->o,
                                     .lse = mine->lse };
    return cli_status(ranks_compute(&call, &error), &error);
}

/* ---- The results ----------------------------------------------------------------------------- */

enum { MOST_BYTES = 64 << 20 };

/* Blocks of rows, one of each batch and head: `row` bytes each, of this rank. */
static void give(const char *mine, int64_t n_blocks, size_t n_rows, size_t row) {
    const size_t block = n_rows * row;
    for (int64_t b = 0; b < n_blocks; b++)
        for (size_t at = 0; at < block; at += MOST_BYTES) {
            const size_t n = block - at < MOST_BYTES ? block - at : MOST_BYTES;
            char *const bytes = malloc(n);
            if (!bytes) abort(); /* which ends the job */
            memcpy(bytes, mine + (size_t)b * block + at, n);
            ranks_send(0, bytes, n);
            ranks_sent();
        }
}

/* Of one array: where the next bytes of each rank go. */
struct gathering {
    char *whole;
    int64_t n_blocks, n_all; /* n_all: rows of a block of the whole */
    size_t row;
    const int64_t *rows; /* [n ranks + 1]: where their rows begin */
    size_t *done;        /* [n ranks]: bytes that came */
};

static size_t bytes_of(const struct gathering *g, int rank) {
    return (size_t)(g->rows[rank + 1] - g->rows[rank]) * g->row;
}

static void put(const struct gathering *g, int rank, const char *bytes, size_t n) {
    const size_t block = bytes_of(g, rank), b = g->done[rank] / block, at = g->done[rank] % block;
    const size_t to = (b * (size_t)g->n_all + (size_t)g->rows[rank]) * g->row + at;
    memcpy(g->whole + to, bytes, n);
    g->done[rank] += n;
}

static void collect(const struct gathering *g, const char *mine) {
    const size_t own = bytes_of(g, 0);
    size_t left = 0;
    for (int rank = 1; rank < ranks_size(); rank++) left += bytes_of(g, rank) * (size_t)g->n_blocks;
    memset(g->done, 0, (size_t)ranks_size() * sizeof *g->done);
    for (int64_t b = 0; b < g->n_blocks && own > 0; b++) put(g, 0, mine + (size_t)b * own, own);
    while (left > 0) {
        int from;
        char *bytes;
        size_t n;
        ranks_receive(true, &from, &bytes, &n);
        put(g, from, bytes, n);
        left -= n;
        free(bytes);
    }
}

/* Where the queries of each rank begin; the end of the last is behind all. */
static int find_rows(const struct attend_rows *rows, int64_t **begins) {
    const size_t size = (size_t)ranks_size();
    *begins = calloc(size + 1, sizeof **begins);
    if (!*begins) abort(); /* which ends the job */
    ranks_gather(&rows->first_q, (int)sizeof rows->first_q, *begins);
    (*begins)[size] = rows->all_q;
    return EXIT_OK;
}

/* One array after the other. */
static int gather(const struct attend_problem *problem, const struct attend_results *mine,
                  struct attend_results *whole) {
    const qkv_attention_desc *const d = &problem->desc;
    const int64_t n_blocks = d->n_batch * d->n_heads;
    const size_t width = d->dtype == QKV_F32 ? sizeof(float) : sizeof(uint16_t);
    const size_t o_row = (size_t)d->head_dim_v * width;
    const size_t n_rows = (size_t)problem->rows.n_q;
    struct gathering g = { .n_blocks = n_blocks, .n_all = problem->rows.all_q };
    int64_t *begins;
    find_rows(&problem->rows, &begins);
    g.rows = begins;
    g.done = calloc((size_t)ranks_size(), sizeof *g.done);
    if (!g.done) abort(); /* which ends the job */
    for (int array = 0; array < 2; array++) {
        const char *const from = array == 0 ? mine->o : (const char *)mine->lse;
        g.whole = array == 0 ? whole->o : (char *)whole->lse;
        g.row = array == 0 ? o_row : sizeof(float);
        if (ranks_rank() == 0)
            collect(&g, from);
        else
            give(from, n_blocks, n_rows, g.row);
        ranks_agree(EXIT_OK); /* no rank sends of the next array before all of this one is there */
    }
    free(g.done);
    free(begins);
    return EXIT_OK;
}

/* ---- The command ----------------------------------------------------------------------------- */

/* Results of this rank's rows, and on the first rank those of all. */
static int alloc(const struct attend_options *options, const struct attend_problem *problem,
                 struct attend_results *mine, struct attend_results *whole) {
    const qkv_attention_desc *const d = &problem->desc;
    const size_t n = (size_t)(d->n_batch * d->n_heads * problem->rows.n_q);
    mine->o = calloc(n * (size_t)d->head_dim_v + 1, sizeof(float));
    mine->lse = calloc(n + 1, sizeof(float));
    if (!mine->o || !mine->lse) return cli_fail("out of memory");
    return ranks_rank() == 0 ? attend_results_alloc(options, problem, whole) : EXIT_OK;
}

static int agree_on_text(const char *what, const char *shown, int code) {
    return ranks_agree_on(
        code, &(struct ranks_fact){ what, shown, hash_add(HASH_START, shown, strlen(shown)) });
}

/*
 * Each rank reads its rows of files that it may have alone. Numbers of another type are rounded
 * otherwise, and integers are no floats.
 */
static int agree_on_arrays(const struct attend_problem *problem, int code) {
    static const char *const names[] = { "--q", ", --k", ", --v" };
    const qkv_array *const arrays[] = { problem->q, problem->k, problem->v };
    char shapes[700] = "", types[100] = "", shape[200];
    for (int a = 0; !code && a < 3; a++) {
        attend_shape_text(arrays[a], shape);
        text_append(shapes, sizeof shapes, "%s %s", names[a], shape);
        text_append(types, sizeof types, "%s %s", names[a], arrays[a]->stored);
    }
    code = agree_on_text("shape", shapes, code);
    return agree_on_text("type of numbers", types, code);
}

/* Of all queries, which each rank reads; the library sees those of a rank only. */
static int agree_on_segments(const struct attend_options *options,
                             const struct attend_problem *problem, int code) {
    const qkv_attention_desc *const d = &problem->desc;
    uint64_t hash = HASH_START;
    if (!options->segments_q) return code;
    for (int64_t b = 0; !code && b < (d->seg_q_stride ? d->n_batch : 1); b++)
        hash = hash_add(hash, problem->seg_q + b * d->seg_q_stride,
                        (size_t)d->len_q * sizeof *problem->seg_q);
    return ranks_agree_on(
        code, &(struct ranks_fact){ "file of --segments-q", options->segments_q, hash });
}

static int results_of(const struct attend_options *options, qkv_ctx *ctx,
                      const struct attend_problem *problem, struct attend_results *mine,
                      struct attend_results *whole) {
    int code = ranks_agree(compute(ctx, problem, mine));
    if (!code) code = gather(problem, mine, whole);
    return !code && ranks_rank() == 0 ? attend_outputs_write(options, problem, whole) : code;
}

static int run(const struct attend_options *options, qkv_ctx *ctx, struct attend_rules *rules,
               struct attend_problem *problem) {
    struct attend_results mine = { 0 }, whole = { 0 };
    int code = attend_problem_read(ctx, options, rules, problem);
    if (!code && options->o) code = alloc(options, problem, &mine, &whole);
    if (!code && ranks_rank() == 0) code = attend_outputs_check(options);
    code = agree_on_arrays(problem, code);
    code = agree_on_segments(options, problem, code);
    if (!code && options->explain) code = ranks_agree(explain(ctx, problem));
    if (!code && options->o) code = results_of(options, ctx, problem, &mine, &whole);
    attend_results_free(&mine);
    attend_results_free(&whole);
    return code;
}

int attend_ranks(const struct cli_command *command, const struct attend_options *options,
                 struct attend_rules *rules) {
    struct attend_problem problem = { 0 };
    qkv_ctx *ctx = NULL;
    int code = ranks_begin(true);
    if (!code) code = session_context(command, &options->common, &ctx);
    if (!code) code = run(options, ctx, rules, &problem);
    code = ranks_agree(code);
    ranks_end();
    attend_problem_free(&problem);
    qkv_ctx_free(ctx);
    return code;
}
