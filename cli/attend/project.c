/*
 * `qkv attend --x X --wq W --wk W --wv W`: queries, keys and values are made of inputs,
 *
 *     q = x W_Q + b_Q     k = x' W_K + b_K     v = x' W_V + b_V     x' = x, or that of --x-kv
 *
 * and split into heads, each of which has consecutive columns. After attention the heads are joined
 * again, and W_O may project them. The library computes the products, in f32.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attend/attend.h"
#include "common/job.h"
#include <qkv/layers.h>

/* An array that an option names. */
struct source {
    const char *option, *path;
    qkv_array *array;
    bool quiet;
};

/* y = x W + b, and its shape. */
struct projection {
    struct source *x, w, b; /* w: as qkv_linear_forward reads it, [columns][E], once it was read */
    int64_t shape[2];       /* of W in its file */
    float *y;               /* [rows][columns] */
    int64_t n_rows, n_columns;
};

/* Everything that is read here, and what is made of it. */
struct making {
    struct source x, x_kv;
    struct projection q, k, v, o;
};

static int differ(const struct source *a, const struct source *b, const char *rule) {
    char a_shape[200], b_shape[200];
    return cli_fail("%s %s has shape %s, %s %s has %s: %s", a->option, a->path,
                    attend_shape_text(a->array, a_shape), b->option, b->path,
                    attend_shape_text(b->array, b_shape), rule);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int read_inputs(struct source *x) {
    char shape[200];
    const int code = attend_read_array(x->option, x->path, x->quiet, QKV_ARRAY_F32, &x->array);
    if (code) return code;
    if (x->array->rank == 2 || x->array->rank == 3) return EXIT_OK;
    return cli_fail("%s %s: shape %s is neither [B,L,E] nor [L,E]", x->option, x->path,
                    attend_shape_text(x->array, shape));
}

static int read_other_inputs(const struct source *x, struct source *other) {
    const int code = read_inputs(other);
    if (code) return code;
    if (x->array->rank != other->array->rank) return differ(x, other, "the ranks differ");
    if (attend_size(x->array, 1) != attend_size(other->array, 1))
        return differ(x, other, "the batches differ");
    return EXIT_OK;
}

/* Rows become columns. */
static int turn(qkv_array *w) {
    const int64_t n_rows = w->shape[0], n_columns = w->shape[1];
    const float *const from = w->data;
    float *const to = calloc((size_t)w->n_elems + 1, sizeof *to);
    if (!to) return cli_fail("out of memory");
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t c = 0; c < n_columns; c++) to[c * n_rows + r] = from[r * n_columns + c];
    memcpy(w->data, to, (size_t)w->n_elems * sizeof *to);
    free(to);
    w->shape[0] = n_columns;
    w->shape[1] = n_rows;
    return EXIT_OK;
}

/* `of`: what is multiplied with W, x or output. */
static int misfits(const struct projection *p, const struct source *x, const char *of,
                   bool transposed, bool would_fit) {
    char rule[200] = "";
    text_append(rule, sizeof rule,
                transposed ? "--transposed-weights: W has a column for each column of %s"
                           : "W has a row for each column of %s, as in %s W",
                of, of);
    if (would_fit)
        text_append(rule, sizeof rule,
                    "; --transposed-weights takes [D,E], as torch.nn.Linear stores it");
    return differ(&p->w, x, rule);
}

static int read_weights(struct projection *p, const struct source *x, const char *of, int64_t n_in,
                        bool transposed) {
    char shape[200];
    const int code =
        attend_read_array(p->w.option, p->w.path, p->w.quiet, QKV_ARRAY_F32, &p->w.array);
    if (code) return code;
    qkv_array *const w = p->w.array;
    if (w->rank != 2 || w->n_elems == 0)
        return cli_fail("%s %s: shape %s is not %s", p->w.option, p->w.path,
                        attend_shape_text(w, shape), transposed ? "[D,E]" : "[E,D]");
    if (w->shape[transposed] != n_in)
        return misfits(p, x, of, transposed, !transposed && p->x && w->shape[1] == n_in);
    p->shape[0] = w->shape[0];
    p->shape[1] = w->shape[1];
    p->n_columns = w->shape[!transposed];
    return transposed ? EXIT_OK : turn(w);
}

static int read_bias(struct projection *p) {
    char shape[200];
    if (!p->b.path) return EXIT_OK;
    const int code =
        attend_read_array(p->b.option, p->b.path, p->b.quiet, QKV_ARRAY_F32, &p->b.array);
    if (code) return code;
    attend_as_list(p->b.path, p->b.array);
    if (p->b.array->rank == 1 && p->b.array->shape[0] == p->n_columns) return EXIT_OK;
    return cli_fail("%s %s: shape %s is not [D], D = %" PRId64 ", the columns that %s %s makes",
                    p->b.option, p->b.path, attend_shape_text(p->b.array, shape), p->n_columns,
                    p->w.option, p->w.path);
}

/* ---- Projecting ------------------------------------------------------------------------------ */

static int multiply(qkv_ctx *ctx, struct projection *p, int64_t n_in, const float *x) {
    const qkv_linear_desc desc = qkv_linear_desc_init(p->n_rows, n_in, p->n_columns);
    int64_t n;
    if (__builtin_mul_overflow(p->n_rows, p->n_columns, &n) || n > INT64_MAX / 8 ||
        !(p->y = calloc((size_t)n + 1, sizeof *p->y)))
        return cli_fail("out of memory");
    if (qkv_linear_forward(ctx, &desc, x, p->w.array->data, p->b.array ? p->b.array->data : NULL,
                           p->y) != QKV_OK)
        return cli_fail("%s", qkv_ctx_message(ctx));
    return EXIT_OK;
}

static int project(qkv_ctx *ctx, struct projection *p, bool transposed) {
    const qkv_array *const x = p->x->array;
    const int64_t n_in = attend_size(x, 3);
    int code = read_weights(p, p->x, "x", n_in, transposed);
    if (!code) code = read_bias(p);
    if (code) return code;
    p->n_rows = attend_size(x, 1) * attend_size(x, 2); /* n_in is not 0: no more than elements */
    return multiply(ctx, p, n_in, x->data);
}

/* [n][a][b][width] becomes [n][b][a][width]. */
static void swap_middle(int64_t n, int64_t a, int64_t b, int64_t width, const float *from,
                        float *to) {
    for (int64_t i = 0; i < n * a * b; i++) {
        const int64_t at = (i / (a * b) * b + i % b) * a + i / b % a;
        memcpy(to + at * width, from + i * width, (size_t)width * sizeof *to);
    }
}

/* An array [B,H,L,D] of the columns that were made, of n_heads heads. */
static int split(const struct projection *p, int64_t n_heads, qkv_array *array) {
    const int64_t n_batch = attend_size(p->x->array, 1), length = attend_size(p->x->array, 2);
    const int64_t width = p->n_columns / n_heads;
    *array = (qkv_array){ .type = QKV_ARRAY_F32,
                          .rank = 4,
                          .shape = { n_batch, n_heads, length, width },
                          .n_elems = p->n_rows * p->n_columns };
    array->data = calloc((size_t)array->n_elems + 1, sizeof(float));
    if (!array->data) return cli_fail("out of memory");
    swap_middle(n_batch, length, n_heads, width, p->y, array->data);
    return EXIT_OK;
}

/* Shapes of W as their files have them, for messages. */
static int weights_differ(const struct projection *a, const struct projection *b,
                          const char *rule) {
    memcpy(a->w.array->shape, a->shape, sizeof a->shape);
    memcpy(b->w.array->shape, b->shape, sizeof b->shape);
    return differ(&a->w, &b->w, rule);
}

/* How many heads of keys there are: as many as their columns make. */
static int count_heads(const struct making *m, int64_t n_heads, int64_t *n_kv_heads) {
    if (m->q.n_columns % n_heads != 0)
        return cli_fail("--heads %" PRId64 ": %s %s makes %" PRId64
                        " columns, which are no multiple of it",
                        n_heads, m->q.w.option, m->q.w.path, m->q.n_columns);
    const int64_t width = m->q.n_columns / n_heads;
    *n_kv_heads = m->k.n_columns / width;
    if (m->k.n_columns % width != 0 || *n_kv_heads == 0 || n_heads % *n_kv_heads != 0)
        return weights_differ(&m->q, &m->k,
                              n_heads == 1
                                  ? "queries and keys have as many columns"
                                  : "queries and keys have as many columns in each head, and the "
                                    "heads of keys divide --heads");
    if (m->v.n_columns % *n_kv_heads != 0)
        return weights_differ(&m->k, &m->v,
                              "the columns of values are no multiple of the heads of keys");
    return EXIT_OK;
}

static int split_all(const struct making *m, int64_t n_heads, struct attend_problem *problem) {
    struct attend_made *const made = problem->made;
    int64_t n_kv_heads = 0;
    int code = count_heads(m, n_heads, &n_kv_heads);
    if (!code) code = split(&m->q, n_heads, &made->q);
    if (!code) code = split(&m->k, n_kv_heads, &made->k);
    if (!code) code = split(&m->v, n_kv_heads, &made->v);
    problem->q = &made->q;
    problem->k = &made->k;
    problem->v = &made->v;
    return code;
}

/* W_O, whose rows are the columns of all heads side by side. */
static int read_output(struct making *m, int64_t n_heads, bool transposed,
                       struct attend_problem *problem) {
    struct attend_made *const made = problem->made;
    qkv_array heads = { .rank = 2,
                        .shape = { attend_size(&made->q, 2), n_heads * made->v.shape[3] } };
    const struct source joined = { "the output", "before it", &heads, true };
    made->n_columns = made->n_joined = heads.shape[1];
    if (!m->o.w.path) return EXIT_OK;
    int code = read_weights(&m->o, &joined, "output", made->n_joined, transposed);
    if (!code) code = read_bias(&m->o);
    made->n_columns = m->o.n_columns;
    made->wo = m->o.w.array;
    made->bo = m->o.b.array;
    m->o.w.array = m->o.b.array = NULL;
    return code;
}

int attend_project(qkv_ctx *ctx, const struct attend_options *o, struct attend_problem *problem) {
    const bool quiet = o->common.quiet;
    struct making m = {
        .x = { "--x", o->x, NULL, quiet },
        .x_kv = { "--x-kv", o->x_kv, NULL, quiet },
        .q = { .w = { "--wq", o->wq, NULL, quiet }, .b = { "--bq", o->bq, NULL, quiet } },
        .k = { .w = { "--wk", o->wk, NULL, quiet }, .b = { "--bk", o->bk, NULL, quiet } },
        .v = { .w = { "--wv", o->wv, NULL, quiet }, .b = { "--bv", o->bv, NULL, quiet } },
        .o = { .w = { "--wo", o->wo, NULL, quiet }, .b = { "--bo", o->bo, NULL, quiet } }
    };
    struct projection *const projections[] = { &m.q, &m.k, &m.v, &m.o };
    const int64_t n_heads = o->heads.set ? o->heads.value : 1;
    problem->made = calloc(1, sizeof *problem->made);
    int code = problem->made ? read_inputs(&m.x) : cli_fail("out of memory");
    if (!code && o->x_kv) code = read_other_inputs(&m.x, &m.x_kv);
    m.q.x = &m.x;
    m.k.x = m.v.x = o->x_kv ? &m.x_kv : &m.x;
    for (int i = 0; !code && i < 3; i++) code = project(ctx, projections[i], o->transposed);
    if (!code) code = split_all(&m, n_heads, problem);
    if (!code) code = read_output(&m, n_heads, o->transposed, problem);
    if (!code) problem->rank = m.x.array->rank + 1;
    problem->no_heads = !o->heads.set;
    for (int i = 0; i < CLI_COUNT(projections); i++) {
        qkv_array_free(projections[i]->w.array);
        qkv_array_free(projections[i]->b.array);
        free(projections[i]->y);
    }
    qkv_array_free(m.x.array);
    qkv_array_free(m.x_kv.array);
    return code;
}

void attend_made_free(struct attend_made *made) {
    if (!made) return;
    free(made->q.data);
    free(made->k.data);
    free(made->v.data);
    qkv_array_free(made->wo);
    qkv_array_free(made->bo);
    free(made);
}

/* ---- Behind attention ------------------------------------------------------------------------ */

int attend_join(qkv_ctx *ctx, const struct attend_problem *problem,
                struct attend_results *results) {
    const struct attend_made *const made = problem->made;
    const int64_t n_batch = made->q.shape[0], n_heads = made->q.shape[1], length = made->q.shape[2];
    struct projection p = { .w = { .array = made->wo },
                            .b = { .array = made->bo },
                            .n_rows = n_batch * length,
                            .n_columns = made->n_columns };
    results->joined = calloc((size_t)(p.n_rows * made->n_joined) + 1, sizeof(float));
    if (!results->joined) return cli_fail("out of memory");
    swap_middle(n_batch, n_heads, length, made->v.shape[3], results->o, results->joined);
    const int code = made->wo ? multiply(ctx, &p, made->n_joined, results->joined) : EXIT_OK;
    results->projected = p.y;
    return code;
}
