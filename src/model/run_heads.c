/*
 * Heads on a finished run: logits of a masked word, its likeliest words, logits of the next
 * sentence.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fpstate.h"
#include "kernels/table.h"
#include "model/model_impl.h"
#include "model/run_impl.h"

/* The last hidden state of a token, if all that a head needs is there. */
static qkv_status last_hidden(const qkv_ctx *ctx, const qkv_model *model, const qkv_run *run,
                              int64_t b, int64_t position, const float *logits,
                              const float **hidden, qkv_error *error) {
    if (!ctx || !model || !run || !logits)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !ctx     ? "ctx"
                              : !model ? "model"
                              : !run   ? "run"
                                       : "logits");
    if (run->model != model)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "the run is one of another model");
    QKV_TRY(qkvi_check_index("b", b, run->n_batch, error));
    QKV_TRY(qkvi_check_index("position", position, run->lengths[b], error));
    *hidden = qkv_run_hidden(run, b, run->n_layers) + position * run->hidden;
    return QKV_OK;
}

qkv_status qkv_model_mlm(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                         int64_t position, float *logits, qkv_error *error) {
    const float *hidden = NULL;
    QKV_TRY(last_hidden(ctx, model, run, b, position, logits, &hidden, error));
    return qkvi_net_mlm(ctx, model->net, 1, hidden, logits, error);
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
    *hidden =
        qkv_run_decoder_hidden(run, b, model->net->stacks[1].n_layers) + position * run->hidden;
    return QKV_OK;
}

qkv_status qkv_model_lm(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                        int64_t position, float *logits, qkv_error *error) {
    const float *hidden = NULL;
    QKV_TRY(last_of_decoder(ctx, model, run, b, position, logits, &hidden, error));
    return qkvi_net_lm(ctx, model->net, 1, hidden, logits, error);
}

qkv_status qkv_model_nsp(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                         float logits[2], qkv_error *error) {
    const float *hidden = NULL;
    QKV_TRY(last_hidden(ctx, model, run, b, 0, logits, &hidden, error));
    return qkvi_net_nsp(ctx, model->net, 1, hidden, logits, error);
}

qkv_status qkv_model_judge(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                           float *logits, qkv_error *error) {
    const float *hidden = NULL;
    QKV_TRY(last_hidden(ctx, model, run, b, 0, logits, &hidden, error));
    return qkvi_net_judge(ctx, model->net, run->lengths[b], hidden, logits, error);
}

/*
 * Puts a candidate into the list of the best, which has room for n and holds count; returns the new
 * count.
 */
static int64_t insert(qkv_candidate *list, int64_t count, int64_t n, qkv_candidate new) {
    int64_t low = 0, high = count; /* it goes after all that are at least as likely */
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (list[middle].probability >= new.probability)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == n) return count;
    const int64_t kept = count < n ? count : n - 1;
    memmove(list + low + 1, list + low, (size_t)(kept - low) * sizeof *list);
    list[low] = new;
    return kept + 1;
}

/* The likeliest of logits, which softmax is taken of. */
static void list_likeliest(const qkv_run *run, int64_t n_words, float *logits, int64_t n,
                           qkv_candidate *candidates) {
    float sum, lse;
    int64_t count = 0;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    run->kernels->layer.softmax_forward(n_words, logits, &sum, &lse);
    for (int64_t id = 0; id < n_words; id++)
        count = insert(candidates, count, n, (qkv_candidate){ (int32_t)id, logits[id] / sum });
    qkvi_fpstate_leave(saved);
}

/* Of one head of a model, which is asked for its logits. */
typedef qkv_status ask_head(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                            int64_t position, float *logits, qkv_error *error);

static qkv_status likeliest(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                            int64_t position, ask_head *ask, const char *vocab_name,
                            int64_t n_words, int64_t n_candidates, qkv_candidate *candidates,
                            qkv_error *error) {
    if (n_candidates < 1 || n_candidates > n_words)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "n_candidates = %lld is not between 1 and %s = %lld",
                              (long long)n_candidates, vocab_name, (long long)n_words);
    float *logits = qkvi_aligned_array((size_t)n_words, sizeof(float));
    if (!logits) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for logits");
    const qkv_status status = ask(ctx, model, run, b, position, logits, error);
    if (status == QKV_OK) list_likeliest(run, n_words, logits, n_candidates, candidates);
    free(logits);
    return status;
}

static qkv_status check_candidates(const qkv_model *model, const qkv_candidate *candidates,
                                   qkv_error *error) {
    if (model && candidates) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", model ? "candidates" : "model");
}

qkv_status qkv_model_fill(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                          int64_t position, int64_t n_candidates, qkv_candidate *candidates,
                          qkv_error *error) {
    QKV_TRY(check_candidates(model, candidates, error));
    return likeliest(ctx, model, run, b, position, qkv_model_mlm, "vocab_size",
                     model->info.vocab_size, n_candidates, candidates, error);
}

qkv_status qkv_model_next(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                          int64_t position, int64_t n_candidates, qkv_candidate *candidates,
                          qkv_error *error) {
    QKV_TRY(check_candidates(model, candidates, error));
    if (!model->net->has_lm) return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "no LM head");
    return likeliest(ctx, model, run, b, position, qkv_model_lm, "target_vocab_size",
                     model->net->lm.n_out, n_candidates, candidates, error);
}
