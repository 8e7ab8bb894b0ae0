/*
 * The vector of a sentence in twelve lines: the include and the function `embed`. QKV_OK is 0, so
 * the first call that fails ends the chain. Here the cosines of three sentences, whose vectors have
 * length 1 if asked.
 */
#include <stdio.h>
#include <string.h>

#include <qkv/model.h>

static int embed(const char *folder, const char *text, float *vector) {
    qkv_ctx *ctx = NULL;
    qkv_model *model = NULL;
    qkv_encoding *tokens = NULL;
    qkv_error error = { 0 };
    const int failed =
        qkv_ctx_create(NULL, &ctx, &error) || qkv_model_open(folder, NULL, &model, &error) ||
        qkv_tokenizer_encode(qkv_model_tokenizer(model, QKV_SOURCE), text, strlen(text), NULL, 0,
                             &tokens, &error) ||
        qkv_model_embed(ctx, model, 1, (const qkv_encoding *const *)&tokens,
                        &(qkv_embed_options){ sizeof(qkv_embed_options), QKV_POOLING_MEAN, 1, 0 },
                        vector, &error);
    if (failed) fprintf(stderr, "%s\n", error.message);
    qkv_encoding_free(tokens), qkv_model_free(model), qkv_ctx_free(ctx);
    return failed;
}

int main(int argc, char **argv) {
    enum { HIDDEN = 128 };
    static const char *const texts[] = { "The girl was watching the door.",
                                         "The boy was watching the window.", "It was too heavy." };
    static float vectors[3][HIDDEN];
    for (int t = 0; t < 3; t++)
        if (argc < 2 || embed(argv[1], texts[t], vectors[t])) return 1;
    for (int t = 0; t < 3; t++) {
        float cosine = 0;
        for (int c = 0; c < HIDDEN; c++) cosine += vectors[0][c] * vectors[t][c];
        printf("%6.3f  %s\n", (double)cosine, texts[t]);
    }
    return 0;
}
