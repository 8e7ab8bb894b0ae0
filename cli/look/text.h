/*
 * A source of one text, with a target for an encoder-decoder: its heads, and the predictions of the
 * model. One run gives both; with --what-if a second run, of the unchanged model, gives its
 * predictions to compare.
 */
#ifndef QKV_CLI_LOOK_TEXT_H
#define QKV_CLI_LOOK_TEXT_H

#include "common/attended.h"
#include "common/job.h"
#include "common/predict.h"
#include "common/token_labels.h"
#include "look/findings.h"
#include "look/options.h"
#include <qkv/effects.h>

struct text_seen {
    struct seen seen; /* first, so that sinks can pass it back to the source: text_of */
    const struct look_options *options;
    struct attended text;
    const struct head_name *list; /* of --heads */
    int n_list;
    double *log_p; /* ln P of next tokens: [rows - 1], with a target [rows]; NULL: none */
    struct predictions predictions;
    struct predictions before; /* with --what-if: of the unchanged model */
    double *labels;            /* [n_labels], of a classifier of texts; NULL */
    double *token_labels;      /* [n][n_labels], of one of tokens; NULL */
    double *replaced;          /* [n], of an ELECTRA discriminator; NULL */
    struct alignment *alignment;
    struct findings findings;
    struct seen_quantity quantity; /* of --norms and --rollout (text_flow.c) */
    float *factors, *map;          /* its arrays */
    char cell[400];                /* its words */
};

/* The source of a seen whose functions are those of a text. */
static inline const struct text_seen *text_of(const struct seen *seen) {
    return (const struct text_seen *)(const void *)seen;
}

/* Sets the text of a job and the heads that --heads names, and all else to 0. */
void text_begin(struct text_seen *t, const struct text_job *job, const qkv_encoding *input,
                const struct head_name *list, int n_list);
/* Makes labels, target and what-if: attended_open. */
qkv_status text_open(struct text_seen *t, const char *target, const struct what_if *parsed,
                     qkv_error *error);
/* Runs the model and measures the heads. */
qkv_status text_run(struct text_seen *t, uint32_t flags, qkv_error *error);
/* Does all of this: the whole source, except its findings. */
qkv_status text_look(struct text_seen *t, const struct what_if *parsed, qkv_error *error);
void text_free(struct text_seen *t);

/* ---- --norms and --rollout (text_flow.c) ----------------------------------------------------- */

/*
 * Makes cells |p f(x)| of the heads, or the rollout of all tokens in place of heads, when the head
 * is chosen and described. text_flow_flags: what the run must keep for it.
 */
static inline uint32_t text_flow_flags(const struct look_options *options) {
    return options->norms ? QKV_RUN_HIDDEN : 0;
}
qkv_status text_flow(struct text_seen *t, qkv_error *error);
/* Adds the members of an object that heads do not have. */
void text_flow_json(const struct text_seen *t, json_t *object);

/* ---- Words (text_words.c) -------------------------------------------------------------------- */

/*
 * Fills in the captions and names of t->seen when the shown head is chosen, and which heads files
 * have. means: a caption about windows, or "".
 */
void text_describe(struct text_seen *t, const char *means);
/* e^(-mean of log_p), over *n tokens; *n is 0 if there are none. */
double text_perplexity(const struct text_seen *t, int64_t *n);
/* seen.print and seen.add_json of a text. */
void text_print(const struct seen *seen, struct term *term);
void text_add_json(const struct seen *seen, bool behind, json_t *object);
/* Adds the members that windows of a text have, too. */
void text_add_words(const struct text_seen *t, json_t *object);

/* ---- Its page (text_page.c) ------------------------------------------------------------------ */

qkv_status text_make_page(const struct seen *seen, struct page *page, qkv_error *error);
/* Sets title and caption of the text. */
void text_page_title(const struct text_seen *t, struct page *page);
/* Sets the rules of visibility, the dropped keys, and the badge of --what-if. */
void text_page_rules(const struct text_seen *t, struct page *page);
/* Adds tables of what each layer would predict at each token (lens.c). */
qkv_status text_lens(const struct text_seen *t, struct page *page, qkv_error *error);
/* Adds how ablation of each head, and of each group of --group, changes predictions (effects.c). */
qkv_status text_effects(const struct text_seen *t, struct page *page, qkv_error *error);

/* Options of qkv_inspect_effects without heads; is_next: next tokens are predicted, else masks. */
qkv_effects ablation_options(const struct text_seen *t, bool is_next);

/* ---- --align (align.c) ----------------------------------------------------------------------- */

/* Makes the alignment, which is shown in place of heads. */
qkv_status text_align(struct text_seen *t, qkv_error *error);
void alignment_free(struct alignment *alignment);
void alignment_print(const struct text_seen *t, struct term *term);
json_t *alignment_json(const struct text_seen *t);
qkv_status alignment_write(const struct seen *seen, const char *path, qkv_error *error);

#endif
