/* Maps over an image on the terminal: two rows of pixels in each line of text (image_term.c). */
#ifndef QKV_CLI_LOOK_IMAGE_TERM_H
#define QKV_CLI_LOOK_IMAGE_TERM_H

#include "look/image.h"

/* Draws one map [rows * columns], as wide as the terminal allows. */
void image_draw_map(struct term *term, const struct image_seen *t, const float *map);
/* Draws the maps of all heads, a row for each layer, with one scale of colours. */
void image_draw_grid(struct term *term, const struct image_seen *t);

#endif
