/*
 * The table of heads on a terminal: numbers from 0 to 1 have a background colour, and columns that
 * do not fit are left out. In a file or a pipe it has all columns and no colour.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "heads/heads.h"

enum { NAME_WIDTH = 6, NUMBER = 6, SPREAD = 6, SHARE = 6, LEAST_LABEL = 5 };

/* ---- Which columns --------------------------------------------------------------------------- */

static bool is_asked_for(const char *list, int column) {
    for (const char *at = list; *at;) {
        const size_t n = strcspn(at, ",");
        if (head_column_find(at, n) == column) return true;
        at += n + (at[n] == ',');
    }
    return false;
}

static bool exists(const struct heads *heads, const qkv_head_number *column) {
    return heads_write(heads, column) && heads_have(heads->which, column);
}

static bool is_sorted_by(const struct heads *heads, const qkv_head_number *column) {
    const char *const sort = heads->options->like ? "distance" : heads->options->sort;
    return sort && head_column_at(head_column_find(sort, strlen(sort))) == column;
}

/* First columns that are never left out: those of probes, of --like, and the one of --sort. */
static int rank_of(const struct heads *heads, const struct layout *layout, int c) {
    const qkv_head_number *column = head_column_at(c);
    if (is_sorted_by(heads, column)) return 0;
    return column->rank + (layout->empty[c] ? MAX_COLUMNS : 0);
}

/* "  0.42 ", with a spread "  0.42 ±0.08 ". */
static int cell_width(const struct heads *heads, const qkv_head_number *column) {
    return NUMBER + 1 + (heads_spread(heads, column) ? SPREAD : 0);
}

/* A narrow terminal cuts labels, so that the first column is there: that of --sort. */
static void leave_room(const struct heads *heads, const struct term *term, struct layout *layout) {
    const int least = LEAST_LABEL + (heads->text.input ? 0 : SHARE);
    const qkv_head_number *column;
    int first = -1;
    for (int c = 0; (column = head_column_at(c)); c++)
        if (exists(heads, column) &&
            (first < 0 || rank_of(heads, layout, c) < rank_of(heads, layout, first)))
            first = c;
    if (first < 0) return;
    const int room = term->width - NAME_WIDTH - cell_width(heads, head_column_at(first));
    if (layout->label_width > room) layout->label_width = room > least ? room : least;
}

static void choose_columns(const struct heads *heads, const struct term *term,
                           struct layout *layout) {
    const char *const columns = heads->options->columns;
    const qkv_head_number *column;
    int n_shown = 0;
    if (term->tty && !columns) leave_room(heads, term, layout);
    int room = term->width - NAME_WIDTH - layout->label_width;
    for (int rank = 0; rank < 2 * MAX_COLUMNS; rank++)
        for (int c = 0; (column = head_column_at(c)); c++) {
            if (rank_of(heads, layout, c) != rank || !exists(heads, column)) continue;
            room -= cell_width(heads, column);
            layout->shown[c] =
                columns ? is_asked_for(columns, c) : !term->tty || room >= 0 || n_shown == 0;
            n_shown += layout->shown[c];
            layout->n_hidden += !layout->shown[c] && !columns;
        }
}

static void lay_out(const struct heads *heads, const struct term *term, struct layout *layout) {
    const qkv_head_number *column;
    *layout = (struct layout){ .label_width = 0 };
    for (int64_t i = 0; i < heads->n_rows; i++) {
        const int columns = term_columns(heads->rows[i].label);
        if (columns > layout->label_width) layout->label_width = columns < 5 ? 5 : columns;
        for (int c = 0; (column = head_column_at(c)); c++) {
            const double value = head_number(&heads->rows[i], c);
            if (value > layout->largest[c]) layout->largest[c] = value;
            layout->empty[c] = (i == 0 || layout->empty[c]) && isnan(value);
        }
    }
    layout->label_width += 1 + (heads->text.input ? 0 : SHARE);
    choose_columns(heads, term, layout);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static void format_number(char *text, size_t bytes, const qkv_head_number *column, double value) {
    if (isnan(value))
        snprintf(text, bytes, "-");
    else if (column->kind == QKV_NUMBER_PLACE)
        snprintf(text, bytes, "%.0f", value);
    else
        snprintf(text, bytes, "%.*f", value < 99.995 ? 2 : value < 999.95 ? 1 : 0, value);
}

static void print_cell(struct term *term, const struct heads *heads, const struct layout *layout,
                       const struct head_row *row, int c) {
    const qkv_head_number *column = head_column_at(c);
    const double value = head_number(row, c);
    const double full = column->kind == QKV_NUMBER_SHARE ? 1 : layout->largest[c];
    char text[48], spread[32];
    format_number(text, sizeof text, column, value);
    if (column->kind != QKV_NUMBER_PLACE && !(column->needs & NEEDS_LIKE) && !isnan(value) &&
        full > 0) {
        term_weight_bg(term, value / full);
        term_readable_on(term, value / full);
    }
    term_put(term, text, NUMBER, true);
    if (heads_spread(heads, column)) {
        format_number(spread, sizeof spread, column, row->spread[c]);
        snprintf(text, sizeof text, "%s%s", term->unicode ? "±" : "+-", spread);
        term_put(term, isnan(row->spread[c]) ? "" : text, SPREAD, true);
    }
    fputc(' ', term->out);
    term_reset(term);
}

static void print_label(struct term *term, const struct heads *heads, const struct layout *layout,
                        const struct head_row *row) {
    term_style(term, STYLE_BOLD);
    term_put(term, row->label, layout->label_width - (heads->text.input ? 0 : SHARE), false);
    term_style(term, STYLE_NONE);
    if (heads->text.input) return;
    char share[24] = "";
    if (*row->label) snprintf(share, sizeof share, "%.0f %%", 100 * row->label_share);
    term_put(term, share, SHARE - 1, true);
    fputc(' ', term->out);
}

static void print_rows(struct term *term, const struct heads *heads, const struct layout *layout) {
    const qkv_head_number *column;
    fprintf(term->out, "%-*s%-*s", NAME_WIDTH, "head", layout->label_width,
            layout->label_width > 5 ? "label" : "");
    for (int c = 0; (column = head_column_at(c)); c++) {
        if (!layout->shown[c]) continue;
        const int blanks = NUMBER - term_columns(column->title);
        fprintf(term->out, "%*s", blanks, "");
        const bool sorted = is_sorted_by(heads, column);
        if (sorted) term_style(term, STYLE_ACCENT);
        fputs(column->title, term->out);
        if (sorted) term_style(term, STYLE_NONE);
        fprintf(term->out, "%*s", cell_width(heads, column) - NUMBER, "");
    }
    fputc('\n', term->out);
    for (int64_t i = 0; i < heads->n_rows; i++) {
        const struct head_row *row = &heads->rows[i];
        char name[48];
        snprintf(name, sizeof name, "%" PRId64 ".%" PRId64, row->layer, row->head);
        term_put(term, name, NAME_WIDTH, false);
        print_label(term, heads, layout, row);
        for (int c = 0; head_column_at(c); c++)
            if (layout->shown[c]) print_cell(term, heads, layout, row, c);
        term_newline(term);
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

static void print_title(struct term *term, const struct heads *heads) {
    const struct session *session = heads->text.session;
    const char *which = attention_heads(session, heads->which);
    const char *model = session->is_embedded ? "the embedded model" : session->info->source;
    char text[400], target[80] = "";
    if (heads->n_targets)
        snprintf(target, sizeof target, " and a target of %" PRId64, heads->n_targets);
    snprintf(text, sizeof text, "%" PRId64 " of %" PRId64 " heads%s", heads->n_rows, heads->n_all,
             which);
    if (heads->n_rows == heads->n_all)
        snprintf(text, sizeof text, "%" PRId64 " heads%s", heads->n_all, which);
    term_styled(term, STYLE_BOLD, text);
    const int used = term_columns(text) + 1;
    if (heads->text.input)
        snprintf(text, sizeof text,
                 "of %s on %s of %" PRId64 " tokens%s, means over %" PRId64 " of %s", model,
                 heads->options->image ? "an image" : "a text", heads->n_tokens, target,
                 heads->n_queries, *target ? "the latter" : "them");
    else
        snprintf(text, sizeof text, "of %s, means and standard deviations over %" PRId64 " texts%s",
                 model, heads->n_texts, heads->n_targets ? " and their targets" : "");
    fputc(used + term_columns(text) > term->width ? '\n' : ' ', term->out);
    term_wrap(term, text);
    if (heads->what_if->any) {
        snprintf(text, sizeof text, "[" WHAT_IF_BADGE ": %s]", heads->what_if->words);
        term_wrap_styled(term, STYLE_ACCENT, text);
    }
    fputc('\n', term->out);
}

void heads_print(const struct heads *heads) {
    struct term term;
    struct layout layout;
    term_init(&term, stdout, &heads->options->common);
    lay_out(heads, &term, &layout);
    print_title(&term, heads);
    print_rows(&term, heads, &layout);
    fputc('\n', term.out);
    heads_legend(&term, heads, &layout);
}
