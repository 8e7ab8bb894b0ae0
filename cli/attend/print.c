/*
 * Small results of `qkv attend` on standard output, where -o names no file: the weights and the
 * output of each head, as tables or as JSON. What is larger belongs into a file.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "attend/attend.h"
#include "common/job.h"

enum { MOST_NUMBERS = 1024 }; /* of the output, and of the weights */

bool attend_prints(const struct attend_options *options) {
    return !options->o && !options->explain;
}

int attend_print_check(const struct attend_options *options, const struct attend_problem *problem) {
    const qkv_attention_desc *d = &problem->desc;
    const int64_t n =
        attend_size(problem->q, 0) * d->n_heads * attend_size(problem->q, 2) * d->head_dim_v;
    if (!attend_prints(options) || n <= MOST_NUMBERS) return EXIT_OK;
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

/* What is printed: rows of one head, of an array in the order of its kind. */
struct rows {
    const char *name;
    const void *data;
    qkv_dtype dtype;
    int64_t n_rows, n_columns;
};

static double value_of(const struct rows *rows, int64_t i) {
    if (rows->dtype == QKV_F16) return half_value(((const uint16_t *)rows->data)[i]);
    if (rows->dtype == QKV_BF16) return bf16_value(((const uint16_t *)rows->data)[i]);
    return (double)((const float *)rows->data)[i];
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static void print_rows(const struct rows *rows, int64_t head) {
    printf("%s [%" PRId64 ",%" PRId64 "]\n", rows->name, rows->n_rows, rows->n_columns);
    for (int64_t i = 0; i < rows->n_rows; i++) {
        for (int64_t c = 0; c < rows->n_columns; c++)
            printf(" %11.6g", value_of(rows, (head * rows->n_rows + i) * rows->n_columns + c));
        putchar('\n');
    }
}

static void print_heads(const struct attend_problem *problem, const struct rows *rows, int n,
                        int64_t n_heads) {
    const int64_t n_all = attend_size(problem->q, 0) * n_heads;
    for (int64_t h = 0; h < n_all; h++) {
        if (n_all > 1)
            printf("%sbatch %" PRId64 ", head %" PRId64 "\n", h ? "\n" : "", h / n_heads,
                   h % n_heads);
        for (int i = 0; i < n; i++) print_rows(&rows[i], h);
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

static json_t *rows_json(const struct attend_problem *problem, const struct rows *rows,
                         bool has_row, bool has_column) {
    const int64_t all[4] = { attend_size(problem->q, 0), problem->desc.n_heads, rows->n_rows,
                             rows->n_columns };
    int64_t shape[4], at = 0;
    int rank = 0;
    for (int d = 4 - problem->rank; d < 4; d++)
        if ((d != 2 || has_row) && (d != 3 || has_column)) shape[rank++] = all[d];
    return nested(rows, shape, rank, &at);
}

/* ---- Weights --------------------------------------------------------------------------------- */

/* All of them if they are few and of one sequence a batch; else *weights stays NULL. */
static int make_weights(qkv_ctx *ctx, const struct attend_problem *problem, const float *lse,
                        float **weights) {
    const qkv_attention_desc *d = &problem->desc;
    const int64_t cells = d->len_q * d->len_k, n = d->n_batch * d->n_heads;
    if (problem->cu_q || cells == 0 || n == 0 || cells > MOST_NUMBERS / n) return EXIT_OK;
    *weights = calloc((size_t)(n * cells), sizeof **weights);
    if (!*weights) return cli_fail("out of memory");
    for (int64_t h = 0; h < n; h++)
        if (qkv_attention_weights(ctx, d, problem->q->data, problem->k->data, lse, h / d->n_heads,
                                  h % d->n_heads, 0, d->len_q, 0, d->len_k, *weights + h * cells,
                                  d->len_k, NULL) != QKV_OK)
            return cli_fail("%s", qkv_ctx_message(ctx));
    return EXIT_OK;
}

int attend_print(qkv_ctx *ctx, const struct attend_problem *problem,
                 const struct attend_results *results, json_t *json) {
    const qkv_attention_desc *d = &problem->desc;
    float *weights = NULL;
    const int code = make_weights(ctx, problem, results->lse, &weights);
    const int64_t n_rows = attend_size(problem->q, 2);
    const struct rows rows[2] = {
        { d->flags & QKV_SET_DROPOUT ? "weights before dropout" : "weights", weights, QKV_F32,
          n_rows, d->len_k },
        { "output", results->o, d->dtype, n_rows, d->head_dim_v },
    };
    const struct rows lse = { "lse", results->lse, QKV_F32, n_rows, 1 };
    if (!code && json) {
        const bool has_row = !problem->q_is_vector;
        if (weights)
            json_object_set_new(json, "weights", rows_json(problem, &rows[0], has_row, true));
        json_object_set_new(json, "o",
                            rows_json(problem, &rows[1], has_row, !problem->v_is_vector));
        json_object_set_new(json, "lse", rows_json(problem, &lse, has_row, false));
    } else if (!code) {
        print_heads(problem, weights ? rows : rows + 1, weights ? 2 : 1, d->n_heads);
    }
    free(weights);
    return code;
}
