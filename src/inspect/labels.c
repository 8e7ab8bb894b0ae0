/*
 * Labels of heads. The first rule that holds names the head: Clark, Khandelwal, Levy and Manning
 * 2019, Gu et al. 2024; "duplicate", "induction", "same-token" and "coreference-like" have thresholds
 * of our own. docs/statistics.md has the table, and how the least lengths are derived.
 */
#include <math.h>

#include "inspect/labels.h"
#include "model/base.h"
#include "qkv/heads.h"

static const qkv_head_rule rules[] = {
    { "next", "mass_next", 0.5, 0, "n_queries", 6, 0 },
    { "prev", "mass_previous", 0.5, 0, "n_queries", 6, 0 },
    { "[CLS]", "mass_cls", 0.6, 0, "n_queries", 6, 0 },
    { "[SEP]", "mass_sep", 0.6, 0, "n_queries", 6, 0 },
    { "punctuation", "mass_punctuation", 0.6, 0, "n_queries", 6, 0 },
    { "broad", "entropy_normalized", 0.78, 0, NULL, 0, 0 },
    { "sink", "received_early", 0.3, 0, "n_rows", 32, 32 },
    { "duplicate", "duplicate", 0.4, 0, NULL, 0, 0 },
    { "induction", "induction", 0.4, 0, NULL, 0, 0 },
    { "same-token", "mass_same_token", 0.4, 0, "n_same_token", 4, 0 },
    { "coreference-like", "antecedent", 0.5, 1, NULL, 0, 0 },
};

enum { N_RULES = sizeof rules / sizeof *rules };
_Static_assert((int)N_RULES <= (int)QKVI_MOST_RULES, "each rule has a place");

const qkv_head_rule *qkv_heads_rule(int index) {
    return index >= 0 && index < N_RULES ? &rules[index] : NULL;
}

static int find(const char *name) { return name ? qkv_heads_find(name, strlen(name)) : -1; }

void qkvi_rule_places_find(qkvi_rule_places *places) {
    places->entropy = find("entropy");
    places->n_keys = find("n_keys");
    for (int i = 0; i < N_RULES; i++) {
        places->number[i] = find(rules[i].number);
        places->queries[i] = find(rules[i].queries);
    }
}

/* A NaN is neither above nor equal, and no length. */
static int holds(const qkvi_rule_places *places, int i, const double *numbers) {
    const qkv_head_rule *const rule = &rules[i];
    const double value = numbers[places->number[i]];
    if (rule->queries && !(numbers[places->queries[i]] >= rule->min_queries)) return 0;
    if (rule->min_keys && !(numbers[places->n_keys] >= rule->min_keys)) return 0;
    return value > rule->threshold || (rule->or_equal && value == rule->threshold);
}

int qkvi_rule_that_holds(const qkvi_rule_places *places, const double *numbers) {
    for (int i = 0; i < N_RULES && !isnan(numbers[places->entropy]); i++)
        if (holds(places, i, numbers)) return i;
    return -1;
}

const char *qkv_heads_label(const double *numbers) {
    qkvi_rule_places places;
    if (!numbers) return "";
    qkvi_rule_places_find(&places);
    const int rule = qkvi_rule_that_holds(&places, numbers);
    return rule < 0 ? "" : rules[rule].label;
}
