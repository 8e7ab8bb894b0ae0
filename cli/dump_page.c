/* The page of a dump, at any length: queries, keys and lse, never weights. */
#include <inttypes.h>
#include <stdlib.h>

#include "dump.h"

/* What a page cannot say yet: cross-attention, and masks that leave a query's own place out. */
static qkv_status check_page(const struct dump *dump, qkv_error *error) {
    const struct dump_mask *mask = &dump->mask;
    if (dump->n_queries != dump->n_keys)
        return text_error(error, QKV_ERR_UNSUPPORTED,
                          "%" PRId64 " queries and %" PRId64
                          " keys: a page is of as many queries as keys; .png .svg .pdf .npy .csv "
                          "and .json take these",
                          dump->n_queries, dump->n_keys);
    if ((mask->from && mask->first > 0) || (mask->to && mask->last < 0))
        return text_error(error, QKV_ERR_UNSUPPORTED,
                          "--causal and --window hide every query's own place from it: a page "
                          "cannot say so; .png .svg .pdf .npy .csv and .json can");
    return QKV_OK;
}

static int by_confidence(const void *a, const void *b) {
    const qkv_head_stats *x = ((const qkv_page_head *)a)->stats,
                         *y = ((const qkv_page_head *)b)->stats;
    if (x->confidence != y->confidence) return x->confidence < y->confidence ? 1 : -1;
    return x->head < y->head ? -1 : x->head > y->head;
}

enum { LONG = 2048, MOST_TILES = 512, LEAST_TILE = 8 };

/* How many heads of a long text a page has room for, at most: those are looked at whole. */
static int64_t long_heads(const struct dump *dump) {
    const int64_t a_head = (4 * dump->n_keys * dump->head_dim + 8 * dump->n_keys) / 3 * 4;
    const int64_t n = LOOK_PAGE_BYTES / a_head;
    return n < 1 ? 1 : n < dump->n_shown ? n : dump->n_shown;
}

/* What a browser would take minutes for: every weight of the head is looked at. */
static qkv_status look_whole(struct dump *dump, int64_t shown, qkv_error *error) {
    struct dump_head *head = &dump->heads[shown];
    const int64_t most =
        dump->n_keys / LEAST_TILE < MOST_TILES ? dump->n_keys / LEAST_TILE : MOST_TILES;
    struct dump_tiles tiles = dump_tiles_of(dump, most);
    tiles.tile = (dump->n_keys + tiles.cols - 1) / tiles.cols; /* as a page counts */
    head->side = tiles.cols;
    head->received = malloc((size_t)dump->n_keys * sizeof *head->received);
    head->peaks = malloc((size_t)(tiles.rows * tiles.cols) * sizeof *head->peaks);
    if (!head->received || !head->peaks) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    const qkv_status status = dump_columns(dump, shown, head->received, NULL, error);
    return status == QKV_OK ? dump_pool(dump, shown, POOL_PEAK, &tiles, head->peaks, error)
                            : status;
}

static void fill_page(const struct dump *dump, qkv_page *page, qkv_page_head *heads) {
    const struct dump_mask *mask = &dump->mask;
    for (int64_t h = 0; h < dump->n_shown; h++)
        heads[h] = (qkv_page_head){ .layer = dump->heads[h].stats.layer,
                                    .head = dump->heads[h].stats.head,
                                    .q = dump_queries(dump, h),
                                    .k = dump_keys(dump, h),
                                    .lse = dump->heads[h].lse,
                                    .distance = dump->heads[h].distance,
                                    .stats = &dump->heads[h].stats };
    if (!dump->given) qsort(heads, (size_t)dump->n_shown, sizeof *heads, by_confidence);
    *page = (qkv_page){ .struct_size = sizeof *page,
                        .n = dump->n_keys,
                        .head_dim = dump->head_dim,
                        .scale = (float)dump->scale,
                        .window_left = mask->from ? -mask->first : -1,
                        .window_right = mask->to ? mask->last : -1,
                        .query = dump->heads[dump->chosen].query,
                        .tokens = (const char *const *)(dump->tokens ? dump->tokens : dump->labels),
                        .n_heads = dump->n_shown,
                        .heads = heads,
                        .limit_bytes = LOOK_PAGE_BYTES };
    if (mask->to && mask->last == 0) {
        page->flags |= QKV_PAGE_CAUSAL;
        page->window_right = -1;
    }
    if (mask->from || page->window_right >= 0) page->flags |= QKV_PAGE_WINDOW;
}

/* The same of a head of the page, whose lse says which it is. */
static qkv_status look_long(struct dump *dump, qkv_page_head *head, qkv_error *error) {
    int64_t shown = 0;
    while (dump->heads[shown].lse != head->lse) shown++;
    const qkv_status status = look_whole(dump, shown, error);
    head->received = dump->heads[shown].received;
    head->peaks = dump->heads[shown].peaks;
    head->side = dump->heads[shown].side;
    return status;
}

qkv_status dump_page(struct dump *dump, const char *path, qkv_error *error) {
    qkv_page page;
    qkv_page_result result;
    char title[DUMP_TITLE], caption[DUMP_CAPTION];
    qkv_status status = check_page(dump, error);
    if (status != QKV_OK) return status;
    qkv_page_head *heads = calloc((size_t)dump->n_shown, sizeof *heads);
    if (!heads) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    fill_page(dump, &page, heads);
    dump_title(dump, dump->chosen, title);
    dump_describe(dump, caption);
    page.title = title;
    page.caption = caption;
    const struct look_maps_job job = { dump->ctx, page.n, page.head_dim,
                                       dump->options->common.quiet };
    struct look_maps maps = { 0 };
    for (int64_t h = 0; status == QKV_OK && dump->n_keys > LONG && h < long_heads(dump); h++)
        status = look_long(dump, &heads[h], error);
    if (status == QKV_OK) status = look_maps_make(&job, heads, page.n_heads, &maps, error);
    if (status == QKV_OK) status = qkv_view_page_write(&page, path, &result, error);
    if (status == QKV_OK && !dump->options->common.quiet) look_page_tell(&result, dump->n_shown);
    look_maps_free(&maps);
    free(heads);
    return status;
}
