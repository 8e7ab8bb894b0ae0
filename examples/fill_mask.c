/*
 * The likeliest words for a [MASK]: tokenizer, model, the head for masked words.
 *
 *     fill_mask models/default
 */
#include <stdio.h>
#include <string.h>

#include <qkv/model.h>

enum { N_WORDS = 5 };

static int64_t place_of_mask(const qkv_tokenizer *tokenizer, const qkv_encoding *tokens) {
    const int32_t mask = qkv_tokenizer_special(tokenizer, QKV_TOKEN_MASK);
    for (int64_t i = 0; i < tokens->n; i++)
        if (tokens->ids[i] == mask) return i;
    return -1;
}

static qkv_status print_word(const qkv_tokenizer *tokenizer, const qkv_candidate *word,
                             qkv_error *error) {
    qkv_text *shown = NULL;
    const qkv_status status = qkv_tokenizer_show(tokenizer, word->id, &shown, error);
    if (status == QKV_OK) printf("%-10s %.3f\n", shown->bytes, (double)word->probability);
    qkv_text_free(shown);
    return status;
}

/* Each step needs the one before it; the first that fails leaves its reason in error. */
static qkv_status fill(qkv_ctx *ctx, const qkv_model *model, const char *text, qkv_error *error) {
    const qkv_tokenizer *tokenizer = qkv_model_tokenizer(model, QKV_SOURCE);
    qkv_candidate words[N_WORDS];
    qkv_encoding *tokens = NULL;
    qkv_run *run = NULL;
    qkv_status status =
        qkv_tokenizer_encode(tokenizer, text, strlen(text), NULL, 0, &tokens, error);
    if (status == QKV_OK)
        status = qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)&tokens, 0, NULL, &run,
                               error);
    if (status == QKV_OK)
        status = qkv_model_candidates(ctx, model, run, QKV_HEAD_MASKED, 0,
                                      place_of_mask(tokenizer, tokens), N_WORDS, words,
                                      sizeof *words, error);
    for (int n = 0; status == QKV_OK && n < N_WORDS; n++)
        status = print_word(tokenizer, &words[n], error);
    qkv_run_free(run);
    qkv_encoding_free(tokens);
    return status;
}

int main(int n_args, char **args) {
    qkv_ctx *ctx = NULL;
    qkv_model *model = NULL;
    qkv_error error = { QKV_OK, "usage: fill_mask MODEL" };
    qkv_status status = n_args == 2 ? QKV_OK : QKV_ERR_ARGUMENT;
    if (status == QKV_OK) status = qkv_ctx_create(NULL, &ctx, &error);
    if (status == QKV_OK) status = qkv_model_open(args[1], NULL, &model, &error);
    if (status == QKV_OK)
        status = fill(ctx, model, "I was watching the [MASK] when it opened.", &error);
    if (status != QKV_OK) fprintf(stderr, "%s\n", error.message);
    qkv_model_free(model);
    qkv_ctx_free(ctx);
    return status != QKV_OK;
}
