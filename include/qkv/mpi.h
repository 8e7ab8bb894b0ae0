/**
 * Attention over several processes: a sequence that lies in pieces on the ranks of an MPI
 * communicator. libqkvmpi has it, where qkv was built with MPI.
 *
 *     MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
 *     qkvmpi_group *group = NULL;
 *     if (qkvmpi_group_create(MPI_COMM_WORLD, &group, &error) != QKV_OK) return 1;
 *     qkv_attention_desc_contiguous(&desc, 1, 32, 8, my_len, my_len, 128, 128);
 *     desc.flags |= QKV_SET_CAUSAL;
 *     if (qkvmpi_attention_forward(group, ctx, &desc, q, k, v, o, lse, NULL) != QKV_OK)
 *         fprintf(stderr, "%s\n", qkvmpi_group_message(group));
 *
 * Pieces lie in the order of ranks: the queries of rank r follow those of rank r - 1, and so do the
 * keys. They may have any lengths, 0 included.
 *
 * It needs MPI 3.1 and MPI_THREAD_FUNNELED. The library never calls MPI_Init or MPI_Finalize. It
 * works on a duplicate of the caller's communicator, whose error handler returns.
 *
 * Use it for a sequence that is too long for one computer, or to use several. On one computer,
 * threads need less memory, and are faster in backward.
 *
 * Experimental: see docs/api.md, Stability.
 */
#ifndef QKV_MPI_H
#define QKV_MPI_H

#include <mpi.h>

#include "qkv/columns.h"
#include "qkv/kv.h"
#include "qkv/qkv.h"
#include "qkv/ranks.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The ranks that call together. All calls on it are collective. */
typedef struct qkvmpi_group qkvmpi_group;

/**
 * Makes a group of all ranks of comm. Collective.
 *
 * @param comm   an intracommunicator. It is duplicated.
 * @param group  receives the group; NULL after an error.
 * @param error  NULL, or receives the reason of a failure.
 * @return QKV_OK; QKV_ERR_ARGUMENT for an invalid communicator; QKV_ERR_UNSUPPORTED if MPI was
 *         initialized with less than MPI_THREAD_FUNNELED, or is not initialized; QKV_ERR_MEMORY on
 *         all ranks if one of them has no memory; QKV_ERR_IO if MPI fails.
 */
QKV_API QKV_NODISCARD qkv_status qkvmpi_group_create(MPI_Comm comm, qkvmpi_group **group,
                                                     qkv_error *error);

/** Frees the group and its communicator, before MPI_Finalize. Collective. NULL is allowed. */
QKV_API void qkvmpi_group_free(qkvmpi_group *group);

/**
 * Returns the text of the last failure on this group, "" after a success. It is the same on all
 * ranks, and names the rank that failed. Valid until the next call.
 */
QKV_API const char *qkvmpi_group_message(const qkvmpi_group *group);

/** Returns the rank of this process in the group, and the number of ranks; -1 and 0 for NULL. */
QKV_API int qkvmpi_group_rank(const qkvmpi_group *group);
QKV_API int qkvmpi_group_size(const qkvmpi_group *group);

/** How a forward or decode call goes about it. Made by qkvmpi_options_init(). */
typedef struct qkvmpi_options {
    size_t struct_size;
    /*
     * The same on all ranks. "ordered", or NULL: the bits of one process. "ring": keys go from each
     * rank to the next. "zigzag": as ring, and the sequence is cut so that a causal mask leaves all
     * ranks the same work. "ulysses": each rank has all tokens of a share of the heads, with the
     * bits of one process. "auto": ordered or ulysses, whichever qkvmpi_attention_explain chooses.
     * Decode has "ordered", which is its "auto", too, and "tree".
     */
    const char *scheme;
    /*
     * Of a rank, for "auto" of forward and qkvmpi_attention_explain; the same on all ranks. 0:
     * 1e12, 3.125e9 (25 Gb/s), 1e-5.
     */
    double flops_per_second, bytes_per_second, seconds_per_message;
} qkvmpi_options;

QKV_DEFINE_INIT(qkvmpi_options)

enum { QKVMPI_SCHEMES = 4 };

/** What a forward call would cost by one scheme. */
typedef struct qkvmpi_scheme_cost {
    char name[16];
    int possible;  /* 0: `reason` says why not, and the other numbers mean nothing */
    int same_bits; /* as one process */
    /* Sent by this rank, and by that which sends most; small exchanges aside. */
    int64_t bytes_sent, most_bytes;
    double operations; /* of the rank that has most: 2 for each product */
    double imbalance;  /* these over the mean of all ranks, less 1 */
    double compute_seconds, send_seconds, seconds;
    char reason[QKV_REASON_BYTES]; /* in words */
} qkvmpi_scheme_cost;

/** What qkvmpi_attention_explain writes. The caller sets struct_size. */
typedef struct qkvmpi_plan {
    size_t struct_size;
    int n_ranks;
    char chosen[16]; /* what "auto" takes */
    char reason[QKV_REASON_BYTES];
    /* Those of options, or the defaults. */
    double flops_per_second, bytes_per_second, seconds_per_message;
    qkvmpi_scheme_cost schemes[QKVMPI_SCHEMES]; /* ordered, ring, zigzag, ulysses */
} qkvmpi_plan;

QKV_DEFINE_INIT(qkvmpi_plan)

/**
 * Predicts what qkvmpi_attention_forward with this descriptor would cost by each scheme: bytes,
 * which are exact, and seconds, by a model of three numbers. Collective. Arrays are not looked at,
 * but lengths and offsets of batches are.
 *
 * seconds is the greater of compute_seconds and send_seconds, of ulysses their sum. Operations are
 * those of pairs that position lets see each other: explicit masks and segments may hide more.
 * "auto" chooses between schemes with the bits of one process: by rates alone a result never
 * depends on the scheme. Rows of zigzag lie in another order, so its costs are those of a caller
 * who lays them out so.
 *
 * Memory, threads: none. Time: grows with len_q, not with len_q x len_k.
 * Communication: four small exchanges.
 *
 * @param options  NULL for the defaults. Its scheme is checked only.
 * @param plan     written only after success. The same on all ranks but for bytes_sent.
 * @return as qkvmpi_attention_forward.
 */
QKV_API QKV_NODISCARD qkv_status qkvmpi_attention_explain(qkvmpi_group *group, qkv_ctx *ctx,
                                                          const qkv_attention_desc *desc,
                                                          const qkvmpi_options *options,
                                                          qkvmpi_plan *plan);

/**
 * Measures the three rates of options on these ranks, of which it writes the worst. Collective. All
 * ranks attend and send at the same time, so ranks of one computer share it as in a call. The
 * scheme of options stays. With one rank nothing is sent, and its rates are 0.
 *
 * Memory: 10 MiB, freed again, and the workspace of ctx. Time: a fraction of a second.
 *
 * @param dtype    of q, k and v.
 * @param options  its struct_size is set. Written only after success, the same on all ranks.
 * @return as qkvmpi_attention_forward.
 */
QKV_API QKV_NODISCARD qkv_status qkvmpi_measure(qkvmpi_group *group, qkv_ctx *ctx, qkv_dtype dtype,
                                                qkvmpi_options *options);

/**
 * Returns this process's `ranks` of qkv_train_options: a training run whose slices the ranks of the
 * group share. The group must stay until qkv_train returns. qkv_train refuses that of NULL. It is
 * also `ranks` of qkv_heads_arrays; the group must then stay until qkv_heads_free.
 */
QKV_API qkv_ranks qkvmpi_ranks(qkvmpi_group *group);

/**
 * qkv_attention_forward of the whole sequence, in pieces. Each rank passes its piece, and gets the
 * rows of o and lse that belong to its queries.
 *
 * desc describes the piece: len_q and len_k are the rows of this rank's arrays. They may differ
 * between ranks. All else must be the same on all ranks, strides and arithmetic aside. Fields mean
 * what they mean for the whole sequence:
 *
 *     q, o, lse, stats                   rows of this rank's queries
 *     k, v                               rows of this rank's keys
 *     mask, seg_q                        rows of this rank's queries, and all keys
 *     seg_k, mask_len_k, kv_len          of all keys
 *     stats.tokens_q                     of this rank's queries
 *     classes, key_weights, tokens_k     of stats: of all keys
 *     q_len, block_offsets, block_index  of all queries
 *     q_offset, q_offsets                the position of query 0 of the whole sequence
 *
 * Scheme: every rank visits all keys in their order. The ranks that own a chunk of keys broadcast
 * it, while the chunk before it is computed.
 *     "ring": the keys of a rank are one message, which goes on while it is computed. Results of
 *     the blocks are joined in f32. It needs no broadcasts.
 *     "zigzag": a ring over 2 P runs of one length. Rank r has the runs r and 2 P - 1 - r, one
 *     after the other in its arrays. len_q is even and the same on all ranks, and so is len_k.
 *     "ulysses": each rank sends each other rank its rows of the other's heads, computes all tokens
 *     of its own heads, and sends o and lse back. n_kv_heads is a multiple of the number of ranks.
 *
 * Determinism: in "ordered" and "ulysses" o, lse and statistics have the bits of
 *     qkv_attention_forward on the whole sequence in one process, in the same class of arithmetic.
 *     They do not depend on the number of ranks or the cuts. QKV_CLASS_AUTO must choose the same
 *     class on all ranks.
 *     n_empty_rows and n_nan_rows count the rows of this rank. In "ring" and "zigzag" bits depend
 *     on ranks and cuts; the bounds of accuracy are those of one process.
 * Special values, overlap, accuracy: as qkv_attention_forward.
 * Communication: a rank broadcasts its keys and values once, n_batch n_kv_heads len_k (head_dim +
 *     head_dim_v) elements. In a ring it sends those of all ranks but the next. In ulysses it sends
 *     all but 1 / P of its rows of q, k and v, with their rows of masks, and of other ranks' o and
 *     lse its share of the heads. qkvmpi_attention_explain has the bytes. Three small exchanges
 *     agree on descriptors and errors, with "auto" five.
 * Memory: in the workspace of ctx, that of a forward call with len_k of a chunk; two chunks, of at
 *     most 8 MiB or 256 keys each; and n_batch n_heads len_q (head_dim_v rounded up to 32, + 19)
 *     floats, with statistics also a record of each row, of 64 bytes, 8 for each of top_k rounded
 *     up to 8, and 4 for each class and offset. In a ring there are two pieces in place of two
 *     chunks, and 256 keys for each 256 that several runs share. In ulysses there are q, k, v and o
 *     of the share of heads, and those of the rank once more. Nothing is allocated once
 *     the context has that much.
 * Threads: those of ctx. MPI is called on the calling thread only.
 *
 * QKV_SET_CU_SEQLENS is refused with QKV_ERR_UNSUPPORTED, QKV_SET_STATS but in "ordered".
 *
 * @param lse      NULL: not written on this rank.
 * @param options  NULL for the defaults.
 * @return the same status on all ranks. An error of one rank is the error of all: of several, that
 *         of the lowest rank. qkvmpi_group_message(group) has its reason. o and lse are then
 *         untouched, except after QKV_ERR_IO. After QKV_ERR_IO the group is of no more use. MPI
 *         ends the job if a rank dies.
 */
QKV_API QKV_NODISCARD qkv_status qkvmpi_attention_forward(qkvmpi_group *group, qkv_ctx *ctx,
                                                          const qkv_attention_desc *desc,
                                                          const void *q, const void *k,
                                                          const void *v, void *o, float *lse,
                                                          const qkvmpi_options *options);

/**
 * qkv_attention_backward of the whole sequence, in pieces, after qkvmpi_attention_forward. Each
 * rank passes its piece of all arrays, and gets d_q of its queries and d_k and d_v of its keys.
 * Fields mean what they mean in forward. Pieces may be cut otherwise than in forward.
 *
 *     d_o, d_lse, d_q    rows of this rank's queries
 *     d_k, d_v           rows of this rank's keys
 *     d_sinks            of the whole sequence, the same on all ranks; NULL on all or on none
 *
 * Scheme: two passes. First, keys and values are broadcast as in forward, and each rank sums d_q
 * of its queries. Then queries, d_o, lse and delta are broadcast in chunks, and each rank sums d_k
 * and d_v of its keys. Scores are computed in both passes: 7 products of matrices, where one
 * process has 5.
 *
 * Determinism: gradients have the bits of qkv_attention_backward on the whole sequence in one
 *     process, given the same o and lse. They do not depend on the number of ranks or the cuts.
 * Special values, overlap, accuracy: as qkv_attention_backward.
 * Communication: a rank broadcasts its keys and values as in forward, and for each of its queries
 *     and heads head_dim + head_dim_v elements, both parts rounded up to 4 bytes, and 8 bytes.
 *     Segments have 4 bytes more for each batch and head of a group. Rows of an explicit mask are
 *     broadcast, too.
 * Memory: in the workspace of ctx, for each thread the scratch of a backward call; four chunks, of
 *     at most 8 MiB or 256 rows each; sums in floats of d_q, n_batch n_heads len_q (head_dim + 1),
 *     and of d_k and d_v, n_batch n_kv_heads len_k (head_dim + head_dim_v, both rounded up to 32);
 *     with d_sinks 4 bytes for each 128 queries of the whole sequence and head.
 * Threads: those of ctx. MPI is called on the calling thread only.
 *
 * QKV_SET_CU_SEQLENS, QKV_SET_STATS, d_mask and d_distance_bias are refused with
 * QKV_ERR_UNSUPPORTED.
 *
 * @return as qkvmpi_attention_forward. After an error gradients are untouched, except after
 *         QKV_ERR_IO.
 */
QKV_API QKV_NODISCARD qkv_status qkvmpi_attention_backward(
    qkvmpi_group *group, qkv_ctx *ctx, const qkv_attention_desc *desc, const void *q, const void *k,
    const void *v, const void *o, const float *lse, const qkv_attention_grads *grads);

/**
 * qkv_attention_columns_pass of the whole sequence, in pieces, with the lse of
 * qkvmpi_attention_forward, or of any way to it. Each rank gets the sums of its own keys. Fields of
 * desc mean what they mean in forward. Pieces may be cut otherwise.
 *
 *     q, lse, columns.row_weights          rows of this rank's queries
 *     k, columns.received, n_queries,      of this rank's keys; largest_query is a query of the
 *     largest, largest_query, entropy          whole sequence
 *     columns.n_cells, n_tiny              of this rank's keys
 *
 * What is asked for may differ between ranks. row_weights are NULL on all ranks or on none.
 *
 * Scheme: queries and lse are broadcast in chunks, as in the second pass of backward. Each rank
 * sums the weights of its keys over them.
 *
 * Determinism: sums have the bits of qkv_attention_columns_pass on the whole sequence in one
 *     process, given the same lse. They do not depend on the number of ranks or the cuts.
 * Special values, overlap, accuracy, types: as qkv_attention_columns_pass.
 * Communication: a rank broadcasts for each of its queries and heads head_dim elements, rounded up
 *     to 4 bytes, and 4 bytes, with row_weights 8. Segments have 4 bytes more for each batch and
 *     head of a group. Rows of an explicit mask are broadcast, too.
 * Memory: in the workspace of ctx, for each thread the scratch of a pass over columns; two chunks,
 *     of at most 8 MiB or 96 queries each; for each batch and key/value head 13,312 bytes for each
 *     256 keys of the rank.
 * Threads: those of ctx share blocks of 256 keys. MPI is called on the calling thread only.
 *
 * QKV_SET_CU_SEQLENS, QKV_SET_STATS, diagonals, tiles, n_empty_rows and n_nan_rows are refused with
 * QKV_ERR_UNSUPPORTED.
 *
 * @return as qkvmpi_attention_forward. After an error columns are untouched, except after
 *         QKV_ERR_IO.
 */
QKV_API QKV_NODISCARD qkv_status qkvmpi_attention_columns_pass(
    qkvmpi_group *group, qkv_ctx *ctx, const qkv_attention_desc *desc, const void *q, const void *k,
    const float *lse, const qkv_attention_columns *columns);

/**
 * qkv_attention_decode of the whole sequence, whose keys lie in pieces. Every rank passes all
 * queries, and gets all of o and lse.
 *
 * desc.len_k and view are those of this rank's keys. len_q, q and all else must be the same on all
 * ranks, strides, pages and what `first` says aside. Fields mean what they mean for the whole
 * sequence:
 *
 *     q, o, lse, mask, seg_q, stats      all queries
 *     view                               this rank's keys; token 0 is the first of them
 *     mask, seg_k, mask_len_k, kv_len    all keys
 *
 * A sequence that grows does so on the last rank. Keys are stored in one array or in pages. In
 * pages the keys of a rank must begin at a multiple of 16 of the sequence.
 *
 * Scheme: each rank computes its splits of 1,024 keys. A split belongs to the rank that has the
 * first of its keys that some query may see. Other ranks send it the rest. The sums of splits go
 * from rank to rank in the order of keys, and the last rank broadcasts them.
 *     "tree": each rank joins its own splits. Then ranks join sums in pairs: in step s, from 0,
 *     that of rank r and that of rank r + 2^s. The first rank broadcasts them. So sums of P ranks
 *     take log2 P messages, one after the other, in place of P - 1.
 *
 * Determinism: in "ordered" o, lse and statistics have the bits of qkv_attention_decode on the
 *     whole sequence in one process. They do not depend on the number of ranks or the cuts. In
 *     "tree" bits depend on ranks and cuts; the bounds of accuracy are those of one process.
 * Special values, overlap, accuracy, types: as qkv_attention_decode.
 * Communication: a rank that has splits sends sums to the next one, and the last one to all; in
 *     "tree" each but the first to one before, and the first one to all. For each batch and
 *     key/value head these are the sums of its len_q n_heads / n_kv_heads rows, 32 at a time: 320
 *     bytes, and for each row 4 head_dim_v, rounded up to 16 floats. Statistics have more. Keys are
 *     sent where a split has keys of several ranks, which pieces that begin at multiples of 1,024
 *     do not have. Four small exchanges agree on descriptors and errors.
 * Memory: in the workspace of ctx, that of a decode call, and such sums for each split of the rank.
 *     A rank whose last split has keys of others has room for 1,024 keys. "tree" needs one such sum
 *     more.
 * Threads: those of ctx. MPI is called on the calling thread only.
 *
 * A view in a ring, QKV_SET_CU_SEQLENS and dropout are refused with QKV_ERR_UNSUPPORTED,
 * QKV_SET_STATS but in "ordered".
 *
 * @param lse      NULL: not written on this rank.
 * @param options  NULL for the defaults. Rates are checked only.
 * @return as qkvmpi_attention_forward.
 */
QKV_API QKV_NODISCARD qkv_status qkvmpi_attention_decode(qkvmpi_group *group, qkv_ctx *ctx,
                                                         const qkv_attention_desc *desc,
                                                         const void *q, const qkv_kv_view *view,
                                                         void *o, float *lse,
                                                         const qkvmpi_options *options);

#ifdef __cplusplus
}
#endif
#endif
