/**
 * Evaluation, the parts of it: blanks (masked words judged by their admissible sets), next
 * sentences, pronoun probes. Forward passes run on batches; what is counted does not depend on how
 * examples fall into them. A text is evaluated in pieces (eval_pieces.c), a grammar as one.
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

/** A blank that was judged. */
typedef struct qkvi_judged {
    const char *slot; /* the row of the report; lives as long as the corpus */
    double mass, loss;
    bool is_single, is_right;
} qkvi_judged;

typedef struct qkvi_eval {
    qkv_ctx *ctx;
    const qkv_model *model;
    const qkvi_corpus *corpus;
    const qkvi_eval_piece *piece; /* where pairs come from; NULL: the corpus, which is a grammar */
    uint64_t seed;
    qkvi_net_pass *pass;
    qkvi_feed batch;
    float *hidden, *logits; /* [QKVI_EVAL_BATCH] rows of hidden and of vocab_size */
    qkvi_judged *judged;    /* by qkvi_eval_blanks */
    size_t n_judged, judged_capacity;
    int64_t n_next, n_next_right; /* by qkvi_eval_next */
    qkv_eval_report *report;
} qkvi_eval;

/** The best token of a row of logits, and probabilities: of one token, of a set. */
typedef struct qkvi_blank_score {
    int32_t best;
    int best_admissible;
    double mass, loss;
} qkvi_blank_score;

/** ids: the admissible ones; target: the word that stood there, for the loss. */
qkvi_blank_score qkvi_score_blank(const float *logits, int64_t vocab_size, const int32_t *ids,
                                  int64_t n_ids, int32_t target);

/** The only token of a word in an encoding, or -1 if it has none (cut off) or several. */
int64_t qkvi_token_of_span(const qkv_encoding *encoding, qkvi_span span);

/** Encodes a pair and cuts it to the model's length. */
qkv_status qkvi_eval_encode(const qkvi_eval *eval, const qkvi_pair *pair, qkv_encoding **encoding,
                            qkv_error *error);

/** Runs the batch and computes logits of row i at token tokens[i] of sequence i. */
qkv_status qkvi_eval_logits(qkvi_eval *eval, const int64_t *tokens, uint32_t flags,
                            qkv_error *error);

/** The ids of a slot's words, into ids of room for slot->n_words; how many. */
int64_t qkvi_slot_ids(const qkvi_eval *eval, const qkvi_slot *slot, int32_t *ids);

/** ARGUMENT; UNSUPPORTED, if the model fills no blanks. */
qkv_status qkvi_eval_check(const qkv_ctx *ctx, const qkv_model *model, qkv_error *error);
/** Makes the report and room for batches. What is there after a failure is to be freed, too. */
qkv_status qkvi_eval_make_room(qkvi_eval *eval, qkv_error *error);
/** Frees all but the report. */
void qkvi_eval_free_room(qkvi_eval *eval);

/** The pairs to evaluate. */
int64_t qkvi_eval_n_pairs(const qkvi_eval *eval);
void qkvi_eval_pair(const qkvi_eval *eval, int64_t index, qkvi_pair *pair);

/** Puts the blanks of all pairs into judged, and counts next sentences in n_next… */
qkv_status qkvi_eval_blanks(qkvi_eval *eval, qkv_error *error);
qkv_status qkvi_eval_next(qkvi_eval *eval, qkv_error *error);

/** Adds a blank to sums in the report, and to loss. Sums are made in the order of blanks. */
qkv_status qkvi_eval_count(qkv_eval_report *report, const qkvi_judged *judged, double *loss,
                           qkv_error *error);
/** Then sums become means, and rows have their order. */
void qkvi_eval_means(qkv_eval_report *report, double loss);

/** The report on a text. */
qkv_status qkvi_eval_text(qkv_ctx *ctx, const qkv_model *model, const char *text,
                          qkv_eval_report **report, qkv_error *error);

/**
 * Fills n_probes… of the report, and the head. Also, both nullable: hits [n_layers * n_heads], in
 * how many each head looks at the antecedent; chance, in which share of them a head would that
 * looks at any content token.
 */
qkv_status qkvi_eval_probes(qkvi_eval *eval, int64_t *hits, double *chance, qkv_error *error);

/** The pronoun probes of a corpus alone. */
qkv_status qkvi_eval_heads(qkv_ctx *ctx, const qkv_model *model, const qkvi_corpus *corpus,
                           uint64_t seed, int64_t *hits, int64_t *n_probes, double *chance,
                           qkv_error *error);

#endif
