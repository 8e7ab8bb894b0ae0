/*
 * Columns of the table of heads: numbers in the order of the library, and the distance of --like.
 */
#include <math.h>
#include <string.h>

#include "heads/heads.h"

static const qkv_head_number unlike = { .name = "distance",
                                        .title = "unlike",
                                        .what = "distance of the signature, see below",
                                        .kind = QKV_NUMBER_SIZE,
                                        .needs = NEEDS_LIKE };

const qkv_head_number *head_column_at(int index) {
    const int n = qkv_head_number_count();
    return index < n ? qkv_head_number_at(index) : index == n ? &unlike : NULL;
}

const qkv_head_number *head_column_of(const qkv_head_rule *rule) {
    return head_column_at(head_column_find(rule->number, strlen(rule->number)));
}

static bool is_word(const char *word, const char *name, size_t n_bytes) {
    return strlen(word) == n_bytes && memcmp(word, name, n_bytes) == 0;
}

int head_column_find(const char *name, size_t n_bytes) {
    const int named = qkv_head_number_find(name, n_bytes);
    const qkv_head_number *column;
    if (named >= 0 && qkv_head_number_at(named)->title) return named;
    if (is_word(unlike.name, name, n_bytes)) return qkv_head_number_count();
    for (int c = 0; (column = head_column_at(c)); c++)
        if (column->title && is_word(column->title, name, n_bytes)) return c;
    return -1;
}

double head_number(const struct head_row *row, int index) {
    return index < qkv_head_number_count() ? row->numbers[index] : row->distance;
}

bool heads_write(const struct heads *heads, const qkv_head_number *column) {
    if (column->needs & NEEDS_LIKE) return heads->options->like != NULL;
    return column->title && (!(column->needs & QKV_NEEDS_PROBES) || heads->probes);
}

bool heads_spread(const struct heads *heads, const qkv_head_number *column) {
    return !heads->text.input && column->title && column->kind != QKV_NUMBER_PLACE &&
           !(column->needs & (NEEDS_LIKE | QKV_NEEDS_PROBES));
}
