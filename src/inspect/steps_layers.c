/* The layers of a block, one row at a time: see steps.h. */
#include <math.h>

#include "inspect/steps.h"

void qkvi_step_embedding(const qkvi_stack *stack, const qkv_encoding *input, int64_t i,
                         int positions, double *sum) {
    const qkvi_embed *e = &stack->embed;
    const qkvi_weights words = qkvi_embed_words(e);
    const float *type = e->type + qkvi_stack_type(stack, input->types, i) * e->hidden;
    const float *position = e->position + qkvi_stack_place(stack, input->ids, i) * e->hidden;
    for (int64_t c = 0; c < e->hidden; c++) {
        sum[c] = (double)e->word_scale * (double)qkvi_weight_at(&words, input->ids[i], c) +
                 (double)type[c];
        if (positions) sum[c] += (double)position[c];
    }
}

void qkvi_step_linear(const qkvi_linear *layer, int64_t first, int64_t n_out, const double *x,
                      double *y) {
    const qkvi_weights weights = qkvi_linear_weights(layer);
    for (int64_t c = 0; c < n_out; c++) {
        double sum = 0;
        for (int64_t i = 0; i < layer->n_in; i++)
            sum += (double)qkvi_weight_at(&weights, first + c, i) * x[i];
        y[c] = layer->bias ? sum + (double)layer->bias[first + c] : sum;
    }
}

void qkvi_step_norm(const qkvi_layernorm *layer, double eps, const double *s, double *y) {
    const double n = (double)layer->n;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < layer->n; i++) mean += s[i] / n;
    for (int64_t i = 0; i < layer->n; i++) variance += (s[i] - mean) * (s[i] - mean) / n;
    const double rstd = 1 / sqrt(variance + eps);
    for (int64_t i = 0; i < layer->n; i++)
        y[i] = (s[i] - mean) * rstd * (double)layer->gamma[i] + (double)layer->beta[i];
}

void qkvi_step_input(const qkvi_stack *stack, double *sum) {
    if (stack->embed_norm.gamma) qkvi_step_norm(&stack->embed_norm, (double)stack->eps, sum, sum);
}

void qkvi_step_read(const qkvi_block *block, int64_t n, const double *x, double *read) {
    if (block->pre_norm)
        qkvi_step_norm(&block->norm1, (double)block->eps, x, read);
    else
        for (int64_t c = 0; c < n; c++) read[c] = x[c];
}

double qkvi_step_act(qkvi_act act, double x) {
    switch (act) {
    case QKVI_GELU: return x * 0.5 * (1 + erf(x * M_SQRT1_2));
    case QKVI_GELU_TANH: return x * 0.5 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case QKVI_RELU: return x > 0 || isnan(x) ? x : 0;
    case QKVI_QUICK_GELU: return x / (1 + exp(-1.702 * x));
    case QKVI_TANH: return tanh(x);
    default: break; /* QKVI_SILU */
    }
    return x / (1 + exp(-x));
}

void qkvi_step_widen(int64_t n, const float *from, double *to) {
    for (int64_t i = 0; i < n; i++) to[i] = (double)from[i];
}

double qkvi_step_error(int64_t n, const double *a, const float *b) {
    double largest = 0;
    for (int64_t i = 0; i < n; i++) {
        const double difference = fabs(a[i] - (double)b[i]);
        if (isnan(a[i]) && isnan(b[i])) continue;
        if (!(difference <= largest)) largest = difference;
    }
    return largest;
}

qkv_status qkvi_step_check_input(const qkv_model_info *info, const qkv_encoding *input,
                                 qkv_error *error) {
    if (!input->ids) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "input.ids is NULL");
    if (input->n < 1 || input->n > info->max_len)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "input has %lld tokens, the model takes 1 to %lld",
                              (long long)input->n, (long long)info->max_len);
    if (info->embedding_size != info->hidden)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "steps of models whose embeddings (%lld channels) are not as wide as "
                              "their blocks (%lld)",
                              (long long)info->embedding_size, (long long)info->hidden);
    for (int64_t i = 0; i < input->n; i++) {
        const int64_t id = input->ids[i];
        const int64_t type = info->n_types > 0 && input->types ? input->types[i] : 0;
        if (id < 0 || id >= info->vocab_size || (type > 0 && type >= info->n_types))
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "ids[%lld] = %lld, types[%lld] = %lld: the model has "
                                  "vocab_size = %lld, n_types = %lld",
                                  (long long)i, (long long)id, (long long)i, (long long)type,
                                  (long long)info->vocab_size, (long long)info->n_types);
    }
    return QKV_OK;
}
