/* See objective.h. */
#include "model/train/objective.h"

const qkvi_objective *qkvi_objective_of(int arch) {
    static const qkvi_objective *const objectives[] = { [QKV_ARCH_BERT] = &qkvi_objective_mlm,
                                                        [QKV_ARCH_GPT2] = &qkvi_objective_lm,
                                                        [QKV_ARCH_ENCDEC] =
                                                            &qkvi_objective_seq2seq };
    return objectives[arch];
}
