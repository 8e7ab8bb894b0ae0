/**
 * Heads of one attention on one input, and their numbers. The heads of a layer of a run are
 * measured together, so that short texts keep all threads busy; those of arrays one by one, so that
 * memory does not grow with the number of heads.
 */
#include "inspect/heads_impl.h"

#include <math.h>

#include "attn/ctx.h"
#include "core/fpstate.h"
#include "core/options.h"
#include "inspect/head_rows.h"
#include "inspect/rows.h"

const int64_t *qkv_heads_offsets(void) { return qkvi_head_offsets; }

/* ---- The object ------------------------------------------------------------------------------ */

qkv_status qkvi_heads_make(qkv_ctx *ctx, const qkv_heads_info *info, qkv_heads **heads,
                           qkv_error *error) {
    qkv_heads *const h = qkvi_calloc_array(1, sizeof *h);
    *heads = h;
    if (!h) return qkvi_no_memory(error, "heads");
    h->ctx = ctx;
    h->info = *info;
    h->n_all = info->n_layers * info->n_heads;
    h->info.n_inputs = 1;
    h->peers = qkvi_peers_of(NULL, ctx ? ctx->pool : NULL); /* means have no context */
    const size_t n = (size_t)h->n_all;
    h->sources = qkvi_calloc_array(n, sizeof *h->sources);
    h->descs = qkvi_calloc_array(n, sizeof *h->descs);
    return h->sources && h->descs ? QKV_OK : qkvi_no_memory(error, "heads");
}

static void free_whole(qkv_heads *heads) {
    for (int side = 0; side < 2; side++) {
        for (int64_t h = 0; heads->whole[side] && h < heads->n_whole; h++)
            free(heads->whole[side][h]);
        free(heads->whole[side]);
    }
}

void qkv_heads_free(qkv_heads *heads) {
    if (!heads) return;
    qkvi_heads_mean_free(heads->mean);
    free(heads->sources);
    free(heads->descs);
    free(heads->layer_rules);
    free(heads->uncut);
    free(heads->ids);
    free(heads->query_kinds);
    free(heads->key_kinds);
    free(heads->numbers);
    free(heads->empty);
    free(heads->peaks);
    free(heads->own_lse);
    free(heads->own_seen);
    free_whole(heads);
    qkvi_head_pieces_free(&heads->pieces);
    qkvi_peers_free(&heads->peers);
    free(heads);
}

const qkv_heads_info *qkv_heads_get_info(const qkv_heads *heads) {
    return heads ? &heads->info : NULL;
}

/* Of a run: all layers have the same. */
static void describe_distances(const qkv_heads *heads, int64_t index, qkv_attention_desc *desc) {
    const qkv_attention_desc *const from = &heads->desc;
    const int64_t head = index % heads->info.n_heads;
    if (from->flags & QKV_SET_ALIBI) {
        desc->flags |= QKV_SET_ALIBI;
        desc->alibi_slopes = from->alibi_slopes + head;
    }
    if (!(from->flags & QKV_SET_DISTANCE_BIAS)) return;
    desc->flags |= QKV_SET_DISTANCE_BIAS;
    desc->distance_bias = from->distance_bias + head * from->distance_bias_stride;
    desc->distance_bias_stride = from->distance_bias_stride;
    desc->distance_before = from->distance_before;
    desc->distance_after = from->distance_after;
}

/* Of arrays, whose heads are described one by one. */
static void describe_scores(const qkv_heads *heads, int64_t index, qkv_attention_desc *desc) {
    const qkvi_head_source *const source = &heads->sources[index];
    if (heads->softcap > 0) {
        desc->flags |= QKV_SET_SOFTCAP;
        desc->softcap = heads->softcap;
    }
    if (source->sink) {
        desc->flags |= QKV_SET_SINKS;
        desc->sinks = source->sink;
    }
    if (source->slope) {
        desc->flags |= QKV_SET_ALIBI;
        desc->alibi_slopes = source->slope;
    }
    if (!source->added) return;
    desc->flags |= QKV_SET_MASK;
    desc->mask = source->added;
    desc->mask_type = QKV_MASK_F32;
    desc->mask_stride[2] = heads->info.n_keys;
    desc->mask_stride[3] = 1;
}

void qkvi_heads_describe(const qkv_heads *heads, int64_t first, int64_t n_heads,
                         qkv_attention_desc *desc) {
    const qkv_heads_info *const info = &heads->info;
    const int64_t n_kv_heads = n_heads > 1 && heads->n_kv_heads > 0 ? heads->n_kv_heads : n_heads;
    const qkvi_rules *const rules = qkvi_heads_rules(heads, first);
    qkv_attention_desc_contiguous(desc, 1, n_heads, n_kv_heads, info->n_queries, info->n_keys,
                                  info->head_dim, 0);
    desc->scale = heads->sources[first].scale;
    desc->flags |= QKV_SET_SCALE;
    if (info->causal) desc->flags |= QKV_SET_CAUSAL;
    if (info->q_offset != 0) desc->flags |= QKV_SET_Q_OFFSET;
    desc->q_offset = info->q_offset;
    if (heads->desc.flags & QKV_SET_WINDOW) {
        desc->flags |= QKV_SET_WINDOW;
        desc->window_left = heads->desc.window_left;
        desc->window_right = heads->desc.window_right;
    }
    if (heads->layer_rules && (rules->left < QKVI_NO_WINDOW || rules->right < QKVI_NO_WINDOW)) {
        desc->flags |= QKV_SET_WINDOW;
        desc->window_left = rules->left < QKVI_NO_WINDOW ? rules->left : -1;
        desc->window_right = rules->right < QKVI_NO_WINDOW ? rules->right : -1;
    }
    describe_scores(heads, first, desc);
    describe_distances(heads, first, desc);
    const uint8_t *const uncut = qkvi_heads_uncut(heads, first, 0);
    if (!heads->seen && !uncut) return;
    desc->flags |= QKV_SET_MASK; /* the same keys for every query, unless edges are cut */
    desc->mask = uncut ? uncut : heads->seen;
    desc->mask_type = QKV_MASK_BOOL;
    desc->mask_stride[2] = uncut ? info->n_keys : 0;
    desc->mask_stride[3] = 1;
}

qkvi_share qkvi_heads_share(qkv_heads *heads, int64_t index, const qkv_head_view *view,
                            const qkv_call_options *call) {
    return (qkvi_share){ .peers = &heads->peers,
                         .rules = qkvi_heads_rules(heads, index),
                         .ctx = heads->ctx,
                         .desc = view->desc,
                         .q = view->q,
                         .k = view->k,
                         .pieces = qkvi_heads_pieces(heads),
                         .call = call };
}

qkv_status qkvi_heads_check(const qkv_heads *heads, int64_t index, qkv_error *error) {
    if (!heads) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "heads is NULL");
    if (index >= 0 && index < heads->n_all) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "index = %lld is not between 0 and %lld",
                          (long long)index, (long long)heads->n_all - 1);
}

int qkv_head_sees(const qkv_heads *heads, int64_t index, int64_t query, int64_t key) {
    if (!heads || query < 0 || query >= heads->info.n_queries || index < 0 || index >= heads->n_all)
        return 0;
    const qkvi_range keys = qkvi_keys_of(qkvi_heads_rules(heads, index), query);
    return key >= keys.begin && key < keys.end && !qkvi_heads_hide(heads, index, query, key);
}

/* ---- Measuring ------------------------------------------------------------------------------- */

/* What all heads of the input share. */
struct work {
    qkv_heads *heads;
    unsigned flags;
    uint8_t *matches;
    double *log_keys, *shares;
    int64_t *counts; /* of rows that are given */
    qkvi_head_rows rows;
    const qkv_call_options *given;
    int64_t n_done; /* heads */
};

/* Progress of a pass, as that of all. */
static void tell(void *user, int64_t done, int64_t total) {
    const struct work *const work = user;
    const double part = total > 0 ? (double)done / (double)total : 1;
    enum { STEPS = 1000 };
    const double all =
        ((double)work->n_done + part * (double)work->rows.n_heads) / (double)work->heads->n_all;
    work->given->progress(work->given->progress_user, (int64_t)(all * STEPS), STEPS);
}

/* Of all heads, or where edges are cut of the one with that index. */
static qkv_status count_keys(const qkv_heads *heads, int64_t index, double *log_keys,
                             qkv_error *error) {
    const qkvi_rules *const rules = qkvi_heads_rules(heads, index);
    const qkv_heads_info *const info = &heads->info;
    int64_t *const before = qkvi_malloc_array((size_t)info->n_keys + 1, sizeof *before);
    if (!before) return qkvi_no_memory(error, "heads");
    before[0] = 0;
    for (int64_t j = 0; j < info->n_keys; j++)
        before[j + 1] = before[j] + (!heads->seen || heads->seen[j]);
    for (int64_t i = 0; i < info->n_queries; i++) {
        const qkvi_range keys = qkvi_keys_of(rules, i);
        const uint8_t *const uncut = qkvi_heads_uncut(heads, index, i);
        int64_t n = keys.end > keys.begin ? before[keys.end] - before[keys.begin] : 0;
        for (int64_t j = keys.begin; uncut && j < keys.end; j++)
            n -= !uncut[j] && (!heads->seen || heads->seen[j]);
        log_keys[i] = n > 0 ? log((double)n) : 0;
    }
    free(before);
    return QKV_OK;
}

/* Rows are only read: what was computed elsewhere stands in for a pass. */
static qkv_status take_given(struct work *work, qkv_error *error) {
    qkv_heads *const heads = work->heads;
    const qkv_heads_rows *const given = heads->given;
    const size_t n_all = (size_t)heads->n_all;
    int64_t *const counts = qkvi_calloc_array(n_all, 2 * sizeof *counts);
    if (!counts) return qkvi_no_memory(error, "heads");
    work->counts = counts;
    work->rows = (qkvi_head_rows){ .n_heads = heads->n_all,
                                   .n = heads->info.n_queries,
                                   .n_keys = heads->info.n_keys,
                                   .entropy = (float *)given->entropy,
                                   .largest = (float *)given->largest,
                                   .effective_keys = (float *)given->effective_keys,
                                   .mean_distance = (float *)given->mean_distance,
                                   .same_token = (float *)given->same_token,
                                   .duplicate = (float *)given->duplicate,
                                   .induction = (float *)given->induction,
                                   .kinds = (float *)given->class_mass,
                                   .offsets = (float *)given->offset_mass,
                                   .received = (float *)given->received,
                                   .n_queries = (int64_t *)given->n_queries,
                                   .n_empty_rows = counts,
                                   .n_nan_rows = counts + n_all };
    for (int64_t row = 0; row < heads->n_all * work->rows.n; row++) {
        const float largest = given->largest[row];
        counts[row / work->rows.n] += largest == 0;
        counts[heads->n_all + row / work->rows.n] += isnan(largest) != 0;
    }
    if (!given->same_token || !heads->ids) return QKV_OK;
    work->matches = qkvi_calloc_array((size_t)work->rows.n, 1);
    if (!work->matches) return qkvi_no_memory(error, "heads");
    return qkvi_matches_find(&heads->rules, NULL, heads->ids, work->matches, error);
}

/* What queries see, of all heads, of a layer's, or of the one with that index. */
static qkv_status see(struct work *work, int64_t index, qkv_error *error) {
    qkv_heads *const heads = work->heads;
    QKV_TRY(count_keys(heads, index, work->log_keys, error));
    if (!heads->ids) return QKV_OK;
    memset(work->matches, 0, (size_t)heads->info.n_queries);
    return qkvi_matches_find(qkvi_heads_rules(heads, index), heads->seen, heads->ids, work->matches,
                             error);
}

static qkv_status begin(struct work *work, qkv_error *error) {
    qkv_heads *const heads = work->heads;
    const size_t n = (size_t)heads->info.n_queries, n_keys = (size_t)heads->info.n_keys,
                 n_all = (size_t)heads->n_all;
    const size_t n_numbers = (size_t)qkv_head_number_count();
    work->log_keys = qkvi_malloc_array(n, sizeof *work->log_keys);
    work->shares = qkvi_malloc_array(n_keys, sizeof *work->shares);
    if (heads->given) work->flags &= ~(unsigned)QKV_HEADS_SHARPEST;
    if (heads->ids && !heads->given) work->matches = qkvi_calloc_array(n, 1);
    if (!heads->numbers) heads->numbers = qkvi_malloc_array(n_all, n_numbers * sizeof(double));
    if (!heads->empty) heads->empty = qkvi_calloc_array(n_all, 2 * sizeof(int64_t));
    if (!heads->peaks && work->flags & QKV_HEADS_SHARPEST)
        heads->peaks = qkvi_calloc_array(n_all, sizeof *heads->peaks);
    if (!work->log_keys || !work->shares || (heads->ids && !heads->given && !work->matches) ||
        !heads->numbers || !heads->empty || (!heads->peaks && work->flags & QKV_HEADS_SHARPEST))
        return qkvi_no_memory(error, "heads");
    heads->nan = heads->empty + n_all;
    if (heads->given) {
        QKV_TRY(count_keys(heads, 0, work->log_keys, error));
        return take_given(work, error);
    }
    if (!heads->layer_rules && !heads->uncut) QKV_TRY(see(work, 0, error));
    return qkvi_head_rows_make(heads->dense ? heads->info.n_heads : 1, heads->info.n_queries,
                               heads->info.n_keys, &work->rows, error);
}

static void end(struct work *work) {
    free(work->matches);
    free(work->log_keys);
    free(work->shares);
    free(work->counts);
    if (!work->heads->given) qkvi_head_rows_free(&work->rows);
}

/* The largest weight on a key that is not the query's own place. */
static void find_peak(const struct work *work, int64_t head, qkvi_head_peak *peak) {
    const qkv_heads *const heads = work->heads;
    const qkvi_head_rows *const rows = &work->rows;
    const int64_t n = heads->info.n_queries;
    float most = 0;
    *peak = (qkvi_head_peak){ -1, -1 };
    for (int64_t at = 0; at < n * QKVI_N_TOP; at++) {
        const int64_t i = at / QKVI_N_TOP, j = rows->top_keys[head * n * QKVI_N_TOP + at];
        const float weight = rows->top_weights[head * n * QKVI_N_TOP + at];
        if (j < 0 || (heads->info.one_text && j == i + heads->info.q_offset) || !(weight > most))
            continue;
        most = weight;
        *peak = (qkvi_head_peak){ i, j };
    }
}

static void take(const struct work *work, int64_t first) {
    qkv_heads *const heads = work->heads;
    const qkvi_head_input input = { .n = heads->info.n_queries,
                                    .n_keys = heads->info.n_keys,
                                    .query_kinds = heads->query_kinds,
                                    .matches = work->matches,
                                    .log_keys = work->log_keys,
                                    .places = heads->info.one_text,
                                    .kinds = heads->key_kinds && work->rows.kinds,
                                    .columns = work->rows.received &&
                                               (work->flags & QKV_HEADS_RECEIVED) != 0 };
    for (int64_t h = 0; h < work->rows.n_heads; h++) {
        qkvi_head_sums sums;
        qkvi_head_sums_make(&input, &work->rows, h, work->shares, &sums);
        qkvi_head_numbers(&sums, heads->numbers + (first + h) * qkv_head_number_count());
        heads->empty[first + h] = work->rows.n_empty_rows[h];
        heads->nan[first + h] = work->rows.n_nan_rows[h];
        if (heads->distance)
            memcpy(heads->distance + (first + h) * input.n, work->rows.mean_distance + h * input.n,
                   (size_t)input.n * sizeof(float));
        if (work->flags & QKV_HEADS_SHARPEST) find_peak(work, h, &heads->peaks[first + h]);
    }
}

static qkv_status run_pass(struct work *work, int64_t first, const qkv_call_options *call,
                           qkv_error *error) {
    qkv_heads *const heads = work->heads;
    const qkvi_head_source *const source = &heads->sources[first];
    qkv_attention_desc desc;
    if (heads->given) {
        take(work, 0);
        return QKV_OK;
    }
    if (heads->layer_rules || heads->uncut) QKV_TRY(see(work, first, error));
    qkvi_heads_describe(heads, first, work->rows.n_heads, &desc);
    const qkvi_head_pass pass = { .ctx = heads->ctx,
                                  .desc = &desc,
                                  .q = source->q,
                                  .k = source->k,
                                  .lse = source->lse,
                                  .make_lse = first >= heads->n_lse,
                                  .places = heads->info.one_text,
                                  .ids = heads->ids,
                                  .kinds = heads->key_kinds,
                                  .columns = (work->flags & QKV_HEADS_RECEIVED) != 0,
                                  .top = (work->flags & QKV_HEADS_SHARPEST) != 0,
                                  .peers = &heads->peers,
                                  .pieces = qkvi_heads_pieces(heads),
                                  .rules = qkvi_heads_rules(heads, first),
                                  .call = call };
    QKV_TRY(qkvi_head_rows_compute(&pass, &work->rows, error));
    if (pass.make_lse) heads->n_lse = first + work->rows.n_heads;
    take(work, first);
    return QKV_OK;
}

static qkv_status run_passes(struct work *work, const qkv_call_options *call, qkv_error *error) {
    qkv_call_options own = *call;
    own.workspace = NULL;
    own.workspace_bytes = 0;
    if (call->progress) {
        own.progress = tell;
        own.progress_user = work;
    }
    work->given = call;
    for (int64_t first = 0; first < work->heads->n_all; first += work->rows.n_heads) {
        work->n_done = first;
        QKV_TRY(run_pass(work, first, &own, error));
    }
    return QKV_OK;
}

qkv_status qkv_heads_measure(qkv_heads *heads, unsigned flags, const qkv_call_options *given,
                             qkv_error *error) {
    qkv_call_options call;
    if (!heads) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "heads is NULL");
    if (heads->mean) return QKV_OK;
    QKV_TRY(qkvi_rows_call(given, &call, error));
    struct work work = { .heads = heads, .flags = flags };
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    qkv_status status = begin(&work, error);
    if (heads->peers.of) status = qkvi_peers_agree(&heads->peers, status, NULL, error);
    if (status == QKV_OK) status = run_passes(&work, &call, error);
    end(&work);
    qkvi_fpstate_leave(saved);
    if (status == QKV_OK) return QKV_OK;
    free(heads->numbers); /* half of them are no numbers */
    free(heads->empty);
    free(heads->peaks);
    heads->numbers = NULL;
    heads->empty = heads->nan = NULL;
    heads->peaks = NULL;
    return status;
}

const double *qkv_heads_numbers(const qkv_heads *heads, int64_t index) {
    if (qkvi_heads_check(heads, index, NULL) != QKV_OK) return NULL;
    if (heads->mean) return qkvi_heads_mean_numbers(heads, index);
    return heads->numbers ? heads->numbers + index * qkv_head_number_count() : NULL;
}

const float *qkv_heads_distance(const qkv_heads *heads, int64_t index) {
    if (qkvi_heads_check(heads, index, NULL) != QKV_OK || !heads->numbers || !heads->distance)
        return NULL;
    return heads->distance + index * heads->info.n_queries;
}

int64_t qkv_heads_empty_rows(const qkv_heads *heads, int64_t index) {
    return qkvi_heads_check(heads, index, NULL) == QKV_OK && heads->empty ? heads->empty[index] : 0;
}

int64_t qkv_heads_nan_rows(const qkv_heads *heads, int64_t index) {
    return qkvi_heads_check(heads, index, NULL) == QKV_OK && heads->empty ? heads->nan[index] : 0;
}

void qkv_heads_set_probes(qkv_heads *heads, const qkv_head_probes *probes, size_t probe_bytes) {
    const qkv_head_probes none = { 0, 0, NAN, NAN, NAN };
    if (!heads || !heads->numbers || !probes) return;
    if (qkvi_element_check(probe_bytes, sizeof none, "probe_bytes", NULL) != QKV_OK) return;
    const int duplicate = qkv_head_number_find("duplicate", 9),
              induction = qkv_head_number_find("induction", 9),
              antecedent = qkv_head_number_find("antecedent", 10);
    for (int64_t h = 0; h < heads->n_all; h++) {
        double *const numbers = heads->numbers + h * qkv_head_number_count();
        qkv_head_probes one = none;
        if (qkvi_element_read(&one, sizeof one, probes, h, probe_bytes, "probes", NULL) != QKV_OK)
            return;
        numbers[duplicate] = one.duplicate;
        numbers[induction] = one.induction;
        numbers[antecedent] = one.antecedent;
    }
}
