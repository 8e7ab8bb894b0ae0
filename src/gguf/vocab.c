/* Vocabularies of GGUF files: see vocab.h. */
#include "gguf/vocab.h"

#include "core/sort.h"

#include <inttypes.h>

#include "files/encode.h"
#include "files/utf8.h"
#include "text/tokenizer_words.h"

#define TOKENS "tokenizer.ggml.tokens"

/* ---- Reading --------------------------------------------------------------------------------- */

static qkv_status take_tokens(qkvi_gguf_vocab *v) {
    const qkvi_gguf_key *key;
    QKV_TRY(qkvi_gguf_take_array(v->keys, TOKENS, QKVI_GGUF_TEXT_VALUE, &key));
    if (!key)
        return QKVI_GGUF_FAIL(v->keys, QKV_ERR_FORMAT,
                              "key '%s' is missing: the file has no vocabulary", TOKENS);
    if (key->count < 1 || key->count > QKVI_VOCAB_MAX_TOKENS)
        return QKVI_GGUF_FAIL(v->keys, QKV_ERR_LIMIT,
                              "key '%s' has %" PRIu64 " tokens, not from 1 to %d", TOKENS,
                              key->count, QKVI_VOCAB_MAX_TOKENS);
    v->tokens = malloc((size_t)key->count * sizeof *v->tokens);
    v->kinds = malloc((size_t)key->count);
    v->sorted = malloc((size_t)key->count * sizeof *v->sorted);
    if (!v->tokens || !v->kinds || !v->sorted)
        return QKVI_GGUF_FAIL(v->keys, QKV_ERR_MEMORY, "no memory for its vocabulary");
    uint64_t at = key->at;
    for (; v->n < (int64_t)key->count; v->n++) {
        const qkvi_gguf_text token = v->tokens[v->n] = qkvi_gguf_text_at(v->keys->file, &at);
        v->kinds[v->n] = QKVI_GGUF_NORMAL;
        if (!memchr(token.bytes, '\0', token.n) && qkvi_utf8_valid(token.bytes, token.n) == token.n)
            continue;
        return QKVI_GGUF_FAIL(v->keys, QKV_ERR_FORMAT,
                              "token %" PRId64 " of '%s' is no UTF-8, or holds a NUL", v->n,
                              TOKENS);
    }
    return QKV_OK;
}

static qkv_status take_kinds(qkvi_gguf_vocab *v) {
    static const char name[] = "tokenizer.ggml.token_type";
    const qkvi_gguf_key *const key = qkvi_gguf_ask(v->keys, name);
    if (!key) return QKV_OK;
    if (!key->is_array || key->count != (uint64_t)v->n)
        return QKVI_GGUF_FAIL(v->keys, QKV_ERR_FORMAT,
                              "key '%s' is no array of as many as there are tokens, %" PRId64, name,
                              v->n);
    for (int64_t i = 0; i < v->n; i++) {
        int64_t kind;
        QKV_TRY(qkvi_gguf_int_of(v->keys, key, (uint64_t)i, &kind));
        if (kind < QKVI_GGUF_NORMAL || kind > QKVI_GGUF_BYTE)
            return QKVI_GGUF_FAIL(v->keys, QKV_ERR_FORMAT,
                                  "key '%s' has %" PRId64 " for token %" PRId64
                                  ", which is not from 1 to 6",
                                  name, kind, i);
        v->kinds[i] = (uint8_t)kind;
    }
    return QKV_OK;
}

/* The file's own spelling of a separator. */
static const char *const role_names[QKVI_GGUF_N_ROLES] = { "bos",     "eos",     "eot",
                                                           "eom",     "unknown", "seperator",
                                                           "padding", "cls",     "mask" };

static qkv_status take_roles(qkvi_gguf_vocab *v) {
    for (int r = 0; r < QKVI_GGUF_N_ROLES; r++) {
        char name[64];
        v->roles[r] = -1;
        snprintf(name, sizeof name, "tokenizer.ggml.%s_token_id", role_names[r]);
        QKV_TRY(qkvi_gguf_take_int(v->keys, name, &v->roles[r]));
        /* Files write -1, as an unsigned number, for a token that they do not have. */
        if (v->roles[r] == UINT32_MAX) v->roles[r] = -1;
        if (v->roles[r] >= -1 && v->roles[r] < v->n) continue;
        return QKVI_GGUF_FAIL(v->keys, QKV_ERR_FORMAT,
                              "key '%s' is %" PRId64 ", but there are %" PRId64 " tokens", name,
                              v->roles[r], v->n);
    }
    return QKV_OK;
}

static size_t spaces(qkvi_gguf_text token) {
    size_t n = 0;
    while (n < token.n && token.bytes[n] == ' ') n++;
    return n == token.n && n > 1 ? n : 0;
}

/* U+2581, as often as the longest token has spaces. */
static qkv_status mark_spaces(qkvi_gguf_vocab *v) {
    static const char mark[] = "\xE2\x96\x81";
    enum { MARK = sizeof mark - 1 };
    size_t longest = 0;
    for (int64_t id = 0; id < v->n; id++)
        if (spaces(v->tokens[id]) > longest) longest = spaces(v->tokens[id]);
    v->marks = qkvi_malloc_array(longest + 1, MARK);
    if (!v->marks) return QKVI_GGUF_FAIL(v->keys, QKV_ERR_MEMORY, "no memory for its vocabulary");
    for (size_t i = 0; i < longest; i++) memcpy(v->marks + MARK * i, mark, MARK);
    for (int64_t id = 0; id < v->n; id++) {
        const size_t n = spaces(v->tokens[id]);
        if (n == 0) continue;
        v->tokens[id] = (qkvi_gguf_text){ v->marks, MARK * n };
        if (v->kinds[id] == QKVI_GGUF_USER) v->kinds[id] = QKVI_GGUF_NORMAL;
    }
    return QKV_OK;
}

/* ---- Finding --------------------------------------------------------------------------------- */

static int compare(qkvi_gguf_text a, const char *bytes, size_t n) {
    const int order = memcmp(a.bytes, bytes, a.n < n ? a.n : n);
    return order ? order : (a.n > n) - (a.n < n);
}

/* qkvi_sort's, by the tokens, then by the ids. */
static int by_token(const void *left, const void *right, void *user) {
    const qkvi_gguf_vocab *const v = user;
    const int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    const int order = compare(v->tokens[a], v->tokens[b].bytes, v->tokens[b].n);
    return order ? order : (a > b) - (a < b);
}

static qkv_status sort_tokens(qkvi_gguf_vocab *v) {
    for (int64_t i = 0; i < v->n; i++)
        if (v->kinds[i] != QKVI_GGUF_UNUSED) v->sorted[v->n_sorted++] = (int32_t)i;
    qkvi_sort(v->sorted, (size_t)v->n_sorted, sizeof *v->sorted, by_token, v);
    for (int64_t i = 1; i < v->n_sorted; i++) {
        const qkvi_gguf_text a = v->tokens[v->sorted[i - 1]], b = v->tokens[v->sorted[i]];
        if (compare(a, b.bytes, b.n) == 0)
            return QKVI_GGUF_FAIL(
                v->keys, QKV_ERR_FORMAT, "key '%s' has '%s' twice, as %" PRId32 " and %" PRId32,
                TOKENS, QKVI_PRINTABLE_BYTES(160, b.bytes, b.n), v->sorted[i - 1], v->sorted[i]);
    }
    return QKV_OK;
}

int32_t qkvi_gguf_token(const qkvi_gguf_vocab *v, const char *bytes, size_t n) {
    int64_t low = 0, high = v->n_sorted;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = compare(v->tokens[v->sorted[middle]], bytes, n);
        if (order == 0) return v->sorted[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

qkv_status qkvi_gguf_vocab_read(const qkvi_gguf_keys *keys, bool marks, qkvi_gguf_vocab *vocab) {
    *vocab = (qkvi_gguf_vocab){ .keys = keys };
    QKV_TRY(take_tokens(vocab));
    QKV_TRY(take_kinds(vocab));
    if (marks) QKV_TRY(mark_spaces(vocab));
    QKV_TRY(take_roles(vocab));
    return sort_tokens(vocab);
}

void qkvi_gguf_vocab_free(qkvi_gguf_vocab *vocab) {
    free(vocab->tokens);
    free(vocab->kinds);
    free(vocab->sorted);
    free(vocab->marks);
    *vocab = (qkvi_gguf_vocab){ 0 };
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_pair(qkvi_bytes *out, size_t index, qkvi_gguf_text left, qkvi_gguf_text right) {
    qkvi_bytes_text(out, index ? ",[" : "[");
    qkvi_json_string(out, left.bytes, left.n);
    qkvi_bytes_text(out, ",");
    qkvi_json_string(out, right.bytes, right.n);
    qkvi_bytes_text(out, "]");
}

/* ---- Merges as they are ---------------------------------------------------------------------- */

/* "a b": cut at the first space behind its first byte. */
static bool cut(qkvi_gguf_text merge, qkvi_gguf_text *left, qkvi_gguf_text *right) {
    const char *const space = merge.n > 2 ? memchr(merge.bytes + 1, ' ', merge.n - 1) : NULL;
    if (!space) return false;
    *left = (qkvi_gguf_text){ merge.bytes, (size_t)(space - merge.bytes) };
    *right = (qkvi_gguf_text){ space + 1, merge.n - left->n - 1 };
    return right->n > 0;
}

qkv_status qkvi_gguf_put_merges(const qkvi_gguf_vocab *v, qkvi_bytes *out) {
    static const char name[] = "tokenizer.ggml.merges";
    const qkvi_gguf_key *key;
    QKV_TRY(qkvi_gguf_take_array(v->keys, name, QKVI_GGUF_TEXT_VALUE, &key));
    if (!key) return QKVI_GGUF_FAIL(v->keys, QKV_ERR_FORMAT, "key '%s' is missing", name);
    uint64_t at = key->at;
    qkvi_bytes_text(out, "[");
    for (uint64_t i = 0; i < key->count; i++) {
        const qkvi_gguf_text merge = qkvi_gguf_text_at(v->keys->file, &at);
        qkvi_gguf_text left, right;
        if (!cut(merge, &left, &right) || qkvi_gguf_token(v, left.bytes, left.n) < 0 ||
            qkvi_gguf_token(v, right.bytes, right.n) < 0)
            return QKVI_GGUF_FAIL(v->keys, QKV_ERR_FORMAT,
                                  "merge %" PRIu64 " of '%s', '%s', is no two tokens with a space "
                                  "between them",
                                  i, name, QKVI_PRINTABLE_BYTES(160, merge.bytes, merge.n));
        put_pair(out, i, left, right);
    }
    qkvi_bytes_text(out, "]");
    return QKV_OK;
}

/* ---- Merges of scores ------------------------------------------------------------------------ */

typedef struct merge {
    int32_t left, right, whole;
    float score; /* the higher, the earlier */
} merge;

typedef struct merging {
    const qkvi_gguf_vocab *vocab;
    bool by_id;
    merge *merges;
    size_t n, capacity;
} merging;

static int64_t characters(qkvi_gguf_text text) {
    int64_t n = 0;
    for (size_t i = 0; i < text.n; i++) n += ((unsigned char)text.bytes[i] & 0xC0) != 0x80;
    return n;
}

/*
 * Of equal scores and lengths as Python's stable sort has it: later tokens, and later pairs, after
 * others.
 */
static int earlier(const void *left, const void *right, void *user) {
    const merge *const a = left, *const b = right;
    const qkvi_gguf_text *const tokens = ((const merging *)user)->vocab->tokens;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    const int64_t l[2] = { characters(tokens[a->left]), characters(tokens[b->left]) };
    if (l[0] != l[1]) return l[0] > l[1] ? -1 : 1;
    const int64_t r[2] = { characters(tokens[a->right]), characters(tokens[b->right]) };
    if (r[0] != r[1]) return r[0] > r[1] ? -1 : 1;
    return (a->whole > b->whole) - (a->whole < b->whole);
}

/*
 * Tokens that merges may make, or be made of. Texts of Gemma have runs of spaces and of line feeds,
 * which are tokens of its user and made by merges, too.
 */
static bool may_merge(const merging *m, int32_t id, bool as_whole) {
    const uint8_t kind = m->vocab->kinds[id];
    return kind == QKVI_GGUF_NORMAL || (kind == QKVI_GGUF_BYTE && !as_whole) ||
           (m->by_id && kind == QKVI_GGUF_USER);
}

/* All cuts of a token into two tokens. */
static qkv_status add_cuts(merging *m, int32_t whole, float score) {
    const qkvi_gguf_text text = m->vocab->tokens[whole];
    for (size_t at = 1; at < text.n; at++) {
        if (((unsigned char)text.bytes[at] & 0xC0) == 0x80) continue;
        const int32_t left = qkvi_gguf_token(m->vocab, text.bytes, at);
        if (left < 0 || !may_merge(m, left, false)) continue;
        const int32_t right = qkvi_gguf_token(m->vocab, text.bytes + at, text.n - at);
        if (right < 0 || !may_merge(m, right, false)) continue;
        if (qkvi_reserve(&m->merges, &m->capacity, m->n + 1, sizeof *m->merges) != QKV_OK)
            return QKVI_GGUF_FAIL(m->vocab->keys, QKV_ERR_MEMORY, "no memory for its merges");
        m->merges[m->n++] = (merge){ left, right, whole, score };
    }
    return QKV_OK;
}

qkv_status qkvi_gguf_find_scores(const qkvi_gguf_vocab *v, const qkvi_gguf_key **scores) {
    static const char name[] = "tokenizer.ggml.scores";
    const qkvi_gguf_key *const key = *scores = qkvi_gguf_ask(v->keys, name);
    if (!key) return QKVI_GGUF_FAIL(v->keys, QKV_ERR_FORMAT, "key '%s' is missing", name);
    const bool is_number = key->kind == QKVI_GGUF_F32_VALUE || key->kind == QKVI_GGUF_I32_VALUE;
    if (key->is_array && is_number && key->count == (uint64_t)v->n) return QKV_OK;
    return QKVI_GGUF_FAIL(v->keys, QKV_ERR_FORMAT,
                          "key '%s' is no array of f32 or i32 of as many as there are tokens, "
                          "%" PRId64,
                          name, v->n);
}

static qkv_status find_merges(merging *m, const qkvi_gguf_key *scores) {
    const qkvi_gguf_file *const file = m->vocab->keys->file;
    for (int32_t id = 0; id < m->vocab->n; id++) {
        if (!may_merge(m, id, true)) continue;
        const float score = m->by_id ? -(float)id /* exact: below 2^24 */
                                     : (float)qkvi_gguf_real_of(file, scores, (uint64_t)id);
        if (score != score)
            return QKVI_GGUF_FAIL(m->vocab->keys, QKV_ERR_FORMAT,
                                  "the score of token %d is not a number", (int)id);
        QKV_TRY(add_cuts(m, id, score));
    }
    return QKV_OK;
}

qkv_status qkvi_gguf_put_merges_of_scores(const qkvi_gguf_vocab *v, bool by_id, qkvi_bytes *out) {
    merging m = { .vocab = v, .by_id = by_id };
    const qkvi_gguf_key *scores;
    QKV_TRY(qkvi_gguf_find_scores(v, &scores));
    const qkv_status status = find_merges(&m, scores);
    if (status == QKV_OK && m.n) qkvi_sort(m.merges, m.n, sizeof *m.merges, earlier, &m);
    qkvi_bytes_text(out, "[");
    for (size_t i = 0; status == QKV_OK && i < m.n; i++)
        put_pair(out, i, v->tokens[m.merges[i].left], v->tokens[m.merges[i].right]);
    qkvi_bytes_text(out, "]");
    free(m.merges);
    return status;
}
