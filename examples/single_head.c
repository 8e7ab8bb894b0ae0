/*
 * One head, step by step, on a sentence of three tokens: projections of x without a bias, scores
 * q·k, divided by √d, softmax, mix of values, with the shape (batch, time, channel) of each step.
 * First as in the textbook, printed; then attention by one call. Numbers are made up so that "it"
 * asks for what "cat" offers.
 */
#include <math.h>
#include <stdio.h>

#include <qkv/qkv.h>

enum { N = 3, D = 4 };

static const char *const words[N] = { "the", "cat", "it" };
static const float x[N][D] = { { 1, 0, 0, 0 }, { 0, 1, 0, 1 }, { 0, 0, 1, 1 } };
static const float w_q[D][D] = { { 1, 0, 0, 0 }, { 0, 2, 0, 0 }, { 0, 0, 4, -1 }, { 0, 0, 0, 1 } };
static const float w_k[D][D] = {
    { 2, 0, 0, 0 }, { 0, -1, 1.5F, 1 }, { 1, 0, 0, 0 }, { 0, 1, 0, 0 }
};
static const float w_v[D][D] = { { 1, 0, 0, 0 }, { 0, 1, 0, 1 }, { 0, 0, 1, -1 }, { 0, 0, 0, 1 } };

/* y = x W: a linear map of each token, the same for all, and no bias. */
static void project(const char *name, const float w[D][D], float y[N][D]) {
    printf("%s = x W_%s, (1, 3, 4)\n", name, name);
    for (int i = 0; i < N; i++) {
        printf("%8s", words[i]);
        for (int c = 0; c < D; c++) {
            y[i][c] = 0;
            for (int a = 0; a < D; a++) y[i][c] += x[i][a] * w[a][c];
            printf("%8.3f", (double)y[i][c]);
        }
        printf("\n");
    }
    printf("\n");
}

static void print(const char *title, double matrix[N][N]) {
    printf("%s\n%8s", title, "");
    for (int j = 0; j < N; j++) printf("%8s", words[j]);
    for (int i = 0; i < N; i++) {
        printf("\n%8s", words[i]);
        for (int j = 0; j < N; j++) printf("%8.3f", matrix[i][j]);
    }
    printf("\n\n");
}

static void textbook(float q[N][D], float k[N][D], float v[N][D], double o[N][D]) {
    double s[N][N] = { { 0 } }, p[N][N];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int c = 0; c < D; c++) s[i][j] += (double)q[i][c] * (double)k[j][c];
    print("scores q k', (1, 3, 3): row i asks, column j offers", s);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) s[i][j] /= sqrt(D);
    print("divided by sqrt(4)", s);
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int j = 0; j < N; j++) sum += p[i][j] = exp(s[i][j]);
        for (int j = 0; j < N; j++) p[i][j] /= sum;
    }
    print("softmax: weights, each row sums to 1", p);
    for (int i = 0; i < N; i++)
        for (int c = 0; c < D; c++) {
            o[i][c] = 0;
            for (int j = 0; j < N; j++) o[i][c] += p[i][j] * (double)v[j][c];
        }
}

int main(void) {
    double expected[N][D], largest = 0;
    float q[N][D], k[N][D], v[N][D], o[N][D];
    printf("x: (batch, time, channel) = (1, 3, 4), one text of three tokens of four numbers\n\n");
    project("q", w_q, q);
    project("k", w_k, k);
    project("v", w_v, v);
    textbook(q, k, v, expected);
    qkv_ctx *ctx = NULL;
    qkv_attention_desc desc;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) return 1;
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, N, N, D, D);
    const qkv_status status = qkv_attention_forward(ctx, &desc, q, k, v, o, NULL, NULL);
    if (status != QKV_OK) fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
    qkv_ctx_free(ctx);
    if (status != QKV_OK) return 1;
    puts("output p v, (1, 3, 4), by qkv_attention_forward");
    for (int i = 0; i < N; i++) {
        printf("%8s", words[i]);
        for (int c = 0; c < D; c++) {
            printf("%8.3f", (double)o[i][c]);
            largest = fmax(largest, fabs((double)o[i][c] - expected[i][c]));
        }
        printf("\n");
    }
    const int same = largest < 1e-6;
    printf("\ntextbook and library differ by %s\n", same ? "less than 0.000001" : "too much");
    return !same;
}
