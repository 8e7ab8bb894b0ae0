/* The numbers of heads by name, for tests that compare them with their own sums. */
#ifndef HEAD_VALUES_H
#define HEAD_VALUES_H

#include "qkv/heads.h"

typedef struct head_values {
    int64_t layer, head, received_key, n_queries;
    double entropy, entropy_normalized, confidence, mean_distance;
    double mass_cls, mass_sep, mass_punctuation, mass_self, mass_previous, mass_next;
    double effective_keys, mass_window, mass_same_token, mass_duplicate, mass_induction;
    double received_largest, received_early, received_gini;
    const char *label;
} head_values;

static inline head_values head_values_of(const qkv_heads *heads, int64_t index) {
    const double *const n = qkv_heads_numbers(heads, index);
    const int64_t across = qkv_heads_get_info(heads)->n_heads;
    const double key = qkv_head_number_value(n, "received_key");
#define NUMBER(name) .name = qkv_head_number_value(n, #name)
    return (head_values){ .layer = index / across,
                          .head = index % across,
                          .received_key = key >= 0 ? (int64_t)key : -1,
                          .n_queries = (int64_t)qkv_head_number_value(n, "n_queries"),
                          NUMBER(entropy),
                          NUMBER(entropy_normalized),
                          NUMBER(confidence),
                          NUMBER(mean_distance),
                          NUMBER(mass_cls),
                          NUMBER(mass_sep),
                          NUMBER(mass_punctuation),
                          NUMBER(mass_self),
                          NUMBER(mass_previous),
                          NUMBER(mass_next),
                          NUMBER(effective_keys),
                          NUMBER(mass_window),
                          NUMBER(mass_same_token),
                          NUMBER(mass_duplicate),
                          NUMBER(mass_induction),
                          NUMBER(received_largest),
                          NUMBER(received_early),
                          NUMBER(received_gini),
                          .label = qkv_heads_label(n) };
#undef NUMBER
}

/* Opens heads, measures them, and closes them; values is [heads of the attention]. */
static inline qkv_status head_values_of_run(qkv_ctx *context, const qkv_run *of,
                                            qkv_attention_kind which, const qkv_token_list *queries,
                                            const qkv_token_list *keys, head_values *values,
                                            qkv_error *error) {
    qkv_heads *heads;
    qkv_status status = qkv_heads_open_run(context, of, which, 0, queries, keys, &heads, error);
    if (status == QKV_OK) status = qkv_heads_measure(heads, QKV_HEADS_RECEIVED, NULL, error);
    const qkv_heads_info *const info = qkv_heads_get_info(heads);
    for (int64_t h = 0; status == QKV_OK && h < info->n_layers * info->n_heads; h++)
        values[h] = head_values_of(heads, h);
    qkv_heads_free(heads);
    return status;
}

/* The same for a text through the only stack of a model. */
static inline qkv_status head_values_of_text(qkv_ctx *context, const qkv_tokenizer *tokenizer,
                                             const qkv_run *of, const qkv_encoding *input,
                                             head_values *values, qkv_error *error) {
    const qkv_token_list list = { tokenizer, input };
    return head_values_of_run(context, of, QKV_SELF, &list, NULL, values, error);
}

#endif
