/*
 * What is stored and no parameter: a bias of logits, and tables of positions that could be computed. A
 * table that is stored is what transformers adds, so only one that is what would be computed is left out.
 */
#include <math.h>

#include "core/fpstate.h"
#include "model/arch/net_params.h"
#include "model/model_impl.h"

/* The tensor of that name and shape as floats, to be freed; NULL if it is not stored. */
static qkv_status load(qkvi_resolver *resolver, const char *name, int64_t rows, int64_t cols,
                       float **values, qkv_error *error) {
    qkvi_param_table table = { 0 };
    *values = NULL;
    if (!qkvi_resolve_own(resolver, name)) return QKV_OK;
    qkv_status status = qkvi_params_add(&table, 2, rows, cols, error, "%s", name);
    if (status == QKV_OK) status = qkvi_resolver_check(resolver, &table, error);
    if (status == QKV_OK && !(*values = qkvi_params_arena(&table)))
        status = qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for '%s'", name);
    if (status == QKV_OK) status = qkvi_resolver_load(resolver, &table, *values, error);
    qkvi_params_free(&table);
    if (status == QKV_OK) return QKV_OK;
    free(*values);
    *values = NULL;
    return status;
}

/* ---- The bias of logits ---------------------------------------------------------------------- */

/* Of zeros it is none. */
qkv_status qkvi_model_lm_bias(qkv_model *model, const qkvi_model_family *family,
                              qkvi_resolver *resolver, qkv_error *error) {
    const int64_t n = model->info.target_vocab_size;
    int64_t n_set = 0;
    if (!family->lm_bias) return QKV_OK;
    QKV_TRY(load(resolver, family->lm_bias, 1, n, &model->lm_bias, error));
    for (int64_t i = 0; model->lm_bias && i < n; i++) n_set += model->lm_bias[i] != 0;
    if (n_set > 0) return QKV_OK;
    free(model->lm_bias);
    model->lm_bias = NULL;
    return QKV_OK;
}

/* ---- Positions ------------------------------------------------------------------------------- */

/* What a model with sinusoids has at its positions, to be freed. */
static float *make_sinusoids(const qkv_model_info *info) {
    size_t n;
    float *const table = qkvi_mul_size((size_t)info->max_len, (size_t)info->hidden, &n)
                             ? qkvi_aligned_array(n, sizeof *table)
                             : NULL;
    if (!table) return NULL;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    if (qkvi_family_of(info->architecture)->positions == QKVI_SINUSOIDS)
        qkvi_sinusoids_half(info->max_len, info->hidden, table);
    else
        qkvi_sinusoids(info->max_len, info->hidden, table);
    qkvi_fpstate_leave(saved);
    return table;
}

/* The largest difference between stored positions and sinusoids; NaN counts as infinite. */
static qkv_status find_distance(const qkv_model_info *info, const float *stored, float *distance,
                                qkv_error *error) {
    float *const computed = make_sinusoids(info);
    if (!computed) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for positions");
    *distance = 0;
    for (int64_t i = 0; i < info->max_len * info->hidden; i++) {
        const float off = fabsf(stored[i] - computed[i]);
        if (!(off <= *distance)) *distance = off >= 0 ? off : INFINITY;
    }
    free(computed);
    return QKV_OK;
}

/* Keeps those of a stack that are stored and are no sinusoids. */
static qkv_status load_positions(qkv_model *model, const char *name, qkvi_resolver *resolver,
                                 float **positions, qkv_error *error) {
    const qkv_model_info *const info = &model->info;
    char full[128];
    float distance = 0;
    snprintf(full, sizeof full, "%s.weight", name);
    QKV_TRY(load(resolver, full, info->max_len, info->hidden, positions, error));
    if (!*positions) return QKV_OK;
    const qkv_status status = find_distance(info, *positions, &distance, error);
    if (distance > model->positions_off) model->positions_off = distance;
    if (status == QKV_OK && distance > 0) return QKV_OK;
    free(*positions);
    *positions = NULL;
    return status;
}

/*
 * Marian's stay as they are stored, in training, too. A BERT's were ours, and learned on in
 * transformers: then they are parameters again.
 */
qkv_status qkvi_model_positions(qkv_model *model, const qkvi_model_family *family,
                                qkvi_resolver *resolver, qkv_error *error) {
    qkv_model_info *const info = &model->info;
    if (!info->sinusoidal_positions) return QKV_OK;
    for (int s = 0; s < qkvi_family_stacks(family); s++)
        QKV_TRY(load_positions(model, family->stacks[s].position, resolver, &model->positions[s],
                               error));
    if (family->positions == QKVI_SINUSOIDS || !model->positions[0]) return QKV_OK;
    info->sinusoidal_positions = 0;
    free(model->positions[0]);
    model->positions[0] = NULL;
    return QKV_OK;
}

void qkvi_net_take_buffers(qkvi_net *net, float *lm_bias, float *const positions[2]) {
    net->lm.bias = lm_bias;
    for (int s = 0; s < net->n_stacks; s++)
        if (positions[s])
            memcpy(net->stacks[s].sinusoids, positions[s],
                   (size_t)(net->stacks[s].max_len * net->stacks[s].hidden) * sizeof(float));
}
