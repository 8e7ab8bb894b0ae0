/**
 * A training run in progress. Everything random is a pure function of the seed and of a number (of
 * a weight, of an example), and everything summed has a fixed order: a run is a function of its
 * options, and one that was stopped and resumed is the same run.
 */
#ifndef QKVI_TRAIN_TRAINER_H
#define QKVI_TRAIN_TRAINER_H

#include "core/peers.h"
#include "files/file.h"
#include "model/arch/net.h"
#include "qkv/train.h"
#include "text/bpe_train.h"
#include "train/adamw.h"
#include "train/corpus.h"
#include "train/examples.h"

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

enum { QKVI_HELD_OUT_PAIRS = 128 }; /* of every report's held-out loss */

/**
 * What a report tells, since the one before: a part of a run, for reports must not depend on stops.
 */
enum { QKVI_TRAIN_LOSSES = 2 }; /* at most, of an objective */

typedef struct qkvi_train_sums {
    int64_t n_steps, n_tokens;
    double losses[QKVI_TRAIN_LOSSES]; /* sums of the steps' means, as the objective names them */
} qkvi_train_sums;

typedef struct qkvi_trainer {
    qkv_ctx *ctx;
    /*
     * a copy; of a model to fine-tune it gets the sizes; compute is no QKV_WEIGHTS_BF16 but a class
     */
    qkv_train_options *options;
    const qkvi_objective *objective;
    qkvi_corpus *corpus;
    char *vocab; /* the bytes of vocab.txt: BERT's */
    size_t vocab_bytes;
    qkvi_bpe_vocab bpe;                          /* GPT-2's, BART's */
    qkv_tokenizer *tokenizer, *target_tokenizer; /* the second NULL: the same */
    char *from;             /* the folder of a model to fine-tune, or its GGUF file, or NULL */
    struct qkvi_gguf *gguf; /* that file, or NULL */
    uint64_t from_hash;     /* of its weights; 0 */
    qkv_model_info info;
    qkvi_param_table table;
    float *params, *grads; /* arenas of the table */
    float *m, *v;          /* too; with shares_moments of this rank's elements alone */
    bool shares_moments;
    float *lm_bias;      /* of logits, not trained: some Marians have one */
    float *positions[2]; /* stored instead of sinusoids, not trained either; NULL */
    float *sum;          /* of the gradients of a part's slices, where it has several */
    float *mean;         /* of the gradients of a step's parts, where it has several */
    qkvi_peers ranks;    /* of one, where no other shares the run */
    qkvi_net *weights, *gradients;
    qkvi_net_pass *pass;
    qkvi_adamw adamw;
    qkvi_examples examples;
    qkvi_feed batch;
    int64_t step; /* steps done */
    qkvi_train_sums sums;
    qkvi_growing log; /* train_log.tsv, as far as it is */
    bool is_finished; /* asked to resume, and all is done already */
} qkvi_trainer;

/** Every rule that options must keep. ARGUMENT, SHAPE. */
/** Whether a new model is a Llama. */
static inline bool qkvi_trains_llama(const qkv_train_options *o) {
    return o->architecture && strcmp(o->architecture, "llama") == 0;
}

/** By what a document begins: where a model has no token for that (Qwen), by that of its end. */
static inline int64_t qkvi_begin_id(const qkv_model_info *info) {
    return info->bos_id >= 0 ? info->bos_id : info->eos_id;
}

qkv_status qkvi_train_options_check(const qkv_train_options *options, qkv_error *error);

/**
 * Makes everything of a trainer that has ctx and options, and zeros otherwise; resumes if asked to.
 */
qkv_status qkvi_trainer_open(qkvi_trainer *trainer, qkv_error *error);
/** Makes options->out, and removes what a killed run left there half written. */
qkv_status qkvi_trainer_folder(const qkvi_trainer *trainer, qkv_error *error);
/** Of one that was opened, or that failed to. */
void qkvi_trainer_close(qkvi_trainer *trainer);

/**
 * Starts from a model: its tokenizer, its weights, and its sizes, which become those of the
 * options. UNSUPPORTED for one that nothing here trains; as qkv_model_open.
 */
qkv_status qkvi_fine_tune_open(qkvi_trainer *trainer, qkv_error *error);
/** Adds the files of sentence-transformers, and the folders of its modules. In fine_tune.c. */
qkv_status qkvi_fine_tune_modules(const qkvi_trainer *trainer, qkvi_files *files, qkv_error *error);
/** qkvi_checkpoint_sweep of these folders in options->out. In fine_tune.c. */
qkv_status qkvi_fine_tune_sweep(const qkvi_trainer *trainer, qkv_error *error);
/** Adds what the folder has beside its weights. */
qkv_status qkvi_fine_tune_save(const qkvi_trainer *trainer, qkvi_files *files, qkv_error *error);

/**
 * Weights of a new model: N(0, 0.02²) by a sum of eight uniform numbers, cut off at ±4.9
 * deviations; biases 0, layer norms 1 and 0. Number i of the arena is a function of (seed, i). With
 * sinusoidal positions words are N(0, 1/hidden); what GPT-2 adds to its residual stream 2 n_layers
 * times is smaller by the root of that.
 */
void qkvi_init_weights(uint64_t seed, int sinusoidal, const qkvi_param_table *table, float *params);

/**
 * The examples, the losses and the gradient of the next step, which *grads is then (step.c). A step
 * has parts, and a part has slices: trainer->sum is the sum of its slices' gradients, and
 * trainer->mean the mean of the parts'.
 */
qkv_status qkvi_train_step(qkvi_trainer *trainer, double losses[QKVI_TRAIN_LOSSES],
                           int64_t *n_tokens, const float **grads, qkv_error *error);
/** The loss of examples that are held out, as it is: without dropout or smoothing. In step.c. */
qkv_status qkvi_train_held_out(qkvi_trainer *trainer, double *loss, qkv_error *error);

/**
 * Writes model.safetensors, config.json, the tokenizer's files and the log into options->out, and
 * last train_run.txt: the line of run_fields.h. Where that is, and has the hash of the weights, the
 * run is there whole.
 */
qkv_status qkvi_trainer_save(const qkvi_trainer *trainer, qkv_error *error);

/**
 * checkpoint.safetensors in a folder: weights, both moments, the log, the number of steps done, the
 * sums, and the options and corpus that led there. load refuses a checkpoint of other options
 * (ARGUMENT, naming them: it would not be the same run), and a damaged one (FORMAT). Without a
 * checkpoint a run that options->out holds, finished, is finished.
 */
qkv_status qkvi_checkpoint_save(const qkvi_trainer *trainer, const char *folder, qkv_error *error);
/**
 * Both moments whole, where a checkpoint reads and writes them. Of moments that are shared out
 * these are the arrays of gradients, whose values are of no use between steps: gather fills them,
 * and take takes the elements of this rank from them.
 */
float *qkvi_whole_m(const qkvi_trainer *trainer);
float *qkvi_whole_v(const qkvi_trainer *trainer);
qkv_status qkvi_moments_gather(qkvi_trainer *trainer, qkv_error *error);
void qkvi_moments_take(qkvi_trainer *trainer);
qkv_status qkvi_checkpoint_load(qkvi_trainer *trainer, const char *folder, qkv_error *error);
void qkvi_checkpoint_remove(const char *folder);
/**
 * Before a run begins anew: ARGUMENT if the folder has a checkpoint of the very same run, which
 * would be lost.
 */
qkv_status qkvi_checkpoint_none(const qkvi_trainer *trainer, const char *folder, qkv_error *error);
/** Adds train_run.txt to the files of a run that is finished. */
qkv_status qkvi_finished_put(const qkvi_trainer *trainer, qkvi_files *files, qkv_error *error);

/** Removes what a killed run left half written. */
void qkvi_checkpoint_sweep(const char *folder);
/** The files that are copied from a model to fine-tune, ended by NULL. */
extern const char *const qkvi_fine_tune_files[];

/** A byte-level BPE vocabulary of what a run is trained on: for GPT-2 and BART. */

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

/**
 * What a run says of itself: the caller's callback, and the log, which holds no times, so that the
 * same run writes the same log, stopped and resumed or not. A checkpoint has the log as far as it
 * is; it becomes train_log.tsv together with the model's files.
 */

typedef struct qkvi_progress {
    int64_t first_step, n_tokens; /* tokens since the last report, in this process */
    double started, reported;     /* seconds of the monotonic clock */
} qkvi_progress;

#endif
