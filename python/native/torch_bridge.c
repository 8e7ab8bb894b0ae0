/*
 * libqkvtorch: what qkv.torch cannot do fast enough in Python.
 *
 * 1. Tasks of the library on torch's own threads: qkvt_parallel_for is a qkv_executor. Two pools
 *    of threads on the same processors would spin in each other's way.
 * 2. A small call from Python: tensors in, a tensor out, in one call of ctypes.
 *
 * It is built without torch's headers and does not link torch. Python looks up functions of
 * torch's stable C interface (torch/csrc/inductor/aoti_torch/c/shim.h, torch/csrc/stable/c/shim.h)
 * in the torch that is loaded, and hands them over with qkvt_bind. Their declarations below are
 * those of that interface: a tensor is an opaque handle, and a result other than 0 is a failure.
 *
 * Invariant: qkvt_small either returns a result, or gives every reference back and returns None.
 * It reports no error: its caller then takes the ordinary way, which has the messages.
 */
#include <pthread.h>
#include <qkv/qkv.h>
#include <stdbool.h>
#include <stdint.h>

typedef void *tensor;
typedef void range_function(int64_t begin, int64_t end, void *argument);

/* In the order of FUNCTIONS in bridge.py. */
struct functions {
    int32_t (*parallel_for)(int64_t begin, int64_t end, int64_t grain, range_function *function,
                            void *argument);
    int32_t (*from_python)(void *object, tensor *made);
    int32_t (*to_python)(tensor given, void *type, void **object);
    int32_t (*delete_tensor)(tensor given);
    int32_t (*get_dim)(tensor given, int64_t *n_dims);
    int32_t (*get_sizes)(tensor given, int64_t **sizes);
    int32_t (*get_strides)(tensor given, int64_t **strides);
    int32_t (*get_dtype)(tensor given, int32_t *dtype);
    int32_t (*get_layout)(tensor given, int32_t *layout);
    int32_t (*get_device_type)(tensor given, int32_t *device_type);
    int32_t (*get_data)(tensor given, void **data);
    int32_t (*empty_strided)(int64_t n_dims, const int64_t *sizes, const int64_t *strides,
                             int32_t dtype, int32_t device_type, int32_t device_index,
                             tensor *made);
    void (*keep)(void *object);
    void *none;
};

/* Products of a small call: some 50 µs, in which the interpreter's other threads wait. */
static const double LARGEST_WORK = 1 << 20;
/* STRIDED and CPU are torch's numbers. */
enum { STRIDED = 0, CPU = 0, N_DIMS = 4 };

static struct functions torch;
/*
 * The context of small calls of each thread, made by its first one. It is the thread's of the
 * system: Python may see one such thread as many, one after another, whose objects do not last. It
 * has one thread, and so nothing that a fork could lose.
 */
static pthread_key_t small_ctx;
static bool has_small;
/* Torch's numbers of float, bfloat16 and float16, in the order of qkv_dtype. */
static int32_t torch_dtypes[3];

/* What bridge.py finds in this library. */
#define FOR_PYTHON __attribute__((visibility("default")))
FOR_PYTHON void qkvt_bind(const struct functions *functions, const int32_t *dtypes);
FOR_PYTHON void qkvt_parallel_for(void *user, int n_tasks, void (*task)(void *argument, int index),
                                  void *argument);
FOR_PYTHON void *qkvt_small(void *q, void *k, void *v, int causal);

static void free_small(void *ctx) { qkv_ctx_free(ctx); }

void qkvt_bind(const struct functions *functions, const int32_t *dtypes) {
    torch = *functions;
    for (int i = 0; i < 3; i++) torch_dtypes[i] = dtypes[i];
    has_small = pthread_key_create(&small_ctx, free_small) == 0;
}

/* ---- Threads --------------------------------------------------------------------------------- */

struct job {
    void (*task)(void *argument, int index);
    void *argument;
};

static void run_range(int64_t begin, int64_t end, void *argument) {
    const struct job *job = argument;
    for (int64_t i = begin; i < end; i++) job->task(job->argument, (int)i);
}

void qkvt_parallel_for(void *user, int n_tasks, void (*task)(void *argument, int index),
                       void *argument) {
    (void)user;
    struct job job = { task, argument };
    torch.parallel_for(0, n_tasks, 1, run_range, &job);
}

/* ---- A small call ---------------------------------------------------------------------------- */

struct view {
    tensor handle;
    int64_t *sizes, *strides;
    void *data;
    int32_t dtype;
};

static bool open_view(void *object, struct view *view) {
    int64_t n_dims = 0;
    int32_t layout = -1, device_type = -1;
    if (torch.from_python(object, &view->handle) != 0) return false;
    return torch.get_layout(view->handle, &layout) == 0 && layout == STRIDED &&
           torch.get_device_type(view->handle, &device_type) == 0 && device_type == CPU &&
           torch.get_dim(view->handle, &n_dims) == 0 && n_dims == N_DIMS &&
           torch.get_sizes(view->handle, &view->sizes) == 0 &&
           torch.get_strides(view->handle, &view->strides) == 0 &&
           torch.get_dtype(view->handle, &view->dtype) == 0 &&
           torch.get_data(view->handle, &view->data) == 0 && view->data &&
           (view->strides[3] == 1 || view->sizes[3] == 1);
}

static void close_view(struct view *view) {
    if (view->handle) torch.delete_tensor(view->handle);
}

/* Shapes that the descriptor can say, of a call that is short. */
static bool is_small(const struct view *q, const struct view *k, const struct view *v) {
    const int64_t *a = q->sizes, *b = k->sizes, *c = v->sizes;
    if (b[0] != a[0] || c[0] != a[0] || c[1] != b[1] || c[2] != b[2] || b[3] != a[3]) return false;
    if (q->dtype != k->dtype || q->dtype != v->dtype || b[1] == 0 || a[1] % b[1] != 0) return false;
    const double work = (double)a[0] * (double)a[1] * (double)a[2] * (double)b[2];
    return work > 0 && work * (double)(a[3] + c[3]) <= LARGEST_WORK;
}

static bool dtype_of(const struct view *view, qkv_dtype *dtype) {
    for (int i = 0; i < 3; i++) {
        *dtype = (qkv_dtype)i;
        if (view->dtype == torch_dtypes[i]) return true;
    }
    return false;
}

static void set_strides(int64_t *strides, const struct view *view) {
    for (int i = 0; i < 3; i++) strides[i] = view->strides[i];
}

/* NULL: without memory. */
static qkv_ctx *context_of_thread(void) {
    qkv_ctx *ctx = has_small ? pthread_getspecific(small_ctx) : NULL;
    if (ctx || !has_small) return ctx;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.n_threads = 1;
    if (qkv_ctx_create(&options, &ctx, NULL) != QKV_OK) return NULL;
    if (pthread_setspecific(small_ctx, ctx) == 0) return ctx;
    qkv_ctx_free(ctx);
    return NULL;
}

/* o as torch makes it: its memory has the order [batch][len][head][channel]. */
static void *attend(qkv_ctx *ctx, const struct view *q, const struct view *k, const struct view *v,
                    const qkv_attention_desc *given) {
    qkv_attention_desc desc = *given;
    const int64_t sizes[N_DIMS] = { desc.n_batch, desc.n_heads, desc.len_q, desc.head_dim_v };
    const int64_t strides[N_DIMS] = { sizes[1] * sizes[2] * sizes[3], sizes[3], sizes[1] * sizes[3],
                                      1 };
    set_strides(desc.q_stride, q);
    set_strides(desc.k_stride, k);
    set_strides(desc.v_stride, v);
    for (int i = 0; i < 3; i++) desc.o_stride[i] = strides[i];
    tensor o = NULL;
    void *data = NULL, *made = NULL;
    if (torch.empty_strided(N_DIMS, sizes, strides, q->dtype, CPU, 0, &o) != 0) return NULL;
    if (torch.get_data(o, &data) == 0 &&
        qkv_attention_forward(ctx, &desc, q->data, k->data, v->data, data, NULL, NULL) == QKV_OK &&
        torch.to_python(o, NULL, &made) != 0)
        made = NULL;
    torch.delete_tensor(o);
    return made;
}

void *qkvt_small(void *q, void *k, void *v, int causal) {
    struct view views[3] = { { .handle = NULL }, { .handle = NULL }, { .handle = NULL } };
    qkv_attention_desc desc;
    void *made = NULL;
    qkv_dtype dtype = QKV_F32;
    qkv_ctx *const ctx = context_of_thread();
    if (ctx && open_view(q, &views[0]) && open_view(k, &views[1]) && open_view(v, &views[2]) &&
        is_small(&views[0], &views[1], &views[2]) && dtype_of(&views[0], &dtype)) {
        qkv_attention_desc_contiguous(&desc, views[0].sizes[0], views[0].sizes[1],
                                      views[1].sizes[1], views[0].sizes[2], views[1].sizes[2],
                                      views[0].sizes[3], views[2].sizes[3]);
        desc.dtype = dtype;
        if (causal) desc.flags |= QKV_SET_CAUSAL;
        made = attend(ctx, &views[0], &views[1], &views[2], &desc);
    }
    for (int i = 0; i < 3; i++) close_view(&views[i]);
    if (made) return made;
    torch.keep(torch.none);
    return torch.none;
}
