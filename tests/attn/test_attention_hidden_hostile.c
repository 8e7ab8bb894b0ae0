/*
 * What a query may not see cannot influence it (AT12c, AT13): under every way of hiding keys, a row
 * of Q, K, V or d_o gets values that are not finite, and every result that does not depend on it,
 * by the definition, must keep its bits: rows of o and lse, of d_q, d_k and d_v, in its own head
 * and in all others. Results that do depend on it must be NaN. On every instruction set.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/attention_problem.h"
#include "check/check.h"

enum { B = 2, H = 4, G = 2, D = 16, DV = 32, GROUP = H / G, MOST_LQ = 23, MOST_LK = 300 };
/* Two blocks of keys; and few enough for the path of short sequences. */
static const int64_t LENGTHS[2][2] = { { MOST_LQ, MOST_LK }, { 14, 16 } };
static int64_t LQ, LK;

enum { WAYS = 18, POISONS = UNDER_SANITIZER ? 4 : 16 };

static const char *isa;

/* A problem with its rules, the arrays that these point to, and a copy to poison. */
typedef struct world {
    problem p, x;
    int64_t kv_len[B], q_len[B], q_offsets[B], prefix_len[B];
    int32_t seg_q[B * MOST_LQ], seg_k[B * MOST_LK];
    float slopes[H], sinks[H];
    unsigned char bits[B * H * MOST_LQ * (MOST_LK / 8 + 1)];
    unsigned char bools[B * H * MOST_LQ * MOST_LK];
    float adds[B * H * MOST_LQ * MOST_LK];
} world;

/* ---- Ways of hiding -------------------------------------------------------------------------- */

static void set_mask(world *w, qkv_mask_type type, int64_t batch, int64_t head, int64_t row) {
    const int64_t stride[4] = { batch, head, row, 1 };
    w->p.d.flags |= QKV_SET_MASK;
    w->p.d.mask_type = type;
    w->p.d.mask = type == QKV_MASK_BOOL   ? (const void *)w->bools
                  : type == QKV_MASK_BITS ? (const void *)w->bits
                                          : w->adds;
    memcpy(w->p.d.mask_stride, stride, sizeof stride);
}

static void hide(world *w, int way) {
    qkv_attention_desc *d = &w->p.d;
    switch (way) {
    case 0: d->flags = QKV_SET_CAUSAL; break;
    case 1:
        d->flags = QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
        d->q_offset = LK - LQ;
        break;
    case 2:
        d->flags = QKV_SET_WINDOW | QKV_SET_Q_OFFSET;
        d->window_left = 3;
        d->window_right = 2;
        d->q_offset = LK * 5 / 6;
        break;
    case 3: d->flags = QKV_SET_KV_LEN; break;
    case 4: set_mask(w, QKV_MASK_BOOL, H * LQ * LK, LQ * LK, LK); break;
    case 5: set_mask(w, QKV_MASK_BOOL, LK, 0, 0); break; /* whole keys */
    case 6: set_mask(w, QKV_MASK_F32, H * LQ * LK, LQ * LK, LK); break;
    case 7: set_mask(w, QKV_MASK_F32, 0, LQ * LK, 0); break; /* per head */
    case 8:
        set_mask(w, QKV_MASK_F32, 0, 0, LK);
        d->mask_len_k = LK * 13 / 30;
        break;
    case 9: d->flags = QKV_SET_Q_LEN; break;
    case 10:
        set_mask(w, QKV_MASK_F32, 0, 0, LK);
        d->flags |= QKV_SET_SOFTCAP;
        d->softcap = 4;
        break;
    case 11: /* no row of the first batch sees anything */
        d->flags = QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
        d->q_offsets = w->q_offsets;
        break;
    case 12:
        d->flags = QKV_SET_SEGMENTS;
        d->seg_q = w->seg_q, d->seg_k = w->seg_k;
        d->seg_q_stride = LQ, d->seg_k_stride = LK;
        break;
    case 13:
        d->flags = QKV_SET_CHUNK | QKV_SET_Q_OFFSET;
        d->chunk = LK / 3;
        d->q_offset = LK / 2;
        break;
    case 14:
        d->flags = QKV_SET_CAUSAL | QKV_SET_PREFIX_LEN;
        d->prefix_len = w->prefix_len;
        break;
    case 15:
        set_mask(w, QKV_MASK_BITS, H * LQ * ((LK + 7) / 8), LQ * ((LK + 7) / 8), (LK + 7) / 8);
        break;
    case 16:
        d->flags = QKV_SET_CAUSAL | QKV_SET_ALIBI | QKV_SET_SINKS;
        d->alibi_slopes = w->slopes;
        d->sinks = w->sinks;
        break;
    default:
        set_mask(w, QKV_MASK_BOOL, H * LQ * LK, LQ * LK, LK);
        d->flags |= QKV_SET_CAUSAL | QKV_SET_KV_LEN | QKV_SET_Q_LEN | QKV_SET_Q_OFFSET;
        d->q_offset = LK * 9 / 10;
    }
    d->kv_len = w->kv_len;
    d->q_len = w->q_len;
}

/* way: also which lengths */
static world *world_new(int way) {
    rng r = { (uint64_t)way + 77 };
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    LQ = LENGTHS[way / WAYS][0], LK = LENGTHS[way / WAYS][1];
    w->p = problem_new(&r, B, H, G, LQ, LK, D, DV);
    w->kv_len[0] = LK * 7 / 15, w->kv_len[1] = LK * 29 / 30;
    w->q_len[0] = 5, w->q_len[1] = LQ;
    w->q_offsets[0] = -LQ, w->q_offsets[1] = LK / 3;
    w->prefix_len[0] = LK / 2, w->prefix_len[1] = 3;
    for (int h = 0; h < H; h++)
        w->slopes[h] = h ? 0.1f * (float)h : 0, w->sinks[h] = (float)(h - 1);
    for (int64_t t = 0; t < B * LQ; t++) w->seg_q[t] = (int32_t)(t / 4 % 5);
    for (int64_t t = 0; t < B * LK; t++) w->seg_k[t] = (int32_t)(t / 3 % 7); /* 5, 6: unseen */
    for (size_t e = 0; e < sizeof w->bits; e++) w->bits[e] = e % 3 ? (unsigned char)(e * 29) : 0;
    for (int e = 0; e < B * H * LQ * LK; e++) {
        const bool row_sees = e / LK % 11 != 7; /* a row in eleven sees nothing */
        w->bools[e] = row_sees && rng_chance(&r, 40) ? (unsigned char)rng_between(&r, 1, 255) : 0;
        w->adds[e] = w->bools[e] ? rng_normal(&r) : -INFINITY;
    }
    hide(w, way % WAYS);
    w->x = w->p; /* shares inputs until they are poisoned, not outputs */
    w->x.o = floats(n_o(&w->p));
    w->x.lse = floats(rows_q(&w->p));
    w->x.d_q = floats(n_q(&w->p));
    w->x.d_k = floats(n_k(&w->p));
    w->x.d_v = floats(n_v(&w->p));
    return w;
}

static void world_free(world *w) {
    float *const copies[] = { w->x.o, w->x.lse, w->x.d_q, w->x.d_k, w->x.d_v };
    for (int n = 0; n < 5; n++) free(copies[n]);
    problem_free(&w->p);
    free(w);
}

/* ---- What depends on a poisoned row ---------------------------------------------------------- */

enum { IN_K, IN_V, IN_Q, IN_D_O };

typedef struct poison {
    int in;
    int64_t b, head, token; /* head: of keys for K and V */
    int64_t channel;        /* -1: all of the row */
    float value;
    float kept[DV > D ? DV : D];
} poison;

static bool sees(const world *w, int64_t b, int64_t h, int64_t i, int64_t j) {
    const bool exists = !(w->p.d.flags & QKV_SET_Q_LEN) || i < w->q_len[b];
    return exists && oracle_sees(&w->p.d, b, h, i, j);
}

/* Does the row of weights of query i depend on it? For V and d_o: is the row concerned at all? */
static bool row_depends(const world *w, const poison *z, int64_t b, int64_t h, int64_t i) {
    if (b != z->b) return false;
    if (z->in == IN_Q || z->in == IN_D_O) {
        const bool exists = !(w->p.d.flags & QKV_SET_Q_LEN) || i < w->q_len[b];
        return exists && h == z->head && i == z->token;
    }
    return h / GROUP == z->head && sees(w, b, h, i, z->token);
}

static bool key_depends(const world *w, const poison *z, int64_t b, int64_t g, int64_t j) {
    for (int64_t h = g * GROUP; h < (g + 1) * GROUP; h++)
        for (int64_t i = 0; i < LQ; i++)
            if (row_depends(w, z, b, h, i) && sees(w, b, h, i, j)) return true;
    return false;
}

static void keep_bits(const char *name, const poison *z, const float *clean, const float *poisoned,
                      int64_t n) {
    if (memcmp(clean, poisoned, (size_t)n * sizeof *clean) == 0) return;
    fail_msg("%s: %g in %s[%d][%d][%d] changed %s, which does not depend on it", isa,
             (double)z->value, (const char *[]){ "k", "v", "q", "d_o" }[z->in], (int)z->b,
             (int)z->head, (int)z->token, name);
}

static void all_nan(const char *name, const float *x, int64_t n) {
    for (int64_t c = 0; c < n; c++)
        if (!isnan(x[c])) fail_msg("%s: a NaN was swallowed in %s: %g", isa, name, (double)x[c]);
}

/* One row of o, lse and d_q. Returns whether it was free of the poison. */
static bool check_row(const world *w, const poison *z, int64_t b, int64_t h, int64_t i) {
    const problem *p = &w->p, *x = &w->x;
    const int64_t row = (b * H + h) * LQ + i;
    const bool depends = row_depends(w, z, b, h, i);
    const bool weights = depends && (z->in == IN_K || z->in == IN_Q);
    if (!weights) keep_bits("lse", z, p->lse + row, x->lse + row, 1);
    if (!depends) keep_bits("d_q", z, p->d_q + row * D, x->d_q + row * D, D);
    for (int64_t c = 0; c < DV; c++) { /* a channel of V is a matter of that channel of o */
        const bool in_channel = z->in == IN_V && (z->channel < 0 || z->channel == c);
        if (!weights && !(depends && in_channel))
            keep_bits("o", z, p->o + row * DV + c, x->o + row * DV + c, 1);
        else if (isnan(z->value) && p->lse[row] > -INFINITY)
            all_nan("o", x->o + row * DV + c, 1);
    }
    if (weights && isnan(z->value) && p->lse[row] > -INFINITY) {
        all_nan("lse", x->lse + row, 1);
        all_nan("d_q", x->d_q + row * D, D);
    }
    return !depends;
}

static void check_all(const world *w, const poison *z, int64_t *n_free) {
    const problem *p = &w->p, *x = &w->x;
    for (int64_t b = 0; b < B; b++) {
        for (int64_t h = 0; h < H; h++)
            for (int64_t i = 0; i < LQ; i++) *n_free += check_row(w, z, b, h, i);
        for (int64_t g = 0; g < G; g++)
            for (int64_t j = 0; j < LK; j++) {
                const int64_t row = (b * G + g) * LK + j;
                if (b == z->b && key_depends(w, z, b, g, j)) continue;
                keep_bits("d_k", z, p->d_k + row * D, x->d_k + row * D, D);
                keep_bits("d_v", z, p->d_v + row * DV, x->d_v + row * DV, DV);
            }
    }
}

/* ---- Poisoning ------------------------------------------------------------------------------- */

static float *poisoned_row(const world *w, const poison *z, int64_t *n) {
    const problem *p = &w->p;
    *n = z->in == IN_V || z->in == IN_D_O ? DV : D;
    if (z->in == IN_K) return p->k + ((z->b * G + z->head) * LK + z->token) * D;
    if (z->in == IN_V) return p->v + ((z->b * G + z->head) * LK + z->token) * DV;
    if (z->in == IN_Q) return p->q + ((z->b * H + z->head) * LQ + z->token) * D;
    return p->d_o + ((z->b * H + z->head) * LQ + z->token) * DV;
}

static poison random_poison(rng *r) {
    static const float values[] = { NAN, -NAN, INFINITY, -INFINITY, FLT_MAX, NAN };
    poison z = { .in = (int)rng_between(r, 0, 3), .b = rng_between(r, 0, B - 1) };
    const bool of_keys = z.in == IN_K || z.in == IN_V;
    z.head = rng_between(r, 0, of_keys ? G - 1 : H - 1);
    z.token = rng_between(r, 0, of_keys ? LK - 1 : LQ - 1);
    z.channel = rng_chance(r, 50) ? -1 : rng_between(r, 0, D - 1);
    z.value = values[rng_between(r, 0, 5)];
    return z;
}

static void check_poison(qkv_ctx *ctx, world *w, poison *z, int64_t *n_free) {
    int64_t n;
    float *const row = poisoned_row(w, z, &n);
    memcpy(z->kept, row, (size_t)n * sizeof *row);
    for (int64_t c = 0; c < n; c++)
        if (z->channel < 0 || c == z->channel) row[c] = z->value;
    problem_run(ctx, &w->x);
    check_all(w, z, n_free);
    memcpy(row, z->kept, (size_t)n * sizeof *row);
}

static void poison_everything(qkv_ctx *ctx, int way) {
    rng r = { (uint64_t)way * 1000 + 5 };
    world *w = world_new(way);
    int64_t n_free = 0;
    problem_run(ctx, &w->p);
    for (int n = 0; n < POISONS; n++) {
        poison z = random_poison(&r);
        check_poison(ctx, w, &z, &n_free);
    }
    assert_true(n_free > POISONS * B * H * LQ / 2);
    world_free(w);
}

static void AT13_poison_under_every_way_of_hiding(void **state) {
    (void)state;
    for (int n = 0; (isa = qkv_isa_name(n)); n++)
        for (int threads = 1; threads <= 3; threads += 2) {
            qkv_ctx *ctx = context_on(isa, threads);
            for (int way = 0; way < 2 * WAYS; way++) poison_everything(ctx, way);
            qkv_ctx_free(ctx);
        }
}

/* All that a batch, or a head, may not see is NaN at once. */
static void AT13c_everything_hidden_is_nan(void **state) {
    (void)state;
    for (int n = 0; (isa = qkv_isa_name(n)); n++)
        for (int way = 0; way < 2 * WAYS; way++) {
            qkv_ctx *ctx = context_on(isa, 2);
            world *w = world_new(way);
            problem_run(ctx, &w->p);
            for (int64_t row = 0; row < B * G * LK; row++) {
                bool seen = false;
                const int64_t b = row / (G * LK), g = row / LK % G;
                for (int64_t h = g * GROUP; h < (g + 1) * GROUP; h++)
                    for (int64_t i = 0; i < LQ && !seen; i++) seen = sees(w, b, h, i, row % LK);
                for (int c = 0; c < D && !seen; c++) w->p.k[row * D + c] = NAN;
                for (int c = 0; c < DV && !seen; c++) w->p.v[row * DV + c] = INFINITY;
            }
            problem_run(ctx, &w->x);
            const poison z = { .value = NAN };
            keep_bits("o", &z, w->p.o, w->x.o, n_o(&w->p));
            keep_bits("lse", &z, w->p.lse, w->x.lse, rows_q(&w->p));
            keep_bits("d_q", &z, w->p.d_q, w->x.d_q, n_q(&w->p));
            keep_bits("d_k", &z, w->p.d_k, w->x.d_k, n_k(&w->p));
            keep_bits("d_v", &z, w->p.d_v, w->x.d_v, n_v(&w->p));
            world_free(w);
            qkv_ctx_free(ctx);
        }
}

/* ---- AT12c: rows that see nothing ----------------------------------------------------- */

static bool is_zero(const float *x, int64_t n) {
    for (int64_t c = 0; c < n; c++)
        if (x[c] != 0) return false;
    return true;
}

static void AT12c_rows_and_keys_without_sight(void **state) {
    (void)state;
    int64_t n_empty = 0, n_unseen = 0;
    for (int n = 0; (isa = qkv_isa_name(n)); n++)
        for (int way = 0; way < 2 * WAYS; way++) {
            qkv_ctx *ctx = context_on(isa, 2);
            world *w = world_new(way);
            const problem *p = &w->p;
            problem_run(ctx, &w->p);
            for (int64_t row = 0; row < B * H * LQ; row++) {
                const int64_t b = row / (H * LQ), h = row / LQ % H, i = row % LQ;
                bool any = w->p.d.flags & QKV_SET_Q_LEN && i >= w->q_len[b];
                for (int64_t j = 0; j < LK && !any; j++) any = sees(w, b, h, i, j);
                if (any) continue;
                n_empty++;
                assert_true(is_zero(p->o + row * DV, DV) && !signbit(p->o[row * DV]));
                assert_true(p->lse[row] == -INFINITY);
                assert_true(is_zero(p->d_q + row * D, D));
            }
            for (int64_t row = 0; row < B * G * LK; row++) {
                const int64_t b = row / (G * LK), g = row / LK % G;
                bool any = false;
                for (int64_t h = g * GROUP; h < (g + 1) * GROUP; h++)
                    for (int64_t i = 0; i < LQ && !any; i++) any = sees(w, b, h, i, row % LK);
                if (any) continue;
                n_unseen++;
                assert_true(is_zero(p->d_k + row * D, D) && is_zero(p->d_v + row * DV, DV));
            }
            world_free(w);
            qkv_ctx_free(ctx);
        }
    assert_true(n_empty > 100 && n_unseen > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AT13_poison_under_every_way_of_hiding),
        cmocka_unit_test(AT13c_everything_hidden_is_nan),
        cmocka_unit_test(AT12c_rows_and_keys_without_sight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
