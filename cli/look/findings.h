/*
 * Findings: sentences that `look` begins with. They say what a head looks at in the row that
 * predicts a word (a [MASK], or the next token), and how the probability of that word changes when
 * the head is ablated.
 */
#ifndef QKV_CLI_LOOK_FINDINGS_H
#define QKV_CLI_LOOK_FINDINGS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <qkv/status.h>

struct term;
struct attended;
struct text_seen;

/* A head, and what it contributes to a word. */
struct finding {
    int64_t layer, head, query, key; /* key -1: no key has enough weight to be named */
    double weight;
    double before, without; /* P of the word without and with ablation; NaN: not computed */
    char *from, *read;      /* the words of query and key, only while the sentence is made */
    bool own;               /* query and key are tokens of the same word */
    char text[400];         /* the sentence */
};

/*
 * The head that is shown and, of a small model, the head whose ablation changes P most, if that is
 * another one. Ablations that would take long are not made (ablation_quick).
 */
struct findings {
    struct finding list[2];
    int n;            /* 0: there is nothing to say */
    bool most;        /* ablating the shown head changes P more than ablating any other one */
    bool none;        /* ablating any one head does not change P */
    int32_t word;     /* the word with the probability P; -1: none */
    int64_t position; /* where it is predicted, as in qkv_effects */
    /* [1 + heads] ln P of the word: of the model, and without each head; NULL: not all measured */
    double *log_p;
};

/* Makes t->findings, after text_look. For texts without --what-if. */
qkv_status findings_make(struct text_seen *t, qkv_error *error);
void findings_print(const struct findings *findings, struct term *term);
/*
 * [{"text", "layer", "head", "query", "key", "weight", "position", "token", "probability",
 * "without"}]
 */
json_t *findings_json(const struct text_seen *t);

/*
 * Is it quick to ablate each of n heads alone? Then it is done without --effect, for the terminal
 * and for a page.
 */
bool ablation_quick(const struct attended *text, int64_t n);

#endif
