/*
 * The table of rules of visibility against the kernels' own (mask.h) and against the definitions of
 * the oracle, over random rules, lengths and places: qkv_attention_visible_keys gives each interval
 * that they give. And what the table says of itself: names, flags, fields, bounds, refusals.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attn/mask.h"
#include "attn/problem.h"
#include "check/check.h"
#include "check/oracle.h"

enum { B = 2, MOST = 40 };

static uint64_t seed = 20261123;

/* A descriptor with random rules, and what it points to. */
typedef struct world {
    qkv_attention_desc d;
    int64_t prefix[B], kv_len[B], q_len[B], offsets[B], cu_q[B + 1], cu_k[B + 1];
    int32_t seg_q[B * MOST], seg_k[B * MOST];
} world;

static int64_t window_side(rng *r) {
    return rng_chance(r, 30) ? -1 : rng_chance(r, 5) ? INT64_MAX : rng_between(r, 0, MOST);
}

static void choose_lists(rng *r, world *w) {
    qkv_attention_desc *const d = &w->d;
    const bool packed = rng_chance(r, 30);
    for (int b = 0; b < B; b++) {
        const int64_t len_q = packed ? rng_between(r, 0, d->len_q) : d->len_q,
                      len_k = packed ? rng_between(r, 0, d->len_k) : d->len_k;
        w->cu_q[b + 1] = w->cu_q[b] + len_q;
        w->cu_k[b + 1] = w->cu_k[b] + len_k;
        w->q_len[b] = rng_between(r, 0, len_q);
        w->kv_len[b] = rng_between(r, 0, len_k);
        w->prefix[b] = rng_between(r, 0, d->len_k);
        w->offsets[b] = rng_between(r, -MOST, MOST);
    }
    for (int n = 0; n < B * MOST; n++) {
        w->seg_q[n] = n / 9 % 3;
        w->seg_k[n] = rng_chance(r, 80) ? n / 7 % 3 : 1;
    }
    if (!packed) return;
    d->flags |= QKV_SET_CU_SEQLENS;
    d->q_stride[0] = d->k_stride[0] = d->v_stride[0] = d->o_stride[0] = d->lse_stride[0] = 0;
}

static void choose(rng *r, world *w) {
    memset(w, 0, sizeof *w);
    qkv_attention_desc *const d = &w->d;
    qkv_attention_desc_contiguous(d, B, 1, 1, rng_between(r, 1, MOST), rng_between(r, 1, MOST), 4,
                                  4);
    const qkv_rule *rule;
    for (int n = 0; (rule = qkv_attention_rule(n)); n++)
        if (rng_chance(r, 35)) d->flags |= rule->flag | rule->needs;
    choose_lists(r, w);
    d->window_left = window_side(r);
    d->window_right = window_side(r);
    d->chunk = rng_between(r, 1, MOST);
    d->q_offset = rng_chance(r, 5) ? -((int64_t)1 << 48) : rng_between(r, -MOST, MOST);
    d->q_offsets = rng_chance(r, 50) ? w->offsets : NULL;
    d->prefix_len = w->prefix;
    d->kv_len = w->kv_len;
    d->q_len = w->q_len;
    d->cu_seqlens_q = w->cu_q;
    d->cu_seqlens_k = w->cu_k;
    d->seg_q = w->seg_q;
    d->seg_k = w->seg_k;
    d->seg_q_stride = d->seg_k_stride = MOST;
}

/* Key by key: intervals follow each other, do not touch, and hold what the definitions show. */
static void compare_with_oracle(const world *w, int64_t b, int64_t i, int64_t n_keys, bool counts) {
    int64_t first = 0, end = 0, seen = 0, last = -1;
    for (int64_t from = -3;; from = end) {
        assert_int_equal(qkv_attention_visible_keys(&w->d, b, i, from, &first, &end, NULL), QKV_OK);
        assert_true(first >= 0 && first <= end && end <= n_keys);
        if (first == end) break;
        assert_true(counts && first > last && first >= from);
        for (int64_t j = first; j < end; j++) assert_true(oracle_sees(&w->d, b, 0, i, j));
        seen += end - first;
        last = end;
    }
    for (int64_t j = 0; counts && j < n_keys; j++) seen -= oracle_sees(&w->d, b, 0, i, j);
    assert_int_equal(seen, 0);
}

static void compare_with_kernels(const world *w, int64_t b, int64_t i, const qkvi_rules *rules) {
    const qkvi_range keys = qkvi_keys_of(rules, i);
    int64_t first = -1, end = -1;
    assert_int_equal(qkv_attention_visible_keys(&w->d, b, i, 0, &first, &end, NULL), QKV_OK);
    assert_int_equal(keys.end - keys.begin, end - first);
    if (first < end) assert_int_equal(keys.begin, first);
}

static void intervals_are_those_of_kernels(void **state) {
    (void)state;
    static world w;
    rng r = { seed };
    for (int turn = 0; turn < 3000; turn++) {
        qkvi_problem p;
        qkv_error error = { QKV_OK, "" };
        choose(&r, &w);
        if (qkvi_problem_read(&w.d, &p, &error)) fail_msg("turn %d: %s", turn, error.message);
        for (int64_t b = 0; b < B; b++) {
            const qkvi_rules rules = qkvi_rules_of(&p, b);
            int64_t begin_before = 0, end_before = 0;
            for (int64_t i = 0; i < qkvi_len_q(&p, b); i++) {
                int64_t first, end;
                compare_with_oracle(&w, b, i, qkvi_len_k(&p, b), i < rules.n_queries);
                if (w.d.flags & QKV_SET_SEGMENTS) continue;
                if (i < rules.n_queries) compare_with_kernels(&w, b, i, &rules);
                assert_int_equal(qkv_attention_visible_keys(&w.d, b, i, 0, &first, &end, NULL),
                                 QKV_OK);
                assert_true(first >= begin_before && end >= end_before);
                begin_before = first;
                end_before = end;
            }
        }
    }
}

/* Numbers so far away that sums of them must not overflow. */
static void far_places(void **state) {
    (void)state;
    const int64_t far = (int64_t)1 << 48, offsets[] = { -far, far };
    for (int n = 0; n < 2; n++) {
        qkv_attention_desc d;
        int64_t first, end;
        qkv_attention_desc_contiguous(&d, 1, 1, 1, 3, 5, 4, 4);
        d.flags = QKV_SET_WINDOW | QKV_SET_CHUNK | QKV_SET_Q_OFFSET;
        d.q_offset = offsets[n];
        d.window_left = d.window_right = INT64_MAX;
        d.chunk = far;
        assert_int_equal(qkv_attention_visible_keys(&d, 0, 2, 0, &first, &end, NULL), QKV_OK);
        assert_int_equal(first, end);
        d.flags &= ~(uint32_t)QKV_SET_CHUNK;
        assert_int_equal(qkv_attention_visible_keys(&d, 0, 2, 0, &first, &end, NULL), QKV_OK);
        assert_true(first == 0 && end == 5);
        assert_int_equal(qkv_attention_visible_keys(&d, 0, 2, INT64_MAX, &first, &end, NULL),
                         QKV_OK);
        assert_true(first == 5 && end == 5);
    }
}

static void the_table(void **state) {
    (void)state;
    static const char *const names[] = { "causal",   "window", "prefix", "chunk",
                                         "segments", "kv_len", "q_len",  "q_offset" };
    uint32_t flags = 0;
    for (int n = 0; n < 8; n++) {
        const qkv_rule *const rule = qkv_attention_rule(n);
        assert_non_null(rule);
        assert_string_equal(rule->name, names[n]);
        assert_true(rule->flag && !(rule->flag & flags) && rule->definition[0]);
        assert_int_equal(rule->needs & ~flags, 0); /* what it needs stands before it */
        flags |= rule->flag;
        for (int f = 0; f < rule->n_fields; f++) {
            const qkv_rule_field *const field = &rule->fields[f];
            assert_true(field->name[0] && field->least <= field->most);
            assert_true(field->offset % 8 == 0 && field->offset < sizeof(qkv_attention_desc));
            assert_true(f > 0 || !field->nullable);
        }
    }
    assert_null(qkv_attention_rule(8));
    assert_null(qkv_attention_rule(-1));
    assert_int_equal(qkv_attention_rule(1)->fields[1].offset,
                     offsetof(qkv_attention_desc, window_right));
}

static void refuses(const qkv_attention_desc *d, int64_t b, int64_t i, int64_t *end,
                    qkv_status want, const char *text) {
    qkv_error error = { QKV_OK, "" };
    int64_t first = 7;
    assert_int_equal(qkv_attention_visible_keys(d, b, i, 0, &first, end, &error), want);
    assert_string_equal(error.message, text);
    assert_int_equal(first, 7);
}

static void refusals(void **state) {
    (void)state;
    static const int32_t segments[8];
    qkv_attention_desc d;
    int64_t end;
    qkv_attention_desc_contiguous(&d, 2, 1, 1, 3, 5, 4, 4);
    refuses(NULL, 0, 0, &end, QKV_ERR_ARGUMENT, "desc is NULL");
    refuses(&d, 0, 0, NULL, QKV_ERR_ARGUMENT, "end is NULL");
    refuses(&d, 2, 0, &end, QKV_ERR_ARGUMENT, "b = 2 is not in [0, 2)");
    refuses(&d, -1, 0, &end, QKV_ERR_ARGUMENT, "b = -1 is not in [0, 2)");
    refuses(&d, 1, 3, &end, QKV_ERR_ARGUMENT, "i = 3 is not in [0, 3)");
    d.flags = QKV_SET_CHUNK;
    refuses(&d, 0, 0, &end, QKV_ERR_ARGUMENT, "chunk = 0 is not in [1, 281474976710656]");
    d.flags = QKV_SET_SEGMENTS;
    refuses(&d, 0, 0, &end, QKV_ERR_ARGUMENT, "seg_q is NULL, but QKV_SET_SEGMENTS is set");
    d.seg_q = segments;
    d.seg_k = (const int32_t *)((uintptr_t)segments + 1);
    refuses(&d, 0, 0, &end, QKV_ERR_ARGUMENT, "seg_k is not aligned to its element, 4 bytes");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_are_those_of_kernels),
        cmocka_unit_test(far_places),
        cmocka_unit_test(the_table),
        cmocka_unit_test(refusals),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
