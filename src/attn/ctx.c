/*
 * Contexts: what options and environment choose is checked here, once, and kept. Nothing global
 * remembers anything.
 */
#include "attn/ctx.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "core/fpstate.h"
#include "core/options.h"
#include "kernels/table.h"

/* ---- Choices --------------------------------------------------------------------------------- */

/* "scalar, avx2, avx512": what can run here. */
static const char *list_isas(char *text, size_t text_bytes) {
    size_t used = 0;
    const char *name;
    text[0] = 0;
    for (int i = 0; (name = qkv_isa_name(i)); i++) {
        const size_t length = strlen(name), comma = used ? 2 : 0;
        if (used + comma + length >= text_bytes) break;
        memcpy(text + used, ", ", comma);
        memcpy(text + used + comma, name, length + 1);
        used += comma + length;
    }
    return text;
}

static qkv_status choose_kernels(const char *option, const qkvi_kernels **kernels,
                                 qkv_error *error) {
    const char *source = "isa", *name = option;
    if (!name) {
        source = "QKV_ISA";
        name = getenv("QKV_ISA");
    }
    const int by_name = name && name[0];
    *kernels = by_name ? qkvi_kernels_named(name) : qkvi_kernels_best();
    if (*kernels) return QKV_OK;
    char printable[64], list[128];
    return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                          "%s = \"%s\" is not an instruction set usable here; those are: %s",
                          source, qkvi_escape(printable, sizeof printable, name, strlen(name)),
                          list_isas(list, sizeof list));
}

/* A positive decimal number and nothing else; 0 if text is not one. */
static int parse_count(const char *text) {
    char *end;
    const long value = strtol(text, &end, 10);
    const int ok = text[0] >= '0' && text[0] <= '9' && *end == 0 && value <= QKVI_POOL_MAX_THREADS;
    return ok ? (int)value : 0;
}

static qkv_status choose_threads(const qkv_ctx_options *options, int *n_threads, qkv_error *error) {
    const char *variable = getenv("QKV_NUM_THREADS");
    const int n_hosted = options->executor.n_threads;
    if (options->executor.parallel_for) { /* n_threads is ignored */
        if (n_hosted < 1 || n_hosted > QKVI_POOL_MAX_THREADS)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "executor.n_threads = %d is not in 1 ... %d", n_hosted,
                                  QKVI_POOL_MAX_THREADS);
        *n_threads = n_hosted;
    } else if (options->n_threads < 0 || options->n_threads > QKVI_POOL_MAX_THREADS) {
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "n_threads = %d is not in 0 ... %d",
                              options->n_threads, QKVI_POOL_MAX_THREADS);
    } else if (options->n_threads > 0) {
        *n_threads = options->n_threads;
    } else if (variable && variable[0]) {
        char printable[64];
        *n_threads = parse_count(variable);
        if (*n_threads == 0)
            return qkvi_error_set(
                error, QKV_ERR_ARGUMENT, "QKV_NUM_THREADS = \"%s\" is not a number in 1 ... %d",
                qkvi_escape(printable, sizeof printable, variable, strlen(variable)),
                QKVI_POOL_MAX_THREADS);
    } else {
        const int n_cpus = qkvi_cpu_count();
        *n_threads = n_cpus < QKVI_POOL_MAX_THREADS ? n_cpus : QKVI_POOL_MAX_THREADS;
    }
    return QKV_OK;
}

static qkv_status check_allocator(const qkv_allocator *allocator, qkv_error *error) {
    if (!allocator->alloc == !allocator->release) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "allocator.%s is NULL and allocator.%s is not",
                          allocator->alloc ? "release" : "alloc",
                          allocator->alloc ? "alloc" : "release");
}

/* ---- Life ------------------------------------------------------------------------------------ */

qkv_status qkv_ctx_create(const qkv_ctx_options *given, qkv_ctx **out, qkv_error *error) {
    if (!out) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "ctx is NULL");
    *out = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    const qkvi_kernels *kernels = NULL;
    int n_threads = 0;
    if (given)
        QKV_TRY(qkvi_options_read(&options, sizeof options, given, "qkv_ctx_options", error));
    QKV_TRY(check_allocator(&options.allocator, error));
    QKV_TRY(choose_kernels(options.isa, &kernels, error));
    QKV_TRY(choose_threads(&options, &n_threads, error));

    const qkv_allocator allocator = qkvi_allocator_resolve(options.allocator);
    qkv_ctx *ctx = qkvi_alloc(&allocator, sizeof *ctx);
    if (!ctx) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a context");
    memset(ctx, 0, sizeof *ctx);
    ctx->allocator = allocator;
    ctx->kernels = kernels;
    ctx->l1_ways = qkvi_cpu_l1_ways();
    qkvi_classes_here(kernels, ctx->class_of);
    atomic_init(&ctx->busy, false);
    atomic_init(&ctx->inputs_taken, false);
    ctx->pool = options.share_pool ? qkvi_pool_retain(options.share_pool->pool)
                                   : qkvi_pool_create(&allocator, n_threads, &options.executor);
    if (!ctx->pool) {
        qkv_ctx_free(ctx);
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a pool of %d threads",
                              n_threads);
    }
    *out = ctx;
    return QKV_OK;
}

void qkv_ctx_free(qkv_ctx *ctx) {
    if (!ctx) return;
    const qkv_allocator allocator = ctx->allocator;
    qkvi_pool_release(ctx->pool);
    qkvi_arena_release(&ctx->arena, &allocator);
    qkvi_arena_release(&ctx->inputs, &allocator);
    qkvi_release(&allocator, ctx, sizeof *ctx);
}

const char *qkv_ctx_message(const qkv_ctx *ctx) { return ctx ? ctx->error.message : ""; }

const char *qkv_ctx_isa(const qkv_ctx *ctx) { return ctx ? ctx->kernels->name : ""; }

int qkv_ctx_threads(const qkv_ctx *ctx) { return ctx ? qkvi_pool_threads(ctx->pool) : 0; }

const char *qkv_isa_name(int index) {
    const qkvi_kernels *kernels = index < 0 ? NULL : qkvi_kernels_at(index);
    return kernels ? kernels->name : NULL;
}

/* ---- A call ---------------------------------------------------------------------------------- */

qkv_status qkvi_ctx_begin(qkv_ctx *ctx) {
    if (!ctx) return QKV_ERR_ARGUMENT;
    if (atomic_exchange_explicit(&ctx->busy, true, memory_order_acquire)) return QKV_ERR_BUSY;
    ctx->error.status = QKV_OK;
    ctx->error.message[0] = 0;
    ctx->saved_fpstate = qkvi_fpstate_enter();
    return QKV_OK;
}

qkv_status qkvi_ctx_end(qkv_ctx *ctx, qkv_status status) {
    if (status != QKV_OK && !ctx->error.message[0])
        qkvi_ctx_fail(ctx, status, "%s", qkv_status_name(status));
    ctx->error.status = status;
    if (status == QKV_OK) ctx->error.message[0] = 0;
    qkvi_fpstate_leave(ctx->saved_fpstate);
    atomic_store_explicit(&ctx->busy, false, memory_order_release);
    return status;
}

qkv_status qkvi_ctx_fail(qkv_ctx *ctx, qkv_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    qkvi_error_vset(&ctx->error, status, format, arguments);
    va_end(arguments);
    return status;
}

qkv_status qkvi_ctx_measured(qkv_ctx *ctx, const qkvi_cutter *cutter, size_t *bytes) {
    if (cutter->overflow)
        return qkvi_ctx_fail(ctx, QKV_ERR_MEMORY, "the workspace does not fit the address space");
    *bytes = cutter->used_bytes;
    return QKV_OK;
}

qkv_status qkvi_ctx_workspace(qkv_ctx *ctx, const qkv_call_options *call, size_t bytes,
                              void **workspace) {
    if (call && call->workspace) {
        if ((uintptr_t)call->workspace % QKVI_ALIGNMENT != 0)
            return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "workspace = %p is not aligned to %d bytes",
                                 call->workspace, QKVI_ALIGNMENT);
        if (call->workspace_bytes < bytes)
            return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT,
                                 "workspace_bytes = %zu is less than the %zu that this call needs",
                                 call->workspace_bytes, bytes);
        *workspace = call->workspace;
        return QKV_OK;
    }
    *workspace = qkvi_arena_reserve(&ctx->arena, &ctx->allocator, bytes);
    if (!*workspace)
        return qkvi_ctx_fail(ctx, QKV_ERR_MEMORY, "no memory for %zu bytes of workspace", bytes);
    return QKV_OK;
}
