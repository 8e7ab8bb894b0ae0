/* What elements say and what variables admit: the meaning of the compiled tables, shared by the
 * matcher (which reads a sentence) and the generator (which makes one). */
#include "model/grammar/grammar.h"

#include <assert.h>

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

bool qkvi_is_held(const qkvi_grammar *g, const qkvi_template *template,
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
