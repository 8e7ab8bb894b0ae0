/*
 * Forward: a key/value head of one batch, the packing of its keys and values, and blocks of its
 * queries. Who computes which of them, and when, is forward.c's.
 */
#ifndef QKVI_ATTN_FORWARD_HEAD_H
#define QKVI_ATTN_FORWARD_HEAD_H

#include "attn/forward_part.h"
#include "attn/plan.h"
#include "kernels/table.h"

typedef struct qkvi_forward_call {
    const qkvi_problem *p;
    const qkvi_forward_part *part; /* NULL: all keys are in one call */
    const qkvi_kernels *kernels;
    qkvi_forward_plan plan;
} qkvi_forward_call;

/* One key/value head of one batch, and what its queries see. */
typedef struct qkvi_forward_head {
    int64_t b, g;
    qkvi_rules rules;
    qkvi_range keys;   /* all that some query sees */
    int64_t first_key; /* of the first block with one */
} qkvi_forward_head;

qkvi_forward_head qkvi_forward_head_at(const qkvi_forward_call *call, int64_t index);

static inline int64_t qkvi_forward_key_blocks(const qkvi_forward_head *head) {
    return qkvi_ceil_div(head->keys.end - head->first_key, QKVI_KEY_BLOCK);
}

/* Block number `index` of the head's keys, if it has so many. Reads only what a query sees. */
void qkvi_forward_pack_block(const qkvi_forward_call *call, const qkvi_forward_head *head,
                             int64_t index, const qkvi_packed *to);

/*
 * While a thread attends to a head, its slot has K, V and Q of head `index`, its next one, fetched.
 */
void qkvi_forward_announce(const qkvi_forward_call *call, int64_t index,
                           qkvi_attend_scratch *scratch);

/* Block `block` of the queries of head h, whose keys and values are packed in `from`. */
void qkvi_forward_attend_queries(const qkvi_forward_call *call, const qkvi_forward_head *head,
                                 const qkvi_packed *from, int thread, int64_t h, int64_t block);

#endif
