/*
 * Metaspace BPE: see bpe.h. Spaces of a stretch become U+2581. The stretch is one word, or is split
 * before each U+2581. The symbols of a word are its characters; a character without a token becomes
 * the tokens "<0x00>" … "<0xFF>" of its bytes, or unk.
 *
 * Reference: PyPI tokenizers, models/bpe/model.rs (merge_word), pre_tokenizers/metaspace.rs,
 * normalizers/{prepend,replace}.rs.
 */
#include "files/utf8.h"
#include "text/bpe.h"

/* ---- Stretches ------------------------------------------------------------------------------- */

/* One call of encode. */
struct work {
    const qkv_tokenizer *tokenizer;
    qkvi_tokens *list;
    qkvi_bpe_work merging;
    qkvi_normal_text normal; /* a stretch as the pre-tokenizer makes it */
};

/* Spaces as U+2581, and one before the stretch: always, or only if it does not begin with one. */
static qkv_status write_stretch(const char *text, uint32_t begin, uint32_t end, int replaces,
                                int prepends, qkvi_normal_text *normal) {
    normal->bytes.n = 0;
    normal->n_chars = 0;
    if (prepends) QKV_TRY(qkvi_normal_text_put(normal, QKVI_META_CODE, begin, begin));
    for (uint32_t at = begin; at < end;) {
        int32_t code = 0;
        const uint32_t length = (uint32_t)qkvi_utf8_next(text + at, end - at, &code);
        if (replaces && code == ' ') code = QKVI_META_CODE;
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

/* ---- Words ----------------------------------------------------------------------------------- */

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
        next = splits ? qkvi_metaspace_word_end(text, at, end) : end;
        QKV_TRY(push_word(work, text, at, next));
    }
    qkvi_bpe_map(normal, first, work->list, token);
    return QKV_OK;
}

static qkv_status encode(void *user, const char *text, uint32_t begin, uint32_t end) {
    struct work *const work = user;
    const qkvi_metaspace *rules = &qkvi_bpe_of(work->tokenizer)->metaspace;
    const int prepends = qkvi_metaspace_prepends(rules, text + begin, end - begin, begin);
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

/* ---- The model ------------------------------------------------------------------------------- */

static qkv_status decode(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                         qkvi_growing *text) {
    return qkvi_metaspace_decode(tokenizer, &qkvi_bpe_of(tokenizer)->metaspace, ids, n, 0, text);
}

static qkv_status decode_on(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                            qkvi_growing *text) {
    return qkvi_metaspace_decode(tokenizer, &qkvi_bpe_of(tokenizer)->metaspace, ids, n, 1, text);
}

static qkv_status seal(qkv_tokenizer *tokenizer, qkv_error *error) {
    (void)error;
    qkvi_metaspace_find_bytes(tokenizer, qkvi_bpe_of(tokenizer)->byte_ids);
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
    .piece = qkvi_metaspace_piece,
    .decode = decode,
    .decode_on = decode_on,
    .show = qkvi_metaspace_show,
    .free = qkvi_bpe_free_model,
};

qkv_tokenizer *qkvi_metaspace_new(void) {
    qkvi_bpe *model = calloc(1, sizeof *model);
    if (model == NULL) return NULL;
    model->unk = -1;
    return qkvi_tokenizer_new(&qkvi_metaspace_kind, model);
}
