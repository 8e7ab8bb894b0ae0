/*
 * Packed weights of a net: in which form, which layers have them, their memory, and packing them
 * all.
 */
#include "core/cpu.h"
#include "kernels/gemm.h"
#include "model/arch/net_params.h"

bool qkvi_weights_resolve(int given, qkv_model_weights *weights) {
    *weights = (qkv_model_weights)given;
    if (given == QKV_WEIGHTS_BF16)
        *weights = qkvi_cpu_amx() ? QKV_WEIGHTS_BF16_AMX : QKV_WEIGHTS_BF16_DP;
    return given >= QKV_WEIGHTS_F32 && given <= QKV_WEIGHTS_FILE;
}

unsigned qkvi_weights_form(qkv_model_weights resolved) {
    switch (resolved) {
    case QKV_WEIGHTS_BF16_AMX: return QKVI_NET_HALF_AMX;
    case QKV_WEIGHTS_BF16_DP: return QKVI_NET_HALF_DP;
    case QKV_WEIGHTS_INT8: return QKVI_NET_INT8;
    default: return QKVI_NET_FORWARD;
    }
}

qkvi_param_form qkvi_weights_param(qkv_model_weights resolved) {
    switch (resolved) {
    case QKV_WEIGHTS_F32:
    case QKV_WEIGHTS_FILE: return QKVI_PARAM_PANELS;
    case QKV_WEIGHTS_INT8: return QKVI_PARAM_INT8;
    default: return QKVI_PARAM_HALF;
    }
}

typedef void linear_visitor(void *argument, qkvi_linear *layer);

static void each_of_mha(qkvi_mha *mha, linear_visitor *visit, void *argument) {
    visit(argument, &mha->query);
    visit(argument, &mha->key);
    visit(argument, &mha->value);
    visit(argument, &mha->output);
}

static void each_of_stack(qkvi_stack *stack, linear_visitor *visit, void *argument) {
    if (qkvi_stack_projects(stack)) visit(argument, &stack->project);
    if (qkvi_stack_sees(stack)) visit(argument, &stack->patches.map);
    for (int64_t l = 0; l < stack->n_layers; l++) {
        qkvi_block *block = &stack->blocks[l];
        each_of_mha(&block->mha, visit, argument);
        if (qkvi_block_crosses(block)) each_of_mha(&block->cross, visit, argument);
        if (block->gate.n_out > 0) visit(argument, &block->gate);
        visit(argument, &block->up);
        visit(argument, &block->down);
    }
}

static void each_linear(qkvi_net *net, linear_visitor *visit, void *argument) {
    for (int s = 0; s < net->n_stacks; s++) each_of_stack(&net->stacks[s], visit, argument);
    if (net->has_pooler) visit(argument, &net->pooler);
    if (net->has_nsp) visit(argument, &net->nsp);
    if (net->transforms) visit(argument, &net->transform);
    if (net->has_mlm) visit(argument, &net->decoder);
    if (net->has_discriminator) {
        visit(argument, &net->discriminator);
        visit(argument, &net->discriminator_out);
    }
    if (net->class_dense.n_out > 0) visit(argument, &net->class_dense);
    if (net->n_labels > 0) visit(argument, &net->classifier);
    if (net->second.n_out > 0) visit(argument, &net->second);
    if (net->joint.n_out > 0) visit(argument, &net->joint);
    if (net->probe.attention.n_heads > 0) {
        each_of_mha(&net->probe.attention, visit, argument);
        visit(argument, &net->probe.up);
        visit(argument, &net->probe.down);
    }
    if (net->project_out.n_out > 0) visit(argument, &net->project_out);
    if (net->has_lm) visit(argument, &net->lm);
}

typedef struct cut_packed {
    unsigned forms;
    qkv_class half_class;
    qkvi_cutter cutter;
} cut_packed;

static void cut_half(cut_packed *c, qkvi_linear *layer) {
    const size_t forward = qkvi_bf16_packed_words(layer->n_in, layer->n_out);
    const size_t backward = qkvi_bf16_packed_words(layer->n_out, layer->n_in);
    layer->half = qkvi_cut(&c->cutter, (int64_t)forward, sizeof(uint32_t));
    if (c->forms & QKVI_NET_BACKWARD)
        layer->half_backward = qkvi_cut(&c->cutter, (int64_t)backward, sizeof(uint32_t));
}

static void cut_linear(void *argument, qkvi_linear *layer) {
    cut_packed *c = argument;
    const size_t forward = qkvi_gemm_packed_elems(layer->n_in, layer->n_out);
    const size_t backward = qkvi_gemm_packed_elems(layer->n_out, layer->n_in);
    const bool in_half = c->forms & (QKVI_NET_HALF_DP | QKVI_NET_HALF_AMX);
    if (in_half) layer->half_class = c->half_class;
    if (!layer->weight) return; /* the arena has what it runs with */
    if (c->forms & QKVI_NET_INT8) {
        const size_t panels = qkvi_int8_packed_panels(layer->n_in, layer->n_out);
        layer->int8 = qkvi_cut(&c->cutter, (int64_t)panels, sizeof *layer->int8);
        return;
    }
    if (in_half) {
        cut_half(c, layer);
        return;
    }
    if (c->forms & QKVI_NET_FORWARD)
        layer->forward = qkvi_cut(&c->cutter, (int64_t)forward, sizeof(float));
    if (c->forms & QKVI_NET_BACKWARD)
        layer->backward = qkvi_cut(&c->cutter, (int64_t)backward, sizeof(float));
}

qkv_status qkvi_net_make_packed(qkvi_net *net, unsigned forms, qkv_error *error) {
    const qkv_class half_class = forms & QKVI_NET_HALF_AMX ? QKV_CLASS_AMX : QKV_CLASS_DP;
    cut_packed c = { .forms = forms, .half_class = half_class };
    if (!forms) return QKV_OK;
    each_linear(net, cut_linear, &c);
    if (c.cutter.used_bytes == 0 && !c.cutter.overflow) return QKV_OK;
    if (!c.cutter.overflow) net->packed = qkvi_aligned_array(c.cutter.used_bytes, 1);
    if (!net->packed) return qkvi_no_memory(error, "packed weights");
    c.cutter = qkvi_cutter_on(net->packed);
    each_linear(net, cut_linear, &c);
    return QKV_OK;
}

static void pack_linear(void *argument, qkvi_linear *layer) { qkvi_linear_pack(argument, layer); }

void qkvi_net_pack(qkv_ctx *ctx, const qkvi_net *net) {
    qkvi_net same = *net; /* the visitor changes nothing here, but may elsewhere */
    each_linear(&same, pack_linear, ctx);
    for (int s = 0; s < net->n_stacks; s++)
        if (net->stacks[s].distances.bias) qkvi_distance_bias_fill(&net->stacks[s].distances);
}
