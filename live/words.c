/* The words of a text, as the tokenizer of the model sees them: see engine.h. */
#include <stdlib.h>

#include "common/predict.h"
#include "live/engine.h"

enum state { UNKNOWN, IN_PIECES, WHOLE, SPECIAL };

json_t *live_mask(const struct look_service *service) {
    const struct session *const session = look_service_session(service);
    const bool has_mask = session->tokenizer && session->info->has_mlm;
    char *const mask = has_mask ? mask_name(session) : NULL;
    json_t *const text = mask ? json_text(mask) : json_null();
    free(mask);
    return text;
}

/* Of the tokens from `first` to before `end`, which are a word. */
static enum state state_of(const struct session *session, const qkv_encoding *input, int64_t first,
                           int64_t end) {
    const int32_t unknown = qkv_tokenizer_special(session->tokenizer, QKV_TOKEN_UNK);
    for (int64_t i = first; i < end; i++)
        if (input->ids[i] == unknown) return UNKNOWN;
    if (input->special[first]) return SPECIAL;
    return end - first > 1 ? IN_PIECES : WHOLE;
}

static json_t *words_of(const struct session *session, const qkv_encoding *input,
                        const int32_t *words) {
    json_t *const list = json_array();
    for (int64_t i = 0, end; i < input->n; i = end) {
        for (end = i + 1; end < input->n && words[end] == words[i];) end++;
        if (input->begin[i] < input->end[end - 1]) /* else inserted */
            json_array_append_new(list, json_pack("[I,I,i]", (json_int_t)input->begin[i],
                                                  (json_int_t)input->end[end - 1],
                                                  (int)state_of(session, input, i, end)));
    }
    return list;
}

qkv_status live_words_json(const struct look_service *service, const struct text *text,
                           json_t **object, qkv_error *error) {
    const struct session *const session = look_service_session(service);
    qkv_encoding *input = NULL;
    if (!session->tokenizer)
        return text_error(error, QKV_ERR_UNSUPPORTED, "%s: a %s reads images, not texts",
                          session->info->source, session->info->architecture);
    qkv_status status =
        qkv_tokenizer_encode(session->tokenizer, text->bytes, text->n, NULL, 0, &input, error);
    if (status != QKV_OK) return status;
    int32_t *const words = malloc((size_t)input->n * sizeof *words + 1);
    if (words) {
        qkv_inspect_words(session->tokenizer, input, words);
        *object = json_pack("{s:I,s:o}", "n", (json_int_t)input->n, "words",
                            words_of(session, input, words));
    }
    if (!words || !*object) status = text_no_memory(error);
    free(words);
    qkv_encoding_free(input);
    return status;
}
