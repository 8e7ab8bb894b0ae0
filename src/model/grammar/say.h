/* Between the files that make text: drawing, halves, wrong pairs. */
#ifndef QKV_MODEL_GRAMMAR_SAY_H
#define QKV_MODEL_GRAMMAR_SAY_H

#include "model/grammar/grammar.h"

enum { QKVI_DRAW_TRIES = 40 }; /* before a draw is given up and begun anew */

/* What the generator wants of a say. */
typedef struct qkvi_wish {
    bool is_held, is_next;
} qkvi_wish;

/* ---- draw.c ---- */

/* Draws a lexeme for each variable of a say; false if that found no lexeme for one. */
bool qkvi_say_draw(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_say *say,
                   qkvi_assignment *assignment);
/* The frame of a say for which the variables in <> are as bare as their lexemes. */
const qkvi_frame *qkvi_say_frame(const qkvi_grammar *g, const qkvi_say *say,
                                 const qkvi_assignment *assignment);
/* Appends the words of one half. */
void qkvi_say_half(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_say *say, int half,
                   const qkvi_assignment *assignment, qkvi_sentence *sentence);
/* Draws a say's variables and words once; false if that gave something else than the wish. */
bool qkvi_say_try(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_say *say, qkvi_wish wish,
                  qkvi_assignment *assignment, qkvi_sentence *sentence);
/* Whether some of what the say says can be held out. */
bool qkvi_say_can_be_held(const qkvi_grammar *g, const qkvi_say *say);

/* ---- wrong.c ---- */

/*
 * The words of a pair that does not belong together and begins like this one; false if the draw was
 * unlucky.
 */
bool qkvi_say_wrong(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_say *say,
                    const qkvi_assignment *assignment, qkvi_sentence *sentence);

#endif
