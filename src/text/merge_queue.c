/**
 * A heap of (count, pair) that is corrected lazily. A pair whose count grew is added again with the
 * new count; one whose count fell is corrected when it is at the top, and sinks. Invariant: every
 * pair with a count is in the heap with `queued`, which is at least its count; other entries of the
 * same pair are older, and dropped when they are at the top. See merges.h.
 */
#include "text/merges.h"

#include "text/counter.h"

typedef struct place { /* a word of a pair, in a list */
    size_t word;
    uint32_t next; /* place + 1; 0: the last */
} place;

typedef struct pair_state {
    int64_t queued; /* the count with which it waits in the heap, 0: it does not */
    uint32_t first; /* of its places */
    int grew;       /* it is in `grown` */
} pair_state;

typedef struct waiting {
    int64_t count;
    uint32_t pair;
} waiting;

struct qkvi_merge_queue {
    qkvi_counter pairs; /* key: two symbols as int32_t[2]; entry e has its bytes at 8 e */
    pair_state *states; /* [pairs.n] */
    size_t states_capacity;
    place *places;
    size_t n_places, places_capacity;
    uint32_t unused; /* places of pairs that were taken, a list */
    uint32_t taken;  /* places of the pair that best took */
    uint32_t *grown; /* pairs whose count grew since the last sort */
    size_t n_grown, grown_capacity;
    waiting *heap;
    size_t n_heap, heap_capacity;
};

qkvi_merge_queue *qkvi_merge_queue_create(void) { return calloc(1, sizeof(qkvi_merge_queue)); }

void qkvi_merge_queue_free(qkvi_merge_queue *queue) {
    if (queue == NULL) return;
    qkvi_counter_free(&queue->pairs);
    free(queue->states);
    free(queue->places);
    free(queue->grown);
    free(queue->heap);
    free(queue);
}

/* Room for one more than n elements of a list of the queue. */
#define RESERVE(queue, list, n)                                                                    \
    QKV_TRY(qkvi_reserve(&(queue)->list, &(queue)->list##_capacity, (n) + 1, sizeof *(queue)->list))

/* ---- Counts ---------------------------------------------------------------------------------- */

static qkv_status add_place(qkvi_merge_queue *queue, size_t word, pair_state *state) {
    uint32_t at = queue->unused;
    if (at) {
        queue->unused = queue->places[at - 1].next;
    } else {
        if (queue->n_places == UINT32_MAX) return QKV_ERR_LIMIT;
        RESERVE(queue, places, queue->n_places);
        at = (uint32_t)++queue->n_places;
    }
    queue->places[at - 1] = (place){ word, state->first };
    state->first = at;
    return QKV_OK;
}

qkv_status qkvi_merge_queue_more(qkvi_merge_queue *queue, int32_t left, int32_t right, size_t word,
                                 int64_t count) {
    const int32_t key[2] = { left, right };
    size_t entry;
    const size_t known = queue->pairs.n;
    RESERVE(queue, states, known);
    RESERVE(queue, grown, queue->n_grown);
    QKV_TRY(qkvi_counter_add(&queue->pairs, key, sizeof key, count, &entry));
    pair_state *const state = &queue->states[entry];
    if (entry == known) *state = (pair_state){ 0 };
    if (!state->grew) queue->grown[queue->n_grown++] = (uint32_t)entry;
    state->grew = 1;
    /* Words are counted one after another: the last one may be this. */
    if (state->first && queue->places[state->first - 1].word == word) return QKV_OK;
    return add_place(queue, word, state);
}

void qkvi_merge_queue_fewer(qkvi_merge_queue *queue, int32_t left, int32_t right, int64_t count) {
    const int32_t key[2] = { left, right };
    qkvi_count *const entry = (qkvi_count *)qkvi_counter_find(&queue->pairs, key, sizeof key);
    entry->count -= count < entry->count ? count : entry->count; /* of the pair taken: 0 */
}

/* ---- The heap -------------------------------------------------------------------------------- */

static int is_before(const qkvi_merge_queue *queue, const waiting *a, const waiting *b) {
    int32_t x[2], y[2];
    if (a->count != b->count) return a->count > b->count;
    memcpy(x, queue->pairs.keys + queue->pairs.entries[a->pair].offset, sizeof x);
    memcpy(y, queue->pairs.keys + queue->pairs.entries[b->pair].offset, sizeof y);
    return x[0] != y[0] ? x[0] < y[0] : x[1] < y[1];
}

static void rise(qkvi_merge_queue *queue, size_t at) {
    const waiting item = queue->heap[at];
    while (at > 0 && is_before(queue, &item, &queue->heap[(at - 1) / 2])) {
        queue->heap[at] = queue->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    queue->heap[at] = item;
}

static void sink(qkvi_merge_queue *queue) {
    const waiting item = queue->heap[0];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < queue->n_heap; at = child) {
        if (child + 1 < queue->n_heap &&
            is_before(queue, &queue->heap[child + 1], &queue->heap[child]))
            child++;
        if (!is_before(queue, &queue->heap[child], &item)) break;
        queue->heap[at] = queue->heap[child];
    }
    queue->heap[at] = item;
}

static void drop_top(qkvi_merge_queue *queue) {
    queue->heap[0] = queue->heap[--queue->n_heap];
    if (queue->n_heap > 0) sink(queue);
}

qkv_status qkvi_merge_queue_sort(qkvi_merge_queue *queue) {
    while (queue->n_grown > 0) {
        const uint32_t pair = queue->grown[queue->n_grown - 1];
        const int64_t count = queue->pairs.entries[pair].count;
        pair_state *const state = &queue->states[pair];
        if (count > state->queued) {
            RESERVE(queue, heap, queue->n_heap);
            queue->heap[queue->n_heap] = (waiting){ count, pair };
            rise(queue, queue->n_heap++);
            state->queued = count;
        }
        state->grew = 0;
        queue->n_grown--;
    }
    return QKV_OK;
}

int qkvi_merge_queue_best(qkvi_merge_queue *queue, int64_t least, int32_t pair[2]) {
    while (queue->n_heap > 0) {
        waiting *const top = &queue->heap[0];
        pair_state *const state = &queue->states[top->pair];
        qkvi_count *const entry = &queue->pairs.entries[top->pair];
        if (top->count != state->queued || entry->count < least) {
            if (top->count == state->queued) state->queued = 0;
            drop_top(queue);
            continue;
        }
        if (top->count != entry->count) {
            top->count = state->queued = entry->count;
            sink(queue);
            continue;
        }
        memcpy(pair, queue->pairs.keys + entry->offset, 2 * sizeof *pair);
        queue->taken = state->first;
        state->first = 0;
        state->queued = entry->count = 0;
        drop_top(queue);
        return 1;
    }
    return 0;
}

int qkvi_merge_queue_word(qkvi_merge_queue *queue, size_t *word) {
    const uint32_t at = queue->taken;
    if (at == 0) return 0;
    place *const taken = &queue->places[at - 1];
    *word = taken->word;
    queue->taken = taken->next;
    taken->next = queue->unused;
    queue->unused = at;
    return 1;
}
