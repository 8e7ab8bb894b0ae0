/*
 * The other half of a transformer's block, of the parts of qkv/layers.h, forward and backward:
 *     y = x + dropout(W2 gelu(W1 norm(x)))
 * An entry of the gradient of L = ½ Σ y² is compared with a difference quotient; then W1 and W2
 * are packed once, as a program does that only runs a layer, which changes no bit.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <qkv/layers.h>

enum { ROWS = 5, DIM = 16, WIDE = 4 * DIM, SEED = 7, SITE = 1, ROOM = 1 << 14 };
static const float EPS = 1e-5F, RATE = 0.25F;

static float x[ROWS * DIM], w1[WIDE * DIM], w2[DIM * WIDE], gamma[DIM], beta[DIM];
static float norm[ROWS * DIM], stats[ROWS * 2], wide[ROWS * WIDE], act[ROWS * WIDE], y[ROWS * DIM];
static float d_y[ROWS * DIM], d_x[ROWS * DIM], d_wide[ROWS * WIDE], d_gamma[DIM], d_beta[DIM];
static _Alignas(64) char packed[2][ROOM];
static qkv_linear_desc first, second;

/* Numbers in [-a, a) that look random and are the same everywhere. */
static void fill(float *to, int n, float a, unsigned seed) {
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525U + 1013904223U;
        to[i] = a * ((float)(seed >> 8) / (float)(1U << 23) - 1);
    }
}

static qkv_status forward(qkv_ctx *ctx) {
    qkv_status s = qkv_layer_norm_forward(ctx, ROWS, DIM, EPS, x, gamma, beta, norm, stats);
    if (!s) s = qkv_linear_forward(ctx, &first, norm, w1, NULL, wide);
    if (!s) s = qkv_activation_forward(ctx, QKV_ACTIVATION_GELU, ROWS, WIDE, wide, act);
    if (!s) s = qkv_linear_forward(ctx, &second, act, w2, NULL, y);
    if (!s) s = qkv_dropout(ctx, ROWS, DIM, RATE, SEED, SITE, y);
    return s ? s : qkv_rows_add(ctx, ROWS, DIM, x, y); /* the residual connection */
}

/* From y, which is the gradient of L, back to d_x. */
static qkv_status backward(qkv_ctx *ctx) {
    memcpy(d_y, y, sizeof y);
    qkv_status s = qkv_dropout(ctx, ROWS, DIM, RATE, SEED, SITE, d_y);
    if (!s) s = qkv_linear_backward(ctx, &second, NULL, w2, d_y, d_wide, NULL, NULL);
    if (!s) s = qkv_activation_backward(ctx, QKV_ACTIVATION_GELU, ROWS, WIDE, wide, d_wide, d_wide);
    if (!s) s = qkv_linear_backward(ctx, &first, NULL, w1, d_wide, d_x, NULL, NULL);
    if (!s) s = qkv_layer_norm_backward(ctx, ROWS, DIM, x, stats, gamma, d_x, d_x, d_gamma, d_beta);
    return s ? s : qkv_rows_add(ctx, ROWS, DIM, y, d_x);
}

static double loss(qkv_ctx *ctx) {
    double sum = 0;
    if (forward(ctx) != QKV_OK) return NAN;
    for (int i = 0; i < ROWS * DIM; i++) sum += 0.5 * (double)y[i] * (double)y[i];
    return sum;
}

/* NULL: an error, or no room. */
static void *pack(qkv_ctx *ctx, const qkv_linear_desc *desc, const float *w, void *to) {
    size_t bytes;
    qkv_status s = qkv_linear_packed_bytes(ctx, desc, QKV_PASS_FORWARD, &bytes);
    if (!s && bytes > ROOM) return NULL;
    if (!s) s = qkv_linear_pack(ctx, desc, QKV_PASS_FORWARD, w, to, ROOM);
    return s ? NULL : to;
}

int main(void) {
    qkv_ctx *ctx;
    float kept[ROWS * DIM];
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) return 1;
    first = qkv_linear_desc_init(ROWS, DIM, WIDE), second = qkv_linear_desc_init(ROWS, WIDE, DIM);
    fill(x, ROWS * DIM, 1, 1), fill(w1, WIDE * DIM, 0.3F, 2), fill(w2, DIM * WIDE, 0.3F, 3);
    for (int i = 0; i < DIM; i++) gamma[i] = 1;
    if (forward(ctx) || backward(ctx)) return fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
    memcpy(kept, y, sizeof y);

    const float at = x[3];
    x[3] = at + 0.01F;
    const double above = loss(ctx);
    x[3] = at - 0.01F;
    const double quotient = (above - loss(ctx)) / 0.02;
    x[3] = at;
    printf("d L / d x[3]  by the backward pass %.3f, by a difference quotient %.3f\n",
           (double)d_x[3], quotient);

    first.packed_forward = pack(ctx, &first, w1, packed[0]);
    second.packed_forward = pack(ctx, &second, w2, packed[1]);
    const int same = forward(ctx) == QKV_OK && memcmp(kept, y, sizeof y) == 0;
    printf("with packed weights: %s\n", same ? "the same bits" : "other bits");
    qkv_ctx_free(ctx);
    return !first.packed_forward || !second.packed_forward || !same;
}
