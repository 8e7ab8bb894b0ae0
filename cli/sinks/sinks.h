/*
 * Sinks: the ways to show a struct seen (seen.h). Those with a path write a file of the heads
 * seen->first … + n_file - 1; the ending of the path tells its format.
 */
#ifndef QKV_CLI_SINKS_SINKS_H
#define QKV_CLI_SINKS_SINKS_H

#include "sinks/seen.h"

/* On the terminal: what the source prints, all heads, a heat map of the shown one (terminal.c). */
qkv_status seen_print(const struct seen *seen, qkv_error *error);
/* A JSON object, and the file of it (numbers.c). */
qkv_status seen_json(const struct seen *seen, json_t **json, qkv_error *error);
qkv_status seen_json_write(const struct seen *seen, const char *path, qkv_error *error);
/* A page for a browser (page.c, page_write.c). */
qkv_status seen_page(const struct seen *seen, const char *path, qkv_error *error);
/* A picture: .png, .svg or .pdf (picture.c). */
qkv_status seen_picture(const struct seen *seen, const char *path, qkv_error *error);
/* --plot: a chart of the shown head; with the ending .csv its numbers (picture.c). */
qkv_status seen_chart(const struct seen *seen, const char *path, qkv_error *error);
/*
 * Weights (numbers.c). .npy: [queries, keys] of one head, else [layers, heads, queries, keys] or
 * [heads, queries, keys]; NaN: the query does not see the key. .csv: of one head a row for each
 * query, with tokens as the first row and column; of several heads a row for each weight,
 * layer,head,query,key,weight.
 */
qkv_status seen_npy(const struct seen *seen, const char *path, qkv_error *error);
qkv_status seen_csv(const struct seen *seen, const char *path, qkv_error *error);

#endif
