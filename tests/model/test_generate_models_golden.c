/*
 * Whole models that write, against transformers in float64 (tools/decoder_cases.py,
 * tools/llama_cases.py): greedy and beam search with the models' own generation_config.json. Tokens
 * are the same; where they are not, two of the reference's best scores differ by less than 1e-4 at
 * some step (its `gaps`), and that may happen in two texts of all at most. Then what only a real
 * model can show: with and without kept keys the same, threads, perplexity, models that cannot
 * write.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "qkv/generate.h"

#define FOLDER QKV_TEST_DATA "/golden/decoder/"

static const char *const names[] = { "gpt2_1",
                                     "gpt2_2",
                                     "gpt2_3",
                                     "bart_1",
                                     "bart_2",
                                     "bart_3",
                                     "marian_1",
                                     "marian_2",
                                     "marian_3",
                                     "t5_1",
                                     "t5_2",
                                     "mt5_1",
                                     "../llama/llama_1",
                                     "../llama/llama_4",
                                     "../llama/llama_5",
                                     "../llama/mistral_1",
                                     "../llama/qwen3_1",
                                     "../llama/gemma2_1",
                                     "../llama/gemma3_text_1",
                                     "../llama/smollm3_1",
                                     "../llama/olmo2_1",
                                     "../llama/phi3_1",
                                     "../llama/gpt_neox_1",
                                     "../llama/gpt_neox_2",
                                     "../llama/opt_1",
                                     "../llama/opt_2",
                                     "../llama/opt_3",
                                     "../llama/gptj_1",
                                     "../llama/bloom_2",
                                     "../llama/bloom_3" };
enum { N_MODELS = sizeof names / sizeof *names, MOST_IDS = 256 };

static int n_texts, n_differ; /* of all tests */

typedef struct opened {
    qkv_ctx *ctx;
    qkv_model *model;
    qkv_generate_options options;
} opened;

static void open_model(opened *o, const char *name, int n_threads) {
    char path[512];
    qkv_error error;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.n_threads = n_threads;
    snprintf(path, sizeof path, FOLDER "%s", name);
    if (qkv_model_open(path, NULL, &o->model, &error) != QKV_OK) fail_msg("%s", error.message);
    o->options = (qkv_generate_options)qkv_generate_options_init();
    if (qkv_generate_options_read(o->model, &o->options, &error) != QKV_OK)
        fail_msg("%s", error.message);
    assert_int_equal(qkv_ctx_create(&options, &o->ctx, NULL), QKV_OK);
}

static void close_model(opened *o) {
    qkv_model_free(o->model);
    qkv_ctx_free(o->ctx);
}

static int64_t read_ids(const json_t *list, int32_t *ids) {
    const size_t n = json_array_size(list);
    assert_true(n <= MOST_IDS);
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return (int64_t)n;
}

static qkv_generation *generate(const opened *o, const int32_t *ids, int64_t n,
                                const qkv_generate_options *options) {
    qkv_error error;
    qkv_generation *made;
    const qkv_encoding prompt = { .n = n, .ids = (int32_t *)(uintptr_t)ids };
    if (qkv_generate(o->ctx, o->model, &prompt, options, &made, &error) != QKV_OK)
        fail_msg("%s", error.message);
    return made;
}

/* ---- Against transformers -------------------------------------------------------------------- */

static qkv_generate_options options_of(const opened *o, const json_t *given, int64_t max_new) {
    qkv_generate_options options = o->options;
    const json_t *const early = json_object_get(given, "early_stopping");
    options.max_new = max_new;
    options.max_length = 0;
    options.n_beams = json_integer_value(json_object_get(given, "num_beams"));
    options.length_penalty = json_number_value(json_object_get(given, "length_penalty"));
    options.repetition_penalty = json_number_value(json_object_get(given, "repetition_penalty"));
    options.no_repeat_ngram = json_integer_value(json_object_get(given, "no_repeat_ngram_size"));
    options.early_stopping = json_is_string(early) ? QKV_EARLY_NEVER
                             : json_is_true(early) ? QKV_EARLY_ALWAYS
                                                   : QKV_EARLY_LIKELY;
    return options;
}

static void check_text(const opened *o, const qkv_generate_options *options, const json_t *prompt,
                       const json_t *run, size_t i) {
    int32_t ids[MOST_IDS], wanted[MOST_IDS];
    const int64_t n = read_ids(prompt, ids);
    const int64_t n_wanted = read_ids(json_array_get(json_object_get(run, "outputs"), i), wanted);
    const double gap = json_number_value(json_array_get(json_object_get(run, "gaps"), i));
    const json_t *const scores = json_object_get(run, "scores");
    qkv_generation *const made = generate(o, ids, n, options);
    const qkv_sequence *const s = made->sequences[0];
    n_texts++;
    if (s->n != n_wanted || memcmp(s->ids, wanted, (size_t)n_wanted * sizeof *wanted) != 0) {
        n_differ++;
        if (!(gap < 1e-4)) fail_msg("prompt %zu: other tokens, though the gap is %g", i, gap);
    } else if (scores) {
        const double score = json_number_value(json_array_get(scores, i));
        if (!(fabs(s->score - score) < 1e-4 * fmax(1, fabs(score))))
            fail_msg("prompt %zu: score %.9g, not %.9g", i, s->score, score);
    }
    qkv_generation_free(made);
}

static void check_file(const opened *o, const char *name, const char *file, int has_eos) {
    char path[512];
    size_t r, i;
    json_t *run, *prompt;
    snprintf(path, sizeof path, FOLDER "%s/%s", name, file);
    json_t *const json = json_load_file(path, 0, NULL);
    if (json == NULL) return;
    const int64_t max_new = json_integer_value(json_object_get(json, "max_new_tokens"));
    json_array_foreach(json_object_get(json, "runs"), r, run) {
        qkv_generate_options options = options_of(o, json_object_get(run, "options"), max_new);
        if (!has_eos) {
            options.no_eos = 1;
            options.n_eos = 0;
            options.forced_eos = -1;
        }
        json_array_foreach(json_object_get(json, "prompts"), i, prompt)
            check_text(o, &options, prompt, run, i);
    }
    json_decref(json);
}

static void test_model(void **state) {
    opened o;
    open_model(&o, *state, 1);
    check_file(&o, *state, "generate.json", 1);
    check_file(&o, *state, "generate_long.json", 0);
    close_model(&o);
}

static void test_differences(void **state) {
    (void)state;
    print_message("%d texts, %d of them differ\n", n_texts, n_differ);
    assert_true(n_texts >= 800);
    assert_true(n_differ <= 2);
}

/* ---- By itself ------------------------------------------------------------------------------- */

static int likeliest(int64_t n, const float *x) {
    int64_t best = 0;
    for (int64_t j = 1; j < n; j++)
        if (x[j] > x[best]) best = j;
    return (int)best;
}

/* Token by token without kept keys: the whole text through the model each time. */
static void test_without_cache(void **state) {
    static const int32_t start[] = { 7, 11, 30 };
    int32_t ids[MOST_IDS];
    float logits[128], second;
    opened o;
    (void)state;
    open_model(&o, "gpt2_2", 1);
    qkv_generate_options options = qkv_generate_options_init();
    options.no_eos = 1;
    options.max_new = 200;
    qkv_generation *const made = generate(&o, start, 3, &options);
    const qkv_model_info *const info = qkv_model_get_info(o.model);
    memcpy(ids, start, sizeof start);
    for (int64_t n = 3; n < 3 + made->sequences[0]->n; n++) {
        const qkv_encoding text = { .n = n, .ids = ids };
        const qkv_encoding *const input = &text;
        qkv_run *run;
        assert_int_equal(qkv_model_run(o.ctx, o.model, 1, &input, 0, NULL, &run, NULL), QKV_OK);
        assert_int_equal(
            qkv_model_logits(o.ctx, o.model, run, QKV_HEAD_NEXT, 0, n - 1, logits, NULL), QKV_OK);
        qkv_run_free(run);
        const int best = likeliest(info->vocab_size, logits);
        ids[n] = made->sequences[0]->ids[n - 3];
        second = logits[ids[n]];
        if (best != ids[n] && !(logits[best] - second < 1e-4f))
            fail_msg("token %d: %d, not %d", (int)n, (int)ids[n], best);
    }
    assert_int_equal(made->sequences[0]->n, 200);
    qkv_generation_free(made);
    close_model(&o);
}

static void test_threads(void **state) {
    static const int32_t start[] = { 7, 11, 30, 0 };
    (void)state;
    for (int m = 0; m < N_MODELS; m += 4) {
        opened one, three;
        qkv_generate_options options = qkv_generate_options_init();
        options.n_beams = 3;
        options.n_return = 3;
        options.max_new = 20;
        options.sample = 1;
        open_model(&one, names[m], 1);
        open_model(&three, names[m], 3);
        qkv_generation *const a = generate(&one, start, 4, &options);
        qkv_generation *const b = generate(&three, start, 4, &options);
        assert_int_equal(a->n_sequences, b->n_sequences);
        for (int64_t i = 0; i < a->n_sequences; i++) {
            assert_int_equal(a->sequences[i]->n, b->sequences[i]->n);
            assert_memory_equal(a->sequences[i]->ids, b->sequences[i]->ids,
                                (size_t)a->sequences[i]->n * sizeof(int32_t));
            assert_true(a->sequences[i]->score == b->sequences[i]->score);
        }
        qkv_generation_free(a);
        qkv_generation_free(b);
        close_model(&one);
        close_model(&three);
    }
}

/* -ln p of token i of a text, from all of the tokens from `first` on. */
static double loss_at(const opened *o, int32_t *ids, int64_t first, int64_t i) {
    float logits[128];
    double most = -INFINITY, sum = 0;
    const qkv_encoding text = { .n = i - first, .ids = ids + first };
    const qkv_encoding *const input = &text;
    qkv_run *run;
    const int64_t vocab = qkv_model_get_info(o->model)->vocab_size;
    assert_int_equal(qkv_model_run(o->ctx, o->model, 1, &input, 0, NULL, &run, NULL), QKV_OK);
    assert_int_equal(
        qkv_model_logits(o->ctx, o->model, run, QKV_HEAD_NEXT, 0, text.n - 1, logits, NULL),
        QKV_OK);
    qkv_run_free(run);
    for (int64_t j = 0; j < vocab; j++) most = fmax(most, (double)logits[j]);
    for (int64_t j = 0; j < vocab; j++) sum += exp((double)logits[j] - most);
    return most + log(sum) - (double)logits[ids[i]];
}

static void test_perplexity(void **state) {
    int32_t ids[130];
    double sum = 0;
    opened o;
    qkv_perplexity_report report = qkv_perplexity_report_init();
    (void)state;
    open_model(&o, "gpt2_1", 1);
    const int64_t length = qkv_model_get_info(o.model)->max_len;
    assert_int_equal(length, 45);
    for (int i = 0; i < 130; i++) ids[i] = 4 + i * i % 47;
    const qkv_encoding whole = { .n = 130, .ids = ids }, tiny = { .n = 1, .ids = ids };
    const qkv_encoding short_one = { .n = 9, .ids = ids + 3 };
    const qkv_encoding *const texts[] = { &tiny, &whole, &short_one };
    /* windows 0 … 44, 20 … 64, 40 … 84, 60 … 104, 80 … 124, 100 … 129 */
    for (int64_t i = 1; i < 130; i++)
        sum += loss_at(&o, ids, i < length ? 0 : (i - length) / 20 * 20 + 20, i);
    for (int64_t i = 1; i < 9; i++) sum += loss_at(&o, ids + 3, 0, i);
    assert_int_equal(qkv_perplexity(o.ctx, o.model, 3, texts, 20, &report, NULL), QKV_OK);
    assert_int_equal(report.n_tokens, 129 + 8);
    assert_true(fabs(report.loss - sum / 137) < 1e-5);
    assert_true(fabs(report.perplexity - exp(report.loss)) < 1e-9 * report.perplexity);
    assert_true(report.begun_loss == report.loss && report.begun_perplexity == report.perplexity);
    assert_int_equal(qkv_perplexity(o.ctx, o.model, 1, texts, 0, &report, NULL), QKV_OK);
    assert_true(report.n_tokens == 0 && report.perplexity == 1);
    qkv_error error;
    assert_int_equal(qkv_perplexity(o.ctx, o.model, 1, texts, 45, &report, &error),
                     QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "stride = 45 is not between 1 and 44"));
    close_model(&o);
}

/*
 * Of a text that begins with bos_id, windows as they are, and with it in place of their first
 * token.
 */
static void test_begun_windows(void **state) {
    int32_t ids[130], window[130];
    double sum = 0, begun = 0;
    opened o;
    qkv_perplexity_report report = qkv_perplexity_report_init();
    (void)state;
    open_model(&o, "gpt2_1", 1);
    const int64_t length = qkv_model_get_info(o.model)->max_len;
    for (int i = 0; i < 130; i++) ids[i] = 4 + i * i % 47;
    ids[0] = (int32_t)qkv_model_get_info(o.model)->bos_id;
    for (int64_t i = 1; i < 130; i++) {
        const int64_t first = i < length ? 0 : (i - length) / 20 * 20 + 20;
        memcpy(window, ids, sizeof window);
        window[first] = ids[0];
        sum += loss_at(&o, ids, first, i);
        begun += loss_at(&o, window, first, i);
    }
    const qkv_encoding whole = { .n = 130, .ids = ids };
    const qkv_encoding *const texts[] = { &whole };
    assert_int_equal(qkv_perplexity(o.ctx, o.model, 1, texts, 20, &report, NULL), QKV_OK);
    assert_int_equal(report.n_tokens, 129);
    assert_true(fabs(report.loss - sum / 129) < 1e-5);
    assert_true(fabs(report.begun_loss - begun / 129) < 1e-5);
    assert_true(fabs(sum - begun) > 1e-3);
    assert_true(fabs(report.begun_perplexity - exp(report.begun_loss)) <
                1e-9 * report.begun_perplexity);
    close_model(&o);
}

static void test_refused(void **state) {
    static int32_t start[] = { 7, 99999 };
    opened gpt2, marian;
    qkv_model *bert;
    qkv_error error;
    qkv_generation *made;
    qkv_perplexity_report report = qkv_perplexity_report_init();
    const qkv_encoding none = { 0 }, wrong = { .n = 2, .ids = start };
    const qkv_encoding *const texts[] = { &none };
    (void)state;
    open_model(&gpt2, "gpt2_1", 1);
    open_model(&marian, "marian_1", 1);
    assert_int_equal(qkv_model_open(QKV_TEST_DATA "/golden/bert_new", NULL, &bert, &error), QKV_OK);
    assert_int_equal(qkv_generate(gpt2.ctx, bert, NULL, NULL, &made, &error), QKV_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "a bert has no head that predicts the next token"));
    assert_int_equal(qkv_generate(gpt2.ctx, marian.model, &none, NULL, &made, &error),
                     QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "needs a source"));
    assert_int_equal(qkv_generate(gpt2.ctx, gpt2.model, &wrong, NULL, &made, &error),
                     QKV_ERR_ARGUMENT);
    assert_null(made);
    assert_int_equal(qkv_generate(NULL, gpt2.model, NULL, NULL, &made, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_generate(gpt2.ctx, NULL, NULL, NULL, &made, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_generate(gpt2.ctx, gpt2.model, NULL, NULL, NULL, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_perplexity(marian.ctx, marian.model, 1, texts, 0, &report, &error),
                     QKV_ERR_UNSUPPORTED);
    /* no prompt: from the token of the beginning */
    qkv_generate_options options = qkv_generate_options_init();
    options.max_new = 5;
    assert_int_equal(qkv_generate(gpt2.ctx, gpt2.model, NULL, &options, &made, &error), QKV_OK);
    assert_int_equal(made->prompt_len, 1);
    qkv_generation_free(made);
    qkv_model_free(bert);
    close_model(&gpt2);
    close_model(&marian);
}

int main(void) {
    struct CMUnitTest tests[N_MODELS + 6];
    int n = 0;
    for (; n < N_MODELS; n++)
        tests[n] = (struct CMUnitTest){ .name = names[n],
                                        .test_func = test_model,
                                        .initial_state = (void *)(uintptr_t)names[n] };
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_differences);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_without_cache);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_threads);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_perplexity);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_begun_windows);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_refused);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
