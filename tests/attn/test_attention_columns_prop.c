/*
 * Columns, diagonals and tiles of weights (qkv/columns.h), and rectangles of them: random problems
 * with every feature against a materialised reference in double; the same bits on every instruction
 * set with 1 to 16 threads, whatever else is asked for.
 */
#include <math.h>

#include "attn/columns_calls.h"
#include "check/oracle_row.h"
#include "check/outputs.h"
#include "check/rules.h"

enum { CASES = UNDER_SANITIZER ? 60 : 400 };

static const double EPSILON = 0x1p-24;

/* ---- The reference --------------------------------------------------------------------------- */

/* Of one head: each sum beside how far it may be off. */
typedef struct reference {
    const check_case *c;
    const columns_arrays *got;
    row r;
    double *received, *sum, *log_sum, *largest, *off, *worst; /* [len_k]; off: of received */
    double *p;                                                /* [len_q][len_k] */
    int64_t *n_queries;
    double *mass, *mass_off, *peak, *peak_off; /* [n_tiles_q][n_tiles_k] */
    double *diagonal, *diagonal_off;
    int64_t *tile_rows, *diagonal_rows;
    int64_t n_cells, n_tiny, n_unsure, n_empty, n_nan;
    double error; /* the greatest of all rows */
    int64_t n_compared;
} reference;

static reference reference_of(const check_case *c, const columns_arrays *got) {
    const int64_t n = c->d.len_k, tiles = got->c.n_tiles_q * got->c.n_tiles_k;
    reference x = { .c = c, .got = got, .r = row_new(&c->d) };
    double **const of_keys[] = { &x.received, &x.sum, &x.log_sum, &x.largest, &x.off, &x.worst };
    double **const of_tiles[] = { &x.mass, &x.mass_off, &x.peak, &x.peak_off };
    for (int a = 0; a < 6; a++) *of_keys[a] = oracle_zeros(n, sizeof(double));
    for (int a = 0; a < 4; a++) *of_tiles[a] = oracle_zeros(tiles, sizeof(double));
    x.p = oracle_zeros(c->d.len_q * n, sizeof(double));
    x.n_queries = oracle_zeros(n, sizeof(int64_t));
    x.diagonal = oracle_zeros(got->c.n_diagonals, sizeof(double));
    x.diagonal_off = oracle_zeros(got->c.n_diagonals, sizeof(double));
    x.diagonal_rows = oracle_zeros(got->c.n_diagonals, sizeof(int64_t));
    x.tile_rows = oracle_zeros(got->c.n_tiles_q, sizeof(int64_t));
    return x;
}

static void reference_done(reference *x) {
    void *const all[] = { x->received, x->sum,          x->log_sum,   x->largest,
                          x->off,      x->worst,        x->p,         x->n_queries,
                          x->mass,     x->mass_off,     x->peak,      x->peak_off,
                          x->diagonal, x->diagonal_off, x->tile_rows, x->diagonal_rows };
    for (size_t n = 0; n < sizeof all / sizeof *all; n++) free(all[n]);
    row_free(&x->r);
}

static void near(const reference *x, const char *name, double is, double want, double bound) {
    if (!(fabs(is - want) <= bound))
        fail_msg("%s, %s: %.9g instead of %.9g, bound %.3g\n%s", isa, name, is, want, bound,
                 x->c->text);
}

/* How far weights of the row may be off, relatively. */
static double row_error(const reference *x) {
    const qkv_attention_desc *d = &x->c->d;
    const double products = 4 * sqrt((double)d->head_dim) * x->r.magnitude + 4 * x->r.bias;
    const double lost = 0x1p-126 * (double)d->head_dim * fabs(rule_scale(d));
    double most = fabs(x->r.lse);
    for (int64_t j = 0; j < d->len_k; j++)
        if (x->r.sees[j] && x->r.p[j] > 0) most = fmax(most, fabs(x->r.s[j]));
    return 2 * (EPSILON * (products + 8 * most) + lost) +
           EPSILON * (64 + 8 * sqrt((double)d->len_k));
}

static void add_cell(reference *x, int64_t b, int64_t i, int64_t j, double weight, double error) {
    const qkv_attention_desc *d = &x->c->d;
    const qkv_attention_columns *c = &x->got->c;
    const double p = x->r.p[j], off = p * error + 1e-37;
    const int64_t n_q = layout_queries(d, b), n_k = layout_keys(d, b);
    const int64_t offset = d->q_offsets ? d->q_offsets[b] : d->q_offset;
    const int64_t at = i + (d->flags & QKV_SET_Q_OFFSET ? offset : 0) - j - c->first_diagonal;
    x->received[j] += weight * p;
    x->off[j] += fabs(weight) * (off + 1e-6 * p);
    x->sum[j] += p;
    if (p > 0) x->log_sum[j] += p * log(p);
    x->worst[j] = fmax(x->worst[j], error);
    x->largest[j] = fmax(x->largest[j], p);
    x->p[i * d->len_k + j] = p;
    x->n_queries[j]++;
    x->n_cells++;
    x->n_tiny += p < (double)c->tiny;
    x->n_unsure += fabs(p - (double)c->tiny) <= off;
    int64_t a = 0, col = 0; /* the definition, tile by tile */
    while ((a + 1) * n_q / c->n_tiles_q <= i) a++;
    while ((col + 1) * n_k / c->n_tiles_k <= j) col++;
    const int64_t tile = a * c->n_tiles_k + col;
    x->mass[tile] += p;
    x->mass_off[tile] += off + 1e-6 * p;
    if (p > x->peak[tile]) x->peak[tile] = p, x->peak_off[tile] = off;
    if (at < 0 || at >= c->n_diagonals) return;
    x->diagonal[at] += p;
    x->diagonal_off[at] += off + 1e-6 * p;
    x->diagonal_rows[at]++;
}

static void add_row(reference *x, const operands *values, int64_t b, int64_t h, int64_t i) {
    const qkv_attention_desc *d = &x->c->d;
    const qkv_attention_columns *c = &x->got->c;
    int64_t n_seen = 0, a = 0;
    row_run(d, values, b, h, i, &x->r);
    for (int64_t j = 0; j < d->len_k; j++)
        n_seen += x->r.sees[j] && (x->r.s[j] > -INFINITY || isnan(x->r.s[j]));
    const bool nan = isnan(x->r.lse), empty = !nan && n_seen == 0;
    x->n_nan += nan;
    x->n_empty += empty;
    if (nan || empty) return;
    while ((a + 1) * layout_queries(d, b) / c->n_tiles_q <= i) a++;
    x->tile_rows[a]++;
    const float *w = c->row_weights;
    const double weight = w ? (double)w[layout_place(d, 'l', c->row_weights_stride, b, h, i)] : 1;
    const double error = row_error(x);
    x->error = fmax(x->error, error);
    for (int64_t j = 0; j < d->len_k; j++)
        if (x->r.sees[j] && x->r.s[j] > -INFINITY) add_cell(x, b, i, j, weight, error);
}

/* ---- Comparisons ----------------------------------------------------------------------------- */

static void compare_keys(reference *x, int64_t b, int64_t h) {
    const qkv_attention_desc *d = &x->c->d;
    const qkv_attention_columns *c = &x->got->c;
    for (int64_t j = 0; j < layout_rows(d, 'k', b); j++) {
        const int64_t at = columns_key(d, x->got, b, h, j);
        assert_int_equal(c->n_queries[at], x->n_queries[j]);
        if (x->error > 0.01) continue;
        x->n_compared++;
        near(x, "received", (double)c->received[at], x->received[j], x->off[j] + 1e-37);
        const double off = x->worst[j] * x->largest[j] + 1e-37;
        near(x, "largest", (double)c->largest[at], x->largest[j], off);
        const int64_t i = c->largest_query[at];
        if (c->largest[at] > 0)
            assert_true(i >= 0 && x->p[i * d->len_k + j] >= x->largest[j] - 2 * off);
        else
            assert_int_equal(i, -1);
        if (x->sum[j] < 1e-30) continue;
        const double h_j = log(x->sum[j]) - x->log_sum[j] / x->sum[j];
        near(x, "entropy", (double)c->entropy[at], h_j, 4 * x->worst[j] * (1 + h_j) + 2e-5);
    }
}

static void compare_tiles(reference *x, int64_t head) {
    const qkv_attention_columns *c = &x->got->c;
    for (int64_t a = 0; a < c->n_tiles_q; a++) {
        const double n = (double)x->tile_rows[a];
        assert_int_equal(c->tile_rows[head * c->n_tiles_q + a], x->tile_rows[a]);
        for (int64_t e = a * c->n_tiles_k; x->error < 0.01 && e < (a + 1) * c->n_tiles_k; e++) {
            const int64_t at = head * c->n_tiles_q * c->n_tiles_k + e;
            near(x, "tile_mass", (double)c->tile_mass[at], n > 0 ? x->mass[e] / n : 0,
                 n > 0 ? x->mass_off[e] / n + 1e-37 : 0);
            near(x, "tile_peak", (double)c->tile_peak[at], x->peak[e],
                 2 * x->error * x->peak[e] + 1e-37);
        }
    }
}

static void compare_diagonals(reference *x, int64_t head) {
    const qkv_attention_columns *c = &x->got->c;
    for (int64_t n = 0; n < c->n_diagonals; n++) {
        const int64_t at = head * c->n_diagonals + n, rows = x->diagonal_rows[n];
        assert_int_equal(c->diagonal_rows[at], rows);
        if (x->error < 0.01)
            near(x, "diagonal", (double)c->diagonal[at], rows ? x->diagonal[n] / (double)rows : 0,
                 rows ? x->diagonal_off[n] / (double)rows + 1e-37 : 0);
    }
}

static void compare_head(const check_case *c, const columns_arrays *got, const operands *values,
                         int64_t b, int64_t h, int64_t *n_compared) {
    reference x = reference_of(c, got);
    const int64_t head = b * c->d.n_heads + h;
    for (int64_t i = 0; i < layout_queries(&c->d, b); i++) add_row(&x, values, b, h, i);
    assert_int_equal(got->c.n_empty_rows[head], x.n_empty);
    assert_int_equal(got->c.n_nan_rows[head], x.n_nan);
    assert_int_equal(got->c.n_cells[head], x.n_cells);
    if (x.error < 0.01) assert_true(llabs(got->c.n_tiny[head] - x.n_tiny) <= x.n_unsure);
    compare_keys(&x, b, h);
    compare_tiles(&x, head);
    compare_diagonals(&x, head);
    *n_compared += x.n_compared;
    reference_done(&x);
}

/* ---- Rectangles ------------------------------------------------------------------------------ */

/* A random rectangle has the bits of scalar; its rows sum to what the columns of it do. */
static void compare_rectangle(rng *r, const check_case *c, const outputs *o) {
    const qkv_attention_desc *d = &c->d;
    if (d->n_batch == 0 || d->n_heads == 0) return;
    const int64_t b = rng_between(r, 0, d->n_batch - 1), h = rng_between(r, 0, d->n_heads - 1);
    const int64_t len_q = layout_rows(d, 'q', b), len_k = layout_rows(d, 'k', b);
    const int64_t i0 = rng_between(r, 0, len_q), i1 = rng_between(r, i0, len_q);
    const int64_t j0 = rng_between(r, 0, len_k), j1 = rng_between(r, j0, len_k);
    const int64_t step = j1 - j0 + 3, n = i1 > i0 && j1 > j0 ? (i1 - i0 - 1) * step + j1 - j0 : 0;
    guarded p[2];
    for (int e = 0; e < 2; e++) {
        qkv_ctx *ctx = context_on(e ? "scalar" : isa, e ? 1 : 3);
        p[e] = guarded_new((size_t)n * sizeof(float), c->at_end);
        if (qkv_attention_weights(ctx, d, c->q.data, c->k.data, o->lse.data, b, h, i0, i1, j0, j1,
                                  p[e].data, step, NULL) != QKV_OK)
            fail_msg("%s\n%s", qkv_ctx_message(ctx), c->text);
        qkv_ctx_free(ctx);
        assert_true(guarded_intact(&p[e]));
    }
    const float *is = p[0].data, *scalar = p[1].data;
    const oracle_inputs in = case_inputs(c);
    operands values = operands_new(d, &in);
    reference x = { .c = c, .r = row_new(d) };
    for (int64_t i = i0; i < i1; i++) {
        const bool there = i < layout_queries(d, b);
        if (there) row_run(d, &values, b, h, i, &x.r);
        const double error = there ? row_error(&x) : 0;
        for (int64_t j = j0; j < j1; j++) {
            const float w = is[(i - i0) * step + j - j0], other = scalar[(i - i0) * step + j - j0];
            if (there && isnan(x.r.lse)) {
                assert_true(isnan(w) && isnan(other));
                continue;
            }
            if (memcmp(&w, &other, sizeof w) != 0) fail_msg("%s: not scalar's\n%s", isa, c->text);
            if (error < 0.01)
                near(&x, "weight", (double)w, there ? x.r.p[j] : 0,
                     there ? error * x.r.p[j] + 1e-37 : 0);
        }
    }
    row_free(&x.r);
    operands_free(&values);
    guarded_free(&p[0]);
    guarded_free(&p[1]);
}

/* ---- Random problems ------------------------------------------------------------------------- */

static int64_t one_case(rng *r, const check_case *c, int n_threads) {
    outputs o = outputs_new(c);
    columns_arrays x = columns_arrays_new(&c->d, c->seed, c->at_end);
    columns_arrays scalar = columns_arrays_new(&c->d, c->seed, c->at_end);
    columns_arrays alone = columns_arrays_new(&c->d, c->seed, c->at_end);
    int64_t n_compared = 0;
    forward(isa, c, &o);
    columns(isa, n_threads, c, &o, &x.c);
    columns("scalar", 1, c, &o, &scalar.c);
    const int differs = columns_difference(&x, &scalar);
    if (differs >= 0) fail_msg("%s: array %d is not that of scalar\n%s", isa, differs, c->text);
    if (!columns_intact(&c->d, &x)) fail_msg("%s: written outside of rows\n%s", isa, c->text);

    qkv_attention_columns received = x.c;
    received.largest = received.entropy = received.tile_mass = received.tile_peak =
        received.diagonal = NULL;
    received.n_queries = received.largest_query = received.tile_rows = received.diagonal_rows =
        received.n_cells = received.n_tiny = received.n_empty_rows = received.n_nan_rows = NULL;
    received.received = alone.c.received;
    columns(isa, n_threads, c, &o, &received);
    if (memcmp(x.c.received, alone.c.received, x.array[COLUMNS_RECEIVED].bytes) != 0)
        fail_msg("%s: received alone has other bits\n%s", isa, c->text);

    const oracle_inputs in = case_inputs(c);
    operands values = operands_new(&c->d, &in);
    for (int64_t b = 0; b < c->d.n_batch; b++)
        for (int64_t h = 0; h < c->d.n_heads; h++) compare_head(c, &x, &values, b, h, &n_compared);
    operands_free(&values);
    compare_rectangle(r, c, &o);
    columns_arrays_free(&x);
    columns_arrays_free(&scalar);
    columns_arrays_free(&alone);
    outputs_free(&o);
    return n_compared;
}

static void random_problems_agree_with_the_reference(void) {
    rng r = { 0xC01 };
    int64_t n_compared = 0;
    for (int n = 0; n < CASES; n++) {
        check_case c;
        case_make(&c, rng_next(&r));
        n_compared += one_case(&r, &c, (int)rng_between(&r, 1, 16));
        case_free(&c);
    }
    assert_true(n_compared > 10 * CASES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROPERTY(random_problems_agree_with_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
