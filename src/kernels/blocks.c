/*
 * Products by blocks: the loops over tasks. See blocks.h. A is rounded once, by all threads, and
 * then tasks are columns of C, which read their rows of W from end to end.
 */
#include "kernels/blocks.h"

#include <stdatomic.h>

#include "core/alloc.h"
#include "core/cpu.h"
#include "core/ints.h"
#include "kernels/table.h"

enum {
    TASKS_PER_THREAD = 8,
    WORTH_A_TASK = 1 << 18, /* multiplications: gemm.c */
    WAIT_ROWS = 8,
    COLUMNS_AT_ONCE = 32,
    ROWS_AT_ONCE = 66, /* of A, that stay in the second-level cache beside rows of W */
    GROUPS_AT_ONCE = 8 /* without memory for A */
};

static const qkvi_block_kernels *const all_kernels[] = {
    &qkvi_blocks_scalar,
#if !defined(QKV_WITHOUT_AVX2)
    &qkvi_blocks_avx2,       &qkvi_blocks_avxvnni,
#endif
#if !defined(QKV_WITHOUT_AVX512)
    &qkvi_blocks_avx512vnni,
#endif
#if defined(__aarch64__) && !defined(QKV_WITHOUT_NEON)
    &qkvi_blocks_dotprod,
#endif
};
enum { N_KERNELS = sizeof all_kernels / sizeof all_kernels[0] };
enum { ASKED = 1u << 31 };

/* Asked once: that takes microseconds, and a product of a token not many more. */
static uint32_t cpu_features(void) {
    static _Atomic uint32_t known;
    uint32_t features = atomic_load_explicit(&known, memory_order_relaxed);
    if (features) return features;
    features = qkvi_cpu_features() | ASKED;
    atomic_store_explicit(&known, features, memory_order_relaxed);
    return features;
}

const qkvi_block_kernels *qkvi_block_kernels_of(const qkvi_kernels *kernels) {
    const uint32_t zmm = QKVI_CPU_AVX512 | QKVI_CPU_AVX512BF16, ymm = QKVI_CPU_AVX2 | zmm;
    uint32_t usable = 0;
    const qkvi_block_kernels *best = &qkvi_blocks_scalar;
    if (kernels->need & ymm) usable |= QKVI_CPU_AVX2 | QKVI_CPU_AVXVNNI;
    if (kernels->need & QKVI_CPU_NEON) usable |= QKVI_CPU_DOTPROD;
    if (kernels->need & zmm) usable |= QKVI_CPU_AVX512VNNI;
    usable &= cpu_features();
    for (int i = 0; i < N_KERNELS; i++)
        if ((all_kernels[i]->need & ~usable) == 0) best = all_kernels[i];
    return best;
}

const qkvi_block_kernels *qkvi_block_kernels_at(int index) {
    for (int i = 0; i < N_KERNELS; i++)
        if ((all_kernels[i]->need & ~cpu_features()) == 0 && index-- == 0) return all_kernels[i];
    return NULL;
}

static size_t group_bytes(const qkvi_block_format *format) {
    return format->n_elems == 32 ? sizeof(qkvi_short_group) : sizeof(qkvi_long_group);
}

size_t qkvi_blocks_room(const qkvi_block_format *format, int64_t m, int64_t k) {
    size_t n;
    if (!qkvi_mul_size((size_t)m, (size_t)(k / format->n_elems), &n) ||
        n > PTRDIFF_MAX / group_bytes(format))
        return SIZE_MAX;
    return n * group_bytes(format);
}

typedef struct product {
    const qkvi_blocks_job *job;
    const qkvi_block_kernels *kernels;
    int64_t n_blocks, a_row, b_row, columns; /* bytes of a row; columns of a task */
} product;

static void round_row(void *argument, int index) {
    const product *const p = argument;
    const qkvi_blocks_job *const j = p->job;
    p->kernels->round(j->format->n_elems, p->n_blocks, j->a + index * j->k,
                      (char *)j->rows + index * p->a_row);
}

/* Rows of floats, some groups at a time. */
static void multiply_floats(const product *p, int64_t j0, int64_t n) {
    const qkvi_blocks_job *const j = p->job;
    const int width = j->format->n_elems;
    union {
        qkvi_short_group shorts[GROUPS_AT_ONCE];
        qkvi_long_group longs[GROUPS_AT_ONCE];
    } room;
    for (int64_t i = 0; i < j->m; i++)
        for (int64_t g = 0; g == 0 || g < p->n_blocks; g += GROUPS_AT_ONCE) {
            const int64_t some = qkvi_min_i64(GROUPS_AT_ONCE, p->n_blocks - g);
            const bool is_last = g + some >= p->n_blocks;
            p->kernels->round(width, some, j->a + i * j->k + g * width, &room);
            p->kernels->multiply(j->format->kind, some, 1, &room, 0, n,
                                 j->b + j0 * p->b_row + g * j->format->n_bytes, p->b_row,
                                 j->c + i * j->n + j0, j->n, g > 0,
                                 is_last && j->bias ? j->bias + j0 : NULL);
        }
}

static void multiply_columns(void *argument, int index) {
    const product *const p = argument;
    const qkvi_blocks_job *const j = p->job;
    const int64_t j0 = index * p->columns, n = qkvi_min_i64(p->columns, j->n - j0);
    for (int64_t i = 0; j->rows && i < j->m; i += ROWS_AT_ONCE)
        p->kernels->multiply(j->format->kind, p->n_blocks, qkvi_min_i64(ROWS_AT_ONCE, j->m - i),
                             (const char *)j->rows + i * p->a_row, p->a_row, n,
                             j->b + j0 * p->b_row, p->b_row, j->c + i * j->n + j0, j->n, 0,
                             j->bias ? j->bias + j0 : NULL);
    if (!j->rows) multiply_floats(p, j0, n);
    for (int64_t i = 0; j->map && i < j->m; i++)
        j->map(n, j->c + i * j->n + j0, j->mapped + i * j->n + j0);
}

void qkvi_blocks_gemm(qkvi_pool *pool, const qkvi_blocks_job *job) {
    const int n_threads = qkvi_pool_threads(pool);
    const int64_t work = qkvi_max_i64(job->m, WAIT_ROWS) * job->n * job->k / WORTH_A_TASK;
    const int64_t wanted =
        n_threads == 1 ? 1
                       : qkvi_max_i64(1, qkvi_min_i64((int64_t)n_threads * TASKS_PER_THREAD, work));
    product p = { .job = job, .kernels = qkvi_block_kernels_of(job->kernels) };
    if (job->m < 1 || job->n < 1) return;
    p.n_blocks = job->k / job->format->n_elems;
    p.a_row = p.n_blocks * (int64_t)group_bytes(job->format);
    p.b_row = p.n_blocks * job->format->n_bytes;
    p.columns = qkvi_round_up(qkvi_ceil_div(job->n, wanted), COLUMNS_AT_ONCE);
    if (job->rows) qkvi_pool_run(pool, (int)job->m, round_row, &p);
    qkvi_pool_run(pool, (int)qkvi_ceil_div(job->n, p.columns), multiply_columns, &p);
}
