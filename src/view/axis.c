/**
 * Axes. Ticks of a linear axis are multiples of 1, 2 or 5 times a power of ten, whichever gives
 * about the requested number (Heckbert 1990, "Nice numbers for graph labels").
 */
#include "view/axis.h"

#include <math.h>

#include "view/type.h"

static const double largest = 1e14; /* that is drawn */

void qkvi_range_add(qkvi_axis_range *range, double a) {
    if (!(fabs(a) <= largest)) return;
    range->low = fmin(range->low, a);
    range->high = fmax(range->high, a);
}

static double nice_step(double range, int n_ticks) {
    const double rough = range / n_ticks, power = pow(10, floor(log10(rough)));
    const double part = rough / power;
    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

/* Multiples of step from low to high. */
static void add_ticks(qkvi_axis *axis, double step) {
    axis->decimals = (int)fmin(9, fmax(0, -floor(log10(step) + 1e-9)));
    const double first = ceil(axis->low / step - 1e-9);
    const int64_t n = (int64_t)floor(axis->high / step - first + 1e-9) + 1;
    for (int64_t i = 0; i < n && i < QKVI_AXIS_MAX_TICKS; i++)
        axis->ticks[axis->n_ticks++] = (qkvi_tick){ (first + (double)i) * step, 1 };
}

qkvi_axis qkvi_axis_linear(qkvi_axis_range range, int n_ticks) {
    if (range.low > range.high) range = (qkvi_axis_range){ 0, 1 };
    if (range.high - range.low < 1e-9 * fmax(fabs(range.high), 1e-3)) {
        const double margin = range.high != 0 ? fabs(range.high) * 0.1 : 1;
        range.low -= margin;
        range.high += margin;
    }
    const double step = nice_step(range.high - range.low, n_ticks);
    qkvi_axis axis = { .low = floor(range.low / step + 1e-9) * step,
                       .high = ceil(range.high / step - 1e-9) * step };
    add_ticks(&axis, step);
    return axis;
}

qkvi_axis qkvi_axis_exact(double low, double high, double least_step, int n_ticks) {
    qkvi_axis axis = { .low = low, .high = high };
    add_ticks(&axis, fmax(least_step, nice_step(high - low, n_ticks)));
    return axis;
}

qkvi_axis qkvi_axis_log(qkvi_axis_range range) {
    if (!(range.low > 0) || range.low > range.high) range = (qkvi_axis_range){ 0.1, 1 };
    const int from = (int)floor(log10(range.low) + 1e-9);
    int to = (int)ceil(log10(range.high) - 1e-9);
    if (to <= from) to = from + 1;
    qkvi_axis axis = { .log = 1, .low = pow(10, from), .high = pow(10, to) };
    const int few = to - from <= 2, every = to - from <= 8 ? 1 : (to - from + 7) / 8;
    for (int power = from; power <= to; power++) {
        for (int digit = 1; digit <= 5; digit += digit == 1 ? 1 : 3) { /* 1, 2, 5 */
            if ((digit > 1 && (!few || power == to)) || axis.n_ticks == QKVI_AXIS_MAX_TICKS) break;
            axis.ticks[axis.n_ticks++] =
                (qkvi_tick){ digit * pow(10, power), (power - from) % every == 0 };
        }
    }
    return axis;
}

double qkvi_axis_place(const qkvi_axis *axis, double value) {
    if (!axis->log) return (value - axis->low) / (axis->high - axis->low);
    if (!(value > 0)) return NAN;
    return log10(value / axis->low) / log10(axis->high / axis->low);
}

/* Powers of ten that are far from 1 are written as such. */
void qkvi_axis_number(const qkvi_axis *axis, double value, char *text, size_t text_bytes) {
    if (!axis->log) {
        qkvi_number(text, text_bytes, value, axis->decimals);
        return;
    }
    const int power = (int)floor(log10(value) + 1e-9);
    if (power >= -4 && power <= 5) {
        qkvi_number(text, text_bytes, value, power < 0 ? -power : 0);
        return;
    }
    static const char *const digits[] = { "⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹" };
    const int times = (int)lround(value / pow(10, power)), size = power < 0 ? -power : power;
    char number[16] = "", exponent[16];
    if (times != 1) snprintf(number, sizeof number, "%d·", times);
    snprintf(exponent, sizeof exponent, "%s%s", size >= 10 ? digits[size / 10 % 10] : "",
             digits[size % 10]);
    snprintf(text, text_bytes, "%s10%s%s", number, power < 0 ? "⁻" : "", exponent);
}
