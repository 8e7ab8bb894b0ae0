/* See jobs.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/jobs.h"
#include "dist/ordered.h"

enum { LEN = 40, HEADS = 2, DIM = 8, N = HEADS * LEN * DIM };

/* Of one rank. */
typedef struct setup {
    qkv_ctx *ctx;
    qkv_attention_desc d;
    float q[N], k[N], v[N], o[N];
    qkvi_dist_arrays a;
    int64_t kv_len[1];
    float sinks[HEADS];
} setup;

static void *alloc(void *user, size_t bytes, size_t alignment) {
    (void)user;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
static void *alloc_nothing(void *user, size_t bytes, size_t alignment) {
    return *(const bool *)user ? NULL : alloc(NULL, bytes, alignment);
}
static void release(void *user, void *pointer, size_t bytes) {
    (void)user, (void)bytes;
    free(pointer);
}

static void begin(setup *s, bool *fails) {
    qkv_ctx_options options = qkv_ctx_options_init();
    options.n_threads = 1;
    options.allocator = (qkv_allocator){ alloc_nothing, release, fails };
    if (qkv_ctx_create(&options, &s->ctx, NULL) != QKV_OK) abort();
    qkv_attention_desc_contiguous(&s->d, 1, HEADS, HEADS, LEN, LEN, DIM, DIM);
    for (int i = 0; i < N; i++) {
        s->q[i] = s->k[i] = s->v[i] = (float)(i % 7) / 7;
        s->o[i] = -1;
    }
    s->a = (qkvi_dist_arrays){ s->q, s->k, s->v, s->o, NULL };
    s->kv_len[0] = LEN;
    s->sinks[0] = s->sinks[1] = 0;
}

/* ---- Faults ---------------------------------------------------------------------------------- */

typedef void spoil(setup *s, bool *fails);

static void null_desc(setup *s, bool *fails) {
    (void)fails;
    s->d.struct_size = 0;
}
static void null_q(setup *s, bool *fails) {
    (void)fails;
    s->a.q = NULL;
}
static void other_heads(setup *s, bool *fails) {
    (void)fails;
    s->d.n_heads = s->d.n_kv_heads = 1;
}
static void other_type(setup *s, bool *fails) {
    (void)fails;
    s->d.dtype = QKV_BF16;
}
static void negative_length(setup *s, bool *fails) {
    (void)fails;
    s->d.len_k = -1;
}
static void bad_stride(setup *s, bool *fails) {
    (void)fails;
    s->d.o_stride[2] = 1;
}
static void other_scale(setup *s, bool *fails) {
    (void)fails;
    s->d.flags |= QKV_SET_SCALE;
    s->d.scale = 2;
}
static void no_context(setup *s, bool *fails) {
    (void)fails;
    s->ctx = NULL;
}
static void out_of_memory(setup *s, bool *fails) {
    (void)s;
    *fails = true;
}

static const struct {
    const char *name;
    spoil *spoil;
    qkv_status status;
    const char *message; /* with the rank in place of % */
} faults[] = {
    { "desc", null_desc, QKV_ERR_ARGUMENT, "rank %: desc" },
    { "q", null_q, QKV_ERR_ARGUMENT, "rank %: q is NULL" },
    { "heads", other_heads, QKV_ERR_ARGUMENT, "n_heads = 1 on rank %, but 2 on rank 0" },
    { "type", other_type, QKV_ERR_ARGUMENT, "dtype = 1 on rank %, but 0 on rank 0" },
    { "length", negative_length, QKV_ERR_SHAPE, "rank %: len_k = -1 is negative" },
    { "stride", bad_stride, QKV_ERR_STRIDE, "rank %: o_stride[2] = 1" },
    { "scale", other_scale, QKV_ERR_ARGUMENT, "flags = 1 on rank %, but 0 on rank 0" },
    { "context", no_context, QKV_ERR_ARGUMENT, "rank %: ctx is NULL" },
    { "memory", out_of_memory, QKV_ERR_MEMORY, "rank %: no memory for" },
};

/* ---- One fault ------------------------------------------------------------------------------- */

static bool says(const char *message, const char *expected, int rank) {
    char text[128], number[12];
    size_t used = 0;
    snprintf(number, sizeof number, "%d", rank);
    for (; *expected && used + sizeof number < sizeof text; expected++)
        used += (size_t)snprintf(text + used, sizeof text - used, *expected == '%' ? "%s" : "%.1s",
                                 *expected == '%' ? number : expected);
    return strncmp(message, text, used) == 0;
}

static int one_fault(qkvi_transport *t, qkvi_group *group, size_t n, int guilty) {
    setup *const s = calloc(1, sizeof *s);
    bool fails = false;
    if (!s) abort();
    begin(s, &fails);
    qkv_ctx *const ctx = s->ctx;
    if (t->rank == guilty) faults[n].spoil(s, &fails);
    const qkv_status status = qkvi_ordered_forward(group, s->ctx, &s->d, &s->a);
    int failed =
        status != faults[n].status || !says(group->error.message, faults[n].message, guilty);
    for (int i = 0; i < N; i++) failed |= s->o[i] != -1;
    if (failed)
        fprintf(stderr, "rank %d of %d, fault of %s on rank %d: %s: %s\n", t->rank, t->size,
                faults[n].name, guilty, qkv_status_name(status), group->error.message);
    if (s->ctx && strcmp(qkv_ctx_message(ctx), group->error.message) != 0) failed = 1;
    qkv_ctx_destroy(ctx);
    free(s);
    return failed;
}

static int works(qkvi_group *group) {
    setup *const s = calloc(1, sizeof *s);
    bool fails = false;
    if (!s) abort();
    begin(s, &fails);
    const int failed = qkvi_ordered_forward(group, s->ctx, &s->d, &s->a) != QKV_OK;
    qkv_ctx_destroy(s->ctx);
    free(s);
    return failed;
}

int fault_job_of_rank(qkvi_transport *t, void *user) {
    qkvi_group *const group = qkvi_group_new(t);
    int failed = 0;
    (void)user;
    if (!group) abort();
    for (size_t n = 0; n < sizeof faults / sizeof *faults; n++) {
        failed |= one_fault(t, group, n, t->size - 1);
        failed |= works(group);
    }
    qkvi_group_free(group);
    return failed;
}
