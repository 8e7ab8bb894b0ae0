/* What `qkv map` knows, as a JSON object and as CSV, a line for each point. */
#include <inttypes.h>
#include <string.h>

#include "common/csv.h"
#include "map/map.h"

static json_t *xy_json(const double *xy) {
    json_t *pair = json_array();
    json_array_append_new(pair, json_number(xy[0]));
    json_array_append_new(pair, json_number(xy[1]));
    return pair;
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

static int32_t id_of(const struct place *place) { return place->list->tokens->ids[place->at]; }

static json_t *point_json(const struct map *map, int64_t i) {
    const struct place place = place_of(map, i);
    const struct attended *text = &map->text;
    json_t *point = json_object();
    json_object_set_new(point, "token",
                        text->session ? token_json(place.list->tokenizer, id_of(&place))
                                      : json_text(map->labels[i]));
    if (text->pair.next && !place.is_key)
        json_object_set_new(point, "predicts",
                            token_json(text->session->target, text->pair.next->ids[i]));
    json_object_set_new(point, "xy", xy_json(map->xy + 2 * i));
    json_object_set_new(point, "pca", xy_json(map->pca + 2 * i));
    if (place.is_key || map->n_keys == 0) return point;
    json_object_set_new(point, "nearest_key", json_integer(map_nearest_key(map, i)));
    if (map->report.n_runs > 0)
        json_object_set_new(point, "nearest_key_runs", json_integer(map->agree[i]));
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
        json_array_append_new(lines, json_pack("{s:I, s:o}", "key", (json_int_t)map->keys[i],
                                               "weight", json_number(map->weights[i])));
    return json_pack("{s:I, s:o}", "query", (json_int_t)map->query, "keys", lines);
}

static void set_report(const struct map *map, json_t *object) {
    const qkv_map_report *report = &map->report;
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        { "perplexity", report->perplexity },
        { "kl", report->kl },
        { "median_kl", report->median_kl },
        { "gradient_norm", report->gradient_norm },
        { "trustworthiness", report->trust },
        { "preserved", report->preserved },
        { "balance", report->balance },
        { "recall", report->recall },
        { "rank_correlation", report->rank_correlation },
    };
    const bool by_tree = report->n_runs > 0 && report->method == QKV_MAP_BARNES_HUT;
    const struct {
        const char *name;
        int64_t value;
    } counts[] = { { "iterations", report->n_iters },
                   { "runs", report->n_runs },
                   { "run", report->run },
                   { "seed", (int64_t)map->asked.seed },
                   { "neighbours", report->n_neighbours },
                   { "measured", report->n_measured },
                   { "measured_queries", report->n_measured_queries },
                   { "without_direction", report->n_zero } };
    for (int i = 0; i < CLI_COUNT(numbers); i++)
        json_object_set_new(object, numbers[i].name, json_number(numbers[i].value));
    for (int i = 0; i < CLI_COUNT(counts); i++)
        json_object_set_new(object, counts[i].name, json_integer(counts[i].value));
    json_object_set_new(object, "gradient",
                        report->n_runs == 0 ? json_null()
                                            : json_string(by_tree ? "barnes-hut" : "exact"));
    json_object_set_new(object, "theta", by_tree ? json_number(report->theta) : json_null());
    json_object_set_new(object, "explained", xy_json(report->explained));
    json_object_set_new(object, "stopped", json_boolean(map->stopped));
}

qkv_status map_json(const struct map *map, json_t **json, qkv_error *error) {
    json_t *object = json_object();
    if (map->text.session) {
        const char *attention = attention_key(map->text.session, map->text.view.which);
        if (attention) json_object_set_new(object, "attention", json_string(attention));
        json_object_set_new(object, "layer", json_integer(map->choice.layer));
        json_object_set_new(object, "head", json_integer(map->choice.head));
    }
    json_object_set_new(object, "method", json_string(map->report.n_runs > 0 ? "tsne" : "pca"));
    json_object_set_new(object, "metric", json_string(map_metric_name(map)));
    set_report(map, object);
    json_object_set_new(object, "queries", points_json(map, 0, map->n_queries));
    json_object_set_new(object, "keys",
                        points_json(map, map->n_queries, map->n_queries + map->n_keys));
    if (map->query >= 0) json_object_set_new(object, "lines", lines_json(map));
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
        if (map->text.session && !(map->text.pair.next && !place.is_key))
            csv_token(&csv, place.list->tokenizer, id_of(&place));
        else
            csv_field(&csv, map->labels[i], strlen(map->labels[i]));
        csv_put(&csv, ",%.9g,%.9g,%.9g,%.9g\n", map->xy[2 * i], map->xy[2 * i + 1], map->pca[2 * i],
                map->pca[2 * i + 1]);
    }
    return csv_write(&csv, path, error);
}
