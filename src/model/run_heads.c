/*
 * Heads on a finished run: logits of a masked word, its likeliest words, logits of the next
 * sentence.
 */

#include "core/fpstate.h"
#include "core/options.h"
#include "kernels/table.h"
#include "layer/rows.h"
#include "model/model_impl.h"
#include "model/run_impl.h"

qkv_status qkvi_run_check(const qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                          const void *out, const char *name, qkv_error *error) {
    QKV_TRY(qkvi_need(ctx, "ctx", error));
    QKV_TRY(qkvi_need(model, "model", error));
    QKV_TRY(qkvi_need(run, "run", error));
    QKV_TRY(qkvi_need(out, name, error));
    if (run->model != model)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "the run is one of another model");
    return qkvi_check_index("b", b, run->n_batch, error);
}

/* The last hidden state of a token, if all that a head needs is there. */
static qkv_status last_hidden(const qkv_ctx *ctx, const qkv_model *model, const qkv_run *run,
                              int64_t b, int64_t position, const float *logits,
                              const float **hidden, qkv_error *error) {
    QKV_TRY(qkvi_run_check(ctx, model, run, b, logits, "logits", error));
    QKV_TRY(qkvi_check_index("position", position, run->lengths[b], error));
    *hidden = qkv_run_hidden(run, QKV_SELF, b, run->n_layers) + position * run->hidden;
    return QKV_OK;
}

/* The same of the stack that a language model's head reads. */
static qkv_status last_of_decoder(const qkv_ctx *ctx, const qkv_model *model, const qkv_run *run,
                                  int64_t b, int64_t position, const float *logits,
                                  const float **hidden, qkv_error *error) {
    if (model && model->net->n_stacks == 1)
        return last_hidden(ctx, model, run, b, position, logits, hidden, error);
    QKV_TRY(last_hidden(ctx, model, run, b, 0, logits, hidden, error));
    if (!run->is_pair)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "the run is of the encoder alone");
    QKV_TRY(qkvi_check_index("position", position, run->decoder_lengths[b], error));
    *hidden = qkv_run_hidden(run, QKV_DECODER, b, model->net->stacks[1].n_layers) +
              position * run->hidden;
    return QKV_OK;
}

qkv_status qkv_model_logits(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run,
                            qkv_word_head head, int64_t b, int64_t position, float *logits,
                            qkv_error *error) {
    const float *hidden = NULL;
    if (head != QKV_HEAD_MASKED && head != QKV_HEAD_NEXT)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "head = %d is none that tells words",
                              (int)head);
    if (head == QKV_HEAD_MASKED) {
        QKV_TRY(last_hidden(ctx, model, run, b, position, logits, &hidden, error));
        QKV_TRY(qkvi_model_check_head(model, model->info.has_mlm, "MLM", error));
        return qkvi_net_mlm(ctx, model->net, 1, hidden, logits, error);
    }
    QKV_TRY(last_of_decoder(ctx, model, run, b, position, logits, &hidden, error));
    QKV_TRY(qkvi_model_check_head(model, model->info.has_lm, "LM", error));
    return qkvi_net_lm(ctx, model->net, 1, hidden, logits, error);
}

qkv_status qkv_model_nsp(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                         float logits[2], qkv_error *error) {
    const float *hidden = NULL;
    QKV_TRY(last_hidden(ctx, model, run, b, 0, logits, &hidden, error));
    return qkvi_net_nsp(ctx, model->net, 1, hidden, logits, error);
}

qkv_status qkv_model_discriminate(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run,
                                  int64_t b, float *logits, qkv_error *error) {
    const float *hidden = NULL;
    QKV_TRY(last_hidden(ctx, model, run, b, 0, logits, &hidden, error));
    return qkvi_net_discriminate(ctx, model->net, run->lengths[b], hidden, logits, error);
}

/* The last token that is no padding, as transformers looks for it; of nothing else the first. */
static int64_t last_token(const qkv_model *model, int64_t n_rows, const int32_t *ids) {
    int64_t last = n_rows - 1;
    while (last > 0 && ids[last] == model->info.pad_id) last--;
    return last;
}

qkv_status qkvi_model_classify(qkv_ctx *ctx, const qkv_model *model, int64_t n_rows,
                               const int32_t *ids, const float *hidden, float *logits,
                               qkv_error *error) {
    const int64_t width = model->info.hidden;
    if (model->info.n_labels > 0 && model->info.label_pooling == QKV_POOLING_LAST)
        return qkvi_net_classify(ctx, model->net, 1,
                                 hidden + last_token(model, n_rows, ids) * width, logits, error);
    if (model->info.patch_height > 0)
        return qkvi_net_classify_image(ctx, model->net, n_rows, hidden, logits, error);
    if (model->info.n_labels == 0 || model->info.label_pooling == QKV_POOLING_CLS)
        return qkvi_net_classify(ctx, model->net, 1, hidden, logits, error);
    float *const mean = qkvi_aligned_array((size_t)width, sizeof *mean);
    if (!mean) return qkvi_no_memory(error, "a mean");
    qkvi_mean_of_rows(n_rows, width, hidden, mean);
    const qkv_status status = qkvi_net_classify(ctx, model->net, 1, mean, logits, error);
    qkvi_aligned_free(mean);
    return status;
}

/* A classifier of texts and one of tokens are asked apart. */
static qkv_status check_task(const qkv_model *model, bool of_tokens, qkv_error *error) {
    const bool tells_tokens = model->info.label_task != QKV_LABELS_OF_TEXTS;
    if (model->info.n_labels == 0 || tells_tokens == of_tokens) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "the classifier tells labels of %s",
                          tells_tokens ? "tokens: qkv_model_classify_tokens"
                                       : "texts: qkv_model_classify");
}

qkv_status qkv_model_classify(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                              float *logits, qkv_error *error) {
    const float *hidden = NULL;
    QKV_TRY(last_hidden(ctx, model, run, b, 0, logits, &hidden, error));
    QKV_TRY(check_task(model, false, error));
    const qkvi_stack_pass *const pass = qkvi_net_stack(run->pass, 0);
    return qkvi_model_classify(ctx, model, run->lengths[b],
                               pass->rows.ids + qkvi_stack_row(pass, b), hidden, logits, error);
}

qkv_status qkv_model_classify_tokens(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run,
                                     int64_t b, float *logits, qkv_error *error) {
    const float *hidden = NULL;
    QKV_TRY(last_hidden(ctx, model, run, b, 0, logits, &hidden, error));
    QKV_TRY(check_task(model, true, error));
    return qkvi_net_classify(ctx, model->net, run->lengths[b], hidden, logits, error);
}

const char *qkv_model_label(const qkv_model *model, int64_t label) {
    return model && label >= 0 && label < model->info.n_labels ? model->labels[label] : NULL;
}

/* The best so far. */
typedef struct candidates {
    qkv_candidate *at;
    int64_t count, n;
} candidates;

static void insert(candidates *list, qkv_candidate new) {
    int64_t low = 0, high = list->count; /* it goes after all that are at least as likely */
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (list->at[middle].probability >= new.probability)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == list->n) return;
    if (list->count < list->n) list->count++;
    for (int64_t i = list->count - 1; i > low; i--) list->at[i] = list->at[i - 1];
    list->at[low] = new;
}

/* The likeliest of logits, which softmax is taken of. */
static void list_likeliest(const qkv_run *run, int64_t n_words, float *logits, candidates *list) {
    float sum, lse;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    run->kernels->layer->softmax_forward(n_words, logits, &sum, &lse);
    for (int64_t id = 0; id < n_words; id++)
        insert(list, (qkv_candidate){ (int32_t)id, logits[id] / sum });
    qkvi_fpstate_leave(saved);
}

qkv_status qkv_model_candidates(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run,
                                qkv_word_head head, int64_t b, int64_t position,
                                int64_t n_candidates, qkv_candidate *found, size_t candidate_bytes,
                                qkv_error *error) {
    candidates list = { .n = n_candidates };
    const bool next = head == QKV_HEAD_NEXT;
    QKV_TRY(qkvi_need(model, "model", error));
    QKV_TRY(qkvi_need(found, "candidates", error));
    QKV_TRY(qkvi_element_check(candidate_bytes, sizeof *found, "candidate_bytes", error));
    if (next) QKV_TRY(qkvi_model_check_head(model, model->info.has_lm, "LM", error));
    const int64_t n_words = next ? model->net->lm.n_out : model->info.vocab_size;
    if (n_candidates < 1 || n_candidates > n_words)
        return qkvi_error_set(
            error, QKV_ERR_ARGUMENT, "n_candidates = %lld is not between 1 and %s = %lld",
            (long long)n_candidates, next ? "target_vocab_size" : "vocab_size", (long long)n_words);
    float *logits = qkvi_aligned_array((size_t)n_words, sizeof(float));
    list.at = qkvi_malloc_array((size_t)n_candidates, sizeof *list.at);
    qkv_status status = QKV_OK;
    if (!logits || !list.at) status = qkvi_no_memory(error, "logits");
    if (status == QKV_OK)
        status = qkv_model_logits(ctx, model, run, head, b, position, logits, error);
    if (status == QKV_OK) list_likeliest(run, n_words, logits, &list);
    for (int64_t i = 0; status == QKV_OK && i < n_candidates; i++)
        qkvi_element_write(found, i, candidate_bytes, &list.at[i], sizeof *list.at);
    free(list.at);
    qkvi_aligned_free(logits);
    return status;
}
