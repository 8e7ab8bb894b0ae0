/*
 * The lexicon of a grammar: strings, interned words, features.
 *
 * Words are interned by their lower-case key in an open-addressing table of a power of two, at most
 * half full. `uses` of a word lists all forms of lexemes that are spelled so: the matcher gets the
 * lexemes of a word of a sentence without a search.
 */
#include "train/grammar/words.h"

#include <stdarg.h>

enum { CHUNK_BYTES = 1 << 16, MAX_WORDS = 60000 };

/* Kept strings live in chunks that never move. */
struct qkvi_chunk {
    struct qkvi_chunk *next;
    size_t used;
    char bytes[CHUNK_BYTES];
};

qkv_status qkvi_reader_fail(const qkvi_reader *r, qkv_status status, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return qkvi_error_set(r->error, status, "%s:%d: %s", r->name, (int)r->line, text);
}

qkvi_quoted qkvi_token_quote(qkvi_grammar_token token) {
    qkvi_quoted quoted;
    qkvi_escape(quoted.text, sizeof quoted.text, token.text, (size_t)token.bytes);
    return quoted;
}

bool qkvi_token_is(qkvi_grammar_token token, const char *text) {
    return strlen(text) == (size_t)token.bytes && memcmp(token.text, text, strlen(text)) == 0;
}

qkv_status qkvi_reader_grow(const qkvi_reader *r, void *array, int32_t n, int32_t *capacity,
                            size_t size) {
    size_t room = (size_t)*capacity;
    if (qkvi_reserve(array, &room, (size_t)n + 1, size) != QKV_OK)
        return qkvi_reader_fail(r, QKV_ERR_MEMORY, "out of memory");
    *capacity = (int32_t)room;
    return QKV_OK;
}

qkv_status qkvi_reader_keep(const qkvi_reader *r, const char *text, int32_t bytes,
                            const char **kept) {
    struct qkvi_chunk *chunk = r->g->chunks;
    const size_t needed = (size_t)bytes + 1;
    if (!chunk || needed > CHUNK_BYTES - chunk->used) {
        chunk = malloc(sizeof *chunk);
        if (!chunk || needed > CHUNK_BYTES) {
            free(chunk);
            return qkvi_reader_fail(r, QKV_ERR_MEMORY, "out of memory");
        }
        chunk->next = r->g->chunks;
        chunk->used = 0;
        r->g->chunks = chunk;
    }
    char *const copy = chunk->bytes + chunk->used;
    memcpy(copy, text, (size_t)bytes);
    copy[bytes] = '\0';
    chunk->used += needed;
    *kept = copy;
    return QKV_OK;
}

/* ---- Words ---- */

uint64_t qkvi_word_hash(const char *text, size_t bytes) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < bytes; ++i)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static int32_t table_slot(const qkvi_grammar *g, const char *key, int32_t bytes) {
    const uint32_t mask = (uint32_t)g->n_word_table - 1;
    uint32_t slot = (uint32_t)qkvi_word_hash(key, (size_t)bytes) & mask;
    for (; g->word_table[slot]; slot = (slot + 1) & mask) {
        const char *const other = g->words[g->word_table[slot] - 1].key;
        if (strncmp(other, key, (size_t)bytes) == 0 && other[bytes] == '\0') break;
    }
    return (int32_t)slot;
}

int32_t qkvi_word_find(const qkvi_grammar *g, const char *key, int32_t bytes) {
    return g->n_word_table ? g->word_table[table_slot(g, key, bytes)] - 1 : -1;
}

/* Doubles the table when it is half full. */
static qkv_status table_grow(const qkvi_reader *r) {
    qkvi_grammar *const g = r->g;
    if (2 * (g->n_words + 1) < g->n_word_table) return QKV_OK;
    const int32_t n = g->n_word_table ? 2 * g->n_word_table : 1024;
    int32_t *const table = qkvi_calloc_array((size_t)n, sizeof *table);
    if (!table) return qkvi_reader_fail(r, QKV_ERR_MEMORY, "out of memory");
    free(g->word_table);
    g->word_table = table;
    g->n_word_table = n;
    for (int32_t w = 0; w < g->n_words; ++w)
        table[table_slot(g, g->words[w].key, (int32_t)strlen(g->words[w].key))] = w + 1;
    return QKV_OK;
}

/* A sentence that was said must split into the same words again. */
static qkv_status check_one_word(const qkvi_reader *r, qkvi_grammar_token token) {
    bool good = !qkvi_token_is(token, "[MASK]");
    for (int32_t i = 0; i < token.bytes && token.bytes > 1; ++i)
        good &= !qkvi_is_punctuation(token.text[i]);
    if (good) return QKV_OK;
    return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is not one word of a sentence",
                            qkvi_token_quote(token).text);
}

qkv_status qkvi_word_add(const qkvi_reader *r, qkvi_grammar_token token, int32_t *word) {
    qkvi_grammar *const g = r->g;
    if (token.bytes == 0 || token.bytes > QKVI_WORD_BYTES)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "the word '%s' has %d bytes; 1 to %d are allowed",
                                qkvi_token_quote(token).text, (int)token.bytes, QKVI_WORD_BYTES);
    QKV_TRY(check_one_word(r, token));
    char key[QKVI_WORD_BYTES];
    for (int32_t i = 0; i < token.bytes; ++i) key[i] = lower(token.text[i]);
    *word = qkvi_word_find(g, key, token.bytes);
    if (*word >= 0) return QKV_OK;
    if (g->n_words == MAX_WORDS)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d words", MAX_WORDS);
    QKV_TRY(table_grow(r));
    QKV_TRY(qkvi_reader_grow(r, &g->words, g->n_words, &g->cap_words, sizeof *g->words));
    qkvi_grammar_word new_word = { .hash = qkvi_word_hash(key, (size_t)token.bytes) };
    QKV_TRY(qkvi_reader_keep(r, token.text, token.bytes, &new_word.text));
    QKV_TRY(qkvi_reader_keep(r, key, token.bytes, &new_word.key));
    *word = g->n_words++;
    g->words[*word] = new_word;
    g->word_table[table_slot(g, key, token.bytes)] = *word + 1;
    return QKV_OK;
}

/* Counts the uses of each word, then places them. */
qkv_status qkvi_words_finish(const qkvi_reader *r) {
    qkvi_grammar *const g = r->g;
    for (int32_t pass = 0; pass < 2; ++pass) {
        for (int32_t w = 0; w < g->n_words; ++w) {
            qkvi_grammar_word *const word = &g->words[w];
            if (pass == 1 && word->n_uses) {
                word->uses = qkvi_malloc_array((size_t)word->n_uses, sizeof *word->uses);
                if (!word->uses) return qkvi_reader_fail(r, QKV_ERR_MEMORY, "out of memory");
            }
            word->n_uses = 0;
        }
        for (int32_t l = 0; l < g->n_lexemes; ++l)
            for (int32_t f = 0; f < QKVI_N_FORMS; ++f) {
                if (g->lexemes[l].forms[f] < 0) continue;
                qkvi_grammar_word *const word = &g->words[g->lexemes[l].forms[f]];
                word->is_content = true;
                const int32_t use = l * QKVI_N_FORMS + f;
                if (pass == 1) {
                    word->uses[word->n_uses] = use;
                    word->n_lexemes +=
                        word->n_uses == 0 || word->uses[word->n_uses - 1] / QKVI_N_FORMS != l;
                }
                word->n_uses++;
            }
    }
    return QKV_OK;
}

void qkvi_words_free(qkvi_grammar *g) {
    for (int32_t w = 0; w < g->n_words; ++w) free(g->words[w].uses);
    while (g->chunks) {
        struct qkvi_chunk *const next = g->chunks->next;
        free(g->chunks);
        g->chunks = next;
    }
}

/* ---- Features and links ---- */

static qkv_status name_index(const qkvi_reader *r, const char *what, const char **names, int32_t *n,
                             int32_t limit, qkvi_grammar_token token, bool add, int32_t *index) {
    for (*index = 0; *index < *n; ++*index)
        if (qkvi_token_is(token, names[*index])) return QKV_OK;
    if (!add)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "no class has the %s '%s'", what,
                                qkvi_token_quote(token).text);
    if (*n == limit)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d %ss", (int)limit, what);
    QKV_TRY(qkvi_reader_keep(r, token.text, token.bytes, &names[*n]));
    *index = (*n)++;
    return QKV_OK;
}

qkv_status qkvi_reader_feature(const qkvi_reader *r, qkvi_grammar_token token, bool add,
                               int32_t *feature) {
    return name_index(r, "feature", r->g->features, &r->g->n_features, QKVI_MAX_FEATURES, token,
                      add, feature);
}

qkv_status qkvi_reader_link(const qkvi_reader *r, qkvi_grammar_token token, bool add,
                            int32_t *link) {
    return name_index(r, "link", r->g->links, &r->g->n_links, QKVI_MAX_LINKS, token, add, link);
}
