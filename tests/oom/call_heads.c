/*
 * Heads of a run, of arrays and of means: qkv/heads.h. Every call gets a context of its own, as in
 * call_attention.c, and heads of its own.
 */
#include <string.h>

#include <qkv/heads.h>

#include "oom/calls.h"

enum {
    HEADS = 2,
    LEN = 30,
    DIM = 4,
    TILE = 7,
};

static float q[HEADS * LEN * DIM], cells[LEN * LEN], room[HEADS * LEN * LEN];
static const char *names[LEN];
static qkv_model *model;
static qkv_encoding *input;
static qkv_run *run;
static qkv_ctx *ctx;
static qkv_heads *heads, *mean, *made;
static qkv_heads_arrays arrays;
static qkv_sharpest sharpest = { .struct_size = sizeof sharpest };
static qkv_heads_choice choice = { .struct_size = sizeof choice };
static qkv_head_view view = { .struct_size = sizeof view };
static double received[LEN], by_offset[2 * LEN], entropy[LEN];
static int64_t key;
static float weight;

static void new_ctx(void) {
    qkv_error error;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.n_threads = 3;
    oom_must(qkv_ctx_create(&options, &ctx, &error), &error);
    memset(cells, 0, sizeof cells);
    sharpest = qkv_sharpest_init();
    choice = qkv_heads_choice_init();
    heads = mean = made = NULL;
}

static void drop(void) {
    qkv_heads_free(made);
    qkv_heads_free(mean);
    qkv_heads_free(heads);
    qkv_ctx_free(ctx);
    heads = mean = made = NULL;
    ctx = NULL;
}

static void new_run_heads(void) {
    const qkv_token_list list = { qkv_model_tokenizer(model, QKV_SOURCE), input };
    qkv_error error;
    new_ctx();
    oom_must(qkv_heads_open_run(ctx, run, QKV_SELF, 0, &list, NULL, &heads, &error), &error);
}
static void new_measured(void) {
    qkv_error error;
    new_run_heads();
    oom_must(qkv_heads_measure(heads, QKV_HEADS_RECEIVED, NULL, &error), &error);
}
static void new_array_heads(void) {
    qkv_error error;
    new_ctx();
    oom_must(qkv_heads_open_arrays(ctx, &arrays, &heads, &error), &error);
}
/* Statistics of rows, of which only the memory is looked at. */
static void new_row_heads(void) {
    static const qkv_heads_rows rows = { .struct_size = sizeof rows,
                                         .entropy = q,
                                         .largest = q,
                                         .effective_keys = q,
                                         .mean_distance = q,
                                         .offset_mass = room,
                                         .same_token = q,
                                         .duplicate = q,
                                         .induction = q };
    qkv_heads_arrays of_rows = arrays;
    qkv_error error;
    new_ctx();
    of_rows.rows = &rows;
    oom_must(qkv_heads_open_arrays(ctx, &of_rows, &heads, &error), &error);
}
static void new_biased_heads(void) {
    qkv_heads_arrays biased = arrays;
    qkv_error error;
    new_ctx();
    biased.added = room;
    oom_must(qkv_heads_open_arrays(ctx, &biased, &heads, &error), &error);
}
static void new_mean(void) {
    qkv_error error;
    new_measured();
    const qkv_heads_info *const info = qkv_heads_get_info(heads);
    oom_must(qkv_heads_open_mean(info->n_layers, info->n_heads, 8, 2, heads, &mean, &error),
             &error);
}

static uint64_t hash_numbers(const qkv_heads *of) {
    const qkv_heads_info *const info = qkv_heads_get_info(of);
    const size_t n = (size_t)(info->n_layers * info->n_heads);
    return oom_hash(0, qkv_heads_numbers(of, 0),
                    n * (size_t)qkv_head_number_count() * sizeof(double));
}
static uint64_t take_info(void) {
    const uint64_t hash = oom_hash(0, qkv_heads_get_info(made), sizeof(qkv_heads_info));
    qkv_heads_free(made);
    made = NULL;
    return hash;
}

static qkv_status open_run(qkv_error *error) {
    const qkv_token_list list = { qkv_model_tokenizer(model, QKV_SOURCE), input };
    return qkv_heads_open_run(ctx, run, QKV_SELF, 0, &list, NULL, &made, error);
}
static qkv_status open_arrays(qkv_error *error) {
    return qkv_heads_open_arrays(ctx, &arrays, &made, error);
}
static qkv_status open_padded(qkv_error *error) {
    qkv_heads_arrays padded = arrays;
    padded.kv_len = 1;
    return qkv_heads_open_arrays(ctx, &padded, &made, error);
}
static qkv_status open_mean(qkv_error *error) {
    return qkv_heads_open_mean(2, 2, 8, 2, heads, &made, error);
}
static qkv_status add(qkv_error *error) { return qkv_heads_add(mean, heads, error); }
static void new_mean_of_numbers(void) {
    qkv_error error;
    new_measured();
    const qkv_heads_info *const info = qkv_heads_get_info(heads);
    oom_must(qkv_heads_open_mean(info->n_layers, info->n_heads, 8, 0, NULL, &mean, &error), &error);
}
static qkv_status add_numbers(qkv_error *error) {
    return qkv_heads_add_numbers(mean, qkv_heads_numbers(heads, 0), error);
}
static uint64_t take_mean(void) {
    const int at = qkv_head_number_find("confidence", 10);
    return oom_hash(0, &qkv_heads_numbers(mean, 0)[at], sizeof(double));
}
static qkv_status measure(qkv_error *error) {
    return qkv_heads_measure(heads, QKV_HEADS_RECEIVED | QKV_HEADS_SHARPEST, NULL, error);
}
static uint64_t take_numbers(void) { return hash_numbers(heads); }
static qkv_status get_view(qkv_error *error) { return qkv_heads_view(heads, 1, &view, error); }
static uint64_t take_view(void) { return oom_hash(0, view.lse, LEN * sizeof(float)); }
static qkv_status weigh(qkv_error *error) {
    return qkv_heads_weights(heads, 1, 0, LEN, 0, LEN, cells, LEN, error);
}
static qkv_status pool(qkv_error *error) {
    return qkv_heads_cells(heads, 1, TILE, QKV_TILE_MASS, cells, NULL, error);
}
static uint64_t take_cells(void) { return oom_hash(0, cells, sizeof cells); }
static qkv_status profile(qkv_error *error) {
    const qkv_heads_profile asked = { sizeof asked, entropy, NULL, received, by_offset };
    return qkv_heads_position(heads, 0, &asked, NULL, error);
}
static uint64_t take_profile(void) {
    return oom_hash(oom_hash(0, received, sizeof received), by_offset,
                    (2 * LEN - 1) * sizeof *by_offset);
}
static qkv_status find(qkv_error *error) {
    return qkv_heads_sharpest(heads, NULL, NULL, NULL, &sharpest, error);
}
static uint64_t take_sharpest(void) { return oom_hash(0, &sharpest, sizeof sharpest); }
static qkv_status look(qkv_error *error) {
    return qkv_heads_look(heads, 1, 3, &key, &weight, error);
}
static uint64_t take_look(void) { return oom_hash(0, &key, sizeof key); }
static qkv_status choose(qkv_error *error) { return qkv_heads_choose(heads, -1, &choice, error); }
static uint64_t take_choice(void) { return oom_hash(0, &choice.query, sizeof choice.query); }

static void set_up(void) {
    static const char text[] = "The man was watching the dog when it left.";
    static char letters[LEN][2];
    qkv_error error;
    for (int i = 0; i < HEADS * LEN * DIM; i++) q[i] = (float)(i * 7 % 11) / 4;
    for (int i = 0; i < LEN; i++) {
        letters[i][0] = (char)('a' + i * 5 % 17);
        names[i] = letters[i];
    }
    arrays = qkv_heads_arrays_init();
    arrays.q = arrays.k = q;
    arrays.n_heads = arrays.n_kv_heads = HEADS;
    arrays.n_queries = arrays.n_keys = LEN;
    arrays.head_dim = DIM;
    arrays.keys = names;
    oom_must(qkv_ctx_create(NULL, &ctx, &error), &error);
    oom_must(qkv_model_open(QKV_TEST_DATA "/golden/bert_old", NULL, &model, &error), &error);
    oom_must(qkv_tokenizer_encode(qkv_model_tokenizer(model, QKV_SOURCE), text, strlen(text), NULL,
                                  0, &input, &error),
             &error);
    oom_must(qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)&input, QKV_RUN_CAPTURE,
                           NULL, &run, &error),
             &error);
    qkv_ctx_free(ctx);
}

static void tear_down(void) {
    qkv_run_free(run);
    qkv_encoding_free(input);
    qkv_model_free(model);
}

static const oom_call calls[] = {
    { "qkv_heads_open_run", "a sentence", new_ctx, open_run, take_info, drop, 0, 0 },
    { "qkv_heads_open_arrays", "named tokens", new_ctx, open_arrays, take_info, drop, 0, 0 },
    { "qkv_heads_open_arrays", "padding", new_ctx, open_padded, take_info, drop, 0, 0 },
    { "qkv_heads_open_mean", "with weights", new_measured, open_mean, take_info, drop, 0, 0 },
    { "qkv_heads_add", "a sentence", new_mean, add, take_mean, drop, 0, 0 },
    { "qkv_heads_add_numbers", "a sentence", new_mean_of_numbers, add_numbers, take_mean, drop, 0,
      0 },
    { "qkv_heads_measure", "a sentence", new_run_heads, measure, take_numbers, drop, 0, 0 },
    { "qkv_heads_measure", "arrays", new_array_heads, measure, take_numbers, drop, 0, 0 },
    { "qkv_heads_measure", "statistics of rows", new_row_heads, measure, take_numbers, drop, 0, 0 },
    { "qkv_heads_cells", "with a bias", new_biased_heads, pool, take_cells, drop, 0, 0 },
    { "qkv_heads_view", "arrays", new_array_heads, get_view, take_view, drop, 0, 0 },
    { "qkv_heads_weights", "arrays", new_array_heads, weigh, take_cells, drop, 0, 0 },
    { "qkv_heads_cells", "tiles", new_array_heads, pool, take_cells, drop, 0, 0 },
    { "qkv_heads_position", "arrays", new_array_heads, profile, take_profile, drop, 0, 0 },
    { "qkv_heads_sharpest", "a word", new_run_heads, find, take_sharpest, drop, 0, 0 },
    { "qkv_heads_look", "a query", new_run_heads, look, take_look, drop, 0, 0 },
    { "qkv_heads_choose", "a sentence", new_measured, choose, take_choice, drop, 0, 0 },
};

const oom_group oom_heads = { "heads", calls, sizeof calls / sizeof *calls, set_up, tear_down };
