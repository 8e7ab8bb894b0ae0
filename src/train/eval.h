/**
 * The parts of an evaluation: blanks (masked words, judged by their admissible sets), next
 * sentences, pronoun probes. Forward passes run on batches; results do not depend on which examples
 * are in a batch. A text is evaluated in pieces (eval_pieces.c), a grammar as a whole.
 */
#ifndef QKVI_TRAIN_EVAL_H
#define QKVI_TRAIN_EVAL_H

#include "model/model_impl.h"
#include "qkv/train.h"
#include "train/corpus.h"
#include "train/examples.h"

enum { QKVI_EVAL_BATCH = 256, QKVI_PIECE_PAIRS = 32 };

/** Pairs of a text. */
typedef struct qkvi_eval_piece {
    int64_t n;
    struct {
        const char *a, *b;
        int64_t a_bytes, b_bytes; /* as qkvi_pair has them */
        bool is_next;
    } pairs[QKVI_PIECE_PAIRS];
} qkvi_eval_piece;

/** The result of one blank. */
typedef struct qkvi_judged {
    const char *slot;  /* the row of the report; lives as long as the corpus */
    double mass, loss; /* probability of the admissible set; -ln P of the word that was masked */
    bool is_single, is_right;
} qkvi_judged;

typedef struct qkvi_eval {
    qkv_ctx *ctx;
    const qkv_model *model;
    const qkvi_corpus *corpus;
    const qkvi_eval_piece *piece; /* the pairs; NULL: pairs of the corpus, which is a grammar */
    uint64_t seed;
    qkvi_net_pass *pass;
    qkvi_feed batch;
    float *hidden, *logits; /* [QKVI_EVAL_BATCH][hidden], [QKVI_EVAL_BATCH][vocab_size] */
    qkvi_judged *judged;    /* results of qkvi_eval_blanks */
    size_t n_judged, judged_capacity;
    int64_t n_next, n_next_right; /* results of qkvi_eval_next */
    qkv_eval_report *report;
} qkvi_eval;

/** The score of a row of logits: its most likely token, and mass and loss as in qkvi_judged. */
typedef struct qkvi_blank_score {
    int32_t best;
    int best_admissible;
    double mass, loss;
} qkvi_blank_score;

/** ids [n_ids]: the admissible set; target: the word that was masked. */
qkvi_blank_score qkvi_score_blank(const float *logits, int64_t vocab_size, const int32_t *ids,
                                  int64_t n_ids, int32_t target);

/** The index of the only token of a word in an encoding; -1 if it has none (cut off) or several. */
int64_t qkvi_token_of_span(const qkv_encoding *encoding, qkvi_span span);

/** Encodes a pair and cuts it to the model's length. */
qkv_status qkvi_eval_encode(const qkvi_eval *eval, const qkvi_pair *pair, qkv_encoding **encoding,
                            qkv_error *error);

/** Runs the batch and computes logits of row i at token tokens[i] of sequence i. */
qkv_status qkvi_eval_logits(qkvi_eval *eval, const int64_t *tokens, uint32_t flags,
                            qkv_error *error);

/** Writes the ids of a slot's words into ids [slot->n_words]; returns their number. */
int64_t qkvi_slot_ids(const qkvi_eval *eval, const qkvi_slot *slot, int32_t *ids);

/** ARGUMENT; UNSUPPORTED if the model has no MLM head. */
qkv_status qkvi_eval_check(const qkv_ctx *ctx, const qkv_model *model, qkv_error *error);
/** Allocates the report and buffers; what was allocated before a failure is to be freed, too. */
qkv_status qkvi_eval_make_room(qkvi_eval *eval, qkv_error *error);
/** Frees all but the report. */
void qkvi_eval_free_room(qkvi_eval *eval);

/** The pairs to evaluate. */
int64_t qkvi_eval_n_pairs(const qkvi_eval *eval);
void qkvi_eval_pair(const qkvi_eval *eval, int64_t index, qkvi_pair *pair);

/** Judge the blanks of all pairs; count next sentences. */
qkv_status qkvi_eval_blanks(qkvi_eval *eval, qkv_error *error);
qkv_status qkvi_eval_next(qkvi_eval *eval, qkv_error *error);

/** Adds a blank to the sums in the report, and its loss to *loss. Called in the order of blanks. */
qkv_status qkvi_eval_count(qkv_eval_report *report, const qkvi_judged *judged, double *loss,
                           qkv_error *error);
/** After that: divides the sums by counts, and sorts the rows. */
void qkvi_eval_means(qkv_eval_report *report, double loss);

/** Evaluates a model on a text. */
qkv_status qkvi_eval_text(qkv_ctx *ctx, const qkv_model *model, const char *text,
                          qkv_eval_report **report, qkv_error *error);

/**
 * Fills n_probes and what follows in the report. Both nullable: hits [n_layers * n_heads], in how
 * many probes each head looks at the antecedent; *chance, the share of hits of a head that looks at
 * a random content token.
 */
qkv_status qkvi_eval_probes(qkvi_eval *eval, int64_t *hits, double *chance, qkv_error *error);

/** Only the pronoun probes of a corpus, for all heads. */
qkv_status qkvi_eval_heads(qkv_ctx *ctx, const qkv_model *model, const qkvi_corpus *corpus,
                           uint64_t seed, int64_t *hits, int64_t *n_probes, double *chance,
                           qkv_error *error);

#endif
