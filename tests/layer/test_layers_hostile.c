/*
 * Invalid arguments of qkv/layers.h: arrays that overlap, wholly and by one element at either end;
 * sizes, indices, numbers and structs out of their range; panels of another layer. Each refusal has
 * its status and message, and no byte of any array has changed. NULL is in tests/null.
 */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/layers.h"

#include "make_ctx.h"

enum { ROWS = 3, D = 4, SLOT = 4096, MOST = 8, PACKED = 64 + 4 * D * 32 };

static qkv_ctx *ctx;
static _Alignas(64) char block[MOST * SLOT]; /* a slot for each array of a call */

static void refused(qkv_status status, qkv_status wanted, const char *text) {
    if (status != wanted || !strstr(qkv_ctx_message(ctx), text))
        fail_msg("%s: %s; wanted %s: %s", qkv_status_name(status), qkv_ctx_message(ctx),
                 qkv_status_name(wanted), text);
}

static void accepted(qkv_status status) {
    if (status != QKV_OK) fail_msg("%s: %s", qkv_status_name(status), qkv_ctx_message(ctx));
}

/* ---- Overlap --------------------------------------------------------------------------------- */

/* Arrays of a call in 32-bit words; "i": read, "o": written; same: two of them that may be one. */
typedef struct layer_call {
    const char *name;
    qkv_status (*make)(void **p);
    const char *kinds;
    int words[MOST];
    int same[2];
} layer_call;

static qkv_linear_desc linear(void) { return qkv_linear_desc_init(ROWS, D, D); }

static qkv_status forward(void **p) {
    const qkv_linear_desc desc = linear();
    return qkv_linear_forward(ctx, &desc, p[0], p[1], p[2], p[3]);
}
static qkv_status backward(void **p) {
    const qkv_linear_desc desc = linear();
    return qkv_linear_backward(ctx, &desc, p[0], p[1], p[2], p[3], p[4], p[5]);
}
static qkv_status act_forward(void **p) {
    return qkv_activation_forward(ctx, QKV_ACTIVATION_RELU, ROWS, D, p[0], p[1]);
}
static qkv_status act_backward(void **p) {
    return qkv_activation_backward(ctx, QKV_ACTIVATION_RELU, ROWS, D, p[0], p[1], p[2]);
}
static qkv_status norm_forward(void **p) {
    return qkv_layer_norm_forward(ctx, ROWS, D, 1e-5f, p[0], p[1], p[2], p[3], p[4]);
}
static qkv_status norm_backward(void **p) {
    return qkv_layer_norm_backward(ctx, ROWS, D, p[0], p[1], p[2], p[3], p[4], p[5], p[6]);
}
static qkv_status rows_add(void **p) { return qkv_rows_add(ctx, ROWS, D, p[0], p[1]); }
static qkv_status gather(void **p) {
    const qkv_embedding_desc desc = qkv_embedding_desc_init(ROWS, 2, D, p[0]);
    return qkv_embedding_forward(ctx, &desc, p[1], p[2]);
}
static qkv_status scatter(void **p) {
    const qkv_embedding_desc desc = qkv_embedding_desc_init(ROWS, 2, D, p[0]);
    return qkv_embedding_backward(ctx, &desc, p[1], p[2]);
}
static qkv_status cross_entropy(void **p) {
    double loss;
    return qkv_cross_entropy(ctx, ROWS, D, p[0], 0, p[1], p[2], &loss, NULL);
}
static qkv_status adamw(void **p) {
    const qkv_adamw_options options = qkv_adamw_options_init(0.1);
    const qkv_adamw_array arrays[] = { { D, p[0], p[1], p[2], p[3], 1 },
                                       { ROWS, p[4], p[5], p[6], p[7], 0 } };
    return qkv_adamw_step(ctx, &options, 1, 2, arrays, sizeof *arrays, NULL);
}

#define X ROWS *D
#define W D *D
#define NO                                                                                         \
    { -1, -1 }
static const layer_call calls[] = {
    { "linear forward", forward, "iiio", { X, W, D, X }, NO },
    { "linear backward", backward, "iiiooo", { X, W, X, X, W, D }, NO },
    { "activation forward", act_forward, "io", { X, X }, { 0, 1 } },
    { "activation backward", act_backward, "iio", { X, X, X }, { 1, 2 } },
    { "norm forward", norm_forward, "iiioo", { X, D, D, X, 2 * ROWS }, { 0, 3 } },
    { "norm backward", norm_backward, "iiiiooo", { X, 2 * ROWS, D, X, X, D, D }, { 3, 4 } },
    { "add", rows_add, "io", { X, X }, NO },
    { "gather", gather, "iio", { ROWS, 2 * D, X }, NO },
    { "scatter", scatter, "iio", { ROWS, X, 2 * D }, NO },
    { "cross-entropy", cross_entropy, "iio", { ROWS, X, X }, { 1, 2 } },
    { "AdamW", adamw, "ioooiooo", { D, D, D, D, ROWS, ROWS, ROWS, ROWS }, NO },
};

static void set_apart(void *p[MOST]) {
    memset(block, 0, sizeof block);
    for (int i = 0; i < MOST; i++) p[i] = block + i * SLOT + SLOT / 2;
}

/* Array i begins `words` after array j. */
static void try_at(const layer_call *call, int i, int j, int words, int overlaps) {
    static char before[sizeof block];
    void *p[MOST];
    set_apart(p);
    p[i] = (char *)p[j] + 4 * words;
    memcpy(before, block, sizeof before);
    const qkv_status status = call->make(p);
    if (overlaps != (status == QKV_ERR_ARGUMENT && strstr(qkv_ctx_message(ctx), "overlaps")))
        fail_msg("%s: array %d at array %d and %d words: %s: %s", call->name, i, j, words,
                 qkv_status_name(status), qkv_ctx_message(ctx));
    if (overlaps) assert_memory_equal(block, before, sizeof before);
}

static void outputs_overlap_nothing(void **state) {
    (void)state;
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        const layer_call *const call = &calls[c];
        for (int i = 0; call->kinds[i]; i++)
            for (int j = 0; call->kinds[j]; j++) {
                if (i == j || (call->kinds[i] == 'i' && call->kinds[j] == 'i')) continue;
                const int same = (i == call->same[0] && j == call->same[1]) ||
                                 (j == call->same[0] && i == call->same[1]);
                try_at(call, i, j, 0, !same);
                try_at(call, i, j, call->words[j] - 1, 1);
                try_at(call, i, j, 1 - call->words[i], 1);
                try_at(call, i, j, call->words[j], 0);
                try_at(call, i, j, -call->words[i], 0);
            }
    }
}

static void arrays_are_aligned_to_their_elements(void **state) {
    (void)state;
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (int i = 0; calls[c].kinds[i]; i++) {
            void *p[MOST];
            set_apart(p);
            p[i] = (char *)p[i] + 2;
            refused(calls[c].make(p), QKV_ERR_ARGUMENT, "is not aligned to its element, 4 bytes");
        }
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

static float x[W + X], y[W + X], w[W], more[W], least[W];

static void sizes_are_bounded(void **state) {
    (void)state;
    const int64_t bad[] = { -1, INT64_MIN, (int64_t)1 << 31, INT64_MAX };
    double loss;
    for (int i = 0; i < 4; i++) {
        const qkv_status status = bad[i] < 0 ? QKV_ERR_SHAPE : QKV_ERR_LIMIT;
        const char *const text = bad[i] < 0 ? "is less than" : "is greater than 2147483647";
        for (int field = 0; field < 3; field++) {
            qkv_linear_desc l = linear();
            *(int64_t *[]){ &l.n_rows, &l.n_in, &l.n_out }[field] = bad[i];
            refused(qkv_linear_forward(ctx, &l, x, w, NULL, y), status, text);
            refused(qkv_linear_backward(ctx, &l, x, w, x, y, NULL, NULL), status, text);
            qkv_embedding_desc e = qkv_embedding_desc_init(0, 1, 1, NULL);
            *(int64_t *[]){ &e.n_rows, &e.n_entries, &e.n }[field] = bad[i];
            refused(qkv_embedding_forward(ctx, &e, x, y), status, text);
        }
        refused(qkv_rows_add(ctx, bad[i], 1, x, y), status, text);
        refused(qkv_rows_add(ctx, 1, bad[i], x, y), status, text);
        refused(qkv_cross_entropy(ctx, 1, bad[i], NULL, 0, x, y, &loss, NULL), status, text);
    }
    qkv_linear_desc l = linear();
    l.n_in = 0;
    refused(qkv_linear_forward(ctx, &l, x, w, NULL, y), QKV_ERR_SHAPE, "n_in = 0 is less than 1");
    refused(qkv_dropout(ctx, 1, 0, 0, 0, 0, x), QKV_ERR_SHAPE, "n = 0 is less than 1");
}

static void arrays_fit_the_address_space(void **state) {
    (void)state;
    qkv_linear_desc l = qkv_linear_desc_init(INT32_MAX, INT32_MAX, 1);
    refused(qkv_linear_forward(ctx, &l, x, w, NULL, y), QKV_ERR_LIMIT,
            "x [2147483647][2147483647] does not fit the address space");
    refused(qkv_rows_add(ctx, INT32_MAX, INT32_MAX, x, y), QKV_ERR_LIMIT, "does not fit");
    size_t bytes = 7;
    l = qkv_linear_desc_init(1, INT32_MAX, INT32_MAX);
    refused(qkv_linear_packed_bytes(ctx, &l, QKV_PASS_FORWARD, &bytes), QKV_ERR_LIMIT,
            "does not fit the address space");
    assert_int_equal(bytes, 7);
    const qkv_adamw_options options = qkv_adamw_options_init(0.1);
    qkv_adamw_array array = { INT64_MAX, w, x, y, more, 0 };
    refused(qkv_adamw_step(ctx, &options, 1, 1, &array, sizeof array, NULL), QKV_ERR_LIMIT,
            "does not fit the address space");
    array.n = -1;
    refused(qkv_adamw_step(ctx, &options, 1, 1, &array, sizeof array, NULL), QKV_ERR_SHAPE,
            "arrays[0].n = -1 is negative");
}

/* ---- Indices, numbers, enums ----------------------------------------------------------------- */

static void indices_are_in_range(void **state) {
    (void)state;
    int32_t ids[ROWS] = { 0, 1, 2 };
    double loss;
    qkv_embedding_desc e = qkv_embedding_desc_init(ROWS, 2, D, ids);
    refused(qkv_embedding_forward(ctx, &e, w, x), QKV_ERR_ARGUMENT, "ids[2] = 2 is not in 0 ... 1");
    ids[2] = INT32_MIN;
    refused(qkv_embedding_backward(ctx, &e, x, w), QKV_ERR_ARGUMENT, "ids[2] = -2147483648");
    ids[2] = 4;
    refused(qkv_cross_entropy(ctx, ROWS, D, ids, 0, x, y, &loss, NULL), QKV_ERR_ARGUMENT,
            "targets[2] = 4 is not below n_classes = 4");
    ids[2] = INT32_MIN;
    accepted(qkv_cross_entropy(ctx, ROWS, D, ids, 0, x, y, &loss, NULL));
}

static void numbers_are_in_range(void **state) {
    (void)state;
    const float rates[] = { -0.1f, 1.1f, NAN, INFINITY };
    const double bad[] = { -1, NAN, INFINITY };
    const int32_t target = 0;
    double loss;
    const qkv_adamw_array array = { 1, x, w, y, more, 0 };
    for (int i = 0; i < 4; i++) {
        const double smoothing = (double)rates[i];
        refused(qkv_dropout(ctx, 1, 1, rates[i], 0, 0, x), QKV_ERR_ARGUMENT, "is not in 0 ... 1");
        refused(qkv_cross_entropy(ctx, 1, 1, &target, smoothing, x, y, &loss, NULL),
                QKV_ERR_ARGUMENT, "is not in 0 ... 1");
    }
    for (int i = 0; i < 3; i++)
        for (int field = 0; field < 6; field++) {
            qkv_adamw_options o = qkv_adamw_options_init(0.1);
            *(double *[]){ &o.rate, &o.beta1, &o.beta2, &o.eps, &o.weight_decay, &o.clip }[field] =
                bad[i];
            refused(qkv_adamw_step(ctx, &o, 1, 1, &array, sizeof array, NULL), QKV_ERR_ARGUMENT,
                    "is not a finite number of at least 0");
            refused(qkv_layer_norm_forward(ctx, 1, 1, (float)bad[i], x, w, more, y, least),
                    QKV_ERR_ARGUMENT, "eps = ");
        }
    qkv_adamw_options o = qkv_adamw_options_init(0.1);
    refused(qkv_adamw_step(ctx, &o, 0, 1, &array, sizeof array, NULL), QKV_ERR_ARGUMENT,
            "step = 0 is less than 1");
    o.beta2 = 1;
    refused(qkv_adamw_step(ctx, &o, 1, 1, &array, sizeof array, NULL), QKV_ERR_ARGUMENT,
            "is not below 1");
}

static void enums_are_known(void **state) {
    (void)state;
    size_t bytes;
    qkv_linear_desc l = linear();
    refused(qkv_linear_packed_bytes(ctx, &l, QKV_PASS_DECODE, &bytes), QKV_ERR_ARGUMENT,
            "pass = 2 is no pass of a layer");
    int number = 9; /* as a newer header may have it */
    memcpy(&l.arithmetic, &number, sizeof number);
    refused(qkv_linear_forward(ctx, &l, x, w, NULL, y), QKV_ERR_DTYPE, "arithmetic = 9");
    qkv_activation activation;
    memcpy(&activation, &number, sizeof number);
    refused(qkv_activation_forward(ctx, activation, 1, 1, x, y), QKV_ERR_ARGUMENT,
            "activation = 9 is no qkv_activation");
}

/* ---- Structs of other versions --------------------------------------------------------------- */

static void structs_of_other_versions(void **state) {
    (void)state;
    struct {
        qkv_linear_desc desc;
        char newer[16];
    } l = { linear(), { 0 } };
    l.desc.struct_size = sizeof l;
    accepted(qkv_linear_forward(ctx, &l.desc, x, w, NULL, y));
    l.newer[3] = 1;
    refused(qkv_linear_forward(ctx, &l.desc, x, w, NULL, y), QKV_ERR_VERSION, "is not 0");
    l.desc.struct_size = 8;
    refused(qkv_linear_forward(ctx, &l.desc, x, w, NULL, y), QKV_ERR_ARGUMENT, "struct_size = 8");

    struct {
        qkv_adamw_array array;
        char newer[16];
    } a[2] = { { { 2, x, w, y, more, 0 }, { 0 } }, { { 2, x, w + 2, y + 2, more + 2, 0 }, { 0 } } };
    const qkv_adamw_options options = qkv_adamw_options_init(0.1);
    accepted(qkv_adamw_step(ctx, &options, 1, 2, &a[0].array, sizeof *a, NULL));
    a[1].newer[0] = 1;
    refused(qkv_adamw_step(ctx, &options, 1, 2, &a[0].array, sizeof *a, NULL), QKV_ERR_VERSION,
            "arrays[1]: byte");
    refused(qkv_adamw_step(ctx, &options, 1, 2, &a[0].array, 8, NULL), QKV_ERR_ARGUMENT,
            "array_bytes = 8 is less than");
    refused(qkv_adamw_step(ctx, &options, 1, 2, &a[0].array, SIZE_MAX, NULL), QKV_ERR_VERSION,
            "array_bytes");
}

/* ---- Panels of another layer ----------------------------------------------------------------- */

static void packed_memory_is_what_it_says(void **state) {
    (void)state;
    static _Alignas(64) char packed[PACKED + 64], other[PACKED];
    qkv_linear_desc l = linear();
    refused(qkv_linear_pack(ctx, &l, QKV_PASS_FORWARD, w, packed, PACKED - 1), QKV_ERR_ARGUMENT,
            "packed_bytes = 575 is less than 576");
    refused(qkv_linear_pack(ctx, &l, QKV_PASS_FORWARD, w, packed + 4, PACKED), QKV_ERR_ARGUMENT,
            "is not aligned to 64 bytes");
    refused(qkv_linear_pack(ctx, &l, QKV_PASS_FORWARD, (float *)packed, packed, PACKED),
            QKV_ERR_ARGUMENT, "packed, an output, overlaps weight");
    l.packed_forward = other; /* it has not been packed */
    refused(qkv_linear_forward(ctx, &l, x, NULL, NULL, y), QKV_ERR_ARGUMENT,
            "packed_forward was not packed for this pass, class, n_in and n_out");
    l.packed_forward = NULL;
    accepted(qkv_linear_pack(ctx, &l, QKV_PASS_FORWARD, w, packed, PACKED));
    l.packed_backward = packed;
    refused(qkv_linear_backward(ctx, &l, NULL, NULL, x, y, NULL, NULL), QKV_ERR_ARGUMENT,
            "packed_backward was not packed");
    l.packed_forward = packed;
    accepted(qkv_linear_forward(ctx, &l, x, NULL, NULL, y));
    l.arithmetic = QKV_CLASS_DP;
    refused(qkv_linear_forward(ctx, &l, x, NULL, NULL, y), QKV_ERR_ARGUMENT, "was not packed");
    l.arithmetic = QKV_CLASS_F32, l.n_out = 3;
    refused(qkv_linear_forward(ctx, &l, x, NULL, NULL, y), QKV_ERR_ARGUMENT, "was not packed");
    l.n_out = D, l.packed_forward = packed + 4;
    refused(qkv_linear_forward(ctx, &l, x, NULL, NULL, y), QKV_ERR_ARGUMENT, "is not aligned");
    l.packed_forward = packed;
    refused(qkv_linear_forward(ctx, &l, x, NULL, NULL, (float *)(packed + PACKED - 4)),
            QKV_ERR_ARGUMENT, "y, an output, overlaps packed_forward");
}

static int make_context(void **state) {
    (void)state;
    ctx = make_ctx(NULL, 2);
    return 0;
}

static int free_context(void **state) {
    (void)state;
    qkv_ctx_free(ctx);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_overlap_nothing),
        cmocka_unit_test(arrays_are_aligned_to_their_elements),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(arrays_fit_the_address_space),
        cmocka_unit_test(indices_are_in_range),
        cmocka_unit_test(numbers_are_in_range),
        cmocka_unit_test(enums_are_known),
        cmocka_unit_test(structs_of_other_versions),
        cmocka_unit_test(packed_memory_is_what_it_says),
    };
    return cmocka_run_group_tests(tests, make_context, free_context);
}
