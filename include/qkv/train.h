/**
 * qkv: training of models, and their evaluation.
 *
 *     qkv_train_options options = qkv_train_options_init();
 *     options.text = "sentences.txt";
 *     options.out = "model";
 *     status = qkv_train(ctx, &options, &error);
 *
 * Experimental: see docs/api.md, Stability.
 */
#ifndef QKV_TRAIN_H
#define QKV_TRAIN_H

#include "qkv/model.h"
#include "qkv/ranks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Training -------------------------------------------------------------------------------- */

/**
 * Progress of a training run. Losses are means since the last report, and rates are
 * over the time since then. The library allocates it, and it may grow at its end.
 */
typedef struct qkv_train_report {
    qkv_model_kind kind;
    int64_t step, n_steps;
    /** The sum of the next two, or lm_loss. */
    double loss;
    /** Of an encoder. */
    double mlm_loss, nsp_loss;
    /** Of the others, with label smoothing, if there is any. */
    double lm_loss;
    /**
     * Of the first 128 examples that are held out, made alike, without dropout or smoothing. A text
     * holds nothing out: they are its first lines, which are trained on, too.
     */
    double held_out_loss;
    double learning_rate, tokens_per_second, seconds, seconds_left;
    /** Of a model of images: 1; its loss, and the share of held-out images that it labels right. */
    int of_images;
    double label_loss, held_out_right;
} qkv_train_report;

/** Made by qkv_train_options_init(), which sets the defaults. */
typedef struct qkv_train_options {
    size_t struct_size;

    /* Files. */

    /**
     * A text file, or a grammar file: exactly one of the two, or of those for images (shapes,
     * images). A text is UTF-8, at most 1 GiB, with an example a line, of at most 1 MiB; blank
     * lines are skipped. What a line is depends on kind: see qkv_train.
     */
    const char *text, *grammar;
    /** The folder to write. */
    const char *out;
    /**
     * NULL: begin anew. Otherwise the folder with the checkpoint of a run that was stopped, usually
     * the same as out. In another folder the checkpoint is left as it is.
     */
    const char *resume;
    /** NULL, or a model to fine-tune, as qkv_model_open takes it. */
    const char *from;

    /* The model. With `from`, all but max_len are those of that model. */

    qkv_model_kind kind;
    int64_t n_layers, n_heads, hidden, intermediate, vocab_size, max_len;
    /** Of a pair; 0: as many as n_layers. */
    int64_t n_decoder_layers;
    /** Of an encoder; 1: sinusoids instead of learned positions. */
    int sinusoidal_positions;

    /* The run. */

    /** Steps; sequences in a part of a step; parts of a step (0: 1); steps of linear warm-up. */
    int64_t n_steps, batch, accumulate, warmup;
    /** Steps; 0: never. */
    int64_t checkpoint_every, report_every;
    /** Of AdamW; eps 0: 1e-8. weight_decay is decoupled, and of matrices only. */
    double learning_rate, weight_decay, beta1, beta2, eps;
    /** Gradients are scaled to this norm where theirs is larger; 0: never. */
    double clip;
    /** Of embeddings, of weights of attention, and of what blocks add. */
    double dropout;
    /** Of targets of language models (Szegedy et al. 2016). */
    double label_smoothing;
    uint64_t seed;
    /** What linear layers compute in. */
    qkv_model_weights compute;

    /* The caller. */

    /**
     * NULL, or called every report_every steps with a report, which lives until it returns. If it
     * returns non-zero, the run stops with QKV_ERR_CANCELLED.
     */
    int (*report)(void *user, const qkv_train_report *so_far);
    void *report_user;
    /** NULL, or read after each step: non-zero stops with QKV_ERR_CANCELLED. */
    const int *cancel;

    /**
     * NULL: "bert", "gpt2" or "bart", by kind. Or "llama", of a decoder: RMSNorm before each part,
     * rotary positions, a gated feed-forward of SiLU, no biases, words tied to the head.
     */
    const char *architecture;
    /** Of "llama": key/value heads, a divisor of n_heads; 0: n_heads. */
    int64_t n_kv_heads;
    /** Slices of each part of a step, at most batch; 0: 1. */
    int64_t n_slices;
    /** NULL: this process alone. Otherwise at most n_slices ranks, which all call qkv_train. */
    const qkv_ranks *ranks;
    /** 1: ranks share out the moments of AdamW. 0: each has all of them. */
    int share_moments;
    /**
     * 1: a model of images is trained on pictures that are drawn: things, their colours and how
     * many.
     */
    int shapes;
    /**
     * NULL, or a folder of images for such a model: its file labels.tsv has a line for each, FILE
     * TAB LABEL. Every tenth is held out.
     */
    const char *images;
    /** Of a model of images, in pixels: the side of what it reads, and that of a patch. */
    int64_t image_size, patch_size;
} qkv_train_options;

/** Returns the defaults: a small encoder, and a rate that suits it. */
static inline qkv_train_options qkv_train_options_init(void) {
    qkv_train_options made;
    memset(&made, 0, sizeof made);
    made.struct_size = sizeof made;
    made.n_layers = made.n_heads = 4;
    made.hidden = 128;
    made.intermediate = 512;
    made.vocab_size = 2000;
    made.max_len = 32;
    made.n_steps = 3000;
    made.batch = 128;
    made.accumulate = 1;
    made.warmup = 200;
    made.checkpoint_every = 100;
    made.report_every = 20;
    made.learning_rate = 1.5e-3;
    made.weight_decay = 0.01;
    made.beta1 = 0.9;
    made.beta2 = 0.98;
    made.eps = 1e-8;
    made.clip = 1;
    made.seed = 1;
    made.n_slices = 1;
    made.image_size = 48;
    made.patch_size = 8;
    return made;
}

/**
 * Trains a model: AdamW, linear warm-up and decay, gradients clipped by their norm. The same
 * options give the same bits for any number of threads and any instruction set.
 *
 *   QKV_MODEL_ENCODER  a BERT, for masked words (15 %, of which 80 % [MASK], 10 % random, 10 %
 *                      kept) and next sentences, with WordPiece. A line of the text is a sentence,
 *                      or sentence TAB following sentence.
 *   QKV_MODEL_DECODER  a GPT-2, or by `architecture` a Llama, with byte-level BPE. A line is a
 *                      document; of a grammar as many sentences as fit: <|endoftext|> and its
 *                      tokens, cut to max_len.
 *   QKV_MODEL_PAIR     a BART, with byte-level BPE. A line is source TAB target; QKV_ERR_FORMAT,
 *                      naming it, for one that is not.
 *   shapes, images   a ViT that predicts the label of an image; kind is that of an encoder. Images
 *                are resized to image_size. The folder has a preprocessor_config.json in place of a
 *                tokenizer.
 *   from         takes kind, sizes and vocabulary from the model, and copies its configuration.
 *                QKV_ERR_UNSUPPORTED for a model without an MLM or LM head.
 *   accumulate   The gradient of a step is the mean of those of its parts, by their numbers of
 *                targets, in their order. Memory is that of one part.
 *   n_slices     A part is cut into slices: slice i has its sequences batch i / n_slices … batch
 *                (i + 1) / n_slices - 1. The objective is that of the part: gradients of slices,
 *                each divided by the targets of the part, are added in their order, in f32. So
 *                other numbers of slices differ by rounding, and drop other values. Memory is that
 *                of one slice, and one more array of gradients.
 *   ranks        Each calls with the same options, and needs the same files. Rank r computes the
 *                slices r, r + n_ranks, …; gradients are added in the order of slices, so the bytes
 *                are those of one process. Rank 0 alone writes. A failure of one rank is that of
 *                all, and the message names the rank; report and cancel of any rank stop all. Any
 *                number of ranks may resume. QKV_ERR_ARGUMENT where options or files differ. Each
 *                rank keeps all weights, moments and gradients, and one array of gradients more.
 *   share_moments
 *                Rank r keeps the moments of its elements alone, 1/n_ranks of them, and changes
 *                those weights; then each gives its weights to all (ZeRO stage 1, Rajbhandari et
 *                al. 2020, section 5.1). The bytes are the same, in checkpoints, too. It costs
 *                one more exchange of all weights in a step, two for a checkpoint.
 *   compute      bf16: the three products of each linear layer, heads included, are of both factors
 *                rounded to bf16, to nearest even, with sums in f32 in the order of the class. An
 *                element differs by at most 2^-7 sum |a| |b| from that in f32 (first order).
 *                Everything else is f32, and so is the model that is written. A class has the same
 *                bits everywhere; without its instruction it is slow. A checkpoint names the class,
 *                and goes on in no other.
 *   The folder   config.json, the tokenizer's files and model.safetensors, as transformers reads
 *                them; train_log.tsv; train_run.txt, which says what run it was. They are written
 *                together when the run is done. Until then the folder holds what it held.
 *   Stopping     A run that report or cancel stopped, or that was killed, leaves a checkpoint in
 *                out. With resume naming that folder and otherwise the same options, qkv_train
 *                continues from it and ends with the same bits. If the folder holds this run
 *                finished, nothing is computed or reported.
 *
 * @return QKV_OK; QKV_ERR_ARGUMENT, naming what differs, where a checkpoint is of another run, or
 *         of this run without resume; other errors name the option, or the file and the line.
 */
QKV_API QKV_NODISCARD qkv_status qkv_train(qkv_ctx *ctx, const qkv_train_options *options,
                                           qkv_error *error);

/* ---- Evaluation ------------------------------------------------------------------------------ */

/** One line of an evaluation: blanks of one slot type. It may grow at its end. */
typedef struct qkv_eval_row {
    char slot[48];
    int64_t n_blanks, n_top1_admissible, n_single, n_top1_single;
    /** The mean probability on the admissible set. */
    double mass;
} qkv_eval_row;

/** The library allocates it, and it may grow at its end. */
typedef struct qkv_eval_report {
    qkv_eval_row *total;
    /** [n_rows], by the names of their slots. */
    qkv_eval_row **rows;
    int64_t n_rows;
    double mlm_loss;
    /** Next sentences. */
    int64_t n_pairs, n_pairs_right;
    /** Pronoun probes. */
    int64_t n_probes, n_probes_right;
    /** The head that is chosen on the even probes, and how it does on the odd ones. */
    int64_t head_layer, head_index;
    int64_t n_head_probes, n_head_probes_right;
} qkv_eval_report;

/**
 * Masks every token of held-out sentences once: of a text file, or those that a grammar holds out.
 */
QKV_API QKV_NODISCARD qkv_status qkv_eval(qkv_ctx *ctx, const qkv_model *model, const char *text,
                                          const char *grammar, uint64_t seed,
                                          qkv_eval_report **report, qkv_error *error);
QKV_API void qkv_eval_report_free(qkv_eval_report *report);

/**
 * The evaluation of a text in pieces, which any number of processes may measure. The report has the
 * bits of qkv_eval. One process reads the text and makes the report; each has a model and its own
 * qkv_eval_work. How bytes get from one to the other is up to the caller. A process alone:
 *
 *     for (index = 0; qkv_eval_piece(work, index, &piece, &n, NULL) == QKV_OK && piece; index++)
 *         if (qkv_eval_measure(work, piece, n, &answer, &n_answer, NULL) != QKV_OK ||
 *             qkv_eval_take(work, answer, n_answer, NULL) != QKV_OK)
 *             break;
 *     status = qkv_eval_finish(work, &report, &error);
 */
typedef struct qkv_eval_work qkv_eval_work;

/**
 * Opens an evaluation. ctx and model must outlive it.
 *
 * @param model  an encoder that fills blanks.
 * @param text   a file of lines: a sentence, or two with a tab between. NULL: the process only
 *               measures pieces.
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_UNSUPPORTED for another model; QKV_ERR_IO;
 *         QKV_ERR_FORMAT and QKV_ERR_LIMIT, with the line; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_eval_open(qkv_ctx *ctx, const qkv_model *model,
                                               const char *text, qkv_eval_work **work,
                                               qkv_error *error);

/**
 * Gives a piece of the text as bytes.
 *
 * @param index  from 0.
 * @param piece  [n_bytes]: belongs to work, until the next call. NULL: there is no such piece.
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_eval_piece(qkv_eval_work *work, int64_t index, char **piece,
                                                size_t *n_bytes, qkv_error *error);

/**
 * Measures a piece. Needs no text, and knows nothing of other pieces.
 *
 * @param answer  [n_answer]: bytes for qkv_eval_take on a processor of the same byte order. They
 *                belong to work, until the next call.
 * @return QKV_OK; QKV_ERR_ARGUMENT, also if the model has no row for a token; QKV_ERR_FORMAT, if
 *         the bytes are no piece; QKV_ERR_MEMORY; the errors of a run of the model.
 */
QKV_API QKV_NODISCARD qkv_status qkv_eval_measure(qkv_eval_work *work, const char *piece,
                                                  size_t n_bytes, char **answer, size_t *n_answer,
                                                  qkv_error *error);

/**
 * Adds an answer to the report. Answers must come in the order of pieces, each once.
 *
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_FORMAT, if the bytes are no answer, and then nothing
 *         is added; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_eval_take(qkv_eval_work *work, const char *answer,
                                               size_t n_bytes, qkv_error *error);

/**
 * Gives the report, which the caller frees, once.
 *
 * @return QKV_OK; QKV_ERR_ARGUMENT, also at the second call.
 */
QKV_API QKV_NODISCARD qkv_status qkv_eval_finish(qkv_eval_work *work, qkv_eval_report **report,
                                                 qkv_error *error);
QKV_API void qkv_eval_work_free(qkv_eval_work *work);

/** How much of a text a grammar says. Made by qkv_sentence_score_init(). */
typedef struct qkv_sentence_score {
    size_t struct_size;
    /** Sentences that end, and those of them that the grammar says. */
    int64_t n_sentences, n_said;
    /** Of the latter: those that training on the grammar never says. */
    int64_t n_held_out;
    /** Lines that end within a sentence, which is not counted. */
    int64_t n_unfinished;
} qkv_sentence_score;
QKV_DEFINE_INIT(qkv_sentence_score)

/**
 * A sentence, not terminated. said: 0 not of the grammar, 1 held out from training, 2 of training.
 */
typedef void qkv_sentence_visit(void *user, const char *sentence, size_t n_bytes, int said);

/**
 * Checks text, such as a model has written, against a grammar (docs/grammar.md), word by word.
 * Capital letters are ignored. A sentence is right if it is one of the grammar, or the first half
 * of one of its pairs. A second half is right directly after its first.
 *
 * @param grammar  a grammar file.
 * @param text     a file of UTF-8: any number of sentences in a line, each ending with . ? or !.
 * @param visit    NULL, or called for every sentence that is counted, in order.
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_VERSION; QKV_ERR_IO; QKV_ERR_FORMAT, with the line;
 *         QKV_ERR_LIMIT; QKV_ERR_MEMORY. Memory: both files, and 24 bytes for each sentence of the
 *         longest line.
 */
QKV_API QKV_NODISCARD qkv_status qkv_eval_sentences(const char *grammar, const char *text,
                                                    qkv_sentence_visit *visit, void *user,
                                                    qkv_sentence_score *score, qkv_error *error);

#ifdef __cplusplus
}
#endif
#endif
