/** SentencePiece's map of characters: spm.h has its layout. */
#include "text/spm.h"

#include "files/utf8.h"

static uint32_t label(uint32_t unit) { return unit & (1u << 31 | 0xFF); }
static int has_leaf(uint32_t unit) { return (unit >> 8) & 1; }
static int is_leaf(uint32_t unit) { return (int)(unit >> 31); }
static uint32_t leaf_value(uint32_t unit) { return unit & 0x7FFFFFFF; }

/* Where the children of a node begin. */
static uint32_t children(const qkvi_charsmap *map, uint32_t node) {
    const uint32_t unit = map->units[node];
    return node ^ ((unit >> 10) << ((unit & (1u << 9)) >> 6));
}

/* The array in whole blocks of 256 units: what a base, exclusive-ored with a byte, can reach. */
static uint32_t blocks_of(const qkvi_charsmap *map) { return (map->n_units + 255) / 256 * 256; }

/* ---- Checking -------------------------------------------------------------------------------- */

enum { UNSEEN = 0, ON_PATH = -1 };

/* A place where children begin, the next byte to look for, and the length of the longest rest. */
struct visit {
    uint32_t base;
    int32_t byte, height;
};

/* height[base]: UNSEEN, ON_PATH, or 1 + the length of the longest path down from base. */
struct checker {
    const qkvi_charsmap *map;
    const char *name;
    qkv_error *error;
    int32_t *height;
    struct visit path[QKVI_CHARSMAP_MAX_RULE + 1];
    int n_path;
};

static qkv_status refuse(const struct checker *c, uint32_t unit, const char *what) {
    return qkvi_error_set(c->error, QKV_ERR_FORMAT, "%s: unit %u of the trie %s", c->name, unit,
                          what);
}

static qkv_status check_string(const struct checker *c, uint32_t unit) {
    const qkvi_charsmap *map = c->map;
    if (unit >= map->n_units || !is_leaf(map->units[unit]))
        return refuse(c, unit, "should be a leaf and is not");
    const size_t at = leaf_value(map->units[unit]);
    if (at >= map->strings_bytes) return refuse(c, unit, "leads behind the strings");
    const size_t left = map->strings_bytes - at;
    const size_t n = strnlen(map->strings + at, left);
    if (n == left) return refuse(c, unit, "leads to a string without end");
    if (n > QKVI_CHARSMAP_MAX_STRING)
        return qkvi_error_set(c->error, QKV_ERR_LIMIT,
                              "%s: unit %u of the trie leads to %zu bytes, the limit is %d",
                              c->name, unit, n, QKVI_CHARSMAP_MAX_STRING);
    if (qkvi_utf8_valid(map->strings + at, n) < n)
        return refuse(c, unit, "leads to bytes that are not UTF-8");
    return QKV_OK;
}

/* A node is seen: its leaf, then its children, unless they are known already. */
static qkv_status enter(struct checker *c, uint32_t node, int *known) {
    const uint32_t base = children(c->map, node);
    if (has_leaf(c->map->units[node])) QKV_TRY(check_string(c, base));
    *known = 0;
    if (base >= blocks_of(c->map)) { /* children may begin behind the end: then there are none */
        *known = 1;
        return QKV_OK;
    }
    if (c->height[base] == ON_PATH) return refuse(c, node, "leads back to itself");
    *known = c->height[base];
    const int32_t longest = c->n_path + (*known ? *known - 1 : 0);
    if (longest > QKVI_CHARSMAP_MAX_RULE)
        return qkvi_error_set(c->error, QKV_ERR_LIMIT,
                              "%s: a rule has more than %d bytes, the limit", c->name,
                              QKVI_CHARSMAP_MAX_RULE);
    if (*known) return QKV_OK;
    c->height[base] = ON_PATH;
    c->path[c->n_path++] = (struct visit){ base, 1, 1 };
    return QKV_OK;
}

static void leave(struct checker *c) {
    const struct visit done = c->path[--c->n_path];
    c->height[done.base] = done.height;
    if (c->n_path == 0) return;
    struct visit *above = &c->path[c->n_path - 1];
    if (above->height < done.height + 1) above->height = done.height + 1;
}

static qkv_status check_all(struct checker *c) {
    const qkvi_charsmap *map = c->map;
    int known = 0;
    QKV_TRY(enter(c, 0, &known));
    while (c->n_path > 0) {
        struct visit *top = &c->path[c->n_path - 1];
        if (top->byte == 256) {
            leave(c);
            continue;
        }
        const uint32_t byte = (uint32_t)top->byte++, node = top->base ^ byte;
        if (node >= map->n_units || label(map->units[node]) != byte) continue;
        QKV_TRY(enter(c, node, &known));
        top = &c->path[c->n_path - 1];
        if (known && top->height < known + 1) top->height = known + 1;
    }
    return QKV_OK;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static qkv_status split(qkvi_charsmap *map, const char *name, const char *bytes, size_t n_bytes,
                        qkv_error *error) {
    if (n_bytes > QKVI_CHARSMAP_MAX_BYTES)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%s has %zu bytes, the limit is %d", name,
                              n_bytes, QKVI_CHARSMAP_MAX_BYTES);
    if (n_bytes < 4)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s has %zu bytes, fewer than 4", name,
                              n_bytes);
    uint32_t head[4];
    for (int i = 0; i < 4; i++) head[i] = (unsigned char)bytes[i];
    const size_t trie_bytes = head[0] | head[1] << 8 | head[2] << 16 | head[3] << 24;
    if (trie_bytes > n_bytes - 4 || trie_bytes % 4 != 0 || trie_bytes == 0)
        return qkvi_error_set(error, QKV_ERR_FORMAT,
                              "%s: the trie has %zu bytes, must be a multiple of 4 in [4, %zu]",
                              name, trie_bytes, n_bytes - 4);
    map->strings_bytes = n_bytes - 4 - trie_bytes;
    map->units = qkvi_malloc_array(trie_bytes / 4, sizeof *map->units);
    map->strings = qkvi_malloc_array(map->strings_bytes, 1);
    if (map->units == NULL || map->strings == NULL)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %s", name);
    map->n_units = (uint32_t)(trie_bytes / 4);
    for (uint32_t i = 0; i < map->n_units; i++) {
        const unsigned char *at = (const unsigned char *)bytes + 4 + 4 * (size_t)i;
        map->units[i] =
            at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    }
    if (map->strings_bytes > 0) memcpy(map->strings, bytes + 4 + trie_bytes, map->strings_bytes);
    return QKV_OK;
}

qkv_status qkvi_charsmap_open(qkvi_charsmap *map, const char *name, const char *bytes,
                              size_t n_bytes, qkv_error *error) {
    *map = (qkvi_charsmap){ 0 };
    if (n_bytes == 0) return QKV_OK;
    QKV_TRY(split(map, name, bytes, n_bytes, error));
    struct checker checker = { .map = map, .name = name, .error = error };
    checker.height = qkvi_calloc_array(blocks_of(map), sizeof *checker.height);
    if (checker.height == NULL)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %s", name);
    const qkv_status status = check_all(&checker);
    free(checker.height);
    return status;
}

void qkvi_charsmap_free(qkvi_charsmap *map) {
    free(map->units);
    free(map->strings);
    *map = (qkvi_charsmap){ 0 };
}

static qkvi_charsmap_match find(const qkvi_charsmap *map, const char *text, size_t n_bytes,
                                int is_shortest) {
    qkvi_charsmap_match match = { 0 };
    if (map->n_units == 0) return match;
    uint32_t node = 0, leaf = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        const uint32_t base = children(map, node), byte = (unsigned char)text[i];
        node = base ^ byte;
        if (byte == 0 || node >= map->n_units || label(map->units[node]) != byte) break;
        if (!has_leaf(map->units[node])) continue;
        match.length = i + 1;
        leaf = children(map, node);
        if (is_shortest) break;
    }
    if (match.length == 0) return match;
    match.string = map->strings + leaf_value(map->units[leaf]);
    match.string_bytes = strlen(match.string);
    return match;
}

qkvi_charsmap_match qkvi_charsmap_longest(const qkvi_charsmap *map, const char *text,
                                          size_t n_bytes) {
    return find(map, text, n_bytes, 0);
}

qkvi_charsmap_match qkvi_charsmap_shortest(const qkvi_charsmap *map, const char *text,
                                           size_t n_bytes) {
    return find(map, text, n_bytes, 1);
}
