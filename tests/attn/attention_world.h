/*
 * A small problem, of which a test makes one pointer, stride or number invalid, and the five calls
 * that take it. `refuse` runs some of the calls and checks status and message, and that no byte of
 * the outputs has changed; `accept` checks that they succeed. Each test begins with a new world.
 */
#ifndef QKV_TESTS_ATTENTION_WORLD_H
#define QKV_TESTS_ATTENTION_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/kv.h"

enum { B = 2, H = 4, G = 2, LQ = 3, LK = 5, D = 8, DV = 6, PARTS = 2 };
enum {
    FORWARD = 1,
    BACKWARD = 2,
    MERGE = 4,
    FORWARD_BYTES = 8,
    BACKWARD_BYTES = 16,
    COMPUTE = FORWARD | BACKWARD,
    QUERIES = FORWARD_BYTES | BACKWARD_BYTES,
    EVERY = COMPUTE | QUERIES | MERGE,
    DECODE = 32, /* k and v as a contiguous view; only if a test asks for it */
    DECODE_BYTES = 64,
    WORLD_CALLS = 2 * DECODE_BYTES
};
enum { UNTOUCHED = 0xA5 };

/* The outputs of calls. */
typedef struct world_outputs {
    float o[B * H * LQ * DV], lse[B * H * LQ];
    float d_q[B * H * LQ * D], d_k[B * G * LK * D], d_v[B * G * LK * DV];
    float d_sinks[H], d_mask[B * H * LQ * LK], d_distances[5 * H];
    size_t bytes;
} world_outputs;

typedef struct world {
    qkv_attention_desc d;
    qkv_attention_grads g;
    qkv_call_options call;
    /* The arguments of the calls, at first the arrays below. forward and merge write o and lse,
     * backward reads saved_o and saved_lse. */
    const void *q, *k, *v, *saved_o;
    const float *saved_lse;
    void *o;
    float *lse;
    const void *o_parts[PARTS];
    const float *lse_parts[PARTS];
    const void *const *o_parts_at;
    const float *const *lse_parts_at;
    int n_parts;
    size_t *bytes;
    bool no_desc, no_grads;

    float q_data[B * H * LQ * D], k_data[B * G * LK * D], v_data[B * G * LK * DV];
    float o_data[PARTS][B * H * LQ * DV], lse_data[PARTS][B * H * LQ], d_o_data[B * H * LQ * DV];
    float d_lse_data[B * H * LQ];
    float mask_f32[B * H * LQ * LK];
    unsigned char mask_bool[B * H * LQ * LK];
    int64_t lengths[B + 1];
    int32_t seg_q_data[B * LQ + 1], seg_k_data[B * LK + 1];
    float slopes[H + 1], sinks[H + 1], distances[5 * H];
    world_outputs out;
} world;

static qkv_ctx *world_ctx; /* of all calls below */

static int make_world_ctx(void **state) {
    qkv_ctx_options options = qkv_ctx_options_init();
    (void)state;
    options.n_threads = 2;
    return qkv_ctx_create(&options, &world_ctx, NULL) == QKV_OK ? 0 : -1;
}

static int destroy_world_ctx(void **state) {
    (void)state;
    qkv_ctx_free(world_ctx);
    return 0;
}

static inline void world_point(world *w) {
    qkv_attention_grads_contiguous(&w->g, &w->d);
    w->q = w->q_data, w->k = w->k_data, w->v = w->v_data;
    w->saved_o = w->o_data[0], w->saved_lse = w->lse_data[0];
    w->o = w->out.o, w->lse = w->out.lse, w->bytes = &w->out.bytes;
    for (int n = 0; n < PARTS; n++) w->o_parts[n] = w->o_data[n], w->lse_parts[n] = w->lse_data[n];
    w->o_parts_at = w->o_parts, w->lse_parts_at = w->lse_parts, w->n_parts = PARTS;
    w->g.d_o = w->d_o_data, w->g.d_lse = w->d_lse_data;
    w->g.d_q = w->out.d_q, w->g.d_k = w->out.d_k, w->g.d_v = w->out.d_v;
}

/* Makes the world anew. */
static world *fresh(void) {
    static world w;
    memset(&w, 0, sizeof w);
    w.call = qkv_call_options_init();
    qkv_attention_desc_contiguous(&w.d, B, H, G, LQ, LK, D, DV);
    world_point(&w);
    memset(&w.out, UNTOUCHED, sizeof w.out);
    return &w;
}

static inline world *fresh_masked(qkv_mask_type type) {
    world *w = fresh();
    const int64_t stride[4] = { H * LQ * LK, LQ * LK, LK, 1 };
    w->d.flags |= QKV_SET_MASK;
    w->d.mask_type = type;
    w->d.mask = type == QKV_MASK_F32 ? (const void *)w->mask_f32 : w->mask_bool;
    memcpy(w->d.mask_stride, stride, sizeof stride);
    memset(w->mask_bool, 1, sizeof w->mask_bool);
    return w;
}

/* A world with every option that has an array, so that each call reads all that it can. */
static inline world *fresh_with_options(void) {
    world *w = fresh_masked(QKV_MASK_F32);
    w->d.flags |= QKV_SET_KV_LEN | QKV_SET_Q_LEN | QKV_SET_Q_OFFSET | QKV_SET_CAUSAL |
                  QKV_SET_PREFIX_LEN | QKV_SET_SEGMENTS | QKV_SET_ALIBI | QKV_SET_SINKS |
                  QKV_SET_DISTANCE_BIAS;
    w->d.kv_len = w->d.q_len = w->d.q_offsets = w->d.prefix_len = w->lengths;
    w->d.seg_q = w->seg_q_data, w->d.seg_k = w->seg_k_data;
    w->d.seg_q_stride = LQ, w->d.seg_k_stride = LK;
    w->d.alibi_slopes = w->slopes, w->d.sinks = w->sinks;
    w->d.distance_bias = w->distances, w->d.distance_bias_stride = 5;
    w->d.distance_before = w->d.distance_after = 2;
    w->g.d_distance_bias = w->out.d_distances, w->g.d_distance_bias_stride = 5;
    w->g.d_sinks = w->out.d_sinks;
    w->g.d_mask = w->out.d_mask;
    memcpy(w->g.d_mask_stride, w->d.mask_stride, sizeof w->g.d_mask_stride);
    return w;
}

/* Asks for the workspace; qkv_attention_explain must succeed or fail with the same message. */
static qkv_status world_bytes(world *w, const qkv_attention_desc *d, qkv_pass pass) {
    qkv_attention_plan plan = qkv_attention_plan_init();
    char says[sizeof(qkv_error)];
    plan.pass = pass;
    const qkv_status got =
        pass == QKV_PASS_FORWARD  ? qkv_attention_workspace(world_ctx, d, w->bytes)
        : pass == QKV_PASS_DECODE ? qkv_attention_decode_workspace(world_ctx, d, w->bytes)
                                  : qkv_attention_backward_workspace(world_ctx, d, w->bytes);
    if (!w->bytes) return got;
    strcpy(says, qkv_ctx_message(world_ctx));
    assert_int_equal(qkv_attention_explain(world_ctx, d, &plan), got);
    assert_string_equal(qkv_ctx_message(world_ctx), says);
    if (got == QKV_OK) assert_int_equal(plan.workspace_bytes, *w->bytes);
    return got;
}

static qkv_status world_decode(const world *w, const qkv_attention_desc *d) {
    qkv_kv_view view;
    qkv_kv_view_contiguous(&view, &w->d, QKV_F32);
    view.k = w->k;
    view.v = w->v;
    return qkv_attention_decode(world_ctx, d, w->q, &view, w->o, w->lse, &w->call);
}

static qkv_status world_call(world *w, int which) {
    const qkv_attention_desc *const d = w->no_desc ? NULL : &w->d;
    const qkv_attention_grads *const g = w->no_grads ? NULL : &w->g;
    switch (which) {
    case FORWARD:
        return qkv_attention_forward(world_ctx, d, w->q, w->k, w->v, w->o, w->lse, &w->call);
    case BACKWARD:
        return qkv_attention_backward(world_ctx, d, w->q, w->k, w->v, w->saved_o, w->saved_lse, g,
                                      &w->call);
    case MERGE:
        return qkv_attention_merge(world_ctx, d, w->n_parts, w->o_parts_at, w->lse_parts_at, w->o,
                                   w->lse);
    case FORWARD_BYTES: return world_bytes(w, d, QKV_PASS_FORWARD);
    case DECODE: return world_decode(w, d);
    case DECODE_BYTES: return world_bytes(w, d, QKV_PASS_DECODE);
    default: return world_bytes(w, d, QKV_PASS_BACKWARD);
    }
}

static const char *call_name(int which) {
    return which == FORWARD         ? "forward"
           : which == BACKWARD      ? "backward"
           : which == MERGE         ? "merge"
           : which == FORWARD_BYTES ? "workspace"
           : which == DECODE        ? "decode"
           : which == DECODE_BYTES  ? "decode_workspace"
                                    : "backward_workspace";
}

static inline void refuse(world *w, int calls, qkv_status want, const char *text) {
    static world before; /* too large for a stack */
    before = *w;
    for (int which = 1; which < WORLD_CALLS; which *= 2) {
        if (!(calls & which)) continue;
        const qkv_status got = world_call(w, which);
        const char *const says = qkv_ctx_message(world_ctx);
        if (got != want || strcmp(says, text) != 0)
            fail_msg("%s: %s \"%s\" instead of %s \"%s\"", call_name(which), qkv_status_name(got),
                     says, qkv_status_name(want), text);
        if (memcmp(w, &before, sizeof before) != 0)
            fail_msg("%s: refused \"%s\", but wrote something", call_name(which), text);
    }
}

static inline void accept(world *w, int calls) {
    for (int which = 1; which < WORLD_CALLS; which *= 2) {
        const qkv_status got = calls & which ? world_call(w, which) : QKV_OK;
        if (got != QKV_OK)
            fail_msg("%s: %s \"%s\"", call_name(which), qkv_status_name(got),
                     qkv_ctx_message(world_ctx));
    }
}

/* Makes one change in a new world, which the calls must refuse, or accept. */
#define REFUSE(calls, change, status, text)                                                        \
    do {                                                                                           \
        world *w = fresh();                                                                        \
        change;                                                                                    \
        refuse(w, calls, status, text);                                                            \
    } while (0)
#define ACCEPT(calls, change)                                                                      \
    do {                                                                                           \
        world *w = fresh();                                                                        \
        change;                                                                                    \
        accept(w, calls);                                                                          \
    } while (0)

#endif
