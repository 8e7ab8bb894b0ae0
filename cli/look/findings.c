/*
 * Findings of `qkv look`: see findings.h.
 *
 * The word is the likeliest one at the [MASK] whose row the shown head has, or the one that comes
 * next; of a decoder over an encoder it is the word of the target that the row predicts. Ablation is
 * that of qkv_inspect_effects: the head gives 0, and all else follows. A sentence rounds to two
 * decimals, and calls a change below half of that none.
 */
#include "look/findings.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include <qkv/effects.h>

/* Multiplications of a pass over a text, roughly, up to which one head or several are ablated. */
static const double pass_limit = 1e10, all_limit = 2e9;
static const double least_change = 0.005;

/* ---- The word -------------------------------------------------------------------------------- */

/* The [MASK] of the shown row, else the first one; -1: there is none. */
static int64_t mask_of(const struct look *look) {
    const struct predictions *p = &look->predictions;
    for (int64_t m = 0; m < p->n_masks; m++)
        if (p->positions[m] == look->choice.query) return m;
    return p->n_masks > 0 && p->top > 0 ? 0 : -1;
}

static void find_word(const struct look *look, struct findings *f) {
    const struct pair *pair = &look->text.pair;
    const struct predictions *p = &look->predictions;
    const int64_t mask = mask_of(look);
    f->word = -1;
    if (pair->next && look->text.session->info->has_lm && look->choice.query >= 0) {
        f->position = look->choice.query;
        f->word = pair->next->ids[f->position];
    } else if (!pair->next && mask >= 0) {
        f->position = p->positions[mask];
        f->word = p->candidates[mask * p->top].id;
    }
}

/* Multiplications of linear layers over all tokens, which are most of a pass. */
static double work_of_pass(const struct look *look) {
    const qkv_model_info *info = look->text.session->info;
    const double h = (double)info->hidden, n = (double)look->text.input->n;
    const double encoder =
        (double)info->n_layers * (4 * h * h + 2 * h * (double)info->intermediate);
    const double decoder =
        (double)info->n_decoder_layers * (8 * h * h + 2 * h * (double)info->decoder_intermediate);
    const double n_target = look->text.pair.next ? (double)look->text.pair.next->n : 0;
    return n * encoder + n_target * decoder;
}

bool findings_quick(const struct look *look, int64_t n) {
    const double work = work_of_pass(look);
    return n == 1 ? work <= pass_limit : work * (double)n <= all_limit;
}

/* ---- Ablations ------------------------------------------------------------------------------- */

/* P of the word: [0] as the model is, [1 + s] without the s-th of the heads. */
static qkv_status ablate(const struct look *look, const struct findings *f, const int64_t *heads,
                         int64_t n, double *p, qkv_error *error) {
    const struct session *session = look->text.session;
    int64_t *ends = calloc((size_t)n + 1, sizeof *ends);
    if (!ends) return text_no_memory(error);
    for (int64_t s = 0; s < n; s++) ends[s] = s + 1;
    qkv_effects asked = qkv_effects_init();
    asked.which = look->text.view.which;
    asked.target = look->text.pair.next ? &look->text.pair.inputs : NULL;
    asked.head = session->info->has_lm ? QKV_HEAD_NEXT : QKV_HEAD_MASKED;
    asked.n_places = 1;
    asked.positions = &f->position;
    asked.words = &f->word;
    asked.n_sets = n;
    asked.ends = ends;
    asked.heads = heads;
    const qkv_status status =
        qkv_inspect_effects(session->ctx, session->model, look->text.input, &asked, p, NULL, error);
    for (int64_t s = 0; status == QKV_OK && s <= n; s++) p[s] = exp(p[s]);
    free(ends);
    return status;
}

/* What a head reads from a query. */
static qkv_status read_key(const struct look *look, int64_t index, struct finding *one,
                           qkv_error *error) {
    float weight = NAN;
    const qkv_status status =
        qkv_heads_look(look->text.heads, index, one->query, &one->key, &weight, error);
    one->weight = (double)weight;
    return status;
}

/* The shown head alone, or all of them and the one that is worth most. */
static qkv_status measure(const struct look *look, struct findings *f, bool all, qkv_error *error) {
    const int64_t n = all ? look_n_heads(look) : 1, chosen = look_chosen(look);
    int64_t *heads = calloc((size_t)n + 1, sizeof *heads), most = 0;
    double *p = calloc((size_t)n + 2, sizeof *p);
    qkv_status status = heads && p ? QKV_OK : text_no_memory(error);
    for (int64_t s = 0; status == QKV_OK && s < n; s++) heads[s] = all ? s : chosen;
    if (status == QKV_OK) status = ablate(look, f, heads, n, p, error);
    if (status == QKV_ERR_UNSUPPORTED) { /* it looks all the same */
        free(heads);
        free(p);
        return QKV_OK;
    }
    f->all = f->none = all;
    for (int64_t s = 0; status == QKV_OK && s < n; s++) {
        if (p[1 + s] < p[1 + most]) most = s;
        if (!(fabs(p[1 + s] - p[0]) < least_change)) f->none = false;
    }
    if (status == QKV_OK) {
        f->most = all && most == chosen && p[0] - p[1 + most] >= least_change;
        f->list[0].before = p[0];
        f->list[0].without = p[1 + (all ? chosen : 0)];
    }
    if (status == QKV_OK && all && most != chosen && p[0] - p[1 + most] >= least_change) {
        struct finding *const one = &f->list[f->n++];
        *one = (struct finding){ .layer = most / look_info(look)->n_heads,
                                 .head = most % look_info(look)->n_heads,
                                 .query = f->list[0].query,
                                 .before = p[0],
                                 .without = p[1 + most] };
        if (one->query >= 0) status = read_key(look, most, one, error);
    }
    free(heads);
    free(p);
    return status;
}

/* ---- Sentences ------------------------------------------------------------------------------- */

static const char *change_of(const struct finding *one) {
    const double change = one->without - one->before;
    return fabs(change) < least_change ? "stays at" : change < 0 ? "falls" : "rises";
}

/* "without it P(it) falls from 1.00 to 0.54"; of what comes next, "P(next is it)". */
static void add_worth(const struct look *look, const struct finding *one, const char *word,
                      bool first, char *text, size_t bytes) {
    if (isnan(one->before) || isnan(one->without)) return;
    text_append(text, bytes, "without it P(%s%.60s) %s ",
                look->predictions.is_next && !look->text.pair.next ? "next is " : "", word,
                change_of(one));
    if (first && fabs(one->without - one->before) >= least_change)
        text_append(text, bytes, "from %.2f ", one->before);
    text_append(text, bytes, "%s%.2f", fabs(one->without - one->before) < least_change ? "" : "to ",
                one->without);
}

/* What the row is for: "To fill [MASK], ", "To say what comes next, ", "At cat, ". */
static void add_purpose(const struct look *look, const struct findings *f, const char *word,
                        char *text, size_t bytes) {
    const int64_t query = look->choice.query;
    const bool here = f->word >= 0 && f->position == query;
    if (look->text.pair.next && here)
        text_append(text, bytes, "To write %.60s, ", word);
    else if (here && look->predictions.is_next)
        text_append(text, bytes, "To say what comes next, ");
    else if (here && look->predictions.n_masks > 1)
        text_append(text, bytes, "To fill %.60s at token %" PRId64 ", ", look->rows[query], query);
    else if (here)
        text_append(text, bytes, "To fill %.60s, ", look->rows[query]);
    else
        text_append(text, bytes, "At %.60s, ", look->rows[query]);
}

static void say_shown(const struct look *look, struct findings *f, const char *word) {
    struct finding *const one = &f->list[0];
    const size_t bytes = sizeof one->text;
    add_purpose(look, f, word, one->text, bytes);
    text_append(one->text, bytes, "head %" PRId64 ".%" PRId64 " reads %.60s (%.2f)", one->layer,
                one->head, look->cols[one->key], one->weight);
    if (!isnan(one->before)) text_append(one->text, bytes, "; ");
    add_worth(look, one, word, true, one->text, bytes);
    if (f->most) text_append(one->text, bytes, ", more than without any other head");
    if (f->none) text_append(one->text, bytes, ", as without any other head");
    text_append(one->text, bytes, ".");
}

static void say_worth_most(const struct look *look, struct findings *f, const char *word) {
    struct finding *const one = &f->list[1];
    const size_t bytes = sizeof one->text;
    text_append(one->text, bytes,
                "Of all %" PRId64 " heads %" PRId64 ".%" PRId64 " is worth most for it: ",
                look_n_heads(look), one->layer, one->head);
    add_worth(look, one, word, false, one->text, bytes);
    if (one->key >= 0)
        text_append(one->text, bytes, ". It reads %.60s (%.2f)", look->cols[one->key], one->weight);
    text_append(one->text, bytes, ".");
}

qkv_status findings_make(const struct look *look, struct findings *f, qkv_error *error) {
    *f = (struct findings){ .word = -1 };
    if (look->windows || look->arrays || look->text.what_if.any || look->choice.key < 0)
        return QKV_OK;
    f->n = 1;
    f->list[0] = (struct finding){ .layer = look->choice.layer,
                                   .head = look->choice.head,
                                   .query = look->choice.query,
                                   .key = look->choice.key,
                                   .weight = (double)look->choice.weight,
                                   .before = NAN,
                                   .without = NAN };
    find_word(look, f);
    char *word = NULL;
    qkv_status status = QKV_OK;
    if (f->word >= 0) {
        word = token_label(look->text.pair.next ? look->text.session->target
                                                : look->text.session->tokenizer,
                           f->word);
        status = word ? QKV_OK : text_no_memory(error);
    }
    if (status == QKV_OK && word && findings_quick(look, 1))
        status = measure(look, f, !look->given && findings_quick(look, look_n_heads(look)), error);
    if (status == QKV_OK) say_shown(look, f, word ? word : "");
    if (status == QKV_OK && f->n > 1) say_worth_most(look, f, word);
    free(word);
    return status;
}

void findings_print(const struct findings *f, struct term *term) {
    for (int i = 0; i < f->n; i++) {
        char *const spelt = term->unicode ? NULL : term_spell_out(f->list[i].text);
        term_wrap_styled(term, i ? STYLE_NONE : STYLE_BOLD, spelt ? spelt : f->list[i].text);
        free(spelt);
    }
    if (f->n > 0) term_newline(term);
}

json_t *findings_json(const struct look *look, const struct findings *f) {
    json_t *const list = json_array();
    for (int i = 0; i < f->n; i++) {
        const struct finding *const one = &f->list[i];
        json_t *const object =
            json_set(NULL, "text:t layer:i head:i query:i key:i weight:n", one->text, one->layer,
                     one->head, one->query, one->key, one->weight);
        if (f->word >= 0 && !isnan(one->before))
            json_set(object, "position:i token:o probability:n without:n", f->position,
                     token_json(look->text.pair.next ? look->text.session->target
                                                     : look->text.session->tokenizer,
                                f->word),
                     one->before, one->without);
        json_array_append_new(list, object);
    }
    return list;
}
