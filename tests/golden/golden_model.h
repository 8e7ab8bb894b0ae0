/*
 * Compares models with transformers in float64, whose tensors are in expected.safetensors. Each
 * must be within the bound of docs/numerics.md:
 *
 *     max|x - y| <= 1e-5 max(max|y|, 0.01 g)      g: the largest |y| of that kind in the model
 */
#ifndef TESTS_GOLDEN_MODEL_H
#define TESTS_GOLDEN_MODEL_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "files/safetensors.h"
#include "model/model_impl.h"

typedef struct golden {
    const char *name;
    qkv_model *model, *trained; /* opened to run; opened to be trained, with weights as floats */
    qkvi_safetensors *expected;
    qkv_ctx *ctx;
    int64_t n_sequences, n_tokens, n_targets;
    int32_t *lengths, *ids, *target_tokens, *target_ids;
    int32_t *types, *labels;                /* of encoders */
    int32_t *decoder_lengths, *decoder_ids; /* of pairs */
    int64_t n_decoder_tokens;
    float worst; /* the largest error, as a share of its bound */
} golden;

static const qkvi_stored *find(const golden *g, const char *name) {
    const qkvi_stored *stored = qkvi_safetensors_find(g->expected, name);
    if (!stored) fail_msg("%s: expected.safetensors lacks %s", g->name, name);
    return stored;
}

static int32_t *read_ints(const golden *g, const char *name, int64_t *n) {
    const qkvi_stored *stored = find(g, name);
    int32_t *ints = malloc(stored->n_elems * sizeof *ints + 1);
    assert_int_equal(stored->type, QKVI_I32);
    assert_int_equal(qkvi_safetensors_read_raw(g->expected, stored, ints, NULL), QKV_OK);
    *n = (int64_t)stored->n_elems;
    return ints;
}

static float *read_floats(const golden *g, const char *name, size_t n) {
    const qkvi_stored *stored = find(g, name);
    float *floats = malloc(n * sizeof *floats + 1);
    if (stored->n_elems != n) fail_msg("%s: %s has %zu elements", g->name, name, stored->n_elems);
    assert_int_equal(qkvi_safetensors_read_f32(g->expected, stored, floats, NULL), QKV_OK);
    return floats;
}

static float largest(const float *y, size_t n) {
    float top = 0;
    for (size_t i = 0; i < n; i++) top = fmaxf(top, fabsf(y[i]));
    return top;
}

/* Compares x with y; kind: g of the bound. */
static void compare_arrays(golden *g, const char *name, const float *x, const float *y, size_t n,
                           float kind) {
    const float bound = 1e-5f * fmaxf(largest(y, n), 0.01f * kind);
    float error = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) fail_msg("%s: %s[%zu] = %g", g->name, name, i, (double)x[i]);
        error = fmaxf(error, fabsf(x[i] - y[i]));
    }
    g->worst = fmaxf(g->worst, error / bound);
    if (!(error <= bound))
        fail_msg("%s: %s is off by %g, the bound is %g", g->name, name, (double)error,
                 (double)bound);
}

/* Compares x with the tensor of that name. */
static inline void compare(golden *g, const char *name, const float *x, size_t n, float kind) {
    float *y = read_floats(g, name, n);
    compare_arrays(g, name, x, y, n, kind);
    free(y);
}

/* The model in a folder of tests/golden, and its batch. */
static inline void open_golden(golden *g, const char *name) {
    char path[512];
    qkv_error error;
    *g = (golden){ .name = name };
    snprintf(path, sizeof path, QKV_TEST_DATA "/golden/%s", name);
    if (qkv_model_open(path, NULL, &g->model, &error) != QKV_OK) fail_msg("%s", error.message);
    if (qkvi_model_open_to_train(path, &g->trained, &error) != QKV_OK)
        fail_msg("%s", error.message);
    snprintf(path, sizeof path, QKV_TEST_DATA "/golden/%s/expected.safetensors", name);
    if (qkvi_safetensors_open(path, &g->expected, &error) != QKV_OK) fail_msg("%s", error.message);
    assert_int_equal(qkv_ctx_create(NULL, &g->ctx, NULL), QKV_OK);
    int64_t n;
    g->lengths = read_ints(g, "lengths", &g->n_sequences);
    g->ids = read_ints(g, "ids", &g->n_tokens);
    g->target_tokens = read_ints(g, "target_tokens", &g->n_targets);
    g->target_ids = read_ints(g, "target_ids", &n);
    if (qkvi_safetensors_find(g->expected, "types")) g->types = read_ints(g, "types", &n);
    if (qkv_model_get_info(g->model)->has_nsp) g->labels = read_ints(g, "labels", &n);
    if (!qkvi_safetensors_find(g->expected, "decoder_ids")) return;
    g->decoder_lengths = read_ints(g, "decoder_lengths", &n);
    g->decoder_ids = read_ints(g, "decoder_ids", &g->n_decoder_tokens);
}

static inline void close_golden(golden *g) {
    int32_t *const ints[] = { g->lengths,    g->ids,    g->types,           g->target_tokens,
                              g->target_ids, g->labels, g->decoder_lengths, g->decoder_ids };
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) free(ints[i]);
    print_message("%s: at most %.3f of the bound\n", g->name, (double)g->worst);
    qkvi_safetensors_close(g->expected);
    qkv_model_free(g->model);
    qkv_model_free(g->trained);
    qkv_ctx_free(g->ctx);
}

/* n int32s as int64s, to be freed. */
static inline int64_t *widened(const int32_t *from, int64_t n) {
    int64_t *to = malloc((size_t)n * sizeof *to + 1);
    for (int64_t i = 0; i < n; i++) to[i] = from[i];
    return to;
}

/* The gradient by transformers of a parameter, in our layout; NULL: it has none (sinusoids). */
static inline float *expected_gradient(const golden *g, const qkvi_param *row) {
    char name[128];
    snprintf(name, sizeof name, "grad.%s", qkvi_param_stored_name(row));
    if (!qkvi_safetensors_find(g->expected, name)) fail_msg("%s: no %s", g->name, name);
    int64_t n_rows, n_columns;
    qkvi_param_stored_matrix(row, &n_rows, &n_columns);
    const size_t n = row->stored_rows ? (size_t)(row->stored_rows * row->shape[1])
                                      : (size_t)(n_rows * n_columns);
    float *stored = read_floats(g, name, n), *values = malloc(row->n_elems * sizeof *values + 1);
    qkvi_stored_rows all = { .values = stored, .kernels = qkvi_kernels_best() };
    int64_t n_cols;
    qkvi_param own = *row;
    own.offset = 0;
    if (row->stored_rows) {
        const int64_t cols = row->shape[1];
        for (int64_t r = 0, some; r < row->shape[0]; r += some) {
            const int64_t at = qkvi_param_stored_row(row, r, &some);
            memcpy(values + r * cols, stored + at * cols, (size_t)(some * cols) * sizeof *values);
        }
        free(stored);
        return values;
    }
    qkvi_param_stored_matrix(row, &all.n, &n_cols);
    qkvi_param_from_stored(&own, &all, values);
    free(stored);
    return values;
}

#endif
