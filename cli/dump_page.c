/* The page of a dump, at any length: queries, keys and lse, never weights. */
#include <inttypes.h>
#include <stdlib.h>

#include "dump.h"

static int by_confidence(const void *a, const void *b) {
    const qkv_head_stats *x = ((const qkv_page_head *)a)->stats,
                         *y = ((const qkv_page_head *)b)->stats;
    if (x->confidence != y->confidence) return x->confidence < y->confidence ? 1 : -1;
    return x->head < y->head ? -1 : x->head > y->head;
}

enum { LONG = 2048, SAMPLE = 512, MOST_TILES = 512, LEAST_TILE = 8 };

/* Texts of which a browser does not compute all weights. */
static bool is_long(const struct dump *dump) {
    return dump->n_queries > SAMPLE && dump->n_queries * dump->n_keys > (int64_t)LONG * LONG;
}

/* How many heads of a long text a page has room for, at most: those are looked at whole. */
static int64_t long_heads(const struct dump *dump) {
    const int64_t n = dump->n_queries + dump->n_keys,
                  a_head = (2 * n * dump->head_dim + 4 * n) / 3 * 4,
                  heads = LOOK_PAGE_BYTES / a_head;
    return heads < 1 ? 1 : heads < dump->n_shown ? heads : dump->n_shown;
}

/* What a browser would take minutes for: every weight of the head is looked at. */
static qkv_status look_whole(struct dump *dump, int64_t shown, qkv_error *error) {
    struct dump_head *head = &dump->heads[shown];
    const int64_t n = dump->n_queries > dump->n_keys ? dump->n_queries : dump->n_keys;
    const struct dump_tiles tiles =
        dump_tiles_of(dump, n / LEAST_TILE < MOST_TILES ? n / LEAST_TILE : MOST_TILES);
    head->side = tiles.cols;
    head->tile = tiles.tile;
    head->received = malloc((size_t)dump->n_keys * sizeof *head->received);
    head->peaks = malloc((size_t)(tiles.rows * tiles.cols) * sizeof *head->peaks);
    if (!head->received || !head->peaks) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    const qkv_status status = dump_columns(dump, shown, head->received, NULL, error);
    return status == QKV_OK ? dump_pool(dump, shown, POOL_PEAK, &tiles, head->peaks, error)
                            : status;
}

/* Queries that are no keys have a list of their own: their tokens, else numbers. NULL: no memory. */
struct page_queries {
    qkv_page_run run;
    const char **tokens;
    char (*rooms)[DUMP_LABEL];
};

static bool queries_make(const struct dump *dump, struct page_queries *queries) {
    const size_t n = (size_t)dump->n_queries;
    queries->run.tokens = (const char *const *)dump->q_tokens;
    if (dump->self || dump->q_tokens) return true;
    queries->tokens = malloc(n * sizeof *queries->tokens);
    queries->rooms = malloc(n * sizeof *queries->rooms);
    for (size_t i = 0; queries->tokens && queries->rooms && i < n; i++)
        queries->tokens[i] = dump_query_label(dump, (int64_t)i, 1, queries->rooms[i]);
    queries->run.tokens = queries->tokens;
    return queries->tokens && queries->rooms;
}

static void queries_free(struct page_queries *queries) {
    free(queries->tokens);
    free(queries->rooms);
}

static void fill_page(const struct dump *dump, const struct page_queries *queries, qkv_page *page,
                      qkv_page_head *heads) {
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
                        .window_left = dump->window_left,
                        .window_right = dump->window_right,
                        .query = dump->heads[dump->chosen].query,
                        .tokens = (const char *const *)(dump->tokens ? dump->tokens : dump->labels),
                        .n_heads = dump->n_shown,
                        .heads = heads,
                        .limit_bytes = LOOK_PAGE_BYTES,
                        .n_queries = dump->n_queries,
                        .queries = dump->self ? NULL : &queries->run,
                        .q_offset = dump->q_offset };
    if (dump->causal) page->flags |= QKV_PAGE_CAUSAL;
    if (dump->window) page->flags |= QKV_PAGE_WINDOW;
    if (dump->q_tokens && !page->flags)
        page->flags = QKV_PAGE_TWO_TEXTS; /* with names of their own */
}

/* The same of a head of the page, whose lse says which it is. */
static qkv_status look_long(struct dump *dump, qkv_page_head *head, qkv_error *error) {
    int64_t shown = 0;
    while (dump->heads[shown].lse != head->lse) shown++;
    const qkv_status status = look_whole(dump, shown, error);
    head->received = dump->heads[shown].received;
    head->peaks = dump->heads[shown].peaks;
    head->side = dump->heads[shown].side;
    head->tile = dump->heads[shown].tile;
    return status;
}

static qkv_status write_page(struct dump *dump, qkv_page *page, qkv_page_head *heads,
                             const char *path, qkv_error *error) {
    qkv_page_result result;
    char title[DUMP_TITLE], caption[DUMP_CAPTION];
    dump_title(dump, dump->chosen, title);
    dump_describe(dump, caption);
    page->title = title;
    page->caption = caption;
    const struct look_maps_job job = { dump->ctx, dump->n_queries, dump->n_keys, page->head_dim,
                                       dump->options };
    struct look_maps maps = { 0 };
    qkv_status status = QKV_OK;
    for (int64_t h = 0; status == QKV_OK && is_long(dump) && h < long_heads(dump); h++)
        status = look_long(dump, &heads[h], error);
    if (status == QKV_OK) status = look_maps_make(&job, heads, page->n_heads, &maps, error);
    if (status == QKV_OK) status = qkv_view_page_write(page, path, &result, error);
    if (status == QKV_OK && !dump->options->common.quiet) look_page_tell(&result, dump->n_shown);
    look_maps_free(&maps);
    return status;
}

qkv_status dump_page(struct dump *dump, const char *path, qkv_error *error) {
    qkv_page page;
    struct page_queries queries = { 0 };
    qkv_page_head *heads = calloc((size_t)dump->n_shown, sizeof *heads);
    const bool made = heads && queries_make(dump, &queries);
    if (made) fill_page(dump, &queries, &page, heads);
    const qkv_status status = made ? write_page(dump, &page, heads, path, error)
                                   : text_error(error, QKV_ERR_MEMORY, "out of memory");
    queries_free(&queries);
    free(heads);
    return status;
}
