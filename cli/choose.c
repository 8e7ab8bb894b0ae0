/* Which heads and tokens come into question for the picture; qkv_inspect_sharpest finds the one. */
#include "choose.h"

#include <stdlib.h>
#include <string.h>

#include "input.h"
#include <qkv/inspect.h>

/* What may be chosen: [n_layers * n_heads] heads, [n] tokens that look, [n] tokens looked at. */
struct marks {
    uint8_t *heads, *from, *to;
};

/*
 * A head that follows positions puts nearly all its weight on a neighbour, whatever the words say.
 */
static bool follows_positions(const qkv_head_stats *stats) {
    return strcmp(stats->label, "next") == 0 || strcmp(stats->label, "prev") == 0;
}

/* The given head; otherwise all, those that follow positions only with `positional`. */
static void mark_heads(const struct session *session, const qkv_head_stats *stats, bool given,
                       bool positional, const struct choice *choice, uint8_t *heads) {
    const qkv_model_info *info = session->info;
    const int64_t only = choice->layer * info->n_heads + choice->head;
    for (int64_t i = 0; i < info->n_layers * info->n_heads; i++)
        heads[i] = given ? i == only : positional || !follows_positions(&stats[i]);
}

static qkv_status search(const struct session *session, const qkv_run *run,
                         const struct marks *marks, bool given, struct choice *choice,
                         qkv_error *error) {
    qkv_sharpest sharpest;
    const qkv_status status = qkv_inspect_sharpest(session->model, run, 0, marks->heads,
                                                   marks->from, marks->to, &sharpest, error);
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

/* Fills from and to, and returns the name of the rule. */
static const char *select_tokens(const struct session *session, const qkv_encoding *input,
                                 const struct marks *marks) {
    const qkv_tokenizer *tokenizer = session->tokenizer;
    const int32_t mask = qkv_tokenizer_special(tokenizer, QKV_TOKEN_MASK);
    int64_t n_content = 0, n_masks = 0, n_ordinary = 0;
    qkv_inspect_content(tokenizer, input, marks->to);
    for (int64_t i = 0; i < input->n; i++) {
        marks->from[i] = mask >= 0 && input->ids[i] == mask;
        n_masks += marks->from[i];
        n_content += marks->to[i] != 0;
        n_ordinary += !input->special[i];
    }
    if (n_masks > 0 && n_content > 0)
        return "the head in which [MASK] looks most sharply at a content word, heads that follow "
               "positions (next, prev) aside";
    const bool content = n_content > 1, ordinary = n_ordinary > (n_masks == 0);
    for (int64_t i = 0; i < input->n; i++) {
        marks->to[i] = content ? marks->to[i] != 0 : !ordinary || !input->special[i];
        if (n_masks == 0) marks->from[i] = marks->to[i];
    }
    if (n_masks > 0)
        return "the head in which [MASK] looks most sharply at another token, for want of content "
               "words";
    return content ? "the head in which one content word looks most sharply at another, for want "
                     "of a [MASK]"
                   : "the head in which one token looks most sharply at another, for want of "
                     "[MASK] and content words";
}

qkv_status choose_head(const struct session *session, const qkv_run *run, const qkv_encoding *input,
                       const qkv_head_stats *stats, bool given, struct choice *choice,
                       qkv_error *error) {
    const size_t n_heads = (size_t)(session->info->n_layers * session->info->n_heads);
    const struct marks marks = { calloc(n_heads + 1, 1), calloc((size_t)input->n + 1, 1),
                                 calloc((size_t)input->n + 1, 1) };
    qkv_status status = QKV_OK;
    if (marks.heads && marks.from && marks.to) {
        choice->rule = select_tokens(session, input, &marks);
        mark_heads(session, stats, given, false, choice, marks.heads);
        status = search(session, run, &marks, given, choice, error);
        if (status == QKV_OK && choice->query < 0 && !given) { /* all heads follow positions */
            mark_heads(session, stats, given, true, choice, marks.heads);
            status = search(session, run, &marks, given, choice, error);
        }
    } else {
        status = text_error(error, QKV_ERR_MEMORY, "out of memory");
    }
    free(marks.heads);
    free(marks.from);
    free(marks.to);
    return status;
}

qkv_status choose_head_of_run(const struct session *session, const qkv_run *run,
                              const qkv_encoding *input, bool given, struct choice *choice,
                              qkv_error *error) {
    const qkv_model_info *info = session->info;
    qkv_head_stats *stats = calloc((size_t)(info->n_layers * info->n_heads) + 1, sizeof *stats);
    if (!stats) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    qkv_status status =
        qkv_inspect_heads(session->ctx, session->model, run, 0, input, stats, error);
    if (status == QKV_OK) status = choose_head(session, run, input, stats, given, choice, error);
    free(stats);
    return status;
}
