/*
 * The whole program of README: causal attention over three tokens of two channels, whose queries
 * and keys are the same.
 */
#include <qkv/qkv.h>
#include <stdio.h>

int main(void) {
    const float q[6] = { 1, 0, 0, 1, 1, 1 }, *k = q, v[6] = { 1, 2, 3, 4, 5, 6 };
    float o[6] = { 0 };
    qkv_ctx *ctx = NULL;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) return 1;
    const qkv_status status = qkv_attention(ctx, 1, 1, 3, 3, 2, QKV_CAUSAL, q, k, v, o);
    if (status != QKV_OK) fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
    qkv_ctx_free(ctx);
    for (int i = 0; i < 3; i++) printf("%.4f %.4f\n", (double)o[2 * i], (double)o[2 * i + 1]);
    return status != QKV_OK;
}
