/*
 * A text, or a text and its target, as a source: its heads by one run of the model, and what the
 * model says of it, by one run more as it is where something is asked (--what-if).
 */
#ifndef QKV_CLI_LOOK_TEXT_H
#define QKV_CLI_LOOK_TEXT_H

#include "common/attended.h"
#include "common/job.h"
#include "common/predict.h"
#include "look/findings.h"
#include "look/options.h"
#include <qkv/effects.h>

struct text_seen {
    struct seen seen; /* the first: what a sink knows */
    const struct look_options *options;
    struct attended text;
    const struct head_name *list; /* of --heads */
    int n_list;
    double *log_p; /* [rows - 1] or, of a pair, [rows]: of the tokens that come next; NULL */
    struct predictions predictions;
    struct predictions before; /* where something is asked: those of the model as it is */
    double *labels;            /* [n_labels], of a classifier; NULL */
    double *replaced;          /* [n], of a model that judges tokens; NULL */
    struct alignment *alignment;
    struct findings findings;
};

/* What a sink knows is the first part of what the source made. */
static inline const struct text_seen *text_of(const struct seen *seen) {
    return (const struct text_seen *)(const void *)seen;
}

/* Nothing yet: the text of a job, and the heads that --heads names. */
void text_begin(struct text_seen *t, const struct text_job *job, const qkv_encoding *input,
                const struct head_name *list, int n_list);
/* Labels, target and what is asked; target: as of attended_open. */
qkv_status text_open(struct text_seen *t, const char *target, const struct what_if *parsed,
                     qkv_error *error);
/* Its heads, by one run. */
qkv_status text_run(struct text_seen *t, uint32_t flags, qkv_error *error);
/* All of it but findings. */
qkv_status text_look(struct text_seen *t, const struct what_if *parsed, qkv_error *error);
void text_free(struct text_seen *t);

/* ---- Words (text_words.c) -------------------------------------------------------------------- */

/* What is said of heads that were chosen, and which of them go where. means: of windows, or "". */
void text_describe(struct text_seen *t, const char *means);
/* "MODIFIED: not what the model computed (…). ", if something is asked. */
static inline void text_modified(const struct text_seen *t, struct caption *caption) {
    if (t->text.what_if.any)
        caption_add(caption, "MODIFIED: not what the model computed (%s). ", t->text.what_if.words);
}
/* e^(-mean of log_p), and how many tokens that is over; 0: none. */
double text_perplexity(const struct text_seen *t, int64_t *n);
/* Above the heads on a terminal; tokens and words of an object. As those of struct seen. */
void text_print(const struct seen *seen, struct term *term);
void text_add_json(const struct seen *seen, bool behind, json_t *object);
/* Of them, those that windows have, too. */
void text_add_words(const struct text_seen *t, json_t *object);

/* ---- Its page (text_page.c) ------------------------------------------------------------------ */

qkv_status text_make_page(const struct seen *seen, struct page *page, qkv_error *error);
/* The text itself; and where queries and keys hide one another: rules, dropped keys and a badge. */
void text_page_title(const struct text_seen *t, struct page *page);
void text_page_rules(const struct text_seen *t, struct page *page);
/* Adds what each layer would predict at each token (lens.c). */
qkv_status text_lens(const struct text_seen *t, struct page *page, qkv_error *error);
/*
 * Adds what each head, and each group of --group, is worth for the words it predicts (effects.c).
 */
qkv_status text_effects(const struct text_seen *t, struct page *page, qkv_error *error);

/* Nothing is ablated yet; is_next: words that follow are predicted, else those of blanks. */
qkv_effects ablation_options(const struct text_seen *t, bool is_next);

/* ---- --align (align.c) ----------------------------------------------------------------------- */

/* In place of heads. */
qkv_status text_align(struct text_seen *t, qkv_error *error);
void alignment_free(struct alignment *alignment);
void alignment_print(const struct text_seen *t, struct term *term);
json_t *alignment_json(const struct text_seen *t);

#endif
