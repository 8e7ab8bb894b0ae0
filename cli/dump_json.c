/* Statistics of a dump as a JSON object. */
#include <math.h>

#include "dump.h"

static json_t *largest_json(const struct dump_head *head) {
    if (head->key < 0) return json_null();
    return json_pack("{s:I, s:I, s:o}", "query", (json_int_t)head->query, "key",
                     (json_int_t)head->key, "weight", json_number((double)head->weight));
}

/* What can be said without tokens. */
static void add_numbers(const qkv_head_stats *head, json_t *object) {
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        { "entropy", head->entropy },
        { "entropy_normalized", head->entropy_normalized },
        { "confidence", head->confidence },
        { "mean_distance", head->mean_distance },
        { "mass_cls", head->mass_cls },
        { "mass_sep", head->mass_sep },
        { "mass_punctuation", head->mass_punctuation },
        { "mass_self", head->mass_self },
        { "mass_previous", head->mass_previous },
        { "mass_next", head->mass_next },
    };
    for (int i = 0; i < CLI_COUNT(numbers); i++)
        json_object_set_new(object, numbers[i].name, json_number(numbers[i].value));
}

static json_t *head_json(const struct dump *dump, const struct dump_head *head) {
    const qkv_head_stats *stats = &head->stats;
    json_t *object = json_object();
    if (dump->layer >= 0) json_object_set_new(object, "layer", json_integer(stats->layer));
    json_object_set_new(object, "head", json_integer(stats->head));
    json_object_set_new(object, "label", json_text(stats->label));
    add_numbers(stats, object);
    json_object_set_new(object, "effective_keys", json_number(head->effective_keys));
    json_object_set_new(object, "n_empty_rows", json_integer(head->n_empty));
    json_object_set_new(object, "n_nan_rows", json_integer(head->n_nan));
    json_object_set_new(object, "largest", largest_json(head));
    return object;
}

/* [first, last] of j - i, null where open. */
static json_t *mask_json(const struct dump_mask *mask) {
    return json_pack("[o, o]", mask->from ? json_integer(mask->first) : json_null(),
                     mask->to ? json_integer(mask->last) : json_null());
}

qkv_status dump_json(const struct dump *dump, json_t **json, qkv_error *error) {
    json_t *heads = json_array();
    for (int64_t h = 0; h < dump->n_shown; h++)
        json_array_append_new(heads, head_json(dump, &dump->heads[h]));
    *json = json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "n_heads",
                      (json_int_t)dump->n_heads, "n_kv_heads", (json_int_t)dump->n_kv_heads,
                      "n_queries", (json_int_t)dump->n_queries, "n_keys", (json_int_t)dump->n_keys,
                      "head_dim", (json_int_t)dump->head_dim, "scale", json_number(dump->scale),
                      "seen", mask_json(&dump->mask), "heads", heads);
    if (!*json) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    json_t *tokens = dump->tokens ? json_array() : NULL;
    for (int64_t j = 0; tokens && j < dump->n_keys; j++)
        json_array_append_new(tokens, json_text(dump->tokens[j]));
    if (tokens) json_object_set_new(*json, "tokens", tokens);
    return QKV_OK;
}
