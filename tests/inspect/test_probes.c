/**
 * Probes of heads: the random texts drawn and averaged again from the definition, on a small model;
 * and the pronoun probes of the grammar against those of an evaluation.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "files/file.h"
#include "qkv/inspect.h"

enum { PURPOSE = 0x70726f62, MAX_WORDS = 64, MAX_HEADS = 16 };

static qkv_ctx *ctx;
static qkv_model *model;
static qkv_error error;

static int begin_tests(void **state) {
    (void)state;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) return -1;
    return qkv_model_open(QKV_TEST_DATA "/golden/bert_old", NULL, &model, NULL);
}

static int end_tests(void **state) {
    (void)state;
    qkv_model_free(model);
    qkv_ctx_free(ctx);
    return 0;
}

static void expect(qkv_status got, qkv_status wanted, const char *text) {
    if (got != wanted || !strstr(error.message, text))
        fail_msg("%s '%s', wanted %s '%s'", qkv_status_name(got), error.message,
                 qkv_status_name(wanted), text);
    error = (qkv_error){ 0 };
}

/* ---- Random texts ---------------------------------------------------------------------------- */

/* Tokens that may be drawn: no special ones, no punctuation. */
static int64_t list_words(int32_t *words) {
    const qkv_tokenizer *const tokenizer = qkv_model_tokenizer(model, QKV_SOURCE);
    int64_t n = 0;
    for (int32_t id = 0; id < qkv_tokenizer_size(tokenizer); id++) {
        size_t bytes = 0;
        const char *const token = qkv_tokenizer_token(tokenizer, id, &bytes);
        const int special = token[0] == '[' && token[bytes - 1] == ']';
        const int dot = bytes == 1 && strchr(".,!?;:'\"-()[]", token[0]) != NULL;
        if (!special && !dot) words[n++] = id;
    }
    return n;
}

/* Adds the weights of one text to sums[head][duplicate, induction]. */
static void add_text(const int32_t *ids, int64_t period, double sums[][2]) {
    const qkv_model_info *const info = qkv_model_get_info(model);
    const int64_t n = 2 * period + 2;
    qkv_encoding text = { .n = n, .ids = (int32_t *)(uintptr_t)ids };
    const qkv_encoding *inputs[1] = { &text };
    static float weights[MAX_WORDS * MAX_WORDS];
    qkv_run *run;
    assert_int_equal(qkv_model_run(ctx, model, 1, inputs, QKV_RUN_CAPTURE, NULL, &run, NULL),
                     QKV_OK);
    for (int64_t h = 0; h < info->n_layers * info->n_heads; h++) {
        assert_int_equal(
            qkv_run_weights(run, QKV_SELF, 0, h / info->n_heads, h % info->n_heads, weights, NULL),
            QKV_OK);
        for (int64_t i = 1 + period; i < 1 + 2 * period; i++) {
            sums[h][0] += (double)weights[i * n + i - period];
            sums[h][1] += (double)weights[i * n + i - period + 1];
        }
    }
    qkv_run_free(run);
}

static void draw_text(uint64_t seed, int64_t text, const int32_t *words, int64_t n_words,
                      int64_t period, int32_t *ids) {
    const qkv_tokenizer *const tokenizer = qkv_model_tokenizer(model, QKV_SOURCE);
    int32_t urn[MAX_WORDS];
    qkvi_rng rng = qkvi_rng_make(seed, PURPOSE, (uint64_t)text);
    memcpy(urn, words, (size_t)n_words * sizeof *urn);
    ids[0] = qkv_tokenizer_special(tokenizer, QKV_TOKEN_CLS);
    ids[2 * period + 1] = qkv_tokenizer_special(tokenizer, QKV_TOKEN_SEP);
    for (int64_t t = 0; t < period; t++) {
        const int64_t other = t + qkvi_rng_below(&rng, (uint32_t)(n_words - t));
        ids[1 + t] = ids[1 + period + t] = urn[other];
        urn[other] = urn[t];
    }
}

static void compare_random(uint64_t seed, int64_t n_texts, int64_t period) {
    const qkv_model_info *const info = qkv_model_get_info(model);
    qkv_probe_options options = qkv_probe_options_init();
    qkv_head_probes probes[MAX_HEADS];
    qkv_probe_report report = qkv_probe_report_init();
    int32_t words[MAX_WORDS], ids[MAX_WORDS];
    double sums[MAX_HEADS][2] = { { 0 } };
    options.seed = seed;
    options.n_texts = n_texts;
    options.period = period;
    expect(qkv_inspect_probes(ctx, model, &options, probes, sizeof *probes, &report, NULL, &error),
           QKV_OK, "");
    const int64_t n_words = list_words(words), length = report.period;
    assert_int_equal(length, period ? period : (info->max_len - 2) / 2);
    assert_int_equal(report.n_texts, n_texts ? n_texts : 32);
    assert_int_equal(report.n_probes, 0);
    for (int64_t t = 0; t < report.n_texts; t++) {
        draw_text(seed, t, words, n_words, length, ids);
        add_text(ids, length, sums);
    }
    for (int64_t h = 0; h < info->n_layers * info->n_heads; h++) {
        const double n = (double)(report.n_texts * length);
        assert_int_equal(probes[h].layer * info->n_heads + probes[h].head, h);
        assert_true(isnan(probes[h].antecedent));
        if (fabs(probes[h].duplicate - sums[h][0] / n) > 1e-6 ||
            fabs(probes[h].induction - sums[h][1] / n) > 1e-6)
            fail_msg("head %d: %.9g %.9g, not %.9g %.9g", (int)h, probes[h].duplicate,
                     probes[h].induction, sums[h][0] / n, sums[h][1] / n);
    }
}

static void test_random(void **state) {
    (void)state;
    compare_random(0, 0, 0);
    compare_random(7, 1, 2);
    compare_random(8, 9, 5); /* more than one batch */
}

static void test_same_bits(void **state) {
    (void)state;
    qkv_head_probes first[MAX_HEADS] = { 0 }, other[MAX_HEADS];
    for (int i = 0; qkv_isa_name(i); i++)
        for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
            qkv_ctx_options options = qkv_ctx_options_init();
            qkv_ctx *another;
            options.isa = qkv_isa_name(i);
            options.n_threads = n_threads;
            assert_int_equal(qkv_ctx_create(&options, &another, NULL), QKV_OK);
            memset(other, 0, sizeof other);
            expect(
                qkv_inspect_probes(another, model, NULL, other, sizeof *other, NULL, NULL, &error),
                QKV_OK, "");
            if (i == 0 && n_threads == 1) memcpy(first, other, sizeof first);
            assert_memory_equal(first, other, sizeof first);
            qkv_ctx_free(another);
        }
}

/* ---- Pronouns -------------------------------------------------------------------------------- */

static void test_pronouns(void **state) {
    (void)state;
    static const char path[] = QKV_TEST_ROOT "/models/default/grammar.txt";
    qkv_probe_options options = qkv_probe_options_init();
    qkv_head_probes probes[MAX_HEADS], again[MAX_HEADS];
    qkv_probe_report report = qkv_probe_report_init();
    qkv_model *trained;
    char *bytes;
    size_t n_bytes;
    options.seed = 1;
    options.n_texts = 1;
    options.grammar = path;
    expect(qkv_model_open(QKV_TEST_ROOT "/models/default", NULL, &trained, &error), QKV_OK, "");
    memset(probes, 0, sizeof probes);
    expect(
        qkv_inspect_probes(ctx, trained, &options, probes, sizeof *probes, &report, NULL, &error),
        QKV_OK, "");
    assert_int_equal(report.n_probes, 512);
    assert_true(report.chance > 0.15 && report.chance < 0.5);
    for (int h = 0; h < MAX_HEADS; h++) { /* 3.0 alone finds all: models/default/README.md */
        assert_true(probes[h].antecedent >= 0 && probes[h].antecedent <= 1);
        assert_int_equal(probes[h].antecedent == 1, h == 12);
    }
    assert_int_equal(qkvi_file_load(path, 1 << 20, &bytes, &n_bytes, &error), QKV_OK);
    options.grammar = NULL;
    options.grammar_bytes = bytes;
    options.n_grammar_bytes = n_bytes;
    memset(again, 0, sizeof again);
    expect(qkv_inspect_probes(ctx, trained, &options, again, sizeof *again, &report, NULL, &error),
           QKV_OK, "");
    assert_memory_equal(probes, again, sizeof probes);
    free(bytes);
    qkv_model_free(trained);
}

/* ---- Refusals, cancellation ------------------------------------------------------------------ */

static void test_refused(void **state) {
    (void)state;
    qkv_probe_options options = qkv_probe_options_init();
    qkv_head_probes probes[MAX_HEADS];
    expect(qkv_inspect_probes(NULL, model, NULL, probes, sizeof *probes, NULL, NULL, &error),
           QKV_ERR_ARGUMENT, "ctx is NULL");
    expect(qkv_inspect_probes(ctx, NULL, NULL, probes, sizeof *probes, NULL, NULL, &error),
           QKV_ERR_ARGUMENT, "model is NULL");
    expect(qkv_inspect_probes(ctx, model, NULL, NULL, sizeof(qkv_head_probes), NULL, NULL, &error),
           QKV_ERR_ARGUMENT, "probes is NULL");
    options.struct_size = 3;
    expect(qkv_inspect_probes(ctx, model, &options, probes, sizeof *probes, NULL, NULL, &error),
           QKV_ERR_ARGUMENT, "qkv_probe_options");
    options = qkv_probe_options_init();
    options.n_texts = -1;
    expect(qkv_inspect_probes(ctx, model, &options, probes, sizeof *probes, NULL, NULL, &error),
           QKV_ERR_ARGUMENT, "n_texts = -1 is not in 0 ... 1048576");
    options.n_texts = 0;
    for (int64_t period = -1; period <= 11; period += period == 1 ? 10 : 2) {
        options.period = period; /* the model takes 23 tokens: at most 10 twice */
        expect(qkv_inspect_probes(ctx, model, &options, probes, sizeof *probes, NULL, NULL, &error),
               QKV_ERR_ARGUMENT, "period = ");
    }
    options.period = 0;
    options.grammar = "F";
    options.grammar_bytes = "";
    expect(qkv_inspect_probes(ctx, model, &options, probes, sizeof *probes, NULL, NULL, &error),
           QKV_ERR_ARGUMENT, "grammar and grammar_bytes are both given");
    options.grammar_bytes = NULL;
    options.grammar = QKV_TEST_DATA "/none.txt";
    expect(qkv_inspect_probes(ctx, model, &options, probes, sizeof *probes, NULL, NULL, &error),
           QKV_ERR_IO, "none.txt");
    options.grammar = NULL;
    options.grammar_bytes = "nonsense\n";
    options.n_grammar_bytes = 9;
    expect(qkv_inspect_probes(ctx, model, &options, probes, sizeof *probes, NULL, NULL, &error),
           QKV_ERR_FORMAT, "grammar:1: ");
}

static int cancel;
static int64_t n_reports, last_done, last_total;

static void report_to(void *user, int64_t done, int64_t total) {
    n_reports++;
    assert_true(done > last_done && done <= total);
    last_done = done;
    last_total = total;
    if (user && done >= 16) cancel = 1;
}

static void test_watched(void **state) {
    (void)state;
    qkv_head_probes probes[MAX_HEADS];
    qkv_call_options call = qkv_call_options_init();
    call.cancel = &cancel;
    call.progress = report_to;
    expect(qkv_inspect_probes(ctx, model, NULL, probes, sizeof *probes, NULL, &call, &error),
           QKV_OK, "");
    assert_true(n_reports == 4 && last_done == 32 && last_total == 32);
    last_done = 0;
    call.progress_user = &call;
    expect(qkv_inspect_probes(ctx, model, NULL, probes, sizeof *probes, NULL, &call, &error),
           QKV_ERR_CANCELLED, "cancelled after 16 of 32 probes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),   cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_pronouns), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_watched),
    };
    return cmocka_run_group_tests(tests, begin_tests, end_tests);
}
