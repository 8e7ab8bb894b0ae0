/*
 * --image: an image as a source. Its patches are tokens, queries and keys alike; what is shown is
 * what one of them, or all together, look at, as a map over the image.
 */
#ifndef QKV_CLI_LOOK_IMAGE_H
#define QKV_CLI_LOOK_IMAGE_H

#include "common/attended.h"
#include "look/options.h"
#include <qkv/vision.h>

struct image_seen {
    struct seen seen; /* the first: what a sink knows */
    const struct look_options *options;
    struct session session; /* whose model is the one that reads images */
    struct attended text;
    qkv_image *image;
    qkv_encoding *input;
    const qkv_image_tokens *tokens; /* of input */
    double *labels;                 /* [n_labels], of a classifier; NULL */
    int64_t query;                  /* a token; -1: the mean over all patches */
    float *maps;    /* [heads][rows * columns]: weights of the patches, from the query */
    float *rollout; /* [rows * columns]: how much of each patch is in the query after all layers */
};

/* What a sink knows is the first part of what the source made. */
static inline const struct image_seen *image_of(const struct seen *seen) {
    return (const struct image_seen *)(const void *)seen;
}

/* An exit code, having said what is wrong. The session must outlive t. To be freed in any case. */
int image_begin(struct image_seen *t, const struct session *session,
                const struct look_options *options);
qkv_status image_look(struct image_seen *t, qkv_error *error);
void image_free(struct image_seen *t);

/* ---- Words and pictures (image_words.c, image_draw.c) ---------------------------------------- */

static inline int64_t image_patches(const struct image_seen *t) {
    return t->tokens->rows * t->tokens->columns;
}
/* "[CLS]", "patch 3,4", "all patches". */
const char *image_query(const struct image_seen *t, char name[48]);
/* The patch with the largest value, and the sum of all. */
int64_t image_peak(const struct image_seen *t, const float *map, double *sum);

void image_describe(struct image_seen *t);
void image_print(const struct seen *seen, struct term *term);
void image_add_json(const struct seen *seen, bool behind, json_t *object);
qkv_status image_draw(const struct seen *seen, const char *path, qkv_error *error);
qkv_status image_page(const struct seen *seen, struct page *page, qkv_error *error);

#endif
