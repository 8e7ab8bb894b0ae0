/*
 * The parameters of every architecture (family.h): one table of names and shapes, and structs of pointers
 * bound to an arena of that layout. The order of the table is that of the file format's writers:
 * embeddings, blocks, heads. What a model lacks has no row, and its pointers are NULL.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/cpu.h"
#include "core/fpstate.h"
#include "core/status.h"
#include "kernels/gemm.h"
#include "model/arch/family.h"
#include "model/arch/net.h"

enum { MAX_SIZE = 1 << 24 }; /* of any dimension: products of three fit int64_t */

/* Everything about a stack that needs no parameters. */
static qkvi_stack sizes_of(const qkv_model_info *info, int stack) {
    const qkvi_switches switches = qkvi_switches_of(info);
    const bool over = stack == 1; /* a decoder over an encoder */
    const int64_t n_heads = over ? info->n_decoder_heads : info->n_heads;
    return (qkvi_stack){ .n_layers = over ? info->n_decoder_layers : info->n_layers,
                         .n_heads = n_heads,
                         .hidden = info->hidden,
                         .head_dim = over ? info->hidden / n_heads : info->head_dim,
                         .intermediate = over ? info->decoder_intermediate : info->intermediate,
                         .vocab_size = over ? info->target_vocab_size : info->vocab_size,
                         .max_len = info->max_len,
                         .n_types = info->n_types,
                         .embedding_size = info->embedding_size,
                         .first_position = info->first_position,
                         .skips_padding = switches.skips_padding,
                         .causal = over || info->is_decoder,
                         .eps = (float)info->layer_norm_eps };
}

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

/* One of the layers of a block, stored as the family does it. */
static qkv_status add_part(qkvi_param_table *table, const qkvi_model_family *family,
                           const char *name, int64_t n_out, int64_t n_in, qkv_error *error) {
    QKV_TRY(qkvi_params_add(table, 2, n_out, n_in, error, "%s.weight", name));
    if (family->transposes) qkvi_params_stored_as(table, true, 0, 1, "%s.weight", name);
    return qkvi_params_add(table, 1, n_out, 1, error, "%s.bias", name);
}

/* What a block's part is called. */
static const char *block_name(char name[96], const qkvi_stack_names *names, int64_t l,
                              const char *part) {
    snprintf(name, 96, "%s%lld.%s", names->layer, (long long)l, part);
    return name;
}

/* Query, key and value side by side in one matrix and one bias. */
static qkv_status add_fused(qkvi_param_table *table, const qkvi_model_family *family,
                            const qkvi_stack_names *names, int64_t l, int64_t h, qkv_error *error) {
    const char *const parts[] = { names->query, names->key, names->value };
    char name[96], fused[96];
    block_name(fused, names, l, family->fused);
    for (int p = 0; p < 3; p++) {
        block_name(name, names, l, parts[p]);
        QKV_TRY(qkvi_params_add(table, 2, h, h, error, "%s.weight", name));
        qkvi_params_stored_as(table, true, p, 3, "%s.weight", fused);
    }
    for (int p = 0; p < 3; p++) {
        block_name(name, names, l, parts[p]);
        QKV_TRY(qkvi_params_add(table, 1, h, 1, error, "%s.bias", name));
        qkvi_params_stored_as(table, false, p, 3, "%s.bias", fused);
    }
    return QKV_OK;
}

static qkv_status add_attention(qkvi_param_table *table, const qkvi_model_family *f,
                                const qkvi_stack_names *names, int64_t l, int64_t h, qkv_error *e) {
    const char *const parts[] = { names->query, names->key, names->value };
    char name[96];
    if (f->fused) QKV_TRY(add_fused(table, f, names, l, h, e));
    for (int p = 0; p < 3 && !f->fused; p++)
        QKV_TRY(add_part(table, f, block_name(name, names, l, parts[p]), h, h, e));
    QKV_TRY(add_part(table, f, block_name(name, names, l, names->output), h, h, e));
    return add_norm(table, block_name(name, names, l, names->norm1), h, e);
}

static qkv_status add_cross(qkvi_param_table *table, const qkvi_model_family *f,
                            const qkvi_stack_names *names, int64_t l, int64_t h, qkv_error *e) {
    const char *const parts[] = { names->cross_query, names->cross_key, names->cross_value,
                                  names->cross_output };
    char name[96];
    for (int p = 0; p < 4; p++)
        QKV_TRY(add_part(table, f, block_name(name, names, l, parts[p]), h, h, e));
    return add_norm(table, block_name(name, names, l, names->norm_cross), h, e);
}

static qkv_status add_block(qkvi_param_table *table, const qkvi_stack *sizes,
                            const qkvi_model_family *f, const qkvi_stack_names *names, int64_t l,
                            qkv_error *e) {
    char name[96];
    const int64_t h = sizes->hidden, wide = sizes->intermediate;
    QKV_TRY(add_attention(table, f, names, l, h, e));
    if (names->cross_query) QKV_TRY(add_cross(table, f, names, l, h, e));
    QKV_TRY(add_part(table, f, block_name(name, names, l, names->up), wide, h, e));
    QKV_TRY(add_part(table, f, block_name(name, names, l, names->down), h, wide, e));
    return add_norm(table, block_name(name, names, l, names->norm2), h, e);
}

/* The words of a stack: its own, or those of both. */
static const char *word_name(const qkv_model_info *info, const qkvi_model_family *family,
                             int stack) {
    return family->shared_words && !info->separate_words ? family->shared_words
                                                         : family->stacks[stack].word;
}

static qkv_status add_embeddings(qkvi_param_table *table, const qkv_model_info *info,
                                 const qkvi_stack *sizes, const qkvi_model_family *f, int stack,
                                 qkv_error *e) {
    const qkvi_stack_names *const names = &f->stacks[stack];
    const int64_t size = sizes->embedding_size;
    if (stack == 0 || info->separate_words)
        QKV_TRY(qkvi_params_add(table, 2, sizes->vocab_size, size, e, "%s.weight",
                                word_name(info, f, stack)));
    if (!info->sinusoidal_positions)
        QKV_TRY(qkvi_params_add(table, 2, sizes->first_position + sizes->max_len, size, e,
                                "%s.weight", names->position));
    if (sizes->n_types > 0)
        QKV_TRY(qkvi_params_add(table, 2, sizes->n_types, size, e, "%s.weight", names->segment));
    if (names->embed_norm) QKV_TRY(add_norm(table, names->embed_norm, size, e));
    return size == sizes->hidden ? QKV_OK
                                 : add_linear(table, names->project, sizes->hidden, size, e);
}

static qkv_status add_stack(qkvi_param_table *table, const qkv_model_info *info,
                            const qkvi_model_family *f, int stack, qkv_error *e) {
    const qkvi_stack_names *const names = &f->stacks[stack];
    const qkvi_stack sizes = sizes_of(info, stack);
    QKV_TRY(add_embeddings(table, info, &sizes, f, stack, e));
    for (int64_t l = 0; l < sizes.n_layers; l++) QKV_TRY(add_block(table, &sizes, f, names, l, e));
    return names->last_norm ? add_norm(table, names->last_norm, sizes.hidden, e) : QKV_OK;
}

static qkv_status add_heads(qkvi_param_table *table, const qkv_model_info *info,
                            const qkvi_model_family *f, qkv_error *e) {
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
        { "n_layers", info->n_layers },
        { "n_heads", info->n_heads },
        { "hidden", info->hidden },
        { "embedding_size", info->embedding_size },
        { "head_dim", info->head_dim },
        { "intermediate", info->intermediate },
        { "vocab_size", info->vocab_size },
        { "max_len", info->max_len },
        { "n_types + 1", info->n_types + 1 },
        { "first_position + 1", info->first_position + 1 },
        { "n_decoder_layers", info->is_encoder_decoder ? info->n_decoder_layers : 1 },
        { "n_decoder_heads", info->is_encoder_decoder ? info->n_decoder_heads : 1 },
        { "decoder_intermediate", info->is_encoder_decoder ? info->decoder_intermediate : 1 },
        { "target_vocab_size", info->is_encoder_decoder ? info->target_vocab_size : 1 },
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
    if (info->is_encoder_decoder && info->hidden % info->n_decoder_heads != 0)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "hidden = %lld is not a multiple of n_decoder_heads = %lld",
                              (long long)info->hidden, (long long)info->n_decoder_heads);
    if (info->has_nsp && !info->has_pooler)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "the NSP head needs a pooler");
    return QKV_OK;
}

qkv_status qkvi_net_table(const qkv_model_info *info, qkvi_param_table *table, qkv_error *error) {
    const qkvi_model_family *const family = qkvi_family_of(info->architecture);
    QKV_TRY(check_sizes(info, error));
    for (int stack = 0; stack <= info->is_encoder_decoder; stack++)
        QKV_TRY(add_stack(table, info, family, stack, error));
    return add_heads(table, info, family, error);
}

/* ---- Binding --------------------------------------------------------------------------------- */

/* Where pointers come from while a struct is bound. */
typedef struct binder {
    const qkv_model_info *info;
    const qkvi_param_table *table;
    float *arena;
    const qkvi_model_family *family;
    qkvi_switches switches;
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

/* The layer of a block's part. */
static qkvi_linear bind_part(const binder *b, const qkvi_stack_names *names, int64_t l,
                             const char *part, int64_t n_out, int64_t n_in) {
    char name[96];
    return bind_linear(b, block_name(name, names, l, part), n_out, n_in);
}

static qkvi_layernorm bind_part_norm(const binder *b, const qkvi_stack_names *names, int64_t l,
                                     const char *part, int64_t n) {
    char name[96];
    return bind_norm(b, block_name(name, names, l, part), n);
}

static void bind_block(const binder *b, const qkvi_stack *s, const qkvi_stack_names *names,
                       int64_t l, qkvi_block *block) {
    const int64_t h = s->hidden, wide = s->intermediate;
    const qkvi_mha none = { .n_heads = s->n_heads,
                            .head_dim = s->head_dim,
                            .hidden = h,
                            .scale = qkvi_switched_scale(b->info, s->head_dim, l) };
    block->eps = s->eps;
    block->act = b->switches.act;
    block->pre_norm = b->switches.pre_norm;
    block->mha = none;
    block->mha.query = bind_part(b, names, l, names->query, h, h);
    block->mha.key = bind_part(b, names, l, names->key, h, h);
    block->mha.value = bind_part(b, names, l, names->value, h, h);
    block->mha.output = bind_part(b, names, l, names->output, h, h);
    block->norm1 = bind_part_norm(b, names, l, names->norm1, h);
    if (names->cross_query) {
        block->cross = none;
        block->cross.query = bind_part(b, names, l, names->cross_query, h, h);
        block->cross.key = bind_part(b, names, l, names->cross_key, h, h);
        block->cross.value = bind_part(b, names, l, names->cross_value, h, h);
        block->cross.output = bind_part(b, names, l, names->cross_output, h, h);
        block->norm_cross = bind_part_norm(b, names, l, names->norm_cross, h);
    }
    block->up = bind_part(b, names, l, names->up, wide, h);
    block->down = bind_part(b, names, l, names->down, h, wide);
    block->norm2 = bind_part_norm(b, names, l, names->norm2, h);
}

static void bind_embeddings(const binder *b, int stack, qkvi_stack *s) {
    const qkvi_stack_names *const names = &b->family->stacks[stack];
    s->embed = (qkvi_embed){
        .hidden = s->embedding_size,
        .n_words = s->vocab_size,
        .n_types = s->n_types > 0 ? s->n_types : 1,
        .n_positions = s->first_position + s->max_len,
        .word_scale = b->switches.word_scale,
        .word = bind_at(b, word_name(b->info, b->family, stack), ".weight"),
        .type = bind_at(b, names->segment, ".weight"),
        .position = bind_at(b, names->position, ".weight"),
    };
    s->embed_norm = bind_norm(b, names->embed_norm, s->embedding_size);
    s->project = bind_linear(b, names->project, s->hidden, s->embedding_size);
    s->last_norm = bind_norm(b, names->last_norm, s->hidden);
}

static void bind_heads(const binder *b, qkvi_net *net) {
    const qkvi_model_family *const f = b->family;
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
    const qkvi_stack *const last = qkvi_net_last(net);
    net->lm = (qkvi_linear){ .n_in = h, .n_out = last->vocab_size, .weight = last->embed.word };
    net->lm_is_tied = true;
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
    qkvi_half_mode half_mode;
    qkvi_cutter cutter;
} cut_packed;

static void cut_linear(void *argument, qkvi_linear *layer) {
    cut_packed *c = argument;
    const size_t forward = qkvi_gemm_packed_elems(layer->n_in, layer->n_out);
    const size_t backward = qkvi_gemm_packed_elems(layer->n_out, layer->n_in);
    if (c->forms & QKVI_NET_FORWARD)
        layer->forward = qkvi_cut(&c->cutter, (int64_t)forward, sizeof(float));
    if (c->forms & (QKVI_NET_HALF_DP | QKVI_NET_HALF_AMX)) {
        const size_t half = qkvi_bf16_packed_words(layer->n_in, layer->n_out);
        layer->half = qkvi_cut(&c->cutter, (int64_t)half, sizeof(uint32_t));
        layer->half_mode = c->half_mode;
    }
    if (c->forms & QKVI_NET_BACKWARD)
        layer->backward = qkvi_cut(&c->cutter, (int64_t)backward, sizeof(float));
}

static qkv_status make_packed(qkvi_net *net, unsigned forms, qkv_error *error) {
    cut_packed c = { .forms = forms };
    if (forms & QKVI_NET_HALF_AMX)
        c.half_mode = (qkvi_half_mode){ QKVI_BF16_AMX, qkvi_cpu_amx() };
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

static qkv_status make_sinusoids(qkvi_stack *s, bool half, qkv_error *error) {
    size_t n;
    if (qkvi_mul_size((size_t)s->max_len, (size_t)s->hidden, &n))
        s->sinusoids = qkvi_aligned_array(n, sizeof(float));
    if (!s->sinusoids) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for positions");
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
    if (!s->no_segment) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a segment");
    s->embed.type = s->no_segment;
    return QKV_OK;
}

static qkv_status bind_stack(const binder *b, int stack, bool runs, qkvi_stack *s,
                             qkv_error *error) {
    *s = sizes_of(b->info, stack);
    s->blocks = qkvi_calloc_array((size_t)s->n_layers, sizeof *s->blocks);
    if (!s->blocks) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for layers");
    for (int64_t l = 0; l < s->n_layers; l++)
        bind_block(b, s, &b->family->stacks[stack], l, &s->blocks[l]);
    bind_embeddings(b, stack, s);
    if (b->info->sinusoidal_positions && runs)
        QKV_TRY(make_sinusoids(s, b->switches.half_sinusoids, error));
    if (s->n_types == 0 && runs) QKV_TRY(make_no_segment(s, error));
    return QKV_OK;
}

static qkv_status bind_all(const binder *b, unsigned packed, qkvi_net *net, qkv_error *error) {
    const qkv_model_info *const info = b->info;
    net->n_stacks = info->is_encoder_decoder ? 2 : 1;
    net->has_pooler = info->has_pooler;
    net->has_mlm = info->has_mlm;
    net->has_nsp = info->has_nsp;
    net->has_judge = info->has_judge;
    net->has_lm = info->has_lm;
    for (int stack = 0; stack < net->n_stacks; stack++)
        QKV_TRY(bind_stack(b, stack, packed, &net->stacks[stack], error));
    bind_heads(b, net);
    return make_packed(net, packed, error);
}

qkv_status qkvi_net_bind(const qkv_model_info *info, const qkvi_param_table *table, float *arena,
                         unsigned packed, qkvi_net **net, qkv_error *error) {
    const binder b = { info, table, arena, qkvi_family_of(info->architecture),
                       qkvi_switches_of(info) };
    qkvi_net *made = qkvi_calloc_array(1, sizeof *made);
    *net = NULL;
    if (!made) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a model");
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
        free(net->stacks[s].sinusoids);
        free(net->stacks[s].no_segment);
    }
    free(net->packed);
    free(net);
}
