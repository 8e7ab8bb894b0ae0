/*
 * Searches and processors against transformers, over a model that is a hash function
 * (tools/generate_cases.py): the same ids, scores within 1e-5 of themselves, the same tokens left
 * to draw from.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "generate_table.h"
#include "model/generate/plan.h"
#include "model/generate/row.h"
#include "model/generate/search.h"

enum { MOST_IDS = 64 };

/* A case, and what its options point to. */
typedef struct generate_case {
    int number;
    json_t *json;
    table_lm lm;
    int32_t prompt[MOST_IDS], eos[8], forced_ends[8], bad_words[MOST_IDS];
    int64_t prompt_len, bad_word_lengths[MOST_IDS];
    qkv_generate_options options;
    qkvi_plan plan;
    int64_t facts_never; /* bad words, which a model may have, too */
} generate_case;

static int64_t read_ids(const json_t *list, int32_t *ids) {
    const size_t n = json_array_size(list);
    assert_true(n <= MOST_IDS);
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return (int64_t)n;
}

static void read_bad_words(generate_case *c, const json_t *list) {
    int64_t at = 0;
    c->options.n_bad_words = (int64_t)json_array_size(list);
    for (int64_t w = 0; w < c->options.n_bad_words; w++) {
        c->bad_word_lengths[w] = read_ids(json_array_get(list, (size_t)w), c->bad_words + at);
        at += c->bad_word_lengths[w];
    }
    c->options.bad_words = c->bad_words;
    c->options.bad_word_lengths = c->bad_word_lengths;
}

static void read_eos(generate_case *c, const json_t *value) {
    c->options.no_eos = json_is_null(value);
    c->options.n_eos = json_is_array(value) ? read_ids(value, c->eos) : 0;
    c->options.eos = c->options.n_eos ? c->eos : NULL;
}

static void read_forced_ends(generate_case *c, const json_t *list) {
    c->options.forced_ends = c->forced_ends;
    c->options.n_forced_ends = read_ids(list, c->forced_ends);
}

static void read_option(generate_case *c, const char *name, const json_t *value) {
    qkv_generate_options *const o = &c->options;
    const struct {
        const char *name;
        int64_t *whole;
        double *real;
        int32_t *id;
    } fields[] = {
        { "max_new_tokens", &o->max_new, NULL, NULL },
        { "min_new_tokens", &o->min_new, NULL, NULL },
        { "min_length", &o->min_length, NULL, NULL },
        { "num_beams", &o->n_beams, NULL, NULL },
        { "num_return_sequences", &o->n_return, NULL, NULL },
        { "length_penalty", NULL, &o->length_penalty, NULL },
        { "temperature", NULL, &o->temperature, NULL },
        { "top_k", &o->top_k, NULL, NULL },
        { "top_p", NULL, &o->top_p, NULL },
        { "min_p", NULL, &o->min_p, NULL },
        { "repetition_penalty", NULL, &o->repetition_penalty, NULL },
        { "no_repeat_ngram_size", &o->no_repeat_ngram, NULL, NULL },
        { "forced_bos_token_id", NULL, NULL, &o->forced_bos },
        { "forced_eos_token_id", NULL, NULL, &o->forced_eos },
        { "renormalize_logits", NULL, NULL, &o->renormalize },
        { "do_sample", NULL, NULL, &o->sample },
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strcmp(fields[i].name, name) != 0 || json_is_array(value)) continue;
        if (fields[i].whole) *fields[i].whole = json_integer_value(value);
        if (fields[i].real) *fields[i].real = json_number_value(value);
        if (fields[i].id)
            *fields[i].id = json_is_true(value) ? 1 : (int32_t)json_integer_value(value);
        return;
    }
    if (strcmp(name, "early_stopping") == 0)
        o->early_stopping = json_is_string(value) ? QKV_EARLY_NEVER
                            : json_is_true(value) ? QKV_EARLY_ALWAYS
                                                  : QKV_EARLY_LIKELY;
    else if (strcmp(name, "bad_words_ids") == 0)
        read_bad_words(c, value);
    else if (strcmp(name, "eos_token_id") == 0)
        read_eos(c, value);
    else if (strcmp(name, "forced_eos_token_id") == 0)
        read_forced_ends(c, value);
    else
        fail_msg("case %d: option %s", c->number, name);
}

static void read_case(generate_case *c, json_t *json, int number, int of_model) {
    const char *name;
    json_t *value;
    qkv_error error;
    *c = (generate_case){ .number = number, .json = json };
    c->options = (qkv_generate_options)qkv_generate_options_init();
    c->options.max_new = 12;
    c->lm.seed = (uint32_t)json_integer_value(json_object_get(json, "seed"));
    c->lm.vocab = json_integer_value(json_object_get(json, "vocab"));
    c->lm.sharp = json_object_get(json, "sharp") != NULL;
    c->prompt_len = read_ids(json_object_get(json, "prompt"), c->prompt);
    json_object_foreach(json_object_get(json, "o"), name, value) read_option(c, name, value);
    qkvi_lm_facts facts = { c->lm.vocab, TABLE_LEN, c->prompt_len, 1, 0, &table_eos, NULL, NULL };
    c->facts_never = c->options.n_bad_words;
    if (of_model) { /* as if generation_config.json had them */
        facts.n_never = c->facts_never;
        facts.never = c->options.bad_words;
        facts.never_lengths = c->options.bad_word_lengths;
        c->options.n_bad_words = 0;
    }
    if (qkvi_plan_make(&c->plan, &c->options, &facts, &error) != QKV_OK)
        fail_msg("case %d: %s", number, error.message);
}

static int same_ids(const qkv_sequence *sequence, const json_t *ids) {
    if (json_array_size(ids) != (size_t)sequence->n) return 0;
    for (int64_t i = 0; i < sequence->n; i++)
        if (json_integer_value(json_array_get(ids, (size_t)i)) != sequence->ids[i]) return 0;
    return 1;
}

static void check_search(generate_case *c, const json_t *out) {
    qkv_error error;
    qkv_generation *made = NULL;
    const qkvi_lm lm = { &c->lm, table_step, table_reorder };
    float *const logits = malloc((size_t)(c->plan.n_slots * c->lm.vocab) * sizeof *logits);
    table_prompt(&c->lm, c->prompt_len, c->prompt, logits);
    if (qkvi_search(&c->plan, &lm, c->prompt, logits, &made, &error) != QKV_OK)
        fail_msg("case %d: %s", c->number, error.message);
    assert_int_equal(made->n_steps, c->lm.n_steps);
    if ((size_t)made->n_sequences != json_array_size(out))
        fail_msg("case %d: %d sequences, not %d", c->number, (int)made->n_sequences,
                 (int)json_array_size(out));
    for (int64_t i = 0; i < made->n_sequences; i++) {
        const qkv_sequence *const sequence = made->sequences[i];
        const json_t *const wanted = json_array_get(out, (size_t)i);
        const double score = json_number_value(json_array_get(wanted, 0));
        if (!same_ids(sequence, json_array_get(wanted, 1)))
            fail_msg("case %d: sequence %d has other ids", c->number, (int)i);
        if (!(fabs(sequence->score - score) <= 1e-8 + 1e-9 * fabs(score)))
            fail_msg("case %d: score %.9g, not %.9g", c->number, sequence->score, score);
    }
    qkv_generation_free(made);
    free(logits);
}

/* Which ids are left to draw from. */
static void check_allowed(generate_case *c, const json_t *allowed) {
    static float row[512];
    static double x[512];
    size_t n = 0;
    qkvi_scratch scratch;
    assert_int_equal(qkvi_scratch_make(&c->plan, &scratch, NULL), QKV_OK);
    table_prompt(&c->lm, c->prompt_len, c->prompt, row);
    assert_int_equal(qkvi_row_read(c->lm.vocab, row, x, NULL), QKV_OK);
    qkvi_process(&c->plan, &scratch, c->prompt_len, c->prompt, x);
    for (int64_t j = 0; j < c->lm.vocab; j++) {
        if (x[j] == -INFINITY) continue;
        if (json_integer_value(json_array_get(allowed, n)) != j)
            fail_msg("case %d: %d is allowed", c->number, (int)j);
        n++;
    }
    assert_int_equal(n, json_array_size(allowed));
    qkvi_scratch_free(&scratch);
}

static void test_cases(void **state) {
    static char line[1 << 14];
    int n = 0, n_allowed = 0;
    int64_t n_words = 0;
    FILE *const file = fopen(QKV_TEST_DATA "/golden/generate_cases.json", "r");
    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        static generate_case c;
        json_t *const json = json_loads(line, 0, NULL);
        assert_non_null(json);
        const json_t *const allowed = json_object_get(json, "allowed");
        n++;
        for (int of_model = 0; of_model < 2; of_model++) {
            read_case(&c, json, n, of_model);
            if (allowed)
                check_allowed(&c, allowed);
            else
                check_search(&c, json_object_get(json, "out"));
            if (c.facts_never == 0) break;
        }
        n_words += c.facts_never;
        n_allowed += allowed != NULL;
        json_decref(json);
    }
    fclose(file);
    assert_true(n_words >= 10);
    assert_true(n_allowed >= 100 && n - n_allowed >= 250);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
