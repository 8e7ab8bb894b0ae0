/*
 * Means and standard deviations of signatures over texts (Welford 1962), in the order of the texts:
 * mean += (x - mean) / n, m2 += (x - old mean) (x - new mean), deviation = sqrt(m2 / (n - 1)).
 *
 * A number that a text does not have (no token stands in it twice) is left out; what weights that are
 * NaN enter is NaN for all texts. The place of the key that receives most has no mean: the most
 * frequent one is kept, of equal ones the smallest.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heads.h"

enum { MAX_RULES = 16 };

struct number_sum {
    int64_t n;
    double mean, m2;
};

/* Of one head. */
struct head_sum {
    struct number_sum numbers[MAX_COLUMNS];
    int64_t labels[MAX_RULES + 1]; /* texts with the label of each rule; the last: without one */
};

struct heads_sum {
    int64_t n_all, n_heads, max_len, n_texts, n_queries;
    const qkv_head_probes *probes; /* nullable */
    struct head_sum *heads;
    int32_t *keys; /* [n_all][max_len]: texts in which this place receives most */
};

qkv_status heads_sum_make(const struct session *session, qkv_attention_of which,
                          const qkv_head_probes *probes, struct heads_sum **sum, qkv_error *error) {
    int64_t n_layers;
    struct heads_sum *s = calloc(1, sizeof *s);
    *sum = s;
    if (!s) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    s->probes = probes;
    session_sizes(session, which, &n_layers, &s->n_heads);
    s->n_all = n_layers * s->n_heads;
    s->max_len = session->info->max_len;
    s->heads = calloc((size_t)s->n_all + 1, sizeof *s->heads);
    s->keys = calloc((size_t)(s->n_all * s->max_len) + 1, sizeof *s->keys);
    if (s->heads && s->keys) return QKV_OK;
    return text_error(error, QKV_ERR_MEMORY, "out of memory");
}

void heads_sum_free(struct heads_sum *sum) {
    if (!sum) return;
    free(sum->heads);
    free(sum->keys);
    free(sum);
}

/* The index of the rule that gave a label, MAX_RULES for none. */
static int rule_of(const char *label) {
    const qkv_head_rule *rule;
    for (int i = 0; i < MAX_RULES && (rule = qkv_inspect_rule(i)); i++)
        if (strcmp(rule->label, label) == 0) return i;
    return MAX_RULES;
}

const char *heads_label(const qkv_head_stats *stats, const qkv_head_probes *probes, int64_t index) {
    return qkv_inspect_label(stats, probes ? &probes[index] : NULL);
}

static void add_number(struct number_sum *sum, double value) {
    const double step = value - sum->mean;
    sum->n++;
    sum->mean += step / (double)sum->n;
    sum->m2 += step * (value - sum->mean);
}

static void add_head(struct heads_sum *sum, int64_t index, const qkv_head_stats *stats) {
    const struct head_row row = { .stats = *stats };
    const struct head_column *column;
    for (int c = 0; (column = head_column_at(c)); c++) {
        if (column->source != COLUMN_OF_STATS || column->kind == COLUMN_PLACE) continue;
        const double value = head_number(&row, column);
        if (!isnan(value) || isnan(stats->entropy))
            add_number(&sum->heads[index].numbers[c], value);
    }
    if (stats->received_key >= 0 && stats->received_key < sum->max_len)
        sum->keys[index * sum->max_len + stats->received_key]++;
    sum->heads[index].labels[rule_of(heads_label(stats, sum->probes, index))]++;
}

void heads_sum_add(struct heads_sum *sum, const qkv_head_stats *stats) {
    for (int64_t i = 0; i < sum->n_all; i++) add_head(sum, i, &stats[i]);
    sum->n_texts++;
    sum->n_queries += sum->n_all ? stats[0].n_queries : 0;
}

static int64_t frequent_key(const struct heads_sum *sum, int64_t index) {
    const int32_t *counts = sum->keys + index * sum->max_len;
    int64_t best = 0;
    for (int64_t j = 1; j < sum->max_len; j++)
        if (counts[j] > counts[best]) best = j;
    return sum->max_len && counts[best] ? best : -1;
}

static void fill_row(const struct heads_sum *sum, int64_t index, struct head_row *row) {
    const struct head_column *column;
    row->stats = (qkv_head_stats){ .layer = index / sum->n_heads,
                                   .head = index % sum->n_heads,
                                   .received_key = frequent_key(sum, index),
                                   .n_queries = sum->n_queries };
    for (int c = 0; (column = head_column_at(c)); c++) {
        const struct number_sum *number = &sum->heads[index].numbers[c];
        row->spread[c] = number->n > 1 ? sqrt(number->m2 / (double)(number->n - 1)) : NAN;
        if (column->source != COLUMN_OF_STATS || column->kind == COLUMN_PLACE) continue;
        *(double *)((char *)&row->stats + column->offset) = number->n ? number->mean : NAN;
    }
    row->label = heads_label(&row->stats, sum->probes, index);
    row->label_share = (double)sum->heads[index].labels[rule_of(row->label)] /
                       (double)(sum->n_texts ? sum->n_texts : 1);
}

void heads_sum_rows(const struct heads_sum *sum, struct head_row *rows) {
    for (int64_t i = 0; i < sum->n_all; i++) fill_row(sum, i, &rows[i]);
}
