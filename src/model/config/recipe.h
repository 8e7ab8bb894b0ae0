/**
 * How a folder of sentence-transformers makes a sentence's vector:
 *
 *     modules.json                       what follows the encoder, in order
 *     sentence_bert_config.json          what is done with the text: its length, lower case
 *     config_sentence_transformers.json  prompts, how many numbers a vector keeps
 *     PATH/config.json                   a module's settings; PATH/model.safetensors its weights
 *
 * Modules are Transformer, one Pooling, and any of Dense, LayerNorm, Normalize and Dropout behind
 * it. What else there may be is refused by its name. Reference: sentence-transformers 6,
 * base/model.py and the modules' own files.
 */
#ifndef QKVI_CONFIG_RECIPE_H
#define QKVI_CONFIG_RECIPE_H

#include "files/json.h"
#include "qkv/model.h"

enum { QKVI_POOLINGS = QKV_POOLING_LAST };

typedef enum qkvi_step_kind {
    QKVI_STEP_DENSE,
    QKVI_STEP_LAYER_NORM,
    QKVI_STEP_NORMALIZE
} qkvi_step_kind;

/** f in y = f(W x + b). */
typedef enum qkvi_dense_act {
    QKVI_DENSE_IDENTITY,
    QKVI_DENSE_TANH,
    QKVI_DENSE_RELU,
    QKVI_DENSE_GELU,
    QKVI_DENSE_SIGMOID,
    QKVI_DENSE_SILU
} qkvi_dense_act;

/** What happens to a vector of n_in numbers. */
typedef struct qkvi_step {
    qkvi_step_kind kind;
    int64_t n_in, n_out;
    char *name; /* its folder, for names of tensors */
    /* Dense: weight [n_out][n_in]; layer norm: gamma and beta, both [n_in] */
    float *weight, *bias; /* bias: NULL if there is none */
    qkvi_dense_act act;
    int adds_input;  /* y = f(W x + b) + R x … */
    float *residual; /* … R [n_out][n_in]; NULL: the identity */
} qkvi_step;

/** Text that stands before a text. */
typedef struct qkvi_prompt {
    char *name, *text;
    qkv_prompt shown; /* the same, as a caller sees it */
} qkvi_prompt;

typedef struct qkvi_recipe {
    int n_poolings; /* whose vectors stand side by side */
    qkv_pooling poolings[QKVI_POOLINGS];
    int leaves_prompt; /* prompts' tokens are not pooled */
    qkvi_step *steps;
    int n_steps;
    int64_t dim;  /* of the vectors that the steps make */
    int64_t kept; /* of these the first; dim: all */
    int64_t max_len;
    int lower_case; /* of the text, before the tokenizer sees it */
    qkvi_prompt *prompts;
    int64_t n_prompts, default_prompt; /* -1: none */
} qkvi_recipe;

/**
 * Without a modules.json, or with folder NULL: the mean. max_len: the longest text by the
 * tokenizer's files. Sets info's pooling, normalizes, sentence_len and sentence_dim. FORMAT, LIMIT,
 * SHAPE, UNSUPPORTED, IO, MEMORY; the sentence may be freed also then.
 */
qkv_status qkvi_recipe_read(const char *folder, int64_t max_len, qkv_model_info *info,
                            qkvi_recipe *sentence, qkv_error *error);
void qkvi_recipe_free(qkvi_recipe *sentence);

/** Names of the files beside modules.json in the model's own folder; NULL ends them. */
extern const char *const qkvi_recipe_files[];

/* ---- Parts ----------------------------------------------------------------------------------- */

/**
 * A JSON file of a folder; file becomes its path, escaped for messages; *root NULL: there is none.
 */
qkv_status qkvi_recipe_load(const char *folder, const char *name, char file[1024], json_t **root,
                            qkv_error *error);
/** UNSUPPORTED: FILE: WHAT 'VALUE' is not supported. */
qkv_status qkvi_recipe_refuse(const char *file, const char *what, const char *value,
                              qkv_error *error);

/**
 * sentence_bert_config.json and config_sentence_transformers.json: in recipe_config.c. folder NULL,
 * or of no sentence model: only the prompts that every model has.
 */
qkv_status qkvi_recipe_config(const char *folder, const qkv_model_info *info, qkvi_recipe *sentence,
                              qkv_error *error);

/**
 * A Dense or LayerNorm module of that name and n_in numbers, with its weights, as the next step: in
 * recipe_steps.c.
 */
qkv_status qkvi_recipe_add_step(const char *folder, const char *module, qkvi_step_kind kind,
                                qkvi_recipe *sentence, qkv_error *error);

#endif
