/*
 * Making a pair: draws a template, then its words, and writes them as text with the span of each.
 *
 * Everything is drawn from one Philox stream per (seed, split, index), so a pair is a pure function
 * of these three.
 */
#include "train/grammar/template.h"

#include <assert.h>

#include "train/grammar/grammar.h"

enum {
    SINGLE_PERCENT = 40,  /* sentences alone; the rest are pairs */
    NEGATIVE_PERCENT = 50 /* of the pairs */
};

/* ---- Writing ---- */

static bool hugs_left(const char *word) {
    return word[1] == '\0' && strchr(".,?!;:", word[0]) != NULL;
}

/* Writes the words with capitals and spaces, and notes their spans. */
static void write_text(const qkvi_grammar *g, qkvi_sentence *sentence, qkvi_pair *pair) {
    int32_t at = 0, start = 0;
    for (int32_t i = 0; i < sentence->n; ++i) {
        const char *const text = g->words[sentence->words[i]].text;
        const int32_t bytes = (int32_t)strlen(text);
        const int half = i >= sentence->n_a;
        const bool is_first = i == 0 || i == sentence->n_a;
        if (i == sentence->n_a) start = at;
        if (!is_first && !hugs_left(text)) pair->buffer[at++] = ' ';
        assert(at + bytes + 1 < QKVI_PAIR_BYTES);
        memcpy(pair->buffer + at, text, (size_t)bytes);
        if (is_first && text[0] >= 'a' && text[0] <= 'z')
            pair->buffer[at] = (char)(text[0] - 'a' + 'A');
        sentence->spans[i] = (qkvi_span){ half, at - start, at - start + bytes };
        at += bytes;
    }
    const int32_t a_bytes = sentence->n > sentence->n_a ? start : at;
    pair->a = pair->buffer;
    pair->a_bytes = a_bytes;
    pair->b = pair->buffer + a_bytes;
    pair->b_bytes = at - a_bytes;
}

/* ---- One pair ---- */

static void note_probe(const qkvi_grammar *g, const qkvi_sentence_template *template,
                       const qkvi_assignment *assignment, const qkvi_sentence *sentence,
                       qkvi_pair *pair) {
    const qkvi_sentence_frame *const frame = qkvi_template_frame(g, template, assignment);
    const qkvi_element *const elements = g->elements + frame->first_element;
    pair->n_content = 0;
    for (int32_t i = 0; i < sentence->n_a; ++i) {
        const qkvi_grammar_word *const word = &g->words[sentence->words[i]];
        if (word->is_content && !word->is_function)
            pair->content[pair->n_content++] = sentence->spans[i];
        if (!elements[i].is_probe) continue;
        pair->has_probe = 1;
        pair->pronoun = sentence->spans[i];
        for (int32_t k = 0; k < sentence->n_a; ++k)
            if (elements[k].kind == QKVI_FORM && elements[k].var == elements[i].var)
                pair->antecedent = sentence->spans[k];
    }
}

/*
 * The label is drawn before the words, and a template that was drawn is kept until it succeeds: so
 * nothing but the words tells whether a pair belongs together. (qkvi_grammar_pools has tried that
 * every template can succeed.)
 */
static void make_pair(const qkvi_grammar *g, qkvi_rng *rng, int pool, qkvi_pair *pair) {
    const qkvi_sentence_template *const template =
        &g->templates[g->pools[pool].entries[qkvi_rng_below(rng, (uint32_t)g->pools[pool].n)]];
    const qkvi_wish w = { pool != QKVI_POOL_SINGLE && pool != QKVI_POOL_PAIR,
                          !template->is_pair || qkvi_rng_below(rng, 100) >= NEGATIVE_PERCENT };
    qkvi_assignment assignment;
    qkvi_sentence sentence;
    while (!qkvi_template_try(g, rng, template, w, &assignment, &sentence)) {
    }
    write_text(g, &sentence, pair);
    pair->is_next = w.is_next;
    pair->counts_for_mlm = w.is_next;
    pair->has_probe = 0;
    pair->n_content = 0;
    if (!template->is_pair) note_probe(g, template, &assignment, &sentence, pair);
}

void qkvi_grammar_pair(const qkvi_grammar *g, qkvi_split split, int64_t index, uint64_t seed,
                       qkvi_pair *pair) {
    qkvi_rng rng = qkvi_rng_make(seed, (uint32_t)split, (uint64_t)index);
    int single = QKVI_POOL_SINGLE, both = QKVI_POOL_PAIR;
    const bool holds_out = g->pools[QKVI_POOL_HELD_SINGLE].n || g->pools[QKVI_POOL_HELD_PAIR].n;
    if (split == QKVI_SPLIT_HELD_OUT && holds_out) {
        single = QKVI_POOL_HELD_SINGLE;
        both = QKVI_POOL_HELD_PAIR;
    }
    const bool alone =
        g->pools[single].n && (!g->pools[both].n || qkvi_rng_below(&rng, 100) < SINGLE_PERCENT);
    make_pair(g, &rng, alone ? single : both, pair);
}

int qkvi_grammar_probe(const qkvi_grammar *g, int64_t index, uint64_t seed, qkvi_pair *pair) {
    if (!g->pools[QKVI_POOL_PROBE].n) return 0;
    qkvi_rng rng = qkvi_rng_make(seed, 2, (uint64_t)index);
    make_pair(g, &rng, QKVI_POOL_PROBE, pair);
    return 1;
}

/* ---- Frames ---------------------------------------------------------------------------------- */

/* What elements say and what variables admit: the meaning of the compiled tables, shared by the
 * matcher (which reads a sentence) and the generator (which makes one). */

static bool starts_with_vowel(const char *word) {
    switch (word[0]) {
    case 'a':
    case 'e':
    case 'i':
    case 'o':
    case 'u': return true;
    default: return false;
    }
}

int32_t qkvi_element_words(const qkvi_grammar *g, const qkvi_element *element,
                           const qkvi_assignment *assignment, int32_t *words) {
    if (element->kind == QKVI_LITERAL) {
        for (int32_t i = 0; i < element->n_words; ++i) words[i] = element->words[i];
        return element->n_words;
    }
    const qkvi_lexeme *const lexeme = &g->lexemes[assignment->lexeme[element->var]];
    switch (element->kind) {
    case QKVI_LITERAL:
    case QKVI_FORM: words[0] = lexeme->forms[element->form]; break;
    case QKVI_PERSON: words[0] = g->persons[lexeme->person].words[element->form]; break;
    case QKVI_AGREE: {
        const int32_t person = g->lexemes[assignment->lexeme[element->other]].person;
        words[0] = lexeme->forms[g->persons[person].takes_s];
        break;
    }
    case QKVI_ARTICLE:
        words[0] = g->article[starts_with_vowel(g->words[lexeme->forms[0]].key)];
        break;
    }
    return 1;
}

bool qkvi_var_admits(const qkvi_var *var, const qkvi_lexeme *lexeme) {
    const qkvi_features features = lexeme->features;
    if (!qkvi_features_contain(features, var->all) || qkvi_features_meet(features, var->none))
        return false;
    for (int32_t i = 0; i < var->n_any; ++i)
        if (!qkvi_features_meet(features, var->any[i])) return false;
    return true;
}

/* Over the whole domain of the element's variable; of an agreeing verb, both of its forms. */
static void mark_element(qkvi_grammar *g, const qkvi_family *family, const qkvi_element *element) {
    if (element->kind == QKVI_LITERAL) {
        for (int32_t i = 0; i < element->n_words; ++i) g->words[element->words[i]].is_said = true;
        return;
    }
    const qkvi_domain *const domain = &family->vars[element->var].domains[QKVI_ANY];
    for (int32_t i = 0; i < domain->n; ++i) {
        qkvi_assignment assignment;
        assignment.lexeme[element->var] = domain->members[i];
        int32_t word = 0;
        if (element->kind == QKVI_AGREE) {
            const int32_t *const forms = g->lexemes[domain->members[i]].forms;
            g->words[forms[0]].is_said = g->words[forms[1]].is_said = true;
            continue;
        }
        qkvi_element_words(g, element, &assignment, &word);
        g->words[word].is_said = true;
    }
}

void qkvi_mark_said(qkvi_grammar *g) {
    for (int32_t f = 0; f < g->n_frames; ++f)
        for (int32_t i = 0; i < g->frames[f].n_elements; ++i)
            mark_element(g, &g->families[g->frames[f].family],
                         &g->elements[g->frames[f].first_element + i]);
    g->n_said = 0;
    for (int32_t w = 0; w < g->n_words; ++w)
        if (g->words[w].is_said) g->said[g->n_said++] = w;
}

static int compare_int32(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

bool qkvi_domain_has(const qkvi_domain *domain, int32_t lexeme) {
    return domain->n && bsearch(&lexeme, domain->members, (size_t)domain->n, sizeof lexeme,
                                compare_int32) != NULL;
}

bool qkvi_relations_hold(const qkvi_grammar *g, const qkvi_var *var, int32_t lexeme,
                         const qkvi_assignment *assignment) {
    const qkvi_lexeme *const mine = &g->lexemes[lexeme];
    for (int32_t i = 0; i < var->n_relations; ++i) {
        const qkvi_relation *const relation = &var->relations[i];
        if (assignment->lexeme[relation->other] < 0) continue;
        const qkvi_lexeme *const other = &g->lexemes[assignment->lexeme[relation->other]];
        bool holds = false;
        switch (relation->kind) {
        case QKVI_RELATION_LINK:
            holds = qkvi_features_meet(mine->features, other->links[relation->link]);
            break;
        case QKVI_RELATION_OTHER_WORD: holds = mine->forms[0] != other->forms[0]; break;
        case QKVI_RELATION_OTHER_PERSON: holds = mine->person != other->person; break;
        }
        if (!holds) return false;
    }
    return true;
}

uint64_t qkvi_hold_key(const qkvi_grammar *g, const qkvi_family *family,
                       const qkvi_assignment *assignment) {
    uint64_t key = family->name_hash;
    for (int32_t i = 0; i < family->n_hold; ++i) {
        const int32_t lexeme = assignment->lexeme[family->hold[i]];
        assert(lexeme >= 0);
        key = (key ^ g->words[g->lexemes[lexeme].forms[0]].hash) * UINT64_C(0x9e3779b97f4a7c15);
        key ^= key >> 29;
    }
    return key;
}

static int compare_uint64(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

bool qkvi_is_held(const qkvi_grammar *g, const qkvi_sentence_template *template,
                  const qkvi_assignment *assignment) {
    if (template->is_held) return true;
    const qkvi_family *const family = &g->families[template->family];
    if (!family->n_hold) return false;
    for (int32_t i = 0; i < family->n_hold; ++i)
        if (assignment->lexeme[family->hold[i]] < 0) return false;
    const uint64_t key = qkvi_hold_key(g, family, assignment);
    if ((key >> 32) % QKVI_HELD_ONE_IN == 0) return true;
    return g->n_shown && bsearch(&key, g->shown, (size_t)g->n_shown, sizeof key, compare_uint64);
}
