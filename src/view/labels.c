/** Greedy placement of labels on a raster: see labels.h. */
#include "view/labels.h"

#include <math.h>

enum { CELL = 4 };

int qkvi_raster_make(qkvi_raster *raster, double width, double height) {
    raster->columns = (int)(width / CELL);
    raster->rows = (int)(height / CELL);
    raster->taken = qkvi_calloc_array((size_t)raster->columns * (size_t)raster->rows, 1);
    return raster->taken != NULL;
}

void qkvi_raster_free(qkvi_raster *raster) { free(raster->taken); }

/* The cells that a box touches, within the raster: [first, end). */
struct cells {
    int left, right, top, bottom;
};

static int clamp(double x, int most) {
    const double cell = floor(x / CELL);
    return cell < 0 ? 0 : cell > most ? most : (int)cell;
}

static struct cells cells_of(const qkvi_raster *raster, const qkvi_box *box) {
    return (struct cells){ clamp(box->x, raster->columns),
                           clamp(box->x + box->width + CELL, raster->columns),
                           clamp(box->y, raster->rows),
                           clamp(box->y + box->height + CELL, raster->rows) };
}

void qkvi_raster_take(qkvi_raster *raster, const qkvi_box *box) {
    const struct cells c = cells_of(raster, box);
    for (int row = c.top; row < c.bottom; row++)
        for (int column = c.left; column < c.right; column++)
            raster->taken[row * raster->columns + column] = 1;
}

/* Of a line, no farther apart than cells. hypot would need glibc 2.35, where its bits changed. */
static int steps_of(double x, double y) { return 1 + (int)(sqrt(x * x + y * y) / CELL); }

void qkvi_raster_take_line(qkvi_raster *raster, double x, double y, double to_x, double to_y) {
    const int steps = steps_of(to_x - x, to_y - y);
    for (int i = 0; i <= steps; i++) {
        const double share = (double)i / steps;
        const qkvi_box dot = { x + share * (to_x - x), y + share * (to_y - y), 0, 0 };
        qkvi_raster_take(raster, &dot);
    }
}

static int is_free(const qkvi_raster *raster, const qkvi_box *box) {
    if (box->x < 0 || box->y < 0 || box->x + box->width > CELL * raster->columns ||
        box->y + box->height > CELL * raster->rows)
        return 0;
    const struct cells c = cells_of(raster, box);
    for (int row = c.top; row < c.bottom; row++)
        for (int column = c.left; column < c.right; column++)
            if (raster->taken[row * raster->columns + column]) return 0;
    return 1;
}

int qkvi_raster_place(qkvi_raster *raster, double x, double y, double gap, int n_rings,
                      qkvi_box *box) {
    static const struct {
        signed char x, y;
    } sides[] = { { 1, 0 },  { -1, 0 }, { 0, -1 },  { 0, 1 },
                  { 1, -1 }, { 1, 1 },  { -1, -1 }, { -1, 1 } };
    for (int i = 0; i < 8 * n_rings; i++) {
        const double off = i < 8 ? gap : 2.5 * gap;
        const int side_x = sides[i % 8].x, side_y = sides[i % 8].y;
        box->x = x + side_x * off + (side_x - 1) * box->width / 2;
        box->y = y + side_y * off + (side_y - 1) * box->height / 2;
        if (!is_free(raster, box)) continue;
        qkvi_raster_take(raster, box);
        return 1;
    }
    return 0;
}

/* ---- Farther off ----------------------------------------------------------------------------- */

void qkvi_box_near(const qkvi_box *box, double x, double y, double *near_x, double *near_y) {
    const double beside = 2;
    *near_x = fmin(fmax(x, box->x - beside), box->x + box->width + beside);
    *near_y = fmin(fmax(y, box->y), box->y + box->height);
}

static int line_is_free(const qkvi_raster *raster, double x, double y, double to_x, double to_y) {
    const int steps = steps_of(to_x - x, to_y - y);
    for (int i = 0; i <= steps; i++) {
        const double share = (double)i / steps;
        const qkvi_box dot = { x + share * (to_x - x), y + share * (to_y - y), 0, 0 };
        if (!is_free(raster, &dot)) return 0;
    }
    return 1;
}

int qkvi_raster_lead(qkvi_raster *raster, double x, double y, double gap, qkvi_box *box,
                     double *from_x, double *from_y) {
    enum { RINGS = 10, DIRECTIONS = 16 };
    for (int ring = 0; ring < RINGS; ring++) {
        const double off = gap + 15 * (ring + 1);
        for (int i = 0; i < DIRECTIONS; i++) {
            const double angle = 2 * M_PI * i / DIRECTIONS, cx = cos(angle), cy = sin(angle);
            double to_x, to_y;
            /* The box touches the ring with the side, or the middle, that faces the point. */
            box->x = x + cx * off + (cx > 0.3 ? 0 : cx < -0.3 ? -1 : -0.5) * box->width;
            box->y = y + cy * off + (cy > 0.3 ? 0 : cy < -0.3 ? -1 : -0.5) * box->height;
            *from_x = x + cx * gap;
            *from_y = y + cy * gap;
            qkvi_box_near(box, *from_x, *from_y, &to_x, &to_y);
            if (!is_free(raster, box) || !line_is_free(raster, *from_x, *from_y, to_x, to_y))
                continue;
            qkvi_raster_take(raster, box);
            qkvi_raster_take_line(raster, *from_x, *from_y, to_x, to_y);
            return 1;
        }
    }
    return 0;
}
