/*
 * Texts that become vectors: behind a prompt, in lower case where the model's files say so, and cut to the
 * length that they were trained for. Reference: sentence-transformers 6, base/modules/transformer.py.
 */

#include "model/model_impl.h"
#include "model/text/tokenizer.h"

const qkv_prompt *qkv_model_prompt(const qkv_model *model, int64_t index) {
    const qkvi_recipe *const s = model ? &model->recipe : NULL;
    return s && index >= 0 && index < s->n_prompts ? &s->prompts[index].shown : NULL;
}

static const qkv_tokenizer *tokenizer_of(const qkv_model *model) {
    return model->sentence_tokenizer ? model->sentence_tokenizer : model->tokenizer;
}

/* A prompt's tokens as they are alone and cut, but for a special one at their end. */
static qkv_status count_prompt(const qkv_model *model, const char *prompt, int64_t *n,
                               qkv_error *error) {
    const qkv_tokenizer *const tokenizer = tokenizer_of(model);
    qkv_encoding *alone = NULL;
    QKV_TRY(qkv_tokenizer_encode(tokenizer, prompt, strlen(prompt), NULL, 0, &alone, error));
    if (alone->n > model->recipe.max_len)
        qkv_tokenizer_cut(tokenizer, alone, model->recipe.max_len);
    *n = alone->n;
    if (*n > 0) {
        const int32_t last = alone->ids[*n - 1];
        const qkvi_added *const added = &tokenizer->added;
        *n -= last < added->n_ids && (added->flags[last] & QKVI_ADDED_NAMED);
    }
    qkv_encoding_free(alone);
    return QKV_OK;
}

static qkv_status encode_behind(const qkv_model *model, const char *prompt, const char *text,
                                size_t text_bytes, qkv_encoding **encoding, qkv_error *error) {
    const size_t n_prompt = strlen(prompt);
    char *both = qkvi_malloc_array(n_prompt + text_bytes + 1, 1);
    if (!both) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a text");
    memcpy(both, prompt, n_prompt);
    if (text_bytes > 0) memcpy(both + n_prompt, text, text_bytes);
    const qkv_status status = qkv_tokenizer_encode(tokenizer_of(model), both, n_prompt + text_bytes,
                                                   NULL, 0, encoding, error);
    free(both);
    return status;
}

qkv_status qkv_model_encode_sentence(const qkv_model *model, const char *prompt, const char *text,
                                     size_t text_bytes, qkv_encoding **encoding, int64_t *n_prompt,
                                     qkv_error *error) {
    if (!model || !encoding || !n_prompt)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !model      ? "model"
                              : !encoding ? "encoding"
                                          : "n_prompt");
    *encoding = NULL;
    *n_prompt = 0;
    if (!prompt || !*prompt)
        return qkv_tokenizer_encode(tokenizer_of(model), text, text_bytes, NULL, 0, encoding,
                                    error);
    if (!text && text_bytes > 0) /* which says so */
        return qkv_tokenizer_encode(model->tokenizer, text, text_bytes, NULL, 0, encoding, error);
    QKV_TRY(encode_behind(model, prompt, text, text_bytes, encoding, error));
    if (!model->recipe.leaves_prompt) return QKV_OK;
    const qkv_status status = count_prompt(model, prompt, n_prompt, error);
    if (status == QKV_OK) return QKV_OK;
    qkv_encoding_free(*encoding);
    *encoding = NULL;
    return status;
}
