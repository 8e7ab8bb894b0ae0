/* What is said about heads: their names, where they are from, and what a cell is. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "look/look.h"

void look_place(const struct look *look, int64_t index, int64_t *layer, int64_t *head) {
    const int64_t across = look_info(look)->n_heads;
    *layer = look->arrays ? look->arrays->layer : index / across;
    *head = look->arrays ? look->arrays->names[index] : index % across;
}

const char *look_label(const struct look *look, int64_t index) {
    const qkv_head_rule *rule;
    if (!look->windows) return qkv_heads_label(look_numbers(look, index));
    for (int i = 0; (rule = qkv_heads_rule(i)); i++)
        if (qkv_heads_label_share(look->text.heads, index, rule->label) > 0.5) return rule->label;
    return "";
}

void look_head_name(const struct look *look, char name[HEAD_NAME]) {
    int64_t layer, head;
    look_place(look, look_chosen(look), &layer, &head);
    if (!look->arrays)
        attention_head(look->text.session, look->text.view.which, layer, head, name);
    else if (layer >= 0)
        snprintf(name, HEAD_NAME, "Layer %" PRId64 ", head %" PRId64, layer, head);
    else
        snprintf(name, HEAD_NAME, "Head %" PRId64, head);
}

void look_title(const struct look *look, struct caption *title) {
    const qkv_heads_choice *choice = &look->choice;
    char name[HEAD_NAME];
    look_head_name(look, name);
    caption_add(title, "%s", name);
    if (choice->key >= 0)
        caption_add(title, ": %.60s looks at %.60s, %.2f", look->rows[choice->query],
                    look->cols[choice->key], (double)choice->weight);
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

/* "5", or "all" where there is no bound. */
static const char *bound(char text[24], int64_t n) {
    if (n < 0) return "all";
    snprintf(text, 24, "%" PRId64, n);
    return text;
}

static void add_mask(const struct arrays *arrays, struct caption *text) {
    const qkv_heads_arrays *a = &arrays->given;
    char left[24], right[24];
    if (!a->causal && !arrays->window) caption_add(text, ", no mask");
    if (a->causal) caption_add(text, ", causal: query i sees keys j \u2264 i");
    if (a->causal && a->q_offset != 0) caption_add(text, " %+" PRId64, a->q_offset);
    if (arrays->window)
        caption_add(text, ", window: %s keys before its place, %s after",
                    bound(left, a->window_left), bound(right, a->window_right));
}

void arrays_describe(const struct arrays *arrays, struct caption *caption) {
    const qkv_heads_arrays *a = &arrays->given;
    const struct look_options *o = arrays->options;
    char *q = term_escape(o->q, strlen(o->q)), *k = term_escape(o->k, strlen(o->k));
    caption_add(caption, "Arrays %.100s and %.100s: %" PRId64 " head%s", q ? q : "", k ? k : "",
                a->n_heads, a->n_heads == 1 ? "" : "s");
    if (a->n_kv_heads < a->n_heads) caption_add(caption, " (%" PRId64 " of keys)", a->n_kv_heads);
    caption_add(caption,
                ", %" PRId64 " quer%s, %" PRId64 " key%s, head size %" PRId64 "; scale %.6g",
                a->n_queries, a->n_queries == 1 ? "y" : "ies", a->n_keys, a->n_keys == 1 ? "" : "s",
                a->head_dim, (double)a->scale);
    add_mask(arrays, caption);
    caption_add(caption, ".");
    free(q);
    free(k);
}

void look_modified(const struct look *look, char *text, size_t bytes) {
    if (look->text.what_if.any)
        text_append(text, bytes, "MODIFIED: not what the model computed (%s). ",
                    look->text.what_if.words);
}

/* ---- Captions -------------------------------------------------------------------------------- */

/* The rule that chose the head and the query, and the key that it found; "": they were named. */
void look_add_rule(const struct look *look, struct caption *caption) {
    const qkv_heads_choice *choice = &look->choice;
    if (look->given || look->arrays || !choice->rule) return;
    caption_add(caption, " Shown is %s", choice->rule);
    if (choice->rule_key >= 0 && choice->rule_key != choice->key)
        caption_add(caption, " (%.60s, %.2f)", look->cols[choice->rule_key],
                    (double)choice->rule_weight);
    caption_add(caption, ".");
}

void look_source(const struct look *look, bool one, struct caption *caption) {
    if (look->arrays) {
        arrays_describe(look->arrays, caption);
        return;
    }
    const qkv_model_info *info = look->text.session->info;
    look_modified(look, caption->text, sizeof caption->text);
    if (look->windows) windows_words(look->windows, caption);
    caption_add(caption, "Model %s (%s), %s", info->source, info->architecture,
                look_attention(look));
    if (one)
        caption_add(caption,
                    "layer %" PRId64 " of %" PRId64 ", head %" PRId64 " of %" PRId64
                    ", counted from 0.",
                    look->choice.layer, look->text.view.n_layers, look->choice.head,
                    look->text.view.n_heads);
    else
        caption_add(caption, "layers and heads counted from 0.");
    if (one) look_add_rule(look, caption);
}

void look_cell_words(const struct look *look, int64_t tile, struct caption *caption) {
    const bool mass = look->options->pool.value == QKV_TILE_MASS;
    if (tile > 1)
        caption_add(caption,
                    " Pooled: a cell stands for a tile of %" PRId64 " queries (rows) and %" PRId64
                    " keys (columns), numbered by its first, and is %s",
                    tile, tile,
                    mass ? "the weight on its keys, mean over its queries (mass); rows sum to 1."
                         : "the largest weight in it (peak).");
    else
        caption_add(caption,
                    "%s A cell is the weight with which the row's token (query) looks at the "
                    "column's token%s (key); rows sum to 1.",
                    look->text.pair.next
                        ? " A row is a token that the decoder read and the one that it predicts."
                        : "",
                    look->text.view.which == QKV_CROSS ? " of the source" : "");
    if (!look_info(look)->sees_all)
        caption_add(caption, " Keys that a query does not see have no cell.");
}
