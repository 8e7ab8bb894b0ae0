/*
 * T5's fields, and BLOOM's: see config_distance.h. From transformers 5,
 * models/{t5,mt5,bloom}/configuration_*.py.
 *
 * What transformers writes beside feed_forward_proj (dense_act_fn, is_gated_act) goes before it, as
 * it does there. T5 of the first version, whose embeddings are the head, divides its logits by the
 * root of hidden; T5 1.1 and Flan-T5 do not, and say so by tie_word_embeddings: false. transformers
 * 5 ties in either case, and writes scale_decoder_outputs, which goes before.
 */
#include "model/config/config_distance.h"

enum {
    NO_END = 1 << 14, /* tokens of a text: the model has no limit of its own */
    MAX_BUCKETS = 1 << 12,
    MAX_DISTANCE = NO_END
};

/* "gated-ACT" or "ACT". */
static qkv_status read_projection(const qkvi_json_reader *reader, const char *text, int *gated,
                                  const char **act) {
    static const char prefix[] = "gated-";
    *gated = strncmp(text, prefix, strlen(prefix)) == 0;
    *act = *gated ? text + strlen(prefix) : text;
    if (*gated && strcmp(*act, "gelu") == 0) *act = "gelu_new";
    if (!strchr(*act, '-')) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                          "feed_forward_proj '%s' is neither 'ACTIVATION' nor 'gated-ACTIVATION'",
                          QKVI_PRINTABLE(128, text));
}

qkv_status qkvi_config_feed_forward(const qkvi_json_reader *reader, const qkvi_model_family *family,
                                    qkv_model_info *info) {
    const char *text = family->config.activation_absent, *act = NULL;
    QKV_TRY(qkvi_json_take_string(reader, "feed_forward_proj", &text));
    QKV_TRY(read_projection(reader, text, &info->gated, &act));
    QKV_TRY(qkvi_json_take_bool(reader, "is_gated_act", &info->gated));
    return qkvi_config_activation(reader, "dense_act_fn", act, info);
}

qkv_status qkvi_config_own_layers(const qkvi_json_reader *reader, const qkvi_model_family *family,
                                  json_t *root) {
    const char *const decoder = family->config.stacks[1].n_layers.field;
    json_t *const own = json_object_get(root, family->config.stacks[0].n_layers.field);
    const json_t *const given = json_object_get(root, decoder);
    if ((given && !json_is_null(given)) || !own) return QKV_OK;
    if (json_object_set(root, decoder, own) == 0) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_MEMORY, "no memory for a field");
}

/* Half of the buckets, of an encoder a quarter, are of one distance each. */
static qkv_status read_buckets(const qkvi_json_reader *reader, qkv_model_info *info) {
    int64_t *const n = &info->distance_buckets, *const most = &info->max_distance;
    *n = 32, *most = 128;
    QKV_TRY(qkvi_config_take_size(reader, "relative_attention_num_buckets", MAX_BUCKETS, n));
    QKV_TRY(qkvi_config_take_size(reader, "relative_attention_max_distance", MAX_DISTANCE, most));
    if (*n < 4 || *n % 4 != 0)
        return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                              "relative_attention_num_buckets = %lld is no multiple of 4",
                              (long long)*n);
    if (*most > *n / 2) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                          "relative_attention_max_distance = %lld is not above %lld, half of "
                          "relative_attention_num_buckets",
                          (long long)*most, (long long)(*n / 2));
}

static qkv_status read_scale(const qkvi_json_reader *reader, const qkvi_model_family *family,
                             qkv_model_info *info) {
    int scales = 1;
    if (!family->scales_logits) return QKV_OK;
    QKV_TRY(qkvi_json_take_bool(reader, "tie_word_embeddings", &scales));
    QKV_TRY(qkvi_json_take_bool(reader, "scale_decoder_outputs", &scales));
    info->scales_logits = scales;
    return QKV_OK;
}

/*
 * Layers of which several processes had a part each, and sums of such parts, which then leave out
 * the biases: as transformers computes them.
 */
static qkv_status refuse_parts(const qkvi_json_reader *reader) {
    int64_t n = 1;
    int exact = 0;
    QKV_TRY(qkvi_json_take_int(reader, "pretraining_tp", INT32_MAX, &n));
    QKV_TRY(qkvi_json_take_bool(reader, "slow_but_exact", &exact));
    if (!exact || n <= 1) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                          "slow_but_exact with pretraining_tp = %lld is not supported",
                          (long long)n);
}

qkv_status qkvi_config_alibi(const qkvi_json_reader *reader, qkv_model_info *info) {
    info->alibi = 1;
    info->max_len = NO_END;
    return refuse_parts(reader);
}

qkv_status qkvi_config_distances(const qkvi_json_reader *reader, const qkvi_model_family *family,
                                 qkv_model_info *info) {
    const qkvi_size *const d = &family->config.head_dim;
    info->unscaled = 1;
    info->rms_norm = 1;
    info->max_len = NO_END;
    info->head_dim = d->absent;
    QKV_TRY(qkvi_config_take_size(reader, d->field, QKVI_MAX_HIDDEN, &info->head_dim));
    QKV_TRY(read_buckets(reader, info));
    return read_scale(reader, family, info);
}
