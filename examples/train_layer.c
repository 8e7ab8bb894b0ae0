/*
 * A layer of attention learns to look up: of four tokens, each a letter with a digit, it says the
 * digit that belongs to the letter of a fifth. Gradients come from each layer's backward pass.
 */
#include <stdio.h>

#include <qkv/layers.h>

enum { LETTERS = 8, DIGITS = 8, SEEN = 4, LEN = SEEN + 1, BATCH = 32, ROWS = BATCH * LEN };
enum { TOKENS = LETTERS * (DIGITS + 1), DIM = 32, STEPS = 150 };
/* Where the parameters lie: the table of tokens, the weights of q, k and v, those of the digits. */
enum { QKV = TOKENS * DIM, OUT = QKV + 3 * DIM * DIM, N = OUT + DIGITS * DIM };

static float w[N], d_w[N], m[N], v[N];
static int32_t ids[ROWS], targets[ROWS]; /* -1: no target */
static float x[ROWS * DIM], qkv[3][ROWS * DIM], o[ROWS * DIM], lse[ROWS], logits[ROWS * DIGITS];
static float d_x[ROWS * DIM], d_qkv[3][ROWS * DIM], d_o[ROWS * DIM];

/* A number in 0 ... n - 1 that looks random and is the same everywhere. */
static int32_t draw(uint32_t n) {
    static uint32_t state = 1;
    state = state * 1664525U + 1013904223U;
    return (int32_t)((state >> 16) % n);
}

/* Token letter * (DIGITS + 1) + digit; digit DIGITS is the question mark. */
static void draw_batch(void) {
    for (int r = 0; r < ROWS; r += LEN) {
        const int32_t first = draw(LETTERS), asked = draw(SEEN);
        for (int32_t i = 0; i < SEEN; i++) {
            const int32_t letter = (first + 3 * i) % LETTERS, digit = draw(DIGITS);
            ids[r + i] = letter * (DIGITS + 1) + digit, targets[r + i] = -1;
            if (i == asked) ids[r + SEEN] = ids[r + i] - digit + DIGITS, targets[r + SEEN] = digit;
        }
    }
}

static qkv_status step(qkv_ctx *ctx, int number, double *loss, int64_t *n_right) {
    const qkv_embedding_desc embedding = qkv_embedding_desc_init(ROWS, TOKENS, DIM, ids);
    const qkv_linear_desc last = qkv_linear_desc_init(ROWS, DIM, DIGITS);
    qkv_linear_desc linear = qkv_linear_desc_init(ROWS, DIM, DIM);
    const qkv_adamw_options adamw = qkv_adamw_options_init(0.01);
    const qkv_adamw_array all = { N, d_w, w, m, v, 1 };
    qkv_attention_desc desc;
    qkv_attention_grads d;
    qkv_attention_desc_contiguous(&desc, BATCH, 1, 1, LEN, LEN, DIM, DIM);
    qkv_attention_grads_contiguous(&d, &desc);
    d.d_o = d_o, d.d_q = d_qkv[0], d.d_k = d_qkv[1], d.d_v = d_qkv[2];
    qkv_status s = qkv_embedding_forward(ctx, &embedding, w, x);
    for (int i = 0; !s && i < 3; i++)
        s = qkv_linear_forward(ctx, &linear, x, w + QKV + i * DIM * DIM, NULL, qkv[i]);
    if (!s) s = qkv_attention_forward(ctx, &desc, qkv[0], qkv[1], qkv[2], o, lse, NULL);
    if (!s) s = qkv_linear_forward(ctx, &last, o, w + OUT, NULL, logits);
    if (!s) s = qkv_cross_entropy(ctx, ROWS, DIGITS, targets, 0, logits, logits, loss, n_right);
    if (!s) s = qkv_linear_backward(ctx, &last, o, w + OUT, logits, d_o, d_w + OUT, NULL);
    if (!s) s = qkv_attention_backward(ctx, &desc, qkv[0], qkv[1], qkv[2], o, lse, &d, NULL);
    for (int i = 0; !s && i < 3; i++, linear.add_d_x = 1) /* d_x is the sum of three */
        s = qkv_linear_backward(ctx, &linear, x, w + QKV + i * DIM * DIM, d_qkv[i], d_x,
                                d_w + QKV + i * DIM * DIM, NULL);
    if (!s) s = qkv_embedding_backward(ctx, &embedding, d_x, d_w);
    return s ? s : qkv_adamw_step(ctx, &adamw, number, 1, &all, sizeof all, NULL);
}

int main(void) {
    qkv_ctx *ctx;
    double loss;
    int64_t n_right;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) return 1;
    for (int i = 0; i < N; i++) w[i] = (float)(draw(2001) - 1000) / 4000;
    for (int i = 1; i <= STEPS; i++) {
        draw_batch();
        if (step(ctx, i, &loss, &n_right)) return fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
        if (i % 25 == 0)
            printf("step %3d  loss %.4f  right %2d of %d\n", i, loss, (int)n_right, BATCH);
    }
    qkv_ctx_free(ctx);
    return loss > 0.05;
}
