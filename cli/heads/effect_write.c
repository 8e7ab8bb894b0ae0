/* The effects of heads as JSON, CSV and TSV, and as a picture of layers and heads. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/conflicts.h"
#include "common/csv.h"
#include "common/head_numbers.h"
#include "common/predict.h"
#include "heads/effect.h"

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *places_json(const struct effect *effect) {
    json_t *const list = json_array();
    char room[LABEL_ROOM];
    if (effect->is_label)
        json_array_append_new(list, json_set(NULL, "label:t id:i log_p:n probability:n",
                                             label_name(effect->session, effect->words[0], room),
                                             (int64_t)effect->words[0], effect->log_p[0],
                                             exp(effect->log_p[0])));
    if (effect->is_label) return list;
    for (int64_t t = 0; t < effect->request.n_places; t++)
        json_array_append_new(
            list, json_set(NULL, "position:i token:o id:i log_p:n probability:n",
                           effect->positions[t], token_json(effect->words_of, effect->words[t]),
                           (int64_t)effect->words[t], effect->log_p[t], exp(effect->log_p[t])));
    return list;
}

static json_t *group_json(const struct effect *effect, const struct effect_set *set) {
    json_t *const heads = json_array();
    for (int64_t i = 0; i < set->n; i++)
        json_array_append_new(heads,
                              json_set(NULL, "layer:i head:i", set->heads[i] / effect->n_heads,
                                       set->heads[i] % effect->n_heads));
    return json_set(NULL, "heads:o nats:n probability:n sum_nats:n", heads, set->nats,
                    set->probability, set->sum);
}

static json_t *edges_json(const struct effect *effect) {
    json_t *const list = json_array();
    for (int64_t e = 0; e < effect->n_edges; e++) {
        const struct effect_edge *const edge = &effect->edges[e];
        json_array_append_new(list, json_set(NULL, "edge:t n_edges:i nats:n probability:n",
                                             edge->name, edge->n, edge->nats, edge->probability));
    }
    return list;
}

static json_t *json_or_none(const char *text) { return text ? json_text(text) : NULL; }

json_t *effect_json(const struct effect *effect) {
    const struct heads_options *const options = effect->options;
    json_t *object = json_set(NULL, "attention:s", attention_key(effect->session, effect->which)),
           *heads = json_array(), *groups = json_array();
    struct caption caption = { "" };
    effect_caption(effect, true, &caption);
    if (options->image) json_set(object, "image:t", options->image);
    json_set(object, "tokens:o", tokens_json(effect->session->tokenizer, effect->input));
    if (effect->pair.next) pair_json(effect->session, &effect->pair, object);
    for (int64_t i = 0; i < effect->n_shown; i++) {
        const struct effect_set *const set = &effect->sets[effect->order[i].index];
        json_array_append_new(heads, json_set(NULL, "layer:i head:i nats:n probability:n",
                                              set->heads[0] / effect->n_heads,
                                              set->heads[0] % effect->n_heads, set->nats,
                                              set->probability));
    }
    for (int64_t s = effect->n_all; s < effect->request.n_sets; s++)
        json_array_append_new(groups, group_json(effect, &effect->sets[s]));
    if (effect->n_edges > 0) json_set(object, "edges:o", edges_json(effect));
    return json_set(object,
                    "ablation:s reference:o patch:o looked_at:o log_p:n heads:o groups:o note:t",
                    options->patch          ? "patch"
                    : options->ablate.value ? "mean"
                                            : "zero",
                    json_or_none(options->reference), json_or_none(options->patch),
                    places_json(effect), effect->value, heads, groups, caption.text);
}

/* ---- CSV, TSV -------------------------------------------------------------------------------- */

static void put_set(struct csv *csv, const struct effect_set *set, int64_t n_heads,
                    char separator) {
    for (int64_t i = 0; i < set->n; i++)
        csv_put(csv, "%s%" PRId64 ".%" PRId64, i ? "+" : "", set->heads[i] / n_heads,
                set->heads[i] % n_heads);
    const double numbers[] = { set->nats, set->probability, set->sum };
    for (int i = 0; i < 3; i++) {
        csv_put(csv, "%c", separator);
        if (isfinite(numbers[i])) csv_put(csv, "%.9g", numbers[i]);
    }
    csv_put(csv, "\n");
}

static qkv_status write_table(const struct effect *effect, const char *path, char separator,
                              qkv_error *error) {
    struct csv csv;
    csv_open(&csv);
    csv_put(&csv, "heads%cnats%cprobability%csum_nats\n", separator, separator, separator);
    for (int64_t i = 0; i < effect->n_shown; i++)
        put_set(&csv, &effect->sets[effect->order[i].index], effect->n_heads, separator);
    for (int64_t s = effect->n_all; s < effect->request.n_sets; s++)
        put_set(&csv, &effect->sets[s], effect->n_heads, separator);
    for (int64_t e = 0; e < effect->n_edges; e++) {
        const struct effect_edge *const edge = &effect->edges[e];
        csv_field(&csv, edge->name, strlen(edge->name));
        csv_put(&csv, "%c%.9g%c%.9g%c\n", separator, edge->nats, separator, edge->probability,
                separator);
    }
    return csv_write(&csv, path, error);
}

/* ---- The picture ----------------------------------------------------------------------------- */

static qkv_status draw_effects(const struct effect *effect, const char *path, qkv_error *error) {
    struct caption caption = { "" };
    float *const cells = calloc((size_t)effect->n_all + 1, sizeof *cells);
    caption_add(&caption, "Model %.300s. ", effect->session->info->source);
    effect_looked_at(effect, &caption);
    caption_add(&caption, " A cell is the effect of one head in nats. ");
    effect_together(effect, &caption);
    effect_caption(effect, false, &caption);
    caption_add_texts(&caption, effect->said);
    for (int64_t i = 0; cells && i < effect->n_all; i++) cells[i] = (float)effect->sets[i].nats;
    const qkv_heatmap map = { .struct_size = sizeof map,
                              .title = "What each head is worth",
                              .caption = caption.text,
                              .theme = (qkv_theme)effect->options->common.theme.value,
                              .is_signed = 1 };
    const qkv_status status = heads_picture(&effect->options->picture, map, effect->n_layers,
                                            effect->n_heads, cells, path, error);
    free(cells);
    return status;
}

qkv_status effect_write(const struct effect *effect, const char *path, qkv_error *error) {
    const int ending = path_ending(path, EFFECT_ENDINGS);
    if (ending < 2) return write_table(effect, path, ending == 0 ? ',' : '\t', error);
    if (ending > 2) return draw_effects(effect, path, error);
    json_t *const object = effect_json(effect);
    return object ? json_write_file(path, object, error) : text_no_memory(error);
}
