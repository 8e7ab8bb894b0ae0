/*
 * Attention in twelve lines: the include and the function `attend`. Here with two heads and five
 * tokens, causal. All scores are equal (q = 0), so the weights of a token on itself and on those
 * before it are equal, and the output is the running mean of the values.
 */
#include <math.h>
#include <stdio.h>

#include <qkv/qkv.h>

enum { HEADS = 2, TOKENS = 5, DIM = 4 };

static int attend(const float *q, const float *k, const float *v, float *o, float *lse) {
    qkv_ctx *ctx = NULL;
    qkv_attention_desc desc;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) return 1;
    qkv_attention_desc_contiguous(&desc, 1, HEADS, HEADS, TOKENS, TOKENS, DIM, DIM);
    desc.flags |= QKV_SET_CAUSAL;
    const qkv_status status = qkv_attention_forward(ctx, &desc, q, k, v, o, lse, NULL);
    if (status != QKV_OK) fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
    qkv_ctx_free(ctx);
    return status != QKV_OK;
}

int main(void) {
    static float q[HEADS * TOKENS * DIM], k[HEADS * TOKENS * DIM], v[HEADS][TOKENS][DIM];
    static float o[HEADS][TOKENS][DIM], lse[HEADS][TOKENS];
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < TOKENS; i++)
            for (int c = 0; c < DIM; c++) v[h][i][c] = (float)((i + 1) * (h ? 10 : 1));
    if (attend(q, k, v[0][0], o[0][0], lse[0])) return 1;
    puts("         head 0            head 1\ntoken    value   output    value   output   keys it "
         "sees");
    for (int i = 0; i < TOKENS; i++)
        printf("%5d %8g %8g %8g %8g   %.0f\n", i, (double)v[0][i][0], (double)o[0][i][0],
               (double)v[1][i][0], (double)o[1][i][0], exp((double)lse[0][i]));
    return 0;
}
