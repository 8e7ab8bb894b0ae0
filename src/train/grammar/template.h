/* Between the files that make text: drawing, halves, wrong pairs. */
#ifndef QKV_MODEL_GRAMMAR_SAY_H
#define QKV_MODEL_GRAMMAR_SAY_H

#include "train/grammar/grammar.h"

enum { QKVI_DRAW_TRIES = 40 }; /* before a draw is given up and begun anew */

/* What the generator wants of a template. */
typedef struct qkvi_wish {
    bool is_held, is_next;
} qkvi_wish;

/* ---- draw.c ---- */

/* Draws a lexeme for each variable of a template; false if that found no lexeme for one. */
bool qkvi_template_draw(const qkvi_grammar *g, qkvi_rng *rng,
                        const qkvi_sentence_template *template, qkvi_assignment *assignment);
/* The frame of a template for which the variables in <> are as bare as their lexemes. */
const qkvi_sentence_frame *qkvi_template_frame(const qkvi_grammar *g,
                                               const qkvi_sentence_template *template,
                                               const qkvi_assignment *assignment);
/* Appends the words of one half. */
void qkvi_template_half(const qkvi_grammar *g, qkvi_rng *rng,
                        const qkvi_sentence_template *template, int half,
                        const qkvi_assignment *assignment, qkvi_sentence *sentence);
/* Draws a template's variables and words once; false if that gave something else than the wish. */
bool qkvi_template_try(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_sentence_template *template,
                       qkvi_wish wish, qkvi_assignment *assignment, qkvi_sentence *sentence);
/* Whether some of what the template says can be held out. */
bool qkvi_template_can_be_held(const qkvi_grammar *g, const qkvi_sentence_template *template);

/* ---- wrong.c ---- */

/*
 * The words of a pair that does not belong together and begins like this one; false if the draw was
 * unlucky.
 */
bool qkvi_template_wrong(const qkvi_grammar *g, qkvi_rng *rng,
                         const qkvi_sentence_template *template, const qkvi_assignment *assignment,
                         qkvi_sentence *sentence);

#endif
