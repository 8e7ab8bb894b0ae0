/*
 * Labels of heads. The first rule that holds names the head: Clark, Khandelwal, Levy and Manning
 * 2019, Gu et al. 2024; "duplicate", "induction", "same-token" and "coreference-like" have thresholds
 * of our own. docs/statistics.md has the table.
 */
#include <math.h>
#include <stddef.h>

#include "qkv/inspect.h"

static const struct {
    qkv_head_rule rule;
    size_t offset; /* of the number, in qkv_head_probes or qkv_head_stats */
} rules[] = {
    { { "next", "mass_next", 0.5, 0, 0 }, offsetof(qkv_head_stats, mass_next) },
    { { "prev", "mass_previous", 0.5, 0, 0 }, offsetof(qkv_head_stats, mass_previous) },
    { { "[CLS]", "mass_cls", 0.6, 0, 0 }, offsetof(qkv_head_stats, mass_cls) },
    { { "[SEP]", "mass_sep", 0.6, 0, 0 }, offsetof(qkv_head_stats, mass_sep) },
    { { "punctuation", "mass_punctuation", 0.6, 0, 0 },
      offsetof(qkv_head_stats, mass_punctuation) },
    { { "broad", "entropy_normalized", 0.78, 0, 0 }, offsetof(qkv_head_stats, entropy_normalized) },
    { { "sink", "received_early", 0.3, 0, 0 }, offsetof(qkv_head_stats, received_early) },
    { { "duplicate", "duplicate", 0.4, 0, 1 }, offsetof(qkv_head_probes, duplicate) },
    { { "induction", "induction", 0.4, 0, 1 }, offsetof(qkv_head_probes, induction) },
    { { "same-token", "mass_same_token", 0.4, 0, 0 }, offsetof(qkv_head_stats, mass_same_token) },
    { { "coreference-like", "antecedent", 0.5, 1, 1 }, offsetof(qkv_head_probes, antecedent) },
};

enum { N_RULES = sizeof rules / sizeof *rules };

const qkv_head_rule *qkv_inspect_rule(int index) {
    return index >= 0 && index < N_RULES ? &rules[index].rule : NULL;
}

/* A NaN is neither above nor equal. */
static int holds(int index, const qkv_head_stats *stats, const qkv_head_probes *probes) {
    const qkv_head_rule *const rule = &rules[index].rule;
    const void *const numbers = rule->needs_probes ? (const void *)probes : stats;
    if (!numbers) return 0;
    const double value = *(const double *)((const char *)numbers + rules[index].offset);
    return value > rule->threshold || (rule->or_equal && value == rule->threshold);
}

const char *qkv_inspect_label(const qkv_head_stats *stats, const qkv_head_probes *probes) {
    if (isnan(stats->entropy)) return "";
    for (int i = 0; i < N_RULES; i++)
        if (holds(i, stats, probes)) return rules[i].rule.label;
    return "";
}
