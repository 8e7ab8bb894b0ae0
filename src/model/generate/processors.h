/*
 * What happens to a row before a token is chosen from it: transformers' logits processors
 * (generation/logits_process.py), each in its place. -infinity is "forbidden".
 */
#ifndef QKVI_GENERATE_PROCESSORS_H
#define QKVI_GENERATE_PROCESSORS_H

#include "model/generate/plan.h"
#include "model/generate/row.h"

/* Memory of one call, for a vocabulary; it may be used again. */
typedef struct qkvi_scratch {
    uint8_t *marks;       /* [vocab], all 0 between calls */
    qkvi_top_item *items; /* [vocab]; NULL if nothing is sampled */
} qkvi_scratch;

qkv_status qkvi_scratch_make(const qkvi_plan *plan, qkvi_scratch *scratch, qkv_error *error);
void qkvi_scratch_free(qkvi_scratch *scratch);

/* x [vocab] is the row after ids [n], prompt and all. */
void qkvi_process(const qkvi_plan *plan, const qkvi_scratch *scratch, int64_t n, const int32_t *ids,
                  double *x);

#endif
