/* What differs between two models: a table, an object, pictures. See against.h. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/heads_picture.h"
#include "look/against.h"

/* ---- Words ----------------------------------------------------------------------------------- */

static char *query_label(const struct against *a, int64_t i) {
    const qkv_token_list *const list = &a->of[0]->text.view.queries;
    return token_label(list->tokenizer, list->tokens->ids[i]);
}
static char *key_label(const struct against *a, int64_t j) {
    const qkv_token_list *const list = &a->of[0]->text.view.keys;
    return token_label(list->tokenizer, list->tokens->ids[j]);
}

void against_models(const struct against *a, struct caption *caption) {
    caption_add(caption, "A is %.300s, B is %.300s", against_source(a, 0), against_source(a, 1));
}

static void add_models(const struct against *a, struct caption *caption) {
    against_models(a, caption);
    caption_add(caption, ", %s%" PRId64 " tokens. ",
                attention_words(a->of[0]->text.session, look_which(a->options)),
                a->of[0]->seen.queries.n);
}

const char against_what[] =
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

void against_print(const struct against *a) {
    struct term term;
    struct caption line = { "" };
    term_init(&term, stdout, &a->options->common);
    caption_add(&line, "%" PRId64 " heads%s of two models", a->n_all,
                attention_heads(a->of[0]->text.session, look_which(a->options)));
    term_wrap_styled(&term, STYLE_BOLD, line.text);
    line.text[0] = 0;
    add_models(a, &line);
    term_wrap(&term, line.text);
    term_newline(&term);
    fprintf(term.out, "%-7s%7s  %-6s  %-14s  %-19s  %s\n", "head", "JS", "most", "at query",
            "A looks at", "B looks at");
    for (int64_t i = 0; i < a->n_shown; i++) print_head(&term, a, a->order[i].index);
    term_newline(&term);
    line.text[0] = 0;
    caption_add(&line,
                "%s most, at query = the query with the largest divergence, and the key with "
                "its largest weight in each model.",
                against_what);
    term_wrap(&term, line.text);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *looks_json(const struct against *a, const struct distance *d, int m) {
    const qkv_token_list *const keys = &a->of[0]->text.view.keys;
    return json_set(NULL, "key:i token:o weight:n", d->keys[m],
                    token_json(keys->tokenizer, keys->tokens->ids[d->keys[m]]),
                    (double)d->weights[m]);
}

json_t *against_json(const struct against *a) {
    const struct attended *const first = &a->of[0]->text;
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
    json_t *const object = json_set(
        NULL, "attention:s a:t b:t tokens:o", attention_key(first->session, look_which(a->options)),
        against_source(a, 0), against_source(a, 1), text_tokens_json(first->session, first->input));
    if (first->pair.next) pair_json(first->session, &first->pair, object);
    return json_set(object, "heads:o note:s", heads, against_what);
}

/* ---- Pictures -------------------------------------------------------------------------------- */

static qkv_status draw_all(const struct against *a, const char *path, qkv_error *error) {
    struct caption caption = { "" };
    float *const cells = calloc((size_t)a->n_all + 1, sizeof *cells);
    add_models(a, &caption);
    caption_add(&caption, "A cell is the JS of one head. %s", against_what);
    for (int64_t i = 0; cells && i < a->n_all; i++) cells[i] = (float)a->list[i].mean;
    const qkv_heatmap map = { .struct_size = sizeof map,
                              .title = "Which heads differ between two models",
                              .caption = caption.text,
                              .theme = (qkv_theme)a->options->common.theme.value,
                              .quantity = "divergence" };
    const qkv_status status =
        heads_picture(&a->options->sink.picture, map, a->n_layers, a->n_heads, cells, path, error);
    free(cells);
    return status;
}

/* B's weights less A's of one head, where the query sees the key. */
static qkv_status differences(const struct against *a, int64_t index, float *cells, float *other,
                              uint8_t *hidden, qkv_error *error) {
    const struct seen *const seen = &a->of[0]->seen;
    const int64_t n_rows = seen->queries.n, n_cols = seen->keys.n;
    float *const both[2] = { other, cells };
    for (int m = 0; m < 2; m++) {
        const qkv_status status = qkv_heads_weights(a->of[m]->seen.heads, index, 0, n_rows, 0,
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
    const struct seen *const seen = &a->of[0]->seen;
    const int64_t layer = seen->choice.layer, head = seen->choice.head;
    const size_t n = (size_t)(seen->queries.n * seen->keys.n);
    struct caption title = { "" }, caption = { "" };
    char name[HEAD_NAME];
    float *const cells = calloc(n + 1, sizeof *cells), *const other = calloc(n + 1, sizeof *other);
    uint8_t *const hidden = calloc(n + 1, 1);
    qkv_status status = cells && other && hidden ? QKV_OK : text_no_memory(error);
    if (status == QKV_OK)
        status = differences(a, layer * a->n_heads + head, cells, other, hidden, error);
    attention_head(a->of[0]->text.session, look_which(a->options), layer, head, name);
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
                              .theme = (qkv_theme)a->options->common.theme.value,
                              .is_signed = 1 };
    if (status == QKV_OK) status = picture_heatmap(&a->options->sink.picture, map, path, error);
    free(cells);
    free(other);
    free(hidden);
    return status;
}

qkv_status against_picture(const struct against *a, const char *path, qkv_error *error) {
    return (a->of[0]->seen.by_name ? draw_one : draw_all)(a, path, error);
}
