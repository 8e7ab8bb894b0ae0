/* See ring_keys.h. */
#include "dist/ring_keys.h"

#include <string.h>

#include "dist/chunks.h"
#include "kernels/attend.h"

/* ---- Runs and seams -------------------------------------------------------------------------- */

static int size_of(const qkvi_ring *r) { return r->group->transport->size; }

/* Where the n-th run of all begins. */
static int64_t run_begin(const qkvi_ring *r, const int64_t *first, int n) {
    if (r->n_runs == 1) return first[n];
    return first[size_of(r)] / (2 * size_of(r)) * n;
}

qkvi_range qkvi_ring_run(const qkvi_ring *r, const int64_t *first, int rank, int n) {
    const int at = n == 0 ? rank : 2 * size_of(r) - 1 - rank;
    return (qkvi_range){ run_begin(r, first, at), run_begin(r, first, at + 1) };
}

static qkvi_range keys_of(const qkvi_ring *r, int rank, int n) {
    return qkvi_ring_run(r, r->group->first_k, rank, n);
}

/* Finds the seams; with memory for them, writes them down. */
static void find_seams(qkvi_ring *r) {
    int64_t last = -1;
    r->n_seams = 0;
    for (int n = 1; n < r->n_runs * size_of(r); n++) {
        const int64_t at = run_begin(r, r->group->first_k, n), block = at / QKVI_KEY_BLOCK;
        if (at % QKVI_KEY_BLOCK == 0 || at == r->p->len_k || block == last) continue;
        if (r->seams) r->seams[r->n_seams] = block;
        r->n_seams++;
        last = block;
    }
}

void qkvi_ring_init(qkvi_ring *r, qkvi_group *group, const qkvi_problem *p, int n_runs) {
    *r = (qkvi_ring){ .group = group, .p = p, .n_runs = n_runs };
    r->row_bytes = qkvi_chunks_row_bytes(p);
    for (int rank = 0; rank < size_of(r); rank++)
        r->most_rows = qkvi_max_i64(r->most_rows, group->first_k[rank + 1] - group->first_k[rank]);
    find_seams(r);
}

void qkvi_ring_lay_out(qkvi_ring *r, qkvi_cutter *cutter) {
    for (int n = 0; n < 2; n++) r->buffer[n] = qkvi_cut(cutter, r->most_rows, (size_t)r->row_bytes);
    r->seams = qkvi_cut(cutter, r->n_seams, sizeof *r->seams);
    r->seam_rows = qkvi_cut(cutter, r->n_seams * QKVI_KEY_BLOCK, (size_t)r->row_bytes);
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Whose keys a rank has at a step. */
static int owner(const qkvi_ring *r, int step) {
    const int size = size_of(r);
    return (r->group->transport->rank - step + size) % size;
}

static size_t bytes_of(const qkvi_ring *r, int rank) {
    const int64_t *const k = r->group->first_k;
    return (size_t)((k[rank + 1] - k[rank]) * r->row_bytes);
}

void qkvi_ring_start(qkvi_ring *r) {
    const int rank = r->group->transport->rank;
    const int64_t *const k = r->group->first_k;
    if (r->seams) find_seams(r);
    qkvi_chunks_pack(r->p, r->p->first_k, r->p->first_k + k[rank + 1] - k[rank], r->buffer[0]);
}

qkv_status qkvi_ring_begin_step(qkvi_ring *r, int step) {
    qkvi_group *const group = r->group;
    qkvi_transport *const t = group->transport;
    const int size = t->size, next = (t->rank + 1) % size, before = (t->rank + size - 1) % size;
    qkv_status status = QKV_OK;
    r->n_requests = 0;
    if (step + 1 == size) return QKV_OK;
    const size_t sent = bytes_of(r, owner(r, step)), received = bytes_of(r, owner(r, step + 1));
    if (received > 0)
        status = t->ops->irecv(t, r->buffer[(step + 1) % 2], received, before,
                               &group->requests[r->n_requests++], &group->error);
    if (status == QKV_OK && sent > 0)
        status = t->ops->isend(t, r->buffer[step % 2], sent, next,
                               &group->requests[r->n_requests++], &group->error);
    if (status != QKV_OK) group->broken = true;
    return status;
}

qkv_status qkvi_ring_end_step(qkvi_ring *r) {
    const int n = r->n_requests;
    r->n_requests = 0;
    return r->group->broken ? r->group->error.status
                            : qkvi_group_wait(r->group, r->group->requests, n);
}

void qkvi_ring_poll(void *user, int64_t done, int64_t total) {
    qkvi_ring *const r = user;
    qkvi_transport *const t = r->group->transport;
    bool completed;
    (void)done, (void)total;
    if (r->n_requests == 0 || r->group->broken) return;
    if (t->ops->test(t, r->group->requests, r->n_requests, &completed, &r->group->error) != QKV_OK)
        r->group->broken = true;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* Keys [begin, end), whose rows begin at `rows`, into the seams that they belong to. */
static void put_aside(const qkvi_ring *r, int64_t begin, int64_t end, const char *rows) {
    int64_t n = 0;
    for (int64_t j = begin; j < end; j++, rows += r->row_bytes) {
        while (r->seams[n] < j / QKVI_KEY_BLOCK) n++;
        const int64_t at = n * QKVI_KEY_BLOCK + j % QKVI_KEY_BLOCK;
        if (r->row_bytes) memcpy(r->seam_rows + at * r->row_bytes, rows, (size_t)r->row_bytes);
    }
}

qkvi_range qkvi_ring_take(qkvi_ring *r, int step, int n, qkvi_problem *p) {
    const qkvi_range run = keys_of(r, owner(r, step), n), before = keys_of(r, owner(r, step), 0);
    const char *rows = r->buffer[step % 2];
    if (run.begin == run.end) return (qkvi_range){ 0, 0 };
    if (n > 0) rows += (before.end - before.begin) * r->row_bytes;
    qkvi_range whole = { qkvi_round_up(run.begin, QKVI_KEY_BLOCK), run.end };
    if (whole.end < r->p->len_k) whole.end = whole.end / QKVI_KEY_BLOCK * QKVI_KEY_BLOCK;
    if (whole.begin >= whole.end) whole = (qkvi_range){ run.end, run.end };
    put_aside(r, run.begin, whole.begin, rows);
    put_aside(r, whole.end, run.end, rows + (whole.end - run.begin) * r->row_bytes);
    qkvi_chunks_take(p, rows, run.begin);
    return whole;
}

qkvi_range qkvi_ring_take_seams(const qkvi_ring *r, int64_t *n, qkvi_problem *p) {
    const int64_t from = *n, begin = r->seams[from] * QKVI_KEY_BLOCK;
    do ++*n;
    while (*n < r->n_seams && r->seams[*n] == r->seams[*n - 1] + 1);
    qkvi_chunks_take(p, r->seam_rows + from * QKVI_KEY_BLOCK * r->row_bytes, begin);
    return (qkvi_range){ begin, qkvi_min_i64(begin + (*n - from) * QKVI_KEY_BLOCK, r->p->len_k) };
}
