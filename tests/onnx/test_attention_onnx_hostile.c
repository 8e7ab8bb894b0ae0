/*
 * Invalid nodes of ONNX, each a valid node with one change: status and message of the refusal by
 * all three calls, which leave outputs untouched. Then valid nodes that look invalid.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "attn/every_isa.h"
#include "onnx/onnx_node.h"

enum { B = 2, HQ = 4, HKV = 2, SQ = 3, SK = 5, P = 4, D = 8, DV = 6, ROOM = 4096 };

static float q[ROOM], k[ROOM], v[ROOM], past_k[ROOM], past_v[ROOM], mask[ROOM], y[ROOM], pk[ROOM],
    pv[ROOM], qk[ROOM];
static int64_t lengths[B];
static qkv_ctx *ctx;
static void *results[4];

#define TENSOR(type, rank, data, ...)                                                              \
    (qkv_onnx_tensor) { type, rank, { __VA_ARGS__ }, data }

/* Rank 4, causal, opset 25. */
static qkv_onnx_attention_node four(void) {
    qkv_onnx_attention_node n = qkv_onnx_attention_node_init();
    n.opset = 25;
    n.Q = TENSOR(QKV_ONNX_FLOAT, 4, q, B, HQ, SQ, D);
    n.K = TENSOR(QKV_ONNX_FLOAT, 4, k, B, HKV, SK, D);
    n.V = TENSOR(QKV_ONNX_FLOAT, 4, v, B, HKV, SK, DV);
    n.is_causal = 1;
    return n;
}

static qkv_onnx_attention_node three(void) {
    qkv_onnx_attention_node n = four();
    n.Q = TENSOR(QKV_ONNX_FLOAT, 3, q, B, SQ, HQ * D);
    n.K = TENSOR(QKV_ONNX_FLOAT, 3, k, B, SK, HKV * D);
    n.V = TENSOR(QKV_ONNX_FLOAT, 3, v, B, SK, HKV * DV);
    n.q_num_heads = HQ, n.kv_num_heads = HKV;
    return n;
}

static qkv_onnx_attention_node with_past(void) {
    qkv_onnx_attention_node n = four();
    n.past_key = TENSOR(QKV_ONNX_FLOAT, 4, past_k, B, HKV, P, D);
    n.past_value = TENSOR(QKV_ONNX_FLOAT, 4, past_v, B, HKV, P, DV);
    return n;
}

static qkv_onnx_attention_node with_mask(void) {
    qkv_onnx_attention_node n = four();
    n.attn_mask = TENSOR(QKV_ONNX_FLOAT, 2, mask, SQ, SK);
    return n;
}

static qkv_onnx_attention_node with_nonpad(void) {
    qkv_onnx_attention_node n = four();
    n.nonpad_kv_seqlen = TENSOR(QKV_ONNX_INT64, 1, lengths, B);
    lengths[0] = 2, lengths[1] = SK;
    return n;
}

static void reset(void) {
    float *const all[] = { y, pk, pv, qk };
    for (int o = 0; o < 4; o++)
        for (int i = 0; i < ROOM; i++) all[o][i] = 7;
    results[0] = y;
    results[1] = results[2] = results[3] = NULL;
}

static int make_world(void **state) {
    (void)state;
    ctx = context_on(NULL, 2);
    rng r = { 4 };
    float *const inputs[] = { q, k, v, past_k, past_v, mask };
    for (int a = 0; a < 6; a++)
        for (int i = 0; i < ROOM; i++) inputs[a][i] = rng_normal(&r);
    reset();
    return 0;
}

static int end_world(void **state) {
    (void)state;
    qkv_ctx_free(ctx);
    return 0;
}

static void untouched(const char *what) {
    float *const all[] = { y, pk, pv, qk };
    for (int o = 0; o < 4; o++)
        for (int i = 0; i < ROOM; i++)
            if (all[o][i] != 7) fail_msg("%s: output %d is touched", what, o);
}

static int n_cases;

static void refused(const qkv_onnx_attention_node *n, qkv_status status, const char *says) {
    const qkv_status got =
        qkv_onnx_attention(ctx, n, results[0], results[1], results[2], results[3], NULL);
    n_cases++;
    if (got != status || !strstr(qkv_ctx_message(ctx), says))
        fail_msg("%s \"%s\" instead of %s \"%s\"", qkv_status_name(got), qkv_ctx_message(ctx),
                 qkv_status_name(status), says);
    untouched(says);
}

/* What the node alone shows is refused by all calls. */
static void wrong(qkv_onnx_attention_node n, qkv_status status, const char *says) {
    qkv_onnx_attention_outputs out = qkv_onnx_attention_outputs_init();
    qkv_error error;
    size_t bytes;
    refused(&n, status, says);
    if (qkv_onnx_attention_shapes(&n, &out, &error) != status || !strstr(error.message, says))
        fail_msg("shapes: \"%s\" instead of \"%s\"", error.message, says);
    if (qkv_onnx_attention_workspace(ctx, &n, &bytes) != status ||
        !strstr(qkv_ctx_message(ctx), says))
        fail_msg("workspace: \"%s\" instead of \"%s\"", qkv_ctx_message(ctx), says);
    assert_int_equal(out.Y.rank, 0);
}

#define WRONG(base, change, status, says)                                                          \
    do {                                                                                           \
        qkv_onnx_attention_node n = base;                                                          \
        change;                                                                                    \
        wrong(n, QKV_ERR_##status, says);                                                          \
    } while (0)

/* ---- Wrong nodes ----------------------------------------------------------------------------- */

static void attributes(void **state) {
    (void)state;
    WRONG(four(), n.struct_size = 0, ARGUMENT, "struct_size");
    WRONG(four(), n.flags = 1u << 9, VERSION, "flags = 0x200 has the unknown bits 0x200");
    WRONG(four(), n.opset = 22, ARGUMENT, "opset = 22 is less than 23");
    WRONG(four(), n.opset = INT32_MIN, ARGUMENT, "is less than 23");
    WRONG(four(), n.opset = 29, UNSUPPORTED, "opset = 29 is greater than 28");
    WRONG(four(), n.is_causal = 2, ARGUMENT, "is_causal = 2 is not in [0, 1]");
    WRONG(four(), n.qk_matmul_output_mode = 4, ARGUMENT,
          "qk_matmul_output_mode = 4 is not in [0, 3]");
    WRONG(four(), n.qk_matmul_output_mode = -1, ARGUMENT,
          "qk_matmul_output_mode = -1 is not in [0, 3]");
    WRONG(four(), n.softmax_precision = 7, ARGUMENT, "softmax_precision = 7 is none of");
    WRONG(four(), n.softmax_precision = INT64_MIN, ARGUMENT,
          "softmax_precision = -9223372036854775808");
    WRONG(four(), n.softcap = -1, ARGUMENT, "softcap = -1 is neither 0 nor");
    WRONG(four(), n.softcap = NAN, ARGUMENT, "softcap = nan");
    WRONG(four(), (n.flags = QKV_ONNX_SET_SCALE, n.scale = INFINITY), ARGUMENT,
          "scale = inf is not finite");
    WRONG(four(), n.arithmetic = (qkv_class)9, ARGUMENT, "arithmetic = 9 is none of");
    WRONG(four(), n.arithmetic = QKV_CLASS_DP, UNSUPPORTED,
          "arithmetic = QKV_CLASS_DP needs BFLOAT16");
    WRONG(four(), (n.flags = QKV_ONNX_SET_LEFT_WINDOW_SIZE, n.left_window_size = -2), ARGUMENT,
          "left_window_size = -2 is less than -1");
    WRONG(four(), (n.flags = QKV_ONNX_SET_RIGHT_WINDOW_SIZE, n.right_window_size = INT64_MIN),
          ARGUMENT, "right_window_size = -9223372036854775808 is less than -1");
    WRONG(four(), (n.opset = 24, n.flags = QKV_ONNX_SET_RIGHT_WINDOW_SIZE), ARGUMENT,
          "right_window_size is given, but opset = 24 is less than 25");
    WRONG(four(), n.q_num_heads = HQ, ARGUMENT,
          "q_num_heads = 4 is given, but Q, K and V have rank 4");
    WRONG(four(), n.kv_num_heads = 1, ARGUMENT,
          "kv_num_heads = 1 is given, but Q, K and V have rank 4");
    WRONG(four(), (n.opset = 24, n.q_num_heads = 5), SHAPE, "q_num_heads = 5 is not Q.dims[1] = 4");
    WRONG(three(), n.q_num_heads = 0, ARGUMENT, "q_num_heads = 0 is not in [1,");
    WRONG(three(), n.kv_num_heads = -1, ARGUMENT, "kv_num_heads = -1 is not in [1,");
    WRONG(three(), n.kv_num_heads = INT64_MAX, ARGUMENT, "kv_num_heads = 9223372036854775807");
    WRONG(three(), n.q_num_heads = 5, SHAPE, "Q.dims[2] = 32 is not a multiple of q_num_heads = 5");
    WRONG(three(), n.kv_num_heads = 4, SHAPE,
          "K.dims[2] / kv_num_heads = 4 is not Q.dims[2] / q_num_heads = 8");
}

static void types(void **state) {
    (void)state;
    WRONG(four(), n.Q.type = QKV_ONNX_UNDEFINED, ARGUMENT, "Q is missing");
    WRONG(four(), n.K.type = QKV_ONNX_UNDEFINED, ARGUMENT, "K is missing");
    WRONG(four(), n.V.type = QKV_ONNX_UNDEFINED, ARGUMENT, "V is missing");
    WRONG(four(), n.Q.type = QKV_ONNX_INT64, DTYPE, "Q.type = 7 INT64 is none of");
    WRONG(four(), n.Q.type = (qkv_onnx_type)8, DTYPE, "Q.type = 8 is none of");
    WRONG(four(), n.V.type = (qkv_onnx_type)-1, DTYPE, "V.type = -1 is none of");
    WRONG(four(), n.V.type = (qkv_onnx_type)1000, DTYPE, "V.type = 1000 is none of");
    WRONG(four(), n.K.type = QKV_ONNX_FLOAT16, DTYPE, "K.type is FLOAT16, and that of Q is FLOAT");
    WRONG(with_past(), n.past_key.type = QKV_ONNX_DOUBLE, DTYPE,
          "past_key.type is DOUBLE, and that of K is FLOAT");
    WRONG(with_past(), n.past_value.type = QKV_ONNX_BFLOAT16, DTYPE, "past_value.type is BFLOAT16");
    WRONG(with_mask(), n.attn_mask.type = (qkv_onnx_type)8, DTYPE, "attn_mask.type = 8 is none of");
    WRONG(with_nonpad(), n.nonpad_kv_seqlen.type = QKV_ONNX_INT32, DTYPE,
          "nonpad_kv_seqlen.type = 6 is not 7");
}

static void caches(void **state) {
    (void)state;
    WRONG(with_past(), n.past_value.type = QKV_ONNX_UNDEFINED, ARGUMENT,
          "past_key is given without past_value");
    WRONG(with_past(), n.past_key.type = QKV_ONNX_UNDEFINED, ARGUMENT,
          "past_value is given without past_key");
    WRONG(with_past(), (n.nonpad_kv_seqlen = with_nonpad().nonpad_kv_seqlen), ARGUMENT,
          "nonpad_kv_seqlen is given together with past_key");
    WRONG(with_nonpad(), n.opset = 23, ARGUMENT,
          "nonpad_kv_seqlen is given, but opset = 23 is less than 24");
    WRONG(with_past(), n.past_key.rank = 3, SHAPE, "past_key.rank = 3 is not 4");
    WRONG(with_past(), n.past_key.dims[0] = 1, SHAPE,
          "past_key has the shape [1][2][4][8]: dims[0] = 1 is not 2");
    WRONG(with_past(), n.past_key.dims[1] = 4, SHAPE, "dims[1] = 4 is not 2, the heads of K");
    WRONG(with_past(), n.past_value.dims[2] = 5, SHAPE,
          "past_value has the shape [2][2][5][6]: dims[2] = 5");
    WRONG(with_past(), n.past_key.dims[3] = 6, SHAPE, "dims[3] = 6 is not 8, the head size");
    WRONG(with_past(), n.past_value.dims[3] = 8, SHAPE, "dims[3] = 8 is not 6, the head size");
    WRONG(with_nonpad(), n.nonpad_kv_seqlen.rank = 2, SHAPE, "nonpad_kv_seqlen.rank = 2 is not 1");
    WRONG(with_nonpad(), n.nonpad_kv_seqlen.dims[0] = 3, SHAPE,
          "dims[0] = 3 is not 2, the batch of Q");
}

static void shapes(void **state) {
    (void)state;
    WRONG(four(), n.Q.rank = 5, SHAPE, "Q.rank = 5 is not in [0, 4]");
    WRONG(four(), n.Q.rank = INT32_MAX, SHAPE, "Q.rank = 2147483647 is not in [0, 4]");
    WRONG(four(), n.K.rank = -1, SHAPE, "K.rank = -1 is not in [0, 4]");
    WRONG(four(), n.Q.rank = 2, SHAPE, "Q.rank = 2 is neither 3 nor 4");
    WRONG(four(), n.K.rank = 3, SHAPE, "K.rank = 3 is not Q.rank = 4");
    WRONG(three(), n.V.rank = 4, SHAPE, "V.rank = 4 is not Q.rank = 3");
    WRONG(four(), n.Q.dims[2] = -1, SHAPE, "Q.dims[2] = -1 is not in [0,");
    WRONG(four(), n.V.dims[3] = INT64_MIN, SHAPE, "V.dims[3] = -9223372036854775808");
    WRONG(four(), n.Q.dims[2] = INT64_MAX, SHAPE, "Q.dims[2] = 9223372036854775807");
    WRONG(four(), (n.Q.dims[2] = (int64_t)1 << 48, n.Q.dims[1] = 1 << 16), SHAPE,
          "more than 576460752303423487 elements");
    WRONG(four(), (n.Q.dims[0] = 0, n.Q.dims[1] = n.Q.dims[2] = (int64_t)1 << 48), SHAPE,
          "more than");
    WRONG(four(), n.K.dims[0] = 3, SHAPE,
          "K has the shape [3][2][5][8]: dims[0] = 3 is not 2, the batch of Q");
    WRONG(four(), n.V.dims[1] = 1, SHAPE,
          "V has the shape [2][1][5][6]: dims[1] = 1 is not 2, the heads of K");
    WRONG(four(), n.V.dims[2] = 4, SHAPE, "dims[2] = 4 is not 5, the keys of K");
    WRONG(four(), n.K.dims[3] = 4, SHAPE, "dims[3] = 4 is not 8, the head size of Q");
    WRONG(four(), n.K.dims[1] = n.V.dims[1] = 3, SHAPE,
          "4 heads of Q are not a multiple of 3 heads of K");
    WRONG(four(), n.K.dims[1] = n.V.dims[1] = 0, SHAPE,
          "4 heads of Q are not a multiple of 0 heads of K");
    WRONG(four(), n.Q.dims[3] = n.K.dims[3] = 65537, SHAPE,
          "the head size of Q, 65537, is greater than 65536");
    WRONG(four(), n.V.dims[3] = 65537, SHAPE, "the head size of V, 65537");
    WRONG(three(), n.V.dims[1] = 4, SHAPE, "dims[1] = 4 is not 5, the keys of K");
    WRONG(four(), (n.Q.dims[2] = (int64_t)1 << 40, n.K.dims[2] = n.V.dims[2] = (int64_t)1 << 40),
          SHAPE, "qk_matmul_output has the shape");
    /* Past and new keys together are too many: each alone is not. */
    WRONG(with_past(),
          (n.past_key.dims[2] = n.past_value.dims[2] = (int64_t)1 << 48,
           n.K.dims[2] = n.V.dims[2] = 1,
           n.Q.dims[1] = n.K.dims[1] = n.V.dims[1] = n.past_key.dims[1] = n.past_value.dims[1] = 1),
          SHAPE, "present_key.dims[2] = 281474976710657 is not in");
}

static void masks(void **state) {
    (void)state;
    WRONG(with_mask(), n.attn_mask.rank = 5, SHAPE, "attn_mask.rank = 5 is not in [0, 4]");
    WRONG(with_mask(), n.attn_mask.dims[0] = 2, SHAPE,
          "dims[0] = 2 is neither 1 nor 3, the queries");
    WRONG(with_mask(), n.attn_mask.dims[1] = 6, SHAPE,
          "attn_mask has the shape [3][6]: dims[1] = 6 is neither 1 nor 5, the keys");
    WRONG(with_mask(), (n.opset = 23, n.attn_mask.dims[1] = 4), SHAPE,
          "opset 23 has no shorter masks");
    WRONG(with_mask(), n.attn_mask = TENSOR(QKV_ONNX_FLOAT, 3, mask, 2, SQ, SK), SHAPE,
          "dims[0] = 2 is neither 1 nor 4, the heads of Q");
    WRONG(with_mask(), n.attn_mask = TENSOR(QKV_ONNX_FLOAT, 4, mask, 3, 1, SQ, SK), SHAPE,
          "dims[0] = 3 is neither 1 nor 2, the batch");
    WRONG(with_mask(), n.attn_mask.dims[0] = -3, SHAPE, "attn_mask.dims[0] = -3 is not in");
    WRONG(with_mask(), n.attn_mask.dims[0] = 0, SHAPE, "dims[0] = 0 is neither 1 nor 3");
}

/* ---- Wrong arrays ---------------------------------------------------------------------------- */

#define REFUSED(base, change, status, says)                                                        \
    do {                                                                                           \
        qkv_onnx_attention_node n = base;                                                          \
        reset();                                                                                   \
        change;                                                                                    \
        refused(&n, QKV_ERR_##status, says);                                                       \
        reset();                                                                                   \
    } while (0)

static void arrays(void **state) {
    (void)state;
    REFUSED(four(), n.Q.data = NULL, ARGUMENT, "Q is NULL, but has the shape [2][4][3][8]");
    REFUSED(four(), n.K.data = NULL, ARGUMENT, "K is NULL");
    REFUSED(three(), n.V.data = NULL, ARGUMENT, "V is NULL, but has the shape [1][2][5][12]");
    REFUSED(with_mask(), n.attn_mask.data = NULL, ARGUMENT, "attn_mask is NULL");
    REFUSED(with_past(), n.past_value.data = NULL, ARGUMENT, "past_value is NULL");
    REFUSED(with_nonpad(), n.nonpad_kv_seqlen.data = NULL, ARGUMENT, "nonpad_kv_seqlen is NULL");
    REFUSED(four(), results[0] = NULL, ARGUMENT, "Y is NULL");
    REFUSED(four(), results[1] = pk, ARGUMENT, "present_value is NULL, and present_key is not");
    REFUSED(four(), results[2] = pv, ARGUMENT, "present_key is NULL, and present_value is not");
    REFUSED(with_nonpad(), (results[1] = pk, results[2] = pv), ARGUMENT,
            "nonpad_kv_seqlen is given: opset 25 does not allow both");
    REFUSED(four(), n.Q.data = (char *)q + 2, ARGUMENT, "Q is not aligned to its element, 4 bytes");
    REFUSED(four(), results[3] = (char *)qk + 1, ARGUMENT, "qk_matmul_output is not aligned");
    REFUSED(four(), results[0] = q, ARGUMENT, "Y, an output, overlaps Q");
    REFUSED(with_past(), (results[1] = past_k, results[2] = pv), ARGUMENT,
            "present_key, an output, overlaps past_key");
    REFUSED(four(), (results[1] = pk, results[2] = pk + 1), ARGUMENT,
            "present_key, an output, overlaps present_value");
    REFUSED(four(), results[3] = y + 7, ARGUMENT, "Y, an output, overlaps qk_matmul_output");
    REFUSED(four(), (n.Q.data = (void *)(UINTPTR_MAX - 15)), STRIDE,
            "Q spans 768 bytes, past the end of the address space");
    REFUSED(with_nonpad(), lengths[1] = SK + 1, SHAPE, "nonpad_kv_seqlen[1] = 6 is not in [0, 5]");
    REFUSED(with_nonpad(), lengths[0] = -1, SHAPE, "nonpad_kv_seqlen[0] = -1 is not in [0, 5]");
    REFUSED(with_nonpad(), lengths[0] = INT64_MIN, SHAPE,
            "nonpad_kv_seqlen[0] = -9223372036854775808");
    qkv_call_options call = qkv_call_options_init();
    const qkv_onnx_attention_node n = four();
    _Alignas(64) static char block[64];
    call.workspace = block;
    call.workspace_bytes = sizeof block;
    assert_int_equal(qkv_onnx_attention(ctx, &n, y, NULL, NULL, NULL, &call), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(qkv_ctx_message(ctx), "workspace_bytes = 64 is less than"));
    untouched("workspace");
}

static void versions_of_structs(void **state) {
    struct {
        qkv_onnx_attention_node node;
        int64_t more;
    } newer = { four(), 0 };
    (void)state;
    newer.node.struct_size = sizeof newer;
    reset();
    assert_int_equal(qkv_onnx_attention(ctx, &newer.node, y, NULL, NULL, NULL, NULL), QKV_OK);
    newer.more = 1;
    assert_int_equal(qkv_onnx_attention(ctx, &newer.node, y, NULL, NULL, NULL, NULL),
                     QKV_ERR_VERSION);
    /* A smaller struct has the defaults behind it. */
    qkv_onnx_attention_node older = four();
    older.softcap = -1;
    older.struct_size = offsetof(qkv_onnx_attention_node, softcap);
    assert_int_equal(qkv_onnx_attention(ctx, &older, y, NULL, NULL, NULL, NULL), QKV_OK);
    qkv_onnx_attention_outputs out = { 0 };
    assert_int_equal(qkv_onnx_attention_shapes(&older, &out, NULL), QKV_ERR_ARGUMENT);
    reset();
}

/* An older struct of outputs gets what it has room for, a newer one zeros behind it. */
static void sizes_of_outputs(void **state) {
    struct {
        qkv_onnx_attention_outputs out;
        int64_t more;
    } got;
    const size_t older = offsetof(qkv_onnx_attention_outputs, present_value);
    const qkv_onnx_attention_node n = four();
    const char *const bytes = (const char *)&got;
    (void)state;
    memset(&got, 0xA5, sizeof got);
    memset(&got, 0, older);
    got.out.struct_size = older;
    assert_int_equal(qkv_onnx_attention_shapes(&n, &got.out, NULL), QKV_OK);
    assert_int_equal(got.out.present_key.dims[2], SK);
    for (size_t at = older; at < sizeof got; at++) assert_int_equal((unsigned char)bytes[at], 0xA5);
    memset(&got, 0, sizeof got);
    got.out.struct_size = sizeof got;
    assert_int_equal(qkv_onnx_attention_shapes(&n, &got.out, NULL), QKV_OK);
    assert_int_equal(got.out.struct_size, sizeof got);
    assert_int_equal(got.out.qk_matmul_output.dims[3], SK);
    assert_int_equal(got.more, 0);
}

/* ---- What looks wrong, and is right ---------------------------------------------------------- */

static void accepted(const qkv_onnx_attention_node *n) {
    if (qkv_onnx_attention(ctx, n, y, NULL, NULL, qk, NULL) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(ctx));
    onnx_expected e = onnx_reference(n);
    for (int64_t i = 0; i < e.n_y; i++)
        assert_true(onnx_share(QKV_ONNX_FLOAT, (double)y[i], e.y[i], e.y_forward[i]) <= 1);
    for (int64_t i = 0; i < e.n_qk; i++)
        assert_true(onnx_share(QKV_ONNX_FLOAT, (double)qk[i], e.qk[i], e.qk_loop[i]) <= 1);
    onnx_expected_free(&e);
    reset();
}

static void edges(void **state) {
    (void)state;
    qkv_onnx_attention_node n = four();
    n.flags = QKV_ONNX_SET_SCALE | QKV_ONNX_SET_LEFT_WINDOW_SIZE | QKV_ONNX_SET_RIGHT_WINDOW_SIZE;
    n.scale = -0.5f;
    n.left_window_size = n.right_window_size = INT64_MAX;
    accepted(&n);
    n.scale = 0, n.left_window_size = n.right_window_size = 0;
    accepted(&n);
    n = four(); /* no keys, no head size, no queries, no batch */
    n.K.dims[2] = n.V.dims[2] = 0, n.K.data = n.V.data = NULL;
    accepted(&n);
    n = four();
    n.Q.dims[3] = n.K.dims[3] = 0, n.Q.data = n.K.data = NULL;
    accepted(&n);
    n = four();
    n.Q.dims[2] = 0, n.Q.data = NULL;
    accepted(&n);
    n = four();
    n.Q.dims[0] = n.K.dims[0] = n.V.dims[0] = 0, n.Q.data = n.K.data = n.V.data = NULL;
    accepted(&n);
    n = four(); /* 2^48 queries, none of which has an element */
    n.Q = TENSOR(QKV_ONNX_FLOAT, 4, NULL, 0, 0, (int64_t)1 << 48, 8);
    n.K = n.V = TENSOR(QKV_ONNX_FLOAT, 4, NULL, 0, 0, 1 << 10, 8);
    assert_int_equal(qkv_onnx_attention(ctx, &n, NULL, NULL, NULL, NULL, NULL), QKV_OK);
    n = with_mask(); /* a mask without keys hides all; one of rank 0 is for all */
    n.attn_mask.dims[1] = 0, n.attn_mask.data = NULL;
    accepted(&n);
    n = with_mask();
    n.attn_mask.rank = 0;
    accepted(&n);
    n = with_mask(); /* a last dimension of 1 repeats in opset 23, and hides from 24 on */
    n.attn_mask.dims[1] = 1;
    for (n.opset = 23; n.opset <= 28; n.opset++) accepted(&n);
    n = three(); /* numbers of heads beside rank 4 before opset 25 */
    accepted(&n);
    n = four();
    n.opset = 23, n.q_num_heads = HQ, n.kv_num_heads = HKV;
    accepted(&n);
    n = with_past();
    n.past_key.dims[2] = n.past_value.dims[2] = 0, n.past_key.data = n.past_value.data = NULL;
    accepted(&n);
}

/* Shapes and workspace are known without arrays, and so is what is wrong with a node. */
static void without_arrays(void **state) {
    qkv_onnx_attention_outputs out = qkv_onnx_attention_outputs_init();
    qkv_onnx_attention_node list[] = { four(), three(), with_past(), with_mask(), with_nonpad() };
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        qkv_onnx_attention_node *n = &list[i];
        size_t bytes = 0;
        n->Q.data = n->K.data = n->V.data = n->attn_mask.data = NULL;
        n->past_key.data = n->past_value.data = n->nonpad_kv_seqlen.data = NULL;
        assert_int_equal(qkv_onnx_attention_shapes(n, &out, NULL), QKV_OK);
        assert_int_equal(out.Y.rank, n->Q.rank);
        assert_int_equal(out.qk_matmul_output.dims[3], i == 2 ? P + SK : SK);
        assert_int_equal(qkv_onnx_attention_workspace(ctx, n, &bytes), QKV_OK);
        assert_true(bytes > 0);
    }
}

/* NaN and +infinity in a mask belong to the rows that see them, in both ways to Y. */
static void special_masks(void **state) {
    (void)state;
    for (int by_loop = 0; by_loop < 2; by_loop++)
        for (int special = 0; special < 2; special++) {
            qkv_onnx_attention_node n = with_mask();
            float own[SQ * SK] = { 0 };
            n.attn_mask.data = own;
            n.softmax_precision = by_loop ? QKV_ONNX_DOUBLE : QKV_ONNX_UNDEFINED;
            own[0 * SK + 1] = special ? INFINITY : NAN; /* hidden from query 0, which is causal */
            own[1 * SK + 1] = special ? INFINITY : NAN;
            assert_int_equal(qkv_onnx_attention(ctx, &n, y, NULL, NULL, NULL, NULL), QKV_OK);
            for (int64_t row = 0; row < B * HQ * SQ; row++)
                for (int64_t c = 0; c < DV; c++)
                    assert_int_equal(isnan(y[row * DV + c]), row % SQ == 1);
            reset();
        }
}

/* A call that is cancelled says so; the context is then ready for the next. */
static void cancelled(void **state) {
    qkv_call_options call = qkv_call_options_init();
    const int raised = 1;
    (void)state;
    call.cancel = &raised;
    for (int by_loop = 0; by_loop < 2; by_loop++) {
        qkv_onnx_attention_node n = four();
        n.softmax_precision = by_loop ? QKV_ONNX_DOUBLE : QKV_ONNX_UNDEFINED;
        assert_int_equal(qkv_onnx_attention(ctx, &n, y, NULL, NULL, qk, &call), QKV_ERR_CANCELLED);
        assert_int_equal(qkv_onnx_attention(ctx, &n, y, NULL, NULL, qk, NULL), QKV_OK);
    }
    reset();
}

/*
 * 2^31 keys and three, of which a window leaves three. Memory is mapped without being there.
 * What is computed at the far end is what the last queries get alone.
 */
static void beyond_32_bits(void **state) {
    const int64_t rows = ((int64_t)1 << 31) + 3;
    const size_t bytes = (size_t)rows * 2 * sizeof(uint16_t);
    uint16_t *far = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    (void)state;
    if (far == MAP_FAILED) skip();
    qkv_onnx_attention_node n = qkv_onnx_attention_node_init();
    n.opset = 25;
    n.Q = TENSOR(QKV_ONNX_FLOAT16, 4, q, 1, 1, 1, 2);
    n.K = n.V = TENSOR(QKV_ONNX_FLOAT16, 4, far, 1, 1, rows, 2);
    n.nonpad_kv_seqlen = TENSOR(QKV_ONNX_INT64, 1, lengths, 1);
    n.flags = QKV_ONNX_SET_LEFT_WINDOW_SIZE;
    n.left_window_size = 2;
    lengths[0] = rows;
    uint16_t *const queries = (uint16_t *)(void *)q, near[6], one[2], two[2];
    rng r = { 11 };
    for (int i = 0; i < 6; i++) element_set(near, ELEMENT_F16, i, (double)rng_normal(&r));
    for (int i = 0; i < 2; i++) element_set(queries, ELEMENT_F16, i, (double)rng_normal(&r));
    memcpy(far + (rows - 3) * 2, near, sizeof near);
    size_t needed = 0;
    assert_int_equal(qkv_onnx_attention_workspace(ctx, &n, &needed), QKV_OK);
    qkv_call_options call = qkv_call_options_init();
    call.workspace_bytes = needed;
    call.workspace = mmap(NULL, needed, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (call.workspace == MAP_FAILED) {
        munmap(far, bytes);
        skip();
    }
    if (qkv_onnx_attention(ctx, &n, one, NULL, NULL, NULL, &call) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(ctx));
    n.K = n.V = TENSOR(QKV_ONNX_FLOAT16, 4, near, 1, 1, 3, 2);
    lengths[0] = 3;
    assert_int_equal(qkv_onnx_attention(ctx, &n, two, NULL, NULL, NULL, NULL), QKV_OK);
    assert_memory_equal(one, two, sizeof one);
    munmap(call.workspace, needed);
    munmap(far, bytes);
}

static void count(void **state) {
    (void)state;
    print_message("%d wrong nodes\n", n_cases);
    assert_true(n_cases >= 95);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes),
        cmocka_unit_test(types),
        cmocka_unit_test(caches),
        cmocka_unit_test(shapes),
        cmocka_unit_test(masks),
        cmocka_unit_test(arrays),
        cmocka_unit_test(versions_of_structs),
        cmocka_unit_test(sizes_of_outputs),
        cmocka_unit_test(without_arrays),
        cmocka_unit_test(edges),
        cmocka_unit_test(special_masks),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(beyond_32_bits),
        cmocka_unit_test(count),
    };
    return cmocka_run_group_tests(tests, make_world, end_world);
}
