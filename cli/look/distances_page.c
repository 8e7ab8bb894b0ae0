/* Distances of heads in a page, beside the heads of both: see distances.h. */
#include "look/distances.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "sinks/page.h"

enum { MOST_LISTED = 20 };

/* The place in the page of the head of run m: pairs, from the farthest one on. */
static int64_t place_of(int64_t rank, int64_t m) { return 2 * rank + m; }

/* Layers down, heads across. */
static qkv_status add_grid(const struct distances *d, const char *kind, const char *sources,
                           struct page *page, qkv_error *error) {
    struct page_table *const table =
        page_table(page, d->n_layers, d->n_heads, TABLE_VALUES | TABLE_HEADS, NULL, error);
    if (!table) return QKV_ERR_MEMORY;
    text_append(table->name, sizeof table->name, "Which heads differ between %s", kind);
    caption_add(&table->caption, "%s. A cell is the JS of one head, and opens both in Compare. %s",
                sources, distances_what);
    table->put.corner = "layer";
    table->put.value_name = "JS";
    for (int64_t layer = 0; layer < d->n_layers; layer++)
        table->rows[layer] = page_cell("%" PRId64, layer);
    for (int64_t head = 0; head < d->n_heads; head++)
        table->cols[head] = page_cell("%" PRId64, head);
    for (int64_t rank = 0; rank < d->n_all; rank++) {
        const int64_t index = d->order[rank].index;
        table->values[index] = d->list[index].mean;
        table->heads[index] = place_of(rank, 0);
        table->others[index] = place_of(rank, 1);
    }
    return QKV_OK;
}

static char *looks_at(const struct distance *one, int m, distances_label *label, const void *of) {
    char *const key = label(of, true, one->keys[m]), *const text =
                                                         page_cell("%s (%.2f)", key ? key : "",
                                                                   (double)one->weights[m]);
    free(key);
    return text;
}

/* The farthest heads, and where each differs most. */
static qkv_status add_list(const struct distances *d, distances_label *label, const void *of,
                           struct page *page, qkv_error *error) {
    enum { JS, LARGEST, QUERY, A, B, N };
    static const char *const names[N] = { "JS", "most", "at query", "A looks at", "B looks at" };
    const int64_t n = d->n_shown < MOST_LISTED ? d->n_shown : MOST_LISTED;
    struct page_table *const table =
        page_table(page, n, N, TABLE_CELLS | TABLE_VALUES | TABLE_HEADS, names, error);
    if (!table) return QKV_ERR_MEMORY;
    text_append(table->name, sizeof table->name, "Heads that differ most");
    caption_add(&table->caption,
                "most, at query = the query with the largest divergence, and the key with its "
                "largest weight in each of both. %s",
                distances_what);
    table->put.corner = "head";
    table->put.value_name = "JS";
    table->put.high = 0.69314718;
    for (int64_t rank = 0; rank < n; rank++) {
        const int64_t index = d->order[rank].index;
        const struct distance *const one = &d->list[index];
        char **const cells = table->cells + rank * N;
        table->rows[rank] =
            page_cell("%" PRId64 ".%" PRId64, index / d->n_heads, index % d->n_heads);
        cells[JS] = isnan(one->mean) ? NULL : page_cell("%.4f", one->mean);
        table->values[rank * N + JS] = one->mean;
        for (int c = 0; c < N; c++) {
            table->heads[rank * N + c] = place_of(rank, 0);
            table->others[rank * N + c] = place_of(rank, 1);
        }
        if (one->query < 0) continue;
        table->values[rank * N + LARGEST] = one->largest;
        cells[LARGEST] = page_cell("%.4f", one->largest);
        cells[QUERY] = label(of, false, one->query);
        cells[A] = looks_at(one, 0, label, of);
        cells[B] = looks_at(one, 1, label, of);
    }
    return QKV_OK;
}

/* Pairs of heads, from the farthest on; a page that is full ends between two of them. */
static qkv_status add_heads(const struct distances *d, const struct seen *const both[2],
                            struct page *page, qkv_error *error) {
    qkv_head_view first = qkv_head_view_init();
    qkv_status status = qkv_heads_view(both[0]->heads, 0, &first, error);
    qkv_page_head *const heads =
        status == QKV_OK ? page_heads_room(page, 2 * d->n_all, error) : NULL;
    if (!heads) return status == QKV_OK ? QKV_ERR_MEMORY : status;
    page->desc.scale = first.desc->scale;
    for (int64_t i = 0; i < 2 * d->n_all && status == QKV_OK; i++) {
        qkv_page_head *const head = &heads[i]; /* as place_of has it */
        status = page_head(page, both[i % 2], d->order[i / 2].index, head, error);
        head->text = i % 2;
    }
    return status;
}

qkv_status distances_page(const struct distances *d, const struct seen *const both[2],
                          const char *kind, const char *sources, distances_label *label,
                          const void *of, struct page *page, qkv_error *error) {
    page->desc.query = d->list[d->order[0].index].query;
    qkv_status status = add_heads(d, both, page, error);
    if (status == QKV_OK) status = add_grid(d, kind, sources, page, error);
    return status == QKV_OK ? add_list(d, label, of, page, error) : status;
}
