/*
 * The table of parameters of every architecture (family.h): names and shapes, in the order of the
 * file format's writers: embeddings, blocks, heads. What a model lacks has no row.
 */

#include "model/arch/net_params.h"

/* A norm of a block, where the family has it. */
static qkv_status add_block_norm(qkvi_param_table *table, const qkvi_model_family *family,
                                 const qkvi_stack_names *names, int64_t l, const char *part,
                                 int64_t n, qkv_error *error) {
    char name[96];
    if (!part || (part == names->norm1 && l == 0 && family->first_unnormed)) return QKV_OK;
    return qkvi_add_norm(table, family, qkvi_block_name(name, names, l, part), n, error);
}

/* One of the layers of a block, stored as the family does it. */
static qkv_status add_part(qkvi_param_table *table, const qkvi_model_family *family, bool has_bias,
                           const char *name, int64_t n_out, int64_t n_in, qkv_error *error) {
    QKV_TRY(qkvi_add_weight(table, name, n_out, n_in, error));
    if (family->transposes) qkvi_params_stored_as(table, true, 0, 1, "%s.weight", name);
    return has_bias ? qkvi_params_add(table, 1, n_out, 1, error, "%s.bias", name) : QKV_OK;
}

/* What a block's part is called. */
const char *qkvi_block_name(char name[96], const qkvi_stack_names *names, int64_t l,
                            const char *part) {
    snprintf(name, 96, "%s%lld.%s", names->layer, (long long)l, part);
    return name;
}

/* Query, key and value side by side in one matrix and one bias. */
static qkv_status add_fused(qkvi_param_table *table, const qkvi_model_family *family,
                            const qkvi_stack_names *names, int64_t l, int64_t h, qkv_error *error) {
    const char *const parts[] = { names->query, names->key, names->value };
    char name[96], fused[96];
    qkvi_block_name(fused, names, l, family->fused);
    for (int p = 0; p < 3; p++) {
        qkvi_block_name(name, names, l, parts[p]);
        QKV_TRY(qkvi_add_weight(table, name, h, h, error));
        qkvi_params_stored_as(table, true, p, 3, "%s.weight", fused);
    }
    for (int p = 0; p < 3; p++) {
        qkvi_block_name(name, names, l, parts[p]);
        QKV_TRY(qkvi_params_add(table, 1, h, 1, error, "%s.bias", name));
        qkvi_params_stored_as(table, false, p, 3, "%s.bias", fused);
    }
    return QKV_OK;
}

/*
 * Layers that are rows of one tensor, in this order, and so are their biases; or that take turns in
 * it, so many rows of each at a time.
 */
typedef struct stored_part {
    const char *name;
    int64_t n_out;
} stored_part;

static qkv_status add_rows(qkvi_param_table *table, const qkvi_stack_names *names, int64_t l,
                           const char *fused_name, int n_parts, const stored_part *parts,
                           int64_t n_in, bool has_bias, int64_t turn, qkv_error *error) {
    char name[96], fused[96];
    int64_t n_all = 0;
    qkvi_block_name(fused, names, l, fused_name);
    for (int p = 0; p < n_parts; p++) n_all += parts[p].n_out;
    for (int bias = 0; bias <= has_bias; bias++) {
        int64_t first = 0;
        for (int p = 0; p < n_parts; first += parts[p++].n_out) {
            qkvi_block_name(name, names, l, parts[p].name);
            if (bias)
                QKV_TRY(qkvi_params_add(table, 1, parts[p].n_out, 1, error, "%s.bias", name));
            else
                QKV_TRY(qkvi_add_weight(table, name, parts[p].n_out, n_in, error));
            qkvi_params_stored_rows(table, p, n_parts, turn > 0 ? p * turn : first, n_all, "%s.%s",
                                    fused, bias ? "bias" : "weight");
            qkvi_params_take_turns(table, turn);
        }
    }
    return QKV_OK;
}

/* Queries, keys and values, and their norms. */
static qkv_status add_queries(qkvi_param_table *table, const qkvi_stack *sizes, int biases,
                              const qkvi_model_family *f, const qkvi_stack_names *names, int64_t l,
                              qkv_error *e) {
    const int64_t width = sizes->n_heads * sizes->head_dim;
    const int64_t kv_width = sizes->n_kv_heads * sizes->head_dim, h = sizes->hidden;
    const stored_part parts[] = { { names->query, width },
                                  { names->key, kv_width },
                                  { names->value, kv_width } };
    const bool by_row = f->qk_norm == QKVI_QK_NORM_ROWS, has_bias = biases & QKV_BIAS_QKV;
    char name[96];
    if (f->fused && f->transposes)
        QKV_TRY(add_fused(table, f, names, l, h, e));
    else if (f->fused)
        QKV_TRY(add_rows(table, names, l, f->fused, 3, parts, h, has_bias,
                         f->fused_by_head ? sizes->head_dim : 0, e));
    for (int p = 0; p < 3 && !f->fused; p++)
        QKV_TRY(add_part(table, f, has_bias && !(p == 1 && (biases & QKV_BIAS_NO_KEY)),
                         qkvi_block_name(name, names, l, parts[p].name), parts[p].n_out, h, e));
    QKV_TRY(
        add_block_norm(table, f, names, l, names->query_norm, by_row ? width : sizes->head_dim, e));
    return add_block_norm(table, f, names, l, names->key_norm, by_row ? kv_width : sizes->head_dim,
                          e);
}

/* A factor for each channel of what a part adds, where the family has it. */
static qkv_status add_scale(qkvi_param_table *table, const qkvi_stack_names *names, int64_t l,
                            const char *part, int64_t n, qkv_error *error) {
    char name[96];
    if (!part) return QKV_OK;
    return qkvi_params_add(table, 1, n, 1, error, "%s", qkvi_block_name(name, names, l, part));
}

static qkv_status add_attention(qkvi_param_table *table, const qkvi_stack *sizes, int biases,
                                const qkvi_model_family *f, const qkvi_stack_names *names,
                                int64_t l, qkv_error *e) {
    char name[96];
    QKV_TRY(add_queries(table, sizes, biases, f, names, l, e));
    QKV_TRY(add_part(table, f, biases & QKV_BIAS_OUTPUT,
                     qkvi_block_name(name, names, l, names->output), sizes->hidden,
                     sizes->n_heads * sizes->head_dim, e));
    QKV_TRY(add_block_norm(table, f, names, l, names->norm1, sizes->hidden, e));
    QKV_TRY(add_scale(table, names, l, names->scale1, sizes->hidden, e));
    return add_block_norm(table, f, names, l, names->out1, sizes->hidden, e);
}

static qkv_status add_cross(qkvi_param_table *table, const qkvi_stack *sizes, int biases,
                            const qkvi_model_family *f, const qkvi_stack_names *names, int64_t l,
                            qkv_error *e) {
    const int64_t h = sizes->hidden, width = sizes->n_heads * sizes->head_dim;
    const char *const parts[] = { names->cross_query, names->cross_key, names->cross_value };
    char name[96];
    for (int p = 0; p < 3; p++)
        QKV_TRY(add_part(table, f, biases & QKV_BIAS_QKV, qkvi_block_name(name, names, l, parts[p]),
                         width, h, e));
    QKV_TRY(add_part(table, f, biases & QKV_BIAS_OUTPUT,
                     qkvi_block_name(name, names, l, names->cross_output), h, width, e));
    return qkvi_add_norm(table, f, qkvi_block_name(name, names, l, names->norm_cross), h, e);
}

/* What the feed-forward part multiplies with first. */
static qkv_status add_up(qkvi_param_table *table, const qkv_model_info *info,
                         const qkvi_stack *sizes, bool has_bias, const qkvi_model_family *f,
                         const qkvi_stack_names *names, int64_t l, qkv_error *e) {
    const int64_t h = sizes->hidden, wide = sizes->intermediate;
    const stored_part parts[] = { { qkvi_gate_name(info, names), wide },
                                  { qkvi_up_name(info, names), wide } };
    char name[96];
    if (f->fused_up && parts[0].name)
        return add_rows(table, names, l, f->fused_up, 2, parts, h, has_bias, 0, e);
    for (int p = parts[0].name ? 0 : 1; p < 2; p++)
        QKV_TRY(add_part(table, f, has_bias, qkvi_block_name(name, names, l, parts[p].name), wide,
                         h, e));
    return QKV_OK;
}

static qkv_status add_block(qkvi_param_table *table, const qkv_model_info *info,
                            const qkvi_stack *sizes, const qkvi_model_family *f,
                            const qkvi_stack_names *names, int64_t l, qkv_error *e) {
    char name[96];
    const int64_t h = sizes->hidden, wide = sizes->intermediate;
    const int biases = qkvi_family_biases(info);
    const bool has_bias = biases & QKV_BIAS_MLP;
    QKV_TRY(add_attention(table, sizes, biases, f, names, l, e));
    if (names->cross_query) QKV_TRY(add_cross(table, sizes, biases, f, names, l, e));
    QKV_TRY(add_up(table, info, sizes, has_bias, f, names, l, e));
    QKV_TRY(add_part(table, f, has_bias, qkvi_block_name(name, names, l, names->down), h, wide, e));
    if (!f->one_norm) QKV_TRY(add_block_norm(table, f, names, l, names->norm2, h, e));
    QKV_TRY(add_scale(table, names, l, names->scale2, h, e));
    return add_block_norm(table, f, names, l, names->out2, h, e);
}

const char *qkvi_word_name(const qkv_model_info *info, const qkvi_model_family *family, int stack) {
    const int own = info->untied & (stack ? QKV_UNTIED_DECODER : QKV_UNTIED_ENCODER);
    return family->shared_words && !info->separate_words && !own ? family->shared_words
                                                                 : family->stacks[stack].word;
}

const char *qkvi_head_name(const qkv_model_info *info, const qkvi_model_family *family) {
    if (info->untied & QKV_UNTIED_HEAD) return family->head;
    return family->shared_words && !info->separate_words
               ? family->shared_words
               : family->stacks[qkvi_family_stacks(family) - 1].word;
}

/* Words of a stack, of a head, or of several of them: a row that is there stays. */
static qkv_status add_words(qkvi_param_table *table, const qkv_model_info *info,
                            const qkvi_model_family *f, const char *name, int64_t n, int64_t size,
                            qkv_error *e) {
    const bool has_head = info->has_mlm || info->has_lm;
    char full[128];
    snprintf(full, sizeof full, "%s.weight", name);
    if (qkvi_params_find(table, full)) return QKV_OK;
    QKV_TRY(qkvi_params_add(table, 2, n, size, e, "%s", full));
    table->rows[table->n_rows - 1].is_words = true;
    if (has_head && strcmp(name, qkvi_head_name(info, f)) == 0) qkvi_params_multiplies(table);
    return QKV_OK;
}

static qkv_status add_embeddings(qkvi_param_table *table, const qkv_model_info *info,
                                 const qkvi_stack *sizes, const qkvi_model_family *f, int stack,
                                 qkv_error *e) {
    const qkvi_stack_names *const names = &f->stacks[stack];
    const int64_t size = sizes->embedding_size;
    QKV_TRY(add_words(table, info, f, qkvi_word_name(info, f, stack), sizes->vocab_size, size, e));
    if (!info->sinusoidal_positions && names->position)
        QKV_TRY(qkvi_params_add(table, 2, sizes->first_position + sizes->max_len,
                                f->positions_last ? sizes->hidden : size, e, "%s.weight",
                                names->position));
    if (sizes->n_types > 0)
        QKV_TRY(qkvi_params_add(table, 2, sizes->n_types, size, e, "%s.weight", names->segment));
    if (names->embed_norm) QKV_TRY(qkvi_add_norm(table, f, names->embed_norm, size, e));
    if (size == sizes->hidden) return QKV_OK;
    if (!f->positions_last) return qkvi_add_linear(table, names->project, sizes->hidden, size, e);
    QKV_TRY(qkvi_add_weight(table, names->project, sizes->hidden, size, e));
    return qkvi_add_weight(table, names->project_out, size, sizes->hidden, e);
}

static qkv_status add_stack(qkvi_param_table *table, const qkv_model_info *info,
                            const qkvi_model_family *f, int stack, qkv_error *e) {
    const qkvi_stack_names *const names = qkvi_family_names(info, stack);
    const qkvi_stack sizes = qkvi_stack_sizes(info, stack);
    QKV_TRY(qkvi_family_sees(f) ? qkvi_images_table(info, f, table, e)
                                : add_embeddings(table, info, &sizes, f, stack, e));
    if (names->distances)
        QKV_TRY(qkvi_params_add(table, 2, info->distance_buckets, sizes.n_heads, e, "%s.weight",
                                names->distances));
    for (int64_t l = 0; l < sizes.n_layers; l++)
        QKV_TRY(add_block(table, info, &sizes, f, names, l, e));
    return names->last_norm && !info->no_last_norm
               ? qkvi_add_norm(table, f, names->last_norm, sizes.hidden, e)
               : QKV_OK;
}

qkvi_below_classes qkvi_net_below_classes(const qkv_model_info *info) {
    const qkvi_model_family *const f = qkvi_family_of(info->architecture);
    const char *const below = info->n_labels > 0 ? qkvi_classifier_below(info) : NULL;
    if (!below) return QKVI_BELOW_NOTHING;
    if (below == f->class_dense) return QKVI_BELOW_DENSE;
    return below == f->pooler ? QKVI_BELOW_POOLER : QKVI_BELOW_TRANSFORM;
}

bool qkvi_net_transforms(const qkv_model_info *info) {
    return info->has_mlm || qkvi_net_below_classes(info) == QKVI_BELOW_TRANSFORM;
}

static qkv_status add_classifier(qkvi_param_table *table, const qkv_model_info *info,
                                 const qkvi_model_family *f, qkv_error *e) {
    const int64_t h = info->hidden;
    if (qkvi_net_below_classes(info) == QKVI_BELOW_DENSE)
        QKV_TRY(qkvi_add_linear(table, f->class_dense, h, h, e));
    if (f->kind == QKV_MODEL_DECODER)
        return qkvi_add_weight(table, qkvi_classifier_name(info), info->n_labels, h, e);
    return qkvi_add_linear(table, qkvi_classifier_name(info), info->n_labels, h, e);
}

static qkv_status add_heads(qkvi_param_table *table, const qkv_model_info *info,
                            const qkvi_model_family *f, qkv_error *e) {
    if (info->joint_dim > 0 && f->joint)
        QKV_TRY(f->joint_biased
                    ? qkvi_add_linear(table, f->joint, info->joint_dim, info->hidden, e)
                    : qkvi_add_weight(table, f->joint, info->joint_dim, info->hidden, e));
    if (qkvi_family_sees(f)) return qkvi_images_heads_table(info, f, table, e);
    const int64_t h = info->hidden, size = info->embedding_size;
    const int64_t n_words = qkvi_stack_sizes(info, qkvi_family_stacks(f) - 1).vocab_size;
    if (info->has_mlm || info->has_lm)
        QKV_TRY(add_words(table, info, f, qkvi_head_name(info, f), n_words, size, e));
    if (info->has_lm && f->head_bias)
        QKV_TRY(qkvi_params_add(table, 1, n_words, 1, e, "%s", f->head_bias));
    if (info->has_pooler) QKV_TRY(qkvi_add_linear(table, f->pooler, h, h, e));
    if (info->has_mlm)
        QKV_TRY(qkvi_params_add(table, 1, info->vocab_size, 1, e, "%s", f->decoder_bias));
    if (qkvi_net_transforms(info)) {
        QKV_TRY(add_part(table, f, !f->norm_bias, f->transform, size, h, e));
        QKV_TRY(qkvi_add_norm(table, f, f->transform_norm, size, e));
    }
    if (info->has_nsp) QKV_TRY(qkvi_add_linear(table, f->nsp, 2, h, e));
    if (info->n_labels > 0) QKV_TRY(add_classifier(table, info, f, e));
    if (!info->has_discriminator) return QKV_OK;
    QKV_TRY(qkvi_add_linear(table, f->discriminator, h, h, e));
    return qkvi_add_linear(table, f->discriminator_out, 1, h, e);
}

qkv_status qkvi_net_table(const qkv_model_info *info, qkvi_param_table *table, qkv_error *error) {
    const qkvi_model_family *const family = qkvi_family_of(info->architecture);
    QKV_TRY(qkvi_net_check_sizes(info, family, error));
    for (int stack = 0; stack < qkvi_family_stacks(family); stack++)
        QKV_TRY(add_stack(table, info, family, stack, error));
    return add_heads(table, info, family, error);
}
