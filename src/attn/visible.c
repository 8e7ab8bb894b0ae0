/*
 * qkv_attention_rule and qkv_attention_visible_keys: the table of rules (rules.h) for those who ask
 * from outside, one query at a time.
 */
#include <inttypes.h>

#include "attn/problem.h"
#include "attn/rules.h"
#include "core/options.h"
#include "core/status.h"

const qkv_rule *qkv_attention_rule(int index) {
    const qkvi_rule *const rule = qkvi_rule_at(index);
    return rule ? &rule->shown : NULL;
}

/* What no rule takes away at the ends, within the n keys that there are. */
static qkvi_range interval_of(const qkv_attention_desc *d, qkvi_query query, int64_t n) {
    const qkvi_rule *rule;
    qkvi_range keys = { 0, n };
    for (int r = 0; (rule = qkvi_rule_at(r)); r++)
        if (rule->narrow && d->flags & rule->shown.flag) rule->narrow(d, query, &keys);
    return qkvi_range_clip(keys.begin, keys.end, n);
}

static bool is_seen(const qkv_attention_desc *d, qkvi_query query, int64_t j) {
    const qkvi_rule *rule;
    for (int r = 0; (rule = qkvi_rule_at(r)); r++)
        if (rule->sees && d->flags & rule->shown.flag && !rule->sees(d, query, j)) return false;
    return true;
}

/* Of the interval the first part in which every key is seen. */
static qkvi_range first_part(const qkv_attention_desc *d, qkvi_query query, qkvi_range keys) {
    int64_t begin = keys.begin, end;
    while (begin < keys.end && !is_seen(d, query, begin)) begin++;
    for (end = begin; end < keys.end && is_seen(d, query, end);) end++;
    return (qkvi_range){ begin, end };
}

/* A rule may read an array of the caller's key by key. */
static bool reads_keys(const qkv_attention_desc *d) {
    const qkvi_rule *rule;
    for (int r = 0; (rule = qkvi_rule_at(r)); r++)
        if (rule->sees && d->flags & rule->shown.flag) return true;
    return false;
}

/* Lists with an entry for each token are read here without a call that checks their addresses. */
static qkv_status check_aligned(const char *name, const int32_t *list, qkv_error *error) {
    if ((uintptr_t)list % sizeof *list == 0) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is not aligned to its element, %zu bytes",
                          name, sizeof *list);
}

static qkv_status check_index(const char *name, int64_t value, int64_t n, qkv_error *error) {
    if (value >= 0 && value < n) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s = %" PRId64 " is not in [0, %" PRId64 ")",
                          name, value, n);
}

qkv_status qkv_attention_visible_keys(const qkv_attention_desc *desc, int64_t b, int64_t i,
                                      int64_t from, int64_t *first, int64_t *end,
                                      qkv_error *error) {
    qkvi_problem p;
    qkv_attention_desc d = { 0 };
    QKV_TRY(qkvi_problem_shape(desc, true, &p, error));
    QKV_TRY(qkvi_options_read(&d, sizeof d, desc, "desc", error));
    if (!first || !end)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", first ? "end" : "first");
    QKV_TRY(check_index("b", b, p.n_batch, error));
    QKV_TRY(check_index("i", i, qkvi_len_q(&p, b), error));
    QKV_TRY(check_aligned("seg_q", p.seg_q, error));
    QKV_TRY(check_aligned("seg_k", p.seg_k, error));
    const qkvi_query query = { b, i, i + (p.q_offsets ? p.q_offsets[b] : p.q_offset) };
    qkvi_range keys = interval_of(&d, query, qkvi_len_k(&p, b));
    keys.begin = qkvi_min_i64(qkvi_max_i64(keys.begin, from), keys.end);
    if (reads_keys(&d)) keys = first_part(&d, query, keys);
    *first = keys.begin;
    *end = keys.end;
    return QKV_OK;
}
