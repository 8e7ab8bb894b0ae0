/**
 * The table of rules of visibility: one row for each rule that a descriptor has by position. A row
 * says which fields the rule has, what they may be, and which keys it lets a query see. Checks,
 * qkv_attention_rule and qkv_attention_visible_keys read it, and so do the tool and the page.
 *
 * The kernels do not: they classify blocks by mask.h, from the numbers that qkvi_rules_read leaves
 * in the problem. A test holds both against each other.
 */
#ifndef QKVI_ATTN_RULES_H
#define QKVI_ATTN_RULES_H

#include "attn/mask.h"

/** A query: its batch, its row, and its place among the keys, i + q_offset. */
typedef struct qkvi_query {
    int64_t b, i, at;
} qkvi_query;

/** A row of the table. */
typedef struct qkvi_rule {
    qkv_rule shown;
    const char *flag_name;
    /* The class of error of a value out of range. */
    qkv_status refused;
    /*
     * Takes away keys at either end of an interval. Both ends never fall as i grows. NULL: the rule
     * changes the place of queries, or what another rule does.
     */
    void (*narrow)(const qkv_attention_desc *desc, qkvi_query query, qkvi_range *keys);
    /* NULL, or: does the rule let the query see this key of its interval? */
    bool (*sees)(const qkv_attention_desc *desc, qkvi_query query, int64_t j);
} qkvi_rule;

/** The index-th row; NULL past the end. */
const qkvi_rule *qkvi_rule_at(int index);

/** The flags of all rows. */
uint32_t qkvi_rules_flags(void);

/** Checks the fields of all rules that are set, and fills in those of the problem. */
QKV_NODISCARD qkv_status qkvi_rules_read(const qkv_attention_desc *desc, qkvi_problem *problem,
                                         qkv_error *error);

#endif
