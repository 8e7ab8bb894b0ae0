/*
 * Learning by gradients: q, k and v begin somewhere, and steps against the gradient of L = ½ Σ (o −
 * target)² bring the output to a target. One entry of the gradient is compared with a difference
 * quotient first.
 */
#include <math.h>
#include <stdio.h>

#include <qkv/qkv.h>

enum { TOKENS = 6, DIM = 8, SIZE = TOKENS * DIM, STEPS = 200 };
static const double RATE = 0.2;

static float q[SIZE], k[SIZE], v[SIZE], target[SIZE], o[SIZE], lse[TOKENS];
static float d_o[SIZE], d_q[SIZE], d_k[SIZE], d_v[SIZE];

/* Numbers in [-1, 1) that look random and are the same everywhere. */
static void fill(float *x, unsigned seed) {
    for (int i = 0; i < SIZE; i++) {
        seed = seed * 1664525U + 1013904223U;
        x[i] = (float)(seed >> 8) / (float)(1U << 23) - 1;
    }
}

/* The loss; leaves its gradient with respect to the output in d_o. Negative: the call failed. */
static double loss(qkv_ctx *ctx, const qkv_attention_desc *desc) {
    double sum = 0;
    if (qkv_attention_forward(ctx, desc, q, k, v, o, lse, NULL) != QKV_OK) return -1;
    for (int i = 0; i < SIZE; i++) {
        d_o[i] = o[i] - target[i];
        sum += 0.5 * (double)d_o[i] * (double)d_o[i];
    }
    return sum;
}

static void step(float *x, const float *gradient) {
    for (int i = 0; i < SIZE; i++) x[i] -= (float)RATE * gradient[i];
}

int main(void) {
    qkv_ctx *ctx = NULL;
    qkv_attention_desc desc;
    qkv_attention_grads grads;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) return 1;
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, TOKENS, TOKENS, DIM, DIM);
    qkv_attention_grads_contiguous(&grads, &desc);
    grads.d_o = d_o, grads.d_q = d_q, grads.d_k = d_k, grads.d_v = d_v;
    fill(q, 1), fill(k, 2), fill(v, 3), fill(target, 4);

    const float kept = k[0];
    k[0] = kept + 0.01F;
    double quotient = loss(ctx, &desc);
    k[0] = kept - 0.01F;
    quotient = (quotient - loss(ctx, &desc)) / 0.02;
    k[0] = kept;

    double first = 0, last = 0;
    for (int i = 0; i <= STEPS; i++) {
        last = loss(ctx, &desc);
        if (i == 0) first = last;
        if (last < 0 ||
            qkv_attention_backward(ctx, &desc, q, k, v, o, lse, &grads, NULL) != QKV_OK) {
            fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
            qkv_ctx_free(ctx);
            return 1;
        }
        if (i == 0) printf("dL/dk[0] is %.3f, by differences %.3f\n", (double)d_k[0], quotient);
        if (i % 40 == 0) printf("step %3d  loss %.4f\n", i, last);
        step(q, d_q), step(k, d_k), step(v, d_v);
    }
    qkv_ctx_free(ctx);
    return last < first / 10 ? 0 : 1;
}
