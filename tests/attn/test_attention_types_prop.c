/*
 * Class f32 of 16-bit inputs has one definition: the bits of a call on the same numbers as floats,
 * its results rounded once. So problems with every feature (check/recipe.h) are computed in bf16
 * and f16 by every instruction set with 1 to 16 threads, and as floats by the scalar build; arrays
 * end at, or begin after, a page without access, and gaps between rows stay canaries.
 */
#include <math.h>
#include <string.h>

#include "attn/every_isa.h"
#include "check/outputs.h"
#include "core/half.h"

enum { CASES = 60 };

static uint16_t half_of(qkv_dtype type, float x) {
    return type == QKV_BF16 ? qkvi_bf16_of_f32(x) : qkvi_f16_of_f32(x);
}
static float float_of(qkv_dtype type, uint16_t x) {
    return type == QKV_BF16 ? qkvi_f32_of_bf16(x) : qkvi_f32_of_f16(x);
}

/* ---- The same problem in floats -------------------------------------------------------------- */

static guarded widened(const guarded *half, qkv_dtype type, bool at_end) {
    const size_t n = half->bytes / sizeof(uint16_t);
    guarded floats = guarded_new(n * sizeof(float), at_end);
    for (size_t i = 0; i < n; i++)
        ((float *)floats.data)[i] = float_of(type, ((const uint16_t *)half->data)[i]);
    return floats;
}

/* A copy of c that owns q, k, v, and d_o unless that is float already. */
static check_case in_floats(const check_case *c) {
    check_case y = *c;
    y.d.dtype = y.d.o_dtype = QKV_F32;
    y.d.arithmetic = QKV_CLASS_AUTO;
    y.q = widened(&c->q, c->d.dtype, c->at_end);
    y.k = widened(&c->k, c->d.dtype, c->at_end);
    y.v = widened(&c->v, c->d.dtype, c->at_end);
    if (output_element(&c->d, 'o') != ELEMENT_F32) y.d_o = widened(&c->d_o, c->d.dtype, c->at_end);
    return y;
}

static void free_floats(const check_case *c, check_case *y) {
    guarded_free(&y->q);
    guarded_free(&y->k);
    guarded_free(&y->v);
    if (y->d_o.data != c->d_o.data) guarded_free(&y->d_o);
}

/* ---- Calls and comparisons ------------------------------------------------------------------- */

static void forward(qkv_ctx *ctx, const check_case *c, const outputs *x) {
    if (qkv_attention_forward(ctx, &c->d, c->q.data, c->k.data, c->v.data, x->o.data, x->lse.data,
                              NULL) != QKV_OK)
        fail_msg("%s\n%s", qkv_ctx_message(ctx), c->text);
}

static void backward(qkv_ctx *ctx, const check_case *c, const outputs *x, const void *o,
                     const float *lse) {
    const qkv_attention_grads grads = outputs_grads(c, x);
    if (qkv_attention_backward(ctx, &c->d, c->q.data, c->k.data, c->v.data, o, lse, &grads, NULL) !=
        QKV_OK)
        fail_msg("%s\n%s", qkv_ctx_message(ctx), c->text);
}

/* The n-th output against floats to be rounded; NaN by position, and a canary's is a canary. */
static void compare(const check_case *c, const outputs *x, const outputs *y, int n) {
    const elem_type type = outputs_element(&c->d, n);
    const guarded *got = outputs_at(x, n), *floats = outputs_at(y, n);
    const size_t elems = floats->bytes / sizeof(float);
    assert_int_equal(got->bytes, elems * element_bytes(type));
    for (size_t i = 0; i < elems; i++) {
        float want = ((const float *)floats->data)[i], is;
        if (type == ELEMENT_F32) {
            is = ((const float *)got->data)[i];
        } else {
            is = float_of(c->d.dtype, ((const uint16_t *)got->data)[i]);
            want = float_of(c->d.dtype, half_of(c->d.dtype, want));
        }
        if (memcmp(&is, &want, sizeof is) != 0 && !(isnan(is) && isnan(want)))
            fail_msg("%s, output %d[%zu]: %.9g instead of %.9g\n%s", isa, n, i, (double)is,
                     (double)want, c->text);
    }
}

static void one_case(const check_case *c, int n_threads) {
    check_case floats = in_floats(c);
    outputs x = outputs_new(c), y = outputs_new(&floats);
    qkv_ctx *ctx = context_on(isa, n_threads), *scalar = context_on("scalar", 1);
    guarded o = { 0 };
    forward(ctx, c, &x);
    forward(scalar, &floats, &y);
    for (int n = 0; n < 2; n++) compare(c, &x, &y, n);
    if (output_element(&c->d, 'o') != ELEMENT_F32) o = widened(&x.o, c->d.dtype, c->at_end);
    backward(ctx, c, &x, x.o.data, x.lse.data);
    backward(scalar, &floats, &y, o.map ? o.data : x.o.data, x.lse.data);
    for (int n = 2; n < OUTPUTS; n++) compare(c, &x, &y, n);
    const char *const spoilt = outputs_spoilt(c, &x);
    if (spoilt) fail_msg("%s was written outside of its rows\n%s", spoilt, c->text);
    qkv_ctx_free(ctx);
    qkv_ctx_free(scalar);
    if (o.map) guarded_free(&o);
    outputs_free(&x);
    outputs_free(&y);
    free_floats(c, &floats);
}

/* Of check_types, by the type. */
static int kind_of(qkv_dtype type) {
    for (int n = 0; n < TYPES; n++)
        if (check_types[n].type == (elem_type)type && check_types[n].arithmetic == QKV_CLASS_F32)
            return n;
    fail();
    return 0;
}

static void random_problems_have_the_bits_of_floats(void) {
    rng r = { 0x7E57 };
    for (int n = 0; n < CASES; n++) {
        if (!takes_turn(isa_at, n)) continue;
        check_case c;
        recipe x = recipe_random(&r);
        x.type = kind_of(n % 2 ? QKV_BF16 : QKV_F16);
        x.o_f32 = n % 5 == 0;
        case_make_of(&c, &x, rng_next(&r));
        c.d.arithmetic = QKV_CLASS_F32;
        one_case(&c, (int)rng_between(&r, 1, 16));
        case_free(&c);
    }
}

/*
 * Shapes that random ones miss: sentences, wide heads, many blocks of keys, groups, D != Dv. And
 * more heads than threads, so that sums of d_q change hands.
 */
static void chosen_shapes_have_the_bits_of_floats(void) {
    static const int64_t shapes[][7] = {
        { 1, 6, 2, 16, 16, 32, 96 },    { 2, 4, 4, 130, 600, 16, 16 },
        { 2, 4, 4, 11, 11, 64, 64 },    { 3, 2, 1, 1, 9, 512, 32 },
        { 1, 1, 1, 5, 7, 16, 20000 },   { 1, 1, 1, 40, 30, 32, 5000 },
        { 1, 8, 2, 300, 700, 64, 64 },  { 2, 3, 1, 130, 1100, 40, 72 },
        { 1, 1, 1, 1, 2000, 128, 128 }, { 4, 2, 2, 260, 257, 33, 31 },
        { 1, 1, 1, 700, 3, 80, 80 },    { 3, 7, 7, 300, 900, 16, 16 },
        { 2, 12, 3, 150, 600, 32, 32 },
    };
    rng r = { 3 };
    const size_t n_shapes = UNDER_SANITIZER ? 2 : sizeof shapes / sizeof *shapes;
    for (size_t n = 0; n < n_shapes; n++)
        for (int type = QKV_BF16; type <= QKV_F16; type++) {
            const int64_t *s = shapes[n];
            check_case c;
            const recipe x = { .features = n % 2 ? 1u << FEATURE_CAUSAL : 0,
                               .type = kind_of((qkv_dtype)type),
                               .n_batch = s[0],
                               .n_heads = s[1],
                               .n_kv_heads = s[2],
                               .len_q = s[3],
                               .len_k = s[4],
                               .head_dim = s[5],
                               .head_dim_v = s[6] };
            case_make_of(&c, &x, rng_next(&r));
            c.d.arithmetic = QKV_CLASS_F32;
            one_case(&c, (int)rng_between(&r, 1, 5));
            case_free(&c);
        }
}

/* ---- Merge ----------------------------------------------------------------------------------- */

enum { PARTS = 3 };

static void merges_have_the_bits_of_floats(void) {
    rng r = { 77 };
    for (int n = 0; n < 60; n++) {
        const qkv_dtype type = n % 2 ? QKV_BF16 : QKV_F16;
        const int64_t rows = rng_between(&r, 1, 9), dim = rng_between(&r, 0, 150);
        const int64_t gap = rng_between(&r, 0, 5), elems = rows * (dim + gap);
        qkv_attention_desc d;
        qkv_attention_desc_contiguous(&d, 1, 1, 1, rows, 1, 8, dim);
        d.o_stride[0] = d.o_stride[1] = elems;
        d.o_stride[2] = dim + gap;
        uint16_t *half[PARTS], *o = malloc((size_t)elems * 2 + 1);
        float *whole[PARTS], *lse[PARTS], *want = floats(elems), *lse_want = floats(rows);
        float *lse_got = floats(rows);
        for (int p = 0; p < PARTS; p++) {
            half[p] = malloc((size_t)elems * 2 + 1);
            whole[p] = floats(elems);
            lse[p] = normals(&r, rows);
            for (int64_t i = 0; i < elems; i++) {
                half[p][i] = half_of(type, rng_normal(&r));
                whole[p][i] = float_of(type, half[p][i]);
            }
            for (int64_t i = 0; i < rows; i++)
                if (rng_chance(&r, 20)) lse[p][i] = rng_chance(&r, 80) ? -INFINITY : NAN;
        }
        qkv_ctx *ctx = context_on(isa, 3), *scalar = context_on("scalar", 1);
        const void *const parts[] = { half[0], half[1], half[2] };
        const void *const floats_parts[] = { whole[0], whole[1], whole[2] };
        const bool in_place = n % 3 == 0;
        void *const to = in_place ? half[1] : o;
        assert_int_equal(qkv_attention_merge(scalar, &d, PARTS, floats_parts,
                                             (const float *const *)lse, want, lse_want),
                         QKV_OK);
        d.dtype = type;
        assert_int_equal(
            qkv_attention_merge(ctx, &d, PARTS, parts, (const float *const *)lse, to, lse_got),
            QKV_OK);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t e = 0; e < dim; e++) {
                const float y = float_of(type, half_of(type, want[i * (dim + gap) + e]));
                const float x = float_of(type, ((uint16_t *)to)[i * (dim + gap) + e]);
                assert_true(x == y || (isnan(x) && isnan(y)));
            }
        same_bits("lse", lse_got, lse_want, rows);
        qkv_ctx_free(ctx);
        qkv_ctx_free(scalar);
        for (int p = 0; p < PARTS; p++) free(half[p]), free(whole[p]), free(lse[p]);
        free(o), free(want), free(lse_want), free(lse_got);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROPERTY(random_problems_have_the_bits_of_floats),
        PROPERTY(chosen_shapes_have_the_bits_of_floats),
        PROPERTY(merges_have_the_bits_of_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
