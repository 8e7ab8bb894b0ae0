/*
 * `qkv look --image F`: a source of one image, whose patches are tokens, both queries and keys. It
 * shows what one query, or the mean of all patches, looks at, as a map over the image.
 */
#ifndef QKV_CLI_LOOK_IMAGE_H
#define QKV_CLI_LOOK_IMAGE_H

#include "common/attended.h"
#include "look/options.h"
#include <qkv/page.h>
#include <qkv/vision.h>

struct image_seen {
    struct seen seen; /* first, so that sinks can pass it back to the source: image_of */
    const struct look_options *options;
    const char *path;
    const struct session *session; /* with a model that reads images */
    struct what_if what_if;        /* without tokens to drop, which text.what_if has */
    struct attended text;
    qkv_image *image;
    qkv_encoding *input;
    const qkv_image_tokens *tokens; /* how the tokens of input lie in the image */
    double *labels;                 /* [n_labels], of a classifier; NULL */
    double *before;                 /* with --what-if: of the unchanged model; NULL */
    int64_t query;                  /* a token; -1: the mean over all patches */
    float *maps;    /* [heads][rows * columns]: weights of the query on the patches */
    float *rollout; /* [rows * columns]: attention rollout of the query over all layers */
};

/* The source of a seen whose functions are those of an image. */
static inline const struct image_seen *image_of(const struct seen *seen) {
    return (const struct image_seen *)(const void *)seen;
}

/*
 * Sets t up for an image and a session of session_images, which must both outlive t; image_free is
 * called in any case. Returns an exit code, having said what is wrong.
 */
int image_begin(struct image_seen *t, const struct session *session,
                const struct look_options *options, const char *path);
/* Runs the model, measures the heads, and makes the maps. */
qkv_status image_look(struct image_seen *t, qkv_error *error);
void image_free(struct image_seen *t);

/* ---- Words and pictures (image_words.c, image_draw.c) ---------------------------------------- */

static inline int64_t image_patches(const struct image_seen *t) {
    return t->tokens->rows * t->tokens->columns;
}
/* The name of the query: "[CLS]", "patch 3,4", "all patches". */
const char *image_query(const struct image_seen *t, char name[48]);
/* The patch with the largest value of a map; *sum: of all values. */
int64_t image_peak(const struct image_seen *t, const float *map, double *sum);

/* Fills in the captions and names of t->seen. */
void image_describe(struct image_seen *t);
/* The functions of t->seen. */
void image_print(const struct seen *seen, struct term *term);
void image_add_json(const struct seen *seen, bool behind, json_t *object);
/* A picture of the image as the options ask for it, still without maps and words. */
qkv_image_maps image_picture(const struct image_seen *t);
qkv_status image_draw(const struct seen *seen, const char *path, qkv_error *error);
qkv_status image_page(const struct seen *seen, struct page *page, qkv_error *error);

/* The image for a page. */
qkv_page_image image_of_page(const struct image_seen *t);
/* Adds what each head is worth for the likeliest label (image_effects.c). */
qkv_status image_effects(const struct image_seen *t, struct page *page, qkv_error *error);

#endif
