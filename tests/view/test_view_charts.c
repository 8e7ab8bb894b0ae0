/**
 * Charts: round ticks, colours that colour-blind readers can tell apart, heights of bars, gaps, the
 * table, captions, refusals; and the profile of a head against its definition.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lost_by_others.h"
#include "picture_files.h"
#include "view/series.h"

#define FOLDER QKV_TEST_BUILD "/charts"
#define PNG_A  FOLDER "/a.png"
#define PNG_B  FOLDER "/b.png"
#define SVG    FOLDER "/a.svg"
#define CSV    FOLDER "/a.csv"

const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return LOST_BY_OTHERS; }

static qkv_error error;

static int make_folder(void **state) {
    (void)state;
    mkdir(FOLDER, 0777);
    return 0;
}

static void must(qkv_status status) {
    if (status != QKV_OK) fail_msg("%s", error.message);
}

static void lacks_words(const char *path, const char *words) {
    size_t n;
    char *const bytes = load(path, &n);
    assert_lacks(bytes, n, words);
    free(bytes);
}

/* ---- Axes ------------------------------------------------------------------------------------ */

static void ticks_are(const qkvi_axis *axis, int n, const double *values) {
    if (axis->n_ticks != n) fail_msg("%d ticks, not %d", axis->n_ticks, n);
    for (int i = 0; i < n; i++)
        if (!(fabs(axis->ticks[i].value - values[i]) <= 1e-12 * fabs(values[i])))
            fail_msg("tick %d is at %g, not %g", i, axis->ticks[i].value, values[i]);
}

static void number_is(const qkvi_axis *axis, double value, const char *wanted) {
    char number[48];
    qkvi_axis_number(axis, value, number, sizeof number);
    assert_string_equal(number, wanted);
}

static void axes(void **state) {
    (void)state;
    const qkvi_axis linear = qkvi_axis_linear((qkvi_axis_range){ 0.03, 1.13 }, 6);
    ticks_are(&linear, 7, (double[]){ 0, 0.2, 0.4, 0.6, 0.8, 1, 1.2 });
    number_is(&linear, 0.2, "0.2");
    const qkvi_axis exact = qkvi_axis_exact(-0.5, 2.5, 1, 8);
    ticks_are(&exact, 3, (double[]){ 0, 1, 2 });
    assert_true(qkvi_axis_place(&exact, -0.5) == 0 && qkvi_axis_place(&exact, 2.5) == 1);
    const qkvi_axis few = qkvi_axis_log((qkvi_axis_range){ 0.03, 0.8 });
    ticks_are(&few, 7, (double[]){ 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1 });
    number_is(&few, 0.05, "0.05");
    const qkvi_axis many = qkvi_axis_log((qkvi_axis_range){ 3e-9, 5e4 });
    assert_true(many.n_ticks == 15 && many.low == 1e-9 && fabs(many.high - 1e5) < 1e-6);
    assert_true(many.ticks[0].labelled && !many.ticks[1].labelled && many.ticks[2].labelled);
    number_is(&many, 1e-9, "10⁻⁹");
    number_is(&many, 1e5, "100000");
    number_is(&many, 2e-7, "2·10⁻⁷");
    number_is(&many, 1e12, "10¹²");
    assert_true(isnan(qkvi_axis_place(&many, 0)) && isnan(qkvi_axis_place(&many, -1)));
    assert_true(fabs(qkvi_axis_place(&few, 0.1) - 0.5) < 1e-12);
    /* no values, one value, values of every size */
    static const double sizes[] = { 0, 1e-300, 1e-9, 1, 7e13, -4 };
    for (int i = 0; i < 6; i++) {
        qkvi_axis_range range = QKVI_RANGE_NONE;
        qkvi_range_add(&range, NAN);
        qkvi_range_add(&range, 1e300);
        assert_true(range.low > range.high);
        if (i > 0) qkvi_range_add(&range, sizes[i]);
        const qkvi_axis one = qkvi_axis_linear(range, 6), log = qkvi_axis_log(range);
        assert_true(one.n_ticks >= 2 && one.low < one.high && log.low < log.high);
        if (i > 0) assert_true(one.low <= sizes[i] && sizes[i] <= one.high);
        if (sizes[i] > 0)
            assert_true(log.low <= 1.000001 * sizes[i] && sizes[i] <= 1.000001 * log.high);
    }
}

/* ---- Colours --------------------------------------------------------------------------------- */

static double linear(uint8_t channel) {
    const double c = channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

/*
 * CIE Lab (D65) of a colour as seen with all three cones, or without one of them (Machado et al.
 * 2009).
 */
static void lab_of(qkvi_rgb color, int without, double lab[3]) {
    static const double seen[4][9] = {
        { 1, 0, 0, 0, 1, 0, 0, 0, 1 },
        { 0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116,
          1.051998 },
        { 0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940,
          0.968881 },
        { 1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367,
          0.303900 },
    };
    static const double to_xyz[9] = { 0.4124, 0.3576, 0.1805, 0.2126, 0.7152,
                                      0.0722, 0.0193, 0.1192, 0.9505 };
    static const double white[3] = { 0.9505, 1, 1.089 };
    const double rgb[3] = { linear(color.r), linear(color.g), linear(color.b) };
    double f[3];
    for (int c = 0; c < 3; c++) {
        double xyz = 0;
        for (int l = 0; l < 3; l++) {
            double light = 0;
            for (int k = 0; k < 3; k++) light += seen[without][3 * l + k] * rgb[k];
            xyz += to_xyz[3 * c + l] * fmin(fmax(light, 0), 1);
        }
        const double t = xyz / white[c];
        f[c] = t > 216.0 / 24389 ? pow(t, 1.0 / 3) : (24389.0 / 27 * t + 16) / 116;
    }
    lab[0] = 116 * f[1] - 16;
    lab[1] = 500 * (f[0] - f[1]);
    lab[2] = 200 * (f[1] - f[2]);
}

static void colors(void **state) {
    (void)state;
    double nearest = INFINITY, palest = INFINITY;
    for (int theme = 0; theme < 2; theme++) {
        const double page = qkvi_luminance(qkvi_palette_of((qkv_theme)theme)->page) + 0.05;
        for (int a = 0; a < QKVI_MAX_SERIES; a++) {
            const qkvi_rgb color = qkvi_series_color(a, (qkv_theme)theme);
            const double own = qkvi_luminance(color) + 0.05;
            palest = fmin(palest, fmax(own / page, page / own));
            for (int b = 0; b < a; b++) {
                for (int without = 0; without < 4; without++) {
                    double p[3], q[3];
                    lab_of(color, without, p);
                    lab_of(qkvi_series_color(b, (qkv_theme)theme), without, q);
                    nearest = fmin(nearest, sqrt((p[0] - q[0]) * (p[0] - q[0]) +
                                                 (p[1] - q[1]) * (p[1] - q[1]) +
                                                 (p[2] - q[2]) * (p[2] - q[2])));
                }
            }
        }
    }
    print_message("contrast at least %.2f, colours at least %.1f apart\n", palest, nearest);
    assert_true(palest >= 3 && nearest >= 29);
}

/* ---- Pictures -------------------------------------------------------------------------------- */

static const char *const tokens[] = { "[CLS]", "a \"b\"", NULL, "d,e" };

static qkv_chart chart_of(int64_t n, const qkv_panel *panels, int64_t n_panels) {
    return (qkv_chart){ .struct_size = sizeof(qkv_chart),
                        .n = n,
                        .x_label = "position",
                        .n_panels = n_panels,
                        .panels = panels,
                        .panel_bytes = sizeof(qkv_panel),
                        .series_bytes = sizeof(qkv_series),
                        .title = "Title",
                        .caption = "Caption" };
}

/* What bars are filled with: nine tenths of their colour, one of the page. */
static void filling(double color[3]) {
    const qkvi_rgb own = qkvi_series_color(0, QKV_THEME_LIGHT);
    color[0] = 0.9 * own.r + 25.5, color[1] = 0.9 * own.g + 25.5, color[2] = 0.9 * own.b + 25.5;
}

static void bars_are_as_high_as_their_numbers(void **state) {
    (void)state;
    double y[4] = { 4, 4, 4, 4 }, color[3];
    const qkv_series series = { "bars", y, QKV_SERIES_BARS };
    const qkv_panel panel = { "y", 0, 0, 1, &series };
    const qkv_chart chart = chart_of(4, &panel, 1);
    filling(color);
    must(qkv_picture_chart_write(&chart, PNG_A, &error));
    const double whole = (double)count_pixels(PNG_A, color, 2);
    y[1] = 1;
    y[2] = 2;
    must(qkv_picture_chart_write(&chart, PNG_A, &error));
    const double part = (double)count_pixels(PNG_A, color, 2) / whole;
    if (!(fabs(part - 11.0 / 16) < 0.01)) fail_msg("%.4f of the pixels, not %.4f", part, 11.0 / 16);
    y[0] = NAN;
    y[3] = -INFINITY; /* two gaps, and then the axis ends at 2 */
    must(qkv_picture_chart_write(&chart, PNG_A, &error));
    const double left = (double)count_pixels(PNG_A, color, 2) / whole;
    if (!(fabs(left - 1.5 / 4) < 0.01)) fail_msg("%.4f of the pixels, not %.4f", left, 1.5 / 4);
}

static void gaps(void **state) {
    (void)state;
    double y[200], color[3];
    const qkv_series series = { NULL, y, QKV_SERIES_LINE };
    const qkv_panel panel = { "y", 0, 1, 1, &series };
    const qkv_chart chart = chart_of(200, &panel, 1);
    const qkvi_rgb own = qkvi_series_color(0, QKV_THEME_LIGHT);
    color[0] = own.r, color[1] = own.g, color[2] = own.b;
    for (int i = 0; i < 200; i++) y[i] = 1;
    must(qkv_picture_chart_write(&chart, PNG_A, &error));
    const double whole = (double)count_pixels(PNG_A, color, 2);
    for (int i = 50; i < 150; i++) y[i] = i % 2 ? NAN : 1e300;
    must(qkv_picture_chart_write(&chart, PNG_A, &error));
    const double part = (double)count_pixels(PNG_A, color, 2) / whole;
    if (!(fabs(part - 0.5) < 0.02)) fail_msg("%.4f of the pixels", part);
}

/*
 * Points that share pixels: their mean is a line, and a band reaches from the smallest to the
 * largest.
 */
static void dense_lines(void **state) {
    (void)state;
    static double y[7680];
    double own[3], band[3], first[3];
    const qkv_series series = { NULL, y, QKV_SERIES_LINE };
    const qkv_panel panel = { "y", 0, 1, 1, &series };
    const qkv_chart chart = chart_of(7680, &panel, 1);
    const qkvi_rgb color = qkvi_series_color(0, QKV_THEME_LIGHT);
    own[0] = color.r, own[1] = color.g, own[2] = color.b;
    for (int c = 0; c < 3; c++) band[c] = 0.3 * own[c] + 0.7 * 255;
    for (int part = 1; part <= 3;
         part++) { /* of a field of 1280 x 560, from 0 to 1: bands of 0.2 ... 0.6 */
        for (int i = 0; i < 7680; i++) y[i] = i % 2 ? 1 : 1 - 0.2 * part;
        must(qkv_picture_chart_write(&chart, PNG_A, &error));
        first[part - 1] = (double)count_pixels(PNG_A, band, 2);
        const double line = (double)count_pixels(PNG_A, own, 2);
        if (!(line > 1280 && line < 4 * 1280)) fail_msg("%.0f pixels of a line of 2.5", line);
    }
    for (int part = 1; part < 3; part++) {
        const double more = (first[part] - first[part - 1]) / (1280 * 560);
        if (!(fabs(more - 0.2) < 0.02)) fail_msg("a band higher by %.4f, not 0.2", more);
    }
    must(qkv_picture_chart_write(&chart, SVG, &error));
    assert_words(SVG, "Points share pixels: a line is their mean");
    for (int i = 0; i < 7680; i++) y[i] = i < 3840 ? (double)NAN : (double)(i % 2);
    must(qkv_picture_chart_write(&chart, PNG_A, &error));
    const double half = (double)count_pixels(PNG_A, band, 2) / (1280 * 560);
    if (!(fabs(half - 0.5) < 0.03)) fail_msg("a band of %.4f of the field, not of half", half);
}

/* Every style, panel count, length and theme draws, the same bytes each time. */
static void all_kinds(void **state) {
    (void)state;
    static const int64_t lengths[] = { 1, 2, 4, 70, 5000 };
    static double y[4][5000];
    for (int s = 0; s < 4; s++)
        for (int i = 0; i < 5000; i++)
            y[s][i] = i % 11 == 5 ? NAN : sin(i * 0.01 * (s + 1)) + 0.5 * s;
    for (int round = 0; round < 60; round++) {
        const int64_t n = lengths[round % 5], n_panels = 1 + round % 4,
                      n_series = 1 + round / 5 % 4;
        qkv_series series[4];
        qkv_panel panels[4];
        for (int s = 0; s < 4; s++)
            series[s] =
                (qkv_series){ s % 2 ? "name" : NULL, y[s], (qkv_series_style)((round + s) % 3) };
        for (int p = 0; p < 4; p++)
            panels[p] =
                (qkv_panel){ p ? "y" : NULL, (round + p) % 2, round % 3 == 0, n_series, series };
        qkv_chart chart = chart_of(n, panels, n_panels);
        chart.theme = (qkv_theme)(round % 2);
        chart.log_x = round % 7 == 3;
        if (n == 4) chart.labels = tokens;
        if (n == 70 && round % 4 == 0) chart.x = y[3] + 300; /* falls somewhere: refused */
        if (chart.x) {
            assert_int_equal(qkv_picture_chart_write(&chart, PNG_A, &error), QKV_ERR_ARGUMENT);
            continue;
        }
        must(qkv_picture_chart_write(&chart, PNG_A, &error));
        if (round > 20) continue;
        must(qkv_picture_chart_write(&chart, PNG_B, &error));
        size_t n_a, n_b;
        char *const a = load(PNG_A, &n_a), *const b = load(PNG_B, &n_b);
        assert_int_equal(n_a, n_b);
        assert_memory_equal(a, b, n_a);
        free(a);
        free(b);
    }
}

static void words(void **state) {
    (void)state;
    const double y[4] = { 0, 1e-3, -2, 5 };
    const qkv_series series[2] = { { "first", y, QKV_SERIES_LINE },
                                   { "second", y, QKV_SERIES_AREA } };
    const qkv_panel panel = { "log of it", 1, 0, 2, series };
    qkv_chart chart = chart_of(4, &panel, 1);
    chart.labels = tokens;
    must(qkv_picture_chart_write(&chart, SVG, &error));
    static const char *const said[] = {
        "<title>Title</title>", ">log of it</text>",
        ">first</text>",        ">second</text>",
        ">position</text>",     ">[CLS]</text>",
        ">d,e</text>",          "4 values that are not above 0 have no place"
    };
    for (int i = 0; i < 8; i++) assert_words(SVG, said[i]);
}

static void table(void **state) {
    (void)state;
    const double y[4] = { 0.1, NAN, -2e-20, 1.0 / 3 }, z[4] = { 1, 2, 3, 4 };
    const qkv_series first = { "a, b", y, QKV_SERIES_LINE }, second = { NULL, z, QKV_SERIES_BARS };
    const qkv_panel panels[2] = { { "p", 0, 0, 1, &first }, { "panel", 0, 0, 1, &second } };
    qkv_chart chart = chart_of(4, panels, 2);
    size_t n;
    chart.labels = tokens;
    must(qkv_picture_chart_write(&chart, CSV, &error));
    char *bytes = load(CSV, &n);
    static const char wanted[] =
        "position,label,\"a, b\",panel\n0,[CLS],0.1,1\n1,\"a \"\"b\"\"\",,2\n"
        "2,,-2e-20,3\n3,\"d,e\",0.333333333,4\n";
    assert_int_equal(n, strlen(wanted));
    assert_memory_equal(bytes, wanted, n);
    free(bytes);
    chart.labels = NULL;
    chart.x = z;
    chart.x_label = NULL;
    must(qkv_picture_chart_write(&chart, CSV, &error));
    bytes = load(CSV, &n);
    static const char begins[] = "x,\"a, b\",panel\n1,0.1,1\n2,,2\n";
    assert_true(n > strlen(begins) && memcmp(bytes, begins, strlen(begins)) == 0);
    free(bytes);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void refused(qkv_status got, qkv_status wanted, const char *reason) {
    if (got != wanted || !strstr(error.message, reason))
        fail_msg("%s: '%s', not '%s'", qkv_status_name(got), error.message, reason);
}

static void refusals(void **state) {
    (void)state;
    const double y[2] = { 1, 2 }, falls[2] = { 2, 1 }, none[2] = { 1, NAN };
    qkv_series series = { "y", y, QKV_SERIES_LINE };
    qkv_panel panel = { "y", 0, 0, 1, &series };
    qkv_chart chart = chart_of(2, &panel, 1);
#define REFUSED(field, value, status, reason)                                                      \
    do {                                                                                           \
        const __typeof__(field) was = field;                                                       \
        field = value;                                                                             \
        refused(qkv_picture_chart_write(&chart, PNG_A, &error), status, reason);                   \
        field = was;                                                                               \
    } while (0)
    REFUSED(chart.n, 0, QKV_ERR_SHAPE, "n = 0 is not in 1 ... 1048576");
    REFUSED(chart.n, (1 << 20) + 1, QKV_ERR_SHAPE, "n = 1048577");
    REFUSED(chart.n_panels, 5, QKV_ERR_SHAPE, "n_panels = 5 is not in 1 ... 4");
    REFUSED(chart.panels, NULL, QKV_ERR_ARGUMENT, "panels is NULL");
    REFUSED(chart.theme, (qkv_theme)2, QKV_ERR_ARGUMENT, "theme = 2");
    REFUSED(chart.x, falls, QKV_ERR_ARGUMENT, "x[1] = 1 is below x[0] = 2");
    REFUSED(chart.x, none, QKV_ERR_ARGUMENT, "x[1] = nan is not within 1e14");
    REFUSED(panel.n_series, 0, QKV_ERR_SHAPE, "panels[0].n_series = 0 is not in 1 ... 4");
    REFUSED(panel.series, NULL, QKV_ERR_ARGUMENT, "panels[0].series is NULL");
    REFUSED(series.y, NULL, QKV_ERR_ARGUMENT, "panels[0].series[0].y is NULL");
    REFUSED(series.style, (qkv_series_style)3, QKV_ERR_ARGUMENT, "style = 3 is not in 0 ... 2");
    REFUSED(chart.panel_bytes, 0, QKV_ERR_ARGUMENT, "panel_bytes = 0 is less than 4");
    REFUSED(chart.series_bytes, SIZE_MAX, QKV_ERR_VERSION, "series_bytes = ");
    REFUSED(chart.struct_size, 4, QKV_ERR_ARGUMENT, "qkv_chart.struct_size = 4");
    chart.labels = tokens;
    REFUSED(chart.x, y, QKV_ERR_ARGUMENT, "labels together with x");
    refused(qkv_picture_chart_write(NULL, PNG_A, &error), QKV_ERR_ARGUMENT, "chart is NULL");
    refused(qkv_picture_chart_write(&chart, NULL, &error), QKV_ERR_ARGUMENT, "path is NULL");
    refused(qkv_picture_chart_write(&chart, FOLDER "/x.gif", &error), QKV_ERR_ARGUMENT, "x.gif");
    refused(qkv_picture_chart_write(&chart, FOLDER "/none/x.csv", &error), QKV_ERR_IO, "x.csv");
    const qkv_series many[4] = { series, series, series, series };
    const qkv_panel panels[2] = { { "y", 0, 0, 4, many }, { "y", 0, 0, 1, many } };
    chart = chart_of(1 << 20, panels, 2);
    refused(qkv_picture_chart_write(&chart, PNG_A, &error), QKV_ERR_LIMIT, "5 series of 1048576");
}

/* ---- A head ---------------------------------------------------------------------------------- */

static void head_charts(void **state) {
    (void)state;
    static const double numbers[8] = { 1, 0.5, 0.25, 0.125, 0, 1, 2, 0.5 };
    qkv_head_profile profile = {
        sizeof profile, 4,    4,      numbers,         numbers,        numbers, numbers,
        tokens,         NULL, "Head", "Model of mine", QKV_THEME_DARK, 0
    };
    must(qkv_picture_queries_write(&profile, SVG, &error));
    assert_words(SVG, "Model of mine");
    assert_words(SVG, "ln 4 = 1.39 for");
    assert_words(SVG, ">[CLS]</text>");
    must(qkv_picture_received_write(&profile, SVG, &error));
    assert_words(SVG, "summed over 4 queries");
    lacks_words(SVG, "early keys");
    profile.causal = 1;
    must(qkv_picture_received_write(&profile, SVG, &error));
    assert_words(SVG, "so early keys are seen by more");
    must(qkv_picture_offsets_write(&profile, SVG, &error));
    assert_words(SVG, "The diagonal profile");
    assert_words(SVG, "1 values that are not above 0");
    must(qkv_picture_offsets_write(&profile, CSV, &error));
    assert_words(CSV, "offset,mean weight\n-3,1\n-2,0.5\n-1,0.25\n0,0.125\n1,0\n2,1\n3,2\n");
    static const double band[8] = { 0, 0, 0.25, 0, 0.5, 0, 0 }, nothing[8] = { 0 };
    profile.by_offset = band; /* zeros at the ends are left out of a picture, and of no table */
    must(qkv_picture_offsets_write(&profile, SVG, &error));
    assert_words(SVG, "Shown from -1 to 1; at all other distances it is 0.");
    assert_words(SVG, "1 values that are not above 0");
    must(qkv_picture_offsets_write(&profile, CSV, &error));
    assert_words(CSV, "\n-3,0\n-2,0\n-1,0.25\n0,0\n1,0.5\n2,0\n3,0\n");
    profile.by_offset = nothing;
    must(qkv_picture_offsets_write(&profile, SVG, &error));
    assert_words(SVG, "7 values that are not above 0");
    profile.caption = NULL;
    must(qkv_picture_received_write(&profile, PNG_A, &error));
    profile.entropy = profile.received = profile.by_offset = NULL;
    refused(qkv_picture_queries_write(&profile, SVG, &error), QKV_ERR_ARGUMENT, "entropy is NULL");
    refused(qkv_picture_received_write(&profile, SVG, &error), QKV_ERR_ARGUMENT,
            "received is NULL");
    refused(qkv_picture_offsets_write(&profile, SVG, &error), QKV_ERR_ARGUMENT,
            "by_offset is NULL");
    refused(qkv_picture_offsets_write(NULL, SVG, &error), QKV_ERR_ARGUMENT, "profile is NULL");
    profile.n_keys = 0;
    refused(qkv_picture_offsets_write(&profile, SVG, &error), QKV_ERR_SHAPE, "n_keys = 0");
}

/*
 * Panels and series as a newer header has them, and series as an older one had them, without a
 * style.
 */
static void elements_of_other_sizes(void **state) {
    (void)state;
    const double y[4] = { 1, 2, 4, 3 };
    struct {
        qkv_series known;
        char more[8];
    } newer[2] = { { { "a", y, QKV_SERIES_LINE }, { 0 } }, { { "b", y, QKV_SERIES_LINE }, { 0 } } };
    struct {
        const char *name;
        const double *y;
    } older[2] = { { "a", y }, { "b", y } };
    qkv_series series[2] = { newer[0].known, newer[1].known };
    struct {
        qkv_panel known;
        char more[24];
    } panels[2] = { { { "p", 0, 0, 2, series }, { 0 } }, { { "q", 0, 0, 2, series }, { 0 } } };
    const qkv_panel plain[2] = { panels[0].known, panels[1].known };
    qkv_chart chart = chart_of(4, plain, 2);
    size_t n, n_expected;
    must(qkv_picture_chart_write(&chart, CSV, &error));
    char *const expected = load(CSV, &n_expected);
    const struct {
        const void *series;
        size_t bytes;
    } cases[] = { { newer, sizeof *newer }, { older, sizeof *older } };
    for (int c = 0; c < 2; c++) {
        for (int p = 0; p < 2; p++) panels[p].known.series = cases[c].series;
        chart.panels = &panels[0].known;
        chart.panel_bytes = sizeof *panels;
        chart.series_bytes = cases[c].bytes;
        must(qkv_picture_chart_write(&chart, CSV, &error));
        char *const got = load(CSV, &n);
        assert_int_equal(n, n_expected);
        assert_memory_equal(got, expected, n);
        free(got);
    }
    panels[1].more[23] = 1;
    refused(qkv_picture_chart_write(&chart, CSV, &error), QKV_ERR_VERSION, "panels[1]: byte");
    free(expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axes),
        cmocka_unit_test(colors),
        cmocka_unit_test(bars_are_as_high_as_their_numbers),
        cmocka_unit_test(gaps),
        cmocka_unit_test(dense_lines),
        cmocka_unit_test(all_kinds),
        cmocka_unit_test(words),
        cmocka_unit_test(table),
        cmocka_unit_test(refusals),
        cmocka_unit_test(elements_of_other_sizes),
        cmocka_unit_test(head_charts),
    };
    return cmocka_run_group_tests(tests, make_folder, NULL);
}
