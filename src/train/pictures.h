/*
 * Pictures with labels as numbered examples: number `index` of a split is a pure function of (seed,
 * split, index). They are drawn (shapes.h), or those of a folder:
 *
 *     DIR/labels.tsv      a line for each picture: its file TAB its label
 *     DIR/FILE            PNG or JPEG, resized to side x side as they are read
 *
 * Of a folder every tenth picture, in the order of the file, is held out. Labels have the order in
 * which the file says them first. Read-only after they are opened.
 */
#ifndef QKVI_TRAIN_PICTURES_H
#define QKVI_TRAIN_PICTURES_H

#include "train/grammar/pair.h"

typedef struct qkvi_pictures qkvi_pictures;

/* folder NULL: drawn. IO, FORMAT, LIMIT, UNSUPPORTED, MEMORY, naming file and line. */
QKV_NODISCARD qkv_status qkvi_pictures_open(const char *folder, int64_t side,
                                            qkvi_pictures **pictures, qkv_error *error);
void qkvi_pictures_free(qkvi_pictures *pictures);

int64_t qkvi_pictures_n_labels(const qkvi_pictures *pictures);
const char *qkvi_pictures_label(const qkvi_pictures *pictures, int64_t label);
int64_t qkvi_pictures_n_held_out(const qkvi_pictures *pictures);
/* Tells these from others: FNV-1a. */
uint64_t qkvi_pictures_hash(const qkvi_pictures *pictures);

/* rgb [side][side][3]; returns the label. Cannot fail. */
int32_t qkvi_pictures_draw(const qkvi_pictures *pictures, qkvi_split split, int64_t index,
                           uint64_t seed, uint8_t *rgb);

#endif
