/*
 * The memory of an open model: it has weights once, as panels in f32 or bf16; word embeddings, tied
 * to a head or not, equal those of the file; the bytes that an open model takes.
 */
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/half.h"
#include "core/rng.h"
#include "kernels/gemm_bf16.h"
#include "param_values.h"
#include "qkv/files.h"

#define GOLDEN  QKV_TEST_DATA "/golden/"
#define DEFAULT QKV_TEST_ROOT "/models/default"

static qkv_model *open_as(const char *folder, qkv_model_weights weights) {
    qkv_model_open_options options = qkv_model_open_options_init();
    qkv_model *model;
    qkv_error error;
    options.weights = weights;
    if (qkv_model_open(folder, &options, &model, &error) != QKV_OK) fail_msg("%s", error.message);
    return model;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

/* A matrix that comes in pieces, of rows or of columns, packed as if it had come at once. */
static void check_pieces(int64_t k, int64_t n, int64_t step, bool by_rows, const float *b) {
    const int64_t row = by_rows ? n : 1, col = by_rows ? 1 : k;
    const size_t n_words = qkvi_gemm_packed_elems(k, n), n_half = qkvi_bf16_packed_words(k, n);
    float *const at_once = malloc(n_words * sizeof *at_once);
    float *const pieces = malloc(n_words * sizeof *pieces);
    uint32_t *const half_at_once = qkvi_aligned_array(n_half, sizeof *half_at_once);
    uint32_t *const half = qkvi_aligned_array(n_half, sizeof *half);
    memset(pieces, 0x7f, n_words * sizeof *pieces);
    memset(half, 0x7f, n_half * sizeof *half);
    qkvi_gemm_pack_b(NULL, NULL, k, n, b, row, col, at_once);
    qkvi_bf16_pack_b(NULL, k, n, b, row, col, half_at_once);
    for (int64_t first = 0, all = by_rows ? k : n; first < all; first += step) {
        const int64_t some = all - first < step ? all - first : step;
        qkvi_gemm_piece piece = { 0, k, first, some, b + first * col, row, col };
        if (by_rows) piece = (qkvi_gemm_piece){ first, some, 0, n, b + first * row, row, col };
        qkvi_gemm_pack_piece(k, n, &piece, pieces);
        qkvi_bf16_pack_piece(qkvi_kernels_best(), k, &piece, half);
    }
    assert_memory_equal(pieces, at_once, n_words * sizeof *pieces);
    assert_memory_equal(half, half_at_once, n_half * sizeof *half);
    for (int64_t c = 0; c < k; c++)
        for (int64_t j = 0; j < n; j++) {
            const float value = b[c * row + j * col];
            assert_true(pieces[qkvi_gemm_packed_at(k, c, j)] == value);
            assert_true(qkvi_bf16_packed_at(k, c, j, half) ==
                        qkvi_f32_of_bf16(qkvi_bf16_of_f32(value)));
        }
    free(half);
    free(half_at_once);
    free(pieces);
    free(at_once);
}

static void test_pieces(void **state) {
    (void)state;
    static const int64_t sizes[][2] = { { 1, 1 },   { 32, 32 },  { 33, 31 }, { 64, 70 },
                                        { 100, 2 }, { 31, 130 }, { 130, 96 } };
    static float b[130 * 130];
    qkvi_rng rng = qkvi_rng_make(7, 0, 0);

    for (size_t i = 0; i < sizeof b / sizeof *b; i++) b[i] = qkvi_rng_unit(&rng) - 0.5f;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int64_t step = 32; step <= 96; step += 32)
            for (int by_rows = 0; by_rows < 2; by_rows++)
                check_pieces(sizes[s][0], sizes[s][1], step, by_rows, b);
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* Of every word; rounded: the table is a head's, too, and the model's weights are in bf16. */
static void check_words(const char *folder, const char *tensor, bool is_tied) {
    char path[512];
    qkv_array *array;
    qkv_error error;
    snprintf(path, sizeof path, "%s/model.safetensors:%s", folder, tensor);
    if (qkv_array_read(path, QKV_ARRAY_F32, &array, &error) != QKV_OK)
        fail_msg("%s", error.message);
    for (int weights = QKV_WEIGHTS_F32; weights <= QKV_WEIGHTS_BF16_AMX; weights++) {
        qkv_model *const model = open_as(folder, (qkv_model_weights)weights);
        const qkv_model_info *const info = qkv_model_get_info(model);
        const bool rounded = is_tied && weights != QKV_WEIGHTS_F32;
        const float *wanted = array->data;
        float vector[256];
        assert_true(info->embedding_size <= 256);
        assert_int_equal(array->n_elems, info->vocab_size * info->embedding_size);
        for (int32_t id = 0; id < info->vocab_size; id++) {
            assert_int_equal(qkv_model_word_vector(model, id, vector, NULL), QKV_OK);
            for (int64_t c = 0; c < info->embedding_size; c++, wanted++) {
                const float value = rounded ? qkvi_f32_of_bf16(qkvi_bf16_of_f32(*wanted)) : *wanted;
                if (vector[c] != value) fail_msg("%s: word %d, weights %d", folder, id, weights);
            }
        }
        qkv_model_free(model);
    }
    qkv_array_free(array);
}

static void test_words(void **state) {
    (void)state;
    const char *const of_bert = "bert.embeddings.word_embeddings.weight";
    check_words(DEFAULT, of_bert, true);
    check_words(GOLDEN "bert_new", "embeddings.word_embeddings.weight", true);
    check_words(GOLDEN "embed/mean", "embeddings.word_embeddings.weight", false);
    check_words(GOLDEN "decoder/gpt2_1", "wte.weight", true);
    check_words(GOLDEN "decoder/bart_1", "model.shared.weight", true);
    check_words(GOLDEN "decoder/marian_3", "model.encoder.embed_tokens.weight", false);
}

/* A file in bf16 is kept in bf16 as it is: the same model as from f32. */
static void test_bf16_file(void **state) {
    (void)state;
    qkv_model *const half = open_as(GOLDEN "stored/bfloat", QKV_WEIGHTS_BF16_DP);
    qkv_model *const full = open_as(GOLDEN "stored/bfloat", QKV_WEIGHTS_F32);
    for (int64_t r = 0; r < half->params.n_rows; r++) {
        const qkvi_param *const row = &half->params.rows[r];
        float *const a = param_values(half, row), *const b =
                                                      param_values(full, &full->params.rows[r]);
        assert_memory_equal(a, b, row->n_elems * sizeof *a);
        free(a);
        free(b);
    }
    qkv_model_free(half);
    qkv_model_free(full);
}

/* What is no number is found in every form, and its padding is none. */
static void note(void *user, const qkv_not_finite *found) { *(qkv_not_finite *)user = *found; }

static void test_not_finite(void **state) {
    (void)state;
    for (int weights = QKV_WEIGHTS_F32; weights <= QKV_WEIGHTS_BF16_AMX; weights++) {
        qkv_model *const model = open_as(GOLDEN "bert_new", (qkv_model_weights)weights);
        const qkvi_param *const row = &model->params.rows[0];
        float *const values = param_values(model, row);
        const qkvi_stored_rows all = { 0, row->shape[0], values, qkvi_kernels_best() };
        qkv_not_finite found = { 0 };
        assert_int_equal(qkv_model_check_finite(model, note, &found), 0);
        values[3] = NAN;
        values[row->shape[1]] = -INFINITY;
        values[row->n_elems - 1] = INFINITY;
        qkvi_param_from_stored(row, &all, model->arena);
        assert_int_equal(qkv_model_check_finite(model, note, &found), 1);
        assert_int_equal(found.n_nan, 1);
        assert_int_equal(found.n_inf, 2);
        free(values);
        qkv_model_free(model);
    }
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Of all that malloc gave. 0 where a sanitizer gives instead. */
static size_t bytes_in_use(void) {
#ifdef __GLIBC__
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
#else
    return 0;
#endif
}

static void test_memory(void **state) {
    (void)state;
    for (int weights = QKV_WEIGHTS_F32; weights <= QKV_WEIGHTS_BF16_AMX; weights++) {
        const size_t before = bytes_in_use();
        qkv_model *const model = open_as(DEFAULT, (qkv_model_weights)weights);
        const size_t taken = bytes_in_use() - before;
        const qkv_model_info *const info = qkv_model_get_info(model);
        const double bytes = (double)info->weights_bytes;
        const double whole = 4.0 * (double)info->n_parameters;
        assert_int_equal(info->weights_bytes, 4 * model->params.n_elems);
        if (weights == QKV_WEIGHTS_F32)
            assert_true(bytes >= whole && bytes < 1.02 * whole); /* columns up to 32 */
        else
            assert_true(bytes >= whole / 2 && bytes < 0.56 * whole); /* vectors and positions */
        assert_true((double)taken < 1.03 * bytes + (256 << 10));     /* and its tokenizer */
        qkv_model_free(model);
        assert_true(bytes_in_use() < before + (64 << 10));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_pieces), cmocka_unit_test(test_words),
                                        cmocka_unit_test(test_bf16_file),
                                        cmocka_unit_test(test_not_finite),
                                        cmocka_unit_test(test_memory) };
    return cmocka_run_group_tests_name("model_kept", tests, NULL, NULL);
}
