/*
 * From a sentence to a picture: tokens, a run of a model that keeps what its heads saw, the head in
 * which [MASK] looks most sharply at a content word, the weights of that head, a heat map.
 *
 *     sentence_heatmap MODEL PICTURE
 */
#include <stdio.h>
#include <string.h>

#include <qkv/inspect.h>
#include <qkv/picture.h>

enum { MOST = 48 };

static const char sentence[] = "I was watching the [MASK] when it opened.";
static qkv_error error;

/* Says what the sharpest head does, and draws it. */
static qkv_status draw(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run,
                       const qkv_encoding *tokens, const char *path) {
    static float weights[MOST * MOST];
    static char text[MOST][32], title[64];
    const char *labels[MOST];
    const qkv_tokenizer *tokenizer = qkv_model_tokenizer(model, QKV_SOURCE);
    qkv_sharpest best = qkv_sharpest_init();
    uint8_t mask[MOST], words[MOST];
    for (int64_t i = 0; i < tokens->n; i++) {
        size_t bytes = 0;
        const char *token = qkv_tokenizer_token(tokenizer, tokens->ids[i], &bytes);
        snprintf(text[i], sizeof text[i], "%.*s", (int)bytes, token);
        labels[i] = text[i];
        mask[i] = tokens->ids[i] == qkv_tokenizer_special(tokenizer, QKV_TOKEN_MASK);
    }
    qkv_inspect_content(tokenizer, tokens, words);
    const qkv_token_list list = { tokenizer, tokens };
    qkv_heads *heads = NULL;
    qkv_status status = qkv_heads_open_run(ctx, run, QKV_SELF, 0, &list, NULL, &heads, &error);
    if (status == QKV_OK) status = qkv_heads_sharpest(heads, NULL, mask, words, &best, &error);
    if (status == QKV_OK && best.key < 0) {
        snprintf(error.message, sizeof error.message, "the model knows no word of the sentence");
        status = QKV_ERR_UNSUPPORTED;
    }
    if (status == QKV_OK)
        status =
            qkv_heads_weights(heads, best.layer * qkv_heads_get_info(heads)->n_heads + best.head, 0,
                              tokens->n, 0, tokens->n, weights, tokens->n, &error);
    qkv_heads_free(heads);
    if (status != QKV_OK) return status;
    snprintf(title, sizeof title, "Layer %d, head %d", (int)best.layer, (int)best.head);
    printf("%s: %s looks at %s with %.2f\n", title, labels[best.query], labels[best.key],
           (double)best.weight);
    const qkv_heatmap map = { .struct_size = sizeof map,
                              .n_rows = tokens->n,
                              .n_cols = tokens->n,
                              .weights = weights,
                              .row_labels = labels,
                              .col_labels = labels,
                              .title = title };
    return qkv_picture_heatmap_write(&map, path, &error);
}

int main(int argc, char **argv) {
    qkv_ctx *ctx = NULL;
    qkv_model *model = NULL;
    qkv_encoding *tokens = NULL;
    qkv_run *run = NULL;
    if (argc != 3) return fputs("usage: sentence_heatmap MODEL PICTURE\n", stderr), 2;
    qkv_status status = qkv_ctx_create(NULL, &ctx, &error);
    if (status == QKV_OK) status = qkv_model_open(argv[1], NULL, &model, &error);
    if (status == QKV_OK)
        status = qkv_tokenizer_encode(qkv_model_tokenizer(model, QKV_SOURCE), sentence,
                                      strlen(sentence), NULL, 0, &tokens, &error);
    const qkv_encoding *const inputs[] = { tokens };
    if (status == QKV_OK) /* fewer than MOST tokens: it has 41 letters */
        status = qkv_model_run(ctx, model, 1, inputs, QKV_RUN_CAPTURE, NULL, &run, &error);
    if (status == QKV_OK) status = draw(ctx, model, run, tokens, argv[2]);
    if (status == QKV_OK) printf("wrote %s\n", argv[2]);
    if (status != QKV_OK) fprintf(stderr, "%s\n", error.message);
    qkv_run_free(run);
    qkv_encoding_free(tokens);
    qkv_model_free(model);
    qkv_ctx_free(ctx);
    return status != QKV_OK;
}
