/*
 * Block masks with invalid lists: forward and backward refuse them with the status and the message
 * written here, and write nothing.
 */
#include "attn/attention_world.h"

#include <stdio.h>

/* The world has one block of queries and one of keys in each head. */
static const int64_t offsets[] = { 0, 1 };
static const int32_t lists[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0 };

static world *fresh_blocks(void) {
    world *w = fresh();
    w->d.flags = QKV_SET_BLOCK_MASK;
    w->d.block_len = 64;
    w->d.block_offsets = offsets;
    w->d.block_index = lists;
    return w;
}

#define REFUSE_BLOCKS(calls, change, status, text)                                                 \
    do {                                                                                           \
        world *w = fresh_blocks();                                                                 \
        change;                                                                                    \
        refuse(w, calls, status, text);                                                            \
    } while (0)

static void lengths(void **state) {
    (void)state;
    const int64_t bad[] = { 0, 1, 16, 33, 127, 160, -32, INT64_MIN, INT64_MAX };
    char text[80];
    accept(fresh_blocks(), EVERY);
    for (size_t n = 0; n < sizeof bad / sizeof *bad; n++) {
        snprintf(text, sizeof text, "block_len = %lld is none of 32, 64, 96, 128",
                 (long long)bad[n]);
        REFUSE_BLOCKS(EVERY, w->d.block_len = bad[n], QKV_ERR_ARGUMENT, text);
    }
}

static void addresses(void **state) {
    (void)state;
    REFUSE_BLOCKS(EVERY, w->d.block_offsets = NULL, QKV_ERR_ARGUMENT,
                  "block_offsets is NULL, but QKV_SET_BLOCK_MASK is set");
    REFUSE_BLOCKS(COMPUTE, w->d.block_index = NULL, QKV_ERR_ARGUMENT,
                  "block_index is NULL, but has the shape [1][1][1][1]");
    REFUSE_BLOCKS(COMPUTE, w->d.block_offsets = (const int64_t *)((uintptr_t)offsets + 4),
                  QKV_ERR_ARGUMENT, "block_offsets is not aligned to its element, 8 bytes");
    REFUSE_BLOCKS(COMPUTE, w->d.block_index = (const int32_t *)((uintptr_t)lists + 2),
                  QKV_ERR_ARGUMENT, "block_index is not aligned to its element, 4 bytes");
    REFUSE_BLOCKS(COMPUTE | QUERIES, w->d.block_offsets_stride[1] = -2, QKV_ERR_STRIDE,
                  "block_offsets_stride[1] = -2 is negative");
    REFUSE_BLOCKS(COMPUTE | QUERIES, w->d.block_offsets_stride[0] = INT64_MAX, QKV_ERR_STRIDE,
                  "block_offsets_stride[0] = 9223372036854775807 times 1 overflows the address "
                  "space");
    REFUSE_BLOCKS(FORWARD,
                  (memset(w->out.d_q, 0, 16), w->o = w->out.d_q,
                   w->d.block_index = (const int32_t *)(const void *)w->out.d_q),
                  QKV_ERR_ARGUMENT, "o, an output, overlaps block_index");
    REFUSE_BLOCKS(FORWARD,
                  (memset(w->out.d_q, 0, 16), w->o = w->out.d_q,
                   w->d.block_offsets = (const int64_t *)(const void *)w->out.d_q),
                  QKV_ERR_ARGUMENT, "o, an output, overlaps block_offsets");
}

static void refuse_lists(const int64_t *of, const int32_t *index, const char *text) {
    REFUSE_BLOCKS(COMPUTE, (w->d.block_offsets = of, w->d.block_index = index), QKV_ERR_SHAPE,
                  text);
}

static void lists_that_lie(void **state) {
    (void)state;
    static const int32_t beyond[] = { 0, 1 }, negative[] = { -1 }, twice[] = { 0, 0 };
    static const int32_t least[] = { INT32_MIN }, most[] = { INT32_MAX };
    refuse_lists((const int64_t[]){ -1, 1 }, lists, "block_offsets[0][0][0] = -1 is negative");
    refuse_lists((const int64_t[]){ 3, 2 }, lists,
                 "block_offsets[0][0][1] = 2 is less than the 3 before it");
    refuse_lists((const int64_t[]){ 0, INT64_MIN }, lists,
                 "block_offsets[0][0][1] = -9223372036854775808 is less than the 0 before it");
    refuse_lists((const int64_t[]){ 0, 2 }, beyond, "block_index[1] = 1 is not in [0, 1)");
    refuse_lists((const int64_t[]){ 1, 2 }, beyond, "block_index[1] = 1 is not in [0, 1)");
    refuse_lists((const int64_t[]){ 0, 1 }, negative, "block_index[0] = -1 is not in [0, 1)");
    refuse_lists((const int64_t[]){ 0, 1 }, least, "block_index[0] = -2147483648 is not in [0, 1)");
    refuse_lists((const int64_t[]){ 0, 1 }, most, "block_index[0] = 2147483647 is not in [0, 1)");
    refuse_lists((const int64_t[]){ 0, 2 }, twice,
                 "block_index[1] = 0 is not greater than the 0 before it");
    REFUSE_BLOCKS(COMPUTE, w->d.block_offsets = ((const int64_t[]){ 0, INT64_MAX }), QKV_ERR_STRIDE,
                  "block_index_stride[3] = 1 times 9223372036854775806 overflows the address "
                  "space");
}

/* Every batch and head has a list of its own, and the last of them lies. */
static void lists_of_their_own(void **state) {
    (void)state;
    int64_t own[B * H * 2];
    for (int n = 0; n < B * H * 2; n++) own[n] = n / 2 + n % 2;
    world *w = fresh_blocks();
    w->d.block_offsets = own;
    w->d.block_offsets_stride[0] = 2 * H, w->d.block_offsets_stride[1] = 2;
    accept(w, COMPUTE);
    own[B * H * 2 - 1] = 6;
    memset(&w->out, UNTOUCHED, sizeof w->out);
    refuse(w, COMPUTE, QKV_ERR_SHAPE, "block_offsets[1][3][1] = 6 is less than the 7 before it");
}

static void nothing_listed(void **state) {
    (void)state;
    world *w = fresh_blocks();
    w->d.block_offsets = (const int64_t[]){ 0, 0 };
    w->d.block_index = NULL; /* it has no elements */
    accept(w, COMPUTE);
    for (int e = 0; e < B * H * LQ * DV; e++) assert_true(w->out.o[e] == 0);
    for (int e = 0; e < B * G * LK * D; e++) assert_true(w->out.d_k[e] == 0);
    for (int e = 0; e < B * H * LQ * D; e++) assert_true(w->out.d_q[e] == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths),        cmocka_unit_test(addresses),
        cmocka_unit_test(lists_that_lie), cmocka_unit_test(lists_of_their_own),
        cmocka_unit_test(nothing_listed),
    };
    return cmocka_run_group_tests(tests, make_world_ctx, destroy_world_ctx);
}
