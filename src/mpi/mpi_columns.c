/* The call of qkv/mpi.h for a pass over columns. */
#include "dist/ordered.h"
#include "mpi/mpi_group.h"

qkv_status qkvmpi_attention_columns_pass(qkvmpi_group *group, qkv_ctx *ctx,
                                         const qkv_attention_desc *desc, const void *q,
                                         const void *k, const float *lse,
                                         const qkv_attention_columns *columns) {
    const qkvi_dist_arrays arrays = { .q = q, .k = k, .lse = (float *)(uintptr_t)lse };
    if (!group) return QKV_ERR_ARGUMENT;
    return qkvi_ordered_columns(group->of, ctx, desc, &arrays, columns);
}
