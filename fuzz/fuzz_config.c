/* config.json of a model. What is accepted keeps the limits that the rest of the loader relies on. */
#include "fuzz/fuzz.h"
#include "model/store/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    qkv_model_info info;
    qkv_error error;
    if (!fuzz_accepted(qkvi_config_read("x", bytes, n_bytes, &info, &error), &error)) return 0;
    FUZZ_CHECK(info.n_layers > 0 && info.n_layers <= 1024);
    FUZZ_CHECK(info.n_heads > 0 && info.hidden > 0 && info.hidden <= 65536);
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
    return 0;
}
