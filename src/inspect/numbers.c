/**
 * The table of the numbers of a head. Everything that shows numbers reads it. HACKING.md has the
 * recipe of a new number.
 */
#include <math.h>

#include "inspect/head_rows.h"
#include "qkv/heads.h"

typedef double number(const qkvi_head_sums *s);

static double entropy(const qkvi_head_sums *s) {
    const double mean = s->entropy * s->scale;
    return mean < 0 && mean > -1e-6 ? 0 : mean; /* a sum of weights above 1 */
}
static double entropy_normalized(const qkvi_head_sums *s) {
    return s->log_keys > 0 ? entropy(s) / (s->log_keys * s->scale) : entropy(s) * 0;
}
static double confidence(const qkvi_head_sums *s) { return s->largest * s->scale; }
static double effective_keys(const qkvi_head_sums *s) { return s->effective_keys * s->scale; }
static double mean_distance(const qkvi_head_sums *s) { return s->distance * s->scale; }
static double mass_cls(const qkvi_head_sums *s) { return s->kinds[QKVI_TOKEN_CLS] * s->scale; }
static double mass_sep(const qkvi_head_sums *s) { return s->kinds[QKVI_TOKEN_SEP] * s->scale; }
static double mass_punctuation(const qkvi_head_sums *s) {
    return s->kinds[QKVI_TOKEN_PUNCTUATION] * s->scale;
}
static double mass_self(const qkvi_head_sums *s) { return s->offsets[QKVI_OFFSET_SELF] * s->scale; }
static double mass_previous(const qkvi_head_sums *s) {
    return s->offsets[QKVI_OFFSET_PREVIOUS] * s->scale;
}
static double mass_next(const qkvi_head_sums *s) { return s->offsets[QKVI_OFFSET_NEXT] * s->scale; }
static double mass_window(const qkvi_head_sums *s) {
    double sum = 0;
    for (int c = 0; c < QKVI_N_OFFSETS; c++) sum += s->offsets[c];
    return sum * s->scale;
}

/* Over the rows that have such a key; NaN if none has. */
static double mean_of_some(double sum, int64_t n) { return n ? sum / (double)n : NAN; }
static double mass_same_token(const qkvi_head_sums *s) { return mean_of_some(s->same, s->n_same); }
static double mass_duplicate(const qkvi_head_sums *s) {
    return mean_of_some(s->duplicate, s->n_duplicate);
}
static double mass_induction(const qkvi_head_sums *s) {
    return mean_of_some(s->induction, s->n_induction);
}

static double received_largest(const qkvi_head_sums *s) { return s->received_largest; }
static double received_early(const qkvi_head_sums *s) { return s->received_early; }
static double received_gini(const qkvi_head_sums *s) { return s->received_gini; }
static double received_key(const qkvi_head_sums *s) {
    return s->received_key < 0 ? NAN : (double)s->received_key;
}

static double n_queries(const qkvi_head_sums *s) { return (double)s->n_rows; }
static double n_rows(const qkvi_head_sums *s) { return (double)s->n_seeing; }
static double n_keys(const qkvi_head_sums *s) { return (double)s->input->n_keys; }
static double n_same_token(const qkvi_head_sums *s) { return (double)s->n_same; }

#define SHARE    QKV_NUMBER_SHARE
#define SIZE     QKV_NUMBER_SIZE
#define PLACE    QKV_NUMBER_PLACE
#define COUNT    QKV_NUMBER_COUNT
#define PLACES   QKV_NEEDS_ONE_TEXT
#define TOKENS   QKV_NEEDS_TOKENS
#define SAME     (QKV_NEEDS_ONE_TEXT | QKV_NEEDS_TOKENS)
#define RECEIVED QKV_NEEDS_RECEIVED
#define PROBES   QKV_NEEDS_PROBES

/* Name, title, title on a page, words, formula; kind, needs, rank, alike; function. */
static const struct {
    qkv_head_number number;
    number *of; /* NULL: of probes */
} table[] = {
    { { "entropy", "H", "entropy", "entropy of a row in nats",
        "mean over queries of H = −Σ p ln p, in nats; 0 … ln n", SIZE, 0, 14, 0 },
      entropy },
    { { "entropy_normalized", "H/ln n", "entropy / ln n",
        "entropy over the mean of ln n of the n keys that a query sees, 1 if all are alike",
        "H divided by ln n of n keys; 0 … 1", SHARE, 0, 1, 1 },
      entropy_normalized },
    { { "confidence", "p max", "confidence", "largest weight of a row",
        "mean over queries of the largest weight; 1/n … 1", SHARE, 0, 2, 1 },
      confidence },
    { { "mean_distance", "dist", "mean distance", "distance |i - j| in tokens",
        "mean over queries of Σ p |i − j|; 0 … n − 1", SIZE, PLACES, 9, 1 },
      mean_distance },
    { { "mass_cls", "[CLS]", "on [CLS]", "weight on [CLS]",
        "mean weight on [CLS], the beginning; 0 … 1", SHARE, TOKENS, 6, 1 },
      mass_cls },
    { { "mass_sep", "[SEP]", "on [SEP]", "on [SEP]", "mean weight on all [SEP]; 0 … 1", SHARE,
        TOKENS, 7, 1 },
      mass_sep },
    { { "mass_punctuation", "punct", "on punctuation", "on punctuation",
        "mean weight on tokens that are one punctuation character; 0 … 1", SHARE, TOKENS, 8, 1 },
      mass_punctuation },
    { { "mass_self", "self", "on itself", "on the token itself",
        "mean weight of the query's own token; 0 … 1", SHARE, PLACES, 5, 1 },
      mass_self },
    { { "mass_previous", "prev", "on previous", "on the one before",
        "mean weight of the token before; 0 … 1", SHARE, PLACES, 3, 1 },
      mass_previous },
    { { "mass_next", "next", "on next", "on the one after", "mean weight of the token after; 0 … 1",
        SHARE, PLACES, 4, 1 },
      mass_next },
    { { "effective_keys", "N eff", "effective keys", "1 / sum p^2, how many keys a row looks at",
        "mean over queries of 1 / Σ p²; 1 … n", SIZE, 0, 12, 1 },
      effective_keys },
    { { "mass_window", "near", "within 8", "weight at most 8 tokens away",
        "mean weight of keys with |i − j| ≤ 8; 0 … 1", SHARE, PLACES, 17, 1 },
      mass_window },
    { { "mass_same_token", "same", "same token", "on other places of the same token",
        "mean weight on other places of the query's token, over queries that have one; 0 … 1",
        SHARE, SAME, 10, 1 },
      mass_same_token },
    { { "mass_duplicate", "dup", "earlier same", "on earlier places of it",
        "the same of earlier places; 0 … 1", SHARE, SAME, 16, 1 },
      mass_duplicate },
    { { "mass_induction", "induc", "induction", "on tokens after those",
        "the same of the tokens after earlier places of the query's token; 0 … 1", SHARE, SAME, 15,
        1 },
      mass_induction },
    { { "received_largest", "recv", "max α", "largest mean weight that a key receives of all rows",
        "α_j = mean over the queries that may see key j of their weight on it; the largest, whose "
        "place is in brackets; 0 … 1",
        SHARE, RECEIVED, 11, 1 },
      received_largest },
    { { "received_early", "early", "max α, first 64",
        "the same among the first 64 keys, those that few queries see aside",
        "the largest α_j of the first 64 keys; 0 … 1", SHARE, RECEIVED, 19, 0 },
      received_early },
    { { "received_gini", "Gini", "Gini(r)", "coefficient of what keys receive, 0 if all alike",
        "Gini coefficient of r_j = Σ_i p_ij: 0 where all keys receive alike, near 1 where one has "
        "all",
        SHARE, RECEIVED, 13, 1 },
      received_gini },
    { { "received_key", "key", NULL, "place of the key of recv", "the j of the largest α_j", PLACE,
        RECEIVED, 18, 0 },
      received_key },
    { { "duplicate", "dup*", NULL, "weight on the first time of random tokens said twice",
        "probes: mean of p_i,i−T", SHARE, PROBES, 0, 0 },
      NULL },
    { { "induction", "induc*", NULL, "on the token after the first time",
        "probes: mean of p_i,i−T+1", SHARE, PROBES, 0, 0 },
      NULL },
    { { "antecedent", "coref*", NULL,
        "share of sentences in which a masked pronoun looks at its antecedent more than at any "
        "other content word",
        "probes: share of sentences", SHARE, PROBES, 0, 0 },
      NULL },
    { { "n_queries", NULL, NULL, "queries that means are over", NULL, COUNT, 0, 0, 0 }, n_queries },
    { { "n_same_token", NULL, NULL, "queries with another place of their token", NULL, COUNT, SAME,
        0, 0 },
      n_same_token },
    { { "n_rows", NULL, NULL, "queries that see a key", NULL, SIZE, 0, 0, 0 }, n_rows },
    { { "n_keys", NULL, NULL, "keys", NULL, SIZE, 0, 0, 0 }, n_keys },
};

enum { N_NUMBERS = sizeof table / sizeof *table };

const qkv_head_number *qkv_head_number_at(int index) {
    return index >= 0 && index < N_NUMBERS ? &table[index].number : NULL;
}

int qkv_head_number_count(void) { return N_NUMBERS; }

int qkv_head_number_find(const char *name, size_t n_bytes) {
    for (int i = 0; name && i < N_NUMBERS; i++)
        if (strlen(table[i].number.name) == n_bytes &&
            memcmp(table[i].number.name, name, n_bytes) == 0)
            return i;
    return -1;
}

double qkv_head_number_value(const double *numbers, const char *name) {
    const int index = name ? qkv_head_number_find(name, strlen(name)) : -1;
    return numbers && index >= 0 ? numbers[index] : NAN;
}

static unsigned known(const qkvi_head_input *input) {
    const unsigned tokens = input->kinds ? QKV_NEEDS_TOKENS : 0;
    return (input->places ? QKV_NEEDS_ONE_TEXT : 0) | tokens |
           (input->columns ? QKV_NEEDS_RECEIVED : 0);
}

void qkvi_head_numbers(const qkvi_head_sums *sums, double *numbers) {
    const unsigned have = known(sums->input);
    for (int i = 0; i < N_NUMBERS; i++) {
        const unsigned needs = table[i].number.needs;
        const int compares = (needs & SAME) != SAME || sums->input->matches;
        numbers[i] = table[i].of && (needs & ~have) == 0 && compares ? table[i].of(sums) : NAN;
    }
}
