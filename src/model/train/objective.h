/**
 * What each architecture is trained for: the table of functions that the trainer calls.
 *
 *   bert     masked words and next sentences                    objective_mlm.c
 *   gpt2     the next token of a document                       objective_lm.c
 *   encdec   the next token of a target, given its source       objective_seq2seq.c
 *
 * A model to fine-tune brings its own vocabulary and sizes (fine_tune.c); only examples are then
 * made by these.
 */
#ifndef QKVI_TRAIN_OBJECTIVE_H
#define QKVI_TRAIN_OBJECTIVE_H

#include "model/store/file.h"
#include "model/train/examples.h"

struct qkvi_trainer;

typedef struct qkvi_objective {
    const char *const *losses; /* their names, in train_log.tsv and for people; ended by NULL */
    qkvi_example_make *example;

    /** What of a corpus the options cannot ask for. Nullable. */
    qkv_status (*check)(const struct qkvi_trainer *trainer, qkv_error *error);
    /** The tokenizer of a new model, from the corpus. ARGUMENT, FORMAT, LIMIT, MEMORY. */
    qkv_status (*make_vocabulary)(struct qkvi_trainer *trainer, qkv_error *error);
    qkv_status (*save_vocabulary)(const struct qkvi_trainer *trainer, qkvi_files *files,
                                  qkv_error *error);
    /** What a new model is, but for what all have. */
    void (*fill_info)(const struct qkvi_trainer *trainer, qkv_model_info *info);
} qkvi_objective;

extern const qkvi_objective qkvi_objective_mlm, qkvi_objective_lm, qkvi_objective_seq2seq;

const qkvi_objective *qkvi_objective_of(qkv_model_kind kind);

#endif
