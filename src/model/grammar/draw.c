/*
 * Drawing what a say says: a lexeme for each variable in the order of the family, each from those
 * that stand in their relations to the ones before; then the words. Bad luck is answered by drawing
 * again, so all that the grammar allows is possible, and what is drawn depends on the stream alone.
 */
#include "model/grammar/say.h"

static uint32_t say_vars(const qkvi_say *say) { return say->vars[0] | say->vars[1]; }

/*
 * Draws a lexeme that stands in its relations to the assigned variables; false after
 * QKVI_DRAW_TRIES.
 */
static bool draw_var(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_var *var, int32_t *lexeme,
                     const qkvi_assignment *assignment) {
    const qkvi_domain *const domain = &var->domains[QKVI_ANY];
    for (int32_t i = 0; i < QKVI_DRAW_TRIES; ++i) {
        *lexeme = domain->urn[qkvi_rng_below(rng, (uint32_t)domain->n_urn)];
        if (qkvi_relations_hold(g, var, *lexeme, assignment)) return true;
    }
    return false;
}

bool qkvi_say_draw(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_say *say,
                   qkvi_assignment *assignment) {
    const qkvi_family *const family = &g->families[say->family];
    for (int32_t v = 0; v < QKVI_MAX_VARS; ++v) assignment->lexeme[v] = -1;
    for (int32_t v = 0; v < family->n_vars; ++v) {
        if (!(say_vars(say) >> v & 1)) continue;
        int32_t lexeme;
        if (!draw_var(g, rng, &family->vars[v], &lexeme, assignment)) return false;
        assignment->lexeme[v] = lexeme;
    }
    return true;
}

const qkvi_frame *qkvi_say_frame(const qkvi_grammar *g, const qkvi_say *say,
                                 const qkvi_assignment *assignment) {
    uint32_t bits = 0;
    for (int32_t i = 0; i < say->n_optional; ++i) {
        const int32_t v = say->optional[i];
        const qkvi_domain *const bare = &g->families[say->family].vars[v].domains[QKVI_BARE];
        bits |= (uint32_t)qkvi_domain_has(bare, assignment->lexeme[v]) << i;
    }
    return &g->frames[say->first_frame + (int32_t)bits];
}

void qkvi_say_half(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_say *say, int half,
                   const qkvi_assignment *assignment, qkvi_sentence *sentence) {
    const qkvi_frame *const frame = qkvi_say_frame(g, say, assignment);
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

bool qkvi_say_try(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_say *say, qkvi_wish wish,
                  qkvi_assignment *assignment, qkvi_sentence *sentence) {
    if (!qkvi_say_draw(g, rng, say, assignment)) return false;
    if (qkvi_is_held(g, say, assignment) != wish.is_held) return false;
    if (!wish.is_next) return qkvi_say_wrong(g, rng, say, assignment, sentence);
    sentence->n = 0;
    qkvi_say_half(g, rng, say, 0, assignment, sentence);
    if (say->is_pair) qkvi_say_half(g, rng, say, 1, assignment, sentence);
    return !wish.is_held || qkvi_grammar_said(g, sentence, 3) == QKVI_HELD_OUT;
}

bool qkvi_say_can_be_held(const qkvi_grammar *g, const qkvi_say *say) {
    const qkvi_family *const family = &g->families[say->family];
    uint32_t needed = 0;
    for (int32_t i = 0; i < family->n_hold; ++i) needed |= 1u << family->hold[i];
    return say->is_held || (needed && (say_vars(say) & needed) == needed);
}
