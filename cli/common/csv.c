/* CSV: see csv.h. */
#include "common/csv.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/os.h"
#include "common/text.h"
#include <qkv/files.h>

void csv_open(struct csv *csv) {
    *csv = (struct csv){ .text = NULL };
    csv->out = os_open_memory(&csv->text, &csv->n_bytes);
    csv->failed = !csv->out;
}

void csv_put(struct csv *csv, const char *format, ...) {
    if (!csv->out) return;
    va_list arguments;
    va_start(arguments, format);
    csv->failed |= vfprintf(csv->out, format, arguments) < 0;
    va_end(arguments);
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

void csv_field(struct csv *csv, const char *text, size_t n) {
    bool plain = n == 0 || !(is_blank(text[0]) || is_blank(text[n - 1]));
    for (size_t i = 0; i < n; i++) plain = plain && !strchr(",\"\r\n", text[i]);
    if (!plain) csv_put(csv, "\"");
    for (size_t i = 0; i < n; i++) csv_put(csv, "%s%c", text[i] == '"' ? "\"" : "", text[i]);
    if (!plain) csv_put(csv, "\"");
}

qkv_status csv_write(struct csv *csv, const char *path, qkv_error *error) {
    const bool made = csv->out && os_close_memory(csv->out) == 0 && !csv->failed;
    const qkv_status status =
        made ? qkv_file_write(path, csv->text, csv->n_bytes, error) : text_no_memory(error);
    free(csv->text);
    return status;
}
