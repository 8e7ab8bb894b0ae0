/** See ranks.h. */
#include "model/text/ranks.h"

qkv_status qkvi_ranks_add(qkvi_ranks *ranks, int32_t left, int32_t right, int32_t id) {
    if (ranks->n == QKVI_RANKS_MAX) return QKV_ERR_LIMIT;
    if (ranks->n == ranks->capacity) {
        const size_t capacity = ranks->capacity ? 2 * ranks->capacity : 1024;
        qkvi_rank *list = qkvi_realloc_array(ranks->list, capacity, sizeof *list);
        if (list == NULL) return QKV_ERR_MEMORY;
        ranks->list = list;
        ranks->capacity = capacity;
    }
    ranks->list[ranks->n++] = (qkvi_rank){ left, right, ranks->n_ranks++, id };
    return QKV_OK;
}

/* By pair; of equal ones the last rank first. */
static int compare(const void *a, const void *b) {
    const qkvi_rank *x = a, *y = b;
    if (x->left != y->left) return x->left < y->left ? -1 : 1;
    if (x->right != y->right) return x->right < y->right ? -1 : 1;
    return (x->rank < y->rank) - (x->rank > y->rank);
}

qkv_status qkvi_ranks_seal(qkvi_ranks *ranks, int32_t n_ids) {
    ranks->n_ids = n_ids;
    ranks->first = qkvi_calloc_array((size_t)n_ids + 1, sizeof *ranks->first);
    if (ranks->first == NULL) return QKV_ERR_MEMORY;
    if (ranks->n > 1) qsort(ranks->list, ranks->n, sizeof *ranks->list, compare);
    size_t kept = 0;
    for (size_t i = 0; i < ranks->n; i++) {
        const qkvi_rank rank = ranks->list[i];
        const qkvi_rank *last = kept > 0 ? &ranks->list[kept - 1] : NULL;
        if (last && last->left == rank.left && last->right == rank.right) continue;
        ranks->list[kept++] = rank;
        ranks->first[rank.left + 1]++;
    }
    ranks->n = kept;
    for (int32_t id = 0; id < n_ids; id++) ranks->first[id + 1] += ranks->first[id];
    return QKV_OK;
}

const qkvi_rank *qkvi_ranks_find(const qkvi_ranks *ranks, int32_t left, int32_t right) {
    uint32_t low = ranks->first[left], high = ranks->first[left + 1];
    const uint32_t end = high;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (ranks->list[middle].right < right)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && ranks->list[low].right == right ? &ranks->list[low] : NULL;
}

void qkvi_ranks_free(qkvi_ranks *ranks) {
    free(ranks->list);
    free(ranks->first);
    *ranks = (qkvi_ranks){ 0 };
}
