/*
 * ONNX's Attention (qkv/onnx.h) on random nodes: against the text of the specification in long
 * double, within the bounds of the header, and against itself: rank 3 and rank 4, threads, outputs
 * and workspaces change no bit; hidden numbers change nothing.
 */
#include "attn/every_isa.h"
#include "onnx/onnx_node.h"

static const uint64_t seed = 20260824;

static void describe(const onnx_node *x, int turn) {
    const qkv_onnx_attention_node *n = &x->node;
    const onnx_sizes s = onnx_sizes_of(n);
    print_message(
        "turn %d on %s: opset %d, rank %d, types %d %d, mask %d of rank %d, B %lld, Hq %lld, Hkv "
        "%lld, Sq %lld, Sk %lld, P %lld, D %lld, Dv %lld, causal %d, mode %d, softmax %d\n",
        turn, isa, n->opset, n->Q.rank, (int)n->Q.type, (int)n->V.type, (int)n->attn_mask.type,
        n->attn_mask.rank, (long long)s.b, (long long)s.hq, (long long)s.hkv, (long long)s.sq,
        (long long)s.sk, (long long)s.p, (long long)s.d, (long long)s.dv, (int)n->is_causal,
        (int)n->qk_matmul_output_mode, (int)n->softmax_precision);
}

static void must(qkv_status status, const qkv_ctx *ctx, const onnx_node *x, int turn) {
    if (status == QKV_OK) return;
    describe(x, turn);
    fail_msg("%s", qkv_ctx_message(ctx));
}

/* ---- Against the specification --------------------------------------------------------------- */

/* The largest |v| is not kept by the reference: the classes of 16-bit products add 2^-8 of it. */
static double largest_value(const qkv_onnx_attention_node *n) {
    double largest = 0;
    for (int64_t i = 0; i < onnx_count(&n->V); i++)
        largest = fmax(largest, fabs(onnx_get(&n->V, i)));
    for (int64_t i = 0; n->past_value.type && i < onnx_count(&n->past_value); i++)
        largest = fmax(largest, fabs(onnx_get(&n->past_value, i)));
    return largest;
}

static double share_of_numbers(const onnx_node *x, int which, const double *exact,
                               const double *bound, double more) {
    qkv_onnx_tensor t = which ? x->shapes.qk_matmul_output : x->shapes.Y;
    double worst = 0;
    t.data = x->out[which];
    for (int64_t i = 0; i < onnx_count(&t); i++)
        worst = fmax(worst, onnx_share(t.type, onnx_get(&t, i), exact[i], bound[i] + more));
    return worst;
}

/* Past and new keys, bit by bit. */
static void check_present(const onnx_node *x, int turn) {
    const qkv_onnx_attention_node *n = &x->node;
    const onnx_sizes s = onnx_sizes_of(n);
    for (int value = 0; value < 2; value++) {
        const qkv_onnx_tensor *const new = value ? &n->V : &n->K;
        const qkv_onnx_tensor *const past = value ? &n->past_value : &n->past_key;
        const size_t bytes = onnx_bytes(new->type);
        const int64_t dim = value ? s.dv : s.d;
        const char *got = x->out[1 + value];
        for (int64_t at = 0; at < s.b * s.hkv * s.t * dim; at++) {
            const int64_t c = at % dim, j = at / dim % s.t, g = at / dim / s.t % s.hkv;
            const int64_t b = at / dim / s.t / s.hkv;
            const char *from =
                j < s.p
                    ? (const char *)past->data +
                          (size_t)onnx_at(4, s.hkv, s.p, dim, b, g, j, c) * bytes
                    : (const char *)new->data +
                          (size_t)onnx_at(n->Q.rank, s.hkv, s.sk, dim, b, g, j - s.p, c) * bytes;
            if (memcmp(got + (size_t)at * bytes, from, bytes) != 0) {
                describe(x, turn);
                fail_msg("present_%s[%lld] is another number", value ? "value" : "key",
                         (long long)at);
            }
        }
    }
}

static struct {
    double y_forward, y_loop, y_double, qk;
    int n_forward, n_loop, n_qk, n_empty;
} seen;

static void check_results(const onnx_node *x, const onnx_expected *e, double largest, int turn) {
    const bool forward = onnx_by_forward(&x->node);
    const bool products = forward && x->node.Q.type == QKV_ONNX_BFLOAT16 && !x->node.arithmetic;
    const double y = share_of_numbers(x, 0, e->y, forward ? e->y_forward : e->y_loop,
                                      products ? 0x1p-8 * largest : 0);
    const double qk = x->has_out[3] ? share_of_numbers(x, 3, e->qk, e->qk_loop, 0) : 0;
    if (!(y <= 1) || !(qk <= 1)) {
        describe(x, turn);
        fail_msg("Y has %g, qk_matmul_output %g of the bound", y, qk);
    }
    if (x->has_out[1]) check_present(x, turn);
    double *const worst = forward ? &seen.y_forward : &seen.y_loop;
    *worst = fmax(*worst, y);
    if (x->shapes.Y.type == QKV_ONNX_DOUBLE) seen.y_double = fmax(seen.y_double, y);
    seen.qk = fmax(seen.qk, qk);
}

/* On each instruction set, or under sanitizers on one. */
static void check_node(onnx_node *x, int turn) {
    onnx_expected e = onnx_reference(&x->node);
    const double largest = largest_value(&x->node);
    for (isa_at = 0; (isa = qkv_isa_name(isa_at)); isa_at++) {
        if (!takes_turn(isa_at, turn)) continue;
        qkv_ctx *ctx = context_on(isa, 2);
        for (int k = 0; k < ONNX_OUTPUTS; k++) memset(x->out[k], 0xA5, x->out_bytes[k]);
        must(onnx_call(ctx, x, NULL), ctx, x, turn);
        check_results(x, &e, largest, turn);
        qkv_ctx_free(ctx);
    }
    *(onnx_by_forward(&x->node) ? &seen.n_forward : &seen.n_loop) += 1;
    seen.n_qk += x->has_out[3];
    seen.n_empty += e.n_y == 0;
    onnx_expected_free(&e);
}

static void random_nodes_are_those_of_the_specification(void **state) {
    (void)state;
    for (int turn = 0; turn < 600; turn++) {
        rng r = { seed + (uint64_t)turn };
        onnx_node x = onnx_random(&r, turn % 50 == 49 ? 150 : 20);
        x.node.arithmetic = rng_chance(&r, 50) ? QKV_CLASS_F32 : QKV_CLASS_AUTO;
        check_node(&x, turn);
        onnx_free(&x);
    }
    print_message(
        "forward %d nodes, %.3f of the bound; loop %d, %.3f, in double %.3f; qk_matmul_output %d, %.3f; %d "
        "without elements\n",
        seen.n_forward, seen.y_forward, seen.n_loop, seen.y_loop, seen.y_double, seen.n_qk, seen.qk,
        seen.n_empty);
    assert_true(seen.n_forward > 200 && seen.n_loop > 200 && seen.n_qk > 200);
}

/* Every stage beyond 1,000 keys. */
static void stages_of_long_rows(void **state) {
    (void)state;
    for (int mode = 0; mode < 4; mode++) {
        rng r = { seed + 7777 + (uint64_t)mode };
        onnx_node x;
        do {
            x = onnx_random(&r, 1500);
            const onnx_sizes s = onnx_sizes_of(&x.node);
            const int64_t work = s.b * s.hq * s.sq * s.t * s.d;
            if (s.t > 1000 && work > 0 && work < 3000000 && s.dv) break;
            onnx_free(&x);
        } while (1);
        x.node.qk_matmul_output_mode = mode;
        x.has_out[3] = true;
        x.node.arithmetic = QKV_CLASS_F32;
        check_node(&x, mode);
        onnx_free(&x);
    }
}

/* ---- Against itself -------------------------------------------------------------------------- */

static void keep(const onnx_node *x, void *kept[ONNX_OUTPUTS]) {
    for (int k = 0; k < ONNX_OUTPUTS; k++) {
        kept[k] = onnx_block(x->out_bytes[k]);
        memcpy(kept[k], x->out[k], x->out_bytes[k]);
        memset(x->out[k], 0x5A, x->out_bytes[k]);
    }
}

static void same_outputs(const onnx_node *x, void *const kept[ONNX_OUTPUTS],
                         const bool which[ONNX_OUTPUTS], const char *what, int turn) {
    for (int k = 0; k < ONNX_OUTPUTS; k++)
        if (which[k] && memcmp(kept[k], x->out[k], x->out_bytes[k]) != 0) {
            describe(x, turn);
            fail_msg("%s: output %d has other bits", what, k);
        }
}

static void drop(void *kept[ONNX_OUTPUTS]) {
    for (int k = 0; k < ONNX_OUTPUTS; k++) free(kept[k]);
}

/* Threads, which outputs are asked for, whose workspace. */
static void what_changes_no_bit(void) {
    qkv_ctx *one = context_on(isa, 1), *four = context_on(isa, 4);
    for (int turn = 0; turn < 120; turn++) {
        rng r = { seed + 100000 + (uint64_t)turn };
        if (!takes_turn(isa_at, turn)) continue;
        onnx_node x = onnx_random(&r, 60);
        void *kept[ONNX_OUTPUTS];
        qkv_call_options call = qkv_call_options_init();
        const bool all[ONNX_OUTPUTS] = { true, x.has_out[1], x.has_out[2], x.has_out[3] };
        const bool only_y[ONNX_OUTPUTS] = { true };
        must(onnx_call(one, &x, NULL), one, &x, turn);
        keep(&x, kept);
        must(onnx_call(four, &x, NULL), four, &x, turn);
        same_outputs(&x, kept, all, "four threads", turn);
        memcpy(x.has_out, only_y, sizeof only_y);
        must(qkv_onnx_attention_workspace(four, &x.node, &call.workspace_bytes), four, &x, turn);
        call.workspace = aligned_alloc(64, (call.workspace_bytes + 127) / 64 * 64);
        memset(call.workspace, 0xFF, call.workspace_bytes); /* NaN */
        must(onnx_call(four, &x, &call), four, &x, turn);
        same_outputs(&x, kept, only_y, "only Y, the caller's workspace", turn);
        memcpy(x.has_out, all, sizeof all);
        memset(call.workspace, 0xFF, call.workspace_bytes);
        must(onnx_call(four, &x, &call), four, &x, turn);
        same_outputs(&x, kept, all, "the caller's workspace", turn);
        free(call.workspace);
        drop(kept);
        onnx_free(&x);
    }
    qkv_ctx_free(one);
    qkv_ctx_free(four);
}

/* Heads of rank 4 in the order of rank 3, and back. */
static void reorder(const void *from, void *to, size_t bytes, bool to_three, int64_t b, int64_t h,
                    int64_t len, int64_t dim) {
    for (int64_t at = 0; at < b * h * len * dim; at++) {
        const int64_t c = at % dim, i = at / dim % len, g = at / dim / len % h,
                      n = at / dim / len / h;
        const int64_t three = onnx_at(3, h, len, dim, n, g, i, c);
        memcpy((char *)to + (size_t)(to_three ? three : at) * bytes,
               (const char *)from + (size_t)(to_three ? at : three) * bytes, bytes);
    }
}

static void make_three(onnx_node *x, const onnx_sizes *s) {
    qkv_onnx_attention_node *n = &x->node;
    qkv_onnx_tensor *const t[] = { &n->Q, &n->K, &n->V };
    const int64_t heads[] = { s->hq, s->hkv, s->hkv }, len[] = { s->sq, s->sk, s->sk };
    const int64_t dim[] = { s->d, s->d, s->dv };
    for (int k = 0; k < 3; k++) {
        const size_t bytes = onnx_bytes(t[k]->type);
        void *moved = onnx_block((size_t)onnx_count(t[k]) * bytes);
        reorder(x->inputs[k], moved, bytes, true, s->b, heads[k], len[k], dim[k]);
        free(x->inputs[k]);
        x->inputs[k] = moved;
        onnx_shape(t[k], t[k]->type, false, s->b, heads[k], len[k], dim[k]);
        t[k]->data = moved;
    }
    n->q_num_heads = s->hq, n->kv_num_heads = s->hkv;
}

static void rank_3_has_the_bits_of_rank_4(void) {
    qkv_ctx *ctx = context_on(isa, 2);
    int n_done = 0;
    for (int turn = 0; turn < 150; turn++) {
        rng r = { seed + 200000 + (uint64_t)turn };
        onnx_node x = onnx_random(&r, 30);
        const onnx_sizes s = onnx_sizes_of(&x.node);
        if (x.node.Q.rank == 4 && takes_turn(isa_at, turn)) {
            void *kept[ONNX_OUTPUTS];
            const size_t bytes = onnx_bytes(x.node.Q.type);
            must(onnx_call(ctx, &x, NULL), ctx, &x, turn);
            keep(&x, kept);
            make_three(&x, &s);
            must(onnx_call(ctx, &x, NULL), ctx, &x, turn);
            void *y = onnx_block(x.out_bytes[0]);
            reorder(x.out[0], y, bytes, false, s.b, s.hq, s.sq, s.dv);
            memcpy(x.out[0], y, x.out_bytes[0]);
            same_outputs(&x, kept, x.has_out, "rank 3", turn);
            free(y);
            drop(kept);
            n_done++;
        }
        onnx_free(&x);
    }
    assert_true(UNDER_SANITIZER || n_done > 60);
    qkv_ctx_free(ctx);
}

/* The first instruction set is the one that the others are held against. */
static void instruction_sets_agree(void) {
    qkv_ctx *first = context_on(qkv_isa_name(0), 1), *ctx = context_on(isa, 2);
    for (int turn = 0; turn < 100; turn++) {
        rng r = { seed + 300000 + (uint64_t)turn };
        if (!takes_turn(isa_at, turn)) continue;
        onnx_node x = onnx_random(&r, 60);
        void *kept[ONNX_OUTPUTS];
        x.node.arithmetic = QKV_CLASS_F32;
        must(onnx_call(first, &x, NULL), first, &x, turn);
        keep(&x, kept);
        must(onnx_call(ctx, &x, NULL), ctx, &x, turn);
        same_outputs(&x, kept, x.has_out, "another instruction set", turn);
        drop(kept);
        onnx_free(&x);
    }
    qkv_ctx_free(first);
    qkv_ctx_free(ctx);
}

/* ---- What is hidden -------------------------------------------------------------------------- */

static void poison(qkv_onnx_type type, void *x, int64_t at, int64_t n) {
    for (int64_t c = 0; c < n; c++) element_set(x, onnx_elem(type), at + c, c % 2 ? NAN : INFINITY);
}

/*
 * Keys and values that no query of their head sees become NaN and infinity: Y and weights keep
 * their bits.
 */
static int poison_hidden(onnx_node *x) {
    const qkv_onnx_attention_node *n = &x->node;
    const onnx_sizes s = onnx_sizes_of(n);
    int n_hidden = 0;
    for (int64_t b = 0; b < s.b; b++)
        for (int64_t g = 0; g < s.hkv; g++)
            for (int64_t j = 0; j < s.t; j++) {
                bool sees = false;
                for (int64_t h = g * (s.hq / s.hkv); h < (g + 1) * (s.hq / s.hkv); h++)
                    for (int64_t i = 0; i < s.sq; i++)
                        sees |= onnx_bias(n, &s, b, h, i, j) != -INFINITY;
                if (sees) continue;
                n_hidden++;
                const int rank = j < s.p ? 4 : n->Q.rank;
                const int64_t len = j < s.p ? s.p : s.sk, row = j < s.p ? j : j - s.p;
                poison(n->K.type, x->inputs[j < s.p ? 4 : 1],
                       onnx_at(rank, s.hkv, len, s.d, b, g, row, 0), s.d);
                poison(n->V.type, x->inputs[j < s.p ? 5 : 2],
                       onnx_at(rank, s.hkv, len, s.dv, b, g, row, 0), s.dv);
            }
    return n_hidden;
}

static void hidden_keys_change_nothing(void) {
    qkv_ctx *ctx = context_on(isa, 2);
    int n_hidden = 0;
    for (int turn = 0; turn < 150; turn++) {
        rng r = { seed + 400000 + (uint64_t)turn };
        if (!takes_turn(isa_at, turn)) continue;
        onnx_node x = onnx_random(&r, 20);
        void *kept[ONNX_OUTPUTS];
        x.has_out[1] = x.has_out[2] = false;
        x.node.qk_matmul_output_mode = turn % 2 ? 2 : 3;
        must(onnx_call(ctx, &x, NULL), ctx, &x, turn);
        keep(&x, kept);
        n_hidden += poison_hidden(&x);
        must(onnx_call(ctx, &x, NULL), ctx, &x, turn);
        same_outputs(&x, kept, x.has_out, "hidden keys", turn);
        drop(kept);
        onnx_free(&x);
    }
    assert_true(UNDER_SANITIZER || n_hidden > 100);
    qkv_ctx_free(ctx);
}

/*
 * All of Q, K and V is NaN: rows that see a key are NaN, the others are 0, in Y and in the weights.
 */
static void rows_are_empty_by_the_mask_alone(void) {
    qkv_ctx *ctx = context_on(isa, 2);
    int n_empty = 0, n_full = 0;
    for (int turn = 0; turn < 150; turn++) {
        rng r = { seed + 500000 + (uint64_t)turn };
        if (!takes_turn(isa_at, turn)) continue;
        onnx_node x = onnx_random(&r, 12);
        const onnx_sizes s = onnx_sizes_of(&x.node);
        qkv_onnx_tensor *const all[] = { &x.node.Q, &x.node.K, &x.node.V, &x.node.past_key,
                                         &x.node.past_value };
        for (int k = 0; k < 5; k++)
            for (int64_t i = 0; all[k]->type && i < onnx_count(all[k]); i++)
                element_set((void *)(uintptr_t)all[k]->data, onnx_elem(all[k]->type), i, NAN);
        x.node.qk_matmul_output_mode = 3;
        x.has_out[3] = true;
        must(onnx_call(ctx, &x, NULL), ctx, &x, turn);
        qkv_onnx_tensor y = x.shapes.Y, qk = x.shapes.qk_matmul_output;
        y.data = x.out[0], qk.data = x.out[3];
        for (int64_t row = 0; row < s.b * s.hq * s.sq; row++) {
            const int64_t i = row % s.sq, h = row / s.sq % s.hq, b = row / s.sq / s.hq;
            bool sees = false;
            for (int64_t j = 0; j < s.t; j++)
                sees |= onnx_bias(&x.node, &s, b, h, i, j) != -INFINITY;
            *(sees ? &n_full : &n_empty) += 1;
            for (int64_t c = 0; c < s.dv; c++) {
                const double got = onnx_get(&y, onnx_at(y.rank, s.hq, s.sq, s.dv, b, h, i, c));
                if (sees ? !isnan(got) : got != 0 || signbit(got)) {
                    describe(&x, turn);
                    fail_msg("row %lld, which sees %s: Y is %g", (long long)row,
                             sees ? "a key" : "none", got);
                }
            }
            for (int64_t j = 0; j < s.t && s.d; j++) {
                const double got = onnx_get(&qk, row * s.t + j);
                const bool key = onnx_bias(&x.node, &s, b, h, i, j) != -INFINITY;
                if (key ? !isnan(got) : got != 0) {
                    describe(&x, turn);
                    fail_msg("row %lld, key %lld: the weight is %g", (long long)row, (long long)j,
                             got);
                }
            }
        }
        onnx_free(&x);
    }
    assert_true(UNDER_SANITIZER || (n_empty > 50 && n_full > 50));
    qkv_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_nodes_are_those_of_the_specification),
        cmocka_unit_test(stages_of_long_rows),
        PROPERTY(what_changes_no_bit),
        PROPERTY(rank_3_has_the_bits_of_rank_4),
        PROPERTY(instruction_sets_agree),
        PROPERTY(hidden_keys_change_nothing),
        PROPERTY(rows_are_empty_by_the_mask_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
