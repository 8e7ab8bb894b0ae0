/* The result of `qkv embed`: which texts are near each other, or the vectors. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "embed/embed.h"

#include "qkv/files.h"

enum { MOST_ROWS = 20 }; /* of the table without --similar */

/* ---- Nearness -------------------------------------------------------------------------------- */

/* Of two texts' vectors; NaN if one is 0. */
static double cosine_of(const struct embed *e, int64_t a, int64_t b) {
    return rows_product(e->vectors + a * e->dim, e->vectors + b * e->dim, e->dim) /
           (e->lengths[a] * e->lengths[b]);
}

/* Texts without that of --similar. */
static int64_t n_ranked(const struct embed *e) { return e->n - (e->options->similar != NULL); }

/* The texts nearest to text a, without a, best first. Returns their number, <= most. */
static int64_t find_nearest(const struct embed *e, int64_t a, int64_t most, int64_t *nearest) {
    double best[1000];
    int64_t n = 0;
    for (int64_t b = 0; b < n_ranked(e); b++) {
        if (b == a) continue;
        const double cosine = cosine_of(e, a, b);
        int64_t place = n;
        while (place > 0 && (cosine > best[place - 1] || isnan(best[place - 1]))) place--;
        if (place >= most) continue;
        if (n < most) n++;
        memmove(best + place + 1, best + place, (size_t)(n - 1 - place) * sizeof *best);
        memmove(nearest + place + 1, nearest + place, (size_t)(n - 1 - place) * sizeof *nearest);
        best[place] = cosine;
        nearest[place] = b;
    }
    return n;
}

static int64_t n_shown(const struct embed *e) {
    const int64_t top = e->options->top.set ? e->options->top.value : 10;
    return top < n_ranked(e) ? top : n_ranked(e);
}

/* ---- Terminal -------------------------------------------------------------------------------- */

static void put_similar(struct report *report, const struct embed *e) {
    int64_t nearest[1000];
    const int64_t n = find_nearest(e, e->n - 1, n_shown(e), nearest);
    report_table(report, "ntb", "cosine", "text", "");
    for (int64_t i = 0; i < n; i++) {
        const double cosine = cosine_of(e, e->n - 1, nearest[i]);
        report_row(report, i == 0);
        report_cell(report, "%.3f", cosine);
        report_word(report, e->texts[nearest[i]].bytes, e->texts[nearest[i]].n);
        report_bar(report, cosine > 0 ? cosine : 0);
    }
}

static void put_all(struct report *report, const struct embed *e) {
    report_table(report, "tnt", "text", "cosine", "nearest other text");
    for (int64_t a = 0; a < e->n && a < MOST_ROWS; a++) {
        int64_t nearest = -1;
        report_row(report, false);
        report_word(report, e->texts[a].bytes, e->texts[a].n);
        if (find_nearest(e, a, 1, &nearest) == 0) continue;
        report_cell(report, "%.3f", cosine_of(e, a, nearest));
        report_word(report, e->texts[nearest].bytes, e->texts[nearest].n);
    }
    if (e->n > MOST_ROWS)
        report_note(report, "and %" PRId64 " more: -o FILE.npy writes all vectors",
                    e->n - MOST_ROWS);
}

static const char *pooling_name(const struct embed *e) {
    static const char *const names[] = {
        "",
        "mean of the last hidden states",
        "last hidden state of the first token",
        "largest of the last hidden states, channel by channel",
        "sum of the last hidden states by the root of their number",
        "mean of the last hidden states, weighted by position",
        "last hidden state of the last token"
    };
    return names[e->pooling];
}

/* Other poolings beside that one, or layers behind it. */
static bool has_more(const struct embed *e) {
    const qkv_model_info *const info = e->session->info;
    return !e->options->pooling.set &&
           (info->sentence_layers > 0 || info->sentence_dim != info->pooled_dim);
}

qkv_status embed_print(const struct embed *e, qkv_error *error) {
    struct term term;
    struct report report;
    term_init(&term, stdout, &e->options->common);
    report_begin(&report, 0, false);
    if (e->options->image) {
        report_note(&report,
                    "The image is a vector of %" PRId64
                    " numbers, which -o and --json have; model %s.",
                    e->dim, e->session->info->source);
        return report_end(&report, &term, error);
    }
    if (e->options->similar) {
        report_heading_word(&report, "Nearest to ", e->texts[e->n - 1].bytes, e->texts[e->n - 1].n);
        put_similar(&report, e);
    } else {
        report_heading(&report, "%" PRId64 " text%s", e->n, e->n == 1 ? "" : "s");
        put_all(&report, e);
    }
    report_text(&report, "%s", "");
    report_note(&report, "A text is a vector of %" PRId64 " numbers: the %s%s; model %s.", e->dim,
                pooling_name(e), has_more(e) ? ", and what modules.json makes of them" : "",
                e->session->info->source);
    return report_end(&report, &term, error);
}

/* ---- JSON and files -------------------------------------------------------------------------- */

static json_t *text_json(const struct text *text) { return json_bytes(text->bytes, text->n); }

static json_t *similar_json(const struct embed *e) {
    int64_t nearest[1000];
    const int64_t n = find_nearest(e, e->n - 1, n_shown(e), nearest);
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(list, json_set(NULL, "index:i text:o cosine:n", nearest[i],
                                             text_json(&e->texts[nearest[i]]),
                                             cosine_of(e, e->n - 1, nearest[i])));
    return json_set(NULL, "query:o similar:o", text_json(&e->texts[e->n - 1]), list);
}

json_t *embed_json(const struct embed *e) {
    if (e->options->similar) return similar_json(e);
    json_t *vectors = json_array();
    for (int64_t i = 0; i < e->n; i++)
        json_array_append_new(vectors, json_set(NULL, "text:o vector:o", text_json(&e->texts[i]),
                                                json_floats(e->dim, e->vectors + i * e->dim)));
    return json_set(NULL, "dim:i vectors:o", e->dim, vectors);
}

qkv_status embed_write(const struct embed *e, qkv_error *error) {
    const char *path = e->options->out;
    if (text_ends(path, ".json")) return json_write_file(path, embed_json(e), error);
    const qkv_array array = { .type = QKV_ARRAY_F32,
                              .rank = 2,
                              .shape = { e->n, e->dim },
                              .n_elems = e->n * e->dim,
                              .data = e->vectors };
    return qkv_array_write(path, &array, error);
}
