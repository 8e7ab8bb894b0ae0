/*
 * Generation without a network: what is refused, how drawing is distributed, where texts end, what
 * is told of them while they are made. The model is a hash function (generate_table.h); its
 * searches against transformers: tests/model/test_generate_golden.c.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "generate_table.h"
#include "model/generate/plan.h"
#include "model/generate/row.h"
#include "model/generate/search.h"
#include "model/generate/text.h"

static const qkvi_lm_facts facts = { 50, TABLE_LEN, 3, 1, 0, &table_eos, NULL, NULL };
static const int32_t prompt[] = { 5, 9, 2 };

static qkv_generation *generate(table_lm *table, const qkv_generate_options *options,
                                const qkvi_lm_facts *lm_facts, qkv_status wanted) {
    qkvi_plan plan;
    qkv_error error = { 0 };
    qkv_generation *made = NULL;
    const qkvi_lm lm = { table, table_step, table_reorder };
    if (qkvi_plan_make(&plan, options, lm_facts, &error) != QKV_OK) fail_msg("%s", error.message);
    table->vocab = lm_facts->vocab;
    float *const logits = malloc((size_t)(plan.n_slots * table->vocab) * sizeof *logits);
    table_prompt(table, lm_facts->prompt_len, prompt, logits);
    assert_int_equal(qkvi_search(&plan, &lm, prompt, logits, &made, &error), wanted);
    assert_true((made != NULL) == (wanted == QKV_OK));
    free(logits);
    return made;
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void refuse(const qkv_generate_options *options, qkv_status status, const char *words) {
    qkvi_plan plan;
    qkv_error error = { 0 };
    assert_int_equal(qkvi_plan_make(&plan, options, &facts, &error), status);
    if (!strstr(error.message, words)) fail_msg("'%s' is not in: %s", words, error.message);
}

#define REFUSED(field, value, words)                                                               \
    do {                                                                                           \
        qkv_generate_options options = qkv_generate_options_init();                                \
        options.field = (value);                                                                   \
        refuse(&options, QKV_ERR_ARGUMENT, words);                                                 \
    } while (0)

static void test_numbers_refused(void **state) {
    (void)state;
    REFUSED(max_new, -1, "max_new = -1 is not between 0");
    REFUSED(min_new, -1, "min_new");
    REFUSED(min_length, -3, "min_length");
    REFUSED(n_beams, 0, "n_beams = 0 is not between 1 and 256");
    REFUSED(n_beams, 257, "n_beams = 257");
    REFUSED(n_return, 0, "n_return");
    REFUSED(n_return, 2, "n_return = 2: without beams and sampling");
    REFUSED(length_penalty, NAN, "length_penalty = nan");
    REFUSED(length_penalty, 17, "length_penalty = 17 is not between -16 and 16");
    REFUSED(early_stopping, (qkv_early_stopping)3, "early_stopping");
    REFUSED(temperature, 0, "temperature = 0");
    REFUSED(temperature, -1, "temperature");
    REFUSED(temperature, INFINITY, "temperature = inf");
    REFUSED(top_k, -1, "top_k");
    REFUSED(top_p, 1.5, "top_p = 1.5 is not between 0 and 1");
    REFUSED(top_p, NAN, "top_p");
    REFUSED(min_p, -0.1, "min_p = -0.1 is not between 0 and 1");
    REFUSED(min_p, NAN, "min_p = nan");
    REFUSED(repetition_penalty, 0, "repetition_penalty");
    REFUSED(no_repeat_ngram, -1, "no_repeat_ngram");
}

static void test_ids_refused(void **state) {
    static const int32_t ids[] = { 3, 50 };
    static const int64_t lengths[] = { 2, 0 };
    (void)state;
    REFUSED(forced_bos, 50, "forced_bos: 50 is no id of a vocabulary of 50");
    REFUSED(forced_eos, -2, "forced_eos: -2");
    REFUSED(n_forced_ends, 65, "n_forced_ends = 65");
    REFUSED(n_forced_ends, 1, "forced_ends is NULL");
    REFUSED(n_eos, 65, "n_eos = 65");
    REFUSED(n_eos, 1, "eos is NULL");
    REFUSED(n_bad_words, 1, "bad_words is NULL");
    REFUSED(n_bad_words, -1, "n_bad_words = -1");
    REFUSED(n_stop, 65, "n_stop = 65");
    REFUSED(n_stop, 1, "stop is NULL");
    qkv_generate_options options = qkv_generate_options_init();
    options.eos = ids;
    options.n_eos = 2;
    refuse(&options, QKV_ERR_ARGUMENT, "eos: 50");
    options.n_eos = 1;
    options.no_eos = 1;
    refuse(&options, QKV_ERR_ARGUMENT, "no_eos together with n_eos = 1");
    options = (qkv_generate_options)qkv_generate_options_init();
    options.bad_words = ids;
    options.bad_word_lengths = lengths;
    options.n_bad_words = 1;
    refuse(&options, QKV_ERR_ARGUMENT, "bad_words: 50");
    options.bad_word_lengths = lengths + 1;
    refuse(&options, QKV_ERR_ARGUMENT, "bad_word_lengths = 0");
}

static int quiet(void *user, const char *bytes, size_t n) {
    (void)user, (void)bytes, (void)n;
    return 0;
}

static void test_others_refused(void **state) {
    static const char *stops[] = { "a", "" }, *broken[] = { "a\xE4\xB8" };
    static char longer[5000];
    const char *longest[] = { longer };
    (void)state;
    memset(longer, 'a', sizeof longer - 1);
    qkv_generate_options options = qkv_generate_options_init();
    options.stop = stops;
    options.n_stop = 2;
    refuse(&options, QKV_ERR_ARGUMENT, "stop[1] is empty");
    options.stop = longest;
    options.n_stop = 1;
    refuse(&options, QKV_ERR_ARGUMENT, "stop[0] is longer than 4,096 bytes");
    options.stop = broken;
    refuse(&options, QKV_ERR_ARGUMENT, "stop[0]: byte 1 is no UTF-8");
    options = (qkv_generate_options)qkv_generate_options_init();
    options.n_beams = 2;
    options.on_text = quiet;
    refuse(&options, QKV_ERR_ARGUMENT, "on_text is for one sequence");
    options.on_text = NULL;
    options.n_return = 3;
    refuse(&options, QKV_ERR_ARGUMENT, "n_return = 3 is above n_beams = 2");
    options.struct_size = 8;
    refuse(&options, QKV_ERR_ARGUMENT, "struct_size");
    const qkvi_lm_facts full = { 50, 3, 3, 0, 0, NULL, NULL, NULL };
    qkvi_plan plan;
    qkv_error error;
    assert_int_equal(qkvi_plan_make(&plan, NULL, &full, &error), QKV_ERR_SHAPE);
    assert_non_null(strstr(error.message, "a prompt of 3 tokens leaves no room"));
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static void test_rows(void **state) {
    double x[37], e[37], sum = 0;
    float logits[37];
    (void)state;
    for (int n = 1; n <= 37; n++) {
        for (int j = 0; j < n; j++) logits[j] = (float)(sin(j * 1.7) * 20 * (n % 3));
        if (n > 4) logits[2] = -INFINITY;
        assert_int_equal(qkvi_row_read(n, logits, x, NULL), QKV_OK);
        double most = -INFINITY;
        for (int j = 0; j < n; j++) most = fmax(most, x[j]);
        sum = 0;
        for (int j = 0; j < n; j++) sum += exp(x[j] - most);
        assert_true(qkvi_row_max(n, x) == most);
        assert_true(fabs(qkvi_row_lse(n, x) - (most + log(sum))) < 1e-13 * fmax(1, fabs(most)));
        memcpy(e, x, sizeof e);
        assert_true(fabs(qkvi_row_exp(n, e) - sum) < 1e-14 * sum);
        for (int j = 0; j < n; j++) assert_true(fabs(e[j] - exp(x[j] - most)) < 1e-15);
        qkvi_row_log_softmax(n, x);
        for (int j = 0; j < n; j++)
            if (logits[j] > -INFINITY)
                assert_true(fabs(x[j] - ((double)logits[j] - most - log(sum))) < 1e-13 * 40);
            else
                assert_true(x[j] == -INFINITY);
    }
    logits[3] = NAN;
    assert_int_equal(qkvi_row_read(37, logits, x, NULL), QKV_ERR_UNSUPPORTED);
    logits[3] = INFINITY;
    assert_int_equal(qkvi_row_read(37, logits, x, NULL), QKV_ERR_UNSUPPORTED);
    for (int j = 0; j < 37; j++) logits[j] = -INFINITY;
    assert_int_equal(qkvi_row_read(37, logits, x, NULL), QKV_ERR_UNSUPPORTED);
}

/* ---- Drawing --------------------------------------------------------------------------------- */

/* chi-square of counts against n p_j; cells with less than 5 are one. */
static double chi_square(int n_cells, const int *counts, const double *p, double n, int *freedom) {
    double x = 0, rare = 0, rare_count = 0;
    *freedom = -1;
    for (int j = 0; j < n_cells; j++) {
        if (n * p[j] < 5) {
            rare += n * p[j];
            rare_count += counts[j];
            continue;
        }
        x += (counts[j] - n * p[j]) * (counts[j] - n * p[j]) / (n * p[j]);
        ++*freedom;
    }
    if (rare >= 5) {
        x += (rare_count - rare) * (rare_count - rare) / rare;
        ++*freedom;
    }
    return x;
}

/* Above it with a probability below 1e-6: Wilson and Hilferty 1931, z = 4.8. */
static double bound(int freedom) {
    const double v = 2.0 / (9.0 * freedom);
    return freedom * pow(1 - v + 4.8 * sqrt(v), 3);
}

/* The first token of sequences with seeds from `seed` on. */
static void test_draws(void **state) {
    enum { N = 20000, CELLS = 50 };
    uint64_t seed = (uint64_t)time(NULL);
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        int counts[CELLS] = { 0 }, freedom;
        double p[CELLS], sum = 0;
        float row[CELLS];
        table_lm table = { .seed = 77u + (unsigned)kind, .vocab = CELLS };
        qkv_generate_options options = qkv_generate_options_init();
        qkvi_scratch scratch;
        qkvi_plan plan;
        options.sample = 1;
        options.max_new = 1;
        options.temperature = kind == 0 ? 1 : 0.8;
        options.top_k = kind == 1 ? 12 : 0;
        options.top_p = kind == 2 ? 0.7 : 1;
        assert_int_equal(qkvi_plan_make(&plan, &options, &facts, NULL), QKV_OK);
        assert_int_equal(qkvi_scratch_make(&plan, &scratch, NULL), QKV_OK);
        table_prompt(&table, 3, prompt, row);
        assert_int_equal(qkvi_row_read(CELLS, row, p, NULL), QKV_OK);
        qkvi_process(&plan, &scratch, 3, prompt, p);
        for (int j = 0; j < CELLS; j++) sum += p[j] = exp(p[j]);
        for (int j = 0; j < CELLS; j++) p[j] /= sum;
        for (int n = 0; n < N / 100; n++) {
            options.seed = seed++;
            options.n_return = 100;
            qkv_generation *const made = generate(&table, &options, &facts, QKV_OK);
            for (int i = 0; i < 100; i++) counts[made->sequences[i]->ids[0]]++;
            qkv_generation_free(made);
        }
        for (int j = 0; j < CELLS; j++) assert_true(p[j] > 0 || counts[j] == 0);
        const double x = chi_square(CELLS, counts, p, N, &freedom);
        if (!(x < bound(freedom)))
            fail_msg("kind %d, last seed %llu: chi-square %g with %d", kind,
                     (unsigned long long)seed, x, freedom);
        qkvi_scratch_free(&scratch);
    }
}

/* Two beams drawn of few tokens: pairs without replacement, p_a p_b / (1 - p_a). */
static void test_beam_draws(void **state) {
    enum { N = 20000, CELLS = 6 };
    const qkvi_lm_facts few = { CELLS, TABLE_LEN, 3, 0, 0, NULL, NULL, NULL };
    uint64_t seed = (uint64_t)time(NULL);
    int counts[CELLS * CELLS] = { 0 }, freedom;
    double p[CELLS], pairs[CELLS * CELLS] = { 0 }, sum = 0;
    float row[CELLS];
    table_lm table = { .seed = 5, .vocab = CELLS };
    qkv_generate_options options = qkv_generate_options_init();
    (void)state;
    options.sample = 1;
    options.max_new = 1;
    options.n_beams = options.n_return = 2;
    options.temperature = 2;
    table_prompt(&table, 3, prompt, row);
    for (int j = 0; j < CELLS; j++) sum += p[j] = exp((double)row[j] / 2);
    for (int a = 0; a < CELLS; a++) p[a] /= sum;
    for (int a = 0; a < CELLS; a++)
        for (int b = 0; b < CELLS; b++)
            if (a != b)
                pairs[CELLS * (a < b ? a : b) + (a < b ? b : a)] += p[a] * p[b] / (1 - p[a]);
    for (int n = 0; n < N; n++) {
        options.seed = seed++;
        qkv_generation *const made = generate(&table, &options, &few, QKV_OK);
        assert_int_equal(made->n_sequences, 2);
        const int a = made->sequences[0]->ids[0], b = made->sequences[1]->ids[0];
        assert_true(made->sequences[0]->score >= made->sequences[1]->score);
        counts[CELLS * (a < b ? a : b) + (a < b ? b : a)]++;
        qkv_generation_free(made);
    }
    const double x = chi_square(CELLS * CELLS, counts, pairs, N, &freedom);
    if (!(x < bound(freedom)))
        fail_msg("last seed %llu: chi-square %g with %d", (unsigned long long)seed, x, freedom);
}

/* A sequence is the same alone and among others, and others are others. */
static void test_seeds(void **state) {
    table_lm table = { .seed = 8 };
    qkv_generate_options options = qkv_generate_options_init();
    (void)state;
    options.sample = 1;
    options.max_new = 30;
    options.no_eos = 1;
    options.seed = 0x123456789ABCDEFull;
    qkv_generation *const one = generate(&table, &options, &facts, QKV_OK);
    options.n_return = 7;
    qkv_generation *const seven = generate(&table, &options, &facts, QKV_OK);
    assert_int_equal(one->sequences[0]->n, seven->sequences[0]->n);
    assert_memory_equal(one->sequences[0]->ids, seven->sequences[0]->ids,
                        (size_t)one->sequences[0]->n * 4);
    assert_true(one->sequences[0]->score == seven->sequences[0]->score);
    int differ = 0;
    for (int i = 1; i < 7; i++)
        differ += seven->sequences[i]->n != seven->sequences[0]->n ||
                  memcmp(seven->sequences[i]->ids, seven->sequences[0]->ids,
                         (size_t)seven->sequences[0]->n * 4) != 0;
    assert_int_equal(differ, 6);
    qkv_generation_free(one);
    qkv_generation_free(seven);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void test_ends(void **state) {
    static const int cancelled = 1;
    static int32_t all[50];
    static int64_t ones[50];
    table_lm table = { .seed = 3 };
    qkv_generate_options options = qkv_generate_options_init();
    (void)state;
    options.no_eos = 1;
    options.max_new = 4;
    qkv_generation *made = generate(&table, &options, &facts, QKV_OK);
    assert_int_equal(made->sequences[0]->end, QKV_END_MAX_NEW);
    assert_int_equal(made->sequences[0]->n, 4);
    assert_int_equal(made->n_steps, 3);
    assert_int_equal(made->prompt_len, 3);
    assert_string_equal(made->sequences[0]->text, "");
    qkv_generation_free(made);
    for (options.n_beams = 1; options.n_beams <= 3; options.n_beams += 2) {
        options.max_new = 0;
        made = generate(&table, &options, &facts, QKV_OK);
        assert_int_equal(made->sequences[0]->end, QKV_END_MODEL_LENGTH);
        assert_int_equal(made->sequences[0]->n, TABLE_LEN - 3);
        qkv_generation_free(made);
        for (int i = 0; i < 50; i++) {
            all[i] = i;
            ones[i] = 1;
        }
        options.bad_words = all;
        options.bad_word_lengths = ones;
        options.n_bad_words = 50;
        made = generate(&table, &options, &facts, QKV_OK);
        assert_int_equal(made->sequences[0]->end, QKV_END_FORBIDDEN);
        assert_int_equal(made->sequences[0]->n, 0);
        qkv_generation_free(made);
        options.n_bad_words = 0;
        options.cancel = &cancelled;
        generate(&table, &options, &facts, QKV_ERR_CANCELLED);
        options.cancel = NULL;
    }
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* What on_text got. */
typedef struct heard {
    char bytes[4096];
    size_t n;
    int n_pieces, enough;
} heard;

static int hear(void *user, const char *bytes, size_t n) {
    heard *const h = user;
    assert_true(n > 0 && h->n + n < sizeof h->bytes);
    memcpy(h->bytes + h->n, bytes, n);
    h->n += n;
    return ++h->n_pieces == h->enough;
}

/* Random tokens of a real vocabulary: pieces join to the text, which has no string of stop. */
static void check_texts(const char *folder, const char *stop, unsigned seed) {
    qkv_tokenizer *tokenizer;
    qkv_error error;
    if (qkv_tokenizer_open(folder, QKV_SOURCE, &tokenizer, &error) != QKV_OK)
        fail_msg("%s", error.message);
    const qkvi_lm_facts lm_facts = {
        qkv_tokenizer_size(tokenizer), TABLE_LEN, 3, 0, 0, NULL, NULL, NULL
    };
    int n_stopped = 0;
    for (unsigned n = 0; n < 200; n++) {
        const char *const stops[] = { stop, "\n" };
        heard h = { .enough = n % 5 == 4 ? 7 : -1 };
        table_lm table = { .seed = seed + n };
        qkv_generate_options options = qkv_generate_options_init();
        options.tokenizer = tokenizer;
        options.on_text = hear;
        options.user = &h;
        options.stop = stops;
        options.n_stop = n % 3;
        options.sample = 1;
        qkv_generation *const made = generate(&table, &options, &lm_facts, QKV_OK);
        const qkv_sequence *const s = made->sequences[0];
        h.bytes[h.n] = '\0';
        assert_int_equal(h.n, s->n_bytes);
        assert_string_equal(h.bytes, s->text);
        for (int i = 0; i < options.n_stop; i++) assert_null(strstr(s->text, stops[i]));
        n_stopped += s->end == QKV_END_STRING;
        assert_int_equal(s->end == QKV_END_CALLER,
                         h.n_pieces == 7 && h.enough == 7 && s->n < 61 && s->end != QKV_END_STRING);
        if (n % 3 == 0 && h.enough != 7) {
            qkv_text *text;
            assert_int_equal(qkvi_generated_text(tokenizer, s->ids, s->n, &text, NULL), QKV_OK);
            assert_string_equal(text->bytes, s->text);
            qkv_text_free(text);
        }
        qkv_generation_free(made);
    }
    if (n_stopped < 20) fail_msg("%s: %d of 200 stopped", folder, n_stopped);
    qkv_tokenizer_free(tokenizer);
}

static void test_texts(void **state) {
    const unsigned seed = (unsigned)time(NULL);
    (void)state;
    print_message("seed %u\n", seed);
    check_texts(QKV_TEST_DATA "/golden/bpe/roberta", "e", seed);
    check_texts(QKV_TEST_DATA "/golden/marian", "a", seed);
    check_texts(QKV_TEST_DATA "/golden/bert_old", " t", seed);
}

static void test_settled(void **state) {
    static const char *stops[] = { "stop", "\n\n", "op it" };
    qkv_generate_options options = qkv_generate_options_init();
    qkvi_plan plan;
    (void)state;
    options.stop = stops;
    options.n_stop = 3;
    assert_int_equal(qkvi_plan_make(&plan, &options, &facts, NULL), QKV_OK);
    const struct {
        const char *text;
        int64_t settled, found;
    } cases[] = {
        { "", 0, -1 },
        { "a st", 2, -1 },
        { "a sto", 2, -1 },
        { "a stop it", 2, 2 },
        { "a\n", 1, -1 },
        { "a\n\n", 1, 1 },
        { "op op i", 3, -1 },
        { "a\xEF\xBF\xBD", 1, -1 },
        { "s\xEF\xBF\xBD", 0, -1 },
        { "\xEF\xBF\xBD"
          "a",
          4, -1 },
        { "a\xEF\xBF\xBD\xEF\xBF\xBD", 1, -1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t n = (int64_t)strlen(cases[i].text);
        assert_int_equal(qkvi_settled(&plan, cases[i].text, n), cases[i].settled);
        assert_int_equal(qkvi_find_stop(&plan, cases[i].text, n), cases[i].found);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_refused), cmocka_unit_test(test_ids_refused),
        cmocka_unit_test(test_others_refused),  cmocka_unit_test(test_rows),
        cmocka_unit_test(test_draws),           cmocka_unit_test(test_beam_draws),
        cmocka_unit_test(test_seeds),           cmocka_unit_test(test_ends),
        cmocka_unit_test(test_texts),           cmocka_unit_test(test_settled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
