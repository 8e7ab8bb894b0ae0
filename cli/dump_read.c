/* The options and arrays of `qkv look --q F --k F`, and the problem that they make. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attend.h"
#include "dump.h"
#include "heads_list.h"

/* ---- Options ----------------------------------------------------------------------------------- */

static int parse_causal(const struct cli_command *command, const char *text, struct dump *dump) {
    if (!text) return EXIT_OK;
    dump->causal = true;
    if (strcmp(text, "top-left") == 0 || strcmp(text, "bottom-right") == 0) return EXIT_OK;
    return args_int(text, -INT64_MAX / 4, INT64_MAX / 4, &dump->q_offset)
               ? EXIT_OK
               : cli_usage(command, "--causal: '%s' is not top-left, bottom-right or an offset",
                           text);
}

static int parse_window(const struct cli_command *command, const char *text, struct dump *dump) {
    int n = 0;
    int64_t *sides = text ? args_int_list(text, -1, INT64_MAX / 4, &n) : NULL;
    dump->window = sides && n == 2;
    if (dump->window) {
        dump->window_left = sides[0];
        dump->window_right = sides[1];
    }
    free(sides);
    return !text || dump->window
               ? EXIT_OK
               : cli_usage(command, "--window: '%s' is not LEFT,RIGHT (-1: unbounded)", text);
}

/* --head and --heads: "L.H", where L is but a name, the same for all, or "H". */
static int parse_heads(const struct cli_command *command, const struct look_options *options,
                       struct dump *dump) {
    const struct cli_common *common = &options->common;
    const char *option = options->heads ? "--heads" : "--head",
               *text = options->heads ? options->heads : common->head;
    struct head_name *list = NULL;
    int n = 0;
    dump->layer = common->layer.set ? common->layer.value : -1;
    if (!text) return EXIT_OK;
    if (!options->heads && strchr(text, ','))
        return cli_usage(command, "--head: '%s' is not L.H or H", text);
    int code = heads_list_parse(command, option, text, &list, &n);
    if (!code && !(dump->names = calloc((size_t)n, sizeof *dump->names)))
        code = cli_fail("out of memory");
    for (int i = 0; !code && i < n; i++) {
        dump->names[i] = list[i].head;
        if ((i > 0 || common->layer.set) && list[i].layer >= 0 && list[i].layer != dump->layer)
            code =
                cli_usage(command, "%s %s names several layers: arrays are of one", option, text);
        if (list[i].layer >= 0) dump->layer = list[i].layer;
    }
    free(list);
    dump->given = true;
    dump->n_shown = n;
    return code;
}

int dump_parse(const struct cli_command *command, const struct look_options *options,
               struct dump *dump) {
    *dump = (struct dump){ .options = options };
    int code = parse_causal(command, options->causal, dump);
    if (!code) code = parse_window(command, options->window, dump);
    if (!code) code = parse_heads(command, options, dump);
    return code;
}

/* ---- Arrays ------------------------------------------------------------------------------------ */

/* [L,D], [H,L,D] or [1,H,L,D], at least one of each. */
static int read_array(const char *option, const char *path, qkv_array **array) {
    qkv_error error;
    char shape[200];
    if (qkv_array_read_as(path, QKV_ARRAY_F32, array, &error) != QKV_OK)
        return cli_fail("%s %s", option, error.message);
    const qkv_array *a = *array;
    if (a->type != QKV_ARRAY_F32)
        return cli_fail("%s %s: holds %s, not floating-point numbers", option, path,
                        a->type == QKV_ARRAY_BOOL ? "booleans" : "integers");
    if (a->rank < 2 || a->rank > 4 || (a->rank == 4 && a->shape[0] != 1))
        return cli_fail("%s %s: shape %s is none of [L,D], [H,L,D], [1,H,L,D]", option, path,
                        attend_shape_text(a, shape));
    if (a->n_elems == 0)
        return cli_fail("%s %s: shape %s has nothing to look at", option, path,
                        attend_shape_text(a, shape));
    return EXIT_OK;
}

static int check_shapes(const struct dump *dump) {
    const qkv_array *q = dump->q, *k = dump->k;
    char q_shape[200], k_shape[200];
    const char *rule = attend_size(q, 3) != attend_size(k, 3) ? "the head sizes differ"
                       : dump->n_heads % dump->n_kv_heads
                           ? "the heads of q are no multiple of those of k"
                           : NULL;
    return rule ? cli_fail("--q has shape %s, --k has %s: %s", attend_shape_text(q, q_shape),
                           attend_shape_text(k, k_shape), rule)
                : EXIT_OK;
}

/* Causal and window as one band of j - i. */
static void make_mask(struct dump *dump) {
    struct dump_mask *mask = &dump->mask;
    if (dump->options->causal && strcmp(dump->options->causal, "bottom-right") == 0)
        dump->q_offset = dump->n_keys - dump->n_queries;
    if (dump->causal) *mask = (struct dump_mask){ .to = true, .last = dump->q_offset };
    if (dump->window && dump->window_left >= 0) {
        mask->from = true;
        mask->first = dump->q_offset - dump->window_left;
    }
    if (dump->window && dump->window_right >= 0) {
        const int64_t last = dump->q_offset + dump->window_right;
        mask->last = mask->to && mask->last < last ? mask->last : last;
        mask->to = true;
    }
}

/* The named ones, of which the only head of an array may have any name; else all. */
static int choose_heads(struct dump *dump) {
    for (int64_t h = 0; dump->given && h < dump->n_shown; h++)
        if (dump->names[h] >= dump->n_heads && (dump->n_heads > 1 || dump->n_shown > 1))
            return cli_fail("there is no head %" PRId64 ": --q has heads 0 to %" PRId64,
                            dump->names[h], dump->n_heads - 1);
    if (dump->given) return EXIT_OK;
    dump->n_shown = dump->n_heads;
    dump->names = calloc((size_t)dump->n_heads, sizeof *dump->names);
    if (!dump->names) return cli_fail("out of memory");
    for (int64_t h = 0; h < dump->n_heads; h++) dump->names[h] = h;
    return EXIT_OK;
}

int dump_read(struct dump *dump) {
    const struct look_options *options = dump->options;
    int code = read_array("--q", options->q, &dump->q);
    if (!code) code = read_array("--k", options->k, &dump->k);
    if (code) return code;
    dump->n_heads = attend_size(dump->q, 1);
    dump->n_kv_heads = attend_size(dump->k, 1);
    dump->n_queries = attend_size(dump->q, 2);
    dump->n_keys = attend_size(dump->k, 2);
    dump->head_dim = attend_size(dump->q, 3);
    dump->self = dump->n_queries == dump->n_keys && !options->q_tokens;
    code = check_shapes(dump);
    if (!code) code = choose_heads(dump);
    if (code) return code;
    dump->scale = options->scale.set ? options->scale.value : 1 / sqrt((double)dump->head_dim);
    make_mask(dump);
    dump->heads = calloc((size_t)dump->n_shown, sizeof *dump->heads);
    return dump->heads ? dump_tokens_read(dump) : cli_fail("out of memory");
}

/* The head of the arrays that is the shown-th of those that are looked at. */
static int64_t head_of(const struct dump *dump, int64_t shown) {
    return dump->n_heads == 1 ? 0 : dump->names[shown];
}

const float *dump_queries(const struct dump *dump, int64_t shown) {
    return (const float *)dump->q->data + head_of(dump, shown) * dump->n_queries * dump->head_dim;
}

const float *dump_keys(const struct dump *dump, int64_t shown) {
    const int64_t head = head_of(dump, shown) / (dump->n_heads / dump->n_kv_heads);
    return (const float *)dump->k->data + head * dump->n_keys * dump->head_dim;
}

static void free_texts(char **texts, int64_t n) {
    for (int64_t i = 0; texts && i < n; i++) free(texts[i]);
    free(texts);
}

void dump_free(struct dump *dump) {
    for (int64_t h = 0; dump->heads && h < dump->n_shown; h++) {
        free(dump->heads[h].lse);
        free(dump->heads[h].distance);
        free(dump->heads[h].entropy);
        free(dump->heads[h].largest);
        free(dump->heads[h].received);
        free(dump->heads[h].peaks);
    }
    free(dump->heads);
    free(dump->names);
    free_texts(dump->tokens, dump->n_keys);
    free_texts(dump->labels, dump->n_keys);
    free_texts(dump->q_tokens, dump->n_queries);
    free_texts(dump->q_labels, dump->n_queries);
    qkv_array_free(dump->q);
    qkv_array_free(dump->k);
}
