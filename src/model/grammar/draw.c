/*
 * Drawing what a template says: a lexeme for each variable in the order of the family, each from those
 * that stand in their relations to the ones before; then the words. Bad luck is answered by drawing
 * again, so all that the grammar allows is possible, and what is drawn depends on the stream alone.
 */
#include "model/grammar/template.h"

static uint32_t template_vars(const qkvi_template *template) {
    return template->vars[0] | template->vars[1];
}

/*
 * Draws a lexeme that stands in its relations to the assigned variables; false after
 * QKVI_DRAW_TRIES.
 */
static bool draw_var(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_var *var, int32_t *lexeme,
                     const qkvi_assignment *assignment) {
    const qkvi_domain *const domain = &var->domains[QKVI_ANY];
    for (int32_t i = 0; i < QKVI_DRAW_TRIES; ++i) {
        *lexeme = domain->pool[qkvi_rng_below(rng, (uint32_t)domain->n_pool)];
        if (qkvi_relations_hold(g, var, *lexeme, assignment)) return true;
    }
    return false;
}

bool qkvi_template_draw(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_template *template,
                        qkvi_assignment *assignment) {
    const qkvi_family *const family = &g->families[template->family];
    for (int32_t v = 0; v < QKVI_MAX_VARS; ++v) assignment->lexeme[v] = -1;
    for (int32_t v = 0; v < family->n_vars; ++v) {
        if (!(template_vars(template) >> v & 1)) continue;
        int32_t lexeme;
        if (!draw_var(g, rng, &family->vars[v], &lexeme, assignment)) return false;
        assignment->lexeme[v] = lexeme;
    }
    return true;
}

const qkvi_frame *qkvi_template_frame(const qkvi_grammar *g, const qkvi_template *template,
                                      const qkvi_assignment *assignment) {
    uint32_t bits = 0;
    for (int32_t i = 0; i < template->n_optional; ++i) {
        const int32_t v = template->optional[i];
        const qkvi_domain *const bare = &g->families[template->family].vars[v].domains[QKVI_BARE];
        bits |= (uint32_t)qkvi_domain_has(bare, assignment->lexeme[v]) << i;
    }
    return &g->frames[template->first_frame + (int32_t)bits];
}

void qkvi_template_half(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_template *template,
                        int half, const qkvi_assignment *assignment, qkvi_sentence *sentence) {
    const qkvi_frame *const frame = qkvi_template_frame(g, template, assignment);
    const int32_t from = half ? frame->n_a : 0, to = half ? frame->n_elements : frame->n_a;
    for (int32_t i = from; i < to; ++i) {
        int32_t words[QKVI_MAX_ALTERNATIVES];
        const int32_t n =
            qkvi_element_words(g, &g->elements[frame->first_element + i], assignment, words);
        sentence->words[sentence->n++] =
            words[n > 1 ? (int32_t)qkvi_rng_below(rng, (uint32_t)n) : 0];
    }
    if (!half) sentence->n_a = sentence->n;
}

bool qkvi_template_try(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_template *template,
                       qkvi_wish wish, qkvi_assignment *assignment, qkvi_sentence *sentence) {
    if (!qkvi_template_draw(g, rng, template, assignment)) return false;
    if (qkvi_is_held(g, template, assignment) != wish.is_held) return false;
    if (!wish.is_next) return qkvi_template_wrong(g, rng, template, assignment, sentence);
    sentence->n = 0;
    qkvi_template_half(g, rng, template, 0, assignment, sentence);
    if (template->is_pair) qkvi_template_half(g, rng, template, 1, assignment, sentence);
    return !wish.is_held || qkvi_grammar_said(g, sentence, 3) == QKVI_HELD_OUT;
}

bool qkvi_template_can_be_held(const qkvi_grammar *g, const qkvi_template *template) {
    const qkvi_family *const family = &g->families[template->family];
    uint32_t needed = 0;
    for (int32_t i = 0; i < family->n_hold; ++i) needed |= 1u << family->hold[i];
    return template->is_held || (needed && (template_vars(template) & needed) == needed);
}
