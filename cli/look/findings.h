/*
 * What is true of a text, in sentences that `look` opens with: what the head that is shown reads to
 * fill [MASK] or to say what comes next, and what follows for that word without the head.
 */
#ifndef QKV_CLI_LOOK_FINDINGS_H
#define QKV_CLI_LOOK_FINDINGS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <qkv/status.h>

struct term;
struct text_seen;

/* A head, and what it is worth for a word; before and without are NaN where that was not asked. */
struct finding {
    int64_t layer, head, query, key; /* key -1: it reads nothing */
    double weight;
    double before, without; /* P of the word, as the model is and with the head giving 0 */
    char *from, *read;      /* while it is said: the words of query and key */
    bool own;               /* they are one word, of several tokens */
    char text[400];         /* the sentence */
};

/*
 * The head that is shown, and of small models the head that is worth most, if it is another one.
 * Ablations that would take long are not made (findings_quick).
 */
struct findings {
    struct finding list[2];
    int n;            /* 0: there is nothing to say */
    bool most;        /* of all heads, each ablated alone, the shown one is worth most … */
    bool none;        /* … or no one changes P */
    int32_t word;     /* whose P is told; -1: none */
    int64_t position; /* where it would be, as of qkv_effects */
};

/* Of a text where nothing is asked, that was looked at: into t->findings. */
qkv_status findings_make(struct text_seen *t, qkv_error *error);
void findings_print(const struct findings *findings, struct term *term);
/*
 * [{"text", "layer", "head", "query", "key", "weight", "position", "token", "probability",
 * "without"}]
 */
json_t *findings_json(const struct text_seen *t);

/*
 * Are n heads, each ablated alone, quick enough to be ablated without --effect? The one place
 * of this limit, of what a terminal shows and of a page.
 */
bool ablation_quick(const struct text_seen *t, int64_t n);

#endif
