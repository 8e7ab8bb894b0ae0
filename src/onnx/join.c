/* See join.h. A task is the keys or the values of one head. */
#include "onnx/join.h"

#include <stdatomic.h>
#include <string.h>

#include "core/ints.h"

typedef struct joining {
    const qkvi_onnx *x;
    char *k, *v;
    int64_t n_heads; /* of all batches */
    atomic_llong next;
} joining;

/* n rows that lie stride bytes apart. */
static char *copy_rows(const char *from, int64_t n, int64_t stride, int64_t row_bytes, char *to) {
    if (n == 0 || row_bytes == 0) return to;
    if (stride == row_bytes) {
        memcpy(to, from, (size_t)(n * row_bytes));
        return to + n * row_bytes;
    }
    for (int64_t row = 0; row < n; row++, to += row_bytes)
        memcpy(to, from + row * stride, (size_t)row_bytes);
    return to;
}

static const char *head_of(const qkv_onnx_tensor *t, const int64_t stride[3], int64_t b, int64_t g,
                           int64_t bytes) {
    if (!t->data) return NULL;
    return (const char *)t->data + (b * stride[0] + g * stride[1]) * bytes;
}

static void join_head(const joining *job, int64_t head, bool values) {
    const qkvi_onnx *x = job->x;
    const int64_t b = head / x->n_kv_heads, g = head % x->n_kv_heads;
    const int64_t bytes = values ? x->type_v_bytes : x->type_bytes;
    const int64_t row = (values ? x->head_dim_v : x->head_dim) * bytes;
    const int64_t *past = values ? x->past_v_stride : x->past_k_stride;
    const int64_t *new = values ? x->v_stride : x->k_stride;
    const qkv_onnx_attention_node *n = &x->node;
    char *to = (values ? job->v : job->k) + head * x->len_k * row;
    to = copy_rows(head_of(values ? &n->past_value : &n->past_key, past, b, g, bytes), x->len_past,
                   past[2] * bytes, row, to);
    copy_rows(head_of(values ? &n->V : &n->K, new, b, g, bytes), x->len_new, new[2] * bytes, row,
              to);
}

static void join_heads(void *argument, int thread) {
    joining *job = argument;
    (void)thread;
    for (int64_t n; n = atomic_fetch_add(&job->next, 1), n < 2 * job->n_heads;) {
        const bool values = n >= job->n_heads;
        if (values ? job->x->head_dim_v : job->x->head_dim)
            join_head(job, values ? n - job->n_heads : n, values);
    }
}

void qkvi_onnx_join(qkvi_pool *pool, const qkvi_onnx *x, void *k, void *v) {
    joining job = { .x = x, .k = k, .v = v, .n_heads = x->n_batch * x->n_kv_heads };
    const int64_t n_tasks = qkvi_min_i64(2 * job.n_heads, qkvi_pool_threads(pool));
    if (x->len_k > 0) qkvi_pool_run(pool, (int)n_tasks, join_heads, &job);
}
