/*
 * A cache of keys and values: a prompt is stored once, two sequences go on from it, and each new
 * token attends to its own sequence in one call. A guess that failed is taken back. Compared with a
 * forward pass over the same tokens.
 */
#include <math.h>
#include <stdio.h>

#include <qkv/kv.h>

enum { PROMPT = 20, STEPS = 30, DIM = 8, MOST = PROMPT + STEPS, SEQUENCES = 2 };

static float k[SEQUENCES][MOST][DIM], v[SEQUENCES][MOST][DIM]; /* what each sequence should hold */
static float noise(void) {
    static unsigned state = 1;
    state = state * 1664525U + 1013904223U;
    return (float)(state >> 8) / (float)(1U << 23) - 1;
}

static void check(qkv_ctx *ctx, qkv_status status) {
    if (status != QKV_OK) printf("%s\n", qkv_ctx_message(ctx));
}

/* of decode and of a forward pass over the first n tokens */
static double difference(qkv_ctx *ctx, int s, int n, const float *q, const float *o) {
    float exact[DIM];
    double largest = 0;
    qkv_attention_desc desc;
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, 1, n, DIM, DIM);
    check(ctx, qkv_attention_forward(ctx, &desc, q, k[s], v[s], exact, NULL, NULL));
    for (int c = 0; c < DIM; c++) largest = fmax(largest, fabs((double)exact[c] - (double)o[c]));
    return largest;
}

int main(void) {
    qkv_ctx *ctx = NULL;
    qkv_kv_cache *cache = NULL;
    qkv_kv_cache_options options = qkv_kv_cache_options_init();
    options.n_sequences = SEQUENCES, options.n_kv_heads = 1;
    options.head_dim = options.head_dim_v = DIM;
    options.page_len = 16;
    options.n_pages = 8;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) return 1;
    check(ctx, qkv_kv_cache_create(ctx, &options, &cache));
    for (int i = 0; i < MOST * DIM; i++)
        for (int s = 0; s < SEQUENCES; s++) {
            k[s][i / DIM][i % DIM] = i < PROMPT * DIM && s ? k[0][i / DIM][i % DIM] : noise();
            v[s][i / DIM][i % DIM] = i < PROMPT * DIM && s ? v[0][i / DIM][i % DIM] : noise();
        }
    check(ctx, qkv_kv_cache_append(ctx, cache, 0, PROMPT, QKV_F32, k[0], NULL, v[0], NULL));
    check(ctx, qkv_kv_cache_fork(ctx, cache, 0, 1));
    printf("prompt of %d tokens, forked: %d of 8 pages free\n", PROMPT,
           (int)qkv_kv_cache_free_pages(cache));

    double largest = 0;
    qkv_kv_view view;
    qkv_attention_desc desc;
    qkv_attention_desc_contiguous(&desc, SEQUENCES, 1, 1, 1, MOST, DIM, DIM);
    desc.flags = QKV_SET_KV_LEN;
    check(ctx, qkv_kv_cache_view(ctx, cache, 0, SEQUENCES, &view, &desc.kv_len));
    for (int i = PROMPT; i < MOST; i++) {
        float q[SEQUENCES][DIM], o[SEQUENCES][DIM];
        for (int c = 0; c < SEQUENCES * DIM; c++) q[c / DIM][c % DIM] = noise();
        for (int s = 0; s < SEQUENCES; s++)
            check(ctx,
                  qkv_kv_cache_append(ctx, cache, s, 1, QKV_F32, k[s][i], NULL, v[s][i], NULL));
        check(ctx, qkv_attention_decode(ctx, &desc, q, &view, o, NULL, NULL));
        for (int s = 0; s < SEQUENCES; s++)
            largest = fmax(largest, difference(ctx, s, i + 1, q[s], o[s]));
    }
    printf("%d tokens each: %d of 8 pages free\n", MOST, (int)qkv_kv_cache_free_pages(cache));
    printf("decode and forward differ by less than 1e-6: %s\n", largest < 1e-6 ? "yes" : "no");
    check(ctx, qkv_kv_cache_truncate(ctx, cache, 1, PROMPT)); /* its guesses are taken back */
    printf("sequence 1 has %d tokens again: %d of 8 pages free\n", (int)qkv_kv_cache_len(cache, 1),
           (int)qkv_kv_cache_free_pages(cache));
    qkv_kv_cache_free(cache);
    qkv_ctx_free(ctx);
    return largest >= 1e-6;
}
