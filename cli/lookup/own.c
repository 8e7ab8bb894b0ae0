/*
 * --vectors: a table of word,x1,x2,... in place of a model's vectors; a query may be a sum:
 *
 *     king - man + woman     the vector of king, minus that of man, plus that of woman
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lookup/lookup.h"

bool lookup_next_term(const char **at, struct lookup_term *term) {
    const char *from = *at, *plus, *minus;
    if (!from) return false;
    term->sign = 1;
    if (from > term->begin && from[-1] == ' ' && from[-2] == '-') term->sign = -1;
    plus = strstr(from, " + ");
    minus = strstr(from, " - ");
    const char *const end = plus && (!minus || plus < minus) ? plus : minus;
    term->text = from;
    term->n = end ? (size_t)(end - from) : strlen(from);
    *at = end ? end + 3 : NULL;
    return true;
}

bool lookup_is_sum(const char *text) {
    struct lookup_term term = { .begin = text };
    lookup_next_term(&text, &term);
    return text != NULL;
}

/* The row of a word, -1: there is none. */
static int64_t row_of(const qkv_table *own, const char *word, size_t n) {
    for (int64_t i = 0; i < own->n_rows; i++)
        if (strlen(own->keys[i]) == n && memcmp(own->keys[i], word, n) == 0) return i;
    return -1;
}

static qkv_status add_word(const struct lookup *l, const struct lookup_term *term, const char *what,
                           double *sum, qkv_error *error) {
    const qkv_table *const own = l->own;
    const int64_t row = row_of(own, term->text, term->n);
    if (row < 0) {
        char *const shown = term_escape(term->text, term->n);
        text_error(error, QKV_ERR_ARGUMENT, "%s '%.60s' is none of the %" PRId64 " words of %.200s",
                   what, shown ? shown : "", own->n_rows, l->options->vectors);
        free(shown);
        return error->status;
    }
    for (int64_t c = 0; c < l->dim; c++)
        sum[c] += term->sign * (double)own->values[row * l->dim + c];
    return QKV_OK;
}

/* Of a key, which is one word, or of a query. */
static qkv_status one(const struct lookup *l, const char *text, bool is_key, double *sum,
                      float *vector, qkv_error *error) {
    struct lookup_term term = { .begin = text };
    qkv_status status = QKV_OK;
    memset(sum, 0, (size_t)l->dim * sizeof *sum);
    if (is_key) {
        term = (struct lookup_term){ text, text, strlen(text), 1 };
        status = add_word(l, &term, "the key", sum, error);
    } else {
        while (status == QKV_OK && lookup_next_term(&text, &term))
            status = add_word(l, &term, "the query", sum, error);
    }
    for (int64_t c = 0; c < l->dim; c++) vector[c] = (float)sum[c];
    return status;
}

qkv_status lookup_own(struct lookup *l, qkv_error *error) {
    double *const sum = calloc((size_t)l->dim + 1, sizeof *sum);
    qkv_status status = sum ? QKV_OK : text_no_memory(error);
    for (int64_t j = 0; status == QKV_OK && j < l->table->n_rows; j++)
        status = one(l, l->table->keys[j], true, sum, l->k + j * l->dim, error);
    for (int64_t i = 0; status == QKV_OK && i < l->n_queries; i++)
        status = one(l, l->queries[i], false, sum, l->q + i * l->dim, error);
    free(sum);
    return status;
}
