/**
 * Pieces to text: sentencepiece src/sentencepiece_processor.cc, Decode.
 *
 * U+2581 becomes a space; that of the dummy prefix is removed, and so are all at the beginning if
 * the model removes extra white space. Control pieces have no text; the unknown piece is " U+2047 "
 * or what the model says; bytes that are no piece stay as they are. A run of byte pieces is read as
 * UTF-8, with U+FFFD for each invalid byte. At the end the model's denormalizer is applied, if it
 * has one.
 */

#include "files/utf8.h"
#include "text/spm.h"

static const char space_sign[] = "\xE2\x96\x81";

static qkv_status append(qkvi_spm_decoder *d, const char *bytes, size_t n) {
    const size_t needed = d->n_bytes + n + 1; /* never NULL when it is complete */
    QKV_TRY(qkvi_reserve(&d->bytes, &d->capacity, needed, 1));
    memcpy(d->bytes + d->n_bytes, bytes, n);
    d->n_bytes += n;
    return QKV_OK;
}

static int begins_with_sign(const char *piece, size_t n) {
    return n >= 3 && memcmp(piece, space_sign, 3) == 0;
}

static qkv_status append_spaced(qkvi_spm_decoder *d, const char *piece, size_t n) {
    for (size_t at = 0, length; at < n; at += length) {
        const int is_sign = begins_with_sign(piece + at, n - at);
        length = is_sign ? 3 : 1;
        QKV_TRY(append(d, is_sign ? " " : piece + at, 1));
    }
    return QKV_OK;
}

static qkv_status keep_byte(qkvi_spm_decoder *d, unsigned char byte) {
    QKV_TRY(qkvi_reserve(&d->raw, &d->raw_capacity, d->n_raw + 1, 1));
    d->raw[d->n_raw++] = byte;
    return QKV_OK;
}

static qkv_status flush_bytes(qkvi_spm_decoder *d) {
    const char *raw = (const char *)d->raw;
    for (size_t at = 0; at < d->n_raw;) {
        int32_t code;
        const size_t length = qkvi_utf8_next(raw + at, d->n_raw - at, &code);
        if (length > 0)
            QKV_TRY(append(d, raw + at, length));
        else
            QKV_TRY(append(d, "\xEF\xBF\xBD", 3));
        at += length > 0 ? length : 1;
    }
    d->n_raw = 0;
    return QKV_OK;
}

static qkv_status append_unknown(qkvi_spm_decoder *d, const char *piece, size_t n) {
    const struct qkvi_text_piece unk = d->spm->pieces.tokens[d->spm->unk];
    if ((size_t)unk.length == n && memcmp(d->spm->pieces.bytes + unk.offset, piece, n) == 0)
        return append(d, d->spm->unk_surface, d->spm->unk_surface_bytes);
    return append(d, piece, n);
}

qkv_status qkvi_spm_decode(qkvi_spm_decoder *d, const char *piece, size_t n) {
    const qkvi_spm *spm = d->spm;
    const int32_t id = qkvi_spm_id(spm, piece, n);
    if (spm->types[id] == QKVI_SPM_BYTE)
        return keep_byte(d, (unsigned char)qkvi_spm_byte(piece, n));
    QKV_TRY(flush_bytes(d));
    const int at_front = !d->prefix_gone && d->n_bytes == 0;
    if (spm->types[id] == QKVI_SPM_CONTROL) return QKV_OK;
    if (spm->types[id] == QKVI_SPM_UNKNOWN) return append_unknown(d, piece, n);
    const qkvi_spm_rules *rules = &spm->rules;
    if (at_front && (rules->add_dummy_prefix || rules->remove_extra_whitespaces) &&
        begins_with_sign(piece, n)) {
        piece += 3;
        n -= 3;
        d->prefix_gone = !rules->remove_extra_whitespaces;
    }
    return append_spaced(d, piece, n);
}

qkv_status qkvi_spm_decode_end(qkvi_spm_decoder *d) {
    QKV_TRY(flush_bytes(d));
    QKV_TRY(append(d, "", 0));
    if (!d->spm->rewrites_back) return QKV_OK;
    if (d->n_bytes > UINT32_MAX) return QKV_ERR_LIMIT;
    qkvi_spm_text text = { 0 };
    const qkv_status status =
        qkvi_spm_normalize(&d->spm->back, d->bytes, (uint32_t)d->n_bytes, &text);
    d->n_bytes = 0;
    if (status == QKV_OK && text.n > 0) {
        free(d->bytes);
        d->bytes = text.bytes;
        d->n_bytes = text.n;
        d->capacity = text.capacity;
        text.bytes = NULL;
    }
    qkvi_spm_text_free(&text);
    return status;
}

void qkvi_spm_decoder_free(qkvi_spm_decoder *d) {
    free(d->bytes);
    free(d->raw);
    *d = (qkvi_spm_decoder){ 0 };
}
