/*
 * `qkv look` on a terminal: words for [MASK], all heads, and the heat map of one, with a caption.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "common/draw.h"
#include "look/findings.h"

/* Whatever is below the line is what would be, and not what the model computed. */
static void print_badge(const struct look *look, struct term *term) {
    char text[WHAT_IF_WORDS + 80] = "";
    if (!look->text.what_if.any) return;
    if (look->before.n_masks > 0) {
        term_styled(term, STYLE_BOLD, "As the model is");
        term_newline(term);
        predictions_print(look->text.session, &look->before, term);
        term_newline(term);
    }
    text_append(text, sizeof text, "[" WHAT_IF_BADGE ": %s]", look->text.what_if.words);
    term_wrap_styled(term, STYLE_ACCENT, text);
    term_newline(term);
}

/* How well the model expected what is there. */
static void print_expected(const struct look *look, struct term *term) {
    char text[200];
    int64_t n;
    const double perplexity = look_perplexity(look, &n);
    if (n == 0) return;
    snprintf(text, sizeof text,
             "Perplexity %.4g over %" PRId64 " token%s of the %s, each given %swhat is before it.",
             perplexity, n, n == 1 ? "" : "s", look->text.pair.next ? "target" : "text",
             look->text.pair.next ? "the source and " : "");
    term_wrap(term, text);
}

static void print_predictions(const struct look *look, struct term *term) {
    const struct session *session = look->text.session;
    print_badge(look, term);
    if (look->replaced) {
        replaced_print(session, look->text.input, look->replaced, look_top(look), term);
    } else if (look->labels) {
        labels_print(session, look->labels, look_top(look), term);
    } else if (look->predictions.n_masks > 0) {
        predictions_print(session, &look->predictions, term);
    } else if (session->info->kind == QKV_MODEL_PAIR && !look->log_p) {
        term_wrap(term, "An encoder predicts nothing: --cross shows what its decoder looks at.");
    } else if (!session->info->has_mlm && !look->log_p) {
        term_wrap(term, "The model has no MLM head, so it predicts nothing.");
    } else if (!look->log_p) {
        return;
    }
    print_expected(look, term);
    term_newline(term);
}

/* In bold, and what follows on the same line if the terminal is wide enough. */
static void heading(struct term *term, const char *text) {
    term_styled(term, STYLE_BOLD, text);
    fputs(term->width < 70 ? "\n" : "  ", term->out);
}

/* Thumbnails of all heads, pooled from their weights. */
static qkv_status make_grid(const struct look *look, int rows, int cols, float *cells,
                            qkv_error *error) {
    const struct look_tiles each = look_tiles_of(look, INT64_MAX);
    float *weights = calloc((size_t)(look->n_rows * look->n_cols) + 1, sizeof(float));
    qkv_status status = weights ? QKV_OK : text_no_memory(error);
    for (int64_t i = 0; status == QKV_OK && i < look_n_heads(look); i++) {
        status = look_cells(look, i, &each, weights, error);
        if (status == QKV_OK)
            pool_map(weights, look->n_rows, look->n_cols, rows, cols, cells + i * rows * cols);
    }
    free(weights);
    return status;
}

static qkv_status print_grid(const struct look *look, struct term *term, qkv_error *error) {
    const qkv_heads_info *info = look_info(look);
    const int64_t n_all = look_n_heads(look),
                  n = look->n_rows > look->n_cols ? look->n_rows : look->n_cols;
    const int side = grid_side(term, info->n_heads, n),
              rows = look->n_rows < side ? (int)look->n_rows : side,
              cols = look->n_cols < side ? (int)look->n_cols : side;
    float *cells = calloc((size_t)(n_all * side * side) + 1, sizeof(float));
    const char **labels = calloc((size_t)n_all + 1, sizeof(*labels));
    const qkv_status status =
        cells && labels ? make_grid(look, rows, cols, cells, error) : text_no_memory(error);
    for (int64_t i = 0; status == QKV_OK && i < n_all; i++) labels[i] = look_label(look, i);
    const struct grid_view view = { info->n_layers,     info->n_heads,    rows, cols, cells, labels,
                                    look->choice.layer, look->choice.head };
    struct caption title = { "All heads" }, scale = { "down: layers, across: heads; " };
    caption_add(&title, "%s", attention_heads(look->text.session, look->text.view.which));
    caption_add(&scale, "%s is more, 0 to 1",
                term->depth == TERM_PLAIN        ? "denser"
                : term->theme == QKV_THEME_LIGHT ? "darker"
                                                 : "brighter");
    if (status == QKV_OK) {
        heading(term, title.text);
        term_wrap(term, scale.text);
        draw_grid(term, &view);
        fputc('\n', term->out);
    }
    free(cells);
    free(labels);
    return status;
}

void look_print_title(const struct look *look, struct term *term) {
    const qkv_heads_choice *choice = &look->choice;
    char name[HEAD_NAME];
    look_head_name(look, name);
    heading(term, name);
    if (choice->key >= 0) {
        term_print(term->out, look->rows[choice->query]);
        fputs(" looks at ", term->out);
        term_styled(term, STYLE_BOLD, look->cols[choice->key]);
        fprintf(term->out, " with %.2f", (double)choice->weight);
    }
    fputs("\n", term->out);
}

qkv_status look_print_map(const struct look *look, struct term *term, qkv_error *error) {
    const qkv_heads_choice *choice = &look->choice;
    struct look_tiles each;
    float *weights = look_chosen_cells(look, INT64_MAX, &each, error);
    if (!weights) return error->status;
    const struct map_view view = { look->n_rows, look->n_cols,
                                   weights,      look->rows,
                                   look->cols,   choice->query,
                                   choice->key,  look->text.pair.next ? 2 : 1 };
    draw_heatmap(term, &view);
    free(weights);
    return QKV_OK;
}

static void print_caption(const struct look *look, struct term *term) {
    struct caption caption = { "" };
    if (look->text.what_if.any)
        caption_add(&caption, "Modified: not what the model computed (%s). ",
                    look->text.what_if.words);
    if (look->windows) windows_words(look->windows, &caption);
    caption_add(&caption,
                "A cell is the weight, in percent, with which the row's token (query) looks at the "
                "column's token (key); a row sums to 100.%s%s Model: %s. Layers and heads count "
                "from 0.",
                look->text.pair.next
                    ? " A row is a token that the decoder read, and the one that it predicts."
                    : "",
                look_info(look)->causal ? " Tokens after a query are hidden from it: no cell." : "",
                look->text.session->info->source);
    look_add_rule(look, &caption);
    term_wrap_styled(term, STYLE_DIM, caption.text);
}

qkv_status look_print(const struct look *look, qkv_error *error) {
    struct term term;
    struct findings findings = { .n = 0 };
    qkv_status status = look->alignment ? QKV_OK : findings_make(look, &findings, error);
    if (status != QKV_OK) return status;
    term_init(&term, stdout, &look->options->common);
    /* of a named head the line above its map says as much */
    if (!look->given || findings.word >= 0) findings_print(&findings, &term);
    if (look->windows) windows_print(look, &term);
    print_predictions(look, &term);
    if (look->alignment) {
        look_align_print(look, &term);
        return QKV_OK;
    }
    if (!look->given) status = print_grid(look, &term, error);
    if (status != QKV_OK) return status;
    look_print_title(look, &term);
    status = look_print_map(look, &term, error);
    if (status == QKV_OK) print_caption(look, &term);
    return status;
}
