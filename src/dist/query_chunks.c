/* See query_chunks.h. */
#include "dist/query_chunks.h"

#include "kernels/attend.h"

enum { MOST_QUERIES = 4096 };

static void pack(const void *user, int64_t turn, int64_t begin, int64_t end, char *to) {
    qkvi_query_rows_pack(&((const qkvi_query_chunks *)user)->rows, turn, begin, end, to);
}

void qkvi_query_chunks_init(qkvi_query_chunks *c, qkvi_group *group, const qkvi_problem *p,
                            int mask_dims) {
    const int64_t unit = c->rows.g ? QKVI_KEY_BLOCK : QKVI_QUERY_BLOCK;
    c->rows.p = p;
    qkvi_query_rows_init(&c->rows, mask_dims);
    const int64_t row = c->rows.row_bytes;
    c->stream = (qkvi_stream){ .group = group,
                               .first = group->first_q,
                               .n_rows = qkvi_stream_rows(group, row, unit, MOST_QUERIES),
                               .row_bytes = row,
                               .n_turns = p->heads_per_kv,
                               .pack = pack,
                               .user = c };
    qkvi_stream_init(&c->stream);
}

void qkvi_query_chunks_lay_out(qkvi_query_chunks *c, qkvi_cutter *cutter) {
    qkvi_stream_lay_out(&c->stream, cutter);
    qkvi_query_rows_lay_out(&c->rows, c->stream.n_rows, cutter);
}

qkv_status qkvi_query_chunks_next(qkvi_query_chunks *c, int64_t n, qkvi_problem *p, qkvi_grads *g) {
    const char *rows;
    QKV_TRY(qkvi_stream_next(&c->stream, n, &rows));
    qkvi_query_rows_take(&c->rows, n / c->stream.count, qkvi_stream_begin(&c->stream, n),
                         qkvi_stream_end(&c->stream, n), rows, p, g);
    return QKV_OK;
}
