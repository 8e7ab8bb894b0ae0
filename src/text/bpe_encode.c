/**
 * Encoding a stretch of text: it is split into words, and the bytes of each word are merged.
 *
 * Words repeat, so the tokens of short words are kept while a text is encoded. The cache is
 * direct-mapped: a word replaces the one with the same hash. So a hostile text can make it useless
 * but not slow.
 */

#include "files/utf8.h"
#include "text/bpe.h"
#include "text/byte_level.h"
#include "text/compose.h"
#include "text/words.h"

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

/* The words of a part, bytes that stand in the text from origin on. */
static qkv_status push_part(struct work *work, const char *part, size_t n, int64_t origin,
                            int64_t floor) {
    const qkvi_bpe *model = work->tokenizer->model;
    if (model->add_prefix_space && part[0] != ' ') {
        work->spaced.n = 0;
        QKV_TRY(qkvi_growing_put(&work->spaced, " ", 1));
        QKV_TRY(qkvi_growing_put(&work->spaced, part, n));
        part = work->spaced.bytes;
        n++;
        origin--;
    }
    for (size_t at = 0; at < n;) {
        const size_t length = model->gpt2_words ? qkvi_gpt2_word(part + at, n - at) : n;
        const struct word word = { part + at, length, origin + (int64_t)at, floor };
        QKV_TRY(push_word(work, &word));
        at += length;
    }
    return QKV_OK;
}

static size_t part_length(const qkvi_bpe *model, const char *text, size_t n) {
    switch (model->cut) {
    case QKVI_CUT_DIGIT: return qkvi_digits_word(text, n, 1);
    case QKVI_CUT_DIGITS: return qkvi_digits_word(text, n, 0);
    case QKVI_CUT_MODERN: return qkvi_modern_word(text, n, model->max_digits);
    case QKVI_CUT_GPT2: return qkvi_gpt2_word(text, n);
    case QKVI_CUT_BLOOM: return qkvi_bloom_word(text, n);
    case QKVI_CUT_CLIP: return qkvi_clip_word(text, n);
    case QKVI_CUT_NONE: break;
    }
    return n;
}

qkv_status qkvi_bpe_encode(void *user, const char *text, uint32_t begin, uint32_t end) {
    struct work *work = user;
    if (end - begin >= KNOWN_TEXT && work->known == NULL) {
        work->known = qkvi_calloc_array(N_KNOWN, sizeof *work->known);
        if (work->known == NULL) return QKV_ERR_MEMORY;
    }
    const qkvi_bpe *const model = work->tokenizer->model;
    for (uint32_t at = begin; at < end;) {
        if (model->cut == QKVI_CUT_CLIP) at += (uint32_t)qkvi_spaces(text + at, end - at);
        if (at == end) break;
        const size_t length = part_length(model, text + at, end - at);
        QKV_TRY(push_part(work, text + at, length, at, at));
        at += (uint32_t)length;
    }
    return QKV_OK;
}

/* ---- Texts that are normalised --------------------------------------------------------------- */

int qkvi_bpe_is_normal(const qkv_tokenizer *tokenizer, const char *text, uint32_t begin,
                       uint32_t end) {
    const qkvi_bpe *model = tokenizer->model;
    return !model->lowers && !model->lowers_composed && qkvi_is_composed(text + begin, end - begin);
}

qkv_status qkvi_bpe_normalize(void *user, const char *text, uint32_t begin, uint32_t end,
                              qkvi_normal_text *normal) {
    const struct work *work = user;
    const qkvi_bpe *model = work->tokenizer->model;
    const qkvi_compose_rules rules = { model->lowers, model->composes, model->lowers_composed };
    return qkvi_compose(text, begin, end, &rules, normal);
}

/*
 * The raw place of a place in the normalised text; *from is the character before it or its own.
 * Inside of a character it is as far from its front, but not beyond it.
 */
static uint32_t raw_place(const qkvi_normal_text *normal, size_t *from, uint32_t place) {
    while (*from + 1 < normal->n_chars && normal->chars[*from + 1].offset <= place) ++*from;
    const qkvi_word_char at = normal->chars[*from];
    const uint32_t inside = at.begin + (place - at.offset);
    return place >= normal->bytes.n || inside > at.end ? at.end : inside;
}

void qkvi_bpe_map(const qkvi_normal_text *normal, size_t first, qkvi_tokens *list, int64_t token) {
    size_t from = first;
    for (uint32_t before = 0; token < list->n; token++) {
        qkvi_token *const t = &list->tokens[token];
        t->begin = raw_place(normal, &from, t->begin);
        t->end = raw_place(normal, &from, t->end);
        if (t->begin < before) t->begin = before;
        if (t->end < t->begin) t->end = t->begin;
        before = t->end;
    }
}

qkv_status qkvi_bpe_encode_normal(void *user, const qkvi_normal_text *normal, size_t first,
                                  size_t last) {
    const struct work *work = user;
    const uint32_t end =
        last < normal->n_chars ? normal->chars[last].offset : (uint32_t)normal->bytes.n;
    const int64_t token = work->list->n;
    if (first == last) return QKV_OK;
    QKV_TRY(qkvi_bpe_encode(user, normal->bytes.bytes, normal->chars[first].offset, end));
    qkvi_bpe_map(normal, first, work->list, token);
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
