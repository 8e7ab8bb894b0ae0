/* What is said about heads: their names, where they are from, and what a cell is. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "look/arrays.h"

void look_place(const struct look *look, int64_t index, int64_t *layer, int64_t *head) {
    const int64_t across = look_info(look)->n_heads;
    *layer = look->arrays ? look->arrays->layer : index / across;
    *head = look->arrays ? look->arrays->names[index] : index % across;
}

const char *look_label(const struct look *look, int64_t index) {
    const qkv_head_rule *rule;
    if (!look->windows) return qkv_heads_label(qkv_heads_numbers(look->heads, index));
    for (int i = 0; (rule = qkv_heads_rule(i)); i++)
        if (qkv_heads_label_share(look->heads, index, rule->label) > 0.5) return rule->label;
    return "";
}

void look_head_name(const struct look *look, char name[HEAD_NAME]) {
    int64_t layer, head;
    look_place(look, look_chosen(look), &layer, &head);
    if (!look->arrays)
        attention_head(look->session, look->view.which, layer, head, name);
    else if (layer >= 0)
        snprintf(name, HEAD_NAME, "Layer %" PRId64 ", head %" PRId64, layer, head);
    else
        snprintf(name, HEAD_NAME, "Head %" PRId64, head);
}

void look_title(const struct look *look, char title[LOOK_TITLE]) {
    const qkv_heads_choice *choice = &look->choice;
    char name[HEAD_NAME];
    look_head_name(look, name);
    title[0] = '\0';
    text_append(title, LOOK_TITLE, "%s", name);
    if (choice->key >= 0)
        text_append(title, LOOK_TITLE, ": %.60s looks at %.60s, %.2f", look->rows[choice->query],
                    look->cols[choice->key], (double)choice->weight);
}

const char *look_tile_label(const struct look *look, bool is_query, int64_t i,
                            char room[LOOK_LABEL]) {
    snprintf(room, LOOK_LABEL, is_query && !look->arrays->self ? "q%" PRId64 : "%" PRId64, i);
    return room;
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

static void add_mask(const struct arrays *arrays, char *text) {
    const qkv_heads_arrays *a = &arrays->given;
    if (!a->causal && !arrays->window) text_append(text, LOOK_CAPTION, ", no mask");
    if (a->causal && a->q_offset == 0)
        text_append(text, LOOK_CAPTION, ", causal: query i sees keys j \u2264 i");
    if (a->causal && a->q_offset != 0)
        text_append(text, LOOK_CAPTION, ", causal: query i sees keys j \u2264 i %+" PRId64,
                    a->q_offset);
    if (!arrays->window) return;
    text_append(text, LOOK_CAPTION, ", window: ");
    if (a->window_left >= 0)
        text_append(text, LOOK_CAPTION, "%" PRId64 " keys before its place, ", a->window_left);
    else
        text_append(text, LOOK_CAPTION, "all keys before its place, ");
    if (a->window_right >= 0)
        text_append(text, LOOK_CAPTION, "%" PRId64 " after", a->window_right);
    else
        text_append(text, LOOK_CAPTION, "all after");
}

void arrays_describe(const struct arrays *arrays, char caption[LOOK_CAPTION]) {
    const qkv_heads_arrays *a = &arrays->given;
    const struct look_options *o = arrays->options;
    char *q = term_escape(o->q, strlen(o->q)), *k = term_escape(o->k, strlen(o->k));
    text_append(caption, LOOK_CAPTION, "Arrays %.100s and %.100s: %" PRId64 " head%s", q ? q : "",
                k ? k : "", a->n_heads, a->n_heads == 1 ? "" : "s");
    if (a->n_kv_heads < a->n_heads)
        text_append(caption, LOOK_CAPTION, " (%" PRId64 " of keys)", a->n_kv_heads);
    text_append(caption, LOOK_CAPTION,
                ", %" PRId64 " quer%s, %" PRId64 " key%s, head size %" PRId64 "; scale %.6g",
                a->n_queries, a->n_queries == 1 ? "y" : "ies", a->n_keys, a->n_keys == 1 ? "" : "s",
                a->head_dim, (double)a->scale);
    add_mask(arrays, caption);
    text_append(caption, LOOK_CAPTION, ".");
    free(q);
    free(k);
}

/* ---- Captions -------------------------------------------------------------------------------- */

/* The rule that chose the head and the query, and the key that it found; "": they were named. */
void look_add_rule(const struct look *look, char caption[LOOK_CAPTION]) {
    const qkv_heads_choice *choice = &look->choice;
    if (look->given || look->arrays || !choice->rule) return;
    text_append(caption, LOOK_CAPTION, " Shown is %s", choice->rule);
    if (choice->rule_key >= 0 && choice->rule_key != choice->key)
        text_append(caption, LOOK_CAPTION, " (%.60s, %.2f)", look->cols[choice->rule_key],
                    (double)choice->rule_weight);
    text_append(caption, LOOK_CAPTION, ".");
}

void look_source(const struct look *look, bool one, char caption[LOOK_CAPTION]) {
    caption[0] = '\0';
    if (look->arrays) {
        arrays_describe(look->arrays, caption);
        return;
    }
    const qkv_model_info *info = look->session->info;
    if (look->what_if.any)
        text_append(caption, LOOK_CAPTION, "MODIFIED: not what the model computed (%s). ",
                    look->what_if.words);
    if (look->windows) windows_words(look->windows, caption, LOOK_CAPTION);
    text_append(caption, LOOK_CAPTION, "Model %s (%s), %s", info->source, info->architecture,
                look_attention(look));
    if (one)
        text_append(caption, LOOK_CAPTION,
                    "layer %" PRId64 " of %" PRId64 ", head %" PRId64 " of %" PRId64
                    ", counted from 0.",
                    look->choice.layer, look->view.n_layers, look->choice.head, look->view.n_heads);
    else
        text_append(caption, LOOK_CAPTION, "layers and heads counted from 0.");
    if (one) look_add_rule(look, caption);
}

void look_cell_words(const struct look *look, int64_t tile, char caption[LOOK_CAPTION]) {
    const bool mass = look->options->pool.set && look->options->pool.value == QKV_TILE_MASS;
    if (tile > 1)
        text_append(caption, LOOK_CAPTION,
                    " Pooled: a cell stands for a tile of %" PRId64 " queries (rows) and %" PRId64
                    " keys (columns), numbered by its first, and is %s",
                    tile, tile,
                    mass ? "the weight on its keys, mean over its queries (mass); rows sum to 1."
                         : "the largest weight in it (peak).");
    else
        text_append(caption, LOOK_CAPTION,
                    "%s A cell is the weight with which the row's token (query) looks at the "
                    "column's token%s (key); rows sum to 1.",
                    look->pair.next
                        ? " A row is a token that the decoder read and the one that it predicts."
                        : "",
                    look->view.which == QKV_CROSS ? " of the source" : "");
    if (!look_info(look)->sees_all)
        text_append(caption, LOOK_CAPTION, " Keys that a query does not see have no cell.");
}
