/*
 * Another project's program with libqkv, valid as C and as C++: attention to two keys, of which
 * only the first is visible, is the first value.
 */
#include <qkv/qkv.h>
#include <stdio.h>

int main(void) {
    const float q[2] = { 1, 2 }, k[4] = { 1, 0, 0, 1 }, v[4] = { 3, 4, 5, 6 };
    float o[2] = { 0, 0 }, lse = 0;
    qkv_ctx *ctx = NULL;
    qkv_attention_desc desc;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) return 1;
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, 1, 2, 2, 2);
    desc.flags |= QKV_SET_CAUSAL;
    const qkv_status status = qkv_attention_forward(ctx, &desc, q, k, v, o, &lse, NULL);
    if (status != QKV_OK) fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
    printf("libqkv %s: %g %g\n", qkv_version(), (double)o[0], (double)o[1]);
    qkv_ctx_free(ctx);
    return status != QKV_OK || o[0] != 3 || o[1] != 4;
}
