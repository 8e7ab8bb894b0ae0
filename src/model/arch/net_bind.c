/*
 * Structs of pointers bound to an arena that is laid out by the table (net_table.c). What a model
 * lacks has no row there, and its pointers are NULL.
 */
#include <math.h>

#include "core/fpstate.h"
#include "model/arch/net_params.h"
#include "model/layer/alibi.h"

/* The layer of a block's part. */
static qkvi_linear bind_part(const qkvi_binder *b, const qkvi_stack_names *names, int64_t l,
                             const char *part, int64_t n_out, int64_t n_in) {
    char name[96];
    return qkvi_bind_linear(b, qkvi_block_name(name, names, l, part), n_out, n_in);
}

static qkvi_layernorm bind_part_norm(const qkvi_binder *b, const qkvi_stack_names *names, int64_t l,
                                     const char *part, int64_t n) {
    char name[96];
    return qkvi_bind_norm(b, part ? qkvi_block_name(name, names, l, part) : NULL, n);
}

/* The norm of what a part adds, or its factors. */
static qkvi_layernorm bind_out(const qkvi_binder *b, const qkvi_stack_names *names, int64_t l,
                               const char *norm, const char *scale, int64_t n) {
    char name[96];
    if (!scale) return bind_part_norm(b, names, l, norm, n);
    return (qkvi_layernorm){
        .n = n,
        .gamma = qkvi_bind_at(b, qkvi_block_name(name, names, l, scale), ""),
        .kind = QKVI_LAYER_SCALE,
    };
}

/* Self-attention: what rotary models have besides others is zeros in these. */
static void bind_mha(const qkvi_binder *b, const qkvi_stack *s, const qkvi_stack_names *names,
                     int64_t l, qkvi_mha *mha) {
    const qkv_model_info *const info = b->info;
    const unsigned kind = info->layer_kinds[l];
    const int64_t h = s->hidden, width = qkvi_mha_width(mha), kv_width = qkvi_mha_kv_width(mha);
    const bool by_row = b->family->qk_norm == QKVI_QK_NORM_ROWS, slides = kind & QKV_LAYER_SLIDES;
    mha->windowed = slides;
    mha->window_left = info->window_left;
    mha->window_right = info->window_right;
    mha->softcap = (float)info->score_cap;
    const qkvi_positions positions = b->family->positions;
    const bool turns = positions == QKVI_ROTARY || positions == QKVI_ROTARY_PLANE;
    if (turns && !(kind & QKV_LAYER_UNROTATED)) mha->rope = slides ? 2 : 1;
    mha->turned = info->rotary_dim;
    mha->neighbours = info->rotary_neighbours;
    mha->query = bind_part(b, names, l, names->query, width, h);
    mha->key = bind_part(b, names, l, names->key, kv_width, h);
    mha->value = bind_part(b, names, l, names->value, kv_width, h);
    mha->output = bind_part(b, names, l, names->output, h, width);
    mha->q_norm = bind_part_norm(b, names, l, names->query_norm, by_row ? width : s->head_dim);
    mha->k_norm = bind_part_norm(b, names, l, names->key_norm, by_row ? kv_width : s->head_dim);
}

static void bind_block(const qkvi_binder *b, const qkvi_stack *s, const qkvi_stack_names *names,
                       int64_t l, qkvi_block *block) {
    const int64_t h = s->hidden, wide = s->intermediate;
    const qkvi_mha none = { .n_heads = s->n_heads,
                            .n_kv_heads = s->n_kv_heads,
                            .head_dim = s->head_dim,
                            .hidden = h,
                            .eps = s->eps,
                            .scale = qkvi_family_scale(b->info, s->head_dim, l) };
    block->eps = s->eps;
    block->act = b->act;
    const qkvi_norm_place place = b->info->post_norm ? QKVI_NORM_SUM : b->family->place;
    block->adds = place != QKVI_NORM_SUM;
    block->pre_norm = place == QKVI_NORM_INPUT || place == QKVI_NORM_BOTH;
    block->parallel = b->info->parallel;
    block->from_norm = b->info->adds_to_norm;
    block->mha = none;
    bind_mha(b, s, names, l, &block->mha);
    block->out1 = bind_out(b, names, l, names->out1, names->scale1, h);
    block->out2 = bind_out(b, names, l, names->out2, names->scale2, h);
    block->norm1 = bind_part_norm(b, names, l, names->norm1, h);
    if (names->cross_query) {
        block->cross = none;
        const int64_t width = qkvi_mha_width(&none);
        block->cross.query = bind_part(b, names, l, names->cross_query, width, h);
        block->cross.key = bind_part(b, names, l, names->cross_key, width, h);
        block->cross.value = bind_part(b, names, l, names->cross_value, width, h);
        block->cross.output = bind_part(b, names, l, names->cross_output, h, width);
        block->norm_cross = bind_part_norm(b, names, l, names->norm_cross, h);
    }
    const char *const gate = qkvi_gate_name(b->info, names);
    if (gate) block->gate = bind_part(b, names, l, gate, wide, h);
    block->up = bind_part(b, names, l, qkvi_up_name(b->info, names), wide, h);
    block->down = bind_part(b, names, l, names->down, h, wide);
    block->norm2 = bind_part_norm(b, names, l, names->norm2, h);
}

static float word_scale(const qkv_model_info *info) {
    if (info->word_scale > 0) return (float)info->word_scale;
    return info->scales_words ? sqrtf((float)info->hidden) : 1;
}

static void bind_embeddings(const qkvi_binder *b, int stack, qkvi_stack *s) {
    const qkvi_stack_names *const names = &b->family->stacks[stack];
    const char *const words = qkvi_word_name(b->info, b->family, stack);
    const qkvi_linear tied = qkvi_bind_weight(b, words, s->vocab_size, s->embedding_size);
    const bool last = b->family->positions_last && qkvi_stack_projects(s);
    float *const positions = qkvi_bind_at(b, names->position, ".weight");
    s->embed = (qkvi_embed){
        .hidden = s->embedding_size,
        .n_words = s->vocab_size,
        .n_types = s->n_types > 0 ? s->n_types : 1,
        .n_positions = names->position && !last ? s->first_position + s->max_len : 0,
        .word_scale = word_scale(b->info),
        .padding = b->family->padding_learns ? -1 : b->info->pad_id,
        .padding_place = s->skips_padding ? s->first_position - 1 : -1,
        .word = tied.weight,
        .tied = qkvi_linear_weights(&tied),
        .type = qkvi_bind_at(b, names->segment, ".weight"),
        .position = last ? NULL : positions,
    };
    if (last) s->positions = positions;
    s->embed_norm = qkvi_bind_norm(b, names->embed_norm, s->embedding_size);
    s->project = qkvi_bind_linear(b, names->project, s->hidden, s->embedding_size);
    s->last_norm = qkvi_bind_norm(b, names->last_norm, s->hidden);
}

static void bind_heads(const qkvi_binder *b, qkvi_net *net) {
    const qkvi_model_family *const f = b->family;
    const qkvi_stack *const s = &net->stacks[0];
    const int64_t h = s->hidden, size = s->embedding_size;
    net->pooler = qkvi_bind_linear(b, f->pooler, h, h);
    net->transform = qkvi_bind_linear(b, f->transform, size, h);
    net->transform_norm = qkvi_bind_norm(b, f->transform_norm, size);
    const qkvi_stack *const last = qkvi_net_last(net);
    const char *const head = qkvi_head_name(b->info, f);
    net->decoder = qkvi_bind_weight(b, head, s->vocab_size, size);
    net->decoder.bias = qkvi_bind_at(b, f->decoder_bias, "");
    net->nsp = qkvi_bind_linear(b, f->nsp, 2, h);
    net->discriminator = qkvi_bind_linear(b, f->discriminator, h, h);
    net->discriminator_out = qkvi_bind_linear(b, f->discriminator_out, 1, h);
    net->class_below = qkvi_net_below_classes(b->info);
    if (net->class_below == QKVI_BELOW_DENSE)
        net->class_dense = qkvi_bind_linear(b, f->class_dense, h, h);
    net->class_act = f->class_act;
    net->classifier = qkvi_bind_linear(b, qkvi_classifier_name(b->info), net->n_labels, h);
    net->transforms = qkvi_net_transforms(b->info);
    if (last->positions)
        net->project_out = qkvi_bind_weight(b, f->stacks[0].project_out, last->embedding_size, h);
    net->lm = qkvi_bind_weight(b, head, last->vocab_size, last->embedding_size);
    net->lm.bias = qkvi_bind_at(b, f->head_bias, "");
    net->logit_cap = (float)b->info->logit_cap;
    net->logit_scale = b->info->scales_logits ? 1 / sqrtf((float)h) : 0;
}

/* ---- Whole structs --------------------------------------------------------------------------- */

static qkv_status make_sinusoids(qkvi_stack *s, bool half, qkv_error *error) {
    size_t n;
    if (qkvi_mul_size((size_t)s->max_len, (size_t)s->hidden, &n))
        s->sinusoids = qkvi_aligned_array(n, sizeof(float));
    if (!s->sinusoids) return qkvi_no_memory(error, "positions");
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    if (half)
        qkvi_sinusoids_half(s->max_len, s->hidden, s->sinusoids);
    else
        qkvi_sinusoids(s->max_len, s->hidden, s->sinusoids);
    qkvi_fpstate_leave(saved);
    s->embed.position = s->sinusoids;
    return QKV_OK;
}

/* A segment of zeros, for models without segments, so that every embedding is a sum of three. */
static qkv_status make_no_segment(qkvi_stack *s, qkv_error *error) {
    s->no_segment = qkvi_calloc_array((size_t)s->embedding_size, sizeof(float));
    if (!s->no_segment) return qkvi_no_memory(error, "a segment");
    s->embed.type = s->no_segment;
    return QKV_OK;
}

static qkv_status make_ropes(const qkvi_binder *b, qkvi_stack *s, qkv_error *error) {
    for (int64_t l = 0; l < s->n_layers; l++) {
        const int rope = s->blocks[l].mha.rope;
        if (rope > 0 && !s->ropes[rope - 1].w)
            QKV_TRY(qkvi_rope_make(&b->info->rope[rope - 1], b->info->rotary_dim,
                                   &s->ropes[rope - 1], error));
    }
    return QKV_OK;
}

/* What every block's scores are biased with, made of the stack's table. */
static qkv_status make_distances(qkvi_stack *s, qkv_error *error) {
    qkvi_distance_bias *const d = &s->distances;
    d->bias = qkvi_calloc_array((size_t)(s->n_heads * qkvi_distance_bias_size(d)), sizeof(float));
    if (!d->bias) return qkvi_no_memory(error, "distances");
    qkvi_distance_bias_fill(d);
    return QKV_OK;
}

static qkv_status make_alibi(qkvi_stack *s, qkv_error *error) {
    s->alibi = qkvi_malloc_array((size_t)s->n_heads, sizeof *s->alibi);
    if (!s->alibi) return qkvi_no_memory(error, "slopes");
    qkvi_alibi_slopes(s->n_heads, s->alibi);
    for (int64_t l = 0; l < s->n_layers; l++) s->blocks[l].mha.alibi = s->alibi;
    return QKV_OK;
}

static qkv_status bind_stack(const qkvi_binder *b, int stack, bool runs, qkvi_stack *s,
                             qkv_error *error) {
    *s = qkvi_stack_sizes(b->info, stack);
    s->blocks = qkvi_calloc_array((size_t)s->n_layers, sizeof *s->blocks);
    if (!s->blocks) return qkvi_no_memory(error, "layers");
    for (int64_t l = 0; l < s->n_layers; l++)
        bind_block(b, s, qkvi_family_names(b->info, stack), l, &s->blocks[l]);
    if (qkvi_family_sees(b->family))
        qkvi_images_bind(b, s);
    else
        bind_embeddings(b, stack, s);
    if (b->info->sinusoidal_positions && runs)
        QKV_TRY(make_sinusoids(s, b->family->positions == QKVI_SINUSOIDS, error));
    s->distances = (qkvi_distance_bias){ .n_heads = s->n_heads,
                                         .n_buckets = b->info->distance_buckets,
                                         .most = b->info->max_distance,
                                         .causal = s->causal };
    s->distances.table = qkvi_bind_at(b, qkvi_family_names(b->info, stack)->distances, ".weight");
    for (int64_t l = 0; s->distances.table && l < s->n_layers; l++)
        s->blocks[l].mha.distances = &s->distances;
    if (runs && s->distances.table) QKV_TRY(make_distances(s, error));
    if (runs) QKV_TRY(make_ropes(b, s, error));
    if (runs && b->info->alibi) QKV_TRY(make_alibi(s, error));
    if (s->n_types == 0 && runs) QKV_TRY(make_no_segment(s, error));
    return QKV_OK;
}

static qkv_status bind_all(const qkvi_binder *b, unsigned packed, qkvi_net *net, qkv_error *error) {
    const qkv_model_info *const info = b->info;
    net->n_stacks = qkvi_family_stacks(b->family);
    net->has_pooler = info->has_pooler;
    net->has_mlm = info->has_mlm;
    net->has_nsp = info->has_nsp;
    net->has_discriminator = info->has_discriminator;
    net->has_lm = info->has_lm;
    net->n_labels = info->n_labels;
    net->joint = b->family->joint_biased
                     ? qkvi_bind_linear(b, b->family->joint, info->joint_dim, info->hidden)
                     : qkvi_bind_weight(b, b->family->joint, info->joint_dim, info->hidden);
    net->joins_pooled = info->joint_dim > 0 && !b->family->joint;
    net->head_act = b->family->head_is_gelu ? QKVI_GELU : b->act;
    for (int stack = 0; stack < net->n_stacks; stack++)
        QKV_TRY(bind_stack(b, stack, packed, &net->stacks[stack], error));
    if (qkvi_family_sees(b->family))
        qkvi_images_bind_heads(b, net);
    else
        bind_heads(b, net);
    return qkvi_net_make_packed(net, packed, error);
}

qkv_status qkvi_net_bind(const qkv_model_info *info, const qkvi_param_table *table, float *arena,
                         unsigned packed, qkvi_net **net, qkv_error *error) {
    const qkvi_binder b = { info, table, arena, qkvi_family_of(info->architecture),
                            qkvi_family_act(info) };
    qkvi_net *made = qkvi_calloc_array(1, sizeof *made);
    *net = NULL;
    if (!made) return qkvi_no_memory(error, "a model");
    const qkv_status status = bind_all(&b, packed, made, error);
    if (status == QKV_OK)
        *net = made;
    else
        qkvi_net_free(made);
    return status;
}

void qkvi_net_free(qkvi_net *net) {
    if (!net) return;
    for (int s = 0; s < 2; s++) {
        free(net->stacks[s].blocks);
        qkvi_aligned_free(net->stacks[s].sinusoids);
        free(net->stacks[s].no_segment);
        free(net->stacks[s].distances.bias);
        free(net->stacks[s].alibi);
        for (int r = 0; r < 2; r++) qkvi_rope_free(&net->stacks[s].ropes[r]);
    }
    qkvi_aligned_free(net->packed);
    free(net);
}
