/**
 * A training run in one line of text: how far it is, and every option that its result depends on.
 *
 *     step=40 … seed=1 check=9e3779b97f4a7c15
 *
 * Whole numbers are decimal; real numbers are the 16 hexadecimal digits of their bits, so that
 * nothing is rounded and no locale is asked; hashes are FNV-1a, which tells damage from good bytes,
 * not friend from foe. Options that came later are there only if they are used, so that a checkpoint
 * of before is read. `check` is the hash of all that stands before it.
 */
#ifndef QKVI_TRAIN_RUN_FIELDS_H
#define QKVI_TRAIN_RUN_FIELDS_H

#include "model/train/trainer.h"

enum { QKVI_RUN_BYTES = 2048 };

typedef enum qkvi_run_index {
    QKVI_RUN_STEP, /* how far it is: these may have any value */
    QKVI_RUN_SUM_STEPS,
    QKVI_RUN_SUM_TOKENS,
    QKVI_RUN_SUM_FIRST, /* "sum_mlm", whatever it is of */
    QKVI_RUN_SUM_SECOND,
    QKVI_RUN_WEIGHTS, /* hashes of the arenas */
    QKVI_RUN_M,
    QKVI_RUN_V,
    QKVI_RUN_GRAMMAR, /* from here on: the options */
    QKVI_RUN_CORPUS,
    QKVI_RUN_LAYERS,
    QKVI_RUN_HEADS,
    QKVI_RUN_HIDDEN,
    QKVI_RUN_INTERMEDIATE,
    QKVI_RUN_VOCAB,
    QKVI_RUN_LEN,
    QKVI_RUN_STEPS,
    QKVI_RUN_BATCH,
    QKVI_RUN_WARMUP,
    QKVI_RUN_LR,
    QKVI_RUN_DECAY,
    QKVI_RUN_BETA1,
    QKVI_RUN_BETA2,
    QKVI_RUN_CLIP,
    QKVI_RUN_SEED,
    QKVI_RUN_SINUSOIDAL,
    QKVI_RUN_ARCH, /* from here on: left out of the text where they are as they always were */
    QKVI_RUN_FROM,
    QKVI_RUN_ACCUMULATE,
    QKVI_RUN_DROPOUT,
    QKVI_RUN_SMOOTHING,
    QKVI_RUN_DECODER_LAYERS,
    QKVI_RUN_COMPUTE, /* a qkv_model_weights, by class */
    QKVI_RUN_EPS,
    QKVI_RUN_LOG, /* a hash, and no option: of the log */
    QKVI_RUN_FIELDS
} qkvi_run_index;

/** One number for each field; a real one by its bits. */
typedef struct qkvi_run_fields {
    uint64_t bits[QKVI_RUN_FIELDS];
} qkvi_run_fields;

uint64_t qkvi_real_bits(double value);
double qkvi_bits_real(uint64_t bits);

/** FNV-1a of n bytes, from QKVI_HASH_START or from the hash of what stands before them. */
#define QKVI_HASH_START 0xcbf29ce484222325u
uint64_t qkvi_hash(uint64_t hash, const void *bytes, size_t n);

/** The fields of a run as it is now, but for the hashes of arenas and log, which are 0. */
void qkvi_run_fields_of(const qkvi_trainer *trainer, qkvi_run_fields *fields);

void qkvi_run_fields_print(const qkvi_run_fields *fields, char text[QKVI_RUN_BYTES]);

/** name, a file's, is for messages. FORMAT: the text is of another version, or damaged. */
qkv_status qkvi_run_fields_parse(const char *name, const char *text, qkvi_run_fields *fields,
                                 qkv_error *error);

/**
 * ARGUMENT, naming each option in which the stored run is another than ours. A run that is finished may
 * have replaced the model that it began from: then ours begins from what it made.
 */
qkv_status qkvi_run_fields_match(const char *name, const qkvi_run_fields *stored,
                                 const qkvi_run_fields *ours, qkv_error *error);

#endif
