/** See share.h. */
#include "inspect/share.h"

#include "core/ints.h"
#include "files/base.h"
#include "inspect/rows.h"

/* Rows and keys of a block of passes: cuts stand where blocks begin. */
enum { ROWS = 96, KEYS = 256 };

typedef struct part {
    int64_t first, n;
} part;

/* ---- Cuts ------------------------------------------------------------------------------------ */

/* Of n items, in units, so that each rank has about as much of their work. */
static void cut(qkvi_peers *peers, int64_t n, int64_t unit, const double *work) {
    double all = 0, before = 0;
    int rank = 0;
    for (int64_t i = 0; i < n; i++) all += work[i];
    for (int64_t i = 0; i < n; i++) {
        while (i % unit == 0 && rank < peers->size && before >= all * rank / peers->size)
            peers->first[rank++] = (size_t)i;
        before += work[i];
    }
    while (rank <= peers->size) peers->first[rank++] = (size_t)n;
}

/* Of each query: the keys it sees. */
static void count_keys(const qkvi_rules *rules, double *work) {
    for (int64_t i = 0; i < rules->n_queries; i++) {
        const qkvi_range keys = qkvi_keys_of(rules, i);
        work[i] = (double)(1 + qkvi_max_i64(keys.end - keys.begin, 0));
    }
}

/* Of each key: the queries that see it. Neither end of what queries see ever falls. */
static void count_queries(const qkvi_rules *rules, double *work) {
    int64_t begun = 0, ended = 0; /* queries whose keys begin, and end, at or before key j */
    for (int64_t j = 0; j < rules->n_keys; j++) {
        while (begun < rules->n_queries && qkvi_keys_of(rules, begun).begin <= j) begun++;
        while (ended < rules->n_queries && qkvi_keys_of(rules, ended).end <= j) ended++;
        work[j] = (double)(1 + qkvi_max_i64(begun - ended, 0));
    }
}

/* n: items that are cut, at least as many as are counted. */
static qkv_status find_part(const qkvi_share *s, int64_t n, int64_t unit,
                            void (*count)(const qkvi_rules *rules, double *work), part *own,
                            qkv_error *error) {
    qkvi_peers *const peers = s->peers;
    *own = (part){ 0, n };
    if (!peers->of) return QKV_OK;
    double *const work = qkvi_calloc_array((size_t)n, sizeof *work);
    if (!work) return qkvi_no_memory(error, "the work of ranks");
    count(s->rules, work);
    cut(peers, n, unit, work);
    free(work);
    own->first = (int64_t)peers->first[peers->rank];
    own->n = (int64_t)peers->first[peers->rank + 1] - own->first;
    return QKV_OK;
}

/* Queries, or keys, of the part alone. */
static qkv_attention_desc describe(const qkvi_share *s, bool is_queries, part own) {
    qkv_attention_desc desc = *s->desc;
    const bool has_floats = desc.flags & QKV_SET_MASK && desc.mask_type == QKV_MASK_F32;
    if (!s->peers->of) return desc;
    *(is_queries ? &desc.len_q : &desc.len_k) = own.n;
    desc.q_offset += is_queries ? own.first : -own.first;
    desc.flags |= QKV_SET_Q_OFFSET;
    if (has_floats)
        desc.mask = (const float *)desc.mask + own.first * desc.mask_stride[is_queries ? 2 : 3];
    return desc;
}

/* ---- Rows that come from other ranks --------------------------------------------------------- */

static qkvi_range range_of(part of) { return (qkvi_range){ of.first, of.first + of.n }; }

/* Whole blocks, as passes read them. */
static qkvi_range blocks(qkvi_range of, int64_t unit, int64_t n) {
    if (of.begin >= of.end) return (qkvi_range){ 0, 0 };
    return (qkvi_range){ of.begin / unit * unit,
                         qkvi_min_i64((of.end + unit - 1) / unit * unit, n) };
}

static qkvi_range keys_seen(const qkvi_share *s, part queries) {
    const int64_t end = qkvi_min_i64(queries.first + queries.n, s->rules->n_queries);
    if (queries.first >= end) return (qkvi_range){ 0, 0 };
    return qkvi_keys_of_block(s->rules, queries.first, end);
}

static qkvi_range queries_seeing(const qkvi_share *s, part keys) {
    if (keys.n == 0) return (qkvi_range){ 0, 0 };
    return qkvi_queries_of_block(s->rules, keys.first, keys.first + keys.n);
}

/* *with: the same with the rows that a part reads; of whole arrays it is s. Dropped by drop. */
static qkv_status bring(const qkvi_share *s, qkv_status status, qkvi_range queries, qkvi_range keys,
                        qkvi_share *with, qkv_error *error) {
    *with = *s;
    if (!s->pieces) return status;
    const float *const own[] = { s->q, s->k };
    const qkvi_range wanted[] = { blocks(queries, ROWS, s->rules->n_queries),
                                  blocks(keys, KEYS, s->rules->n_keys) };
    const int64_t room[] = { s->desc->len_q, s->desc->len_k };
    QKV_TRY(qkvi_head_pieces_bring(s->pieces, status, own, wanted, room, error));
    with->q = s->pieces->rows[0];
    with->k = s->pieces->rows[1];
    return QKV_OK;
}

static void drop(const qkvi_share *s) {
    if (s->pieces) qkvi_head_pieces_drop(s->pieces);
}

/* ---- What goes to all ------------------------------------------------------------------------ */

/* An array of `row` bytes an item. */
static qkv_status spread(const qkvi_share *s, void *array, size_t row, qkv_error *error) {
    return array ? qkvi_peers_spread(s->peers, array, row, error) : QKV_OK;
}

static qkv_status spread_rows(const qkvi_share *s, float *lse, const qkv_attention_stats *x,
                              qkv_error *error) {
    static const qkv_attention_stats none;
    const qkv_attention_stats *const of = x ? x : &none;
    const size_t one = sizeof(float);
    const struct {
        void *array;
        size_t row;
    } all[] = { { lse, one },
                { of->entropy, one },
                { of->largest, one },
                { of->effective_keys, one },
                { of->mean_distance, one },
                { of->same_token, one },
                { of->duplicate, one },
                { of->induction, one },
                { of->offset_mass, one * (size_t)of->n_offsets },
                { of->class_mass, one * (size_t)of->n_classes },
                { of->top_weights, one * (size_t)of->top_k },
                { of->top_keys, sizeof(int64_t) * (size_t)of->top_k } };
    for (size_t n = 0; n < sizeof all / sizeof *all; n++)
        QKV_TRY(spread(s, all[n].array, all[n].row, error));
    return QKV_OK;
}

/* ---- Queries --------------------------------------------------------------------------------- */

static float *ahead(float *array, int64_t n) { return array ? array + n : NULL; }

/* Statistics of queries from the first-th on, and counts of their own. */
static qkv_attention_stats stats_from(const qkv_attention_stats *of, int64_t first,
                                      int64_t counts[2]) {
    qkv_attention_stats s = *of;
    s.entropy = ahead(s.entropy, first);
    s.largest = ahead(s.largest, first);
    s.effective_keys = ahead(s.effective_keys, first);
    s.mean_distance = ahead(s.mean_distance, first);
    s.same_token = ahead(s.same_token, first);
    s.duplicate = ahead(s.duplicate, first);
    s.induction = ahead(s.induction, first);
    s.offset_mass = ahead(s.offset_mass, first * s.n_offsets);
    s.class_mass = ahead(s.class_mass, first * s.n_classes);
    s.top_weights = ahead(s.top_weights, first * s.top_k);
    if (s.top_keys) s.top_keys += first * s.top_k;
    if (s.tokens_q) s.tokens_q += first;
    if (s.n_empty_rows) s.n_empty_rows = &counts[0];
    if (s.n_nan_rows) s.n_nan_rows = &counts[1];
    return s;
}

static qkv_status forward_part(const qkvi_share *s, part own, float *lse,
                               const qkv_attention_stats *stats, int64_t counts[2],
                               qkv_error *error) {
    qkv_attention_desc desc = describe(s, true, own);
    qkv_attention_stats mine;
    float nothing[1];
    if (s->peers->of && own.n == 0) return QKV_OK;
    if (stats) {
        mine = s->peers->of ? stats_from(stats, own.first, counts) : *stats;
        desc.stats = &mine;
        desc.flags |= QKV_SET_STATS;
    }
    return qkvi_ctx_told(s->ctx,
                         qkv_attention_forward(s->ctx, &desc, s->q + own.first * desc.head_dim,
                                               s->k, s->k, nothing, ahead(lse, own.first), s->call),
                         error);
}

static void add_counts(const qkvi_peers *peers, const qkv_attention_stats *stats) {
    double n[2] = { 0, 0 };
    for (int rank = 0; rank < peers->size; rank++)
        for (int c = 0; c < 2; c++) n[c] += peers->records[rank].values[c];
    if (stats && stats->n_empty_rows) *stats->n_empty_rows = (int64_t)n[0];
    if (stats && stats->n_nan_rows) *stats->n_nan_rows = (int64_t)n[1];
}

qkv_status qkvi_share_forward(const qkvi_share *s, qkv_status status, float *lse,
                              const qkv_attention_stats *stats, qkv_error *error) {
    part own = { 0, 0 };
    qkvi_share with;
    int64_t counts[2] = { 0, 0 };
    if (status == QKV_OK) status = find_part(s, s->desc->len_q, ROWS, count_keys, &own, error);
    status = bring(s, status, range_of(own), keys_seen(s, own), &with, error);
    if (status != QKV_OK && s->pieces) return status;
    if (status == QKV_OK) status = forward_part(&with, own, lse, stats, counts, error);
    drop(s);
    if (!s->peers->of) return status;
    const double values[QKVI_PEER_VALUES] = { (double)counts[0], (double)counts[1] };
    QKV_TRY(qkvi_peers_agree(s->peers, status, values, error));
    add_counts(s->peers, stats);
    return spread_rows(s, lse, stats, error);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static qkv_status received_part(const qkvi_share *s, part own, const float *lse,
                                const qkv_attention_columns *of, qkv_error *error) {
    const qkv_attention_desc desc = describe(s, false, own);
    qkv_attention_columns mine = *of;
    if (s->peers->of && own.n == 0) return QKV_OK;
    mine.received = ahead(mine.received, own.first);
    if (mine.n_queries) mine.n_queries += own.first;
    return qkvi_ctx_told(s->ctx,
                         qkv_attention_columns_pass(s->ctx, &desc, s->q,
                                                    s->k + own.first * desc.head_dim, lse, &mine,
                                                    s->call),
                         error);
}

qkv_status qkvi_share_received(const qkvi_share *s, qkv_status status, const float *lse,
                               const qkv_attention_columns *columns, qkv_error *error) {
    part own = { 0, 0 };
    qkvi_share with;
    if (status == QKV_OK) status = find_part(s, s->desc->len_k, KEYS, count_queries, &own, error);
    status = bring(s, status, queries_seeing(s, own), range_of(own), &with, error);
    if (status != QKV_OK && s->pieces) return status;
    if (status == QKV_OK) status = received_part(&with, own, lse, columns, error);
    drop(s);
    if (!s->peers->of) return status;
    QKV_TRY(qkvi_peers_agree(s->peers, status, NULL, error));
    QKV_TRY(spread(s, columns->received, sizeof(float), error));
    return spread(s, columns->n_queries, sizeof(int64_t), error);
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* Rows of tiles between two that begin with a block of queries. */
static int64_t tile_rows_of_block(int64_t tile) {
    int64_t rows = 1;
    while (rows * tile % ROWS != 0) rows++;
    return rows;
}

static qkv_status tiles_part(const qkvi_share *s, part own, const float *lse, int64_t tile,
                             int64_t cols, qkv_tile_kind pooling, float *cells, qkv_error *error) {
    const part queries = { own.first * tile, own.n * tile };
    const qkv_attention_desc desc = describe(s, true, queries);
    qkv_attention_columns columns;
    if (s->peers->of && own.n == 0) return QKV_OK;
    qkv_attention_columns_contiguous(&columns, &desc);
    columns.n_tiles_q = own.n;
    columns.n_tiles_k = cols;
    if (pooling == QKV_TILE_PEAK)
        columns.tile_peak = cells + own.first * cols;
    else
        columns.tile_mass = cells + own.first * cols;
    return qkvi_ctx_told(s->ctx,
                         qkv_attention_columns_pass(s->ctx, &desc,
                                                    s->q + queries.first * desc.head_dim, s->k,
                                                    lse + queries.first, &columns, s->call),
                         error);
}

static qkv_status find_tiles(const qkvi_share *s, int64_t tile, int64_t rows, part *own,
                             qkv_error *error) {
    const int64_t unit = tile_rows_of_block(tile);
    QKV_TRY(find_part(s, rows * tile, unit * tile, count_keys, own, error));
    if (!s->peers->of) {
        *own = (part){ 0, rows };
        return QKV_OK;
    }
    for (int rank = 0; rank <= s->peers->size; rank++) s->peers->first[rank] /= (size_t)tile;
    own->first /= tile;
    own->n = (int64_t)s->peers->first[s->peers->rank + 1] - own->first;
    return QKV_OK;
}

qkv_status qkvi_share_tiles(const qkvi_share *s, qkv_status status, const float *lse, int64_t tile,
                            int64_t rows, int64_t cols, qkv_tile_kind pooling, float *cells,
                            qkv_error *error) {
    part own = { 0, 0 };
    qkvi_share with;
    if (status == QKV_OK) status = find_tiles(s, tile, rows, &own, error);
    const part queries = { own.first * tile, own.n * tile };
    status = bring(s, status, range_of(queries), keys_seen(s, queries), &with, error);
    if (status != QKV_OK && s->pieces) return status;
    if (status == QKV_OK) status = tiles_part(&with, own, lse, tile, cols, pooling, cells, error);
    drop(s);
    if (!s->peers->of) return status;
    QKV_TRY(qkvi_peers_agree(s->peers, status, NULL, error));
    return spread(s, cells, (size_t)cols * sizeof *cells, error);
}
