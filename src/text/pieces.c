/** A vocabulary as a sorted array; see pieces.h. */
#include "text/pieces.h"

#include "core/sort.h"

/* Places of bytes are 32 bits; there is room for one at least. */
static qkv_status reserve_bytes(qkvi_pieces *pieces, size_t more) {
    const size_t needed = pieces->n_bytes + more;
    if (needed > (size_t)1 << 31) return QKV_ERR_LIMIT;
    return qkvi_reserve(&pieces->bytes, &pieces->bytes_capacity, needed ? needed : 1, 1);
}

qkv_status qkvi_pieces_add(qkvi_pieces *pieces, int32_t id, const char *bytes, size_t n_bytes) {
    if (id < 0 || id >= QKVI_PIECES_MAX_IDS || n_bytes > QKVI_PIECE_MAX_BYTES) return QKV_ERR_LIMIT;
    QKV_TRY(qkvi_reserve(&pieces->tokens, &pieces->ids_capacity, (size_t)id + 1,
                         sizeof *pieces->tokens));
    QKV_TRY(reserve_bytes(pieces, n_bytes));
    while (pieces->n_ids <= id) pieces->tokens[pieces->n_ids++] = (struct qkvi_text_piece){ 0, -1 };
    if (n_bytes > 0) memcpy(pieces->bytes + pieces->n_bytes, bytes, n_bytes);
    pieces->tokens[id] = (struct qkvi_text_piece){ (uint32_t)pieces->n_bytes, (int32_t)n_bytes };
    pieces->n_bytes += n_bytes;
    return QKV_OK;
}

void qkvi_pieces_free(qkvi_pieces *pieces) {
    free(pieces->bytes);
    free(pieces->tokens);
    free(pieces->sorted);
    *pieces = (qkvi_pieces){ 0 };
}

static int compare_bytes(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    const size_t common = a_bytes < b_bytes ? a_bytes : b_bytes;
    const int order = common > 0 ? memcmp(a, b, common) : 0;
    return order != 0 ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static int compare_ids(const void *a, const void *b, void *user) {
    const qkvi_pieces *pieces = user;
    const int32_t id_a = *(const int32_t *)a, id_b = *(const int32_t *)b;
    const struct qkvi_text_piece x = pieces->tokens[id_a], y = pieces->tokens[id_b];
    const int order = compare_bytes(pieces->bytes + x.offset, (size_t)x.length,
                                    pieces->bytes + y.offset, (size_t)y.length);
    return order != 0 ? order : (id_a > id_b) - (id_a < id_b);
}

static int same_token(const qkvi_pieces *pieces, int32_t a, int32_t b) {
    const struct qkvi_text_piece x = pieces->tokens[a], y = pieces->tokens[b];
    return x.length == y.length &&
           memcmp(pieces->bytes + x.offset, pieces->bytes + y.offset, (size_t)x.length) == 0;
}

qkv_status qkvi_pieces_seal(qkvi_pieces *pieces) {
    if (pieces->n_ids == 0) return QKV_OK;
    int32_t *sorted = qkvi_malloc_array((size_t)pieces->n_ids, sizeof *sorted);
    if (sorted == NULL) return QKV_ERR_MEMORY;
    int32_t n = 0;
    for (int32_t id = 0; id < pieces->n_ids; id++) {
        if (pieces->tokens[id].length >= 0) sorted[n++] = id;
    }
    qkvi_sort(sorted, (size_t)n, sizeof *sorted, compare_ids, pieces);
    int32_t kept = 0;
    pieces->first_hidden = -1;
    for (int32_t i = 0; i < n; i++) {
        const int is_hidden = i + 1 < n && same_token(pieces, sorted[i], sorted[i + 1]);
        if (is_hidden && (pieces->first_hidden < 0 || sorted[i] < pieces->first_hidden))
            pieces->first_hidden = sorted[i];
        if (!is_hidden) sorted[kept++] = sorted[i];
    }
    pieces->n_hidden = n - kept;
    pieces->sorted = sorted;
    pieces->n_sorted = kept;
    return QKV_OK;
}

/* The first place in [low, high) whose token has a byte >= byte at depth; all there are longer than
 * depth. */
static int32_t lower_bound(const qkvi_pieces *pieces, int32_t low, int32_t high, int32_t depth,
                           int byte) {
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        const struct qkvi_text_piece token = pieces->tokens[pieces->sorted[middle]];
        const int at = (unsigned char)pieces->bytes[token.offset + (uint32_t)depth];
        if (at < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Is there a token that is exactly the prefix? It comes first in the interval. */
static int is_token(const qkvi_pieces *pieces, qkvi_prefix prefix) {
    return prefix.low < prefix.high &&
           pieces->tokens[pieces->sorted[prefix.low]].length == prefix.depth;
}

static qkvi_prefix narrow(const qkvi_pieces *pieces, qkvi_prefix prefix, char next) {
    const int byte = (unsigned char)next;
    const int32_t first = prefix.low + is_token(pieces, prefix);
    const int32_t low = lower_bound(pieces, first, prefix.high, prefix.depth, byte);
    const int32_t high = lower_bound(pieces, low, prefix.high, prefix.depth, byte + 1);
    return (qkvi_prefix){ low, high, prefix.depth + 1 };
}

qkvi_prefix qkvi_pieces_prefix(const qkvi_pieces *pieces, const char *bytes, size_t n_bytes) {
    qkvi_prefix prefix = { 0, pieces->n_sorted, 0 };
    for (size_t i = 0; i < n_bytes && prefix.low < prefix.high; i++) {
        prefix = narrow(pieces, prefix, bytes[i]);
    }
    return prefix;
}

const char *qkvi_pieces_token(const qkvi_pieces *pieces, int32_t id, size_t *n_bytes) {
    if (id < 0 || id >= pieces->n_ids || pieces->tokens[id].length < 0) return NULL;
    *n_bytes = (size_t)pieces->tokens[id].length;
    return pieces->bytes + pieces->tokens[id].offset;
}

int32_t qkvi_pieces_find(const qkvi_pieces *pieces, const char *bytes, size_t n_bytes) {
    const qkvi_prefix prefix = qkvi_pieces_prefix(pieces, bytes, n_bytes);
    return is_token(pieces, prefix) ? pieces->sorted[prefix.low] : -1;
}

int32_t qkvi_pieces_longest(const qkvi_pieces *pieces, qkvi_prefix prefix, const char *bytes,
                            size_t n_bytes, size_t *length) {
    int32_t best = -1;
    for (size_t i = 0; i < n_bytes; i++) {
        prefix = narrow(pieces, prefix, bytes[i]);
        if (prefix.low >= prefix.high) break;
        if (is_token(pieces, prefix)) {
            best = pieces->sorted[prefix.low];
            *length = i + 1;
        }
    }
    return best;
}
