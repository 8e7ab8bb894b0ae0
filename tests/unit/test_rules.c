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

#include "qkv/inspect.h"

static qkv_head_stats stats;
static qkv_head_probes probes;

/* In the order of docs/statistics.md, with the number that each is about. */
static const struct {
    const char *label, *number;
    double threshold;
    double *at;
    int or_equal, needs_probes;
} rules[] = {
    { "next", "mass_next", 0.5, &stats.mass_next, 0, 0 },
    { "prev", "mass_previous", 0.5, &stats.mass_previous, 0, 0 },
    { "[CLS]", "mass_cls", 0.6, &stats.mass_cls, 0, 0 },
    { "[SEP]", "mass_sep", 0.6, &stats.mass_sep, 0, 0 },
    { "punctuation", "mass_punctuation", 0.6, &stats.mass_punctuation, 0, 0 },
    { "broad", "entropy_normalized", 0.78, &stats.entropy_normalized, 0, 0 },
    { "sink", "received_early", 0.3, &stats.received_early, 0, 0 },
    { "duplicate", "duplicate", 0.4, &probes.duplicate, 0, 1 },
    { "induction", "induction", 0.4, &probes.induction, 0, 1 },
    { "same-token", "mass_same_token", 0.4, &stats.mass_same_token, 0, 0 },
    { "coreference-like", "antecedent", 0.5, &probes.antecedent, 1, 1 },
};
enum { N_RULES = sizeof rules / sizeof *rules };

static void set_all(double value) {
    for (int i = 0; i < N_RULES; i++) *rules[i].at = value;
}

static void test_table(void **state) {
    (void)state;
    for (int i = 0; i < N_RULES; i++) {
        const qkv_head_rule *rule = qkv_inspect_rule(i);
        assert_string_equal(rule->label, rules[i].label);
        assert_string_equal(rule->number, rules[i].number);
        assert_true(rule->threshold == rules[i].threshold);
        assert_int_equal(rule->or_equal, rules[i].or_equal);
        assert_int_equal(rule->needs_probes, rules[i].needs_probes);
        assert_true(strlen(rule->label) < sizeof stats.label);
    }
    assert_null(qkv_inspect_rule(N_RULES));
    assert_null(qkv_inspect_rule(-1));
}

/* Everything holds; then the first rule does not, and so on. */
static void test_order(void **state) {
    (void)state;
    set_all(1);
    for (int i = 0; i < N_RULES; i++) {
        assert_string_equal(qkv_inspect_label(&stats, &probes), rules[i].label);
        *rules[i].at = 0;
    }
    assert_string_equal(qkv_inspect_label(&stats, &probes), "");
}

static void test_thresholds(void **state) {
    (void)state;
    for (int i = 0; i < N_RULES; i++) {
        set_all(0);
        *rules[i].at = nextafter(rules[i].threshold, 1);
        assert_string_equal(qkv_inspect_label(&stats, &probes), rules[i].label);
        *rules[i].at = rules[i].threshold;
        assert_string_equal(qkv_inspect_label(&stats, &probes),
                            rules[i].or_equal ? rules[i].label : "");
        *rules[i].at = NAN;
        assert_string_equal(qkv_inspect_label(&stats, &probes), "");
    }
}

static void test_without_probes(void **state) {
    (void)state;
    set_all(0);
    probes.duplicate = probes.induction = probes.antecedent = 1;
    assert_string_equal(qkv_inspect_label(&stats, NULL), "");
    stats.mass_same_token = 1;
    assert_string_equal(qkv_inspect_label(&stats, NULL), "same-token");
    assert_string_equal(qkv_inspect_label(&stats, &probes), "duplicate");
}

static void test_nan(void **state) {
    (void)state;
    set_all(1);
    stats.entropy = NAN; /* a head whose weights are NaN has no label */
    assert_string_equal(qkv_inspect_label(&stats, &probes), "");
    stats.entropy = 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),      cmocka_unit_test(test_order),
        cmocka_unit_test(test_thresholds), cmocka_unit_test(test_without_probes),
        cmocka_unit_test(test_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
