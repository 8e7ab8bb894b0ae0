/*
 * Sinks: ways to show what is seen of heads (seen.h). Files are those of the heads that files
 * have; a path is the file's, whose ending tells its kind.
 */
#ifndef QKV_CLI_SINKS_SINKS_H
#define QKV_CLI_SINKS_SINKS_H

#include "sinks/seen.h"

/* On the terminal: the source's words, all heads, heat map of the shown one (terminal.c). */
qkv_status seen_print(const struct seen *seen, qkv_error *error);
/* An object; and as a file (numbers.c). */
qkv_status seen_json(const struct seen *seen, json_t **json, qkv_error *error);
qkv_status seen_json_write(const struct seen *seen, const char *path, qkv_error *error);
/* A page for a browser (page.c), of which there is more in page.h. */
qkv_status seen_page(const struct seen *seen, const char *path, qkv_error *error);
/* A picture: .png, .svg or .pdf (picture.c). */
qkv_status seen_picture(const struct seen *seen, const char *path, qkv_error *error);
/* --plot: a chart of the shown head, and its numbers, .csv (picture.c). */
qkv_status seen_chart(const struct seen *seen, const char *path, qkv_error *error);
/*
 * Weights (numbers.c). .npy: [n, n] of one head, else [layers, heads, n, n] or [heads, n, n];
 * NaN: not seen. .csv: of one head a row for each query, with tokens as the first row and column;
 * of all heads a row for each weight, layer,head,query,key,weight.
 */
qkv_status seen_npy(const struct seen *seen, const char *path, qkv_error *error);
qkv_status seen_csv(const struct seen *seen, const char *path, qkv_error *error);

#endif
