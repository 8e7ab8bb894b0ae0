/* Masks of edges that are cut: see cuts.h. */
#include "model/cuts.h"

#include "core/ints.h"

/* Numbers of an edge: layer, head, query, key. */
enum { LAYER, HEAD, QUERY, KEY, NUMBERS };

#define MOST_BYTES ((int64_t)1 << 31)

static const int64_t *edge(const qkv_run_options *asked, int64_t e) {
    return asked->cuts + e * NUMBERS;
}

static qkv_status check(const qkv_run_options *asked, const qkvi_cut_sizes *sizes,
                        qkv_error *error) {
    static const char *const names[NUMBERS] = { "layer", "head", "query", "key" };
    const int64_t n[NUMBERS] = { sizes->n_layers, sizes->n_heads, sizes->n_queries, sizes->n_keys };
    for (int64_t e = 0; e < asked->n_cuts; e++)
        for (int field = 0; field < NUMBERS; field++) {
            const int64_t value = edge(asked, e)[field], least = field < QUERY ? -1 : 0;
            if (value < least || value >= n[field])
                return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                      "cuts[%lld]: %s %lld is not between %lld and %lld",
                                      (long long)e, names[field], (long long)value,
                                      (long long)least, (long long)n[field] - 1);
        }
    return QKV_OK;
}

static bool is_of(const int64_t *edge, int64_t layer) {
    return edge[LAYER] < 0 || edge[LAYER] == layer;
}

/* How many heads the mask of a layer tells apart: none of them, or all; 0: nothing is cut. */
static int64_t heads_of(const qkv_run_options *asked, int64_t layer, int64_t n_heads) {
    int64_t n = 0;
    for (int64_t e = 0; e < asked->n_cuts; e++)
        if (is_of(edge(asked, e), layer)) n = edge(asked, e)[HEAD] < 0 && n < 2 ? 1 : n_heads;
    return n;
}

/* An edge of all heads is cut in each plane of the mask. */
static void fill(const qkv_run_options *asked, const qkvi_cut_sizes *s, int64_t layer,
                 int64_t n_planes, uint8_t *mask) {
    const int64_t plane = s->n_queries * s->n_keys;
    for (int64_t row = 0; row < n_planes * s->n_queries; row++) {
        if (s->seen)
            memcpy(mask + row * s->n_keys, s->seen, (size_t)s->n_keys);
        else
            memset(mask + row * s->n_keys, 1, (size_t)s->n_keys);
    }
    for (int64_t e = 0; e < asked->n_cuts; e++) {
        const int64_t *const x = edge(asked, e);
        if (!is_of(x, layer)) continue;
        for (int64_t p = 0; p < n_planes; p++)
            if (x[HEAD] < 0 || x[HEAD] == p) mask[p * plane + x[QUERY] * s->n_keys + x[KEY]] = 0;
    }
}

static qkv_status allocate(const qkv_run_options *asked, const qkvi_cut_sizes *s, qkvi_cuts *cuts,
                           qkv_error *error) {
    int64_t plane, bytes, n_planes = 0;
    for (int64_t l = 0; l < s->n_layers; l++) n_planes += heads_of(asked, l, s->n_heads);
    if (!qkvi_mul_i64(s->n_queries, s->n_keys, &plane) || !qkvi_mul_i64(plane, n_planes, &bytes) ||
        bytes > MOST_BYTES)
        return qkvi_error_set(error, QKV_ERR_LIMIT,
                              "cuts: %lld masks of %lld queries and %lld keys are more than %lld "
                              "bytes",
                              (long long)n_planes, (long long)s->n_queries, (long long)s->n_keys,
                              (long long)MOST_BYTES);
    cuts->layers = qkvi_calloc_array((size_t)s->n_layers, sizeof *cuts->layers);
    cuts->masks = qkvi_malloc_array((size_t)bytes, 1);
    return cuts->layers && cuts->masks ? QKV_OK : qkvi_no_memory(error, "masks of edges");
}

qkv_status qkvi_cuts_make(const qkv_run_options *asked, const qkvi_cut_sizes *sizes,
                          qkvi_cuts *cuts, qkv_error *error) {
    const int64_t plane = sizes->n_queries * sizes->n_keys;
    if (asked->n_cuts == 0) return QKV_OK;
    QKV_TRY(check(asked, sizes, error));
    QKV_TRY(allocate(asked, sizes, cuts, error));
    uint8_t *mask = cuts->masks;
    for (int64_t l = 0; l < sizes->n_layers; l++) {
        const int64_t n_planes = heads_of(asked, l, sizes->n_heads);
        if (n_planes == 0) continue;
        fill(asked, sizes, l, n_planes, mask);
        cuts->layers[l] = (qkvi_uncut){ mask, n_planes > 1 ? plane : 0 };
        mask += n_planes * plane;
    }
    return QKV_OK;
}

void qkvi_cuts_free(qkvi_cuts *cuts) {
    free(cuts->layers);
    free(cuts->masks);
}
