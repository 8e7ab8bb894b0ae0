/*
 * Checking what a caller asks for; messages name field, value and rule. See plan.h.
 */
#include "model/generate/plan.h"

#include <math.h>

#include "core/options.h"
#include "files/utf8.h"

static qkv_status check_range(const char *name, int64_t value, int64_t min, int64_t max,
                              qkv_error *error) {
    if (value >= min && value <= max) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s = %lld is not between %lld and %lld", name,
                          (long long)value, (long long)min, (long long)max);
}

static qkv_status check_real(const char *name, double value, double min, double max,
                             qkv_error *error) {
    if (value >= min && value <= max) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s = %.9g is not between %.9g and %.9g", name,
                          value, min, max);
}

static qkv_status check_id(const qkvi_plan *plan, const char *name, int64_t id, qkv_error *error) {
    if (id >= 0 && id < plan->lm.vocab) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s: %lld is no id of a vocabulary of %lld",
                          name, (long long)id, (long long)plan->lm.vocab);
}

static qkv_status check_pointer(const char *name, const void *pointer, int64_t n,
                                qkv_error *error) {
    if (pointer || n == 0) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL, and there are %lld of it", name,
                          (long long)n);
}

static qkv_status check_numbers(const qkv_generate_options *o, qkv_error *error) {
    QKV_TRY(check_range("max_new", o->max_new, 0, INT32_MAX, error));
    QKV_TRY(check_range("max_length", o->max_length, 0, INT32_MAX, error));
    QKV_TRY(check_range("min_new", o->min_new, 0, INT32_MAX, error));
    QKV_TRY(check_range("min_length", o->min_length, 0, INT32_MAX, error));
    QKV_TRY(check_range("n_beams", o->n_beams, 1, QKVI_BEAMS_MAX, error));
    QKV_TRY(check_range("n_return", o->n_return, 1, QKVI_BEAMS_MAX, error));
    QKV_TRY(check_real("length_penalty", o->length_penalty, -16, 16, error));
    QKV_TRY(
        check_range("early_stopping", o->early_stopping, QKV_EARLY_LIKELY, QKV_EARLY_NEVER, error));
    QKV_TRY(check_real("temperature", o->temperature, 1e-6, 1e6, error));
    QKV_TRY(check_range("top_k", o->top_k, 0, INT64_MAX, error));
    QKV_TRY(check_real("top_p", o->top_p, 0, 1, error));
    QKV_TRY(check_real("min_p", o->min_p, 0, 1, error));
    QKV_TRY(check_real("repetition_penalty", o->repetition_penalty, 1e-6, 1e6, error));
    return check_range("no_repeat_ngram", o->no_repeat_ngram, 0, INT32_MAX, error);
}

/* Options that go together. */
static qkv_status check_together(const qkv_generate_options *o, qkv_error *error) {
    if (o->n_beams > 1 && o->n_return > o->n_beams)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "n_return = %lld is above n_beams = %lld",
                              (long long)o->n_return, (long long)o->n_beams);
    if (o->n_beams == 1 && o->n_return > 1 && !o->sample)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "n_return = %lld: without beams and sampling there is one sequence",
                              (long long)o->n_return);
    if (o->on_text && (o->n_beams > 1 || o->n_return > 1))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "on_text is for one sequence: n_beams = %lld, n_return = %lld",
                              (long long)o->n_beams, (long long)o->n_return);
    if (o->no_eos && o->n_eos > 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "no_eos together with n_eos = %lld",
                              (long long)o->n_eos);
    return QKV_OK;
}

static qkv_status check_bad_words(const qkvi_plan *plan, qkv_error *error) {
    const qkv_generate_options *const o = &plan->o;
    QKV_TRY(check_range("n_bad_words", o->n_bad_words, 0, QKVI_BAD_WORDS_MAX, error));
    QKV_TRY(check_pointer("bad_words", o->bad_words, o->n_bad_words, error));
    QKV_TRY(check_pointer("bad_word_lengths", o->bad_word_lengths, o->n_bad_words, error));
    for (int64_t w = 0, at = 0; w < o->n_bad_words; at += o->bad_word_lengths[w++]) {
        QKV_TRY(check_range("bad_word_lengths", o->bad_word_lengths[w], 1, INT32_MAX, error));
        for (int64_t i = 0; i < o->bad_word_lengths[w]; i++)
            QKV_TRY(check_id(plan, "bad_words", o->bad_words[at + i], error));
    }
    return QKV_OK;
}

static qkv_status check_ids(const qkvi_plan *plan, qkv_error *error) {
    const qkv_generate_options *const o = &plan->o;
    if (o->forced_bos != -1) QKV_TRY(check_id(plan, "forced_bos", o->forced_bos, error));
    if (o->forced_eos != -1) QKV_TRY(check_id(plan, "forced_eos", o->forced_eos, error));
    QKV_TRY(check_range("n_forced_ends", o->n_forced_ends, 0, QKVI_EOS_MAX, error));
    QKV_TRY(check_pointer("forced_ends", o->forced_ends, o->n_forced_ends, error));
    for (int64_t i = 0; i < o->n_forced_ends; i++)
        QKV_TRY(check_id(plan, "forced_ends", o->forced_ends[i], error));
    QKV_TRY(check_range("n_eos", o->n_eos, 0, QKVI_EOS_MAX, error));
    QKV_TRY(check_pointer("eos", o->eos, o->n_eos, error));
    for (int64_t i = 0; i < o->n_eos; i++) QKV_TRY(check_id(plan, "eos", o->eos[i], error));
    return check_bad_words(plan, error);
}

static qkv_status check_stops(const qkv_generate_options *o, qkv_error *error) {
    QKV_TRY(check_range("n_stop", o->n_stop, 0, QKVI_STOPS_MAX, error));
    QKV_TRY(check_pointer("stop", o->stop, o->n_stop, error));
    for (int64_t i = 0; i < o->n_stop; i++) {
        QKV_TRY(check_pointer("stop[]", o->stop[i], 1, error));
        const size_t n = strnlen(o->stop[i], QKVI_STOP_BYTES_MAX + 1);
        if (n == 0 || n > QKVI_STOP_BYTES_MAX)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "stop[%lld] is %s", (long long)i,
                                  n ? "longer than 4,096 bytes" : "empty");
        const size_t valid = qkvi_utf8_valid(o->stop[i], n);
        if (valid < n)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "stop[%lld]: byte %zu is no UTF-8",
                                  (long long)i, valid);
    }
    return QKV_OK;
}

static qkv_status find_length(qkvi_plan *plan, qkv_error *error) {
    const int64_t prompt = plan->lm.prompt_len, max_len = plan->lm.max_len;
    if (prompt >= max_len)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "a prompt of %lld tokens leaves no room: the model's length is %lld",
                              (long long)prompt, (long long)max_len);
    const int64_t asked = plan->o.max_new > 0 ? prompt + plan->o.max_new : plan->o.max_length;
    if (asked > 0 && prompt >= asked)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "a prompt of %lld tokens leaves no room: max_length = %lld",
                              (long long)prompt, (long long)asked);
    plan->model_limits = asked == 0 || asked > max_len;
    plan->max_total = plan->model_limits ? max_len : asked;
    plan->ends_early = asked > max_len;
    return QKV_OK;
}

qkv_status qkvi_plan_make(qkvi_plan *plan, const qkv_generate_options *options,
                          const qkvi_lm_facts *lm, qkv_error *error) {
    *plan = (qkvi_plan){ .o = qkv_generate_options_init(), .lm = *lm };
    qkv_generate_options *const o = &plan->o;
    if (options) QKV_TRY(qkvi_options_read(o, sizeof *o, options, "qkv_generate_options", error));
    QKV_TRY(check_numbers(o, error));
    QKV_TRY(check_together(o, error));
    QKV_TRY(check_ids(plan, error));
    QKV_TRY(check_stops(o, error));
    QKV_TRY(find_length(plan, error));
    plan->eos = o->n_eos > 0 ? o->eos : plan->own_eos;
    plan->n_eos = o->no_eos ? 0 : o->n_eos > 0 ? o->n_eos : lm->n_eos;
    for (int64_t i = 0; i < lm->n_eos; i++) plan->own_eos[i] = (int32_t)lm->eos[i];
    plan->n_slots = o->n_beams > o->n_return ? o->n_beams : o->n_return;
    return QKV_OK;
}
