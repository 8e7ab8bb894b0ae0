/* See steps_block.h. */
#include "inspect/steps_block.h"

#include <math.h>
#include <string.h>

#include "attn/mask.h"
#include "inspect/steps_image.h"

/* ---- Embedding ------------------------------------------------------------------------------- */

static void take_error(const double *row, const float *hidden, qkv_steps *steps) {
    const double error = qkvi_step_error(steps->hidden, row, hidden);
    if (!(error <= steps->embedded_error)) steps->embedded_error = error;
}

static void embed_image(const qkvi_steps_work *w, const float *hidden, const qkvi_steps_arrays *a,
                        qkv_steps *steps) {
    const int64_t size = w->stack->hidden, i = steps->query;
    qkvi_step_row(w->stack, w->input, w->places, i, w->pixels, a->word, a->position);
    for (int64_t c = 0; c < size; c++)
        a->embedded[c] = a->embedding[c] = a->word[c] + a->position[c];
    qkvi_step_input(w->stack, a->embedded);
    for (int64_t j = 0; j < steps->n; j++) {
        qkvi_step_row(w->stack, w->input, w->places, j, w->pixels, w->row, w->place);
        for (int64_t c = 0; c < size; c++) w->row[c] += w->place[c];
        qkvi_step_input(w->stack, w->row);
        take_error(w->row, hidden + j * size, steps);
    }
}

void qkvi_steps_embed(const qkvi_steps_work *w, const float *hidden, const qkvi_steps_arrays *a,
                      qkv_steps *steps) {
    if (w->input->image) {
        embed_image(w, hidden, a, steps);
        return;
    }
    const qkvi_embed *e = &w->stack->embed;
    const int64_t i = steps->query, size = w->stack->hidden;
    const float *const positions = e->n_positions > 0 ? e->position : w->stack->positions;
    const int64_t type = qkvi_stack_type(w->stack, w->input->types, i);
    const int64_t place = qkvi_stack_place(w->stack, w->input->ids, i);
    if (!w->stack->positions) qkvi_step_widen(size, e->type + type * size, a->segment);
    if (positions) qkvi_step_widen(size, positions + place * size, a->position);
    qkvi_step_embedding(w->stack, w->input, i, 1, a->embedding);
    qkvi_step_word(w->stack, w->input->ids[i], a->word);
    memcpy(a->embedded, a->embedding, (size_t)size * sizeof *a->embedded);
    qkvi_step_input(w->stack, a->embedded);
    for (int64_t j = 0; j < steps->n; j++) {
        qkvi_step_embedding(w->stack, w->input, j, 1, w->row);
        qkvi_step_input(w->stack, w->row);
        take_error(w->row, hidden + j * size, steps);
    }
}

/* ---- Attention ------------------------------------------------------------------------------- */

void qkvi_steps_find_keys(qkv_steps *s) {
    const qkvi_rules rules =
        qkvi_rules_of_window(s->n, s->n, 0, s->causal, s->window_left, s->window_right);
    const qkvi_range keys = qkvi_keys_of(&rules, s->query);
    s->first_key = keys.begin;
    s->end_key = keys.end;
}

static double score_of(const qkv_steps *s, int64_t j, double product) {
    const double score = s->scale * product, bias = s->biases ? s->biases[j] : 0;
    return (s->softcap > 0 ? s->softcap * tanh(score / s->softcap) : score) + bias;
}

/* What is added to the score of each key in a head. */
static void bias_keys(const qkvi_mha *mha, const qkv_steps *s, int64_t head, double *biases) {
    const qkvi_distance_bias *const d = mha->distances;
    const int64_t n = d ? qkvi_distance_bias_size(d) : 0;
    for (int64_t j = 0; s->biases && j < s->n; j++) {
        const int64_t distance = j - s->query;
        biases[j] = mha->alibi ? (double)mha->alibi[head] * (double)distance : 0;
        if (!d) continue;
        const int64_t at = distance + d->most;
        biases[j] += (double)d->bias[head * n + (at < 0 ? 0 : at >= n ? n - 1 : at)];
    }
}

/* o of one head, from q; keys and values are rows of `stride` doubles. */
static void attend(qkv_steps *s, int64_t stride, const double *q, const double *k, const double *v,
                   const qkvi_steps_arrays *a, double *o) {
    const int64_t n = s->n, head_dim = s->head_dim;
    s->largest = -INFINITY;
    s->sum = 0;
    for (int64_t j = 0; j < n; j++) {
        double product = 0;
        for (int64_t c = 0; c < head_dim; c++) product += q[c] * k[j * stride + c];
        a->products[j] = product;
        a->scores[j] = j >= s->first_key && j < s->end_key ? score_of(s, j, product) : -INFINITY;
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
static void project(const qkvi_steps_work *w, const qkvi_steps_arrays *a, const qkv_steps *s) {
    const qkvi_mha *const mha = &w->block->mha;
    const bool plane = w->stack->patches.theta > 0;
    const qkvi_rope *const rope = mha->rope && !plane ? &w->stack->ropes[mha->rope - 1] : NULL;
    const int64_t size = s->hidden, d = s->head_dim, kv_width = qkvi_mha_kv_width(mha);
    for (int64_t j = 0; j < s->n; j++) {
        double *const k = w->all_k + j * kv_width;
        if (s->pre_norm) qkvi_step_read(w->block, size, a->x + j * size, a->read + j * size);
        qkvi_step_linear(&mha->key, 0, kv_width, a->read + j * size, k);
        qkvi_step_linear(&mha->value, 0, kv_width, a->read + j * size, w->all_v + j * kv_width);
        memcpy(w->raw + j * kv_width, k, (size_t)kv_width * sizeof *k);
        qkvi_step_place(mha, &mha->k_norm, rope, j, s->n, mha->n_kv_heads, k);
        if (plane) qkvi_step_turn(w->stack, w->input, j, mha->n_kv_heads, k);
    }
    qkvi_step_linear(&mha->query, 0, qkvi_mha_width(mha), a->read + s->query * size, w->all_q);
    memcpy(a->q_projected, w->all_q + s->head * d, (size_t)d * sizeof(double));
    qkvi_step_place(mha, &mha->q_norm, rope, s->query, s->n, mha->n_heads, w->all_q);
    if (plane) qkvi_step_turn(w->stack, w->input, s->query, mha->n_heads, w->all_q);
}

void qkvi_steps_attend(const qkvi_steps_work *w, const qkvi_steps_arrays *a, qkv_steps *s) {
    const qkvi_mha *const mha = &w->block->mha;
    const int64_t d = s->head_dim, stride = qkvi_mha_kv_width(mha);
    const int64_t group = mha->n_heads / mha->n_kv_heads;
    project(w, a, s);
    for (int64_t turn = 1; turn <= s->n_heads; turn++) {
        const int64_t h = (s->head + turn) % s->n_heads, at = h / group * d;
        bias_keys(mha, s, h, a->biases);
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

static void feed(const qkvi_block *block, const qkvi_steps_arrays *a, const qkv_steps *steps) {
    const int64_t wide = steps->intermediate;
    const bool gated = block->gate.n_out > 0;
    qkvi_step_linear(&block->up, 0, wide, a->normed, a->up);
    if (gated) qkvi_step_linear(&block->gate, 0, wide, a->normed, a->gate);
    for (int64_t c = 0; c < wide; c++)
        a->gelu[c] = gated ? qkvi_step_act(block->act, a->gate[c]) * a->up[c]
                           : qkvi_step_act(block->act, a->up[c]);
    qkvi_step_linear(&block->down, 0, steps->hidden, a->gelu, a->down);
}

void qkvi_steps_rest(const qkvi_steps_work *w, const qkvi_steps_arrays *a, const qkv_steps *steps) {
    const qkvi_block *block = w->block;
    const qkvi_layernorm none = { 0 };
    const int64_t size = steps->hidden;
    const double *const rows = block->from_norm ? a->read : a->x, eps = (double)block->eps;
    const double *const x = rows + steps->query * size;
    qkvi_step_linear(&block->mha.output, 0, size, a->concat, a->projected);
    maybe_norm(&block->out1, eps, size, a->projected, a->attended);
    for (int64_t c = 0; c < size; c++) a->added[c] = x[c] + a->attended[c];
    maybe_norm(block->pre_norm ? &block->norm2
               : block->adds   ? &none
                               : &block->norm1,
               eps, size, block->parallel ? x : a->added, a->normed);
    feed(block, a, steps);
    maybe_norm(&block->out2, eps, size, a->down, a->fed);
    const double *const residual = block->adds && !block->from_norm ? a->added : a->normed;
    for (int64_t c = 0; c < size; c++) a->y[c] = a->added2[c] = residual[c] + a->fed[c];
    if (!block->adds) qkvi_step_norm(&block->norm2, eps, a->added2, a->y);
    if (steps->last_norm) qkvi_step_norm(&w->stack->last_norm, (double)w->stack->eps, a->y, a->y);
}
