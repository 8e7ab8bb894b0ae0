/*
 * config.json of GPT-2, BART and Marian. What is absent has the default of transformers 5
 * (models/<type>/configuration_<type>.py), as the files that it writes may leave it out; what
 * disagrees with the tensors is found by their shapes.
 *
 * BART and Marian are one graph, post-norm, with a layer norm of eps 1e-5, which no field changes:
 *
 *              positions                      norm of the embeddings    word vectors
 *     bart     learned, the first has row 2   yes                       one table
 *     marian   sinusoids                      no                        one table, or one for each side
 *
 * Fields by which files of before 2021 said the same are checked against that.
 */
#include <string.h>

#include "core/status.h"
#include "model/store/config_fields.h"

enum { BART_FIRST_POSITION = 2, MAX_IDS = 8 };

/* ---- Parts of all three ----------------------------------------------------------------------- */

static qkv_status read_activation(const qkvi_json_reader *reader, const char *absent,
                                  qkv_model_info *info) {
    static const char *const names[][2] = {
        { "gelu", "gelu" }, { "gelu_new", "gelu_tanh" }, { "gelu_pytorch_tanh", "gelu_tanh" },
        { "relu", "relu" }, { "silu", "silu" },          { "swish", "silu" },
    };
    const char *value = absent;
    QKV_TRY(qkvi_json_take_string(reader, "activation_function", &value));
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        if (strcmp(value, names[n][0]) != 0) continue;
        info->activation = names[n][1];
        return QKV_OK;
    }
    return qkvi_config_refuse(reader, "activation_function", value);
}

/* The first of the tokens that a field names; one that the vocabulary does not have is none. */
static qkv_status read_id(const qkvi_json_reader *reader, const char *field, int64_t absent,
                          int64_t vocab_size, int64_t *id) {
    int64_t ids[MAX_IDS] = { absent }, n = 1;
    QKV_TRY(qkvi_json_take_ids(reader, field, MAX_IDS, ids, &n));
    *id = n > 0 && ids[0] < vocab_size ? ids[0] : -1;
    return QKV_OK;
}

static qkv_status read_ids(const qkvi_json_reader *reader, int64_t bos, int64_t eos, int64_t pad,
                           qkv_model_info *info) {
    const int64_t n = info->target_vocab_size;
    QKV_TRY(read_id(reader, "bos_token_id", bos, n, &info->bos_id));
    QKV_TRY(read_id(reader, "eos_token_id", eos, n, &info->eos_id));
    return read_id(reader, "pad_token_id", pad, n, &info->pad_id);
}

static qkv_status check_common(const qkvi_json_reader *reader, qkv_model_info *info) {
    info->embedding_size = info->hidden;
    info->pooling = QKV_POOLING_MEAN;
    info->sentence_len = info->max_len;
    info->has_lm = 1;
    QKV_TRY(qkvi_config_switch(reader, "tie_word_embeddings", 1));
    return qkvi_config_switch(reader, "add_cross_attention", 0);
}

/* ---- GPT-2 ------------------------------------------------------------------------------------ */

static qkv_status read_gpt2_sizes(const qkvi_json_reader *reader, qkv_model_info *info) {
    info->n_layers = 12, info->n_heads = 12, info->hidden = 768, info->max_len = 1024;
    info->vocab_size = 50257;
    QKV_TRY(qkvi_config_take_size(reader, "n_layer", QKVI_MAX_LAYERS, &info->n_layers));
    QKV_TRY(qkvi_config_take_size(reader, "n_embd", QKVI_MAX_HIDDEN, &info->hidden));
    QKV_TRY(qkvi_config_take_size(reader, "n_head", QKVI_MAX_HIDDEN, &info->n_heads));
    QKV_TRY(qkvi_config_heads(reader, "n_embd", "n_head", info, info->n_heads));
    info->head_dim = info->hidden / info->n_heads;
    info->intermediate = 4 * info->hidden;
    QKV_TRY(qkvi_config_take_size(reader, "n_inner", QKVI_MAX_INTERMEDIATE, &info->intermediate));
    QKV_TRY(qkvi_config_take_size(reader, "n_positions", QKVI_MAX_POSITIONS, &info->max_len));
    QKV_TRY(qkvi_config_take_size(reader, "vocab_size", QKVI_MAX_VOCAB, &info->vocab_size));
    info->target_vocab_size = info->vocab_size;
    return QKV_OK;
}

static qkv_status read_gpt2(const qkvi_json_reader *reader, qkv_model_info *info) {
    int scaled = 1, reordered = 0;
    info->is_decoder = 1;
    info->layer_norm_eps = 1e-5;
    info->start_id = -1;
    QKV_TRY(read_gpt2_sizes(reader, info));
    QKV_TRY(check_common(reader, info));
    QKV_TRY(qkvi_config_switch(reader, "is_encoder_decoder", 0));
    QKV_TRY(read_activation(reader, "gelu_new", info));
    QKV_TRY(qkvi_config_take_eps(reader, "layer_norm_epsilon", &info->layer_norm_eps));
    QKV_TRY(qkvi_json_take_bool(reader, "scale_attn_weights", &scaled));
    QKV_TRY(qkvi_json_take_bool(reader, "scale_attn_by_inverse_layer_idx", &info->scales_by_layer));
    /* The same product, rounded otherwise by others; ours is in f32 and scaled as it always is. */
    QKV_TRY(qkvi_json_take_bool(reader, "reorder_and_upcast_attn", &reordered));
    info->unscaled = !scaled;
    return read_ids(reader, 50256, 50256, -1, info);
}

/* ---- BART and Marian -------------------------------------------------------------------------- */

static qkv_status read_stack(const qkvi_json_reader *reader, const char *layers, const char *heads,
                             const char *intermediate, const qkv_model_info *info,
                             int64_t sizes[3]) {
    sizes[0] = 12, sizes[1] = 16, sizes[2] = 4096;
    QKV_TRY(qkvi_config_take_size(reader, layers, QKVI_MAX_LAYERS, &sizes[0]));
    QKV_TRY(qkvi_config_take_size(reader, heads, QKVI_MAX_HIDDEN, &sizes[1]));
    QKV_TRY(qkvi_config_take_size(reader, intermediate, QKVI_MAX_INTERMEDIATE, &sizes[2]));
    return qkvi_config_heads(reader, "d_model", heads, info, sizes[1]);
}

static qkv_status read_stacks(const qkvi_json_reader *reader, qkv_model_info *info) {
    int64_t encoder[3], decoder[3];
    QKV_TRY(read_stack(reader, "encoder_layers", "encoder_attention_heads", "encoder_ffn_dim", info,
                       encoder));
    QKV_TRY(read_stack(reader, "decoder_layers", "decoder_attention_heads", "decoder_ffn_dim", info,
                       decoder));
    info->n_layers = encoder[0], info->n_heads = encoder[1], info->intermediate = encoder[2];
    info->head_dim = info->hidden / info->n_heads;
    info->n_decoder_layers = decoder[0], info->n_decoder_heads = decoder[1];
    info->decoder_intermediate = decoder[2];
    return QKV_OK;
}

/* Of one vocabulary, or of one for each language. */
static qkv_status read_target_words(const qkvi_json_reader *reader, qkv_model_info *info) {
    int shared = 1;
    QKV_TRY(qkvi_json_take_bool(reader, "share_encoder_decoder_embeddings", &shared));
    QKV_TRY(qkvi_config_take_size(reader, "decoder_vocab_size", QKVI_MAX_VOCAB,
                                  &info->target_vocab_size));
    info->separate_words = !shared;
    if (!shared || info->target_vocab_size == info->vocab_size) return QKV_OK;
    return qkvi_error_set(reader->error, QKV_ERR_SHAPE,
                          "%s: decoder_vocab_size = %lld is not vocab_size = %lld, but "
                          "share_encoder_decoder_embeddings is true",
                          reader->file, (long long)info->target_vocab_size,
                          (long long)info->vocab_size);
}

static qkv_status check_old_fields(const qkvi_json_reader *reader, int is_marian) {
    int64_t extra = BART_FIRST_POSITION;
    QKV_TRY(qkvi_config_switch(reader, "normalize_before", 0));
    QKV_TRY(qkvi_config_switch(reader, "add_final_layer_norm", 0));
    QKV_TRY(qkvi_config_switch(reader, "normalize_embedding", !is_marian));
    QKV_TRY(qkvi_config_switch(reader, "static_position_embeddings", is_marian));
    if (is_marian) return QKV_OK;
    QKV_TRY(qkvi_json_take_int(reader, "extra_pos_embeddings", INT32_MAX, &extra));
    if (extra == BART_FIRST_POSITION) return QKV_OK;
    return qkvi_error_set(reader->error, QKV_ERR_UNSUPPORTED,
                          "%s: extra_pos_embeddings = %lld is not %d", reader->file,
                          (long long)extra, BART_FIRST_POSITION);
}

static qkv_status read_start(const qkvi_json_reader *reader, int64_t absent, qkv_model_info *info) {
    int64_t start = absent;
    QKV_TRY(qkvi_json_take_int(reader, "decoder_start_token_id", INT32_MAX, &start));
    info->start_id = start;
    if (start < info->target_vocab_size) return QKV_OK;
    return qkvi_error_set(reader->error, QKV_ERR_SHAPE,
                          "%s: decoder_start_token_id = %lld is not less than the %lld tokens of "
                          "the decoder",
                          reader->file, (long long)start, (long long)info->target_vocab_size);
}

static qkv_status read_pair(const qkvi_json_reader *reader, qkv_model_info *info) {
    const int is_marian = strcmp(info->architecture, "marian") == 0;
    info->is_encoder_decoder = 1;
    info->layer_norm_eps = 1e-5;
    info->hidden = 1024, info->max_len = 1024;
    info->vocab_size = is_marian ? 58101 : 50265;
    QKV_TRY(qkvi_config_take_size(reader, "d_model", QKVI_MAX_HIDDEN, &info->hidden));
    QKV_TRY(qkvi_config_take_size(reader, "max_position_embeddings", QKVI_MAX_POSITIONS,
                                  &info->max_len));
    QKV_TRY(qkvi_config_take_size(reader, "vocab_size", QKVI_MAX_VOCAB, &info->vocab_size));
    info->target_vocab_size = info->vocab_size;
    info->sinusoidal_positions = is_marian;
    info->first_position = is_marian ? 0 : BART_FIRST_POSITION;
    QKV_TRY(read_stacks(reader, info));
    QKV_TRY(check_common(reader, info));
    QKV_TRY(qkvi_config_switch(reader, "is_encoder_decoder", 1));
    QKV_TRY(qkvi_config_switch(reader, "is_decoder", 0));
    QKV_TRY(check_old_fields(reader, is_marian));
    if (is_marian) QKV_TRY(read_target_words(reader, info));
    QKV_TRY(read_activation(reader, "gelu", info));
    QKV_TRY(qkvi_json_take_bool(reader, "scale_embedding", &info->scales_words));
    QKV_TRY(read_start(reader, is_marian ? 58100 : 2, info));
    return is_marian ? read_ids(reader, -1, 0, 58100, info) : read_ids(reader, 0, 2, 1, info);
}

qkv_status qkvi_config_read_decoder(const qkvi_json_reader *reader, qkv_model_info *info) {
    return strcmp(info->architecture, "gpt2") == 0 ? read_gpt2(reader, info)
                                                   : read_pair(reader, info);
}
