/*
 * Parameters of models that read images: those of the first layer (layer/patches.h) and of the
 * heads (images.c), as rows of the table and as pointers.
 */
#include "model/arch/net_params.h"

/* ---- Parameters ------------------------------------------------------------------------------ */

/* rows [n][h], stored as [1][n][h] unless the family is flat. */
static qkv_status add_rows(qkvi_param_table *table, const qkvi_image_family *f, const char *name,
                           int64_t n, int64_t h, qkv_error *e) {
    const int64_t axes[] = { 1, n, h };
    QKV_TRY(qkvi_params_add(table, 2, n, h, e, "%s", name));
    if (!f->flat) qkvi_params_stored_axes(table, 3, axes);
    return QKV_OK;
}

static qkv_status add_class(qkvi_param_table *table, const qkvi_image_family *f, const char *name,
                            int64_t h, qkv_error *e) {
    const int64_t axes[] = { 1, 1, h };
    if (!name) return QKV_OK;
    QKV_TRY(qkvi_params_add(table, 1, h, 1, e, "%s", name));
    if (!f->flat) qkvi_params_stored_axes(table, 3, axes);
    return QKV_OK;
}

static int64_t patch_elems(const qkv_model_info *info) {
    return 3 * info->patch_height * info->patch_width;
}

static int64_t positions(const qkv_model_info *info) { return info->max_len - info->n_registers; }

qkv_status qkvi_images_table(const qkv_model_info *info, const qkvi_model_family *family,
                             qkvi_param_table *table, qkv_error *e) {
    const qkvi_image_family *const f = &family->image;
    const int64_t h = info->hidden, axes[] = { h, 3, info->patch_height, info->patch_width };
    const char *const norm = family->stacks[0].embed_norm;
    for (int k = 0; k < 2; k++) QKV_TRY(add_class(table, f, f->classes[k], h, e));
    if (f->position) QKV_TRY(add_rows(table, f, f->position, positions(info), h, e));
    if (f->registers) QKV_TRY(add_rows(table, f, f->registers, info->n_registers, h, e));
    QKV_TRY(qkvi_add_weight(table, f->patch, h, patch_elems(info), e));
    qkvi_params_stored_axes(table, 4, axes);
    if (!f->no_bias) QKV_TRY(qkvi_params_add(table, 1, h, 1, e, "%s.bias", f->patch));
    return norm ? qkvi_add_norm(table, family, norm, h, e) : QKV_OK;
}

/* A part of the pooling head, by its name. */
static const char *part_of(char name[96], const qkvi_image_family *f, const char *part) {
    snprintf(name, 96, "%s%s", f->probe, part);
    return name;
}

static const char *const in_names[] = { "attention.query", "attention.key", "attention.value" };

static qkv_status add_probe(qkvi_param_table *table, const qkv_model_info *info,
                            const qkvi_model_family *family, qkv_error *e) {
    const qkvi_image_family *const f = &family->image;
    const int64_t h = info->hidden, axes[] = { 1, 1, h };
    char name[96];
    QKV_TRY(qkvi_params_add(table, 1, h, 1, e, "%sprobe", f->probe));
    qkvi_params_stored_axes(table, 3, axes);
    for (int bias = 0; bias < 2; bias++)
        for (int p = 0; p < 3; p++) {
            part_of(name, f, in_names[p]);
            QKV_TRY(bias ? qkvi_params_add(table, 1, h, 1, e, "%s.bias", name)
                         : qkvi_add_weight(table, name, h, h, e));
            qkvi_params_stored_rows(table, p, 3, p * h, 3 * h, "%sattention.in_proj_%s", f->probe,
                                    bias ? "bias" : "weight");
        }
    QKV_TRY(qkvi_add_linear(table, part_of(name, f, "attention.out_proj"), h, h, e));
    QKV_TRY(qkvi_add_norm(table, family, part_of(name, f, "layernorm"), h, e));
    QKV_TRY(qkvi_add_linear(table, part_of(name, f, "mlp.fc1"), info->intermediate, h, e));
    return qkvi_add_linear(table, part_of(name, f, "mlp.fc2"), h, info->intermediate, e);
}

/* Channels that a classifier reads. */
static int64_t read_elems(const qkvi_model_family *family, int64_t h) {
    return family->image.reads == QKVI_READS_CLS_MEAN ? 2 * h : h;
}

qkv_status qkvi_images_heads_table(const qkv_model_info *info, const qkvi_model_family *family,
                                   qkvi_param_table *table, qkv_error *e) {
    const qkvi_image_family *const f = &family->image;
    const int64_t h = info->hidden, n = info->n_labels, reads = read_elems(family, h);
    if (f->pooled_norm) QKV_TRY(qkvi_add_norm(table, family, f->pooled_norm, h, e));
    if (info->has_pooler && f->probe) QKV_TRY(add_probe(table, info, family, e));
    if (info->has_pooler && family->pooler)
        QKV_TRY(qkvi_add_linear(table, family->pooler, h, h, e));
    if (n == 0) return QKV_OK;
    if (!info->distilled) return qkvi_add_linear(table, family->classifier, n, reads, e);
    QKV_TRY(qkvi_add_linear(table, f->distilled[0], n, h, e));
    return qkvi_add_linear(table, f->distilled[1], n, h, e);
}

/* ---- Pointers to them ------------------------------------------------------------------------ */

void qkvi_images_bind(const qkvi_binder *b, qkvi_stack *s) {
    const qkvi_image_family *const f = &b->family->image;
    const qkv_model_info *const info = b->info;
    qkvi_patches *const p = &s->patches;
    p->height = info->patch_height, p->width = info->patch_width;
    p->learned = (qkvi_grid){ info->image_height / p->height, info->image_width / p->width };
    p->map = qkvi_bind_linear(b, f->patch, s->hidden, patch_elems(info));
    for (int k = 0; k < 2; k++) p->classes[k] = qkvi_bind_at(b, f->classes[k], "");
    p->registers = qkvi_bind_at(b, f->registers, "");
    p->n_registers = info->n_registers;
    p->positions = qkvi_bind_at(b, f->position, "");
    p->antialiases = f->antialiases;
    if (b->family->positions == QKVI_ROTARY_PLANE) p->theta = info->rope[0].theta;
    s->embed = (qkvi_embed){ .hidden = s->hidden, .padding = -1, .padding_place = -1 };
    s->embed_norm = qkvi_bind_norm(b, b->family->stacks[0].embed_norm, s->hidden);
    s->last_norm = qkvi_bind_norm(b, b->family->stacks[0].last_norm, s->hidden);
    s->reads = f->reads;
    s->max_len = 1 << 20; /* other sizes than the learned one have other positions */
}

static void bind_probe(const qkvi_binder *b, qkvi_net *net) {
    const qkvi_image_family *const f = &b->family->image;
    const qkvi_stack *const s = &net->stacks[0];
    const int64_t h = s->hidden;
    qkvi_probe *const probe = &net->probe;
    qkvi_mha *const mha = &probe->attention;
    qkvi_linear *const in[] = { &mha->query, &mha->key, &mha->value };
    char name[96];
    *mha = (qkvi_mha){ .n_heads = s->n_heads,
                       .n_kv_heads = s->n_heads,
                       .head_dim = s->head_dim,
                       .hidden = h,
                       .eps = s->eps };
    for (int p = 0; p < 3; p++) *in[p] = qkvi_bind_linear(b, part_of(name, f, in_names[p]), h, h);
    mha->output = qkvi_bind_linear(b, part_of(name, f, "attention.out_proj"), h, h);
    probe->row = qkvi_bind_at(b, part_of(name, f, "probe"), "");
    probe->norm = qkvi_bind_norm(b, part_of(name, f, "layernorm"), h);
    probe->up = qkvi_bind_linear(b, part_of(name, f, "mlp.fc1"), s->intermediate, h);
    probe->down = qkvi_bind_linear(b, part_of(name, f, "mlp.fc2"), h, s->intermediate);
}

void qkvi_images_bind_heads(const qkvi_binder *b, qkvi_net *net) {
    const qkvi_image_family *const f = &b->family->image;
    const int64_t h = net->stacks[0].hidden;
    const bool two = b->info->distilled;
    net->pooled_norm = qkvi_bind_norm(b, f->pooled_norm, h);
    net->has_pooler = net->has_pooler && b->family->pooler;
    if (net->has_pooler) net->pooler = qkvi_bind_linear(b, b->family->pooler, h, h);
    if (b->info->has_pooler && f->probe) bind_probe(b, net);
    net->classifier = qkvi_bind_linear(b, two ? f->distilled[0] : b->family->classifier,
                                       net->n_labels, two ? h : read_elems(b->family, h));
    if (two) net->second = qkvi_bind_linear(b, f->distilled[1], net->n_labels, h);
}
