/*
 * Packed sequences with invalid lengths (AT19): every call refuses them with the status and the
 * message written here, and writes nothing; empty sequences are allowed.
 */
#include "attn/attention_world.h"

#include <stdio.h>

/* The two batches of the world, one after the other in arrays of its sizes: rows of all heads. */
static const int64_t cu_q[B + 1] = { 0, LQ - 1, 2 * LQ - 1 };
static const int64_t cu_k[B + 1] = { 0, LK, 2 * LK - 2 };

static void pack_stride(int64_t stride[3], int64_t heads, int64_t dim) {
    stride[0] = 0, stride[1] = dim, stride[2] = heads * dim;
}

static world *fresh_packed(void) {
    world *w = fresh();
    w->d.flags = QKV_SET_CU_SEQLENS;
    w->d.cu_seqlens_q = cu_q, w->d.cu_seqlens_k = cu_k;
    pack_stride(w->d.q_stride, H, D), pack_stride(w->d.o_stride, H, DV);
    pack_stride(w->d.k_stride, G, D), pack_stride(w->d.v_stride, G, DV);
    pack_stride(w->d.lse_stride, H, 1);
    pack_stride(w->g.d_q_stride, H, D), pack_stride(w->g.d_o_stride, H, DV);
    pack_stride(w->g.d_k_stride, G, D), pack_stride(w->g.d_v_stride, G, DV);
    return w;
}

/* Breaks one thing in a fresh world with packed sequences. */
#define REFUSE_PACKED(calls, change, status, text)                                                 \
    do {                                                                                           \
        world *w = fresh_packed();                                                                 \
        change;                                                                                    \
        refuse(w, calls, status, text);                                                            \
    } while (0)

static void refuse_q(int64_t a, int64_t b, int64_t c, const char *text) {
    const int64_t lies[B + 1] = { a, b, c };
    REFUSE_PACKED(EVERY, w->d.cu_seqlens_q = lies, QKV_ERR_SHAPE, text);
}

static void AT19_lengths_that_lie(void **state) {
    (void)state;
    const int64_t lies[B + 1] = { 0, 5, 4 };
    accept(fresh_packed(), EVERY);
    refuse_q(1, 2, 3, "cu_seqlens_q[0] = 1 is not 0");
    refuse_q(-1, 2, 3, "cu_seqlens_q[0] = -1 is not 0");
    refuse_q(0, 2, 1, "cu_seqlens_q[2] = 1 is less than the 2 before it");
    refuse_q(0, -1, 1, "cu_seqlens_q[1] = -1 is less than the 0 before it");
    refuse_q(0, INT64_MIN, INT64_MAX,
             "cu_seqlens_q[1] = -9223372036854775808 is less than the 0 before it");
    refuse_q(0, 4, 5,
             "cu_seqlens_q[1] = 4 is 4 after the one before it, which is greater than len_q = 3");
    refuse_q(0, 3, INT64_MAX,
             "cu_seqlens_q[2] = 9223372036854775807 is 9223372036854775804 after the one before "
             "it, which is greater than len_q = 3");
    REFUSE_PACKED(EVERY, w->d.cu_seqlens_k = lies, QKV_ERR_SHAPE,
                  "cu_seqlens_k[2] = 4 is less than the 5 before it");
}

static void AT19_pointers(void **state) {
    (void)state;
    REFUSE_PACKED(EVERY, w->d.cu_seqlens_q = NULL, QKV_ERR_ARGUMENT,
                  "cu_seqlens_q is NULL, but QKV_SET_CU_SEQLENS is set");
    REFUSE_PACKED(EVERY, w->d.cu_seqlens_k = NULL, QKV_ERR_ARGUMENT,
                  "cu_seqlens_k is NULL, but QKV_SET_CU_SEQLENS is set");
    REFUSE_PACKED(EVERY, w->d.cu_seqlens_k = (const int64_t *)((uintptr_t)cu_k + 4),
                  QKV_ERR_ARGUMENT, "cu_seqlens_k is not aligned to its element, 8 bytes");
    REFUSE_PACKED(FORWARD,
                  (memcpy(w->out.d_q, cu_q, sizeof cu_q), w->o = w->out.d_q,
                   w->d.cu_seqlens_q = (const int64_t *)(const void *)w->out.d_q),
                  QKV_ERR_ARGUMENT, "o, an output, overlaps cu_seqlens_q");
}

static void AT19_strides(void **state) {
    (void)state;
    const char *const rule = "packed sequences have no stride of the batch";
    char text[120];
    for (int n = 0; n < 9; n++) {
        world *w = fresh_packed();
        const struct {
            const char *name;
            int64_t *stride;
            int calls;
        } of[] = {
            { "q", w->d.q_stride, EVERY },        { "k", w->d.k_stride, EVERY },
            { "v", w->d.v_stride, EVERY },        { "o", w->d.o_stride, EVERY },
            { "lse", w->d.lse_stride, EVERY },    { "d_o", w->g.d_o_stride, BACKWARD },
            { "d_q", w->g.d_q_stride, BACKWARD }, { "d_k", w->g.d_k_stride, BACKWARD },
            { "d_v", w->g.d_v_stride, BACKWARD },
        };
        of[n].stride[0] = n % 2 ? -3 : 24;
        snprintf(text, sizeof text, "%s_stride[0] = %d is not 0, %s", of[n].name, n % 2 ? -3 : 24,
                 rule);
        refuse(w, of[n].calls, QKV_ERR_STRIDE, text);
    }
}

static void AT19_lengths_beyond_their_sequence(void **state) {
    (void)state;
    REFUSE_PACKED(EVERY,
                  (w->d.flags |= QKV_SET_KV_LEN, w->lengths[1] = 4, w->d.kv_len = w->lengths),
                  QKV_ERR_SHAPE, "kv_len[1] = 4 is greater than the 3 keys of its sequence");
    REFUSE_PACKED(EVERY, (w->d.flags |= QKV_SET_Q_LEN, w->lengths[0] = 3, w->d.q_len = w->lengths),
                  QKV_ERR_SHAPE, "q_len[0] = 3 is greater than the 2 queries of its sequence");
    REFUSE_PACKED(EVERY, (w->d.flags |= QKV_SET_Q_LEN, w->lengths[0] = -1, w->d.q_len = w->lengths),
                  QKV_ERR_SHAPE, "q_len[0] = -1 is not in [0, 3]");
}

/* Rows of outputs are apart in the arrays as they are, all sequences one after another. */
static void AT19_rows_of_all_sequences(void **state) {
    (void)state;
    REFUSE_PACKED(FORWARD | MERGE | FORWARD_BYTES,
                  (w->d.o_stride[1] = 4 * DV, w->d.o_stride[2] = DV), QKV_ERR_STRIDE,
                  "o_stride[1] = 24 is less than 30, the elements that it steps over: rows would "
                  "overlap");
}

static void AT19_empty_sequences(void **state) {
    (void)state;
    static const int64_t lists[][B + 1] = { { 0, 0, 0 }, { 0, 0, 2 }, { 0, 2, 2 } };
    for (int q = 0; q < 3; q++)
        for (int k = 0; k < 3; k++) {
            world *w = fresh_packed();
            w->d.cu_seqlens_q = lists[q], w->d.cu_seqlens_k = lists[k];
            accept(w, EVERY);
        }
    world *w = fresh_packed(); /* no sequences at all, but the 0 with which they begin */
    w->d.n_batch = 0;
    accept(w, EVERY);
}

/*
 * Keys beyond a sequence are not its own: a row that sees none gets 0, keys that no query sees too.
 */
static void AT19_no_keys_and_no_queries(void **state) {
    (void)state;
    static const int64_t q[B + 1] = { 0, 2, 2 }, k[B + 1] = { 0, 0, 3 };
    world *w = fresh_packed();
    float untouched;
    memset(&untouched, UNTOUCHED, sizeof untouched);
    w->d.cu_seqlens_q = q, w->d.cu_seqlens_k = k;
    accept(w, COMPUTE);
    for (int e = 0; e < 3 * H * DV; e++)
        assert_memory_equal(&w->out.o[e], e < 2 * H * DV ? &(float){ 0 } : &untouched, 4);
    for (int e = 0; e < 3 * H * D; e++)
        assert_memory_equal(&w->out.d_q[e], e < 2 * H * D ? &(float){ 0 } : &untouched, 4);
    for (int e = 0; e < 4 * G * D; e++)
        assert_memory_equal(&w->out.d_k[e], e < 3 * G * D ? &(float){ 0 } : &untouched, 4);
    for (int e = 0; e < 4 * G * DV; e++)
        assert_memory_equal(&w->out.d_v[e], e < 3 * G * DV ? &(float){ 0 } : &untouched, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AT19_lengths_that_lie),
        cmocka_unit_test(AT19_pointers),
        cmocka_unit_test(AT19_strides),
        cmocka_unit_test(AT19_lengths_beyond_their_sequence),
        cmocka_unit_test(AT19_rows_of_all_sequences),
        cmocka_unit_test(AT19_empty_sequences),
        cmocka_unit_test(AT19_no_keys_and_no_queries),
    };
    return cmocka_run_group_tests(tests, make_world_ctx, destroy_world_ctx);
}
