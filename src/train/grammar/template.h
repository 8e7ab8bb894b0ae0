/* Making texts of a template: drawing, halves, wrong pairs. */
#ifndef QKV_MODEL_GRAMMAR_SAY_H
#define QKV_MODEL_GRAMMAR_SAY_H

#include "train/grammar/grammar.h"

enum { QKVI_DRAW_TRIES = 40 }; /* tries of one choice before the whole draw begins anew */

/* What the text must be: held out or not, a pair that belongs together or not. */
typedef struct qkvi_wish {
    bool is_held, is_next;
} qkvi_wish;

/* ---- draw.c ---- */

/* Draws a lexeme for each variable of a template; false if there was none left for a variable. */
bool qkvi_template_draw(const qkvi_grammar *g, qkvi_rng *rng,
                        const qkvi_sentence_template *template, qkvi_assignment *assignment);
/* The frame of a template in which each variable <X> is bare if its lexeme is. */
const qkvi_sentence_frame *qkvi_template_frame(const qkvi_grammar *g,
                                               const qkvi_sentence_template *template,
                                               const qkvi_assignment *assignment);
/* Appends the words of one half to a sentence. */
void qkvi_template_half(const qkvi_grammar *g, qkvi_rng *rng,
                        const qkvi_sentence_template *template, int half,
                        const qkvi_assignment *assignment, qkvi_sentence *sentence);
/* Draws variables and words of a template once; false if the result is not as wished. */
bool qkvi_template_try(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_sentence_template *template,
                       qkvi_wish wish, qkvi_assignment *assignment, qkvi_sentence *sentence);
/* Can some text of the template be held out? */
bool qkvi_template_can_be_held(const qkvi_grammar *g, const qkvi_sentence_template *template);

/* ---- wrong.c ---- */

/*
 * Makes a pair with the same first half that does not belong together; false if the draw gave none.
 */
bool qkvi_template_wrong(const qkvi_grammar *g, qkvi_rng *rng,
                         const qkvi_sentence_template *template, const qkvi_assignment *assignment,
                         qkvi_sentence *sentence);

#endif
