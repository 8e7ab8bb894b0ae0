/** A byte-level BPE vocabulary of what a run is trained on: for GPT-2 and BART. */
#ifndef QKVI_TRAIN_BPE_VOCABULARY_H
#define QKVI_TRAIN_BPE_VOCABULARY_H

#include "model/text/bpe_train.h"
#include "model/train/trainer.h"

/** Counts the words of the texts that examples are made of. */
typedef qkv_status qkvi_count_texts(const qkvi_trainer *trainer, qkvi_counter *words,
                                    qkv_error *error);

/** Makes trainer->bpe and the tokenizer. ARGUMENT, FORMAT, LIMIT, MEMORY. */
qkv_status qkvi_bpe_vocabulary_make(qkvi_trainer *trainer, const qkvi_bpe_style *style,
                                    qkvi_count_texts *count, qkv_error *error);
qkv_status qkvi_bpe_vocabulary_save(const qkvi_trainer *trainer, qkvi_files *files,
                                    qkv_error *error);

/** The id of a token that the style has. */
int32_t qkvi_bpe_vocabulary_id(const qkvi_trainer *trainer, const char *token);

#endif
