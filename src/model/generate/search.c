/* What the searches share. See search.h. */
#include "model/generate/search.h"

#include <math.h>

#include "core/cancel.h"
#include "core/rng.h"
#include "model/generate/plan.h"
#include "model/generate/row.h"
#include "model/generate/text.h"

qkvi_draft *qkvi_drafts_make(const qkvi_plan *plan, const int32_t *prompt, int64_t n) {
    qkvi_draft *const drafts = qkvi_calloc_array((size_t)n, sizeof *drafts);
    const int64_t prompt_len = plan->lm.prompt_len;
    for (int64_t i = 0; drafts && i < n; i++) {
        drafts[i].ids = qkvi_malloc_array((size_t)plan->max_total, sizeof *prompt);
        if (drafts[i].ids == NULL) {
            qkvi_drafts_free(drafts, n);
            return NULL;
        }
        memcpy(drafts[i].ids, prompt, (size_t)prompt_len * sizeof *prompt);
        drafts[i].n = prompt_len;
    }
    return drafts;
}

void qkvi_drafts_free(qkvi_draft *drafts, int64_t n) {
    for (int64_t i = 0; drafts && i < n; i++) free(drafts[i].ids);
    free(drafts);
}

qkv_status qkvi_sequence_take(const qkvi_plan *plan, const qkvi_draft *draft, qkv_end end,
                              qkv_sequence *sequence, qkv_error *error) {
    const int64_t n = draft->n - plan->lm.prompt_len;
    int32_t *const ids = qkvi_malloc_array((size_t)n, sizeof *ids);
    if (ids == NULL)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld ids", (long long)n);
    memcpy(ids, draft->ids + plan->lm.prompt_len, (size_t)n * sizeof *ids);
    *sequence = (qkv_sequence){ .ids = ids, .n = n, .score = draft->score, .end = end };
    return QKV_OK;
}

qkv_status qkvi_is_complete(const qkvi_plan *plan, const int32_t *ids, int64_t n, bool *complete,
                            qkv_end *end, qkv_error *error) {
    const int64_t prompt_len = plan->lm.prompt_len;
    *complete = true;
    *end = QKV_END_EOS;
    if (qkvi_plan_is_eos(plan, ids[n - 1])) return QKV_OK;
    *end = QKV_END_STRING;
    QKV_TRY(qkvi_has_stop(plan, ids + prompt_len, n - prompt_len, complete, error));
    if (*complete) return QKV_OK;
    *end = plan->model_limits ? QKV_END_MODEL_LENGTH : QKV_END_MAX_NEW;
    *complete = n >= plan->max_total;
    return QKV_OK;
}

qkv_status qkvi_still_wanted(const qkvi_plan *plan, qkv_error *error) {
    if (qkvi_is_raised(plan->o.cancel))
        return qkvi_error_set(error, QKV_ERR_CANCELLED, "generation was cancelled");
    return QKV_OK;
}

/* Pointers to n sequences, which are one piece of memory: the first is its beginning. */
static bool make_room(qkv_generation *made, size_t n) {
    qkv_sequence *const all = qkvi_calloc_array(n, sizeof *all);
    made->sequences = qkvi_calloc_array(n, sizeof *made->sequences);
    if (!all || !made->sequences) {
        free(all);
        return false;
    }
    for (size_t i = 0; i < n; i++) made->sequences[i] = &all[i];
    return true;
}

qkv_status qkvi_search(const qkvi_plan *plan, const qkvi_lm *lm, const int32_t *prompt,
                       float *logits, qkv_generation **generation, qkv_error *error) {
    qkv_generation *const made = calloc(1, sizeof *made);
    *generation = NULL;
    if (made == NULL || !make_room(made, (size_t)plan->n_slots)) {
        qkv_generation_free(made);
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld sequences",
                              (long long)plan->n_slots);
    }
    made->prompt_len = plan->lm.prompt_len;
    qkv_status status = (plan->o.n_beams > 1 ? qkvi_search_beams : qkvi_search_singly)(
        plan, lm, prompt, logits, made, error);
    for (int64_t i = 0; status == QKV_OK && i < made->n_sequences; i++)
        status = qkvi_sequence_text(plan, made->sequences[i], error);
    if (status == QKV_OK)
        *generation = made;
    else
        qkv_generation_free(made);
    return status;
}

void qkv_generation_free(qkv_generation *generation) {
    if (generation == NULL) return;
    for (int64_t i = 0; i < generation->n_sequences; i++) {
        free(generation->sequences[i]->ids);
        free(generation->sequences[i]->text);
    }
    if (generation->sequences) free(generation->sequences[0]);
    free(generation->sequences);
    free(generation);
}

/* ---- One by one ------------------------------------------------------------------------------ */

/*
 * Greedy search and sampling: each sequence by itself, several of them through the model at once.
 * transformers: GenerationMixin._sample.
 *
 * Sequences that are complete leave their slots, and those behind them move up, so that slots 0 ...
 * n_live - 1 are those of the sequences in `live`, in their order.
 */

typedef struct singly {
    const qkvi_plan *plan;
    const qkvi_lm *lm;
    qkv_generation *made;
    int64_t n_live, sent;
    qkvi_draft *drafts; /* [n_return], each of its own sequence */
    int32_t *live, *from,
        *ids;  /* [n_return]: the sequence of a slot; where a slot was; its token */
    double *x; /* [vocab] */
    qkvi_scratch scratch;
} singly;

static int32_t likeliest(int64_t n, const double *x) {
    int64_t best = 0;
    for (int64_t j = 1; j < n; j++)
        if (x[j] > x[best]) best = j;
    return (int32_t)best;
}

/* The first token up to which probabilities come to u of their sum; u is a multiple of 2^-53. */
static int32_t draw(const qkvi_plan *plan, int64_t sequence, int64_t step, double *x) {
    qkvi_rng rng =
        qkvi_rng_make(plan->o.seed, QKVI_DRAW_TOKEN, (uint64_t)sequence << 32 | (uint64_t)step);
    const uint64_t high = qkvi_rng_u32(&rng), low = qkvi_rng_u32(&rng);
    const double u = (double)((high << 32 | low) >> 11) * 0x1p-53;
    const double wanted = u * qkvi_row_exp(plan->lm.vocab, x);
    double sum = 0;
    int64_t last = 0;
    for (int64_t j = 0; j < plan->lm.vocab; j++) {
        if (x[j] == 0) continue;
        last = j;
        sum += x[j];
        if (sum > wanted) break;
    }
    return (int32_t)last;
}

/* Appends a token to a draft; *forbidden: there is none. */
static qkv_status choose(singly *s, int64_t sequence, const float *logits, bool *forbidden,
                         qkv_error *error) {
    const qkvi_plan *const plan = s->plan;
    qkvi_draft *const draft = &s->drafts[sequence];
    QKV_TRY(qkvi_row_read(plan->lm.vocab, logits, s->x, error));
    const double lse = qkvi_row_lse(plan->lm.vocab, s->x);
    qkvi_process(plan, &s->scratch, draft->n, draft->ids, s->x);
    *forbidden = qkvi_row_max(plan->lm.vocab, s->x) == -INFINITY;
    if (*forbidden) return QKV_OK;
    const int32_t id = plan->o.sample ? draw(plan, sequence, draft->n - plan->lm.prompt_len, s->x)
                                      : likeliest(plan->lm.vocab, s->x);
    draft->score += (double)logits[id] - lse;
    draft->ids[draft->n++] = id;
    return QKV_OK;
}

/* One more token for a sequence; *complete if it has all. */
static qkv_status go_on(singly *s, int64_t sequence, const float *logits, bool *complete,
                        qkv_error *error) {
    const qkvi_plan *const plan = s->plan;
    qkvi_draft *const draft = &s->drafts[sequence];
    const int32_t *const new_ids = draft->ids + plan->lm.prompt_len;
    qkv_end end = QKV_END_FORBIDDEN;
    bool ended = false;
    QKV_TRY(choose(s, sequence, logits, complete, error));
    if (!*complete) QKV_TRY(qkvi_is_complete(plan, draft->ids, draft->n, complete, &end, error));
    QKV_TRY(qkvi_tell(plan, new_ids, draft->n - plan->lm.prompt_len, *complete, &s->sent, &ended,
                      error));
    if (ended && !*complete) {
        *complete = true;
        end = QKV_END_CALLER;
    }
    if (!*complete) return QKV_OK;
    QKV_TRY(qkvi_sequence_take(plan, draft, end, s->made->sequences[sequence], error));
    s->made->sequences[sequence]->n_bytes = s->sent;
    return QKV_OK;
}

/* A token for each slot; fills from and ids of those that go on. */
static qkv_status choose_all(singly *s, bool first, const float *logits, qkv_error *error) {
    int64_t n = 0;
    for (int64_t slot = 0; slot < s->n_live; slot++) {
        const int32_t sequence = s->live[slot];
        const int64_t row = first ? 0 : slot;
        bool complete;
        QKV_TRY(go_on(s, sequence, logits + row * s->plan->lm.vocab, &complete, error));
        if (complete) continue;
        s->live[n] = sequence;
        s->from[n] = (int32_t)row;
        s->ids[n++] = s->drafts[sequence].ids[s->drafts[sequence].n - 1];
    }
    s->n_live = n;
    return QKV_OK;
}

static qkv_status run(singly *s, float *logits, qkv_error *error) {
    for (bool first = true;; first = false) {
        const int64_t before = first ? 1 : s->n_live;
        QKV_TRY(qkvi_still_wanted(s->plan, error));
        QKV_TRY(choose_all(s, first, logits, error));
        if (s->n_live == 0) return QKV_OK;
        if (s->n_live != before) QKV_TRY(s->lm->reorder(s->lm->self, s->n_live, s->from, error));
        QKV_TRY(s->lm->step(s->lm->self, s->n_live, s->ids, logits, error));
        s->made->n_steps++;
    }
}

qkv_status qkvi_search_singly(const qkvi_plan *plan, const qkvi_lm *lm, const int32_t *prompt,
                              float *logits, qkv_generation *made, qkv_error *error) {
    const size_t n = (size_t)plan->o.n_return;
    singly s = { .plan = plan, .lm = lm, .made = made, .n_live = plan->o.n_return };
    made->n_sequences = plan->o.n_return;
    s.drafts = qkvi_drafts_make(plan, prompt, plan->o.n_return);
    s.live = qkvi_malloc_array(n, sizeof *s.live);
    s.from = qkvi_malloc_array(n, sizeof *s.from);
    s.ids = qkvi_malloc_array(n, sizeof *s.ids);
    s.x = qkvi_malloc_array((size_t)plan->lm.vocab, sizeof *s.x);
    qkv_status status = s.drafts && s.live && s.from && s.ids && s.x
                            ? qkvi_scratch_make(plan, &s.scratch, error)
                            : qkvi_no_memory(error, "a search");
    if (status == QKV_OK) {
        for (size_t i = 0; i < n; i++) s.live[i] = (int32_t)i;
        status = run(&s, logits, error);
    }
    qkvi_drafts_free(s.drafts, plan->o.n_return);
    free(s.live);
    free(s.from);
    free(s.ids);
    free(s.x);
    qkvi_scratch_free(&s.scratch);
    return status;
}
