/**
 * qkv effects: what a head is worth for a prediction, and what each layer would predict.
 *
 *     qkv_effects request = qkv_effects_init();
 *     request.head = QKV_HEAD_MASKED;
 *     request.n_places = 1, request.positions = &mask, request.words = &word;
 *     request.n_sets = 1, request.heads = (int64_t[]){ 5 };
 *     double log_p[2];
 *     if (qkv_inspect_effects(ctx, model, tokens, &request, log_p, NULL, &error) == QKV_OK)
 *         printf("without head 5: %+g nats\n", log_p[1] - log_p[0]);
 *
 * Weights show where a head looks, not what follows from it. An ablation shows that: the model runs
 * again with what the head gives replaced, and all else follows.
 *
 * Experimental: see docs/api.md, Stability.
 */
#ifndef QKV_EFFECTS_H
#define QKV_EFFECTS_H

#include "qkv/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The request: which words, and which sets of heads are ablated. Made by qkv_effects_init(). A
 * head is layer * n_heads + head, of the attention `which`.
 */
typedef struct qkv_effects {
    size_t struct_size;
    /* Whose heads are ablated. */
    qkv_attention_kind which;
    /* What the decoder over an encoder reads, as `targets` of qkv_run_options; NULL otherwise. */
    const qkv_encoding *target;
    /* The head that predicts words or classes, and how many of these are measured. */
    qkv_word_head head;
    int64_t n_places;
    /*
     * [n_places]: positions as of qkv_model_logits, and the word at each. Of QKV_HEAD_LABEL words
     * are classes of the input, and positions are NULL.
     */
    const int64_t *positions;
    const int32_t *words;
    /*
     * NULL: heads has n_sets heads, each a set of its own. Otherwise set s has the heads
     * heads[ends[s - 1]] to heads[ends[s] - 1]; it may be empty.
     */
    int64_t n_sets;
    const int64_t *ends;
    const int64_t *heads;
    /*
     * What ablated heads give instead. Both NULL: 0. means: [n_layers][n_heads][head_dim], at each
     * token, as qkv_run_add_outputs makes it. source: what they give on input source_b of another
     * run of the same model, token by token. The run has QKV_RUN_OUTPUTS and as many tokens.
     */
    const float *means;
    const qkv_run *source;
    int64_t source_b;
    /* Tokens of the ablated runs that are computed at once; 0: 4,096. */
    int64_t max_tokens;
    /*
     * NULL, or [n_sets + 1][n_places][words of the head]: receives logits. Of QKV_HEAD_LABEL they
     * are [n_sets + 1][n_labels].
     */
    float *logits;
} qkv_effects;
QKV_DEFINE_INIT(qkv_effects)

/**
 * Ablates sets of heads, each on its own, and computes what follows for words. In set s, what head
 * h of layer l gives at token i, o = softmax(scale q k^T) v before the output projection, becomes
 *
 *     0                  zero ablation (Michel et al. 2019; Voita et al. 2019)
 *     means[l][h]        mean ablation (Wang et al. 2022)
 *     o[l][h][i]         of `source`: activation patching (Vig et al. 2020)
 *
 * for the heads (l, h) of the set. All that reads it is computed anew, so the effect of a set
 *
 *     log_p[s + 1][t] - log_p[0][t]
 *
 * is exact, in nats. It is below 0 where the heads help the word. It is that of the whole set.
 * Heads can stand in for each other, and then their single effects add up to less. Of a classifier
 * whose labels may each hold (QKV_LABELS_EACH), ln p is that of the sigmoid of one logit.
 *
 *   Computed once   the model as it is, and of each set all that lies below its lowest layer, and
 *                   the attention of that layer. Sets with the same lowest layer are a batch.
 *   Special values  a NaN logit makes what it enters NaN. An empty set has the bits of the model.
 *   Accuracy        logits as those of qkv_model_logits; log-softmax in double.
 *   Determinism     the same bits for any threads, max_tokens, and sets beside a set.
 *   Memory          a run of max_tokens tokens, the hidden states and heads' outputs of all layers
 *                   of one run, and 16 rows of logits.
 *   Threads         those of ctx. `cancel` is read between batches; progress counts sets.
 *   Sources         Michel, Levy and Neubig (2019), "Are Sixteen Heads Really Better than One?";
 *                   Voita et al. (2019), "Analyzing Multi-Head Self-Attention"; Vig et al. (2020),
 *                   "Investigating Gender Bias in Language Models Using Causal Mediation Analysis";
 *                   Wang et al. (2022), "Interpretability in the Wild".
 *
 * @param input  the tokens; of a pair the source.
 * @param log_p  [n_sets + 1][n_places]: receives ln p of each word, first of the model as it is.
 * @param call   NULL: the defaults. Its workspace is ignored.
 * @return QKV_OK; QKV_ERR_ARGUMENT for NULL, or a head, position or word out of range;
 *         QKV_ERR_SHAPE for a source with another number of tokens; QKV_ERR_UNSUPPORTED without the
 *         head that predicts words, or for a classifier of values; QKV_ERR_VERSION; QKV_ERR_BUSY;
 *         QKV_ERR_MEMORY; QKV_ERR_CANCELLED.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_effects(qkv_ctx *ctx, const qkv_model *model,
                                                     const qkv_encoding *input,
                                                     const qkv_effects *request, double *log_p,
                                                     const qkv_call_options *call,
                                                     qkv_error *error);

/**
 * Adds what heads give on input b of a run (QKV_RUN_OUTPUTS), token after token, to sums. Sums over
 * many texts, divided by their number of tokens and rounded to float, are `means`.
 *
 * @param sums  [n_layers][n_heads][head_dim].
 * @return QKV_OK; QKV_ERR_ARGUMENT for NULL, or a run without such outputs.
 */
QKV_API QKV_NODISCARD qkv_status qkv_run_add_outputs(const qkv_run *run, qkv_attention_kind which,
                                                     int64_t b, double *sums, qkv_error *error);

/* ---- The lens -------------------------------------------------------------------------------- */

/** What a layer would predict. Made by qkv_lens_init(). */
typedef struct qkv_lens {
    size_t struct_size;
    /* The likeliest word, the smaller id of equal ones, and its ln p. */
    int32_t best;
    double best_log_p;
    /* Of the word that is looked at: ln p, and how many words are likelier. */
    double log_p;
    int64_t rank;
    /* -sum p ln p over all words, in nats. */
    double entropy;
} qkv_lens;
QKV_DEFINE_INIT(qkv_lens)

/**
 * Reads a hidden state of any layer as if it were the last one: the logit lens (nostalgebraist
 * 2020). It passes the norm that ends the stack, where there is one, and then the head that
 * predicts words. For BERT that is its transform, norm and decoder. With layer n_layers it is what
 * the model predicts, with the logits of qkv_model_logits.
 *
 * Layers were not trained for this: early ones may use other directions than the last one.
 *
 *   Accuracy     logits as those of qkv_model_logits; the rest in double.
 *   Determinism  the same bits for any threads.
 *   Memory       one row of logits.
 *
 * @param run    has QKV_RUN_HIDDEN.
 * @param layer  0, the embeddings, to the number of layers of the stack that the head reads.
 * @param word   the word that is looked at; below 0: none, and log_p is NaN and rank -1.
 * @param lens   made by qkv_lens_init(); written only after success.
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_UNSUPPORTED without the head; QKV_ERR_VERSION;
 *         QKV_ERR_BUSY; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_lens(qkv_ctx *ctx, const qkv_model *model,
                                                  const qkv_run *run, qkv_word_head head, int64_t b,
                                                  int64_t position, int64_t layer, int32_t word,
                                                  qkv_lens *lens, qkv_error *error);

#ifdef __cplusplus
}
#endif
#endif
