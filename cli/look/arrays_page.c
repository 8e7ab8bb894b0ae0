/* The page of arrays, at any length: queries, keys and lse, never weights. */
#include <inttypes.h>
#include <stdlib.h>

#include "look/look.h"

enum { MOST_TILES = 512, LEAST_TILE = 8 };

/* How many heads of a long text a page has room for, at most: those are looked at whole. */
static int64_t long_heads(const struct look *look) {
    const int64_t n = look->n_rows + look->n_cols,
                  a_head = (2 * n * look_info(look)->head_dim + 4 * n) / 3 * 4,
                  heads = LOOK_PAGE_BYTES / a_head, n_all = look_n_heads(look);
    return heads < 1 ? 1 : heads < n_all ? heads : n_all;
}

/* The index of a head of the page, which was sorted. */
static int64_t index_of(const struct look *look, const qkv_page_head *head) {
    int64_t index = 0;
    while (look_numbers(look, index) != head->numbers) index++;
    return index;
}

/*
 * What a browser would take minutes for: what keys receive, and the largest weight of each tile,
 * one behind the other in *whole.
 */
static qkv_status look_whole(const struct look *look, qkv_page_head *head, float **whole,
                             qkv_error *error) {
    const int64_t index = index_of(look, head), n_keys = look->n_cols,
                  n = look->n_rows > n_keys ? look->n_rows : n_keys;
    const struct look_tiles tiles =
        look_tiles_of(look, n / LEAST_TILE < MOST_TILES ? n / LEAST_TILE : MOST_TILES);
    double *received = malloc((size_t)n_keys * sizeof *received);
    float *numbers = *whole = malloc((size_t)(n_keys + tiles.rows * tiles.cols) * sizeof *numbers);
    const qkv_heads_profile profile = { .struct_size = sizeof profile, .received = received };
    qkv_call_options call = qkv_call_options_init();
    call.cancel = &cli_cancelled;
    qkv_status status = received && numbers
                            ? qkv_heads_position(look->text.heads, index, &profile, &call, error)
                            : text_no_memory(error);
    for (int64_t j = 0; status == QKV_OK && j < n_keys; j++) numbers[j] = (float)received[j];
    if (status == QKV_OK) status = look_cells(look, index, &tiles, numbers + n_keys, error);
    free(received);
    if (status != QKV_OK) return status;
    head->received = numbers;
    head->peaks = numbers + n_keys;
    for (float *cell = numbers + n_keys; cell < head->peaks + tiles.rows * tiles.cols; cell++)
        if (*cell == QKV_CELL_HIDDEN) *cell = 0;
    head->side = tiles.cols;
    head->tile = tiles.tile;
    head->distance = qkv_heads_distance(look->text.heads, index);
    return status;
}

qkv_status arrays_page(const struct look *look, qkv_page_head *heads, const char *path,
                       qkv_error *error) {
    const struct arrays *arrays = look->arrays;
    const struct array_names *keys = &arrays->keys, *queries = &arrays->queries;
    const qkv_page_run run = { .tokens = (const char *const *)(queries->tokens ? queries->tokens
                                                                               : queries->labels) };
    const int64_t n_long = arrays_are_long(arrays) ? long_heads(look) : 0;
    float **wholes = calloc((size_t)n_long + 1, sizeof *wholes);
    struct caption title = { "" }, caption = { "" };
    qkv_page page = look_page_of(look, title.text, caption.text);
    if (!wholes) return text_no_memory(error);
    page.rules = &arrays->seen;
    page.two_texts = arrays->given.two_texts; /* with names of their own */
    page.tokens = (const char *const *)(keys->tokens ? keys->tokens : keys->labels);
    page.n_heads = look_n_heads(look);
    page.n_queries = look->n_rows;
    page.queries = arrays->self ? NULL : &run;
    look_title(look, &title);
    arrays_describe(arrays, &caption);
    qkv_status status = look_page_heads(look, heads, &page.scale, error);
    for (int64_t h = 0; status == QKV_OK && h < n_long; h++)
        status = look_whole(look, &heads[h], &wholes[h], error);
    if (status == QKV_OK) status = look_page_write(look, &page, heads, path, error);
    for (int64_t h = 0; h < n_long; h++) free(wholes[h]);
    free(wholes);
    return status;
}
