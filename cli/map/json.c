/* The result of `qkv map` as a JSON object, and as CSV with a line for each point. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/csv.h"
#include "map/map.h"

static json_t *xy_json(const double *xy) {
    return json_pack("[o, o]", json_number(xy[0]), json_number(xy[1]));
}

/* Where the token of a point stands: among queries, or among keys. */
struct place {
    const qkv_token_list *list;
    int64_t at;
    bool is_key;
};

static struct place place_of(const struct map *map, int64_t i) {
    const struct attention_view *view = &map->text.view;
    return i < map->n_queries ? (struct place){ &view->queries, i, false }
                              : (struct place){ &view->keys, i - map->n_queries, true };
}

/* Tokens of arrays and of images have names alone. */
static bool has_ids(const struct map *map) { return map->text.session && !map->options->image; }

static int32_t id_of(const struct place *place) { return place->list->tokens->ids[place->at]; }

static json_t *point_json(const struct map *map, int64_t i) {
    const struct place place = place_of(map, i);
    const struct attended *text = &map->text;
    json_t *point = json_set(NULL, "token:o",
                             has_ids(map) ? token_json(place.list->tokenizer, id_of(&place))
                                          : json_text(map->labels[i]));
    if (text->pair.next && !place.is_key)
        json_set(point, "predicts:o", token_json(text->session->target, text->pair.next->ids[i]));
    json_set(point, "xy:o pca:o", xy_json(map->xy + 2 * i), xy_json(map->pca + 2 * i));
    if (place.is_key || map->n_keys == 0) return point;
    json_set(point, "nearest_key:i", map_nearest_key(map, i));
    if (map->report.n_runs > 0) json_set(point, "nearest_key_runs:i", (int64_t)map->agree[i]);
    return point;
}

static json_t *points_json(const struct map *map, int64_t first, int64_t end) {
    json_t *points = json_array();
    for (int64_t i = first; i < end; i++) json_array_append_new(points, point_json(map, i));
    return points;
}

static json_t *lines_json(const struct map *map) {
    json_t *lines = json_array();
    for (int64_t i = 0; i < map->n_lines; i++)
        json_array_append_new(lines,
                              json_set(NULL, "key:i weight:n", map->keys[i], map->weights[i]));
    return json_set(NULL, "query:i keys:o", map->query, lines);
}

static void set_report(const struct map *map, json_t *object) {
    const qkv_map_report *r = &map->report;
    const bool by_tree = r->n_runs > 0 && r->method == QKV_MAP_BARNES_HUT;
    json_set(object,
             "perplexity:n kl:n median_kl:n gradient_norm:n trustworthiness:n preserved:n "
             "balance:n recall:n rank_correlation:n",
             r->perplexity, r->kl, r->median_kl, r->gradient_norm, r->trust, r->preserved,
             r->balance, r->recall, r->rank_correlation);
    json_set(object,
             "iterations:i runs:i run:i seed:i neighbours:i measured:i measured_queries:i "
             "without_direction:i",
             r->n_iters, r->n_runs, r->run, map->request.seed, r->n_neighbours, r->n_measured,
             r->n_measured_queries, r->n_zero);
    json_set(object, "gradient:o theta:n explained:o stopped:o",
             r->n_runs == 0 ? json_null() : json_string(by_tree ? "barnes-hut" : "exact"),
             by_tree ? r->theta : NAN, xy_json(r->explained), json_boolean(map->stopped));
}

qkv_status map_json(const struct map *map, json_t **json, qkv_error *error) {
    const struct attended *text = &map->text;
    const int64_t n = map->n_queries + map->n_keys;
    json_t *object = json_object();
    if (text->session) {
        json_set(object, "attention:s layer:i head:i",
                 attention_key(text->session, text->view.which), map->choice.layer,
                 map->choice.head);
    }
    json_set(object, "method:s metric:s", map->report.n_runs > 0 ? "tsne" : "pca",
             map_metric_name(map));
    set_report(map, object);
    json_set(object, "queries:o keys:o", points_json(map, 0, map->n_queries),
             points_json(map, map->n_queries, n));
    if (map->query >= 0) json_set(object, "lines:o", lines_json(map));
    *json = object;
    return object ? QKV_OK : text_no_memory(error);
}

qkv_status map_csv(const struct map *map, const char *path, qkv_error *error) {
    struct csv csv;
    csv_open(&csv);
    csv_put(&csv, "kind,index,token,x,y,pca_x,pca_y\n");
    for (int64_t i = 0; i < map->n_queries + map->n_keys; i++) {
        const struct place place = place_of(map, i);
        csv_put(&csv, "%s,%" PRId64 ",", place.is_key ? "key" : "query", place.at);
        if (has_ids(map) && !(map->text.pair.next && !place.is_key))
            csv_token(&csv, place.list->tokenizer, id_of(&place));
        else
            csv_field(&csv, map->labels[i], strlen(map->labels[i]));
        csv_put(&csv, ",%.9g,%.9g,%.9g,%.9g\n", map->xy[2 * i], map->xy[2 * i + 1], map->pca[2 * i],
                map->pca[2 * i + 1]);
    }
    return csv_write(&csv, path, error);
}
