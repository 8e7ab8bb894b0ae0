/*
 * Layers and norms as rows of the table of parameters, and as structs of pointers to them: what
 * stacks (net_table.c, net_bind.c) and images (image_params.c) are made of.
 */
#include "model/arch/net_params.h"

qkv_status qkvi_add_weight(qkvi_param_table *table, const char *name, int64_t n_out, int64_t n_in,
                           qkv_error *error) {
    QKV_TRY(qkvi_params_add(table, 2, n_out, n_in, error, "%s.weight", name));
    qkvi_params_multiplies(table);
    return QKV_OK;
}

qkv_status qkvi_add_linear(qkvi_param_table *table, const char *name, int64_t n_out, int64_t n_in,
                           qkv_error *error) {
    QKV_TRY(qkvi_add_weight(table, name, n_out, n_in, error));
    return qkvi_params_add(table, 1, n_out, 1, error, "%s.bias", name);
}

/* RMSNorms have no bias, nor have ModernBERT's norms. */
static bool has_shift(const qkvi_model_family *family) {
    return family->norm == QKVI_LAYER_NORM && !family->norm_bias;
}

qkv_status qkvi_add_norm(qkvi_param_table *table, const qkvi_model_family *family, const char *name,
                         int64_t n, qkv_error *error) {
    QKV_TRY(qkvi_params_add(table, 1, n, 1, error, "%s.weight", name));
    return has_shift(family) ? qkvi_params_add(table, 1, n, 1, error, "%s.bias", name) : QKV_OK;
}

/* ---- Pointers to them ------------------------------------------------------------------------ */

/* NULL for a part that the family or the model lacks. */
static const qkvi_param *row_of(const qkvi_binder *b, const char *name, const char *what) {
    char full[128];
    if (!name) return NULL;
    snprintf(full, sizeof full, "%s%s", name, what);
    return qkvi_params_find(b->table, full);
}

/* Its values, if they are floats in the arena. */
float *qkvi_bind_at(const qkvi_binder *b, const char *name, const char *what) {
    const qkvi_param *const row = row_of(b, name, what);
    return row && row->form == QKVI_PARAM_FLOATS ? b->arena + row->offset : NULL;
}

/*
 * A layer without a bias, whose weights are that matrix: floats, or the panels that it runs with.
 */
qkvi_linear qkvi_bind_weight(const qkvi_binder *b, const char *name, int64_t n_out, int64_t n_in) {
    const qkvi_param *const row = row_of(b, name, ".weight");
    qkvi_linear layer = { .n_in = n_in, .n_out = n_out };
    if (!row) return layer;
    float *const at = b->arena + row->offset;
    switch (row->form) {
    case QKVI_PARAM_FLOATS: layer.weight = at; break;
    case QKVI_PARAM_PANELS: layer.forward = at; break;
    case QKVI_PARAM_HALF: layer.half = (uint32_t *)at; break;
    case QKVI_PARAM_INT8: layer.int8 = (qkvi_int8_panel *)at; break;
    case QKVI_PARAM_BLOCKS:
        layer.blocks = (uint8_t *)at;
        layer.format = &row->format;
        break;
    }
    return layer;
}

qkvi_linear qkvi_bind_linear(const qkvi_binder *b, const char *name, int64_t n_out, int64_t n_in) {
    qkvi_linear layer = qkvi_bind_weight(b, name, n_out, n_in);
    layer.bias = qkvi_bind_at(b, name, ".bias");
    return layer;
}

qkvi_layernorm qkvi_bind_norm(const qkvi_binder *b, const char *name, int64_t n) {
    return (qkvi_layernorm){ n, qkvi_bind_at(b, name, ".weight"), qkvi_bind_at(b, name, ".bias"),
                             b->family->norm };
}
