/** Heads of arrays: queries and keys of any model. lse is computed when it is needed. */
#include <math.h>

#include "attn/ctx.h"
#include "core/ints.h"
#include "core/options.h"
#include "inspect/heads_impl.h"

static qkv_status check_list(const qkv_heads_arrays *a, qkv_error *error) {
    if (a->list && a->n_list < 1)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "n_list = %lld is below 1",
                              (long long)a->n_list);
    for (int64_t i = 0; a->list && i < a->n_list; i++)
        if (a->list[i] < 0 || a->list[i] >= a->n_heads)
            return qkvi_error_set(error, QKV_ERR_SHAPE,
                                  "list[%lld] = %lld is not between 0 and %lld", (long long)i,
                                  (long long)a->list[i], (long long)a->n_heads - 1);
    return QKV_OK;
}

static qkv_status check_rows(const qkv_heads_arrays *a, qkv_error *error) {
    const qkv_heads_rows *const rows = a->rows;
    const char *missing = NULL;
    if (!rows) return QKV_OK;
    if (a->list || a->ranks)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "arrays.rows together with %s",
                              a->list ? "a list" : "ranks");
    if (!rows->entropy) missing = "entropy";
    if (!rows->largest) missing = "largest";
    if (!rows->effective_keys) missing = "effective_keys";
    if (!a->two_texts && !rows->mean_distance) missing = "mean_distance";
    if (!a->two_texts && !rows->offset_mass) missing = "offset_mass";
    if (!rows->received != !rows->n_queries) missing = rows->received ? "n_queries" : "received";
    if (!rows->same_token != !rows->duplicate || !rows->same_token != !rows->induction)
        missing = "same_token, duplicate or induction";
    if (!missing) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "arrays.rows.%s is NULL", missing);
}

static qkv_status check_own(const qkv_heads_arrays *a, int alone, qkv_error *error) {
    static const char *const names[] = { "queries", "keys" };
    const int64_t own[] = { a->own_queries, a->own_keys }, n[] = { a->n_queries, a->n_keys };
    for (int side = 0; side < 2; side++) {
        const int64_t least = alone ? n[side] : 0;
        if (own[side] < least || own[side] > n[side])
            return qkvi_error_set(error, QKV_ERR_SHAPE,
                                  "arrays.own_%s = %lld is not between %lld and n_%s = %lld",
                                  names[side], (long long)own[side], (long long)least, names[side],
                                  (long long)n[side]);
    }
    return QKV_OK;
}

/* Of one rank its own rows are all; several check them together (take_pieces). */
static qkv_status check_pieces(const qkv_heads_arrays *a, qkv_error *error) {
    if (!a->pieces) return QKV_OK;
    if (a->rows)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "arrays.rows together with pieces");
    return a->ranks && a->ranks->n_ranks > 1 ? QKV_OK : check_own(a, 1, error);
}

/* Padding is hidden by a mask, which has no numbers, and whose rows are not distributed. */
static qkv_status check_kv_len(const qkv_heads_arrays *a, qkv_error *error) {
    const bool shared = a->pieces && a->ranks && a->ranks->n_ranks > 1;
    const char *const with = a->added ? "added" : a->rows ? "rows" : shared ? "pieces" : NULL;
    if (a->kv_len == 0) return QKV_OK;
    if (a->kv_len < 1 || a->kv_len > a->n_keys)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "arrays.kv_len = %lld is not between 0 and n_keys = %lld",
                              (long long)a->kv_len, (long long)a->n_keys);
    if (!with) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "arrays.kv_len together with %s", with);
}

static qkv_status check(const qkv_heads_arrays *a, qkv_error *error) {
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = { { "n_heads", a->n_heads },
                  { "n_kv_heads", a->n_kv_heads },
                  { "n_queries", a->n_queries },
                  { "n_keys", a->n_keys },
                  { "head_dim", a->head_dim } };
    if (!a->rows && (!a->q || !a->k))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "arrays.%s is NULL", a->q ? "k" : "q");
    if (!(a->softcap >= 0) || a->softcap > 1e30f)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "arrays.softcap = %g is not 0 to 1e30",
                              (double)a->softcap);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 1)
            return qkvi_error_set(error, QKV_ERR_SHAPE, "arrays.%s = %lld is below 1",
                                  sizes[i].name, (long long)sizes[i].value);
    if (a->n_heads % a->n_kv_heads != 0)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "arrays.n_heads = %lld is no multiple of n_kv_heads = %lld",
                              (long long)a->n_heads, (long long)a->n_kv_heads);
    QKV_TRY(check_rows(a, error));
    QKV_TRY(check_pieces(a, error));
    QKV_TRY(check_kv_len(a, error));
    return check_list(a, error);
}

void qkv_heads_kinds(const char *const *names, int64_t n, uint8_t *kinds) {
    for (int64_t i = 0; names && kinds && i < n; i++)
        kinds[i] = (uint8_t)(names[i] ? qkvi_token_kind_of_name(names[i]) : QKVI_TOKEN_TEXT);
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

static qkv_status no_memory(int64_t n, qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld tokens", (long long)n);
}

static qkv_status check_names(const char *name, const char *const *names, int64_t n,
                              qkv_error *error) {
    for (int64_t i = 0; i < n; i++)
        if (!names[i])
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "arrays.%s[%lld] is NULL", name,
                                  (long long)i);
    return QKV_OK;
}

static qkv_status take_kinds(const char *const *names, int64_t n, uint8_t **kinds,
                             qkv_error *error) {
    *kinds = qkvi_malloc_array((size_t)n, 1);
    if (!*kinds) return no_memory(n, error);
    for (int64_t i = 0; i < n; i++) (*kinds)[i] = (uint8_t)qkvi_token_kind_of_name(names[i]);
    return QKV_OK;
}

struct named {
    const char *name;
    int64_t at;
};

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* Tokens with the same name have the same number. */
static qkv_status take_ids(const char *const *names, int64_t n, int32_t **ids, qkv_error *error) {
    struct named *const sorted = qkvi_malloc_array((size_t)n, sizeof *sorted);
    *ids = qkvi_malloc_array((size_t)n, sizeof **ids);
    if (!sorted || !*ids) {
        free(sorted);
        return no_memory(n, error);
    }
    for (int64_t i = 0; i < n; i++) sorted[i] = (struct named){ names[i], i };
    qsort(sorted, (size_t)n, sizeof *sorted, by_name);
    int32_t id = 0;
    for (int64_t i = 0; i < n; i++) {
        id += i > 0 && by_name(&sorted[i - 1], &sorted[i]) != 0;
        (*ids)[sorted[i].at] = id;
    }
    free(sorted);
    return QKV_OK;
}

/* Queries are the tokens of keys if they are as many and have no names of their own. */
static qkv_status take_tokens(const qkv_heads_arrays *a, qkv_heads *heads, qkv_error *error) {
    const int is_self = a->n_queries == a->n_keys && !a->queries;
    const char *const *const queries = a->queries ? a->queries : is_self ? a->keys : NULL;
    if (a->keys) QKV_TRY(check_names("keys", a->keys, a->n_keys, error));
    if (queries) QKV_TRY(check_names("queries", queries, a->n_queries, error));
    if (a->keys) QKV_TRY(take_kinds(a->keys, a->n_keys, &heads->key_kinds, error));
    if (queries) QKV_TRY(take_kinds(queries, a->n_queries, &heads->query_kinds, error));
    if (a->keys && is_self && a->q_offset == 0 && heads->info.one_text)
        QKV_TRY(take_ids(a->keys, a->n_keys, &heads->ids, error));
    return QKV_OK;
}

/* ---- Queries and keys ------------------------------------------------------------------------ */

static void take_heads(const qkv_heads_arrays *a, qkv_heads *heads) {
    const int64_t group = a->n_heads / a->n_kv_heads;
    const int64_t own[] = { a->pieces ? a->own_queries : a->n_queries,
                            a->pieces ? a->own_keys : a->n_keys };
    for (int64_t i = 0; i < heads->n_all; i++) {
        const int64_t h = a->list ? a->list[i] : i;
        heads->sources[i] = (qkvi_head_source){
            .q = a->q + h * own[0] * a->head_dim,
            .k = a->k + h / group * own[1] * a->head_dim,
            .kv = h / group,
            .lse = heads->own_lse + i * a->n_queries,
            .scale = a->scale != 0 ? a->scale : (float)(1 / sqrt((double)a->head_dim)),
            .sink = a->sinks ? a->sinks + h : NULL,
            .slope = a->alibi_slopes ? a->alibi_slopes + h : NULL,
            .added = a->added ? a->added + h * a->n_queries * a->n_keys : NULL
        };
    }
}

static qkv_status take_padding(const qkv_heads_arrays *a, qkv_heads *heads, qkv_error *error) {
    if (a->kv_len == 0 || a->kv_len == a->n_keys) return QKV_OK;
    heads->own_seen = qkvi_calloc_array((size_t)a->n_keys, 1);
    if (!heads->own_seen) return no_memory(a->n_keys, error);
    memset(heads->own_seen, 1, (size_t)a->kv_len);
    heads->seen = heads->own_seen;
    return QKV_OK;
}

static void take_rules(const qkv_heads_arrays *a, qkv_heads *heads) {
    heads->rules = qkvi_rules_of_window(a->n_queries, a->n_keys, a->q_offset, a->causal,
                                        a->window_left, a->window_right);
    if (a->window_left < 0 && a->window_right < 0) return;
    heads->desc.flags |= QKV_SET_WINDOW;
    heads->desc.window_left = a->window_left;
    heads->desc.window_right = a->window_right;
}

static qkv_status take_pieces(const qkv_heads_arrays *a, qkv_heads *heads, qkv_error *error) {
    const int64_t own[] = { a->own_queries, a->own_keys }, n[] = { a->n_queries, a->n_keys };
    heads->n_whole = qkvi_max_i64(heads->n_all, a->n_kv_heads);
    qkv_status status = check_own(a, 0, error);
    for (int side = 0; side < 2; side++) {
        heads->whole[side] = qkvi_calloc_array((size_t)heads->n_whole, sizeof *heads->whole[side]);
        if (status == QKV_OK && !heads->whole[side]) status = qkvi_no_memory(error, "heads");
    }
    return qkvi_head_pieces_make(&heads->pieces, &heads->peers, status, own, n, a->head_dim, error);
}

static qkv_status open(qkv_ctx *ctx, const qkv_heads_arrays *a, qkv_heads **heads,
                       qkv_error *error) {
    const qkv_heads_info info = {
        .n_layers = 1,
        .n_heads = a->list ? a->n_list : a->n_heads,
        .n_queries = a->n_queries,
        .n_keys = a->n_keys,
        .head_dim = a->head_dim,
        .one_text = !a->two_texts,
        .causal = a->causal,
        .q_offset = a->q_offset,
        .softcap = a->softcap,
        .sees_all = !a->causal && a->window_left < 0 && a->window_right < 0 &&
                    (a->kv_len == 0 || a->kv_len == a->n_keys),
    };
    int64_t n_lse;
    QKV_TRY(qkvi_heads_make(ctx, &info, heads, error));
    (*heads)->softcap = a->softcap;
    if (a->rows) {
        (*heads)->rows = *a->rows;
        (*heads)->given = &(*heads)->rows;
    }
    take_rules(a, *heads);
    QKV_TRY(take_padding(a, *heads, error));
    if (a->ranks) {
        (*heads)->ranks = *a->ranks;
        (*heads)->peers = qkvi_peers_of(&(*heads)->ranks, ctx->pool);
        QKV_TRY(qkvi_peers_begin(&(*heads)->peers, error));
    }
    if (a->rows) return take_tokens(a, *heads, error);
    if (a->pieces && (*heads)->peers.of) QKV_TRY(take_pieces(a, *heads, error));
    if (qkvi_mul_i64(info.n_heads, a->n_queries, &n_lse))
        (*heads)->own_lse = qkvi_malloc_array((size_t)n_lse, 2 * sizeof(float));
    if ((*heads)->own_lse) (*heads)->distance = (*heads)->own_lse + n_lse;
    if (!(*heads)->own_lse) return no_memory(a->n_queries, error);
    take_heads(a, *heads);
    return take_tokens(a, *heads, error);
}

qkv_status qkv_heads_open_arrays(qkv_ctx *ctx, const qkv_heads_arrays *given, qkv_heads **heads,
                                 qkv_error *error) {
    qkv_heads_arrays a = qkv_heads_arrays_init();
    qkv_heads_rows rows = qkv_heads_rows_init();
    qkv_ranks ranks = qkv_ranks_init();
    if (heads) *heads = NULL;
    if (!ctx || !given || !heads)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !ctx     ? "ctx"
                              : !given ? "arrays"
                                       : "the result");
    QKV_TRY(qkvi_options_read(&a, sizeof a, given, "arrays", error));
    if (a.rows) {
        QKV_TRY(qkvi_options_read(&rows, sizeof rows, a.rows, "qkv_heads_rows", error));
        a.rows = &rows;
    }
    QKV_TRY(qkvi_peers_read(&a.ranks, &ranks, error));
    QKV_TRY(check(&a, error));
    const qkv_status status = open(ctx, &a, heads, error);
    if (status == QKV_OK) return QKV_OK;
    qkv_heads_free(*heads);
    *heads = NULL;
    return status;
}
