/** See tokens.h. */
#include "model/text/tokens.h"

#include "model/base.h"

static qkv_status push(qkvi_tokens *list, qkvi_token token) {
    QKV_TRY(qkvi_reserve(&list->tokens, &list->capacity, (size_t)list->n + 1, sizeof token));
    list->tokens[list->n++] = token;
    return QKV_OK;
}

qkv_status qkvi_tokens_push(qkvi_tokens *list, int32_t id, uint32_t begin, uint32_t end) {
    return push(list, (qkvi_token){ id, list->type, 0, begin, end });
}

qkv_status qkvi_tokens_push_special(qkvi_tokens *list, int32_t id, uint32_t begin, uint32_t end) {
    return push(list, (qkvi_token){ id, list->type, 1, begin, end });
}

qkv_status qkvi_tokens_encoding(const qkvi_tokens *list, qkv_encoding **encoding) {
    qkv_encoding *out = calloc(1, sizeof *out);
    if (out == NULL) return QKV_ERR_MEMORY;
    const size_t n = (size_t)list->n;
    out->n = list->n;
    out->ids = qkvi_malloc_array(n, sizeof *out->ids);
    out->types = qkvi_malloc_array(n, sizeof *out->types);
    out->special = qkvi_malloc_array(n, sizeof *out->special);
    out->begin = qkvi_malloc_array(n, sizeof *out->begin);
    out->end = qkvi_malloc_array(n, sizeof *out->end);
    if (!out->ids || !out->types || !out->special || !out->begin || !out->end) {
        qkv_encoding_free(out);
        return QKV_ERR_MEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        out->ids[i] = list->tokens[i].id;
        out->types[i] = list->tokens[i].type;
        out->special[i] = list->tokens[i].special;
        out->begin[i] = list->tokens[i].begin;
        out->end[i] = list->tokens[i].end;
    }
    *encoding = out;
    return QKV_OK;
}

void qkv_encoding_free(qkv_encoding *encoding) {
    if (encoding == NULL) return;
    free(encoding->ids);
    free(encoding->types);
    free(encoding->special);
    free(encoding->begin);
    free(encoding->end);
    free(encoding);
}
