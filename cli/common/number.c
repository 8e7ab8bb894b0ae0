#include "common/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool number_int(const char *text, int64_t min, int64_t max, int64_t *value) {
    const char *digits = text + (*text == '-');
    if (*digits == '\0' || strspn(digits, "0123456789") != strlen(digits)) return false;
    errno = 0;
    const long long number = strtoll(text, NULL, 10);
    if (errno || number < min || number > max) return false;
    *value = number;
    return true;
}

bool number_real(const char *text, double *value) {
    if (*text == '\0' || strspn(text, "0123456789+-.eE") != strlen(text)) return false;
    char *end;
    const double number = strtod(text, &end);
    if (*end || end == text || !isfinite(number)) return false;
    *value = number;
    return true;
}

int64_t *number_list(const char *text, int64_t min, int64_t max, int *n) {
    int count = 1;
    for (const char *c = text; *c; c++) count += *c == ',';
    *n = 0;
    char *copy = strdup(text);
    int64_t *values = copy ? malloc((size_t)count * sizeof(*values)) : NULL;
    char *item = copy;
    for (int i = 0; values && i < count; i++) {
        char *const end = item + strcspn(item, ",");
        *end = '\0';
        if (!number_int(item, min, max, &values[i])) {
            free(values);
            values = NULL;
        }
        item = end + 1;
    }
    free(copy);
    if (values) *n = count;
    return values;
}

static int compare(const void *x, const void *y) {
    const struct sort_key *const a = x, *const b = y;
    if (isnan(a->key) != isnan(b->key)) return isnan(a->key) ? 1 : -1;
    if (a->key < b->key || a->key > b->key) return a->key < b->key ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

void sort_keys(struct sort_key *list, int64_t n) { qsort(list, (size_t)n, sizeof *list, compare); }
