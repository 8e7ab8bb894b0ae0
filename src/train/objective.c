/* The table of objectives, and the BPE vocabulary that two of them share: see trainer.h. */
#include "train/trainer.h"

const qkvi_objective *qkvi_objective_of(qkv_model_kind kind) {
    static const qkvi_objective *const objectives[] = { [QKV_MODEL_ENCODER] = &qkvi_objective_mlm,
                                                        [QKV_MODEL_DECODER] = &qkvi_objective_lm,
                                                        [QKV_MODEL_PAIR] =
                                                            &qkvi_objective_seq2seq };
    return objectives[kind];
}

qkv_status qkvi_bpe_vocabulary_make(qkvi_trainer *trainer, const qkvi_bpe_style *style,
                                    qkvi_count_texts *count, qkv_error *error) {
    qkvi_counter words = { 0 };
    qkv_status status = count(trainer, &words, error);
    if (status == QKV_OK)
        status = qkvi_bpe_train(&words, style, (int32_t)trainer->options->vocab_size, &trainer->bpe,
                                error);
    qkvi_counter_free(&words);
    if (status != QKV_OK) return status;
    return qkvi_bpe_vocab_open(&trainer->bpe, &trainer->tokenizer, error);
}

qkv_status qkvi_bpe_vocabulary_save(const qkvi_trainer *trainer, qkvi_files *files,
                                    qkv_error *error) {
    return qkvi_bpe_vocab_save(files, &trainer->bpe, trainer->info.max_len, error);
}

int32_t qkvi_bpe_vocabulary_id(const qkvi_trainer *trainer, const char *token) {
    return qkv_tokenizer_id(trainer->tokenizer, token, strlen(token));
}
