/* See stream.h. */
#include "dist/stream.h"

enum { MOST_BYTES = 8 << 20 }; /* of a chunk, unless `unit` rows have more */

int64_t qkvi_stream_rows(const qkvi_group *group, int64_t row_bytes, int64_t unit, int64_t most) {
    const int64_t fit = MOST_BYTES / qkvi_max_i64(row_bytes, 1);
    const int64_t rows = qkvi_max_i64(qkvi_min_i64(fit, most), unit);
    return group->chunk_keys ? group->chunk_keys / QKVI_STREAM_CHOICE * unit : rows / unit * unit;
}

static int64_t all_rows(const qkvi_stream *s) { return s->first[s->group->transport->size]; }

void qkvi_stream_init(qkvi_stream *s) {
    if (s->n_first == 0 || s->n_first > s->n_rows) s->n_first = s->n_rows;
    const int64_t rest = qkvi_max_i64(all_rows(s) - s->n_first, 0);
    s->count = all_rows(s) > 0 ? 1 + qkvi_ceil_div(rest, s->n_rows) : 0;
    s->under_way = -1;
    s->status = QKV_OK;
}

void qkvi_stream_lay_out(qkvi_stream *s, qkvi_cutter *cutter) {
    const int64_t rows = qkvi_min_i64(s->n_rows, all_rows(s));
    for (int n = 0; n < 2; n++) s->buffer[n] = qkvi_cut(cutter, rows, (size_t)s->row_bytes);
}

static qkvi_request *requests_of(const qkvi_stream *s, int64_t n) {
    return s->group->requests + (size_t)(n % 2) * (size_t)s->group->transport->size;
}

/* Every owner of rows of chunk n broadcasts them. */
static void start(qkvi_stream *s, int64_t n) {
    qkvi_group *const group = s->group;
    qkvi_transport *const t = group->transport;
    const int half = (int)(n % 2);
    s->n_requests[half] = 0;
    s->under_way = n;
    for (int rank = 0; rank < t->size && s->status == QKV_OK; rank++) {
        const int64_t begin = qkvi_max_i64(qkvi_stream_begin(s, n), s->first[rank]);
        const int64_t end = qkvi_min_i64(qkvi_stream_end(s, n), s->first[rank + 1]);
        if (begin >= end) continue;
        char *const at = s->buffer[half] + (begin - qkvi_stream_begin(s, n)) * s->row_bytes;
        if (rank == t->rank) s->pack(s->user, n / s->count, begin, end, at);
        s->status = t->ops->ibcast(t, at, (size_t)((end - begin) * s->row_bytes), rank,
                                   &requests_of(s, n)[s->n_requests[half]], &group->error);
        if (s->status == QKV_OK) s->n_requests[half]++;
    }
    if (s->status != QKV_OK) group->broken = true;
}

void qkvi_stream_start(qkvi_stream *s) {
    if (s->count > 0 && s->n_turns > 0) start(s, 0);
}

qkv_status qkvi_stream_next(qkvi_stream *s, int64_t n, const char **rows) {
    if (s->status == QKV_OK)
        s->status = qkvi_group_wait(s->group, requests_of(s, n), s->n_requests[n % 2]);
    s->under_way = -1;
    if (s->status != QKV_OK) return s->status;
    if (n + 1 < s->count * s->n_turns) start(s, n + 1);
    *rows = s->buffer[n % 2];
    return s->status;
}

void qkvi_stream_poll(void *user, int64_t done, int64_t total) {
    qkvi_stream *const s = user;
    qkvi_transport *const t = s->group->transport;
    bool completed;
    (void)done, (void)total;
    if (s->under_way < 0 || s->status != QKV_OK) return;
    const int n = s->n_requests[s->under_way % 2];
    s->status = t->ops->test(t, requests_of(s, s->under_way), n, &completed, &s->group->error);
    if (s->status != QKV_OK) s->group->broken = true;
}
