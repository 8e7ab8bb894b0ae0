/*
 * See rules.h: the rules one by one, for those who list, show or explain them. Passes do not call
 * these functions; they take intervals of mask.h, which a new rule needs, too.
 */
#include "attn/rules.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/status.h"

/* ---- What each rule lets a query see --------------------------------------------------------- */

static void causal_keys(const qkv_attention_desc *d, qkvi_query query, qkvi_range *keys) {
    const int64_t prefix = d->flags & QKV_SET_PREFIX_LEN ? d->prefix_len[query.b] : 0;
    keys->end = qkvi_min_i64(keys->end, qkvi_max_i64(query.at + 1, prefix));
}

static void window_keys(const qkv_attention_desc *d, qkvi_query query, qkvi_range *keys) {
    if (d->window_left >= 0 && d->window_left < QKVI_NO_WINDOW)
        keys->begin = qkvi_max_i64(keys->begin, query.at - d->window_left);
    if (d->window_right >= 0 && d->window_right < QKVI_NO_WINDOW)
        keys->end = qkvi_min_i64(keys->end, query.at + d->window_right + 1);
}

static void chunk_keys(const qkv_attention_desc *d, qkvi_query query, qkvi_range *keys) {
    const int64_t within = query.at % d->chunk,
                  begin = query.at - within - (within < 0 ? d->chunk : 0);
    keys->begin = qkvi_max_i64(keys->begin, begin);
    keys->end = qkvi_min_i64(keys->end, begin + d->chunk);
}

static bool segments_see(const qkv_attention_desc *d, qkvi_query query, int64_t j) {
    return d->seg_q[query.b * d->seg_q_stride + query.i] == d->seg_k[query.b * d->seg_k_stride + j];
}

static void kv_len_keys(const qkv_attention_desc *d, qkvi_query query, qkvi_range *keys) {
    keys->end = qkvi_min_i64(keys->end, d->kv_len[query.b]);
}

/* Rows behind the last query stand behind the last key. */
static void q_len_keys(const qkv_attention_desc *d, qkvi_query query, qkvi_range *keys) {
    if (query.i >= d->q_len[query.b]) keys->begin = INT64_MAX;
}

/* ---- The table ------------------------------------------------------------------------------- */

#define FLAG(name)   .shown.flag = QKV_SET_##name, .flag_name = "QKV_SET_" #name
#define FIELD(field) .name = #field, .offset = offsetof(qkv_attention_desc, field)
#define FIELDS(list) .shown.fields = list, .shown.n_fields = (int)(sizeof(list) / sizeof *(list))

static const qkv_rule_field prefix_fields[] = {
    { FIELD(prefix_len), .per_batch = 1, .least = 0, .most = QKVI_MAX_SIZE, .limit = "len_k" },
};
static const qkv_rule_field window_fields[] = {
    { FIELD(window_left), .least = -1, .most = INT64_MAX, .least_means = "unbounded" },
    { FIELD(window_right), .least = -1, .most = INT64_MAX, .least_means = "unbounded" },
};
static const qkv_rule_field chunk_fields[] = {
    { FIELD(chunk), .least = 1, .most = QKVI_MAX_SIZE },
};
static const qkv_rule_field kv_len_fields[] = {
    { FIELD(kv_len), .per_batch = 1, .least = 0, .most = QKVI_MAX_SIZE, .limit = "len_k" },
};
static const qkv_rule_field q_len_fields[] = {
    { FIELD(q_len), .per_batch = 1, .least = 0, .most = QKVI_MAX_SIZE, .limit = "len_q" },
};
static const qkv_rule_field q_offset_fields[] = {
    { FIELD(q_offset), .least = -QKVI_MAX_SIZE, .most = QKVI_MAX_SIZE },
    { FIELD(q_offsets), .per_batch = 1, .nullable = 1, .least = -QKVI_MAX_SIZE,
      .most = QKVI_MAX_SIZE },
};

static const qkvi_rule table[] = {
    { .shown.name = "causal",
      .shown.definition = "j <= i + q_offset",
      FLAG(CAUSAL),
      .narrow = causal_keys },
    { .shown.name = "window",
      .shown.definition = "-window_left <= j - (i + q_offset) <= window_right",
      FLAG(WINDOW),
      FIELDS(window_fields),
      .refused = QKV_ERR_ARGUMENT,
      .narrow = window_keys },
    { .shown.name = "prefix",
      .shown.definition = "with causal: j < prefix_len, or j <= i + q_offset",
      .shown.needs = QKV_SET_CAUSAL,
      FLAG(PREFIX_LEN),
      FIELDS(prefix_fields),
      .refused = QKV_ERR_SHAPE },
    { .shown.name = "chunk",
      .shown.definition = "floor((i + q_offset) / chunk) == floor(j / chunk)",
      FLAG(CHUNK),
      FIELDS(chunk_fields),
      .refused = QKV_ERR_ARGUMENT,
      .narrow = chunk_keys },
    { .shown.name = "segments",
      .shown.definition = "seg_q[i] == seg_k[j]",
      FLAG(SEGMENTS),
      .sees = segments_see },
    { .shown.name = "kv_len",
      .shown.definition = "j < kv_len",
      FLAG(KV_LEN),
      FIELDS(kv_len_fields),
      .refused = QKV_ERR_SHAPE,
      .narrow = kv_len_keys },
    { .shown.name = "q_len",
      .shown.definition = "i < q_len",
      FLAG(Q_LEN),
      FIELDS(q_len_fields),
      .refused = QKV_ERR_SHAPE,
      .narrow = q_len_keys },
    { .shown.name = "q_offset",
      .shown.definition = "query i is at i + q_offset among the keys",
      FLAG(Q_OFFSET),
      FIELDS(q_offset_fields),
      .refused = QKV_ERR_SHAPE },
};

const qkvi_rule *qkvi_rule_at(int index) {
    const int n = (int)(sizeof table / sizeof *table);
    return index >= 0 && index < n ? &table[index] : NULL;
}

uint32_t qkvi_rules_flags(void) {
    uint32_t flags = 0;
    for (size_t n = 0; n < sizeof table / sizeof *table; n++) flags |= table[n].shown.flag;
    return flags;
}

/* What the problem keeps for the kernels; all fields are in range. */
static void take(const qkv_attention_desc *d, qkvi_problem *p) {
    const bool window = d->flags & QKV_SET_WINDOW, offset = d->flags & QKV_SET_Q_OFFSET;
    const int64_t left = window && d->window_left >= 0 ? d->window_left : QKVI_NO_WINDOW,
                  right = window && d->window_right >= 0 ? d->window_right : QKVI_NO_WINDOW;
    p->window_left = qkvi_min_i64(left, QKVI_NO_WINDOW);
    p->window_right = qkvi_min_i64(right, QKVI_NO_WINDOW);
    p->causal = d->flags & QKV_SET_CAUSAL;
    p->prefix_len = d->flags & QKV_SET_PREFIX_LEN ? d->prefix_len : NULL;
    p->chunk = d->flags & QKV_SET_CHUNK ? d->chunk : 0;
    p->q_offset = offset ? d->q_offset : 0;
    p->q_offsets = offset ? d->q_offsets : NULL;
    p->kv_len = d->flags & QKV_SET_KV_LEN ? d->kv_len : NULL;
    p->q_len = d->flags & QKV_SET_Q_LEN ? d->q_len : NULL;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static const void *slot_of(const qkv_attention_desc *d, const qkv_rule_field *field) {
    return (const char *)d + field->offset;
}

static int64_t most_of(const qkv_attention_desc *d, const qkv_rule_field *field) {
    if (!field->limit) return field->most;
    return strcmp(field->limit, "len_k") == 0 ? d->len_k : d->len_q;
}

/* b: -1 for a number that all batches share. */
static qkv_status check_value(const qkv_attention_desc *d, const qkvi_rule *rule,
                              const qkv_rule_field *field, int64_t b, int64_t value, qkv_error *e) {
    const int64_t most = most_of(d, field);
    char entry[32] = "";
    if (value >= field->least && value <= most) return QKV_OK;
    if (b >= 0) snprintf(entry, sizeof entry, "[%" PRId64 "]", b);
    if (field->least_means)
        return qkvi_error_set(e, rule->refused, "%s%s = %" PRId64 " is less than %" PRId64 " (%s)",
                              field->name, entry, value, field->least, field->least_means);
    return qkvi_error_set(e, rule->refused,
                          "%s%s = %" PRId64 " is not in [%" PRId64 ", %" PRId64 "]", field->name,
                          entry, value, field->least, most);
}

static qkv_status check_list(const qkv_attention_desc *d, const qkvi_rule *rule,
                             const qkv_rule_field *field, const int64_t *list, qkv_error *e) {
    if (!list && !field->nullable && d->n_batch > 0)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s is NULL, but %s is set", field->name,
                              rule->flag_name);
    if ((uintptr_t)list % sizeof *list)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s is not aligned to its element, %zu bytes",
                              field->name, sizeof *list);
    for (int64_t b = 0; list && b < d->n_batch; b++)
        QKV_TRY(check_value(d, rule, field, b, list[b], e));
    return QKV_OK;
}

/* A list that is not NULL stands in place of the number before it, which is not looked at. */
static qkv_status check_fields(const qkv_attention_desc *d, const qkvi_rule *rule, qkv_error *e) {
    for (int n = 0; n < rule->shown.n_fields; n++) {
        const qkv_rule_field *const field = &rule->shown.fields[n], *const next = field + 1;
        const bool replaced = n + 1 < rule->shown.n_fields && next->nullable &&
                              *(const int64_t *const *)slot_of(d, next);
        const void *const slot = slot_of(d, field);
        if (replaced) continue;
        if (field->per_batch)
            QKV_TRY(check_list(d, rule, field, *(const int64_t *const *)slot, e));
        else
            QKV_TRY(check_value(d, rule, field, -1, *(const int64_t *)slot, e));
    }
    return QKV_OK;
}

static const char *flag_name(uint32_t flag) {
    int n = 0;
    while (table[n].shown.flag != flag) n++;
    return table[n].flag_name;
}

qkv_status qkvi_rules_read(const qkv_attention_desc *d, qkvi_problem *p, qkv_error *e) {
    for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
        const qkv_rule *const rule = &table[n].shown;
        if (!(d->flags & rule->flag)) continue;
        if (rule->needs && !(d->flags & rule->needs))
            return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s is set without %s", table[n].flag_name,
                                  flag_name(rule->needs));
        QKV_TRY(check_fields(d, &table[n], e));
    }
    take(d, p);
    return QKV_OK;
}
