/* Looks through the weights of all heads for the sharpest look from some tokens at others. */
#include "choose.h"

#include <stdlib.h>
#include <string.h>

#include "input.h"
#include <qkv/inspect.h>

/* from[i], to[j]: whether token i may be the one that looks, token j the one looked at. */
struct search {
    const struct session *session;
    const qkv_run *run;
    int64_t n;
    uint8_t *from, *to;
    float *weights;
    const qkv_head_stats *stats; /* of every head */
};

/*
 * A head that follows positions puts nearly all its weight on a neighbour, whatever the words say.
 */
static bool follows_positions(const qkv_head_stats *stats) {
    return strcmp(stats->label, "next") == 0 || strcmp(stats->label, "prev") == 0;
}

static void search_head(const struct search *search, int64_t layer, int64_t head,
                        struct choice *best) {
    for (int64_t i = 0; i < search->n; i++) {
        for (int64_t j = 0; search->from[i] && j < search->n; j++) {
            const float weight = search->weights[i * search->n + j];
            if (i == j || !search->to[j] || !(weight > best->weight)) continue;
            best->layer = layer;
            best->head = head;
            best->query = i;
            best->key = j;
            best->weight = weight;
        }
    }
}

static qkv_status search_all(const struct search *search, bool given, bool positional,
                             struct choice *choice, qkv_error *error) {
    const qkv_model_info *info = search->session->info;
    const int64_t only = choice->layer * info->n_heads + choice->head;
    choice->query = choice->key = -1;
    choice->weight = -1;
    for (int64_t i = 0; i < info->n_layers * info->n_heads; i++) {
        if (given ? i != only : !positional && follows_positions(&search->stats[i])) continue;
        const int64_t layer = i / info->n_heads, head = i % info->n_heads;
        const qkv_status status =
            qkv_run_weights(search->run, 0, layer, head, search->weights, error);
        if (status != QKV_OK) return status;
        search_head(search, layer, head, choice);
    }
    return QKV_OK;
}

/* Fills from and to, and returns the name of the rule. */
static const char *select_tokens(const struct search *search, const qkv_encoding *input) {
    const qkv_tokenizer *tokenizer = search->session->tokenizer;
    const int32_t mask = qkv_tokenizer_special(tokenizer, QKV_TOKEN_MASK);
    int64_t n_content = 0, n_masks = 0, n_ordinary = 0;
    qkv_inspect_content(tokenizer, input, search->to);
    for (int64_t i = 0; i < search->n; i++) {
        search->from[i] = mask >= 0 && input->ids[i] == mask;
        n_masks += search->from[i];
        n_content += search->to[i] != 0;
        n_ordinary += !input->special[i];
    }
    if (n_masks > 0 && n_content > 0)
        return "the head in which [MASK] looks most sharply at a content word, heads that follow "
               "positions (next, prev) aside";
    const bool content = n_content > 1, ordinary = n_ordinary > (n_masks == 0);
    for (int64_t i = 0; i < search->n; i++) {
        search->to[i] = content ? search->to[i] != 0 : !ordinary || !input->special[i];
        if (n_masks == 0) search->from[i] = search->to[i];
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
    const size_t n = (size_t)input->n;
    struct search search = { session,
                             run,
                             input->n,
                             calloc(n + 1, 1),
                             calloc(n + 1, 1),
                             calloc(n * n + 1, sizeof(float)),
                             stats };
    qkv_status status = QKV_OK;
    if (search.from && search.to && search.weights) {
        choice->rule = select_tokens(&search, input);
        status = search_all(&search, given, false, choice, error);
        if (status == QKV_OK && choice->query < 0) /* all heads follow positions */
            status = search_all(&search, given, true, choice, error);
    } else {
        status = text_error(error, QKV_ERR_MEMORY, "out of memory");
    }
    free(search.from);
    free(search.to);
    free(search.weights);
    return status;
}
