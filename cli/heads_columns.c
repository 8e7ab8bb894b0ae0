/* The columns of the table of heads, in the order in which they are shown. */
#include <math.h>
#include <string.h>

#include "heads.h"

#define STATS(field)  COLUMN_OF_STATS, offsetof(qkv_head_stats, field)
#define PROBES(field) COLUMN_OF_PROBES, offsetof(qkv_head_probes, field)

static const struct head_column columns[] = {
    { "entropy", "H", "entropy of a row in nats", COLUMN_SIZE, STATS(entropy), 14, false, false },
    { "entropy_normalized", "H/ln n",
      "entropy over the mean of ln n of the n keys that a query sees, 1 if all are alike",
      COLUMN_SHARE, STATS(entropy_normalized), 1, true, false },
    { "confidence", "p max", "largest weight of a row", COLUMN_SHARE, STATS(confidence), 2, true,
      false },
    { "mean_distance", "dist", "distance |i - j| in tokens", COLUMN_SIZE, STATS(mean_distance), 9,
      true, true },
    { "mass_cls", "[CLS]", "weight on [CLS]", COLUMN_SHARE, STATS(mass_cls), 6, true, false },
    { "mass_sep", "[SEP]", "on [SEP]", COLUMN_SHARE, STATS(mass_sep), 7, true, false },
    { "mass_punctuation", "punct", "on punctuation", COLUMN_SHARE, STATS(mass_punctuation), 8, true,
      false },
    { "mass_self", "self", "on the token itself", COLUMN_SHARE, STATS(mass_self), 5, true, true },
    { "mass_previous", "prev", "on the one before", COLUMN_SHARE, STATS(mass_previous), 3, true,
      true },
    { "mass_next", "next", "on the one after", COLUMN_SHARE, STATS(mass_next), 4, true, true },
    { "effective_keys", "N eff", "1 / sum p^2, how many keys a row looks at", COLUMN_SIZE,
      STATS(effective_keys), 12, true, false },
    { "mass_window", "near", "weight at most 8 tokens away", COLUMN_SHARE, STATS(mass_window), 17,
      true, true },
    { "mass_same_token", "same", "on other places of the same token", COLUMN_SHARE,
      STATS(mass_same_token), 10, true, true },
    { "mass_duplicate", "dup", "on earlier places of it", COLUMN_SHARE, STATS(mass_duplicate), 16,
      true, true },
    { "mass_induction", "induc", "on tokens after those", COLUMN_SHARE, STATS(mass_induction), 15,
      true, true },
    { "received_largest", "recv", "largest mean weight that a key receives of all rows",
      COLUMN_SHARE, STATS(received_largest), 11, true, false },
    { "received_early", "early",
      "the same among the first 64 keys, those that few queries see aside", COLUMN_SHARE,
      STATS(received_early), 19, false, false },
    { "received_gini", "Gini", "coefficient of what keys receive, 0 if all alike", COLUMN_SHARE,
      STATS(received_gini), 13, true, false },
    { "received_key", "key", "place of the key of recv", COLUMN_PLACE, STATS(received_key), 18,
      false, false },
    { "duplicate", "dup*", "weight on the first time of random tokens said twice", COLUMN_SHARE,
      PROBES(duplicate), 0, false, false },
    { "induction", "induc*", "on the token after the first time", COLUMN_SHARE, PROBES(induction),
      0, false, false },
    { "antecedent", "coref*",
      "share of sentences in which a masked pronoun looks at its antecedent more than at any other "
      "content word",
      COLUMN_SHARE, PROBES(antecedent), 0, false, false },
    { "distance", "unlike", "distance of the signature, see below", COLUMN_SIZE, COLUMN_OF_ROW,
      offsetof(struct head_row, distance), 0, false, false },
};

_Static_assert(CLI_COUNT(columns) <= MAX_COLUMNS, "there is room for the spread of each column");

const struct head_column *head_column_at(int index) {
    return index >= 0 && index < CLI_COUNT(columns) ? &columns[index] : NULL;
}

const struct head_column *head_column_of(const qkv_head_rule *rule) {
    return head_column_at(head_column_find(rule->number, strlen(rule->number)));
}

int head_column_find(const char *name, size_t n_bytes) {
    for (int i = 0; i < CLI_COUNT(columns); i++)
        if (strlen(columns[i].name) == n_bytes && memcmp(columns[i].name, name, n_bytes) == 0)
            return i;
    return -1;
}

static const void *source_of(const struct head_row *row, enum column_source source) {
    switch (source) {
    case COLUMN_OF_STATS: return &row->stats;
    case COLUMN_OF_PROBES: return &row->probes;
    case COLUMN_OF_ROW: break;
    }
    return row;
}

double head_number(const struct head_row *row, const struct head_column *column) {
    const char *const at = (const char *)source_of(row, column->source) + column->offset;
    if (column->kind != COLUMN_PLACE) return *(const double *)at;
    const int64_t place = *(const int64_t *)at;
    return place < 0 ? NAN : (double)place;
}

json_t *head_json(const qkv_head_stats *stats) {
    const struct head_row row = { .stats = *stats };
    json_t *object = json_pack("{s:I, s:I, s:o}", "layer", (json_int_t)stats->layer, "head",
                               (json_int_t)stats->head, "label", json_text(stats->label));
    for (int i = 0; i < CLI_COUNT(columns); i++) {
        const double value = head_number(&row, &columns[i]);
        if (columns[i].source != COLUMN_OF_STATS) continue;
        json_object_set_new(object, columns[i].name,
                            columns[i].kind == COLUMN_PLACE && !isnan(value)
                                ? json_integer((json_int_t)value)
                                : json_number(value));
    }
    return object;
}
