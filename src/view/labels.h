/** Finding room for labels of points: a raster of cells of 4 pixels, free or taken. */
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
/** Takes the cells of a line from (x, y) to (to_x, to_y). */
void qkvi_raster_take_line(qkvi_raster *raster, double x, double y, double to_x, double to_y);

/**
 * Finds a free place within the raster for a box of this width and height at a distance `gap` from
 * a point: right, left, above, below, then at the corners; with n_rings = 2 then all of these once
 * more at a larger distance. Takes it and sets box->x and y; returns 0 if there is none.
 */
int qkvi_raster_place(qkvi_raster *raster, double x, double y, double gap, int n_rings,
                      qkvi_box *box);

/**
 * Finds a free place farther off, such that a leader line to it is free, too. Takes both. The line
 * goes from (*from_x, *from_y), at a distance `gap` from the point, to qkvi_box_near of the box.
 */
int qkvi_raster_lead(qkvi_raster *raster, double x, double y, double gap, qkvi_box *box,
                     double *from_x, double *from_y);

/** The point of a slightly enlarged box that is nearest to (x, y). */
void qkvi_box_near(const qkvi_box *box, double x, double y, double *near_x, double *near_y);

#endif
