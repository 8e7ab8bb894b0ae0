/**
 * qkv: processes that share a work, whatever carries their bytes. The `ranks` of training
 * (qkv/train.h) and of heads of arrays (qkv/heads.h).
 */
#ifndef QKV_RANKS_H
#define QKV_RANKS_H

#include "qkv/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The processes that share a work, and what carries bytes between them. Made by
 * qkv_ranks_init(); over MPI, qkvmpi_ranks fills it.
 */
typedef struct qkv_ranks {
    size_t struct_size;
    /** This process, and how many there are: ranks are 0 … n_ranks - 1. */
    int rank, n_ranks;
    void *user;
    /**
     * Called by all ranks together, and blocking. Rank q gets the send_bytes[q] bytes at send +
     * send_at[q]; what rank r sends goes to receive + receive_at[r], and has receive_bytes[r].
     * Nothing goes from a rank to itself: both sizes are 0 there. What is sent and what is received
     * do not overlap. Returns 0; anything else ends the work with QKV_ERR_IO.
     */
    int (*exchange)(void *user, const void *send, const size_t *send_at, const size_t *send_bytes,
                    void *receive, const size_t *receive_at, const size_t *receive_bytes);
} qkv_ranks;
QKV_DEFINE_INIT(qkv_ranks)

#ifdef __cplusplus
}
#endif

#endif
