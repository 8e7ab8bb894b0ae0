/**
 * Signatures of heads on weights made by hand (hand_run.h), against sums over those weights in
 * double.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "inspect/hand_run.h"
#include "inspect/head_values.h"

static head_values stats[N_LAYERS * N_HEADS];

/* Weights of head 0 of layer 0; the others stay uniform. 0 becomes e^-10000. */
static const head_values *stats_of(int64_t n, const int32_t *tokens, const float *weights) {
    const qkv_encoding input = input_of(n, tokens);
    qkv_error error = { 0 };
    begin_run(n);
    for (int64_t i = 0; i < n * n; i++) run.q[0][i] = weights[i] == 0 ? -1e4f : logf(weights[i]);
    if (head_values_of_text(ctx, model.tokenizer, &run, &input, stats, &error) != QKV_OK)
        fail_msg("%s", error.message);
    return stats;
}

/* ---- By hand --------------------------------------------------------------------------------- */

static void test_numbers(void **state) {
    (void)state;
    const int32_t tokens[] = { CLS, DOOR, DOT, SEP };
    const float weights[] = {
        0,    0,     0,     1, /* not averaged */
        0.5f, 0.25f, 0.25f, 0, /* door */
        0,    0,     0,     1, /* the full stop */
        1,    0,     0,     0, /* not averaged */
    };
    const head_values *s = stats_of(4, tokens, weights);
    near(s->entropy, 0.5 * (0.5 * log(2) + 0.5 * log(4)));
    near(s->entropy_normalized, s->entropy / log(4));
    near(s->confidence, (0.5 + 1) / 2);
    near(s->effective_keys, (1 / 0.375 + 1) / 2);
    near(s->mean_distance, (0.5 * 1 + 0.25 * 1 + 1) / 2);
    near(s->mass_cls, 0.25);
    near(s->mass_sep, 0.5);
    near(s->mass_punctuation, 0.125);
    near(s->mass_self, 0.125);
    near(s->mass_previous, 0.25);
    near(s->mass_next, (0.25 + 1) / 2);
    near(s->mass_window, 1);
    near(s->received_largest, 2.0 / 4); /* [SEP] */
    near(s->received_early, 2.0 / 4);
    assert_int_equal(s->received_key, 3);
    near(s->received_gini, 2 * (0.25 + 2 * 0.25 + 3 * 1.5 + 4 * 2) / (4 * 4) - 5.0 / 4);
    assert_int_equal(s->n_queries, 2);
    assert_string_equal(s->label, ""); /* too short for "next" */
    assert_true(isnan(s->mass_same_token) && isnan(s->mass_duplicate) && isnan(s->mass_induction));
}

static void test_only_special(void **state) {
    (void)state;
    const int32_t tokens[] = { CLS, SEP }, one[] = { CLS };
    const float weights[] = { 1, 0, 1, 0 }, single[] = { 1 };
    const head_values *s = stats_of(2, tokens, weights); /* all rows count */
    near(s->mass_cls, 1);
    assert_int_equal(s->n_queries, 2);
    near(s->received_gini, 0.5);
    s = stats_of(1, one, single);
    assert_true(s->entropy == 0 && s->entropy_normalized == 0);
    near(s->received_largest, 1);
}

static void test_matches(void **state) {
    (void)state;
    const int32_t tokens[] = { CLS, DOOR, THE, DOOR, DOOR, SEP };
    float weights[36];
    for (int i = 0; i < 36; i++) weights[i] = (float)(1 + i % 6) / 21;
    const head_values *s = stats_of(6, tokens, weights);
    const double p[] = { 1 / 21.0, 2 / 21.0, 3 / 21.0, 4 / 21.0, 5 / 21.0, 6 / 21.0 };
    /* Other places of "door": 3 and 4; 1 and 4; 1 and 3. Earlier: of the second and third. */
    near(s->mass_same_token, (p[3] + p[4] + p[1] + p[4] + p[1] + p[3]) / 3);
    near(s->mass_duplicate, (p[1] + p[1] + p[3]) / 2);
    near(s->mass_induction, (p[2] + p[2] + p[4]) / 2); /* after place 1; after places 1 and 3 */
}

static void test_nan(void **state) {
    (void)state;
    const int32_t tokens[] = { CLS, DOOR, THE, SEP };
    const qkv_encoding input = input_of(4, tokens);
    begin_run(4);
    *log_weight(0, 0, 1, 2) = NAN; /* a row that counts */
    *log_weight(0, 1, 0, 2) = NAN; /* one that does not */
    run.lse[1] = run.lse[4] = NAN; /* as a run has it; layers share lse here */
    assert_int_equal(head_values_of_text(ctx, model.tokenizer, &run, &input, stats, NULL), QKV_OK);
    assert_true(isnan(stats[0].entropy) && isnan(stats[0].mass_next));
    assert_string_equal(stats[0].label, "");
    near(stats[1].entropy, log(4));
    near(stats[1].received_largest, 0.25); /* of the three rows that are numbers */
    near(stats[1].received_gini, 0);
    assert_string_equal(stats[1].label, "broad");
    near(stats[2].received_largest, 0.25);
    assert_int_equal(stats[2].received_key, 0);
}

/* ---- Against the textbook -------------------------------------------------------------------- */

static uint64_t seed = 20261122;

static double uniform(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static int is_visible(int64_t i, int64_t j) {
    return (!run.causal || j <= i) && (!run.seen || run.seen[j]);
}

/* Weights of a head in double, [n][n]; rows that see nothing are 0. */
static void textbook_weights(int64_t layer, int64_t head, int64_t n, double *p) {
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += p[i * n + j] =
                is_visible(i, j) ? exp((double)*log_weight(layer, head, i, j)) : 0;
        for (int64_t j = 0; j < n && sum > 0; j++) p[i * n + j] /= sum;
    }
}

static int sees_nothing(int64_t n, int64_t i) {
    for (int64_t j = 0; j < n; j++)
        if (is_visible(i, j)) return 0;
    return 1;
}

struct textbook {
    double rows, entropy, log_keys, confidence, effective, distance, cls, sep, dot, self, previous,
        next;
    double window, same, duplicate, induction, n_same, n_duplicate, n_induction;
};

static void add_row(struct textbook *t, int64_t n, const double *p, int64_t i,
                    const int32_t *tokens) {
    double squares = 0, largest = 0;
    int same = 0, duplicate = 0, induction = 0, n_seen = 0;
    for (int64_t j = 0; j < n; j++) {
        n_seen += is_visible(i, j);
        t->entropy -= p[j] > 0 ? p[j] * log(p[j]) : 0;
        squares += p[j] * p[j];
        largest = fmax(largest, p[j]);
        t->distance += p[j] * fabs((double)(i - j));
        t->cls += tokens[j] == CLS ? p[j] : 0;
        t->sep += tokens[j] == SEP ? p[j] : 0;
        t->dot += tokens[j] == DOT ? p[j] : 0;
        t->self += j == i ? p[j] : 0;
        t->previous += j == i - 1 ? p[j] : 0;
        t->next += j == i + 1 ? p[j] : 0;
        t->window += llabs(i - j) <= 8 ? p[j] : 0;
        const int is_same = j != i && tokens[j] == tokens[i];
        const int is_after = j >= 1 && j <= i && tokens[j - 1] == tokens[i];
        t->same += is_same ? p[j] : 0;
        t->duplicate += is_same && j < i ? p[j] : 0;
        t->induction += is_after ? p[j] : 0;
        same |= is_same && is_visible(i, j);
        duplicate |= is_same && j < i && is_visible(i, j);
        induction |= is_after && is_visible(i, j);
    }
    t->rows++;
    t->log_keys += log((double)n_seen);
    t->confidence += largest;
    t->effective += 1 / squares;
    t->n_same += same;
    t->n_duplicate += duplicate;
    t->n_induction += induction;
}

static double textbook_gini(int64_t n, const double *received) {
    double pairs = 0, sum = 0;
    for (int64_t a = 0; a < n; a++) {
        sum += received[a];
        for (int64_t b = 0; b < n; b++) pairs += fabs(received[a] - received[b]);
    }
    return pairs / (2 * (double)n * sum);
}

static void compare_received(const head_values *s, int64_t n, const double *p) {
    double received[MAX_N] = { 0 }, seen[MAX_N], share[MAX_N] = { 0 }, largest = 0, early = 0;
    int64_t n_seen = 0, rows_of[MAX_N], most = 0;
    for (int64_t j = 0; j < n; j++) {
        int64_t rows = 0;
        for (int64_t i = 0; i < n; i++) {
            received[j] += p[i * n + j];
            rows += is_visible(i, j);
        }
        rows_of[j] = rows;
        if (rows > most) most = rows;
        if (rows == 0) continue;
        seen[n_seen++] = received[j];
        share[j] = received[j] / (double)rows;
        largest = fmax(largest, share[j]);
    }
    for (int64_t j = 0; j < n && j < 64; j++) /* keys that at least half as many see as any */
        if (2 * rows_of[j] >= most) early = fmax(early, share[j]);
    near(s->received_largest, largest);
    near(s->received_early, early);
    near(s->received_key < 0 ? 0 : share[s->received_key], largest);
    near(s->received_gini, n_seen ? textbook_gini(n_seen, seen) : 0);
}

static void near_mean(double value, double sum, double n) {
    if (n == 0)
        assert_true(isnan(value));
    else
        near(value, sum / n);
}

static void compare(const head_values *s, int64_t n, const int32_t *tokens, const double *p) {
    struct textbook t = { 0 };
    for (int64_t i = 0; i < n; i++)
        if (tokens[i] != CLS && tokens[i] != SEP && tokens[i] != PAD && !sees_nothing(n, i))
            add_row(&t, n, p + i * n, i, tokens);
    if (t.rows == 0) return;
    assert_true((double)s->n_queries == t.rows);
    near(s->entropy / 4, t.entropy / t.rows / 4); /* ln 70 is about 4: relative, all in all */
    near(s->entropy_normalized, t.log_keys > 0 ? t.entropy / t.log_keys : 0);
    near(s->confidence, t.confidence / t.rows);
    near(s->effective_keys / (double)n, t.effective / t.rows / (double)n);
    near(s->mean_distance / (double)n, t.distance / t.rows / (double)n);
    near(s->mass_cls, t.cls / t.rows);
    near(s->mass_sep, t.sep / t.rows);
    near(s->mass_punctuation, t.dot / t.rows);
    near(s->mass_self, t.self / t.rows);
    near(s->mass_previous, t.previous / t.rows);
    near(s->mass_next, t.next / t.rows);
    near(s->mass_window, t.window / t.rows);
    near_mean(s->mass_same_token, t.same, t.n_same);
    near_mean(s->mass_duplicate, t.duplicate, t.n_duplicate);
    near_mean(s->mass_induction, t.induction, t.n_induction);
    compare_received(s, n, p);
}

/* Scores of every sharpness; lse is that of the scores, which have an offset. */
static void draw_run(int64_t n, int32_t *tokens) {
    static const int32_t choice[] = { DOOR, THE, WATCH, DOT, IT, MASK, UNK, CLS, SEP, PAD };
    for (int64_t i = 0; i < n; i++)
        tokens[i] = i % 7 == 3 ? 100 + (int32_t)i : choice[(int)(uniform() * 10)];
    for (int64_t head = 0; head < N_HEADS; head++)
        for (int64_t i = 0; i < n; i++) {
            const double sharp = 8 * uniform() * uniform(), offset = 20 * uniform() - 10;
            double sum = 0;
            for (int64_t j = 0; j < n; j++) {
                const float score = (float)(sharp * (2 * uniform() - 1) + offset);
                for (int64_t layer = 0; layer < N_LAYERS; layer++)
                    *log_weight(layer, head, i, j) = score;
                sum += is_visible(i, j) ? exp((double)score) : 0;
            }
            run.lse[head * n + i] = (float)log(sum);
        }
}

/* All kinds of what queries may see. */
static void compare_run(int64_t n, int causal, int hides) {
    static double p[MAX_N * MAX_N];
    int32_t tokens[MAX_N];
    uint8_t seen[MAX_N];
    begin_run(n);
    for (int64_t j = 0; j < n; j++) seen[j] = uniform() < 0.7;
    run.causal = causal;
    run.seen = hides ? seen : NULL;
    draw_run(n, tokens);
    const qkv_encoding input = input_of(n, tokens);
    assert_int_equal(head_values_of_text(ctx, model.tokenizer, &run, &input, stats, NULL), QKV_OK);
    for (int h = 0; h < N_LAYERS * N_HEADS; h++) {
        textbook_weights(h / N_HEADS, h % N_HEADS, n, p);
        compare(&stats[h], n, tokens, p);
    }
}

static void test_textbook(void **state) {
    (void)state;
    static const int64_t sizes[] = { 2, 3, 11, 16, 17, 31, 32, 33, 63, 64, 65, MAX_N };
    print_message("seed %llu\n", (unsigned long long)seed);
    for (size_t t = 0; t < sizeof sizes / sizeof *sizes; t++)
        for (int rule = 0; rule < 4; rule++) compare_run(sizes[t], rule & 1, rule >> 1);
}

/* The same bits for any threads and instruction set. */
static void test_same_bits(void **state) {
    (void)state;
    int32_t tokens[MAX_N];
    head_values other[N_LAYERS * N_HEADS];
    begin_run(MAX_N);
    draw_run(MAX_N, tokens);
    const qkv_encoding input = input_of(MAX_N, tokens);
    assert_int_equal(head_values_of_text(ctx, model.tokenizer, &run, &input, stats, NULL), QKV_OK);
    for (int i = 0; qkv_isa_name(i); i++)
        for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
            qkv_ctx_options options = qkv_ctx_options_init();
            qkv_ctx *another = NULL;
            options.isa = qkv_isa_name(i);
            options.n_threads = n_threads;
            assert_int_equal(qkv_ctx_create(&options, &another, NULL), QKV_OK);
            memset(other, 1, sizeof other);
            assert_int_equal(
                head_values_of_text(another, model.tokenizer, &run, &input, other, NULL), QKV_OK);
            assert_memory_equal(stats, other, sizeof stats);
            qkv_ctx_free(another);
        }
}

/* ---- Labels ---------------------------------------------------------------------------------- */

/* Rows that all queries share. */
static const char *label_for(int64_t n, const int32_t *tokens, const float *row) {
    static float weights[MAX_N * MAX_N];
    for (int64_t i = 0; i < n; i++) memcpy(weights + i * n, row, (size_t)n * sizeof *row);
    return stats_of(n, tokens, weights)->label;
}

static void test_labels(void **state) {
    (void)state;
    enum { N = 36 }; /* no rule is left out for want of queries or keys */
    int32_t tokens[N] = { CLS, DOOR, WATCH, THE, DOT };
    for (int i = 5; i < N - 1; i++) tokens[i] = N_VOCAB + i;
    tokens[N - 1] = SEP;
    static const struct {
        float row[6]; /* the first five, and the last */
        const char *label;
    } rows[] = {
        { { 0.61f, 0.39f, 0, 0, 0, 0 }, "[CLS]" },
        { { 0, 0, 0.39f, 0, 0, 0.61f }, "[SEP]" },
        { { 0, 0, 0, 0.39f, 0.61f, 0 }, "punctuation" },
        { { 0.45f, 0.05f, 0, 0.45f, 0.05f, 0 }, "sink" },
        { { 0.29f, 0.15f, 0, 0.29f, 0.27f, 0 }, "" },
        { { NAN, 0, 0, 0, 0, 1 }, "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float row[N] = { 0 };
        memcpy(row, rows[i].row, 5 * sizeof *row);
        row[N - 1] = rows[i].row[5];
        assert_string_equal(label_for(N, tokens, row), rows[i].label);
    }
    const int32_t few[] = { CLS, DOOR, WATCH, THE, DOT, SEP };
    const float broad[] = { 0.17f, 0.17f, 0.17f, 0.17f, 0.16f, 0.16f },
                narrow[] = { 0.29f, 0.15f, 0, 0.29f, 0.27f, 0 }, /* 1.37 of 1.79 nats: 0.76 */
        sink[] = { 0.45f, 0.05f, 0, 0.45f, 0.05f, 0 };
    assert_string_equal(label_for(6, few, broad), "broad");
    assert_string_equal(label_for(6, few, narrow), "");
    assert_string_equal(label_for(6, few, sink), ""); /* random heads of so few tokens do it */
}

static void test_previous_and_same(void **state) {
    (void)state;
    const int32_t tokens[] = { CLS, DOOR, THE, DOOR, IT, THE, WATCH, SEP };
    float previous[64] = { 0 }, same[64] = { 0 };
    for (int64_t i = 0; i < 8; i++) {
        previous[i * 8 + (i > 0 ? i - 1 : 7)] = 1;
        same[i * 8 + i] = 0.55f;
        same[i * 8 + (i == 1 ? 3 : i == 3 ? 1 : i == 2 ? 5 : i == 5 ? 2 : 0)] = 0.45f;
    }
    const head_values *s = stats_of(8, tokens, previous);
    assert_string_equal(s->label, "prev");
    near(s->mass_previous, 1);
    s = stats_of(8, tokens, same);
    assert_string_equal(s->label, "same-token"); /* of the rows that have one */
    near(s->mass_same_token, 0.45);
    near(s->mass_self, 0.55);
}

/* A sink is one of the first 64 tokens. */
static void test_late_sink(void **state) {
    (void)state;
    int32_t tokens[MAX_N];
    float row[MAX_N] = { 0 };
    for (int i = 0; i < MAX_N; i++) tokens[i] = N_VOCAB + i; /* all different */
    row[64] = 0.5f;
    row[3] = 0.25f;
    row[9] = 0.25f;
    assert_string_equal(label_for(MAX_N, tokens, row), "");
    near(stats[0].received_largest, 0.5);
    near(stats[0].received_early, 0.25);
    row[63] = 0.5f;
    row[64] = 0;
    assert_string_equal(label_for(MAX_N, tokens, row), "sink");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),   cmocka_unit_test(test_only_special),
        cmocka_unit_test(test_matches),   cmocka_unit_test(test_nan),
        cmocka_unit_test(test_textbook),  cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_labels),    cmocka_unit_test(test_previous_and_same),
        cmocka_unit_test(test_late_sink),
    };
    return cmocka_run_group_tests(tests, begin_tests, end_tests);
}
