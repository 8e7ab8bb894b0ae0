/*
 * What each head of a page is worth for what the model predicts: where --effect asks for it, and
 * where it is so quick that the terminal would tell it, too (findings_quick).
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "look/findings.h"
#include "look/page_groups.h"
#include <qkv/effects.h>

/* Each head of the page is a set of its own, in the order of the page; behind them are groups. */
struct sets {
    int64_t n, n_places; /* n: with groups */
    struct page_groups groups;
    int64_t *ends, *heads;
    int32_t *words;
    double *log_p; /* [n + 1][n_places] */
};

static void sets_free(struct sets *sets) {
    free(sets->ends);
    free(sets->heads);
    free(sets->words);
    free(sets->log_p);
    page_groups_free(&sets->groups);
}

/* Groups follow the heads. */
static void put_groups(struct sets *sets, int64_t n_heads) {
    int64_t end = n_heads;
    for (int64_t g = 0; g < sets->groups.n; g++) {
        const struct page_group *const group = &sets->groups.list[g];
        memcpy(sets->heads + end, group->heads, (size_t)group->n * sizeof *group->heads);
        sets->ends[n_heads + g] = end += group->n;
    }
}

/* Of a decoder that reads an encoder the word is the one of the target that the shown row predicts. */
static bool is_of_target(const struct look *look) {
    return look->text.pair.next && look->text.view.which != QKV_SELF;
}

static qkv_status sets_make(struct sets *sets, const struct look *look, const qkv_page *page,
                            const qkv_page_head *heads, qkv_error *error) {
    const struct predictions *const made = &look->predictions;
    qkv_status status = QKV_OK;
    if (look->options->groups.n > 0)
        status = page_groups_make(look, heads, page->n_heads, &sets->groups, error);
    if (status != QKV_OK) return status;
    sets->n = page->n_heads + sets->groups.n;
    sets->n_places = is_of_target(look) ? 1 : made->n_masks;
    sets->ends = calloc((size_t)sets->n + 1, sizeof *sets->ends);
    sets->heads = calloc((size_t)(page->n_heads + sets->groups.n_all) + 1, sizeof *sets->heads);
    sets->words = calloc((size_t)sets->n_places + 1, sizeof *sets->words);
    sets->log_p = calloc((size_t)((sets->n + 1) * sets->n_places) + 1, sizeof *sets->log_p);
    if (!sets->ends || !sets->heads || !sets->words || !sets->log_p) return text_no_memory(error);
    for (int64_t s = 0; s < page->n_heads; s++) {
        sets->heads[s] = heads[s].layer * look_info(look)->n_heads + heads[s].head;
        sets->ends[s] = s + 1;
    }
    put_groups(sets, page->n_heads);
    if (is_of_target(look)) sets->words[0] = look->text.pair.next->ids[look->choice.query];
    for (int64_t t = 0; !is_of_target(look) && t < sets->n_places; t++)
        sets->words[t] = made->candidates[t * made->top].id;
    return QKV_OK;
}

/* The mean ln p of the words, of the model (0) or without head `row` - 1 of the page. */
static double mean_of(const struct sets *sets, int64_t row) {
    double sum = 0;
    for (int64_t t = 0; t < sets->n_places; t++) sum += sets->log_p[row * sets->n_places + t];
    return sum / (double)sets->n_places;
}

/* Of a word that follows: of a language model's text, or of the target of a pair. */
static bool is_next(const struct look *look) {
    return is_of_target(look) || look->predictions.is_next;
}

static qkv_status compute(const struct look *look, struct sets *sets, qkv_error *error) {
    const struct session *const session = look->text.session;
    struct progress progress;
    qkv_effects asked = qkv_effects_init();
    qkv_call_options call = progress_call(&progress, "ablating", look->options->common.quiet);
    asked.which = look->text.view.which;
    asked.target = look->text.pair.next ? &look->text.pair.inputs : NULL;
    asked.head = is_next(look) ? QKV_HEAD_NEXT : QKV_HEAD_MASKED;
    asked.n_places = sets->n_places;
    asked.positions = is_of_target(look) ? &look->choice.query : look->predictions.positions;
    asked.words = sets->words;
    asked.n_sets = sets->n;
    asked.ends = sets->ends;
    asked.heads = sets->heads;
    const qkv_status status = qkv_inspect_effects(session->ctx, session->model, look->text.input,
                                                  &asked, sets->log_p, &call, error);
    progress_end(&progress);
    return status;
}

/* What the numbers are about: one word at one place, or the words of several. */
static void describe(const struct look *look, const struct sets *sets, qkv_page *page,
                     struct page_effects *made) {
    page->effect_query = -1;
    page->effect_log_p = mean_of(sets, 0);
    page->effect_of = made->what;
    if (sets->n_places > 1) {
        snprintf(made->what, sizeof made->what,
                 "the mean ln P of the %" PRId64 " likeliest words for the blanks", sets->n_places);
        return;
    }
    const bool pair = is_of_target(look);
    made->word = pair ? token_label(look->text.session->target, sets->words[0])
                      : session_token(look->text.session, sets->words[0]);
    page->effect_word = made->word;
    page->effect_query = pair ? look->choice.query : look->predictions.positions[0];
    snprintf(made->what, sizeof made->what, "ln P(%.80s) %s token %" PRId64 "%s",
             made->word ? made->word : "", is_next(look) ? "after" : "at", page->effect_query,
             pair ? " of the target" : "");
}

/* Is there a word that the model predicts? */
static bool has_word(const struct look *look) {
    if (is_of_target(look)) return look->text.session->info->has_lm && look->choice.query >= 0;
    return look->text.view.which == QKV_SELF && look->predictions.n_masks > 0 &&
           look->predictions.top > 0;
}

/* A modified model and a mean over windows have none. */
static bool is_of_itself(const struct look *look) {
    return !look->text.what_if.any && !look->windows && has_word(look);
}

qkv_status look_page_effects(const struct look *look, qkv_page *page, qkv_page_head *heads,
                             struct page_effects *made, struct page_tables *tables,
                             qkv_error *error) {
    const bool asked = look->options->effect;
    struct sets sets = { 0 };
    if (!asked && !(is_of_itself(look) && findings_quick(look, page->n_heads))) return QKV_OK;
    if (!has_word(look))
        return text_error(error, QKV_ERR_ARGUMENT,
                          "--effect: the model predicts nothing here: a text with [MASK], or a "
                          "language model");
    qkv_status status = sets_make(&sets, look, page, heads, error);
    if (status == QKV_OK) status = compute(look, &sets, error);
    if (status == QKV_OK) describe(look, &sets, page, made);
    for (int64_t h = 0; status == QKV_OK && h < page->n_heads; h++)
        heads[h].effect = mean_of(&sets, 1 + h) - mean_of(&sets, 0);
    for (int64_t g = 0; status == QKV_OK && g < sets.groups.n; g++)
        sets.groups.list[g].effect = mean_of(&sets, 1 + page->n_heads + g) - mean_of(&sets, 0);
    if (status == QKV_OK)
        status = page_groups_table(look, page, heads, &sets.groups, tables, error);
    sets_free(&sets);
    /* without them it is a page all the same */
    return status == QKV_ERR_UNSUPPORTED && !asked ? QKV_OK : status;
}
