/*
 * Attention, forward: what a class of arithmetic does at each step, by functions that know it at
 * compile time. The rows are in attend_classes.h; kernels/class.h has what is not of kernels.
 */
#ifndef QKVI_TMPL_ATTEND_CLASS_H
#define QKVI_TMPL_ATTEND_CLASS_H

#include "kernels/table.h"
#include "kernels/tmpl/gemm_tile.h"
#include "kernels/tmpl/mask_bits.h"

typedef qkvi_attend attend;

/* Keys [from, to) of a block, or rows of it. */
typedef struct attend_run {
    int from, to;
} attend_run;

/*
 * How a tile of scores in registers is finished. Where it is finished there, its maxima are begun
 * or continued.
 */
typedef enum attend_end {
    ATTEND_AS_IT_IS, /* finished: all rows see all keys */
    ATTEND_HIDE,     /* finished: sight->see */
    ATTEND_ADD,      /* finished: sight->adds, too */
    ATTEND_EDIT      /* raw, each row is edited afterwards */
} attend_end;

/* Scores of a tile from row i on and the panel of keys, stored at s. */
typedef void attend_scores_function(const attend *a, int i, const uint32_t *panel, float *s,
                                    float *max, attend_end end, const mask_sight *sight, bool begin,
                                    qkvi_ahead *ahead);
/* Of whole tiles of rows, which see the panel wholly, nothing edited; s: of row 0. */
typedef void attend_whole_function(const attend *a, attend_run rows, const uint32_t *panel,
                                   float *s, bool begin, qkvi_ahead *ahead);
/* Weights of the rows [from, to) from their scores: attend_exp.h. */
typedef void attend_exp_function(const attend *a, int from, int to, float factor);

typedef struct qkvi_attend_class {
    void (*begin)(void), (*end)(void); /* around a block; NULL: nothing */
    /* Before a panel of keys, from key j of the block from key0 on; NULL: nothing. */
    void (*sweep)(const attend *a, int64_t key0, int64_t j);
    attend_scores_function *const *scores; /* by rows of the tile */
    attend_whole_function *whole;
    attend_exp_function *const *exp; /* by attend_kind */
    /* Dropped weights of n keys of row i from key j on become 0; n a multiple of 32. */
    void (*drop)(const qkvi_dropout *d, int64_t i, int64_t j, int n, float *p);
    /* O = O alpha + P V of the block of keys from key0 on. */
    void (*values)(const attend *a, int64_t key0, int64_t end);
    /* c + P V over those of 32 keys that take part. */
    vf (*selected)(uint32_t take, const float *p, const uint32_t *v, vf c);
    bool (*small)(const qkvi_attend_small *a); /* NULL: as kernels/class.h says */
} attend_class;

/*
 * The rows are in the object of attention alone, its table has them for the other parts. Products
 * of floats may be those of another set (isa_table.h).
 */
extern const qkvi_attend_kernels ISA(attend), SHARED(attend);

V_INLINE const attend_class *attend_class_row(qkvi_arithmetic class) {
    return &(class == QKVI_CLASS_F32 ? &SHARED(attend) : &ISA(attend))->classes[class];
}
V_INLINE const attend_class *attend_class_of(const attend *a) { return attend_class_row(a->class); }

#endif
