/* `qkv look --q F --k F`: reads options and files; with --mpi each rank reads its part. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attend/attend.h"
#include "common/hash.h"
#include "common/rows.h"
#include "look/arrays.h"

/* ---- Options --------------------------------------------------------------------------------- */

/* --head and --heads: "L.H", where L is but a name, the same for all, or "H". */
static int parse_heads(const struct cli_command *command, const struct look_options *options,
                       struct arrays *arrays) {
    const struct cli_common *common = &options->common;
    const char *option = options->heads ? "--heads" : "--head",
               *text = options->heads ? options->heads : common->head;
    struct head_name *list = NULL;
    int n = 0;
    arrays->layer = common->layer.set ? common->layer.value : -1;
    if (!text) return EXIT_OK;
    if (!options->heads && strchr(text, ','))
        return cli_usage(command, "--head: '%s' is not L.H or H", text);
    int code = heads_parse(command, option, text, &list, &n);
    if (!code && !(arrays->places = calloc((size_t)n, sizeof *arrays->places)))
        code = cli_fail("out of memory");
    for (int i = 0; !code && i < n; i++) {
        arrays->places[i] = list[i].head;
        if ((i > 0 || common->layer.set) && list[i].layer >= 0 && list[i].layer != arrays->layer)
            code =
                cli_usage(command, "%s %s names several layers: arrays are of one", option, text);
        if (list[i].layer >= 0) arrays->layer = list[i].layer;
    }
    free(list);
    arrays->seen.by_name = true;
    arrays->n_places = n;
    return code;
}

int arrays_parse(const struct cli_command *command, const struct look_options *options,
                 struct arrays *arrays) {
    *arrays = (struct arrays){ .seen = { .common = &options->common, .sink = &options->sink },
                               .options = options,
                               .desc = qkv_heads_arrays_init() };
    int code = rules_parse_causal(command, options->causal, &arrays->rules);
    if (!code) code = rules_parse_one(command, QKV_SET_WINDOW, options->window, &arrays->rules);
    if (!code) code = parse_heads(command, options, arrays);
    return code;
}

/* ---- Rows of ranks --------------------------------------------------------------------------- */

/* What ranks must have in common: the shape of the whole array, and its type in the file. */
struct header {
    int64_t rank, shape[8];
    char type[8];
};

static struct header header_of(const qkv_array *whole) {
    struct header h = { .rank = whole->rank };
    for (int d = 0; d < whole->rank; d++) h.shape[d] = whole->shape[d];
    snprintf(h.type, sizeof h.type, "%s", whole->stored);
    return h;
}

/* headers: [n ranks]. */
static int compare(const char *option, const char *path, const struct header *headers) {
    const int size = ranks_size();
    for (int rank = 1; rank < size; rank++) {
        const struct header *const theirs = &headers[rank];
        if (theirs->rank != headers->rank ||
            memcmp(theirs->shape, headers->shape, sizeof headers->shape) != 0)
            return cli_fail("%s %s: rank %d reads another shape than rank 0", option, path, rank);
        if (strcmp(theirs->type, headers->type) != 0)
            return cli_fail("%s %s: rank %d reads numbers of type %s, and rank 0 of %s", option,
                            path, rank, theirs->type, headers->type);
    }
    return EXIT_OK;
}

/* The array says from now on how many rows all ranks have. */
static int join(const char *option, const char *path, int64_t n_rows, qkv_array *array) {
    array->shape[array->rank - 2] = n_rows;
    array->n_elems = 1;
    for (int d = 0; d < array->rank; d++) array->n_elems *= array->shape[d];
    const struct header mine = header_of(array);
    struct header *const headers = calloc((size_t)ranks_size(), sizeof *headers);
    if (!headers) abort(); /* which ends the job */
    ranks_gather(&mine, (int)sizeof mine, headers);
    const int code = compare(option, path, headers);
    free(headers);
    return code;
}

/* ---- One array ------------------------------------------------------------------------------- */

static int read_floats(const char *option, const char *path, bool quiet, int64_t rows[2],
                       qkv_array **array) {
    qkv_error error;
    if (rows && strcmp(path, "-") == 0)
        return cli_fail("%s: --mpi reads parts of files, and '-' is none", option);
    const qkv_status status = rows ? qkv_array_read_part(path, QKV_ARRAY_F32, ranks_rank(),
                                                         ranks_size(), array, rows, &error)
                                   : array_read(path, quiet, QKV_ARRAY_F32, array, &error);
    if (status != QKV_OK) return cli_fail("%s %s", option, error.message);
    rows_to_floats(*array);
    if ((*array)->type != QKV_ARRAY_F32)
        return cli_fail("%s %s: holds booleans, not numbers", option, path);
    return EXIT_OK;
}

/*
 * An array of --q or --k, at least one of each: [L,D], [H,L,D] or [1,H,L,D]. Of several ranks
 * each reads its rows, `own` of them; the shape is that of the whole array.
 */
static int read_array(const char *option, const char *path, bool quiet, qkv_array **array,
                      int64_t *own) {
    char shape[200];
    int64_t rows[2];
    const bool shared = ranks_size() > 1;
    int code = read_floats(option, path, quiet, shared ? rows : NULL, array);
    if (shared) code = ranks_agree(code);
    if (code) return code;
    *own = attend_size(*array, 2);
    if (shared) code = join(option, path, rows[1], *array);
    if (code) return code;
    const qkv_array *const a = *array;
    if (a->rank < 2 || a->rank > 4 || (a->rank == 4 && a->shape[0] != 1))
        return cli_fail("%s %s: shape %s is none of [L,D], [H,L,D], [1,H,L,D]", option, path,
                        attend_shape_text(a, shape));
    if (a->n_elems == 0)
        return cli_fail("%s %s: shape %s has nothing to look at", option, path,
                        attend_shape_text(a, shape));
    return EXIT_OK;
}

/* ---- Both of them ---------------------------------------------------------------------------- */

static int check_shapes(const struct arrays *arrays) {
    const qkv_array *q = arrays->q, *k = arrays->k;
    char q_shape[200], k_shape[200];
    const char *rule = attend_size(q, 3) != attend_size(k, 3) ? "the head sizes differ"
                       : arrays->desc.n_heads % arrays->desc.n_kv_heads
                           ? "the heads of q are no multiple of those of k"
                           : NULL;
    return rule ? cli_fail("--q has shape %s, --k has %s: %s", attend_shape_text(q, q_shape),
                           attend_shape_text(k, k_shape), rule)
                : EXIT_OK;
}

/* The named ones, of which the only head of an array may have any name; else all. */
static int choose_heads(struct arrays *arrays) {
    const int64_t n_heads = arrays->desc.n_heads;
    for (int64_t h = 0; arrays->seen.by_name && h < arrays->n_places; h++)
        if (arrays->places[h] >= n_heads && (n_heads > 1 || arrays->n_places > 1))
            return cli_fail("there is no head %" PRId64 ": --q has heads 0 to %" PRId64,
                            arrays->places[h], n_heads - 1);
    if (arrays->seen.by_name) return EXIT_OK;
    arrays->n_places = n_heads;
    arrays->places = calloc((size_t)n_heads, sizeof *arrays->places);
    if (!arrays->places) return cli_fail("out of memory");
    for (int64_t h = 0; h < n_heads; h++) arrays->places[h] = h;
    return EXIT_OK;
}

/* What was asked for, of these lengths. */
static int take_rules(struct arrays *arrays) {
    qkv_heads_arrays *a = &arrays->desc;
    qkv_attention_desc *mask = &arrays->mask;
    qkv_attention_desc_contiguous(mask, 1, 1, 1, a->n_queries, a->n_keys, 1, 1);
    const int code = rules_apply(&arrays->rules, mask);
    if (code) return code;
    arrays->window = mask->flags & QKV_SET_WINDOW;
    a->causal = (mask->flags & QKV_SET_CAUSAL) != 0;
    a->q_offset = mask->q_offsets ? mask->q_offsets[0] : mask->q_offset;
    if (!arrays->window) return EXIT_OK;
    a->window_left = mask->window_left;
    a->window_right = mask->window_right;
    return EXIT_OK;
}

/* Soft cap, sinks, ALiBi, and how many keys exist. */
static int take_scores(struct arrays *arrays) {
    const struct look_options *const options = arrays->options;
    qkv_heads_arrays *a = &arrays->desc;
    if (options->softcap.set) a->softcap = (float)options->softcap.value;
    const bool quiet = options->common.quiet;
    int code =
        attend_read_per_head("--sink", options->sinks, quiet, a->n_heads, &arrays->sink, &a->sinks);
    if (!code)
        code = attend_read_per_head("--alibi", options->alibi, quiet, a->n_heads, &arrays->alibi,
                                    &a->alibi_slopes);
    if (code || !options->kv_len.set) return code;
    if (options->kv_len.value > a->n_keys)
        return cli_fail("--kv-len %" PRId64 ": --k has %" PRId64 " keys", options->kv_len.value,
                        a->n_keys);
    a->kv_len = options->kv_len.value;
    arrays->padding = calloc((size_t)a->n_keys, 1);
    if (!arrays->padding) return cli_fail("out of memory");
    memset(arrays->padding + a->kv_len, 1, (size_t)(a->n_keys - a->kv_len));
    return EXIT_OK;
}

enum { MOST_OF_A_CHART = 1 << 19 }; /* queries, and keys (qkv/picture.h) */

static int check_plot(const struct arrays *arrays) {
    const qkv_heads_arrays *a = &arrays->desc;
    if (!arrays->options->sink.plot.set ||
        (a->n_queries <= MOST_OF_A_CHART && a->n_keys <= MOST_OF_A_CHART))
        return EXIT_OK;
    return cli_fail("--plot: %" PRId64 " queries and %" PRId64
                    " keys are more than the %d that a chart has room for; FILE.json has means "
                    "over all",
                    a->n_queries, a->n_keys, MOST_OF_A_CHART);
}

static uint64_t add_tokens(uint64_t hash, char *const *tokens, int64_t n) {
    for (int64_t i = 0; tokens && i < n; i++)
        hash = hash_add(hash, tokens[i], strlen(tokens[i]) + 1);
    return hash_add(hash, "", 1);
}

/* Which tokens are the same is counted on each rank, of its own files. */
static int read_names(struct arrays *arrays) {
    const struct look_options *const options = arrays->options;
    const qkv_heads_arrays *const a = &arrays->desc;
    const struct array_tokens tokens = {
        options->tokens, options->q_tokens, a->n_keys, a->n_queries, "", options->common.quiet
    };
    const char *const shown = options->tokens ? options->tokens : options->q_tokens;
    qkv_error error;
    uint64_t hash = HASH_START;
    const int code = cli_status(
        array_names_read(&tokens, arrays->self, &arrays->key_names, &arrays->query_names, &error),
        &error);
    if (!shown || ranks_size() == 1) return ranks_agree(code);
    if (!code) {
        hash = add_tokens(hash, arrays->key_names.tokens, a->n_keys);
        hash = add_tokens(hash, arrays->query_names.tokens, a->n_queries);
    }
    return ranks_agree_on(code, &(struct ranks_fact){ "list of tokens", shown, hash });
}

int arrays_read(struct arrays *arrays) {
    const struct look_options *options = arrays->options;
    qkv_heads_arrays *a = &arrays->desc;
    const bool quiet = options->common.quiet;
    int code = read_array("--q", options->q, quiet, &arrays->q, &a->own_queries);
    if (!code) code = read_array("--k", options->k, quiet, &arrays->k, &a->own_keys);
    if (code) return code;
    a->q = arrays->q->data;
    a->k = arrays->k->data;
    a->ranks = ranks_of_heads();
    a->pieces = 1;
    a->n_heads = attend_size(arrays->q, 1);
    a->n_kv_heads = attend_size(arrays->k, 1);
    a->n_queries = attend_size(arrays->q, 2);
    a->n_keys = attend_size(arrays->k, 2);
    a->head_dim = attend_size(arrays->q, 3);
    arrays->self = a->n_queries == a->n_keys && !options->q_tokens;
    code = check_shapes(arrays);
    if (!code) code = take_rules(arrays);
    if (!code) code = take_scores(arrays);
    if (!code) code = choose_heads(arrays);
    if (code) return code;
    a->scale = (float)(options->scale.set ? options->scale.value : 1 / sqrt((double)a->head_dim));
    if (a->n_heads > 1 && arrays->seen.by_name) {
        a->list = arrays->places;
        a->n_list = arrays->n_places;
    }
    code = read_names(arrays);
    a->keys = (const char *const *)arrays->key_names.tokens;
    a->queries = (const char *const *)arrays->query_names.tokens;
    a->two_texts = arrays->query_names.tokens && !a->causal && !arrays->window;
    return code ? code : check_plot(arrays);
}

void arrays_free(struct arrays *arrays) {
    qkv_heads_free(arrays->seen.heads);
    seen_free(&arrays->seen);
    rules_free(&arrays->rules);
    free(arrays->places);
    array_names_free(&arrays->key_names, arrays->desc.n_keys);
    array_names_free(&arrays->query_names, arrays->desc.n_queries);
    free(arrays->padding);
    qkv_array_free(arrays->sink);
    qkv_array_free(arrays->alibi);
    qkv_array_free(arrays->q);
    qkv_array_free(arrays->k);
}
