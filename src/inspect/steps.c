/**
 * One query through one head and the rest of its block, number by number (inspect.h has the
 * formulas).
 *
 * The layer's input is that of the run; everything after it is computed again, in double and in the
 * order of a textbook, so that the differences to the run are only the run's rounding. They are
 * measured at four places; the last one is the output of the block, on which every step has an
 * effect.
 */
#include <math.h>

#include "core/fpstate.h"
#include "inspect/steps_block.h"
#include "inspect/steps_image.h"
#include "model/model_impl.h"
#include "model/run_impl.h"

/* ---- Memory -------------------------------------------------------------------------------- */

static double *cut(qkvi_steps_work *w, int64_t n) {
    double *piece = w->doubles ? w->doubles + w->used : NULL;
    w->used += (size_t)n;
    return piece;
}

/* Places of all arrays; without memory, only their sum. */
static void lay_out(qkvi_steps_work *w, int64_t n, qkvi_steps_arrays *a) {
    const qkvi_stack *p = w->stack;
    double **const rows[] = { &a->word,      &a->segment, &a->position, &a->embedding, &a->embedded,
                              &a->projected, &a->added,   &a->normed,   &a->down,      &a->added2,
                              &a->y,         &w->row,     &a->attended, &a->fed };
    const qkvi_mha *const mha = &w->block->mha;
    const int64_t width = qkvi_mha_width(mha), kv_width = qkvi_mha_kv_width(mha);
    double **const keys[] = { &a->products, &a->biases,       &a->scores,
                              &a->shifted,  &a->exponentials, &a->weights };
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
    w->pixels = cut(w, qkvi_patches_elems(&p->patches));
    w->place = cut(w, p->hidden);
}

/* ---- Against the run ------------------------------------------------------------------------- */

static qkv_status compare(const qkv_run *run, int64_t b, const qkvi_steps_arrays *a,
                          qkv_steps *steps, qkv_error *error) {
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

static void publish(const qkvi_steps_arrays *a, qkv_steps *s) {
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
static void publish_parts(const qkvi_block *block, const qkvi_steps_arrays *a, qkv_steps *s) {
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
    return model->info.patch_height > 0 || input->image
               ? qkvi_step_check_image(&model->info, input, error)
               : qkvi_step_check_input(&model->info, input, error);
}

/* What kind of block it is. */
static void describe(const qkvi_stack *stack, const qkvi_block *block, const qkv_model_info *info,
                     qkv_steps *s) {
    const qkvi_mha *const mha = &block->mha;
    s->pre_norm = block->pre_norm && block->norm1.gamma;
    s->adds = block->adds;
    s->parallel = block->parallel;
    s->adds_to_norm = block->from_norm;
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
    s->layer_scale = block->out1.gamma && block->out1.kind == QKVI_LAYER_SCALE;
    qkvi_steps_find_keys(s);
}

/* One block of memory: the struct, then its arrays. */
static qkv_steps *allocate(qkvi_steps_work *w, int64_t n, qkvi_steps_arrays *a) {
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
    qkvi_steps_work w = { .stack = p, .block = &p->blocks[layer], .input = input };
    qkvi_steps_arrays a;
    qkv_steps *s = allocate(&w, input->n, &a);
    if (!s) return qkvi_no_memory(error, "the steps");
    qkv_status status = qkvi_step_places(p, input, &w.places, error);
    if (status != QKV_OK) {
        qkv_steps_free(s);
        return status;
    }
    s->n = input->n, s->hidden = p->hidden, s->n_heads = p->n_heads;
    s->head_dim = p->head_dim, s->intermediate = p->intermediate;
    s->layer = layer, s->head = head, s->query = query;
    s->scale = qkvi_mha_scale(&w.block->mha, &(qkvi_mha_change){ 0 });
    describe(p, w.block, &model->info, s);
    publish(&a, s);
    publish_parts(w.block, &a, s);
    if (w.block->mha.distances || w.block->mha.alibi) s->biases = a.biases;
    if (w.block->mha.alibi) s->alibi = (double)w.block->mha.alibi[head];
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    qkvi_steps_embed(&w, qkv_run_hidden(run, QKV_SELF, b, 0), &a, s);
    qkvi_step_widen(s->n * s->hidden, qkv_run_hidden(run, QKV_SELF, b, layer), a.x);
    qkvi_steps_attend(&w, &a, s);
    qkvi_steps_rest(&w, &a, s);
    status = compare(run, b, &a, s, error);
    qkvi_fpstate_leave(saved);
    free(w.places);
    if (status == QKV_OK)
        *steps = s;
    else
        qkv_steps_free(s);
    return status;
}

void qkv_steps_free(qkv_steps *steps) { free(steps); }
