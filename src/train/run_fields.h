/**
 * The state of a training run in one line of text: how far it is, and every option that its result
 * depends on.
 *
 *     step=40 … seed=1 check=9e3779b97f4a7c15
 *
 * Whole numbers are decimal. Real numbers are the 16 hexadecimal digits of their bits: nothing is
 * rounded, and the locale does not matter. Hashes are FNV-1a, against damage, not against forgery.
 * Options of later versions are in the text only if they have not the value of before, so that
 * older checkpoints can be read. `check` is the hash of the text before it.
 */
#ifndef QKVI_TRAIN_RUN_FIELDS_H
#define QKVI_TRAIN_RUN_FIELDS_H

#include "train/trainer.h"

enum { QKVI_RUN_BYTES = 2048 };

/*
 * X(NAME, name in the text, kind, value): QKVI_RUN_NAME is the index of a field; its value is an
 * expression of a trainer t and its options o. (Hashes of arenas and log are set later.) Options
 * have the names of the tool's options. SUM_FIRST is called "sum_mlm" whatever the objective, and
 * COMPUTE is a qkv_model_weights.
 *
 * The fields up to V say how far a run is; those from GRAMMAR on are options. Fields from ARCH on
 * are left out of the text if they have the value that versions without them would use.
 */
#define QKVI_RUN_TABLE(X)                                                                          \
    X(STEP, "step", WHOLE, (uint64_t)t->step)                                                      \
    X(SUM_STEPS, "sum_steps", WHOLE, (uint64_t)t->sums.n_steps)                                    \
    X(SUM_TOKENS, "sum_tokens", WHOLE, (uint64_t)t->sums.n_tokens)                                 \
    X(SUM_FIRST, "sum_mlm", REAL, qkvi_real_bits(t->sums.losses[0]))                               \
    X(SUM_SECOND, "sum_nsp", REAL, qkvi_real_bits(t->sums.losses[1]))                              \
    X(WEIGHTS, "weights", HASH, 0)                                                                 \
    X(M, "adam.m", HASH, 0)                                                                        \
    X(V, "adam.v", HASH, 0)                                                                        \
    X(GRAMMAR, "grammar", WHOLE, o->grammar != NULL)                                               \
    X(CORPUS, "corpus", HASH,                                                                      \
      t->pictures ? qkvi_pictures_hash(t->pictures) : qkvi_corpus_hash(t->corpus))                 \
    X(LAYERS, "layers", WHOLE, (uint64_t)o->n_layers)                                              \
    X(HEADS, "heads", WHOLE, (uint64_t)o->n_heads)                                                 \
    X(HIDDEN, "hidden", WHOLE, (uint64_t)o->hidden)                                                \
    X(INTERMEDIATE, "intermediate", WHOLE, (uint64_t)o->intermediate)                              \
    X(VOCAB, "vocab", WHOLE, (uint64_t)o->vocab_size)                                              \
    X(LEN, "len", WHOLE, (uint64_t)o->max_len)                                                     \
    X(STEPS, "steps", WHOLE, (uint64_t)o->n_steps)                                                 \
    X(BATCH, "batch", WHOLE, (uint64_t)o->batch)                                                   \
    X(WARMUP, "warmup", WHOLE, (uint64_t)o->warmup)                                                \
    X(LR, "lr", REAL, qkvi_real_bits(o->learning_rate))                                            \
    X(DECAY, "weight_decay", REAL, qkvi_real_bits(o->weight_decay))                                \
    X(BETA1, "beta1", REAL, qkvi_real_bits(o->beta1))                                              \
    X(BETA2, "beta2", REAL, qkvi_real_bits(o->beta2))                                              \
    X(CLIP, "clip", REAL, qkvi_real_bits(o->clip))                                                 \
    X(SEED, "seed", WHOLE, o->seed)                                                                \
    X(SINUSOIDAL, "sinusoidal", WHOLE, o->sinusoidal_positions != 0)                               \
    X(ARCH, "arch", WHOLE, (uint64_t)o->kind)                                                      \
    X(FROM, "from", HASH, t->from_hash)                                                            \
    X(ACCUMULATE, "accumulate", WHOLE, (uint64_t)o->accumulate)                                    \
    X(DROPOUT, "dropout", REAL, qkvi_real_bits(o->dropout))                                        \
    X(SMOOTHING, "label_smoothing", REAL, qkvi_real_bits(o->label_smoothing))                      \
    X(DECODER_LAYERS, "decoder_layers", WHOLE, (uint64_t)o->n_decoder_layers)                      \
    X(COMPUTE, "compute", WHOLE, (uint64_t)o->compute)                                             \
    X(EPS, "eps", REAL, qkvi_real_bits(o->eps))                                                    \
    X(LLAMA, "llama", WHOLE, o->architecture &&strcmp(o->architecture, "llama") == 0)              \
    X(KV_HEADS, "kv_heads", WHOLE, (uint64_t)o->n_kv_heads)                                        \
    X(SLICES, "slices", WHOLE, (uint64_t)o->n_slices)                                              \
    X(SHAPES, "shapes", WHOLE, o->shapes != 0)                                                     \
    X(IMAGE_SIZE, "image_size", WHOLE, t->pictures ? (uint64_t)o->image_size : 0)                  \
    X(PATCH_SIZE, "patch_size", WHOLE, t->pictures ? (uint64_t)o->patch_size : 0)                  \
    X(LOG, "log", HASH, 0)

#define QKVI_RUN_PLACE(name, text, kind, value) QKVI_RUN_##name,
typedef enum qkvi_run_index { QKVI_RUN_TABLE(QKVI_RUN_PLACE) QKVI_RUN_FIELDS } qkvi_run_index;

/** A number for each field; a real number as its bits. */
typedef struct qkvi_run_fields {
    uint64_t bits[QKVI_RUN_FIELDS];
} qkvi_run_fields;

uint64_t qkvi_real_bits(double value);
double qkvi_bits_real(uint64_t bits);

/** FNV-1a of n bytes; hash is QKVI_HASH_START, or the hash of the bytes before them. */
#define QKVI_HASH_START 0xcbf29ce484222325u
uint64_t qkvi_hash(uint64_t hash, const void *bytes, size_t n);

/** The fields of a run in its present state; the hashes of arenas and log are 0. */
void qkvi_run_fields_of(const qkvi_trainer *trainer, qkvi_run_fields *fields);

void qkvi_run_fields_print(const qkvi_run_fields *fields, char text[QKVI_RUN_BYTES]);

/** Reads fields; name, of the file, is for messages. FORMAT: another version, or damaged. */
qkv_status qkvi_run_fields_parse(const char *name, const char *text, qkvi_run_fields *fields,
                                 qkv_error *error);

/**
 * ARGUMENT, naming each option in which the stored run differs from ours. But a finished run may
 * have overwritten the model that it started from: then `from` of ours is its result, which is no
 * difference.
 */
qkv_status qkvi_run_fields_match(const char *name, const qkvi_run_fields *stored,
                                 const qkvi_run_fields *ours, qkv_error *error);

#endif
