/** Checks of a map of points by the rules of qkv/picture.h. */
#include "core/options.h"
#include "view/point_map.h"

#include <math.h>

enum { MAX_POINTS = 1 << 16, MAX_LINES = 64, LEAST_SIZE = 320, MOST_SIZE = 8192 };

static int64_t n_points(const qkv_point_map *map) { return map->n_queries + map->n_keys; }

static qkv_status check_lines(const qkv_point_map *map, qkv_error *error) {
    if (map->n_lines < 0 || map->n_lines > MAX_LINES)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "n_lines = %lld is not in 0 ... %d",
                              (long long)map->n_lines, MAX_LINES);
    if (map->n_lines == 0) return QKV_OK;
    if (!map->to || !map->weights)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", map->to ? "weights" : "to");
    if (map->from < 0 || map->from >= map->n_queries)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "from = %lld is none of %lld queries",
                              (long long)map->from, (long long)map->n_queries);
    for (int64_t i = 0; i < map->n_lines; i++) {
        if (map->to[i] < 0 || map->to[i] >= map->n_keys)
            return qkvi_error_set(error, QKV_ERR_SHAPE, "to[%lld] = %lld is none of %lld keys",
                                  (long long)i, (long long)map->to[i], (long long)map->n_keys);
        if (!(map->weights[i] >= 0 && map->weights[i] <= 1))
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "weights[%lld] = %g is not in 0 ... 1",
                                  (long long)i, map->weights[i]);
    }
    return QKV_OK;
}

static qkv_status check(const qkv_point_map *map, const char *path, qkv_error *error) {
    if (!path || !map->xy)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", path ? "xy" : "path");
    if (map->n_queries < 0 || map->n_queries > MAX_POINTS || map->n_keys < 0 ||
        map->n_keys > MAX_POINTS || n_points(map) < 1 || n_points(map) > MAX_POINTS)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "n_queries = %lld and n_keys = %lld are not 1 ... %d points",
                              (long long)map->n_queries, (long long)map->n_keys, MAX_POINTS);
    for (int64_t i = 0; i < 2 * n_points(map); i++)
        if (!(fabs(map->xy[i]) <= 1e12))
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "xy[%lld][%lld] = %g is not within 1e12",
                                  (long long)(i / 2), (long long)(i % 2), map->xy[i]);
    if (map->size != 0 && (map->size < LEAST_SIZE || map->size > MOST_SIZE))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "size = %lld: must be 0, or %d to %d",
                              (long long)map->size, LEAST_SIZE, MOST_SIZE);
    return check_lines(map, error);
}

qkv_status qkv_picture_points_write(const qkv_point_map *given, const char *path,
                                    qkv_error *error) {
    qkv_point_map map = { 0 };
    if (given == NULL) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "map is NULL");
    QKV_TRY(qkvi_options_read(&map, sizeof map, given, "qkv_point_map", error));
    QKV_TRY(check(&map, path, error));
    return qkvi_point_map_draw(&map, path, error);
}
