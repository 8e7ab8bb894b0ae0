/*
 * Beam search. transformers: GenerationMixin._beam_search, for one prompt.
 *
 * In each round every running beam meets every token: a candidate's score is its beam's plus the
 * token's log-probability (after the processors). The best n_kept = max(2, 1 + n_eos) n_beams of
 * them are looked at. Of the first n_beams, those that are complete go into the list of the n_beams
 * best complete ones, their scores divided by (new tokens)^length_penalty; the best n_beams that
 * are not complete run on.
 *
 * transformers starts with n_beams beams of which all but the first have the score -1e9, and fills
 * up with such where candidates are missing. Here there are fewer beams then, one at first: the
 * same, without its duplicates.
 */
#include <math.h>

#include "core/rng.h"
#include "model/generate/plan.h"
#include "model/generate/row.h"
#include "model/generate/search.h"

/* A complete sequence. */
typedef struct finished {
    qkvi_draft draft; /* score: with the penalty */
    qkv_end end;
} finished;

typedef struct beams {
    const qkvi_plan *plan;
    const qkvi_lm *lm;
    int64_t n_running, n_done, n_kept, round;
    qkvi_draft *running, *next; /* [n_beams] */
    finished *done;             /* [n_beams], best first */
    double *x;                  /* [vocab] */
    qkvi_top_item *kept;        /* [n_kept] */
    int32_t *from, *ids;        /* [n_beams] */
    qkvi_scratch scratch;
} beams;

/* n^penalty */
static double length_factor(int64_t n, double penalty) {
    if (penalty == 0 || n == 1) return 1;
    if (penalty == 1) return (double)n;
    const double small = qkvi_exp(-fabs(penalty) * qkvi_log((double)n));
    return penalty > 0 ? 1 / small : small;
}

static double divided(const beams *b, double score, int64_t n_new) {
    return score / length_factor(n_new, b->plan->o.length_penalty);
}

/* ---- Candidates ------------------------------------------------------------------------------ */

/* -log(-log u): adding it to log-weights and taking the greatest draws without replacement by the
 * weights (Gumbel; Kool, van Hoof and Welling 2019). */
static double gumbel(qkvi_rng *rng) {
    const uint64_t high = qkvi_rng_u32(rng), low = qkvi_rng_u32(rng);
    const double u = ((double)((high << 32 | low) >> 12) + 0.5) * 0x1p-52;
    return -qkvi_log(-qkvi_log(u));
}

/* Place of a candidate: beam * vocab + id. */
static qkv_status find_candidates(beams *b, const float *logits, qkvi_top *top, qkv_error *error) {
    const int64_t vocab = b->plan->lm.vocab;
    qkvi_rng rng = qkvi_rng_make(b->plan->o.seed, QKVI_DRAW_BEAMS, (uint64_t)b->round);
    *top = (qkvi_top){ .room = b->n_kept, .items = b->kept };
    for (int64_t i = 0; i < b->n_running; i++) {
        const qkvi_draft *const beam = &b->running[i];
        QKV_TRY(qkvi_row_read(vocab, logits + i * vocab, b->x, error));
        qkvi_row_log_softmax(vocab, b->x);
        qkvi_process(b->plan, &b->scratch, beam->n, beam->ids, b->x);
        for (int64_t j = 0; j < vocab; j++) {
            const double score = beam->score + b->x[j];
            if (!(score > -INFINITY)) continue;
            const double key = b->plan->o.sample ? score + gumbel(&rng) : score;
            if (top->n < top->room || key >= b->kept[0].key)
                qkvi_top_offer(top, key, score, i * vocab + j);
        }
    }
    qkvi_top_sort(top);
    return QKV_OK;
}

/* ---- Complete ones --------------------------------------------------------------------------- */

/* Puts a copy of the draft behind those that are as good; the worst falls out. */
static void finish(beams *b, const qkvi_draft *draft, double score, qkv_end end) {
    const int64_t n_beams = b->plan->o.n_beams;
    int64_t place = b->n_done;
    while (place > 0 && score > b->done[place - 1].draft.score) place--;
    if (place == n_beams) return;
    const int64_t last = b->n_done < n_beams ? b->n_done++ : n_beams - 1;
    const finished room = b->done[last];
    memmove(b->done + place + 1, b->done + place, (size_t)(last - place) * sizeof *b->done);
    b->done[place] = room;
    memcpy(room.draft.ids, draft->ids, (size_t)draft->n * sizeof *draft->ids);
    b->done[place].draft.n = draft->n;
    b->done[place].draft.score = score;
    b->done[place].end = end;
}

/* Whether a running beam may become better than the worst that is complete. */
static bool may_improve(const beams *b) {
    const qkv_generate_options *const o = &b->plan->o;
    if (b->n_done < o->n_beams) return true;
    if (o->early_stopping == QKV_EARLY_ALWAYS) return false;
    const bool longest = o->early_stopping == QKV_EARLY_NEVER && o->length_penalty > 0;
    const int64_t n = longest ? b->plan->max_total : b->running[0].n;
    return divided(b, b->running[0].score, n - b->plan->lm.prompt_len) >
           b->done[b->n_done - 1].draft.score;
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

/*
 * The rank-th candidate: complete, or a beam of the next round if there is room. `draft` is the
 * next one that is free; it holds the candidate.
 */
static qkv_status sort_out(beams *b, int64_t rank, int64_t *n_next, qkvi_draft *draft,
                           qkv_error *error) {
    const qkvi_top_item *const candidate = &b->kept[rank];
    const int64_t vocab = b->plan->lm.vocab, n_beams = b->plan->o.n_beams;
    const int64_t from = candidate->at / vocab;
    const qkvi_draft *const beam = &b->running[from];
    bool complete;
    qkv_end end;
    memcpy(draft->ids, beam->ids, (size_t)beam->n * sizeof *beam->ids);
    draft->ids[beam->n] = (int32_t)(candidate->at % vocab);
    draft->n = beam->n + 1;
    draft->score = candidate->value;
    QKV_TRY(qkvi_is_complete(b->plan, draft->ids, draft->n, &complete, &end, error));
    if (complete && rank < n_beams)
        finish(b, draft, divided(b, draft->score, draft->n - b->plan->lm.prompt_len), end);
    if (complete) return QKV_OK;
    b->from[*n_next] = (int32_t)from;
    b->ids[*n_next] = draft->ids[beam->n];
    ++*n_next;
    return QKV_OK;
}

/*
 * When beams are drawn, candidates stand in the order in which they were drawn, and those that run
 * on are put in the order of their scores.
 */
static void sort_running(beams *b) {
    for (int64_t i = 1; i < b->n_running; i++) {
        const qkvi_draft draft = b->running[i];
        const int32_t from = b->from[i], id = b->ids[i];
        int64_t at = i;
        for (; at > 0 && draft.score > b->running[at - 1].score; at--) {
            b->running[at] = b->running[at - 1];
            b->from[at] = b->from[at - 1];
            b->ids[at] = b->ids[at - 1];
        }
        b->running[at] = draft;
        b->from[at] = from;
        b->ids[at] = id;
    }
}

/* One more token for the beams that run; none run on if there is nothing to continue. */
static qkv_status next_round(beams *b, const float *logits, qkv_error *error) {
    qkvi_top top;
    int64_t n_next = 0;
    QKV_TRY(find_candidates(b, logits, &top, error));
    if (top.n == 0) /* everything is forbidden: what runs ends as it is */
        for (int64_t i = 0; i < b->n_running; i++) {
            const qkvi_draft *const beam = &b->running[i];
            const int64_t n_new = beam->n - b->plan->lm.prompt_len;
            finish(b, beam, divided(b, beam->score, n_new > 0 ? n_new : 1), QKV_END_FORBIDDEN);
        }
    for (int64_t rank = 0; rank < top.n; rank++) {
        const int64_t n_beams = b->plan->o.n_beams;
        if (!b->plan->o.sample && rank >= n_beams && n_next >= n_beams) break;
        QKV_TRY(sort_out(b, rank, &n_next, &b->next[n_next], error));
    }
    qkvi_draft *const old = b->running;
    b->running = b->next;
    b->next = old;
    b->n_running = n_next;
    sort_running(b);
    b->n_running = n_next < b->plan->o.n_beams ? n_next : b->plan->o.n_beams;
    b->round++;
    return QKV_OK;
}

static qkv_status run(beams *b, float *logits, qkv_generation *made, qkv_error *error) {
    for (int64_t before = 1;; before = b->n_running) {
        QKV_TRY(qkvi_still_wanted(b->plan, error));
        QKV_TRY(next_round(b, logits, error));
        if (b->n_running == 0 || !may_improve(b)) return QKV_OK;
        bool moved = b->n_running != before;
        for (int64_t i = 0; i < b->n_running; i++) moved |= b->from[i] != i;
        if (moved) QKV_TRY(b->lm->reorder(b->lm->self, b->n_running, b->from, error));
        QKV_TRY(b->lm->step(b->lm->self, b->n_running, b->ids, logits, error));
        made->n_steps++;
    }
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static qkv_status beams_make(beams *b, const int32_t *prompt, qkv_error *error) {
    const qkvi_plan *const plan = b->plan;
    const size_t n_beams = (size_t)plan->o.n_beams, n_kept = (size_t)b->n_kept;
    b->running = qkvi_drafts_make(plan, prompt, b->n_kept);
    b->next = qkvi_drafts_make(plan, prompt, b->n_kept);
    b->done = qkvi_calloc_array(n_beams, sizeof *b->done);
    b->x = qkvi_malloc_array((size_t)plan->lm.vocab, sizeof *b->x);
    b->kept = qkvi_malloc_array(n_kept, sizeof *b->kept);
    b->from = qkvi_malloc_array(n_kept, sizeof *b->from);
    b->ids = qkvi_malloc_array(n_kept, sizeof *b->ids);
    bool all = b->running && b->next && b->done && b->x && b->kept && b->from && b->ids;
    for (size_t i = 0; all && i < n_beams; i++) {
        b->done[i].draft.ids = qkvi_malloc_array((size_t)plan->max_total, sizeof *prompt);
        all = b->done[i].draft.ids != NULL;
    }
    if (all) return qkvi_scratch_make(plan, &b->scratch, error);
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %zu beams", n_beams);
}

static void beams_free(beams *b) {
    qkvi_drafts_free(b->running, b->n_kept);
    qkvi_drafts_free(b->next, b->n_kept);
    for (int64_t i = 0; b->done && i < b->plan->o.n_beams; i++) free(b->done[i].draft.ids);
    free(b->done);
    free(b->x);
    free(b->kept);
    free(b->from);
    free(b->ids);
    qkvi_scratch_free(&b->scratch);
}

qkv_status qkvi_search_beams(const qkvi_plan *plan, const qkvi_lm *lm, const int32_t *prompt,
                             float *logits, qkv_generation *made, qkv_error *error) {
    beams b = { .plan = plan, .lm = lm, .n_running = 1 };
    b.n_kept = plan->o.n_beams * (plan->n_eos > 1 ? 1 + plan->n_eos : 2);
    qkv_status status = beams_make(&b, prompt, error);
    if (status == QKV_OK) status = run(&b, logits, made, error);
    for (int64_t i = 0; status == QKV_OK && i < b.n_done && i < plan->o.n_return; i++) {
        status =
            qkvi_sequence_take(plan, &b.done[i].draft, b.done[i].end, made->sequences[i], error);
        made->n_sequences += status == QKV_OK;
    }
    beams_free(&b);
    return status;
}
