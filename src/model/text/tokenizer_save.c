/** See tokenizer_save.h. */
#include "model/text/tokenizer_save.h"

json_t *qkvi_added_tokens_json(const qkv_tokenizer *tokenizer) {
    json_t *list = json_array();
    const qkvi_added *added = &tokenizer->added;
    for (int32_t id = 0; id < added->n_ids; id++) {
        size_t n_bytes;
        const char *token = qkvi_added_token(added, id, &n_bytes);
        if (token == NULL) continue;
        const unsigned flags = added->flags[id];
        json_array_append_new(list, json_pack("{si,ss%,sb,sb,sb,sb,sb}", "id", id, "content", token,
                                              n_bytes, "single_word",
                                              (flags & QKVI_ADDED_SINGLE_WORD) != 0, "lstrip",
                                              (flags & QKVI_ADDED_LSTRIP) != 0, "rstrip",
                                              (flags & QKVI_ADDED_RSTRIP) != 0, "normalized",
                                              (flags & QKVI_ADDED_NORMALIZED) != 0, "special",
                                              (flags & QKVI_ADDED_SPECIAL) != 0));
    }
    return list;
}
