/*
 * The parts of a training run, each against its definition: schedule, AdamW in double, first
 * weights, cutting, masking.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/rng.h"
#include "limits/temporary.h"
#include "train/adamw.h"
#include "train/examples.h"
#include "train/trainer.h"

/* ---- Schedule -------------------------------------------------------------------------------- */

static void test_schedule(void **state) {
    (void)state;
    assert_true(qkvi_schedule_rate(8, 4, 12, 0) == 2);
    assert_true(qkvi_schedule_rate(8, 4, 12, 3) == 8);
    assert_true(qkvi_schedule_rate(8, 4, 12, 4) == 8);
    assert_true(qkvi_schedule_rate(8, 4, 12, 8) == 4);
    assert_true(qkvi_schedule_rate(8, 4, 12, 11) == 1);
    assert_true(qkvi_schedule_rate(8, 0, 1, 0) == 8);
    assert_true(qkvi_adamw_power(0.5, 0) == 1);
    assert_true(qkvi_adamw_power(0.5, 10) == 0x1p-10);
    assert_true(fabs(qkvi_adamw_power(0.98, 3000) / pow(0.98, 3000) - 1) < 1e-12);
}

/* ---- AdamW ----------------------------------------------------------------------------------- */

enum { N_ROWS = 4, N_STEPS = 5 };

static qkvi_param_table make_table(void) {
    qkvi_param_table table = { 0 };
    qkv_error error;
    assert_int_equal(qkvi_params_add(&table, 2, 300, 77, &error, "a.weight"), QKV_OK);
    assert_int_equal(qkvi_params_add(&table, 1, 77, 0, &error, "a.bias"), QKV_OK);
    assert_int_equal(qkvi_params_add(&table, 1, 40000, 0, &error, "a.LayerNorm.weight"), QKV_OK);
    assert_int_equal(qkvi_params_add(&table, 2, 1, 5, &error, "b.weight"), QKV_OK);
    return table;
}

/* Gradients of step t: pure functions of the index, of very different sizes. */
static void fill_grads(const qkvi_param_table *table, int t, float *grads) {
    for (int64_t r = 0; r < table->n_rows; r++)
        for (size_t i = table->rows[r].offset; i < table->rows[r].offset + table->rows[r].n_elems;
             i++) {
            qkvi_rng rng = qkvi_rng_make(5, (uint32_t)t, i);
            grads[i] = (qkvi_rng_unit(&rng) - 0.5f) * (i % 3 ? 1e-3f : 1.0f);
        }
}

typedef struct reference {
    double p, m, v;
} reference;

/* The formula of the paper, in double, one parameter at a time. */
static void reference_step(reference *x, double g, int t, double rate, double decay) {
    x->m = 0.9 * x->m + 0.1 * g;
    x->v = 0.98 * x->v + (1 - 0.98) * g * g;
    const double m_hat = x->m / (1 - pow(0.9, t)), v_hat = x->v / (1 - pow(0.98, t));
    x->p = x->p - rate * decay * x->p - rate * m_hat / (sqrt(v_hat) + 1e-8);
}

/* Runs N_STEPS of AdamW on a context; returns the parameters. */
static float *run_adamw(const char *isa, int n_threads, const qkvi_param_table *table,
                        double clip) {
    qkv_ctx_options options = qkv_ctx_options_init();
    qkv_ctx *ctx;
    qkvi_adamw adamw;
    qkv_error error;
    options.isa = isa;
    options.n_threads = n_threads;
    if (qkv_ctx_create(&options, &ctx, &error) != QKV_OK) fail_msg("%s", error.message);
    assert_int_equal(qkvi_adamw_make(table, &adamw, &error), QKV_OK);
    adamw.beta1 = 0.9;
    adamw.beta2 = 0.98;
    adamw.eps = 1e-8;
    adamw.weight_decay = 0.1;
    adamw.clip = clip;
    float *const grads = qkvi_params_arena(table), *const params = qkvi_params_arena(table);
    float *const m = qkvi_params_arena(table), *const v = qkvi_params_arena(table);
    qkvi_init_weights(3, 0, table, params);
    for (int t = 1; t <= N_STEPS; t++) {
        fill_grads(table, t, grads);
        const double norm = qkvi_adamw_run(ctx, &adamw, t, 0.01, grads, params, m, v);
        double sum = 0;
        for (size_t i = 0; i < table->n_elems; i++) sum += (double)grads[i] * (double)grads[i];
        assert_true(fabs(norm / sqrt(sum) - 1) < 1e-6);
    }
    grads[1] = NAN;
    const double bad = qkvi_adamw_run(ctx, &adamw, 6, 0.01, grads, params, m, v);
    assert_true(bad != bad); /* and nothing has moved, as the comparisons to come show */
    free(grads);
    free(m);
    free(v);
    qkvi_adamw_free(&adamw);
    qkv_ctx_free(ctx);
    return params;
}

static void check_against_reference(const qkvi_param_table *table, const float *params,
                                    double clip) {
    float *const first = qkvi_params_arena(table), *const grads = qkvi_params_arena(table);
    reference *const all = calloc(table->n_elems, sizeof *all);
    qkvi_init_weights(3, 0, table, first);
    for (size_t i = 0; i < table->n_elems; i++) all[i].p = (double)first[i];
    for (int t = 1; t <= N_STEPS; t++) {
        double sum = 0;
        fill_grads(table, t, grads);
        for (size_t i = 0; i < table->n_elems; i++) sum += (double)grads[i] * (double)grads[i];
        const double factor = clip > 0 && sqrt(sum) > clip ? clip / sqrt(sum) : 1;
        for (int64_t r = 0; r < table->n_rows; r++) {
            const qkvi_param *const row = &table->rows[r];
            const double decay = r == 0 || r == 3 ? 0.1 : 0; /* not the bias, not the norm */
            for (size_t i = row->offset; i < row->offset + row->n_elems; i++)
                reference_step(&all[i], (double)grads[i] * factor, t, 0.01, decay);
        }
    }
    for (size_t i = 0; i < table->n_elems; i++)
        if (fabs((double)params[i] - all[i].p) > 2e-6 * (fabs(all[i].p) + 0.01))
            fail_msg("parameter %zu is %.9g, expected %.9g", i, (double)params[i], all[i].p);
    free(first);
    free(grads);
    free(all);
}

static void test_adamw(void **state) {
    (void)state;
    static const double clips[] = { 0, 1, 1e9 };
    qkvi_param_table table = make_table();
    for (int c = 0; c < 3; c++) {
        float *const expected = run_adamw("scalar", 1, &table, clips[c]);
        check_against_reference(&table, expected, clips[c]);
        for (int i = 0; qkv_isa_name(i); i++)
            for (int n_threads = 1; n_threads <= 5; n_threads += 2) {
                float *const got = run_adamw(qkv_isa_name(i), n_threads, &table, clips[c]);
                assert_memory_equal(got, expected, table.n_elems * sizeof *got);
                free(got);
            }
        free(expected);
    }
    qkvi_params_free(&table);
}

/* ---- First weights --------------------------------------------------------------------------- */

static void test_first_weights(void **state) {
    (void)state;
    qkvi_param_table table = make_table();
    float *const weights = qkvi_params_arena(&table), *const again = qkvi_params_arena(&table);
    const size_t n = table.rows[0].n_elems;
    double sum = 0, squares = 0;
    qkvi_init_weights(1, 0, &table, weights);
    qkvi_init_weights(1, 0, &table, again);
    assert_memory_equal(weights, again, table.n_elems * sizeof *weights);
    qkvi_init_weights(2, 0, &table, again);
    assert_memory_not_equal(weights, again, n * sizeof *weights);
    for (size_t i = 0; i < n; i++) {
        sum += (double)weights[i];
        squares += (double)weights[i] * (double)weights[i];
        assert_true(fabs((double)weights[i]) < 0.02 * 4.9);
    }
    assert_true(fabs(sum / (double)n) < 0.02 * 4 / sqrt((double)n));
    assert_true(fabs(sqrt(squares / (double)n) / 0.02 - 1) < 0.02);
    assert_true(weights[table.rows[1].offset] == 0.0f);
    assert_true(weights[table.rows[2].offset + 39999] == 1.0f);
    free(weights);
    free(again);
    qkvi_params_free(&table);
}

/* ---- Examples -------------------------------------------------------------------------------- */

static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
                            "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\no\np\nq\nr\ns\nt\n";

static qkv_tokenizer *make_tokenizer(void) {
    qkv_tokenizer *tokenizer;
    qkv_error error;
    if (qkv_tokenizer_open_memory(vocab, sizeof vocab - 1, NULL, 0, &tokenizer, &error) != QKV_OK)
        fail_msg("%s", error.message);
    return tokenizer;
}

/* Words of a and b are letters: what is left after cutting can be read off. */
static void expect_cut(const qkv_tokenizer *tokenizer, const char *a, const char *b,
                       int64_t max_len, const char *expected) {
    qkv_encoding *encoding;
    qkv_error error;
    char text[256] = "";
    assert_int_equal(
        qkv_tokenizer_encode(tokenizer, a, strlen(a), b, b ? strlen(b) : 0, &encoding, &error),
        QKV_OK);
    qkv_tokenizer_cut(NULL, encoding, max_len);
    for (int64_t t = 0; t < encoding->n; t++) {
        size_t n;
        const char *const token = qkv_tokenizer_token(tokenizer, encoding->ids[t], &n);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%.*s%d", (int)n, token,
                 encoding->types[t]);
    }
    assert_string_equal(text, expected);
    qkv_encoding_free(encoding);
}

/*
 * What PyPI tokenizers leaves of texts of a and b tokens: alike lengths, the longer one of them, or
 * the second, with one more.
 */
static void cut_pair(int64_t room, size_t *a, size_t *b) {
    size_t *const lesser = *a > *b ? b : a, *const greater = *a > *b ? a : b;
    if ((int64_t)(*a + *b) <= room) return;
    if ((int64_t)*lesser <= room / 2) {
        *greater = (size_t)room - *lesser;
        return;
    }
    *lesser = (size_t)(room / 2);
    *greater = (size_t)(room - room / 2);
}

/* All small pairs. */
static void expect_all_cuts(const qkv_tokenizer *tokenizer) {
    static const char letters[] = "a b c d e f g h";
    for (size_t n_a = 0; n_a <= 8; n_a++)
        for (size_t n_b = 1; n_b <= 8; n_b++)
            for (int64_t max_len = 3; max_len <= 20; max_len++) {
                qkv_encoding *encoding;
                qkv_error error;
                size_t a = n_a, b = n_b;
                cut_pair(max_len - 3, &a, &b);
                assert_int_equal(qkv_tokenizer_encode(tokenizer, letters, n_a ? 2 * n_a - 1 : 0,
                                                      letters, 2 * n_b - 1, &encoding, &error),
                                 QKV_OK);
                qkv_tokenizer_cut(NULL, encoding, max_len);
                assert_int_equal(encoding->n, a + b + 3);
                assert_int_equal(encoding->types[a + 1], 0);
                assert_int_equal(encoding->types[a + 2], 1);
                if (b > 0) assert_int_equal(encoding->end[a + b + 1], 2 * b - 1);
                if (a > 0) assert_int_equal(encoding->end[a], 2 * a - 1);
                qkv_encoding_free(encoding);
            }
}

static void test_cut(void **state) {
    (void)state;
    qkv_tokenizer *const tokenizer = make_tokenizer();
    expect_cut(tokenizer, "a b c", NULL, 5, "[CLS]0a0b0c0[SEP]0");
    expect_cut(tokenizer, "a b c d", NULL, 5, "[CLS]0a0b0c0[SEP]0");
    expect_cut(tokenizer, "a b c d", "e", 6, "[CLS]0a0b0[SEP]0e1[SEP]1");
    expect_cut(tokenizer, "a", "b c d e", 6, "[CLS]0a0[SEP]0b1c1[SEP]1");
    expect_cut(tokenizer, "a b c", "d e f", 7, "[CLS]0a0b0[SEP]0d1e1[SEP]1");
    expect_cut(tokenizer, "a b c", "d e f", 5, "[CLS]0a0[SEP]0d1[SEP]1");
    expect_cut(tokenizer, "a b c", NULL, 1, "[CLS]0[SEP]0");
    expect_all_cuts(tokenizer);
    qkv_tokenizer_free(tokenizer);
}

/* A text of n lines of letters, with a TAB after the second. */
static void write_corpus(const char *path, int n) {
    FILE *const out = fopen(path, "wb");
    assert_non_null(out);
    for (int line = 0; line < n; line++) {
        qkvi_rng rng = qkvi_rng_make(9, 1, (uint64_t)line);
        const uint32_t words = 4 + qkvi_rng_below(&rng, 20);
        for (uint32_t w = 0; w < words; w++)
            fprintf(out, "%s%c", w == 2 ? "\t" : w ? " " : "", 'a' + (int)qkvi_rng_below(&rng, 19));
        fputc('\n', out);
    }
    fclose(out);
}

typedef struct fixture {
    qkv_ctx *ctx;
    qkv_tokenizer *tokenizer;
    qkvi_corpus *corpus;
    qkvi_examples examples;
    qkvi_feed feed;
} fixture;

enum { MAX_LEN = 24, N_LINES = 400 };

static void open_fixture(fixture *f, int n_threads) {
    char path[TEMPORARY_PATH];
    qkv_ctx_options options = qkv_ctx_options_init();
    qkv_error error;
    const int fd = mkstemp(temporary("qkv-corpus", path));
    assert_true(fd >= 0);
    close(fd);
    write_corpus(path, N_LINES);
    options.n_threads = n_threads;
    assert_int_equal(qkv_ctx_create(&options, &f->ctx, &error), QKV_OK);
    if (qkvi_corpus_open_text(path, &f->corpus, &error) != QKV_OK) fail_msg("%s", error.message);
    unlink(path);
    f->tokenizer = make_tokenizer();
    f->examples = (qkvi_examples){ .make = qkvi_objective_mlm.example,
                                   .n_words = INT32_MAX,
                                   .corpus = f->corpus,
                                   .tokenizer = f->tokenizer,
                                   .seed = 11,
                                   .max_len = MAX_LEN };
    assert_int_equal(qkvi_examples_make(&f->examples, N_LINES, &error), QKV_OK);
    assert_int_equal(qkvi_feed_make(&f->feed, N_LINES, MAX_LEN, &error), QKV_OK);
}

static void close_fixture(fixture *f) {
    qkvi_feed_free(&f->feed);
    qkvi_examples_free(&f->examples);
    qkv_tokenizer_free(f->tokenizer);
    qkvi_corpus_free(f->corpus);
    qkv_ctx_free(f->ctx);
}

static void fill(fixture *f, int64_t first, int64_t n) {
    qkv_error error;
    if (qkvi_examples_fill(f->ctx, &f->examples, QKVI_SPLIT_TRAIN, first, n, &f->feed, &error) !=
        QKV_OK)
        fail_msg("%s", error.message);
}

/* An example does not depend on the batch around it, nor on threads. */
static void test_examples_are_functions(void **state) {
    (void)state;
    fixture all, some;
    open_fixture(&all, 3);
    open_fixture(&some, 1);
    fill(&all, 0, 200);
    fill(&some, 150, 50);
    const int64_t tokens = some.feed.n_tokens, targets = some.feed.view.n_targets;
    assert_memory_equal(all.feed.ids + all.feed.n_tokens - tokens, some.feed.ids,
                        (size_t)tokens * sizeof *some.feed.ids);
    assert_memory_equal(all.feed.types + all.feed.n_tokens - tokens, some.feed.types,
                        (size_t)tokens);
    assert_memory_equal(all.feed.lengths + 150, some.feed.lengths, 50 * sizeof *some.feed.lengths);
    assert_memory_equal(all.feed.labels + 150, some.feed.labels, 50 * sizeof *some.feed.labels);
    assert_true(targets > 0);
    assert_memory_equal(all.feed.target_ids + all.feed.view.n_targets - targets,
                        some.feed.target_ids, (size_t)targets * sizeof *some.feed.target_ids);
    close_fixture(&all);
    close_fixture(&some);
}

/* |observed - expected| within five standard deviations of a binomial. */
static void expect_share(const char *what, int64_t count, int64_t n, double share) {
    const double deviation = sqrt((double)n * share * (1 - share));
    if (fabs((double)count - (double)n * share) > 5 * deviation + 1)
        fail_msg("%s: %d of %d, expected a share of %g", what, (int)count, (int)n, share);
}

static void test_masking(void **state) {
    (void)state;
    int64_t n_words = 0, n_targets = 0, n_mask = 0, n_kept = 0, n_other = 0, n_next = 0;
    fixture f;
    open_fixture(&f, 2);
    const int32_t mask = qkv_tokenizer_special(f.tokenizer, QKV_TOKEN_MASK);
    for (int64_t first = 0; first < 20 * N_LINES; first += N_LINES) {
        fill(&f, first, N_LINES);
        for (int64_t s = 0; s < N_LINES; s++) {
            assert_true(f.feed.lengths[s] <= MAX_LEN);
            n_next += f.feed.labels[s] == 0;
        }
        n_words += f.feed.n_tokens - 3 * N_LINES;
        n_targets += f.feed.view.n_targets;
        for (int64_t t = 0; t < f.feed.view.n_targets; t++) {
            const int32_t now = f.feed.ids[f.feed.target_tokens[t]], was = f.feed.target_ids[t];
            assert_true(was >= 5 && now >= 4);
            assert_true(t == 0 || f.feed.target_tokens[t] > f.feed.target_tokens[t - 1]);
            n_mask += now == mask;
            n_kept += now == was;
            n_other += now != mask && now != was;
        }
    }
    expect_share("targets", n_targets, n_words, 0.15);
    expect_share("[MASK]", n_mask, n_targets, 0.8);
    expect_share("kept", n_kept, n_targets, 0.1 + 0.1 / 20); /* or replaced by itself */
    expect_share("another", n_other, n_targets, 0.1 * 19 / 20);
    expect_share("is next", n_next, 20 * N_LINES, 0.5);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule),
        cmocka_unit_test(test_adamw),
        cmocka_unit_test(test_first_weights),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_examples_are_functions),
        cmocka_unit_test(test_masking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
