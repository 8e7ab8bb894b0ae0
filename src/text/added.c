/** See added.h. Time is linear: white space is read once for each token that takes it. */
#include "text/added.h"

#include "files/utf8.h"
#include "text/unicode.h"

static qkv_status reserve_flags(qkvi_added *added, int32_t n_ids) {
    if (n_ids <= added->n_ids) return QKV_OK;
    uint8_t *flags = qkvi_realloc_array(added->flags, (size_t)n_ids, 1);
    if (flags == NULL) return QKV_ERR_MEMORY;
    memset(flags + added->n_ids, 0, (size_t)(n_ids - added->n_ids));
    added->flags = flags;
    added->n_ids = n_ids;
    return QKV_OK;
}

static int pass_of(unsigned flags) { return (flags & QKVI_ADDED_NORMALIZED) != 0; }

qkv_status qkvi_added_add(qkvi_added *added, int32_t id, const char *token, size_t n_bytes,
                          unsigned flags) {
    if (id < 0 || id >= QKVI_PIECES_MAX_IDS || n_bytes > QKVI_ADDED_MAX_BYTES) return QKV_ERR_LIMIT;
    QKV_TRY(reserve_flags(added, id + 1));
    added->flags[id] = (uint8_t)flags;
    return qkvi_pieces_add(&added->tokens, id, token, n_bytes);
}

/* ---- Patterns -------------------------------------------------------------------------------- */

static qkv_status no_memory(const char *file, qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for the added tokens", file);
}

/* A token, escaped for a message. */
static const char *name_of(const qkvi_added *added, int32_t id, char name[96]) {
    size_t n_bytes = 0;
    const char *token = qkvi_added_token(added, id, &n_bytes);
    return qkvi_escape(name, 96, token, n_bytes);
}

/* The patterns of a pass, one for each of its tokens. */
static qkv_status add_patterns(qkvi_added *added, int pass, const char *file,
                               qkvi_added_normalize *normalize, void *user, qkv_error *error) {
    qkvi_growing made = { 0 };
    qkv_status status = QKV_OK;
    char name[96];
    for (int32_t id = 0; id < added->n_ids && status == QKV_OK; id++) {
        size_t n_bytes = 0;
        const char *pattern = qkvi_added_token(added, id, &n_bytes);
        if (pattern == NULL || pass_of(added->flags[id]) != pass) continue;
        if (normalize) {
            made.n = 0;
            status = normalize(user, pattern, n_bytes, &made);
            pattern = made.bytes;
            n_bytes = made.n;
        }
        if (status == QKV_OK && n_bytes == 0)
            status = qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                                    "%s: the normalizer leaves nothing of added token \"%s\"", file,
                                    name_of(added, id, name));
        else if (status == QKV_OK)
            status = qkvi_pieces_add(&added->passes[pass].patterns, id, pattern, n_bytes);
    }
    free(made.bytes);
    return status == QKV_OK || status == QKV_ERR_UNSUPPORTED ? status : no_memory(file, error);
}

/* Of two tokens with one pattern the reference finds now the one, now the other. */
static qkv_status check_equal(const qkvi_added *added, int pass, const char *file,
                              qkv_error *error) {
    const qkvi_pieces *patterns = &added->passes[pass].patterns;
    char one[96], other[96];
    size_t n_bytes = 0;
    if (patterns->n_hidden == 0) return QKV_OK;
    const char *pattern = qkvi_pieces_token(patterns, patterns->first_hidden, &n_bytes);
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                          "%s: added tokens \"%s\" and \"%s\" are one text after the normalizer, "
                          "which is not supported",
                          file, name_of(added, patterns->first_hidden, one),
                          name_of(added, qkvi_pieces_find(patterns, pattern, n_bytes), other));
}

/*
 * A pattern that begins with white space could lie in what the one before it took. The reference
 * then has the same bytes in two tokens; here ranges never overlap.
 */
static qkv_status check_overlap(const qkvi_added *added, int pass, const char *file,
                                qkv_error *error) {
    const qkvi_pieces *patterns = &added->passes[pass].patterns;
    int32_t strips = -1, begins = -1;
    char one[96], other[96];
    for (int32_t i = 0; i < patterns->n_sorted; i++) {
        const int32_t id = patterns->sorted[i];
        size_t n_bytes = 0;
        int32_t code = 0;
        const char *pattern = qkvi_pieces_token(patterns, id, &n_bytes);
        qkvi_utf8_next(pattern, n_bytes, &code);
        if (qkvi_char_group_of(code) == QKVI_GROUP_SPACE) begins = id;
        if (added->flags[id] & QKVI_ADDED_RSTRIP) strips = id;
    }
    if (strips < 0 || begins < 0) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                          "%s: added token \"%s\" begins with white space while \"%s\" has "
                          "\"rstrip\": true, which is not supported",
                          file, name_of(added, begins, one), name_of(added, strips, other));
}

qkv_status qkvi_added_seal(qkvi_added *added, const char *file, qkvi_added_normalize *normalize,
                           void *user, qkv_error *error) {
    if (qkvi_pieces_seal(&added->tokens) != QKV_OK) return no_memory(file, error);
    for (int p = 0; p < QKVI_ADDED_PASSES; p++) {
        struct qkvi_added_pass *pass = &added->passes[p];
        const qkvi_pieces *patterns = &pass->patterns;
        QKV_TRY(add_patterns(added, p, file, p == 1 ? normalize : NULL, user, error));
        if (qkvi_pieces_seal(&pass->patterns) != QKV_OK) return no_memory(file, error);
        QKV_TRY(check_equal(added, p, file, error));
        QKV_TRY(check_overlap(added, p, file, error));
        for (int32_t i = 0; i < patterns->n_sorted; i++) {
            const struct qkvi_text_piece token = patterns->tokens[patterns->sorted[i]];
            pass->first[(unsigned char)patterns->bytes[token.offset]] = 1;
        }
    }
    return QKV_OK;
}

void qkvi_added_free(qkvi_added *added) {
    for (int p = 0; p < QKVI_ADDED_PASSES; p++) qkvi_pieces_free(&added->passes[p].patterns);
    qkvi_pieces_free(&added->tokens);
    free(added->flags);
    *added = (qkvi_added){ 0 };
}

const char *qkvi_added_token(const qkvi_added *added, int32_t id, size_t *n_bytes) {
    return qkvi_pieces_token(&added->tokens, id, n_bytes);
}

int32_t qkvi_added_find(const qkvi_added *added, const char *token, size_t n_bytes) {
    return qkvi_pieces_find(&added->tokens, token, n_bytes);
}

/* ---- Finding --------------------------------------------------------------------------------- */

/* The longest token at text[at]; -1 if there is none. */
static int32_t token_at(const struct qkvi_added_pass *pass, const qkvi_added_walk *walk,
                        size_t *length) {
    if (!pass->first[(unsigned char)walk->text[walk->at]]) return -1;
    const qkvi_prefix whole = { 0, pass->patterns.n_sorted, 0 };
    return qkvi_pieces_longest(&pass->patterns, whole, walk->text + walk->at, walk->end - walk->at,
                               length);
}

/* Where the character that ends at `end` begins; begin < end. */
static uint32_t char_before(const char *text, uint32_t begin, uint32_t end) {
    uint32_t at = end - 1;
    while (at > begin && ((unsigned char)text[at] & 0xC0) == 0x80) at--;
    return at;
}

static int is_word_at(const char *text, uint32_t at, uint32_t end) {
    int32_t code = 0;
    qkvi_utf8_next(text + at, end - at, &code);
    return qkvi_char_is_word(code);
}

static int is_inside_word(const qkvi_added_walk *walk, uint32_t begin, uint32_t end) {
    const char *text = walk->text;
    if (begin > walk->begin && is_word_at(text, char_before(text, walk->begin, begin), begin))
        return 1;
    return end < walk->end && is_word_at(text, end, walk->end);
}

static uint32_t before_spaces(const char *text, uint32_t begin, uint32_t end) {
    while (end > begin) {
        const uint32_t at = char_before(text, begin, end);
        int32_t code = 0;
        qkvi_utf8_next(text + at, end - at, &code);
        if (qkvi_char_group_of(code) != QKVI_GROUP_SPACE) break;
        end = at;
    }
    return end;
}

static uint32_t behind_spaces(const char *text, uint32_t begin, uint32_t end) {
    while (begin < end) {
        int32_t code = 0;
        const uint32_t length = (uint32_t)qkvi_utf8_next(text + begin, end - begin, &code);
        if (qkvi_char_group_of(code) != QKVI_GROUP_SPACE) break;
        begin += length;
    }
    return begin;
}

int qkvi_added_next(const qkvi_added *added, int pass, qkvi_added_walk *walk,
                    qkvi_added_match *match) {
    const struct qkvi_added_pass *const tokens = &added->passes[pass];
    while (tokens->patterns.n_sorted > 0 && walk->at < walk->end) {
        size_t length = 0;
        const int32_t id = token_at(tokens, walk, &length);
        if (id < 0) {
            walk->at++;
            continue;
        }
        const unsigned flags = added->flags[id];
        uint32_t begin = walk->at, end = begin + (uint32_t)length;
        walk->at = end;
        if ((flags & added->skips) || added->skips == QKVI_ADDED_ALL) continue;
        if ((flags & QKVI_ADDED_SINGLE_WORD) && is_inside_word(walk, begin, end)) continue;
        if (flags & QKVI_ADDED_LSTRIP) begin = before_spaces(walk->text, walk->from, begin);
        if (flags & QKVI_ADDED_RSTRIP) end = behind_spaces(walk->text, end, walk->end);
        *match = (qkvi_added_match){ id, begin, end };
        walk->from = end;
        return 1;
    }
    return 0;
}

void qkvi_added_trim(const char *text, int keep_first, qkvi_added_match *match) {
    const uint32_t begin = match->begin, first = behind_spaces(text, begin, match->end);
    const int is_one = first > begin && char_before(text, begin, first) == begin;
    if (!(keep_first && begin == 0 && is_one)) match->begin = first;
    match->end = before_spaces(text, match->begin, match->end);
}
