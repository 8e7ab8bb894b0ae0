/* Two models on one text, head by head: see against.h. */
#include "look/against.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/head_numbers.h"
#include "common/number.h"
#include "look/text.h"
#include "sinks/page.h"
#include <qkv/patterns.h>

/* How far a head is from the one in its place. */
struct distance {
    double mean;     /* Jensen-Shannon divergence of its rows, in nats */
    int64_t n_rows;  /* that have one */
    int64_t query;   /* of the largest divergence; -1: none */
    double largest;  /* that one */
    int64_t keys[2]; /* what it looks at most, in each model */
    float weights[2];
};

struct against {
    struct text_seen of[2]; /* A, whose first part is what a sink knows, and B */
    struct distance *list;  /* [n_all] */
    struct sort_key *order; /* from the farthest head */
    int64_t n_layers, n_heads, n_all, n_shown;
};

static const struct against *against_of(const struct seen *seen) {
    return (const struct against *)(const void *)seen;
}

static const char *source_of(const struct against *a, int m) {
    return a->of[m].text.session->info->source;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static qkv_status check_shapes(const struct against *a, qkv_attention_kind which,
                               qkv_error *error) {
    const qkv_model_info *const x = a->of[0].text.session->info, *const y =
                                                                     a->of[1].text.session->info;
    int64_t n_layers, n_heads;
    session_sizes(a->of[1].text.session, which, &n_layers, &n_heads);
    if (x->kind != y->kind)
        return text_error(error, QKV_ERR_SHAPE, "--against: %s is a %s, and %s a %s", y->source,
                          y->architecture, x->source, x->architecture);
    if (n_layers == a->n_layers && n_heads == a->n_heads) return QKV_OK;
    return text_error(error, QKV_ERR_SHAPE,
                      "--against: %s has %" PRId64 " layers of %" PRId64 " heads, and %s %" PRId64
                      " of %" PRId64 ": heads are compared in their places",
                      y->source, n_layers, n_heads, x->source, a->n_layers, a->n_heads);
}

/*
 * One token: the bytes that the vocabularies have, and what they stand for there. Labels alone
 * would not tell a space from its sign; bytes alone mean another text to another kind of
 * tokenizer.
 */
static bool same_token(const qkv_token_list *x, const qkv_token_list *y, int64_t i) {
    const int32_t ids[2] = { x->tokens->ids[i], y->tokens->ids[i] };
    size_t n[2];
    const char *const bytes[2] = { qkv_tokenizer_token(x->tokenizer, ids[0], &n[0]),
                                   qkv_tokenizer_token(y->tokenizer, ids[1], &n[1]) };
    if (!bytes[0] || !bytes[1] || n[0] != n[1] || memcmp(bytes[0], bytes[1], n[0]) != 0)
        return false;
    char *const shown[2] = { token_shown(x->tokenizer, ids[0]), token_shown(y->tokenizer, ids[1]) };
    const bool same = shown[0] && shown[1] && strcmp(shown[0], shown[1]) == 0;
    free(shown[0]);
    free(shown[1]);
    return same;
}

/* Both read the same ids, which must mean the same tokens; of targets, the same tokens, too. */
static qkv_status check_tokens(const struct against *a, const qkv_token_list *x,
                               const qkv_token_list *y, qkv_error *error) {
    bool same = x->tokens->n == y->tokens->n;
    for (int64_t i = 0; same && i < x->tokens->n; i++) same = same_token(x, y, i);
    if (same) return QKV_OK;
    return text_error(error, QKV_ERR_SHAPE,
                      "--against: %s has other tokens for the text: weights are compared token by "
                      "token",
                      source_of(a, 1));
}

static qkv_status run_both(struct against *a, const struct what_if *what_if, qkv_error *error) {
    const char *target = a->of[0].options->which.target;
    qkv_status status = QKV_OK;
    for (int m = 0; m < 2 && status == QKV_OK; m++) {
        status = text_open(&a->of[m], target, what_if, error);
        if (!target) target = a->of[m].text.pair.target; /* B reads what A wrote */
    }
    const struct attention_view *const x = &a->of[0].text.view, *const y = &a->of[1].text.view;
    if (status == QKV_OK) status = check_tokens(a, &x->queries, &y->queries, error);
    if (status == QKV_OK) status = check_tokens(a, &x->keys, &y->keys, error);
    for (int m = 0; m < 2 && status == QKV_OK; m++) status = text_run(&a->of[m], 0, error);
    return status;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static qkv_status compare_head(struct against *a, int64_t index, double *rows, qkv_error *error) {
    qkv_ctx *const ctx = a->of[0].seen.ctx;
    struct distance *const d = &a->list[index];
    qkv_head_view views[2] = { qkv_head_view_init(), qkv_head_view_init() };
    qkv_divergence divergence = qkv_divergence_init();
    qkv_status status = QKV_OK;
    for (int m = 0; m < 2 && status == QKV_OK; m++)
        status = qkv_heads_view(a->of[m].seen.heads, index, &views[m], error);
    if (status == QKV_OK)
        status =
            qkv_inspect_divergence(ctx, &views[0], &views[1], 0, rows, &divergence, NULL, error);
    if (status != QKV_OK) return status;
    *d = (struct distance){ .mean = divergence.n_rows ? divergence.mean : NAN,
                            .n_rows = divergence.n_rows,
                            .query = -1 };
    for (int64_t i = 0; i < a->of[0].seen.queries.n; i++)
        if (rows[i] >= 0 && (d->query < 0 || rows[i] > d->largest)) {
            d->query = i;
            d->largest = rows[i];
        }
    for (int m = 0; m < 2 && status == QKV_OK && d->query >= 0; m++)
        status = qkv_heads_look(a->of[m].seen.heads, index, d->query, &d->keys[m], &d->weights[m],
                                error);
    return status;
}

static qkv_status compare(struct against *a, qkv_error *error) {
    double *const rows = calloc((size_t)a->of[0].seen.queries.n + 1, sizeof *rows);
    a->list = calloc((size_t)a->n_all + 1, sizeof *a->list);
    a->order = calloc((size_t)a->n_all + 1, sizeof *a->order);
    qkv_status status = rows && a->list && a->order ? QKV_OK : text_no_memory(error);
    for (int64_t i = 0; i < a->n_all && status == QKV_OK; i++) {
        status = compare_head(a, i, rows, error);
        a->order[i] = (struct sort_key){ -a->list[i].mean, i };
    }
    free(rows);
    if (status != QKV_OK) return status;
    sort_keys(a->order, a->n_all);
    a->n_shown = a->n_all;
    if (a->of[0].options->top.set && a->of[0].options->top.value < a->n_all)
        a->n_shown = a->of[0].options->top.value;
    return QKV_OK;
}

/* ---- The terminal ---------------------------------------------------------------------------- */

static char *query_label(const struct against *a, int64_t i) {
    const qkv_token_list *const list = &a->of[0].text.view.queries;
    return token_label(list->tokenizer, list->tokens->ids[i]);
}
static char *key_label(const struct against *a, int64_t j) {
    const qkv_token_list *const list = &a->of[0].text.view.keys;
    return token_label(list->tokenizer, list->tokens->ids[j]);
}

static void add_sources(const struct against *a, struct caption *caption) {
    caption_add(caption, "A is %.300s, B is %.300s", source_of(a, 0), source_of(a, 1));
}

static void add_models(const struct against *a, struct caption *caption) {
    add_sources(a, caption);
    caption_add(caption, ", %s%" PRId64 " tokens. ",
                attention_words(a->of[0].text.session, look_which(a->of[0].options)),
                a->of[0].seen.queries.n);
}

static const char what[] =
    "JS = Jensen-Shannon divergence of the rows of weights of the two heads, mean over queries, in "
    "nats: 0 if both look alike, at most ln 2 = 0.69.";

static void print_head(struct term *term, const struct against *a, int64_t index) {
    const struct distance *const d = &a->list[index];
    struct caption line = { "" };
    caption_add(&line, "%" PRId64 ".%" PRId64, index / a->n_heads, index % a->n_heads);
    term_put(term, line.text, 7, false);
    line.text[0] = 0;
    caption_add(&line, isnan(d->mean) ? "-" : "%.4f", d->mean);
    term_weight_bg(term, d->mean / 0.69314718);
    term_readable_on(term, d->mean / 0.69314718);
    term_put(term, line.text, 7, true);
    term_reset(term);
    if (d->query >= 0) {
        char *const query = query_label(a, d->query);
        fprintf(term->out, "  %.4f  ", d->largest);
        term_put(term, query ? query : "", 14, false);
        for (int m = 0; m < 2; m++) {
            char *const key = key_label(a, d->keys[m]);
            fprintf(term->out, "  %.2f ", (double)d->weights[m]);
            term_put(term, key ? key : "", 14, false);
            free(key);
        }
        free(query);
    }
    term_newline(term);
}

static void print(const struct seen *seen, struct term *term) {
    const struct against *const a = against_of(seen);
    struct caption line = { "" };
    caption_add(&line, "%" PRId64 " heads%s of two models", a->n_all,
                attention_heads(a->of[0].text.session, look_which(a->of[0].options)));
    term_wrap_styled(term, STYLE_BOLD, line.text);
    line.text[0] = 0;
    add_models(a, &line);
    term_wrap(term, line.text);
    term_newline(term);
    fprintf(term->out, "%-7s%7s  %-6s  %-14s  %-19s  %s\n", "head", "JS", "most", "at query",
            "A looks at", "B looks at");
    for (int64_t i = 0; i < a->n_shown; i++) print_head(term, a, a->order[i].index);
    term_newline(term);
    line.text[0] = 0;
    caption_add(&line,
                "%s most, at query = the query with the largest divergence, and the key with "
                "its largest weight in each model.",
                what);
    term_wrap(term, line.text);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *looks_json(const struct against *a, const struct distance *d, int m) {
    const qkv_token_list *const keys = &a->of[0].text.view.keys;
    return json_set(NULL, "key:i token:o weight:n", d->keys[m],
                    token_json(keys->tokenizer, keys->tokens->ids[d->keys[m]]),
                    (double)d->weights[m]);
}

static void add_json(const struct seen *seen, bool behind, json_t *object) {
    const struct against *const a = against_of(seen);
    const struct attended *const first = &a->of[0].text;
    if (behind) return;
    json_t *const heads = json_array();
    for (int64_t i = 0; i < a->n_shown; i++) {
        const struct distance *const d = &a->list[a->order[i].index];
        json_t *const row =
            json_set(NULL, "layer:i head:i js:n n_rows:i", a->order[i].index / a->n_heads,
                     a->order[i].index % a->n_heads, d->mean, d->n_rows);
        if (d->query >= 0)
            json_set(row, "query:i largest:n a:o b:o", d->query, d->largest, looks_json(a, d, 0),
                     looks_json(a, d, 1));
        json_array_append_new(heads, row);
    }
    json_set(object, "attention:s a:t b:t tokens:o",
             attention_key(first->session, first->view.which), source_of(a, 0), source_of(a, 1),
             tokens_json(first->session->tokenizer, first->input));
    if (first->pair.next) pair_json(first->session, &first->pair, object);
    json_set(object, "heads:o note:s", heads, what);
}

/* ---- Pictures -------------------------------------------------------------------------------- */

static qkv_status draw_all(const struct against *a, const char *path, qkv_error *error) {
    struct caption caption = { "" };
    float *const cells = calloc((size_t)a->n_all + 1, sizeof *cells);
    add_models(a, &caption);
    caption_add(&caption, "A cell is the JS of one head. %s", what);
    for (int64_t i = 0; cells && i < a->n_all; i++) cells[i] = (float)a->list[i].mean;
    const qkv_heatmap map = { .struct_size = sizeof map,
                              .title = "Which heads differ between two models",
                              .caption = caption.text,
                              .theme = (qkv_theme)a->of[0].options->common.theme.value,
                              .quantity = "divergence" };
    const qkv_status status = heads_picture(&a->of[0].options->sink.picture, map, a->n_layers,
                                            a->n_heads, cells, path, error);
    free(cells);
    return status;
}

/* B's weights less A's of one head, where the query sees the key. */
static qkv_status differences(const struct against *a, int64_t index, float *cells, float *other,
                              uint8_t *hidden, qkv_error *error) {
    const struct seen *const seen = &a->of[0].seen;
    const int64_t n_rows = seen->queries.n, n_cols = seen->keys.n;
    float *const both[2] = { other, cells };
    for (int m = 0; m < 2; m++) {
        const qkv_status status = qkv_heads_weights(a->of[m].seen.heads, index, 0, n_rows, 0,
                                                    n_cols, both[m], n_cols, error);
        if (status != QKV_OK) return status;
    }
    for (int64_t c = 0; c < n_rows * n_cols; c++) {
        cells[c] -= other[c];
        hidden[c] = !qkv_head_sees(seen->heads, index, c / n_cols, c % n_cols);
    }
    return QKV_OK;
}

static qkv_status draw_one(const struct against *a, const char *path, qkv_error *error) {
    const struct seen *const seen = &a->of[0].seen;
    const int64_t layer = seen->choice.layer, head = seen->choice.head;
    const size_t n = (size_t)(seen->queries.n * seen->keys.n);
    struct caption title = { "" }, caption = { "" };
    char name[HEAD_NAME];
    float *const cells = calloc(n + 1, sizeof *cells), *const other = calloc(n + 1, sizeof *other);
    uint8_t *const hidden = calloc(n + 1, 1);
    qkv_status status = cells && other && hidden ? QKV_OK : text_no_memory(error);
    if (status == QKV_OK)
        status = differences(a, layer * a->n_heads + head, cells, other, hidden, error);
    attention_head(a->of[0].text.session, look_which(a->of[0].options), layer, head, name);
    caption_add(&title, "%s: what changed", name);
    add_models(a, &caption);
    caption_add(&caption, "A cell is the weight of the row's token (query) on the column's token "
                          "(key) in B, less that in A: above 0 B looks there more.");
    const qkv_heatmap map = { .struct_size = sizeof map,
                              .n_rows = seen->queries.n,
                              .n_cols = seen->keys.n,
                              .weights = cells,
                              .hidden = hidden,
                              .row_labels = (const char *const *)seen->queries.names,
                              .col_labels = (const char *const *)seen->keys.names,
                              .title = title.text,
                              .caption = caption.text,
                              .theme = (qkv_theme)a->of[0].options->common.theme.value,
                              .is_signed = 1 };
    if (status == QKV_OK)
        status = picture_heatmap(&a->of[0].options->sink.picture, map, path, error);
    free(cells);
    free(other);
    free(hidden);
    return status;
}

static qkv_status draw(const struct seen *seen, const char *path, qkv_error *error) {
    return (seen->by_name ? draw_one : draw_all)(against_of(seen), path, error);
}

/* ---- The page: heads of both, which it compares pair by pair, and tables of distances -------- */

enum { MOST_LISTED = 20 };

/* The place in the page of the head of model m: pairs, from the farthest one on. */
static int64_t place_of(int64_t rank, int64_t m) { return 2 * rank + m; }

static qkv_status check(const struct against *a, qkv_error *error) {
    const qkv_heads_info *const x = a->of[0].seen.info, *const y = a->of[1].seen.info;
    if (x->head_dim == y->head_dim && x->softcap == y->softcap && x->causal == y->causal)
        return QKV_OK;
    return text_error(error, QKV_ERR_UNSUPPORTED,
                      "--against: %s and %s have heads of another width, soft cap or mask, and a "
                      "page has one: a picture has both",
                      source_of(a, 0), source_of(a, 1));
}

/* Layers down, heads across. */
static qkv_status add_grid(const struct against *a, struct page *page, qkv_error *error) {
    struct page_table *const table =
        page_table(page, a->n_layers, a->n_heads, TABLE_VALUES | TABLE_HEADS, NULL, error);
    if (!table) return QKV_ERR_MEMORY;
    text_append(table->name, sizeof table->name, "Which heads differ between two models");
    add_sources(a, &table->caption);
    caption_add(&table->caption, ". A cell is the JS of one head, and opens both in Compare. %s",
                what);
    table->put.corner = "layer";
    table->put.value_name = "JS";
    for (int64_t layer = 0; layer < a->n_layers; layer++)
        table->rows[layer] = page_cell("%" PRId64, layer);
    for (int64_t head = 0; head < a->n_heads; head++)
        table->cols[head] = page_cell("%" PRId64, head);
    for (int64_t rank = 0; rank < a->n_all; rank++) {
        const int64_t index = a->order[rank].index;
        table->values[index] = a->list[index].mean;
        table->heads[index] = place_of(rank, 0);
        table->others[index] = place_of(rank, 1);
    }
    return QKV_OK;
}

static char *looks_at(const struct against *a, const struct distance *d, int m) {
    const qkv_token_list *const keys = &a->of[0].text.view.keys;
    char *const key = token_shown(keys->tokenizer, keys->tokens->ids[d->keys[m]]),
                *const text = page_cell("%s (%.2f)", key ? key : "", (double)d->weights[m]);
    free(key);
    return text;
}

/* The farthest heads, and where each differs most. */
static qkv_status add_list(const struct against *a, struct page *page, qkv_error *error) {
    enum { JS, LARGEST, QUERY, A, B, N };
    static const char *const names[N] = { "JS", "most", "at query", "A looks at", "B looks at" };
    const int64_t n = a->n_shown < MOST_LISTED ? a->n_shown : MOST_LISTED;
    const qkv_token_list *const queries = &a->of[0].text.view.queries;
    struct page_table *const table =
        page_table(page, n, N, TABLE_CELLS | TABLE_VALUES | TABLE_HEADS, names, error);
    if (!table) return QKV_ERR_MEMORY;
    text_append(table->name, sizeof table->name, "Heads that differ most");
    caption_add(&table->caption,
                "most, at query = the query with the largest divergence, and the key with its "
                "largest weight in each model. %s",
                what);
    table->put.corner = "head";
    table->put.value_name = "JS";
    table->put.high = 0.69314718;
    for (int64_t rank = 0; rank < n; rank++) {
        const int64_t index = a->order[rank].index;
        const struct distance *const d = &a->list[index];
        char **const cells = table->cells + rank * N;
        table->rows[rank] =
            page_cell("%" PRId64 ".%" PRId64, index / a->n_heads, index % a->n_heads);
        cells[JS] = isnan(d->mean) ? NULL : page_cell("%.4f", d->mean);
        table->values[rank * N + JS] = d->mean;
        for (int c = 0; c < N; c++) {
            table->heads[rank * N + c] = place_of(rank, 0);
            table->others[rank * N + c] = place_of(rank, 1);
        }
        if (d->query < 0) continue;
        table->values[rank * N + LARGEST] = d->largest;
        cells[LARGEST] = page_cell("%.4f", d->largest);
        cells[QUERY] = token_shown(queries->tokenizer, queries->tokens->ids[d->query]);
        cells[A] = looks_at(a, d, 0);
        cells[B] = looks_at(a, d, 1);
    }
    return QKV_OK;
}

/* Pairs of heads, from the farthest on; a page that is full ends between two of them. */
static qkv_status take_heads(const struct against *a, struct page *page, qkv_error *error) {
    qkv_head_view first = qkv_head_view_init();
    qkv_status status = qkv_heads_view(a->of[0].seen.heads, 0, &first, error);
    qkv_page_head *const heads =
        status == QKV_OK ? page_heads_room(page, 2 * a->n_all, error) : NULL;
    if (!heads) return status == QKV_OK ? QKV_ERR_MEMORY : status;
    page->desc.scale = first.desc->scale;
    for (int64_t i = 0; i < 2 * a->n_all && status == QKV_OK; i++) {
        qkv_page_head *const head = &heads[i]; /* as place_of has it */
        status =
            page_head(&a->of[i % 2].seen, a->order[i / 2].index, page->desc.scale, head, error);
        head->text = i % 2;
    }
    return status;
}

/* Both models as texts from which a reader chooses. */
static qkv_status add_runs(const struct against *a, struct page *page, qkv_error *error) {
    enum { BYTES = 120 };
    const qkv_token_list *const keys = &a->of[0].text.view.keys;
    struct page_tokens tokens;
    qkv_page_text *const runs = page_room(page, 2, sizeof *runs);
    char *const names = page_room(page, 2, BYTES);
    if (!runs || !names) return text_no_memory(error);
    const qkv_status status = page_tokens(page, keys, &tokens, error);
    for (int m = 0; m < 2 && status == QKV_OK; m++) {
        char *const name = names + m * BYTES;
        text_append(name, BYTES, "%s: %.100s", m ? "B" : "A", source_of(a, m));
        runs[m] = (qkv_page_text){ .name = name,
                                   .tokens = (const char *const *)tokens.texts,
                                   .special = keys->tokens->special,
                                   .segments = keys->tokens->types,
                                   .words = tokens.words };
    }
    page->desc.n_texts = 2;
    page->desc.texts = runs;
    return status;
}

static qkv_status make_page(const struct seen *seen, struct page *page, qkv_error *error) {
    const struct against *const a = against_of(seen);
    page->desc.query = a->list[a->order[0].index].query;
    text_modified(&a->of[0], &page->caption);
    caption_add(&page->caption, "Two models on one text. ");
    add_sources(a, &page->caption);
    caption_add(&page->caption, ". ");
    text_page_rules(&a->of[0], page);
    text_page_title(&a->of[0], page);
    qkv_status status = check(a, error);
    if (status == QKV_OK) status = add_runs(a, page, error);
    if (status == QKV_OK) status = take_heads(a, page, error);
    if (status == QKV_OK) status = add_grid(a, page, error);
    return status == QKV_OK ? add_list(a, page, error) : status;
}

/* ---------------------------------------------------------------------------------------------- */

qkv_status against_look(const struct text_job *job, const struct session *other,
                        const qkv_encoding *input, const struct what_if *what_if,
                        struct text_seen **made, qkv_error *error) {
    struct against *const a = calloc(1, sizeof *a);
    if (!a) return text_no_memory(error);
    struct seen *const seen = &a->of[0].seen;
    *made = &a->of[0];
    for (int m = 0; m < 2; m++) text_begin(&a->of[m], job, input, NULL, 0);
    a->of[1].text.session = other;
    seen->overview = OVERVIEW_WORDS;
    seen->own_object = true;
    seen->print = print;
    seen->add_json = add_json;
    seen->draw = draw;
    seen->make_page = make_page;
    session_sizes(&job->session, job->which, &a->n_layers, &a->n_heads);
    a->n_all = a->n_layers * a->n_heads;
    qkv_status status = check_shapes(a, job->which, error);
    if (status == QKV_OK) status = run_both(a, what_if, error);
    return status == QKV_OK ? compare(a, error) : status;
}

void against_free(struct text_seen *made) {
    struct against *const a = (struct against *)(void *)made;
    if (!a) return;
    for (int m = 0; m < 2; m++) text_free(&a->of[m]);
    free(a->list);
    free(a->order);
    free(a);
}
