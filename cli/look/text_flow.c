/*
 * What texts show in place of weights: --norms, |p f(x)| of each cell (Kobayashi et al. 2020), and
 * --rollout, how much of each token is in each after all layers (Abnar and Zuidema 2020).
 */
#include <inttypes.h>
#include <stdlib.h>

#include "look/text.h"

/* The first of the largest: key -1, none so far. */
static void offer_key(qkv_heads_choice *choice, int64_t key, float weight) {
    if (choice->key >= 0 && !(weight > choice->weight)) return;
    choice->key = key;
    choice->weight = weight;
}

/* ---- --norms --------------------------------------------------------------------------------- */

static qkv_status make_factors(struct text_seen *t, qkv_error *error) {
    const struct session *const session = t->text.session;
    const int64_t across = t->seen.info->n_heads, n = t->seen.keys.n;
    t->factors = malloc((size_t)(t->seen.n_heads * n) * sizeof *t->factors + 1);
    qkv_status status = t->factors ? QKV_OK : text_no_memory(error);
    for (int64_t l = 0; l < t->seen.info->n_layers && status == QKV_OK; l++)
        status = qkv_inspect_norms(session->ctx, session->model, t->text.run, t->text.view.which, 0,
                                   l, t->factors + l * across * n, error);
    return status;
}

static void describe_norms(struct text_seen *t) {
    struct seen *const seen = &t->seen;
    t->quantity = (struct seen_quantity){ .name = "norms",
                                          .one = "norm",
                                          .title = "norm",
                                          .verb = "takes most from",
                                          .cell = t->cell,
                                          .factors = t->factors };
    text_append(
        t->cell, sizeof t->cell,
        "A cell is \u2016\u03b1 f(x)\u2016, the norm of what the row's token (query) takes "
        "of the column's token%s (key) in this head: its weight \u03b1 times the norm of the "
        "transformed vector f(x) (Kobayashi et al. 2020).",
        seen->keys.note);
    caption_add(&seen->legend,
                "A cell is \u2016\u03b1 f(x)\u2016, the norm of what the row's token (query) takes "
                "of the column's token%s (key), in percent of the largest in this head: its weight "
                "\u03b1 times the norm of the transformed vector f(x) (Kobayashi et al. 2020).%s",
                seen->keys.note,
                seen->info->causal ? " Tokens after a query are hidden from it: no cell." : "");
}

/* The key whose norm is largest, of the query that is shown. */
static qkv_status choose_norm(struct text_seen *t, qkv_error *error) {
    qkv_heads_choice *const choice = &t->seen.choice;
    const int64_t n = t->seen.keys.n, i = choice->query;
    const float *const factors = t->factors + t->seen.head * n;
    if (i < 0) return QKV_OK;
    float *const row = malloc((size_t)n * sizeof *row + 1);
    if (!row) return text_no_memory(error);
    const qkv_status status =
        qkv_heads_weights(t->seen.heads, t->seen.head, i, i + 1, 0, n, row, n, error);
    choice->key = -1;
    for (int64_t j = 0; j < n && status == QKV_OK; j++) offer_key(choice, j, row[j] * factors[j]);
    free(row);
    return status;
}

/* ---- --rollout ------------------------------------------------------------------------------- */

static qkv_status make_map(struct text_seen *t, qkv_error *error) {
    const struct session *const session = t->text.session;
    const int64_t n = t->seen.keys.n;
    t->map = malloc((size_t)(n * n) * sizeof *t->map + 1);
    if (!t->map) return text_no_memory(error);
    const qkv_status status =
        qkv_inspect_rollout_map(session->ctx, session->model, t->text.run, t->text.view.which, 0,
                                (qkv_rollout_heads)t->options->fuse.value, t->map, error);
    for (int64_t i = 0; i < n && t->seen.info->causal; i++)
        for (int64_t j = i + 1; j < n; j++) t->map[i * n + j] = QKV_CELL_HIDDEN;
    return status;
}

/* Of the query that is shown, or of the last one: which other token is most in it. */
static void choose_share(struct text_seen *t) {
    qkv_heads_choice *const choice = &t->seen.choice;
    const int64_t n = t->seen.keys.n;
    if (choice->query < 0) choice->query = n - 1;
    const float *const row = t->map + choice->query * n;
    choice->key = -1;
    for (int64_t j = 0; j < n; j++)
        if (j != choice->query && row[j] != QKV_CELL_HIDDEN) offer_key(choice, j, row[j]);
}

static void describe_rollout(struct text_seen *t) {
    struct seen *const seen = &t->seen;
    t->quantity = (struct seen_quantity){ .name = "rollout",
                                          .one = "share",
                                          .title = "share",
                                          .verb = "has, beside itself, most of",
                                          .cell = t->cell,
                                          .map = t->map };
    text_append(t->cell, sizeof t->cell,
                "A cell is the share of the column's token in the row's token after all layers, if "
                "each layer is half %s and half what was there (Abnar and Zuidema 2020); rows sum "
                "to 1.%s",
                look_fused(t->options),
                t->text.view.which == QKV_DECODER ? " Cross-attention is left out." : "");
    snprintf(seen->name, HEAD_NAME, "Rollout");
    caption_add(&seen->legend, "%s Cells are in percent.", t->cell);
    seen->rule = NULL;
    seen->first = seen->head = 0;
    seen->n_file = seen->n_order = 1;
    seen->one = seen->has_weights = true;
    seen->overview = OVERVIEW_NONE;
    snprintf(seen->content, sizeof seen->content, "rollout");
}

/* Where the heads are from, without the layer and the head that would have been shown. */
static void describe_source(struct text_seen *t) {
    struct seen *const seen = &t->seen;
    seen->legend = (struct caption){ "" };
    if (t->options->rollout) seen->about[1] = seen->about[0];
    what_if_caption(&t->text.what_if, &seen->legend);
}

qkv_status text_flow(struct text_seen *t, qkv_error *error) {
    const bool norms = t->options->norms;
    const qkv_status status = norms ? make_factors(t, error) : make_map(t, error);
    if (status != QKV_OK) return status;
    describe_source(t);
    t->seen.quantity = &t->quantity;
    if (norms) {
        describe_norms(t);
        return choose_norm(t, error);
    }
    describe_rollout(t);
    choose_share(t);
    return QKV_OK;
}

/* Of each head of each layer the norms of its keys, which weights are multiplied by. */
static json_t *factors_json(const struct text_seen *t) {
    json_t *const layers = json_array();
    const float *factor = t->factors;
    for (int64_t l = 0; l < t->seen.info->n_layers; l++) {
        json_t *const heads = json_array();
        for (int64_t h = 0; h < t->seen.info->n_heads; h++, factor += t->seen.keys.n)
            json_array_append_new(heads, json_floats(t->seen.keys.n, factor));
        json_array_append_new(layers, heads);
    }
    return layers;
}

void text_flow_json(const struct text_seen *t, json_t *object) {
    if (t->options->norms)
        json_set(object, "value_norms:o", factors_json(t));
    else
        json_set(object, "fuse:s", look_fuse(t->options));
}
