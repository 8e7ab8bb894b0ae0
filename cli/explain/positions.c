/*
 * `qkv explain --positions`: sinusoidal positions as a heat map, and why they were chosen: the dot
 * product of two of them depends only on their distance.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "explain/explain.h"
#include <qkv/picture.h>

struct sinusoids {
    int64_t length, dim;
    float *table; /* [length][dim] */
};

static qkv_status make(const struct explain_options *options, struct sinusoids *sinusoids,
                       qkv_error *error) {
    *sinusoids = (struct sinusoids){
        .length = options->length.set ? options->length.value : 48,
        .dim = options->dim.set ? options->dim.value : 64,
    };
    const size_t n = (size_t)(sinusoids->length * sinusoids->dim);
    sinusoids->table = malloc(n * sizeof(*sinusoids->table));
    if (!sinusoids->table) return text_no_memory(error);
    return qkv_sinusoids(sinusoids->length, sinusoids->dim, sinusoids->table, error);
}

/* Sines to the left, cosines to the right. */
static int64_t column_of(int64_t channel, int64_t n_sines) {
    return channel / 2 + channel % 2 * n_sines;
}

/* Of the first pairs that fit; from -1 … 1 to 0 … 1. */
static void draw(struct report *report, const struct sinusoids *s, int width) {
    enum { BESIDE = 10 };
    const int64_t room = width > 2 * BESIDE ? width - BESIDE : BESIDE;
    const int64_t shown = s->dim < room ? s->dim : room - room % 2, sines = (shown + 1) / 2;
    float *cells = malloc((size_t)(s->length * shown) * sizeof(*cells));
    report->failed |= !cells;
    if (!cells) return;
    for (int64_t p = 0; p < s->length; p++)
        for (int64_t c = 0; c < shown; c++)
            cells[p * shown + column_of(c, sines)] = (s->table[p * s->dim + c] + 1) / 2;
    report_map(report, (int)s->length, (int)shown, cells);
    free(cells);
    report_note(report,
                "Down: positions 0 to %" PRId64
                ". Across: the sines of channels 0, 2, 4 …, then the "
                "cosines of channels 1, 3, 5 …, up to channel %" PRId64 " of %" PRId64
                ". Colours run from −1 to 1.",
                s->length - 1, shown - 1, s->dim);
}

static void numbers(struct report *report, const struct sinusoids *s) {
    report_vectors(report, s->dim);
    double *row = malloc((size_t)s->dim * sizeof(*row));
    report->failed |= !row;
    for (int64_t p = 0; row && p < s->length && p < 4; p++) {
        for (int64_t c = 0; c < s->dim; c++) row[c] = (double)s->table[p * s->dim + c];
        report_vector(report, s->dim, row, false, "position %" PRId64, p);
    }
    free(row);
}

static double cosine(const struct sinusoids *s, int64_t a, int64_t b) {
    double product = 0, square_a = 0, square_b = 0;
    for (int64_t c = 0; c < s->dim; c++) {
        const double x = (double)s->table[a * s->dim + c], y = (double)s->table[b * s->dim + c];
        product += x * y;
        square_a += x * x;
        square_b += y * y;
    }
    return product / sqrt(square_a * square_b);
}

static void distances(struct report *report, const struct sinusoids *s) {
    const int64_t later = s->length / 2;
    char from_later[48];
    snprintf(from_later, sizeof from_later, "from %" PRId64, later);
    report_step(report, "What two positions have in common", "cos(p, p + k)", NULL);
    report_table(report, "nnnb", "k", "from 0", from_later, "");
    for (int64_t k = 0; later + k < s->length; k = k < 4 ? k + 1 : k * 2) {
        const double here = cosine(s, 0, k);
        report_row(report, false);
        report_cell(report, "%" PRId64, k);
        report_number(report, here);
        report_number(report, cosine(s, later, later + k));
        report_bar(report, here);
    }
    report_text(
        report, "%s",
        s->dim % 2
            ? "With an odd number of channels the last sine has no cosine, so the two differ."
            : "The same from wherever one looks: sin a sin b + cos a cos b = cos(a − b), so only "
              "the distance counts.");
}

static void tell(struct report *report, const struct sinusoids *s, int width) {
    report_title(report, "Sinusoidal positions");
    report_subtitle(report,
                    "Attention does not know where a token stands, so every place has a vector "
                    "that is added to the token's (qkv explain --shuffle).");
    report_step(report, "A clock for every pair of channels",
                "x[p][2i] = sin(p / 10000^(2i/d))   x[p][2i+1] = cos(p / 10000^(2i/d))", NULL);
    draw(report, s, width);
    numbers(report, s);
    report_text(report,
                "The first channels turn once in 2π positions, the last ones once in nearly "
                "10000 · 2π: a fast hand and slow ones.");
    distances(report, s);
}

qkv_status explain_positions(struct report *report, const struct explain *e, qkv_error *error) {
    struct sinusoids s;
    const qkv_status status = make(e->options, &s, error);
    if (status == QKV_OK) tell(report, &s, e->width);
    free(s.table);
    return status;
}

/* ---- As a picture ---------------------------------------------------------------------------- */

static qkv_status draw_picture(const struct explain *e, const struct sinusoids *s, float *cells,
                               char (*names)[32], const char **labels, qkv_error *error) {
    const int64_t sines = (s->dim + 1) / 2;
    for (int64_t p = 0; p < s->length; p++) {
        for (int64_t c = 0; c < s->dim; c++)
            cells[p * s->dim + column_of(c, sines)] = s->table[p * s->dim + c];
        snprintf(names[p], sizeof names[p], "%" PRId64, p);
        labels[p] = names[p];
    }
    for (int64_t c = 0; c < s->dim; c++) {
        const int64_t at = s->length + column_of(c, sines);
        snprintf(names[at], sizeof names[at], "%s %" PRId64, c % 2 ? "cos" : "sin", c);
        labels[at] = c / 2 % 4 ? NULL : names[at]; /* every eighth channel is named */
    }
    char caption[400];
    snprintf(
        caption, sizeof caption,
        "x[p][2i] = sin(p / 10000^(2i/d)), x[p][2i+1] = cos(p / 10000^(2i/d)), positions p = 0 "
        "to %" PRId64 ", d = %" PRId64
        " channels: on the left the sines of channels 0, 2, 4 …, on the right the cosines of "
        "channels 1, 3, 5 …",
        s->length - 1, s->dim);
    const qkv_heatmap map = { .struct_size = sizeof map,
                              .n_rows = s->length,
                              .n_cols = s->dim,
                              .weights = cells,
                              .row_labels = labels,
                              .col_labels = labels + s->length,
                              .title = "Sinusoidal positions",
                              .caption = caption,
                              .theme = (qkv_theme)e->options->common.theme.value,
                              .low = -1,
                              .high = 1,
                              .row_axis = "position",
                              .col_axis = "channel" };
    return qkv_picture_heatmap_write(&map, e->options->out, error);
}

qkv_status explain_positions_picture(const struct explain *e, qkv_error *error) {
    struct sinusoids s;
    qkv_status status = make(e->options, &s, error);
    const size_t n = (size_t)(s.length + s.dim);
    float *cells = malloc((size_t)(s.length * s.dim) * sizeof(*cells));
    char(*names)[32] = malloc(n * sizeof(*names));
    const char **labels = malloc(n * sizeof(*labels));
    if (status == QKV_OK)
        status = cells && names && labels ? draw_picture(e, &s, cells, names, labels, error)
                                          : text_no_memory(error);
    free(s.table);
    free(cells);
    free(names);
    free(labels);
    return status;
}
