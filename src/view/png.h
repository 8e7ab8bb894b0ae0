/** A picture as a PNG that carries its own words. */
#ifndef QKVI_VIEW_PNG_H
#define QKVI_VIEW_PNG_H

#include <cairo.h>

#include "model/store/bytes.h"

/** The file of an image surface, with title and caption as iTXt; a failure is in file->failed. */
void qkvi_png_make(cairo_surface_t *surface, const char *title, const char *caption,
                   qkvi_bytes *file);

/** For cairo's stream writers: closure is qkvi_bytes, to which they add. */
cairo_status_t qkvi_bytes_receive(void *closure, const unsigned char *data, unsigned int n);

#endif
