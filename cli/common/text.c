#include "common/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/term.h"

qkv_status text_error(qkv_error *error, qkv_status status, const char *format, ...) {
    va_list list;
    va_start(list, format);
    error->status = status;
    vsnprintf(error->message, sizeof error->message, format, list);
    va_end(list);
    return status;
}

qkv_status text_no_memory(qkv_error *error) {
    return text_error(error, QKV_ERR_MEMORY, "out of memory");
}

bool text_ends(const char *name, const char *ending) {
    const size_t n = strlen(name), m = strlen(ending);
    return n > m && strcmp(name + n - m, ending) == 0;
}

void text_append(char *text, size_t bytes, const char *format, ...) {
    const size_t used = strlen(text);
    va_list list;
    va_start(list, format);
    vsnprintf(text + used, bytes - used, format, list);
    va_end(list);
}

/* The beginning of a text in quotation marks, cut between characters. */
static void quote(struct caption *caption, const struct text *text) {
    enum { MOST = 200 };
    size_t n = text->n < MOST ? text->n : MOST;
    while (n < text->n && n > 0 && (text->bytes[n] & 0xC0) == 0x80) n--;
    caption_add(caption, "\u201c%.*s%s\u201d", (int)n, text->bytes, n < text->n ? "\u2026" : "");
}

void caption_add_texts(struct caption *caption, const struct text *const said[2]) {
    if (!said[0] || said[0]->n == 0) return;
    for (int i = 0; i < 2 && said[i]; i++) {
        caption_add(caption, "%s", i ? ", then " : " Text: ");
        quote(caption, said[i]);
    }
}

void caption_add_path(struct caption *caption, const char *path) {
    char *const shown = term_escape(path, strlen(path));
    caption_add(caption, "%.200s", shown ? shown : "");
    free(shown);
}

/* ---- Texts with holes ------------------------------------------------------------------------ */

bool template_write(FILE *out, const char *text, void (*fill)(void *user, const char *name),
                    void *user) {
    bool written = true;
    for (const char *hole; (hole = strstr(text, "@{"));) {
        const char *const end = strchr(hole, '}');
        char *const name = strndup(hole + 2, (size_t)(end - hole) - 2);
        const bool is_line = hole[-1] == '\n' && end[1] == '\n'; /* no text begins with a hole */
        const size_t n = (size_t)(hole - text);
        written = name && fwrite(text, 1, n, out) == n && written;
        if (name) fill(user, name);
        free(name);
        text = end + 1 + is_line;
    }
    return fputs(text, out) != EOF && written;
}
