/*
 * Pairs that do not belong together, for a reason that is visible in the text.
 *
 * Either the second half is that of a true pair in which one shared variable has another lexeme
 * (another entity, gender or number), or it comes from another template and is about something that
 * the first half does not mention. If the grammar could give the result as a true pair, it is drawn
 * again.
 */
#include "train/grammar/template.h"

enum { FOREIGN_PERCENT = 30 }; /* second half from another template */

/* Relations between variables of the second half only: it must make sense by itself. */
static bool half_holds(const qkvi_grammar *g, const qkvi_sentence_template *template, int half,
                       const qkvi_assignment *assignment) {
    const qkvi_family *const family = &g->families[template->family];
    qkvi_assignment part = *assignment;
    for (int32_t v = 0; v < family->n_vars; ++v)
        if (!(template->vars[half] >> v & 1)) part.lexeme[v] = -1;
    for (int32_t v = 0; v < family->n_vars; ++v)
        if (part.lexeme[v] >= 0 && !qkvi_relations_hold(g, &family->vars[v], part.lexeme[v], &part))
            return false;
    return true;
}

/* The same pair, but in its second half one shared variable stands for something else. */
static bool change_entity(const qkvi_grammar *g, qkvi_rng *rng,
                          const qkvi_sentence_template *template, const qkvi_assignment *assignment,
                          qkvi_sentence *sentence) {
    const uint32_t shared = template->vars[0] & template->vars[1];
    for (int32_t i = 0; i < QKVI_DRAW_TRIES; ++i) {
        const int32_t v = (int32_t)qkvi_rng_below(rng, QKVI_MAX_VARS);
        if (!(shared >> v & 1)) continue;
        const qkvi_domain *const domain = &g->families[template->family].vars[v].domains[QKVI_ANY];
        qkvi_assignment other = *assignment;
        other.lexeme[v] = domain->pool[qkvi_rng_below(rng, (uint32_t)domain->n_pool)];
        if (!half_holds(g, template, 1, &other)) continue;
        sentence->n = 0;
        qkvi_template_half(g, rng, template, 0, assignment, sentence);
        qkvi_template_half(g, rng, template, 1, &other, sentence);
        if (!qkvi_grammar_is_pair(g, sentence)) return true;
    }
    return false;
}

/* Whether the first half mentions neither the noun nor anything with the pronoun of `lexeme`. */
static bool is_unmentioned(const qkvi_grammar *g, const qkvi_element *element,
                           const qkvi_lexeme *lexeme, const qkvi_assignment *a) {
    for (int32_t v = 0; v < QKVI_MAX_VARS; ++v) {
        if (a->lexeme[v] < 0) continue;
        const qkvi_lexeme *const known = &g->lexemes[a->lexeme[v]];
        if (element->kind == QKVI_PERSON && known->person == lexeme->person) return false;
        if (element->kind == QKVI_FORM &&
            (known->forms[0] == lexeme->forms[0] || known->forms[1] == lexeme->forms[0] ||
             known->forms[2] == lexeme->forms[0]))
            return false;
    }
    return true;
}

/* Whether some reference of the second half goes to something that the first does not mention. */
static bool speaks_of_another(const qkvi_grammar *g, const qkvi_sentence_template *template,
                              const qkvi_sentence_frame *frame, const qkvi_assignment *b,
                              const qkvi_assignment *a) {
    const uint32_t shared = template->vars[0] & template->vars[1];
    for (int32_t i = frame->n_a; i < frame->n_elements; ++i) {
        const qkvi_element *const element = &g->elements[frame->first_element + i];
        if (element->kind != QKVI_FORM && element->kind != QKVI_PERSON) continue;
        if (element->kind == QKVI_PERSON && element->form > QKVI_OWN) continue;
        if (!(shared >> element->var & 1)) continue;
        const qkvi_lexeme *const lexeme = &g->lexemes[b->lexeme[element->var]];
        if (lexeme->person >= 0 && is_unmentioned(g, element, lexeme, a)) return true;
    }
    return false;
}

/* Whether the first half of one frame and the second of another fit a sentence together. */
static bool fit_together(const qkvi_sentence_frame *a, const qkvi_sentence_frame *b) {
    return a->n_a + (b->n_elements - b->n_a) <= QKVI_PAIR_WORDS;
}

/* The first half of one template, the second of another, which speaks of something else. */
static bool change_subject(const qkvi_grammar *g, qkvi_rng *rng,
                           const qkvi_sentence_template *template,
                           const qkvi_assignment *assignment, qkvi_sentence *sentence) {
    const qkvi_template_pool *const pool = &g->pools[QKVI_POOL_PAIR];
    qkvi_assignment first = *assignment, other;
    if (!pool->n) return false; /* all pairs are held */
    for (int32_t v = 0; v < QKVI_MAX_VARS; ++v)
        if (!(template->vars[0] >> v & 1)) first.lexeme[v] = -1;
    for (int32_t i = 0; i < QKVI_DRAW_TRIES; ++i) {
        const qkvi_sentence_template *const from =
            &g->templates[pool->entries[qkvi_rng_below(rng, (uint32_t)pool->n)]];
        if (from == template || !qkvi_template_draw(g, rng, from, &other)) continue;
        const qkvi_sentence_frame *const frame = qkvi_template_frame(g, from, &other);
        if (!speaks_of_another(g, from, frame, &other, &first)) continue;
        if (!fit_together(qkvi_template_frame(g, template, assignment), frame)) continue;
        sentence->n = 0;
        qkvi_template_half(g, rng, template, 0, assignment, sentence);
        qkvi_template_half(g, rng, from, 1, &other, sentence);
        if (!qkvi_grammar_is_pair(g, sentence)) return true;
    }
    return false;
}

bool qkvi_template_wrong(const qkvi_grammar *g, qkvi_rng *rng,
                         const qkvi_sentence_template *template, const qkvi_assignment *assignment,
                         qkvi_sentence *sentence) {
    return qkvi_rng_below(rng, 100) < FOREIGN_PERCENT
               ? change_subject(g, rng, template, assignment, sentence)
               : change_entity(g, rng, template, assignment, sentence);
}
