/* Unigram vocabularies: see unigram.h. */
#include "gguf/unigram.h"

#include <inttypes.h>
#include <math.h>

#include "files/encode.h"

enum { MAX_MAP = 16 << 20 };

/* The bytes of an array of u8 or i8, as base64. */
static qkv_status put_bytes(const qkvi_gguf_keys *keys, const qkvi_gguf_key *key, const char *name,
                            qkvi_bytes *out) {
    if (!key->is_array || (key->kind != QKVI_GGUF_U8_VALUE && key->kind != QKVI_GGUF_I8_VALUE))
        return QKVI_GGUF_FAIL(keys, QKV_ERR_FORMAT, "key '%s' is no array of bytes", name);
    if (key->count > MAX_MAP)
        return QKVI_GGUF_FAIL(keys, QKV_ERR_LIMIT,
                              "key '%s' has %" PRIu64 " bytes, the limit is %d", name, key->count,
                              MAX_MAP);
    qkvi_base64_add(out, keys->file->header + key->at, (size_t)key->count);
    return QKV_OK;
}

static qkv_status put_normalizer(const qkvi_gguf_keys *keys, qkvi_bytes *out) {
    static const char name[] = "tokenizer.ggml.precompiled_charsmap";
    const qkvi_gguf_key *const key = qkvi_gguf_ask(keys, name);
    if (!key || key->count == 0) {
        qkvi_bytes_text(out, ",\"normalizer\":null");
        return QKV_OK;
    }
    qkvi_bytes_text(out, ",\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"");
    QKV_TRY(put_bytes(keys, key, name, out));
    qkvi_bytes_text(out, "\"}");
    return QKV_OK;
}

/* Scores are f32: 17 digits are the same double. */
static qkv_status put_pieces(const qkvi_gguf_vocab *v, const qkvi_gguf_key *scores,
                             qkvi_bytes *out) {
    for (int64_t id = 0; id < v->n; id++) {
        const double score = qkvi_gguf_real_of(v->keys->file, scores, (uint64_t)id);
        if (!isfinite(score))
            return QKVI_GGUF_FAIL(v->keys, QKV_ERR_FORMAT,
                                  "the score of token %" PRId64 " is not finite", id);
        qkvi_bytes_text(out, id ? ",[" : "[");
        qkvi_json_string(out, v->tokens[id].bytes, v->tokens[id].n);
        qkvi_bytes_text(out, ",");
        qkvi_json_double(out, score);
        qkvi_bytes_text(out, "]");
    }
    return QKV_OK;
}

qkv_status qkvi_gguf_put_unigram(const qkvi_gguf_vocab *v, qkvi_bytes *out) {
    const qkvi_gguf_key *scores;
    char unk[48];
    QKV_TRY(qkvi_gguf_find_scores(v, &scores));
    QKV_TRY(put_normalizer(v->keys, out));
    snprintf(unk, sizeof unk, "\"unk_id\":%" PRId64 ",\"vocab\":[", v->roles[QKVI_GGUF_UNK]);
    qkvi_bytes_text(out, ",\"model\":{\"type\":\"Unigram\",");
    qkvi_bytes_text(out, unk);
    QKV_TRY(put_pieces(v, scores, out));
    qkvi_bytes_text(out, "]}}");
    return QKV_OK;
}
