/* What the searches share. See search.h. */
#include "model/generate/search.h"

#include "core/cancel.h"
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
