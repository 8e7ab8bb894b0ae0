/* Attention, forward: the row of each class of arithmetic (attend_class.h). */
#ifndef QKVI_TMPL_ATTEND_CLASSES_H
#define QKVI_TMPL_ATTEND_CLASSES_H

#include "kernels/tmpl/attend_amx.h"
#include "kernels/tmpl/attend_small.h"

static const attend_class attend_classes[QKVI_N_CLASSES] = {
#if !ISA_SHARES
    [QKVI_CLASS_F32] = { .scores = attend_scores_of,
                         .whole = attend_scores_whole,
                         .exp = attend_exp_of,
                         .drop = dropout_row,
                         .values = attend_values,
                         .selected = attend_selected,
                         .small = small_in_floats },
#endif
    [QKVI_CLASS_DP] = { .scores = dp_scores_of,
                        .whole = dp_scores_whole,
                        .exp = dp_exp_of,
                        .drop = dp_drop_row,
                        .values = dp_values,
                        .selected = dp_selected,
                        .small = dp_small },
    [QKVI_CLASS_AMX] = { .scores = amx_scores_of,
                         .whole = amx_scores_whole,
                         .exp = dp_exp_of,
                         .drop = dp_drop_row,
                         .values = amx_values,
                         .selected = amx_selected },
    [QKVI_CLASS_AMX_TILES] = { .begin = qkvi_amx_begin,
                               .end = qkvi_amx_end,
                               .sweep = amx_sweep,
                               .scores = amx_scores_of,
                               .whole = amx_scores_whole,
                               .exp = dp_exp_of,
                               .drop = dp_drop_row,
                               .values = amx_values,
                               .selected = amx_selected },
};

/* table.h */
static bool attend_small(const qkvi_attend_small *a) {
    return attend_class_row(a->class)->small(a);
}

#endif
