/*
 * The page of two models on one text: the heads of both, which the page compares pair by pair, and a
 * table of how far each head is from the one in its place.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "look/against.h"
#include "sinks/page.h"

enum { MOST_LISTED = 20 };

/* The place in the page of the head of model m: pairs, from the farthest one on. */
static int64_t place_of(int64_t rank, int64_t m) { return 2 * rank + m; }

static qkv_status check(const struct against *a, qkv_error *error) {
    const qkv_heads_info *const x = a->of[0]->seen.info, *const y = a->of[1]->seen.info;
    if (x->head_dim == y->head_dim && x->softcap == y->softcap && x->causal == y->causal)
        return QKV_OK;
    return text_error(error, QKV_ERR_UNSUPPORTED,
                      "--against: %s and %s have heads of another width, soft cap or mask, and a "
                      "page has one: a picture has both",
                      against_source(a, 0), against_source(a, 1));
}

/* ---- Tables ---------------------------------------------------------------------------------- */

/* Layers down, heads across. */
static qkv_status add_grid(const struct against *a, struct page *page, qkv_error *error) {
    struct page_table *const table =
        page_table(page, a->n_layers, a->n_heads, TABLE_VALUES | TABLE_HEADS, NULL, error);
    if (!table) return QKV_ERR_MEMORY;
    text_append(table->name, sizeof table->name, "Which heads differ between two models");
    against_models(a, &table->caption);
    caption_add(&table->caption, ". A cell is the JS of one head, and opens both in Compare. %s",
                against_what);
    table->put.corner = "layer";
    table->put.value_name = "JS";
    for (int64_t layer = 0; layer < a->n_layers; layer++)
        table->rows[layer] = page_text("%" PRId64, layer);
    for (int64_t head = 0; head < a->n_heads; head++)
        table->cols[head] = page_text("%" PRId64, head);
    for (int64_t rank = 0; rank < a->n_all; rank++) {
        const int64_t index = a->order[rank].index;
        table->values[index] = a->list[index].mean;
        table->heads[index] = place_of(rank, 0);
        table->others[index] = place_of(rank, 1);
    }
    return QKV_OK;
}

static char *looks_at(const struct against *a, const struct distance *d, int m) {
    const qkv_token_list *const keys = &a->of[0]->text.view.keys;
    char *const key = token_shown(keys->tokenizer, keys->tokens->ids[d->keys[m]]),
                *const text = page_text("%s (%.2f)", key ? key : "", (double)d->weights[m]);
    free(key);
    return text;
}

/* The farthest heads, and where each differs most. */
static qkv_status add_list(const struct against *a, struct page *page, qkv_error *error) {
    enum { JS, LARGEST, QUERY, A, B, N };
    static const char *const names[N] = { "JS", "most", "at query", "A looks at", "B looks at" };
    const int64_t n = a->n_shown < MOST_LISTED ? a->n_shown : MOST_LISTED;
    const qkv_token_list *const queries = &a->of[0]->text.view.queries;
    struct page_table *const table =
        page_table(page, n, N, TABLE_CELLS | TABLE_VALUES | TABLE_HEADS, names, error);
    if (!table) return QKV_ERR_MEMORY;
    text_append(table->name, sizeof table->name, "Heads that differ most");
    caption_add(&table->caption,
                "most, at query = the query with the largest divergence, and the key with its "
                "largest weight in each model. %s",
                against_what);
    table->put.corner = "head";
    table->put.value_name = "JS";
    table->put.high = 0.69314718;
    for (int64_t rank = 0; rank < n; rank++) {
        const int64_t index = a->order[rank].index;
        const struct distance *const d = &a->list[index];
        char **const cells = table->cells + rank * N;
        table->rows[rank] =
            page_text("%" PRId64 ".%" PRId64, index / a->n_heads, index % a->n_heads);
        cells[JS] = isnan(d->mean) ? NULL : page_text("%.4f", d->mean);
        table->values[rank * N + JS] = d->mean;
        for (int c = 0; c < N; c++) {
            table->heads[rank * N + c] = place_of(rank, 0);
            table->others[rank * N + c] = place_of(rank, 1);
        }
        if (d->query < 0) continue;
        table->values[rank * N + LARGEST] = d->largest;
        cells[LARGEST] = page_text("%.4f", d->largest);
        cells[QUERY] = token_shown(queries->tokenizer, queries->tokens->ids[d->query]);
        cells[A] = looks_at(a, d, 0);
        cells[B] = looks_at(a, d, 1);
    }
    return QKV_OK;
}

/* ---- The page -------------------------------------------------------------------------------- */

/* Pairs of heads, from the farthest on; a page that is full ends between two of them. */
static qkv_status take_heads(const struct against *a, struct page *page, qkv_error *error) {
    qkv_head_view first = qkv_head_view_init();
    qkv_status status = qkv_heads_view(a->of[0]->seen.heads, 0, &first, error);
    qkv_page_head *const heads =
        status == QKV_OK ? page_heads_room(page, 2 * a->n_all, error) : NULL;
    if (!heads) return status == QKV_OK ? QKV_ERR_MEMORY : status;
    page->page.scale = first.desc->scale;
    for (int64_t i = 0; i < 2 * a->n_all && status == QKV_OK; i++) {
        qkv_page_head *const head = &heads[i]; /* as place_of has it */
        status =
            page_head(&a->of[i % 2]->seen, a->order[i / 2].index, page->page.scale, head, error);
        head->run = i % 2;
    }
    return status;
}

/* Both models as texts from which a reader chooses. */
static qkv_status add_runs(const struct against *a, struct page *page, qkv_error *error) {
    enum { BYTES = 120 };
    const qkv_token_list *const keys = &a->of[0]->text.view.keys;
    struct page_tokens tokens;
    qkv_page_run *const runs = page_room(page, 2, sizeof *runs);
    char *const names = page_room(page, 2, BYTES);
    if (!runs || !names) return text_no_memory(error);
    const qkv_status status = page_tokens(page, keys, &tokens, error);
    for (int m = 0; m < 2 && status == QKV_OK; m++) {
        char *const name = names + m * BYTES;
        text_append(name, BYTES, "%s: %.100s", m ? "B" : "A", against_source(a, m));
        runs[m] = (qkv_page_run){ name, (const char *const *)tokens.texts, keys->tokens->special,
                                  keys->tokens->types, tokens.words };
    }
    page->page.n_runs = 2;
    page->page.runs = runs;
    return status;
}

qkv_status against_page(const struct against *a, const char *path, qkv_error *error) {
    struct page page;
    page_begin(&page, &a->of[0]->seen);
    page.page.query = a->list[a->order[0].index].query;
    text_modified(a->of[0], &page.caption);
    caption_add(&page.caption, "Two models on one text. ");
    against_models(a, &page.caption);
    caption_add(&page.caption, ". ");
    text_page_rules(a->of[0], &page);
    text_page_title(a->of[0], &page);
    qkv_status status = check(a, error);
    if (status == QKV_OK) status = add_runs(a, &page, error);
    if (status == QKV_OK) status = take_heads(a, &page, error);
    if (status == QKV_OK) status = add_grid(a, &page, error);
    if (status == QKV_OK) status = add_list(a, &page, error);
    return page_end(&page, path, status, error);
}
