/**
 * qkv: exact scaled dot-product attention.
 *
 * Attention over dense float arrays takes one call:
 *
 *     qkv_ctx *ctx = NULL;
 *     if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) return 1;
 *     const qkv_status status = qkv_attention(ctx, 1, 1, 3, 3, 2, QKV_CAUSAL, q, k, v, o);
 *     if (status != QKV_OK) fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
 *     qkv_ctx_free(ctx);
 *
 * This header goes on step by step:
 *     1. context            threads, memory, instruction set
 *     2. qkv_attention      one call for dense arrays
 *     3. descriptor         strides, types, masks, windows, packed sequences, sinks, dropout;
 *                           which keys a query sees
 *     4. forward, backward  any problem that a descriptor says
 *     5. call options       workspace, cancelling, progress
 *     6. plan               how a call is computed, and why
 * qkv/kv.h decodes from a cache. qkv/stats.h and qkv/columns.h describe the weights of a call.
 *
 * Arrays belong to the caller. Strides are in elements; counts are int64_t; sizes in bytes are
 * size_t. The library never prints, exits, changes the locale or the environment, or installs a
 * signal handler. The floating-point state of the calling thread is restored.
 *
 * A pointer may be NULL where its comment says so. Any other NULL is refused, never read: with
 * QKV_ERR_ARGUMENT, or, by a function without a status, with NULL, 0, -1 or "".
 */
#ifndef QKV_QKV_H
#define QKV_QKV_H

#include "qkv/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. Context ------------------------------------------------------------------------------ */

/**
 * Memory functions of the caller. alloc returns memory of the given bytes and alignment (a power of
 * two), or NULL. release gets the same size. Both are called on the calling thread only. They must
 * work until the last context that shares threads is freed. NULL in both: the C library's.
 */
typedef struct qkv_allocator {
    void *(*alloc)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *pointer, size_t bytes);
    void *user;
} qkv_allocator;

/**
 * Threads of the caller. parallel_for calls task(argument, index) once for each index in
 * [0, n_tasks), in any order, on any threads. It returns when all tasks are done. n_threads says
 * how many of them run at once. Results do not depend on it.
 */
typedef struct qkv_executor {
    void (*parallel_for)(void *user, int n_tasks, void (*task)(void *argument, int index),
                         void *argument);
    int n_threads;
    void *user;
} qkv_executor;

/** Instruction set, memory and threads. A context serves one call at a time; contexts are cheap. */
typedef struct qkv_ctx qkv_ctx;

typedef struct qkv_ctx_options {
    size_t struct_size;
    /*
     * 1 to 1024, the caller's thread included. 0: QKV_NUM_THREADS of the environment, or else the
     * processors that affinity mask and cgroup quota allow.
     */
    int n_threads;
    /*
     * "scalar", "avx2", "avx512", "avx512bf16" or "neon". NULL: QKV_ISA of the environment, or else
     * the best of this processor.
     */
    const char *isa;
    qkv_allocator allocator;
    /*
     * parallel_for NULL: threads of our own, started at the first call that needs them. With an
     * executor, the field n_threads above is ignored.
     */
    qkv_executor executor;
    /* NULL, or a context whose threads are shared. It may be freed first. */
    qkv_ctx *share_pool;
} qkv_ctx_options;

QKV_DEFINE_INIT(qkv_ctx_options)

/**
 * Makes a context. Its workspace grows to the largest that a call needs, and is kept.
 *
 * @param options  NULL for the defaults.
 * @param ctx      receives the context; NULL after an error.
 * @param error    NULL, or receives the reason of a failure.
 * @return QKV_OK; QKV_ERR_ARGUMENT for an isa that is unknown or that this processor lacks;
 *         QKV_ERR_VERSION; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_ctx_create(const qkv_ctx_options *options, qkv_ctx **ctx,
                                                qkv_error *error);

/** Frees the context. NULL is allowed. */
QKV_API void qkv_ctx_free(qkv_ctx *ctx);

/** Returns the text of the last failure on this context, "" after a success. Valid until the next
 * call. */
QKV_API const char *qkv_ctx_message(const qkv_ctx *ctx);

/** Returns the instruction set of this context, "avx512"; "" for NULL. */
QKV_API const char *qkv_ctx_isa(const qkv_ctx *ctx);

/** Returns the number of threads of this context; 0 for NULL. */
QKV_API int qkv_ctx_threads(const qkv_ctx *ctx);

/** Returns the name of the index-th instruction set that is usable here. The best is the last.
 * NULL past the end. */
QKV_API const char *qkv_isa_name(int index);

/* ---- 2. One call ----------------------------------------------------------------------------- */

/** Which keys a query sees in qkv_attention. */
typedef enum qkv_visibility {
    /* Query i sees all keys. */
    QKV_FULL = 0,
    /* Query i sees keys 0 to i. QKV_SET_Q_OFFSET of a descriptor (section 3) aligns otherwise. */
    QKV_CAUSAL = 1
} qkv_visibility;

/**
 * Attention over dense float arrays:
 *     o[b,h,i,:] = sum_j softmax_j(<q[b,h,i,:], k[b,h,j,:]> / sqrt(head_dim)) v[b,h,j,:]
 * with shapes q, o [n_batch][n_heads][len_q][head_dim] and k, v
 * [n_batch][n_heads][len_k][head_dim].
 *
 * It is qkv_attention_forward with the descriptor of qkv_attention_desc_contiguous, and has its
 * contract and its bits.
 *
 * @return QKV_OK, or an error: o is then untouched, and qkv_ctx_message(ctx) has the reason.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention(qkv_ctx *ctx, int64_t n_batch, int64_t n_heads,
                                               int64_t len_q, int64_t len_k, int64_t head_dim,
                                               qkv_visibility visibility, const float *q,
                                               const float *k, const float *v, float *o);

/* ---- 3. Descriptor --------------------------------------------------------------------------- */

typedef enum qkv_dtype {
    QKV_F32 = 0,
    /* The upper half of a float. */
    QKV_BF16 = 1,
    /* IEEE binary16. */
    QKV_F16 = 2,
    /* Stored keys and values only (qkv/kv.h): int8_t, with a scale for each token. */
    QKV_I8 = 3
} qkv_dtype;

/** The arithmetic of 16-bit inputs. docs/numerics.md has the order of operations of each class. */
typedef enum qkv_class {
    /*
     * With bf16, by instruction set of the context and processor: amx with "avx512bf16" and AMX, dp
     * with "avx512bf16" on AMD, otherwise f32. f32 and f16 inputs: f32.
     */
    QKV_CLASS_AUTO = 0,
    /* Inputs become floats, which is exact. */
    QKV_CLASS_F32 = 1,
    /* bf16 only: dot products of pairs (VDPBF16PS); weights are rounded to bf16. */
    QKV_CLASS_DP = 2,
    /* bf16 only: the same with 32 elements at a time (TDPBF16PS). */
    QKV_CLASS_AMX = 3
} qkv_class;

typedef enum qkv_mask_type {
    QKV_MASK_NONE = 0,
    /* Bytes. Non-zero: query i may see key j. */
    QKV_MASK_BOOL = 1,
    /* Floats, added to the score. -INFINITY hides the key; NaN and +INFINITY make the row NaN. */
    QKV_MASK_F32 = 2,
    /* As BOOL, with key j in bit j % 8 of byte j / 8. Strides are in bytes, that of keys is 1. */
    QKV_MASK_BITS = 3,
    /* As F32, in 16 bits. */
    QKV_MASK_BF16 = 4,
    QKV_MASK_F16 = 5
} qkv_mask_type;

/**
 * Flags of a descriptor. A field that a flag names counts only if the flag is set. Sizes, strides,
 * dtype and arithmetic have no flag, and always count.
 */
enum {
    /* scale. Otherwise the scale is 1/sqrt(head_dim), or 1 if head_dim is 0. */
    QKV_SET_SCALE = 1u << 0,
    /* softcap > 0: a score s becomes softcap * tanh(s / softcap). */
    QKV_SET_SOFTCAP = 1u << 1,
    /* Query i sees keys j <= i + q_offset. */
    QKV_SET_CAUSAL = 1u << 2,
    /*
     * -window_left <= j - (i + q_offset) <= window_right. -1 sets no bound. window_right 0 hides
     * the keys after the query. The last 256 keys, the query's own among them: window_left 255 and
     * window_right 0.
     */
    QKV_SET_WINDOW = 1u << 3,
    /* q_offset, or q_offsets. Otherwise the offset is 0. */
    QKV_SET_Q_OFFSET = 1u << 4,
    /* kv_len: keys j >= kv_len[b] are hidden, and never read. */
    QKV_SET_KV_LEN = 1u << 5,
    /* q_len: query rows i >= q_len[b] are neither read nor written. */
    QKV_SET_Q_LEN = 1u << 6,
    /* mask, mask_type, mask_stride, mask_len_k. */
    QKV_SET_MASK = 1u << 7,
    /* With causal: j < prefix_len[b] or j <= i + q_offset. */
    QKV_SET_PREFIX_LEN = 1u << 8,
    /* floor((i + q_offset) / chunk) == floor(j / chunk). */
    QKV_SET_CHUNK = 1u << 9,
    /* seg_q[b][i] == seg_k[b][j]. */
    QKV_SET_SEGMENTS = 1u << 10,
    /* alibi_slopes: slope[h] * (j - i - q_offset) is added to the score. */
    QKV_SET_ALIBI = 1u << 11,
    /* sinks: a score without a key. It is part of the softmax's sum and of lse. */
    QKV_SET_SINKS = 1u << 12,
    /* o_dtype: QKV_F32 or dtype. Otherwise o has dtype. */
    QKV_SET_O_DTYPE = 1u << 13,
    /* cu_seqlens_q, cu_seqlens_k: sequences packed one after another. */
    QKV_SET_CU_SEQLENS = 1u << 14,
    /* block_len, block_offsets, block_index: lists of visible blocks. */
    QKV_SET_BLOCK_MASK = 1u << 15,
    /* dropout, dropout_seed. */
    QKV_SET_DROPOUT = 1u << 16,
    /* stats: forward and decode write statistics of the weights, too. */
    QKV_SET_STATS = 1u << 17,
    /* distance_bias: a number for each head and distance j - i - q_offset is added to the score. */
    QKV_SET_DISTANCE_BIAS = 1u << 18
};

/** Which statistics, and where to: qkv/stats.h. */
typedef struct qkv_attention_stats qkv_attention_stats;

/**
 * Shapes, strides and rules of one attention problem. A query sees a key only if every rule that is
 * set allows it.
 *
 * Shapes, with the channel as the last dimension, whose stride is always 1:
 *     q [n_batch][n_heads][len_q][head_dim]       k [n_batch][n_kv_heads][len_k][head_dim]
 *     o [n_batch][n_heads][len_q][head_dim_v]     v [n_batch][n_kv_heads][len_k][head_dim_v]
 *     lse [n_batch][n_heads][len_q]               mask [n_batch][n_heads][len_q][len_k]
 * q, k and v have dtype. o has o_dtype if QKV_SET_O_DTYPE is set, and dtype if not. lse is float.
 * Query head h uses key/value head h / (n_heads / n_kv_heads). head_dim and head_dim_v are at most
 * 65,536.
 *
 * Strides are those of batch, head and token, in elements; a mask's fourth is that of keys. Strides
 * of inputs are >= 0: 0 repeats, and rows may overlap. Rows of outputs must not overlap. q in the
 * order [n_batch][len_q][n_heads][head_dim] has the strides
 *     q_stride[0] = len_q * n_heads * head_dim      batch
 *     q_stride[1] = head_dim                        head
 *     q_stride[2] = n_heads * head_dim              token
 *
 * Packed sequences (QKV_SET_CU_SEQLENS) have rows in place of a batch dimension: q
 * [n_heads][cu_seqlens_q[n_batch]][head_dim]. The same holds for k, v, o, lse and gradients. Their
 * batch strides must be 0, so those of qkv_attention_desc_contiguous must be changed. Without
 * dropout a sequence has the bits that it gets alone. Masks, segments, offsets and lengths keep
 * their shapes, and count from the beginning of each sequence. q_len and kv_len may shorten a
 * sequence.
 */
typedef struct qkv_attention_desc {
    size_t struct_size;
    /* QKV_SET_... */
    uint32_t flags;

    /* Shape and layout. */
    qkv_dtype dtype;
    int64_t n_batch, n_heads, n_kv_heads, len_q, len_k, head_dim, head_dim_v;
    int64_t q_stride[3], k_stride[3], v_stride[3], o_stride[3], lse_stride[3];
    /*
     * [n_batch + 1], from 0, never falling: batch b is rows cu[b] to cu[b + 1] - 1. No sequence is
     * longer than len_q, len_k.
     */
    const int64_t *cu_seqlens_q, *cu_seqlens_k;

    /* Visibility. */
    int64_t window_left, window_right;
    /* Position of query 0 among the keys. 0: the corners at the top left coincide. */
    int64_t q_offset;
    /* [n_batch]; NULL: q_offset for all. */
    const int64_t *q_offsets;
    /* [n_batch], 0 to len_k. */
    const int64_t *kv_len;
    /* [n_batch], 0 to len_q. */
    const int64_t *q_len;
    /* [n_batch], 0 to len_k (prefix-LM: Raffel et al. 2020). */
    const int64_t *prefix_len;
    /* At least 1. Keys 0 to chunk - 1 are the first chunk. */
    int64_t chunk;
    /* [n_batch][len_q] and [n_batch][len_k]: documents of a packed row. */
    const int32_t *seg_q, *seg_k;
    /* Strides of the batch; 0 repeats. Those of tokens are 1. */
    int64_t seg_q_stride, seg_k_stride;
    const void *mask;
    qkv_mask_type mask_type;
    /* Batch, head, query, key. 0 repeats. */
    int64_t mask_stride[4];
    /* The mask's last dimension: keys beyond it are hidden. 0: len_k. */
    int64_t mask_len_k;
    /*
     * Block i / block_len of queries sees only the blocks of keys in its list, the elements
     * block_offsets[b][h][block] to block_offsets[b][h][block + 1] - 1 of block_index, ascending.
     * block_offsets is [n_batch][n_heads][ceil(len_q / block_len) + 1]; its rows are dense. Hidden
     * blocks cost no time and no memory. block_len is 32, 64, 96 or 128.
     */
    int64_t block_len;
    const int64_t *block_offsets;
    /* Batch, head; 0 repeats. */
    int64_t block_offsets_stride[2];
    const int32_t *block_index;

    /* Scores. */
    float scale, softcap;
    /* [n_heads]. 0: none for this head (Press et al. 2022). */
    const float *alibi_slopes;
    /* [n_heads], a score each (Xiao et al. 2024). */
    const float *sinks;
    /* 0 to 1: the share of weights that become 0 (Srivastava et al. 2014). */
    float dropout;
    /*
     * Philox 4x32-10 (Salmon et al. 2011) decides by this seed, b, h, i and j which weights become
     * 0.
     */
    uint64_t dropout_seed;

    /* Output and arithmetic. */
    qkv_dtype o_dtype;
    qkv_class arithmetic;
    const qkv_attention_stats *stats;

    /*
     * [n_heads][distance_before + 1 + distance_after], dense rows: element distance_before + n of
     * the head's row is added to the score of keys at distance j - i - q_offset = n from their
     * query (Shaw et al. 2018; Raffel et al. 2020). Keys that are further away, on either side, get
     * the row's first or last element. Both numbers are at least 0.
     */
    const float *distance_bias;
    /* From a head's row to the next; 0 repeats. */
    int64_t distance_bias_stride;
    int64_t distance_before, distance_after;
} qkv_attention_desc;

/** What qkv_attention_desc_contiguous calls: it fills the struct_size bytes that desc has. */
QKV_API void qkv_attention_desc_fill(qkv_attention_desc *desc, int64_t n_batch, int64_t n_heads,
                                     int64_t n_kv_heads, int64_t len_q, int64_t len_k,
                                     int64_t head_dim, int64_t head_dim_v);

/**
 * Fills a descriptor for floats that are dense in the order of their shapes. No flag is set. Change
 * types and strides and set flags afterwards. Nothing is checked here.
 */
static inline void qkv_attention_desc_contiguous(qkv_attention_desc *desc, int64_t n_batch,
                                                 int64_t n_heads, int64_t n_kv_heads, int64_t len_q,
                                                 int64_t len_k, int64_t head_dim,
                                                 int64_t head_dim_v) {
    if (!desc) return;
    desc->struct_size = sizeof *desc;
    qkv_attention_desc_fill(desc, n_batch, n_heads, n_kv_heads, len_q, len_k, head_dim, head_dim_v);
}

/** A number of a rule of visibility, or a list of them. It is a field of the descriptor. */
typedef struct qkv_rule_field {
    /* "window_left" */
    const char *name;
    /* Where it lies in qkv_attention_desc. */
    size_t offset;
    /* 0: an int64_t. 1: a const int64_t *, [n_batch]. */
    int per_batch;
    /* 1: a list that may be NULL. If it is not, it stands in place of the field before it. */
    int nullable;
    /* What a value may be. */
    int64_t least, most;
    /* NULL, or the size that no value exceeds: "len_q", "len_k". */
    const char *limit;
    /* NULL, or what `least` stands for: "unbounded". */
    const char *least_means;
} qkv_rule_field;

/** A rule of visibility by position. */
typedef struct qkv_rule {
    /* "window" */
    const char *name;
    /* When query i sees key j, in terms of the fields: "i < q_len". */
    const char *definition;
    /* QKV_SET_... */
    uint32_t flag;
    /* 0, or the flag of the rule that must be set, too. */
    uint32_t needs;
    int n_fields;
    const qkv_rule_field *fields;
} qkv_rule;

/** Returns the index-th rule of visibility; NULL past the end. The rules never change. */
QKV_API const qkv_rule *qkv_attention_rule(int index);

/**
 * Finds the first interval of keys, at or after key `from`, that query i of batch b sees by
 * position. Only the rules of qkv_attention_rule count: a mask and a list of blocks may hide more.
 *
 * Each descriptor without segments has one interval for each query. Both its ends then never fall
 * as i grows. The next interval begins at or after *end.
 * Time: that of checking the descriptor; with segments also the keys that are looked at.
 *
 * @param first, end  receive the interval, *first <= j < *end. *first == *end: there is none.
 * @return QKV_OK; QKV_ERR_ARGUMENT for a NULL, or for b or i that is none of the descriptor's; or
 *         what the call would return for this descriptor.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_visible_keys(const qkv_attention_desc *desc,
                                                            int64_t b, int64_t i, int64_t from,
                                                            int64_t *first, int64_t *end,
                                                            qkv_error *error);

/* ---- 4. Forward and backward ----------------------------------------------------------------- */

/** Workspace, cancelling and progress of one call: step 5. */
typedef struct qkv_call_options qkv_call_options;

/**
 * Scaled dot-product attention, forward.
 *
 * For batch b, query head h, its key/value head g = h / (n_heads / n_kv_heads), and query i:
 *     s[j]       = softcap(scale * <q[b,h,i,:], k[b,g,j,:]>) + mask[b,h,i,j]    (visible keys j)
 *     o[b,h,i,:] = sum_j softmax(s)[j] * v[b,g,j,:]
 *     lse[b,h,i] = log(sum_j exp(s[j]))
 * ALiBi adds slope[h] (j - i - q_offset) to s[j], and a distance bias its element for
 * j - i - q_offset. A sink adds exp(sink[h]) to the sums, and nothing to o. Dropout multiplies the
 * weight of v[j] by 0 or 1 / (1 - dropout); lse does not change. With dropout 1, o is 0. Keys are
 * read in blocks of 256 with a running maximum and sum (Milakov and Gimelshein 2018; Dao et al.
 * 2022, algorithm 1). No array of len_q x len_k is stored.
 *
 * Types: q, k and v have desc->dtype, o has o_dtype. In class f32, 16-bit inputs become floats,
 *     which is exact, and a 16-bit o is rounded once, to nearest even. In classes dp and amx
 *     products are those of bf16, and weights are rounded to bf16.
 * Alignment: every pointer is aligned to its element.
 * Overlap: o and lse must not overlap any array. q, k and v may overlap one another.
 * Special values: a query that sees no key gets o = 0 and lse = -INFINITY (with a sink: the sink).
 *     The rules decide that, never the scores. Hidden keys and values cannot change a result, NaN
 *     included. Keys that no query sees are not read. A visible NaN gives NaN in the rows that see
 *     it, also where its weight is 0. A zero in a float o is +0; a 16-bit o may hold -0 where a
 *     negative float is too small for its type.
 * Accuracy: |o - exact| <= 2^-24 (4 sqrt(head_dim) max_j |scale| sum|q||k_j| + 4 max|added|
 *     + 4 sqrt(len_k) + 16) max|v|, as long as 256 len_k max|v| is a float. A 16-bit o adds half a
 *     unit in its last place. Dropout divides the bound by 1 - dropout. Classes dp and amx add
 *     2^-8 max|v|, with dropout 2^-7 max|v| / (1 - dropout). docs/numerics.md has the bound of lse,
 *     and what sums lose below the normal numbers.
 * Determinism: the bits of a row depend on its query, its keys, the options and the class; with
 *     dropout also on b, h and i. They do not depend on threads, batch, padding, len_q, or, within
 *     a class, on the instruction set. QKV_CLASS_AUTO chooses the class of bf16 by processor.
 * Memory: qkv_attention_workspace. Nothing is allocated once the context has that much.
 * Threads: those of the context.
 *
 * @param lse   NULL: not written.
 * @param call  NULL: the defaults.
 * @return QKV_OK, or an error: qkv_ctx_message(ctx) then names field, value and rule, and o and lse
 *         are untouched, except after QKV_ERR_CANCELLED.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_forward(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                                       const void *q, const void *k, const void *v,
                                                       void *o, float *lse,
                                                       const qkv_call_options *call);

/**
 * Gradients that come in (d_o, d_lse) and go out (all others). d_o has the type of o; d_q, d_k and
 * d_v have that of q, k and v.
 */
typedef struct qkv_attention_grads {
    size_t struct_size;
    /* [n_batch][n_heads][len_q][head_dim_v] */
    const void *d_o;
    /* NULL, or with the lse_stride of the descriptor. */
    const float *d_lse;
    void *d_q, *d_k, *d_v;
    int64_t d_o_stride[3], d_q_stride[3], d_k_stride[3], d_v_stride[3];
    /* NULL, or [n_heads]; with QKV_SET_SINKS. */
    float *d_sinks;
    /* NULL, or the shape of an additive mask, summed where d_mask_stride is 0. */
    float *d_mask;
    int64_t d_mask_stride[4];
    /*
     * NULL, or [n_heads][distance_before + 1 + distance_after]; with QKV_SET_DISTANCE_BIAS. Rows
     * are dense; with a stride of 0 from head to head there is one, the sum of all.
     */
    float *d_distance_bias;
    int64_t d_distance_bias_stride;
} qkv_attention_grads;

/** What qkv_attention_grads_contiguous calls: it fills the struct_size bytes that grads has. */
QKV_API void qkv_attention_grads_fill(qkv_attention_grads *grads, const qkv_attention_desc *desc);

/**
 * Fills the strides for arrays that are dense in the shapes of desc, with all pointers NULL. d_mask
 * and d_distance_bias get the shape of mask and distance_bias, and a stride of 0 where these have
 * one.
 */
static inline void qkv_attention_grads_contiguous(qkv_attention_grads *grads,
                                                  const qkv_attention_desc *desc) {
    if (!grads || !desc) return;
    grads->struct_size = sizeof *grads;
    qkv_attention_grads_fill(grads, desc);
}

/**
 * Scaled dot-product attention, backward. Weights are computed again from lse (Dao et al. 2022,
 * algorithm 4). d_q, d_k and d_v are required. They are overwritten, as are d_sinks, d_mask and
 * d_distance_bias.
 *
 *     p[i,j]  = exp(s[i,j] - lse[i])
 *     delta[i] = <d_o[i,:], o[i,:]> - d_lse[i]
 *     d_v[j]  = sum_i p[i,j] d_o[i]
 *     ds[i,j] = p[i,j] (<d_o[i,:], v[j,:]> - delta[i])
 *     d_q[i]  = scale sum_j ds[i,j] t[i,j] k[j]
 *     d_k[j]  = scale sum_i ds[i,j] t[i,j] q[i]
 *     d_sinks[h] = -sum_b sum_i exp(sink[h] - lse[i]) delta[i]
 *     d_mask[b,h,i,j] = ds[i,j]; 0 for keys that i does not see and rows at or beyond q_len
 *     d_distance_bias[h,n] = the sum of ds over all b, i and j whose score has this element
 * where t = 1 - tanh^2 of the soft cap, or 1 without one. With dropout, p in d_v and <d_o, v> in ds
 * have the factor that forward gave the weight. d_k and d_v sum over the query heads of a key/value
 * head. d_mask sums over the dimensions in which d_mask_stride is 0, and over all keys if the
 * mask's last dimension is 1. d_mask and d_distance_bias cost one more pass over the scores each,
 * and no memory.
 *
 * o and lse are those of the forward call with the same descriptor.
 *
 * Types: sums are floats. 16-bit gradients are rounded once, when their sums are complete.
 * Overlap: outputs must not overlap any array.
 * Special values: rows that see no key, and keys that no query sees, get 0. Hidden K, V, Q and d_o
 *     cannot change a gradient. Rows of d_q at or beyond q_len are not written. Keys at or beyond
 *     kv_len get 0.
 * Accuracy: at most 4 times the error of the textbook algorithm in f32, plus 16 * 2^-24 max|x|. A
 *     16-bit gradient adds half a unit in its last place. In class dp the textbook rounds p and ds
 *     to bf16 before it sums them.
 * Determinism, threads, errors: as forward. The class is dp where that of forward is, and o is
 *     bf16; otherwise f32. d_k, d_v, d_sinks, d_mask and d_distance_bias are sums over queries,
 *     heads or batches. Memory: qkv_attention_backward_workspace.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_backward(qkv_ctx *ctx,
                                                        const qkv_attention_desc *desc,
                                                        const void *q, const void *k, const void *v,
                                                        const void *o, const float *lse,
                                                        const qkv_attention_grads *grads,
                                                        const qkv_call_options *call);

/**
 * Merges results over disjoint sets of keys into the result over their union:
 *     lse = log(sum_p exp(lse_p)),   o = sum_p exp(lse_p - lse) o_p.
 *
 * All arrays have the shapes, strides and types that desc gives for o and lse. Its other fields are
 * checked, and not used. A part in which a row sees no key (lse = -INFINITY) adds nothing. If no
 * part sees one, o = 0 and lse = -INFINITY.
 * Overlap: o and lse may be those of one of the parts, and must not overlap any other array.
 * Determinism: parts are added in the order given. Memory: none.
 * Accuracy: that of forward, plus 4 * 2^-24 |lse| max|o|.
 *
 * @param lse  NULL: not written.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_merge(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                                     int n_parts, const void *const *o_parts,
                                                     const float *const *lse_parts, void *o,
                                                     float *lse);

/* ---- 5. Call options ------------------------------------------------------------------------- */

/** Options of one call. A NULL pointer, or 0 in all fields but struct_size: the defaults. */
struct qkv_call_options {
    size_t struct_size;
    /*
     * NULL: memory of the context. Otherwise aligned to 64, and at least the size that the query
     * returns.
     */
    void *workspace;
    size_t workspace_bytes;
    /*
     * NULL, or read between tasks: non-zero ends the call with QKV_ERR_CANCELLED. Another thread or
     * a signal handler must write it atomically, as in
     * __atomic_store_n(&flag, 1, __ATOMIC_RELAXED). The same holds for every field `cancel`.
     *
     * The call returns when the tasks under way are done. A task of forward packs the keys of a
     * head, or attends 96 queries of it. One of backward takes 256 keys and all their queries, one
     * of decode 1,024 keys. A call without such a field cannot be cancelled.
     */
    const int *cancel;
    /* NULL, or called on the calling thread. */
    void (*progress)(void *user, int64_t done, int64_t total);
    void *progress_user;
};

QKV_DEFINE_INIT(qkv_call_options)

/**
 * Returns in *bytes the workspace that a forward or backward call needs: a closed formula of
 * shapes, instruction set and number of threads (docs/numerics.md). It never grows with
 * len_q x len_k.
 * @return QKV_OK, or what the call would return for this descriptor. block_offsets and block_index
 *         are not read, so errors in them are found by the call alone.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_workspace(qkv_ctx *ctx,
                                                         const qkv_attention_desc *desc,
                                                         size_t *bytes);
QKV_API QKV_NODISCARD qkv_status qkv_attention_backward_workspace(qkv_ctx *ctx,
                                                                  const qkv_attention_desc *desc,
                                                                  size_t *bytes);

/* ---- 6. Plan --------------------------------------------------------------------------------- */

typedef enum qkv_pass {
    QKV_PASS_FORWARD = 0,
    QKV_PASS_BACKWARD = 1,
    /* qkv_attention_decode: qkv/kv.h. */
    QKV_PASS_DECODE = 2
} qkv_pass;

enum { QKV_REASON_BYTES = 192 };

/**
 * How a call is computed, and why. The caller sets struct_size and pass; qkv_attention_explain
 * writes the rest. Names and numbers are for reading: another version or processor has others.
 */
typedef struct qkv_attention_plan {
    size_t struct_size;
    qkv_pass pass;
    /*
     * "attend_block"; "attend_small" (heads of at most 16 queries and 16 keys, without packing);
     * "attend_small, attend_block" (some heads each); "attend_bwd"; "decode_split"; "none".
     */
    const char *kernel;
    /* As qkv_ctx_isa. */
    const char *isa;
    /* The class: "f32", "dp", "amx". Within a class all instruction sets have the same bits. */
    const char *arithmetic;
    /* The same as QKV_CLASS_F32, _DP or _AMX. */
    qkv_class arithmetic_class;
    /* Threads that take part. */
    int n_threads;
    /* Queries and keys that a kernel works on at a time; in decode, queries of all its heads. */
    int query_block, key_block;
    /* The tile of scores that is kept in registers. */
    int tile_rows, tile_keys;
    /* Key/value heads whose K and V are packed at the same time. */
    int packed_heads;
    /* Key/value heads of all batches: of one thread each; of all threads; of attend_small. */
    int64_t own_heads, shared_heads, small_heads;
    /* Pieces of work that threads draw. */
    int64_t n_tasks;
    /*
     * Hidden keys are skipped in pieces of skip_rows queries and skip_keys keys. The counts are
     * pieces in which all, some and no queries see all keys, by position alone. Heads of
     * attend_small are not counted. -1: there are too many to count.
     */
    int skip_rows, skip_keys;
    int64_t pieces_full, pieces_partial, pieces_hidden;
    /* What qkv_attention_workspace returns, or ..._backward_workspace, ..._decode_workspace. */
    size_t workspace_bytes;
    /* Of one key/value head: panels of 32 keys, and of 32 channels. */
    size_t packed_bytes;
    char kernel_reason[QKV_REASON_BYTES], isa_reason[QKV_REASON_BYTES],
        arithmetic_reason[QKV_REASON_BYTES], block_reason[QKV_REASON_BYTES],
        thread_reason[QKV_REASON_BYTES], sharing_reason[QKV_REASON_BYTES],
        packing_reason[QKV_REASON_BYTES], skip_reason[QKV_REASON_BYTES],
        workspace_reason[QKV_REASON_BYTES];
} qkv_attention_plan;

QKV_DEFINE_INIT(qkv_attention_plan)

/**
 * Explains how a call with this descriptor is computed: kernel, instruction set, class, blocks,
 * threads and workspace, each with its reason. The call itself makes the same plan, from shapes and
 * rules alone. One decision depends on values: attend_small passes a head to attend_block, with the
 * same bits, if one of its rows is not finite.
 * Memory: none. Threads: none. Time: grows with len_q, not with len_q x len_k.
 *
 * @param plan  written only after success, and only the struct_size bytes that it has.
 * @return QKV_OK, or what qkv_attention_workspace would return for this descriptor.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_explain(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                                       qkv_attention_plan *plan);

#ifdef __cplusplus
}
#endif

#include "qkv/stats.h"

#endif
