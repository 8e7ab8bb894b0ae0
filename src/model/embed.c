/*
 * Vectors of sentences. Inputs are run some at a time, short ones first, so that a run has few
 * lengths; as no result depends on its neighbours in a run, that changes no bit.
 */
#include "model/model_impl.h"

#include "core/fpstate.h"
#include "core/options.h"
#include "model/arch/net.h"
#include "text/tokenizer.h"

/* ---- Texts that become vectors --------------------------------------------------------------- */

/*
 * Texts that become vectors: behind a prompt, in lower case where the model's files say so, and cut
 * to the length that they were trained for. Reference: sentence-transformers 6,
 * base/modules/transformer.py.
 */

const qkv_prompt *qkv_model_prompt(const qkv_model *model, int64_t index) {
    const qkvi_recipe *const s = model ? &model->recipe : NULL;
    return s && index >= 0 && index < s->n_prompts ? &s->prompts[index].shown : NULL;
}

static const qkv_tokenizer *tokenizer_of(const qkv_model *model) {
    return model->sentence_tokenizer ? model->sentence_tokenizer : model->tokenizer;
}

/* A prompt's tokens as they are alone and cut, but for a special one at their end. */
static qkv_status count_prompt(const qkv_model *model, const char *prompt, int64_t *n,
                               qkv_error *error) {
    const qkv_tokenizer *const tokenizer = tokenizer_of(model);
    qkv_encoding *alone = NULL;
    QKV_TRY(qkv_tokenizer_encode(tokenizer, prompt, strlen(prompt), NULL, 0, &alone, error));
    if (alone->n > model->recipe.max_len)
        qkv_tokenizer_cut(tokenizer, alone, model->recipe.max_len);
    *n = alone->n;
    if (*n > 0) {
        const int32_t last = alone->ids[*n - 1];
        const qkvi_added *const added = &tokenizer->added;
        *n -= last < added->n_ids && (added->flags[last] & QKVI_ADDED_NAMED);
    }
    qkv_encoding_free(alone);
    return QKV_OK;
}

static qkv_status encode_behind(const qkv_model *model, const char *prompt, const char *text,
                                size_t text_bytes, qkv_encoding **encoding, qkv_error *error) {
    const size_t n_prompt = strlen(prompt);
    char *both = qkvi_malloc_array(n_prompt + text_bytes + 1, 1);
    if (!both) return qkvi_no_memory(error, "a text");
    memcpy(both, prompt, n_prompt);
    if (text_bytes > 0) memcpy(both + n_prompt, text, text_bytes);
    const qkv_status status = qkv_tokenizer_encode(tokenizer_of(model), both, n_prompt + text_bytes,
                                                   NULL, 0, encoding, error);
    free(both);
    return status;
}

qkv_status qkv_model_encode_sentence(const qkv_model *model, const char *prompt, const char *text,
                                     size_t text_bytes, qkv_encoding **encoding, int64_t *n_prompt,
                                     qkv_error *error) {
    QKV_TRY(qkvi_need(model, "model", error));
    QKV_TRY(qkvi_need(encoding, "encoding", error));
    QKV_TRY(qkvi_need(n_prompt, "n_prompt", error));
    *encoding = NULL;
    *n_prompt = 0;
    if (!prompt || !*prompt)
        return qkv_tokenizer_encode(tokenizer_of(model), text, text_bytes, NULL, 0, encoding,
                                    error);
    if (!text && text_bytes > 0) /* which says so */
        return qkv_tokenizer_encode(model->tokenizer, text, text_bytes, NULL, 0, encoding, error);
    QKV_TRY(encode_behind(model, prompt, text, text_bytes, encoding, error));
    if (!model->recipe.leaves_prompt) return QKV_OK;
    const qkv_status status = count_prompt(model, prompt, n_prompt, error);
    if (status == QKV_OK) return QKV_OK;
    qkv_encoding_free(*encoding);
    *encoding = NULL;
    return status;
}

enum { MAX_INPUTS = 256, MAX_TOKENS = 4096 };

/* ---- Runs ------------------------------------------------------------------------------------ */

/* An input of n tokens, the at-th of the caller's. */
typedef struct place {
    int64_t n, at;
} place;

static int by_length(const void *a, const void *b) {
    const place *const x = a, *const y = b;
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

/* How many of the inputs from `first` on are run together: one at least. */
static int64_t take(const place *places, int64_t first, int64_t n_batch,
                    const qkv_encoding *const *inputs, const qkv_encoding **some) {
    int64_t n = 0, n_tokens = 0;
    while (first + n < n_batch && n < MAX_INPUTS) {
        n_tokens += places[first + n].n;
        if (n > 0 && n_tokens > MAX_TOKENS) break;
        some[n] = inputs[places[first + n].at];
        n++;
    }
    return n;
}

/* The last hidden states of an input, or what is projected of them. */
static const float *last_rows(const qkvi_embedding *e, const qkv_run *run, int64_t b, int64_t n) {
    const qkvi_linear *const project = &e->model->net->project_out;
    const float *const hidden = qkv_run_hidden(run, QKV_SELF, b, e->model->info.n_layers);
    if (project->n_out == 0) return hidden;
    qkvi_linear_forward(e->ctx, project, n, hidden, e->rows);
    return e->rows;
}

static qkv_status embed_all(const qkvi_embedding *e, int64_t n_batch,
                            const qkv_encoding *const *inputs, const place *places, float *vectors,
                            qkv_error *error) {
    const qkv_encoding *some[MAX_INPUTS];
    for (int64_t first = 0, n; first < n_batch; first += n) {
        qkv_run *run;
        n = take(places, first, n_batch, inputs, some);
        QKV_TRY(qkv_model_run(e->ctx, e->model, n, some, 0, NULL, &run, error));
        const qkvi_fpstate saved = qkvi_fpstate_enter();
        for (int64_t b = 0; b < n; b++)
            qkvi_embed_vector(e, some[b]->n, last_rows(e, run, b, some[b]->n),
                              vectors + places[first + b].at * e->kept);
        qkvi_fpstate_leave(saved);
        qkv_run_free(run);
    }
    return QKV_OK;
}

/* A pooling that is asked for stands alone. Nothing but the end of the modules may be left away. */
static void choose(const qkv_embed_options *options, qkvi_embedding *e) {
    const qkvi_recipe *const s = &e->model->recipe;
    const int is_alone = options->pooling != QKV_POOLING_DEFAULT;
    const int wanted = options->normalize != 0 ? options->normalize > 0 : -1;
    e->n_out = options->n_prompt;
    e->n_poolings = is_alone ? 1 : s->n_poolings;
    e->poolings = s->poolings;
    if (is_alone) {
        e->asked = options->pooling;
        e->poolings = &e->asked;
        e->dim = e->kept = e->model->info.pooled_dim;
        e->normalizes = wanted >= 0 ? wanted : e->model->info.normalizes;
        return;
    }
    e->n_steps = s->n_steps;
    e->dim = s->dim;
    e->kept = s->kept;
    while (e->n_steps > 0 && wanted >= 0 && s->kept == s->dim &&
           s->steps[e->n_steps - 1].kind == QKVI_STEP_NORMALIZE)
        e->n_steps--;
    e->normalizes = wanted > 0;
}

/* The most numbers that a vector has on its way. */
static int64_t widest(const qkvi_embedding *e) {
    int64_t most = e->n_poolings * e->model->info.pooled_dim;
    for (int i = 0; i < e->n_steps; i++) {
        const int64_t n = e->model->recipe.steps[i].n_out;
        if (n > most) most = n;
    }
    return most;
}

static qkv_status read_options(const qkv_embed_options *given, qkvi_embedding *e,
                               qkv_error *error) {
    qkv_embed_options options = qkv_embed_options_init();
    if (given)
        QKV_TRY(qkvi_options_read(&options, sizeof options, given, "qkv_embed_options", error));
    if (options.pooling < QKV_POOLING_DEFAULT || options.pooling > QKV_POOLING_LAST)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "pooling = %d is none",
                              (int)options.pooling);
    if (options.n_prompt < 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "n_prompt = %lld is negative",
                              (long long)options.n_prompt);
    choose(&options, e);
    return QKV_OK;
}

static qkv_status check(qkv_ctx *ctx, const qkv_model *model, int64_t n_batch,
                        const qkv_encoding *const *inputs, const float *vectors, qkv_error *error) {
    QKV_TRY(qkvi_need(ctx, "ctx", error));
    QKV_TRY(qkvi_need(model, "model", error));
    QKV_TRY(qkvi_need(inputs, "inputs", error));
    QKV_TRY(qkvi_need(vectors, "vectors", error));
    if (n_batch < 1 || n_batch > INT32_MAX)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "a batch of %lld inputs is not between 1 and 2^31 - 1",
                              (long long)n_batch);
    for (int64_t b = 0; b < n_batch; b++)
        if (!inputs[b])
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "inputs[%lld] is NULL", (long long)b);
    return QKV_OK;
}

/* Numbers that are projected of the longest input that can be run; one where nothing is. */
static size_t n_projected(const qkv_model *model, int64_t n_batch,
                          const qkv_encoding *const *inputs) {
    int64_t longest = 0;
    for (int64_t b = 0; b < n_batch; b++)
        if (inputs[b]->n > longest) longest = inputs[b]->n;
    if (longest > model->info.max_len) longest = model->info.max_len;
    return (size_t)(longest * model->net->project_out.n_out) + 1;
}

qkv_status qkv_model_embed(qkv_ctx *ctx, const qkv_model *model, int64_t n_batch,
                           const qkv_encoding *const *inputs, const qkv_embed_options *options,
                           float *vectors, qkv_error *error) {
    QKV_TRY(check(ctx, model, n_batch, inputs, vectors, error));
    qkvi_embedding e = { .ctx = ctx, .model = model };
    QKV_TRY(read_options(options, &e, error));
    place *const places = qkvi_malloc_array((size_t)n_batch, sizeof *places);
    const size_t n_widest = (size_t)widest(&e);
    e.x = qkvi_malloc_array(n_widest, sizeof *e.x);
    e.a = qkvi_malloc_array(n_widest, sizeof *e.a);
    e.b = qkvi_malloc_array(n_widest, sizeof *e.b);
    e.rows = qkvi_aligned_array(n_projected(model, n_batch, inputs), sizeof *e.rows);
    qkv_status status = QKV_OK;
    if (places && e.x && e.a && e.b && e.rows) {
        for (int64_t b = 0; b < n_batch; b++) places[b] = (place){ inputs[b]->n, b };
        qsort(places, (size_t)n_batch, sizeof *places, by_length);
        status = embed_all(&e, n_batch, inputs, places, vectors, error);
    } else {
        status = qkvi_no_memory(error, "vectors of sentences");
    }
    free(places);
    free(e.x);
    free(e.a);
    free(e.b);
    qkvi_aligned_free(e.rows);
    return status;
}
