/* The lexicon: interned words, features, and the inflection of entries.
 *
 * Words are interned by their lower-case key in an open-addressing table of a power of two, at most
 * half full. A word's `uses` lists every form of every lexeme that is spelled like it, so that a
 * sentence is read back without search: the matcher looks up the word and gets its lexemes.
 *
 * Regular English only: plural +s; verbs +s, +ed, +ing, dropping a final e. Everything else is
 * spelled out in the file.
 */
#include "model/train/grammar_words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"

enum { CHUNK_BYTES = 1 << 16, MAX_WORDS = 60000, MAX_LEXEMES = 60000, MAX_WORD_BYTES = 32 };

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

qkvi_quoted qkvi_token_quote(qkvi_token token) {
    qkvi_quoted quoted;
    qkvi_escape(quoted.text, sizeof quoted.text, token.text, (size_t)token.bytes);
    return quoted;
}

bool qkvi_token_is(qkvi_token token, const char *text) {
    return strlen(text) == (size_t)token.bytes && memcmp(token.text, text, strlen(text)) == 0;
}

qkv_status qkvi_reader_grow(const qkvi_reader *r, void *array, int32_t n, int32_t *capacity,
                            size_t size) {
    if (n < *capacity) return QKV_OK;
    const int32_t wanted = *capacity ? 2 * *capacity : 64;
    void *old;
    memcpy(&old, array, sizeof old);
    void *const grown = qkvi_realloc_array(old, (size_t)wanted, size);
    if (!grown) return qkvi_reader_fail(r, QKV_ERR_MEMORY, "out of memory");
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
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

qkv_status qkvi_word_add(const qkvi_reader *r, qkvi_token token, int32_t *word) {
    qkvi_grammar *const g = r->g;
    if (token.bytes == 0 || token.bytes > MAX_WORD_BYTES)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "the word '%s' has %d bytes; 1 to %d are allowed",
                                qkvi_token_quote(token).text, (int)token.bytes, MAX_WORD_BYTES);
    char key[MAX_WORD_BYTES];
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
                if (pass == 1) word->uses[word->n_uses] = l * QKVI_N_FORMS + f;
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
                             int32_t limit, qkvi_token token, bool add, int32_t *index) {
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

qkv_status qkvi_reader_feature(const qkvi_reader *r, qkvi_token token, bool add, int32_t *feature) {
    return name_index(r, "feature", r->g->features, &r->g->n_features, QKVI_MAX_FEATURES, token,
                      add, feature);
}

qkv_status qkvi_reader_link(const qkvi_reader *r, qkvi_token token, bool add, int32_t *link) {
    return name_index(r, "link", r->g->links, &r->g->n_links, QKVI_MAX_LINKS, token, add, link);
}

/* ---- Entries ---- */

/* stem without its last `cut` bytes, then ending, as a word. */
static qkv_status inflect(const qkvi_reader *r, qkvi_token stem, int32_t cut, const char *ending,
                          int32_t *word) {
    char text[2 * MAX_WORD_BYTES];
    if (stem.bytes > MAX_WORD_BYTES || stem.bytes <= cut) return qkvi_word_add(r, stem, word);
    memcpy(text, stem.text, (size_t)(stem.bytes - cut));
    const size_t n = strlen(ending);
    memcpy(text + stem.bytes - cut, ending, n);
    return qkvi_word_add(r, (qkvi_token){ text, stem.bytes - cut + (int32_t)n }, word);
}

/* Splits an entry at '/'; an empty part stays empty. */
static qkv_status split_entry(const qkvi_reader *r, qkvi_token entry, qkvi_token *parts,
                              int32_t limit, int32_t *n_parts) {
    *n_parts = 0;
    const char *const end = entry.text + entry.bytes;
    for (const char *from = entry.text; from <= end;) {
        const char *to = from;
        while (to < end && *to != '/') ++to;
        if (*n_parts == limit)
            return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' has more than %d forms",
                                    qkvi_token_quote(entry).text, (int)limit);
        parts[(*n_parts)++] = (qkvi_token){ from, (int32_t)(to - from) };
        from = to + 1;
    }
    return QKV_OK;
}

static int32_t person_named(const qkvi_grammar *g, const char *name) {
    for (int32_t p = 0; p < g->n_persons; ++p)
        if (strcmp(g->persons[p].name, name) == 0) return p;
    return -1;
}

static qkv_status lexeme_add(const qkvi_reader *r, const qkvi_class_head *head,
                             const int32_t *forms, int32_t person, const char *number) {
    qkvi_grammar *const g = r->g;
    if (g->n_lexemes == MAX_LEXEMES)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d entries", MAX_LEXEMES);
    QKV_TRY(qkvi_reader_grow(r, &g->lexemes, g->n_lexemes, &g->cap_lexemes, sizeof *g->lexemes));
    qkvi_lexeme *const lexeme = &g->lexemes[g->n_lexemes++];
    *lexeme = (qkvi_lexeme){ .features = head->features,
                             .person = (int16_t)person,
                             .class_id = (int16_t)head->class_id,
                             .weight = (int16_t)head->weight };
    memcpy(lexeme->forms, forms, sizeof lexeme->forms);
    memcpy(lexeme->links, head->links, sizeof lexeme->links);
    g->classes[head->class_id].n_lexemes++;
    if (number) {
        int32_t feature;
        QKV_TRY(qkvi_reader_feature(r, (qkvi_token){ number, (int32_t)strlen(number) }, true,
                                    &feature));
        qkvi_features_add(&lexeme->features, feature);
    }
    return QKV_OK;
}

/* "door": door and doors. "bread/": no plural. "/scissors": no singular. */
static qkv_status noun_add(const qkvi_reader *r, const qkvi_class_head *head, qkvi_token entry) {
    qkvi_token parts[2];
    int32_t n_parts, one = -1, many = -1;
    QKV_TRY(split_entry(r, entry, parts, 2, &n_parts));
    if (parts[0].bytes) QKV_TRY(qkvi_word_add(r, parts[0], &one));
    if (n_parts == 1) QKV_TRY(inflect(r, parts[0], 0, "s", &many));
    if (n_parts == 2 && parts[1].bytes) QKV_TRY(qkvi_word_add(r, parts[1], &many));
    if (one < 0 && many < 0)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is no noun", qkvi_token_quote(entry).text);
    const int32_t singular[QKVI_N_FORMS] = { one, one, many, -1, -1 };
    const int32_t plural[QKVI_N_FORMS] = { many, one, many, -1, -1 };
    for (int32_t i = 0; i < head->n_persons && one >= 0; ++i)
        QKV_TRY(lexeme_add(r, head, singular, head->persons[i], "sg"));
    if (many < 0) return QKV_OK;
    const int32_t they = person_named(r->g, "they");
    if (they < 0) return qkvi_reader_fail(r, QKV_ERR_FORMAT, "plurals need 'person they' above");
    return lexeme_add(r, head, plural, they, "pl");
}

/* Parts base/~s/past/~ing/done; what is missing is regular. */
static qkv_status verb_add(const qkvi_reader *r, const qkvi_class_head *head, qkvi_token entry) {
    static const char *const endings[QKVI_N_FORMS] = { "", "s", "ed", "ing", "" };
    qkvi_token parts[QKVI_N_FORMS];
    int32_t n_parts, forms[QKVI_N_FORMS];
    QKV_TRY(split_entry(r, entry, parts, QKVI_N_FORMS, &n_parts));
    if (!parts[0].bytes)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is no verb", qkvi_token_quote(entry).text);
    const bool ends_in_e = parts[0].text[parts[0].bytes - 1] == 'e';
    for (int32_t f = 0; f < QKVI_N_FORMS; ++f) {
        if (f < n_parts && parts[f].bytes)
            QKV_TRY(qkvi_word_add(r, parts[f], &forms[f]));
        else if (f == 4)
            forms[f] = forms[2];
        else
            QKV_TRY(inflect(r, parts[0], ends_in_e && f >= 2, endings[f], &forms[f]));
    }
    return lexeme_add(r, head, forms, -1, NULL);
}

qkv_status qkvi_entry_add(const qkvi_reader *r, const qkvi_class_head *head, qkvi_token entry) {
    if (head->kind == QKVI_KIND_NOUN) return noun_add(r, head, entry);
    if (head->kind == QKVI_KIND_VERB) return verb_add(r, head, entry);
    int32_t forms[QKVI_N_FORMS] = { -1, -1, -1, -1, -1 };
    QKV_TRY(qkvi_word_add(r, entry, &forms[0]));
    if (!head->n_persons) return lexeme_add(r, head, forms, -1, NULL);
    for (int32_t i = 0; i < head->n_persons; ++i)
        QKV_TRY(lexeme_add(r, head, forms, head->persons[i], NULL));
    return QKV_OK;
}
