/*
 * `qkv look` on a terminal: words for [MASK], all heads, and the heat map of one, with a caption.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "draw.h"
#include "look.h"

/* Whatever is below the line is what would be, and not what the model computed. */
static void print_badge(const struct look *look, struct term *term) {
    char text[WHAT_IF_WORDS + 80] = "";
    if (!look->what_if.any) return;
    if (look->before.n_masks > 0) {
        term_style(term, STYLE_BOLD);
        fputs("As the model is", term->out);
        term_style(term, STYLE_NONE);
        term_newline(term);
        predictions_print(look->session, &look->before, term);
        term_newline(term);
    }
    text_append(text, sizeof text, "[" WHAT_IF_BADGE ": %s]", look->what_if.words);
    term_style(term, STYLE_ACCENT);
    term_wrap(term, text);
    term_style(term, STYLE_NONE);
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
             perplexity, n, n == 1 ? "" : "s", look->pair.next ? "target" : "text",
             look->pair.next ? "the source and " : "");
    term_wrap(term, text);
}

static void print_predictions(const struct look *look, struct term *term) {
    const int64_t top = look->options->top.set ? look->options->top.value : 5;
    print_badge(look, term);
    if (look->replaced) {
        judge_print(look->session, look->input, look->replaced, top, term);
    } else if (look->predictions.n_masks > 0) {
        predictions_print(look->session, &look->predictions, term);
    } else if (look->session->info->is_encoder_decoder && !look->log_p) {
        term_wrap(term, "An encoder predicts nothing: --cross shows what its decoder looks at.");
    } else if (!look->session->info->has_mlm && !look->log_p) {
        term_wrap(term, "The model has no MLM head, so it predicts nothing.");
    } else if (!look->log_p) {
        return;
    }
    print_expected(look, term);
    term_newline(term);
}

/* In bold, and what follows on the same line if the terminal is wide enough. */
static void heading(struct term *term, const char *text) {
    term_style(term, STYLE_BOLD);
    fputs(text, term->out);
    term_style(term, STYLE_NONE);
    fputs(term->width < 70 ? "\n" : "  ", term->out);
}

static qkv_status print_grid(const struct look *look, struct term *term, float *weights,
                             qkv_error *error) {
    const struct attention_view *shown = &look->view;
    const int64_t n_all = look_n_heads(look),
                  n = look->n_rows > look->n_cols ? look->n_rows : look->n_cols;
    const int side = grid_side(term, shown->n_heads, n),
              rows = look->n_rows < side ? (int)look->n_rows : side,
              cols = look->n_cols < side ? (int)look->n_cols : side;
    float *cells = calloc((size_t)(n_all * side * side) + 1, sizeof(float));
    const char **labels = calloc((size_t)n_all + 1, sizeof(*labels));
    qkv_status status = QKV_OK;
    if (!cells || !labels) status = text_error(error, QKV_ERR_MEMORY, "out of memory");
    for (int64_t i = 0; i < n_all && status == QKV_OK; i++) {
        labels[i] = look->stats[i].label;
        status = look_head_weights(look, i / shown->n_heads, i % shown->n_heads, weights, error);
        look_hide(look, weights);
        pool_map(weights, look->n_rows, look->n_cols, rows, cols, cells + i * rows * cols);
    }
    if (status == QKV_OK) {
        char text[80];
        snprintf(text, sizeof text, "All heads%s",
                 attention_heads(look->session, look->view.which));
        heading(term, text);
        term_wrap(term, term->depth == TERM_PLAIN
                            ? "down: layers, across: heads; denser is more, 0 to 1"
                        : term->theme == QKV_THEME_LIGHT
                            ? "down: layers, across: heads; darker is more, 0 to 1"
                            : "down: layers, across: heads; brighter is more, 0 to 1");
        const struct grid_view view = {
            shown->n_layers,    shown->n_heads,   rows, cols, cells, labels,
            look->choice.layer, look->choice.head
        };
        draw_grid(term, &view);
        fputc('\n', term->out);
    }
    free(cells);
    free(labels);
    return status;
}

static void print_title(const struct look *look, struct term *term) {
    const struct choice *choice = &look->choice;
    char name[HEAD_NAME];
    look_head_name(look, name);
    heading(term, name);
    if (choice->key >= 0) {
        term_print(term->out, look->rows[choice->query]);
        fputs(" looks at ", term->out);
        term_style(term, STYLE_BOLD);
        term_print(term->out, look->cols[choice->key]);
        term_style(term, STYLE_NONE);
        fprintf(term->out, " with %.2f", (double)choice->weight);
    }
    fputs("\n", term->out);
}

static qkv_status print_map(const struct look *look, struct term *term, float *weights,
                            qkv_error *error) {
    const struct choice *choice = &look->choice;
    const qkv_status status = look_head_weights(look, choice->layer, choice->head, weights, error);
    if (status != QKV_OK) return status;
    look_hide(look, weights);
    print_title(look, term);
    const struct map_view view = {
        look->n_rows, look->n_cols,  weights,     look->rows,
        look->cols,   choice->query, choice->key, look->pair.next ? 2 : 1
    };
    draw_heatmap(term, &view);
    char caption[1000];
    caption[0] = '\0';
    if (look->what_if.any)
        text_append(caption, sizeof caption, "Modified: not what the model computed (%s). ",
                    look->what_if.words);
    if (look->slide) slide_words(look->slide, caption, sizeof caption);
    text_append(caption, sizeof caption,
                "A cell is the weight, in percent, with which the row's token (query) looks at the "
                "column's token (key); a row sums to 100.%s%s Model: %s. Layers and heads count "
                "from 0.%s%s%s",
                look->pair.next
                    ? " A row is a token that the decoder read, and the one that it predicts."
                    : "",
                look->causal ? " Tokens after a query are hidden from it: no cell." : "",
                look->session->info->source, look->given ? "" : " Shown is ",
                look->given ? "" : choice->rule, look->given ? "" : ".");
    term_style(term, STYLE_DIM);
    term_wrap(term, caption);
    term_style(term, STYLE_NONE);
    return QKV_OK;
}

qkv_status look_print(const struct look *look, qkv_error *error) {
    struct term term;
    term_init(&term, stdout, &look->options->common);
    float *weights = calloc((size_t)(look->n_rows * look->n_cols) + 1, sizeof(float));
    if (!weights) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    if (look->slide) slide_print(look, &term);
    print_predictions(look, &term);
    qkv_status status = QKV_OK;
    if (look->alignment) {
        look_align_print(look, &term);
        free(weights);
        return QKV_OK;
    }
    if (!look->given) status = print_grid(look, &term, weights, error);
    if (status == QKV_OK) status = print_map(look, &term, weights, error);
    free(weights);
    return status;
}
