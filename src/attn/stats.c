/* See stats.h; the arithmetic is in kernels/tmpl/attend_stats.h and decode_stats.h. */
#include "attn/stats.h"

#include <inttypes.h>
#include <string.h>

#include "attn/desc_packed.h"
#include "core/options.h"

/* ---- What is asked for ----------------------------------------------------------------------- */

static qkv_status check_offsets(const qkv_attention_stats *s, qkv_error *e) {
    if ((uintptr_t)s->offsets % sizeof *s->offsets)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                              "stats.offsets is not aligned to its element, %zu bytes",
                              sizeof *s->offsets);
    for (int64_t n = 0; n <= s->n_offsets; n++) {
        const int64_t least = n ? s->offsets[n - 1] : -QKVI_MAX_SIZE;
        if (s->offsets[n] < least || s->offsets[n] > QKVI_MAX_SIZE)
            return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                                  "stats.offsets[%" PRId64 "] = %" PRId64 " is not in [%" PRId64
                                  ", %" PRId64 "]",
                                  n, s->offsets[n], least, QKVI_MAX_SIZE);
    }
    return QKV_OK;
}

static qkv_status check_tokens(const qkv_attention_stats *s, const char *name, const float *to,
                               qkv_error *e) {
    QKV_TRY(qkvi_option_require("stats", to, s->tokens_q, name, "tokens_q", e));
    return qkvi_option_require("stats", to, s->tokens_k, name, "tokens_k", e);
}

static bool wants_tokens(const qkv_attention_stats *s) {
    return s->same_token || s->duplicate || s->induction;
}

qkv_status qkvi_stats_read(const qkv_attention_desc *d, qkvi_problem *p, qkv_error *e) {
    qkv_attention_stats *s = &p->stats;
    if (!d->stats)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "stats is NULL, but QKV_SET_STATS is set");
    QKV_TRY(qkvi_options_read(s, sizeof *s, d->stats, "stats", e));
    p->has_stats = true;
    QKV_TRY(qkvi_option_check("stats", "top_k", s->top_k, 0, QKV_STATS_MAX_TOP, e));
    QKV_TRY(qkvi_option_check("stats", "n_classes", s->n_classes, 0, QKV_STATS_MAX_CLASSES, e));
    QKV_TRY(qkvi_option_check("stats", "n_offsets", s->n_offsets, 0, QKV_STATS_MAX_OFFSETS, e));
    QKV_TRY(qkvi_option_require("stats", s->top_keys, s->top_k, "top_keys", "top_k", e));
    QKV_TRY(qkvi_option_require("stats", s->top_weights, s->top_k, "top_weights", "top_k", e));
    QKV_TRY(qkvi_option_require("stats", s->top_scores, s->top_k, "top_scores", "top_k", e));
    QKV_TRY(
        qkvi_option_require("stats", s->class_mass, s->n_classes, "class_mass", "n_classes", e));
    QKV_TRY(
        qkvi_option_require("stats", s->offset_mass, s->n_offsets, "offset_mass", "n_offsets", e));
    QKV_TRY(qkvi_option_require("stats", s->offset_mass, s->offsets, "offset_mass", "offsets", e));
    if (s->offset_mass) QKV_TRY(check_offsets(s, e));
    QKV_TRY(qkvi_option_require("stats", s->weighted_mass, s->key_weights, "weighted_mass",
                                "key_weights", e));
    QKV_TRY(check_tokens(s, "same_token", s->same_token, e));
    QKV_TRY(check_tokens(s, "duplicate", s->duplicate, e));
    QKV_TRY(check_tokens(s, "induction", s->induction, e));
    if (!s->top_keys && !s->top_weights && !s->top_scores) s->top_k = 0;
    if (s->top_k && p->len_k > QKVI_STATS_MOST_KEYS)
        return qkvi_error_set(e, QKV_ERR_LIMIT,
                              "stats.top_k = %" PRId64 " needs len_k = %" PRId64
                              " to be at most %d",
                              s->top_k, p->len_k, QKVI_STATS_MOST_KEYS);
    if (!s->class_mass) s->n_classes = 0;
    if (!s->offset_mass) s->n_offsets = 0;
    return qkvi_check_packed_stride(p, "stats", s->stride, e);
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

/* n numbers in each row; element: its bytes. A row that steps over itself stays one. */
static void add_rows(const qkvi_problem *p, qkvi_arrays *all, const char *name, const void *data,
                     int64_t n, size_t element) {
    const int64_t size[4] = { qkvi_n_arrays(p), p->n_heads, qkvi_rows_q(p), n };
    int64_t stride[3];
    if (!data) return;
    for (int i = 0; i < 3; i++)
        if (__builtin_mul_overflow(p->stats.stride[i], n, &stride[i])) stride[i] = INT64_MAX;
    qkvi_array *rows = qkvi_arrays_add(all, name, data, size, stride, true);
    rows->elem_bytes = (int64_t)element;
    rows->strides = "stats.stride";
}

static void add_heads(const qkvi_problem *p, qkvi_arrays *all, const char *name, const void *data) {
    const int64_t size[4] = { 1, 1, p->n_batch, p->n_heads }, stride[3] = { 0, 0, p->n_heads };
    if (data) qkvi_arrays_add(all, name, data, size, stride, true)->elem_bytes = sizeof(int64_t);
}

/* Of each batch and, where n_heads is not 1, each head n elements. */
static void add_inputs(const qkvi_problem *p, qkvi_arrays *all, const char *name, const void *data,
                       int64_t n_heads, int64_t n, const int64_t *of, size_t element) {
    const int64_t size[4] = { p->n_batch, n_heads, 1, n };
    const int64_t stride[3] = { of[0], n_heads > 1 ? of[1] : 0, 0 };
    qkvi_arrays_add(all, name, data, size, stride, false)->elem_bytes = (int64_t)element;
}

void qkvi_stats_arrays(const qkvi_problem *p, qkvi_arrays *all) {
    const qkv_attention_stats *s = &p->stats;
    const struct {
        const char *name;
        const float *data;
        int64_t n;
    } floats[] = {
        { "stats.largest", s->largest, 1 },
        { "stats.entropy", s->entropy, 1 },
        { "stats.effective_keys", s->effective_keys, 1 },
        { "stats.mean_distance", s->mean_distance, 1 },
        { "stats.mean_square_distance", s->mean_square_distance, 1 },
        { "stats.logit_mean", s->logit_mean, 1 },
        { "stats.logit_variance", s->logit_variance, 1 },
        { "stats.logit_largest", s->logit_largest, 1 },
        { "stats.top_weights", s->top_weights, s->top_k },
        { "stats.top_scores", s->top_scores, s->top_k },
        { "stats.class_mass", s->class_mass, s->n_classes },
        { "stats.offset_mass", s->offset_mass, s->n_offsets },
        { "stats.weighted_mass", s->weighted_mass, 1 },
        { "stats.same_token", s->same_token, 1 },
        { "stats.duplicate", s->duplicate, 1 },
        { "stats.induction", s->induction, 1 },
    };
    if (!p->has_stats) return;
    for (size_t n = 0; n < sizeof floats / sizeof *floats; n++)
        add_rows(p, all, floats[n].name, floats[n].data, floats[n].n, sizeof(float));
    add_rows(p, all, "stats.n_seen", s->n_seen, 1, sizeof(int64_t));
    add_rows(p, all, "stats.top_keys", s->top_keys, s->top_k, sizeof(int64_t));
    add_heads(p, all, "stats.n_empty_rows", s->n_empty_rows);
    add_heads(p, all, "stats.n_nan_rows", s->n_nan_rows);
    if (s->n_classes)
        add_inputs(p, all, "stats.classes", s->classes, 1, p->len_k, &s->classes_stride, 1);
    if (wants_tokens(s)) {
        add_inputs(p, all, "stats.tokens_q", s->tokens_q, 1, p->len_q, &s->tokens_q_stride, 4);
        add_inputs(p, all, "stats.tokens_k", s->tokens_k, 1, p->len_k, &s->tokens_k_stride, 4);
    }
    if (s->weighted_mass)
        add_inputs(p, all, "stats.key_weights", s->key_weights, p->n_heads, p->len_k,
                   s->key_weights_stride, 4);
    if (s->n_offsets) {
        const int64_t size[4] = { 1, 1, 1, s->n_offsets + 1 }, stride[3] = { 0 };
        qkvi_arrays_add(all, "stats.offsets", s->offsets, size, stride, false)->elem_bytes =
            sizeof *s->offsets;
    }
}

/* ---- For the kernel -------------------------------------------------------------------------- */

/*
 * Of classes and, after them, of key_weights, which are a class to which a key belongs by degrees.
 */
static int64_t n_masses(const qkvi_problem *p) {
    return p->stats.n_classes + (p->stats.weighted_mass ? 1 : 0);
}

qkvi_stats_space *qkvi_stats_lay_out(const qkvi_problem *p, qkvi_cutter *cutter, int n_threads) {
    const int64_t masses = n_masses(p);
    const int64_t top_row = qkvi_round_up(p->stats.top_k, QKVI_STATS_LIST);
    qkvi_stats_space *all = qkvi_cut(cutter, n_threads, sizeof *all), one;
    for (int n = 0; n < n_threads; n++) {
        qkvi_stats_space *to = all ? &all[n] : &one;
        to->scratch = qkvi_cut(cutter, 1, sizeof *to->scratch);
        to->members = qkvi_cut(cutter, masses * QKVI_KEY_BLOCK, sizeof(float));
        to->class_sums = qkvi_cut(cutter, masses * QKVI_QUERY_BLOCK, sizeof(float));
        to->top = qkvi_cut(cutter, top_row * QKVI_QUERY_BLOCK, sizeof(int64_t));
        to->offset_sums = qkvi_cut(cutter, p->stats.n_offsets * QKVI_QUERY_BLOCK, sizeof(float));
    }
    return all;
}

size_t qkvi_stats_sums_bytes(const qkvi_problem *p) {
    const int64_t top_row = qkvi_round_up(p->stats.top_k, QKVI_STATS_LIST);
    const int64_t n_floats = n_masses(p) + p->stats.n_offsets;
    const int64_t bytes = (int64_t)sizeof(qkvi_stats_kept) + top_row * (int64_t)sizeof(int64_t) +
                          n_floats * (int64_t)sizeof(float);
    return p->has_stats ? (size_t)qkvi_round_up(bytes, QKVI_ALIGNMENT) : 0;
}

static float *floats_at(float *x, int64_t at) { return x ? x + at : NULL; }
static int64_t *ints_at(int64_t *x, int64_t at) { return x ? x + at : NULL; }

qkvi_attend_stats *qkvi_stats_from(const qkvi_problem *p, const qkvi_rules *rules, int64_t b,
                                   int64_t h, int64_t i0, const qkvi_stats_space *space,
                                   qkvi_attend_stats *out) {
    const qkv_attention_stats *s = &p->stats;
    if (!space) return NULL;
    const int64_t at = qkvi_q_at(p, s->stride, b, h, i0);
    memset(out, 0, sizeof *out);
    out->own = *space;
    out->position = i0 + rules->offset;
    out->top_k = (int)s->top_k;
    out->n_classes = (int)s->n_classes;
    out->n_masses = (int)n_masses(p);
    if (s->weighted_mass)
        out->key_weights =
            s->key_weights + b * s->key_weights_stride[0] + h * s->key_weights_stride[1];
    if (wants_tokens(s)) {
        out->tokens_q = s->tokens_q + b * s->tokens_q_stride + i0;
        out->tokens_k = s->tokens_k + b * s->tokens_k_stride;
    }
    out->n_offsets = (int)s->n_offsets;
    out->classes = s->n_classes ? s->classes + b * s->classes_stride : NULL;
    out->offsets = s->offsets;
    out->row = s->stride[2];
    out->largest = floats_at(s->largest, at);
    out->entropy = floats_at(s->entropy, at);
    out->effective_keys = floats_at(s->effective_keys, at);
    out->mean_distance = floats_at(s->mean_distance, at);
    out->mean_square_distance = floats_at(s->mean_square_distance, at);
    out->logit_mean = floats_at(s->logit_mean, at);
    out->logit_variance = floats_at(s->logit_variance, at);
    out->logit_largest = floats_at(s->logit_largest, at);
    out->n_seen = ints_at(s->n_seen, at);
    out->top_keys = ints_at(s->top_keys, at * s->top_k);
    out->top_weights = floats_at(s->top_weights, at * s->top_k);
    out->top_scores = floats_at(s->top_scores, at * s->top_k);
    out->class_mass = floats_at(s->class_mass, at * s->n_classes);
    out->offset_mass = floats_at(s->offset_mass, at * s->n_offsets);
    out->weighted_mass = floats_at(s->weighted_mass, at);
    out->same_token = floats_at(s->same_token, at);
    out->duplicate = floats_at(s->duplicate, at);
    out->induction = floats_at(s->induction, at);
    return out;
}

static void add_to(int64_t *counts, int64_t at, int64_t n) {
    if (counts && n) __atomic_fetch_add(&counts[at], n, __ATOMIC_RELAXED);
}

void qkvi_stats_begin(const qkvi_problem *p) {
    const size_t bytes = (size_t)(p->n_batch * p->n_heads) * sizeof(int64_t);
    if (p->stats.n_empty_rows && bytes) memset(p->stats.n_empty_rows, 0, bytes);
    if (p->stats.n_nan_rows && bytes) memset(p->stats.n_nan_rows, 0, bytes);
}

void qkvi_stats_count(const qkvi_problem *p, int64_t b, int64_t h, const qkvi_attend_stats *done) {
    add_to(p->stats.n_empty_rows, b * p->n_heads + h, done->n_empty);
    add_to(p->stats.n_nan_rows, b * p->n_heads + h, done->n_nan);
}

/* ---- A range of rows ------------------------------------------------------------------------- */

void qkvi_stats_take_rows(qkvi_problem *p, int64_t begin) {
    qkv_attention_stats *const s = &p->stats;
    const int64_t at = begin * s->stride[2];
    float **const floats[] = { &s->largest,        &s->entropy,       &s->effective_keys,
                               &s->mean_distance,  &s->logit_mean,    &s->mean_square_distance,
                               &s->logit_variance, &s->logit_largest, &s->weighted_mass,
                               &s->same_token,     &s->duplicate,     &s->induction };
    for (size_t n = 0; n < sizeof floats / sizeof *floats; n++)
        *floats[n] = floats_at(*floats[n], at);
    s->n_seen = ints_at(s->n_seen, at);
    s->top_keys = ints_at(s->top_keys, at * s->top_k);
    s->top_weights = floats_at(s->top_weights, at * s->top_k);
    s->top_scores = floats_at(s->top_scores, at * s->top_k);
    s->class_mass = floats_at(s->class_mass, at * s->n_classes);
    s->offset_mass = floats_at(s->offset_mass, at * s->n_offsets);
    if (s->tokens_q) s->tokens_q += begin;
}

/* ---- Public helper --------------------------------------------------------------------------- */

void qkv_attention_stats_fill(qkv_attention_stats *stats, const qkv_attention_desc *desc) {
    qkv_attention_desc d = { 0 };
    if (!stats || !desc || qkvi_options_read(&d, sizeof d, desc, "desc", NULL) != QKV_OK) return;
    const qkv_attention_stats made = {
        .stride = { (int64_t)((uint64_t)d.n_heads * (uint64_t)d.len_q), d.len_q, 1 }
    };
    qkvi_options_write(stats, &made, sizeof made);
}
