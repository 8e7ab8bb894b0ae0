/* The vectors that tokens and places begin with, for programs that want them alone. */
#include "core/fpstate.h"
#include "model/arch/net.h"
#include "model/model_impl.h"

qkv_status qkv_model_word_vector(const qkv_model *model, int32_t id, float *vector,
                                 qkv_error *error) {
    if (!model || !vector)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", model ? "vector" : "model");
    if (id < 0 || id >= model->info.vocab_size)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "id = %d is not between 0 and %lld", (int)id,
                              (long long)model->info.vocab_size - 1);
    const qkvi_weights words = qkvi_embed_words(&model->net->stacks[0].embed);
    qkvi_weight_row(&words, id, vector);
    return QKV_OK;
}

qkv_status qkv_sinusoids(int64_t n_positions, int64_t dim, float *table, qkv_error *error) {
    enum { MAX_POSITIONS = 1 << 20, MAX_DIM = 1 << 16 };
    if (!table) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "table is NULL");
    if (n_positions < 1 || n_positions > MAX_POSITIONS || dim < 1 || dim > MAX_DIM)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "n_positions = %lld is not between 1 and %d, or dim = %lld not "
                              "between 1 and %d",
                              (long long)n_positions, MAX_POSITIONS, (long long)dim, MAX_DIM);
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    qkvi_sinusoids(n_positions, dim, table);
    qkvi_fpstate_leave(saved);
    return QKV_OK;
}
