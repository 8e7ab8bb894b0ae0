/*
 * `qkv look --image F --against G`: two images through one model, or, if G is a model, one image
 * through two models of the same shape. Heads are compared in their places, token by token.
 */
#ifndef QKV_CLI_LOOK_IMAGE_AGAINST_H
#define QKV_CLI_LOOK_IMAGE_AGAINST_H

#include "look/distances.h"
#include "look/image.h"

struct image_against {
    struct image_seen of[2]; /* A, whose first part is what a sink knows, and B */
    struct session other;    /* of the second model */
    bool models;             /* two models, not two images */
    struct distances d;
};

/*
 * Sets both up. The session, one of session_images, must outlive a, and image_against_free is
 * called in any case. Returns an exit code, having said what is wrong.
 */
int image_against_begin(struct image_against *a, const struct session *session,
                        const struct look_options *options);
/* Looks at both, and compares their heads. */
qkv_status image_against_look(struct image_against *a, qkv_error *error);
void image_against_free(struct image_against *a);

#endif
