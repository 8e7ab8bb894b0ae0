/** A picture as a PNG file that carries its own words. */
#ifndef QKVI_VIEW_PNG_H
#define QKVI_VIEW_PNG_H

#include <cairo.h>

#include "qkv/view.h"

/** Writes surface to path (a temporary name, then a rename), with title and caption as iTXt. */
qkv_status qkvi_png_save(cairo_surface_t *surface, const char *path, const char *title,
                         const char *caption, qkv_error *error);

#endif
