/** See head_pieces.h. */
#include "inspect/head_pieces.h"

#include "core/ints.h"
#include "files/base.h"

/* ---- Whose rows they are --------------------------------------------------------------------- */

/* From what the ranks have just said. */
static qkv_status take_firsts(qkvi_head_pieces *p, const int64_t n[2], qkv_error *error) {
    static const char *const names[] = { "own_queries", "own_keys" };
    static const char *const all[] = { "n_queries", "n_keys" };
    for (int side = 0; side < 2; side++) {
        int64_t *const first = p->first[side];
        for (int rank = 0; rank < p->peers->size; rank++)
            first[rank + 1] = first[rank] + (int64_t)p->peers->records[rank].values[side];
        if (first[p->peers->size] != n[side])
            return qkvi_error_set(error, QKV_ERR_SHAPE,
                                  "arrays.%s of all ranks are %lld, and %s is %lld", names[side],
                                  (long long)first[p->peers->size], all[side], (long long)n[side]);
    }
    return QKV_OK;
}

qkv_status qkvi_head_pieces_make(qkvi_head_pieces *p, qkvi_peers *peers, qkv_status status,
                                 const int64_t own[2], const int64_t n[2], int64_t width,
                                 qkv_error *error) {
    const size_t size = (size_t)peers->size;
    const double values[QKVI_PEER_VALUES] = { (double)own[0], (double)own[1] };
    p->peers = peers;
    p->width = width;
    for (int side = 0; side < 2; side++)
        p->first[side] = qkvi_calloc_array(size + 1, sizeof *p->first[side]);
    p->wanted = qkvi_calloc_array(size, 2 * sizeof *p->wanted);
    if (status == QKV_OK && (!p->first[0] || !p->first[1] || !p->wanted))
        status = qkvi_no_memory(error, "rows of ranks");
    QKV_TRY(qkvi_peers_agree(peers, status, values, error));
    return take_firsts(p, n, error);
}

void qkvi_head_pieces_drop(qkvi_head_pieces *p) {
    for (int side = 0; side < 2; side++) {
        free(p->rows[side]);
        p->rows[side] = NULL;
    }
}

void qkvi_head_pieces_free(qkvi_head_pieces *p) {
    qkvi_head_pieces_drop(p);
    for (int side = 0; side < 2; side++) free(p->first[side]);
    free(p->wanted);
    *p = (qkvi_head_pieces){ .peers = NULL };
}

/* ---- Bringing -------------------------------------------------------------------------------- */

static qkv_status make_room(qkvi_head_pieces *p, const int64_t room[2], qkv_error *error) {
    for (int side = 0; side < 2; side++) {
        p->rows[side] =
            qkvi_calloc_array((size_t)room[side], (size_t)p->width * sizeof *p->rows[side]);
        if (!p->rows[side]) return qkvi_no_memory(error, "rows of other ranks");
    }
    return QKV_OK;
}

static qkv_status tell_wanted(qkvi_head_pieces *p, const qkvi_range wanted[2], qkv_error *error) {
    qkvi_peers *const peers = p->peers;
    const size_t bytes = 2 * sizeof *wanted;
    for (int rank = 0; rank < peers->size; rank++) {
        peers->at[0][rank] = 0;
        peers->at[1][rank] = (size_t)rank * bytes;
        peers->bytes[0][rank] = peers->bytes[1][rank] = bytes;
    }
    memcpy(&p->wanted[2 * peers->rank], wanted, bytes);
    return qkvi_peers_exchange(peers, wanted, p->wanted, error);
}

/* What a rank has of a range. */
static qkvi_range held(const qkvi_head_pieces *p, int side, int rank, qkvi_range of) {
    const int64_t *const first = p->first[side] + rank;
    const qkvi_range both = { qkvi_max_i64(of.begin, first[0]), qkvi_min_i64(of.end, first[1]) };
    return both.begin < both.end ? both : (qkvi_range){ first[0], first[0] };
}

static qkv_status move_rows(qkvi_head_pieces *p, int side, const float *own, qkv_error *error) {
    qkvi_peers *const peers = p->peers;
    const int me = peers->rank;
    const size_t row = (size_t)p->width * sizeof(float);
    const int64_t mine = p->first[side][me];
    for (int rank = 0; rank < peers->size; rank++) {
        const qkvi_range given = held(p, side, me, p->wanted[2 * rank + side]),
                         got = held(p, side, rank, p->wanted[2 * me + side]);
        peers->at[0][rank] = (size_t)(given.begin - mine) * row;
        peers->bytes[0][rank] = (size_t)(given.end - given.begin) * row;
        peers->at[1][rank] = (size_t)got.begin * row;
        peers->bytes[1][rank] = (size_t)(got.end - got.begin) * row;
    }
    if (peers->bytes[0][me] > 0)
        memcpy((char *)p->rows[side] + peers->at[1][me], (const char *)own + peers->at[0][me],
               peers->bytes[0][me]);
    return qkvi_peers_exchange(peers, own, p->rows[side], error);
}

qkv_status qkvi_head_pieces_bring(qkvi_head_pieces *p, qkv_status status, const float *const own[2],
                                  const qkvi_range wanted[2], const int64_t room[2],
                                  qkv_error *error) {
    qkvi_head_pieces_drop(p);
    if (status == QKV_OK) status = make_room(p, room, error);
    status = qkvi_peers_agree(p->peers, status, NULL, error);
    if (status == QKV_OK) status = tell_wanted(p, wanted, error);
    for (int side = 0; status == QKV_OK && side < 2; side++)
        status = move_rows(p, side, own[side], error);
    if (status != QKV_OK) qkvi_head_pieces_drop(p);
    return status;
}
