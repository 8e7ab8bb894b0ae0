/*
 * Reading a grammar file: lines are split into tokens, and directives define lexicon and families.
 *
 * A directive begins at the first column; indented lines continue it. '#' begins a comment. The
 * file is ASCII. Classes come before families, because a variable's domain is listed when it is
 * declared. After the last line the `shown` sentences are matched, and their values of the `hold`
 * variables are held out; then every template is drawn once, to be sure that the generator
 * terminates.
 */

#include "files/utf8.h"
#include "train/grammar/family.h"

enum { MAX_TOKENS = 1024, MAX_SHOWN = 1000 };

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
    qkvi_grammar_token tokens[MAX_TOKENS];
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
        f->tokens[f->n_tokens++] = (qkvi_grammar_token){ text + i, end - i };
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

static qkv_status class_line(file_reader *f, qkvi_kind kind) {
    f->current = ENTRIES;
    return qkvi_class_line(&f->r, kind, f->tokens, f->n_tokens, &f->head);
}

static qkv_status function_line(file_reader *f) {
    if (f->n_tokens < 2 || !qkvi_token_is(f->tokens[1], ":"))
        return qkvi_reader_fail(&f->r, QKV_ERR_FORMAT, "expected 'function : WORD …'");
    f->current = FUNCTION_WORDS;
    return qkvi_function_words(&f->r, f->tokens + 2, f->n_tokens - 2);
}

static qkv_status family_line(file_reader *f) {
    if (f->r.g->n_families == 0) QKV_TRY(qkvi_words_finish(&f->r));
    f->current = FAMILY;
    return qkvi_family_begin(&f->r, f->tokens + 1, f->n_tokens - 1);
}

static qkv_status shown_line_of(file_reader *f, const char *text, int32_t bytes) {
    if (f->n_shown == MAX_SHOWN)
        return qkvi_reader_fail(&f->r, QKV_ERR_LIMIT, "more than %d shown lines", MAX_SHOWN);
    f->shown[f->n_shown++] = (shown_line){ text, (size_t)bytes, f->r.line };
    return QKV_OK;
}

static qkv_status directive_line(file_reader *f, const char *text, int32_t bytes) {
    const qkvi_grammar_token word = f->tokens[0];
    f->current = NOTHING;
    if (qkvi_token_is(word, "person")) return qkvi_person_line(&f->r, f->tokens, f->n_tokens);
    if (qkvi_token_is(word, "noun")) return class_line(f, QKVI_KIND_NOUN);
    if (qkvi_token_is(word, "verb")) return class_line(f, QKVI_KIND_VERB);
    if (qkvi_token_is(word, "word")) return class_line(f, QKVI_KIND_WORD);
    if (qkvi_token_is(word, "function")) return function_line(f);
    if (qkvi_token_is(word, "family")) return family_line(f);
    if (qkvi_token_is(word, "shown")) return shown_line_of(f, text + 5, bytes - 5);
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
    case FUNCTION_WORDS: return qkvi_function_words(&f->r, f->tokens, f->n_tokens);
    case ENTRIES: return qkvi_entries(&f->r, &f->head, f->tokens, f->n_tokens);
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

static bool hold(void *user, const qkvi_sentence_frame *frame, const qkvi_assignment *assignment) {
    shown_note *const note = user;
    qkvi_grammar *const g = note->r->g;
    const qkvi_family *const family = &g->families[frame->family];
    ++note->n;
    if (g->templates[frame->template].is_held) return true;
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
        QKV_TRY(qkvi_word_add(r, (qkvi_grammar_token){ names[i], (int32_t)strlen(names[i]) },
                              &words[i]));
        r->g->words[words[i]].is_function = true;
    }
    memcpy(r->g->article, words, sizeof r->g->article);
    return QKV_OK;
}

static qkv_status read_all(file_reader *f, const char *bytes, size_t n_bytes) {
    QKV_TRY(find_articles(&f->r));
    for (size_t from = qkvi_utf8_mark(bytes, n_bytes); from < n_bytes;) {
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
    return qkvi_grammar_pools(&f->r);
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
                free(g->families[f].vars[v].domains[b].pool);
            }
    qkvi_words_free(g);
    free(g->words);
    free(g->word_table);
    free(g->lexemes);
    free(g->classes);
    free(g->elements);
    free(g->frames);
    free(g->templates);
    free(g->families);
    free(g->shown);
    free(g->said);
    for (int u = 0; u < QKVI_N_POOLS; ++u) free(g->pools[u].entries);
    free(g);
}
