/* A text file as pairs: one sentence per line, or sentence TAB following sentence. */
#ifndef QKV_MODEL_TRAIN_CORPUS_TEXT_H
#define QKV_MODEL_TRAIN_CORPUS_TEXT_H

#include "model/train/corpus.h"

typedef struct qkvi_text qkvi_text;

QKV_NODISCARD qkv_status qkvi_text_open(const char *path, qkvi_text **text, qkv_error *error);
void qkvi_text_free(qkvi_text *text);
/* FNV-1a of the file's bytes. */
uint64_t qkvi_text_hash(const qkvi_text *text);
int64_t qkvi_text_n_lines(const qkvi_text *text);
const char *qkvi_text_line(const qkvi_text *text, int64_t index, int64_t *bytes);
/* Each line as it is, then each line with a TAB with the second half of another. */
int64_t qkvi_text_n_pairs(const qkvi_text *text);
void qkvi_text_pair(const qkvi_text *text, qkvi_split split, int64_t index, uint64_t seed,
                    qkvi_pair *pair);

/* Lines as they are: of the training split drawn at random, held out one after another. */
int64_t qkvi_text_draw(const qkvi_text *text, qkvi_split split, int64_t index, uint64_t seed);
/* The two halves of a line. */
void qkvi_text_halves(const qkvi_text *text, int64_t line, qkvi_pair *pair);
/* FORMAT, naming it: a line lacks a TAB or the text on one side of it. */
QKV_NODISCARD qkv_status qkvi_text_check_tabs(const qkvi_text *text, qkv_error *error);

#endif
