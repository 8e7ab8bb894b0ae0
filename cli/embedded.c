/* The embedded model: the files of models/default, which embedded.S puts into the binary. */
#include "common/session.h"

#ifdef QKV_EMBEDDED_MODEL

extern const char qkv_embedded_config[], qkv_embedded_config_end[];
extern const char qkv_embedded_vocab[], qkv_embedded_vocab_end[];
extern const char qkv_embedded_weights[], qkv_embedded_weights_end[];
extern const char qkv_embedded_grammar[], qkv_embedded_grammar_end[];

bool embedded_model(const qkv_model_open_options *options, qkv_model **model, qkv_status *status,
                    qkv_error *error) {
    *status = qkv_model_open_memory(
        qkv_embedded_config, (size_t)(qkv_embedded_config_end - qkv_embedded_config),
        qkv_embedded_vocab, (size_t)(qkv_embedded_vocab_end - qkv_embedded_vocab),
        qkv_embedded_weights, (size_t)(qkv_embedded_weights_end - qkv_embedded_weights), options,
        model, error);
    return true;
}

const char *embedded_grammar(size_t *n_bytes) {
    *n_bytes = (size_t)(qkv_embedded_grammar_end - qkv_embedded_grammar);
    return qkv_embedded_grammar;
}

#else

bool embedded_model(const qkv_model_open_options *options, qkv_model **model, qkv_status *status,
                    qkv_error *error) {
    (void)options, (void)model, (void)status, (void)error;
    return false;
}

const char *embedded_grammar(size_t *n_bytes) {
    *n_bytes = 0;
    return NULL;
}

#endif
