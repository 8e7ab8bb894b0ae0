/*
 * Addresses of arrays: pointers that are not aligned to their element are refused, all others work
 * and give the same bits (AT07). Nothing is read or written beyond an array, next to which is a
 * page without access (AT08). qkv-check does that with random problems; here is a sweep over sizes
 * around the widths of vectors, and merge.
 */
#include "attn/attention_world.h"

#include <stdio.h>
#include <stdlib.h>

#include "attn/attention_problem.h"
#include "check/check.h"

/* ---- AT07 ------------------------------------------------------------------------------------ */

/* The world is made anew, so its pointer is named by where it lies in it. */
static void refuse_unaligned(int calls, size_t field, const char *name, int element) {
    for (int by = 1; by < element; by++) {
        world *w = fresh_with_options();
        char text[128], *data;
        void *const at = (char *)w + field;
        memcpy(&data, at, sizeof data);
        data += by;
        memcpy(at, &data, sizeof data);
        snprintf(text, sizeof text, "%s is not aligned to its element, %d bytes", name, element);
        refuse(w, calls, QKV_ERR_ARGUMENT, text);
    }
}

#define UNALIGNED(calls, field, name, element)                                                     \
    refuse_unaligned(calls, offsetof(world, field), name, element)

static void AT07_unaligned_pointers(void **state) {
    (void)state;
    UNALIGNED(COMPUTE, q, "q", 4);
    UNALIGNED(COMPUTE, k, "k", 4);
    UNALIGNED(COMPUTE, v, "v", 4);
    UNALIGNED(COMPUTE, d.mask, "mask", 4);
    UNALIGNED(EVERY, d.kv_len, "kv_len", 8);
    UNALIGNED(EVERY, d.q_len, "q_len", 8);
    UNALIGNED(EVERY, d.q_offsets, "q_offsets", 8);
    UNALIGNED(EVERY, d.prefix_len, "prefix_len", 8);
    UNALIGNED(COMPUTE, d.seg_q, "seg_q", 4);
    UNALIGNED(COMPUTE, d.seg_k, "seg_k", 4);
    UNALIGNED(COMPUTE, d.alibi_slopes, "alibi_slopes", 4);
    UNALIGNED(COMPUTE, d.sinks, "sinks", 4);
    UNALIGNED(COMPUTE, d.distance_bias, "distance_bias", 4);
    UNALIGNED(BACKWARD, g.d_distance_bias, "d_distance_bias", 4);
    UNALIGNED(BACKWARD, g.d_sinks, "d_sinks", 4);
    UNALIGNED(BACKWARD, g.d_mask, "d_mask", 4);
    UNALIGNED(FORWARD | MERGE, o, "o", 4);
    UNALIGNED(FORWARD | MERGE, lse, "lse", 4);
    UNALIGNED(BACKWARD, saved_o, "o", 4);
    UNALIGNED(BACKWARD, saved_lse, "lse", 4);
    UNALIGNED(BACKWARD, g.d_o, "d_o", 4);
    UNALIGNED(BACKWARD, g.d_lse, "d_lse", 4);
    UNALIGNED(BACKWARD, g.d_q, "d_q", 4);
    UNALIGNED(BACKWARD, g.d_k, "d_k", 4);
    UNALIGNED(BACKWARD, g.d_v, "d_v", 4);
    UNALIGNED(MERGE, o_parts[0], "o_parts[0]", 4);
    UNALIGNED(MERGE, o_parts[1], "o_parts[1]", 4);
    UNALIGNED(MERGE, lse_parts[0], "lse_parts[0]", 4);
    UNALIGNED(MERGE, lse_parts[1], "lse_parts[1]", 4);
}

/* Elements of two bytes lie at even addresses, and arrays are as long as these. */
static void AT07_elements_of_two_bytes(void **state) {
    static const struct {
        int calls;
        size_t field;
        const char *name;
    } list[] = { { COMPUTE, offsetof(world, q), "q" },
                 { COMPUTE, offsetof(world, k), "k" },
                 { COMPUTE, offsetof(world, v), "v" },
                 { FORWARD | MERGE, offsetof(world, o), "o" },
                 { BACKWARD, offsetof(world, saved_o), "o" },
                 { BACKWARD, offsetof(world, g.d_o), "d_o" },
                 { BACKWARD, offsetof(world, g.d_q), "d_q" },
                 { BACKWARD, offsetof(world, g.d_k), "d_k" },
                 { BACKWARD, offsetof(world, g.d_v), "d_v" },
                 { MERGE, offsetof(world, o_parts[1]), "o_parts[1]" } };
    (void)state;
    for (int type = QKV_BF16; type <= QKV_F16; type++)
        for (size_t n = 0; n < sizeof list / sizeof *list; n++)
            for (int by = 1; by <= 3; by++) {
                world *w = fresh();
                char text[128], *data;
                void *const at = (char *)w + list[n].field;
                w->d.dtype = (qkv_dtype)type;
                memcpy(&data, at, sizeof data);
                data += by;
                memcpy(at, &data, sizeof data);
                snprintf(text, sizeof text, "%s is not aligned to its element, 2 bytes",
                         list[n].name);
                if (by % 2)
                    refuse(w, list[n].calls, QKV_ERR_ARGUMENT, text);
                else
                    accept(w, list[n].calls);
            }
    for (int bytes = -2; bytes <= 0; bytes += 2) { /* o right behind q, or one element too early */
        world *w = fresh();
        w->d.dtype = QKV_F16;
        w->q = w->out.d_q;
        w->o = (char *)w->out.d_q + B * H * LQ * D * 2 + bytes;
        if (bytes)
            refuse(w, FORWARD, QKV_ERR_ARGUMENT, "o, an output, overlaps q");
        else
            accept(w, FORWARD);
    }
}

static void AT07_boolean_masks_lie_anywhere(void **state) {
    (void)state;
    for (int by = 0; by < 16; by++) {
        world *w = fresh_masked(QKV_MASK_BOOL);
        w->d.mask = w->mask_bool + by;
        w->d.mask_stride[0] -= 16; /* still inside */
        accept(w, COMPUTE);
    }
}

enum { ARRAYS = 9, WORST = 16 /* floats in a cache line */ };

/* The arrays of a problem, each moved by a number of floats of its own from a line's beginning. */
static void move_arrays(problem *p, const int64_t n[ARRAYS], int by) {
    float **const arrays[ARRAYS] = { &p->q,   &p->k,   &p->v,   &p->d_o, &p->o,
                                     &p->lse, &p->d_q, &p->d_k, &p->d_v };
    for (int a = 0; a < ARRAYS; a++) {
        const size_t bytes = ((size_t)n[a] + 2 * WORST) / WORST * 64;
        float *const moved = (float *)aligned_alloc(64, bytes) + (by * (a + 1)) % WORST;
        memcpy(moved, *arrays[a], (size_t)n[a] * sizeof(float));
        *arrays[a] = moved;
    }
}

static void free_moved(problem *p, int by) {
    float *const arrays[ARRAYS] = {
        p->q, p->k, p->v, p->d_o, p->o, p->lse, p->d_q, p->d_k, p->d_v
    };
    for (int a = 0; a < ARRAYS; a++) free(arrays[a] - (by * (a + 1)) % WORST);
}

static void aligned_to_elements(qkv_ctx *ctx, const int64_t s[5]) {
    rng r = { 21 };
    problem p = problem_new(&r, 2, 4, 2, s[0], s[1], s[2], s[3]);
    const int64_t n[ARRAYS] = { n_q(&p),    n_k(&p), n_v(&p), n_o(&p), n_o(&p),
                                rows_q(&p), n_q(&p), n_k(&p), n_v(&p) };
    p.d.flags = s[4] ? QKV_SET_CAUSAL : 0;
    problem_run(ctx, &p);
    for (int by = 0; by < WORST; by++) {
        problem x = p;
        move_arrays(&x, n, by);
        problem_run(ctx, &x);
        assert_memory_equal(x.o, p.o, (size_t)n_o(&p) * sizeof(float));
        assert_memory_equal(x.lse, p.lse, (size_t)rows_q(&p) * sizeof(float));
        assert_memory_equal(x.d_q, p.d_q, (size_t)n_q(&p) * sizeof(float));
        assert_memory_equal(x.d_k, p.d_k, (size_t)n_k(&p) * sizeof(float));
        assert_memory_equal(x.d_v, p.d_v, (size_t)n_v(&p) * sizeof(float));
        const void *const o_parts[] = { x.o, x.d_o };
        const float *const lse_parts[] = { x.lse, x.lse }; /* the mean of both, into d_o's copy */
        assert_int_equal(qkv_attention_merge(ctx, &p.d, 2, o_parts, lse_parts, x.d_o, x.lse),
                         QKV_OK);
        for (int64_t e = 0; e < n_o(&p); e++) assert_true(x.d_o[e] == (p.o[e] + p.d_o[e]) / 2);
        free_moved(&x, by);
    }
    problem_free(&p);
}

static void AT07_any_address_of_an_element(void **state) {
    (void)state;
    static const int64_t shapes[][5] = {
        { 21, 40, 19, 37, 0 }, { 100, 300, 64, 64, 1 }, { 13, 16, 32, 64, 0 }, { 1, 9, 16, 32, 0 }
    };
    for (int n = 0; qkv_isa_name(n); n++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            qkv_ctx *ctx = context_on(qkv_isa_name(n), 2);
            aligned_to_elements(ctx, shapes[s]);
            qkv_ctx_free(ctx);
        }
}

/* ---- AT08 ------------------------------------------------------------------------------------ */

static void beside_pages(int64_t len_q, int64_t len_k, int64_t dim, int64_t dim_v, uint32_t flags) {
    const check_options options = { .isa = NULL };
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, 2, 1, len_q, len_k, dim, dim_v);
    d.flags = flags;
    for (int at_end = 0; at_end <= 1; at_end++) {
        check_report report = { 0 };
        check_case c;
        case_dense(&c, &d, (uint64_t)(len_q + len_k), at_end);
        case_seal(&c);
        check_case_everywhere(&options, &c, (uint64_t)(dim + dim_v), &report);
        case_free(&c);
        if (report.failures)
            fail_msg("lengths %d, %d, dimensions %d, %d: %s", (int)len_q, (int)len_k, (int)dim,
                     (int)dim_v, report.message);
    }
}

static void AT08_pages_without_access_beside_every_array(void **state) {
    (void)state;
    static const int64_t widths[] = { 1, 3, 8, 15, 16, 17, 31, 32, 33, 48, 64, 65 };
    enum { N = sizeof widths / sizeof *widths };
    for (int n = 0; n < N; n++) {
        beside_pages(5, 7, widths[n], widths[(n + 5) % N], 0);
        beside_pages(widths[n], widths[(n + 7) % N], 20, 20, QKV_SET_CAUSAL);
        beside_pages(1, widths[n], 16, 32, 0);
        beside_pages(16, 16, 16 * (n + 1), 32 * (n + 1), n % 2 ? QKV_SET_CAUSAL : 0);
    }
    beside_pages(130, 513, 33, 40, 0);
}

/* A part or output of merge: values, flush with its guard page. */
static guarded part_new(rng *r, int64_t n, bool at_end) {
    guarded g = guarded_new((size_t)n * sizeof(float), at_end);
    for (int64_t e = 0; e < n; e++) ((float *)g.data)[e] = rng_normal(r);
    return g;
}

static void merge_beside_pages(qkv_ctx *ctx, int64_t rows, int64_t dim, bool at_end) {
    enum { N_PARTS = 3 };
    rng r = { (uint64_t)(rows * 100 + dim) };
    guarded o[N_PARTS + 1], lse[N_PARTS + 1];
    const void *o_parts[N_PARTS];
    const float *lse_parts[N_PARTS];
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, 1, 1, rows, 1, 1, dim);
    for (int n = 0; n <= N_PARTS; n++) {
        o[n] = part_new(&r, rows * dim, at_end);
        lse[n] = part_new(&r, rows, at_end);
        if (n == N_PARTS) break;
        o_parts[n] = o[n].data;
        lse_parts[n] = lse[n].data;
        guarded_read_only(&o[n]);
        guarded_read_only(&lse[n]);
    }
    assert_int_equal(qkv_attention_merge(ctx, &d, N_PARTS, o_parts, lse_parts, o[N_PARTS].data,
                                         lse[N_PARTS].data),
                     QKV_OK);
    for (int n = 0; n <= N_PARTS; n++) {
        assert_true(guarded_intact(&o[n]) && guarded_intact(&lse[n]));
        guarded_free(&o[n]);
        guarded_free(&lse[n]);
    }
}

static void AT08_pages_without_access_beside_merge(void **state) {
    (void)state;
    for (int n = 0; qkv_isa_name(n); n++) {
        qkv_ctx *ctx = context_on(qkv_isa_name(n), 3);
        for (int64_t dim = 1; dim <= 130; dim += dim < 70 ? 1 : 9)
            for (int at_end = 0; at_end <= 1; at_end++)
                merge_beside_pages(ctx, 1 + dim % 5, dim, at_end);
        qkv_ctx_free(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AT07_unaligned_pointers),
        cmocka_unit_test(AT07_elements_of_two_bytes),
        cmocka_unit_test(AT07_boolean_masks_lie_anywhere),
        cmocka_unit_test(AT07_any_address_of_an_element),
        cmocka_unit_test(AT08_pages_without_access_beside_every_array),
        cmocka_unit_test(AT08_pages_without_access_beside_merge),
    };
    return cmocka_run_group_tests(tests, make_world_ctx, destroy_world_ctx);
}
