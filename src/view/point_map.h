/** Drawing a map of points, after its checks. */
#ifndef QKVI_VIEW_POINT_MAP_H
#define QKVI_VIEW_POINT_MAP_H

#include "qkv/picture.h"

/** Draws a map that has been checked (point_map_check.c), and writes its file. */
qkv_status qkvi_point_map_draw(const qkv_point_map *map, const char *path, qkv_error *error);

#endif
