/* See batch.h. */
#include "attn/batch.h"

#include <inttypes.h>

#include "attn/mask.h"

qkv_status qkvi_batch_read(const qkv_attention_desc *desc, int64_t b, qkvi_batch *batch,
                           qkv_error *error) {
    qkvi_problem p;
    QKV_TRY(qkvi_problem_read(desc, &p, error));
    if (b < 0 || b >= p.n_batch)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "b = %" PRId64 " is not in [0, %" PRId64 ")",
                              b, p.n_batch);
    const qkvi_rules rules = qkvi_rules_of(&p, b);
    *batch = (qkvi_batch){ rules.n_queries, qkvi_len_k(&p, b), rules.offset };
    return QKV_OK;
}
