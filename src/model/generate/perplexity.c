/*
 * Perplexity: how well a model expects a text. A text longer than the model is read in windows,
 * each `stride` tokens further, and in each of them only tokens count that no window before had: so
 * each token but the first counts once, and has at least (window - stride) tokens before it where
 * the text has them (transformers' documentation, "Perplexity of fixed-length models"). Windows are
 * pieces of one list of tokens there, so only the first begins with the token that begins texts.
 * Models are trained on texts that do: so the same is measured with that token in place of the
 * first one of each window, which never counts.
 *
 * Of a pair every token of the target counts, given the source: the decoder reads the model's
 * start_id and the target without its last token.
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
    double sum, begun;       /* begun: where every window begins with the model's bos_id */
    int64_t n_tokens;
} measure;

/* Adds losses of the tokens targets[0 … n), each predicted by its row of hidden. */
static qkv_status add_rows(const measure *m, int64_t n, const float *hidden, const int32_t *targets,
                           double *sum, qkv_error *error) {
    const qkvi_net *const net = m->model->net;
    for (int64_t first = 0; first < n; first += ROWS) {
        const int64_t count = qkvi_min_i64(ROWS, n - first);
        qkvi_cross_entropy ignored = { 0 };
        QKV_TRY(qkvi_net_lm(m->ctx, net, count, hidden + first * qkvi_net_last(net)->hidden,
                            m->logits, error));
        qkvi_cross_entropy_rows(m->ctx, count, net->lm.n_out, targets + first, 0, 0, m->logits,
                                m->scratch, &ignored);
        for (int64_t r = 0; r < count; r++) *sum += (double)m->scratch[2 * r];
    }
    return QKV_OK;
}

/* A window, of which the last n tokens count. */
static qkv_status add_window(const measure *m, const qkv_encoding *window, int64_t n, double *sum,
                             qkv_error *error) {
    const int64_t before = window->n - n;
    qkv_run *run;
    QKV_TRY(qkv_model_run(m->ctx, m->model, 1, &window, 0, NULL, &run, error));
    const float *const hidden = qkv_run_hidden(run, QKV_SELF, 0, m->model->info.n_layers);
    const qkv_status status = add_rows(m, n, hidden + (before - 1) * m->model->info.hidden,
                                       window->ids + before, sum, error);
    qkv_run_free(run);
    return status;
}

/* The same window, but for its first token. */
static qkv_status add_begun(const measure *m, const qkv_encoding *window, int64_t n, double *sum,
                            qkv_error *error) {
    int32_t *const ids = qkvi_malloc_array((size_t)window->n, sizeof *ids);
    const qkv_encoding begun = { .n = window->n, .ids = ids };
    if (!ids) return qkvi_no_memory(error, "a window");
    memcpy(ids, window->ids, (size_t)window->n * sizeof *ids);
    ids[0] = (int32_t)m->model->info.bos_id;
    const qkv_status status = add_window(m, &begun, n, sum, error);
    free(ids);
    return status;
}

static qkv_status add_text(measure *m, const qkv_encoding *text, int64_t stride, qkv_error *error) {
    const qkv_model_info *const info = &m->model->info;
    for (int64_t first = 0, next = 1; next < text->n; first += stride) {
        const int64_t end = qkvi_min_i64(first + info->max_len, text->n);
        const qkv_encoding window = { .n = end - first, .ids = text->ids + first };
        double loss = 0, begun = 0;
        if (end <= next) continue;
        QKV_TRY(add_window(m, &window, end - next, &loss, error));
        if (first > 0 && text->ids[0] == info->bos_id)
            QKV_TRY(add_begun(m, &window, end - next, &begun, error));
        else
            begun = loss;
        m->sum += loss;
        m->begun += begun;
        m->n_tokens += end - next;
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
                          target->ids, &m->sum, error);
    m->begun = m->sum;
    m->n_tokens += target->n;
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
    if (info->kind == QKV_MODEL_DECODER && info->n_labels > 0)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: a %s that classifies texts does not predict their tokens",
                              info->source, info->architecture);
    if (info->kind != QKV_MODEL_DECODER || !m->model->net->has_lm)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: a %s does not predict the next token of a text alone",
                              info->source, info->architecture);
    QKV_TRY(check_list("texts", n, texts, error));
    if (info->max_len < 2)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: the model takes 1 token, and predicts none from one before it",
                              info->source);
    if (*stride == 0) *stride = (info->max_len + 1) / 2;
    /* a window must have the token before the first that counts */
    if (*stride >= 1 && *stride < info->max_len) return QKV_OK;
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

static double perplexity_of(double loss) { return loss > 0 ? 1 / qkvi_exp(-loss) : 1; }

static qkv_status end(measure *m, qkv_status status, qkv_perplexity_report *made,
                      qkv_perplexity_report *report) {
    free(m->logits);
    free(m->scratch);
    if (status != QKV_OK) return status;
    *made = (qkv_perplexity_report){ .n_tokens = m->n_tokens };
    if (m->n_tokens > 0) made->loss = m->sum / (double)m->n_tokens;
    if (m->n_tokens > 0) made->begun_loss = m->begun / (double)m->n_tokens;
    made->perplexity = perplexity_of(made->loss);
    made->begun_perplexity = perplexity_of(made->begun_loss);
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
