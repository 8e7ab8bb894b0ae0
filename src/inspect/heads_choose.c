/**
 * Which head and query of a run to show first. Rules choose the head and query with the largest
 * weight on a key of some kind, such as a content word. The key that is shown is the one with the
 * largest weight in that row, of whatever kind.
 */

#include "core/options.h"
#include "inspect/heads_impl.h"
#include "qkv/inspect.h"

/* What may be chosen: [n_all] heads, [n] tokens that look, [n_keys] tokens looked at. */
struct marks {
    int causal; /* queries are of a decoder, and see keys up to their own place */
    uint8_t *heads, *from, *to;
    int64_t n_content, n_ordinary, n_masks; /* keys; queries that are [MASK] */
};

/*
 * A head that follows positions puts nearly all its weight on a neighbour, whatever the words say.
 */
static int follows_positions(const double *numbers) {
    const char *const label = qkv_heads_label(numbers);
    return strcmp(label, "next") == 0 || strcmp(label, "prev") == 0;
}

/* The given head; otherwise all, those that follow positions only with `positional`. */
static void mark_heads(const qkv_heads *heads, int64_t only, int positional, uint8_t *marks) {
    for (int64_t h = 0; h < heads->n_all; h++)
        marks[h] =
            only >= 0 ? h == only : positional || !follows_positions(qkv_heads_numbers(heads, h));
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

/* Keys that are content words; queries that are [MASK]. */
static void mark_tokens(const qkv_heads *heads, struct marks *marks) {
    const qkv_encoding *const keys = heads->keys.tokens, *const queries = heads->queries.tokens;
    const int32_t mask = qkv_tokenizer_special(heads->queries.tokenizer, QKV_TOKEN_MASK);
    const int causal = marks->causal;
    qkv_inspect_content(heads->keys.tokenizer, keys, marks->to);
    if (causal && keys->n > 1) marks->to[0] = 0;
    for (int64_t j = causal; j < keys->n; j++) {
        marks->n_content += marks->to[j] != 0;
        marks->n_ordinary += !keys->special[j];
    }
    for (int64_t i = 0; i < queries->n; i++) {
        marks->from[i] = mask >= 0 && queries->ids[i] == mask;
        marks->n_masks += marks->from[i];
    }
}

/* Ordinary tokens in place of content words, or all. */
static void take_keys(const qkv_heads *heads, int content, int ordinary, struct marks *marks) {
    const qkv_encoding *const keys = heads->keys.tokens;
    for (int64_t j = 0; j < keys->n && !content; j++)
        marks->to[j] = (!marks->causal || j > 0) && (!ordinary || !keys->special[j]);
}

/* Of an encoder: fills from and to, and returns the name of the rule. */
static const char *select_tokens(const qkv_heads *heads, struct marks *marks) {
    const int has_mask = qkv_tokenizer_special(heads->keys.tokenizer, QKV_TOKEN_MASK) >= 0;
    if (marks->n_masks > 0 && marks->n_content > 0)
        return "the head in which [MASK] looks most sharply at a content word, heads that follow "
               "positions (next, prev) aside";
    const int content = marks->n_content > 1, ordinary = marks->n_ordinary > (marks->n_masks == 0);
    take_keys(heads, content, ordinary, marks);
    for (int64_t i = 0; marks->n_masks == 0 && i < heads->info.n_queries; i++)
        marks->from[i] = marks->to[i];
    if (marks->n_masks > 0)
        return "the head in which [MASK] looks most sharply at another token, for want of content "
               "words";
    if (!has_mask)
        return content ? "the head in which one content word looks most sharply at another"
                       : "the head in which one token looks most sharply at another, for want of "
                         "content words";
    return content ? "the head in which one content word looks most sharply at another, for want "
                     "of a [MASK]"
                   : "the head in which one token looks most sharply at another, for want of "
                     "[MASK] and content words";
}

/* Of causal queries, and of cross-attention. */
static const char *select_for_decoder(const qkv_heads *heads, struct marks *marks) {
    const int content = marks->n_content > 0;
    take_keys(heads, content, marks->n_ordinary > 0, marks);
    memset(marks->from, 1, (size_t)heads->info.n_queries);
    if (heads->which == QKV_CROSS)
        return content ? "the head in which a token looks most sharply at a content word of the "
                         "source"
                       : "the head in which a token looks most sharply at one of the source";
    return content
               ? "the head in which a token looks most sharply at a content word before it, the "
                 "first token and heads that follow positions (next, prev) aside"
               : "the head in which a token looks most sharply at one before it, the first "
                 "token and heads that follow positions (next, prev) aside";
}

/* ---- Induction ------------------------------------------------------------------------------- */

static double induction_threshold(void) {
    const qkv_head_rule *rule;
    for (int i = 0; (rule = qkv_head_rule_at(i)); i++)
        if (strcmp(rule->label, "induction") == 0) return rule->threshold;
    return 1;
}

/* The head that continues a repetition most, if one does; -1. */
static int64_t find_induction(const qkv_heads *heads) {
    double largest = induction_threshold();
    int64_t best = -1;
    for (int64_t h = 0; h < heads->n_all; h++) {
        const double *const numbers = qkv_heads_numbers(heads, h);
        const double value = qkv_head_number_value(numbers, "mass_induction");
        if (!(value > largest) || follows_positions(numbers)) continue;
        largest = value;
        best = h;
    }
    return best;
}

/* Queries whose token stands before them, and keys that follow such a place. */
static void mark_repetitions(const qkv_encoding *input, struct marks *marks) {
    memset(marks->from, 0, (size_t)input->n);
    memset(marks->to, 0, (size_t)input->n);
    for (int64_t i = 1; i < input->n; i++)
        for (int64_t j = 0; j < i; j++)
            if (input->ids[j] == input->ids[i]) marks->from[i] = marks->to[j + 1] = 1;
}

/* ---- The choice ------------------------------------------------------------------------------ */

static qkv_status search(qkv_heads *heads, const struct marks *marks, qkv_heads_choice *choice,
                         qkv_error *error) {
    qkv_sharpest found = qkv_sharpest_init();
    QKV_TRY(qkv_heads_sharpest(heads, marks->heads, marks->from, marks->to, &found, error));
    choice->query = found.query;
    choice->rule_key = found.key;
    choice->rule_weight = found.weight;
    if (found.key < 0) return QKV_OK;
    choice->layer = found.layer;
    choice->head = found.head;
    return qkv_heads_look(heads, found.layer * heads->info.n_heads + found.head, found.query,
                          &choice->key, &choice->weight, error);
}

static qkv_status choose(qkv_heads *heads, int64_t index, struct marks *marks,
                         qkv_heads_choice *choice, qkv_error *error) {
    marks->causal = heads->decodes; /* not an encoder that is asked to be causal */
    const int decodes = marks->causal || heads->which == QKV_CROSS;
    const int64_t induction = marks->causal && index < 0 ? find_induction(heads) : -1;
    mark_tokens(heads, marks);
    choice->rule = decodes ? select_for_decoder(heads, marks) : select_tokens(heads, marks);
    if (induction >= 0) {
        choice->rule = "the head that looks most at what followed an earlier place of the token "
                       "(induction)";
        index = induction;
        mark_repetitions(heads->queries.tokens, marks);
    }
    if (index >= 0) {
        choice->layer = index / heads->info.n_heads;
        choice->head = index % heads->info.n_heads;
    }
    mark_heads(heads, index, 0, marks->heads);
    QKV_TRY(search(heads, marks, choice, error));
    if (choice->query >= 0 || index >= 0) return QKV_OK;
    mark_heads(heads, index, 1, marks->heads); /* all heads follow positions */
    return search(heads, marks, choice, error);
}

qkv_status qkv_heads_choose(qkv_heads *heads, int64_t index, qkv_heads_choice *choice,
                            qkv_error *error) {
    if (!heads || !choice)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", heads ? "choice" : "heads");
    if (index >= 0) QKV_TRY(qkvi_heads_check(heads, index, error));
    if (!heads->keys.tokens || !heads->numbers)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "heads are not of a run, or are not measured");
    qkv_heads_choice made = qkv_heads_choice_init();
    QKV_TRY(qkvi_options_read(&made, sizeof made, choice, "qkv_heads_choice", error));
    made = (qkv_heads_choice){ .query = -1, .key = -1, .rule_key = -1 };
    struct marks marks = { .heads = qkvi_calloc_array((size_t)heads->n_all, 1),
                           .from = qkvi_calloc_array((size_t)heads->info.n_queries, 1),
                           .to = qkvi_calloc_array((size_t)heads->info.n_keys, 1) };
    const qkv_status status = marks.heads && marks.from && marks.to
                                  ? choose(heads, index, &marks, &made, error)
                                  : qkvi_no_memory(error, "marks");
    if (status == QKV_OK) qkvi_options_write(choice, &made, sizeof made);
    free(marks.heads);
    free(marks.from);
    free(marks.to);
    return status;
}
