/*
 * Arrays between pages without access. See guard.h.
 */
#include "check/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/system.h"

guarded guarded_new(size_t bytes, bool at_end) {
    const size_t page = system_page_bytes();
    guarded g = { .bytes = bytes, .map_bytes = (bytes / page + 1) * page };
    g.map = system_pages(g.map_bytes);
    if (!g.map) {
        perror("qkv-check: pages");
        exit(1);
    }
    memset(g.map, CANARY_BYTE, g.map_bytes);
    g.data = at_end ? (char *)g.map + g.map_bytes - bytes : g.map;
    return g;
}

void guarded_free(guarded *g) {
    if (g->map) system_pages_free(g->map, g->map_bytes);
    *g = (guarded){ .data = NULL };
}

void guarded_read_only(const guarded *g) {
    if (!system_pages_read_only(g->map, g->map_bytes)) {
        perror("qkv-check: pages");
        exit(1);
    }
}

bool guarded_intact(const guarded *g) {
    const unsigned char *p = g->map;
    const unsigned char *const end = p + g->map_bytes;
    const unsigned char *const data = g->data;
    for (; p < end; p++)
        if ((p < data || p >= data + g->bytes) && *p != CANARY_BYTE) return false;
    return true;
}

int64_t first_negative_zero(const guarded *g) {
    const uint32_t *const bits = g->data;
    for (size_t n = 0; n < g->bytes / sizeof *bits; n++)
        if (bits[n] == UINT32_C(1) << 31) return (int64_t)n;
    return -1;
}
