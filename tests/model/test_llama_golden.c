/*
 * Llama and its kin, and ModernBERT, beyond what test_decoder_golden.c and test_bert_golden.c
 * compare with transformers: kept keys (with rings) give the logits of a run; every step of `qkv
 * explain` in double is what the library computes; heads of layers with windows, soft caps and
 * shared keys have the weights of a run; weights in bf16 are near those in f32, and those in int8
 * give what float64 makes of the same integers (tools/int8_cases.py); a run has the same bits on
 * every instruction set.
 */
#include "golden/golden_model.h"
#include "model/arch/decoder.h"
#include "qkv/heads.h"
#include "qkv/inspect.h"

enum {
    LEN = 60
}; /* tokens: the models take 64, and rings of 16 and 32 are filled more than once */

static char names[][24] = {
    "llama_1",    "llama_2", "llama_3",      "llama_4",      "llama_5",       "mistral_1",
    "qwen2_1",    "qwen3_1", "gemma_1",      "gemma2_1",     "gemma3_text_1", "smollm3_1",
    "olmo2_1",    "phi3_1",  "modernbert_1", "modernbert_2", "gpt_neox_1",    "gpt_neox_2",
    "gpt_neox_3", "opt_1",   "opt_2",        "opt_3",        "opt_4",         "gptj_1",
    "gptj_2",     "gptj_3",  "bloom_1",      "bloom_2",      "bloom_3"
};
enum { N_MODELS = sizeof names / sizeof *names };

static qkv_model *open_model(const char *name, qkv_model_weights weights) {
    char path[512];
    qkv_error error;
    qkv_model *model;
    qkv_model_open_options options = qkv_model_open_options_init();
    options.weights = weights;
    snprintf(path, sizeof path, QKV_TEST_DATA "/golden/llama/%s", name);
    if (qkv_model_open(path, &options, &model, &error) != QKV_OK) fail_msg("%s", error.message);
    return model;
}

static qkv_ctx *open_ctx(const char *isa, int n_threads) {
    qkv_ctx_options options = qkv_ctx_options_init();
    qkv_ctx *ctx = NULL;
    options.isa = isa;
    options.n_threads = n_threads;
    return qkv_ctx_create(&options, &ctx, NULL) == QKV_OK ? ctx : NULL;
}

static void make_ids(const qkv_model *model, int64_t n, int32_t *ids) {
    const int64_t n_words = qkv_model_get_info(model)->vocab_size;
    for (int64_t i = 0; i < n; i++) ids[i] = (int32_t)(3 + (i * i * 7 + i * 5) % (n_words - 3));
}

static qkv_run *run_ids(qkv_ctx *ctx, const qkv_model *model, int64_t n, int32_t *ids) {
    const qkv_encoding input = { .n = n, .ids = ids }, *const inputs[] = { &input };
    qkv_error error;
    qkv_run *run;
    if (qkv_model_run(ctx, model, 1, inputs, QKV_RUN_CAPTURE | QKV_RUN_HIDDEN, NULL, &run,
                      &error) != QKV_OK)
        fail_msg("%s", error.message);
    return run;
}

/* ---- Kept keys ------------------------------------------------------------------------------- */

static void expect_logits(const char *name, qkv_ctx *ctx, const qkv_model *model,
                          const qkv_run *run, int64_t at, const float *logits) {
    const int64_t n_words = qkv_model_get_info(model)->vocab_size;
    float wanted[64];
    assert_true(n_words <= 64);
    assert_int_equal(qkv_model_logits(ctx, model, run, QKV_HEAD_NEXT, 0, at, wanted, NULL), QKV_OK);
    for (int64_t w = 0; w < n_words; w++)
        if (!(fabsf(logits[w] - wanted[w]) <= 2e-5f * (1 + fabsf(wanted[w]))))
            fail_msg("%s: token %d: logit %d is %g, a run has %g", name, (int)at, (int)w,
                     (double)logits[w], (double)wanted[w]);
}

/* A text in prompts of these lengths, and then token by token. */
static void check_kept(const char *name, qkv_ctx *ctx, const qkv_model *model,
                       const int64_t *prompts, int n_prompts) {
    int32_t ids[LEN];
    float logits[64];
    qkvi_decoder *decoder;
    make_ids(model, LEN, ids);
    qkv_run *const run = run_ids(ctx, model, LEN, ids);
    assert_int_equal(qkvi_decoder_make(ctx, model->net, 1, LEN, 0, NULL, &decoder, NULL), QKV_OK);
    int64_t at = 0;
    for (int p = 0; p < n_prompts; at += prompts[p++]) {
        assert_int_equal(qkvi_decoder_prompt(ctx, decoder, 0, prompts[p], ids + at, logits, NULL),
                         QKV_OK);
        expect_logits(name, ctx, model, run, at + prompts[p] - 1, logits);
    }
    for (; at < LEN; at++) {
        assert_int_equal(qkvi_decoder_step(ctx, decoder, 1, ids + at, logits, NULL), QKV_OK);
        expect_logits(name, ctx, model, run, at, logits);
    }
    qkvi_decoder_free(decoder);
    qkv_run_free(run);
}

static void test_kept(void **state) {
    static const int64_t lists[][3] = { { 1 }, { 40 }, { 3, 50, 2 }, { 17, 1, 33 }, { 60 } };
    static const int counts[] = { 1, 1, 3, 3, 1 };
    qkv_ctx *const ctx = open_ctx(NULL, 2);
    qkv_model *const model = open_model(*state, QKV_WEIGHTS_F32);
    /* llama_5's kept keys differ from those of a run: test_generate_models_golden.c has it */
    for (int i = 0; i < 5 && model->info.has_lm && model->info.max_len >= LEN; i++)
        check_kept(*state, ctx, model, lists[i], counts[i]);
    qkv_model_free(model);
    qkv_ctx_free(ctx);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void test_steps(void **state) {
    enum { N = 11 };
    int32_t ids[N];
    qkv_ctx *const ctx = open_ctx(NULL, 1);
    qkv_model *const model = open_model(*state, QKV_WEIGHTS_F32);
    make_ids(model, N, ids);
    qkv_run *const run = run_ids(ctx, model, N, ids);
    const qkv_encoding input = { .n = N, .ids = ids };
    for (int64_t layer = 0; layer < model->info.n_layers; layer++)
        for (int64_t head = 0; head < model->info.n_heads; head++) {
            qkv_error error;
            qkv_steps *s;
            const int64_t query = (3 * layer + 5 * head + 4) % N;
            if (qkv_inspect_steps(model, run, 0, &input, layer, head, query, &s, &error) != QKV_OK)
                fail_msg("%s", error.message);
            const double errors[] = { s->embedded_error, s->q_error,       s->k_error,
                                      s->lse_error,      s->weights_error, s->y_error };
            for (int e = 0; e < 6; e++)
                if (!(errors[e] < 1e-5))
                    fail_msg("%s: layer %d, head %d: error %d is %g", (char *)*state, (int)layer,
                             (int)head, e, errors[e]);
            qkv_steps_free(s);
        }
    qkv_run_free(run);
    qkv_model_free(model);
    qkv_ctx_free(ctx);
}

/* ---- Heads ----------------------------------------------------------------------------------- */

/* Entropies from the weights of a run, against those that heads are measured with. */
static double entropy_of(int64_t n, const float *weights) {
    double sum = 0;
    for (int64_t j = 0; j < n; j++)
        if (weights[j] > 0) sum -= (double)weights[j] * log((double)weights[j]);
    return sum;
}

static void check_head(const char *name, const qkv_run *run, qkv_heads *heads, int64_t index,
                       int64_t n, int64_t n_heads) {
    float *const a = malloc((size_t)(n * n) * sizeof *a), *const b = malloc((size_t)(n * n) * 4);
    double entropy[LEN];
    qkv_heads_profile profile = qkv_heads_profile_init();
    profile.entropy = entropy;
    assert_int_equal(qkv_run_weights(run, QKV_SELF, 0, index / n_heads, index % n_heads, a, NULL),
                     QKV_OK);
    assert_int_equal(qkv_heads_weights(heads, index, 0, n, 0, n, b, n, NULL), QKV_OK);
    assert_int_equal(qkv_heads_position(heads, index, &profile, NULL, NULL), QKV_OK);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            sum += (double)a[i * n + j];
            if (!qkv_head_sees(heads, index, i, j)) assert_true(a[i * n + j] == 0);
            if (!(fabsf(a[i * n + j] - b[i * n + j]) <= 2e-6f))
                fail_msg("%s: head %d: weight %d %d", name, (int)index, (int)i, (int)j);
        }
        assert_true(fabs(sum - 1) < 1e-5);
        assert_true(fabs(entropy[i] - entropy_of(n, a + i * n)) < 1e-4);
    }
    free(a);
    free(b);
}

static void test_heads(void **state) {
    enum { N = 23 };
    int32_t ids[N];
    uint8_t special[N] = { 0 };
    qkv_ctx *const ctx = open_ctx(NULL, 2);
    qkv_model *const model = open_model(*state, QKV_WEIGHTS_F32);
    make_ids(model, N, ids);
    qkv_run *const run = run_ids(ctx, model, N, ids);
    const qkv_encoding input = { .n = N, .ids = ids, .special = special };
    const qkv_token_list tokens = { qkv_model_tokenizer(model, QKV_SOURCE), &input };
    qkv_heads *heads;
    assert_int_equal(qkv_heads_open_run(ctx, run, QKV_SELF, 0, &tokens, NULL, &heads, NULL),
                     QKV_OK);
    assert_int_equal(qkv_heads_measure(heads, QKV_HEADS_RECEIVED | QKV_HEADS_SHARPEST, NULL, NULL),
                     QKV_OK);
    const int64_t n_all = model->info.n_layers * model->info.n_heads;
    for (int64_t h = 0; h < n_all; h++) {
        const double *const numbers = qkv_heads_numbers(heads, h);
        const double normalized = qkv_head_number_value(numbers, "entropy_normalized");
        assert_true(normalized >= 0 && normalized <= 1 + 1e-6);
        check_head(*state, run, heads, h, N, model->info.n_heads);
    }
    float received[N], sum = 0;
    assert_int_equal(
        qkv_inspect_rollout(ctx, model, run, 0, N - 1, N, QKV_ROLLOUT_MEAN, received, NULL),
        QKV_OK);
    for (int i = 0; i < N; i++) sum += received[i];
    assert_true(fabsf(sum - 1) < 1e-5f);
    qkv_heads_free(heads);
    qkv_run_free(run);
    qkv_model_free(model);
    qkv_ctx_free(ctx);
}

/* ---- bf16, and bits -------------------------------------------------------------------------- */

static void test_bits(void **state) {
    enum { N = 19 };
    static const char *const isas[] = { "avx2", "avx512", "avx512bf16", "neon" };
    int32_t ids[N];
    for (int weights = QKV_WEIGHTS_F32; weights <= QKV_WEIGHTS_INT8; weights++) {
        if (weights == QKV_WEIGHTS_BF16) continue;
        qkv_model *const model = open_model(*state, (qkv_model_weights)weights);
        const int64_t n_layers = model->info.n_layers, n = N * model->info.hidden;
        qkv_ctx *const scalar = open_ctx("scalar", 1);
        make_ids(model, N, ids);
        qkv_run *const first = run_ids(scalar, model, N, ids);
        for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
            qkv_ctx *const ctx = open_ctx(isas[i], 3);
            if (!ctx) continue;
            qkv_run *const run = run_ids(ctx, model, N, ids);
            for (int64_t l = 0; l <= n_layers; l++)
                assert_memory_equal(qkv_run_hidden(run, QKV_SELF, 0, l),
                                    qkv_run_hidden(first, QKV_SELF, 0, l),
                                    (size_t)n * sizeof(float));
            qkv_run_free(run);
            qkv_ctx_free(ctx);
        }
        qkv_run_free(first);
        qkv_ctx_free(scalar);
        qkv_model_free(model);
    }
}

static void check_near(const char *name, qkv_model_weights weights) {
    enum { N = 19 };
    int32_t ids[N];
    qkv_ctx *const ctx = open_ctx(NULL, 1);
    qkv_model *const full = open_model(name, QKV_WEIGHTS_F32);
    qkv_model *const half = open_model(name, weights);
    make_ids(full, N, ids);
    qkv_run *const a = run_ids(ctx, full, N, ids), *const b = run_ids(ctx, half, N, ids);
    const int64_t n_layers = full->info.n_layers, n = N * full->info.hidden;
    const float *const x = qkv_run_hidden(a, QKV_SELF, 0, n_layers), *const y = qkv_run_hidden(
                                                                         b, QKV_SELF, 0, n_layers);
    double size = 0, apart = 0;
    for (int64_t i = 0; i < n; i++) {
        size += (double)x[i] * (double)x[i];
        apart += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    }
    if (!(apart > 0 && sqrt(apart) < 0.03 * sqrt(size)))
        fail_msg("%s: weights %d are off by %g of %g", name, weights, sqrt(apart), sqrt(size));
    qkv_run_free(a);
    qkv_run_free(b);
    qkv_model_free(full);
    qkv_model_free(half);
    qkv_ctx_free(ctx);
}

static void test_rounded_is_near(void **state) {
    check_near(*state, QKV_WEIGHTS_BF16_DP);
    check_near(*state, QKV_WEIGHTS_INT8);
}

/* ---- int8 ------------------------------------------------------------------------------------ */

/* Of the file, or fails. */
static void *read_all(const qkvi_safetensors *file, const char *name, size_t *n) {
    const qkvi_stored *const stored = qkvi_safetensors_find(file, name);
    if (!stored) fail_msg("no %s", name);
    void *const bytes = malloc(stored->n_elems * 4 + 1);
    assert_int_equal(qkvi_safetensors_read_raw(file, stored, bytes, NULL), QKV_OK);
    *n = stored->n_elems;
    return bytes;
}

/*
 * A row against what float64 makes of the same integers: no input of these is rounded to another.
 */
static void expect_row(const char *name, const char *what, const float *got, const float *wanted,
                       int64_t n, float *worst) {
    float top = 0, off = 0;
    for (int64_t i = 0; i < n; i++) {
        top = fmaxf(top, fabsf(wanted[i]));
        off = fmaxf(off, fabsf(got[i] - wanted[i]));
    }
    *worst = fmaxf(*worst, off / top);
    if (!(off <= 1e-5f * top))
        fail_msg("%s: %s is off by %g of %g", name, what, (double)off, (double)top);
}

static qkvi_safetensors *open_file(const char *name) {
    char path[512];
    qkvi_safetensors *file = NULL;
    snprintf(path, sizeof path, QKV_TEST_DATA "/golden/%s", name);
    assert_int_equal(qkvi_safetensors_open(path, &file, NULL), QKV_OK);
    return file;
}

/*
 * tools/int8_cases.py: every linear layer rounds its weights and inputs to 8 bits, all else is in
 * double.
 */
static void check_int8(const char *name, qkv_ctx *ctx, const qkvi_safetensors *expected) {
    char path[64];
    size_t n_texts, n_ids, n;
    float logits[64], worst = 0;
    snprintf(path, sizeof path, "llama/%s/expected.safetensors", name);
    qkvi_safetensors *const batch = open_file(path);
    qkv_model *const model = open_model(name, QKV_WEIGHTS_INT8);
    const qkv_model_info *const info = qkv_model_get_info(model);
    int32_t *const lengths = read_all(batch, "lengths", &n_texts), *const ids = read_all(
                                                                       batch, "ids", &n_ids);
    snprintf(path, sizeof path, "%s.hidden", name);
    float *const hidden = read_all(expected, path, &n);
    assert_int_equal(n, (int64_t)n_ids * info->hidden);
    snprintf(path, sizeof path, "%s.logits", name);
    float *const wanted = info->has_lm ? read_all(expected, path, &n) : NULL;
    for (int64_t b = 0, at = 0; b < (int64_t)n_texts; at += lengths[b++]) {
        qkv_run *const run = run_ids(ctx, model, lengths[b], ids + at);
        for (int64_t i = 0; i < lengths[b]; i++) {
            const float *const row =
                qkv_run_hidden(run, QKV_SELF, 0, info->n_layers) + i * info->hidden;
            expect_row(name, "a hidden state", row, hidden + (at + i) * info->hidden, info->hidden,
                       &worst);
            if (!wanted) continue;
            assert_int_equal(qkv_model_logits(ctx, model, run, QKV_HEAD_NEXT, 0, i, logits, NULL),
                             QKV_OK);
            expect_row(name, "a row of logits", logits, wanted + (at + i) * info->vocab_size,
                       info->vocab_size, &worst);
        }
        qkv_run_free(run);
    }
    print_message("%s: at most %g of the largest\n", name, (double)worst);
    free(lengths);
    free(ids);
    free(hidden);
    free(wanted);
    qkv_model_free(model);
    qkvi_safetensors_close(batch);
}

static void test_int8(void **state) {
    static const char *const list[] = { "llama_1", "llama_2",    "qwen2_1",
                                        "qwen3_1", "gemma2_1",   "olmo2_1",
                                        "phi3_1",  "gpt_neox_1", "modernbert_1" };
    qkvi_safetensors *const expected = open_file("int8.safetensors");
    qkv_ctx *const ctx = open_ctx(NULL, 2);
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) check_int8(list[i], ctx, expected);
    qkv_ctx_free(ctx);
    qkvi_safetensors_close(expected);
}

int main(void) {
    static void (*const kinds[])(void **) = { test_kept, test_steps, test_heads, test_bits,
                                              test_rounded_is_near };
    enum { N_KINDS = sizeof kinds / sizeof *kinds };
    struct CMUnitTest tests[N_KINDS * N_MODELS + 1] = { [N_KINDS * N_MODELS] =
                                                            cmocka_unit_test(test_int8) };
    for (int k = 0; k < N_KINDS; k++)
        for (int m = 0; m < N_MODELS; m++)
            tests[k * N_MODELS + m] = (struct CMUnitTest){ .name = names[m],
                                                           .test_func = kinds[k],
                                                           .initial_state = names[m] };
    return cmocka_run_group_tests_name("llama", tests, NULL, NULL);
}
