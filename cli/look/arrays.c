/* `qkv look --q F --k F`: options, arrays, and the heads that they make. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attend/attend.h"
#include "common/draw.h"
#include "common/number.h"
#include "common/ranks.h"
#include "look/look.h"

/* ---- Options --------------------------------------------------------------------------------- */

/* One offset: the arrays are of one batch. */
static int parse_causal(const struct cli_command *command, const char *text,
                        struct arrays *arrays) {
    int64_t offset;
    if (text && strcmp(text, "top-left") != 0 && strcmp(text, "bottom-right") != 0 &&
        !number_int(text, -INT64_MAX / 4, INT64_MAX / 4, &offset))
        return cli_usage(command, "--causal: '%s' is not top-left, bottom-right or an offset",
                         text);
    return rules_parse_one(command, QKV_SET_CAUSAL, text, &arrays->rules);
}

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
    int code = look_list_parse(command, option, text, &list, &n);
    if (!code && !(arrays->names = calloc((size_t)n, sizeof *arrays->names)))
        code = cli_fail("out of memory");
    for (int i = 0; !code && i < n; i++) {
        arrays->names[i] = list[i].head;
        if ((i > 0 || common->layer.set) && list[i].layer >= 0 && list[i].layer != arrays->layer)
            code =
                cli_usage(command, "%s %s names several layers: arrays are of one", option, text);
        if (list[i].layer >= 0) arrays->layer = list[i].layer;
    }
    free(list);
    arrays->named = true;
    arrays->n_shown = n;
    return code;
}

static int parse(const struct cli_command *command, const struct look_options *options,
                 struct arrays *arrays) {
    *arrays = (struct arrays){ .options = options, .given = qkv_heads_arrays_init() };
    int code = parse_causal(command, options->causal, arrays);
    if (!code) code = rules_parse_one(command, QKV_SET_WINDOW, options->window, &arrays->rules);
    if (!code) code = parse_heads(command, options, arrays);
    return code;
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

static int check_shapes(const struct arrays *arrays) {
    const qkv_array *q = arrays->q, *k = arrays->k;
    char q_shape[200], k_shape[200];
    const char *rule = attend_size(q, 3) != attend_size(k, 3) ? "the head sizes differ"
                       : arrays->given.n_heads % arrays->given.n_kv_heads
                           ? "the heads of q are no multiple of those of k"
                           : NULL;
    return rule ? cli_fail("--q has shape %s, --k has %s: %s", attend_shape_text(q, q_shape),
                           attend_shape_text(k, k_shape), rule)
                : EXIT_OK;
}

/* The named ones, of which the only head of an array may have any name; else all. */
static int choose_heads(struct arrays *arrays) {
    const int64_t n_heads = arrays->given.n_heads;
    for (int64_t h = 0; arrays->named && h < arrays->n_shown; h++)
        if (arrays->names[h] >= n_heads && (n_heads > 1 || arrays->n_shown > 1))
            return cli_fail("there is no head %" PRId64 ": --q has heads 0 to %" PRId64,
                            arrays->names[h], n_heads - 1);
    if (arrays->named) return EXIT_OK;
    arrays->n_shown = n_heads;
    arrays->names = calloc((size_t)n_heads, sizeof *arrays->names);
    if (!arrays->names) return cli_fail("out of memory");
    for (int64_t h = 0; h < n_heads; h++) arrays->names[h] = h;
    return EXIT_OK;
}

/* What was asked for, of these lengths. */
static int take_rules(struct arrays *arrays) {
    qkv_heads_arrays *a = &arrays->given;
    qkv_attention_desc *seen = &arrays->seen;
    qkv_attention_desc_contiguous(seen, 1, 1, 1, a->n_queries, a->n_keys, 1, 1);
    const int code = rules_apply(&arrays->rules, seen);
    if (code) return code;
    arrays->window = seen->flags & QKV_SET_WINDOW;
    a->causal = (seen->flags & QKV_SET_CAUSAL) != 0;
    a->q_offset = seen->q_offsets ? seen->q_offsets[0] : seen->q_offset;
    if (!arrays->window) return EXIT_OK;
    a->window_left = seen->window_left;
    a->window_right = seen->window_right;
    return EXIT_OK;
}

static int read_all(struct arrays *arrays) {
    const struct look_options *options = arrays->options;
    qkv_heads_arrays *a = &arrays->given;
    int code = arrays_read("--q", options->q, &arrays->q, &a->own_queries);
    if (!code) code = arrays_read("--k", options->k, &arrays->k, &a->own_keys);
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
    if (!code) code = choose_heads(arrays);
    if (code) return code;
    a->scale = (float)(options->scale.set ? options->scale.value : 1 / sqrt((double)a->head_dim));
    if (a->n_heads > 1 && arrays->named) {
        a->list = arrays->names;
        a->n_list = arrays->n_shown;
    }
    const struct array_tokens tokens = {
        options->tokens, options->q_tokens, a->n_keys, a->n_queries, "", options->common.quiet
    };
    qkv_error error;
    code = cli_status(
        array_names_read(&tokens, arrays->self, &arrays->keys, &arrays->queries, &error), &error);
    a->keys = (const char *const *)arrays->keys.tokens;
    a->queries = (const char *const *)arrays->queries.tokens;
    a->two_texts = arrays->queries.tokens && !a->causal && !arrays->window;
    return code;
}

static void free_all(struct arrays *arrays) {
    rules_free(&arrays->rules);
    free(arrays->names);
    array_names_free(&arrays->keys, arrays->given.n_keys);
    array_names_free(&arrays->queries, arrays->given.n_queries);
    qkv_array_free(arrays->q);
    qkv_array_free(arrays->k);
}

/* ---- Heads ----------------------------------------------------------------------------------- */

enum { MOST_OF_A_CHART = 1 << 19 }; /* queries, and keys (qkv/picture.h) */

static int check_plot(const struct arrays *arrays) {
    const qkv_heads_arrays *a = &arrays->given;
    if (!arrays->options->plot.set ||
        (a->n_queries <= MOST_OF_A_CHART && a->n_keys <= MOST_OF_A_CHART))
        return EXIT_OK;
    return cli_fail("--plot: %" PRId64 " queries and %" PRId64
                    " keys are more than the %d that a chart has room for; FILE.json has means "
                    "over all",
                    a->n_queries, a->n_keys, MOST_OF_A_CHART);
}

static qkv_status measure(const struct look *look, qkv_error *error) {
    const unsigned received = arrays_are_long(look->arrays) ? 0 : QKV_HEADS_RECEIVED;
    struct progress progress;
    const qkv_call_options call =
        progress_call(&progress, "heads", look->options->common.quiet || ranks_rank() > 0);
    const qkv_status status =
        qkv_heads_measure(look->text.heads, QKV_HEADS_SHARPEST | received, &call, error);
    progress_end(&progress);
    return status;
}

/* The named head, else that with the sharpest queries: of equal ones the first. */
static qkv_status choose(struct look *look, qkv_error *error) {
    qkv_sharpest found = qkv_sharpest_init();
    int64_t best = 0;
    for (int64_t h = 1; h < look_n_heads(look) && !look->given; h++)
        if (qkv_heads_value(look_numbers(look, h), "confidence") >
            qkv_heads_value(look_numbers(look, best), "confidence"))
            best = h;
    look->choice = (qkv_heads_choice){ .head = best, .query = -1, .key = -1 };
    const qkv_status status = arrays_sharpest(look, best, &found, error);
    if (status != QKV_OK || found.query < 0) return status;
    look->choice.query = found.query;
    return qkv_heads_look(look->text.heads, best, found.query, &look->choice.key,
                          &look->choice.weight, error);
}

static void warn(const struct look *look) {
    for (int64_t h = 0; h < look_n_heads(look); h++)
        if (qkv_heads_nan_rows(look->text.heads, h) > 0)
            cli_note(look->options->common.quiet,
                     "qkv: warning: head %" PRId64 ": %" PRId64
                     " queries have weights that are no numbers",
                     look->arrays->names[h], qkv_heads_nan_rows(look->text.heads, h));
}

static qkv_status answer(struct look *look, qkv_error *error) {
    json_t *json = NULL;
    qkv_status status =
        qkv_heads_open_arrays(look->ctx, &look->arrays->given, &look->text.heads, error);
    if (status == QKV_OK) status = measure(look, error);
    if (status == QKV_OK) status = choose(look, error);
    if (status == QKV_ERR_CANCELLED) return text_error(error, status, "nothing was written");
    if (status != QKV_OK) return status;
    warn(look);
    status = look_show(look, look->options->common.json ? &json : NULL, error);
    if (status != QKV_OK || !json) return status;
    return json_print(stdout, json) ? QKV_OK : text_error(error, QKV_ERR_IO, "standard output");
}

/* The first rank alone writes. */
static int check_out(const struct look_options *options) {
    qkv_error error;
    if (!options->out || ranks_rank() > 0) return EXIT_OK;
    return cli_status(qkv_file_writable(options->out, &error), &error);
}

static int show(struct look *look, struct arrays *arrays) {
    qkv_error error;
    look->given = arrays->named;
    look->n_rows = arrays->given.n_queries;
    look->n_cols = arrays->given.n_keys;
    look->cols = arrays->keys.labels;
    look->rows = arrays->self ? arrays->keys.labels : arrays->queries.labels;
    const int code = cli_status(answer(look, &error), &error);
    qkv_heads_free(look->text.heads);
    return code;
}

/* Other ranks print nothing, and do what the first one does for its terminal. */
static int open_terminal(const struct look_options *options, int64_t *side) {
    struct term term;
    if (ranks_rank() > 0 && !freopen("/dev/null", "w", stdout))
        return cli_fail("/dev/null cannot be opened");
    term_init(&term, stdout, &options->common);
    const int64_t mine = heatmap_side(&term);
    int64_t *const all = calloc((size_t)ranks_size(), sizeof *all);
    if (!all) abort(); /* which ends the job */
    ranks_gather(&mine, (int)sizeof mine, all);
    *side = all[0];
    free(all);
    return EXIT_OK;
}

int look_arrays(const struct cli_command *command, const struct look_options *options) {
    struct arrays arrays;
    struct look look = { .options = options, .arrays = &arrays };
    int code = parse(command, options, &arrays);
    if (!code && options->mpi) code = ranks_begin(true);
    if (!code) code = session_context(command, &options->common, &look.ctx);
    if (!code) code = check_out(options);
    code = ranks_agree(code);
    if (!code) code = ranks_agree(open_terminal(options, &arrays.side));
    if (!code) {
        code = read_all(&arrays);
        if (!code) code = check_plot(&arrays);
        if (!code) code = show(&look, &arrays);
        code = ranks_agree(ranks_leave(code));
    }
    ranks_end();
    free_all(&arrays);
    qkv_ctx_destroy(look.ctx);
    return code;
}
