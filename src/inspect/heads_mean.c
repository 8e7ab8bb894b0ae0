/*
 * Means and standard deviations of numbers over inputs (Welford 1962), in the order of the inputs:
 * mean += (x - mean) / n, m2 += (x - old mean) (x - new mean), deviation = sqrt(m2 / (n - 1)).
 *
 * An input that does not have a number (for example because no token is in it twice) does not
 * enter its mean; if weights of one input are NaN, means that they enter are NaN. The index of the
 * key that receives most has no mean: the most frequent one is kept, of equally frequent ones the
 * smallest. Counts are added up. Mean weights are sums of 1 / n_inputs times the weights of each
 * input.
 */
#include <math.h>

#include "core/ints.h"
#include "files/base.h"
#include "inspect/heads_impl.h"
#include "qkv/heads.h"

/* ---- Labels ---------------------------------------------------------------------------------- */

/*
 * Labels of heads. The first rule that holds names the head: Clark, Khandelwal, Levy and Manning
 * 2019, Gu et al. 2024; "duplicate", "induction", "same-token" and "coreference-like" have
 * thresholds of our own. docs/statistics.md has the table, and how the least lengths are derived.
 */

static const qkv_head_rule rules[] = {
    { "next", "mass_next", 0.5, 0, "n_queries", 6, 0 },
    { "prev", "mass_previous", 0.5, 0, "n_queries", 6, 0 },
    { "[CLS]", "mass_cls", 0.6, 0, "n_queries", 6, 0 },
    { "[SEP]", "mass_sep", 0.6, 0, "n_queries", 6, 0 },
    { "punctuation", "mass_punctuation", 0.6, 0, "n_queries", 6, 0 },
    { "broad", "entropy_normalized", 0.78, 0, NULL, 0, 0 },
    { "sink", "received_early", 0.3, 0, "n_rows", 32, 32 },
    { "duplicate", "duplicate", 0.4, 0, NULL, 0, 0 },
    { "induction", "induction", 0.4, 0, NULL, 0, 0 },
    { "same-token", "mass_same_token", 0.4, 0, "n_same_token", 4, 0 },
    { "coreference-like", "antecedent", 0.5, 1, NULL, 0, 0 },
};

enum { N_RULES = sizeof rules / sizeof *rules };
_Static_assert((int)N_RULES <= (int)QKVI_MOST_RULES, "each rule has a place");

const qkv_head_rule *qkv_head_rule_at(int index) {
    return index >= 0 && index < N_RULES ? &rules[index] : NULL;
}

static int find(const char *name) { return name ? qkv_head_number_find(name, strlen(name)) : -1; }

static void rule_places_find(qkvi_rule_places *places) {
    places->entropy = find("entropy");
    places->n_keys = find("n_keys");
    for (int i = 0; i < N_RULES; i++) {
        places->number[i] = find(rules[i].number);
        places->queries[i] = find(rules[i].queries);
    }
}

/* A NaN is neither above nor equal, and no length. */
static int holds(const qkvi_rule_places *places, int i, const double *numbers) {
    const qkv_head_rule *const rule = &rules[i];
    const double value = numbers[places->number[i]];
    if (rule->queries && !(numbers[places->queries[i]] >= rule->min_queries)) return 0;
    if (rule->min_keys && !(numbers[places->n_keys] >= rule->min_keys)) return 0;
    return value > rule->threshold || (rule->or_equal && value == rule->threshold);
}

/* The index of the first rule that holds; -1: none does. */
static int rule_that_holds(const qkvi_rule_places *places, const double *numbers) {
    for (int i = 0; i < N_RULES && !isnan(numbers[places->entropy]); i++)
        if (holds(places, i, numbers)) return i;
    return -1;
}

const char *qkv_heads_label(const double *numbers) {
    qkvi_rule_places places;
    if (!numbers) return "";
    rule_places_find(&places);
    const int rule = rule_that_holds(&places, numbers);
    return rule < 0 ? "" : rules[rule].label;
}

struct number_sum {
    int64_t n;
    double mean, m2;
};

struct qkvi_heads_mean {
    int64_t n_inputs, n_expected, max_keys;
    int n_numbers;
    int is_old; /* numbers and spread are those of fewer inputs */
    qkvi_rule_places rules;
    struct number_sum *sums;  /* [n_all][n_numbers] */
    int64_t *labels;          /* [n_all][QKVI_MOST_RULES]: inputs that give each label */
    int32_t *places;          /* [n_all][max_keys]: inputs in which this key receives most */
    double *numbers, *spread; /* [n_all][n_numbers] */
    float *weights;           /* [n_all][n_queries][n_keys]; NULL: none */
};

void qkvi_heads_mean_free(struct qkvi_heads_mean *mean) {
    if (!mean) return;
    free(mean->sums);
    free(mean->labels);
    free(mean->places);
    free(mean->numbers);
    free(mean->weights);
    free(mean);
}

static qkv_status make(qkv_heads *heads, int64_t max_keys, int64_t n_expected,
                       const qkv_heads *like, qkv_error *error) {
    struct qkvi_heads_mean *const mean = qkvi_calloc_array(1, sizeof *mean);
    const size_t n = (size_t)heads->n_all;
    int64_t n_weights, n_places;
    heads->mean = mean;
    if (!mean) return qkvi_no_memory(error, "means of heads");
    mean->max_keys = max_keys;
    mean->n_expected = n_expected;
    mean->n_numbers = qkv_head_number_count();
    mean->is_old = 1;
    rule_places_find(&mean->rules);
    const size_t n_numbers = (size_t)mean->n_numbers;
    mean->sums = qkvi_calloc_array(n, n_numbers * sizeof *mean->sums);
    mean->labels = qkvi_calloc_array(n, QKVI_MOST_RULES * sizeof *mean->labels);
    if (qkvi_mul_i64(heads->n_all, max_keys, &n_places))
        mean->places = qkvi_calloc_array((size_t)n_places, sizeof *mean->places);
    mean->numbers = qkvi_calloc_array(n, 2 * n_numbers * sizeof *mean->numbers);
    mean->spread = mean->numbers + n * n_numbers;
    if (!mean->sums || !mean->labels || !mean->places || !mean->numbers)
        return qkvi_no_memory(error, "means of heads");
    if (!like) return QKV_OK;
    if (qkvi_mul_i64(heads->n_all, heads->info.n_queries, &n_weights) &&
        qkvi_mul_i64(n_weights, heads->info.n_keys, &n_weights))
        mean->weights = qkvi_calloc_array((size_t)n_weights, sizeof *mean->weights);
    return mean->weights ? QKV_OK : qkvi_no_memory(error, "means of heads");
}

/* Shape and rules, but for keys that are hidden in one input only. */
static qkv_status take_shape(const qkv_heads *like, qkv_heads *heads, qkv_error *error) {
    heads->info = like->info;
    heads->info.n_inputs = 0;
    heads->info.sees_all = like->info.sees_all || (!like->info.causal && like->seen);
    heads->rules = like->rules;
    if (!like->layer_rules) return QKV_OK;
    const size_t n = (size_t)like->info.n_layers;
    heads->layer_rules = qkvi_malloc_array(n, sizeof *heads->layer_rules);
    if (!heads->layer_rules) return qkvi_no_memory(error, "means of heads");
    memcpy(heads->layer_rules, like->layer_rules, n * sizeof *heads->layer_rules);
    return QKV_OK;
}

qkv_status qkv_heads_open_mean(int64_t n_layers, int64_t n_heads, int64_t max_keys,
                               int64_t n_inputs, const qkv_heads *like, qkv_heads **mean,
                               qkv_error *error) {
    if (!mean) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "the result is NULL");
    *mean = NULL;
    if (n_layers < 0 || n_heads < 0 || max_keys < 0 || n_inputs < 0 || (like && n_inputs == 0))
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "n_layers = %lld, n_heads = %lld, max_keys = %lld, n_inputs = %lld",
                              (long long)n_layers, (long long)n_heads, (long long)max_keys,
                              (long long)n_inputs);
    const qkv_heads_info info = { .n_layers = n_layers, .n_heads = n_heads };
    qkv_status status = qkvi_heads_make(NULL, &info, mean, error);
    if (status == QKV_OK) {
        (*mean)->info.n_inputs = 0;
        if (like) status = take_shape(like, *mean, error);
        (*mean)->n_all = n_layers * n_heads;
        if (status == QKV_OK) status = make(*mean, max_keys, n_inputs, like, error);
    }
    if (status == QKV_OK) return QKV_OK;
    qkv_heads_free(*mean);
    *mean = NULL;
    return status;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

static void add_number(struct number_sum *sum, double value) {
    const double step = value - sum->mean;
    sum->n++;
    sum->mean += step / (double)sum->n;
    sum->m2 += step * (value - sum->mean);
}

static void add_numbers(struct qkvi_heads_mean *mean, int64_t index, const double *numbers) {
    const int is_nan = isnan(numbers[mean->rules.entropy]);
    for (int c = 0; c < mean->n_numbers; c++) {
        struct number_sum *const sum = &mean->sums[index * mean->n_numbers + c];
        const double value = numbers[c];
        switch (qkv_head_number_at(c)->kind) {
        case QKV_NUMBER_SHARE:
        case QKV_NUMBER_SIZE:
            if (!isnan(value) || is_nan) add_number(sum, value);
            break;
        case QKV_NUMBER_COUNT: sum->mean += isnan(value) ? 0 : value; break;
        case QKV_NUMBER_PLACE:
            if (value >= 0 && value < (double)mean->max_keys)
                mean->places[index * mean->max_keys + (int64_t)value]++;
        }
    }
    const int rule = rule_that_holds(&mean->rules, numbers);
    if (rule >= 0) mean->labels[index * QKVI_MOST_RULES + rule]++;
}

static double frequent_place(const struct qkvi_heads_mean *mean, int64_t index) {
    const int32_t *const counts = mean->places + index * mean->max_keys;
    int64_t best = 0;
    for (int64_t j = 1; j < mean->max_keys; j++)
        if (counts[j] > counts[best]) best = j;
    return mean->max_keys && counts[best] ? (double)best : NAN;
}

static void set_numbers(struct qkvi_heads_mean *mean, int64_t index) {
    for (int c = 0; c < mean->n_numbers; c++) {
        const int64_t at = index * mean->n_numbers + c;
        const struct number_sum *const sum = &mean->sums[at];
        const qkv_number_kind kind = qkv_head_number_at(c)->kind;
        mean->spread[at] = sum->n > 1 ? sqrt(sum->m2 / (double)(sum->n - 1)) : NAN;
        mean->numbers[at] = kind == QKV_NUMBER_PLACE   ? frequent_place(mean, index)
                            : kind == QKV_NUMBER_COUNT ? sum->mean
                            : sum->n                   ? sum->mean
                                                       : NAN;
    }
}

static qkv_status add_weights(qkv_heads *heads, qkv_heads *one, int64_t index, float *scratch,
                              qkv_error *error) {
    const int64_t n = heads->info.n_queries, m = heads->info.n_keys;
    const float share = (float)(1 / (double)heads->mean->n_expected);
    float *const sum = heads->mean->weights + index * n * m;
    QKV_TRY(qkv_heads_weights(one, index, 0, n, 0, m, scratch, m, error));
    for (int64_t c = 0; c < n * m; c++) sum[c] += share * scratch[c];
    return QKV_OK;
}

static qkv_status add_all_weights(qkv_heads *heads, qkv_heads *one, qkv_error *error) {
    const int64_t n = heads->info.n_queries, m = heads->info.n_keys;
    if (one->info.n_queries != n || one->info.n_keys != m)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "one has %lld x %lld weights, the mean %lld x "
                              "%lld",
                              (long long)one->info.n_queries, (long long)one->info.n_keys,
                              (long long)n, (long long)m);
    float *const scratch = qkvi_malloc_array((size_t)n, (size_t)m * sizeof *scratch);
    if (!scratch) return qkvi_no_memory(error, "means of heads");
    qkv_status status = QKV_OK;
    for (int64_t h = 0; status == QKV_OK && h < heads->n_all; h++)
        status = add_weights(heads, one, h, scratch, error);
    free(scratch);
    return status;
}

static void add_all_numbers(qkv_heads *heads, const double *numbers) {
    for (int64_t h = 0; h < heads->n_all; h++)
        add_numbers(heads->mean, h, numbers + h * heads->mean->n_numbers);
    heads->mean->is_old = 1;
    heads->info.n_inputs = ++heads->mean->n_inputs;
}

qkv_status qkv_heads_add(qkv_heads *heads, qkv_heads *one, qkv_error *error) {
    if (!heads || !heads->mean || !one)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s",
                              !heads         ? "mean is NULL"
                              : !heads->mean ? "mean is none"
                                             : "one is NULL");
    if (one->n_all != heads->n_all)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "one has %lld heads, the mean %lld",
                              (long long)one->n_all, (long long)heads->n_all);
    if (!one->numbers) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "one is not measured");
    if (heads->mean->weights) QKV_TRY(add_all_weights(heads, one, error));
    add_all_numbers(heads, one->numbers);
    return QKV_OK;
}

qkv_status qkv_heads_add_numbers(qkv_heads *heads, const double *numbers, qkv_error *error) {
    const char *const refused = !heads                 ? "mean is NULL"
                                : !heads->mean         ? "mean is none"
                                : !numbers             ? "numbers is NULL"
                                : heads->mean->weights ? "mean has weights, which numbers have not"
                                                       : NULL;
    if (refused) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s", refused);
    add_all_numbers(heads, numbers);
    return QKV_OK;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void refresh(const qkv_heads *heads) {
    for (int64_t h = 0; heads->mean->is_old && h < heads->n_all; h++) set_numbers(heads->mean, h);
    heads->mean->is_old = 0;
}

const double *qkvi_heads_mean_numbers(const qkv_heads *heads, int64_t index) {
    refresh(heads);
    return heads->mean->numbers + index * heads->mean->n_numbers;
}

const float *qkvi_heads_mean_weights(const qkv_heads *heads, int64_t index) {
    if (!heads->mean || !heads->mean->weights) return NULL;
    return heads->mean->weights + index * heads->info.n_queries * heads->info.n_keys;
}

const double *qkv_heads_spread(const qkv_heads *heads, int64_t index) {
    if (qkvi_heads_check(heads, index, NULL) != QKV_OK || !heads->mean) return NULL;
    refresh(heads);
    return heads->mean->spread + index * heads->mean->n_numbers;
}

/* The index of the rule that gave a label; QKVI_MOST_RULES for none. */
static int rule_of(const char *label) {
    const qkv_head_rule *rule;
    for (int i = 0; i < QKVI_MOST_RULES && (rule = qkv_head_rule_at(i)); i++)
        if (strcmp(rule->label, label) == 0) return i;
    return QKVI_MOST_RULES;
}

double qkv_heads_label_share(const qkv_heads *heads, int64_t index, const char *label) {
    if (qkvi_heads_check(heads, index, NULL) != QKV_OK || !heads->mean || !label) return NAN;
    const struct qkvi_heads_mean *const mean = heads->mean;
    const int64_t *const labels = mean->labels + index * QKVI_MOST_RULES;
    const int rule = rule_of(label);
    int64_t n = rule < QKVI_MOST_RULES ? labels[rule] : mean->n_inputs;
    for (int i = 0; rule == QKVI_MOST_RULES && i < QKVI_MOST_RULES; i++)
        n -= labels[i]; /* without one */
    return (double)n / (double)(mean->n_inputs ? mean->n_inputs : 1);
}
