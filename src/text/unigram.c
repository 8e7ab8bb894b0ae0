/*
 * Unigram as a kind of tokenizer: see unigram.h. With best[0] = 0,
 *
 *     best[e] = max over pieces t = word[s … e) of best[s] + score(t)
 *
 * in double, rounded after each addition; best[e] is replaced only by a larger sum, so of equal
 * paths the one whose last piece begins first stays. A character that is no piece is unknown.
 * Neighbouring unknown characters are joined, and looked up as a whole.
 */
#include "text/unigram.h"

#include <assert.h>
#include <float.h>

#include "files/utf8.h"
#include "text/unicode.h"

#define NOWHERE UINT32_MAX

/* The best path to a place: its sum, its last piece and where that begins. */
struct best {
    double score;
    int32_t id;
    uint32_t from;
};

/* One call of encode. */
struct work {
    const qkv_tokenizer *tokenizer;
    qkvi_tokens *list;
    qkvi_normal_text normal, spare;
    qkvi_normal_text words; /* those of a stretch, one after the other */
    struct best *best;
    size_t capacity;
};

/* ---- The best path --------------------------------------------------------------------------- */

static void offer(struct best *best, double score, int32_t id, uint32_t from) {
    if (best->from == NOWHERE || score > best->score) *best = (struct best){ score, id, from };
}

/* All pieces that begin at a character of some bytes. */
static void extend(const qkvi_unigram *model, const char *word, uint32_t n, struct best *best,
                   uint32_t from, uint32_t n_char) {
    const qkvi_trie_unit *const units = model->trie.units;
    const double so_far = best[from].score;
    int is_known = 0;
    uint32_t node = 0;
    for (uint32_t at = from; at < n && units;) {
        node = qkvi_trie_child(units, node, (uint8_t)word[at++]);
        if (node == 0) break;
        if (units[node].id < 0) continue;
        offer(&best[at], model->scores[units[node].id] + so_far, units[node].id, from);
        is_known |= at - from == n_char;
    }
    if (!is_known) offer(&best[from + n_char], model->unknown + so_far, model->unk, from);
}

/*
 * Turns the links of the best path round: best[s].from is where the piece at s ends, and id is its.
 */
static void turn_round(struct best *best, uint32_t n) {
    uint32_t end = n, begin = best[n].from;
    int32_t id = best[n].id;
    for (;;) {
        const struct best before = best[begin];
        best[begin].from = end;
        best[begin].id = id;
        if (begin == 0) return;
        end = begin;
        begin = before.from;
        id = before.id;
    }
}

/* What no piece writes. */
static qkv_status push_unknown(const struct work *work, const char *text, uint32_t begin,
                               uint32_t end) {
    const qkvi_unigram *const model = work->tokenizer->model;
    const int32_t id = qkvi_pieces_find(&work->tokenizer->pieces, text + begin, end - begin);
    int has_bytes = model->byte_fallback && id < 0;
    for (uint32_t i = begin; has_bytes && i < end; i++)
        has_bytes = model->byte_ids[(unsigned char)text[i]] >= 0;
    if (!has_bytes) return qkvi_tokens_push(work->list, id < 0 ? model->unk : id, begin, end);
    for (uint32_t i = begin; i < end; i++)
        QKV_TRY(qkvi_tokens_push(work->list, model->byte_ids[(unsigned char)text[i]], i, i + 1));
    return QKV_OK;
}

static qkv_status push_path(const struct work *work, const char *text, uint32_t begin, uint32_t n) {
    const qkvi_unigram *const model = work->tokenizer->model;
    const struct best *const best = work->best;
    for (uint32_t from = 0, to; from < n; from = to) {
        const int32_t id = best[from].id;
        to = best[from].from;
        while (id == model->unk && to < n && best[to].id == model->unk) to = best[to].from;
        if (id == model->unk)
            QKV_TRY(push_unknown(work, text, begin + from, begin + to));
        else
            QKV_TRY(qkvi_tokens_push(work->list, id, begin + from, begin + to));
    }
    return QKV_OK;
}

/* A word of words; places of its tokens are those of words. */
static qkv_status push_word(struct work *work, uint32_t begin, uint32_t end) {
    const qkvi_unigram *const model = work->tokenizer->model;
    const char *const text = work->words.bytes.bytes, *const word = text + begin;
    const uint32_t n = end - begin;
    QKV_TRY(qkvi_reserve(&work->best, &work->capacity, (size_t)n + 1, sizeof *work->best));
    work->best[0] = (struct best){ 0, -1, 0 };
    for (uint32_t i = 1; i <= n; i++) work->best[i].from = NOWHERE;
    for (uint32_t at = 0, length; at < n; at += length) {
        int32_t code = 0;
        length = (uint32_t)qkvi_utf8_next(word + at, n - at, &code);
        extend(model, word, n, work->best, at, length);
    }
    turn_round(work->best, n);
    return push_path(work, text, begin, n);
}

/* ---- Stretches ------------------------------------------------------------------------------- */

static int32_t code_at(const qkvi_normal_text *text, size_t i) {
    int32_t code = 0;
    const size_t at = text->chars[i].offset;
    qkvi_utf8_next(text->bytes.bytes + at, text->bytes.n - at, &code);
    return code;
}

static int is_white(const qkvi_normal_text *text, size_t i) {
    return qkvi_char_group_of(code_at(text, i)) == QKVI_GROUP_SPACE;
}

/* Characters [first … last) as Metaspace writes them, behind what is in words. */
static qkv_status write_words(struct work *work, const qkvi_normal_text *normal, size_t first,
                              size_t last) {
    const qkvi_metaspace *const rules = &qkvi_unigram_of(work->tokenizer)->metaspace;
    const qkvi_word_char front = normal->chars[first];
    const char *const text = normal->bytes.bytes + front.offset;
    if (rules->is_on &&
        qkvi_metaspace_prepends(rules, text, normal->bytes.n - front.offset, front.begin))
        QKV_TRY(qkvi_normal_text_put(&work->words, QKVI_META_CODE, front.begin, front.begin));
    for (size_t i = first; i < last; i++) {
        const int32_t code = code_at(normal, i);
        QKV_TRY(qkvi_normal_text_put(&work->words,
                                     rules->is_on && code == ' ' ? QKVI_META_CODE : code,
                                     normal->chars[i].begin, normal->chars[i].end));
    }
    return QKV_OK;
}

/* Characters [first … last), of which none is white space if words end there. */
static qkv_status push_part(struct work *work, const qkvi_normal_text *normal, size_t first,
                            size_t last) {
    const int splits = qkvi_unigram_of(work->tokenizer)->metaspace.splits;
    const uint32_t begin = (uint32_t)work->words.bytes.n;
    QKV_TRY(write_words(work, normal, first, last));
    const uint32_t end = (uint32_t)work->words.bytes.n;
    for (uint32_t at = begin, next; at < end; at = next) {
        next = splits ? qkvi_metaspace_word_end(work->words.bytes.bytes, at, end) : end;
        QKV_TRY(push_word(work, at, next));
    }
    return QKV_OK;
}

/*
 * The raw places of the tokens from a number on, whose places are those of words, behind a place.
 * Of several that come of the same bytes the first has them.
 */
static void map_places(const qkvi_normal_text *words, uint32_t before, qkvi_tokens *list,
                       int64_t token) {
    size_t i = 0;
    for (; token < list->n; token++) {
        qkvi_token *const t = &list->tokens[token];
        const uint32_t end = t->end;
        while (i == words->n_chars || words->chars[i].offset > t->begin)
            i--; /* a byte of its character */
        t->begin = t->end = words->chars[i].begin;
        for (; i < words->n_chars && words->chars[i].offset < end; i++)
            t->end = words->chars[i].end;
        if (t->begin < before) t->begin = before;
        if (t->end < t->begin) t->end = t->begin;
        before = t->end;
    }
}

static qkv_status encode_normal(void *user, const qkvi_normal_text *normal, size_t first,
                                size_t last) {
    struct work *const work = user;
    const int splits = qkvi_unigram_of(work->tokenizer)->splits_white;
    const int64_t token = work->list->n;
    work->words.bytes.n = 0;
    work->words.n_chars = 0;
    for (size_t i = first, end; i < last; i = end) {
        while (splits && i < last && is_white(normal, i)) i++;
        end = splits ? i : last;
        while (end < last && !is_white(normal, end)) end++;
        if (i < end) QKV_TRY(push_part(work, normal, i, end));
    }
    map_places(&work->words, first > 0 ? normal->chars[first - 1].end : 0, work->list, token);
    return QKV_OK;
}

static qkv_status normalize(void *user, const char *text, uint32_t begin, uint32_t end,
                            qkvi_normal_text *normal) {
    struct work *const work = user;
    return qkvi_unigram_normalize(qkvi_unigram_of(work->tokenizer), text, begin, end, normal,
                                  &work->spare);
}

/* Of a tokenizer without steps. */
static qkv_status encode(void *user, const char *text, uint32_t begin, uint32_t end) {
    struct work *const work = user;
    QKV_TRY(normalize(work, text, begin, end, &work->normal));
    return encode_normal(work, &work->normal, 0, work->normal.n_chars);
}

static void finish(void *user) {
    struct work *const work = user;
    if (work == NULL) return;
    qkvi_normal_text_free(&work->normal);
    qkvi_normal_text_free(&work->spare);
    qkvi_normal_text_free(&work->words);
    free(work->best);
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
    return qkvi_metaspace_decode(tokenizer, &qkvi_unigram_of(tokenizer)->metaspace, ids, n, 0,
                                 text);
}

static qkv_status decode_on(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                            qkvi_growing *text) {
    return qkvi_metaspace_decode(tokenizer, &qkvi_unigram_of(tokenizer)->metaspace, ids, n, 1,
                                 text);
}

static qkv_status seal(qkv_tokenizer *tokenizer, qkv_error *error) {
    qkvi_unigram *const model = tokenizer->model;
    double smallest = DBL_MAX;
    (void)error;
    for (int32_t id = 0; id < tokenizer->pieces.n_ids; id++)
        if (model->scores[id] < smallest) smallest = model->scores[id];
    model->unknown = smallest - 10;
    qkvi_metaspace_find_bytes(tokenizer, model->byte_ids);
    return QKV_OK;
}

static void free_model(void *user) {
    qkvi_unigram *const model = user;
    if (model == NULL) return;
    qkvi_trie_free(&model->trie);
    qkvi_charsmap_free(&model->map);
    free(model->scores);
    free(model);
}

const qkvi_tokenizer_kind qkvi_unigram_kind = {
    .name = "Unigram",
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
    .free = free_model,
};

qkv_tokenizer *qkvi_unigram_new(void) {
    qkvi_unigram *const model = calloc(1, sizeof *model);
    if (model == NULL) return NULL;
    model->unk = -1;
    return qkvi_tokenizer_new(&qkvi_unigram_kind, model);
}

qkvi_unigram *qkvi_unigram_of(const qkv_tokenizer *tokenizer) {
    assert(tokenizer->kind == &qkvi_unigram_kind);
    return tokenizer->model;
}
