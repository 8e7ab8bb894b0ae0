/**
 * Merging the bytes of a word.
 *
 * Symbols are a linked list in an array; after a merge the left one stands for both. A heap has a
 * key for each pair that can be merged: rank, then position. Keys are not removed when a neighbour
 * changes: a key is stale if its pair, looked up again, has another rank. (PyPI tokenizers,
 * models/bpe/word.rs, compares the ids of the results instead. That is the same: two pairs that
 * begin at one position and have the same joined string are the same pair, because a symbol only
 * grows by its whole right neighbour.)
 *
 * n bytes have at most n − 1 merges, each of which removes one key and adds at most two: the heap
 * never has more than 2n keys.
 */
#include "text/bpe.h"

/* ---- Ranks ----------------------------------------------------------------------------------- */

qkv_status qkvi_ranks_add(qkvi_ranks *ranks, int32_t left, int32_t right, int32_t id) {
    if (ranks->n == QKVI_RANKS_MAX) return QKV_ERR_LIMIT;
    QKV_TRY(qkvi_reserve(&ranks->list, &ranks->capacity, ranks->n + 1, sizeof *ranks->list));
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

/* And for 2 n keys. */
qkv_status qkvi_bpe_work_begin(qkvi_bpe_work *work, size_t n) {
    if (n > work->capacity) {
        size_t capacity = work->capacity ? work->capacity : 64;
        while (capacity < n) capacity *= 2;
        if (capacity > n && n > 65536) capacity = n; /* long words: no more than needed */
        qkvi_bpe_work_free(work);                    /* nothing of the last word is needed */
        work->symbols = qkvi_malloc_array(capacity, sizeof *work->symbols);
        work->heap = qkvi_malloc_array(capacity, 2 * sizeof *work->heap);
        if (work->symbols == NULL || work->heap == NULL) return QKV_ERR_MEMORY;
        work->capacity = capacity;
    }
    work->n_symbols = work->n_heap = 0;
    return QKV_OK;
}

void qkvi_bpe_work_free(qkvi_bpe_work *work) {
    free(work->symbols);
    free(work->heap);
    *work = (qkvi_bpe_work){ 0 };
}

/* ---- The heap: smallest first ---------------------------------------------------------------- */

static void push_key(qkvi_bpe_work *work, uint64_t key) {
    size_t at = work->n_heap++;
    for (; at > 0 && work->heap[(at - 1) / 2] > key; at = (at - 1) / 2)
        work->heap[at] = work->heap[(at - 1) / 2];
    work->heap[at] = key;
}

static uint64_t pop_key(qkvi_bpe_work *work) {
    const uint64_t top = work->heap[0], last = work->heap[--work->n_heap];
    const size_t n = work->n_heap;
    size_t at = 0;
    for (size_t child = 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && work->heap[child + 1] < work->heap[child]) child++;
        if (work->heap[child] >= last) break;
        work->heap[at] = work->heap[child];
        at = child;
    }
    work->heap[at] = last;
    return top;
}

/* ---- Symbols --------------------------------------------------------------------------------- */

void qkvi_bpe_work_put(qkvi_bpe_work *work, int32_t id, uint32_t begin, uint32_t end) {
    const uint32_t n = (uint32_t)work->n_symbols++;
    work->symbols[n] = (qkvi_bpe_symbol){ id, begin, end, n > 0 ? n - 1 : QKVI_BPE_NONE, n + 1 };
}

/* The bytes of a word; of those without a token an unk, or nothing. */
static void start(const qkvi_bpe *model, const char *word, size_t n_bytes, qkvi_bpe_work *work) {
    int fuse = 0; /* the last symbol is an unk that the next byte may join */
    for (size_t i = 0; i < n_bytes; i++) {
        const int is_last = model->ends_words && i + 1 == n_bytes;
        int32_t id = (is_last ? model->last_ids : model->byte_ids)[(unsigned char)word[i]];
        const int known = id >= 0;
        if (!known && model->unk < 0) continue;
        if (!known && fuse) {
            work->symbols[work->n_symbols - 1].end = (uint32_t)i + 1;
            continue;
        }
        if (!known) id = model->unk;
        fuse = !known && model->fuse_unk;
        qkvi_bpe_work_put(work, id, (uint32_t)i, (uint32_t)i + 1);
    }
}

/* The merge of a symbol with the one to its right, or NULL. */
static const qkvi_rank *merge_at(const qkvi_bpe *model, const qkvi_bpe_work *work, uint32_t at) {
    const qkvi_bpe_symbol *symbol = &work->symbols[at];
    if (symbol->next == QKVI_BPE_NONE) return NULL;
    return qkvi_ranks_find(&model->ranks, symbol->id, work->symbols[symbol->next].id);
}

static void push_pair(const qkvi_bpe *model, qkvi_bpe_work *work, uint32_t at) {
    if (at == QKVI_BPE_NONE) return;
    const qkvi_rank *rank = merge_at(model, work, at);
    if (rank) push_key(work, (uint64_t)rank->rank << 32 | at);
}

static void join(qkvi_bpe_work *work, uint32_t at, int32_t id) {
    qkvi_bpe_symbol *left = &work->symbols[at], *right = &work->symbols[left->next];
    left->id = id;
    left->end = right->end;
    left->next = right->next;
    right->id = -1; /* gone */
    right->next = QKVI_BPE_NONE;
    if (left->next != QKVI_BPE_NONE) work->symbols[left->next].previous = at;
}

static void pack(qkvi_bpe_work *work) {
    size_t n = 0;
    for (size_t i = 0; i < work->n_symbols; i++) {
        if (work->symbols[i].id >= 0) work->symbols[n++] = work->symbols[i];
    }
    work->n_symbols = n;
}

void qkvi_bpe_work_merge(const qkvi_bpe *model, qkvi_bpe_work *work) {
    if (work->n_symbols == 0) return;
    work->symbols[work->n_symbols - 1].next = QKVI_BPE_NONE;
    for (uint32_t i = 0; i < work->n_symbols; i++) push_pair(model, work, i);
    while (work->n_heap > 0) {
        const uint64_t key = pop_key(work);
        const uint32_t at = (uint32_t)key;
        const qkvi_rank *rank = merge_at(model, work, at);
        if (rank == NULL || rank->rank != key >> 32) continue;
        join(work, at, rank->id);
        push_pair(model, work, work->symbols[at].previous);
        push_pair(model, work, at);
    }
    pack(work);
}

qkv_status qkvi_bpe_merge(const qkvi_bpe *model, const char *word, size_t n_bytes,
                          qkvi_bpe_work *work) {
    QKV_TRY(qkvi_bpe_work_begin(work, n_bytes));
    start(model, word, n_bytes, work);
    qkvi_bpe_work_merge(model, work);
    return QKV_OK;
}
