/*
 * How predictions change when a head of a page is ablated: with --effect, or if it is quick
 * (ablation_quick). For groups of heads, the change when all are ablated together, beside the sum
 * of the changes when each is ablated alone.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/heads_list.h"
#include "look/text.h"
#include "sinks/page.h"

/*
 * Sets of heads, each layer * n_heads + head: heads of the page one by one, in its order, and
 * behind them groups. All memory is the page's.
 */
struct sets {
    const struct text_seen *t;
    const qkv_page_head *page_heads; /* [n_alone] */
    int64_t n_alone, n, n_places;
    int64_t *ends, *heads;
    char (*names)[100]; /* [n - n_alone] */
    int32_t *words;     /* [n_places] */
    double *log_p;      /* [n + 1][n_places] */
};

/*
 * Of a decoder that reads an encoder the word is the one of the target that the shown row
 * predicts.
 */
static bool is_of_target(const struct text_seen *t) {
    return t->text.pair.next && t->text.view.which != QKV_SELF;
}

/* Of a word that follows: of a language model's text, or of the target of a pair. */
static bool is_next(const struct text_seen *t) { return is_of_target(t) || t->predictions.is_next; }

/* ---- Groups ---------------------------------------------------------------------------------- */

static int64_t index_of(const struct sets *sets, int64_t h) {
    return sets->page_heads[h].layer * sets->t->seen.info->n_heads + sets->page_heads[h].head;
}

/* Where the page has a head; -1: nowhere. */
static int64_t place_of(const struct sets *sets, int64_t index) {
    for (int64_t h = 0; h < sets->n_alone; h++)
        if (index_of(sets, h) == index) return h;
    return -1;
}

static int64_t end_of(const struct sets *sets) { return sets->n ? sets->ends[sets->n - 1] : 0; }

/* One of --group: each head once, and each of them in the page. */
static qkv_status take_list(struct sets *sets, const char *text, qkv_error *error) {
    const qkv_heads_info *const info = sets->t->seen.info;
    const int64_t across = info->n_heads;
    int64_t *const heads = sets->heads + end_of(sets), n_once = 0;
    const int64_t n = heads_group(text, info->n_layers, across, NULL);
    if (n < 0)
        return text_error(error, QKV_ERR_ARGUMENT,
                          "--group: '%s' is none of layers, labels and all, and no list of heads "
                          "L.H or layers L.*, layers 0 to %" PRId64 ", heads 0 to %" PRId64,
                          text, info->n_layers - 1, across - 1);
    text_append(sets->names[sets->n - sets->n_alone], sizeof *sets->names, "%.96s", text);
    heads_group(text, info->n_layers, across, heads);
    for (int64_t i = 0; i < n; i++) {
        const int64_t head = heads[i];
        bool again = false;
        for (int64_t j = 0; j < n_once; j++) again |= heads[j] == head;
        if (!again) heads[n_once++] = head;
        if (place_of(sets, head) < 0)
            return text_error(error, QKV_ERR_ARGUMENT,
                              "--group: head %" PRId64 ".%" PRId64 " of '%s' is not in the page",
                              head / across, head % across, text);
    }
    sets->ends[sets->n] = end_of(sets) + n_once;
    sets->n++;
    return QKV_OK;
}

/* Heads of a layer, or with a label, if there are several; layer -1 and no label: all. */
static void take_alike(struct sets *sets, int64_t layer, const char *label) {
    char *const name = sets->names[sets->n - sets->n_alone];
    const int64_t first = end_of(sets);
    int64_t end = first;
    for (int64_t h = 0; h < sets->n_alone; h++) {
        const qkv_page_head *const head = &sets->page_heads[h];
        if ((layer < 0 || head->layer == layer) && (!label || strcmp(head->label, label) == 0))
            sets->heads[end++] = index_of(sets, h);
    }
    if (end - first < 2) return;
    if (layer >= 0)
        snprintf(name, sizeof *sets->names, "layer %" PRId64, layer);
    else
        snprintf(name, sizeof *sets->names, label ? "label %.80s" : "%.80s",
                 label ? label : "all heads");
    sets->ends[sets->n++] = end;
}

static bool has_label_before(const struct sets *sets, int64_t h) {
    for (int64_t before = 0; before < h; before++)
        if (strcmp(sets->page_heads[before].label, sets->page_heads[h].label) == 0) return true;
    return false;
}

static bool is_kind(const char *text) {
    return strcmp(text, "layers") == 0 || strcmp(text, "labels") == 0 || strcmp(text, "all") == 0;
}

/* Each layer, each label, or all: those with several heads in the page. */
static void take_kind(struct sets *sets, const char *kind) {
    if (strcmp(kind, "all") == 0) take_alike(sets, -1, NULL);
    for (int64_t layer = 0; strcmp(kind, "layers") == 0 && layer < sets->t->seen.info->n_layers;
         layer++)
        take_alike(sets, layer, NULL);
    for (int64_t h = 0; strcmp(kind, "labels") == 0 && h < sets->n_alone; h++)
        if (*sets->page_heads[h].label && !has_label_before(sets, h))
            take_alike(sets, -1, sets->page_heads[h].label);
}

/* ---- Sets ------------------------------------------------------------------------------------ */

/* Room for the heads of the page and for the groups that a --group can make. */
static bool sets_room(struct sets *sets, struct page *page, const struct arg_texts *groups) {
    const qkv_heads_info *const info = sets->t->seen.info;
    int64_t n_sets = sets->n_alone, n = sets->n_alone;
    for (int g = 0; g < groups->n; g++) {
        const bool kind = is_kind(groups->list[g]);
        const int64_t n_list = heads_group(groups->list[g], info->n_layers, info->n_heads, NULL);
        n_sets += kind ? info->n_layers + sets->n_alone + 1 : 1;
        n += kind ? sets->n_alone : n_list > 0 ? n_list : 0;
    }
    sets->ends = page_room(page, n_sets, sizeof *sets->ends);
    sets->names = page_room(page, n_sets, sizeof *sets->names);
    sets->heads = page_room(page, n, sizeof *sets->heads);
    sets->words = page_room(page, sets->n_places, sizeof *sets->words);
    sets->log_p = page_room(page, (n_sets + 1) * sets->n_places, sizeof *sets->log_p);
    return sets->ends && sets->names && sets->heads && sets->words && sets->log_p;
}

static qkv_status sets_make(struct sets *sets, struct page *page, qkv_error *error) {
    const struct text_seen *const t = sets->t;
    const struct arg_texts *const groups = &t->options->groups;
    const struct predictions *const made = &t->predictions;
    qkv_status status = QKV_OK;
    sets->page_heads = page->heads;
    sets->n_alone = page->desc.n_heads;
    sets->n_places = is_of_target(t) ? 1 : made->n_masks;
    if (!sets_room(sets, page, groups)) return text_no_memory(error);
    for (; sets->n < sets->n_alone; sets->n++) {
        sets->heads[sets->n] = index_of(sets, sets->n);
        sets->ends[sets->n] = sets->n + 1;
    }
    for (int g = 0; g < groups->n && status == QKV_OK; g++)
        if (is_kind(groups->list[g]))
            take_kind(sets, groups->list[g]);
        else
            status = take_list(sets, groups->list[g], error);
    if (is_of_target(t)) sets->words[0] = t->text.pair.next->ids[t->seen.choice.query];
    for (int64_t p = 0; !is_of_target(t) && p < sets->n_places; p++)
        sets->words[p] = made->candidates[p * made->top].id;
    return status;
}

/* By how much the mean ln p of the words changes without a set; of the model itself for -1. */
static double mean_of(const struct sets *sets, int64_t set) {
    double sum = 0;
    for (int64_t p = 0; p < sets->n_places; p++) sum += sets->log_p[(set + 1) * sets->n_places + p];
    return sum / (double)sets->n_places;
}
static double effect_of(const struct sets *sets, int64_t set) {
    return mean_of(sets, set) - mean_of(sets, -1);
}

/*
 * Findings of the same text may have measured the same: each head alone, and one word at one place.
 * A head of the page is a set; its number is its place among theirs.
 */
static bool take_findings(const struct sets *sets, const qkv_effects *options) {
    const struct text_seen *const t = sets->t;
    const struct findings *const f = &t->findings;
    if (!f->log_p || sets->n > sets->n_alone || sets->n_places > 1) return false;
    if (f->word != *options->words || f->position != *options->positions) return false;
    sets->log_p[0] = f->log_p[0];
    for (int64_t s = 0; s < sets->n; s++) sets->log_p[s + 1] = f->log_p[sets->heads[s] + 1];
    return true;
}

static qkv_status ablate_sets(const struct sets *sets, qkv_error *error) {
    const struct text_seen *const t = sets->t;
    const struct session *const session = t->text.session;
    struct progress progress;
    qkv_effects options = ablation_options(t, is_next(t));
    options.n_places = sets->n_places;
    options.positions = is_of_target(t) ? &t->seen.choice.query : t->predictions.positions;
    options.words = sets->words;
    options.n_sets = sets->n;
    options.ends = sets->ends;
    options.heads = sets->heads;
    if (take_findings(sets, &options)) return QKV_OK;
    qkv_call_options call = progress_call(&progress, "ablating", t->options->common.quiet);
    const qkv_status status = qkv_inspect_effects(session->ctx, session->model, t->text.input,
                                                  &options, sets->log_p, &call, error);
    progress_end(&progress);
    return status;
}

/* ---- In the page ----------------------------------------------------------------------------- */

/* What the numbers are about: one word at one place, or the words of several. */
static qkv_status describe_effects(const struct sets *sets, struct page *page, qkv_error *error) {
    enum { BYTES = 160 };
    const struct text_seen *const t = sets->t;
    const bool pair = is_of_target(t);
    qkv_page *const p = &page->desc;
    char *const what = page_room(page, BYTES, 1), **const word = page_texts(page, 1);
    if (!what || !word) return text_no_memory(error);
    p->effect_query = -1;
    p->effect_log_p = mean_of(sets, -1);
    p->effect_of = what;
    if (sets->n_places > 1) {
        snprintf(what, BYTES, "the mean ln P of the %" PRId64 " likeliest words for the blanks",
                 sets->n_places);
        return QKV_OK;
    }
    *word =
        token_label(pair ? t->text.session->target : t->text.session->tokenizer, sets->words[0]);
    p->effect_word = *word;
    p->effect_query = pair ? t->seen.choice.query : t->predictions.positions[0];
    snprintf(what, BYTES, "ln P(%.80s) %s token %" PRId64 "%s", *word ? *word : "",
             is_next(t) ? "after" : "at", p->effect_query, pair ? " of the target" : "");
    return QKV_OK;
}

static qkv_status add_groups(const struct sets *sets, struct page *page, qkv_error *error) {
    enum { HEADS, SUM, TOGETHER, P, N };
    static const char *const names[N] = { "heads", "sum", "together", "P" };
    const int64_t n = sets->n - sets->n_alone;
    if (n == 0) return QKV_OK;
    struct page_table *const table =
        page_table(page, n, N, TABLE_CELLS | TABLE_VALUES, names, error);
    if (!table) return QKV_ERR_MEMORY;
    text_append(table->name, sizeof table->name, "What groups of heads are worth");
    caption_add(&table->caption,
                "together: by how much %s changes if all heads of the group give 0, in nats; below "
                "0 they help. sum: the same of each head alone, added. Heads can replace each "
                "other, and then the sum is nearer to 0. P: its probability without the group; "
                "%.4f by the whole model.",
                page->desc.effect_of, exp(page->desc.effect_log_p));
    table->put.corner = "group";
    table->put.value_name = "nats";
    table->put.is_signed = true;
    for (int64_t g = 0; g < n; g++) {
        const int64_t set = sets->n_alone + g, first = sets->ends[set - 1], end = sets->ends[set];
        const double together = effect_of(sets, set);
        char **const cells = table->cells + g * N;
        double *const values = table->values + g * N;
        double sum = 0;
        for (int64_t i = first; i < end; i++)
            sum += effect_of(sets, place_of(sets, sets->heads[i]));
        values[SUM] = sum;
        values[TOGETHER] = together;
        table->rows[g] = page_cell("%s", sets->names[g]);
        cells[HEADS] = page_cell("%" PRId64, end - first);
        cells[SUM] = page_cell("%+.4f", sum);
        cells[TOGETHER] = page_cell("%+.4f", together);
        cells[P] = page_cell("%.4f", exp(page->desc.effect_log_p + together));
    }
    return QKV_OK;
}

/* Is there a word that the model predicts? */
static bool has_word(const struct text_seen *t) {
    if (is_of_target(t)) return t->text.session->info->has_lm && t->seen.choice.query >= 0;
    return t->text.view.which == QKV_SELF && t->predictions.n_masks > 0 && t->predictions.top > 0;
}

qkv_status text_effects(const struct text_seen *t, struct page *page, qkv_error *error) {
    const bool must = t->options->effect;
    struct sets sets = { .t = t };
    /* a modified model has none of its own */
    if (!must &&
        !(!t->text.what_if.any && has_word(t) && ablation_quick(&t->text, page->desc.n_heads)))
        return QKV_OK;
    if (!has_word(t) && t->text.session->info->kind == QKV_MODEL_PAIR)
        return text_error(
            error, QKV_ERR_ARGUMENT,
            "--effect: an encoder predicts nothing: `qkv heads --cross --effect` tells "
            "what the heads of its decoder are worth");
    if (!has_word(t))
        return text_error(error, QKV_ERR_ARGUMENT,
                          "--effect: the model predicts nothing here: a text with [MASK], or a "
                          "language model");
    qkv_status status = sets_make(&sets, page, error);
    if (status == QKV_OK) status = ablate_sets(&sets, error);
    if (status == QKV_OK) status = describe_effects(&sets, page, error);
    for (int64_t h = 0; status == QKV_OK && h < sets.n_alone; h++)
        page->heads[h].effect = effect_of(&sets, h);
    if (status == QKV_OK) status = add_groups(&sets, page, error);
    /* without them it is a page all the same */
    return status == QKV_ERR_UNSUPPORTED && !must ? QKV_OK : status;
}
