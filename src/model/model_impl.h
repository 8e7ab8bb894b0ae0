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
    struct qkvi_net *net; /* pointers into arena (arch/net.h); NULL: opened to be trained */
    int is_to_train;
    char **unused; /* escaped names of stored tensors that nobody asked for */
    int64_t n_unused;
    char **files; /* escaped names of the files that the weights came from; none from memory */
    int64_t n_files;
    char *warnings[QKVI_MODEL_WARNINGS]; /* one of each kind at most */
    int n_warnings;
};

/**
 * qkv_model_open of a model that is to be trained: its parameters are floats in the arena, which a
 * trainer may take, and there is no net.
 */
qkv_status qkvi_model_open_to_train(const char *path_or_name, qkv_model **model, qkv_error *error);

/** Finds out what was accepted but is odd. MEMORY. */
qkv_status qkvi_model_warn(qkv_model *model, qkv_error *error);

#endif
