/*
 * The rules of a descriptor for one query and one key, made only from the header: whether the query
 * sees the key, and what is added to the score.
 */
#ifndef QKV_TESTS_RULES_H
#define QKV_TESTS_RULES_H

#include <stdbool.h>

#include "qkv/qkv.h"

double rule_scale(const qkv_attention_desc *d);
/* Is there an explicit mask that is added to scores? */
bool rule_adds(const qkv_attention_desc *d);
/* What the explicit mask adds; -INFINITY hides the key. */
double rule_bias(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j);
/* The index in a head's row of the distance bias for query i and key j; and its value, or 0. */
int64_t rule_distance_element(const qkv_attention_desc *d, int64_t b, int64_t i, int64_t j);
double rule_distance_bias(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j);
/* What ALiBi adds. */
double rule_distance(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j);
/* The score of the sink of a head; -INFINITY: none. */
double rule_sink(const qkv_attention_desc *d, int64_t h);
/* Does a query see a key? The definition behind oracle_sees. */
bool rule_sees(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j);

#endif
