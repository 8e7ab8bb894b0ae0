/* Which heads and tokens come into question for the picture; qkv_inspect_sharpest finds the one. */
#include "choose.h"

#include <stdlib.h>
#include <string.h>

#include "input.h"

/* What may be chosen: [n_layers * n_heads] heads, [n] tokens that look, [n_keys] tokens looked at. */
struct marks {
    uint8_t *heads, *from, *to;
    int64_t n_content, n_ordinary, n_masks; /* keys; queries that are [MASK] */
};

struct attention_view view_of_text(const struct session *session, const qkv_encoding *input) {
    const qkv_model_info *info = session->info;
    const qkv_token_list list = { session->tokenizer, input };
    return (struct attention_view){ .n_layers = info->n_layers,
                                    .n_heads = info->n_heads,
                                    .queries = list,
                                    .keys = list,
                                    .causal = info->is_decoder };
}

/*
 * A head that follows positions puts nearly all its weight on a neighbour, whatever the words say.
 */
static bool follows_positions(const qkv_head_stats *stats) {
    return strcmp(stats->label, "next") == 0 || strcmp(stats->label, "prev") == 0;
}

/* The given head; otherwise all, those that follow positions only with `positional`. */
static void mark_heads(const struct attention_view *view, const qkv_head_stats *stats, bool given,
                       bool positional, const struct choice *choice, uint8_t *heads) {
    const int64_t only = choice->layer * view->n_heads + choice->head;
    for (int64_t i = 0; i < view->n_layers * view->n_heads; i++)
        heads[i] = given ? i == only : positional || !follows_positions(&stats[i]);
}

static qkv_status search(const struct session *session, const qkv_run *run,
                         const struct attention_view *view, const struct marks *marks, bool given,
                         struct choice *choice, qkv_error *error) {
    qkv_sharpest sharpest;
    const qkv_status status =
        qkv_inspect_sharpest_of(session->model, run, view->which, 0, marks->heads, marks->from,
                                marks->to, &sharpest, error);
    if (status != QKV_OK) return status;
    if (!given) {
        choice->layer = sharpest.layer;
        choice->head = sharpest.head;
    }
    choice->query = sharpest.query;
    choice->key = sharpest.key;
    choice->weight = sharpest.weight;
    return QKV_OK;
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

/* Keys that are content words; queries that are [MASK]. */
static void mark_tokens(const struct attention_view *view, struct marks *marks) {
    const qkv_encoding *keys = view->keys.tokens, *queries = view->queries.tokens;
    const int32_t mask = qkv_tokenizer_special(view->queries.tokenizer, QKV_TOKEN_MASK);
    qkv_inspect_content(view->keys.tokenizer, keys, marks->to);
    if (view->causal && keys->n > 1) marks->to[0] = 0;
    for (int64_t j = view->causal; j < keys->n; j++) {
        marks->n_content += marks->to[j] != 0;
        marks->n_ordinary += !keys->special[j];
    }
    for (int64_t i = 0; i < queries->n; i++) {
        marks->from[i] = mask >= 0 && queries->ids[i] == mask;
        marks->n_masks += marks->from[i];
    }
}

/* Ordinary tokens in place of content words, or all. */
static void take_keys(const struct attention_view *view, bool content, bool ordinary,
                      struct marks *marks) {
    const qkv_encoding *keys = view->keys.tokens;
    for (int64_t j = 0; j < keys->n && !content; j++)
        marks->to[j] = (!view->causal || j > 0) && (!ordinary || !keys->special[j]);
}

/* Of an encoder: fills from and to, and returns the name of the rule. */
static const char *select_tokens(const struct attention_view *view, struct marks *marks) {
    const qkv_encoding *input = view->keys.tokens;
    const bool has_mask = qkv_tokenizer_special(view->keys.tokenizer, QKV_TOKEN_MASK) >= 0;
    if (marks->n_masks > 0 && marks->n_content > 0)
        return "the head in which [MASK] looks most sharply at a content word, heads that follow "
               "positions (next, prev) aside";
    const bool content = marks->n_content > 1, ordinary = marks->n_ordinary > (marks->n_masks == 0);
    take_keys(view, content, ordinary, marks);
    for (int64_t i = 0; marks->n_masks == 0 && i < input->n; i++) marks->from[i] = marks->to[i];
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
static const char *select_for_decoder(const struct attention_view *view, struct marks *marks) {
    const bool content = marks->n_content > 0, crosses = view->which == QKV_CROSS;
    take_keys(view, content, marks->n_ordinary > 0, marks);
    memset(marks->from, 1, (size_t)view->queries.tokens->n);
    if (crosses)
        return content ? "the head in which a token looks most sharply at a content word of the "
                         "source"
                       : "the head in which a token looks most sharply at one of the source";
    return content
               ? "the head in which a token looks most sharply at a content word before it, the "
                 "first token and heads that follow positions (next, prev) aside"
               : "the head in which a token looks most sharply at one before it, the first "
                 "token and heads that follow positions (next, prev) aside";
}

/* ---- Heads ----------------------------------------------------------------------------------- */

static double induction_threshold(void) {
    const qkv_head_rule *rule;
    for (int i = 0; (rule = qkv_inspect_rule(i)); i++)
        if (strcmp(rule->label, "induction") == 0) return rule->threshold;
    return 1;
}

/* The head that continues a repetition most, if one does; -1. */
static int64_t find_induction(const struct attention_view *view, const qkv_head_stats *stats) {
    double largest = induction_threshold();
    int64_t best = -1;
    for (int64_t i = 0; i < view->n_layers * view->n_heads; i++) {
        if (!(stats[i].mass_induction > largest) || follows_positions(&stats[i])) continue;
        largest = stats[i].mass_induction;
        best = i;
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

static qkv_status choose(const struct session *session, const qkv_run *run,
                         const struct attention_view *view, const qkv_head_stats *stats, bool given,
                         struct marks *marks, struct choice *choice, qkv_error *error) {
    const bool decodes = view->causal || view->which == QKV_CROSS;
    const int64_t induction = view->causal && !given ? find_induction(view, stats) : -1;
    mark_tokens(view, marks);
    choice->rule = decodes ? select_for_decoder(view, marks) : select_tokens(view, marks);
    mark_heads(view, stats, given, false, choice, marks->heads);
    if (induction >= 0) {
        choice->rule = "the head that looks most at what followed an earlier place of the token "
                       "(induction)";
        choice->layer = induction / view->n_heads;
        choice->head = induction % view->n_heads;
        mark_heads(view, stats, true, false, choice, marks->heads);
        mark_repetitions(view->queries.tokens, marks);
    }
    qkv_status status = search(session, run, view, marks, given || induction >= 0, choice, error);
    if (status == QKV_OK && choice->query < 0 && !given) { /* all heads follow positions */
        mark_heads(view, stats, given, true, choice, marks->heads);
        status = search(session, run, view, marks, given, choice, error);
    }
    return status;
}

qkv_status choose_head(const struct session *session, const qkv_run *run,
                       const struct attention_view *view, const qkv_head_stats *stats, bool given,
                       struct choice *choice, qkv_error *error) {
    const size_t n_heads = (size_t)(view->n_layers * view->n_heads);
    struct marks marks = { .heads = calloc(n_heads + 1, 1),
                           .from = calloc((size_t)view->queries.tokens->n + 1, 1),
                           .to = calloc((size_t)view->keys.tokens->n + 1, 1) };
    const qkv_status status = marks.heads && marks.from && marks.to
                                  ? choose(session, run, view, stats, given, &marks, choice, error)
                                  : text_error(error, QKV_ERR_MEMORY, "out of memory");
    free(marks.heads);
    free(marks.from);
    free(marks.to);
    return status;
}

qkv_status choose_head_of_run(const struct session *session, const qkv_run *run,
                              const struct attention_view *view, bool given, struct choice *choice,
                              qkv_error *error) {
    qkv_head_stats *stats = calloc((size_t)(view->n_layers * view->n_heads) + 1, sizeof *stats);
    if (!stats) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    qkv_status status = qkv_inspect_heads_of(session->ctx, session->model, run, view->which, 0,
                                             &view->queries, &view->keys, stats, error);
    if (status == QKV_OK) status = choose_head(session, run, view, stats, given, choice, error);
    free(stats);
    return status;
}
