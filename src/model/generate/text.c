/* See text.h. */
#include "model/generate/text.h"

#include "core/find.h"
#include "text/tokenizer.h"

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

qkv_status qkvi_generated_text(const qkv_tokenizer *tokenizer, const int32_t *ids, int64_t n,
                               qkv_text **text, qkv_error *error) {
    *text = NULL;
    if (tokenizer == NULL) return QKV_OK;
    int32_t *const known = qkvi_malloc_array((size_t)n, sizeof *known);
    if (known == NULL) return qkvi_no_memory(error, "a text");
    int64_t n_known = 0;
    size_t ignored;
    for (int64_t i = 0; i < n; i++)
        if (qkv_tokenizer_token(tokenizer, ids[i], &ignored)) known[n_known++] = ids[i];
    const qkv_status status = qkvi_tokenizer_decode_on(tokenizer, known, n_known, text, error);
    free(known);
    return status;
}

int64_t qkvi_find_stop(const qkvi_plan *plan, const char *bytes, int64_t n) {
    int64_t first = -1;
    for (int64_t i = 0; i < plan->o.n_stop; i++) {
        const char *const stop = plan->o.stop[i];
        const char *const found = qkvi_find(bytes, (size_t)n, stop, strlen(stop));
        if (found && (first < 0 || found - bytes < first)) first = found - bytes;
    }
    return first;
}

/* Without U+FFFD at the end. */
static int64_t complete(const char *bytes, int64_t n) {
    while (n >= 3 && memcmp(bytes + n - 3, replacement, 3) == 0) n -= 3;
    return n;
}

qkv_status qkvi_has_stop(const qkvi_plan *plan, const int32_t *ids, int64_t n, bool *has,
                         qkv_error *error) {
    qkv_text *text = NULL;
    *has = false;
    if (plan->o.n_stop == 0) return QKV_OK;
    QKV_TRY(qkvi_generated_text(plan->o.tokenizer, ids, n, &text, error));
    if (text) *has = qkvi_find_stop(plan, text->bytes, complete(text->bytes, text->n)) >= 0;
    qkv_text_free(text);
    return QKV_OK;
}

/* The longest end of bytes that a string of stop begins with. */
static int64_t begun_stop(const qkvi_plan *plan, const char *bytes, int64_t n) {
    int64_t longest = 0;
    for (int64_t i = 0; i < plan->o.n_stop; i++) {
        const int64_t length = (int64_t)strlen(plan->o.stop[i]);
        for (int64_t m = length - 1 < n ? length - 1 : n; m > longest; m--)
            if (memcmp(bytes + n - m, plan->o.stop[i], (size_t)m) == 0) longest = m;
    }
    return longest;
}

int64_t qkvi_settled(const qkvi_plan *plan, const char *bytes, int64_t n) {
    const int64_t whole = complete(bytes, n), stop = qkvi_find_stop(plan, bytes, whole);
    return stop >= 0 ? stop : whole - begun_stop(plan, bytes, whole);
}

/* The whole text at the end: cut before a string of stop. */
static int64_t cut(const qkvi_plan *plan, const qkv_text *text) {
    const int64_t stop = qkvi_find_stop(plan, text->bytes, text->n);
    return stop >= 0 ? stop : text->n;
}

qkv_status qkvi_tell(const qkvi_plan *plan, const int32_t *ids, int64_t n, bool at_end,
                     int64_t *sent, bool *ended, qkv_error *error) {
    qkv_text *text = NULL;
    if (plan->o.on_text == NULL) return QKV_OK;
    QKV_TRY(qkvi_generated_text(plan->o.tokenizer, ids, n, &text, error));
    if (text == NULL) return QKV_OK;
    const int64_t until = at_end ? cut(plan, text) : qkvi_settled(plan, text->bytes, text->n);
    if (until > *sent) {
        if (plan->o.on_text(plan->o.user, text->bytes + *sent, (size_t)(until - *sent)))
            *ended = true;
        *sent = until;
    }
    qkv_text_free(text);
    return QKV_OK;
}

qkv_status qkvi_sequence_text(const qkvi_plan *plan, qkv_sequence *sequence, qkv_error *error) {
    qkv_text *text = NULL;
    QKV_TRY(qkvi_generated_text(plan->o.tokenizer, sequence->ids, sequence->n, &text, error));
    const bool told = sequence->end == QKV_END_CALLER;
    const int64_t n = text == NULL ? 0 : told ? sequence->n_bytes : cut(plan, text);
    sequence->text = qkvi_malloc_array((size_t)n + 1, 1);
    if (sequence->text && n > 0) memcpy(sequence->text, text->bytes, (size_t)n);
    if (sequence->text) sequence->text[n] = '\0';
    sequence->n_bytes = n;
    qkv_text_free(text);
    return sequence->text ? QKV_OK : qkvi_no_memory(error, "a text");
}
