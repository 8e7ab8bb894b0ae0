/*
 * Rows of the whole sequence, a chunk at a time, as every rank needs them: the ranks that own rows
 * of a chunk broadcast them. While one chunk is used, the next is on its way.
 *
 * The first chunk has n_first rows, the others n_rows, wherever the pieces begin. All ranks wait
 * for the first one, so it may be shorter. The rows of a rank are one message. A stream may go over
 * the sequence several times, with other contents.
 */
#ifndef QKVI_DIST_STREAM_H
#define QKVI_DIST_STREAM_H

#include "core/arena.h"
#include "core/ints.h"
#include "dist/group.h"

/* Rows [begin, end) of this rank as they are sent, the turn-th time. */
typedef void qkvi_pack_rows(const void *user, int64_t turn, int64_t begin, int64_t end, char *to);

typedef struct qkvi_stream {
    qkvi_group *group;
    const int64_t *first; /* [size + 1]: rows of each rank, and all */
    int64_t n_rows;       /* of a chunk but the first and the last */
    int64_t n_first;      /* of the first chunk; 0: n_rows */
    int64_t row_bytes;
    int64_t n_turns;
    qkvi_pack_rows *pack;
    const void *user;

    int64_t count; /* of chunks, of one turn */
    char *buffer[2];
    int n_requests[2];
    int64_t under_way; /* the chunk that is, of all turns; -1: none */
    qkv_status status; /* of the transport, from the first failure on */
} qkvi_stream;

/* The rows of chunk n, which of all turns it may be. */
static inline int64_t qkvi_stream_begin(const qkvi_stream *s, int64_t n) {
    const int64_t i = n % s->count;
    return i == 0 ? 0 : s->n_first + (i - 1) * s->n_rows;
}
static inline int64_t qkvi_stream_end(const qkvi_stream *s, int64_t n) {
    return qkvi_min_i64(s->n_first + n % s->count * s->n_rows, s->first[s->group->transport->size]);
}

enum { QKVI_STREAM_CHOICE = 256 }; /* of chunk_keys (group.h), for each unit */

/*
 * So many rows as 8 MiB have, most at most, a multiple of `unit`, which they are at least; a test's
 * choice comes first.
 */
int64_t qkvi_stream_rows(const qkvi_group *group, int64_t row_bytes, int64_t unit, int64_t most);

/* Fills what is not the caller's: the fields up to `user` are. */
void qkvi_stream_init(qkvi_stream *stream);
void qkvi_stream_lay_out(qkvi_stream *stream, qkvi_cutter *cutter);

/* Begins with chunk 0 of turn 0, if there is one. */
void qkvi_stream_start(qkvi_stream *stream);

/*
 * Waits for chunk n, which follows the one before it, and begins with the next. rows: those of the
 * chunk, until n + 2 is asked for.
 */
QKV_NODISCARD qkv_status qkvi_stream_next(qkvi_stream *stream, int64_t n, const char **rows);

/* A progress callback: communication goes on while this rank computes. user: the stream. */
void qkvi_stream_poll(void *user, int64_t done, int64_t total);

#endif
