/**
 * The best segmentation of a text: sentencepiece src/unigram_model.cc, EncodeOptimized.
 *
 *     best[0] = 0,   best[e] = max over pieces t = text[s … e) of best[s] + score(t)
 *
 * From each character s that is reached, one walk of the trie finds all pieces that begin there. A
 * character that is no piece is unknown, with the smallest score - 10. Sums are floats, rounded
 * after each addition, and replace best[e] only if they are larger: of equal paths the one whose
 * last piece begins first wins. If best[s] is outside [-100000, 100000], it is subtracted from
 * itself and from all later ones, so that a long text is as exact as a short one. A user-defined
 * piece of n bytes has the score 0.1 n - 0.1. This was found by tests of release 0.2.3; its source
 * does not show all of it. Releases up to 0.2.0 compared sums in double before they rounded them,
 * never subtracted, and gave user-defined pieces n times the largest score - 0.1; so ties could be
 * decided otherwise, and were in texts of 300 KB.
 *
 * A piece consists of whole characters, and characters are visited in order, so best[s] is known
 * when s is visited. The map of a hostile model may break characters: a step then still has the
 * length that the first byte says, cut at the end of the text.
 */
#include <math.h>

#include "text/spm.h"

#define NOWHERE UINT32_MAX

static const float furthest = 100000.0f;

/* The best path to a place: its sum, its last piece and where that begins. */
struct best {
    float score;
    int32_t id;
    uint32_t from;
};

static uint32_t char_bytes(const char *at, uint32_t left) {
    const unsigned char first = (unsigned char)*at;
    const uint32_t n = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    return n < left ? n : left;
}

static void offer(struct best *best, float score, int32_t id, uint32_t from) {
    if (best->from == NOWHERE || score > best->score) *best = (struct best){ score, id, from };
}

/* All pieces that begin at from, a character of n_char bytes. Returns where the longest ends. */
static uint32_t extend(const qkvi_spm *spm, const qkvi_spm_text *text, struct best *best,
                       uint32_t from, uint32_t n_char) {
    const qkvi_trie_unit *const units = spm->trie.units;
    const float so_far = best[from].score;
    int is_known = 0;
    uint32_t node = 0, end = from + n_char;
    for (uint32_t at = from; at < text->n;) {
        node = qkvi_trie_child(units, node, (uint8_t)text->bytes[at++]);
        if (node == 0) break;
        if (units[node].id < 0) continue;
        offer(&best[at], units[node].score + so_far, units[node].id, from);
        is_known |= at - from == n_char;
        if (at > end) end = at;
    }
    if (!is_known) offer(&best[from + n_char], spm->unknown_score + so_far, spm->unk, from);
    return end;
}

/* Takes best[at] from all that is known from there up to end. */
static void come_back(struct best *best, uint32_t at, uint32_t end) {
    const float far = best[at].score;
    for (uint32_t i = at; i <= end; i++)
        if (best[i].from != NOWHERE) best[i].score -= far;
}

/* Turns the links of the best path round: best[s].from is where the piece at s ends. */
static void turn_round(struct best *best, uint32_t n) {
    uint32_t end = n, begin = best[n].from;
    while (begin > 0) {
        const uint32_t before = best[begin].from;
        best[begin].from = end;
        end = begin;
        begin = before;
    }
    best[0].from = end;
}

static qkv_status emit_bytes(const qkvi_spm *spm, const qkvi_spm_token *token,
                             qkvi_spm_token_fn *emit, void *user) {
    for (uint32_t i = 0; i < token->n_bytes; i++) {
        const int32_t id = spm->byte_ids[(unsigned char)token->piece[i]];
        const struct qkvi_text_piece piece = spm->pieces.tokens[id];
        const qkvi_spm_token byte = { .id = id,
                                      .begin = token->begin,
                                      .end = i + 1 == token->n_bytes ? token->end : token->begin,
                                      .piece = spm->pieces.bytes + piece.offset,
                                      .n_bytes = (uint32_t)piece.length };
        QKV_TRY(emit(user, &byte));
    }
    return QKV_OK;
}

static qkv_status emit_path(const qkvi_spm *spm, const qkvi_spm_text *text, const struct best *best,
                            qkvi_spm_token_fn *emit, void *user) {
    for (uint32_t from = 0; from < text->n;) {
        uint32_t to = best[from].from;
        const int32_t id = best[to].id;
        while (id == spm->unk && !spm->byte_fallback && to < text->n &&
               best[best[to].from].id == spm->unk)
            to = best[to].from;
        const qkvi_spm_token token = { id, text->origin[from], text->origin[to], text->bytes + from,
                                       to - from };
        if (id == spm->unk && spm->byte_fallback)
            QKV_TRY(emit_bytes(spm, &token, emit, user));
        else
            QKV_TRY(emit(user, &token));
        from = to;
    }
    return QKV_OK;
}

static qkv_status segment(const qkvi_spm *spm, const qkvi_spm_text *text, qkvi_spm_token_fn *emit,
                          void *user) {
    if (text->n == 0) return QKV_OK;
    struct best *best = qkvi_malloc_array((size_t)text->n + 1, sizeof *best);
    if (best == NULL) return QKV_ERR_MEMORY;
    best[0] = (struct best){ 0, -1, 0 };
    for (uint32_t i = 1; i <= text->n; i++) best[i].from = NOWHERE;
    for (uint32_t at = 0, end = 0; at < text->n;) {
        const uint32_t n_char = char_bytes(text->bytes + at, text->n - at);
        if (fabsf(best[at].score) > furthest) come_back(best, at, end);
        const uint32_t reached = extend(spm, text, best, at, n_char);
        if (reached > end) end = reached;
        at += n_char;
    }
    turn_round(best, text->n);
    const qkv_status status = emit_path(spm, text, best, emit, user);
    free(best);
    return status;
}

qkv_status qkvi_spm_encode(const qkvi_spm *spm, const char *bytes, uint32_t n_bytes,
                           qkvi_spm_token_fn *emit, void *user) {
    qkvi_spm_text text = { 0 };
    qkv_status status = qkvi_spm_normalize(&spm->rules, bytes, n_bytes, &text);
    if (status == QKV_OK) status = segment(spm, &text, emit, user);
    qkvi_spm_text_free(&text);
    return status;
}
