/* Reading a grammar file: lines to tokens, directives to the lexicon and the families.
 *
 * A directive begins at the first column; indented lines continue it. '#' begins a comment. The
 * file is ASCII. Classes come before families, because a variable's domain is listed when it is
 * declared. After the last line the `shown` sentences are matched and what they are instances of is
 * held out; then every say is drawn once, so that the generator can never get stuck.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"
#include "model/train/grammar_family.h"

enum { MAX_TOKENS = 1024, MAX_CLASSES = 1000, MAX_SHOWN = 1000 };

typedef enum directive { NOTHING, FUNCTION_WORDS, ENTRIES, FAMILY } directive;

typedef struct shown_line {
    const char *text;
    size_t bytes;
    int32_t line;
} shown_line;

typedef struct file_reader {
    qkvi_reader r;
    directive current;
    qkvi_class_head head; /* while current == ENTRIES */
    qkvi_token tokens[MAX_TOKENS];
    int32_t n_tokens;
    shown_line shown[MAX_SHOWN];
    int32_t n_shown;
} file_reader;

/* ---- Lines ---- */

static qkv_status tokenize(file_reader *f, const char *text, int32_t bytes) {
    f->n_tokens = 0;
    for (int32_t i = 0; i < bytes;) {
        if (text[i] == ' ' || text[i] == '\t') {
            ++i;
            continue;
        }
        int32_t end = i;
        while (end < bytes && text[end] != ' ' && text[end] != '\t') ++end;
        if (f->n_tokens == MAX_TOKENS)
            return qkvi_reader_fail(&f->r, QKV_ERR_LIMIT, "more than %d words in a line",
                                    MAX_TOKENS);
        f->tokens[f->n_tokens++] = (qkvi_token){ text + i, end - i };
        i = end;
    }
    return QKV_OK;
}

static qkv_status check_bytes(const file_reader *f, const char *text, int32_t bytes) {
    for (int32_t i = 0; i < bytes; ++i) {
        const unsigned char c = (unsigned char)text[i];
        if (c != '\t' && (c < ' ' || c > '~'))
            return qkvi_reader_fail(&f->r, QKV_ERR_FORMAT, "byte 0x%02x; a grammar is ASCII", c);
    }
    return QKV_OK;
}

/* ---- Directives ---- */

static qkv_status function_words(const file_reader *f, int32_t from) {
    for (int32_t i = from; i < f->n_tokens; ++i) {
        int32_t word;
        QKV_TRY(qkvi_word_add(&f->r, f->tokens[i], &word));
        f->r.g->words[word].is_function = true;
    }
    return QKV_OK;
}

/* "person he : he him his was is has does" */
static qkv_status person(const file_reader *f) {
    qkvi_grammar *const g = f->r.g;
    if (f->n_tokens != 3 + QKVI_N_COLUMNS || !qkvi_token_is(f->tokens[2], ":"))
        return qkvi_reader_fail(&f->r, QKV_ERR_FORMAT,
                                "expected 'person NAME : subj obj own was is has does'");
    if (g->n_persons == QKVI_MAX_PERSONS)
        return qkvi_reader_fail(&f->r, QKV_ERR_LIMIT, "more than %d persons", QKVI_MAX_PERSONS);
    qkvi_person *const p = &g->persons[g->n_persons];
    QKV_TRY(qkvi_reader_keep(&f->r, f->tokens[1].text, f->tokens[1].bytes, &p->name));
    p->takes_s = qkvi_token_is(f->tokens[1], "he") || qkvi_token_is(f->tokens[1], "she") ||
                 qkvi_token_is(f->tokens[1], "it");
    for (int32_t c = 0; c < QKVI_N_COLUMNS; ++c)
        QKV_TRY(qkvi_word_add(&f->r, f->tokens[3 + c], &p->words[c]));
    ++g->n_persons;
    return function_words(f, 3);
}

static int32_t find_person(const qkvi_grammar *g, qkvi_token token) {
    for (int32_t p = 0; p < g->n_persons; ++p)
        if (qkvi_token_is(token, g->persons[p].name)) return p;
    return -1;
}

/* "key=feature|feature" */
static qkv_status link_of(file_reader *f, qkvi_token token, const char *equals) {
    const qkvi_token name = { token.text, (int32_t)(equals - token.text) };
    int32_t link, feature;
    QKV_TRY(qkvi_reader_link(&f->r, name, true, &link));
    const char *const end = token.text + token.bytes;
    for (const char *from = equals + 1; from <= end;) {
        const char *to = from;
        while (to < end && *to != '|') ++to;
        if (to == from) return qkvi_reader_fail(&f->r, QKV_ERR_FORMAT, "an empty feature");
        QKV_TRY(
            qkvi_reader_feature(&f->r, (qkvi_token){ from, (int32_t)(to - from) }, true, &feature));
        qkvi_features_add(&f->head.links[link], feature);
        from = to + 1;
    }
    return QKV_OK;
}

/* One token between '=' and ':': a person, "*3", "key=…" or a feature. */
static qkv_status class_trait(file_reader *f, qkvi_token token, const char **type) {
    const char *const equals = memchr(token.text, '=', (size_t)token.bytes);
    if (equals) return link_of(f, token, equals);
    if (token.text[0] == '*') {
        if (token.bytes != 2 || token.text[1] < '1' || token.text[1] > '9')
            return qkvi_reader_fail(&f->r, QKV_ERR_FORMAT, "a weight is *1 to *9");
        f->head.weight = token.text[1] - '0';
        return QKV_OK;
    }
    const int32_t p = find_person(f->r.g, token);
    if (p >= 0) {
        if (f->head.n_persons == 4)
            return qkvi_reader_fail(&f->r, QKV_ERR_LIMIT, "more than 4 persons of a class");
        f->head.persons[f->head.n_persons++] = p;
        return QKV_OK;
    }
    int32_t feature;
    QKV_TRY(qkvi_reader_feature(&f->r, token, true, &feature));
    if (!*type) *type = f->r.g->features[feature];
    qkvi_features_add(&f->head.features, feature);
    return QKV_OK;
}

static qkv_status find_class(file_reader *f, qkvi_kind kind, qkvi_token name) {
    qkvi_grammar *const g = f->r.g;
    for (f->head.class_id = 0; f->head.class_id < g->n_classes; ++f->head.class_id) {
        if (!qkvi_token_is(name, g->classes[f->head.class_id].name)) continue;
        if (g->classes[f->head.class_id].kind != kind)
            return qkvi_reader_fail(&f->r, QKV_ERR_FORMAT, "'%s' is another kind of word above",
                                    qkvi_token_quote(name).text);
        return QKV_OK;
    }
    if (g->n_classes == MAX_CLASSES)
        return qkvi_reader_fail(&f->r, QKV_ERR_LIMIT, "more than %d classes", MAX_CLASSES);
    QKV_TRY(
        qkvi_reader_grow(&f->r, &g->classes, g->n_classes, &g->cap_classes, sizeof *g->classes));
    g->classes[g->n_classes] = (qkvi_class){ .kind = kind };
    QKV_TRY(qkvi_reader_keep(&f->r, name.text, name.bytes, &g->classes[g->n_classes].name));
    ++g->n_classes;
    return QKV_OK;
}

static qkv_status entries(const file_reader *f, int32_t from) {
    for (int32_t i = from; i < f->n_tokens; ++i)
        QKV_TRY(qkvi_entry_add(&f->r, &f->head, f->tokens[i]));
    return QKV_OK;
}

/* "noun door = thing opens key=… *2 : door gate box/boxes …" */
static qkv_status class_line(file_reader *f, qkvi_kind kind) {
    int32_t colon = 3;
    while (colon < f->n_tokens && !qkvi_token_is(f->tokens[colon], ":")) ++colon;
    if (f->n_tokens < 5 || !qkvi_token_is(f->tokens[2], "=") || colon >= f->n_tokens)
        return qkvi_reader_fail(&f->r, QKV_ERR_FORMAT, "expected 'KIND CLASS = FEATURE … : …'");
    if (f->r.g->n_families)
        return qkvi_reader_fail(&f->r, QKV_ERR_FORMAT, "classes come before families");
    f->head = (qkvi_class_head){ .kind = kind, .weight = 1 };
    QKV_TRY(find_class(f, kind, f->tokens[1]));
    const char *type = NULL;
    for (int32_t i = 3; i < colon; ++i) QKV_TRY(class_trait(f, f->tokens[i], &type));
    qkvi_class *const class = &f->r.g->classes[f->head.class_id];
    if (!class->type) class->type = type ? type : class->name;
    int32_t own_feature;
    QKV_TRY(qkvi_reader_feature(&f->r, f->tokens[1], true, &own_feature));
    qkvi_features_add(&f->head.features, own_feature);
    if (kind == QKVI_KIND_NOUN && !f->head.n_persons) {
        const int32_t it = find_person(f->r.g, (qkvi_token){ "it", 2 });
        if (it < 0) return qkvi_reader_fail(&f->r, QKV_ERR_FORMAT, "nouns need 'person it' above");
        f->head.persons[f->head.n_persons++] = it;
    }
    f->current = ENTRIES;
    return entries(f, colon + 1);
}

static qkv_status family_line(file_reader *f) {
    if (f->r.g->n_families == 0) QKV_TRY(qkvi_words_finish(&f->r));
    f->current = FAMILY;
    return qkvi_family_begin(&f->r, f->tokens + 1, f->n_tokens - 1);
}

static qkv_status shown(file_reader *f, const char *text, int32_t bytes) {
    if (f->n_shown == MAX_SHOWN)
        return qkvi_reader_fail(&f->r, QKV_ERR_LIMIT, "more than %d shown lines", MAX_SHOWN);
    f->shown[f->n_shown++] = (shown_line){ text, (size_t)bytes, f->r.line };
    return QKV_OK;
}

static qkv_status directive_line(file_reader *f, const char *text, int32_t bytes) {
    const qkvi_token word = f->tokens[0];
    f->current = NOTHING;
    if (qkvi_token_is(word, "person")) return person(f);
    if (qkvi_token_is(word, "noun")) return class_line(f, QKVI_KIND_NOUN);
    if (qkvi_token_is(word, "verb")) return class_line(f, QKVI_KIND_VERB);
    if (qkvi_token_is(word, "word")) return class_line(f, QKVI_KIND_WORD);
    if (qkvi_token_is(word, "family")) return family_line(f);
    if (qkvi_token_is(word, "shown")) return shown(f, text + 5, bytes - 5);
    if (qkvi_token_is(word, "function")) {
        if (f->n_tokens < 2 || !qkvi_token_is(f->tokens[1], ":"))
            return qkvi_reader_fail(&f->r, QKV_ERR_FORMAT, "expected 'function : WORD …'");
        f->current = FUNCTION_WORDS;
        return function_words(f, 2);
    }
    return qkvi_reader_fail(&f->r, QKV_ERR_FORMAT, "'%s' is no directive",
                            qkvi_token_quote(word).text);
}

static qkv_status line(file_reader *f, const char *text, int32_t bytes) {
    QKV_TRY(check_bytes(f, text, bytes));
    for (int32_t i = 0; i < bytes; ++i)
        if (text[i] == '#') bytes = i;
    QKV_TRY(tokenize(f, text, bytes));
    if (!f->n_tokens) return QKV_OK;
    if (text[0] != ' ' && text[0] != '\t') return directive_line(f, text, bytes);
    switch (f->current) {
    case FUNCTION_WORDS: return function_words(f, 0);
    case ENTRIES: return entries(f, 0);
    case FAMILY: return qkvi_family_line(&f->r, f->tokens, f->n_tokens);
    case NOTHING: break;
    }
    return qkvi_reader_fail(&f->r, QKV_ERR_FORMAT, "an indented line continues nothing");
}

/* ---- After the last line ---- */

typedef struct shown_note {
    const qkvi_reader *r;
    qkv_status status;
    int32_t n;
} shown_note;

static bool hold(void *user, const qkvi_frame *frame, const qkvi_assignment *assignment) {
    shown_note *const note = user;
    qkvi_grammar *const g = note->r->g;
    const qkvi_family *const family = &g->families[frame->family];
    ++note->n;
    if (g->says[frame->say].is_held) return true;
    bool has_all = family->n_hold > 0;
    for (int32_t i = 0; i < family->n_hold; ++i)
        has_all &= assignment->lexeme[family->hold[i]] >= 0;
    if (!has_all)
        note->status =
            qkvi_reader_fail(note->r, QKV_ERR_FORMAT,
                             "the family '%s' says this and cannot hold it out", family->name);
    if (note->status == QKV_OK)
        note->status =
            qkvi_reader_grow(note->r, &g->shown, g->n_shown, &g->cap_shown, sizeof *g->shown);
    if (note->status != QKV_OK) return false;
    g->shown[g->n_shown++] = qkvi_hold_key(g, family, assignment);
    return true;
}

static int compare_keys(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Holds out everything that a shown line is an instance of. */
static qkv_status hold_shown(const file_reader *f) {
    for (int32_t i = 0; i < f->n_shown; ++i) {
        const shown_line *const s = &f->shown[i];
        qkvi_reader at = f->r;
        at.line = s->line;
        const char *const bar = memchr(s->text, '|', s->bytes);
        const size_t a_bytes = bar ? (size_t)(bar - s->text) : s->bytes;
        qkvi_sentence sentence;
        shown_note note = { &at, QKV_OK, 0 };
        if (!qkvi_grammar_split(at.g, s->text, (int64_t)a_bytes, bar ? bar + 1 : NULL,
                                bar ? (int64_t)(s->bytes - a_bytes) - 1 : 0, &sentence))
            return qkvi_reader_fail(&at, QKV_ERR_LIMIT, "more than %d words", (int)QKVI_PAIR_WORDS);
        for (int part = 0; part < (bar ? 1 : 3) && note.status == QKV_OK; ++part)
            qkvi_grammar_match(at.g, &sentence, part, hold, &note);
        QKV_TRY(note.status);
        if (!note.n) return qkvi_reader_fail(&at, QKV_ERR_FORMAT, "the grammar cannot say this");
    }
    if (f->r.g->n_shown)
        qsort(f->r.g->shown, (size_t)f->r.g->n_shown, sizeof *f->r.g->shown, compare_keys);
    return QKV_OK;
}

static qkv_status find_articles(const qkvi_reader *r) {
    static const char *const names[] = { "a", "an", "the" };
    int32_t words[3];
    for (int i = 0; i < 3; ++i) {
        QKV_TRY(qkvi_word_add(r, (qkvi_token){ names[i], (int32_t)strlen(names[i]) }, &words[i]));
        r->g->words[words[i]].is_function = true;
    }
    memcpy(r->g->article, words, sizeof r->g->article);
    return QKV_OK;
}

static qkv_status read_all(file_reader *f, const char *bytes, size_t n_bytes) {
    QKV_TRY(find_articles(&f->r));
    for (size_t from = 0; from < n_bytes;) {
        const char *const newline = memchr(bytes + from, '\n', n_bytes - from);
        const size_t to = newline ? (size_t)(newline - bytes) : n_bytes;
        const size_t cr = to > from && bytes[to - 1] == '\r';
        ++f->r.line;
        QKV_TRY(line(f, bytes + from, (int32_t)(to - from - cr)));
        from = to + 1;
    }
    if (!f->r.g->n_families)
        return qkvi_reader_fail(&f->r, QKV_ERR_FORMAT, "the grammar has no family");
    QKV_TRY(qkvi_family_end(&f->r));
    f->r.g->said = qkvi_malloc_array((size_t)f->r.g->n_words, sizeof *f->r.g->said);
    if (!f->r.g->said) return qkvi_reader_fail(&f->r, QKV_ERR_MEMORY, "out of memory");
    qkvi_mark_said(f->r.g);
    QKV_TRY(hold_shown(f));
    return qkvi_grammar_urns(&f->r);
}

qkv_status qkvi_grammar_parse(const char *name, const char *bytes, size_t n_bytes,
                              qkvi_grammar **grammar, qkv_error *error) {
    *grammar = NULL;
    if (n_bytes > QKVI_GRAMMAR_BYTES)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: more than %d bytes", name,
                              (int)QKVI_GRAMMAR_BYTES);
    file_reader *const f = calloc(1, sizeof *f);
    qkvi_grammar *const g = calloc(1, sizeof *g);
    qkv_status status = QKV_ERR_MEMORY;
    if (f && g) {
        f->r = (qkvi_reader){ .g = g, .name = name, .error = error };
        status = read_all(f, bytes, n_bytes);
    } else {
        qkvi_error_set(error, status, "%s: out of memory", name);
    }
    free(f);
    if (status == QKV_OK)
        *grammar = g;
    else
        qkvi_grammar_free(g);
    return status;
}

void qkvi_grammar_free(qkvi_grammar *g) {
    if (!g) return;
    for (int32_t f = 0; f < g->n_families; ++f)
        for (int32_t v = 0; v < QKVI_MAX_VARS; ++v)
            for (int b = 0; b < QKVI_N_BARENESS; ++b) {
                free(g->families[f].vars[v].domains[b].members);
                free(g->families[f].vars[v].domains[b].urn);
            }
    qkvi_words_free(g);
    free(g->words);
    free(g->word_table);
    free(g->lexemes);
    free(g->classes);
    free(g->elements);
    free(g->frames);
    free(g->says);
    free(g->families);
    free(g->shown);
    free(g->said);
    for (int u = 0; u < QKVI_N_URNS; ++u) free(g->urns[u].balls);
    free(g);
}
