/*
 * Keys that arrive in blocks: each block is attended alone and merged with what is there. That is
 * how a decoder reads a cache in pages. After the last block the result, and the entropy of each
 * row's weights, are those of one causal pass over all keys.
 */
#include <math.h>
#include <stdio.h>

#include <qkv/stats.h>

enum { TOKENS = 12, BLOCK = 4, DIM = 8 };

/* Attention to some of the keys. */
struct result {
    float o[TOKENS][DIM], lse[TOKENS], entropy[TOKENS];
};

static float q[TOKENS][DIM], k[TOKENS][DIM], v[TOKENS][DIM];
static struct result whole, part, merged; /* of all keys, of one block, of the blocks so far */

static void fill(float *x, unsigned seed) {
    for (int i = 0; i < TOKENS * DIM; i++) {
        seed = seed * 1664525U + 1013904223U;
        x[i] = (float)(seed >> 8) / (float)(1U << 23) - 1;
    }
}

/* Keys first ... first + n - 1. Query i sees key j of the block if first + j <= i. */
static qkv_status attend(qkv_ctx *ctx, int first, int n, struct result *to) {
    qkv_attention_desc desc;
    qkv_attention_stats stats;
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, TOKENS, n, DIM, DIM);
    qkv_attention_stats_contiguous(&stats, &desc);
    stats.entropy = to->entropy;
    desc.stats = &stats;
    desc.flags |= QKV_SET_CAUSAL | QKV_SET_Q_OFFSET | QKV_SET_STATS;
    desc.q_offset = -first;
    return qkv_attention_forward(ctx, &desc, q, k[first], v[first], to->o, to->lse, NULL);
}

static qkv_status merge(qkv_ctx *ctx) {
    struct result before = merged;
    const void *const outputs[] = { before.o, part.o };
    const float *const lses[] = { before.lse, part.lse };
    qkv_attention_desc desc;
    qkv_attention_stats stats[3];
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, TOKENS, TOKENS, DIM, DIM);
    for (int n = 0; n < 3; n++) qkv_attention_stats_contiguous(&stats[n], &desc);
    stats[0].entropy = before.entropy;
    stats[1].entropy = part.entropy;
    stats[2].entropy = merged.entropy;
    const qkv_attention_stats *const parts[] = { &stats[0], &stats[1] };
    const qkv_status status =
        qkv_attention_stats_merge(ctx, &desc, 2, parts, lses, NULL, &stats[2]);
    if (status != QKV_OK) return status;
    return qkv_attention_merge(ctx, &desc, 2, outputs, lses, merged.o, merged.lse);
}

/* How far row i is from that of the whole. */
static double difference(int i) {
    double largest = fabs((double)merged.entropy[i] - (double)whole.entropy[i]);
    for (int c = 0; c < DIM; c++)
        largest = fmax(largest, fabs((double)merged.o[i][c] - (double)whole.o[i][c]));
    return largest;
}

int main(void) {
    qkv_ctx *ctx = NULL;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) return 1;
    fill(q[0], 1), fill(k[0], 2), fill(v[0], 3);
    qkv_status status = attend(ctx, 0, TOKENS, &whole);
    for (int i = 0; i < TOKENS; i++) merged.lse[i] = -INFINITY; /* no key has been seen */
    int n_done = 0;
    for (int first = 0; status == QKV_OK && first < TOKENS; first += BLOCK) {
        status = attend(ctx, first, BLOCK, &part);
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
    printf("%d of %d rows are those of one causal pass; the last has an entropy of %.4f nats\n",
           n_done, TOKENS, (double)merged.entropy[TOKENS - 1]);
    return status != QKV_OK || n_done != TOKENS;
}
