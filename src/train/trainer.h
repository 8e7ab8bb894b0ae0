/**
 * A training run. Everything random is a pure function of the seed and an index (of a weight, of an
 * example), and every sum has a fixed order. So the result depends only on the options, and a run
 * that was stopped and resumed gives the same result.
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
 * The training objective of each architecture: the table of functions that the trainer calls.
 *
 *   bert     masked words and next sentences                    objective_mlm.c
 *   gpt2     the next token of a document                       objective_lm.c
 *   encdec   the next token of a target, given its source       objective_seq2seq.c
 *   vit      the label of an image                              objective_images.c
 *
 * A model to fine-tune has its own vocabulary and sizes (fine_tune.c); of these functions only
 * `check` and `example` are then called.
 */

struct qkvi_trainer;

typedef struct qkvi_objective {
    const char *const *losses; /* names in train_log.tsv and in messages; NULL at the end */
    qkvi_example_make *example;

    /** Refuses a corpus that does not fit the objective. Nullable. */
    qkv_status (*check)(const struct qkvi_trainer *trainer, qkv_error *error);
    /**
     * Makes the tokenizer of a new model from the corpus. NULL: there is none (images). ARGUMENT,
     * FORMAT, LIMIT, MEMORY.
     */
    qkv_status (*make_vocabulary)(struct qkvi_trainer *trainer, qkv_error *error);
    qkv_status (*save_vocabulary)(const struct qkvi_trainer *trainer, qkvi_files *files,
                                  qkv_error *error);
    /** Sets the fields of a new model's info that depend on the objective. */
    void (*fill_info)(const struct qkvi_trainer *trainer, qkv_model_info *info);
} qkvi_objective;

extern const qkvi_objective qkvi_objective_mlm, qkvi_objective_lm, qkvi_objective_seq2seq,
    qkvi_objective_images;

const qkvi_objective *qkvi_objective_of(qkv_model_kind kind);

/** Whether a model of images is trained. */
static inline bool qkvi_trains_images(const qkv_train_options *o) { return o->shapes || o->images; }

enum { QKVI_HELD_OUT_PAIRS = 128 }; /* pairs of the held-out loss in each report */
enum { QKVI_TRAIN_LOSSES = 2 };     /* most losses of an objective */

/**
 * Sums since the last report. Checkpoints have them, too, so that reports do not depend on where a
 * run was stopped.
 */
typedef struct qkvi_train_sums {
    int64_t n_steps, n_tokens;
    double losses[QKVI_TRAIN_LOSSES]; /* sums over steps of the mean losses of each step */
} qkvi_train_sums;

typedef struct qkvi_trainer {
    qkv_ctx *ctx;
    /* A copy, with the sizes of a model to fine-tune; compute is a class, not QKV_WEIGHTS_BF16. */
    qkv_train_options *options;
    const qkvi_objective *objective;
    qkvi_corpus *corpus;
    qkvi_pictures *pictures; /* in place of a corpus, of models of images */
    char *vocab;             /* the bytes of vocab.txt: BERT's */
    size_t vocab_bytes;
    qkvi_bpe_vocab bpe;                          /* GPT-2's, BART's */
    qkv_tokenizer *tokenizer, *target_tokenizer; /* target_tokenizer NULL: the same */
    char *from;             /* the folder of a model to fine-tune, or its GGUF file, or NULL */
    struct qkvi_gguf *gguf; /* that file, or NULL */
    uint64_t from_hash;     /* of the weights in it; 0: there is none */
    qkv_model_info info;
    qkvi_param_table table;
    float *params, *grads; /* arenas of the table */
    float *m, *v;          /* moments; with shares_moments only of this rank's elements */
    bool shares_moments;
    float *lm_bias;      /* a bias of logits that is not trained: some Marian models have one */
    float *positions[2]; /* stored in place of sinusoids, and not trained; NULL */
    float *sum;          /* of the gradients of a part's slices, if it has several */
    float *mean;         /* of the gradients of a step's parts, if it has several */
    qkvi_peers ranks;    /* the ranks that share the run, or this one alone */
    qkvi_net *weights, *gradients;
    qkvi_net_pass *pass;
    qkvi_adamw adamw;
    qkvi_examples examples;
    qkvi_feed batch;
    int64_t step; /* steps done */
    qkvi_train_sums sums;
    qkvi_growing log; /* the lines of train_log.tsv so far */
    bool is_finished; /* to be resumed, but the stored run is at its end already */
} qkvi_trainer;

/** Is a new model to be a Llama? */
static inline bool qkvi_trains_llama(const qkv_train_options *o) {
    return o->architecture && strcmp(o->architecture, "llama") == 0;
}

/** The first token of a document: bos, or eos if the model has no bos (Qwen). */
static inline int64_t qkvi_begin_id(const qkv_model_info *info) {
    return info->bos_id >= 0 ? info->bos_id : info->eos_id;
}

/** Checks options. ARGUMENT, SHAPE. */
qkv_status qkvi_train_options_check(const qkv_train_options *options, qkv_error *error);

/** Opens a trainer, in which ctx and options are set and all else is 0; resumes on request. */
qkv_status qkvi_trainer_open(qkvi_trainer *trainer, qkv_error *error);
/** Makes the folder options->out, and removes temporary files that a killed run left there. */
qkv_status qkvi_trainer_folder(const qkvi_trainer *trainer, qkv_error *error);
/** Frees a trainer, also one whose opening failed. */
void qkvi_trainer_close(qkvi_trainer *trainer);

/**
 * Takes tokenizer, weights and sizes from the model of options->from. UNSUPPORTED if no objective
 * trains such a model; errors of qkv_model_open.
 */
qkv_status qkvi_fine_tune_open(qkvi_trainer *trainer, qkv_error *error);
/** Adds the files of sentence-transformers, and of the folders of its modules. In fine_tune.c. */
qkv_status qkvi_fine_tune_modules(const qkvi_trainer *trainer, qkvi_files *files, qkv_error *error);
/** qkvi_checkpoint_sweep of the folders of modules in options->out. In fine_tune.c. */
qkv_status qkvi_fine_tune_sweep(const qkvi_trainer *trainer, qkv_error *error);
/** Adds the files of trainer->from, except its weights. */
qkv_status qkvi_fine_tune_save(const qkvi_trainer *trainer, qkvi_files *files, qkv_error *error);

/**
 * Draws the weights of a new model: N(0, 0.02²), approximated by a sum of eight uniform numbers,
 * which ends at ±4.9 deviations; biases 0, layer norms 1 and 0. Element i of the arena is a
 * function of (seed, i). With sinusoidal positions word embeddings are N(0, 1/hidden). In GPT-2 the
 * projections that add to the residual stream are divided by sqrt(2 n_layers).
 */
void qkvi_init_weights(uint64_t seed, int sinusoidal, const qkvi_param_table *table, float *params);

/**
 * Makes the examples, losses and gradients of the next step (step.c). A step consists of parts, and
 * a part of slices: the gradient of a part is the sum of those of its slices (trainer->sum), and
 * *grads the mean of those of the parts (trainer->mean).
 */
qkv_status qkvi_train_step(qkvi_trainer *trainer, double losses[QKVI_TRAIN_LOSSES],
                           int64_t *n_tokens, const float **grads, qkv_error *error);
/**
 * The loss of held-out examples, without dropout and label smoothing; of images also the share that
 * is labelled right. In step.c.
 */
qkv_status qkvi_train_held_out(qkvi_trainer *trainer, double *loss, double *right,
                               qkv_error *error);

/**
 * Writes model.safetensors, config.json, the tokenizer's files and the log into options->out, and
 * train_run.txt, the line of run_fields.h, as the last file. A folder that has it, with the hash of
 * the weights, has a complete result.
 */
qkv_status qkvi_trainer_save(const qkvi_trainer *trainer, qkv_error *error);

/**
 * checkpoint.safetensors in a folder: weights, both moments, the log, the number of steps done, the
 * sums, the options and the hash of the corpus. qkvi_checkpoint_load refuses one of other options
 * (ARGUMENT, naming them) and a damaged one (FORMAT). If there is none, but options->out has the
 * complete result of the same run, it sets is_finished.
 */
qkv_status qkvi_checkpoint_save(const qkvi_trainer *trainer, const char *folder, qkv_error *error);
/**
 * Both moments of all elements, for checkpoints. If ranks share the moments, these are the arrays
 * of gradients, which are not needed between steps: qkvi_moments_gather fills them, and
 * qkvi_moments_take copies the elements of this rank from them.
 */
float *qkvi_whole_m(const qkvi_trainer *trainer);
float *qkvi_whole_v(const qkvi_trainer *trainer);
qkv_status qkvi_moments_gather(qkvi_trainer *trainer, qkv_error *error);
void qkvi_moments_take(qkvi_trainer *trainer);
qkv_status qkvi_checkpoint_load(qkvi_trainer *trainer, const char *folder, qkv_error *error);
void qkvi_checkpoint_remove(const char *folder);
/**
 * To be called when a run is not resumed: ARGUMENT if the folder has a checkpoint of the same run,
 * which would be overwritten.
 */
qkv_status qkvi_checkpoint_none(const qkvi_trainer *trainer, const char *folder, qkv_error *error);
/** Adds train_run.txt to the files of a run that is finished. */
qkv_status qkvi_finished_put(const qkvi_trainer *trainer, qkvi_files *files, qkv_error *error);

/** Removes temporary files that a killed run left. */
void qkvi_checkpoint_sweep(const char *folder);
/** The files that are copied from a model to fine-tune; NULL at the end. */
extern const char *const qkvi_fine_tune_files[];

/* ---- Byte-level BPE vocabularies, for GPT-2 and BART ----------------------------------------- */

/** Counts the words of the texts that examples are made of. */
typedef qkv_status qkvi_count_texts(const qkvi_trainer *trainer, qkvi_counter *words,
                                    qkv_error *error);

/** Makes trainer->bpe and the tokenizer. ARGUMENT, FORMAT, LIMIT, MEMORY. */
qkv_status qkvi_bpe_vocabulary_make(qkvi_trainer *trainer, const qkvi_bpe_style *style,
                                    qkvi_count_texts *count, qkv_error *error);
qkv_status qkvi_bpe_vocabulary_save(const qkvi_trainer *trainer, qkvi_files *files,
                                    qkv_error *error);

/** The id of a special token of the style. */
int32_t qkvi_bpe_vocabulary_id(const qkvi_trainer *trainer, const char *token);

/**
 * Reports of a run, to the caller's callback and to the log. The log has no times, so that the same
 * run writes the same log, stopped and resumed or not. A checkpoint has the log so far;
 * qkvi_trainer_save writes it as train_log.tsv.
 */

typedef struct qkvi_progress {
    int64_t first_step, n_tokens; /* tokens since the last report, in this process */
    double started, reported;     /* seconds of the monotonic clock */
} qkvi_progress;

#endif
