/* Arrays on a terminal, a line for each head and the map of one; and statistics as an object. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/draw.h"
#include "heads/heads.h"
#include "look/look.h"

/* ---- The terminal ---------------------------------------------------------------------------- */

static void print_heads(const struct look *look, struct term *term) {
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
    for (int64_t h = 0; h < look_n_heads(look); h++) {
        const double *numbers = look_numbers(look, h);
        fprintf(term->out, "%4" PRId64, look->arrays->names[h]);
        for (int c = 0; c < CLI_COUNT(columns); c++) {
            const double value = qkv_heads_value(numbers, columns[c].name);
            if (isnan(value) && !qkv_heads_nan_rows(look->text.heads, h))
                fprintf(term->out, "  %*s", columns[c].width, "-");
            else
                fprintf(term->out, "  %*.*f", columns[c].width, columns[c].digits, value);
        }
        fprintf(term->out, "  %s\n", look_label(look, h));
    }
    term_newline(term);
}

static qkv_status draw_tiles(const struct look *look, struct term *term, qkv_error *error) {
    struct look_tiles tiles;
    float *cells = look_chosen_cells(look, look->arrays->side, &tiles, error);
    if (!cells) return error->status;
    const struct map_view view = { .n_rows = tiles.tile * tiles.rows,
                                   .n_cols = tiles.tile * tiles.cols,
                                   .weights = cells };
    draw_pooled(term, &view, (int)tiles.rows, (int)tiles.cols);
    free(cells);
    return QKV_OK;
}

qkv_status arrays_print(const struct look *look, qkv_error *error) {
    const bool exact = look->n_rows <= (int64_t)LOOK_MAP * LOOK_MAP / look->n_cols;
    struct term term;
    struct caption caption = { "" };
    term_init(&term, stdout, &look->options->common);
    print_heads(look, &term);
    look_print_title(look, &term);
    const qkv_status status = (exact ? look_print_map : draw_tiles)(look, &term, error);
    if (status != QKV_OK) return status;
    arrays_describe(look->arrays, &caption);
    caption_add(&caption,
                " A cell is the weight, in percent, with which the row's token (query) looks at "
                "the column's token (key).%s",
                look_info(look)->sees_all ? "" : " Keys that a query does not see have no cell.");
    term_wrap_styled(&term, STYLE_DIM, caption.text);
    return QKV_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static qkv_status add_head(const struct look *look, int64_t index, json_t *heads,
                           qkv_error *error) {
    qkv_sharpest found = qkv_sharpest_init();
    const qkv_status status = arrays_sharpest(look, index, &found, error);
    if (status != QKV_OK) return status;
    int64_t layer, head;
    look_place(look, index, &layer, &head);
    json_t *object = head_json(layer, head, look_label(look, index), look_numbers(look, index)),
           *largest = found.key < 0 ? json_null()
                                    : json_set(NULL, "query:i key:i weight:n", found.query,
                                               found.key, (double)found.weight);
    if (layer < 0) json_object_del(object, "layer");
    json_set(object, "n_empty_rows:i n_nan_rows:i largest:o",
             qkv_heads_empty_rows(look->text.heads, index),
             qkv_heads_nan_rows(look->text.heads, index), largest);
    json_array_append_new(heads, object);
    return QKV_OK;
}

/* [first, last] of j - i, null where open: of the place that causal and window are about. */
static json_t *seen_json(const struct arrays *arrays) {
    const qkv_heads_arrays *a = &arrays->given;
    const bool to = a->causal || a->window_right >= 0;
    const int64_t right = a->causal ? 0 : a->window_right;
    return json_pack("[o, o]",
                     a->window_left >= 0 ? json_integer(a->q_offset - a->window_left) : json_null(),
                     to ? json_integer(a->q_offset + right) : json_null());
}

qkv_status arrays_json(const struct look *look, json_t **json, qkv_error *error) {
    const struct arrays *arrays = look->arrays;
    const qkv_heads_arrays *a = &arrays->given;
    const struct arg_real *scale = &look->options->scale;
    json_t *heads = json_array(), *tokens = arrays->keys.tokens ? json_array() : NULL, *rows = NULL;
    qkv_status status = QKV_OK;
    for (int64_t h = 0; status == QKV_OK && h < look_n_heads(look); h++)
        status = add_head(look, h, heads, error);
    for (int64_t j = 0; tokens && j < a->n_keys; j++)
        json_array_append_new(tokens, json_text(arrays->keys.tokens[j]));
    /* the named head's weights, as of a text */
    if (status == QKV_OK && look->given && look_n_heads(look) == 1 && !arrays_are_long(arrays))
        status = look_weights_json(look, &rows, error);
    *json = json_set(NULL,
                     "n_heads:i n_kv_heads:i n_queries:i n_keys:i head_dim:i scale:n seen:o "
                     "heads:o tokens:o weights:o",
                     a->n_heads, a->n_kv_heads, a->n_queries, a->n_keys, a->head_dim,
                     scale->set ? scale->value : 1 / sqrt((double)a->head_dim), seen_json(arrays),
                     heads, tokens, rows);
    if (!*json) return text_no_memory(error);
    if (status == QKV_OK) return QKV_OK;
    json_decref(*json);
    *json = NULL;
    return status;
}
