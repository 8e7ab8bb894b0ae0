/**
 * Encoding a stretch of text: words, their bytes, merged.
 *
 * Words repeat, so the tokens of short ones are kept while a text is encoded. The table is direct:
 * a word takes the place that its bytes name, and whose place it takes is forgotten. So a hostile
 * text can make it useless but not slow.
 */

#include "model/text/bpe.h"
#include "model/text/byte_level.h"
#include "model/text/unicode.h"

enum { KNOWN_BYTES = 24, KNOWN_TOKENS = 6, N_KNOWN = 8192, KNOWN_TEXT = 4096 };

/* The tokens of a word that was seen; 56 bytes. */
struct known_word {
    uint8_t n_bytes, n_tokens, ends[KNOWN_TOKENS]; /* n_bytes 0: none */
    char bytes[KNOWN_BYTES];
    int32_t ids[KNOWN_TOKENS];
};

/* One call of encode. */
struct work {
    const qkv_tokenizer *tokenizer;
    qkvi_tokens *list;
    qkvi_bpe_work merging;
    qkvi_growing spaced; /* a stretch with a space before it */
    struct known_word *known;
};

/* Where a word may be kept. FNV-1a; half of the bits, mixed. */
static struct known_word *place_of(const struct work *work, const char *word, size_t n_bytes) {
    if (work->known == NULL || n_bytes > KNOWN_BYTES) return NULL;
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < n_bytes; i++) hash = (hash ^ (unsigned char)word[i]) * 16777619u;
    return &work->known[(hash ^ (hash >> 15)) % N_KNOWN];
}

static void keep(struct known_word *place, const char *word, size_t n_bytes,
                 const qkvi_bpe_work *merged) {
    if (place == NULL || merged->n_symbols > KNOWN_TOKENS) return;
    for (size_t i = 0; i < merged->n_symbols; i++) { /* dropped bytes leave gaps */
        if (merged->symbols[i].begin != (i > 0 ? merged->symbols[i - 1].end : 0)) return;
    }
    place->n_bytes = (uint8_t)n_bytes;
    place->n_tokens = (uint8_t)merged->n_symbols;
    memcpy(place->bytes, word, n_bytes);
    for (size_t i = 0; i < merged->n_symbols; i++) {
        place->ids[i] = merged->symbols[i].id;
        place->ends[i] = (uint8_t)merged->symbols[i].end;
    }
}

/* A word, and where its bytes are in the text: byte i at origin + i, but the space that was put
 * before the stretch is nowhere: its place is floor - 1. */
struct word {
    const char *bytes;
    size_t n_bytes;
    int64_t origin, floor;
};

/* Cuts spaces off both ends of a range; one at the start of the text may stay. */
static void trim(const qkv_tokenizer *tokenizer, const struct word *word, uint32_t *begin,
                 uint32_t *end) {
    uint32_t first = *begin;
    while (first < *end && word->bytes[first] == ' ') first++;
    if (tokenizer->trim_keeps_first && first - *begin == 1 && word->origin + *begin <= 0)
        first = *begin;
    *begin = first;
    while (*end > *begin && word->bytes[*end - 1] == ' ') (*end)--;
}

static qkv_status push(const struct work *work, const struct word *word, int32_t id, uint32_t begin,
                       uint32_t end) {
    if (work->tokenizer->trim_offsets) trim(work->tokenizer, word, &begin, &end);
    const int64_t first = word->origin + begin, last = word->origin + end, floor = word->floor;
    return qkvi_tokens_push(work->list, id, (uint32_t)(first > floor ? first : floor),
                            (uint32_t)(last > floor ? last : floor));
}

/* A word that is a token, if that is the rule. */
static int32_t whole_word(const struct work *work, const struct word *word) {
    char token[2 * QKVI_PIECE_MAX_BYTES];
    size_t n = 0;
    const qkvi_bpe *model = work->tokenizer->model;
    if (!model->ignore_merges || word->n_bytes > QKVI_PIECE_MAX_BYTES) return -1;
    for (size_t i = 0; i < word->n_bytes; i++)
        n += qkvi_utf8_put(qkvi_byte_char((unsigned char)word->bytes[i]), token + n);
    return qkvi_pieces_find(&work->tokenizer->pieces, token, n);
}

static qkv_status push_word(struct work *work, const struct word *word) {
    struct known_word *place = place_of(work, word->bytes, word->n_bytes);
    if (place && place->n_bytes == word->n_bytes &&
        memcmp(place->bytes, word->bytes, word->n_bytes) == 0) {
        for (int i = 0; i < place->n_tokens; i++)
            QKV_TRY(
                push(work, word, place->ids[i], i > 0 ? place->ends[i - 1] : 0, place->ends[i]));
        return QKV_OK;
    }
    const int32_t whole = whole_word(work, word);
    if (whole >= 0) return push(work, word, whole, 0, (uint32_t)word->n_bytes);
    QKV_TRY(qkvi_bpe_merge(work->tokenizer->model, word->bytes, word->n_bytes, &work->merging));
    const qkvi_bpe_work *merged = &work->merging;
    keep(place, word->bytes, word->n_bytes, merged);
    for (size_t i = 0; i < merged->n_symbols; i++) {
        const qkvi_bpe_symbol symbol = merged->symbols[i];
        QKV_TRY(push(work, word, symbol.id, symbol.begin, symbol.end));
    }
    return QKV_OK;
}

qkv_status qkvi_bpe_encode(void *user, const char *text, uint32_t begin, uint32_t end) {
    struct work *work = user;
    const qkvi_bpe *model = work->tokenizer->model;
    const int64_t floor = begin;
    const char *stretch = text + begin;
    size_t n = end - begin;
    int64_t origin = begin;
    if (n >= KNOWN_TEXT && work->known == NULL) {
        work->known = qkvi_calloc_array(N_KNOWN, sizeof *work->known);
        if (work->known == NULL) return QKV_ERR_MEMORY;
    }
    if (model->add_prefix_space && text[begin] != ' ') {
        work->spaced.n = 0;
        QKV_TRY(qkvi_growing_put(&work->spaced, " ", 1));
        QKV_TRY(qkvi_growing_put(&work->spaced, stretch, n));
        stretch = work->spaced.bytes;
        n++;
        origin--;
    }
    for (size_t at = 0; at < n;) {
        const size_t length = qkvi_gpt2_word(stretch + at, n - at);
        const struct word word = { stretch + at, length, origin + (int64_t)at, floor };
        QKV_TRY(push_word(work, &word));
        at += length;
    }
    return QKV_OK;
}

/* ---- Texts that are put in lower case --------------------------------------------------------- */

qkv_status qkvi_bpe_normalize(void *user, const char *text, uint32_t begin, uint32_t end,
                              qkvi_normal_text *normal) {
    (void)user;
    normal->bytes.n = 0;
    normal->n_chars = 0;
    for (uint32_t at = begin; at < end;) {
        int32_t code = 0, lower[2];
        const uint32_t length = (uint32_t)qkvi_utf8_next(text + at, end - at, &code);
        const int count = qkvi_char_lower(code, lower);
        for (int i = 0; i < count; i++) /* of two the first has the bytes */
            QKV_TRY(qkvi_normal_text_put(normal, lower[i], i > 0 ? at + length : at, at + length));
        at += length;
    }
    return QKV_OK;
}

/* The raw place of a place in the normalised text; *from is the character before it or its own. Inside of
 * a character it is as far from its front, but not beyond it. */
static uint32_t raw_place(const qkvi_normal_text *normal, size_t *from, uint32_t place) {
    while (*from + 1 < normal->n_chars && normal->chars[*from + 1].offset <= place) ++*from;
    const qkvi_word_char at = normal->chars[*from];
    const uint32_t inside = at.begin + (place - at.offset);
    return place >= normal->bytes.n || inside > at.end ? at.end : inside;
}

qkv_status qkvi_bpe_encode_normal(void *user, const qkvi_normal_text *normal, size_t first,
                                  size_t last) {
    const struct work *work = user;
    const uint32_t end =
        last < normal->n_chars ? normal->chars[last].offset : (uint32_t)normal->bytes.n;
    int64_t token = work->list->n;
    size_t from = first;
    if (first == last) return QKV_OK;
    QKV_TRY(qkvi_bpe_encode(user, normal->bytes.bytes, normal->chars[first].offset, end));
    for (uint32_t before = 0; token < work->list->n; token++) {
        qkvi_token *const t = &work->list->tokens[token];
        t->begin = raw_place(normal, &from, t->begin);
        t->end = raw_place(normal, &from, t->end);
        if (t->begin < before) t->begin = before;
        if (t->end < t->begin) t->end = t->begin;
        before = t->end;
    }
    return QKV_OK;
}

void qkvi_bpe_finish(void *user) {
    struct work *work = user;
    if (work == NULL) return;
    qkvi_bpe_work_free(&work->merging);
    free(work->spaced.bytes);
    free(work->known);
    free(work);
}

void *qkvi_bpe_start(const qkv_tokenizer *tokenizer, qkvi_tokens *list) {
    struct work *work = calloc(1, sizeof *work);
    if (work == NULL) return NULL;
    work->tokenizer = tokenizer;
    work->list = list;
    return work;
}
