/* See objective.h. */
#include "model/train/objective.h"

const qkvi_objective *qkvi_objective_of(qkv_model_kind kind) {
    static const qkvi_objective *const objectives[] = { [QKV_MODEL_ENCODER] = &qkvi_objective_mlm,
                                                        [QKV_MODEL_DECODER] = &qkvi_objective_lm,
                                                        [QKV_MODEL_PAIR] =
                                                            &qkvi_objective_seq2seq };
    return objectives[kind];
}
