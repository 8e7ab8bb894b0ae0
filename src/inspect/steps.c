/**
 * One query through one head and the rest of its block, number by number (inspect.h has the
 * formulas).
 *
 * The layer's input is what the run computed; everything after it is computed again, in double
 * precision and in the order of a textbook, so that the differences to the run are its rounding and
 * nothing else. They are measured at four places, of which the last, the output of the block, has
 * every step in it.
 */
#include <math.h>

#include "attn/mask.h"
#include "core/fpstate.h"
#include "inspect/steps.h"
#include "model/model_impl.h"
#include "model/run_impl.h"
#include "qkv/inspect.h"

/* The same pointers, for writing, and what is needed besides. */
struct work {
    const qkvi_stack *stack;
    const qkvi_block *block;
    const qkv_encoding *input;
    double *doubles; /* begins with a qkv_steps; see cut */
    size_t used;
    double *all_q;               /* [n_heads head_dim] of the query */
    double *all_k, *all_v, *raw; /* [n][n_kv_heads head_dim]; raw: k before its norm and turns */
    double *row;                 /* [hidden] */
};

static double *cut(struct work *w, int64_t n) {
    double *piece = w->doubles ? w->doubles + w->used : NULL;
    w->used += (size_t)n;
    return piece;
}

/* Places of all arrays; without memory, only their sum. */
struct arrays {
    double *word, *segment, *position, *embedding, *embedded, *x, *read, *q, *k, *v, *products,
        *scores, *shifted, *exponentials, *weights, *o, *concat, *projected, *added, *normed, *up,
        *gelu, *down, *added2, *y, *q_projected, *k_projected, *gate, *attended, *fed;
};

static void lay_out(struct work *w, int64_t n, struct arrays *a) {
    const qkvi_stack *p = w->stack;
    double **const rows[] = { &a->word,      &a->segment, &a->position, &a->embedding, &a->embedded,
                              &a->projected, &a->added,   &a->normed,   &a->down,      &a->added2,
                              &a->y,         &w->row,     &a->attended, &a->fed };
    const qkvi_mha *const mha = &w->block->mha;
    const int64_t width = qkvi_mha_width(mha), kv_width = qkvi_mha_kv_width(mha);
    double **const keys[] = { &a->products, &a->scores, &a->shifted, &a->exponentials,
                              &a->weights };
    w->used = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) *rows[i] = cut(w, p->hidden);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) *keys[i] = cut(w, n);
    a->concat = cut(w, width);
    w->all_q = cut(w, width);
    a->q_projected = cut(w, p->head_dim);
    a->k_projected = cut(w, n * p->head_dim);
    a->gate = cut(w, p->intermediate);
    a->q = cut(w, p->head_dim);
    a->o = cut(w, p->head_dim);
    a->k = cut(w, n * p->head_dim);
    a->v = cut(w, n * p->head_dim);
    a->up = cut(w, p->intermediate);
    a->gelu = cut(w, p->intermediate);
    a->x = cut(w, n * p->hidden);
    a->read = w->block->pre_norm && w->block->norm1.gamma ? cut(w, n * p->hidden) : a->x;
    w->all_k = cut(w, n * kv_width);
    w->all_v = cut(w, n * kv_width);
    w->raw = cut(w, n * kv_width);
}

/* ---- Embedding ------------------------------------------------------------------------------- */

static void embed(const struct work *w, const float *hidden, const struct arrays *a,
                  qkv_steps *steps) {
    const qkvi_embed *e = &w->stack->embed;
    const qkvi_weights words = qkvi_embed_words(e);
    const int64_t i = steps->query, size = e->hidden;
    const int64_t type = qkvi_stack_type(w->stack, w->input->types, i);
    const int64_t place = qkvi_stack_place(w->stack, w->input->ids, i);
    qkvi_step_widen(size, e->type + type * size, a->segment);
    if (e->n_positions > 0) qkvi_step_widen(size, e->position + place * size, a->position);
    qkvi_step_embedding(w->stack, w->input, i, 1, a->embedding);
    for (int64_t c = 0; c < size; c++) {
        a->word[c] = (double)e->word_scale * (double)qkvi_weight_at(&words, w->input->ids[i], c);
        a->embedded[c] = a->embedding[c];
    }
    qkvi_step_input(w->stack, a->embedded);
    for (int64_t j = 0; j < steps->n; j++) {
        qkvi_step_embedding(w->stack, w->input, j, 1, w->row);
        qkvi_step_input(w->stack, w->row);
        const double error = qkvi_step_error(size, w->row, hidden + j * size);
        if (!(error <= steps->embedded_error)) steps->embedded_error = error;
    }
}

/* ---- Attention ------------------------------------------------------------------------------- */

/* Which keys the query sees. */
static void find_keys(qkv_steps *s) {
    const qkvi_rules rules =
        qkvi_rules_of_window(s->n, s->n, 0, s->causal, s->window_left, s->window_right);
    const qkvi_range keys = qkvi_keys_of(&rules, s->query);
    s->first_key = keys.begin;
    s->end_key = keys.end;
}

static double score_of(const qkv_steps *s, double product) {
    const double score = s->scale * product;
    return s->softcap > 0 ? s->softcap * tanh(score / s->softcap) : score;
}

/* o of one head, from q; keys and values are rows of `stride` doubles. */
static void attend(qkv_steps *s, int64_t stride, const double *q, const double *k, const double *v,
                   const struct arrays *a, double *o) {
    const int64_t n = s->n, head_dim = s->head_dim;
    s->largest = -INFINITY;
    s->sum = 0;
    for (int64_t j = 0; j < n; j++) {
        double product = 0;
        for (int64_t c = 0; c < head_dim; c++) product += q[c] * k[j * stride + c];
        a->products[j] = product;
        a->scores[j] = j >= s->first_key && j < s->end_key ? score_of(s, product) : -INFINITY;
        if (!(a->scores[j] <= s->largest)) s->largest = a->scores[j];
    }
    for (int64_t j = 0; j < n; j++) {
        a->shifted[j] = a->scores[j] - s->largest;
        a->exponentials[j] = exp(a->shifted[j]);
        s->sum += a->exponentials[j];
    }
    for (int64_t c = 0; c < head_dim; c++) o[c] = 0;
    for (int64_t j = 0; j < n; j++) {
        a->weights[j] = a->exponentials[j] / s->sum;
        for (int64_t c = 0; c < head_dim; c++) o[c] += a->weights[j] * v[j * stride + c];
    }
}

/* Keys and values of all tokens, and the queries of one, as attention reads them. */
static void project(const struct work *w, const struct arrays *a, const qkv_steps *s) {
    const qkvi_mha *const mha = &w->block->mha;
    const qkvi_rope *const rope = mha->rope ? &w->stack->ropes[mha->rope - 1] : NULL;
    const int64_t size = s->hidden, d = s->head_dim, kv_width = qkvi_mha_kv_width(mha);
    for (int64_t j = 0; j < s->n; j++) {
        double *const k = w->all_k + j * kv_width;
        if (s->pre_norm) qkvi_step_read(w->block, size, a->x + j * size, a->read + j * size);
        qkvi_step_linear(&mha->key, 0, kv_width, a->read + j * size, k);
        qkvi_step_linear(&mha->value, 0, kv_width, a->read + j * size, w->all_v + j * kv_width);
        memcpy(w->raw + j * kv_width, k, (size_t)kv_width * sizeof *k);
        qkvi_step_place(mha, &mha->k_norm, rope, j, s->n, mha->n_kv_heads, k);
    }
    qkvi_step_linear(&mha->query, 0, qkvi_mha_width(mha), a->read + s->query * size, w->all_q);
    memcpy(a->q_projected, w->all_q + s->head * d, (size_t)d * sizeof(double));
    qkvi_step_place(mha, &mha->q_norm, rope, s->query, s->n, mha->n_heads, w->all_q);
}

/* All heads of the query, that of the steps last, so that its numbers are those that stay. */
static void attend_all(const struct work *w, const struct arrays *a, qkv_steps *s) {
    const qkvi_mha *const mha = &w->block->mha;
    const int64_t d = s->head_dim, stride = qkvi_mha_kv_width(mha);
    const int64_t group = mha->n_heads / mha->n_kv_heads;
    project(w, a, s);
    for (int64_t turn = 1; turn <= s->n_heads; turn++) {
        const int64_t h = (s->head + turn) % s->n_heads, at = h / group * d;
        attend(s, stride, w->all_q + h * d, w->all_k + at, w->all_v + at, a, a->concat + h * d);
    }
    const int64_t at = s->head * d, from = s->head / group * d;
    for (int64_t c = 0; c < d; c++) {
        a->q[c] = w->all_q[at + c];
        a->o[c] = a->concat[at + c];
        for (int64_t j = 0; j < s->n; j++) {
            a->k[j * d + c] = w->all_k[j * stride + from + c];
            a->v[j * d + c] = w->all_v[j * stride + from + c];
            a->k_projected[j * d + c] = w->raw[j * stride + from + c];
        }
    }
}

/* ---- The rest of the block ------------------------------------------------------------------- */

/* to [n] = x, or its norm where there is one. */
static void maybe_norm(const qkvi_layernorm *norm, double eps, int64_t n, const double *x,
                       double *to) {
    if (norm->gamma)
        qkvi_step_norm(norm, eps, x, to);
    else
        memmove(to, x, (size_t)n * sizeof *to);
}

static void feed(const qkvi_block *block, const struct arrays *a, const qkv_steps *steps) {
    const int64_t wide = steps->intermediate;
    const bool gated = block->gate.n_out > 0;
    qkvi_step_linear(&block->up, 0, wide, a->normed, a->up);
    if (gated) qkvi_step_linear(&block->gate, 0, wide, a->normed, a->gate);
    for (int64_t c = 0; c < wide; c++)
        a->gelu[c] = gated ? qkvi_step_act(block->act, a->gate[c]) * a->up[c]
                           : qkvi_step_act(block->act, a->up[c]);
    qkvi_step_linear(&block->down, 0, steps->hidden, a->gelu, a->down);
}

static void rest(const struct work *w, const struct arrays *a, const qkv_steps *steps) {
    const qkvi_block *block = w->block;
    const qkvi_layernorm none = { 0 };
    const int64_t size = steps->hidden;
    const double *x = a->x + steps->query * size, eps = (double)block->eps;
    qkvi_step_linear(&block->mha.output, 0, size, a->concat, a->projected);
    maybe_norm(&block->out1, eps, size, a->projected, a->attended);
    for (int64_t c = 0; c < size; c++) a->added[c] = x[c] + a->attended[c];
    maybe_norm(block->pre_norm ? &block->norm2
               : block->adds   ? &none
                               : &block->norm1,
               eps, size, a->added, a->normed);
    feed(block, a, steps);
    maybe_norm(&block->out2, eps, size, a->down, a->fed);
    const double *residual = block->adds ? a->added : a->normed;
    for (int64_t c = 0; c < size; c++) a->y[c] = a->added2[c] = residual[c] + a->fed[c];
    if (!block->adds) qkvi_step_norm(&block->norm2, eps, a->added2, a->y);
    if (steps->last_norm) qkvi_step_norm(&w->stack->last_norm, (double)w->stack->eps, a->y, a->y);
}

/* ---- Against the run ------------------------------------------------------------------------- */

static qkv_status compare(const qkv_run *run, int64_t b, const struct arrays *a, qkv_steps *steps,
                          qkv_error *error) {
    const int64_t n = steps->n, head = steps->head, query = steps->query;
    qkv_capture c = qkv_capture_init();
    float *weights = qkvi_malloc_array((size_t)n, sizeof *weights);
    if (!weights) return qkvi_no_memory(error, "weights");
    qkv_status status =
        qkvi_run_weight_rows(run, QKV_SELF, b, steps->layer, head, query, 1, weights, error);
    if (status == QKV_OK) status = qkv_run_capture(run, QKV_SELF, b, steps->layer, &c, error);
    if (status == QKV_OK) {
        const double lse = steps->largest + log(steps->sum);
        const int64_t elems = n * c.head_dim;
        steps->q_error = qkvi_step_error(c.head_dim, a->q, c.q + head * elems + query * c.head_dim);
        steps->k_error =
            qkvi_step_error(elems, a->k, c.k + head / (c.n_heads / c.n_kv_heads) * elems);
        steps->lse_error = qkvi_step_error(1, &lse, c.lse + head * n + query);
        steps->weights_error = qkvi_step_error(n, a->weights, weights);
        const float *y = qkv_run_hidden(run, QKV_SELF, b, steps->layer + 1) + query * steps->hidden;
        steps->y_error = qkvi_step_error(steps->hidden, a->y, y);
    }
    free(weights);
    return status;
}

/* ---- The call -------------------------------------------------------------------------------- */

static void publish(const struct arrays *a, qkv_steps *s) {
    s->word = a->word, s->segment = a->segment, s->position = a->position;
    s->embedding = a->embedding, s->embedded = a->embedded, s->x = a->x, s->read = a->read;
    s->q = a->q, s->k = a->k, s->v = a->v;
    s->products = a->products, s->scores = a->scores, s->shifted = a->shifted;
    s->exponentials = a->exponentials, s->weights = a->weights, s->o = a->o;
    s->concat = a->concat, s->projected = a->projected, s->added = a->added;
    s->normed = a->normed, s->up = a->up, s->gelu = a->gelu, s->down = a->down;
    s->added2 = a->added2, s->y = a->y;
    s->q_projected = a->q_projected, s->k_projected = a->k_projected;
}

/* What only some models have. */
static void publish_parts(const qkvi_block *block, const struct arrays *a, qkv_steps *s) {
    if (block->gate.n_out > 0) s->gate = a->gate;
    if (block->out1.gamma) s->attended = a->attended;
    if (block->out2.gamma) s->fed = a->fed;
}

static qkv_status check(const qkv_model *model, const qkv_run *run, int64_t b,
                        const qkv_encoding *input, int64_t layer, int64_t head, int64_t query,
                        qkv_error *error) {
    qkv_capture capture = qkv_capture_init();
    QKV_TRY(qkvi_need(model, "model", error));
    QKV_TRY(qkvi_need(run, "run", error));
    QKV_TRY(qkvi_need(input, "input", error));
    if (run->model != model)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "the run is one of another model");
    QKV_TRY(qkv_run_capture(run, QKV_SELF, b, layer, &capture, error));
    QKV_TRY(qkvi_check_index("head", head, capture.n_heads, error));
    QKV_TRY(qkvi_check_index("query", query, capture.n, error));
    if (!qkv_run_hidden(run, QKV_SELF, b, layer) || !qkv_run_hidden(run, QKV_SELF, b, 0))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "the run was made without QKV_RUN_HIDDEN");
    if (capture.n != input->n)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "input has %lld tokens, the run has %lld",
                              (long long)input->n, (long long)capture.n);
    return qkvi_step_check_input(&model->info, input, error);
}

/* What kind of block it is. */
static void describe(const qkvi_stack *stack, const qkvi_block *block, const qkv_model_info *info,
                     qkv_steps *s) {
    const qkvi_mha *const mha = &block->mha;
    s->pre_norm = block->pre_norm && block->norm1.gamma;
    s->adds = block->adds;
    s->rms = (int)block->norm2.kind;
    s->rotated = mha->rope > 0;
    s->qk_norm = mha->q_norm.gamma != NULL;
    s->window_left = mha->windowed ? mha->window_left : -1;
    s->window_right = mha->windowed ? mha->window_right : -1;
    s->softcap = (double)mha->softcap;
    s->causal = stack->causal;
    s->embed_norm = stack->embed_norm.gamma != NULL;
    s->last_norm = stack->last_norm.gamma != NULL && s->layer == stack->n_layers - 1;
    s->activation = info->activation;
    find_keys(s);
}

/* One block of memory: the struct, then its arrays. */
static qkv_steps *allocate(struct work *w, int64_t n, struct arrays *a) {
    enum { HEAD = (sizeof(qkv_steps) + sizeof(double) - 1) / sizeof(double) };
    lay_out(w, n, a);
    double *memory = qkvi_calloc_array(HEAD + w->used, sizeof(double));
    if (!memory) return NULL;
    w->doubles = memory + HEAD;
    lay_out(w, n, a);
    return (qkv_steps *)(void *)memory;
}

qkv_status qkv_inspect_steps(const qkv_model *model, const qkv_run *run, int64_t b,
                             const qkv_encoding *input, int64_t layer, int64_t head, int64_t query,
                             qkv_steps **steps, qkv_error *error) {
    if (!steps) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "steps is NULL");
    *steps = NULL;
    QKV_TRY(check(model, run, b, input, layer, head, query, error));
    const qkvi_stack *p = &model->net->stacks[0];
    struct work w = { .stack = p, .block = &p->blocks[layer], .input = input };
    struct arrays a;
    qkv_steps *s = allocate(&w, input->n, &a);
    if (!s) return qkvi_no_memory(error, "the steps");
    s->n = input->n, s->hidden = p->hidden, s->n_heads = p->n_heads;
    s->head_dim = p->head_dim, s->intermediate = p->intermediate;
    s->layer = layer, s->head = head, s->query = query;
    s->scale = qkvi_mha_scale(&w.block->mha, &(qkvi_mha_change){ 0 });
    describe(p, w.block, &model->info, s);
    publish(&a, s);
    publish_parts(w.block, &a, s);
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    embed(&w, qkv_run_hidden(run, QKV_SELF, b, 0), &a, s);
    qkvi_step_widen(s->n * s->hidden, qkv_run_hidden(run, QKV_SELF, b, layer), a.x);
    attend_all(&w, &a, s);
    rest(&w, &a, s);
    const qkv_status status = compare(run, b, &a, s, error);
    qkvi_fpstate_leave(saved);
    if (status == QKV_OK)
        *steps = s;
    else
        qkv_steps_free(s);
    return status;
}

void qkv_steps_free(qkv_steps *steps) { free(steps); }
