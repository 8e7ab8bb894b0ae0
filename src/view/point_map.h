/** A map of points, between its checks and its file. */
#ifndef QKVI_VIEW_POINT_MAP_H
#define QKVI_VIEW_POINT_MAP_H

#include "qkv/picture.h"

#endif
