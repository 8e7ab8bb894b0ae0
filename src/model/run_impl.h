/* What a qkv_run is. A run owns the pass that computed it; it never changes once it is made. */
#ifndef QKVI_MODEL_RUN_IMPL_H
#define QKVI_MODEL_RUN_IMPL_H

#include "model/arch/net.h"
#include "model/cuts.h"

/* How a layer makes scores, and which keys its queries see. */
typedef struct qkvi_run_layer {
    float scale, softcap;
    int64_t window_left, window_right;   /* -1: no bound */
    const float *turns;                  /* [n_rows][turned] of the pass; NULL: none */
    int64_t turned;                      /* channels of a head */
    float length;                        /* of a turn's cosine and sine: their factor */
    const qkvi_distance_bias *distances; /* that bias scores; NULL */
    const float *alibi;                  /* [n_heads] slopes; NULL */
} qkvi_run_layer;

/* One attention of all layers; n_layers 0: the run has none of that kind. */
typedef struct qkvi_run_part {
    int64_t n_layers, n_heads, n_kv_heads, head_dim;
    int64_t n_rows, n_keys; /* of the whole batch */
    qkvi_run_layer *layers; /* [n_layers] */
    bool causal;
    float *q; /* [n_layers][n_rows][n_heads head_dim], head by head in each input; or NULL */
    float *k; /* [n_layers][n_keys][n_kv_heads head_dim] */
} qkvi_run_part;

struct qkv_run {
    const qkv_model *model; /* to compare only: the model may be gone */
    const struct qkvi_kernels *kernels;
    qkvi_net_pass *pass;
    int64_t n_batch, hidden, n_layers; /* n_layers: of the first stack */
    bool is_pair;
    int64_t *lengths, *decoder_lengths; /* [n_batch]; the latter of pairs */
    qkvi_run_part parts[QKV_CROSS + 1]; /* by qkv_attention_kind */
    qkvi_cuts cuts;                     /* that the pass points to */
};

/* index in [0, n), or an error that names it */
static inline qkv_status qkvi_check_index(const char *name, int64_t index, int64_t n,
                                          qkv_error *error) {
    if (index >= 0 && index < n) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s = %lld is not between 0 and %lld", name,
                          (long long)index, (long long)n - 1);
}

/* Copies what the pass kept of q and k into the parts. MEMORY. */
qkv_status qkvi_run_capture(const qkvi_net *net, qkvi_pool *pool, qkv_run *run, qkv_error *error);

/* Logits of the classes of an input, of its ids [n_rows] and last states [n_rows][hidden]. */
qkv_status qkvi_model_classify(qkv_ctx *ctx, const qkv_model *model, int64_t n_rows,
                               const int32_t *ids, const float *hidden, float *logits,
                               qkv_error *error);

/* Refuses NULL, a run of another model, and b that is not one of its inputs. */
qkv_status qkvi_run_check(const qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                          const void *out, const char *name, qkv_error *error);

/* Are queries causal as the model is, not because the caller asked (qkv_run_options)? */
bool qkvi_run_decodes(const qkv_run *run, qkv_attention_kind which);

/* n_rows rows of qkv_run_weights from row `first` on, with its bits: weights [n_rows][n_keys]. */
qkv_status qkvi_run_weight_rows(const qkv_run *run, qkv_attention_kind which, int64_t b,
                                int64_t layer, int64_t head, int64_t first, int64_t n_rows,
                                float *weights, qkv_error *error);

#endif
