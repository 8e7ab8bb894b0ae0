/* Sizes of a model: what each stack has of them, and which are possible. */
#include "model/arch/net_params.h"

enum { MAX_SIZE = 1 << 24 }; /* of any dimension: products of three fit int64_t */

qkvi_stack qkvi_stack_sizes(const qkv_model_info *info, int stack) {
    const qkvi_model_family *const family = qkvi_family_of(info->architecture);
    const bool over = stack == 1; /* a decoder over an encoder */
    const int64_t n_heads = over ? info->n_decoder_heads : info->n_heads;
    return (qkvi_stack){ .n_layers = over ? info->n_decoder_layers : info->n_layers,
                         .n_heads = n_heads,
                         .n_kv_heads = !over && info->n_kv_heads > 0 ? info->n_kv_heads : n_heads,
                         .hidden = info->hidden,
                         .head_dim = over && family->positions != QKVI_DISTANCES
                                         ? info->hidden / n_heads
                                         : info->head_dim,
                         .intermediate = over ? info->decoder_intermediate : info->intermediate,
                         .vocab_size = over ? info->target_vocab_size : info->vocab_size,
                         .max_len = info->max_len,
                         .n_types = info->n_types,
                         .embedding_size = info->embedding_size,
                         .first_position = info->first_position,
                         .skips_padding = family->first_after_pad,
                         .causal = over || family->kind == QKV_MODEL_DECODER,
                         .eps = (float)info->layer_norm_eps };
}

qkv_status qkvi_net_check_sizes(const qkv_model_info *info, const qkvi_model_family *family,
                                qkv_error *error) {
    const bool pair = family->kind == QKV_MODEL_PAIR, sees = qkvi_family_sees(family);
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {
        { "n_layers", info->n_layers },
        { "n_heads", info->n_heads },
        { "hidden", info->hidden },
        { "embedding_size", info->embedding_size },
        { "head_dim", info->head_dim },
        { "intermediate", info->intermediate },
        { "vocab_size", sees ? 1 : info->vocab_size },
        { "max_len", info->max_len },
        { "n_types + 1", info->n_types + 1 },
        { "first_position + 1", info->first_position + 1 },
        { "n_decoder_layers", pair ? info->n_decoder_layers : 1 },
        { "n_decoder_heads", pair ? info->n_decoder_heads : 1 },
        { "decoder_intermediate", pair ? info->decoder_intermediate : 1 },
        { "target_vocab_size", pair ? info->target_vocab_size : 1 },
        { "image_height", sees ? info->image_height : 1 },
        { "image_width", sees ? info->image_width : 1 },
        { "patch_height", sees ? info->patch_height : 1 },
        { "patch_width", sees ? info->patch_width : 1 },
        { "n_registers + 1", info->n_registers + 1 },
        { "joint_dim + 1", info->joint_dim + 1 },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 1 || sizes[i].value > MAX_SIZE)
            return qkvi_error_set(error, QKV_ERR_LIMIT, "%s = %lld is not between 1 and %d",
                                  sizes[i].name, (long long)sizes[i].value, MAX_SIZE);
    const bool divides = family->positions != QKVI_ROTARY && family->positions != QKVI_DISTANCES;
    if (divides && info->n_heads * info->head_dim != info->hidden)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "n_heads = %lld times head_dim = %lld is not "
                              "hidden = %lld",
                              (long long)info->n_heads, (long long)info->head_dim,
                              (long long)info->hidden);
    if (pair && divides && info->hidden % info->n_decoder_heads != 0)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "hidden = %lld is not a multiple of n_decoder_heads = %lld",
                              (long long)info->hidden, (long long)info->n_decoder_heads);
    if (info->has_nsp && !info->has_pooler)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "the NSP head needs a pooler");
    return QKV_OK;
}
