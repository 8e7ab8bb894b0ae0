/** Where labels of points find room: a raster of what is taken, cells of 4 pixels. */
#ifndef QKVI_VIEW_LABELS_H
#define QKVI_VIEW_LABELS_H

#include "files/base.h"

typedef struct qkvi_raster {
    int columns, rows;
    uint8_t *taken; /* [rows][columns] */
} qkvi_raster;

typedef struct qkvi_box {
    double x, y, width, height;
} qkvi_box;

/** A free raster over [0, width) x [0, height); 0 without memory. Free it in any case. */
int qkvi_raster_make(qkvi_raster *raster, double width, double height);
void qkvi_raster_free(qkvi_raster *raster);

void qkvi_raster_take(qkvi_raster *raster, const qkvi_box *box);
/** A line from (x, y) to (to_x, to_y). */
void qkvi_raster_take_line(qkvi_raster *raster, double x, double y, double to_x, double to_y);

/**
 * A place for a box of that width and height beside a point, `gap` from it, that lies within the
 * raster and is free: right, left, above, below, then the corners, then with n_rings = 2 all of
 * them once more farther off. Takes it and fills box->x and y; 0 if there is none.
 */
int qkvi_raster_place(qkvi_raster *raster, double x, double y, double gap, int n_rings,
                      qkvi_box *box);

/**
 * A place farther off, to which a line leads that is free, too. Takes both; the line goes from
 * (*from_x, *from_y), at `gap` from the point, to that point of the box which qkvi_box_near gives.
 */
int qkvi_raster_lead(qkvi_raster *raster, double x, double y, double gap, qkvi_box *box,
                     double *from_x, double *from_y);

/** The point of a box that is nearest to (x, y), little outside. */
void qkvi_box_near(const qkvi_box *box, double x, double y, double *near_x, double *near_y);

#endif
