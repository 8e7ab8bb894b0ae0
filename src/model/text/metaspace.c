/*
 * Metaspace BPE: see bpe.h. A stretch has its spaces as U+2581 and is one word, unless these begin words. A word's symbols
 * are its characters. One without a token is the tokens "<0x00>" … "<0xFF>" of its bytes, or else unk.
 *
 * Reference: PyPI tokenizers, models/bpe/model.rs (merge_word), pre_tokenizers/metaspace.rs,
 * normalizers/{prepend,replace}.rs.
 */
#include "model/text/bpe.h"
#include "model/text/byte_level.h"
#include "model/text/unicode.h"

#define META      "\xE2\x96\x81" /* U+2581 */
#define META_CODE 0x2581
enum { META_BYTES = 3, BYTE_TOKEN = 6 };

/* ---- Stretches -------------------------------------------------------------------------------- */

/* One call of encode. */
struct work {
    const qkv_tokenizer *tokenizer;
    qkvi_tokens *list;
    qkvi_bpe_work merging;
    qkvi_normal_text normal; /* a stretch as the pre-tokenizer makes it */
};

static int begins_meta(const char *text, size_t n) {
    return n >= META_BYTES && memcmp(text, META, META_BYTES) == 0;
}

/* Spaces as U+2581, and one before the stretch: always, or only if it does not begin with one. */
static qkv_status write_stretch(const char *text, uint32_t begin, uint32_t end, int replaces,
                                int prepends, qkvi_normal_text *normal) {
    normal->bytes.n = 0;
    normal->n_chars = 0;
    if (prepends) QKV_TRY(qkvi_normal_text_put(normal, META_CODE, begin, begin));
    for (uint32_t at = begin; at < end;) {
        int32_t code = 0;
        const uint32_t length = (uint32_t)qkvi_utf8_next(text + at, end - at, &code);
        if (replaces && code == ' ') code = META_CODE;
        QKV_TRY(qkvi_normal_text_put(normal, code, at, at + length));
        at += length;
    }
    return QKV_OK;
}

static qkv_status normalize(void *user, const char *text, uint32_t begin, uint32_t end,
                            qkvi_normal_text *normal) {
    const struct work *work = user;
    const qkvi_metaspace *rules = &qkvi_bpe_of(work->tokenizer)->metaspace;
    return write_stretch(text, begin, end, rules->replaces, rules->prepends && end > begin, normal);
}

/* ---- Words ------------------------------------------------------------------------------------ */

/* The symbols of a character without a token. *last_unk: the one before is unk, too. */
static void put_unknown(struct work *work, const char *bytes, uint32_t at, uint32_t length,
                        int *last_unk) {
    const qkvi_bpe *model = work->tokenizer->model;
    qkvi_bpe_work *const merging = &work->merging;
    if (model->byte_fallback) {
        for (uint32_t i = 0; i < length; i++)
            qkvi_bpe_work_put(merging, model->byte_ids[(unsigned char)bytes[i]], at + i,
                              at + i + 1);
        *last_unk = 0;
        return;
    }
    if (model->unk < 0) return;
    if (*last_unk && model->fuse_unk)
        merging->symbols[merging->n_symbols - 1].end = at + length;
    else
        qkvi_bpe_work_put(merging, model->unk, at, at + length);
    *last_unk = 1;
}

/* A word at a place of the normalised text; places of its tokens are those, too. */
static qkv_status push_word(struct work *work, const char *text, uint32_t begin, uint32_t end) {
    const qkvi_bpe *model = work->tokenizer->model;
    const qkvi_pieces *pieces = &work->tokenizer->pieces;
    int last_unk = 0;
    if (model->ignore_merges && end - begin <= QKVI_PIECE_MAX_BYTES) {
        const int32_t whole = qkvi_pieces_find(pieces, text + begin, end - begin);
        if (whole >= 0) return qkvi_tokens_push(work->list, whole, begin, end);
    }
    QKV_TRY(qkvi_bpe_work_begin(&work->merging, end - begin));
    for (uint32_t at = begin, length; at < end; at += length) {
        int32_t code = 0;
        length = (uint32_t)qkvi_utf8_next(text + at, end - at, &code);
        const int32_t id = qkvi_pieces_find(pieces, text + at, length);
        if (id >= 0) {
            qkvi_bpe_work_put(&work->merging, id, at, at + length);
            last_unk = 0;
        } else {
            put_unknown(work, text + at, at, length, &last_unk);
        }
    }
    qkvi_bpe_work_merge(model, &work->merging);
    for (size_t i = 0; i < work->merging.n_symbols; i++) {
        const qkvi_bpe_symbol *const symbol = &work->merging.symbols[i];
        QKV_TRY(qkvi_tokens_push(work->list, symbol->id, symbol->begin, symbol->end));
    }
    return QKV_OK;
}

/* Where the next word begins, behind the first character. */
static uint32_t word_end(const char *text, uint32_t begin, uint32_t end) {
    uint32_t at = begin + 1;
    while (at < end && !begins_meta(text + at, end - at)) at++;
    return at;
}

static qkv_status encode_normal(void *user, const qkvi_normal_text *normal, size_t first,
                                size_t last) {
    struct work *const work = user;
    const int splits = qkvi_bpe_of(work->tokenizer)->metaspace.splits;
    const char *const text = normal->bytes.bytes;
    const int64_t token = work->list->n;
    if (first == last) return QKV_OK;
    const uint32_t end =
        last < normal->n_chars ? normal->chars[last].offset : (uint32_t)normal->bytes.n;
    for (uint32_t at = normal->chars[first].offset, next; at < end; at = next) {
        next = splits ? word_end(text, at, end) : end;
        QKV_TRY(push_word(work, text, at, next));
    }
    qkvi_bpe_map(normal, first, work->list, token);
    return QKV_OK;
}

static qkv_status encode(void *user, const char *text, uint32_t begin, uint32_t end) {
    struct work *const work = user;
    const qkvi_metaspace *rules = &qkvi_bpe_of(work->tokenizer)->metaspace;
    const int begins = text[begin] == ' ' || begins_meta(text + begin, end - begin);
    const int prepends = !begins && (rules->prepend == QKVI_PREPEND_ALWAYS ||
                                     (rules->prepend == QKVI_PREPEND_FIRST && begin == 0));
    if (begin == end) return QKV_OK;
    QKV_TRY(write_stretch(text, begin, end, rules->is_on, rules->is_on && prepends, &work->normal));
    return encode_normal(work, &work->normal, 0, work->normal.n_chars);
}

static void finish(void *user) {
    struct work *const work = user;
    if (work == NULL) return;
    qkvi_bpe_work_free(&work->merging);
    qkvi_normal_text_free(&work->normal);
    free(work);
}

static void *start(const qkv_tokenizer *tokenizer, qkvi_tokens *list) {
    struct work *const work = calloc(1, sizeof *work);
    if (work == NULL) return NULL;
    work->tokenizer = tokenizer;
    work->list = list;
    return work;
}

/* ---- Tokens as text --------------------------------------------------------------------------- */

/* "<0xE6>": its byte; -1 if a token is none. */
static int byte_of(const char *token, size_t n) {
    static const char digits[] = "0123456789abcdef";
    int byte = 0;
    if (n != BYTE_TOKEN || memcmp(token, "<0x", 3) != 0 || token[5] != '>') return -1;
    for (int i = 3; i < 5; i++) {
        const char c = token[i] >= 'A' && token[i] <= 'F' ? (char)(token[i] + 32) : token[i];
        const char *const digit = c ? strchr(digits, c) : NULL;
        if (digit == NULL) return -1;
        byte = byte * 16 + (int)(digit - digits);
    }
    return byte;
}

/* A token with spaces for U+2581, or without them. */
static qkv_status put_spaced(const char *token, size_t n, int drops, qkvi_growing *text) {
    for (size_t at = 0; at < n;) {
        const int is_meta = begins_meta(token + at, n - at);
        if (!is_meta)
            QKV_TRY(qkvi_growing_put(text, token + at, 1));
        else if (!drops)
            QKV_TRY(qkvi_growing_put(text, " ", 1));
        at += is_meta ? META_BYTES : 1;
    }
    return QKV_OK;
}

/* A run of bytes: themselves if they are UTF-8, else U+FFFD for each of them. */
static qkv_status put_run(qkvi_growing *run, qkvi_growing *text) {
    const int is_valid = qkvi_utf8_valid(run->bytes, run->n) == run->n;
    const size_t n = run->n;
    run->n = 0;
    if (is_valid) return qkvi_growing_put(text, run->bytes, n);
    for (size_t i = 0; i < n; i++) QKV_TRY(qkvi_growing_put(text, "\xEF\xBF\xBD", 3));
    return QKV_OK;
}

static qkv_status decode_all(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                             int drops_first, qkvi_growing *run, qkvi_growing *text) {
    const qkvi_bpe *const model = qkvi_bpe_of(tokenizer);
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes = 0;
        const char *const token = qkvi_tokenizer_decoded(tokenizer, ids[i], &n_bytes);
        const int byte = model->metaspace.joins_bytes ? byte_of(token, n_bytes) : -1;
        const char bytes[1] = { (char)byte };
        if (byte >= 0) {
            QKV_TRY(qkvi_growing_put(run, bytes, 1));
            continue;
        }
        if (run->n > 0) QKV_TRY(put_run(run, text));
        QKV_TRY(put_spaced(token, n_bytes, i == 0 && drops_first, text));
    }
    return run->n > 0 ? put_run(run, text) : QKV_OK;
}

static qkv_status decode_from(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                              int drops_first, qkvi_growing *text) {
    qkvi_growing run = { 0 };
    const qkv_status status = decode_all(tokenizer, ids, n, drops_first, &run, text);
    free(run.bytes);
    return status;
}

static qkv_status decode_on(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                            qkvi_growing *text) {
    return decode_from(tokenizer, ids, n, 0, text);
}

static qkv_status decode(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                         qkvi_growing *text) {
    const qkvi_metaspace *rules = &qkvi_bpe_of(tokenizer)->metaspace;
    const size_t strips = (size_t)rules->strips;
    size_t spaces = 0;
    QKV_TRY(decode_from(tokenizer, ids, n, rules->drops_first, text));
    while (spaces < strips && spaces < text->n && text->bytes[spaces] == ' ') spaces++;
    if (spaces > 0) memmove(text->bytes, text->bytes + spaces, text->n - spaces);
    text->n -= spaces;
    return QKV_OK;
}

static int piece(const qkv_tokenizer *tokenizer, int32_t id, char *text, size_t *n_bytes) {
    const char *token = qkv_tokenizer_token(tokenizer, id, n_bytes);
    const int byte = byte_of(token, *n_bytes), begins = begins_meta(token, *n_bytes);
    if (byte >= 0) {
        *text = (char)byte;
        *n_bytes = 1;
        return 1;
    }
    if (begins) *n_bytes -= META_BYTES;
    memcpy(text, begins ? token + META_BYTES : token, *n_bytes);
    return !begins;
}

static qkv_status show(const qkv_tokenizer *tokenizer, int32_t id, qkvi_growing *text) {
    size_t n = 0;
    const char *const token = qkv_tokenizer_token(tokenizer, id, &n);
    const int byte = byte_of(token, n);
    const char bytes[1] = { (char)byte };
    qkvi_growing spaced = { 0 };
    if (byte >= 0) return qkvi_show(bytes, 1, text);
    qkv_status status = put_spaced(token, n, 0, &spaced);
    if (status == QKV_OK) status = qkvi_show(spaced.bytes, spaced.n, text);
    free(spaced.bytes);
    return status;
}

/* ---- The model -------------------------------------------------------------------------------- */

static qkv_status seal(qkv_tokenizer *tokenizer, qkv_error *error) {
    qkvi_bpe *model = tokenizer->model;
    (void)error;
    for (int byte = 0; byte < 256; byte++) {
        char token[BYTE_TOKEN + 1];
        snprintf(token, sizeof token, "<0x%02X>", (unsigned)byte);
        model->byte_ids[byte] = qkvi_pieces_find(&tokenizer->pieces, token, BYTE_TOKEN);
    }
    return QKV_OK;
}

/* UTF-8 has all bytes but C0, C1, F5 … FF. */
qkv_status qkvi_metaspace_check_bytes(const qkv_tokenizer *tokenizer, const char *file,
                                      qkv_error *error) {
    qkvi_bpe *model = qkvi_bpe_of(tokenizer);
    int n_known = 0, missing = -1;
    for (int byte = 0; byte < 0xF5; byte++) {
        if (byte == 0xC0 || byte == 0xC1) continue;
        n_known += model->byte_ids[byte] >= 0;
        if (model->byte_ids[byte] < 0) missing = byte;
    }
    if (n_known == 0) model->byte_fallback = 0;
    if (!model->byte_fallback || missing < 0) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                          "%s: model.byte_fallback with a vocabulary that has some bytes, but not "
                          "\"<0x%02X>\", is not supported",
                          file, (unsigned)missing);
}

const qkvi_tokenizer_kind qkvi_metaspace_kind = {
    .name = "BPE",
    .decoder = "Metaspace",
    .may_be_bare = 1,
    .seal = seal,
    .start = start,
    .encode = encode,
    .normalize = normalize,
    .encode_normal = encode_normal,
    .finish = finish,
    .piece = piece,
    .decode = decode,
    .decode_on = decode_on,
    .show = show,
    .free = qkvi_bpe_free_model,
};

qkv_tokenizer *qkvi_metaspace_new(void) {
    qkvi_bpe *model = calloc(1, sizeof *model);
    if (model == NULL) return NULL;
    model->unk = -1;
    return qkvi_tokenizer_new(&qkvi_metaspace_kind, model);
}
