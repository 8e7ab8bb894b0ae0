/* Encodings of windows: some tokens of a text between the special tokens that are around it. */
#include <stdlib.h>

#include "look.h"

struct frame slide_frame_of(const qkv_encoding *text) {
    struct frame frame = { 0, 0 };
    for (int64_t i = 0; i < text->n && text->special[i] && text->begin[i] == text->end[i]; i++)
        frame.before++;
    for (int64_t i = text->n - 1;
         i >= frame.before && text->special[i] && text->begin[i] == text->end[i]; i--)
        frame.after++;
    return frame;
}

void slide_encoding_free(qkv_encoding *encoding) {
    if (!encoding) return;
    free(encoding->ids);
    free(encoding->types);
    free(encoding->special);
    free(encoding->begin);
    free(encoding->end);
    free(encoding);
}

qkv_encoding *slide_encoding_make(int64_t n) {
    qkv_encoding *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    made->n = n;
    made->ids = calloc((size_t)n + 1, sizeof *made->ids);
    made->types = calloc((size_t)n + 1, sizeof *made->types);
    made->special = calloc((size_t)n + 1, sizeof *made->special);
    made->begin = calloc((size_t)n + 1, sizeof *made->begin);
    made->end = calloc((size_t)n + 1, sizeof *made->end);
    if (made->ids && made->types && made->special && made->begin && made->end) return made;
    slide_encoding_free(made);
    return NULL;
}

/* The frame, and between it the tokens from `first` on. */
void slide_encoding_fill(qkv_encoding *window, const qkv_encoding *text, struct frame frame,
                         int64_t first) {
    for (int64_t i = 0; i < window->n; i++) {
        const int64_t from = i < frame.before               ? i
                             : i >= window->n - frame.after ? text->n - window->n + i
                                                            : first + i;
        window->ids[i] = text->ids[from];
        window->types[i] = text->types[from];
        window->special[i] = text->special[from];
        window->begin[i] = text->begin[from];
        window->end[i] = text->end[from];
    }
}
