/** SigLIP's tokenizer as a kind; see siglip.h. It has Marian's SentencePiece model. */
#include "text/siglip.h"

#include <utf8proc.h>

#include "files/utf8.h"
#include "text/marian.h"
#include "text/tokenizer_json.h"
#include "text/unicode.h"

static const char sign[] = "\xE2\x96\x81"; /* U+2581 */
enum { SIGN = 0x2581, SIGMA = 0x3A3, FINAL_SIGMA = 0x3C2 };

typedef struct siglip {
    qkvi_marian marian; /* first, so that Marian's functions find it; without ids */
    int lower;
    char unk[QKVI_PIECE_MAX_BYTES];
    uint32_t unk_bytes, n_skipped; /* pieces of the unknown token's name */
} siglip;

/* ---- Canonical text -------------------------------------------------------------------------- */

/* One call of encode. */
struct work {
    const qkv_tokenizer *tokenizer;
    qkvi_tokens *list;
    qkvi_growing bytes;            /* what the .model sees */
    uint32_t *begins, *ends;       /* the raw range of each of its bytes */
    size_t n_begins, n_ends, seen; /* rooms; pieces of this stretch so far */
};

static void *start(const qkv_tokenizer *tokenizer, qkvi_tokens *list) {
    struct work *const work = calloc(1, sizeof *work);
    if (work) work->tokenizer = tokenizer, work->list = list;
    return work;
}

static void finish(void *user) {
    struct work *const work = user;
    if (!work) return;
    free(work->bytes.bytes);
    free(work->begins);
    free(work->ends);
    free(work);
}

static qkv_status put(struct work *work, const char *bytes, size_t n, uint32_t begin,
                      uint32_t end) {
    const size_t first = work->bytes.n;
    QKV_TRY(qkvi_growing_put(&work->bytes, bytes, n));
    QKV_TRY(qkvi_reserve(&work->begins, &work->n_begins, first + n, sizeof begin));
    QKV_TRY(qkvi_reserve(&work->ends, &work->n_ends, first + n, sizeof end));
    for (size_t i = first; i < first + n; i++) work->begins[i] = begin, work->ends[i] = end;
    return QKV_OK;
}

static qkv_status put_code(struct work *work, int32_t code, uint32_t begin, uint32_t end) {
    utf8proc_uint8_t bytes[4];
    const utf8proc_ssize_t n = utf8proc_encode_char(code, bytes);
    return put(work, (const char *)bytes, (size_t)n, begin, end);
}

static bool is_cased(int32_t code) {
    return utf8proc_islower(code) || utf8proc_isupper(code) ||
           utf8proc_category(code) == UTF8PROC_CATEGORY_LT;
}

/* Case-ignorable characters, which do not end a word. */
static bool is_ignored(int32_t code) {
    switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default:
        return code == '\'' || code == '.' || code == ':' || code == 0xB7 || code == 0x2018 ||
               code == 0x2019 || code == 0x2024 || code == 0x2027;
    }
}

/* Whether a letter follows in the same word. */
static bool goes_on(const char *text, uint32_t at, uint32_t end) {
    while (at < end) {
        int32_t code = 0;
        at += (uint32_t)qkvi_utf8_next(text + at, end - at, &code);
        if (!is_ignored(code)) return is_cased(code);
    }
    return false;
}

static bool is_punctuation(int32_t code) {
    return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') ||
           (code >= '[' && code <= '`') || (code >= '{' && code <= '~');
}

/* One character; *letter: whether a letter came before it in the same word. */
static qkv_status put_char(struct work *work, const char *text, uint32_t at, uint32_t next,
                           uint32_t end, int32_t code, bool *letter) {
    const siglip *const model = work->tokenizer->model;
    int32_t lower[2] = { code, 0 };
    const int n = model->lower ? qkvi_char_lower(code, lower) : 1;
    if (model->lower && code == SIGMA && *letter && !goes_on(text, next, end))
        lower[0] = FINAL_SIGMA;
    if (!is_ignored(code)) *letter = is_cased(code);
    for (int i = 0; i < n; i++)
        if (!is_punctuation(lower[i])) QKV_TRY(put_code(work, lower[i], at, next));
    return QKV_OK;
}

static qkv_status make_canonical(struct work *work, const char *text, uint32_t begin,
                                 uint32_t end) {
    bool letter = false, space = false;
    const size_t first = work->bytes.n;
    uint32_t space_at = begin, next;
    if (begin == 0) QKV_TRY(put(work, sign, sizeof sign - 1, 0, 0));
    for (uint32_t at = begin; at < end; at = next) {
        int32_t code = 0;
        next = at + (uint32_t)qkvi_utf8_next(text + at, end - at, &code);
        if (code == SIGN || qkvi_char_strips(code)) {
            if (!space) space_at = at;
            space = true;
            letter = false;
            continue;
        }
        const size_t before = work->bytes.n;
        /* a space in front of what is put, if something is */
        if (space && before > first) QKV_TRY(put(work, " ", 1, space_at, at));
        const size_t behind = work->bytes.n;
        QKV_TRY(put_char(work, text, at, next, end, code, &letter));
        if (work->bytes.n == behind)
            work->bytes.n = before;
        else
            space = false;
    }
    return QKV_OK;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

static qkv_status push(void *user, const qkvi_spm_token *token) {
    struct work *const work = user;
    const siglip *const model = work->tokenizer->model;
    if (work->seen++ < model->n_skipped) return QKV_OK;
    const uint32_t n = (uint32_t)work->bytes.n, last = token->end > 0 ? token->end - 1 : 0;
    return qkvi_tokens_push(work->list, token->id,
                            token->begin < n ? work->begins[token->begin] : 0,
                            last < n ? work->ends[last] : 0);
}

static qkv_status encode(void *user, const char *text, uint32_t begin, uint32_t end) {
    struct work *const work = user;
    const siglip *const model = work->tokenizer->model;
    work->bytes.n = 0;
    work->seen = 0;
    QKV_TRY(put(work, model->unk, model->unk_bytes, begin, begin));
    QKV_TRY(make_canonical(work, text, begin, end));
    if (work->bytes.n > UINT32_MAX / 2) return QKV_ERR_LIMIT;
    return qkvi_spm_encode(&model->marian.spm, work->bytes.bytes, (uint32_t)work->bytes.n, push,
                           work);
}

static qkv_status count(void *user, const qkvi_spm_token *token) {
    uint32_t *const n = user;
    (void)token;
    (*n)++;
    return QKV_OK;
}

/* ---- Back to text: as Marian's --------------------------------------------------------------- */

static int piece(const qkv_tokenizer *tokenizer, int32_t id, char *text, size_t *n_bytes) {
    return qkvi_marian_kind.piece(tokenizer, id, text, n_bytes);
}

static qkv_status decode(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                         qkvi_growing *text) {
    return qkvi_marian_kind.decode(tokenizer, ids, n, text);
}

static qkv_status show(const qkv_tokenizer *tokenizer, int32_t id, qkvi_growing *text) {
    return qkvi_marian_kind.show(tokenizer, id, text);
}

static void free_model(void *model) { qkvi_marian_kind.free(model); }

static const qkvi_tokenizer_kind siglip_kind = {
    .name = "SigLIP",
    .start = start,
    .encode = encode,
    .finish = finish,
    .piece = piece,
    .decode = decode,
    .show = show,
    .free = free_model,
};

/* ---- Files ----------------------------------------------------------------------------------- */

static const qkvi_settings_wanted wanted = { "spiece.model", QKVI_MADE_BY_SIGLIP,
                                             QKVI_MADE_BY_SIGLIP, 0 };

static qkv_status add_pieces(const qkvi_settings *s, qkv_tokenizer *tokenizer) {
    const siglip *const model = tokenizer->model;
    const qkvi_pieces *const pieces = &model->marian.spm.pieces;
    const qkvi_tokenizer_reader r = { s->files->spm.name, NULL, tokenizer, s->error, 0, NULL };
    for (int32_t i = 0; i < pieces->n_ids; i++)
        QKV_TRY(qkvi_tokenizer_add_word(&r, "pieces", pieces->bytes + pieces->tokens[i].offset,
                                        (size_t)pieces->tokens[i].length, i));
    return qkvi_tokenizer_seal_model(tokenizer, s->error);
}

/* A </s>, or A </s> B </s>. */
static void set_templates(qkv_tokenizer *tokenizer, int32_t eos) {
    const qkvi_template_item after = { eos, 0 };
    const qkvi_template_item a = { QKVI_TEMPLATE_TEXT, 0 }, b = { QKVI_TEMPLATE_PAIR, 0 };
    tokenizer->single = (qkvi_template){ 2, { a, after } };
    tokenizer->pair = (qkvi_template){ 4, { a, after, b, after } };
}

static qkv_status fill(const qkvi_settings *s, const json_t *root, qkv_tokenizer *tokenizer) {
    siglip *const model = tokenizer->model;
    const char *const unk = s->named[QKVI_UNK].content;
    const size_t n = strlen(unk);
    (void)root;
    if (n >= sizeof model->unk)
        return qkvi_error_set(s->error, QKV_ERR_LIMIT, "%s: unk_token has more than %zu bytes",
                              s->files->tokenizer_config.name, sizeof model->unk - 1);
    memcpy(model->unk, unk, n);
    model->unk_bytes = (uint32_t)n;
    model->lower = s->lower_case;
    QKV_TRY(qkvi_spm_encode(&model->marian.spm, unk, (uint32_t)n, count, &model->n_skipped));
    QKV_TRY(add_pieces(s, tokenizer));
    tokenizer->special[QKV_TOKEN_UNK] = model->marian.spm.unk;
    QKV_TRY(qkvi_settings_add_tokens(s, NULL, tokenizer));
    set_templates(tokenizer, qkvi_settings_id(s, QKVI_EOS, tokenizer));
    tokenizer->ends_once = 1;
    return qkvi_settings_apply(s, tokenizer);
}

static qkv_status make(const qkvi_settings *s, qkv_tokenizer **tokenizer) {
    const qkvi_text_file *const spm = &s->files->spm;
    siglip *const model = calloc(1, sizeof *model);
    if (!model) return qkvi_no_memory(s->error, "a tokenizer");
    const qkv_status status =
        qkvi_spm_open(&model->marian.spm, spm->name, spm->bytes, spm->n_bytes, s->error);
    if (status == QKV_OK)
        return qkvi_settings_make(s, NULL, qkvi_tokenizer_new(&siglip_kind, model), fill,
                                  tokenizer);
    free(model);
    return status;
}

qkv_status qkvi_siglip_read(const qkvi_text_files *files, qkv_tokenizer **tokenizer,
                            qkv_error *error) {
    qkvi_settings settings;
    *tokenizer = NULL;
    qkv_status status = qkvi_settings_read(files, &wanted, &settings, error);
    if (status == QKV_OK) status = make(&settings, tokenizer);
    qkvi_settings_free(&settings);
    return status;
}

int qkvi_siglip_is_named(const qkvi_text_files *files) {
    static const qkvi_settings_wanted any = { "spiece.model", QKVI_MADE_BY_ANY, QKVI_MADE_BY_FILE,
                                              0 };
    qkvi_settings settings;
    qkv_error error;
    const qkv_status status = qkvi_settings_read(files, &any, &settings, &error);
    const int is = status == QKV_OK && settings.class->maker == QKVI_MADE_BY_SIGLIP;
    qkvi_settings_free(&settings);
    return is;
}
