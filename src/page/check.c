/** Checks of a page that a caller made: its fields, and those of each head. See parts.h. */
#include <math.h>

#include "page/head.h"
#include "page/parts.h"

enum {
    MAX_N = 1 << 20,
    MAX_DIM = 1 << 12,
    MAX_HEADS = 1 << 16,
    MAX_SIDE = 1024,
    MAX_PIXELS = 4096
};

static qkv_status check_map(const qkv_page *page, int64_t i, qkv_error *error) {
    const qkv_page_head *const head = &page->heads[i];
    const double *const places[] = { head->map, head->pca };
    if ((head->map == NULL) != (head->pca == NULL))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "heads[%lld].%s is NULL, %s is not",
                              (long long)i, head->map ? "pca" : "map", head->map ? "map" : "pca");
    for (int64_t c = 0; head->map && c < 4 * (page->n_queries + page->n); c++)
        if (!isfinite(places[c & 1][c >> 1]))
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "heads[%lld].%s[%lld] is not finite",
                                  (long long)i, c & 1 ? "pca" : "map", (long long)(c >> 1));
    return QKV_OK;
}

static qkv_status check_peaks(const qkv_page *page, int64_t i, qkv_error *error) {
    const qkv_page_head *const head = &page->heads[i];
    if (head->side < 1 || head->side > MAX_SIDE)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "heads[%lld].side = %lld must be 1 to %d",
                              (long long)i, (long long)head->side, MAX_SIDE);
    const int64_t tile = qkvi_page_tile(page, head);
    if (tile < 1 || (head->tile > 0 && (page->n + tile - 1) / tile != head->side) ||
        (page->n_queries + tile - 1) / tile > MAX_SIDE)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "heads[%lld].tile = %lld: ceil(n / tile) is not side = %lld, or "
                              "ceil(n_queries / tile) is above %d",
                              (long long)i, (long long)head->tile, (long long)head->side, MAX_SIDE);
    return QKV_OK;
}

static qkv_status check_window(const qkv_page *page, int64_t i, qkv_error *error) {
    const qkv_page_head *const head = &page->heads[i];
    if (head->has_window && (head->window_left < -1 || head->window_right < -1))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "heads[%lld].window_left = %lld, window_right = %lld: each must "
                              "be -1 or above",
                              (long long)i, (long long)head->window_left,
                              (long long)head->window_right);
    if (head->has_window && page->two_texts)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "heads[%lld].has_window: queries of two_texts have no places "
                              "among the keys",
                              (long long)i);
    return QKV_OK;
}

static qkv_status check_distances(const qkv_page_head *head, int64_t i, qkv_error *error) {
    if (!head->distance_bias) return QKV_OK;
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = { { "distance_before", head->distance_before },
                  { "distance_after", head->distance_after } };
    for (int n = 0; n < 2; n++)
        if (sizes[n].value < 0 || sizes[n].value > MAX_N)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "heads[%lld].%s = %lld is not in [0, %d]", (long long)i,
                                  sizes[n].name, (long long)sizes[n].value, MAX_N);
    const int64_t n = head->distance_before + 1 + head->distance_after;
    for (int64_t e = 0; e < n; e++)
        if (!isfinite(head->distance_bias[e]))
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "heads[%lld].distance_bias[%lld] is not finite", (long long)i,
                                  (long long)e);
    return QKV_OK;
}

static qkv_status check_heads(const qkv_page *page, qkv_error *error) {
    for (int64_t i = 0; i < page->n_heads; i++) {
        const qkv_page_head *const head = &page->heads[i];
        if (head->q == NULL || head->k == NULL || head->lse == NULL)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "heads[%lld].%s is NULL", (long long)i,
                                  head->q ? head->k ? "lse" : "k" : "q");
        if (head->layer < 0 || head->head < 0)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "heads[%lld] is layer %lld, head %lld: both count from 0",
                                  (long long)i, (long long)head->layer, (long long)head->head);
        if (head->text < 0 || head->text >= (page->n_texts > 0 ? page->n_texts : 1))
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "heads[%lld].text = %lld is not one of n_texts = %lld",
                                  (long long)i, (long long)head->text, (long long)page->n_texts);
        if (head->peaks) QKV_TRY(check_peaks(page, i, error));
        if (!isfinite(head->scale))
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "heads[%lld].scale is not finite",
                                  (long long)i);
        if (!isfinite(head->alibi))
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "heads[%lld].alibi is not finite",
                                  (long long)i);
        if (head->sink && !(*head->sink < INFINITY))
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "heads[%lld].sink is neither finite nor -INFINITY", (long long)i);
        QKV_TRY(check_distances(head, i, error));
        QKV_TRY(check_window(page, i, error));
        QKV_TRY(check_map(page, i, error));
    }
    return QKV_OK;
}

/* How a score is made. */
static qkv_status check_scores(const qkv_page *page, qkv_error *error) {
    if (!isfinite(page->scale))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "scale is not finite");
    if (!(page->softcap >= 0) || !isfinite(page->softcap))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "softcap = %g must be 0 or above",
                              page->softcap);
    return QKV_OK;
}

static qkv_status check_effects(const qkv_page *page, qkv_error *error) {
    if (page->effect_of && (page->effect_query < -1 || page->effect_query >= page->n_queries))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "effect_query = %lld is neither -1 nor below n_queries = %lld",
                              (long long)page->effect_query, (long long)page->n_queries);
    if (page->effect_of && page->effect_log_p > 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "effect_log_p = %g is above 0",
                              page->effect_log_p);
    return QKV_OK;
}

/* Of each text that a reader can choose. */
static qkv_status check_image(const qkv_page *page, int64_t text, const qkv_page_image *image,
                              qkv_error *error) {
    const long long number = (long long)text;
    if ((image == NULL) != (page->image == NULL))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "image of text %lld is %s, of text 0 it is %s", number,
                              image ? "given" : "NULL", image ? "NULL" : "given");
    if (image == NULL) return QKV_OK;
    if (image->pixels == NULL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "image of text %lld: pixels is NULL",
                              number);
    if (image->width < 1 || image->width > MAX_PIXELS || image->height < 1 ||
        image->height > MAX_PIXELS)
        return qkvi_error_set(
            error, QKV_ERR_SHAPE, "image of text %lld: width = %lld, height = %lld must be 1 to %d",
            number, (long long)image->width, (long long)image->height, MAX_PIXELS);
    if (image->rows < 1 || image->rows > image->height || image->columns < 1 ||
        image->columns > image->width || image->first < 0 || image->first > page->n ||
        image->first + image->rows * image->columns != page->n)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "image of text %lld: first = %lld, rows = %lld, columns = %lld of "
                              "%lld x %lld pixels: first + rows columns must be n = %lld",
                              number, (long long)image->first, (long long)image->rows,
                              (long long)image->columns, (long long)image->height,
                              (long long)image->width, (long long)page->n);
    return QKV_OK;
}

static qkv_status check_images(const qkv_page *page, qkv_error *error) {
    if (page->queries && (page->image || page->queries->image))
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "image together with queries");
    QKV_TRY(check_image(page, 0, page->image, error));
    for (int64_t t = 1; t < page->n_texts; t++)
        QKV_TRY(check_image(page, t, page->texts[t].image, error));
    return QKV_OK;
}

qkv_status qkvi_page_check(const qkv_page *page, qkv_error *error) {
    if (page->tokens == NULL || page->heads == NULL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              page->tokens ? "heads" : "tokens");
    if (page->n < 1 || page->n > MAX_N || page->head_dim < 1 || page->head_dim > MAX_DIM)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "n = %lld must be 1 to %d, head_dim = %lld 1 to %d",
                              (long long)page->n, MAX_N, (long long)page->head_dim, MAX_DIM);
    if (page->n_queries < 1 || page->n_queries > MAX_N)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "n_queries = %lld must be 1 to %d",
                              (long long)page->n_queries, MAX_N);
    if (page->n_heads < 1 || page->n_heads > MAX_HEADS)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "n_heads = %lld must be 1 to %d",
                              (long long)page->n_heads, MAX_HEADS);
    QKV_TRY(check_scores(page, error));
    if (page->query < -1 || page->query >= page->n_queries)
        return qkvi_error_set(
            error, QKV_ERR_ARGUMENT, "query = %lld is neither -1 nor below %s = %lld",
            (long long)page->query, page->queries ? "n_queries" : "n", (long long)page->n_queries);
    QKV_TRY(check_effects(page, error));
    QKV_TRY(qkvi_page_check_tables(page, error));
    QKV_TRY(check_images(page, error));
    return check_heads(page, error);
}
