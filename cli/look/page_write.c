/* A page that is made, written or kept, and what is said of it. */
#include <inttypes.h>
#include <stdlib.h>

#include "look/look.h"

/* One line about what a page holds, of n heads that were asked for. */
static void tell(const qkv_page_result *result, int64_t n) {
    fprintf(stderr, "qkv: %" PRId64 " of %" PRId64 " heads, %.2f MB", result->n_heads, n,
            (double)result->n_bytes / 1e6);
    if (result->n_f16)
        fprintf(stderr, ", %" PRId64 " of them as f16: weights off by at most %.1e", result->n_f16,
                result->max_error);
    if (result->n_heads < n)
        fprintf(stderr, "; more than %d MB is not written: name one with --head",
                LOOK_PAGE_BYTES / 1000000);
    fputc('\n', stderr);
}

qkv_status look_page_put(const struct look_options *options, const qkv_page *page, const char *path,
                         qkv_error *error) {
    qkv_page_result result = qkv_page_result_init();
    const qkv_status status = options->page ? qkv_page_make(page, options->page, &result, error)
                                            : qkv_page_write(page, path, &result, error);
    if (status == QKV_OK && !options->common.quiet) tell(&result, page->n_heads);
    return status;
}

qkv_status look_page_write(const struct look *look, qkv_page *page, qkv_page_head *heads,
                           const char *path, qkv_error *error) {
    double *places = NULL;
    char *notes = NULL;
    if (!look_writes()) return QKV_OK;
    page->heads = heads;
    qkv_status status = look_maps_make(look, heads, page->n_heads, &places, &notes, error);
    if (status == QKV_OK) status = look_page_put(look->options, page, path, error);
    free(places);
    free(notes);
    return status;
}
