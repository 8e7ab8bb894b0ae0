/*
 * GGUF files against what PyPI gguf makes of them (tools/gguf_cases.py): blocks of each type, with
 * odd factors among them, and all weights of a tiny Llama, bit for bit, however its tensors are
 * cut.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "files/gguf_types.h"
#include "gguf/gguf.h"
#include "qkv/model.h"

#define DATA QKV_TEST_DATA "/golden/gguf/"

static qkvi_safetensors *open_golden(const char *path) {
    qkvi_safetensors *file;
    qkv_error error;
    if (qkvi_safetensors_open(path, &file, &error) != QKV_OK) fail_msg("%s", error.message);
    return file;
}

/* The same bits, or both NaN, whose payload no formula has. */
static bool same(float a, float b) { return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b); }

static float *floats(const qkvi_safetensors *file, const qkvi_stored *tensor) {
    float *const values = malloc(tensor->n_elems * sizeof *values);
    qkv_error error;
    if (qkvi_safetensors_read_f32(file, tensor, values, &error) != QKV_OK)
        fail_msg("%s", error.message);
    return values;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static void check_type(const qkvi_safetensors *file, const qkvi_gguf_type *type) {
    char name[40];
    qkv_error error;
    snprintf(name, sizeof name, "%s.blocks", type->name);
    const qkvi_stored *const blocks = qkvi_safetensors_find(file, name);
    snprintf(name, sizeof name, "%s.values", type->name);
    const qkvi_stored *const values = qkvi_safetensors_find(file, name);
    if (!blocks || !values) fail_msg("no blocks of %s", type->name);
    assert_int_equal(blocks->shape[1], type->n_bytes);
    assert_int_equal(values->shape[1], type->n_elems);
    uint8_t *const bytes = malloc(blocks->n_elems);
    float *const wanted = floats(file, values), *const made =
                                                    malloc(values->n_elems * sizeof *made);
    assert_int_equal(qkvi_safetensors_read_raw(file, blocks, bytes, &error), QKV_OK);
    qkvi_gguf_to_f32(type, bytes, (size_t)blocks->shape[0], made);
    for (size_t i = 0; i < values->n_elems; i++)
        if (!same(made[i], wanted[i]))
            fail_msg("%s[%zu] is %a, not %a", type->name, i, (double)made[i], (double)wanted[i]);
    free(bytes);
    free(wanted);
    free(made);
}

static void every_type_has_its_values(void **state) {
    (void)state;
    qkvi_safetensors *const file = open_golden(DATA "blocks.safetensors");
    int n = 0;
    for (uint32_t id = 0; id < 64; id++) {
        const qkvi_gguf_type *const type = qkvi_gguf_type_of(id);
        if (!type || !type->to_f32) continue;
        check_type(file, type);
        n++;
    }
    assert_int_equal(n, 17);
    assert_int_equal(2 * n, file->n_tensors);
    qkvi_safetensors_close(file);
}

/* ---- Weights --------------------------------------------------------------------------------- */

static qkvi_gguf *open_gguf(const char *path) {
    qkvi_gguf *gguf;
    qkv_error error;
    if (qkvi_gguf_open(path, &gguf, &error) != QKV_OK) fail_msg("%s", error.message);
    return gguf;
}

static void weights_are_those_of_the_folder(void **state) {
    (void)state;
    qkvi_safetensors *const wanted = open_golden(DATA "tiny.safetensors");
    qkvi_gguf *const gguf = open_gguf(DATA "tiny.gguf");
    assert_int_equal(gguf->weights->n_tensors, wanted->n_tensors);
    for (int64_t t = 0; t < wanted->n_tensors; t++) {
        const qkvi_stored *const a = &wanted->tensors[t], *const b = &gguf->weights->tensors[t];
        assert_string_equal(a->name, b->name);
        assert_int_equal(a->rank, b->rank);
        assert_memory_equal(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape);
        float *const left = floats(wanted, a), *const right = floats(gguf->weights, b);
        if (memcmp(left, right, a->n_elems * sizeof *left) != 0) fail_msg("%s differs", a->name);
        free(left);
        free(right);
    }
    qkvi_gguf_close(gguf);
    qkvi_safetensors_close(wanted);
}

/*
 * Parts that begin and end within blocks and within rows of a tensor whose rows are in another
 * order.
 */
static void parts_are_those_of_the_whole(void **state) {
    (void)state;
    qkvi_gguf *const gguf = open_gguf(DATA "tiny.gguf");
    qkv_error error;
    int n_in_blocks = 0;
    for (int64_t t = 0; t < gguf->weights->n_tensors; t++) {
        const qkvi_stored *const tensor = &gguf->weights->tensors[t];
        float *const whole = floats(gguf->weights, tensor), part[41];
        for (size_t at = 0; at < tensor->n_elems; at += 41) {
            const size_t left = tensor->n_elems - at, n = left < 41 ? left : 41;
            assert_int_equal(qkvi_safetensors_read_part(gguf->weights, tensor, at, n, part, &error),
                             QKV_OK);
            assert_memory_equal(part, whole + at, n * sizeof *part);
        }
        if (tensor->blocks) {
            const qkvi_gguf_type *const type = tensor->blocks;
            const size_t n = tensor->n_elems / (size_t)type->n_elems;
            uint8_t *const blocks = malloc(n * (size_t)type->n_bytes);
            float *const values = malloc(tensor->n_elems * sizeof *values);
            for (int64_t r = 0, some; r < tensor->shape[0]; r += some) {
                some = r % 3 + 1 < tensor->shape[0] - r ? r % 3 + 1 : tensor->shape[0] - r;
                const size_t first = n / (size_t)tensor->shape[0] * (size_t)r;
                assert_int_equal(qkvi_safetensors_read_rows(gguf->weights, tensor, r, some,
                                                            blocks + first * (size_t)type->n_bytes,
                                                            &error),
                                 QKV_OK);
            }
            qkvi_gguf_to_f32(type, blocks, n, values);
            assert_memory_equal(values, whole, tensor->n_elems * sizeof *whole);
            free(blocks);
            free(values);
            n_in_blocks++;
        }
        free(whole);
    }
    assert_true(n_in_blocks > 5);
    qkvi_gguf_close(gguf);
}

static void model_opens(void **state) {
    (void)state;
    qkv_model *model;
    qkv_encoding *input;
    qkv_error error;
    static const int32_t ids[] = { 256, 32, 115, 97, 105, 100 };
    if (qkv_model_open(DATA "tiny.gguf", NULL, &model, &error) != QKV_OK)
        fail_msg("%s", error.message);
    const qkv_model_info *const info = qkv_model_get_info(model);
    assert_string_equal(info->architecture, "llama");
    assert_int_equal(info->n_kv_heads, 1);
    assert_int_equal(info->eos_id, 257);
    assert_string_equal(qkv_model_file(model, 0), "tiny.gguf");
    assert_null(qkv_model_file(model, 1));
    assert_null(qkv_model_unused(model, 0));
    assert_null(qkv_model_warning(model, 0));
    assert_int_equal(qkv_tokenizer_encode(qkv_model_tokenizer(model, QKV_SOURCE), "he said", 7,
                                          NULL, 0, &input, &error),
                     QKV_OK);
    assert_int_equal(input->n, 6);
    assert_memory_equal(input->ids, ids, sizeof ids);
    qkv_encoding_free(input);
    qkv_model_free(model);
}

/* ---- Weights multiplied as they lie ---------------------------------------------------------- */

enum { N_TOKENS = 6, N_BATCH = 2 };

typedef struct states {
    float *hidden, *logits;
    size_t n_hidden, n_logits;
} states;

static qkv_model *open_as(qkv_model_weights weights) {
    qkv_model_open_options options = qkv_model_open_options_init();
    qkv_model *model;
    qkv_error error;
    assert_int_equal(options.weights, QKV_WEIGHTS_FILE);
    options.weights = weights;
    if (qkv_model_open(DATA "tiny.gguf", &options, &model, &error) != QKV_OK)
        fail_msg("%s", error.message);
    assert_int_equal(qkv_model_get_info(model)->weights, weights);
    return model;
}

/* Of the first input, alone or beside another. */
static states compute(const qkv_model *model, const char *isa, int n_threads, int64_t n_batch) {
    static int32_t ids[N_BATCH][N_TOKENS] = { { 256, 32, 115, 97, 105, 100 }, { 7, 8, 256 } };
    static const int64_t lengths[N_BATCH] = { N_TOKENS, 3 };
    const qkv_model_info *const info = qkv_model_get_info(model);
    qkv_ctx_options options = qkv_ctx_options_init();
    qkv_encoding inputs[N_BATCH];
    const qkv_encoding *list[N_BATCH];
    qkv_ctx *ctx;
    qkv_run *run;
    qkv_error error;
    states s = { .n_hidden = (size_t)(info->hidden * N_TOKENS),
                 .n_logits = (size_t)info->vocab_size };
    options.isa = isa;
    options.n_threads = n_threads;
    for (int b = 0; b < N_BATCH; b++) {
        inputs[b] = (qkv_encoding){ .n = lengths[b], .ids = ids[b] };
        list[b] = &inputs[b];
    }
    s.hidden = malloc(s.n_hidden * sizeof(float));
    s.logits = malloc(s.n_logits * sizeof(float));
    assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
    if (qkv_model_run(ctx, model, n_batch, list, 0, NULL, &run, &error) != QKV_OK)
        fail_msg("%s", error.message);
    memcpy(s.hidden, qkv_run_hidden(run, QKV_SELF, 0, info->n_layers), s.n_hidden * sizeof(float));
    if (qkv_model_logits(ctx, model, run, QKV_HEAD_NEXT, 0, N_TOKENS - 1, s.logits, &error) !=
        QKV_OK)
        fail_msg("%s", error.message);
    qkv_run_free(run);
    qkv_ctx_free(ctx);
    return s;
}

static void drop(states *s) {
    free(s->hidden);
    free(s->logits);
}

static void blocks_have_the_same_bits_everywhere(void **state) {
    (void)state;
    qkv_model *const model = open_as(QKV_WEIGHTS_FILE);
    states first = compute(model, "scalar", 1, 1);
    const char *isa;
    for (int i = 0; (isa = qkv_isa_name(i)); i++) {
        states other = compute(model, isa, 1 + 2 * i, N_BATCH);
        assert_memory_equal(first.hidden, other.hidden, first.n_hidden * sizeof(float));
        assert_memory_equal(first.logits, other.logits, first.n_logits * sizeof(float));
        drop(&other);
    }
    drop(&first);
    qkv_model_free(model);
}

/* How far numbers are from others, beside the greatest. */
static double distance(const float *a, const float *b, size_t n) {
    double most = 0, off = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)a[i]));
        off = fmax(off, fabs((double)a[i] - (double)b[i]));
    }
    return off / most;
}

static void blocks_are_near_their_numbers(void **state) {
    (void)state;
    qkv_model *const exact = open_as(QKV_WEIGHTS_F32), *const file = open_as(QKV_WEIGHTS_FILE);
    states a = compute(exact, NULL, 1, 1), b = compute(file, NULL, 1, 1);
    const double hidden = distance(a.hidden, b.hidden, a.n_hidden);
    const double logits = distance(a.logits, b.logits, a.n_logits);
    print_message("hidden states %.2g, logits %.2g of the greatest\n", hidden, logits);
    assert_true(hidden > 0 && hidden < 0.05);
    assert_true(logits > 0 && logits < 0.05);
    /* what is not rounded: vectors of words */
    const int64_t n = qkv_model_get_info(exact)->hidden;
    float *const u = malloc((size_t)n * sizeof *u), *const v = malloc((size_t)n * sizeof *v);
    for (int32_t id = 0; id < qkv_model_get_info(exact)->vocab_size; id++) {
        assert_int_equal(qkv_model_word_vector(exact, id, u, NULL), QKV_OK);
        assert_int_equal(qkv_model_word_vector(file, id, v, NULL), QKV_OK);
        assert_memory_equal(u, v, (size_t)n * sizeof *u);
    }
    assert_true(qkv_model_get_info(file)->weights_bytes <
                qkv_model_get_info(exact)->weights_bytes / 2);
    assert_int_equal(qkv_model_check_finite(file, NULL, NULL), 0);
    free(u);
    free(v);
    drop(&a);
    drop(&b);
    qkv_model_free(exact);
    qkv_model_free(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_its_values),
        cmocka_unit_test(weights_are_those_of_the_folder),
        cmocka_unit_test(parts_are_those_of_the_whole),
        cmocka_unit_test(model_opens),
        cmocka_unit_test(blocks_have_the_same_bits_everywhere),
        cmocka_unit_test(blocks_are_near_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
