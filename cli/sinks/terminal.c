/* Heads on a terminal: all of them, and the heat map of one, with a caption. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/draw.h"
#include "sinks/sinks.h"

/* In bold, and the next so many columns on the same line if the terminal is wide enough. */
static void heading(struct term *term, const char *text, int next) {
    const bool fits = term_columns(text) + 2 + next <= term->width;
    term_styled(term, STYLE_BOLD, text);
    fputs(term->width >= 70 && fits ? "  " : "\n", term->out);
}

/* ---- All heads ------------------------------------------------------------------------------- */

/* Thumbnails of all heads, pooled from their weights. */
static qkv_status make_grid(const struct seen *seen, int rows, int cols, float *cells,
                            qkv_error *error) {
    const struct tiles each = tiles_of(seen, INT64_MAX);
    float *weights = calloc((size_t)(seen->queries.n * seen->keys.n) + 1, sizeof(float));
    qkv_status status = weights ? QKV_OK : text_no_memory(error);
    for (int64_t i = 0; status == QKV_OK && i < seen->n_heads; i++) {
        status = seen_cells(seen, i, &each, weights, error);
        if (status == QKV_OK)
            pool_map(weights, seen->queries.n, seen->keys.n, rows, cols, cells + i * rows * cols);
    }
    free(weights);
    return status;
}

/* Cells that may be above 1 are shown as shares of the largest, which it returns. */
static double scale_cells(const struct seen *seen, float *cells, int64_t n) {
    float largest = 0;
    if (!seen->quantity || !seen->quantity->factors) return 1;
    for (int64_t c = 0; c < n; c++)
        if (cells[c] > largest) largest = cells[c];
    if (!(largest > 0) || isinf(largest)) return 1;
    for (int64_t c = 0; c < n; c++)
        if (cells[c] != QKV_CELL_HIDDEN) cells[c] /= largest;
    return (double)largest;
}

static qkv_status print_grid(const struct seen *seen, struct term *term, qkv_error *error) {
    const qkv_heads_info *info = seen->info;
    const int64_t n_rows = seen->queries.n, n_cols = seen->keys.n;
    const int side = grid_side(term, info->n_heads, n_rows > n_cols ? n_rows : n_cols),
              rows = n_rows < side ? (int)n_rows : side, cols = n_cols < side ? (int)n_cols : side;
    float *cells = calloc((size_t)(seen->n_heads * side * side) + 1, sizeof(float));
    double largest = 1;
    const qkv_status status =
        cells ? make_grid(seen, rows, cols, cells, error) : text_no_memory(error);
    const struct grid_view view = {
        info->n_layers,     info->n_heads,    rows, cols, cells, seen->labels,
        seen->choice.layer, seen->choice.head
    };
    struct caption title = { "All heads" }, scale = { "down: layers, across: heads; " };
    caption_add(&title, "%s", seen->of_heads);
    if (status == QKV_OK) largest = scale_cells(seen, cells, seen->n_heads * rows * cols);
    caption_add(&scale, "%s is more, 0 to %.3g", term_more(term), largest);
    if (status == QKV_OK) {
        heading(term, title.text, term_columns(scale.text));
        term_wrap(term, scale.text);
        draw_grid(term, &view);
        fputc('\n', term->out);
    }
    free(cells);
    return status;
}

static void print_numbers(const struct seen *seen, struct term *term) {
    static const struct {
        const char *name, *title;
        int width, digits;
    } columns[] = { { "entropy", "entropy", 7, 2 },    { "effective_keys", "effective", 9, 1 },
                    { "confidence", "largest", 7, 3 }, { "mean_distance", "distance", 8, 1 },
                    { "mass_previous", "prev", 5, 3 }, { "mass_self", "self", 5, 3 },
                    { "mass_next", "next", 5, 3 } };
    fputs("head", term->out);
    for (int c = 0; c < CLI_COUNT(columns); c++)
        fprintf(term->out, "  %*s", columns[c].width, columns[c].title);
    fputs("  label\n", term->out);
    for (int64_t h = 0; h < seen->n_heads; h++) {
        fprintf(term->out, "%4" PRId64, seen->names[h].head);
        for (int c = 0; c < CLI_COUNT(columns); c++) {
            const double value = qkv_head_number_value(seen_numbers(seen, h), columns[c].name);
            if (isnan(value) && !qkv_heads_nan_rows(seen->heads, h))
                fprintf(term->out, "  %*s", columns[c].width, "-");
            else
                fprintf(term->out, "  %*.*f", columns[c].width, columns[c].digits, value);
        }
        fprintf(term->out, "  %s\n", seen->labels[h]);
    }
    term_newline(term);
}

/* ---- The shown head -------------------------------------------------------------------------- */

static void print_title(const struct seen *seen, struct term *term) {
    const qkv_heads_choice *choice = &seen->choice;
    const bool any = choice->key >= 0;
    const char *const query = any ? seen->queries.names[choice->query] : "",
                      *const key = any ? seen->keys.names[choice->key] : "",
                      *const verb = seen_verb(seen);
    heading(term, seen->name,
            any ? term_columns(query) + term_columns(verb) + term_columns(key) + 12 : 0);
    if (any) {
        term_print(term->out, query);
        fprintf(term->out, " %s ", verb);
        term_styled(term, STYLE_BOLD, key);
        fprintf(term->out, " with %.2f", (double)choice->weight);
    }
    fputs("\n", term->out);
}

/* Weight by weight, or tiles of a map that is too long for that. */
static qkv_status print_map(const struct seen *seen, struct term *term, qkv_error *error) {
    const bool exact =
        !seen->side || seen->queries.n <= (int64_t)MAP_SIDE * MAP_SIDE / seen->keys.n;
    struct tiles tiles;
    float *cells = head_cells(seen, exact ? INT64_MAX : seen->side, &tiles, error);
    if (!cells) return error->status;
    const double largest = scale_cells(seen, cells, tiles.rows * tiles.cols);
    const struct map_view view = { .n_rows = exact ? seen->queries.n : tiles.tile * tiles.rows,
                                   .n_cols = exact ? seen->keys.n : tiles.tile * tiles.cols,
                                   .weights = cells,
                                   .row_labels = seen->queries.names,
                                   .col_labels = seen->keys.names,
                                   .mark_row = seen->choice.query,
                                   .mark_col = seen->choice.key,
                                   .names_a_row = seen->queries.tokens_a_name };
    if (exact)
        draw_heatmap(term, &view);
    else
        draw_pooled(term, &view, (int)tiles.rows, (int)tiles.cols);
    free(cells);
    if (seen->quantity && seen->quantity->factors) {
        struct caption note = { "" };
        caption_add(&note, "100 is %.4g.", largest);
        term_wrap_styled(term, STYLE_DIM, note.text);
    }
    return QKV_OK;
}

qkv_status seen_print(const struct seen *seen, qkv_error *error) {
    struct term term;
    qkv_status status = QKV_OK;
    term_init(&term, stdout, seen->common);
    if (seen->print) seen->print(seen, &term);
    if (seen->overview == OVERVIEW_WORDS) return QKV_OK;
    if (seen->overview == OVERVIEW_NUMBERS) print_numbers(seen, &term);
    if (seen->overview == OVERVIEW_GRID) status = print_grid(seen, &term, error);
    if (status != QKV_OK) return status;
    print_title(seen, &term);
    status = print_map(seen, &term, error);
    if (status == QKV_OK) term_wrap_styled(&term, STYLE_DIM, seen->legend.text);
    return status;
}
