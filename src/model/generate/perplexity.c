/*
 * Perplexity: how well a model expects a text. A text longer than the model is read in windows, each
 * `stride` tokens further, and in each of them only tokens count that no window before had: so each
 * token but the first counts once, and has at least (window - stride) tokens before it where the text
 * has them (transformers' documentation, "Perplexity of fixed-length models").
 *
 * Of a pair every token of the target counts, given the source: the decoder reads the model's start_id and
 * the target without its last token.
 */

#include "core/ints.h"
#include "core/options.h"
#include "layer/loss.h"
#include "model/arch/net.h"
#include "model/generate/row.h"
#include "model/model_impl.h"
#include "qkv/generate.h"

enum { ROWS = 64 }; /* rows of logits at a time */

typedef struct measure {
    qkv_ctx *ctx;
    const qkv_model *model;
    float *logits, *scratch; /* [ROWS][vocab]; [ROWS][2] */
    double sum;
    int64_t n_tokens;
} measure;

/* Losses of the tokens targets[0 … n), each predicted by its row of hidden. */
static qkv_status add_rows(measure *m, int64_t n, const float *hidden, const int32_t *targets,
                           qkv_error *error) {
    const qkvi_net *const net = m->model->net;
    for (int64_t first = 0; first < n; first += ROWS) {
        const int64_t count = qkvi_min_i64(ROWS, n - first);
        qkvi_cross_entropy ignored = { 0 };
        QKV_TRY(qkvi_net_lm(m->ctx, net, count, hidden + first * net->lm.n_in, m->logits, error));
        qkvi_cross_entropy_rows(m->ctx, count, net->lm.n_out, targets + first, 0, 0, m->logits,
                                m->scratch, &ignored);
        for (int64_t r = 0; r < count; r++) m->sum += (double)m->scratch[2 * r];
    }
    m->n_tokens += n;
    return QKV_OK;
}

/* Tokens from `next` on of the window that begins at `first`. */
static qkv_status add_window(measure *m, const qkv_encoding *text, int64_t first, int64_t end,
                             int64_t next, qkv_error *error) {
    const qkv_encoding window = { .n = end - first, .ids = text->ids + first };
    const qkv_encoding *const input = &window;
    qkv_run *run;
    QKV_TRY(qkv_model_run(m->ctx, m->model, 1, &input, 0, NULL, &run, error));
    const float *const hidden = qkv_run_hidden(run, QKV_SELF, 0, m->model->info.n_layers);
    const qkv_status status =
        add_rows(m, end - next, hidden + (next - 1 - first) * m->model->info.hidden,
                 text->ids + next, error);
    qkv_run_free(run);
    return status;
}

static qkv_status add_text(measure *m, const qkv_encoding *text, int64_t stride, qkv_error *error) {
    const int64_t length = m->model->info.max_len;
    for (int64_t first = 0, next = 1; next < text->n; first += stride) {
        const int64_t end = qkvi_min_i64(first + length, text->n);
        if (end <= next) continue;
        QKV_TRY(add_window(m, text, first, end, next, error));
        next = end;
    }
    return QKV_OK;
}

/* ---- Pairs ----------------------------------------------------------------------------------- */

static qkv_status add_pair(measure *m, const qkv_encoding *source, const qkv_encoding *target,
                           qkv_error *error) {
    const qkv_model_info *const info = &m->model->info;
    int32_t *const ids = qkvi_malloc_array((size_t)target->n, sizeof *ids);
    const qkv_encoding inputs = { .n = target->n, .ids = ids };
    const qkv_encoding *const read = &inputs;
    qkv_run_options options = qkv_run_options_init();
    qkv_run *run = NULL;
    if (!ids) return qkvi_no_memory(error, "a target");
    ids[0] = (int32_t)info->start_id;
    memcpy(ids + 1, target->ids, (size_t)(target->n - 1) * sizeof *ids);
    options.targets = &read;
    qkv_status status = qkv_model_run(m->ctx, m->model, 1, &source, 0, &options, &run, error);
    if (status == QKV_OK)
        status = add_rows(m, target->n, qkv_run_hidden(run, QKV_DECODER, 0, info->n_decoder_layers),
                          target->ids, error);
    qkv_run_free(run);
    free(ids);
    return status;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static qkv_status check_list(const char *name, int64_t n, const qkv_encoding *const *list,
                             qkv_error *error) {
    if (!list && n > 0) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", name);
    for (int64_t b = 0; b < n; b++)
        if (!list[b] || (!list[b]->ids && list[b]->n > 0))
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s[%lld]%s is NULL", name, (long long)b,
                                  list[b] ? ".ids" : "");
    return QKV_OK;
}

static qkv_status check_rest(const measure *m, int64_t n, const qkv_perplexity_report *report,
                             qkv_error *error) {
    if (!m->ctx || !m->model || !report)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !m->ctx     ? "ctx"
                              : !m->model ? "model"
                                          : "report");
    if (n < 0) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "n = %lld is negative", (long long)n);
    return QKV_OK;
}

static qkv_status check(const measure *m, int64_t n, const qkv_encoding *const *texts,
                        int64_t *stride, const qkv_perplexity_report *report, qkv_error *error) {
    QKV_TRY(check_rest(m, n, report, error));
    const qkv_model_info *const info = &m->model->info;
    if (info->kind != QKV_MODEL_DECODER || !m->model->net->has_lm)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: a %s does not predict the next token of a text alone",
                              info->source, info->architecture);
    QKV_TRY(check_list("texts", n, texts, error));
    if (*stride == 0) *stride = (info->max_len + 1) / 2;
    /* a window must have the token before the first that counts */
    if (*stride >= 1 && (*stride < info->max_len || info->max_len == 1)) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "stride = %lld is not between 1 and %lld",
                          (long long)*stride, (long long)info->max_len - 1);
}

static qkv_status check_pairs(const measure *m, int64_t n, const qkv_encoding *const *sources,
                              const qkv_encoding *const *targets,
                              const qkv_perplexity_report *report, qkv_error *error) {
    QKV_TRY(check_rest(m, n, report, error));
    const qkv_model_info *const info = &m->model->info;
    if (info->kind != QKV_MODEL_PAIR || !m->model->net->has_lm)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: a %s does not predict a target from a source", info->source,
                              info->architecture);
    if (info->start_id < 0)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s does not say which token its decoder starts from", info->source);
    QKV_TRY(check_list("sources", n, sources, error));
    return check_list("targets", n, targets, error);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static qkv_status begin(measure *m, qkv_error *error) {
    size_t n_logits;
    if (!qkvi_mul_size(ROWS, (size_t)m->model->net->lm.n_out, &n_logits)) n_logits = SIZE_MAX;
    m->logits = qkvi_malloc_array(n_logits, sizeof *m->logits);
    m->scratch = qkvi_malloc_array(2 * ROWS, sizeof *m->scratch);
    return m->logits && m->scratch ? QKV_OK : qkvi_no_memory(error, "logits");
}

static qkv_status end(measure *m, qkv_status status, qkv_perplexity_report *made,
                      qkv_perplexity_report *report) {
    free(m->logits);
    free(m->scratch);
    if (status != QKV_OK) return status;
    *made = (qkv_perplexity_report){ .n_tokens = m->n_tokens };
    if (m->n_tokens > 0) made->loss = m->sum / (double)m->n_tokens;
    made->perplexity = made->loss > 0 ? 1 / qkvi_exp(-made->loss) : 1;
    qkvi_options_write(report, made, sizeof *made);
    return QKV_OK;
}

qkv_status qkv_perplexity(qkv_ctx *ctx, const qkv_model *model, int64_t n,
                          const qkv_encoding *const *texts, int64_t stride,
                          qkv_perplexity_report *report, qkv_error *error) {
    measure m = { .ctx = ctx, .model = model };
    qkv_perplexity_report made = qkv_perplexity_report_init();
    QKV_TRY(check(&m, n, texts, &stride, report, error));
    QKV_TRY(qkvi_options_read(&made, sizeof made, report, "qkv_perplexity_report", error));
    qkv_status status = begin(&m, error);
    for (int64_t b = 0; status == QKV_OK && b < n; b++)
        status = add_text(&m, texts[b], stride, error);
    return end(&m, status, &made, report);
}

qkv_status qkv_perplexity_pairs(qkv_ctx *ctx, const qkv_model *model, int64_t n,
                                const qkv_encoding *const *sources,
                                const qkv_encoding *const *targets, qkv_perplexity_report *report,
                                qkv_error *error) {
    measure m = { .ctx = ctx, .model = model };
    qkv_perplexity_report made = qkv_perplexity_report_init();
    QKV_TRY(check_pairs(&m, n, sources, targets, report, error));
    QKV_TRY(qkvi_options_read(&made, sizeof made, report, "qkv_perplexity_report", error));
    qkv_status status = begin(&m, error);
    for (int64_t b = 0; status == QKV_OK && b < n; b++)
        if (targets[b]->n > 0) status = add_pair(&m, sources[b], targets[b], error);
    return end(&m, status, &made, report);
}
