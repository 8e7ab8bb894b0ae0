/*
 * Keys that arrive in blocks: each block is attended alone and merged with what is there. That is
 * how a decoder reads a cache in pages. After the last block the result is that of one causal pass
 * over all keys.
 */
#include <math.h>
#include <stdio.h>

#include <qkv/qkv.h>

enum { TOKENS = 12, BLOCK = 4, DIM = 8 };

static float q[TOKENS][DIM], k[TOKENS][DIM], v[TOKENS][DIM];
static float whole[TOKENS][DIM], whole_lse[TOKENS]; /* one pass over all keys */
static float part[TOKENS][DIM], part_lse[TOKENS];   /* one block alone */
static float o[TOKENS][DIM], lse[TOKENS];           /* what is merged so far */

static void fill(float *x, unsigned seed) {
    for (int i = 0; i < TOKENS * DIM; i++) {
        seed = seed * 1664525U + 1013904223U;
        x[i] = (float)(seed >> 8) / (float)(1U << 23) - 1;
    }
}

/* Keys first ... first + n - 1. Query i sees key j of the block if first + j <= i. */
static qkv_status attend(qkv_ctx *ctx, int first, int n, float *out, float *out_lse) {
    qkv_attention_desc desc;
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, TOKENS, n, DIM, DIM);
    desc.flags |= QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
    desc.q_offset = -first;
    return qkv_attention_forward(ctx, &desc, q, k[first], v[first], out, out_lse, NULL);
}

static qkv_status merge(qkv_ctx *ctx) {
    qkv_attention_desc desc;
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, TOKENS, TOKENS, DIM, DIM);
    const void *const outputs[] = { o, part };
    const float *const lses[] = { lse, part_lse };
    return qkv_attention_merge(ctx, &desc, 2, outputs, lses, o, lse);
}

/* How far row i is from that of the whole. */
static double difference(int i) {
    double largest = 0;
    for (int c = 0; c < DIM; c++)
        largest = fmax(largest, fabs((double)o[i][c] - (double)whole[i][c]));
    return largest;
}

int main(void) {
    qkv_ctx *ctx = NULL;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) return 1;
    fill(q[0], 1), fill(k[0], 2), fill(v[0], 3);
    qkv_status status = attend(ctx, 0, TOKENS, whole[0], whole_lse);
    for (int i = 0; i < TOKENS; i++) lse[i] = -INFINITY; /* no key has been seen */
    int n_done = 0;
    for (int first = 0; status == QKV_OK && first < TOKENS; first += BLOCK) {
        status = attend(ctx, first, BLOCK, part[0], part_lse);
        if (status == QKV_OK) status = merge(ctx);
        n_done = 0;
        printf("keys 0 to %2d  rows that are final:", first + BLOCK - 1);
        for (int i = 0; i < TOKENS; i++)
            if (difference(i) < 1e-6) {
                printf(" %d", i);
                n_done++;
            }
        printf("\n");
    }
    if (status != QKV_OK) fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
    qkv_ctx_free(ctx);
    printf("%d of %d rows are those of one causal pass\n", n_done, TOKENS);
    return status != QKV_OK || n_done != TOKENS;
}
