/* Windows of a text in words: what means are over, and what each window showed. */
#include <inttypes.h>

#include "look/look.h"

enum { LINES = 24 };

void windows_words(const struct windows *windows, struct caption *caption) {
    caption_add(
        caption,
        "Means over %" PRId64 " window%s of %" PRId64 " tokens with the special ones, by place "
        "in the window, of a text of %" PRId64 " tokens. ",
        windows->n_windows, windows->n_windows == 1 ? "" : "s", windows->n, windows->n_tokens);
}

void windows_print(const struct look *look, struct term *term) {
    const struct windows *windows = look->windows;
    term_styled(term, STYLE_BOLD, "Windows");
    fputs(term->width < 80 ? "  first token, sharpest look\n"
                           : "  first token, sharpest look of one token at another, first words\n",
          term->out);
    for (int64_t w = 0; w < windows->n_windows && w < LINES; w++) {
        const struct text_window *window = &windows->list[w];
        char look_text[120] = "";
        if (window->key)
            text_append(look_text, sizeof look_text, "%" PRId64 ".%" PRId64 " %.24s %s %.24s %.2f",
                        window->choice.layer, window->choice.head, window->query,
                        term->unicode ? "\u2192" : "->", window->key,
                        (double)window->choice.weight);
        fprintf(term->out, "%6" PRId64 "  ", window->first);
        term_put(term, look_text, term->width < 76 ? 24 : 36, false);
        if (term->width >= 60) {
            fputs("  ", term->out);
            term_put(term, window->begins, term->width - (term->width < 76 ? 34 : 46), false);
        }
        term_newline(term);
    }
    if (windows->n_windows > LINES)
        fprintf(term->out, "        and %" PRId64 " more; --json has all\n",
                windows->n_windows - LINES);
    term_newline(term);
}

static json_t *window_json(const struct text_window *window) {
    const qkv_heads_choice *choice = &window->choice;
    return json_set(NULL, "first:i begins:t sharpest:o", window->first, window->begins,
                    !window->key ? json_null()
                                 : json_set(NULL, "layer:i head:i query:t key:t weight:n",
                                            choice->layer, choice->head, window->query, window->key,
                                            (double)choice->weight));
}

void windows_json(const struct look *look, json_t *object) {
    const struct windows *windows = look->windows;
    json_t *list = json_array(), *places = json_array();
    for (int64_t w = 0; w < windows->n_windows; w++)
        json_array_append_new(list, window_json(&windows->list[w]));
    for (int64_t i = 0; i < windows->n; i++)
        json_array_append_new(places, json_text(look->rows[i]));
    json_set(object, "slide:o windows:o places:o",
             json_set(NULL, "n:i stride:i n_tokens:i n_windows:i", windows->rule.n,
                      windows->rule.stride, windows->n_tokens, windows->n_windows),
             list, places);
}
