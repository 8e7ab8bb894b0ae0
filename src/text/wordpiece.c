/**
 * Greedy longest match (Song et al. 2021, section 2): tokens after the first one of a word begin
 * with the continuation mark, so they are searched among the tokens with this prefix. A match ends
 * between characters, because tokens and words are valid UTF-8. A word takes at most max_chars
 * searches, each no longer than the longest token.
 */
#include "text/wordpiece.h"

#include <assert.h>

/* ---- Tokens to text -------------------------------------------------------------------------- */

/*
 * Words from pieces, as the decoder of PyPI tokenizers does it (decoders/wordpiece.rs): a token
 * that begins with the mark follows without it, any other with a space before; then, in each token
 * with its space by itself, spaces before punctuation are closed.
 */

/* Replaces all; to is not longer than from. Returns the new length. */
static size_t replace(char *text, size_t n, const char *from, const char *to) {
    const size_t from_bytes = strlen(from), to_bytes = strlen(to);
    size_t out = 0;
    for (size_t i = 0; i < n;) {
        const int match = n - i >= from_bytes && memcmp(text + i, from, from_bytes) == 0;
        if (match)
            memcpy(text + out, to, to_bytes);
        else
            text[out] = text[i];
        out += match ? to_bytes : 1;
        i += match ? from_bytes : 1;
    }
    return out;
}

static size_t clean_up(char *text, size_t n) {
    static const char *const pairs[][2] = {
        { " .", "." },   { " ?", "?" },     { " !", "!" },     { " ,", "," },
        { " ' ", "'" },  { " n't", "n't" }, { " 'm", "'m" },   { " do not", " don't" },
        { " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        n = replace(text, n, pairs[i][0], pairs[i][1]);
    return n;
}

/* Decoding. */
static qkv_status decode_words(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                               qkvi_growing *text) {
    const qkvi_wordpiece *model = tokenizer->model;
    const size_t mark = strlen(model->mark);
    char word[1 + QKVI_PIECE_MAX_BYTES];
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes = 0, n_word = 0;
        const char *token = qkvi_tokenizer_decoded(tokenizer, ids[i], &n_bytes);
        const int continues = i > 0 && n_bytes >= mark && memcmp(token, model->mark, mark) == 0;
        if (i > 0 && !continues) word[n_word++] = ' ';
        const size_t skip = continues ? mark : 0;
        memcpy(word + n_word, token + skip, n_bytes - skip);
        n_word += n_bytes - skip;
        if (model->cleanup) n_word = clean_up(word, n_word);
        QKV_TRY(qkvi_growing_put(text, word, n_word));
    }
    return QKV_OK;
}

static size_t unknown(const qkvi_wordpiece *model, const qkvi_word *word, qkvi_word_piece *out) {
    out[0] = (qkvi_word_piece){ model->unk, word->begin, word->end };
    return 1;
}

/* The raw bytes of characters [first, last), made to follow those of the piece before. */
static void set_range(qkvi_word_piece *piece, const qkvi_word_char *chars, uint32_t first,
                      uint32_t last, uint32_t previous_end) {
    uint32_t begin = chars[first].begin, end = chars[first].end;
    for (uint32_t i = first + 1; i < last; i++) { /* marks may have been reordered */
        if (chars[i].begin < begin) begin = chars[i].begin;
        if (chars[i].end > end) end = chars[i].end;
    }
    piece->begin = begin > previous_end ? begin : previous_end;
    piece->end = end > piece->begin ? end : piece->begin;
}

/*
 * Splits a word into out, which has room for max_chars pieces (at least 1); returns how many.
 *
 * A word with more than max_chars code points, or with a place where no token fits, is one [UNK].
 * Ranges follow one another without overlap: where several tokens come from one character of the
 * raw text (the jamo of a Hangul syllable), the first has its bytes and the others an empty range
 * behind it.
 */
static size_t wordpiece_split(const qkvi_pieces *pieces, const qkvi_wordpiece *model,
                              const qkvi_word *word, qkvi_word_piece *out) {
    if (word->n_chars > model->max_chars) return unknown(model, word, out);
    const qkvi_prefix whole = { 0, pieces->n_sorted, 0 };
    size_t n = 0;
    uint32_t character = 0, previous_end = word->begin;
    for (uint32_t at = 0; at < word->n_bytes;) {
        size_t length = 0;
        const int32_t id = qkvi_pieces_longest(pieces, n == 0 ? whole : model->continuing,
                                               word->bytes + at, word->n_bytes - at, &length);
        if (id < 0) return unknown(model, word, out);
        const uint32_t first = character;
        at += (uint32_t)length;
        while (character < word->n_chars && word->chars[character].offset < at) character++;
        out[n].id = id;
        set_range(&out[n], word->chars, first, character, previous_end);
        previous_end = out[n++].end;
    }
    return n;
}

/* ---- The kind -------------------------------------------------------------------------------- */

/* One call of encode. */
struct work {
    const qkv_tokenizer *tokenizer;
    qkvi_tokens *list;
    qkvi_normalizer *normalizer;
    qkvi_word_piece *pieces; /* of one word */
};

static qkv_status push_word(void *user, const qkvi_word *word) {
    struct work *work = user;
    const qkv_tokenizer *tokenizer = work->tokenizer;
    const size_t n = wordpiece_split(&tokenizer->pieces, tokenizer->model, word, work->pieces);
    for (size_t i = 0; i < n; i++) {
        const qkvi_word_piece piece = work->pieces[i];
        QKV_TRY(qkvi_tokens_push(work->list, piece.id, piece.begin, piece.end));
    }
    return QKV_OK;
}

static void finish(void *user) {
    struct work *work = user;
    if (work == NULL) return;
    qkvi_normalizer_free(work->normalizer);
    free(work->pieces);
    free(work);
}

static void *start(const qkv_tokenizer *tokenizer, qkvi_tokens *list) {
    const qkvi_wordpiece *model = tokenizer->model;
    struct work *work = calloc(1, sizeof *work);
    if (work == NULL) return NULL;
    work->tokenizer = tokenizer;
    work->list = list;
    work->pieces = qkvi_malloc_array((size_t)model->max_chars + 1, sizeof *work->pieces);
    work->normalizer = qkvi_normalizer_create(&model->rules, model->max_chars, push_word, work);
    if (work->pieces && work->normalizer) return work;
    finish(work);
    return NULL;
}

static qkv_status encode(void *user, const char *text, uint32_t begin, uint32_t end) {
    const struct work *work = user;
    return qkvi_normalize(work->normalizer, text, begin, end);
}

static qkv_status normalize(void *user, const char *text, uint32_t begin, uint32_t end,
                            qkvi_normal_text *normal) {
    const struct work *work = user;
    return qkvi_normalize_text(work->normalizer, text, begin, end, normal);
}

static qkv_status encode_normal(void *user, const qkvi_normal_text *normal, size_t first,
                                size_t last) {
    const struct work *work = user;
    return qkvi_normalize_words(work->normalizer, normal, first, last);
}

static int piece(const qkv_tokenizer *tokenizer, int32_t id, char *text, size_t *n_bytes) {
    const qkvi_wordpiece *model = tokenizer->model;
    const size_t mark = strlen(model->mark);
    const char *token = qkv_tokenizer_token(tokenizer, id, n_bytes);
    const int continues = *n_bytes > mark && memcmp(token, model->mark, mark) == 0;
    if (continues) *n_bytes -= mark;
    memcpy(text, continues ? token + mark : token, *n_bytes);
    return continues;
}

static qkv_status seal(qkv_tokenizer *tokenizer, qkv_error *error) {
    (void)error;
    qkvi_wordpiece *model = tokenizer->model;
    model->continuing = qkvi_pieces_prefix(&tokenizer->pieces, model->mark, strlen(model->mark));
    return QKV_OK;
}

const qkvi_tokenizer_kind qkvi_wordpiece_kind = {
    .name = "WordPiece",
    .decoder = "WordPiece",
    .encode_normalizes = 1,
    .seal = seal,
    .start = start,
    .encode = encode,
    .normalize = normalize,
    .encode_normal = encode_normal,
    .finish = finish,
    .piece = piece,
    .decode = decode_words,
    .free = free,
};

qkv_tokenizer *qkvi_wordpiece_new(void) {
    qkvi_wordpiece *model = calloc(1, sizeof *model);
    if (model == NULL) return NULL;
    model->rules = (qkvi_bert_rules){ 1, 1, 1, 1, 0 };
    model->max_chars = QKVI_WORDPIECE_MAX_CHARS;
    model->unk = -1;
    model->cleanup = 1;
    memcpy(model->mark, "##", 3);
    qkv_tokenizer *tokenizer = qkvi_tokenizer_new(&qkvi_wordpiece_kind, model);
    if (tokenizer) tokenizer->normalizes = 1;
    return tokenizer;
}

qkvi_wordpiece *qkvi_wordpiece_of(const qkv_tokenizer *tokenizer) {
    assert(tokenizer->kind == &qkvi_wordpiece_kind);
    return tokenizer->model;
}
