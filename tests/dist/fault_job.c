/* See jobs.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/decode.h"
#include "dist/jobs.h"
#include "dist/ordered.h"
#include "dist/ring.h"

enum { LEN = 40, HEADS = 2, DIM = 8, N = HEADS * LEN * DIM };

/* Of one rank. */
typedef struct setup {
    qkv_ctx *ctx;
    qkv_attention_desc d;
    float q[N], k[N], v[N], o[N];
    qkvi_dist_arrays a;
    float lse[HEADS * LEN], d_q[N], d_k[N], d_v[N];
    qkv_attention_grads grads; /* of o, which is also d_o */
    qkv_kv_view view;          /* k and v, for decode */
    int32_t pages[1];
    qkv_attention_columns columns;
    float received[HEADS * LEN], weights[HEADS * LEN];
    bool other_scheme;   /* of mixed */
    bool other_segments; /* of segmented */
    bool of_distances;   /* of by_distance: the gradient of the bias is asked for */
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
    qkv_kv_view_contiguous(&s->view, &s->d, QKV_F32);
    s->view.k = s->k;
    s->view.v = s->v;
    qkv_attention_grads_contiguous(&s->grads, &s->d);
    s->grads.d_o = s->o;
    s->grads.d_q = s->d_q;
    s->grads.d_k = s->d_k;
    s->grads.d_v = s->d_v;
    qkv_attention_columns_contiguous(&s->columns, &s->d);
    s->columns.received = s->received;
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

static void fewer_queries(setup *s, bool *fails) {
    (void)fails;
    s->d.len_q = LEN - 1;
}
static void other_storage(setup *s, bool *fails) {
    (void)fails;
    s->view.dtype = QKV_BF16;
}
static void ring(setup *s, bool *fails) {
    (void)fails;
    s->view.ring_len = 16;
}
/* The keys of the last rank begin at a multiple of 40. */
static void pages(setup *s, bool *fails) {
    (void)fails;
    s->view.page_len = 16;
    s->view.n_pages = 1;
    s->view.pages = s->pages;
    s->view.row_pages = 1;
}
static void dropout(setup *s, bool *fails) {
    (void)fails;
    s->d.flags |= QKV_SET_DROPOUT;
}
static void no_view(setup *s, bool *fails) {
    (void)fails;
    s->view.struct_size = 0;
}

typedef struct fault {
    const char *name;
    spoil *spoil;
    qkv_status status;
    const char *message; /* with the rank in place of % */
} fault;

static const fault faults[] = {
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

static void no_gradient(setup *s, bool *fails) {
    (void)fails;
    s->grads.d_v = NULL;
}
static void no_grads(setup *s, bool *fails) {
    (void)fails;
    s->grads.struct_size = 0;
}

static const fault backward_faults[] = {
    { "heads", other_heads, QKV_ERR_ARGUMENT, "n_heads = 1 on rank %, but 2 on rank 0" },
    { "d_v", no_gradient, QKV_ERR_ARGUMENT, "rank %: d_v is NULL" },
    { "grads", no_grads, QKV_ERR_ARGUMENT, "rank %: grads.struct_size" },
    { "memory", out_of_memory, QKV_ERR_MEMORY, "rank %: no memory for" },
};

static const fault decode_faults[] = {
    { "heads", other_heads, QKV_ERR_ARGUMENT, "n_heads = 1 on rank %, but 2 on rank 0" },
    { "queries", fewer_queries, QKV_ERR_ARGUMENT, "len_q = 39 on rank %, but 40 on rank 0" },
    { "storage", other_storage, QKV_ERR_ARGUMENT, "view.dtype = 1 on rank %, but 0 on rank 0" },
    { "ring", ring, QKV_ERR_UNSUPPORTED, "rank %: view.ring_len" },
    { "dropout", dropout, QKV_ERR_ARGUMENT, "flags = 65536 on rank %, but 0 on rank 0" },
    { "view", no_view, QKV_ERR_ARGUMENT, "rank %: view.struct_size" },
    { "memory", out_of_memory, QKV_ERR_MEMORY, "rank %: no memory for" },
    { "pages", pages, QKV_ERR_SHAPE, "rank %: the keys begin at " },
};

static void diagonals(setup *s, bool *fails) {
    (void)fails;
    s->columns.diagonal = s->received;
}
static void other_weights(setup *s, bool *fails) {
    (void)fails;
    s->columns.row_weights = s->weights;
}
static void no_columns(setup *s, bool *fails) {
    (void)fails;
    s->columns.struct_size = 0;
}
static void no_stride(setup *s, bool *fails) {
    (void)fails;
    s->columns.stride[2] = 0;
}

static const fault columns_faults[] = {
    { "heads", other_heads, QKV_ERR_ARGUMENT, "n_heads = 1 on rank %, but 2 on rank 0" },
    { "maps", diagonals, QKV_ERR_UNSUPPORTED, "rank %: columns.diagonal: a sequence in pieces" },
    { "weights", other_weights, QKV_ERR_ARGUMENT,
      "whether columns.row_weights are given of rank %" },
    { "columns", no_columns, QKV_ERR_ARGUMENT, "rank %: columns.struct_size" },
    { "stride", no_stride, QKV_ERR_STRIDE, "rank %: columns.stride[2] = 0" },
    { "memory", out_of_memory, QKV_ERR_MEMORY, "rank %: no memory for" },
};

static void other_scheme(setup *s, bool *fails) {
    (void)fails;
    s->other_scheme = true;
}
static const fault mixed_faults[] = {
    { "scheme", other_scheme, QKV_ERR_ARGUMENT, "the scheme of rank %" },
};

static void of_distances(setup *s, bool *fails) {
    (void)fails;
    s->of_distances = true;
}
static const fault distance_faults[] = {
    { "distances", of_distances, QKV_ERR_UNSUPPORTED,
      "rank %: d_distance_bias: sequences in pieces have no gradient of a distance bias" },
};

static void other_segments(setup *s, bool *fails) {
    (void)fails;
    s->other_segments = true;
}
static const fault segment_faults[] = {
    { "segments", other_segments, QKV_ERR_ARGUMENT, "seg_k of rank %" },
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

typedef qkv_status attention(qkvi_group *group, const setup *s);
static const qkvi_rates no_rates = { 1e9, 1e9, 0 };

static qkv_status forward(qkvi_group *group, const setup *s) {
    return qkvi_ordered_forward(group, s->ctx, &s->d, &s->a);
}
static qkv_status by_ring(qkvi_group *group, const setup *s) {
    return qkvi_forward_by(group, s->ctx, QKVI_SCHEME_RING, &no_rates, NULL, &s->d, &s->a);
}
static qkv_status by_zigzag(qkvi_group *group, const setup *s) {
    return qkvi_forward_by(group, s->ctx, QKVI_SCHEME_ZIGZAG, &no_rates, NULL, &s->d, &s->a);
}
static qkv_status decode(qkvi_group *group, const setup *s) {
    return qkvi_decode_by(group, s->ctx, QKVI_SCHEME_ORDERED, NULL, &s->d, &s->view, &s->a);
}
static qkv_status by_tree(qkvi_group *group, const setup *s) {
    return qkvi_decode_by(group, s->ctx, QKVI_SCHEME_TREE, NULL, &s->d, &s->view, &s->a);
}
/* The guilty rank by another scheme than the others. */
static qkv_status mixed(qkvi_group *group, const setup *s) {
    return s->other_scheme ? by_ring(group, s) : forward(group, s);
}
static qkv_status mixed_decode(qkvi_group *group, const setup *s) {
    return s->other_scheme ? by_tree(group, s) : decode(group, s);
}

/* Keys of all ranks are of one segment, but that of the first key on the guilty rank. */
static qkv_status segmented(qkvi_group *group, const setup *s) {
    static const int32_t same[16 * LEN], other[16 * LEN] = { 1 };
    qkv_attention_desc d = s->d;
    if (group->transport->size > 16) abort();
    d.flags |= QKV_SET_SEGMENTS;
    d.seg_q = same;
    d.seg_k = s->other_segments ? other : same;
    return qkvi_ordered_forward(group, s->ctx, &d, &s->a);
}

static qkv_status backward(qkvi_group *group, const setup *s) {
    qkvi_backward_call call = { .q = s->q, .k = s->k, .v = s->v, .o = s->o, .lse = s->lse };
    call.grads = &s->grads;
    return qkvi_ordered_backward(group, s->ctx, &s->d, &call);
}

/* With a bias by distance on all ranks, and its gradient on the guilty one. */
static qkv_status by_distance(qkvi_group *group, const setup *s) {
    static const float bias[3] = { 1, 2, 3 };
    float d_bias[3];
    qkv_attention_desc d = s->d;
    qkv_attention_grads grads = s->grads;
    qkvi_backward_call call = { .q = s->q, .k = s->k, .v = s->v, .o = s->o, .lse = s->lse };
    call.grads = &grads;
    d.flags |= QKV_SET_DISTANCE_BIAS;
    d.distance_bias = bias;
    d.distance_before = d.distance_after = 1;
    if (s->of_distances) grads.d_distance_bias = d_bias;
    return qkvi_ordered_backward(group, s->ctx, &d, &call);
}

static qkv_status columns(qkvi_group *group, const setup *s) {
    const qkvi_dist_arrays a = { .q = s->q, .k = s->k, .lse = (float *)(uintptr_t)s->lse };
    return qkvi_ordered_columns(group, s->ctx, &s->d, &a, &s->columns);
}

static int one_fault(qkvi_transport *t, qkvi_group *group, attention *call, const fault *f,
                     int guilty) {
    setup *const s = calloc(1, sizeof *s);
    bool fails = false;
    if (!s) abort();
    begin(s, &fails);
    qkv_ctx *const ctx = s->ctx;
    if (t->rank == guilty) f->spoil(s, &fails);
    const qkv_status status = call(group, s);
    int failed = status != f->status || !says(group->error.message, f->message, guilty);
    for (int i = 0; i < N; i++) failed |= s->o[i] != -1;
    if (failed)
        fprintf(stderr, "rank %d of %d, fault of %s on rank %d: %s: %s\n", t->rank, t->size,
                f->name, guilty, qkv_status_name(status), group->error.message);
    if (s->ctx && strcmp(qkv_ctx_message(ctx), group->error.message) != 0) failed = 1;
    qkv_ctx_free(ctx);
    free(s);
    return failed;
}

static int works(qkvi_group *group, attention *call) {
    setup *const s = calloc(1, sizeof *s);
    bool fails = false;
    if (!s) abort();
    begin(s, &fails);
    const int failed = call(group, s) != QKV_OK;
    qkv_ctx_free(s->ctx);
    free(s);
    return failed;
}

/* Each fault of the last rank, and that the group goes on. */
static int all_faults(qkvi_transport *t, qkvi_group *group, attention *call, const fault *list,
                      size_t n_faults) {
    int failed = 0;
    for (size_t n = 0; n < n_faults; n++) {
        const bool aligned = LEN * (t->size - 1) % 16 == 0; /* pages: no fault then */
        if (list[n].spoil == pages && aligned) continue;
        failed |= one_fault(t, group, call, &list[n], t->size - 1);
        failed |= works(group, call);
    }
    return failed;
}

#define ALL_FAULTS(call, list) all_faults(t, group, call, list, sizeof list / sizeof *list)

int fault_job_of_rank(qkvi_transport *t, void *user) {
    qkvi_group *const group = qkvi_group_new(t);
    (void)user;
    if (!group) abort();
    const int failed =
        ALL_FAULTS(forward, faults) | ALL_FAULTS(by_ring, faults) | ALL_FAULTS(by_zigzag, faults) |
        ALL_FAULTS(backward, backward_faults) | ALL_FAULTS(columns, columns_faults) |
        ALL_FAULTS(decode, decode_faults) | ALL_FAULTS(by_tree, decode_faults) |
        ALL_FAULTS(mixed, mixed_faults) | ALL_FAULTS(mixed_decode, mixed_faults) |
        ALL_FAULTS(segmented, segment_faults) | ALL_FAULTS(by_distance, distance_faults);
    qkvi_group_free(group);
    return failed;
}
