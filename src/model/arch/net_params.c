/*
 * The parameters of BERT and its family: one table of names and shapes, and structs of pointers
 * bound to an arena of that layout. The order of the table is that of the file format's writers:
 * embeddings, blocks, heads. What a model lacks has no row, and its pointers are NULL.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/fpstate.h"
#include "core/status.h"
#include "kernels/gemm.h"
#include "model/arch/family.h"
#include "model/arch/net.h"

enum { MAX_SIZE = 1 << 24 }; /* of any dimension: products of three fit int64_t */

/* ---- Table ----------------------------------------------------------------------------------- */

static qkv_status add_linear(qkvi_param_table *table, const char *name, int64_t n_out, int64_t n_in,
                             qkv_error *error) {
    QKV_TRY(qkvi_params_add(table, 2, n_out, n_in, error, "%s.weight", name));
    return qkvi_params_add(table, 1, n_out, 1, error, "%s.bias", name);
}

static qkv_status add_norm(qkvi_param_table *table, const char *name, int64_t n, qkv_error *error) {
    QKV_TRY(qkvi_params_add(table, 1, n, 1, error, "%s.weight", name));
    return qkvi_params_add(table, 1, n, 1, error, "%s.bias", name);
}

/* Names of the parts of block l. */
static const char *block_name(char name[96], const qkvi_family *family, int64_t l,
                              const char *part) {
    snprintf(name, 96, "%s%lld.%s", family->layer, (long long)l, part);
    return name;
}

static qkv_status add_block(qkvi_param_table *table, const qkv_model_info *info,
                            const qkvi_family *f, int64_t l, qkv_error *e) {
    char name[96];
    const int64_t h = info->hidden, wide = info->intermediate;
    QKV_TRY(add_linear(table, block_name(name, f, l, f->query), h, h, e));
    QKV_TRY(add_linear(table, block_name(name, f, l, f->key), h, h, e));
    QKV_TRY(add_linear(table, block_name(name, f, l, f->value), h, h, e));
    QKV_TRY(add_linear(table, block_name(name, f, l, f->output), h, h, e));
    QKV_TRY(add_norm(table, block_name(name, f, l, f->norm1), h, e));
    QKV_TRY(add_linear(table, block_name(name, f, l, f->up), wide, h, e));
    QKV_TRY(add_linear(table, block_name(name, f, l, f->down), h, wide, e));
    return add_norm(table, block_name(name, f, l, f->norm2), h, e);
}

static qkv_status add_embeddings(qkvi_param_table *table, const qkv_model_info *info,
                                 const qkvi_family *f, qkv_error *e) {
    const int64_t size = info->embedding_size;
    QKV_TRY(qkvi_params_add(table, 2, info->vocab_size, size, e, "%s.weight", f->word));
    if (!info->sinusoidal_positions)
        QKV_TRY(qkvi_params_add(table, 2, info->first_position + info->max_len, size, e,
                                "%s.weight", f->position));
    if (info->n_types > 0)
        QKV_TRY(qkvi_params_add(table, 2, info->n_types, size, e, "%s.weight", f->segment));
    QKV_TRY(add_norm(table, f->embed_norm, size, e));
    return size == info->hidden ? QKV_OK : add_linear(table, f->project, info->hidden, size, e);
}

static qkv_status add_heads(qkvi_param_table *table, const qkv_model_info *info,
                            const qkvi_family *f, qkv_error *e) {
    const int64_t h = info->hidden, size = info->embedding_size;
    if (info->has_pooler) QKV_TRY(add_linear(table, f->pooler, h, h, e));
    if (info->has_mlm) {
        QKV_TRY(qkvi_params_add(table, 1, info->vocab_size, 1, e, "%s", f->decoder_bias));
        QKV_TRY(add_linear(table, f->transform, size, h, e));
        QKV_TRY(add_norm(table, f->transform_norm, size, e));
    }
    if (info->has_nsp) QKV_TRY(add_linear(table, f->nsp, 2, h, e));
    if (!info->has_judge) return QKV_OK;
    QKV_TRY(add_linear(table, f->judge, h, h, e));
    return add_linear(table, f->judgement, 1, h, e);
}

static qkv_status check_sizes(const qkv_model_info *info, qkv_error *error) {
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {
        { "n_layers", info->n_layers },       { "n_heads", info->n_heads },
        { "hidden", info->hidden },           { "embedding_size", info->embedding_size },
        { "head_dim", info->head_dim },       { "intermediate", info->intermediate },
        { "vocab_size", info->vocab_size },   { "max_len", info->max_len },
        { "n_types + 1", info->n_types + 1 }, { "first_position + 1", info->first_position + 1 },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 1 || sizes[i].value > MAX_SIZE)
            return qkvi_error_set(error, QKV_ERR_LIMIT, "%s = %lld is not between 1 and %d",
                                  sizes[i].name, (long long)sizes[i].value, MAX_SIZE);
    if (info->n_heads * info->head_dim != info->hidden)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "n_heads = %lld times head_dim = %lld is not "
                              "hidden = %lld",
                              (long long)info->n_heads, (long long)info->head_dim,
                              (long long)info->hidden);
    if (info->has_nsp && !info->has_pooler)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "the NSP head needs a pooler");
    return QKV_OK;
}

qkv_status qkvi_net_table(const qkv_model_info *info, qkvi_param_table *table, qkv_error *error) {
    const qkvi_family *const family = qkvi_family_of(info->architecture);
    QKV_TRY(check_sizes(info, error));
    QKV_TRY(add_embeddings(table, info, family, error));
    for (int64_t l = 0; l < info->n_layers; l++) QKV_TRY(add_block(table, info, family, l, error));
    return add_heads(table, info, family, error);
}

/* ---- Binding --------------------------------------------------------------------------------- */

/* Where pointers come from while a struct is bound. */
typedef struct binder {
    const qkvi_param_table *table;
    float *arena;
    const qkvi_family *family;
} binder;

/* NULL for a part that the family lacks, too. */
static float *bind_at(const binder *b, const char *name, const char *what) {
    return name ? qkvi_params_at(b->table, b->arena, "%s%s", name, what) : NULL;
}

static qkvi_linear bind_linear(const binder *b, const char *name, int64_t n_out, int64_t n_in) {
    return (qkvi_linear){ .n_in = n_in,
                          .n_out = n_out,
                          .weight = bind_at(b, name, ".weight"),
                          .bias = bind_at(b, name, ".bias") };
}

static qkvi_layernorm bind_norm(const binder *b, const char *name, int64_t n) {
    return (qkvi_layernorm){ n, bind_at(b, name, ".weight"), bind_at(b, name, ".bias") };
}

static void bind_block(const binder *b, const qkvi_stack *s, int64_t l, qkvi_block *block) {
    char name[96];
    const qkvi_family *const f = b->family;
    const int64_t h = s->hidden, wide = s->intermediate;
    block->eps = s->eps;
    block->act = QKVI_GELU;
    block->mha = (qkvi_mha){
        .n_heads = s->n_heads,
        .head_dim = s->head_dim,
        .hidden = h,
        .query = bind_linear(b, block_name(name, f, l, f->query), h, h),
        .key = bind_linear(b, block_name(name, f, l, f->key), h, h),
        .value = bind_linear(b, block_name(name, f, l, f->value), h, h),
        .output = bind_linear(b, block_name(name, f, l, f->output), h, h),
    };
    block->norm1 = bind_norm(b, block_name(name, f, l, f->norm1), h);
    block->up = bind_linear(b, block_name(name, f, l, f->up), wide, h);
    block->down = bind_linear(b, block_name(name, f, l, f->down), h, wide);
    block->norm2 = bind_norm(b, block_name(name, f, l, f->norm2), h);
}

static void bind_embeddings(const binder *b, qkvi_stack *s) {
    const qkvi_family *const f = b->family;
    s->embed = (qkvi_embed){
        .hidden = s->embedding_size,
        .n_words = s->vocab_size,
        .n_types = s->n_types > 0 ? s->n_types : 1,
        .n_positions = s->first_position + s->max_len,
        .word_scale = 1,
        .word = bind_at(b, f->word, ".weight"),
        .type = bind_at(b, f->segment, ".weight"),
        .position = bind_at(b, f->position, ".weight"),
    };
    s->embed_norm = bind_norm(b, f->embed_norm, s->embedding_size);
    s->project = bind_linear(b, f->project, s->hidden, s->embedding_size);
}

static void bind_heads(const binder *b, qkvi_net *net) {
    const qkvi_family *const f = b->family;
    const qkvi_stack *const s = &net->stacks[0];
    const int64_t h = s->hidden, size = s->embedding_size;
    net->pooler = bind_linear(b, f->pooler, h, h);
    net->transform = bind_linear(b, f->transform, size, h);
    net->transform_norm = bind_norm(b, f->transform_norm, size);
    net->decoder = (qkvi_linear){ .n_in = size, .n_out = s->vocab_size, .weight = s->embed.word };
    net->decoder.bias = bind_at(b, f->decoder_bias, "");
    net->nsp = bind_linear(b, f->nsp, 2, h);
    net->judge = bind_linear(b, f->judge, h, h);
    net->judgement = bind_linear(b, f->judgement, 1, h);
}

/* ---- Packed weights -------------------------------------------------------------------------- */

typedef void linear_visitor(void *argument, qkvi_linear *layer);

static void each_of_mha(qkvi_mha *mha, linear_visitor *visit, void *argument) {
    visit(argument, &mha->query);
    visit(argument, &mha->key);
    visit(argument, &mha->value);
    visit(argument, &mha->output);
}

static void each_of_stack(qkvi_stack *stack, linear_visitor *visit, void *argument) {
    if (qkvi_stack_projects(stack)) visit(argument, &stack->project);
    for (int64_t l = 0; l < stack->n_layers; l++) {
        qkvi_block *block = &stack->blocks[l];
        each_of_mha(&block->mha, visit, argument);
        if (qkvi_block_crosses(block)) each_of_mha(&block->cross, visit, argument);
        visit(argument, &block->up);
        visit(argument, &block->down);
    }
}

static void each_linear(qkvi_net *net, linear_visitor *visit, void *argument) {
    for (int s = 0; s < net->n_stacks; s++) each_of_stack(&net->stacks[s], visit, argument);
    if (net->has_pooler) visit(argument, &net->pooler);
    if (net->has_nsp) visit(argument, &net->nsp);
    if (net->has_mlm) {
        visit(argument, &net->transform);
        visit(argument, &net->decoder);
    }
    if (net->has_judge) {
        visit(argument, &net->judge);
        visit(argument, &net->judgement);
    }
    if (net->has_lm) visit(argument, &net->lm);
}

typedef struct cut_packed {
    unsigned forms;
    qkvi_cutter cutter;
} cut_packed;

static void cut_linear(void *argument, qkvi_linear *layer) {
    cut_packed *c = argument;
    const size_t forward = qkvi_gemm_packed_elems(layer->n_in, layer->n_out);
    const size_t backward = qkvi_gemm_packed_elems(layer->n_out, layer->n_in);
    if (c->forms & QKVI_NET_FORWARD)
        layer->forward = qkvi_cut(&c->cutter, (int64_t)forward, sizeof(float));
    if (c->forms & QKVI_NET_BACKWARD)
        layer->backward = qkvi_cut(&c->cutter, (int64_t)backward, sizeof(float));
}

static qkv_status make_packed(qkvi_net *net, unsigned forms, qkv_error *error) {
    cut_packed c = { forms, { 0 } };
    if (!forms) return QKV_OK;
    each_linear(net, cut_linear, &c);
    if (!c.cutter.overflow) net->packed = qkvi_aligned_array(c.cutter.used_bytes, 1);
    if (!net->packed) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for packed weights");
    c.cutter = qkvi_cutter_on(net->packed);
    each_linear(net, cut_linear, &c);
    return QKV_OK;
}

static void pack_linear(void *argument, qkvi_linear *layer) { qkvi_linear_pack(argument, layer); }

void qkvi_net_pack(qkv_ctx *ctx, const qkvi_net *net) {
    qkvi_net same = *net; /* the visitor changes nothing here, but may elsewhere */
    each_linear(&same, pack_linear, ctx);
}

/* ---- Whole structs --------------------------------------------------------------------------- */

static qkv_status make_sinusoids(qkvi_stack *s, qkv_error *error) {
    size_t n;
    if (qkvi_mul_size((size_t)s->max_len, (size_t)s->hidden, &n))
        s->sinusoids = qkvi_aligned_array(n, sizeof(float));
    if (!s->sinusoids) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for positions");
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    qkvi_sinusoids(s->max_len, s->hidden, s->sinusoids);
    qkvi_fpstate_leave(saved);
    s->embed.position = s->sinusoids;
    return QKV_OK;
}

/* A segment of zeros, for models without segments, so that every embedding is a sum of three. */
static qkv_status make_no_segment(qkvi_stack *s, qkv_error *error) {
    s->no_segment = qkvi_calloc_array((size_t)s->embedding_size, sizeof(float));
    if (!s->no_segment) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a segment");
    s->embed.type = s->no_segment;
    return QKV_OK;
}

static qkv_status bind_stack(const binder *b, bool sinusoidal, bool runs, qkvi_stack *s,
                             qkv_error *error) {
    s->blocks = qkvi_calloc_array((size_t)s->n_layers, sizeof *s->blocks);
    if (!s->blocks) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for layers");
    for (int64_t l = 0; l < s->n_layers; l++) bind_block(b, s, l, &s->blocks[l]);
    bind_embeddings(b, s);
    if (sinusoidal && runs) QKV_TRY(make_sinusoids(s, error));
    if (s->n_types == 0 && runs) QKV_TRY(make_no_segment(s, error));
    return QKV_OK;
}

static qkvi_stack sizes_of(const qkv_model_info *info) {
    return (qkvi_stack){ .n_layers = info->n_layers,
                         .n_heads = info->n_heads,
                         .hidden = info->hidden,
                         .head_dim = info->head_dim,
                         .intermediate = info->intermediate,
                         .vocab_size = info->vocab_size,
                         .max_len = info->max_len,
                         .n_types = info->n_types,
                         .embedding_size = info->embedding_size,
                         .first_position = info->first_position,
                         .skips_padding = info->first_position > 0,
                         .eps = (float)info->layer_norm_eps };
}

static qkv_status bind_all(const binder *b, const qkv_model_info *info, unsigned packed,
                           qkvi_net *net, qkv_error *error) {
    net->n_stacks = 1;
    net->stacks[0] = sizes_of(info);
    net->has_pooler = info->has_pooler;
    net->has_mlm = info->has_mlm;
    net->has_nsp = info->has_nsp;
    net->has_judge = info->has_judge;
    QKV_TRY(bind_stack(b, info->sinusoidal_positions, packed, &net->stacks[0], error));
    bind_heads(b, net);
    return make_packed(net, packed, error);
}

qkv_status qkvi_net_bind(const qkv_model_info *info, const qkvi_param_table *table, float *arena,
                         unsigned packed, qkvi_net **net, qkv_error *error) {
    const binder b = { table, arena, qkvi_family_of(info->architecture) };
    qkvi_net *made = qkvi_calloc_array(1, sizeof *made);
    *net = NULL;
    if (!made) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a model");
    const qkv_status status = bind_all(&b, info, packed, made, error);
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
        free(net->stacks[s].sinusoids);
        free(net->stacks[s].no_segment);
    }
    free(net->packed);
    free(net);
}
