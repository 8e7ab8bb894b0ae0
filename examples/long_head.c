/*
 * What a head of 4,096 tokens does, without its 16 million weights: text that repeats every 500
 * tokens, in which each query looks for the token that followed its own the last time (an induction
 * head), and for key 0 if there is none (a sink). The pass over columns finds both.
 */
#include <stdio.h>
#include <stdlib.h>

#include <qkv/columns.h>

enum { TOKENS = 4096, PERIOD = 500, DIM = 32, TILES = 8, DIAGONALS = 1000 };

static float q[TOKENS][DIM], k[TOKENS][DIM], v[TOKENS][DIM], o[TOKENS][DIM], lse[TOKENS];
static float received[TOKENS], diagonal[DIAGONALS], mass[TILES][TILES];
static int64_t n_queries[TOKENS], tile_rows[TILES];

/* A direction for each of the words, by a hash. */
static float component(int word, int c) {
    uint32_t x = (uint32_t)(word * DIM + c) * 2654435761u;
    x = (x ^ x >> 15) * 2246822519u;
    return x >> 31 ? 1 : -1;
}

static void write_text(void) {
    for (int i = 0; i < TOKENS; i++)
        for (int c = 0; c < DIM - 1; c++) {
            q[i][c] = 3 * component(i % PERIOD, c);
            k[i][c] = i ? component((i - 1) % PERIOD, c) : 0; /* a key tells what stood before it */
        }
    for (int i = 0; i < TOKENS; i++) q[i][DIM - 1] = 5;
    k[0][DIM - 1] = 14;
}

static int check(qkv_status status, const qkv_ctx *ctx) {
    if (status != QKV_OK) fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
    return status != QKV_OK;
}

int main(void) {
    qkv_ctx *ctx = NULL;
    qkv_attention_desc desc;
    qkv_attention_columns columns;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) return 1;
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, TOKENS, TOKENS, DIM, DIM);
    desc.flags |= QKV_SET_CAUSAL;
    write_text();
    if (check(qkv_attention_forward(ctx, &desc, q, k, v, o, lse, NULL), ctx)) return 1;

    qkv_attention_columns_contiguous(&columns, &desc);
    columns.received = received;
    columns.n_queries = n_queries;
    columns.first_diagonal = 0;
    columns.n_diagonals = DIAGONALS;
    columns.diagonal = diagonal;
    columns.n_tiles_q = columns.n_tiles_k = TILES;
    columns.tile_mass = mass[0];
    columns.tile_rows = tile_rows;
    if (check(qkv_attention_columns_pass(ctx, &desc, q, k, lse, &columns, NULL), ctx)) return 1;

    puts("key   received   of queries   fair share");
    for (int j = 0; j < 3; j++)
        printf("%3d   %8.2f   %10d   %10.4f\n", j, (double)received[j], (int)n_queries[j],
               (double)received[j] / (double)n_queries[j]);
    printf("\nprevious token %.4f, duplicate %.4f, induction %.4f\n", (double)diagonal[1],
           (double)diagonal[PERIOD], (double)diagonal[PERIOD - 1]);
    puts("\nmass of 512 queries (down) on 512 keys (across), in percent");
    for (int a = 0; a < TILES; a++)
        for (int b = 0; b < TILES; b++)
            printf("%6.1f%s", 100 * (double)mass[a][b], b == TILES - 1 ? "\n" : "");
    qkv_ctx_free(ctx);
    return 0;
}
