/*
 * What if: attention that is changed in every layer. Weights are the softmax, in double, of the
 * captured q and k with the change; tokens that it hides change no bit of the results, and neither
 * do edges that say as much; and a run without a change has the bits of the model.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/model.h"

enum { N = 9, SHORT = 5, MAX_LEN = 23 };

typedef struct fixture {
    qkv_ctx *ctx;
    qkv_model *model;
    const qkv_model_info *info;
    qkv_encoding encodings[2];
    const qkv_encoding *inputs[2];
    int32_t ids[2][MAX_LEN];
    uint8_t types[2][MAX_LEN];
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    for (int b = 0; b < 2; b++) {
        for (int i = 0; i < MAX_LEN; i++) f->ids[b][i] = 5 + (7 * b + 3 * i) % 40;
        f->encodings[b] =
            (qkv_encoding){ .n = b ? SHORT : N, .ids = f->ids[b], .types = f->types[b] };
        f->inputs[b] = &f->encodings[b];
    }
    *state = f;
    if (qkv_ctx_create(NULL, &f->ctx, NULL) != QKV_OK) return -1;
    if (qkv_model_open(QKV_TEST_DATA "/golden/bert_old", NULL, &f->model, NULL) != QKV_OK)
        return -1;
    f->info = qkv_model_get_info(f->model);
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    qkv_model_free(f->model);
    qkv_ctx_free(f->ctx);
    free(f);
    return 0;
}

static qkv_run *ask(fixture *f, int64_t n_batch, const qkv_run_options *what_if) {
    qkv_run *run = NULL;
    qkv_error error;
    if (qkv_model_run(f->ctx, f->model, n_batch, f->inputs, QKV_RUN_CAPTURE | QKV_RUN_HIDDEN,
                      what_if, &run, &error) != QKV_OK)
        fail_msg("%s", error.message);
    return run;
}

/* p[j] of query i by the textbook; 0 for all where it sees no key. */
static void textbook(const qkv_capture *c, const qkv_run_options *what_if, const uint8_t *dropped,
                     int64_t head, int64_t i, double *p) {
    const double temperature = what_if->temperature == 0 ? 1 : what_if->temperature;
    const double scale = (what_if->no_scale ? 1 : 1 / sqrt((double)c->head_dim)) / temperature;
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < c->n; j++) {
        p[j] = -INFINITY;
        if ((what_if->causal && j > i) || (dropped && dropped[j])) continue;
        p[j] = 0;
        for (int64_t d = 0; d < c->head_dim; d++)
            p[j] += (double)c->q[(head * c->n + i) * c->head_dim + d] *
                    (double)c->k[(head * c->n + j) * c->head_dim + d];
        p[j] *= scale;
        largest = fmax(largest, p[j]);
    }
    for (int64_t j = 0; j < c->n; j++) sum += p[j] = p[j] == -INFINITY ? 0 : exp(p[j] - largest);
    for (int64_t j = 0; j < c->n; j++) p[j] = sum > 0 ? p[j] / sum : 0;
}

static void check_weights(fixture *f, const qkv_run *run, int64_t b,
                          const qkv_run_options *what_if) {
    const uint8_t *const dropped = what_if->dropped ? what_if->dropped[b] : NULL;
    for (int64_t layer = 0; layer < f->info->n_layers; layer++) {
        qkv_capture c = qkv_capture_init();
        float weights[N * N];
        double p[N];
        assert_int_equal(qkv_run_capture(run, QKV_SELF, b, layer, &c, NULL), QKV_OK);
        assert_int_equal(c.causal, what_if->causal);
        for (int64_t j = 0; j < c.n; j++)
            assert_int_equal(c.seen ? !c.seen[j] : 0, dropped ? dropped[j] : 0);
        for (int64_t h = 0; h < c.n_heads; h++) {
            assert_int_equal(qkv_run_weights(run, QKV_SELF, b, layer, h, weights, NULL), QKV_OK);
            for (int64_t i = 0; i < c.n; i++) {
                textbook(&c, what_if, dropped, h, i, p);
                for (int64_t j = 0; j < c.n; j++)
                    assert_true(fabs((double)weights[i * c.n + j] - p[j]) <= 1e-5);
            }
        }
    }
}

static void test_weights_are_those_of_the_question(void **state) {
    fixture *f = *state;
    const uint8_t first[N] = { 1, 0, 0, 1 }, second[SHORT] = { 0, 0, 1 };
    const uint8_t *const both[] = { first, second }, *const one[] = { NULL, second };
    const qkv_run_options questions[] = {
        { sizeof(qkv_run_options), .causal = 0, .no_scale = 0, .temperature = 0, .dropped = NULL },
        { sizeof(qkv_run_options), .causal = 1, .no_scale = 0, .temperature = 0, .dropped = NULL },
        { sizeof(qkv_run_options), .causal = 0, .no_scale = 1, .temperature = 0, .dropped = NULL },
        { sizeof(qkv_run_options), .causal = 0, .no_scale = 0, .temperature = 2.5,
          .dropped = NULL },
        { sizeof(qkv_run_options), .causal = 0, .no_scale = 0, .temperature = 0, .dropped = both },
        { sizeof(qkv_run_options), .causal = 1, .no_scale = 1, .temperature = 0.5, .dropped = one },
        { sizeof(qkv_run_options), .causal = 1, .no_scale = 0, .temperature = 3, .dropped = both }
    };
    for (size_t n = 0; n < sizeof questions / sizeof *questions; n++) {
        qkv_run *run = ask(f, 2, &questions[n]);
        check_weights(f, run, 0, &questions[n]);
        check_weights(f, run, 1, &questions[n]);
        qkv_run_free(run);
    }
}

/* ---- Edges ----------------------------------------------------------------------------------- */

/* Layer, head, query, key; -1: all. */
static const int64_t edges[][4] = { { -1, -1, 2, 5 }, { 0, 1, 7, 0 }, { 0, 1, 7, 1 },
                                    { 1, -1, 4, 4 },  { 1, 0, 2, 5 }, { 1, 0, 0, 8 } };
enum { N_EDGES = sizeof edges / sizeof *edges };

static int is_cut(int64_t n_edges, int64_t layer, int64_t head, int64_t i, int64_t j) {
    for (int64_t e = 0; e < n_edges; e++)
        if ((edges[e][0] < 0 || edges[e][0] == layer) && (edges[e][1] < 0 || edges[e][1] == head) &&
            edges[e][2] == i && edges[e][3] == j)
            return 1;
    return 0;
}

/* The weights of a layer are the softmax over what is left of its edges, in double. */
static void check_edges(const qkv_run *run, int64_t n_edges, int64_t layer,
                        const uint8_t *dropped) {
    const qkv_run_options nothing = qkv_run_options_init();
    qkv_capture c = qkv_capture_init();
    float weights[N * N];
    double p[N];
    assert_int_equal(qkv_run_capture(run, QKV_SELF, 0, layer, &c, NULL), QKV_OK);
    for (int64_t h = 0; h < c.n_heads; h++) {
        assert_int_equal(qkv_run_weights(run, QKV_SELF, 0, layer, h, weights, NULL), QKV_OK);
        for (int64_t i = 0; i < N; i++) {
            uint8_t hidden[N];
            for (int64_t j = 0; j < N; j++) {
                hidden[j] = (uint8_t)(is_cut(n_edges, layer, h, i, j) || (dropped && dropped[j]));
                if (c.uncut) assert_int_equal(!c.uncut[h * c.uncut_stride + i * N + j], hidden[j]);
            }
            textbook(&c, &nothing, hidden, h, i, p);
            for (int64_t j = 0; j < N; j++)
                assert_true(fabs((double)weights[i * N + j] - p[j]) <= 1e-5);
        }
    }
}

static void test_edges(void **state) {
    fixture *f = *state;
    const uint8_t marks[N] = { 0, 0, 0, 0, 0, 0, 1 };
    const uint8_t *const dropped[] = { marks };
    for (int64_t n = 0; n <= N_EDGES; n++)
        for (int with = 0; with < 2; with++) {
            qkv_run_options what_if = qkv_run_options_init();
            what_if.cuts = *edges;
            what_if.n_cuts = n;
            what_if.dropped = with ? dropped : NULL;
            qkv_run *run = ask(f, 1, &what_if);
            for (int64_t layer = 0; layer < f->info->n_layers; layer++)
                check_edges(run, n, layer, with ? marks : NULL);
            qkv_run_free(run);
        }
}

static int same_hidden(const fixture *f, const qkv_run *a, const qkv_run *b, int64_t i) {
    const float *x = qkv_run_hidden(a, QKV_SELF, 0, f->info->n_layers),
                *y = qkv_run_hidden(b, QKV_SELF, 0, f->info->n_layers);
    const size_t hidden = (size_t)f->info->hidden;
    return memcmp(x + (size_t)i * hidden, y + (size_t)i * hidden, hidden * sizeof *x) == 0;
}

/* Zeros, and a temperature of 1, are the model. */
static void test_no_question_is_the_model(void **state) {
    fixture *f = *state;
    qkv_run_options nothing = qkv_run_options_init();
    const uint8_t none[N] = { 0 };
    const uint8_t *const dropped[] = { none };
    qkv_run *plain = NULL;
    assert_int_equal(
        qkv_model_run(f->ctx, f->model, 1, f->inputs, QKV_RUN_CAPTURE, NULL, &plain, NULL), QKV_OK);
    for (int turn = 0; turn < 4; turn++) {
        nothing.temperature = turn == 1;
        nothing.dropped = turn == 2 ? dropped : NULL;
        qkv_run *run = ask(f, 1, turn == 3 ? NULL : &nothing);
        for (int64_t i = 0; i < N; i++) assert_true(same_hidden(f, plain, run, i));
        qkv_run_free(run);
    }
    qkv_run_free(plain);
}

/* What no query sees can be another token: the bits of no other token change, in any layer. */
static void test_a_dropped_token_has_no_influence(void **state) {
    fixture *f = *state;
    uint8_t marks[N] = { 0 };
    marks[3] = marks[8] = 1;
    const uint8_t *const dropped[] = { marks };
    const qkv_run_options what_if = { sizeof what_if, .causal = 0, .no_scale = 0, .temperature = 0,
                                      .dropped = dropped };
    qkv_run *before = ask(f, 1, &what_if), *plain = ask(f, 1, NULL);
    f->ids[0][3] = 50;
    f->ids[0][8] = 51;
    qkv_run *after = ask(f, 1, &what_if), *other = ask(f, 1, NULL);
    for (int64_t i = 0; i < N; i++) {
        assert_int_equal(same_hidden(f, before, after, i), !marks[i]);
        assert_false(same_hidden(f, plain, other, i)); /* as it does otherwise */
    }
    qkv_run_free(before);
    qkv_run_free(plain);
    qkv_run_free(after);
    qkv_run_free(other);
}

/* Edges of all queries to a key are that key, dropped: the same bits, however they are told. */
static void test_all_edges_to_a_key(void **state) {
    fixture *f = *state;
    int64_t cuts[4 * 3 * N][4];
    uint8_t marks[N] = { 0 };
    const uint8_t *const dropped[] = { marks };
    qkv_run_options drops = qkv_run_options_init(), what_if = drops;
    marks[3] = 1;
    drops.dropped = dropped;
    qkv_run *const expected = ask(f, 1, &drops);
    what_if.cuts = *cuts;
    for (int way = 0; way < 3; way++) { /* everywhere, in each layer, in each head */
        const int64_t n_layers = way > 0 ? f->info->n_layers : 1;
        const int64_t n_heads = way > 1 ? f->info->n_heads : 1;
        what_if.n_cuts = 0;
        for (int64_t l = 0; l < n_layers; l++)
            for (int64_t h = 0; h < n_heads; h++)
                for (int64_t i = 0; i < N; i++) {
                    int64_t *const edge = cuts[what_if.n_cuts++];
                    edge[0] = way > 0 ? l : -1, edge[1] = way > 1 ? h : -1;
                    edge[2] = i, edge[3] = 3;
                }
        qkv_run *const run = ask(f, 1, &what_if);
        for (int64_t i = 0; i < N; i++) assert_true(same_hidden(f, expected, run, i));
        qkv_run_free(run);
    }
    qkv_run_free(expected);
}

/* Causal: a token has the bits of a text that ends with it. */
static void test_causal_has_no_future(void **state) {
    fixture *f = *state;
    const qkv_run_options what_if = { sizeof what_if, .causal = 1, .no_scale = 0, .temperature = 0,
                                      .dropped = NULL };
    qkv_run *whole = ask(f, 1, &what_if);
    f->encodings[0].n = 4;
    qkv_run *cut = ask(f, 1, &what_if);
    for (int64_t i = 0; i < 4; i++) assert_true(same_hidden(f, whole, cut, i));
    qkv_run_free(whole);
    qkv_run_free(cut);
}

/* Everything dropped: attention adds nothing, and nothing is a number that it is not. */
static void test_no_key_is_left(void **state) {
    fixture *f = *state;
    uint8_t all[N];
    memset(all, 1, sizeof all);
    const uint8_t *const dropped[] = { all };
    const qkv_run_options what_if = { sizeof what_if, .causal = 0, .no_scale = 0, .temperature = 0,
                                      .dropped = dropped };
    qkv_run *run = ask(f, 1, &what_if);
    qkv_capture c = qkv_capture_init();
    check_weights(f, run, 0, &what_if);
    assert_int_equal(qkv_run_capture(run, QKV_SELF, 0, 0, &c, NULL), QKV_OK);
    for (int64_t i = 0; i < c.n_heads * c.n; i++) assert_true(c.lse[i] == -INFINITY);
    const float *hidden = qkv_run_hidden(run, QKV_SELF, 0, f->info->n_layers);
    for (int64_t i = 0; i < N * f->info->hidden; i++) assert_true(isfinite(hidden[i]));
    qkv_run_free(run);
}

static void expect(fixture *f, const qkv_run_options *what_if, qkv_status wanted,
                   const char *text) {
    qkv_run *run = (qkv_run *)f;
    qkv_error error = { 0 };
    const qkv_status got = qkv_model_run(f->ctx, f->model, 1, f->inputs, 0, what_if, &run, &error);
    if (got != wanted || strncmp(error.message, text, strlen(text)) != 0 || run)
        fail_msg("%s '%s', wanted '%s'", qkv_status_name(got), error.message, text);
}

/* An older struct ends before dropped: no token is, whatever lies behind it. */
static void test_older_options(void **state) {
    fixture *f = *state;
    qkv_run_options what_if = qkv_run_options_init();
    what_if.causal = 1;
    what_if.temperature = 2.5;
    qkv_run *const expected = ask(f, 2, &what_if);
    what_if.struct_size = offsetof(qkv_run_options, dropped);
    memset(&what_if.dropped, 0xa5, sizeof what_if - what_if.struct_size);
    qkv_run *const run = ask(f, 2, &what_if);
    for (int64_t i = 0; i < N; i++) assert_true(same_hidden(f, run, expected, i));
    qkv_run_free(run);
    qkv_run_free(expected);
}

static void test_refusals(void **state) {
    fixture *f = *state;
    qkv_run_options what_if = qkv_run_options_init();
    what_if.temperature = -1;
    expect(f, &what_if, QKV_ERR_ARGUMENT, "temperature = -1 is not above 0 and finite");
    what_if.temperature = NAN;
    expect(f, &what_if, QKV_ERR_ARGUMENT, "temperature = nan is not above 0 and finite");
    what_if.temperature = INFINITY;
    expect(f, &what_if, QKV_ERR_ARGUMENT, "temperature = inf is not above 0 and finite");
    what_if.temperature = 1e-300;
    expect(f, &what_if, QKV_ERR_ARGUMENT, "temperature = 1e-300 makes the scale ");
    what_if.temperature = 1e300;
    expect(f, &what_if, QKV_ERR_ARGUMENT, "temperature = 1e+300 makes the scale ");
    what_if.temperature = 0;
    const int64_t edge[4] = { 0, 2, 0, 0 };
    what_if.n_cuts = 1;
    expect(f, &what_if, QKV_ERR_ARGUMENT, "cuts is NULL, or n_cuts = 1 below 0");
    what_if.cuts = edge;
    expect(f, &what_if, QKV_ERR_ARGUMENT, "cuts[0]: head 2 is not between -1 and 1");
    what_if.cut_which = QKV_CROSS;
    expect(f, &what_if, QKV_ERR_ARGUMENT, "cut_which = 2 is no attention of this run");
    what_if.n_cuts = -1;
    expect(f, &what_if, QKV_ERR_ARGUMENT, "cuts is NULL, or n_cuts = -1 below 0");
    what_if.n_cuts = 0;
    what_if.struct_size = 3;
    expect(f, &what_if, QKV_ERR_ARGUMENT, "qkv_run_options.struct_size = 3 is less than ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_weights_are_those_of_the_question, setup, teardown),
        cmocka_unit_test_setup_teardown(test_edges, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_edges_to_a_key, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_question_is_the_model, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_dropped_token_has_no_influence, setup, teardown),
        cmocka_unit_test_setup_teardown(test_causal_has_no_future, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_key_is_left, setup, teardown),
        cmocka_unit_test_setup_teardown(test_older_options, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
