/**
 * What a head of layer 0 makes of a text, with the positions of its tokens or without them.
 */

#include "core/fpstate.h"
#include "inspect/steps.h"
#include "model/arch/net.h"
#include "model/model_impl.h"
#include "qkv/inspect.h"

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
    QKV_TRY(qkvi_step_check_input(&model->info, input, error));
    const qkvi_stack *p = &model->net->stacks[0];
    const qkvi_mha *mha = &p->blocks[0].mha;
    const int64_t head_dim = p->head_dim;
    double *x = qkvi_malloc_array((size_t)(p->hidden + head_dim), sizeof *x);
    if (!x) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a hidden state");
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
