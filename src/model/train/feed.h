/** A batch of sequences being filled: the arrays behind a qkvi_net_batch. */
#ifndef QKVI_TRAIN_FEED_H
#define QKVI_TRAIN_FEED_H

#include "model/arch/net.h"
#include "qkv/model.h"

typedef struct qkvi_feed {
    qkvi_net_batch view; /* of the arrays below, for qkvi_net_forward and qkvi_net_loss */
    int64_t capacity, max_len, n_tokens;
    int64_t *lengths; /* [capacity] */
    int32_t *ids;     /* [capacity * max_len], as all that follow but labels */
    uint8_t *types;
    int64_t *target_tokens;
    int32_t *target_ids;
    int32_t *labels; /* [capacity] */
} qkvi_feed;

/** Room for capacity sequences of at most max_len tokens. LIMIT, MEMORY. */
qkv_status qkvi_feed_make(qkvi_feed *batch, int64_t capacity, int64_t max_len, qkv_error *error);
void qkvi_feed_free(qkvi_feed *batch);
void qkvi_feed_clear(qkvi_feed *batch);

/**
 * Appends a sequence; n <= max_len and there must be room. @return the index of its first token.
 */
int64_t qkvi_feed_add(qkvi_feed *batch, int64_t n, const int32_t *ids, const uint8_t *types,
                      int32_t label);
/** The word that stood at a token; tokens in ascending order. */
void qkvi_feed_target(qkvi_feed *batch, int64_t token, int32_t id);

#endif
