/*
 * lse and statistics of heads by one forward pass each, whose values are a single 0: in memory of a
 * few numbers a query.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"
#include "term.h"
#include <qkv/stats.h>

/* Kinds of keys that labels know, and offsets: previous, own, next. */
enum { KIND_REST, KIND_CLS, KIND_SEP, KIND_PUNCTUATION, N_KINDS, N_OFFSETS = 3, TOP = 2 };

/* What a pass leaves of each query. */
struct rows {
    float *largest, *entropy, *effective, *kinds, *offsets, *o, *top_weight;
    float *log_seen; /* ln of how many keys a query sees; 0 for none */
    int64_t *top_key, *n_seen;
    uint8_t *kind_of; /* of keys */
};

static int kind_of(const char *token) {
    if (strcmp(token, "[CLS]") == 0) return KIND_CLS;
    if (strcmp(token, "[SEP]") == 0 || strcmp(token, "[PAD]") == 0) return KIND_SEP;
    const bool mark = token[0] && strspn(token, "!\"#%&'()*,-./:;?@[\\]_{}") == strlen(token);
    return mark ? KIND_PUNCTUATION : KIND_REST;
}

static bool rows_make(const struct dump *dump, struct rows *rows) {
    const size_t n = (size_t)dump->n_queries;
    float **const floats[] = { &rows->largest, &rows->entropy, &rows->effective, &rows->o,
                               &rows->log_seen };
    bool made = true;
    for (int i = 0; i < CLI_COUNT(floats); i++)
        made = (*floats[i] = malloc(n * sizeof(float))) && made;
    rows->kinds = malloc(n * N_KINDS * sizeof(float));
    rows->offsets = malloc(n * N_OFFSETS * sizeof(float));
    rows->top_key = malloc(n * TOP * sizeof(int64_t));
    rows->n_seen = malloc(n * sizeof(int64_t));
    rows->top_weight = malloc(n * TOP * sizeof(float));
    rows->kind_of = calloc((size_t)dump->n_keys, 1);
    for (int64_t j = 0; rows->kind_of && dump->tokens && j < dump->n_keys; j++)
        rows->kind_of[j] = (uint8_t)kind_of(dump->tokens[j]);
    return made && rows->kinds && rows->offsets && rows->top_key && rows->n_seen &&
           rows->top_weight && rows->kind_of;
}

static void rows_free(struct rows *rows) {
    free(rows->largest);
    free(rows->entropy);
    free(rows->effective);
    free(rows->kinds);
    free(rows->offsets);
    free(rows->o);
    free(rows->top_weight);
    free(rows->top_key);
    free(rows->n_seen);
    free(rows->log_seen);
    free(rows->kind_of);
}

/* ---- Means over queries -------------------------------------------------------------------------- */

/* As qkv_head_stats: [CLS], [SEP] and [PAD] as queries stay out, unless there are no others. */
static bool counts(const struct dump *dump, const struct rows *rows, int64_t i) {
    const int kind = dump->q_tokens               ? kind_of(dump->q_tokens[i])
                     : dump->tokens && dump->self ? rows->kind_of[i]
                                                  : KIND_REST;
    return kind != KIND_CLS && kind != KIND_SEP;
}

/* Mean of value[i stride]; NaN rows make it NaN, rows that see no key stay out. */
static double mean(const struct dump *dump, const struct rows *rows, const float *lse,
                   const float *value, int stride) {
    double sum[2] = { 0 };
    int64_t n[2] = { 0 };
    for (int64_t i = 0; i < dump->n_queries; i++) {
        const int kept = counts(dump, rows, i);
        if (lse[i] == -INFINITY) continue;
        sum[kept] += (double)value[i * stride];
        n[kept]++;
    }
    const int kept = n[1] > 0;
    return n[kept] ? sum[kept] / (double)n[kept] : NAN;
}

/* The largest weight on another token: a first query under a causal mask sees but itself. */
static void find_largest(const struct dump *dump, const struct rows *rows, struct dump_head *head) {
    head->query = head->key = -1;
    for (int64_t at = 0; at < dump->n_queries * TOP; at++) {
        const int64_t i = at / TOP, j = rows->top_key[at];
        if (j < 0 || (dump->self && i == j) || !(rows->top_weight[at] > head->weight)) continue;
        head->query = i;
        head->key = j;
        head->weight = rows->top_weight[at];
    }
}

static void summarise(const struct dump *dump, const struct rows *rows, struct dump_head *head) {
    const float *lse = head->lse;
    qkv_head_stats *stats = &head->stats;
    const bool named = dump->tokens != NULL;
    double *const offsets[] = { &stats->mass_previous, &stats->mass_self, &stats->mass_next };
    double *const kinds[] = { NULL, &stats->mass_cls, &stats->mass_sep, &stats->mass_punctuation };
    stats->entropy = mean(dump, rows, lse, rows->entropy, 1);
    for (int64_t i = 0; i < dump->n_queries; i++)
        rows->log_seen[i] = rows->n_seen[i] > 0 ? (float)log((double)rows->n_seen[i]) : 0;
    const double log_seen = mean(dump, rows, lse, rows->log_seen, 1);
    stats->entropy_normalized = log_seen > 0 ? stats->entropy / log_seen : stats->entropy * 0;
    stats->confidence = mean(dump, rows, lse, rows->largest, 1);
    stats->mean_distance = mean(dump, rows, lse, head->distance, 1);
    head->effective_keys = mean(dump, rows, lse, rows->effective, 1);
    for (int n = 0; n < N_OFFSETS; n++)
        *offsets[n] = mean(dump, rows, lse, rows->offsets + n, N_OFFSETS);
    for (int n = 1; n < N_KINDS; n++)
        *kinds[n] = named ? mean(dump, rows, lse, rows->kinds + n, N_KINDS) : NAN;
    stats->effective_keys = head->effective_keys;
    double *const unknown[] = {
        /* no rule holds for what is not known */
        &stats->received_early,   &stats->mass_same_token, &stats->mass_window,
        &stats->mass_duplicate,   &stats->mass_induction,  &stats->received_gini,
        &stats->received_largest,
    };
    for (int n = 0; n < CLI_COUNT(unknown); n++) *unknown[n] = NAN;
    stats->received_key = -1;
    snprintf(stats->label, sizeof stats->label, "%s", qkv_inspect_label(stats, NULL));
    find_largest(dump, rows, head);
}

/* ---- A pass -------------------------------------------------------------------------------------- */

struct heads_progress {
    struct progress line;
    int64_t shown, n_shown;
};

static void show_progress(void *user, int64_t done, int64_t total) {
    struct heads_progress *progress = user;
    progress_bar(&progress->line, "statistics", progress->shown * total + done,
                 progress->n_shown * total);
}

void dump_desc(const struct dump *dump, qkv_attention_desc *d) {
    qkv_attention_desc_contiguous(d, 1, 1, 1, dump->n_queries, dump->n_keys, dump->head_dim, 1);
    memset(d->v_stride, 0, sizeof d->v_stride);
    d->flags = QKV_SET_SCALE | QKV_SET_Q_OFFSET;
    d->scale = (float)dump->scale;
    d->q_offset = dump->q_offset;
    if (dump->causal) d->flags |= QKV_SET_CAUSAL;
    if (dump->window) d->flags |= QKV_SET_WINDOW;
    d->window_left = dump->window_left;
    d->window_right = dump->window_right;
}

static qkv_status pass(struct dump *dump, int64_t shown, struct rows *rows,
                       const qkv_call_options *call) {
    static const int64_t offsets[N_OFFSETS + 1] = { -1, 0, 1, 2 };
    static const float no_value;
    struct dump_head *head = &dump->heads[shown];
    qkv_attention_desc d;
    qkv_attention_stats stats;
    dump_desc(dump, &d);
    d.flags |= QKV_SET_STATS;
    qkv_attention_stats_contiguous(&stats, &d);
    stats.largest = rows->largest;
    stats.entropy = rows->entropy;
    stats.effective_keys = rows->effective;
    stats.n_seen = rows->n_seen;
    stats.mean_distance = head->distance;
    stats.top_k = TOP;
    stats.top_keys = rows->top_key;
    stats.top_weights = rows->top_weight;
    stats.n_classes = N_KINDS;
    stats.classes = rows->kind_of;
    stats.class_mass = rows->kinds;
    stats.n_offsets = N_OFFSETS;
    stats.offsets = offsets;
    stats.offset_mass = rows->offsets;
    stats.n_empty_rows = &head->n_empty;
    stats.n_nan_rows = &head->n_nan;
    d.stats = &stats;
    return qkv_attention_forward(dump->ctx, &d, dump_queries(dump, shown), dump_keys(dump, shown),
                                 &no_value, rows->o, head->lse, call);
}

/* The rows themselves, for a chart of queries: which head it will be is known when all are computed. */
static qkv_status keep_rows(const struct dump *dump, const struct rows *rows,
                            struct dump_head *head) {
    const size_t bytes = (size_t)dump->n_queries * sizeof(float);
    const struct arg_int *const plot = &dump->options->plot;
    if (!plot->set || plot->value != PLOT_QUERIES) return QKV_OK;
    head->entropy = malloc(bytes);
    head->largest = malloc(bytes);
    if (!head->entropy || !head->largest) return QKV_ERR_MEMORY;
    memcpy(head->entropy, rows->entropy, bytes);
    memcpy(head->largest, rows->largest, bytes);
    return QKV_OK;
}

/* The head with the sharpest queries: of equal ones the first. */
static int64_t sharpest(const struct dump *dump) {
    int64_t best = 0;
    for (int64_t h = 1; h < dump->n_shown; h++)
        if (dump->heads[h].stats.confidence > dump->heads[best].stats.confidence) best = h;
    return best;
}

qkv_status dump_compute(struct dump *dump, qkv_error *error) {
    struct rows rows = { 0 };
    struct heads_progress progress = { .n_shown = dump->n_shown };
    qkv_call_options call = QKV_CALL_OPTIONS_INIT;
    call.cancel = &cli_cancelled;
    call.progress = show_progress;
    call.progress_user = &progress;
    qkv_status status = rows_make(dump, &rows) ? QKV_OK : QKV_ERR_MEMORY;
    progress_begin(&progress.line, dump->options->common.quiet);
    for (int64_t h = 0; status == QKV_OK && h < dump->n_shown; h++) {
        struct dump_head *head = &dump->heads[h];
        progress.shown = h;
        head->stats.layer = dump->layer < 0 ? 0 : dump->layer;
        head->stats.head = dump->names[h];
        head->lse = malloc((size_t)dump->n_queries * sizeof(float));
        head->distance = malloc((size_t)dump->n_queries * sizeof(float));
        status = head->lse && head->distance ? pass(dump, h, &rows, &call) : QKV_ERR_MEMORY;
        if (status == QKV_OK) summarise(dump, &rows, head);
        if (status == QKV_OK) status = keep_rows(dump, &rows, head);
    }
    progress_end(&progress.line);
    rows_free(&rows);
    if (status == QKV_OK && !dump->given) dump->chosen = sharpest(dump);
    if (status == QKV_OK) return QKV_OK;
    return text_error(error, status, "%s",
                      status == QKV_ERR_MEMORY ? "out of memory" : qkv_ctx_message(dump->ctx));
}
