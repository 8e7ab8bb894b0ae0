/* Encodings of windows: some tokens of a text between the special tokens that are around it. */
#include <stdlib.h>

#include "look/look.h"

struct frame windows_frame_of(const qkv_encoding *text) {
    struct frame frame = { 0, 0 };
    for (int64_t i = 0; i < text->n && text->special[i] && text->begin[i] == text->end[i]; i++)
        frame.before++;
    for (int64_t i = text->n - 1;
         i >= frame.before && text->special[i] && text->begin[i] == text->end[i]; i--)
        frame.after++;
    return frame;
}

qkv_encoding *windows_encoding_make(int64_t n) {
    struct block {
        qkv_encoding encoding;
        int64_t ends[]; /* begin [n], end [n]; behind them ids [n], types [n], special [n] */
    };
    const size_t a_token = 2 * sizeof(int64_t) + sizeof(int32_t) + 2;
    struct block *const made = calloc(1, sizeof *made + (size_t)n * a_token);
    if (!made) return NULL;
    made->encoding.n = n;
    made->encoding.begin = made->ends;
    made->encoding.end = made->ends + n;
    made->encoding.ids = (int32_t *)(made->ends + 2 * n);
    made->encoding.types = (uint8_t *)(made->encoding.ids + n);
    made->encoding.special = made->encoding.types + n;
    return &made->encoding;
}

/* The frame, and between it the tokens from `first` on. */
void windows_encoding_fill(qkv_encoding *window, const qkv_encoding *text, struct frame frame,
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
