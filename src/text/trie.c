/**
 * Building and searching a double array: see spm.h.
 *
 * The tokens below a node are an interval of the sorted vocabulary. Its first token ends at the
 * node if it is as long as the node is deep; the other tokens form runs with the same next byte,
 * the children. The units base ^ byte of all children must be free: bases are tried that put the
 * first child on a free unit, from where the last search ended, at most TRIES of them. Free units
 * form a ring.
 */
#include "text/spm.h"

enum { BLOCK = 256, TRIES = 64 };

#define FREE UINT32_MAX /* parent of a unit that is not in use */

/* A node whose children have no place yet: sorted[low … high) begin with its depth bytes. */
struct pending {
    uint32_t unit;
    int32_t low, high, depth;
};

struct builder {
    const qkvi_pieces *pieces;
    int32_t *sorted; /* those that enter */
    int32_t n_sorted;
    qkvi_trie_unit *units;
    struct link {
        uint32_t next, previous;
    } * ring;
    uint32_t n_units, capacity, rover; /* rover: a free unit, or FREE */
    struct pending *stack;
    size_t n_stack, stack_capacity;
};

static int byte_at(const struct builder *b, int32_t place, int32_t depth) {
    const struct qkvi_text_piece token = b->pieces->tokens[b->sorted[place]];
    return (unsigned char)b->pieces->bytes[token.offset + (uint32_t)depth];
}

static qkv_status push(struct builder *b, struct pending pending) {
    QKV_TRY(qkvi_reserve(&b->stack, &b->stack_capacity, b->n_stack + 1, sizeof pending));
    b->stack[b->n_stack++] = pending;
    return QKV_OK;
}

static qkv_status reserve(struct builder *b, uint32_t n_units) {
    const uint32_t capacity = (n_units + BLOCK - 1) / BLOCK * BLOCK;
    qkvi_trie_unit *units = qkvi_realloc_array(b->units, capacity, sizeof *units);
    if (units == NULL) return QKV_ERR_MEMORY;
    b->units = units;
    struct link *ring = qkvi_realloc_array(b->ring, capacity, sizeof *ring);
    if (ring == NULL) return QKV_ERR_MEMORY;
    b->ring = ring;
    b->capacity = capacity;
    return QKV_OK;
}

static qkv_status grow(struct builder *b) {
    const uint32_t n = b->n_units;
    if (n == b->capacity) QKV_TRY(reserve(b, n + n / 8 + 1));
    for (uint32_t i = n; i < n + BLOCK; i++) {
        b->units[i] = (qkvi_trie_unit){ 0, FREE, -1, 0 };
        b->ring[i] = (struct link){ i + 1, i - 1 };
    }
    const uint32_t last = n + BLOCK - 1, next = b->rover == FREE ? n : b->rover;
    const uint32_t before = b->rover == FREE ? last : b->ring[b->rover].previous;
    b->ring[n].previous = before;
    b->ring[last].next = next;
    b->ring[before].next = n;
    b->ring[next].previous = last;
    b->rover = n;
    b->n_units = n + BLOCK;
    return QKV_OK;
}

static void take(struct builder *b, uint32_t unit, uint32_t parent) {
    const struct link link = b->ring[unit];
    b->ring[link.previous].next = link.next;
    b->ring[link.next].previous = link.previous;
    b->rover = link.next == unit ? FREE : link.next;
    b->units[unit].parent = parent;
}

static int fits(const struct builder *b, uint32_t base, const uint8_t *bytes, int n) {
    for (int i = 0; i < n; i++)
        if (b->units[base ^ bytes[i]].parent != FREE) return 0;
    return 1;
}

/* A base under which all n > 0 bytes are free. */
static qkv_status find_base(struct builder *b, const uint8_t *bytes, int n, uint32_t *base) {
    uint32_t unit = b->rover;
    for (int i = 0; i < TRIES && unit != FREE; i++) {
        *base = unit ^ bytes[0];
        if (fits(b, *base, bytes, n)) return QKV_OK;
        unit = b->ring[unit].next;
        if (unit == b->rover) break;
    }
    *base = b->n_units;
    return grow(b);
}

/* The bytes that follow a node, and where the run of each begins in sorted. */
static int children_of(const struct builder *b, const struct pending *node, uint8_t *bytes,
                       int32_t *begins) {
    int n = 0;
    for (int32_t i = node->low; i < node->high; i++) {
        const int byte = byte_at(b, i, node->depth);
        if (n > 0 && bytes[n - 1] == byte) continue;
        bytes[n] = (uint8_t)byte;
        begins[n++] = i;
    }
    begins[n] = node->high;
    return n;
}

static qkv_status place(struct builder *b, struct pending node) {
    const int32_t first = b->sorted[node.low];
    if (b->pieces->tokens[first].length == node.depth) {
        b->units[node.unit].id = first;
        node.low++;
    }
    uint8_t bytes[256];
    int32_t begins[257];
    const int n = children_of(b, &node, bytes, begins);
    if (n == 0) return QKV_OK; /* base 0: units there have other parents */
    uint32_t base = 0;
    QKV_TRY(find_base(b, bytes, n, &base));
    b->units[node.unit].base = base;
    for (int i = 0; i < n; i++) {
        take(b, base ^ bytes[i], node.unit);
        QKV_TRY(
            push(b, (struct pending){ base ^ bytes[i], begins[i], begins[i + 1], node.depth + 1 }));
    }
    return QKV_OK;
}

/* Nodes but for the root: the bytes of each token that the token before it does not begin with. */
static size_t count_nodes(const struct builder *b) {
    size_t nodes = 0;
    for (int32_t i = 0; i < b->n_sorted; i++) {
        const struct qkvi_text_piece token = b->pieces->tokens[b->sorted[i]];
        const int32_t before = i > 0 ? b->pieces->tokens[b->sorted[i - 1]].length : 0;
        const int32_t most = before < token.length ? before : token.length;
        int32_t same = 0;
        while (same < most && byte_at(b, i, same) == byte_at(b, i - 1, same)) same++;
        nodes += (size_t)(token.length - same);
    }
    return nodes;
}

static qkv_status build(struct builder *b, qkvi_trie_chooses *chooses, const void *user) {
    const qkvi_pieces *pieces = b->pieces;
    b->sorted = qkvi_malloc_array((size_t)pieces->n_sorted, sizeof *b->sorted);
    if (b->sorted == NULL) return QKV_ERR_MEMORY;
    for (int32_t i = 0; i < pieces->n_sorted; i++) {
        const int32_t id = pieces->sorted[i];
        if (pieces->tokens[id].length > 0 && chooses(user, id)) b->sorted[b->n_sorted++] = id;
    }
    if (b->n_sorted == 0) return QKV_OK;
    const size_t nodes = count_nodes(b);
    if (nodes > QKVI_TRIE_MAX_NODES) return QKV_ERR_LIMIT;
    QKV_TRY(reserve(b, (uint32_t)(nodes + nodes / 16 + 1)));
    QKV_TRY(grow(b));
    take(b, 0, 0);
    QKV_TRY(push(b, (struct pending){ 0, 0, b->n_sorted, 0 }));
    while (b->n_stack > 0) QKV_TRY(place(b, b->stack[--b->n_stack]));
    return QKV_OK;
}

qkv_status qkvi_trie_build(qkvi_trie *trie, const qkvi_pieces *pieces, qkvi_trie_chooses *chooses,
                           const void *user) {
    struct builder b = { .pieces = pieces, .rover = FREE };
    const qkv_status status = build(&b, chooses, user);
    free(b.sorted);
    free(b.stack);
    free(b.ring);
    if (status == QKV_OK)
        *trie = (qkvi_trie){ b.units, b.n_units };
    else
        free(b.units);
    return status;
}

void qkvi_trie_free(qkvi_trie *trie) {
    free(trie->units);
    *trie = (qkvi_trie){ 0 };
}

size_t qkvi_trie_longest(const qkvi_trie *trie, const char *bytes, size_t n_bytes) {
    size_t longest = 0;
    uint32_t node = 0;
    for (size_t i = 0; trie->n_units > 0 && i < n_bytes; i++) {
        node = qkvi_trie_child(trie->units, node, (uint8_t)bytes[i]);
        if (node == 0) break;
        if (trie->units[node].id >= 0) longest = i + 1;
    }
    return longest;
}
