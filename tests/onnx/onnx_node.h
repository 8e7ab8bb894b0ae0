/*
 * Random valid nodes of ONNX's Attention with their arrays: every type, rank, mask, cache and
 * attribute. Numbers have either sign, and some are large.
 */
#ifndef QKV_TESTS_ONNX_NODE_H
#define QKV_TESTS_ONNX_NODE_H

#include "check/chance.h"
#include "onnx/onnx_reference.h"

enum { ONNX_OUTPUTS = 4 };

typedef struct onnx_node {
    qkv_onnx_attention_node node;
    qkv_onnx_attention_outputs shapes;
    void *inputs[7];
    void *out[ONNX_OUTPUTS]; /* Y, present_key, present_value, qk_matmul_output */
    size_t out_bytes[ONNX_OUTPUTS];
    bool has_out[ONNX_OUTPUTS];
} onnx_node;

static inline void *onnx_block(size_t bytes) {
    void *x = calloc(bytes + 1, 1);
    if (!x) abort();
    return x;
}

/* How elements are drawn. */
typedef struct onnx_fill {
    double size; /* magnitude of numbers */
    int hidden;  /* per cent that are -infinity or false */
} onnx_fill;

static inline void onnx_put(qkv_onnx_type type, void *x, int64_t at, double value) {
    switch (type) {
    case QKV_ONNX_FLOAT:
    case QKV_ONNX_FLOAT16:
    case QKV_ONNX_BFLOAT16:
    case QKV_ONNX_DOUBLE: element_set(x, onnx_elem(type), at, value); break;
    case QKV_ONNX_BOOL:
    case QKV_ONNX_UINT8: ((uint8_t *)x)[at] = (uint8_t)fabs(value); break;
    case QKV_ONNX_INT8: ((int8_t *)x)[at] = (int8_t)value; break;
    case QKV_ONNX_UINT16: ((uint16_t *)x)[at] = (uint16_t)fabs(value); break;
    case QKV_ONNX_INT16: ((int16_t *)x)[at] = (int16_t)value; break;
    case QKV_ONNX_UINT32: ((uint32_t *)x)[at] = (uint32_t)fabs(value); break;
    case QKV_ONNX_INT32: ((int32_t *)x)[at] = (int32_t)value; break;
    case QKV_ONNX_UINT64: ((uint64_t *)x)[at] = (uint64_t)fabs(value); break;
    default: ((int64_t *)x)[at] = (int64_t)value;
    }
}

static inline bool onnx_is_float(qkv_onnx_type type) {
    return type == QKV_ONNX_FLOAT || type == QKV_ONNX_FLOAT16 || type == QKV_ONNX_BFLOAT16 ||
           type == QKV_ONNX_DOUBLE;
}

static inline void onnx_give(rng *r, onnx_node *x, int which, qkv_onnx_tensor *t, onnx_fill how) {
    const int64_t n = onnx_count(t);
    void *data = onnx_block((size_t)n * onnx_bytes(t->type));
    for (int64_t i = 0; i < n; i++) {
        const bool hides = rng_chance(r, how.hidden);
        double value = (double)rng_normal(r) * how.size;
        if (t->type == QKV_ONNX_BOOL)
            value = hides ? 0 : (double)rng_between(r, 1, 255);
        else if (hides && onnx_is_float(t->type))
            value = -INFINITY;
        onnx_put(t->type, data, i, value);
    }
    x->inputs[which] = data;
    t->data = data;
}

static inline qkv_onnx_type onnx_float_type(rng *r, bool with_double) {
    static const qkv_onnx_type types[] = { QKV_ONNX_FLOAT, QKV_ONNX_FLOAT16, QKV_ONNX_BFLOAT16,
                                           QKV_ONNX_DOUBLE };
    return types[rng_between(r, 0, with_double ? 3 : 2)];
}

static inline void onnx_shape(qkv_onnx_tensor *t, qkv_onnx_type type, bool four, int64_t b,
                              int64_t h, int64_t len, int64_t dim) {
    t->type = type;
    t->rank = four ? 4 : 3;
    const int64_t dims4[4] = { b, h, len, dim }, dims3[4] = { b, len, h * dim, 0 };
    memcpy(t->dims, four ? dims4 : dims3, sizeof t->dims);
}

static inline void onnx_random_mask(rng *r, onnx_node *x, const onnx_sizes *s) {
    static const qkv_onnx_type types[] = { QKV_ONNX_BOOL,    QKV_ONNX_BOOL,     QKV_ONNX_FLOAT,
                                           QKV_ONNX_FLOAT16, QKV_ONNX_BFLOAT16, QKV_ONNX_DOUBLE,
                                           QKV_ONNX_UINT8,   QKV_ONNX_INT8,     QKV_ONNX_UINT16,
                                           QKV_ONNX_INT16,   QKV_ONNX_UINT32,   QKV_ONNX_INT32,
                                           QKV_ONNX_UINT64,  QKV_ONNX_INT64 };
    qkv_onnx_tensor *m = &x->node.attn_mask;
    const int64_t full[4] = { s->b, s->hq, s->sq, s->t };
    const bool fast = rng_chance(r, 60);
    m->type = types[rng_between(r, 0, fast ? 4 : 13)];
    m->rank = (int)rng_between(r, 0, 4);
    for (int k = 0; k < m->rank; k++) {
        m->dims[k] = rng_chance(r, 35) ? 1 : full[4 - m->rank + k];
        if (k == m->rank - 1 && x->node.opset >= 24 && s->t > 0 && rng_chance(r, 30))
            m->dims[k] = rng_between(r, 0, s->t);
    }
    onnx_give(r, x, 3, m, (onnx_fill){ 3, (int)rng_between(r, 0, 2) * 30 });
}

static inline void onnx_random_attributes(rng *r, onnx_node *x, const onnx_sizes *s) {
    qkv_onnx_attention_node *n = &x->node;
    static const int64_t precisions[] = {
        0, 0, 0, QKV_ONNX_FLOAT, QKV_ONNX_FLOAT16, QKV_ONNX_BFLOAT16, QKV_ONNX_DOUBLE
    };
    n->is_causal = rng_chance(r, 50);
    n->qk_matmul_output_mode = rng_between(r, 0, 3);
    n->softmax_precision = precisions[rng_between(r, 0, 6)];
    if (rng_chance(r, 30)) {
        n->flags |= QKV_ONNX_SET_SCALE;
        n->scale = rng_normal(r) / 4;
    }
    if (rng_chance(r, 30)) n->softcap = (float)rng_between(r, 1, 60) / 4;
    if (n->opset >= 25 && rng_chance(r, 40)) {
        n->flags |= QKV_ONNX_SET_LEFT_WINDOW_SIZE;
        n->left_window_size = rng_between(r, -1, s->t + 1);
    }
    if (n->opset >= 25 && rng_chance(r, 40)) {
        n->flags |= QKV_ONNX_SET_RIGHT_WINDOW_SIZE;
        n->right_window_size = rng_between(r, -1, s->t + 1);
    }
}

static inline void onnx_make_outputs(onnx_node *x) {
    qkv_error error;
    x->shapes = qkv_onnx_attention_outputs_init();
    if (qkv_onnx_attention_shapes(&x->node, &x->shapes, &error) != QKV_OK)
        fail_msg("shapes: %s", error.message);
    const qkv_onnx_tensor *const t[] = { &x->shapes.Y, &x->shapes.present_key,
                                         &x->shapes.present_value, &x->shapes.qk_matmul_output };
    for (int k = 0; k < ONNX_OUTPUTS; k++) {
        x->out_bytes[k] = (size_t)onnx_count(t[k]) * onnx_bytes(t[k]->type);
        x->out[k] = onnx_block(x->out_bytes[k]);
        memset(x->out[k], 0xA5, x->out_bytes[k]);
    }
}

/* A random node with lengths from 0 to `largest`. */
static inline onnx_node onnx_random(rng *r, int64_t largest) {
    onnx_node x = { .node = qkv_onnx_attention_node_init(), .has_out = { true, true, true, true } };
    qkv_onnx_attention_node *n = &x.node;
    onnx_sizes s = { .b = rng_between(r, 1, 3), .hkv = rng_between(r, 1, 3) };
    const bool four = rng_chance(r, 60), one_type = rng_chance(r, 80);
    s.hq = s.hkv * rng_between(r, 1, 3);
    s.sq = rng_between(r, rng_chance(r, 5) ? 0 : 1, rng_chance(r, 30) ? 2 : largest);
    s.sk = rng_between(r, rng_chance(r, 5) ? 0 : 1, largest);
    s.d = rng_between(r, rng_chance(r, 3) ? 0 : 1, 40);
    s.dv = rng_chance(r, 60) ? s.d : rng_between(r, rng_chance(r, 3) ? 0 : 1, 40);
    n->opset = (int)rng_between(r, 23, 26);
    if (!four) n->q_num_heads = s.hq, n->kv_num_heads = s.hkv;
    const qkv_onnx_type type = onnx_float_type(r, rng_chance(r, 30));
    const qkv_onnx_type type_v = one_type ? type : onnx_float_type(r, true);
    const onnx_fill values = { rng_chance(r, 20) ? 8 : 1, 0 };
    onnx_shape(&n->Q, type, four, s.b, s.hq, s.sq, s.d);
    onnx_shape(&n->K, type, four, s.b, s.hkv, s.sk, s.d);
    onnx_shape(&n->V, type_v, four, s.b, s.hkv, s.sk, s.dv);
    if (rng_chance(r, 40)) {
        s.p = rng_between(r, 0, largest);
        onnx_shape(&n->past_key, type, true, s.b, s.hkv, s.p, s.d);
        onnx_shape(&n->past_value, type_v, true, s.b, s.hkv, s.p, s.dv);
        onnx_give(r, &x, 4, &n->past_key, values);
        onnx_give(r, &x, 5, &n->past_value, values);
    } else if (n->opset >= 24 && rng_chance(r, 50)) {
        n->nonpad_kv_seqlen =
            (qkv_onnx_tensor){ .type = QKV_ONNX_INT64, .rank = 1, .dims = { s.b } };
        onnx_give(r, &x, 6, &n->nonpad_kv_seqlen, (onnx_fill){ 0, 0 });
        for (int64_t b = 0; b < s.b; b++) ((int64_t *)x.inputs[6])[b] = rng_between(r, 0, s.sk);
    }
    s.t = s.p + s.sk;
    onnx_give(r, &x, 0, &n->Q, values);
    onnx_give(r, &x, 1, &n->K, values);
    onnx_give(r, &x, 2, &n->V, values);
    onnx_random_attributes(r, &x, &s);
    if (rng_chance(r, 60)) onnx_random_mask(r, &x, &s);
    x.has_out[1] = x.has_out[2] = (!n->nonpad_kv_seqlen.type || n->opset < 25) && rng_chance(r, 50);
    x.has_out[3] = rng_chance(r, 60);
    onnx_make_outputs(&x);
    return x;
}

static inline void onnx_free(onnx_node *x) {
    for (int k = 0; k < 7; k++) free(x->inputs[k]);
    for (int k = 0; k < ONNX_OUTPUTS; k++) free(x->out[k]);
}

static inline qkv_status onnx_call(qkv_ctx *ctx, const onnx_node *x, const qkv_call_options *call) {
    void *to[ONNX_OUTPUTS];
    for (int k = 0; k < ONNX_OUTPUTS; k++) to[k] = x->has_out[k] ? x->out[k] : NULL;
    return qkv_onnx_attention(ctx, &x->node, to[0], to[1], to[2], to[3], call);
}

#endif
