/* Measures heads of arrays, and describes them for sinks: see arrays.h. */
#include "look/arrays.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sinks/page.h"

/* A browser does not compute all weights of these, and what keys receive is not measured. */
enum { LONG_SIDE = 2048, LONG_SAMPLE = 512 };
static bool are_long(const struct arrays *arrays) {
    return arrays->desc.n_queries > LONG_SAMPLE &&
           arrays->desc.n_queries > (int64_t)LONG_SIDE * LONG_SIDE / arrays->desc.n_keys;
}

static const struct arrays *arrays_of(const struct seen *seen) {
    return (const struct arrays *)(const void *)seen;
}

/* ---- Heads ----------------------------------------------------------------------------------- */

static qkv_status measure_heads(struct arrays *arrays, qkv_error *error) {
    struct seen *const seen = &arrays->seen;
    const unsigned received = are_long(arrays) ? 0 : QKV_HEADS_RECEIVED;
    struct progress progress;
    const qkv_call_options call =
        progress_call(&progress, "heads", seen->common->quiet || !is_first_rank());
    const qkv_status status =
        qkv_heads_measure(seen->heads, QKV_HEADS_SHARPEST | received, &call, error);
    progress_end(&progress);
    return status;
}

/* The named head, else that with the sharpest queries: of equal ones the first. */
static qkv_status choose_head(struct seen *seen, qkv_error *error) {
    qkv_heads_choice *const choice = &seen->choice;
    qkv_sharpest found = qkv_sharpest_init();
    int64_t best = 0;
    for (int64_t h = 1; h < seen->n_heads && !seen->by_name; h++)
        if (qkv_head_number_value(seen_numbers(seen, h), "confidence") >
            qkv_head_number_value(seen_numbers(seen, best), "confidence"))
            best = h;
    *choice = (qkv_heads_choice){ .head = best, .query = -1, .key = -1 };
    seen->head = best;
    const qkv_status status = seen_largest(seen, best, &found, error);
    if (status != QKV_OK || found.query < 0) return status;
    choice->query = found.query;
    return qkv_heads_look(seen->heads, best, found.query, &choice->key, &choice->weight, error);
}

static void warn_of_nan(const struct seen *seen) {
    for (int64_t h = 0; h < seen->n_heads; h++)
        if (qkv_heads_nan_rows(seen->heads, h) > 0)
            cli_note(seen->common->quiet,
                     "qkv: warning: head %" PRId64 ": %" PRId64
                     " queries have weights that are no numbers",
                     seen->names[h].head, qkv_heads_nan_rows(seen->heads, h));
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* "5", or "all" where there is no bound. */
static const char *bound_text(char text[24], int64_t n) {
    if (n < 0) return "all";
    snprintf(text, 24, "%" PRId64, n);
    return text;
}

static void add_mask(const struct arrays *arrays, struct caption *text) {
    const qkv_heads_arrays *a = &arrays->desc;
    char left[24], right[24];
    if (a->kv_len > 0) caption_add(text, ", keys from %" PRId64 " on are padding", a->kv_len);
    if (!a->causal && !arrays->window && a->kv_len == 0) caption_add(text, ", no mask");
    if (a->causal) caption_add(text, ", causal: query i sees keys j \u2264 i");
    if (a->causal && a->q_offset != 0) caption_add(text, " %+" PRId64, a->q_offset);
    if (arrays->window)
        caption_add(text, ", window: %s keys before its place, %s after",
                    bound_text(left, a->window_left), bound_text(right, a->window_right));
}

static void describe_arrays(const struct arrays *arrays, struct caption *caption) {
    const qkv_heads_arrays *a = &arrays->desc;
    const struct look_options *o = arrays->options;
    char *q = term_escape(o->q, strlen(o->q)), *k = term_escape(o->k, strlen(o->k));
    caption_add(caption, "Arrays %.100s and %.100s: %" PRId64 " head%s", q ? q : "", k ? k : "",
                a->n_heads, a->n_heads == 1 ? "" : "s");
    if (a->n_kv_heads < a->n_heads) caption_add(caption, " (%" PRId64 " of keys)", a->n_kv_heads);
    caption_add(caption,
                ", %" PRId64 " quer%s, %" PRId64 " key%s, head size %" PRId64 "; scale %.6g",
                a->n_queries, a->n_queries == 1 ? "y" : "ies", a->n_keys, a->n_keys == 1 ? "" : "s",
                a->head_dim, (double)a->scale);
    if (a->softcap > 0) caption_add(caption, ", soft cap %.6g", (double)a->softcap);
    if (a->alibi_slopes) caption_add(caption, ", ALiBi");
    if (a->sinks) caption_add(caption, ", sinks, whose share a row lacks");
    add_mask(arrays, caption);
    caption_add(caption, ".");
    free(q);
    free(k);
}

static void describe_all(struct arrays *arrays) {
    struct seen *const seen = &arrays->seen;
    const struct head_name *const name = &seen->names[seen->head];
    if (name->layer >= 0)
        snprintf(seen->name, HEAD_NAME, "Layer %" PRId64 ", head %" PRId64, name->layer,
                 name->head);
    else
        snprintf(seen->name, HEAD_NAME, "Head %" PRId64, name->head);
    snprintf(seen->all, sizeof seen->all, "%" PRId64 " heads", arrays->desc.n_heads);
    describe_arrays(arrays, &seen->about[0]);
    seen->about[1] = seen->legend = seen->about[0];
    caption_add(&seen->legend,
                " A cell is the weight, in percent, with which the row's token (query) looks at "
                "the column's token (key).%s",
                seen->info->sees_all ? "" : " Keys that a query does not see have no cell.");
    seen->advice = "-o FILE.html has every weight at any length, FILE.png a pooled map, --pool its "
                   "cells, FILE.json statistics";
}

/* [first, last] of j - i, null where open: of the place that causal and window are about. */
static json_t *band_json(const struct arrays *arrays) {
    const qkv_heads_arrays *a = &arrays->desc;
    const bool to = a->causal || a->window_right >= 0;
    const int64_t right = a->causal ? 0 : a->window_right;
    return json_pack("[o, o]",
                     a->window_left >= 0 ? json_integer(a->q_offset - a->window_left) : json_null(),
                     to ? json_integer(a->q_offset + right) : json_null());
}

static void add_json(const struct seen *seen, bool behind, json_t *object) {
    const struct arrays *const arrays = arrays_of(seen);
    const qkv_heads_arrays *a = &arrays->desc;
    const struct arg_real *scale = &arrays->options->scale;
    char *const *const tokens = arrays->key_names.tokens;
    if (!behind) {
        json_set(object, "n_heads:i n_kv_heads:i n_queries:i n_keys:i head_dim:i scale:n seen:o",
                 a->n_heads, a->n_kv_heads, a->n_queries, a->n_keys, a->head_dim,
                 scale->set ? scale->value : 1 / sqrt((double)a->head_dim), band_json(arrays));
    } else if (tokens) {
        json_set(object, "tokens:o", json_texts(a->n_keys, tokens));
    }
}

/* ---- The page: queries, keys and lse, never weights ------------------------------------------ */

enum { MOST_TILES = 512, LEAST_TILE = 8 };

/* How many heads of a long text a page has room for, at most: those are looked at whole. */
static int64_t long_heads(const struct seen *seen) {
    const int64_t n = seen->queries.n + seen->keys.n,
                  a_head = (2 * n * seen->info->head_dim + 4 * n) / 3 * 4,
                  heads = PAGE_BYTES / a_head, n_all = seen->n_heads;
    return heads < 1 ? 1 : heads < n_all ? heads : n_all;
}

/* The index of a head of the page, which was sorted. */
static int64_t index_of(const struct seen *seen, const qkv_page_head *head) {
    int64_t index = 0;
    while (seen_numbers(seen, index) != head->numbers) index++;
    return index;
}

/*
 * What a browser would take minutes for: what keys receive, and the largest weight of each tile,
 * one behind the other.
 */
static qkv_status look_whole(const struct seen *seen, struct page *page, qkv_page_head *head,
                             qkv_error *error) {
    const int64_t index = index_of(seen, head), n_keys = seen->keys.n,
                  n = seen->queries.n > n_keys ? seen->queries.n : n_keys;
    const struct tiles tiles =
        tiles_of(seen, n / LEAST_TILE < MOST_TILES ? n / LEAST_TILE : MOST_TILES);
    double *received = malloc((size_t)n_keys * sizeof *received);
    float *numbers = page_room(page, n_keys + tiles.rows * tiles.cols, sizeof *numbers);
    const qkv_heads_profile profile = { .struct_size = sizeof profile, .received = received };
    qkv_call_options call = qkv_call_options_init();
    call.cancel = &cli_cancelled;
    qkv_status status = received && numbers
                            ? qkv_heads_position(seen->heads, index, &profile, &call, error)
                            : text_no_memory(error);
    for (int64_t j = 0; status == QKV_OK && j < n_keys; j++) numbers[j] = (float)received[j];
    if (status == QKV_OK) status = seen_cells(seen, index, &tiles, numbers + n_keys, error);
    free(received);
    if (status != QKV_OK) return status;
    head->received = numbers;
    head->peaks = numbers + n_keys;
    for (float *cell = numbers + n_keys; cell < head->peaks + tiles.rows * tiles.cols; cell++)
        if (*cell == QKV_CELL_HIDDEN) *cell = 0;
    head->side = tiles.cols;
    head->tile = tiles.tile;
    head->distance = qkv_heads_distance(seen->heads, index);
    return status;
}

static qkv_status make_page(const struct seen *seen, struct page *page, qkv_error *error) {
    const struct arrays *arrays = arrays_of(seen);
    const struct array_names *keys = &arrays->key_names, *queries = &arrays->query_names;
    const int64_t n_long = are_long(arrays) ? long_heads(seen) : 0;
    qkv_page *const p = &page->desc;
    qkv_page_text *const run = page_room(page, 1, sizeof *run);
    if (!run) return text_no_memory(error);
    run->tokens = (const char *const *)(queries->tokens ? queries->tokens : queries->labels);
    p->rules = &arrays->mask;
    p->softcap = (double)arrays->desc.softcap;
    p->dropped = arrays->padding;
    p->two_texts = arrays->desc.two_texts; /* with names of their own */
    p->tokens = (const char *const *)(keys->tokens ? keys->tokens : keys->labels);
    p->n_queries = seen->queries.n;
    p->queries = arrays->self ? NULL : run;
    seen_title(seen, &page->title);
    describe_arrays(arrays, &page->caption);
    qkv_status status = page_heads(page, seen, seen->head, 0, error);
    for (int64_t h = 0; status == QKV_OK && h < n_long; h++)
        status = look_whole(seen, page, &page->heads[h], error);
    return status;
}

/* ---------------------------------------------------------------------------------------------- */

/* What a sink has to know, beside words. */
static qkv_status make_seen(struct arrays *arrays, qkv_error *error) {
    struct seen *const seen = &arrays->seen;
    const struct array_names *const keys = &arrays->key_names, *const queries =
                                                                   arrays->self
                                                                       ? keys
                                                                       : &arrays->query_names;
    seen->keys = (struct seen_side){ .n = arrays->desc.n_keys,
                                     .names = keys->labels,
                                     .tokens_a_name = 1,
                                     .numbered = !keys->tokens,
                                     .sign = "",
                                     .note = "" };
    seen->queries = seen->keys;
    seen->queries.n = arrays->desc.n_queries;
    seen->queries.names = queries->labels;
    seen->queries.numbered = !arrays->options->q_tokens && !(arrays->self && keys->tokens);
    seen->queries.sign = arrays->self ? "" : "q";
    const qkv_status status = seen_heads(seen, seen->heads, error);
    if (status != QKV_OK) return status;
    for (int64_t h = 0; h < seen->n_heads; h++)
        seen->names[h] = (struct head_name){ arrays->layer, arrays->places[h] };
    seen->n_file = seen->n_order = seen->n_heads;
    seen->one = seen->n_heads == 1;
    seen->pools = true;
    seen->has_weights = seen->by_name && seen->one && !are_long(arrays);
    seen->overview = OVERVIEW_NUMBERS;
    seen->add_json = add_json;
    seen->make_page = make_page;
    if (!seen->by_name) return QKV_OK;
    seen->order = calloc((size_t)seen->n_heads + 1, sizeof *seen->order);
    if (!seen->order) return text_no_memory(error);
    for (int64_t h = 0; h < seen->n_heads; h++) seen->order[h] = h;
    return QKV_OK;
}

qkv_status arrays_look(struct arrays *arrays, qkv_error *error) {
    struct seen *const seen = &arrays->seen;
    qkv_status status = qkv_heads_open_arrays(seen->ctx, &arrays->desc, &seen->heads, error);
    if (status == QKV_OK) status = measure_heads(arrays, error);
    if (status == QKV_OK) status = make_seen(arrays, error);
    if (status == QKV_OK) status = choose_head(seen, error);
    if (status == QKV_ERR_CANCELLED) return text_error(error, status, "nothing was written");
    if (status != QKV_OK) return status;
    describe_all(arrays);
    warn_of_nan(seen);
    return QKV_OK;
}
