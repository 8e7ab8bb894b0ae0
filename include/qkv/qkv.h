/**
 * qkv: exact scaled dot-product attention.
 *
 * A whole program:
 *
 *     qkv_ctx *ctx = NULL;
 *     qkv_attention_desc desc;
 *     if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) return 1;
 *     qkv_attention_desc_contiguous(&desc, 1, 12, 12, 4096, 4096, 64, 64);
 *     if (qkv_attention_forward(ctx, &desc, q, k, v, o, lse, NULL) != QKV_OK)
 *         fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
 *     qkv_ctx_destroy(ctx);
 *
 * Arrays belong to the caller. Strides are in elements, counts are int64_t, sizes in bytes are
 * size_t. The library never prints, exits, changes the locale or the environment, or installs a
 * signal handler; the floating-point state of the calling thread is left as it was found.
 */
#ifndef QKV_QKV_H
#define QKV_QKV_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define QKV_API       __attribute__((visibility("default")))
#define QKV_NODISCARD __attribute__((warn_unused_result))
#else
#define QKV_API
#define QKV_NODISCARD
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define QKV_VERSION_MAJOR 0
#define QKV_VERSION_MINOR 1
#define QKV_VERSION_PATCH 0

/** "0.1.0": the version of the library that runs, which may be newer than this header. */
QKV_API const char *qkv_version(void);

/* ---- Status ---------------------------------------------------------------------------------- */

/** What a call came to. Values are pinned: they never change meaning. */
typedef enum qkv_status {
    QKV_OK = 0,
    QKV_ERR_ARGUMENT = -1,    /* a pointer, flag or number that no call may have */
    QKV_ERR_SHAPE = -2,       /* sizes that do not fit each other */
    QKV_ERR_STRIDE = -3,      /* strides that are negative, overflow, or make output rows overlap */
    QKV_ERR_DTYPE = -4,       /* a type, or a mix of types, that is not supported */
    QKV_ERR_MEMORY = -5,      /* an allocation failed */
    QKV_ERR_VERSION = -6,     /* a struct newer than this library that uses what it does not know */
    QKV_ERR_FORMAT = -7,      /* a file that breaks its own format */
    QKV_ERR_LIMIT = -8,       /* legal, but above one of our limits, which the message names */
    QKV_ERR_UNSUPPORTED = -9, /* legal, but not implemented; the message says what */
    QKV_ERR_IO = -10,         /* the operating system refused to read or write */
    QKV_ERR_BUSY = -11,       /* the context is inside another call */
    QKV_ERR_CANCELLED = -12 /* the caller's cancel flag was raised; outputs may be partly written */
} qkv_status;

/** "QKV_ERR_SHAPE" for QKV_ERR_SHAPE; "unknown status" for a number that is none. Never NULL. */
QKV_API const char *qkv_status_name(qkv_status status);

/**
 * Detail of a failure, for functions that have no object to keep it in. Always a nullable last
 * parameter. message names the field, the value and the rule: "o_stride[2] = 60 is less than
 * head_dim_v = 64".
 */
typedef struct qkv_error {
    qkv_status status;
    char message[1000];
} qkv_error;

/* ---- Context --------------------------------------------------------------------------------- */

/**
 * Memory. alloc returns bytes of memory aligned to alignment (a power of two), or NULL; release
 * gets the same size back. Both may be called from the calling thread only, and must work
 * until the last context that shares threads with this one is destroyed. Both NULL: aligned_alloc
 * and free.
 */
typedef struct qkv_allocator {
    void *(*alloc)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *pointer, size_t bytes);
    void *user;
} qkv_allocator;

/**
 * A host's own threads. parallel_for calls task(argument, index) once for each index in [0,
 * n_tasks), in any order, on any threads, and returns when all are done. n_threads is how many of
 * them run at once. Results do not depend on it.
 */
typedef struct qkv_executor {
    void (*parallel_for)(void *user, int n_tasks, void (*task)(void *argument, int index),
                         void *argument);
    int n_threads;
    void *user;
} qkv_executor;

typedef struct qkv_ctx qkv_ctx;

typedef struct qkv_ctx_options {
    size_t struct_size; /* sizeof(qkv_ctx_options), set by QKV_CTX_OPTIONS_INIT */
    int n_threads;      /* 1 ... 1024, the caller's included; 0: QKV_NUM_THREADS in the environment,
                           or the processors that affinity mask and cgroup quota allow */
    const char *isa; /* "scalar", "avx2", "neon", ...; NULL: QKV_ISA in the environment, or best */
    qkv_allocator allocator;
    qkv_executor executor; /* parallel_for NULL: our own pool, started at the first parallel call */
    qkv_ctx *share_pool; /* NULL, or a context whose threads (and their number) to share; it may be
                            destroyed first */
} qkv_ctx_options;

#define QKV_CTX_OPTIONS_INIT                                                                       \
    { sizeof(qkv_ctx_options), 0, NULL, { NULL, NULL, NULL }, { NULL, 0, NULL }, NULL }

/**
 * Makes a context: the choice of instruction set, an allocator, threads, and an arena that grows to
 * the largest workspace seen. A context serves one call at a time (a second one gets QKV_ERR_BUSY);
 * contexts are cheap.
 *
 * @param options  NULL for the defaults.
 * @param ctx      receives the context; set to NULL on error.
 * @param error    nullable; receives the reason of a failure.
 * @return QKV_OK; QKV_ERR_ARGUMENT for an unknown isa or one that this processor lacks;
 *         QKV_ERR_VERSION; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_ctx_create(const qkv_ctx_options *options, qkv_ctx **ctx,
                                                qkv_error *error);

/** Frees everything. NULL is allowed. */
QKV_API void qkv_ctx_destroy(qkv_ctx *ctx);

/** Text of the last failure on this context, "" after a success; valid until the next call. */
QKV_API const char *qkv_ctx_message(const qkv_ctx *ctx);

/** The instruction set that this context computes with: "avx512". */
QKV_API const char *qkv_ctx_isa(const qkv_ctx *ctx);

/** The number of threads that this context uses. */
QKV_API int qkv_ctx_threads(const qkv_ctx *ctx);

/** Name of the index-th instruction set that is usable here, best last; NULL past the end. */
QKV_API const char *qkv_isa_name(int index);

/* ---- Description of a problem ---------------------------------------------------------------- */

typedef enum qkv_dtype {
    QKV_F32 = 0,
    QKV_BF16 = 1, /* the upper half of a float */
    QKV_F16 = 2,  /* IEEE binary16 */
    QKV_I8 = 3    /* stored keys and values only (qkv/kv.h): int8_t, with a scale for each token */
} qkv_dtype;

/** Which operations 16-bit inputs are computed with; docs/numerics.md has the order of each. */
typedef enum qkv_class {
    QKV_CLASS_AUTO = 0, /* for bf16 amx or dp where the processor is fast at it, otherwise f32 */
    QKV_CLASS_F32 = 1,  /* converted to floats, which is exact, while packing */
    QKV_CLASS_DP = 2,   /* bf16 only: dot products of pairs (VDPBF16PS), weights rounded to bf16 */
    QKV_CLASS_AMX = 3   /* the same, of 32 elements at a time (TDPBF16PS) */
} qkv_class;

typedef enum qkv_mask_type {
    QKV_MASK_NONE = 0,
    QKV_MASK_BOOL = 1, /* bytes; non-zero: query i may see key j */
    QKV_MASK_F32 = 2,  /* added to the score; -INFINITY: hidden; NaN, +INFINITY: the row is NaN */
    QKV_MASK_BITS = 3, /* like BOOL, key j in bit j % 8 of byte j / 8; strides in bytes, key 1 */
    QKV_MASK_BF16 = 4, /* like F32, in 16 bits */
    QKV_MASK_F16 = 5
} qkv_mask_type;

/** What is set in a descriptor. A field without its flag is ignored: 0 keeps its meaning. */
enum {
    QKV_SET_SCALE = 1u << 0,      /* scale; otherwise 1/sqrt(head_dim), or 1 if head_dim is 0 */
    QKV_SET_SOFTCAP = 1u << 1,    /* softcap > 0: s becomes softcap * tanh(s / softcap) */
    QKV_SET_CAUSAL = 1u << 2,     /* j <= i + q_offset */
    QKV_SET_WINDOW = 1u << 3,     /* -window_left <= j - (i + q_offset) <= window_right; -1: any */
    QKV_SET_Q_OFFSET = 1u << 4,   /* q_offset or q_offsets; otherwise 0 */
    QKV_SET_KV_LEN = 1u << 5,     /* kv_len: keys j >= kv_len[b] are hidden and never read */
    QKV_SET_Q_LEN = 1u << 6,      /* q_len: query rows i >= q_len[b] are neither read nor written */
    QKV_SET_MASK = 1u << 7,       /* mask, mask_type, mask_stride, mask_len_k */
    QKV_SET_PREFIX_LEN = 1u << 8, /* with causal: j < prefix_len[b] or j <= i + q_offset */
    QKV_SET_CHUNK = 1u << 9,      /* chunk: floor((i + q_offset) / chunk) == floor(j / chunk) */
    QKV_SET_SEGMENTS = 1u << 10,  /* seg_q, seg_k: seg_q[b][i] == seg_k[b][j] */
    QKV_SET_ALIBI = 1u << 11,     /* alibi_slopes: slope[h] * (j - i - q_offset) joins the mask */
    QKV_SET_SINKS = 1u << 12,     /* sinks: a score of no key, part of the sum and of lse only */
    QKV_SET_O_DTYPE = 1u << 13,   /* o_dtype: QKV_F32 or dtype; otherwise o has dtype */
    QKV_SET_CU_SEQLENS =
        1u << 14, /* cu_seqlens_q, cu_seqlens_k: batches packed one after another */
    QKV_SET_BLOCK_MASK = 1u << 15, /* block_len, block_offsets, block_index: visible blocks */
    QKV_SET_DROPOUT = 1u << 16,    /* dropout, dropout_seed */
    QKV_SET_STATS = 1u << 17 /* stats: forward and decode write statistics of the weights, too */
};

/** Which statistics, and where to: qkv/stats.h. */
typedef struct qkv_attention_stats qkv_attention_stats;

/**
 * Shapes, strides and rules of one attention problem. A query sees a key only if every rule that is
 * set allows it.
 *
 * Logical shapes, with the channel as the last dimension, whose stride is always 1:
 *     q [n_batch][n_heads][len_q][head_dim]       k [n_batch][n_kv_heads][len_k][head_dim]
 *     o [n_batch][n_heads][len_q][head_dim_v]     v [n_batch][n_kv_heads][len_k][head_dim_v]
 *     lse [n_batch][n_heads][len_q]               mask [n_batch][n_heads][len_q][len_k]
 * q, k and v have dtype, o has o_dtype if QKV_SET_O_DTYPE is set and dtype if not, lse is float.
 * Strides are those of batch, head and token (the mask's fourth: key), in elements. Those of inputs
 * are >= 0: 0 repeats, and rows may overlap. Rows of outputs must not overlap. Query head h uses
 * key/value head h / (n_heads / n_kv_heads). head_dim and head_dim_v are at most 65,536.
 *
 * Packed sequences (QKV_SET_CU_SEQLENS) have no batch dimension in q, k, v, o, lse and their
 * gradients, but rows: q [n_heads][cu_seqlens_q[n_batch]][head_dim]. Their batch strides must be 0
 * (qkv_attention_desc_contiguous sets others). Work is shared out by their real lengths; results of
 * a sequence have the bits that it gets alone. Masks, segments, offsets and lengths keep their
 * n_batch, len_q and len_k and count from the beginning of each sequence, which q_len and kv_len may
 * shorten.
 */
typedef struct qkv_attention_desc {
    size_t struct_size;
    uint32_t flags;
    qkv_dtype dtype;
    int64_t n_batch, n_heads, n_kv_heads, len_q, len_k, head_dim, head_dim_v;
    int64_t q_stride[3], k_stride[3], v_stride[3], o_stride[3], lse_stride[3];
    float scale, softcap;
    int64_t window_left, window_right;
    int64_t q_offset; /* place of query 0 among the keys: 0 top-left, len_k - len_q bottom-right */
    const int64_t *q_offsets; /* one per batch; NULL: q_offset for all */
    const int64_t *kv_len;    /* one per batch, 0 ... len_k */
    const int64_t *q_len;     /* one per batch, 0 ... len_q */
    const void *mask;
    qkv_mask_type mask_type;
    int64_t mask_stride[4];    /* 0 broadcasts */
    int64_t mask_len_k;        /* the mask's last dimension: keys beyond it are hidden; 0: len_k */
    const int64_t *prefix_len; /* one per batch, 0 ... len_k (prefix-LM: Raffel et al. 2020) */
    int64_t chunk;             /* at least 1; keys 0 ... chunk - 1 are the first */
    const int32_t *seg_q,
        *seg_k; /* [n_batch][len_q], [n_batch][len_k]: documents of a packed row */
    int64_t seg_q_stride, seg_k_stride; /* of the batch; tokens are dense; 0 broadcasts */
    const float *alibi_slopes;          /* [n_heads]; 0: none for that head (Press et al. 2022) */
    const float *sinks;                 /* [n_heads], a logit each (Xiao et al. 2024; gpt-oss) */
    qkv_dtype o_dtype;
    qkv_class arithmetic;
    /*
     * [n_batch + 1], from 0, never falling: batch b is rows cu[b] ... cu[b + 1] - 1 of arrays whose
     * batch stride is 0; no sequence is longer than len_q, len_k.
     */
    const int64_t *cu_seqlens_q, *cu_seqlens_k;
    /*
     * Query i sees key j only if block i / block_len has j / block_len in its list: the elements
     * block_offsets[b][h][block] ... block_offsets[b][h][block + 1] - 1 of block_index, strictly
     * ascending. block_offsets: [n_batch][n_heads][ceil(len_q / block_len) + 1], its rows dense.
     * Hidden blocks cost nothing, and no memory: time goes with the blocks that are listed.
     */
    int64_t block_len; /* 32, 64, 96 or 128 */
    const int64_t *block_offsets;
    int64_t block_offsets_stride[2]; /* batch, head; 0 broadcasts */
    const int32_t *block_index;
    float dropout; /* 0 ... 1: the share of weights that become 0 (Srivastava et al. 2014) */
    uint64_t
        dropout_seed; /* with b, h, i, j it decides which: Philox 4x32-10 (Salmon et al. 2011) */
    const qkv_attention_stats *stats;
} qkv_attention_desc;

/**
 * Fills a descriptor for arrays that are dense in the order of their logical shapes, with no flag
 * set. Change strides and set flags afterwards. desc must not be NULL; nothing else is checked
 * here.
 */
QKV_API void qkv_attention_desc_contiguous(qkv_attention_desc *desc, int64_t n_batch,
                                           int64_t n_heads, int64_t n_kv_heads, int64_t len_q,
                                           int64_t len_k, int64_t head_dim, int64_t head_dim_v);

/** What one call may be told. All zeros but struct_size, or a NULL pointer: the defaults. */
typedef struct qkv_call_options {
    size_t struct_size;
    void *workspace; /* NULL: the context's arena. Otherwise aligned to 64, of the queried size */
    size_t workspace_bytes;
    const int *cancel; /* polled between tasks; non-zero ends the call with QKV_ERR_CANCELLED */
    void (*progress)(void *user, int64_t done, int64_t total); /* on the calling thread */
    void *progress_user;
} qkv_call_options;

#define QKV_CALL_OPTIONS_INIT                                                                      \
    { sizeof(qkv_call_options), NULL, 0, NULL, NULL, NULL }

/**
 * Bytes of workspace that a forward (backward) call with this descriptor needs: a closed formula of
 * shapes, instruction set and number of threads (docs/numerics.md), never len_q x len_k.
 * @return QKV_OK, or what the call itself would return for this descriptor; but block_offsets and
 *         block_index are not read here, so that wrong ones are refused by the call alone.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_workspace(qkv_ctx *ctx,
                                                         const qkv_attention_desc *desc,
                                                         size_t *bytes);
QKV_API QKV_NODISCARD qkv_status qkv_attention_backward_workspace(qkv_ctx *ctx,
                                                                  const qkv_attention_desc *desc,
                                                                  size_t *bytes);

/* ---- What will run --------------------------------------------------------------------------- */

typedef enum qkv_pass {
    QKV_PASS_FORWARD = 0,
    QKV_PASS_BACKWARD = 1,
    QKV_PASS_DECODE = 2 /* qkv_attention_decode: kv.h */
} qkv_pass;

enum { QKV_REASON_BYTES = 192 };

/**
 * How a call is computed, and why so. struct_size and pass are the caller's (QKV_ATTENTION_PLAN_INIT,
 * then pass); the rest is written by qkv_attention_explain. Names and numbers are those of this
 * version on this processor: they are for reading, and may be others in the next.
 */
typedef struct qkv_attention_plan {
    size_t struct_size;
    qkv_pass pass;
    /*
     * "attend_block", "attend_small" (heads of at most 16 queries and 16 keys, without packing),
     * "attend_small, attend_block" (some heads this, some that), "attend_bwd", "decode_split";
     * "none": there is nothing to compute.
     */
    const char *kernel;
    const char *isa; /* "avx512": as qkv_ctx_isa */
    const char
        *arithmetic; /* "f32", "dp", "amx": the class, whose bits all instruction sets have */
    int n_threads;   /* that take part */
    int query_block, key_block; /* queries (decode: of all heads that share keys) and keys that a
                                   kernel works on at a time */
    int tile_rows, tile_keys;   /* of the scores that it keeps in registers */
    int packed_heads;           /* key/value heads whose K and V are packed at the same time */
    /* Key/value heads of all batches: done by one thread each; by all together; by attend_small. */
    int64_t own_heads, shared_heads, small_heads;
    int64_t n_tasks; /* pieces of work that threads draw */
    /*
     * Where no query sees a key is left out in pieces of skip_rows queries and skip_keys keys. How
     * many there are, of the heads that attend_small does not take, by position alone (what an
     * explicit mask or segments hide is found out while computing): those in which all queries see
     * all keys, some, none. -1: they are too many to be counted.
     */
    int skip_rows, skip_keys;
    int64_t pieces_full, pieces_partial, pieces_hidden;
    size_t workspace_bytes; /* what qkv_attention_workspace says, ..._backward_, ..._decode_ */
    size_t packed_bytes;    /* of one key/value head: panels of 32 keys, and of 32 channels */
    char kernel_reason[QKV_REASON_BYTES], isa_reason[QKV_REASON_BYTES],
        arithmetic_reason[QKV_REASON_BYTES], block_reason[QKV_REASON_BYTES],
        thread_reason[QKV_REASON_BYTES], sharing_reason[QKV_REASON_BYTES],
        packing_reason[QKV_REASON_BYTES], skip_reason[QKV_REASON_BYTES],
        workspace_reason[QKV_REASON_BYTES];
} qkv_attention_plan;

#define QKV_ATTENTION_PLAN_INIT                                                                    \
    {                                                                                              \
        sizeof(qkv_attention_plan), QKV_PASS_FORWARD, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
            0, 0, 0, 0, 0, 0, 0, 0, "", "", "", "", "", "", "", "", ""                             \
    }

/**
 * Which path a call with this descriptor takes: kernel, instruction set, class, blocks, threads,
 * workspace, each with its reason. It is read off the plan that the call itself makes, from shapes and
 * rules alone; arrays are not looked at. One thing depends on values: attend_small hands a head back to
 * attend_block, with the same bits, if one of its rows is not finite.
 * Memory: none. Threads: none are woken. Time: grows with len_q, not with len_q x len_k.
 *
 * @param plan  written only if the call succeeds.
 * @return QKV_OK, or what qkv_attention_workspace would return for this descriptor.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_explain(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                                       qkv_attention_plan *plan);

/* ---- Attention ------------------------------------------------------------------------------- */

/**
 * Scaled dot-product attention, forward pass.
 *
 * For batch b, query head h, its key/value head g = h / (n_heads / n_kv_heads), and query i:
 *     s[j]       = softcap(scale * <q[b,h,i,:], k[b,g,j,:]>) + mask[b,h,i,j]    (keys j it may see)
 *     o[b,h,i,:] = sum_j softmax(s)[j] * v[b,g,j,:]
 *     lse[b,h,i] = log(sum_j exp(s[j]))
 * ALiBi adds slope[h] (j - i - q_offset) to s[j]; a sink adds exp(sink[h]) to the sums, in the
 * softmax as in lse, and nothing to o. Dropout multiplies the weight of v[j] in o by 0 or by
 * 1 / (1 - dropout), a pure function of dropout_seed, b, h, i and j (docs/numerics.md); lse does not
 * change. 0 drops nothing; with 1, o is 0.
 * Keys are visited in blocks of 256 with a running maximum and sum (Milakov and Gimelshein 2018;
 * Dao et al. 2022, algorithm 1), so no len_q x len_k array is ever stored.
 *
 * Types: q, k, v: desc->dtype; o: o_dtype. 16-bit inputs become floats, which is exact, and a 16-bit
 *     o is rounded once, to nearest even: the bits of the call on floats, rounded (class f32). In
 *     classes dp and amx products are those of bf16, and weights are rounded to it (qkv_class).
 * Strides and alignment: those of desc; every pointer aligned to its element.
 * Overlap: o and lse must overlap nothing; q, k, v may overlap one another.
 * Special values: a query that sees no key gets o = 0 and lse = -INFINITY (its sink, if there is
 *     one), decided by the rules, never by the scores. What a query may not see cannot influence it, NaN included, and keys
 *     that no query may see are never read. A visible NaN gives NaN in the rows that see it, and
 *     only there.
 * Accuracy: |o - exact| <= 2^-24 (4 sqrt(head_dim) max_j |scale| sum|q||k_j| + 4 max|added|
 *     + 4 sqrt(len_k) + 16) max|v|, as long as 256 len_k max|v| is a float; a 16-bit o is within half
 *     a unit in its last place of that. With dropout, divided by 1 - dropout. In classes dp and
 *     amx 2^-9 max|v| more, with dropout 2^-8 max|v| / (1 - dropout).
 * Determinism: the bits of a row depend on its query, its keys and the options (with dropout, on b,
 *     h and i too); not on threads, instruction set, batch, padding or len_q.
 * Memory: qkv_attention_workspace; nothing is allocated once the context's arena has grown to it.
 * Threads: the context's. One call at a time per context.
 *
 * @param lse   nullable.
 * @param call  nullable.
 * @return QKV_OK, or an error: o and lse are then untouched (QKV_ERR_CANCELLED excepted) and
 *         qkv_ctx_message(ctx) names field, value and rule.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_forward(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                                       const void *q, const void *k, const void *v,
                                                       void *o, float *lse,
                                                       const qkv_call_options *call);

/**
 * Gradients: those that come in (d_o, d_lse) and those that go out (d_q, d_k, d_v), with strides
 * like the arrays' own. d_o has the type of o, d_q, d_k and d_v that of q, k and v.
 */
typedef struct qkv_attention_grads {
    size_t struct_size;
    const void *d_o;    /* [n_batch][n_heads][len_q][head_dim_v] */
    const float *d_lse; /* nullable; lse_stride of the descriptor */
    void *d_q, *d_k, *d_v;
    int64_t d_o_stride[3], d_q_stride[3], d_k_stride[3], d_v_stride[3];
    float *d_sinks; /* [n_heads], nullable; with QKV_SET_SINKS */
    float *d_mask;  /* nullable; the shape of an additive mask, summed where d_mask_stride is 0 */
    int64_t d_mask_stride[4];
} qkv_attention_grads;

/**
 * Fills the strides for dense arrays in the shapes of desc, with all pointers NULL. d_mask gets the
 * shape of the mask, 0 where the mask's stride is 0.
 */
QKV_API void qkv_attention_grads_contiguous(qkv_attention_grads *grads,
                                            const qkv_attention_desc *desc);

/**
 * Scaled dot-product attention, backward pass, by recomputing the weights from lse (Dao et al.
 * 2022, algorithm 4).
 *
 *     p[i,j]  = exp(s[i,j] - lse[i])
 *     delta[i] = <d_o[i,:], o[i,:]> - d_lse[i]
 *     d_v[j]  = sum_i p[i,j] d_o[i]
 *     ds[i,j] = p[i,j] (<d_o[i,:], v[j,:]> - delta[i])
 *     d_q[i]  = scale sum_j ds[i,j] t[i,j] k[j]
 *     d_k[j]  = scale sum_i ds[i,j] t[i,j] q[i]
 *     d_sinks[h] = -sum_b sum_i exp(sink[h] - lse[i]) delta[i]
 *     d_mask[b,h,i,j] = ds[i,j]; 0 for keys that i does not see and rows at or beyond q_len
 * with t = 1 - tanh^2 of the soft cap (1 without one). With dropout, p in d_v and <d_o[i,:], v[j,:]>
 * in ds are multiplied by what forward multiplied the weight of v[j] by. d_k and d_v sum over the
 * query heads of a key/value head. d_mask sums over the dimensions in which d_mask_stride is 0, and
 * over all keys for a mask whose last dimension is 1; where only the mask repeats, d_mask has the
 * terms. It costs another pass over the scores, and no memory. o and lse are those of the forward
 * call with the same descriptor.
 *
 * Types: everything is summed in floats; 16-bit gradients are rounded once, when their sums are
 *     complete.
 * Overlap: outputs must overlap nothing. Special values: rows that see no key, and keys that nobody
 *     sees, get 0; hidden K, V, Q and d_o cannot influence a gradient. Query rows at or beyond
 *     q_len contribute nothing and their d_q is not written; keys at or beyond kv_len get 0.
 * Accuracy: at most 4 times the error of the textbook algorithm in f32, plus 16 * 2^-24 max|x|; of
 *     16-bit gradients half a unit in their last place more.
 * Determinism, memory, threads, errors: as forward; qkv_attention_backward_workspace.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_backward(qkv_ctx *ctx,
                                                        const qkv_attention_desc *desc,
                                                        const void *q, const void *k, const void *v,
                                                        const void *o, const float *lse,
                                                        const qkv_attention_grads *grads,
                                                        const qkv_call_options *call);

/**
 * Joins results over disjoint sets of keys into the result over their union:
 *     lse = log(sum_p exp(lse_p)),   o = sum_p exp(lse_p - lse) o_p.
 *
 * All arrays have the shapes, strides and types that desc gives for o and lse; its other fields are
 * checked but not used. A part in which a row saw no key (lse = -INFINITY) does not contribute; if
 * no part saw one, o = 0 and lse = -INFINITY.
 * Overlap: o and lse may be those of one of the parts, and must overlap nothing else.
 * Determinism: parts are added in the order given. Memory: none.
 * Accuracy: that of forward, plus 4 * 2^-24 |lse| max|o|.
 *
 * @param lse  nullable.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_merge(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                                     int n_parts, const void *const *o_parts,
                                                     const float *const *lse_parts, void *o,
                                                     float *lse);

#ifdef __cplusplus
}
#endif

#include "qkv/stats.h"

#endif
