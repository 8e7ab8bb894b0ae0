/**
 * What a qkv_model is. Read-only after it is opened; shared by the store, the architectures and
 * inspection.
 */
#ifndef QKVI_MODEL_IMPL_H
#define QKVI_MODEL_IMPL_H

#include "model/params.h"
#include "model/store/generation_config.h"
#include "qkv/model.h"

enum { QKVI_MODEL_WARNINGS = 2 };

struct qkv_model {
    qkv_model_info info; /* its strings are those below */
    char *source;
    qkv_tokenizer *tokenizer;
    qkv_tokenizer *target_tokenizer;   /* of encoder-decoders */
    qkvi_generation_config generation; /* of models with a language-model head */
    qkvi_param_table params;           /* made by the architecture from info */
    float *lm_bias;                    /* [target_vocab_size] added to logits; NULL: none */
    float *arena;         /* all parameters, in the table's order; ties are not stored twice */
    struct qkvi_net *net; /* pointers into arena (arch/net.h); packed weights if any */
    char **unused;        /* escaped names of stored tensors that nobody asked for */
    int64_t n_unused;
    char *warnings[QKVI_MODEL_WARNINGS]; /* one of each kind at most */
    int n_warnings;
};

/** Finds out what was accepted but is odd. MEMORY. */
qkv_status qkvi_model_warn(qkv_model *model, qkv_error *error);

#endif
