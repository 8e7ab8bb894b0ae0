/** The options of a heat map: palette, ends of the scale, size, figures. */
#include "view/cells.h"

#include <math.h>

static qkv_status check_ends(const qkvi_asked *asked, int kind, qkv_error *error) {
    const double min = asked->min, max = asked->max;
    if (!(fabs(min) < 1e9 && fabs(max) < 1e9))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "min = %g, max = %g: both must be within 1e9", min, max);
    if (kind == 2 && (min != 0 || max != 0))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "min = %g, max = %g: both must be 0 where low and high are set", min,
                              max);
    if (kind == 1 && (max < 0 || (min != 0 && min != -max)))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "min = %g, max = %g: of values around 0, max must not be below 0, "
                              "and min must be 0 or -max",
                              min, max);
    if (max != 0 && !(min < max))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "min = %g, max = %g: min must be below max",
                              min, max);
    return QKV_OK;
}

qkv_status qkvi_asked_check(const qkvi_asked *asked, int kind, qkv_error *error) {
    if ((unsigned)asked->palette > QKV_PALETTE_GREYS)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "palette = %d: must be 0 to %d",
                              (int)asked->palette, QKV_PALETTE_GREYS);
    if (kind == 1 && asked->palette != QKV_PALETTE_QKV)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "palette = %d: values around 0 have only 0, whose colours have two "
                              "sides",
                              (int)asked->palette);
    if ((unsigned)asked->figures > QKV_FIGURES_OFF)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "figures = %d: must be 0 to %d",
                              (int)asked->figures, QKV_FIGURES_OFF);
    if (asked->size != 0 && (asked->size < QKVI_LEAST_SIZE || asked->size > QKVI_MOST_SIZE))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "size = %lld: must be 0, or %d to %d",
                              (long long)asked->size, QKVI_LEAST_SIZE, QKVI_MOST_SIZE);
    return check_ends(asked, kind, error);
}

/* How many decimals a number needs, at most `most`. */
static int decimals_of(double value, int most) {
    double power = 1;
    for (int decimals = 0; decimals < most; decimals++, power *= 10)
        if (fabs(value * power - round(value * power)) < 1e-6) return decimals;
    return most;
}

/*
 * Ticks at equal steps from end to end, by as few decimals as possible; 0 is one if it is between.
 */
static void place_ticks(qkvi_scale *scale) {
    enum { MOST_DECIMALS = 6 };
    static const int steps[] = { 5, 4, 6, 3, 7, 8, 2, 1 };
    int fewest = MOST_DECIMALS + 1;
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        const int n = scale->is_signed ? 2 * steps[s] : steps[s];
        int decimals = 0;
        for (int i = 0; i <= n; i++) {
            const double at = scale->low + (scale->top - scale->low) * i / n;
            const int needed = decimals_of(at, MOST_DECIMALS);
            if (needed > decimals) decimals = needed;
        }
        if (decimals >= fewest || n > 10) continue;
        fewest = decimals;
        scale->n_steps = n;
        scale->decimals = decimals;
    }
}

qkv_status qkvi_asked_scale(const qkvi_asked *asked, qkvi_scale *scale, qkv_error *error) {
    scale->palette = (int)asked->palette;
    if (asked->min == 0 && asked->max == 0) return QKV_OK;
    scale->given = 1;
    if (asked->max != 0) scale->top = asked->max;
    scale->low = scale->is_signed ? -scale->top : asked->min;
    if (!(scale->low < scale->top))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "min = %g: must be below the end of the scale, which is %g",
                              asked->min, scale->top);
    place_ticks(scale);
    return QKV_OK;
}

qkv_status qkvi_asked_room(const qkvi_asked *asked, int64_t n, int cell, int64_t fold,
                           qkv_error *error) {
    if (asked->figures != QKV_FIGURES_ON || (fold == 1 && cell >= QKVI_FIGURE_CELL)) return QKV_OK;
    if (n * QKVI_FIGURE_CELL > QKVI_MOST_SIZE)
        return qkvi_error_set(error, QKV_ERR_LIMIT,
                              "figures: %lld cells a side have no room for them, at most %d have",
                              (long long)n, QKVI_MOST_SIZE / QKVI_FIGURE_CELL);
    return qkvi_error_set(error, QKV_ERR_LIMIT,
                          "figures: %lld cells a side need a size of at least %lld pixels for them",
                          (long long)n, (long long)(n * QKVI_FIGURE_CELL));
}
