/** See added.h. Time is linear: white space is looked at once for each token that takes it. */
#include "model/text/added.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"
#include "model/text/unicode.h"

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
    const int pass = pass_of(flags);
    qkvi_pieces *const other = &added->passes[!pass].pieces;
    if (id < other->n_ids) other->tokens[id].length = -1;
    added->flags[id] = (uint8_t)flags;
    return qkvi_pieces_add(&added->passes[pass].pieces, id, token, n_bytes);
}

/*
 * A token that begins with white space could lie in what the one before it took. The reference then
 * has the same bytes in two tokens; here ranges never overlap.
 */
static int may_overlap(const qkvi_added *added) {
    int strips = 0, begins = 0;
    for (int32_t id = 0; id < added->n_ids; id++) {
        size_t n_bytes = 0;
        int32_t code = 0;
        const char *token = qkvi_added_token(added, id, &n_bytes);
        if (token == NULL || n_bytes == 0) continue;
        qkvi_utf8_next(token, n_bytes, &code);
        begins |= qkvi_char_group_of(code) == QKVI_GROUP_SPACE;
        strips |= (added->flags[id] & QKVI_ADDED_RSTRIP) != 0;
    }
    return strips && begins;
}

qkv_status qkvi_added_seal(qkvi_added *added) {
    if (may_overlap(added)) return QKV_ERR_UNSUPPORTED;
    for (int p = 0; p < QKVI_ADDED_PASSES; p++) {
        struct qkvi_added_pass *pass = &added->passes[p];
        const qkvi_pieces *pieces = &pass->pieces;
        QKV_TRY(qkvi_pieces_seal(&pass->pieces));
        for (int32_t i = 0; i < pieces->n_sorted; i++) {
            const struct qkvi_piece token = pieces->tokens[pieces->sorted[i]];
            if (token.length > 0) pass->first[(unsigned char)pieces->bytes[token.offset]] = 1;
        }
    }
    return QKV_OK;
}

void qkvi_added_free(qkvi_added *added) {
    for (int p = 0; p < QKVI_ADDED_PASSES; p++) qkvi_pieces_free(&added->passes[p].pieces);
    free(added->flags);
    *added = (qkvi_added){ 0 };
}

const char *qkvi_added_token(const qkvi_added *added, int32_t id, size_t *n_bytes) {
    if (id < 0 || id >= added->n_ids) return NULL;
    return qkvi_pieces_token(&added->passes[pass_of(added->flags[id])].pieces, id, n_bytes);
}

int qkvi_added_listed(const qkvi_added *added, const char *token, size_t n_bytes) {
    for (int32_t id = 0; id < added->n_ids; id++) {
        size_t n = 0;
        const char *other = qkvi_added_token(added, id, &n);
        if (other && n == n_bytes && memcmp(other, token, n) == 0) return 1;
    }
    return 0;
}

int32_t qkvi_added_find(const qkvi_added *added, const char *token, size_t n_bytes) {
    const int32_t id = qkvi_pieces_find(&added->passes[0].pieces, token, n_bytes);
    return id >= 0 ? id : qkvi_pieces_find(&added->passes[1].pieces, token, n_bytes);
}

/* ---- Finding --------------------------------------------------------------------------------- */

/* The longest token at text[at]; -1 if there is none. */
static int32_t token_at(const struct qkvi_added_pass *pass, const qkvi_added_walk *walk,
                        size_t *length) {
    if (!pass->first[(unsigned char)walk->text[walk->at]]) return -1;
    const qkvi_prefix whole = { 0, pass->pieces.n_sorted, 0 };
    return qkvi_pieces_longest(&pass->pieces, whole, walk->text + walk->at, walk->end - walk->at,
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
    while (tokens->pieces.n_sorted > 0 && walk->at < walk->end) {
        size_t length = 0;
        const int32_t id = token_at(tokens, walk, &length);
        if (id < 0) {
            walk->at++;
            continue;
        }
        const unsigned flags = added->flags[id];
        uint32_t begin = walk->at, end = begin + (uint32_t)length;
        walk->at = end;
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
