/*
 * What qkv_attention_explain says is what runs: random problems are computed with kernels that
 * count their calls and classify, row by row, what they are given, and with an executor that counts
 * its tasks.
 *     unit_attention_explain [SEED]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attn/ctx.h"
#include "attn/decode_case.h"
#include "check/rules.h"
#include "core/ints.h"
#include "explained.h"
#include "kernels/table.h"

static uint64_t seed = 20250601;

/* ---- What runs ------------------------------------------------------------------------------- */

static struct ran {
    int64_t blocks, small, refused; /* calls; those of attend_small that were handed back */
    int64_t keys;                   /* of bwd.keys */
    int64_t full, partial;          /* pieces */
    int64_t n_keys;                 /* that there are: set before a decode call */
    int tasks;                      /* the most that the executor was given at once */
} ran;

static const qkvi_kernels *real;

static bool sees(const qkvi_attend *a, int i, int64_t from, int64_t to, bool all) {
    const int64_t begin = a->scratch->begin[i], end = a->scratch->end[i];
    return all ? begin <= from && end >= to : begin < end && begin < to && end > from;
}

static void counting_block(const qkvi_attend *a) {
    int64_t last = 0;
    for (int i = 0; i < a->n_queries; i++)
        if (a->scratch->end[i] > last) last = a->scratch->end[i];
    for (int i0 = 0; i0 < a->n_queries; i0 += real->mr)
        for (int64_t j = 0; j < last; j += QKVI_PANEL) {
            bool any = false, all = true;
            for (int i = i0; i < i0 + real->mr && i < a->n_queries; i++) {
                any |= sees(a, i, j, j + QKVI_PANEL, false);
                all &= sees(a, i, j, j + QKVI_PANEL, true);
            }
            ran.full += all;
            ran.partial += any && !all;
        }
    ran.blocks++;
    real->attend->block(a);
}

static bool counting_small(const qkvi_attend_small *a) {
    const bool done = real->attend->small(a);
    ran.small++;
    ran.refused += !done;
    return done;
}

static void counting_keys(const struct qkvi_bwd_block *a) {
    bool all = true;
    for (int i = 0; i < a->n_queries; i++) all &= a->begin[i] == 0 && a->end[i] == a->n_keys;
    ran.keys++;
    ran.full += all;
    ran.partial += !all;
    real->bwd->keys(a);
}

static void counting_split(const qkvi_decode *a) {
    bool all = true, any = false;
    for (int r = 0; r < a->n_rows; r++) {
        all &= a->rows[r].begin <= a->first_key && a->rows[r].end >= a->end_key;
        any |= a->rows[r].begin < a->end_key && a->rows[r].end > a->first_key;
    }
    const bool whole = a->first_key % QKVI_DECODE_SPLIT == 0 &&
                       (a->end_key % QKVI_DECODE_SPLIT == 0 || a->end_key == ran.n_keys);
    assert_true(any);
    ran.full += all && whole;
    ran.partial += !(all && whole);
    real->decode->split(a);
}

static void counting_executor(void *user, int n_tasks, void (*task)(void *, int), void *argument) {
    (void)user;
    if (n_tasks > ran.tasks) ran.tasks = n_tasks;
    for (int n = 0; n < n_tasks; n++) task(argument, n);
}

static qkv_ctx *counting_context(const char *on, int n_threads, qkvi_kernels *counting) {
    qkv_ctx *ctx = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.isa = on;
    options.executor = (qkv_executor){ counting_executor, n_threads, NULL };
    assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
    real = ctx->kernels;
    static qkvi_attend_kernels attend;
    static qkvi_bwd_kernels bwd;
    static qkvi_decode_kernels decode;
    *counting = *real;
    attend = *real->attend, bwd = *real->bwd, decode = *real->decode;
    attend.block = counting_block;
    attend.small = counting_small;
    bwd.keys = counting_keys;
    decode.split = counting_split;
    counting->attend = &attend, counting->bwd = &bwd, counting->decode = &decode;
    ctx->kernels = counting;
    return ctx;
}

/* ---- One problem ----------------------------------------------------------------------------- */

#define SAME(a, b)                                                                                 \
    do {                                                                                           \
        if ((int64_t)(a) != (int64_t)(b))                                                          \
            fail_msg("%s\n%s: %s = %lld, %s = %lld", c->text, qkv_ctx_isa(ctx), #a,                \
                     (long long)(a), #b, (long long)(b));                                          \
    } while (0)

/* Exactly so much workspace is enough, and a byte less is not. */
static qkv_call_options workspace(size_t bytes, void **memory) {
    qkv_call_options call = qkv_call_options_init();
    call.workspace_bytes = bytes;
    call.workspace = *memory = aligned_alloc(64, bytes / 64 * 64 + 64);
    assert_non_null(*memory);
    return call;
}

/* Pieces of all heads that attend_block does: those of each sequence are its own. */
static int64_t all_pieces(const qkv_attention_desc *d) {
    int64_t n = 0;
    for (int64_t b = 0; b < d->n_batch; b++)
        n += (layout_rows(d, 'q', b) + real->mr - 1) / real->mr *
             ((layout_rows(d, 'k', b) + QKVI_PANEL - 1) / QKVI_PANEL);
    return n * d->n_heads;
}

static void check_forward(qkv_ctx *ctx, const check_case *c, const outputs *x) {
    const qkv_attention_desc *d = &c->d;
    const qkv_attention_plan plan = explain(ctx, d, QKV_PASS_FORWARD);
    const int64_t group = d->n_kv_heads ? d->n_heads / d->n_kv_heads : 0;
    void *memory;
    qkv_call_options call = workspace(plan.workspace_bytes, &memory);
    memset(&ran, 0, sizeof ran);
    if (qkv_attention_forward(ctx, d, c->q.data, c->k.data, c->v.data, x->o.data, x->lse.data,
                              &call) != QKV_OK)
        fail_msg("%s: %s", c->text, qkv_ctx_message(ctx));
    if (call.workspace_bytes > 0) {
        call.workspace_bytes--;
        assert_int_equal(qkv_attention_forward(ctx, d, c->q.data, c->k.data, c->v.data, x->o.data,
                                               x->lse.data, &call),
                         QKV_ERR_ARGUMENT);
    }
    free(memory);
    if (strcmp(plan.kernel, "none") == 0) {
        SAME(ran.blocks + ran.small, 0);
        SAME(plan.n_threads, 0);
        return;
    }
    SAME(plan.n_threads, ran.tasks ? ran.tasks : 1); /* a single task needs no executor */
    SAME(plan.own_heads + plan.shared_heads, d->n_batch * d->n_kv_heads);
    if (ran.refused) return; /* a row that is not finite: both kernels ran */
    SAME(plan.small_heads * group, ran.small);
    SAME(plan.pieces_full, ran.full);
    SAME(plan.pieces_partial, ran.partial);
    const int64_t heads = d->n_batch * d->n_heads - plan.small_heads * group;
    if (plan.small_heads == 0 && plan.query_block % real->mr == 0)
        SAME(plan.pieces_full + plan.pieces_partial + plan.pieces_hidden, all_pieces(d));
    SAME(strstr(plan.kernel, "attend_small") != NULL, plan.small_heads > 0);
    SAME(strstr(plan.kernel, "attend_block") != NULL, heads > 0);
}

/* A block of queries and keys of the backward pass. */
typedef struct meeting {
    int64_t b, i0, i1, j0, j1;
} meeting;

/* Does position let some pair of the block meet, and does it let all? */
static bool position_shows(const qkv_attention_desc *d, const meeting *m, bool *all) {
    qkv_attention_desc position = *d;
    bool any = false;
    position.flags &= ~(uint32_t)(QKV_SET_MASK | QKV_SET_SEGMENTS | QKV_SET_BLOCK_MASK);
    *all = true;
    for (int64_t i = m->i0; i < m->i1; i++)
        for (int64_t j = m->j0; j < m->j1; j++) {
            const bool sees = rule_sees(&position, m->b, 0, i, j);
            any |= sees;
            *all &= sees;
        }
    return any;
}

/*
 * Is a key of the block of 256 in a list of its queries? What hides the rest of them plays no part.
 */
static bool lists_show(const qkv_attention_desc *d, const meeting *m, int64_t h) {
    if (!(d->flags & QKV_SET_BLOCK_MASK)) return true;
    const int64_t len = d->block_len, *const lists = d->block_offsets +
                                                     m->b * d->block_offsets_stride[0] +
                                                     h * d->block_offsets_stride[1];
    for (int64_t n = lists[m->i0 / len]; n < lists[(m->i1 - 1) / len + 1]; n++) {
        const int64_t key = d->block_index[n] * len;
        if (key < m->j0 + QKVI_BWD_KEYS && key + len > m->j0) return true;
    }
    return false;
}

/* Blocks that have a pair by position alone, and those of them that lists leave. */
typedef struct meetings {
    int64_t full, partial, full_left, partial_left;
} meetings;

static void count_meeting(const qkv_attention_desc *d, const meeting *m, meetings *n) {
    bool all;
    if (!position_shows(d, m, &all)) return;
    for (int64_t h = 0; h < d->n_heads; h++) {
        const bool left = lists_show(d, m, h);
        n->full += all;
        n->partial += !all;
        n->full_left += all && left;
        n->partial_left += !all && left;
    }
}

static meetings meetings_of(const qkv_attention_desc *d) {
    meetings n = { 0, 0, 0, 0 };
    for (int64_t b = 0; b < d->n_batch; b++) {
        const int64_t queries = layout_queries(d, b);
        int64_t keys = layout_keys(d, b);
        if (d->flags & QKV_SET_MASK && d->mask_len_k > 1) keys = qkvi_min_i64(keys, d->mask_len_k);
        for (int64_t i = 0; i < queries; i += QKVI_BWD_QUERIES)
            for (int64_t j = 0; j < keys; j += QKVI_BWD_KEYS) {
                const meeting m = { b, i, qkvi_min_i64(i + QKVI_BWD_QUERIES, queries), j,
                                    qkvi_min_i64(j + QKVI_BWD_KEYS, keys) };
                count_meeting(d, &m, &n);
            }
    }
    return n;
}

static void check_backward(qkv_ctx *ctx, const check_case *c, const outputs *x) {
    const qkv_attention_desc *d = &c->d;
    const qkv_attention_plan plan = explain(ctx, d, QKV_PASS_BACKWARD);
    const qkv_attention_grads grads = outputs_grads(c, x);
    void *memory;
    const qkv_call_options call = workspace(plan.workspace_bytes, &memory);
    memset(&ran, 0, sizeof ran);
    if (qkv_attention_backward(ctx, d, c->q.data, c->k.data, c->v.data, x->o.data, x->lse.data,
                               &grads, &call) != QKV_OK)
        fail_msg("%s: %s", c->text, qkv_ctx_message(ctx));
    free(memory);
    SAME(plan.n_threads, ran.tasks ? ran.tasks : plan.n_tasks > 0);
    if (strcmp(plan.kernel, "none") == 0) {
        SAME(ran.keys, 0);
        return;
    }
    const meetings n = meetings_of(d);
    SAME(plan.pieces_full, n.full); /* explain counts by position */
    SAME(plan.pieces_partial, n.partial);
    SAME(ran.full, n.full_left);
    SAME(ran.partial, n.partial_left);
}

static void run_case(const char *on, const check_case *c, int n_threads) {
    qkvi_kernels counting;
    qkv_ctx *ctx = counting_context(on, n_threads, &counting);
    outputs x = outputs_new(c);
    check_forward(ctx, c, &x);
    check_backward(ctx, c, &x);
    outputs_free(&x);
    qkv_ctx_free(ctx);
}

static void one_case(const char *on, uint64_t case_seed) {
    check_case c;
    rng r = { case_seed };
    case_make(&c, case_seed);
    run_case(on, &c, (int)rng_between(&r, 1, 5));
    case_free(&c);
}

static void the_plan_is_what_runs(void **state) {
    (void)state;
    for (int n = 0; qkv_isa_name(n); n++)
        for (int turn = 0; turn < 400; turn++)
            if (takes_turn(n, turn)) one_case(qkv_isa_name(n), seed + (uint64_t)turn);
}

enum { MOST_ROWS = 400 / 32 + 2, MOST_COLUMNS = 1500 / 32 + 1 };

/* A list for each head and batch of tenths of the blocks: whole pieces are in none. */
static void list_few_blocks(rng *r, qkv_attention_desc *d) {
    static int64_t offsets[2 * 4 * MOST_ROWS];
    static int32_t index[2 * 4 * MOST_ROWS * MOST_COLUMNS];
    d->block_len = 32 * rng_between(r, 1, 4);
    const int64_t rows = qkvi_ceil_div(d->len_q, d->block_len);
    const int64_t columns = qkvi_ceil_div(d->len_k, d->block_len);
    int64_t n = 0, *next = offsets;
    for (int64_t list = 0; list < d->n_batch * d->n_heads; list++) {
        for (int64_t row = 0; row < rows; row++) {
            *next++ = n;
            for (int64_t block = 0; block < columns; block++)
                if (rng_chance(r, 10)) index[n++] = (int32_t)block;
        }
        *next++ = n;
    }
    d->flags |= QKV_SET_BLOCK_MASK;
    d->block_offsets = offsets;
    d->block_index = index;
    d->block_offsets_stride[1] = rows + 1;
    d->block_offsets_stride[0] = d->n_heads * (rows + 1);
}

static void lists_leave_pieces_out(void **state) {
    (void)state;
    rng r = { seed };
    for (int n = 0; qkv_isa_name(n); n++)
        for (int turn = 0; turn < 20; turn++) {
            if (!takes_turn(n, turn)) continue;
            check_case c;
            qkv_attention_desc d;
            qkv_attention_desc_contiguous(&d, 2, 4, 2, rng_between(&r, 1, 400),
                                          rng_between(&r, 200, 1500), 8, 8);
            d.flags = turn % 3 == 0 ? QKV_SET_CAUSAL : turn % 3 == 1 ? QKV_SET_WINDOW : 0;
            d.window_left = d.window_right = 300;
            list_few_blocks(&r, &d);
            case_dense(&c, &d, seed + (uint64_t)turn, false);
            case_seal(&c);
            run_case(qkv_isa_name(n), &c, (int)rng_between(&r, 1, 5));
            case_free(&c);
        }
}

static bool is_mask(int rule) {
    return rule == RULE_BOOL || rule == RULE_BITS || rule == RULE_ADDED;
}

/* Every rule with every rule; kv_len is the same for all, so that the end of the keys is known. */
static void the_decode_plan_is_what_runs(void **state) {
    (void)state;
    rng r = { seed };
    for (int n = 0; qkv_isa_name(n); n++)
        for (int turn = 0; turn < RULES * RULES; turn++) {
            const int a = turn % RULES, b = turn / RULES;
            if (a != b && is_mask(a) && is_mask(b)) continue; /* there is one mask */
            if (!takes_turn(n, turn)) continue;
            qkvi_kernels counting;
            qkv_ctx *ctx = counting_context(qkv_isa_name(n), (int)rng_between(&r, 1, 5), &counting);
            decode_case *c = malloc(sizeof *c);
            assert_non_null(c);
            *c = decode_case_new(&r, a, b, 3000);
            decode_case_rules(c, &r, a, b);
            qkv_attention_desc *d = &c->p.d;
            c->kv_len[1] = c->kv_len[0];
            const qkv_attention_plan plan = explain(ctx, d, QKV_PASS_DECODE);
            const qkv_kv_view view = decode_view(c, turn % 2);
            void *memory;
            const qkv_call_options call = workspace(plan.workspace_bytes, &memory);
            memset(&ran, 0, sizeof ran);
            ran.n_keys = d->flags & QKV_SET_KV_LEN ? c->kv_len[0] : d->len_k;
            if (qkv_attention_decode(ctx, d, c->p.q, &view, c->p.o, c->p.lse, &call) != QKV_OK)
                fail_msg("%s", qkv_ctx_message(ctx));
            if (plan.pieces_full != ran.full || plan.pieces_partial != ran.partial ||
                plan.n_threads != (ran.tasks ? ran.tasks : 1))
                fail_msg("%s, %s: %lld full, %lld partial, %d threads instead of %lld, %lld, %d",
                         rule_names[a], rule_names[b], (long long)ran.full, (long long)ran.partial,
                         ran.tasks, (long long)plan.pieces_full, (long long)plan.pieces_partial,
                         plan.n_threads);
            free(memory);
            decode_case_free(c);
            free(c);
            qkv_ctx_free(ctx);
        }
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_is_what_runs),
        cmocka_unit_test(lists_leave_pieces_out),
        cmocka_unit_test(the_decode_plan_is_what_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
