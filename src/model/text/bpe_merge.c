/**
 * Merging the bytes of a word.
 *
 * Symbols are a linked list in an array; a merge lets the left one take the place of both. A heap
 * holds a key for each pair that has a rank: rank, then place. Keys are not taken back when a
 * neighbour changes: a key is stale if its pair, looked up again, has another rank. (PyPI
 * tokenizers, models/bpe/word.rs, compares the ids of the results instead. That is the same: the
 * tokens of a pair are strings at one place, and two pairs that begin there with the same joined
 * string are the same pair, because a symbol only grows by its whole right neighbour.)
 *
 * n bytes make at most n − 1 merges, each of which takes one key out and puts at most two in: the
 * heap never holds more than 2n.
 */

#include "model/text/bpe.h"

/* Room for n more symbols and 2 n keys. */
static qkv_status reserve(qkvi_bpe_work *work, size_t n) {
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

/* The bytes of a word; of those without a token an unk, or nothing. */
static void start(const qkvi_bpe *model, const char *word, size_t n_bytes, qkvi_bpe_work *work) {
    size_t n = 0;
    int fuse = 0; /* the last symbol is an unk that the next byte may join */
    for (size_t i = 0; i < n_bytes; i++) {
        int32_t id = model->byte_ids[(unsigned char)word[i]];
        const int known = id >= 0;
        if (!known && model->unk < 0) continue;
        if (!known && fuse) {
            work->symbols[n - 1].end = (uint32_t)i + 1;
            continue;
        }
        if (!known) id = model->unk;
        fuse = !known && model->fuse_unk;
        work->symbols[n] =
            (qkvi_bpe_symbol){ id, (uint32_t)i, (uint32_t)i + 1,
                               n > 0 ? (uint32_t)n - 1 : QKVI_BPE_NONE, (uint32_t)n + 1 };
        n++;
    }
    if (n > 0) work->symbols[n - 1].next = QKVI_BPE_NONE;
    work->n_symbols = n;
    work->n_heap = 0;
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

qkv_status qkvi_bpe_merge(const qkvi_bpe *model, const char *word, size_t n_bytes,
                          qkvi_bpe_work *work) {
    QKV_TRY(reserve(work, n_bytes));
    start(model, word, n_bytes, work);
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
    return QKV_OK;
}
