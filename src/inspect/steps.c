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
    double *all_k, *all_v; /* [n][hidden] of all heads */
    double *row;           /* [hidden] */
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
        *gelu, *down, *added2, *y;
};

static void lay_out(struct work *w, int64_t n, struct arrays *a) {
    const qkvi_stack *p = w->stack;
    double **const rows[] = { &a->word,   &a->segment,   &a->position, &a->embedding, &a->embedded,
                              &a->concat, &a->projected, &a->added,    &a->normed,    &a->down,
                              &a->added2, &a->y,         &w->row };
    double **const keys[] = { &a->products, &a->scores, &a->shifted, &a->exponentials,
                              &a->weights };
    w->used = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) *rows[i] = cut(w, p->hidden);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) *keys[i] = cut(w, n);
    a->q = cut(w, p->head_dim);
    a->o = cut(w, p->head_dim);
    a->k = cut(w, n * p->head_dim);
    a->v = cut(w, n * p->head_dim);
    a->up = cut(w, p->intermediate);
    a->gelu = cut(w, p->intermediate);
    a->x = cut(w, n * p->hidden);
    a->read = w->block->pre_norm ? cut(w, n * p->hidden) : a->x;
    w->all_k = cut(w, n * p->hidden);
    w->all_v = cut(w, n * p->hidden);
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
    qkvi_step_widen(size, e->position + place * size, a->position);
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

/* o of one head, from q; keys and values are rows of `stride` doubles, of which n_seen are seen. */
static void attend(int64_t n, int64_t n_seen, int64_t head_dim, int64_t stride, double scale,
                   const double *q, const double *k, const double *v, const struct arrays *a,
                   double *o, double *largest, double *sum) {
    *largest = -INFINITY;
    *sum = 0;
    for (int64_t j = 0; j < n; j++) {
        double product = 0;
        for (int64_t c = 0; c < head_dim; c++) product += q[c] * k[j * stride + c];
        a->products[j] = product;
        a->scores[j] = j < n_seen ? scale * product : -INFINITY;
        if (!(a->scores[j] <= *largest)) *largest = a->scores[j];
    }
    for (int64_t j = 0; j < n; j++) {
        a->shifted[j] = a->scores[j] - *largest;
        a->exponentials[j] = exp(a->shifted[j]);
        *sum += a->exponentials[j];
    }
    for (int64_t c = 0; c < head_dim; c++) o[c] = 0;
    for (int64_t j = 0; j < n; j++) {
        a->weights[j] = a->exponentials[j] / *sum;
        for (int64_t c = 0; c < head_dim; c++) o[c] += a->weights[j] * v[j * stride + c];
    }
}

/* All heads of the query, that of the steps last, so that its numbers are those that stay. */
static void attend_all(const struct work *w, const struct arrays *a, qkv_steps *steps) {
    const qkvi_mha *mha = &w->block->mha;
    const int64_t n = steps->n, size = steps->hidden, head_dim = steps->head_dim;
    const int64_t n_seen = steps->causal ? steps->query + 1 : n;
    for (int64_t j = 0; j < n; j++) {
        if (steps->pre_norm) qkvi_step_read(w->block, size, a->x + j * size, a->read + j * size);
        qkvi_step_linear(&mha->key, 0, size, a->read + j * size, w->all_k + j * size);
        qkvi_step_linear(&mha->value, 0, size, a->read + j * size, w->all_v + j * size);
    }
    for (int64_t turn = 1; turn <= steps->n_heads; turn++) {
        const int64_t at = (steps->head + turn) % steps->n_heads * head_dim;
        qkvi_step_linear(&mha->query, at, head_dim, a->read + steps->query * size, a->q);
        attend(n, n_seen, head_dim, size, steps->scale, a->q, w->all_k + at, w->all_v + at, a,
               a->concat + at, &steps->largest, &steps->sum);
    }
    const int64_t at = steps->head * head_dim;
    for (int64_t c = 0; c < head_dim; c++) {
        a->o[c] = a->concat[at + c];
        for (int64_t j = 0; j < n; j++) {
            a->k[j * head_dim + c] = w->all_k[j * size + at + c];
            a->v[j * head_dim + c] = w->all_v[j * size + at + c];
        }
    }
}

/* ---- The rest of the block ------------------------------------------------------------------- */

static void rest(const struct work *w, const struct arrays *a, const qkv_steps *steps) {
    const qkvi_block *block = w->block;
    const int64_t size = steps->hidden;
    const double *x = a->x + steps->query * size, eps = (double)block->eps;
    qkvi_step_linear(&block->mha.output, 0, size, a->concat, a->projected);
    for (int64_t c = 0; c < size; c++) a->added[c] = x[c] + a->projected[c];
    qkvi_step_norm(block->pre_norm ? &block->norm2 : &block->norm1, eps, a->added, a->normed);
    qkvi_step_linear(&block->up, 0, steps->intermediate, a->normed, a->up);
    for (int64_t c = 0; c < steps->intermediate; c++)
        a->gelu[c] = qkvi_step_act(block->act, a->up[c]);
    qkvi_step_linear(&block->down, 0, size, a->gelu, a->down);
    const double *residual = block->pre_norm ? a->added : a->normed;
    for (int64_t c = 0; c < size; c++) a->y[c] = a->added2[c] = residual[c] + a->down[c];
    if (!block->pre_norm) qkvi_step_norm(&block->norm2, eps, a->added2, a->y);
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
        steps->k_error = qkvi_step_error(elems, a->k, c.k + head * elems);
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
    s->pre_norm = block->pre_norm;
    s->causal = stack->causal;
    s->embed_norm = stack->embed_norm.gamma != NULL;
    s->last_norm = stack->last_norm.gamma != NULL && s->layer == stack->n_layers - 1;
    s->activation = info->activation;
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
