/* Pictures of things: see shapes.h. */
#include <math.h>

#include "train/shapes.h"

#include <stdio.h>

#include "core/rng.h"

enum { PURPOSE_SHAPES = 0x73686170 /* "shap" */, PURPOSE_GRAIN = 0x67726169 /* "grai" */ };
enum { N_COUNTS = 3, N_COLOURS = 4, N_KINDS = 4, MOST_STONES = 3, MOST = N_COUNTS + MOST_STONES };
enum { SAMPLES = 3, GRAIN = 9 };

typedef enum what { BALL, BOX, BOAT, TREE, STONE } what;

typedef struct colour {
    double r, g, b;
} colour;

/* Centre and half side, as shares of the picture's. */
typedef struct thing {
    what kind;
    double x, y, size;
    colour colour;
} thing;

typedef struct scene {
    thing things[MOST];
    int n;
    double horizon;
    colour above, below;
} scene;

void qkvi_shapes_name(int32_t label, char name[QKVI_SHAPES_NAME]) {
    static const char *const counts[] = { "one", "two", "three" };
    static const char *const colours[] = { "red", "green", "blue", "yellow" };
    static const char *const kinds[][2] = {
        { "ball", "balls" }, { "box", "boxes" }, { "boat", "boats" }, { "tree", "trees" }
    };
    const int count = label / (N_COLOURS * N_KINDS), of = label % (N_COLOURS * N_KINDS);
    snprintf(name, QKVI_SHAPES_NAME, "%s %s %s", counts[count], colours[of / N_KINDS],
             kinds[of % N_KINDS][count > 0]);
}

/* ---- What there is --------------------------------------------------------------------------- */

static double between(qkvi_rng *rng, double low, double high) {
    return low + (high - low) * (double)qkvi_rng_unit(rng);
}

/* The same colour, a little lighter or darker. */
static colour vary(qkvi_rng *rng, colour c, double by) {
    c.r += between(rng, -by, by);
    c.g += between(rng, -by, by);
    c.b += between(rng, -by, by);
    return c;
}

static bool is_free(const scene *s, const thing *t) {
    for (int i = 0; i < s->n; i++) {
        const double dx = s->things[i].x - t->x, dy = s->things[i].y - t->y;
        const double apart = 1.25 * (s->things[i].size + t->size);
        if (dx * dx + dy * dy < apart * apart) return false;
    }
    return true;
}

/* Puts a thing where there is room; it becomes smaller until there is some. */
static void put(qkvi_rng *rng, scene *s, thing t) {
    for (int attempt = 0;; attempt++) {
        t.x = between(rng, t.size, 1 - t.size);
        t.y = between(rng, t.size, 1 - t.size);
        if (is_free(s, &t)) break;
        if (attempt % 16 == 15) t.size *= 0.92;
    }
    s->things[s->n++] = t;
}

static scene make_scene(qkvi_rng *rng, int32_t label) {
    static const colour colours[] = {
        { 205, 45, 45 }, { 45, 150, 60 }, { 50, 80, 205 }, { 225, 190, 40 }
    };
    const int count = label / (N_COLOURS * N_KINDS), of = label % (N_COLOURS * N_KINDS);
    const int n_stones = (int)qkvi_rng_below(rng, MOST_STONES + 1);
    scene s = { .horizon = between(rng, 0.25, 0.75) };
    s.above = vary(rng, (colour){ 205, 215, 228 }, 18);
    s.below = vary(rng, (colour){ 190, 188, 178 }, 18);
    for (int i = 0; i <= count; i++)
        put(rng, &s,
            (thing){ .kind = (what)(of % N_KINDS),
                     .size = between(rng, 0.13, 0.17),
                     .colour = vary(rng, colours[of / N_KINDS], 14) });
    for (int i = 0; i < n_stones; i++)
        put(rng, &s,
            (thing){ .kind = STONE,
                     .size = between(rng, 0.04, 0.07),
                     .colour = vary(rng, (colour){ 120, 120, 122 }, 12) });
    return s;
}

/* ---- What it looks like ---------------------------------------------------------------------- */

static bool within(double x, double low, double high) { return x >= low && x <= high; }

/* Of a point in a thing's own square, -1 to 1 from left to right and from top to bottom. */
static bool is_inside(what kind, double u, double v) {
    switch (kind) {
    case BOX: return fabs(u) <= 0.8 && fabs(v) <= 0.8;
    case TREE:
        return (within(v, -1, 0.5) && fabs(u) <= (v + 1) * 0.55) ||
               (within(v, 0.5, 1) && fabs(u) <= 0.16);
    case BOAT:
        return (within(v, 0.3, 0.85) && fabs(u) <= 1 - (v - 0.3) * 0.8) ||
               (within(v, -1, 0.15) && within(u, 0.06, 0.06 + (v + 1) * 0.7)) ||
               (within(v, -0.6, 0.15) && within(u, -0.06 - (v + 0.6) * 0.8, -0.06)) ||
               (within(v, -1, 0.3) && fabs(u) <= 0.05);
    default: return u * u + v * v <= 0.85;
    }
}

static colour colour_at(const scene *s, double x, double y) {
    for (int i = 0; i < s->n; i++) {
        const thing *const t = &s->things[i];
        if (is_inside(t->kind, (x - t->x) / t->size, (y - t->y) / t->size)) return t->colour;
    }
    return y < s->horizon ? s->above : s->below;
}

static uint8_t level(double value) {
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value + 0.5);
}

/* A pixel is the mean of some points, and has a grain. */
static void draw_pixel(const scene *s, int64_t row, int64_t column, int64_t side, int grain,
                       uint8_t *rgb) {
    const double step = 1 / (double)(SAMPLES * side), n = SAMPLES * SAMPLES;
    colour sum = { 0, 0, 0 };
    for (int i = 0; i < SAMPLES; i++)
        for (int k = 0; k < SAMPLES; k++) {
            const colour c = colour_at(s, ((double)(SAMPLES * column + k) + 0.5) * step,
                                       ((double)(SAMPLES * row + i) + 0.5) * step);
            sum.r += c.r, sum.g += c.g, sum.b += c.b;
        }
    rgb[0] = level(sum.r / n + grain);
    rgb[1] = level(sum.g / n + grain);
    rgb[2] = level(sum.b / n + grain);
}

int32_t qkvi_shapes_draw(uint64_t seed, qkvi_split split, int64_t index, int64_t side,
                         uint8_t *rgb) {
    const uint64_t number = (uint64_t)index * 2 + (split == QKVI_SPLIT_HELD_OUT);
    qkvi_rng rng = qkvi_rng_make(seed, PURPOSE_SHAPES, number);
    qkvi_rng grain = qkvi_rng_make(seed, PURPOSE_GRAIN, number);
    const int32_t label = (int32_t)qkvi_rng_below(&rng, QKVI_SHAPES_LABELS);
    const scene s = make_scene(&rng, label);
    for (int64_t p = 0; p < side * side; p++)
        draw_pixel(&s, p / side, p % side, side, (int)qkvi_rng_below(&grain, 2 * GRAIN + 1) - GRAIN,
                   rgb + 3 * p);
    return label;
}
