/*
 * Pictures that need no file: things on a plain, some grey stones between them, and what a picture
 * shows: "two red boats". A picture is a pure function of (seed, split, index), drawn at any size:
 * positions are shares of its side. Only sums, products and comparisons of doubles are computed, so
 * the bytes are the same everywhere.
 *
 *     one, two, three  ×  red, green, blue, yellow  ×  balls, boxes, boats, trees      48 labels
 *
 * All things of a picture are of one kind and colour, and none hides another. Of the training split
 * and of the held-out one all labels are equally likely.
 */
#ifndef QKVI_TRAIN_SHAPES_H
#define QKVI_TRAIN_SHAPES_H

#include "train/grammar/pair.h"

enum { QKVI_SHAPES_LABELS = 48, QKVI_SHAPES_HELD_OUT = 2048, QKVI_SHAPES_NAME = 32 };

/* "two red boats" */
void qkvi_shapes_name(int32_t label, char name[QKVI_SHAPES_NAME]);

/* rgb [side][side][3]; returns the label. */
int32_t qkvi_shapes_draw(uint64_t seed, qkvi_split split, int64_t index, int64_t side,
                         uint8_t *rgb);

#endif
