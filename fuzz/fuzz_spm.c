/*
 * A SentencePiece model. What opens segments a sample and the input itself, as far as it is UTF-8:
 * places are in order and within the text, the pieces together are the normalised text, bytes
 * that stand for an unknown character have its place, and where the rules change nothing the text
 * of the pieces is the text.
 */
#include <stdlib.h>
#include <string.h>

#include "files/utf8.h"
#include "fuzz/fuzz.h"
#include "text/spm.h"

enum { MAX_TEXT = 2048 };

struct seen {
    const qkvi_spm *spm;
    qkvi_spm_decoder decoder;
    char *pieces; /* together */
    size_t n_pieces, room;
    uint32_t last_end, n_bytes;
    bool has_unknown;
};

static qkv_status see(void *user, const qkvi_spm_token *token) {
    struct seen *seen = user;
    const qkvi_spm *spm = seen->spm;
    FUZZ_CHECK(token->id >= 0 && token->id < spm->pieces.n_ids && token->n_bytes > 0);
    FUZZ_CHECK(seen->last_end <= token->begin && token->begin <= token->end);
    FUZZ_CHECK(token->end <= seen->n_bytes);
    seen->last_end = token->end;
    const bool is_byte = spm->types[token->id] == QKVI_SPM_BYTE;
    FUZZ_CHECK(!is_byte || spm->byte_fallback);
    if (is_byte || token->id == spm->unk) seen->has_unknown = true;
    if (token->id != spm->unk)
        FUZZ_CHECK(qkvi_spm_id(spm, token->piece, token->n_bytes) == token->id);
    const char byte = is_byte ? (char)qkvi_spm_byte(token->piece, token->n_bytes) : 0;
    const size_t n = is_byte ? 1 : token->n_bytes;
    FUZZ_CHECK(seen->n_pieces + n <= seen->room);
    memcpy(seen->pieces + seen->n_pieces, is_byte ? &byte : token->piece, n);
    seen->n_pieces += n;
    FUZZ_CHECK(qkvi_spm_decode(&seen->decoder, token->piece, token->n_bytes) == QKV_OK);
    return QKV_OK;
}

/* Nothing is rewritten, dropped or added but for the sign of a space. */
static bool is_identity(const qkvi_spm *spm) {
    const qkvi_spm_rules *rules = &spm->rules;
    return rules->map.n_units == 0 && !rules->add_dummy_prefix &&
           !rules->remove_extra_whitespaces && !spm->rewrites_back;
}

static void check_decoded(const struct seen *seen, const char *text) {
    size_t at = 0;
    for (uint32_t i = 0; i < seen->n_bytes; at++) {
        const bool is_sign = seen->n_bytes - i >= 3 && memcmp(text + i, "\xE2\x96\x81", 3) == 0;
        FUZZ_CHECK(at < seen->decoder.n_bytes);
        FUZZ_CHECK(seen->decoder.bytes[at] == (is_sign ? ' ' : text[i]));
        i += is_sign ? 3 : 1;
    }
    FUZZ_CHECK(at == seen->decoder.n_bytes);
}

static void encode(const qkvi_spm *spm, const char *text, uint32_t n_bytes) {
    qkvi_spm_text normalized = { 0 };
    FUZZ_CHECK(qkvi_spm_normalize(&spm->rules, text, n_bytes, &normalized) == QKV_OK);
    for (uint32_t i = 0; i < normalized.n; i++) {
        FUZZ_CHECK(normalized.origin[i] <= normalized.origin[i + 1]);
        FUZZ_CHECK(normalized.origin[i + 1] <= n_bytes);
    }
    struct seen seen = { .spm = spm,
                         .decoder = { .spm = spm },
                         .pieces = fuzz_alloc(normalized.n),
                         .room = normalized.n,
                         .n_bytes = n_bytes };
    FUZZ_CHECK(qkvi_spm_encode(spm, text, n_bytes, see, &seen) == QKV_OK);
    FUZZ_CHECK(seen.n_pieces == normalized.n);
    FUZZ_CHECK(memcmp(seen.pieces, normalized.bytes ? normalized.bytes : "", normalized.n) == 0);
    FUZZ_CHECK(qkvi_spm_decode_end(&seen.decoder) == QKV_OK);
    if (is_identity(spm) && !seen.has_unknown) check_decoded(&seen, text);
    qkvi_spm_decoder_free(&seen.decoder);
    qkvi_spm_text_free(&normalized);
    free(seen.pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    static const char sample[] = " I saw  the \xE2\x96\x81 ab ba aab, \xC3\xA9t\xC3\xA9 "
                                 "\xE4\xB8\xAD\xE6\x96\x87 \xF0\x9F\x98\x81\n\xE3\x80\x80x ";
    qkvi_spm spm;
    qkv_error error;
    char *const model = fuzz_alloc(n_bytes);
    if (n_bytes > 0) memcpy(model, bytes, n_bytes);
    const qkv_status status = qkvi_spm_open(&spm, "x", model, n_bytes, &error);
    if (fuzz_accepted(status, &error)) {
        const size_t n_text = n_bytes < MAX_TEXT ? n_bytes : MAX_TEXT;
        encode(&spm, sample, sizeof sample - 1);
        encode(&spm, model, (uint32_t)qkvi_utf8_valid(model, n_text));
        for (int32_t id = 0; id < spm.pieces.n_ids && id < 64; id++) {
            const struct qkvi_text_piece piece = spm.pieces.tokens[id];
            encode(&spm, spm.pieces.bytes + piece.offset, (uint32_t)piece.length);
        }
        qkvi_spm_free(&spm);
    }
    free(model);
    return 0;
}
