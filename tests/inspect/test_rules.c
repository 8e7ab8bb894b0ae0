/**
 * Labels of heads: the order of the rules, their thresholds, and what only probes can say.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/heads.h"

enum { MOST = 64 };
static double numbers[MOST];

static double *number(const char *name) {
    const int at = qkv_head_number_find(name, strlen(name));
    assert_true(at >= 0 && at < MOST);
    return &numbers[at];
}

/* In the order of docs/statistics.md, with the number that each is about, and what it needs. */
static const struct {
    const char *label, *number;
    double threshold;
    int or_equal, needs_probes;
    const char *queries;
    int min_queries, min_keys;
} rules[] = {
    { "next", "mass_next", 0.5, 0, 0, "n_queries", 6, 0 },
    { "prev", "mass_previous", 0.5, 0, 0, "n_queries", 6, 0 },
    { "[CLS]", "mass_cls", 0.6, 0, 0, "n_queries", 6, 0 },
    { "[SEP]", "mass_sep", 0.6, 0, 0, "n_queries", 6, 0 },
    { "punctuation", "mass_punctuation", 0.6, 0, 0, "n_queries", 6, 0 },
    { "broad", "entropy_normalized", 0.78, 0, 0, NULL, 0, 0 },
    { "sink", "received_early", 0.3, 0, 0, "n_rows", 32, 32 },
    { "duplicate", "duplicate", 0.4, 0, 1, NULL, 0, 0 },
    { "induction", "induction", 0.4, 0, 1, NULL, 0, 0 },
    { "same-token", "mass_same_token", 0.4, 0, 0, "n_same_token", 4, 0 },
    { "coreference-like", "antecedent", 0.5, 1, 1, NULL, 0, 0 },
};
enum { N_RULES = sizeof rules / sizeof *rules };

/* Of a text that is long enough for all rules. */
static void set_all(double value) {
    for (int i = 0; i < N_RULES; i++) {
        *number(rules[i].number) = value;
        if (rules[i].queries) *number(rules[i].queries) = 100;
    }
    *number("n_keys") = 100;
}

static void test_table(void **state) {
    (void)state;
    for (int i = 0; i < N_RULES; i++) {
        const qkv_head_rule *rule = qkv_head_rule_at(i);
        const qkv_head_number *of =
            qkv_head_number_at(qkv_head_number_find(rule->number, strlen(rule->number)));
        assert_string_equal(rule->label, rules[i].label);
        assert_string_equal(rule->number, rules[i].number);
        assert_true(rule->threshold == rules[i].threshold);
        assert_int_equal(rule->or_equal, rules[i].or_equal);
        assert_int_equal((of->needs & QKV_NEEDS_PROBES) != 0, rules[i].needs_probes);
        assert_int_equal(rule->min_queries, rules[i].min_queries);
        assert_int_equal(rule->min_keys, rules[i].min_keys);
        if (rules[i].queries) assert_string_equal(rule->queries, rules[i].queries);
    }
    assert_null(qkv_head_rule_at(N_RULES));
    assert_null(qkv_head_rule_at(-1));
}

/* Names are found, and are different; what is shown has a title and words. */
static void test_numbers(void **state) {
    (void)state;
    const qkv_head_number *n;
    assert_true(qkv_head_number_count() <= MOST);
    for (int i = 0; (n = qkv_head_number_at(i)); i++) {
        assert_int_equal(qkv_head_number_find(n->name, strlen(n->name)), i);
        assert_non_null(n->what);
        if (n->title) assert_true(strlen(n->title) <= 6 && n->formula);
        numbers[i] = i;
        assert_true(qkv_head_number_value(numbers, n->name) == i);
    }
    assert_null(qkv_head_number_at(qkv_head_number_count()));
    assert_int_equal(qkv_head_number_find("entropy_", 8), -1);
    assert_true(isnan(qkv_head_number_value(numbers, "no such")));
}

/* One query or key less than a rule needs. */
static void test_lengths(void **state) {
    (void)state;
    for (int i = 0; i < N_RULES; i++) {
        if (!rules[i].queries) continue;
        set_all(0);
        *number(rules[i].number) = 1;
        *number(rules[i].queries) = rules[i].min_queries;
        if (rules[i].min_keys) *number("n_keys") = rules[i].min_keys;
        assert_string_equal(qkv_heads_label(numbers), rules[i].label);
        *number(rules[i].queries) -= 1;
        assert_string_equal(qkv_heads_label(numbers), "");
        *number(rules[i].queries) = NAN;
        assert_string_equal(qkv_heads_label(numbers), "");
        *number(rules[i].queries) = 100;
        *number("n_keys") = rules[i].min_keys - 1;
        assert_string_equal(qkv_heads_label(numbers), rules[i].min_keys ? "" : rules[i].label);
    }
}

/* Everything holds; then the first rule does not, and so on. */
static void test_order(void **state) {
    (void)state;
    set_all(1);
    for (int i = 0; i < N_RULES; i++) {
        assert_string_equal(qkv_heads_label(numbers), rules[i].label);
        *number(rules[i].number) = 0;
    }
    assert_string_equal(qkv_heads_label(numbers), "");
}

static void test_thresholds(void **state) {
    (void)state;
    for (int i = 0; i < N_RULES; i++) {
        set_all(0);
        *number(rules[i].number) = nextafter(rules[i].threshold, 1);
        assert_string_equal(qkv_heads_label(numbers), rules[i].label);
        *number(rules[i].number) = rules[i].threshold;
        assert_string_equal(qkv_heads_label(numbers), rules[i].or_equal ? rules[i].label : "");
        *number(rules[i].number) = NAN;
        assert_string_equal(qkv_heads_label(numbers), "");
    }
}

/* Probes that were not made are NaN. */
static void test_without_probes(void **state) {
    (void)state;
    set_all(0);
    *number("duplicate") = *number("induction") = *number("antecedent") = NAN;
    assert_string_equal(qkv_heads_label(numbers), "");
    *number("mass_same_token") = 1;
    assert_string_equal(qkv_heads_label(numbers), "same-token");
    *number("duplicate") = 1;
    assert_string_equal(qkv_heads_label(numbers), "duplicate");
}

static void test_nan(void **state) {
    (void)state;
    set_all(1);
    *number("entropy") = NAN; /* a head whose weights are NaN has no label */
    assert_string_equal(qkv_heads_label(numbers), "");
    assert_string_equal(qkv_heads_label(NULL), "");
    *number("entropy") = 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),    cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_table),      cmocka_unit_test(test_order),
        cmocka_unit_test(test_thresholds), cmocka_unit_test(test_without_probes),
        cmocka_unit_test(test_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
