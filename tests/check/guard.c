/*
 * Arrays between pages without access. See guard.h.
 */
#include "check/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

guarded guarded_new(size_t bytes, bool at_end) {
    guarded g = { .bytes = bytes };
    const size_t inner = (bytes / PAGE + 1) * PAGE;
    g.map_bytes = inner + 2 * PAGE;
    g.map = mmap(NULL, g.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *const pages = (char *)g.map + PAGE;
    if (g.map == MAP_FAILED || mprotect(pages, inner, PROT_READ | PROT_WRITE) != 0) {
        perror("qkv-check: mmap");
        exit(1);
    }
    memset(pages, CANARY_BYTE, inner);
    g.data = at_end ? pages + inner - bytes : pages;
    return g;
}

void guarded_free(guarded *g) {
    if (g->map) munmap(g->map, g->map_bytes);
    *g = (guarded){ .data = NULL };
}

void guarded_read_only(const guarded *g) {
    if (mprotect((char *)g->map + PAGE, g->map_bytes - 2 * PAGE, PROT_READ) != 0) {
        perror("qkv-check: mprotect");
        exit(1);
    }
}

bool guarded_intact(const guarded *g) {
    const unsigned char *p = (const unsigned char *)g->map + PAGE;
    const unsigned char *const end = (const unsigned char *)g->map + g->map_bytes - PAGE;
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
