/* Maps over an image in the terminal: two rows of pixels to a line of text (image_term.c). */
#ifndef QKV_CLI_LOOK_IMAGE_TERM_H
#define QKV_CLI_LOOK_IMAGE_TERM_H

#include "look/image.h"

/* One map [rows * columns], as wide as the terminal allows. */
void image_draw_map(struct term *term, const struct image_seen *t, const float *map);
/* The maps of all heads, layers down, with one scale. */
void image_draw_grid(struct term *term, const struct image_seen *t);

#endif
