/* The layers of a block, one row at a time: see steps.h. */
#include <math.h>

#include "core/fpstate.h"
#include "files/base.h"
#include "inspect/rows.h"
#include "inspect/steps.h"
#include "model/arch/family.h"
#include "model/arch/net.h"
#include "model/model_impl.h"
#include "qkv/inspect.h"

/* A word's vector as blocks have it: of OPT a linear layer may be between. */
static double word_channel(const qkvi_stack *stack, int32_t id, int64_t c) {
    const qkvi_weights words = qkvi_embed_words(&stack->embed);
    const qkvi_weights project = qkvi_linear_weights(&stack->project);
    double sum = 0;
    if (!stack->positions) return (double)qkvi_weight_at(&words, id, c);
    for (int64_t i = 0; i < stack->embedding_size; i++)
        sum += (double)qkvi_weight_at(&project, c, i) * (double)qkvi_weight_at(&words, id, i);
    return sum;
}

void qkvi_step_word(const qkvi_stack *stack, int32_t id, double *to) {
    for (int64_t c = 0; c < stack->hidden; c++)
        to[c] = (double)stack->embed.word_scale * word_channel(stack, id, c);
}

/* Behind a projection: there are no segments. */
static void narrow_embedding(const qkvi_stack *stack, const qkv_encoding *input, int64_t i,
                             int positions, double *sum) {
    const int64_t place = qkvi_stack_place(stack, input->ids, i);
    qkvi_step_word(stack, input->ids[i], sum);
    for (int64_t c = 0; positions && c < stack->hidden; c++)
        sum[c] += (double)stack->positions[place * stack->hidden + c];
}

void qkvi_step_embedding(const qkvi_stack *stack, const qkv_encoding *input, int64_t i,
                         int positions, double *sum) {
    const qkvi_embed *e = &stack->embed;
    if (stack->positions) {
        narrow_embedding(stack, input, i, positions, sum);
        return;
    }
    const qkvi_weights words = qkvi_embed_words(e);
    const float *type = e->type + qkvi_stack_type(stack, input->types, i) * e->hidden;
    const float *position = e->n_positions > 0
                                ? e->position + qkvi_stack_place(stack, input->ids, i) * e->hidden
                                : NULL;
    for (int64_t c = 0; c < e->hidden; c++) {
        sum[c] = (double)e->word_scale * (double)qkvi_weight_at(&words, input->ids[i], c) +
                 (double)type[c];
        if (positions && position) sum[c] += (double)position[c];
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
    if (layer->kind == QKVI_LAYER_SCALE) {
        for (int64_t i = 0; i < layer->n; i++) y[i] = s[i] * (double)layer->gamma[i];
        return;
    }
    const double from = layer->kind == QKVI_RMS_NORM_FROM_ONE ? 1 : 0;
    for (int64_t i = 0; i < layer->n && layer->kind == QKVI_LAYER_NORM; i++) mean += s[i] / n;
    for (int64_t i = 0; i < layer->n; i++) variance += (s[i] - mean) * (s[i] - mean) / n;
    const double rstd = 1 / sqrt(variance + eps);
    for (int64_t i = 0; i < layer->n; i++)
        y[i] = (s[i] - mean) * rstd * (from + (double)layer->gamma[i]) +
               (layer->beta ? (double)layer->beta[i] : 0);
}

void qkvi_step_input(const qkvi_stack *stack, double *sum) {
    if (stack->embed_norm.gamma) qkvi_step_norm(&stack->embed_norm, (double)stack->eps, sum, sum);
}

void qkvi_step_read(const qkvi_block *block, int64_t n, const double *x, double *read) {
    if (block->pre_norm && block->norm1.gamma)
        qkvi_step_norm(&block->norm1, (double)block->eps, x, read);
    else
        for (int64_t c = 0; c < n; c++) read[c] = x[c];
}

void qkvi_step_place(const qkvi_mha *mha, const qkvi_layernorm *norm, const qkvi_rope *rope,
                     int64_t place, int64_t reach, int64_t n_heads, double *x) {
    const int64_t d = mha->head_dim, half = rope ? rope->dim / 2 : 0, width = n_heads * d;
    const int64_t step = mha->neighbours ? 2 : 1, apart = mha->neighbours ? 1 : half;
    for (int64_t at = 0; norm->gamma && at < width; at += norm->n)
        qkvi_step_norm(norm, (double)mha->eps, x + at, x + at);
    for (int64_t h = 0; rope && h < n_heads; h++)
        for (int64_t i = 0; i < half; i++) {
            const double angle = (double)place * qkvi_rope_frequency(rope, reach, i);
            const double c = rope->factor * cos(angle), s = rope->factor * sin(angle);
            double *const a = x + h * d + step * i, low = a[0], high = a[apart];
            a[0] = c * low - s * high;
            a[apart] = c * high + s * low;
        }
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
    if (info->embedding_size != info->hidden && !qkvi_family_of(info->architecture)->positions_last)
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

/* ---- Vectors --------------------------------------------------------------------------------- */

/*
 * One query of vectors without a model: every number in double precision, and how far the library's
 * own are from them.
 */

/* What is given: [head_dim], [n_keys][head_dim], [n_keys][head_dim_v]. */
struct vectors {
    int64_t n_keys, head_dim, head_dim_v, query;
    const float *q, *k, *v;
    int causal;
};

static double *widen(double *to, const float *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = (double)from[i];
    return to + n;
}

/* The arrays of the steps follow them in one block. */
static qkv_steps *make(const struct vectors *x) {
    const int64_t n = x->n_keys, d = x->head_dim, d_v = x->head_dim_v;
    int64_t n_k, n_v, n_doubles;
    if (!qkvi_mul_i64(n, d, &n_k) || !qkvi_mul_i64(n, d_v, &n_v) ||
        !qkvi_add_i64(n_k, n_v, &n_doubles) ||
        !qkvi_add_i64(n_doubles, d + 5 * n + d_v, &n_doubles))
        return NULL;
    struct block {
        qkv_steps steps;
        double numbers[];
    };
    if ((uint64_t)n_doubles > (SIZE_MAX - sizeof(struct block)) / sizeof(double)) return NULL;
    struct block *const made =
        qkvi_calloc_array(1, sizeof *made + (size_t)n_doubles * sizeof(double));
    if (!made) return NULL;
    double *at = made->numbers;
    made->steps = (qkv_steps){ .n = n,
                               .head_dim = d,
                               .query = x->query,
                               .causal = x->causal,
                               .window_left = -1,
                               .window_right = -1,
                               .end_key = x->causal ? x->query + 1 : n };
    made->steps.q = at;
    made->steps.k = at = widen(at, x->q, d);
    made->steps.v = at = widen(at, x->k, n_k);
    made->steps.products = at = widen(at, x->v, n_v);
    made->steps.scores = at + n;
    made->steps.shifted = at + 2 * n;
    made->steps.exponentials = at + 3 * n;
    made->steps.weights = at + 4 * n;
    made->steps.o = at + 5 * n;
    return &made->steps;
}

static void compute(const struct vectors *x, qkv_steps *s) {
    const int64_t n = x->n_keys, d = x->head_dim, d_v = x->head_dim_v;
    double *const products = (double *)(uintptr_t)s->products, *const scores = products + n,
                  *const shifted = products + 2 * n, *const exponentials = products + 3 * n,
                  *const weights = products + 4 * n, *const o = products + 5 * n;
    s->scale = d > 0 ? 1 / sqrt((double)d) : 1;
    s->largest = -INFINITY;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t c = 0; c < d; c++) products[j] += s->q[c] * s->k[j * d + c];
        scores[j] = x->causal && j > x->query ? -INFINITY : s->scale * products[j];
        if (!(scores[j] <= s->largest)) s->largest = scores[j];
    }
    for (int64_t j = 0; j < n; j++) {
        shifted[j] = scores[j] - s->largest;
        exponentials[j] = exp(shifted[j]);
        s->sum += exponentials[j];
    }
    for (int64_t j = 0; j < n; j++) {
        weights[j] = exponentials[j] / s->sum;
        for (int64_t c = 0; c < d_v; c++) o[c] += weights[j] * s->v[j * d_v + c];
    }
}

/* o and lse of this query as the library has them. */
static qkv_status compare(qkv_ctx *ctx, const struct vectors *x, qkv_steps *s, qkv_error *error) {
    qkv_attention_desc desc;
    float lse, *const o = qkvi_calloc_array((size_t)x->head_dim_v, sizeof *o);
    if (!o) return qkvi_no_memory(error, "an output");
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, 1, x->n_keys, x->head_dim, x->head_dim_v);
    if (x->causal) {
        desc.flags |= QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
        desc.q_offset = x->query;
    }
    const qkv_status status = qkvi_ctx_told(
        ctx, qkv_attention_forward(ctx, &desc, x->q, x->k, x->v, o, &lse, NULL), error);
    for (int64_t c = 0; status == QKV_OK && c < x->head_dim_v; c++)
        s->y_error = fmax(s->y_error, fabs((double)o[c] - s->o[c]));
    if (status == QKV_OK) s->lse_error = fabs((double)lse - (s->largest + log(s->sum)));
    free(o);
    return status;
}

static qkv_status check(const struct vectors *x, qkv_error *error) {
    const int64_t sizes[] = { x->n_keys, x->head_dim, x->head_dim_v };
    static const char *const names[] = { "n_keys", "head_dim", "head_dim_v" };
    for (int i = 0; i < 3; i++)
        if (sizes[i] < 0 || sizes[i] > (int64_t)1 << 40)
            return qkvi_error_set(error, QKV_ERR_SHAPE, "%s = %lld is not in 0 ... 2^40", names[i],
                                  (long long)sizes[i]);
    return QKV_OK;
}

qkv_status qkv_inspect_vectors(qkv_ctx *ctx, int64_t n_keys, int64_t head_dim, int64_t head_dim_v,
                               const float *q, const float *k, const float *v, int64_t query,
                               int causal, qkv_steps **steps, qkv_error *error) {
    const struct vectors x = { n_keys, head_dim, head_dim_v, query, q, k, v, causal };
    if (steps) *steps = NULL;
    QKV_TRY(qkvi_need(ctx, "ctx", error));
    QKV_TRY(qkvi_need(q, "q", error));
    QKV_TRY(qkvi_need(k, "k", error));
    QKV_TRY(qkvi_need(v, "v", error));
    QKV_TRY(qkvi_need(steps, "steps", error));
    QKV_TRY(check(&x, error));
    qkv_steps *const made = make(&x);
    if (!made)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the steps of %lld keys",
                              (long long)n_keys);
    compute(&x, made);
    const qkv_status status = compare(ctx, &x, made, error);
    if (status == QKV_OK)
        *steps = made;
    else
        qkv_steps_free(made);
    return status;
}

/* ---- A head of layer 0 ----------------------------------------------------------------------- */

/*
 * What a head of layer 0 makes of a text, with the positions of its tokens or without them.
 */

static void project(const qkvi_linear *layer, int64_t head, int64_t head_dim, const double *x,
                    double *y, float *out) {
    qkvi_step_linear(layer, head * head_dim, head_dim, x, y);
    for (int64_t c = 0; c < head_dim; c++) out[c] = (float)y[c];
}

qkv_status qkv_inspect_projections(const qkv_model *model, const qkv_encoding *input, int64_t head,
                                   int positions, float *q, float *k, float *v, qkv_error *error) {
    if (!model || !input || !q || !k || !v)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !model   ? "model"
                              : !input ? "input"
                                       : "q, k or v");
    if (head < 0 || head >= model->info.n_heads)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "head = %lld is not between 0 and %lld",
                              (long long)head, (long long)model->info.n_heads - 1);
    if (model->info.patch_height > 0 || input->image)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s, or the input, is of images: projections are of texts",
                              model->info.source);
    QKV_TRY(qkvi_step_check_input(&model->info, input, error));
    const qkvi_stack *p = &model->net->stacks[0];
    const qkvi_mha *mha = &p->blocks[0].mha;
    const int64_t head_dim = p->head_dim;
    double *x = qkvi_malloc_array((size_t)(p->hidden + head_dim), sizeof *x);
    if (!x) return qkvi_no_memory(error, "a hidden state");
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    for (int64_t i = 0; i < input->n; i++) {
        qkvi_step_embedding(p, input, i, positions, x);
        qkvi_step_input(p, x);
        qkvi_step_read(&p->blocks[0], p->hidden, x, x);
        project(&mha->query, head, head_dim, x, x + p->hidden, q + i * head_dim);
        project(&mha->key, head, head_dim, x, x + p->hidden, k + i * head_dim);
        project(&mha->value, head, head_dim, x, x + p->hidden, v + i * head_dim);
    }
    qkvi_fpstate_leave(saved);
    free(x);
    return QKV_OK;
}
