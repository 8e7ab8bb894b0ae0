/*
 * Heads on inputs that are made to test them: a sequence of random tokens repeated once, and the
 * pronoun probes of a grammar (train/eval_probes.c).
 *
 * The T tokens of a period are all different, so the token of a query in the second period is at
 * exactly one place in the first, T places before. Weights are computed only at that key and at the
 * one after it, from q, k and lse.
 */
#include <math.h>

#include "core/cancel.h"
#include "core/fpstate.h"
#include "core/options.h"
#include "core/rng.h"
#include "inspect/tokens.h"
#include "qkv/inspect.h"
#include "train/eval.h"

enum {
    N_TEXTS = 32,
    LONGEST_PERIOD = 64,
    MOST_TEXTS = 1 << 20,
    BATCH = 8,           /* texts at once */
    PURPOSE = 0x70726f62 /* of the random numbers */
};

struct probing {
    qkv_ctx *ctx;
    const qkv_model *model;
    const qkv_model_info *info;
    const qkv_tokenizer *tokenizer;
    qkv_probe_options options; /* complete */
    const qkv_call_options *call;
    qkv_head_probes *probes;
    int32_t *ordinary; /* tokens that may be drawn, in an order that drawing changes */
    int64_t n_ordinary, period, n_before, n; /* n_before: 1 with a [CLS]; n: tokens of a text */
    int32_t *ids;                            /* [BATCH][n] */
    int64_t *swaps;                          /* [period] */
    int64_t n_done, n_total;
};

static qkv_status done(struct probing *probing, int64_t n, qkv_error *error) {
    const qkv_call_options *const call = probing->call;
    probing->n_done += n;
    if (!call) return QKV_OK;
    if (call->progress) call->progress(call->progress_user, probing->n_done, probing->n_total);
    if (!qkvi_is_raised(call->cancel)) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_CANCELLED, "cancelled after %lld of %lld probes",
                          (long long)probing->n_done, (long long)probing->n_total);
}

/* ---- Random tokens, twice -------------------------------------------------------------------- */

static int is_ordinary(const qkv_tokenizer *tokenizer, int32_t id) {
    size_t n_bytes = 0;
    const char *const token = qkv_tokenizer_token(tokenizer, id, &n_bytes);
    if (!token || n_bytes == 0 || qkvi_token_kind_of(tokenizer, id) != QKVI_TOKEN_TEXT) return 0;
    return !(n_bytes > 2 && token[0] == '[' && token[n_bytes - 1] == ']'); /* "[unused7]", too */
}

static qkv_status list_tokens(struct probing *probing, qkv_error *error) {
    const int64_t size = qkv_tokenizer_size(probing->tokenizer),
                  n_words = size < probing->info->vocab_size ? size : probing->info->vocab_size;
    probing->ordinary = qkvi_malloc_array((size_t)n_words, sizeof *probing->ordinary);
    if (!probing->ordinary) return qkvi_no_memory(error, "probes");
    for (int32_t id = 0; id < n_words; id++)
        if (is_ordinary(probing->tokenizer, id)) probing->ordinary[probing->n_ordinary++] = id;
    return QKV_OK;
}

static qkv_status choose_period(struct probing *probing, qkv_error *error) {
    const qkv_tokenizer *const tokenizer = probing->tokenizer;
    const int n_after = qkv_tokenizer_special(tokenizer, QKV_TOKEN_SEP) >= 0;
    probing->n_before = qkv_tokenizer_special(tokenizer, QKV_TOKEN_CLS) >= 0;
    int64_t most = (probing->info->max_len - probing->n_before - n_after) / 2;
    if (most > probing->n_ordinary) most = probing->n_ordinary;
    if (probing->options.period > most || probing->options.period == 1)
        return qkvi_error_set(
            error, QKV_ERR_ARGUMENT, "period = %lld is not in 2 ... %lld, which %s has room for",
            (long long)probing->options.period, (long long)most, probing->info->source);
    if (most > LONGEST_PERIOD) most = LONGEST_PERIOD;
    probing->period = probing->options.period ? probing->options.period : most < 2 ? 0 : most;
    probing->n = probing->n_before + 2 * probing->period + n_after;
    probing->ids = qkvi_malloc_array((size_t)(BATCH * probing->n), sizeof *probing->ids);
    probing->swaps = qkvi_malloc_array((size_t)probing->period, sizeof *probing->swaps);
    if (probing->ids && probing->swaps) return QKV_OK;
    return qkvi_no_memory(error, "probes");
}

/* Draws without putting back, by a shuffle of the first T, which is undone for the next text. */
static void say_twice(const struct probing *probing, int64_t text, int32_t *ids) {
    qkvi_rng rng = qkvi_rng_make(probing->options.seed, PURPOSE, (uint64_t)text);
    int32_t *const from = probing->ordinary, *const first = ids + probing->n_before;
    ids[0] = qkv_tokenizer_special(probing->tokenizer, QKV_TOKEN_CLS);
    for (int64_t t = 0; t < probing->period; t++) {
        const int64_t left = probing->n_ordinary - t;
        probing->swaps[t] = t + (int64_t)qkvi_rng_below(&rng, (uint32_t)left);
        const int32_t id = from[probing->swaps[t]];
        from[probing->swaps[t]] = from[t];
        from[t] = first[t] = first[t + probing->period] = id;
    }
    for (int64_t t = probing->period - 1; t >= 0; t--) {
        const int32_t id = from[t];
        from[t] = from[probing->swaps[t]];
        from[probing->swaps[t]] = id;
    }
    if (probing->n_before + 2 * probing->period < probing->n)
        ids[probing->n - 1] = qkv_tokenizer_special(probing->tokenizer, QKV_TOKEN_SEP);
}

/*
 * p = exp(scale q.k - lse) of key j for query i, in double; the model is as it is, all keys are
 * seen.
 */
static double weight_of(const qkv_capture *capture, int64_t head, int64_t i, int64_t j) {
    const int64_t head_dim = capture->head_dim, first = head * capture->n;
    const float *const q = capture->q + (first + i) * head_dim;
    const float *const k = capture->k + (first + j) * head_dim;
    double score = 0;
    for (int64_t c = 0; c < head_dim; c++) score += (double)q[c] * (double)k[c];
    return exp((double)capture->scale * score - (double)capture->lse[first + i]);
}

/* Adds up the weights of one head on one text. */
static void add_weights(const struct probing *probing, const qkv_capture *capture,
                        qkv_head_probes *probes) {
    const int64_t period = probing->period, second = probing->n_before + period;
    for (int64_t i = second; i < second + period; i++) {
        probes->duplicate += weight_of(capture, probes->head, i, i - period);
        probes->induction += weight_of(capture, probes->head, i, i - period + 1);
    }
}

static qkv_status run_batch(const struct probing *probing, int64_t first, int64_t n_texts,
                            qkv_error *error) {
    const qkv_model_info *const info = probing->info;
    qkv_encoding texts[BATCH];
    const qkv_encoding *inputs[BATCH];
    qkv_run *run;
    for (int64_t t = 0; t < n_texts; t++) {
        texts[t] = (qkv_encoding){ .n = probing->n, .ids = probing->ids + t * probing->n };
        inputs[t] = &texts[t];
        say_twice(probing, first + t, texts[t].ids);
    }
    QKV_TRY(qkv_model_run(probing->ctx, probing->model, n_texts, inputs, QKV_RUN_CAPTURE, NULL,
                          &run, error));
    qkv_status status = QKV_OK;
    for (int64_t t = 0; t < n_texts; t++)
        for (int64_t layer = 0; layer < info->n_layers && status == QKV_OK; layer++) {
            qkv_capture capture = qkv_capture_init();
            status = qkv_run_capture(run, QKV_SELF, t, layer, &capture, error);
            for (int64_t h = 0; h < info->n_heads && status == QKV_OK; h++)
                add_weights(probing, &capture, &probing->probes[layer * info->n_heads + h]);
        }
    qkv_run_free(run);
    return status;
}

static qkv_status run_texts(struct probing *probing, qkv_error *error) {
    const int64_t n_texts = probing->period ? probing->options.n_texts : 0;
    const int64_t n_all = probing->info->n_layers * probing->info->n_heads;
    const double n_queries = (double)n_texts * (double)probing->period;
    for (int64_t h = 0; h < n_all; h++)
        probing->probes[h].duplicate = probing->probes[h].induction = n_texts ? 0 : NAN;
    for (int64_t first = 0; first < n_texts; first += BATCH) {
        const int64_t n = n_texts - first < BATCH ? n_texts - first : BATCH;
        QKV_TRY(run_batch(probing, first, n, error));
        QKV_TRY(done(probing, n, error));
    }
    for (int64_t h = 0; h < n_all && n_texts; h++) {
        probing->probes[h].duplicate /= n_queries;
        probing->probes[h].induction /= n_queries;
    }
    return QKV_OK;
}

/* ---- Pronouns -------------------------------------------------------------------------------- */

static qkv_status run_pronouns(const struct probing *probing, qkv_probe_report *report,
                               qkv_error *error) {
    const qkv_probe_options *const o = &probing->options;
    const int64_t n_all = probing->info->n_layers * probing->info->n_heads;
    qkvi_corpus *corpus = NULL;
    int64_t *const hits = qkvi_calloc_array((size_t)n_all, sizeof *hits);
    if (!hits) return qkvi_no_memory(error, "probes");
    qkv_status status = o->grammar
                            ? qkvi_corpus_open_grammar(o->grammar, &corpus, error)
                            : qkvi_corpus_open_grammar_memory("grammar", o->grammar_bytes,
                                                              o->n_grammar_bytes, &corpus, error);
    if (status == QKV_OK)
        status = qkvi_eval_heads(probing->ctx, probing->model, corpus, o->seed, hits,
                                 &report->n_probes, &report->chance, error);
    for (int64_t h = 0; h < n_all && status == QKV_OK && report->n_probes; h++)
        probing->probes[h].antecedent = (double)hits[h] / (double)report->n_probes;
    qkvi_corpus_free(corpus);
    free(hits);
    return status;
}

/* ---- The public call ------------------------------------------------------------------------- */

static qkv_status check(const struct probing *probing, const qkv_head_probes *probes,
                        qkv_error *error) {
    const qkv_probe_options *const o = &probing->options;
    QKV_TRY(qkvi_need(probing->ctx, "ctx", error));
    QKV_TRY(qkvi_need(probing->model, "model", error));
    QKV_TRY(qkvi_need(probes, "probes", error));
    if (o->n_texts < 0 || o->n_texts > MOST_TEXTS)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "n_texts = %lld is not in 0 ... %d",
                              (long long)o->n_texts, MOST_TEXTS);
    if (o->period < 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "period = %lld is negative",
                              (long long)o->period);
    if (o->grammar && o->grammar_bytes)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "grammar and grammar_bytes are both given");
    return QKV_OK;
}

static qkv_status run_all(struct probing *probing, qkv_probe_report *report, qkv_error *error) {
    const int64_t n_heads = probing->info->n_heads, n_all = probing->info->n_layers * n_heads;
    probing->probes = qkvi_malloc_array((size_t)n_all, sizeof *probing->probes);
    if (!probing->probes) return qkvi_no_memory(error, "probes");
    const int has_grammar = probing->options.grammar || probing->options.grammar_bytes;
    for (int64_t h = 0; h < n_all; h++)
        probing->probes[h] = (qkv_head_probes){ h / n_heads, h % n_heads, NAN, NAN, NAN };
    QKV_TRY(list_tokens(probing, error));
    QKV_TRY(choose_period(probing, error));
    report->period = probing->period;
    report->n_texts = probing->period ? probing->options.n_texts : 0;
    probing->n_total = report->n_texts + has_grammar;
    QKV_TRY(run_texts(probing, error));
    if (!has_grammar) return QKV_OK;
    QKV_TRY(run_pronouns(probing, report, error));
    return done(probing, 1, error);
}

qkv_status qkv_inspect_probes(qkv_ctx *ctx, const qkv_model *model,
                              const qkv_probe_options *options, qkv_head_probes *probes,
                              size_t probe_bytes, qkv_probe_report *report,
                              const qkv_call_options *call, qkv_error *error) {
    const qkv_probe_options defaults = qkv_probe_options_init();
    qkv_call_options call_options = qkv_call_options_init();
    struct probing probing = { .ctx = ctx, .model = model };
    qkv_probe_report told = qkv_probe_report_init();
    QKV_TRY(qkvi_options_read(&probing.options, sizeof probing.options,
                              options ? options : &defaults, "qkv_probe_options", error));
    if (call) {
        QKV_TRY(
            qkvi_options_read(&call_options, sizeof call_options, call, "qkv_call_options", error));
        probing.call = &call_options;
    }
    if (report) QKV_TRY(qkvi_options_read(&told, sizeof told, report, "qkv_probe_report", error));
    told = qkv_probe_report_init();
    QKV_TRY(check(&probing, probes, error));
    QKV_TRY(qkvi_element_check(probe_bytes, sizeof *probes, "probe_bytes", error));
    if (probing.options.n_texts == 0) probing.options.n_texts = N_TEXTS;
    probing.info = qkv_model_get_info(model);
    probing.tokenizer = qkv_model_tokenizer(model, QKV_SOURCE);
    if (!probing.tokenizer)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: probes are texts, and a %s reads images", probing.info->source,
                              probing.info->architecture);
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    const qkv_status status = run_all(&probing, &told, error);
    qkvi_fpstate_leave(saved);
    const int64_t n_all = probing.info->n_layers * probing.info->n_heads;
    for (int64_t h = 0; status == QKV_OK && h < n_all; h++)
        qkvi_element_write(probes, h, probe_bytes, &probing.probes[h], sizeof *probing.probes);
    if (status == QKV_OK && report) qkvi_options_write(report, &told, sizeof told);
    free(probing.probes);
    free(probing.ordinary);
    free(probing.ids);
    free(probing.swaps);
    return status;
}
