/*
 * Small results of `qkv attend` on standard output, without -o: weights and output of each head, as
 * tables or as JSON. Larger ones are refused. With --x there are scores, too, and with --explain
 * each table says how it is computed.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attend/attend.h"
#include "common/job.h"

enum { MOST_NUMBERS = 1024 }; /* of the output, and of the weights */

bool attend_prints(const struct attend_options *options) {
    return options->explain ? options->x != NULL : !options->o;
}

int attend_print_check(const struct attend_options *options, const struct attend_problem *problem) {
    const qkv_attention_desc *d = &problem->desc;
    const struct attend_made *made = problem->made;
    const int64_t heads = d->n_heads * d->head_dim_v,
                  width = made && made->n_columns > heads ? made->n_columns : heads;
    const int64_t n = attend_size(problem->q, 0) * attend_size(problem->q, 2) * width;
    if (!attend_prints(options) || n <= MOST_NUMBERS) return EXIT_OK;
    if (options->explain) return EXIT_OK; /* its small steps are shown */
    return cli_fail("the output has %" PRId64 " numbers, and up to %d are printed: "
                    "-o F.npy writes them",
                    n, MOST_NUMBERS);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static double half_value(uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double sign = bits >> 15 ? -1.0 : 1.0;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    return sign * ldexp(exponent ? fraction + 1024 : fraction, (exponent ? exponent : 1) - 25);
}

static double bf16_value(uint16_t bits) {
    const union {
        uint32_t bits;
        float value;
    } wide = { .bits = (uint32_t)bits << 16 };
    return (double)wide.value;
}

/* What is printed: rows of one head, of an array in the order of its kind. data NULL: nothing. */
struct rows {
    const char *name; /* in JSON */
    const char *title;
    const void *data;
    qkv_dtype dtype;
    int64_t n_rows, n_columns, n_heads;
    bool of_heads; /* has a dimension of heads, unless the problem has none */
};

static double value_of(const struct rows *rows, int64_t i) {
    if (rows->dtype == QKV_F16) return half_value(((const uint16_t *)rows->data)[i]);
    if (rows->dtype == QKV_BF16) return bf16_value(((const uint16_t *)rows->data)[i]);
    return (double)((const float *)rows->data)[i];
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static void print_rows(const struct rows *rows, int64_t head) {
    if (!rows->data) return;
    printf("%s [%" PRId64 ",%" PRId64 "]\n", rows->title, rows->n_rows, rows->n_columns);
    for (int64_t i = 0; i < rows->n_rows; i++) {
        for (int64_t c = 0; c < rows->n_columns; c++) {
            const double value = value_of(rows, (head * rows->n_rows + i) * rows->n_columns + c);
            if (isnan(value)) /* whose sign is the processor's, and means nothing */
                printf(" %11s", "nan");
            else
                printf(" %11.6g", value);
        }
        putchar('\n');
    }
}

static void print_heads(const struct attend_problem *problem, const struct rows *rows, int n) {
    const int64_t n_heads = problem->desc.n_heads, n_all = attend_size(problem->q, 0) * n_heads;
    for (int64_t at = 0; at < n_all; at++) {
        const int64_t b = at / n_heads, h = at % n_heads;
        if (n_all > 1) printf("%sbatch %" PRId64 ", head %" PRId64 "\n", at ? "\n" : "", b, h);
        for (int i = 0; i < n; i++) /* heads of keys have several of queries */
            print_rows(&rows[i], b * rows[i].n_heads + h * rows[i].n_heads / n_heads);
    }
}

/* What all heads make. */
static void print_joined(const struct attend_problem *problem, const struct rows *rows) {
    const int64_t n_batch = attend_size(problem->q, 0);
    for (int64_t b = 0; rows->data && b < n_batch; b++) {
        if (n_batch * problem->desc.n_heads > 1) putchar('\n');
        if (n_batch > 1) printf("batch %" PRId64 "\n", b);
        print_rows(rows, b);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* The dimensions that the inputs had, as the files would have them. */
static json_t *nested(const struct rows *rows, const int64_t *shape, int rank, int64_t *at) {
    if (rank == 0) return json_number(value_of(rows, (*at)++));
    json_t *list = json_array();
    for (int64_t i = 0; i < shape[0]; i++)
        json_array_append_new(list, nested(rows, shape + 1, rank - 1, at));
    return list;
}

static void add_rows(const struct attend_problem *problem, const struct rows *rows, bool has_column,
                     json_t *json) {
    const int64_t all[4] = { attend_size(problem->q, 0), rows->n_heads, rows->n_rows,
                             rows->n_columns };
    const bool has[4] = { true, rows->of_heads && !problem->no_heads, !problem->q_is_vector,
                          has_column };
    int64_t shape[4], at = 0;
    int rank = 0;
    if (!rows->data) return;
    for (int d = 4 - problem->rank; d < 4; d++)
        if (has[d]) shape[rank++] = all[d];
    json_object_set_new(json, rows->name, nested(rows, shape, rank, &at));
}

/* ---- Weights --------------------------------------------------------------------------------- */

/* Weights are printed where they are few, and of one sequence in each batch. */
static bool are_few(const struct attend_problem *problem) {
    const qkv_attention_desc *d = &problem->desc;
    const int64_t n = d->n_batch * d->n_heads;
    return !problem->cu_q && n > 0 && d->len_q > 0 && d->len_k > 0 &&
           d->len_q <= MOST_NUMBERS / n / d->len_k;
}

/* All of them; *weights stays NULL where they are not few. */
static int make_weights(qkv_ctx *ctx, const struct attend_problem *problem, const float *lse,
                        float **weights) {
    const qkv_attention_desc *d = &problem->desc;
    if (!are_few(problem)) return EXIT_OK;
    const int64_t cells = d->len_q * d->len_k, n = d->n_batch * d->n_heads;
    *weights = calloc((size_t)(n * cells), sizeof **weights);
    if (!*weights) return cli_fail("out of memory");
    for (int64_t h = 0; h < n; h++)
        if (qkv_attention_weights(ctx, d, problem->q->data, problem->k->data, lse, h / d->n_heads,
                                  h % d->n_heads, 0, d->len_q, 0, d->len_k, *weights + h * cells,
                                  d->len_k, NULL) != QKV_OK)
            return cli_fail("%s", qkv_ctx_message(ctx));
    return EXIT_OK;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* What tables are called: by their names, or with --x and --explain by what they are made of. */
struct titles {
    char q[40], k[40], v[40], scores[200], weights[80], output[60], joined[40], projected[40];
};

static void title_scores(const struct attend_problem *problem, const float *scores, char *title,
                         size_t bytes) {
    const qkv_attention_desc *d = &problem->desc;
    const int64_t n = d->n_batch * d->n_heads * d->len_q * d->len_k;
    const bool capped = d->flags & QKV_SET_SOFTCAP;
    bool hidden = false;
    for (int64_t i = 0; scores && i < n; i++) hidden |= scores[i] == -INFINITY;
    text_append(title, bytes, "scores = ");
    if (capped) text_append(title, bytes, "%g tanh(", (double)d->softcap);
    if (d->flags & QKV_SET_SCALE)
        text_append(title, bytes, "%g q k'", (double)d->scale);
    else
        text_append(title, bytes, "q k' / sqrt(%" PRId64 ")", d->head_dim);
    if (capped) text_append(title, bytes, " / %g)", (double)d->softcap);
    if (d->flags & QKV_SET_MASK && d->mask_type == QKV_MASK_F32)
        text_append(title, bytes, " + mask");
    if (d->flags & QKV_SET_ALIBI) text_append(title, bytes, " + slope (j - i - offset)");
    if (hidden) text_append(title, bytes, ", -inf where a key is hidden");
}

static void make_titles(const struct attend_options *o, const struct attend_problem *problem,
                        const float *scores, struct titles *t) {
    const qkv_attention_desc *d = &problem->desc;
    const bool steps = o->x && o->explain, drops = d->flags & QKV_SET_DROPOUT;
    const char *kv = o->x_kv ? "x_kv" : "x";
    *t = (struct titles){ 0 };
    if (steps) {
        snprintf(t->q, sizeof t->q, "q = x W_Q%s", o->bq ? " + b_Q" : "");
        snprintf(t->k, sizeof t->k, "k = %s W_K%s", kv, o->bk ? " + b_K" : "");
        snprintf(t->v, sizeof t->v, "v = %s W_V%s", kv, o->bv ? " + b_V" : "");
        title_scores(problem, scores, t->scores, sizeof t->scores);
    } else {
        snprintf(t->scores, sizeof t->scores, "scores");
    }
    snprintf(t->weights, sizeof t->weights, "weights%s%s", drops ? " before dropout" : "",
             !steps                     ? ""
             : d->flags & QKV_SET_SINKS ? " = softmax(scores, sink)"
                                        : " = softmax(scores)");
    snprintf(t->output, sizeof t->output, "output%s",
             !steps  ? ""
             : drops ? " = dropout(weights) v"
                     : " = weights v");
    snprintf(t->joined, sizeof t->joined, "heads side by side");
    snprintf(t->projected, sizeof t->projected, "projected%s%s",
             !steps           ? ""
             : d->n_heads > 1 ? " = heads W_O"
                              : " = output W_O",
             steps && o->bo ? " + b_O" : "");
}

enum { AT_OUTPUT = 5, AT_JOINED, AT_PROJECTED, N_ROWS };

/* The arrays in the order in which they are made: those of heads, then those of all heads. */
static void list_rows(const struct attend_options *o, const struct attend_problem *problem,
                      const struct attend_results *results, const struct titles *t,
                      const float *scores, const float *weights, struct rows rows[N_ROWS]) {
    const qkv_attention_desc *d = &problem->desc;
    const struct attend_made *made = problem->made;
    const bool steps = made && o->explain;
    const int64_t n_q = attend_size(problem->q, 2), n_k = attend_size(problem->k, 2);
    const struct rows all[N_ROWS] = {
        { "q", t->q, steps ? problem->q->data : NULL, d->dtype, n_q, d->head_dim, d->n_heads,
          true },
        { "k", t->k, steps ? problem->k->data : NULL, d->dtype, n_k, d->head_dim, d->n_kv_heads,
          true },
        { "v", t->v, steps ? problem->v->data : NULL, d->dtype, n_k, d->head_dim_v, d->n_kv_heads,
          true },
        { "scores", t->scores, scores, QKV_F32, n_q, d->len_k, d->n_heads, true },
        { "weights", t->weights, weights, QKV_F32, n_q, d->len_k, d->n_heads, true },
        { "o", t->output, results->o, d->dtype, n_q, d->head_dim_v, d->n_heads, true },
        { "o", t->joined, results->joined, QKV_F32, n_q, made ? made->n_joined : 0, 1, false },
        { "o", t->projected, results->projected, QKV_F32, n_q, made ? made->n_columns : 0, 1,
          false },
    };
    memcpy(rows, all, sizeof all);
    for (struct rows *r = rows; r < rows + N_ROWS; r++)
        if (attend_size(problem->q, 0) * r->n_heads * r->n_rows * r->n_columns > MOST_NUMBERS) {
            cli_note(o->common.quiet || !r->data, "qkv: %s: more than %d numbers, not shown",
                     r->title, MOST_NUMBERS);
            r->data = NULL;
        }
}

/* The output is the last of those that are there. */
static void add_all(const struct attend_problem *problem, const struct attend_results *results,
                    const struct rows rows[N_ROWS], json_t *json) {
    const struct rows lse = {
        "lse", NULL, results->lse, QKV_F32, attend_size(problem->q, 2), 1, problem->desc.n_heads,
        true
    };
    for (int i = 0; i < AT_OUTPUT; i++) add_rows(problem, &rows[i], true, json);
    add_rows(problem,
             &rows[results->projected ? AT_PROJECTED
                   : results->joined  ? AT_JOINED
                                      : AT_OUTPUT],
             !problem->v_is_vector, json);
    add_rows(problem, &lse, false, json);
}

/* Of --explain: steps that are missing. */
static void remark(const struct attend_options *o, const float *scores, const float *weights) {
    const bool quiet = o->common.quiet || !o->explain || scores;
    if (weights)
        cli_note(quiet, "qkv: scores are not shown: up to %d keys are", QKV_STATS_MAX_TOP);
    else
        cli_note(quiet,
                 "qkv: scores and weights are not shown: up to %d numbers are, of one sequence in "
                 "each batch",
                 MOST_NUMBERS);
}

int attend_print(qkv_ctx *ctx, const struct attend_options *options,
                 const struct attend_problem *problem, const struct attend_results *results,
                 json_t *json) {
    float *weights = NULL, *scores = NULL;
    struct titles titles;
    struct rows rows[N_ROWS];
    int code = make_weights(ctx, problem, results->lse, &weights);
    if (!code && problem->made && are_few(problem))
        code = attend_scores(ctx, problem, results->lse, &scores);
    if (!code) {
        remark(options, scores, weights);
        make_titles(options, problem, scores, &titles);
        list_rows(options, problem, results, &titles, scores, weights, rows);
    }
    if (!code && json) {
        add_all(problem, results, rows, json);
    } else if (!code) {
        print_heads(problem, rows, AT_JOINED);
        if (problem->desc.n_heads > 1) print_joined(problem, &rows[AT_JOINED]);
        print_joined(problem, &rows[AT_PROJECTED]);
        if (options->explain) putchar('\n'); /* the path follows */
    }
    free(weights);
    free(scores);
    return code;
}
