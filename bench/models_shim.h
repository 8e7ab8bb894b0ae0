/* What bench/models.py calls: models_shim.c and models_steps.c. */
#ifndef QKV_BENCH_MODELS_SHIM_H
#define QKV_BENCH_MODELS_SHIM_H

#include <qkv/model.h>

#include "suite/peak.h"

struct qkvi_decoder;

struct shim {
    qkv_ctx *ctx;
    qkv_model *model;
    qkv_run *run;
    struct qkvi_decoder *decoder;
    float *logits; /* of the decoder's last token */
    int n_threads;
    struct peak product, read; /* read: made when it is first measured */
    qkv_error error;
};

#pragma GCC visibility push(default)

struct shim *model_open(const char *folder, int n_threads, int weights, char *why,
                        size_t why_bytes);
void model_close(struct shim *shim);
const char *model_run(struct shim *shim, int64_t n_batch, int64_t len, int32_t *ids);
const char *model_see(struct shim *shim, int64_t n_batch, int64_t side, const float *pixels,
                      int measured);
const float *model_hidden(const struct shim *shim, int64_t b);
/* The same of an encoder-decoder, which reads targets [n_batch][target_len] besides. */
const char *model_run_pairs(struct shim *shim, int64_t n_batch, int64_t len, int32_t *ids,
                            int64_t target_len, int32_t *target_ids);
const float *model_target_hidden(const struct shim *shim, int64_t b);
double model_peak(struct shim *shim, int read, double seconds);

/* Decoding, token after token: models_steps.c. */
int model_begin(struct shim *shim, int64_t max_len);
int model_prompt(struct shim *shim, int64_t n, const int32_t *ids);
int model_steps(struct shim *shim, int64_t n, const int32_t *ids);
const float *model_logits(const struct shim *shim);
void model_end(struct shim *shim);
int model_decode(struct shim *shim, int64_t n, int64_t n_new, int32_t *ids);

/* A model and nothing else; NULL: it cannot be opened. */
qkv_model *weights_open(const char *folder, int weights);
void weights_close(qkv_model *model);

struct train;
struct train *train_open(const char *folder, int n_threads, int weights);
void train_close(struct train *train);
double train_step(struct train *train, int64_t n, int64_t len, const int32_t *ids);

#pragma GCC visibility pop

#endif
