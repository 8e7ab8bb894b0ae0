/*
 * Parsing a sentence: which frames and lexemes give it, with at most one word masked.
 *
 * A frame matches if its literals are the words at their places, and some assignment of lexemes to
 * its variables gives all other words. Every variable determines some element (checked when the
 * grammar is read). An unmasked element limits its variable to a few lexemes (word->uses); only a
 * variable with no unmasked element, at most one, goes through its whole domain. So the admissible
 * set of the masked word is exact: the union of the words of its element, over all frames and
 * assignments that give the other words.
 */
#include "train/grammar/grammar.h"

/* A frame, or half of one, against a sentence. */
typedef struct qkvi_matcher {
    const qkvi_grammar *g;
    const qkvi_sentence *sentence;
    const qkvi_sentence_frame *frame;
    const qkvi_family *family;
    const qkvi_element *elements;  /* sentence->n of them */
    int32_t order[QKVI_MAX_VARS];  /* variables: those that an unmasked word names come first */
    int32_t anchor[QKVI_MAX_VARS]; /* an unmasked element that shows the variable; -1: none */
    int32_t n_vars;
    qkvi_assignment assignment;
    qkvi_visit visit;
    void *user;
} matcher;

/* ---- Sentences ---- */

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static int32_t word_of(const qkvi_grammar *g, const char *text, int64_t bytes) {
    char key[QKVI_PAIR_BYTES];
    if (bytes == 6 && memcmp(text, "[MASK]", 6) == 0) return -1;
    if (bytes > (int64_t)sizeof key) return -2;
    for (int64_t i = 0; i < bytes; ++i)
        key[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
    const int32_t word = qkvi_word_find(g, key, (int32_t)bytes);
    return word >= 0 ? word : -2;
}

static bool split_half(const qkvi_grammar *g, const char *text, int64_t bytes, int half,
                       qkvi_sentence *s) {
    for (int64_t i = 0; i < bytes;) {
        if (is_space(text[i])) {
            ++i;
            continue;
        }
        int64_t end = i + 1;
        if (!qkvi_is_punctuation(text[i]))
            while (end < bytes && !is_space(text[end]) && !qkvi_is_punctuation(text[end])) ++end;
        if (s->n == QKVI_PAIR_WORDS || end > INT32_MAX) return false;
        s->words[s->n] = word_of(g, text + i, end - i);
        s->spans[s->n++] = (qkvi_span){ half, (int32_t)i, (int32_t)end };
        i = end;
    }
    return true;
}

bool qkvi_grammar_split(const qkvi_grammar *g, const char *a, int64_t a_bytes, const char *b,
                        int64_t b_bytes, qkvi_sentence *sentence) {
    sentence->n = 0;
    if (!split_half(g, a, a_bytes, 0, sentence)) return false;
    sentence->n_a = sentence->n;
    return !b || split_half(g, b, b_bytes, 1, sentence);
}

/* ---- Matching ---- */

static bool fits(const matcher *m, int32_t i) {
    const int32_t word = m->sentence->words[i];
    if (word == -1) return true;
    int32_t words[QKVI_MAX_ALTERNATIVES];
    const int32_t n = qkvi_element_words(m->g, &m->elements[i], &m->assignment, words);
    for (int32_t k = 0; k < n; ++k)
        if (words[k] == word) return true;
    return false;
}

static bool literals_fit(const matcher *m) {
    for (int32_t i = 0; i < m->sentence->n; ++i)
        if (m->elements[i].kind == QKVI_LITERAL && !fits(m, i)) return false;
    return true;
}

/* Every element is what the sentence says, and every relation holds. */
static bool all_hold(const matcher *m) {
    for (int32_t i = 0; i < m->n_vars; ++i) {
        const int32_t v = m->order[i];
        if (!qkvi_relations_hold(m->g, &m->family->vars[v], m->assignment.lexeme[v],
                                 &m->assignment))
            return false;
    }
    for (int32_t i = 0; i < m->sentence->n; ++i)
        if (m->elements[i].kind != QKVI_LITERAL && !fits(m, i)) return false;
    return true;
}

static bool assign(matcher *m, int32_t depth);

/* Tries one lexeme for the variable at this depth; false when the visitor wants no more. */
static bool try_lexeme(matcher *m, int32_t depth, int32_t lexeme) {
    const int32_t v = m->order[depth];
    const qkvi_var *const var = &m->family->vars[v];
    if (!qkvi_domain_has(&var->domains[m->frame->bareness[v]], lexeme)) return true;
    if (!qkvi_relations_hold(m->g, var, lexeme, &m->assignment)) return true;
    m->assignment.lexeme[v] = lexeme;
    const bool more = assign(m, depth + 1);
    m->assignment.lexeme[v] = -1;
    return more;
}

/* Gives the variables from this depth on their lexemes, in all ways. */
static bool assign(matcher *m, int32_t depth) {
    if (depth == m->n_vars) return !all_hold(m) || m->visit(m->user, m->frame, &m->assignment);
    const int32_t v = m->order[depth];
    if (m->anchor[v] < 0) {
        const qkvi_domain *const domain = &m->family->vars[v].domains[m->frame->bareness[v]];
        for (int32_t i = 0; i < domain->n; ++i)
            if (!try_lexeme(m, depth, domain->members[i])) return false;
        return true;
    }
    const qkvi_element *const element = &m->elements[m->anchor[v]];
    const qkvi_grammar_word *const word = &m->g->words[m->sentence->words[m->anchor[v]]];
    int32_t last = -1;
    for (int32_t i = 0; i < word->n_uses; ++i) {
        const int32_t lexeme = word->uses[i] / QKVI_N_FORMS, form = word->uses[i] % QKVI_N_FORMS;
        const bool right_form = element->kind == QKVI_AGREE ? form <= 1 : form == element->form;
        if (!right_form || lexeme == last) continue;
        last = lexeme; /* uses are sorted by lexeme: "put" is base and past of one */
        if (!try_lexeme(m, depth, lexeme)) return false;
    }
    return true;
}

/* Finds the variables, their anchors, and an order that begins with the anchored ones. */
static void plan(matcher *m) {
    uint32_t used = 0;
    for (int32_t v = 0; v < QKVI_MAX_VARS; ++v) {
        m->anchor[v] = -1;
        m->assignment.lexeme[v] = -1;
    }
    for (int32_t i = 0; i < m->sentence->n; ++i) {
        const qkvi_element *const element = &m->elements[i];
        if (element->kind == QKVI_LITERAL) continue;
        used |= 1u << element->var;
        if (element->kind == QKVI_AGREE) used |= 1u << element->other;
        const bool shows = element->kind == QKVI_FORM || element->kind == QKVI_AGREE;
        if (shows && m->sentence->words[i] != -1) m->anchor[element->var] = i;
    }
    m->n_vars = 0;
    for (int32_t pass = 0; pass < 2; ++pass)
        for (int32_t v = 0; v < m->family->n_vars; ++v)
            if ((used >> v & 1) && (m->anchor[v] < 0) == (pass == 1)) m->order[m->n_vars++] = v;
}

/* The elements of the frame that a part covers: all of it, its first or its second half. */
static bool part_of(const qkvi_sentence_frame *frame, int part, int32_t *first, int32_t *n,
                    int32_t *n_a) {
    const bool is_pair = frame->n_a < frame->n_elements;
    if (part != 0 && !is_pair) return false;
    *first = frame->first_element + (part == 2 ? frame->n_a : 0);
    *n = part == 0 ? frame->n_elements : part == 1 ? frame->n_a : frame->n_elements - frame->n_a;
    *n_a = part == 0 ? frame->n_a : *n;
    return true;
}

void qkvi_grammar_match(const qkvi_grammar *g, const qkvi_sentence *sentence, int part,
                        qkvi_visit visit, void *user) {
    for (int32_t i = 0; i < sentence->n; ++i)
        if (sentence->words[i] == -2) return;
    matcher m = { .g = g, .sentence = sentence, .visit = visit, .user = user };
    for (int32_t f = 0; f < g->n_frames; ++f) {
        m.frame = &g->frames[f];
        int32_t first, n, n_a;
        if (!part_of(m.frame, part, &first, &n, &n_a) || n != sentence->n || n_a != sentence->n_a)
            continue;
        m.elements = g->elements + first;
        if (!literals_fit(&m)) continue;
        m.family = &g->families[m.frame->family];
        plan(&m);
        if (!assign(&m, 0)) return;
    }
}

/* ---- What the callers ask ---- */

static bool note_pair(void *user, const qkvi_sentence_frame *frame,
                      const qkvi_assignment *assignment) {
    (void)frame;
    (void)assignment;
    *(bool *)user = true;
    return false;
}

bool qkvi_grammar_is_pair(const qkvi_grammar *g, const qkvi_sentence *sentence) {
    bool found = false;
    qkvi_grammar_match(g, sentence, 0, note_pair, &found);
    return found;
}

typedef struct admissible_words {
    const qkvi_grammar *g;
    int32_t place; /* of the masked word */
    int32_t *set, n;
} admissible_words;

static int32_t lower_bound(const admissible_words *a, int32_t word) {
    const char *const key = a->g->words[word].key;
    int32_t from = 0, to = a->n;
    while (from < to) {
        const int32_t middle = from + (to - from) / 2;
        if (strcmp(a->g->words[a->set[middle]].key, key) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static bool note_words(void *user, const qkvi_sentence_frame *frame,
                       const qkvi_assignment *assignment) {
    admissible_words *const a = user;
    int32_t words[QKVI_MAX_ALTERNATIVES];
    const qkvi_element *const element = &a->g->elements[frame->first_element + a->place];
    const int32_t n = qkvi_element_words(a->g, element, assignment, words);
    for (int32_t k = 0; k < n; ++k) {
        const int32_t at = lower_bound(a, words[k]);
        if (at < a->n && a->set[at] == words[k]) continue;
        memmove(a->set + at + 1, a->set + at, (size_t)(a->n - at) * sizeof *a->set);
        a->set[at] = words[k];
        ++a->n;
    }
    return true;
}

int32_t qkvi_grammar_admissible(const qkvi_grammar *g, const qkvi_sentence *sentence,
                                int32_t *set) {
    admissible_words a = { .g = g, .set = set };
    while (a.place < sentence->n && sentence->words[a.place] != -1) ++a.place;
    if (a.place < sentence->n) qkvi_grammar_match(g, sentence, 0, note_words, &a);
    return a.n;
}

typedef struct said_note {
    const qkvi_grammar *g;
    qkvi_said said;
} said_note;

static bool note_said(void *user, const qkvi_sentence_frame *frame,
                      const qkvi_assignment *assignment) {
    said_note *const note = user;
    const bool held = qkvi_is_held(note->g, &note->g->templates[frame->template], assignment);
    note->said = held ? QKVI_HELD_OUT : QKVI_TRAINED;
    return held;
}

qkvi_said qkvi_grammar_said(const qkvi_grammar *g, const qkvi_sentence *sentence, int n_parts) {
    said_note note = { g, QKVI_NEVER_SAID };
    for (int part = 0; part < n_parts && note.said != QKVI_TRAINED; ++part)
        qkvi_grammar_match(g, sentence, part, note_said, &note);
    return note.said;
}
