/*
 * The page of two models on one text: the heads of both, which the page compares pair by pair, and a
 * table of how far each head is from the one in its place.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "look/against.h"
#include "look/page_table.h"

enum { MOST_LISTED = 20 };

/* Both models as `look` has one, which borrow what they have. */
static struct look look_of(const struct against *a, int m) {
    return (struct look){ .options = a->options,
                          .ctx = a->text[0].session->ctx,
                          .text = a->text[m],
                          .n_rows = a->text[m].view.queries.tokens->n,
                          .n_cols = a->text[m].view.keys.tokens->n };
}

/* The place in the page of the head of model m: pairs, from the farthest one on. */
static int64_t place_of(int64_t rank, int m) { return 2 * rank + m; }

static qkv_status check(const struct against *a, qkv_error *error) {
    const qkv_heads_info *const x = qkv_heads_get_info(a->text[0].heads), *const y =
                                                                              qkv_heads_get_info(
                                                                                  a->text[1].heads);
    if (x->head_dim == y->head_dim && x->softcap == y->softcap && x->causal == y->causal)
        return QKV_OK;
    return text_error(error, QKV_ERR_UNSUPPORTED,
                      "--against: %s and %s have heads of another width, soft cap or mask, and a "
                      "page has one: a picture has both",
                      a->text[0].session->info->source, a->other->info->source);
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static const char what[] =
    "JS = Jensen-Shannon divergence of the rows of weights of the two heads, mean over queries, in "
    "nats: 0 if both look alike, at most ln 2 = 0.69.";

static void add_models(const struct against *a, struct caption *caption) {
    caption_add(caption, "A is %.300s, B is %.300s. ", a->text[0].session->info->source,
                a->other->info->source);
}

/* Layers down, heads across. */
static qkv_status add_grid(const struct against *a, struct page_tables *tables, qkv_error *error) {
    struct page_table *const table =
        page_table_add(tables, a->n_layers, a->n_heads, TABLE_VALUES | TABLE_HEADS, error);
    if (!table) return QKV_ERR_MEMORY;
    text_append(table->name, sizeof table->name, "Which heads differ between two models");
    add_models(a, &table->caption);
    caption_add(&table->caption, "A cell is the JS of one head, and opens both in Compare. %s",
                what);
    table->corner = "layer";
    table->value_name = "JS";
    for (int64_t layer = 0; layer < a->n_layers; layer++)
        table->rows[layer] = page_table_text("%" PRId64, layer);
    for (int64_t head = 0; head < a->n_heads; head++)
        table->cols[head] = page_table_text("%" PRId64, head);
    for (int64_t rank = 0; rank < a->n_all; rank++) {
        const int64_t index = a->order[rank].index;
        table->values[index] = a->list[index].mean;
        table->heads[index] = place_of(rank, 0);
        table->others[index] = place_of(rank, 1);
    }
    return QKV_OK;
}

static char *looks_at(const struct against *a, const struct distance *d, int m) {
    const qkv_token_list *const keys = &a->text[0].view.keys;
    char *const key = token_shown(keys->tokenizer, keys->tokens->ids[d->keys[m]]),
                *const text = page_table_text("%s (%.2f)", key ? key : "", (double)d->weights[m]);
    free(key);
    return text;
}

/* The farthest heads, and where each differs most. */
static qkv_status add_list(const struct against *a, struct page_tables *tables, qkv_error *error) {
    enum { JS, LARGEST, QUERY, A, B, N };
    static const char *const names[N] = { "JS", "most", "at query", "A looks at", "B looks at" };
    const int64_t n = a->n_shown < MOST_LISTED ? a->n_shown : MOST_LISTED;
    const qkv_token_list *const queries = &a->text[0].view.queries;
    struct page_table *const table =
        page_table_add(tables, n, N, TABLE_CELLS | TABLE_VALUES | TABLE_HEADS, error);
    if (!table) return QKV_ERR_MEMORY;
    text_append(table->name, sizeof table->name, "Heads that differ most");
    caption_add(&table->caption,
                "most, at query = the query with the largest divergence, and the key with its "
                "largest weight in each model. %s",
                what);
    table->corner = "head";
    table->value_name = "JS";
    table->high = 0.69314718;
    for (int c = 0; c < N; c++) table->cols[c] = page_table_text("%s", names[c]);
    for (int64_t rank = 0; rank < n; rank++) {
        const int64_t index = a->order[rank].index;
        const struct distance *const d = &a->list[index];
        char **const cells = table->cells + rank * N;
        table->rows[rank] =
            page_table_text("%" PRId64 ".%" PRId64, index / a->n_heads, index % a->n_heads);
        cells[JS] = isnan(d->mean) ? NULL : page_table_text("%.4f", d->mean);
        table->values[rank * N + JS] = d->mean;
        for (int c = 0; c < N; c++) {
            table->heads[rank * N + c] = place_of(rank, 0);
            table->others[rank * N + c] = place_of(rank, 1);
        }
        if (d->query < 0) continue;
        table->values[rank * N + LARGEST] = d->largest;
        cells[LARGEST] = page_table_text("%.4f", d->largest);
        cells[QUERY] = token_shown(queries->tokenizer, queries->tokens->ids[d->query]);
        cells[A] = looks_at(a, d, 0);
        cells[B] = looks_at(a, d, 1);
    }
    return QKV_OK;
}

/* ---- The page -------------------------------------------------------------------------------- */

/* Pairs of heads, from the farthest on; a page that is full ends between two of them. */
static qkv_status take_heads(const struct against *a, qkv_page_head *heads, float *scale,
                             qkv_error *error) {
    qkv_head_view first = qkv_head_view_init();
    qkv_status status = qkv_heads_view(a->text[0].heads, 0, &first, error);
    if (status != QKV_OK) return status;
    *scale = first.desc->scale;
    for (int m = 0; m < 2; m++) {
        const struct look look = look_of(a, m);
        for (int64_t rank = 0; rank < a->n_all && status == QKV_OK; rank++) {
            qkv_page_head *const head = &heads[place_of(rank, m)];
            status = look_page_head(&look, a->order[rank].index, *scale, head, error);
            head->run = m;
        }
    }
    return status;
}

static qkv_status put_page(const struct against *a, qkv_page *page,
                           const struct look_tokens *tokens, const char *path, qkv_error *error) {
    const qkv_encoding *const shown = a->text[0].view.keys.tokens;
    char names[2][120] = { "", "" };
    qkv_page_run runs[2];
    for (int m = 0; m < 2; m++) {
        text_append(names[m], sizeof names[m], "%c: %.100s", "AB"[m],
                    a -> text[m].session->info->source);
        runs[m] = (qkv_page_run){ names[m], (const char *const *)tokens->texts, shown->special,
                                  shown->types, tokens->words };
    }
    page->n_runs = 2;
    page->runs = runs;
    return look_page_put(a->options, page, path, error);
}

qkv_status against_page(const struct against *a, const char *path, qkv_error *error) {
    const struct look look = look_of(a, 0);
    char title[LOOK_TITLE] = "", modified[WHAT_IF_WORDS + 60];
    struct caption caption = { "" };
    struct page_tables tables = { .n = 0 };
    struct look_tokens tokens = { NULL, NULL };
    qkv_page_table *put = NULL;
    qkv_page_head *const heads = calloc((size_t)(2 * a->n_all) + 1, sizeof *heads);
    qkv_status status = heads ? check(a, error) : text_no_memory(error);
    qkv_page page = look_page_of(&look, title, caption.text);
    page.query = a->list[a->order[0].index].query;
    page.n_heads = 2 * a->n_all;
    page.heads = heads;
    look_modified(&look, caption.text, sizeof caption.text);
    caption_add(&caption, "Two models on one text. ");
    add_models(a, &caption);
    if (status == QKV_OK) look_page_rules(&look, &page, modified);
    if (status == QKV_OK) status = look_tokens_make(&tokens, &look.text.view.keys, error);
    if (status == QKV_OK) status = take_heads(a, heads, &page.scale, error);
    if (status == QKV_OK) status = add_grid(a, &tables, error);
    if (status == QKV_OK) status = add_list(a, &tables, error);
    if (status == QKV_OK && !(put = page_tables_put(&tables, &page, error)))
        status = QKV_ERR_MEMORY;
    if (status == QKV_OK) {
        look_page_title(&look, title);
        status = put_page(a, &page, &tokens, path, error);
    }
    free(put);
    page_tables_free(&tables);
    look_tokens_free(&tokens, look.n_cols);
    free(heads);
    return status;
}
