/*
 * Steps of a query against another BERT, written here: whole matrices in double, from the tensors
 * of the file. Both begin with the run's input of a layer, and compute in double from there, so
 * that they differ only by rounding.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/inspect.h"

#include "qkv/files.h"

enum { HIDDEN = 20, HEADS = 2, DIM = 10, WIDE = 37, LAYERS = 2, MAX_N = 23 };
#define FOLDER   QKV_TEST_DATA "/golden/bert_old"
#define SENTENCE "The man was watching the [MASK] when it left."

static qkv_ctx *ctx;
static qkv_model *model;
static qkv_encoding *input;
static qkv_run *run;

static qkv_encoding *encode(const qkv_model *m, const char *text, const char *pair) {
    qkv_encoding *made = NULL;
    qkv_error error;
    if (qkv_tokenizer_encode(qkv_model_tokenizer(m, QKV_SOURCE), text, strlen(text), pair,
                             pair ? strlen(pair) : 0, &made, &error) != QKV_OK)
        fail_msg("%s", error.message);
    return made;
}

static int set_up(void **state) {
    (void)state;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) return -1;
    if (qkv_model_open(FOLDER, NULL, &model, NULL) != QKV_OK) return -1;
    input = encode(model, SENTENCE, "it was a dog.");
    assert_true(input->n <= MAX_N);
    return qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)&input,
                         QKV_RUN_CAPTURE | QKV_RUN_HIDDEN, NULL, &run, NULL) == QKV_OK
               ? 0
               : -1;
}

static int tear_down(void **state) {
    (void)state;
    qkv_run_free(run);
    qkv_encoding_free(input);
    qkv_model_free(model);
    qkv_ctx_free(ctx);
    return 0;
}

/* ---- The textbook ---------------------------------------------------------------------------- */

static double *tensor(const char *format, int64_t layer) {
    char name[128], path[512];
    qkv_array *array;
    qkv_error error;
    snprintf(name, sizeof name, format, (int)layer);
    snprintf(path, sizeof path, FOLDER "/model.safetensors:%s", name);
    if (qkv_array_read(path, QKV_ARRAY_F32, &array, &error) != QKV_OK)
        fail_msg("%s", error.message);
    double *made = malloc((size_t)array->n_elems * sizeof *made);
    assert_non_null(made);
    for (int64_t i = 0; i < array->n_elems; i++) made[i] = (double)((float *)array->data)[i];
    qkv_array_free(array);
    return made;
}

#define LAYER "bert.encoder.layer.%d."

/* y [n][n_out] = x [n][n_in] W^T + b */
static void linear(const char *name, int64_t layer, int64_t n, int64_t n_in, int64_t n_out,
                   const double *x, double *y) {
    char text[128];
    snprintf(text, sizeof text, LAYER "%s.weight", (int)layer, name);
    double *const w = tensor(text, 0);
    snprintf(text, sizeof text, LAYER "%s.bias", (int)layer, name);
    double *const b = tensor(text, 0);
    for (int64_t i = 0; i < n; i++)
        for (int64_t o = 0; o < n_out; o++) {
            y[i * n_out + o] = b[o];
            for (int64_t c = n_in - 1; c >= 0; c--)
                y[i * n_out + o] += x[i * n_in + c] * w[o * n_in + c];
        }
    free(w);
    free(b);
}

static void norm(const char *name, int64_t n, double *x) {
    char text[128];
    snprintf(text, sizeof text, "%s.gamma", name);
    double *const gamma = tensor(text, 0);
    snprintf(text, sizeof text, "%s.beta", name);
    double *const beta = tensor(text, 0);
    for (int64_t i = 0; i < n; i++, x += HIDDEN) {
        double sum = 0, squares = 0;
        for (int c = 0; c < HIDDEN; c++) sum += x[c];
        for (int c = 0; c < HIDDEN; c++) squares += x[c] * x[c];
        const double mean = sum / HIDDEN, variance = squares / HIDDEN - mean * mean;
        for (int c = 0; c < HIDDEN; c++)
            x[c] = gamma[c] * (x[c] - mean) / sqrt(variance + 1e-12) + beta[c];
    }
    free(gamma);
    free(beta);
}

static void layer_norm(const char *name, int64_t layer, int64_t n, double *x) {
    char text[128];
    snprintf(text, sizeof text, LAYER "%s.LayerNorm", (int)layer, name);
    norm(text, n, x);
}

/* Everything of one layer for all tokens. */
static struct {
    double x[MAX_N * HIDDEN], q[MAX_N * HIDDEN], k[MAX_N * HIDDEN], v[MAX_N * HIDDEN];
    double w[HEADS][MAX_N][MAX_N], o[MAX_N * HIDDEN], a[MAX_N * HIDDEN], y1[MAX_N * HIDDEN];
    double up[MAX_N * WIDE], gelu[MAX_N * WIDE], y[MAX_N * HIDDEN];
} book;

static void attend(int64_t n, int64_t h, int64_t i) {
    double total = 0;
    for (int64_t j = 0; j < n; j++) {
        double score = 0;
        for (int64_t c = h * DIM; c < (h + 1) * DIM; c++)
            score += book.q[i * HIDDEN + c] * book.k[j * HIDDEN + c] / sqrt(DIM);
        book.w[h][i][j] = exp(score); /* not shifted: such scores are small */
        total += book.w[h][i][j];
    }
    for (int64_t j = 0; j < n; j++) book.w[h][i][j] /= total;
    for (int64_t c = h * DIM; c < (h + 1) * DIM; c++) {
        book.o[i * HIDDEN + c] = 0;
        for (int64_t j = 0; j < n; j++)
            book.o[i * HIDDEN + c] += book.w[h][i][j] * book.v[j * HIDDEN + c];
    }
}

static void textbook(int64_t layer) {
    const int64_t n = input->n;
    const float *x = qkv_run_hidden(run, QKV_SELF, 0, layer);
    for (int64_t i = 0; i < n * HIDDEN; i++) book.x[i] = (double)x[i];
    linear("attention.self.query", layer, n, HIDDEN, HIDDEN, book.x, book.q);
    linear("attention.self.key", layer, n, HIDDEN, HIDDEN, book.x, book.k);
    linear("attention.self.value", layer, n, HIDDEN, HIDDEN, book.x, book.v);
    for (int64_t h = 0; h < HEADS; h++)
        for (int64_t i = 0; i < n; i++) attend(n, h, i);
    linear("attention.output.dense", layer, n, HIDDEN, HIDDEN, book.o, book.a);
    for (int64_t i = 0; i < n * HIDDEN; i++) book.y1[i] = book.x[i] + book.a[i];
    layer_norm("attention.output", layer, n, book.y1);
    linear("intermediate.dense", layer, n, HIDDEN, WIDE, book.y1, book.up);
    for (int64_t i = 0; i < n * WIDE; i++)
        book.gelu[i] = book.up[i] * erfc(-book.up[i] / sqrt(2)) / 2;
    linear("output.dense", layer, n, WIDE, HIDDEN, book.gelu, book.y);
    for (int64_t i = 0; i < n * HIDDEN; i++) book.y[i] += book.y1[i];
    layer_norm("output", layer, n, book.y);
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static void same(const char *what, int64_t n, const double *a, const double *b, double bound) {
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= bound))
            fail_msg("%s[%d]: %.17g is not %.17g", what, (int)i, a[i], b[i]);
}

static void check_numbers(const qkv_steps *s) {
    const int64_t at = s->query * HIDDEN, part = s->head * DIM;
    double sum = 0, largest = -INFINITY, scores = 0;
    same("q", DIM, s->q, book.q + at + part, 1e-12);
    for (int64_t j = 0; j < s->n; j++) {
        same("k", DIM, s->k + j * DIM, book.k + j * HIDDEN + part, 1e-12);
        same("v", DIM, s->v + j * DIM, book.v + j * HIDDEN + part, 1e-12);
        sum += s->weights[j];
        largest = fmax(largest, s->scores[j]);
        scores = fmax(scores, fabs(s->scores[j] - s->products[j] / sqrt(DIM)));
        assert_true(s->shifted[j] <= 0 && s->exponentials[j] <= 1);
    }
    same("weights", s->n, s->weights, book.w[s->head][s->query], 1e-13);
    same("o", DIM, s->o, book.o + at + part, 1e-12);
    same("concat", HIDDEN, s->concat, book.o + at, 1e-12);
    same("projected", HIDDEN, s->projected, book.a + at, 1e-12);
    same("normed", HIDDEN, s->normed, book.y1 + at, 1e-11);
    same("up", WIDE, s->up, book.up + s->query * WIDE, 1e-11);
    same("gelu", WIDE, s->gelu, book.gelu + s->query * WIDE, 1e-11);
    same("y", HIDDEN, s->y, book.y + at, 1e-11);
    assert_true(fabs(sum - 1) < 1e-14);
    assert_true(s->largest == largest && scores < 1e-14);
}

static void check_errors(const qkv_steps *s, double bound) {
    const double errors[] = { s->embedded_error, s->q_error,       s->k_error,
                              s->lse_error,      s->weights_error, s->y_error };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (!(errors[i] < bound)) fail_msg("error %d is %g", (int)i, errors[i]);
        if (errors[i] == 0) fail_msg("error %d is 0: nothing was compared", (int)i);
    }
}

static void test_every_query(void **state) {
    (void)state;
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        textbook(layer);
        for (int64_t head = 0; head < HEADS; head++)
            for (int64_t query = 0; query < input->n; query++) {
                qkv_steps *s;
                qkv_error error;
                if (qkv_inspect_steps(model, run, 0, input, layer, head, query, &s, &error) !=
                    QKV_OK)
                    fail_msg("%s", error.message);
                check_numbers(s);
                assert_true(s->embedded_error < 1e-5 && s->y_error < 1e-5);
                qkv_steps_free(s);
            }
    }
}

static void test_embedding(void **state) {
    (void)state;
    double *const words = tensor("bert.embeddings.word_embeddings.weight", 0);
    double *const types = tensor("bert.embeddings.token_type_embeddings.weight", 0);
    double *const places = tensor("bert.embeddings.position_embeddings.weight", 0);
    for (int64_t i = 0; i < input->n; i++) {
        qkv_steps *s;
        double e[HIDDEN];
        float vector[HIDDEN];
        assert_int_equal(qkv_inspect_steps(model, run, 0, input, 0, 0, i, &s, NULL), QKV_OK);
        same("word", HIDDEN, s->word, words + input->ids[i] * HIDDEN, 0);
        same("segment", HIDDEN, s->segment, types + input->types[i] * HIDDEN, 0);
        same("position", HIDDEN, s->position, places + i * HIDDEN, 0);
        for (int c = 0; c < HIDDEN; c++) e[c] = s->word[c] + s->segment[c] + s->position[c];
        same("embedding", HIDDEN, s->embedding, e, 1e-15);
        norm("bert.embeddings.LayerNorm", 1, e);
        same("embedded", HIDDEN, s->embedded, e, 1e-12);
        assert_int_equal(qkv_model_word_vector(model, input->ids[i], vector, NULL), QKV_OK);
        for (int c = 0; c < HIDDEN; c++) assert_true((double)vector[c] == s->word[c]);
        qkv_steps_free(s);
    }
    free(words);
    free(types);
    free(places);
}

/* The embedded model, in which every number that is compared has rounding. */
static void test_default_model(void **state) {
    (void)state;
    qkv_model *m;
    qkv_run *r;
    qkv_steps *s;
    assert_int_equal(qkv_model_open(QKV_TEST_ROOT "/models/default", NULL, &m, NULL), QKV_OK);
    qkv_encoding *text = encode(m, "I was watching the [MASK] when it opened.", NULL);
    assert_int_equal(qkv_model_run(ctx, m, 1, (const qkv_encoding *const *)&text,
                                   QKV_RUN_CAPTURE | QKV_RUN_HIDDEN, NULL, &r, NULL),
                     QKV_OK);
    assert_int_equal(qkv_inspect_steps(m, r, 0, text, 3, 0, 5, &s, NULL), QKV_OK);
    check_errors(s, 1e-5);
    qkv_steps_free(s);
    qkv_run_free(r);
    qkv_encoding_free(text);
    qkv_model_free(m);
}

static void refused(const qkv_run *r, int64_t b, int64_t layer, int64_t head, int64_t query,
                    const char *words) {
    qkv_steps *s = (qkv_steps *)&s;
    qkv_error error;
    assert_int_equal(qkv_inspect_steps(model, r, b, input, layer, head, query, &s, &error),
                     QKV_ERR_ARGUMENT);
    assert_null(s);
    if (!strstr(error.message, words)) fail_msg("'%s' does not say '%s'", error.message, words);
}

static void test_refusals(void **state) {
    (void)state;
    qkv_run *plain, *capture;
    const qkv_encoding *const inputs[] = { input };
    assert_int_equal(qkv_model_run(ctx, model, 1, inputs, 0, NULL, &plain, NULL), QKV_OK);
    assert_int_equal(qkv_model_run(ctx, model, 1, inputs, QKV_RUN_CAPTURE, NULL, &capture, NULL),
                     QKV_OK);
    refused(run, 1, 0, 0, 0, "b = 1 is not between 0 and 0");
    refused(run, 0, 2, 0, 0, "layer = 2 is not between 0 and 1");
    refused(run, 0, 0, -1, 0, "head = -1 is not between 0 and 1");
    refused(run, 0, 0, 0, input->n, "query = ");
    refused(plain, 0, 0, 0, 0, "QKV_RUN_CAPTURE");
    refused(capture, 0, 0, 0, 0, "QKV_RUN_HIDDEN");
    refused(NULL, 0, 0, 0, 0, "run is NULL");
    qkv_run_free(plain);
    qkv_run_free(capture);
    qkv_steps *s;
    qkv_encoding shorter = *input;
    shorter.n--;
    assert_int_equal(qkv_inspect_steps(model, run, 0, &shorter, 0, 0, 0, &s, NULL), QKV_ERR_SHAPE);
    assert_int_equal(qkv_inspect_steps(model, run, 0, input, 0, 0, 0, NULL, NULL),
                     QKV_ERR_ARGUMENT);
    int32_t ids[MAX_N];
    memcpy(ids, input->ids, (size_t)input->n * sizeof *ids);
    qkv_encoding other = *input;
    other.ids = ids;
    ids[3] = 53;
    assert_int_equal(qkv_inspect_steps(model, run, 0, &other, 0, 0, 0, &s, NULL), QKV_ERR_ARGUMENT);
    qkv_steps_free(NULL);
    float vector[HIDDEN];
    qkv_error error;
    assert_int_equal(qkv_model_word_vector(model, 53, vector, &error), QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "id = 53 is not between 0 and 52");
    assert_int_equal(qkv_model_word_vector(model, -1, vector, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_model_word_vector(NULL, 0, vector, &error), QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "model is NULL");
    assert_int_equal(qkv_model_word_vector(model, 0, NULL, &error), QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "vector is NULL");
}

/* ---- Projections of layer 0 ------------------------------------------------------------------ */

static void test_projections(void **state) {
    (void)state;
    const int64_t n = input->n;
    float q[MAX_N * DIM], k[MAX_N * DIM], v[MAX_N * DIM];
    double e[MAX_N * HIDDEN];
    textbook(0);
    for (int64_t head = 0; head < HEADS; head++) {
        assert_int_equal(qkv_inspect_projections(model, input, head, 1, q, k, v, NULL), QKV_OK);
        for (int64_t i = 0; i < n * DIM; i++) {
            const int64_t at = i / DIM * HIDDEN + head * DIM + i % DIM;
            assert_true(fabs((double)q[i] - book.q[at]) < 1e-5);
            assert_true(fabs((double)k[i] - book.k[at]) < 1e-5);
            assert_true(fabs((double)v[i] - book.v[at]) < 1e-5);
        }
    }
    double *const words = tensor("bert.embeddings.word_embeddings.weight", 0);
    double *const types = tensor("bert.embeddings.token_type_embeddings.weight", 0);
    for (int64_t i = 0; i < n * HIDDEN; i++)
        e[i] = words[input->ids[i / HIDDEN] * HIDDEN + i % HIDDEN] +
               types[input->types[i / HIDDEN] * HIDDEN + i % HIDDEN];
    norm("bert.embeddings.LayerNorm", n, e);
    linear("attention.self.query", 0, n, HIDDEN, HIDDEN, e, book.q);
    assert_int_equal(qkv_inspect_projections(model, input, 1, 0, q, k, v, NULL), QKV_OK);
    for (int64_t i = 0; i < n * DIM; i++)
        assert_true((double)q[i] == (double)(float)book.q[i / DIM * HIDDEN + DIM + i % DIM] ||
                    fabs((double)q[i] - book.q[i / DIM * HIDDEN + DIM + i % DIM]) < 1e-7);
    free(words);
    free(types);
    assert_int_equal(qkv_inspect_projections(model, input, 2, 0, q, k, v, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_inspect_projections(model, input, 0, 0, q, NULL, v, NULL),
                     QKV_ERR_ARGUMENT);
}

/* ---- Sinusoids ------------------------------------------------------------------------------- */

static void test_sinusoids(void **state) {
    (void)state;
    enum { N = 300, D = 17 };
    static float table[N * D];
    assert_int_equal(qkv_sinusoids(N, D, table, NULL), QKV_OK);
    for (int p = 0; p < N; p++)
        for (int c = 0; c < D; c++) {
            const double angle = p * pow(10000, -(double)(c - c % 2) / D);
            const double wanted = c % 2 ? cos(angle) : sin(angle);
            if (!(fabs((double)table[p * D + c] - wanted) < 6e-8))
                fail_msg("[%d][%d]: %g is not %g", p, c, (double)table[p * D + c], wanted);
        }
    qkv_error error;
    assert_int_equal(qkv_sinusoids(0, 4, table, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_sinusoids(4, 0, table, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_sinusoids((1 << 20) + 1, 4, table, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_sinusoids(4, 4, NULL, &error), QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "table is NULL");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_query),   cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_default_model), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_projections),   cmocka_unit_test(test_sinusoids),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
