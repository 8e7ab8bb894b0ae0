/*
 * config.json and generation_config.json of the models that are trained here, as transformers has
 * them: fields in the order of their names.
 */

#include "files/encode.h"
#include "files/json.h"
#include "model/config/config.h"

static const char *architecture_class(const qkv_model_info *info) {
    return info->has_mlm && info->has_nsp ? "BertForPreTraining"
           : info->has_mlm                ? "BertForMaskedLM"
                                          : "BertModel";
}

static qkv_status write_bert(qkvi_files *files, const qkv_model_info *info, double dropout,
                             qkv_error *error) {
    static const char format[] = "{\n"
                                 "  \"architectures\": [\"%s\"],\n"
                                 "  \"attention_probs_dropout_prob\": %s,\n"
                                 "  \"hidden_act\": \"gelu\",\n"
                                 "  \"hidden_dropout_prob\": %s,\n"
                                 "  \"hidden_size\": %lld,\n"
                                 "  \"initializer_range\": 0.02,\n"
                                 "  \"intermediate_size\": %lld,\n"
                                 "  \"layer_norm_eps\": %s,\n"
                                 "  \"max_position_embeddings\": %lld,\n"
                                 "  \"model_type\": \"bert\",\n"
                                 "  \"num_attention_heads\": %lld,\n"
                                 "  \"num_hidden_layers\": %lld,\n"
                                 "  \"pad_token_id\": 0,\n"
                                 "  \"position_embedding_type\": \"absolute\",\n"
                                 "  \"sinusoidal_positions\": %s,\n"
                                 "  \"type_vocab_size\": %lld,\n"
                                 "  \"vocab_size\": %lld\n"
                                 "}\n";
    char text[2048], rate[32] = "0.0", eps[32];
    if (dropout > 0) qkvi_digits(rate, dropout, 9);
    qkvi_digits(eps, info->layer_norm_eps, 17);
    const int n = snprintf(text, sizeof text, format, architecture_class(info), rate, rate,
                           (long long)info->hidden, (long long)info->intermediate, eps,
                           (long long)info->max_len, (long long)info->n_heads,
                           (long long)info->n_layers, info->sinusoidal_positions ? "true" : "false",
                           (long long)info->n_types, (long long)info->vocab_size);
    return qkvi_files_add(files, "config.json", text, (size_t)n, error);
}

static qkv_status write_generation(qkvi_files *files, const qkv_model_info *info,
                                   qkv_error *error) {
    return qkvi_files_add_json(files, "generation_config.json",
                               json_pack("{sI,sI}", "bos_token_id", (json_int_t)info->bos_id,
                                         "eos_token_id", (json_int_t)info->eos_id),
                               error);
}

static qkv_status write_gpt2(qkvi_files *files, const qkv_model_info *info, double dropout,
                             qkv_error *error) {
    json_t *const config = json_pack(
        "{ss,s[s],sf,sI,sf,sI,sf,sf,ss,sI,sI,sI,sI,sI,sf,sb,sb,sb,sI}", "activation_function",
        "gelu_new", "architectures", "GPT2LMHeadModel", "attn_pdrop", dropout, "bos_token_id",
        (json_int_t)info->bos_id, "embd_pdrop", dropout, "eos_token_id", (json_int_t)info->eos_id,
        "initializer_range", 0.02, "layer_norm_epsilon", info->layer_norm_eps, "model_type", "gpt2",
        "n_embd", (json_int_t)info->hidden, "n_head", (json_int_t)info->n_heads, "n_inner",
        (json_int_t)info->intermediate, "n_layer", (json_int_t)info->n_layers, "n_positions",
        (json_int_t)info->max_len, "resid_pdrop", dropout, "scale_attn_weights", 1,
        "tie_word_embeddings", 1, "use_cache", 1, "vocab_size", (json_int_t)info->vocab_size);
    QKV_TRY(qkvi_files_add_json(files, "config.json", config, error));
    return write_generation(files, info, error);
}

/* As transformers 5 has it, with the rope_theta that version 4 reads. */
static qkv_status write_llama(qkvi_files *files, const qkv_model_info *info, double dropout,
                              qkv_error *error) {
    json_t *const config = json_pack(
        "{s[s],sb,sf,sI,sI,sI,ss,sI,sf,sI,sI,sb,ss,sI,sI,sI,sf,s{sf,ss},sf,sb,sb,sI}",
        "architectures", "LlamaForCausalLM", "attention_bias", 0, "attention_dropout", dropout,
        "bos_token_id", (json_int_t)info->bos_id, "eos_token_id", (json_int_t)info->eos_id,
        "head_dim", (json_int_t)info->head_dim, "hidden_act", "silu", "hidden_size",
        (json_int_t)info->hidden, "initializer_range", 0.02, "intermediate_size",
        (json_int_t)info->intermediate, "max_position_embeddings", (json_int_t)info->max_len,
        "mlp_bias", 0, "model_type", "llama", "num_attention_heads", (json_int_t)info->n_heads,
        "num_hidden_layers", (json_int_t)info->n_layers, "num_key_value_heads",
        (json_int_t)info->n_kv_heads, "rms_norm_eps", info->layer_norm_eps, "rope_parameters",
        "rope_theta", info->rope[0].theta, "rope_type", "default", "rope_theta",
        info->rope[0].theta, "tie_word_embeddings", 1, "use_cache", 1, "vocab_size",
        (json_int_t)info->vocab_size);
    QKV_TRY(qkvi_files_add_json(files, "config.json", config, error));
    return write_generation(files, info, error);
}

/* The sizes of BART's two stacks. */
static json_t *make_stacks(const qkv_model_info *info) {
    return json_pack("{sI,sI,sI,sI,sI,sI,sI,sI}", "decoder_attention_heads",
                     (json_int_t)info->n_decoder_heads, "decoder_ffn_dim",
                     (json_int_t)info->decoder_intermediate, "decoder_layers",
                     (json_int_t)info->n_decoder_layers, "encoder_attention_heads",
                     (json_int_t)info->n_heads, "encoder_ffn_dim", (json_int_t)info->intermediate,
                     "encoder_layers", (json_int_t)info->n_layers, "num_hidden_layers",
                     (json_int_t)info->n_layers, "d_model", (json_int_t)info->hidden);
}

static json_t *make_tokens(const qkv_model_info *info) {
    return json_pack("{sI,sI,sI,sI}", "bos_token_id", (json_int_t)info->bos_id,
                     "decoder_start_token_id", (json_int_t)info->start_id, "eos_token_id",
                     (json_int_t)info->eos_id, "pad_token_id", (json_int_t)info->pad_id);
}

/* Takes part, which may be NULL for want of memory, as may root; then NULL. */
static json_t *join(json_t *root, json_t *part) {
    const int failed = !root || !part || json_object_update(root, part) != 0;
    json_decref(part);
    if (!failed) return root;
    json_decref(root);
    return NULL;
}

static qkv_status write_bart(qkvi_files *files, const qkv_model_info *info, double dropout,
                             qkv_error *error) {
    json_t *config =
        json_pack("{sf,ss,s[s],sf,sf,sf,sb,sI,ss,sb,sb,sb,sI}", "activation_dropout", 0.0,
                  "activation_function", "gelu", "architectures", "BartForConditionalGeneration",
                  "attention_dropout", dropout, "dropout", dropout, "init_std", 0.02,
                  "is_encoder_decoder", 1, "max_position_embeddings", (json_int_t)info->max_len,
                  "model_type", "bart", "scale_embedding", 0, "tie_word_embeddings", 1, "use_cache",
                  1, "vocab_size", (json_int_t)info->vocab_size);
    config = join(join(config, make_stacks(info)), make_tokens(info));
    QKV_TRY(qkvi_files_add_json(files, "config.json", config, error));
    json_t *const generation = json_pack(
        "{sI,sI,sI}", "forced_bos_token_id", (json_int_t)info->bos_id, "forced_eos_token_id",
        (json_int_t)info->eos_id, "max_length", (json_int_t)info->max_len);
    return qkvi_files_add_json(files, "generation_config.json", join(generation, make_tokens(info)),
                               error);
}

qkv_status qkvi_config_write(qkvi_files *files, const qkv_model_info *info, double dropout,
                             qkv_error *error) {
    switch (info->kind) {
    case QKV_MODEL_PAIR: return write_bart(files, info, dropout, error);
    case QKV_MODEL_DECODER:
        return strcmp(info->architecture, "llama") == 0 ? write_llama(files, info, dropout, error)
                                                        : write_gpt2(files, info, dropout, error);
    default: return write_bert(files, info, dropout, error);
    }
}
