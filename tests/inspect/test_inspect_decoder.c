/*
 * What inspection says of decoders and of pairs, against sums in double over weights that are
 * computed here anew from the captured q and k: GPT-2, BART and Marian with random weights
 * (tests/golden/decoder), each in three sizes. Keys that a query does not see have no part in
 * anything.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inspect/head_values.h"
#include "qkv/inspect.h"
#include "qkv/patterns.h"

enum { N = 13, M = 9, MOST_HEADS = 64 };

static const char *const decoders[] = { "gpt2_1", "gpt2_2", "gpt2_3" };
static const char *const pairs[] = { "bart_1",   "bart_2",   "bart_3",
                                     "marian_1", "marian_2", "marian_3" };
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

typedef struct fixture {
    qkv_model *model;
    const qkv_model_info *info;
    int32_t ids[N], target_ids[M];
    uint8_t special[N], types[N];
    int64_t begin[N], end[N];
    qkv_encoding input, target;
    qkv_run *run;
    double *p; /* [rows][keys] of one head */
} fixture;

static qkv_ctx *ctx;

static int set_up(void **state) {
    (void)state;
    return qkv_ctx_create(NULL, &ctx, NULL) == QKV_OK ? 0 : -1;
}
static int tear_down(void **state) {
    (void)state;
    qkv_ctx_free(ctx);
    return 0;
}

/* Tokens with repetitions; a run of the stack, or of a pair. */
static fixture open_model(const char *name) {
    fixture f = { .p = calloc(N * N, sizeof(double)) };
    char path[400];
    qkv_error error;
    snprintf(path, sizeof path, QKV_TEST_DATA "/golden/decoder/%s", name);
    if (qkv_model_open(path, NULL, &f.model, &error) != QKV_OK) fail_msg("%s", error.message);
    f.info = qkv_model_get_info(f.model);
    for (int i = 0; i < N; i++) f.ids[i] = i % 5 == 4 ? 5 : 5 + (3 * i) % 11;
    for (int i = 0; i < M; i++) f.target_ids[i] = i ? 5 + (7 * i) % 13 : (int32_t)f.info->start_id;
    return f;
}

static void run_model(fixture *f, uint32_t flags) {
    qkv_error error;
    f->input = (qkv_encoding){ N, f->ids, f->types, f->special, f->begin, f->end, NULL };
    f->target = (qkv_encoding){ M, f->target_ids, f->types, f->special, f->begin, f->end, NULL };
    const qkv_encoding *inputs = &f->input, *targets = &f->target;
    const qkv_status status =
        f->info->kind == QKV_MODEL_PAIR
            ? qkv_model_run(
                  ctx, f->model, 1, &inputs, flags,
                  &(qkv_run_options){ .struct_size = sizeof(qkv_run_options), .targets = &targets },
                  &f->run, &error)
            : qkv_model_run(ctx, f->model, 1, &inputs, flags, NULL, &f->run, &error);
    if (status != QKV_OK) fail_msg("%s", error.message);
}

static void close_model(fixture *f) {
    qkv_run_free(f->run);
    qkv_model_free(f->model);
    free(f->p);
}

static int64_t n_layers_of(const fixture *f, qkv_attention_kind which) {
    return which == QKV_SELF ? f->info->n_layers : f->info->n_decoder_layers;
}

static void near(double value, double wanted, double bound) {
    if (!(fabs(value - wanted) <= bound)) fail_msg("%.9g is not %.9g", value, wanted);
}

/* Weights of a head by the textbook, and what the capture says of them. */
static qkv_capture weights_of(fixture *f, qkv_attention_kind which, int64_t layer, int64_t head) {
    qkv_capture c = qkv_capture_init();
    assert_int_equal(qkv_run_capture(f->run, which, 0, layer, &c, NULL), QKV_OK);
    const int is_causal =
        which == QKV_DECODER || (which == QKV_SELF && f->info->kind == QKV_MODEL_DECODER);
    const double scale = (f->info->unscaled ? 1 : 1 / sqrt((double)c.head_dim)) /
                         (f->info->scales_by_layer ? (double)(layer + 1) : 1);
    for (int64_t i = 0; i < c.n; i++) {
        double sum = 0, *const p = f->p + i * c.n_keys;
        for (int64_t j = 0; j < c.n_keys; j++) {
            double s = 0;
            for (int64_t d = 0; d < c.head_dim; d++)
                s += (double)c.q[(head * c.n + i) * c.head_dim + d] *
                     (double)c.k[(head * c.n_keys + j) * c.head_dim + d];
            p[j] = is_causal && j > i ? 0 : exp(scale * s);
            sum += p[j];
        }
        for (int64_t j = 0; j < c.n_keys; j++) p[j] /= sum;
    }
    return c;
}

/* ---- Signatures ------------------------------------------------------------------------------ */

struct sums {
    double rows, entropy, log_keys, largest, effective, distance, self, previous, window;
    double same, n_same, induction, n_induction;
};

static int is_plain(const fixture *f, int32_t id) {
    const qkv_tokenizer *t = qkv_model_tokenizer(f->model, QKV_SOURCE);
    return id != qkv_tokenizer_special(t, QKV_TOKEN_CLS) &&
           id != qkv_tokenizer_special(t, QKV_TOKEN_SEP) &&
           id != qkv_tokenizer_special(t, QKV_TOKEN_PAD);
}

static void add_row(struct sums *s, const qkv_capture *c, const double *p, const int32_t *ids,
                    int64_t i) {
    const int64_t n_seen = c->causal ? i + 1 : c->n_keys;
    double squares = 0, largest = 0;
    int same = 0, after = 0;
    for (int64_t j = 0; j < n_seen; j++) {
        s->entropy -= p[j] > 0 ? p[j] * log(p[j]) : 0;
        squares += p[j] * p[j];
        largest = fmax(largest, p[j]);
        s->distance += p[j] * fabs((double)(i - j));
        s->self += i == j ? p[j] : 0;
        s->previous += i == j + 1 ? p[j] : 0;
        s->window += llabs(i - j) <= 8 ? p[j] : 0;
        if (!ids) continue;
        s->same += j != i && ids[j] == ids[i] ? p[j] : 0;
        s->induction += j > 0 && j <= i && ids[j - 1] == ids[i] ? p[j] : 0;
        same |= j != i && ids[j] == ids[i];
        after |= j > 0 && j <= i && ids[j - 1] == ids[i];
    }
    s->rows++;
    s->log_keys += log((double)n_seen);
    s->largest += largest;
    s->effective += 1 / squares;
    s->n_same += same;
    s->n_induction += after;
}

static void compare_received(const head_values *stats, const qkv_capture *c, const double *p) {
    double largest = 0, early = 0;
    for (int64_t j = 0; j < c->n_keys; j++) {
        const int64_t first = c->causal ? j : 0, rows = c->n - first;
        double sum = 0;
        for (int64_t i = first; i < c->n; i++) sum += p[i * c->n_keys + j];
        largest = fmax(largest, sum / (double)rows);
        if (2 * rows >= c->n) early = fmax(early, sum / (double)rows);
    }
    near(stats->received_largest, largest, 2e-6);
    near(stats->received_early, early, 2e-6);
}

static void compare_head(fixture *f, qkv_attention_kind which, const head_values *stats) {
    const qkv_capture c = weights_of(f, which, stats->layer, stats->head);
    const int32_t *const ids = which == QKV_SELF ? f->ids : f->target_ids;
    const double bound = 4e-6;
    struct sums s = { 0 };
    for (int64_t i = 0; i < c.n; i++)
        if (is_plain(f, ids[i]))
            add_row(&s, &c, f->p + i * c.n_keys, which == QKV_CROSS ? NULL : ids, i);
    assert_true((double)stats->n_queries == s.rows);
    near(stats->entropy, s.entropy / s.rows, bound);
    near(stats->entropy_normalized, s.log_keys > 0 ? s.entropy / s.log_keys : 0, bound);
    assert_true(stats->entropy_normalized < 1 + 1e-6);
    near(stats->confidence, s.largest / s.rows, bound);
    near(stats->effective_keys, s.effective / s.rows, 10 * bound);
    compare_received(stats, &c, f->p);
    if (which == QKV_CROSS) {
        assert_true(isnan(stats->mean_distance) && isnan(stats->mass_previous));
        assert_true(isnan(stats->mass_next) && isnan(stats->mass_window));
        assert_true(isnan(stats->mass_same_token) && isnan(stats->mass_induction));
        return;
    }
    near(stats->mean_distance, s.distance / s.rows, 10 * bound);
    near(stats->mass_self, s.self / s.rows, bound);
    near(stats->mass_previous, s.previous / s.rows, bound);
    near(stats->mass_window, s.window / s.rows, bound);
    if (c.causal) near(stats->mass_next, 0, 0);
    if (s.n_same > 0) near(stats->mass_same_token, s.same / s.n_same, bound);
    if (s.n_induction > 0) near(stats->mass_induction, s.induction / s.n_induction, bound);
}

static void check_signatures(const char *name, qkv_attention_kind which) {
    fixture f = open_model(name);
    static head_values stats[MOST_HEADS];
    qkv_error error;
    run_model(&f, QKV_RUN_CAPTURE);
    const qkv_tokenizer *tokenizer = qkv_model_tokenizer(f.model, QKV_SOURCE);
    const qkv_token_list source = { tokenizer, &f.input }, target = { tokenizer, &f.target };
    const int64_t n_heads = which == QKV_SELF ? f.info->n_heads : f.info->n_decoder_heads;
    if (head_values_of_run(ctx, f.run, which, which == QKV_SELF ? &source : &target, &source, stats,
                           &error) != QKV_OK)
        fail_msg("%s: %s", name, error.message);
    for (int64_t h = 0; h < n_layers_of(&f, which) * n_heads; h++)
        compare_head(&f, which, &stats[h]);
    close_model(&f);
}

static void test_signatures(void **state) {
    (void)state;
    for (int m = 0; m < COUNT(decoders); m++) check_signatures(decoders[m], QKV_SELF);
    for (int m = 0; m < COUNT(pairs); m++)
        for (int which = QKV_SELF; which <= QKV_CROSS; which++)
            check_signatures(pairs[m], (qkv_attention_kind)which);
}

/* ---- Rollout, the sharpest look -------------------------------------------------------------- */

/* x <- x (mean over heads of A + I) / 2, from the last layer down. */
static void test_rollout(void **state) {
    (void)state;
    for (int m = 0; m < COUNT(decoders); m++)
        for (int64_t position = 0; position < N; position += 4) {
            fixture f = open_model(decoders[m]);
            double x[N] = { 0 }, y[N], sum = 0;
            float received[N];
            run_model(&f, QKV_RUN_CAPTURE);
            x[position] = 1;
            for (int64_t layer = f.info->n_layers - 1; layer >= 0; layer--) {
                for (int64_t j = 0; j < N; j++) y[j] = x[j] / 2;
                for (int64_t h = 0; h < f.info->n_heads; h++) {
                    weights_of(&f, QKV_SELF, layer, h);
                    for (int64_t i = 0; i < N; i++)
                        for (int64_t j = 0; j < N; j++)
                            y[j] += x[i] * f.p[i * N + j] / 2 / (double)f.info->n_heads;
                }
                memcpy(x, y, sizeof x);
            }
            assert_int_equal(qkv_inspect_rollout(ctx, f.model, f.run, 0, position, position + 1,
                                                 QKV_ROLLOUT_MEAN, received, NULL),
                             QKV_OK);
            for (int64_t j = 0; j < N; j++) {
                near((double)received[j], x[j], 2e-6);
                sum += (double)received[j];
                if (j > position) assert_true(received[j] == 0);
            }
            near(sum, 1, 1e-5);
            close_model(&f);
        }
}

static void check_sharpest(const char *name, qkv_attention_kind which) {
    fixture f = open_model(name);
    qkv_sharpest found = qkv_sharpest_init(), none = qkv_sharpest_init();
    double best = -1;
    int64_t at[4] = { 0 };
    run_model(&f, QKV_RUN_CAPTURE);
    const int64_t n_heads = which == QKV_SELF ? f.info->n_heads : f.info->n_decoder_heads;
    for (int64_t layer = 0; layer < n_layers_of(&f, which); layer++)
        for (int64_t h = 0; h < n_heads; h++) {
            const qkv_capture c = weights_of(&f, which, layer, h);
            for (int64_t i = 0; i < c.n; i++)
                for (int64_t j = 0; j < (c.causal ? i : c.n_keys); j++) {
                    const double p = f.p[i * c.n_keys + j];
                    if ((which != QKV_CROSS && i == j) || p <= best) continue;
                    best = p;
                    memcpy(at, (int64_t[]){ layer, h, i, j }, sizeof at);
                }
        }
    const qkv_tokenizer *tokenizer = qkv_model_tokenizer(f.model, QKV_SOURCE);
    const qkv_token_list source = { tokenizer, &f.input }, target = { tokenizer, &f.target };
    qkv_heads *heads;
    assert_int_equal(qkv_heads_open_run(ctx, f.run, which, 0, which == QKV_SELF ? &source : &target,
                                        &source, &heads, NULL),
                     QKV_OK);
    assert_int_equal(qkv_heads_sharpest(heads, NULL, NULL, NULL, &found, NULL), QKV_OK);
    near((double)found.weight, best, 4e-6);
    if (best - (double)found.weight == 0)
        assert_true(found.layer == at[0] && found.head == at[1] && found.query == at[2]);
    const uint8_t first[N] = { 1 }, last[N] = { [M - 1] = 1 };
    assert_int_equal(qkv_heads_sharpest(heads, NULL, first, last, &none, NULL), QKV_OK);
    const int hides =
        which == QKV_DECODER || f.info->kind == QKV_MODEL_DECODER; /* not a weight of 0, but none */
    assert_true(hides ? none.key == -1 : none.key == M - 1);
    qkv_heads_free(heads);
    close_model(&f);
}

static void test_sharpest(void **state) {
    (void)state;
    for (int m = 0; m < COUNT(decoders); m++) check_sharpest(decoders[m], QKV_SELF);
    for (int m = 0; m < COUNT(pairs); m++)
        for (int which = QKV_SELF; which <= QKV_CROSS; which++)
            check_sharpest(pairs[m], (qkv_attention_kind)which);
}

/* ---- What comes next ------------------------------------------------------------------------- */

static double lse_of(const float *z, int64_t n) {
    double sum = 0;
    for (int64_t v = 0; v < n; v++) sum += exp((double)z[v] - (double)z[0]);
    return log(sum) + (double)z[0];
}

static void expect_next(const char *name) {
    fixture f = open_model(name);
    run_model(&f, 0);
    const int64_t n = f.info->kind == QKV_MODEL_PAIR ? M : N, n_words = f.info->target_vocab_size;
    float *const z = calloc((size_t)n_words, sizeof *z);
    double log_p[N];
    int32_t next[N];
    qkv_candidate best[4];
    qkv_error error;
    for (int64_t i = 0; i < n; i++) next[i] = i == 3 ? -1 : (int32_t)((5 * i + 7) % n_words);
    if (qkv_inspect_expected(ctx, f.model, f.run, 0, next, log_p, &error) != QKV_OK)
        fail_msg("%s: %s", name, error.message);
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(qkv_model_logits(ctx, f.model, f.run, QKV_HEAD_NEXT, 0, i, z, NULL),
                         QKV_OK);
        if (i == 3)
            assert_true(isnan(log_p[i]));
        else
            near(log_p[i], (double)z[next[i]] - lse_of(z, n_words), 1e-5);
        assert_int_equal(qkv_model_candidates(ctx, f.model, f.run, QKV_HEAD_NEXT, 0, i, 4, best,
                                              sizeof(qkv_candidate), NULL),
                         QKV_OK);
        for (int c = 0; c < 4; c++) {
            near((double)best[c].probability, exp((double)z[best[c].id] - lse_of(z, n_words)),
                 1e-6);
            if (c) assert_true(best[c].probability <= best[c - 1].probability);
        }
        for (int64_t v = 0; v < n_words; v++) assert_true(z[v] <= z[best[0].id]);
    }
    next[0] = (int32_t)n_words;
    assert_int_equal(qkv_inspect_expected(ctx, f.model, f.run, 0, next, log_p, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_model_candidates(ctx, f.model, f.run, QKV_HEAD_NEXT, 0, 0, n_words + 1,
                                          best, sizeof(qkv_candidate), &error),
                     QKV_ERR_ARGUMENT);
    free(z);
    close_model(&f);
}

static void test_expected(void **state) {
    (void)state;
    for (int m = 0; m < COUNT(decoders); m++) expect_next(decoders[m]);
    for (int m = 0; m < COUNT(pairs); m++) expect_next(pairs[m]);
}

/* ---- Alignment ------------------------------------------------------------------------------- */

/* Words of one to three pieces. */
static const int32_t row_words[M] = { 0, 1, 1, 2, 3, 3, 3, 4, 5 };
static const int32_t key_words[N] = { 0, 1, 2, 2, 3, 4, 4, 4, 5, 6, 7, 7, 8 };
static const uint8_t keys[N] = { 0, 1, 1, 1, 1, 0, 1, 0, 1, 1, 0, 0, 1 };
enum { ROW_WORDS = 6, KEY_WORDS = 9 };

static void check_alignment(const char *name, int64_t layer, const uint8_t *heads) {
    fixture f = open_model(name);
    double want[ROW_WORDS][KEY_WORDS] = { 0 }, table[ROW_WORDS * KEY_WORDS], counted = 0;
    static const double rows_of[ROW_WORDS] = { 1, 2, 1, 3, 1, 1 };
    qkv_aligned found[M];
    qkv_error error;
    run_model(&f, QKV_RUN_CAPTURE);
    for (int64_t h = 0; h < f.info->n_decoder_heads; h++) counted += !heads || heads[h];
    for (int64_t h = 0; h < f.info->n_decoder_heads; h++) {
        if (heads && !heads[h]) continue;
        weights_of(&f, QKV_CROSS, layer, h);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++)
                if (keys[j])
                    want[row_words[i]][key_words[j]] +=
                        f.p[i * N + j] / counted / rows_of[row_words[i]];
    }
    qkv_align_options options = qkv_align_options_init();
    options.layer = layer;
    options.heads = heads;
    options.row_words = row_words;
    options.key_words = key_words;
    options.keys = keys;
    if (qkv_inspect_align(f.run, 0, &options, found, sizeof *found, table, &error) != QKV_OK)
        fail_msg("%s: %s", name, error.message);
    for (int a = 0; a < ROW_WORDS; a++) {
        int best = 1; /* word 0 has no key that counts; 7, too */
        for (int b = 0; b < KEY_WORDS; b++) {
            near(table[a * KEY_WORDS + b], want[a][b], 1e-6);
            if (b != 7 && want[a][b] > want[a][best] + 1e-6) best = b;
        }
        near(found[a].weight, want[a][best], 2e-6);
        assert_true(found[a].key_word != 0 && found[a].key_word != 7);
        near(want[a][found[a].key_word], want[a][best], 2e-6);
    }
    close_model(&f);
}

static void test_alignment(void **state) {
    (void)state;
    static const uint8_t second[8] = { 0, 1, 0, 0, 0, 0, 0, 0 };
    for (int m = 0; m < COUNT(pairs); m++) {
        check_alignment(pairs[m], 0, NULL);
        check_alignment(pairs[m], 0, second);
    }
}

static void test_alignment_of_tokens(void **state) {
    (void)state;
    fixture f = open_model("marian_1");
    qkv_aligned found[M];
    qkv_error error;
    run_model(&f, QKV_RUN_CAPTURE);
    assert_int_equal(qkv_inspect_align(f.run, 0, NULL, found, sizeof *found, NULL, &error), QKV_OK);
    double mean[M][N] = { 0 };
    for (int64_t h = 0; h < f.info->n_decoder_heads; h++) {
        weights_of(&f, QKV_CROSS, 0, h);
        for (int i = 0; i < M * N; i++) mean[i / N][i % N] += f.p[i];
    }
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) assert_true(mean[i][j] <= mean[i][found[i].key_word] + 1e-5);
    qkv_align_options options = qkv_align_options_init();
    const uint8_t nothing[N] = { 0 };
    options.keys = nothing;
    assert_int_equal(qkv_inspect_align(f.run, 0, &options, found, sizeof *found, NULL, &error),
                     QKV_OK);
    for (int i = 0; i < M; i++) assert_true(found[i].key_word == -1);
    const struct {
        int64_t layer;
        const uint8_t *heads;
        const int32_t *row_words, *key_words;
        const char *says;
    } bad[] = {
        { 99, NULL, NULL, NULL, "layer = 99" },
        { -1, NULL, NULL, NULL, "layer = -1" },
        { 0, nothing, NULL, NULL, "heads marks none" },
        { 0, NULL, key_words + 1, NULL, "row_words[0] = 1" },
        { 0, NULL, NULL, (const int32_t[N]){ 0, 2 }, "key_words[1] = 2" },
        { 0, NULL, (const int32_t[N]){ 0, 1, 0 }, NULL, "row_words[2] = 0" },
    };
    for (int b = 0; b < COUNT(bad); b++) {
        options = qkv_align_options_init();
        options.layer = bad[b].layer;
        options.heads = bad[b].heads;
        options.row_words = bad[b].row_words;
        options.key_words = bad[b].key_words;
        assert_int_equal(qkv_inspect_align(f.run, 0, &options, found, sizeof *found, NULL, &error),
                         QKV_ERR_ARGUMENT);
        if (!strstr(error.message, bad[b].says)) fail_msg("%s", error.message);
    }
    close_model(&f);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void check_steps(const char *name, int64_t query) {
    fixture f = open_model(name);
    qkv_error error;
    run_model(&f, QKV_RUN_CAPTURE | QKV_RUN_HIDDEN);
    for (int64_t layer = 0; layer < f.info->n_layers; layer++) {
        const int64_t head = layer % f.info->n_heads;
        qkv_steps *s = NULL;
        if (qkv_inspect_steps(f.model, f.run, 0, &f.input, layer, head, query, &s, &error) !=
            QKV_OK)
            fail_msg("%s: %s", name, error.message);
        double largest = 1;
        for (int64_t c = 0; c < s->hidden; c++) largest = fmax(largest, fabs(s->y[c]));
        assert_true(s->embedded_error < 1e-5 && s->q_error < 1e-5 && s->k_error < 1e-5);
        assert_true(s->weights_error < 1e-5 && s->y_error < 1e-5 * largest);
        weights_of(&f, QKV_SELF, layer, head);
        for (int64_t j = 0; j < N; j++) {
            near(s->weights[j], f.p[query * N + j], 1e-5);
            if (f.info->kind == QKV_MODEL_DECODER && j > query)
                assert_true(s->weights[j] == 0 && s->scores[j] == -INFINITY);
        }
        assert_true(s->causal == (f.info->kind == QKV_MODEL_DECODER) && s->pre_norm == s->causal);
        qkv_steps_free(s);
    }
    close_model(&f);
}

static void test_steps(void **state) {
    (void)state;
    for (int64_t query = 0; query < N; query += 6) {
        for (int m = 0; m < COUNT(decoders); m++) check_steps(decoders[m], query);
        for (int m = 0; m < COUNT(pairs); m++) check_steps(pairs[m], query);
    }
}

/* What a head of layer 0 is given, against what the run captured. */
static void test_projections(void **state) {
    (void)state;
    for (int m = 0; m < COUNT(decoders) + COUNT(pairs); m++) {
        fixture f = open_model(m < COUNT(decoders) ? decoders[m] : pairs[m - COUNT(decoders)]);
        qkv_capture c = qkv_capture_init();
        run_model(&f, QKV_RUN_CAPTURE);
        assert_int_equal(qkv_run_capture(f.run, QKV_SELF, 0, 0, &c, NULL), QKV_OK);
        const int64_t n = N * c.head_dim;
        float *const q = calloc((size_t)(3 * n), sizeof *q), *k = q + n, *v = k + n;
        assert_int_equal(
            qkv_inspect_projections(f.model, &f.input, c.n_heads - 1, 1, q, k, v, NULL), QKV_OK);
        for (int64_t e = 0; e < n; e++) {
            near((double)q[e], (double)c.q[(c.n_heads - 1) * n + e], 1e-5);
            near((double)k[e], (double)c.k[(c.n_heads - 1) * n + e], 1e-5);
        }
        free(q);
        close_model(&f);
    }
}

/* ---- Words ----------------------------------------------------------------------------------- */

static void test_words(void **state) {
    (void)state;
    fixture f = open_model("gpt2_1");
    const qkv_tokenizer *t = qkv_model_tokenizer(f.model, QKV_SOURCE);
    static const char text[] = "the doored dogs. w0";
    static const int32_t want[] = { 0, 1, 2, 2, 3, 3, 4, 5, 6 };
    qkv_encoding *input = NULL;
    int32_t words[32];
    assert_int_equal(qkv_tokenizer_encode(t, text, sizeof text - 1, NULL, 0, &input, NULL), QKV_OK);
    assert_int_equal(input->n, COUNT(want)); /* [CLS] the door ##ed dog ##s . w0 [SEP] */
    assert_int_equal(qkv_inspect_words(t, input, words), 7);
    for (int i = 0; i < COUNT(want); i++) assert_int_equal(words[i], want[i]);
    qkv_encoding_free(input);
    close_model(&f);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void test_refusals(void **state) {
    (void)state;
    fixture f = open_model("gpt2_1"), g = open_model("bart_1");
    static head_values stats[MOST_HEADS];
    qkv_error error;
    int32_t next[N] = { 0 };
    double log_p[N];
    run_model(&f, QKV_RUN_CAPTURE);
    const qkv_token_list list = { qkv_model_tokenizer(f.model, QKV_SOURCE), &f.input };
    const qkv_token_list shorter = { qkv_model_tokenizer(f.model, QKV_SOURCE), &f.target };
    f.target.n = M;
    for (int which = QKV_DECODER; which <= QKV_CROSS; which++) {
        const qkv_attention_kind of = (qkv_attention_kind)which;
        assert_int_equal(head_values_of_run(ctx, f.run, of, &list, &list, stats, &error),
                         QKV_ERR_ARGUMENT);
    }
    assert_int_equal(
        qkv_inspect_align(f.run, 0, NULL, (qkv_aligned[M]){ 0 }, sizeof(qkv_aligned), NULL, &error),
        QKV_ERR_ARGUMENT);
    assert_int_equal(head_values_of_run(ctx, f.run, QKV_SELF, &shorter, NULL, stats, &error),
                     QKV_ERR_SHAPE);
    assert_int_equal(head_values_of_run(ctx, f.run, QKV_SELF, NULL, NULL, stats, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_inspect_expected(ctx, g.model, f.run, 0, next, log_p, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_inspect_expected(ctx, f.model, f.run, 1, next, log_p, &error),
                     QKV_ERR_ARGUMENT);
    g.run = NULL;
    const qkv_encoding *inputs = &f.input;
    assert_int_equal(qkv_model_run(ctx, g.model, 1, &inputs, 0, NULL, &g.run, NULL), QKV_OK);
    assert_int_equal(qkv_inspect_expected(ctx, g.model, g.run, 0, next, log_p, &error),
                     QKV_ERR_ARGUMENT); /* of the encoder alone */
    close_model(&f);
    close_model(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signatures), cmocka_unit_test(test_rollout),
        cmocka_unit_test(test_sharpest),   cmocka_unit_test(test_expected),
        cmocka_unit_test(test_alignment),  cmocka_unit_test(test_alignment_of_tokens),
        cmocka_unit_test(test_steps),      cmocka_unit_test(test_projections),
        cmocka_unit_test(test_words),      cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
