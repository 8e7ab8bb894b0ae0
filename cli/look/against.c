/* Two models on one text, head by head: see against.h. */
#include "look/against.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/head_numbers.h"
#include "common/number.h"
#include "look/distances.h"
#include "look/text.h"
#include "sinks/page.h"
#include <qkv/patterns.h>

struct against {
    struct text_seen of[2]; /* A, whose first part is what a sink knows, and B */
    struct distances d;
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
    const struct session *const of[2] = { a->of[0].text.session, a->of[1].text.session };
    int64_t n_layers[2], n_heads[2];
    for (int m = 0; m < 2; m++) session_sizes(of[m], which, &n_layers[m], &n_heads[m]);
    if (of[0]->info->kind == of[1]->info->kind)
        return distances_check(of, n_layers, n_heads, error);
    return text_error(error, QKV_ERR_SHAPE, "--against: %s is a %s, and %s a %s",
                      of[1]->info->source, of[1]->info->architecture, of[0]->info->source,
                      of[0]->info->architecture);
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

static qkv_status compare_heads(struct against *a, qkv_error *error) {
    qkv_heads *const heads[2] = { a->of[0].seen.heads, a->of[1].seen.heads };
    return distances_make(a->of[0].seen.ctx, heads, &a->of[0].options->top, &a->d, error);
}

/* ---- The terminal ---------------------------------------------------------------------------- */

static char *label_of(const void *of, bool is_key, int64_t i) {
    const struct attention_view *const view = &((const struct against *)of)->of[0].text.view;
    const qkv_token_list *const list = is_key ? &view->keys : &view->queries;
    return token_label(list->tokenizer, list->tokens->ids[i]);
}

static void add_sources(const struct against *a, struct caption *caption) {
    caption_add(caption, "A is %.300s, B is %.300s", source_of(a, 0), source_of(a, 1));
}

static void add_models(const struct against *a, struct caption *caption) {
    what_if_caption(&a->of[0].text.what_if, caption);
    add_sources(a, caption);
    caption_add(caption, ", %s%" PRId64 " tokens. ",
                attention_words(a->of[0].text.session, look_which(a->of[0].options)),
                a->of[0].seen.queries.n);
}

static void print_heads(const struct seen *seen, struct term *term) {
    const struct against *const a = against_of(seen);
    struct caption line = { "" };
    caption_add(&line, "%" PRId64 " heads%s of two models", a->d.n_all,
                attention_heads(a->of[0].text.session, look_which(a->of[0].options)));
    term_wrap_styled(term, STYLE_BOLD, line.text);
    line.text[0] = 0;
    add_models(a, &line);
    term_wrap(term, line.text);
    term_newline(term);
    distances_print(&a->d, term, label_of, a);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *key_json(const void *of, int64_t key) {
    const qkv_token_list *const keys = &((const struct against *)of)->of[0].text.view.keys;
    return token_json(keys->tokenizer, keys->tokens->ids[key]);
}

static void add_json(const struct seen *seen, bool behind, json_t *object) {
    const struct against *const a = against_of(seen);
    const struct attended *const first = &a->of[0].text;
    if (behind) return;
    json_set(object, "attention:s a:t b:t tokens:o",
             attention_key(first->session, first->view.which), source_of(a, 0), source_of(a, 1),
             tokens_json(first->session->tokenizer, first->input));
    what_if_json(&first->what_if, object);
    if (first->pair.next) pair_json(first->session, &first->pair, object);
    json_set(object, "heads:o note:s", distances_json(&a->d, key_json, a), distances_what);
}

/* ---- Pictures -------------------------------------------------------------------------------- */

static qkv_status draw_all(const struct against *a, const char *path, qkv_error *error) {
    struct caption caption = { "" };
    add_models(a, &caption);
    caption_add(&caption, "A cell is the JS of one head. %s", distances_what);
    return distances_picture(&a->d, a->of[0].options, "Which heads differ between two models",
                             caption.text, path, error);
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
        status = differences(a, layer * a->d.n_heads + head, cells, other, hidden, error);
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

static qkv_status draw_heads(const struct seen *seen, const char *path, qkv_error *error) {
    return (seen->by_name ? draw_one : draw_all)(against_of(seen), path, error);
}

/* ---- The page: heads of both, which it compares pair by pair, and tables of distances -------- */

static qkv_status check_page(const struct against *a, qkv_error *error) {
    const qkv_heads_info *const x = a->of[0].seen.info, *const y = a->of[1].seen.info;
    if (x->head_dim == y->head_dim && x->softcap == y->softcap && x->causal == y->causal)
        return QKV_OK;
    return text_error(error, QKV_ERR_UNSUPPORTED,
                      "--against: %s and %s have heads of another width, soft cap or mask, and a "
                      "page has one: a picture has both",
                      source_of(a, 0), source_of(a, 1));
}

static char *shown_of(const void *of, bool is_key, int64_t i) {
    const struct attention_view *const view = &((const struct against *)of)->of[0].text.view;
    const qkv_token_list *const list = is_key ? &view->keys : &view->queries;
    return token_shown(list->tokenizer, list->tokens->ids[i]);
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
    what_if_caption(&a->of[0].text.what_if, &page->caption);
    caption_add(&page->caption, "Two models on one text. ");
    add_sources(a, &page->caption);
    caption_add(&page->caption, ". ");
    text_page_rules(&a->of[0], page);
    text_page_title(&a->of[0], page);
    const struct seen *const both[2] = { &a->of[0].seen, &a->of[1].seen };
    struct caption sources = { "" };
    add_sources(a, &sources);
    qkv_status status = check_page(a, error);
    if (status == QKV_OK) status = add_runs(a, page, error);
    return status == QKV_OK
               ? distances_page(&a->d, both, "two models", sources.text, shown_of, a, page, error)
               : status;
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
    seen->print = print_heads;
    seen->add_json = add_json;
    seen->draw = draw_heads;
    seen->make_page = make_page;
    qkv_status status = check_shapes(a, job->which, error);
    if (status == QKV_OK) status = run_both(a, what_if, error);
    return status == QKV_OK ? compare_heads(a, error) : status;
}

void against_free(struct text_seen *made) {
    struct against *const a = (struct against *)(void *)made;
    if (!a) return;
    for (int m = 0; m < 2; m++) text_free(&a->of[m]);
    distances_free(&a->d);
    free(a);
}
