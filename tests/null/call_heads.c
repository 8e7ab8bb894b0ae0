/* heads.h: see nulls.h. */
#include <math.h>
#include <stdlib.h>

#include "null/models.h"
#include "null/nulls.h"
#include "qkv/heads.h"
#include "qkv/inspect.h"

enum { ROOM = 1 << 14 };
static double numbers[ROOM];
static float floats[ROOM];
static uint8_t marks[ROOM];
static const qkv_call_options call_options = { .struct_size = sizeof(qkv_call_options) };

static qkv_status some(int is_there) { return is_there ? QKV_OK : QKV_ERR_ARGUMENT; }

/* Measured heads of a text. */
static qkv_heads *opened(void) {
    const qkv_token_list list = { qkv_model_tokenizer(null_bert, QKV_SOURCE), null_tokens };
    qkv_heads *heads;
    null_must(
        qkv_heads_open_run(null_ctx, null_run, QKV_SELF, 0, &list, NULL, &heads, &null_error));
    null_must(qkv_heads_measure(heads, QKV_HEADS_RECEIVED, NULL, &null_error));
    return heads;
}
static qkv_heads *mean_of(qkv_heads *one) {
    const qkv_heads_info *const info = qkv_heads_get_info(one);
    qkv_heads *mean;
    null_must(qkv_heads_open_mean(info->n_layers, info->n_heads, info->n_keys, 1, one, &mean,
                                  &null_error));
    null_must(qkv_heads_add(mean, one, &null_error));
    return mean;
}

static qkv_status kinds(void) {
    static const char *const names[] = { "[CLS]", "." };
    qkv_heads_kinds(P(0, names), 2, P(1, marks));
    return QKV_OK;
}
static qkv_status find(void) { return some(qkv_head_number_find(P(0, "entropy"), 7) >= 0); }
static qkv_status value(void) {
    numbers[0] = 1;
    return some(!isnan(qkv_head_number_value(P(0, numbers), P(1, "entropy"))));
}
static qkv_status label(void) { return some(qkv_heads_label(P(0, numbers)) != NULL); }
static qkv_status unlike(void) {
    qkv_heads_unlike(2, P(0, numbers), 0, P(1, numbers + ROOM / 2));
    return QKV_OK;
}
static qkv_status open_run(void) {
    const qkv_token_list list = { qkv_model_tokenizer(null_bert, QKV_SOURCE), null_tokens };
    qkv_heads *heads;
    return qkv_heads_open_run(P(0, null_ctx), P(1, null_run), QKV_SELF, 0, P(2, &list), P(3, &list),
                              P(4, &heads), P(5, &null_error));
}
static qkv_status open_arrays(void) {
    qkv_heads_arrays arrays = qkv_heads_arrays_init();
    qkv_heads *heads;
    arrays.q = arrays.k = floats;
    arrays.n_heads = arrays.n_kv_heads = arrays.n_queries = arrays.n_keys = arrays.head_dim = 1;
    return qkv_heads_open_arrays(P(0, null_ctx), P(1, &arrays), P(2, &heads), P(3, &null_error));
}
static qkv_status open_mean(void) {
    qkv_heads *const one = opened(), *mean;
    const qkv_heads_info *const info = qkv_heads_get_info(one);
    return qkv_heads_open_mean(info->n_layers, info->n_heads, 8, 1, P(0, one), P(1, &mean),
                               P(2, &null_error));
}
static qkv_status add(void) {
    qkv_heads *const one = opened(), *const mean = mean_of(one);
    return qkv_heads_add(P(0, mean), P(1, one), P(2, &null_error));
}
static qkv_status add_numbers(void) {
    qkv_heads *const one = opened(), *mean;
    const qkv_heads_info *const info = qkv_heads_get_info(one);
    null_must(qkv_heads_open_mean(info->n_layers, info->n_heads, 8, 0, NULL, &mean, &null_error));
    return qkv_heads_add_numbers(P(0, mean), P(1, qkv_heads_numbers(one, 0)), P(2, &null_error));
}
static qkv_status release(void) {
    qkv_heads_free(P(0, opened()));
    return QKV_OK;
}
static qkv_status get_info(void) { return some(qkv_heads_get_info(P(0, opened())) != NULL); }
static qkv_status measure(void) {
    return qkv_heads_measure(P(0, opened()), 0, P(1, &call_options), P(2, &null_error));
}
static qkv_status get_numbers(void) { return some(qkv_heads_numbers(P(0, opened()), 0) != NULL); }
static qkv_status spread(void) {
    return some(qkv_heads_spread(P(0, mean_of(opened())), 0) != NULL);
}
static qkv_status label_share(void) {
    return some(!isnan(qkv_heads_label_share(P(0, mean_of(opened())), 0, P(1, "sink"))));
}
static qkv_status empty_rows(void) { return some(qkv_heads_empty_rows(P(0, opened()), 0) == 0); }
static qkv_status nan_rows(void) { return some(qkv_heads_nan_rows(P(0, opened()), 0) == 0); }
static qkv_status distance(void) {
    qkv_heads_arrays arrays = qkv_heads_arrays_init();
    qkv_heads *heads;
    arrays.q = arrays.k = floats;
    arrays.n_heads = arrays.n_kv_heads = arrays.n_queries = arrays.n_keys = arrays.head_dim = 1;
    null_must(qkv_heads_open_arrays(null_ctx, &arrays, &heads, &null_error));
    null_must(qkv_heads_measure(heads, 0, NULL, &null_error));
    return some(qkv_heads_distance(P(0, heads), 0) != NULL);
}
static qkv_status set_probes(void) {
    static qkv_head_probes probes[ROOM / 32];
    qkv_heads_set_probes(P(0, opened()), P(1, probes), sizeof *probes);
    return QKV_OK;
}
static qkv_status sees_of(void) { return some(qkv_head_sees(P(0, opened()), 0, 0, 0)); }
static qkv_status view(void) {
    qkv_head_view head = qkv_head_view_init();
    return qkv_heads_view(P(0, opened()), 0, P(1, &head), P(2, &null_error));
}
static qkv_status weights(void) {
    return qkv_heads_weights(P(0, opened()), 0, 0, 1, 0, 1, P(1, floats), 1, P(2, &null_error));
}
static qkv_status cells(void) {
    return qkv_heads_cells(P(0, opened()), 0, 1, QKV_TILE_PEAK, P(1, floats), P(2, &call_options),
                           P(3, &null_error));
}
static qkv_status position(void) {
    const qkv_heads_profile profile = { .struct_size = sizeof profile, .received = numbers };
    return qkv_heads_position(P(0, opened()), 0, P(1, &profile), P(2, &call_options),
                              P(3, &null_error));
}
static qkv_status sharpest(void) {
    qkv_sharpest found = qkv_sharpest_init();
    for (int i = 0; i < ROOM; i++) marks[i] = 1;
    return qkv_heads_sharpest(P(0, opened()), P(1, marks), P(2, marks), P(3, marks), P(4, &found),
                              P(5, &null_error));
}
static qkv_status look(void) {
    int64_t key;
    return qkv_heads_look(P(0, opened()), 0, 0, P(1, &key), P(2, floats), P(3, &null_error));
}
static qkv_status choose(void) {
    qkv_heads_choice choice = qkv_heads_choice_init();
    return qkv_heads_choose(P(0, opened()), -1, P(1, &choice), P(2, &null_error));
}

const null_call null_heads[] = {
    { "qkv_heads_kinds", kinds, "nn" },
    { "qkv_head_number_find", find, "-" },
    { "qkv_head_number_value", value, "--" },
    { "qkv_heads_label", label, "n" },
    { "qkv_heads_unlike", unlike, "nn" },
    { "qkv_heads_open_run", open_run, "rrrnrn" },
    { "qkv_heads_open_arrays", open_arrays, "rrrn" },
    { "qkv_heads_open_mean", open_mean, "nrn" },
    { "qkv_heads_add", add, "rrn" },
    { "qkv_heads_add_numbers", add_numbers, "rrn" },
    { "qkv_heads_free", release, "n" },
    { "qkv_heads_get_info", get_info, "-" },
    { "qkv_heads_measure", measure, "rnn" },
    { "qkv_heads_numbers", get_numbers, "-" },
    { "qkv_heads_spread", spread, "-" },
    { "qkv_heads_label_share", label_share, "--" },
    { "qkv_heads_empty_rows", empty_rows, "n" },
    { "qkv_heads_nan_rows", nan_rows, "n" },
    { "qkv_heads_distance", distance, "-" },
    { "qkv_heads_set_probes", set_probes, "nn" },
    { "qkv_head_sees", sees_of, "-" },
    { "qkv_heads_view", view, "rrn" },
    { "qkv_heads_weights", weights, "rrn" },
    { "qkv_heads_cells", cells, "rrnn" },
    { "qkv_heads_position", position, "rrnn" },
    { "qkv_heads_sharpest", sharpest, "rnnnrn" },
    { "qkv_heads_look", look, "rrrn" },
    { "qkv_heads_choose", choose, "rrn" },
    { 0 },
};
