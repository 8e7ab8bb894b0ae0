/* Hidden states that an output head for words reads: see word_states.h. */
#include "inspect/word_states.h"

#include <math.h>

#include "model/model_impl.h"
#include "model/run_impl.h"

qkv_status qkvi_word_states(const qkv_model *model, const qkv_run *run, qkv_word_head head,
                            int64_t b, qkv_attention_kind *which, int64_t *n, qkv_error *error) {
    const bool masked = head == QKV_HEAD_MASKED, pairs = model->net->n_stacks > 1;
    if (run->model != model)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "the run is one of another model");
    QKV_TRY(qkvi_model_check_head(model, masked ? model->info.has_mlm : model->info.has_lm,
                                  masked ? "MLM" : "LM", error));
    QKV_TRY(qkvi_check_index("b", b, run->n_batch, error));
    if (pairs && !run->is_pair)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "the run is of the encoder alone");
    *which = pairs ? QKV_DECODER : QKV_SELF;
    *n = pairs ? run->decoder_lengths[b] : run->lengths[b];
    return QKV_OK;
}

float qkvi_largest_logit(const float *logits, int64_t n) {
    float largest = logits[0];
    for (int64_t v = 1; v < n; v++)
        if (logits[v] > largest) largest = logits[v];
    return largest;
}

double qkvi_log_probability(const float *logits, int64_t n, int32_t word) {
    const float largest = qkvi_largest_logit(logits, n);
    double sum = 0;
    for (int64_t v = 0; v < n; v++) sum += exp((double)logits[v] - (double)largest);
    return (double)logits[word] - (double)largest - log(sum);
}
