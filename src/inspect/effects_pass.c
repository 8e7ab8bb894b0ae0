/* Runs a batch of ablated copies of a text, from their lowest layer up: see effects.h. */
#include "inspect/effects.h"

#include <math.h>

#include "core/fpstate.h"
#include "inspect/word_states.h"
#include "model/run_impl.h"

enum { LOGIT_ROWS = 16 }; /* rows of logits at a time, which read the output weights once */

/* ---- What heads give ------------------------------------------------------------------------- */

/* What an ablated head gives at a token; NULL: 0. */
static const float *given_of(const qkvi_effects *e, int64_t head, int64_t token) {
    const qkv_effects *const request = e->request;
    const int64_t layer = head / e->n_heads;
    if (request->means) return request->means + head * e->head_dim;
    if (!request->source) return NULL;
    return qkv_run_outputs(request->source, request->which, request->source_b, layer) +
           (token * e->n_heads + head % e->n_heads) * e->head_dim;
}

/* The heads of a set in a layer, of one copy's o [len][n_heads][head_dim]. */
static void ablate(const qkvi_effects *e, int64_t set, int64_t layer, float *o) {
    int64_t n = 0;
    const int64_t *const heads = qkvi_effects_set(e->request, set, &n);
    const size_t bytes = (size_t)e->head_dim * sizeof *o;
    for (int64_t s = 0; s < n; s++) {
        if (heads[s] / e->n_heads != layer) continue;
        for (int64_t i = 0; i < e->len; i++) {
            float *const to = o + (i * e->n_heads + heads[s] % e->n_heads) * e->head_dim;
            const float *const from = given_of(e, heads[s], i);
            if (from)
                memcpy(to, from, bytes);
            else
                memset(to, 0, bytes);
        }
    }
}

static void change(void *of, int64_t layer, bool cross, float *o) {
    const qkvi_effects *const e = of;
    if (cross != e->cross) return;
    for (int64_t c = 0; c < e->n_copies; c++)
        ablate(e, e->sets[c], layer, o + c * e->len * e->n_heads * e->head_dim);
}

/* In the lowest layer copies are alike up to the attention that is ablated. */
static bool give(void *of, int64_t layer, bool cross, float *o) {
    const qkvi_effects *const e = of;
    if (layer != e->first || (cross && !e->cross)) return false;
    const qkv_attention_kind which = cross ? QKV_CROSS : e->stack ? QKV_DECODER : QKV_SELF;
    const float *const base = qkv_run_outputs(e->base, which, 0, layer);
    const int64_t elems = e->len * e->n_heads * e->head_dim;
    for (int64_t c = 0; c < e->n_copies; c++)
        memcpy(o + c * elems, base, (size_t)elems * sizeof *o);
    return true;
}

/* ---- Words ----------------------------------------------------------------------------------- */

static qkv_status logits_of(const qkvi_effects *e, int64_t n, const float *rows, float *logits,
                            qkv_error *error) {
    return e->request->head == QKV_HEAD_MASKED
               ? qkvi_net_mlm(e->ctx, e->model->net, n, rows, logits, error)
               : qkvi_net_lm(e->ctx, e->model->net, n, rows, logits, error);
}

/* Whether the last block of ablated copies computes the rows of the places only. */
static bool picks(const qkvi_effects *e) {
    return e->model->net->n_stacks == 1 && !qkvi_effects_of_labels(e) &&
           e->request->n_places <= e->len;
}

/* What is told of copies at once: place t of copy c is pair c n_places + t. */
struct told {
    bool picked;                /* a copy has rows of the places only */
    const float *const *hidden; /* of each copy */
    const int64_t *sets;        /* of each copy; NULL: the model as it is */
};

static int64_t row_of(const qkvi_effects *e, const struct told *told, int64_t pair) {
    const int64_t copy = pair / e->request->n_places, row = told->sets ? told->sets[copy] + 1 : 0;
    return row * e->request->n_places + pair % e->request->n_places;
}

static qkv_status tell_some(const qkvi_effects *e, const struct told *told, int64_t first,
                            int64_t n, float *rows, float *logits, qkv_error *error) {
    const qkv_effects *const request = e->request;
    const int64_t width = e->model->info.hidden, n_words = e->n_words;
    for (int64_t t = 0; t < n; t++) {
        const int64_t at = (first + t) % request->n_places;
        const int64_t row = told->picked ? at : request->positions[at];
        memcpy(rows + t * width, told->hidden[(first + t) / request->n_places] + row * width,
               (size_t)width * sizeof *rows);
    }
    QKV_TRY(logits_of(e, n, rows, logits, error));
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    for (int64_t t = 0; t < n; t++) {
        const int64_t at = row_of(e, told, first + t);
        e->log_p[at] = qkvi_log_probability(logits + t * n_words, n_words,
                                            request->words[(first + t) % request->n_places]);
        if (request->logits)
            memcpy(request->logits + at * n_words, logits + t * n_words,
                   (size_t)n_words * sizeof *logits);
    }
    qkvi_fpstate_leave(saved);
    return QKV_OK;
}

/* Classes are of a whole copy, which has one row of logits. */
static qkv_status tell_labels(const qkvi_effects *e, int64_t n_copies, const int64_t *sets,
                              const float *const *hidden, float *logits, qkv_error *error) {
    const qkv_effects *const request = e->request;
    const bool each = e->model->info.label_kind == QKV_LABELS_EACH;
    for (int64_t c = 0; c < n_copies; c++) {
        const int64_t row = sets ? sets[c] + 1 : 0;
        QKV_TRY(
            qkvi_model_classify(e->ctx, e->model, e->len, e->input->ids, hidden[c], logits, error));
        const qkvi_fpstate saved = qkvi_fpstate_enter();
        for (int64_t t = 0; t < request->n_places; t++) {
            const int32_t label = request->words[t];
            e->log_p[row * request->n_places + t] =
                each ? -log1p(exp(-(double)logits[label]))
                     : qkvi_log_probability(logits, e->n_words, label);
        }
        qkvi_fpstate_leave(saved);
        if (request->logits)
            memcpy(request->logits + row * e->n_words, logits, (size_t)e->n_words * sizeof *logits);
    }
    return QKV_OK;
}

static qkv_status tell_words(const qkvi_effects *e, int64_t n_copies, const int64_t *sets,
                             const float *const *hidden, qkv_error *error) {
    const struct told told = { sets && picks(e), hidden, sets };
    const int64_t width = e->model->info.hidden, n_pairs = n_copies * e->request->n_places;
    const int64_t most = n_pairs < LOGIT_ROWS ? n_pairs : LOGIT_ROWS;
    float *const rows = qkvi_aligned_array((size_t)(most * width), sizeof *rows);
    float *const logits = qkvi_aligned_array((size_t)e->n_words, (size_t)most * sizeof *logits);
    qkv_status status = rows && logits ? QKV_OK : qkvi_no_memory(error, "logits");
    for (int64_t first = 0; first < n_pairs && status == QKV_OK; first += most) {
        const int64_t n = n_pairs - first < most ? n_pairs - first : most;
        status = tell_some(e, &told, first, n, rows, logits, error);
    }
    qkvi_aligned_free(rows);
    qkvi_aligned_free(logits);
    return status;
}

qkv_status qkvi_effects_tell(const qkvi_effects *e, int64_t n_copies, const int64_t *sets,
                             const float *const *hidden, qkv_error *error) {
    if (!qkvi_effects_of_labels(e)) return tell_words(e, n_copies, sets, hidden, error);
    float *const logits = qkvi_aligned_array((size_t)e->n_words, sizeof *logits);
    if (!logits) return qkvi_no_memory(error, "logits");
    const qkv_status status = tell_labels(e, n_copies, sets, hidden, logits, error);
    qkvi_aligned_free(logits);
    return status;
}

/* ---- The batch ------------------------------------------------------------------------------- */

/* Copies of what goes into one stack. */
typedef struct copies {
    int64_t *lengths;
    int32_t *ids;
    uint8_t *types;
    qkvi_pixels *images; /* NULL: they are texts */
} copies;

static void copies_free(copies *c) {
    free(c->lengths);
    free(c->ids);
    free(c->types);
    free(c->images);
}

static qkv_status copies_make(int64_t n, const qkv_encoding *of, copies *c, qkv_error *error) {
    c->lengths = qkvi_malloc_array((size_t)n, sizeof *c->lengths);
    c->ids = qkvi_malloc_array((size_t)n, (size_t)of->n * sizeof *c->ids);
    c->types = qkvi_calloc_array((size_t)n, (size_t)of->n);
    if (!c->lengths || !c->ids || !c->types) return qkvi_no_memory(error, "ablated copies");
    for (int64_t b = 0; b < n; b++) {
        c->lengths[b] = of->n;
        memcpy(c->ids + b * of->n, of->ids, (size_t)of->n * sizeof *c->ids);
        if (of->types) memcpy(c->types + b * of->n, of->types, (size_t)of->n);
    }
    if (!of->image) return QKV_OK;
    c->images = qkvi_malloc_array((size_t)n, sizeof *c->images);
    if (!c->images) return qkvi_no_memory(error, "ablated copies");
    for (int64_t b = 0; b < n; b++)
        c->images[b] = (qkvi_pixels){ of->image->pixels, of->image->height, of->image->width };
    return QKV_OK;
}

static qkv_status run(const qkvi_effects *e, const copies *source, const copies *target,
                      qkvi_net_pass *pass, qkv_error *error) {
    const qkv_attention_kind which = e->stack ? QKV_DECODER : QKV_SELF;
    const qkvi_net_start start = {
        .stack = e->stack,
        .layer = e->first,
        .input = qkv_run_hidden(e->base, which, 0, e->first),
        .memory = e->stack ? qkv_run_hidden(e->base, QKV_SELF, 0, e->model->info.n_layers) : NULL,
        .outputs = { give, change, (void *)(uintptr_t)e },
        .picks = e->request->positions,
        .n_picks = picks(e) ? e->request->n_places : 0,
    };
    const qkvi_net_batch batch = { .n_sequences = e->n_copies,
                                   .lengths = source->lengths,
                                   .ids = source->ids,
                                   .types = source->types,
                                   .images = source->images,
                                   .decoder_lengths = target->lengths,
                                   .decoder_ids = target->ids,
                                   .start = &start };
    QKV_TRY(qkvi_net_forward(e->ctx, e->model->net, &batch, 0, pass, error));
    const qkvi_stack_pass *const last = qkvi_net_stack(pass, target->lengths ? 1 : 0);
    const float *const y = last->y;
    const float **const hidden = qkvi_malloc_array((size_t)e->n_copies, sizeof *hidden);
    if (!hidden) return qkvi_no_memory(error, "ablated copies");
    for (int64_t c = 0; c < e->n_copies; c++)
        hidden[c] = y + (start.n_picks ? c * start.n_picks : qkvi_stack_row(last, c)) *
                            e->model->info.hidden;
    const qkv_status status = qkvi_effects_tell(e, e->n_copies, e->sets, hidden, error);
    free(hidden);
    return status;
}

qkv_status qkvi_effects_batch(const qkvi_effects *e, qkv_error *error) {
    copies source = { 0 }, target = { 0 };
    qkvi_net_pass *pass = NULL;
    qkv_status status = copies_make(e->n_copies, e->input, &source, error);
    if (status == QKV_OK && e->request->target)
        status = copies_make(e->n_copies, e->request->target, &target, error);
    if (status == QKV_OK) status = qkvi_net_pass_create(&pass, error);
    if (status == QKV_OK) status = run(e, &source, &target, pass, error);
    qkvi_net_pass_free(pass);
    copies_free(&source);
    copies_free(&target);
    return status;
}
