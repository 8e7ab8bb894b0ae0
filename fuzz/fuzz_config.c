/*
 * config.json of a model. What is accepted keeps the limits that the rest of the loader relies on.
 */
#include <math.h>

#include "fuzz/fuzz.h"
#include "model/config/config.h"

static void check_rope(const qkv_rope *rope) {
    FUZZ_CHECK(rope->type >= QKV_ROPE_DEFAULT && rope->type <= QKV_ROPE_YARN);
    FUZZ_CHECK(rope->theta > 1 && isfinite(rope->theta));
    FUZZ_CHECK(rope->factor >= 1 && isfinite(rope->factor) && rope->original_len >= 1);
    FUZZ_CHECK(rope->attention_factor > 0 && isfinite(rope->attention_factor));
    if (rope->type == QKV_ROPE_LLAMA3) FUZZ_CHECK(rope->high_freq_factor > rope->low_freq_factor);
    if (rope->type == QKV_ROPE_YARN) FUZZ_CHECK(rope->beta_fast > 0 && rope->beta_slow > 0);
}

/* Llama and its kin, and ModernBERT: heads may be wider than hidden / n_heads. */
static void check_rotary(const qkv_model_info *info) {
    FUZZ_CHECK(info->head_dim > 0 && info->head_dim <= 65536 && info->head_dim % 2 == 0);
    FUZZ_CHECK(info->n_kv_heads > 0 && info->n_heads % info->n_kv_heads == 0);
    FUZZ_CHECK(info->window_left >= -1 && info->window_right >= -1);
    for (int64_t l = 0; l < info->n_layers; l++) {
        FUZZ_CHECK(info->layer_kinds[l] <= (QKV_LAYER_SLIDES | QKV_LAYER_UNROTATED));
        FUZZ_CHECK(!(info->layer_kinds[l] & QKV_LAYER_SLIDES) || info->window_left >= 0);
    }
    check_rope(&info->rope[0]);
    check_rope(&info->rope[1]);
    FUZZ_CHECK(isfinite(info->score_scale) && info->score_scale >= 0);
    FUZZ_CHECK(isfinite(info->score_cap) && info->score_cap >= 0);
    FUZZ_CHECK(isfinite(info->logit_cap) && info->logit_cap >= 0);
}

/*
 * Names of classes are read from the same bytes: where that fails, the names so far are the
 * caller's.
 */
static void check_labels(const uint8_t *bytes, size_t n_bytes, const qkv_model_info *info) {
    qkv_error error;
    FUZZ_CHECK(info->n_labels >= 0 && info->n_labels <= QKVI_MAX_LABELS);
    FUZZ_CHECK(info->label_kind >= QKV_LABELS_ONE && info->label_kind <= QKV_LABELS_VALUES);
    FUZZ_CHECK(info->n_labels == 0 || info->label_pooling == QKV_POOLING_CLS ||
               info->label_pooling == QKV_POOLING_MEAN ||
               (info->kind == QKV_MODEL_DECODER && info->label_pooling == QKV_POOLING_LAST));
    if (info->n_labels == 0) return;
    char **const names = calloc((size_t)info->n_labels, sizeof *names);
    if (!names) return;
    fuzz_accepted(qkvi_config_labels("x", bytes, n_bytes, info->n_labels, names, &error), &error);
    for (int64_t i = 0; i < info->n_labels; i++) free(names[i]);
    free(names);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    qkv_model_info info;
    qkv_error error;
    if (!fuzz_accepted(qkvi_config_read("x", bytes, n_bytes, &info, &error), &error)) return 0;
    FUZZ_CHECK(info.n_layers > 0 && info.n_layers <= 1024);
    FUZZ_CHECK(info.n_heads > 0 && info.hidden > 0 && info.hidden <= 65536);
    if (info.rope[0].theta > 0)
        check_rotary(&info);
    else
        FUZZ_CHECK(info.head_dim * info.n_heads == info.hidden);
    FUZZ_CHECK(info.intermediate > 0 && info.intermediate <= 1 << 20);
    FUZZ_CHECK(info.vocab_size > 0 && info.vocab_size <= 1 << 24);
    FUZZ_CHECK(info.max_len > 0 && info.max_len <= 1 << 20);
    FUZZ_CHECK(info.n_types >= 0 && info.n_types <= 256);
    FUZZ_CHECK(info.activation && info.target_vocab_size > 0);
    FUZZ_CHECK(info.start_id < info.target_vocab_size && info.eos_id < info.target_vocab_size);
    if (info.kind == QKV_MODEL_PAIR) {
        FUZZ_CHECK(info.n_decoder_layers > 0 && info.n_decoder_layers <= 1024);
        FUZZ_CHECK(info.n_decoder_heads > 0 && info.hidden % info.n_decoder_heads == 0);
        FUZZ_CHECK(info.decoder_intermediate > 0 && info.start_id >= 0);
    }
    FUZZ_CHECK(info.layer_norm_eps > 0 && info.layer_norm_eps < 1);
    check_labels(bytes, n_bytes, &info);
    return 0;
}
