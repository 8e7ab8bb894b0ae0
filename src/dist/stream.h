/*
 * All ranks read the rows of the whole sequence, a chunk at a time: the ranks that have rows of a
 * chunk broadcast them. While one chunk is used, the next one is being sent.
 *
 * The first chunk has n_first rows, all others but the last n_rows, wherever pieces begin. All
 * ranks wait for the first one, so it may be shorter. A rank sends its rows of a chunk as one
 * message. A stream may go over the sequence several times (turns), with other contents.
 */
#ifndef QKVI_DIST_STREAM_H
#define QKVI_DIST_STREAM_H

#include "core/arena.h"
#include "core/ints.h"
#include "dist/group.h"

/* Packs rows [begin, end) of the sequence, which this rank has, for a turn. */
typedef void qkvi_pack_rows(const void *user, int64_t turn, int64_t begin, int64_t end, char *to);

typedef struct qkvi_stream {
    qkvi_group *group;
    const int64_t *first; /* [size + 1]: the first row of each rank, and the number of rows */
    int64_t n_rows;       /* of each chunk but the first and the last */
    int64_t n_first;      /* of the first chunk; 0: n_rows */
    int64_t row_bytes;
    int64_t n_turns;
    qkvi_pack_rows *pack;
    const void *user;

    int64_t count; /* chunks of one turn */
    char *buffer[2];
    int n_requests[2];
    int64_t under_way; /* the chunk that is being sent; -1: none */
    qkv_status status; /* the first failure of the transport */
} qkvi_stream;

/* The rows of chunk n. Chunks are counted through all turns: n / count is the turn. */
static inline int64_t qkvi_stream_begin(const qkvi_stream *s, int64_t n) {
    const int64_t i = n % s->count;
    return i == 0 ? 0 : s->n_first + (i - 1) * s->n_rows;
}
static inline int64_t qkvi_stream_end(const qkvi_stream *s, int64_t n) {
    return qkvi_min_i64(s->n_first + n % s->count * s->n_rows, s->first[s->group->transport->size]);
}

enum { QKVI_STREAM_CHOICE = 256 }; /* chunk_keys (group.h) is in units of so many keys */

/*
 * The number of rows of a chunk: of 8 MiB, but at most `most`, and a multiple of `unit` > 0. If a
 * test has set chunk_keys, chunk_keys / 256 units.
 */
int64_t qkvi_stream_rows(const qkvi_group *group, int64_t row_bytes, int64_t unit, int64_t most);

/* The caller has set the members up to `user`; sets all others. */
void qkvi_stream_init(qkvi_stream *stream);
void qkvi_stream_lay_out(qkvi_stream *stream, qkvi_cutter *cutter);

/* Begins to send chunk 0, if there is one. */
void qkvi_stream_start(qkvi_stream *stream);

/*
 * Waits for chunk n, and begins to send the next one; calls have n = 0, 1, …. *rows are the rows of
 * the chunk, valid until chunk n + 2 is asked for.
 */
QKV_NODISCARD qkv_status qkvi_stream_next(qkvi_stream *stream, int64_t n, const char **rows);

/* A progress callback, so that communication goes on while this rank computes. user: the stream. */
void qkvi_stream_poll(void *user, int64_t done, int64_t total);

#endif
