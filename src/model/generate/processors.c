/* See plan.h. */
#include "model/generate/plan.h"

#include <math.h>

#include "core/ints.h"
#include "model/generate/row.h"

qkv_status qkvi_scratch_make(const qkvi_plan *plan, qkvi_scratch *scratch, qkv_error *error) {
    const size_t vocab = (size_t)plan->lm.vocab;
    *scratch = (qkvi_scratch){ .marks = qkvi_calloc_array(vocab, 1) };
    if (plan->o.sample) scratch->items = qkvi_malloc_array(vocab, sizeof *scratch->items);
    if (scratch->marks && (scratch->items || !plan->o.sample)) return QKV_OK;
    qkvi_scratch_free(scratch);
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a vocabulary of %zu", vocab);
}

void qkvi_scratch_free(qkvi_scratch *scratch) {
    free(scratch->marks);
    free(scratch->items);
    *scratch = (qkvi_scratch){ 0 };
}

/* ---- Processors ------------------------------------------------------------------------------ */

/* Each token that is there, once. */
static void penalize(double penalty, uint8_t *marks, int64_t n, const int32_t *ids, double *x) {
    for (int64_t i = 0; i < n; i++) {
        const int32_t id = ids[i];
        if (marks[id]) continue;
        marks[id] = 1;
        x[id] = x[id] < 0 ? x[id] * penalty : x[id] / penalty;
    }
    for (int64_t i = 0; i < n; i++) marks[ids[i]] = 0;
}

/* What followed the last size - 1 tokens where they stood before. */
static void forbid_repeats(int64_t size, int64_t n, const int32_t *ids, double *x) {
    const int64_t prefix = size - 1;
    const size_t bytes = (size_t)prefix * sizeof *ids;
    for (int64_t i = 0; i + prefix < n; i++)
        if (memcmp(ids + i, ids + n - prefix, bytes) == 0) x[ids[i + prefix]] = -INFINITY;
}

/*
 * The last token of each sequence whose other tokens are the last ones; what ends a text may always
 * do so.
 */
static void forbid_words(const qkvi_plan *plan, int64_t n_words, const int32_t *word,
                         const int64_t *lengths, int64_t n, const int32_t *ids, double *x) {
    for (int64_t w = 0; w < n_words; word += lengths[w++]) {
        const int64_t prefix = lengths[w] - 1;
        if (prefix > n || (prefix == 0 && qkvi_plan_is_eos(plan, word[0]))) continue;
        if (memcmp(word, ids + n - prefix, (size_t)prefix * sizeof *word) == 0)
            x[word[prefix]] = -INFINITY;
    }
}

static void forbid_end(const qkvi_plan *plan, double *x) {
    for (int64_t i = 0; i < plan->n_eos; i++) x[plan->eos[i]] = -INFINITY;
}

static void force(int64_t vocab, int64_t n, const int32_t *ids, double *x) {
    for (int64_t j = 0; j < vocab; j++) x[j] = -INFINITY;
    for (int64_t i = 0; i < n; i++) x[ids[i]] = 0;
}

/* Where the length ends the text. */
static void force_end(const qkvi_plan *plan, double *x) {
    const qkv_generate_options *const o = &plan->o;
    if (o->n_forced_ends > 0)
        force(plan->lm.vocab, o->n_forced_ends, o->forced_ends, x);
    else if (o->forced_eos >= 0)
        force(plan->lm.vocab, 1, &o->forced_eos, x);
}

/* ---- What sampling leaves -------------------------------------------------------------------- */

/* Beams need a token that goes on beside those that end. */
static int64_t least(const qkvi_plan *plan) {
    if (plan->o.n_beams == 1) return 1;
    return plan->n_eos > 0 ? plan->n_eos + 1 : 2;
}

/* The k-th largest. */
static double kth(const qkvi_plan *plan, const qkvi_scratch *scratch, int64_t k, const double *x) {
    qkvi_top top = { .room = k, .items = scratch->items };
    for (int64_t j = 0; j < plan->lm.vocab; j++) qkvi_top_offer(&top, x[j], 0, j);
    return top.items[0].key;
}

static void keep_from(const qkvi_plan *plan, double last, double *x) {
    for (int64_t j = 0; j < plan->lm.vocab; j++)
        if (x[j] < last) x[j] = -INFINITY;
}

static void keep_top_k(const qkvi_plan *plan, const qkvi_scratch *scratch, double *x) {
    const int64_t k = qkvi_max_i64(plan->o.top_k, least(plan));
    if (k < plan->lm.vocab) keep_from(plan, kth(plan, scratch, k, x), x);
}

/* p >= min_p p_most, in logarithms. */
static void keep_min_p(const qkvi_plan *plan, const qkvi_scratch *scratch, double *x) {
    const int64_t k = least(plan);
    const double last = qkvi_row_max(plan->lm.vocab, x) + qkvi_log(plan->o.min_p);
    if (k >= plan->lm.vocab) return;
    keep_from(plan, fmin(last, kth(plan, scratch, k, x)), x);
}

/*
 * The first tokens, best first, whose probabilities before them are together below p; of equal ones
 * the greater id comes first. true if `top`, which holds the best of all, is long enough to tell;
 * marks are set for them.
 */
static bool mark_top_p(const qkvi_plan *plan, const qkvi_top *top, double lse, uint8_t *marks) {
    const int64_t vocab = plan->lm.vocab, at_least = least(plan);
    double before = 0;
    for (int64_t i = 0; i < top->n; i++) {
        const qkvi_top_item *const item = &top->items[i];
        if (i >= at_least && !(before < plan->o.top_p)) return true;
        marks[vocab - 1 - item->at] = 1;
        before += qkvi_exp(item->key - lse < 0 ? item->key - lse : 0);
    }
    return false;
}

/* The best 64, 512, …, until they are enough. */
static void keep_top_p(const qkvi_plan *plan, const qkvi_scratch *scratch, double *x) {
    const int64_t vocab = plan->lm.vocab;
    const double lse = qkvi_row_lse(vocab, x);
    bool enough = false;
    for (int64_t room = 64; !enough; room *= 8) {
        qkvi_top top = { .room = qkvi_min_i64(room, vocab), .items = scratch->items };
        for (int64_t j = vocab - 1; j >= 0; j--) qkvi_top_offer(&top, x[j], 0, vocab - 1 - j);
        qkvi_top_sort(&top);
        enough = mark_top_p(plan, &top, lse, scratch->marks) || top.n == vocab;
    }
    for (int64_t j = 0; j < vocab; j++) {
        if (!scratch->marks[j]) x[j] = -INFINITY;
        scratch->marks[j] = 0;
    }
}

static void warp(const qkvi_plan *plan, const qkvi_scratch *scratch, double *x) {
    const int64_t vocab = plan->lm.vocab;
    if (plan->o.temperature != 1)
        for (int64_t j = 0; j < vocab; j++) x[j] /= plan->o.temperature;
    if (plan->o.top_k > 0) keep_top_k(plan, scratch, x);
    if (qkvi_row_max(vocab, x) == -INFINITY) return;
    if (plan->o.top_p < 1) keep_top_p(plan, scratch, x);
    if (plan->o.min_p > 0) keep_min_p(plan, scratch, x);
}

void qkvi_process(const qkvi_plan *plan, const qkvi_scratch *scratch, int64_t n, const int32_t *ids,
                  double *x) {
    const qkv_generate_options *const o = &plan->o;
    const int64_t vocab = plan->lm.vocab;
    if (o->repetition_penalty != 1) penalize(o->repetition_penalty, scratch->marks, n, ids, x);
    if (o->no_repeat_ngram > 0 && n >= o->no_repeat_ngram)
        forbid_repeats(o->no_repeat_ngram, n, ids, x);
    forbid_words(plan, plan->lm.n_never, plan->lm.never, plan->lm.never_lengths, n, ids, x);
    forbid_words(plan, o->n_bad_words, o->bad_words, o->bad_word_lengths, n, ids, x);
    if (n < o->min_length || n - plan->lm.prompt_len < o->min_new) forbid_end(plan, x);
    if (o->forced_bos >= 0 && n == 1) force(vocab, 1, &o->forced_bos, x);
    if (n == plan->max_total - 1 && !plan->ends_early) force_end(plan, x);
    if (o->sample) warp(plan, scratch, x);
    if (o->renormalize && qkvi_row_max(vocab, x) > -INFINITY) qkvi_row_log_softmax(vocab, x);
}
