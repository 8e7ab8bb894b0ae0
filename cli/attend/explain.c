/* `qkv attend --explain`: which path the library takes, and why, as a table or as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "attend/attend.h"
#include "common/job.h"

__attribute__((format(printf, 3, 4))) static void line(const char *name, const char *reason,
                                                       const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("  %-11s ", name);
    vprintf(format, arguments);
    printf("\n              %s\n", reason);
    va_end(arguments);
}

static const char *plural(int64_t n) { return n == 1 ? "" : "s"; }

static void print_plan(const char *pass, const qkv_attention_plan *p) {
    printf("%s\n", pass);
    line("kernel", p->kernel_reason, "%s", p->kernel);
    line("isa", p->isa_reason, "%s", p->isa);
    line("arithmetic", p->arithmetic_reason, "%s", p->arithmetic);
    if (p->n_threads == 0) return;
    line("blocks", p->block_reason, "%d queries x %d keys, %d x %d in registers", p->query_block,
         p->key_block, p->tile_rows, p->tile_keys);
    line("threads", p->thread_reason, "%d", p->n_threads);
    line("work", p->sharing_reason,
         "%" PRId64 " piece%s; heads of one thread %" PRId64 ", of all %" PRId64, p->n_tasks,
         plural(p->n_tasks), p->own_heads, p->shared_heads);
    line("packing", p->packing_reason, "%.1f KiB", (double)p->packed_bytes / 1024);
    if (p->pieces_full >= 0)
        line("skipping", p->skip_reason,
             "pieces of %d x %d: %" PRId64 " full, %" PRId64 " partly visible, %" PRId64 " skipped",
             p->skip_rows, p->skip_keys, p->pieces_full, p->pieces_partial, p->pieces_hidden);
    else
        line("skipping", p->skip_reason, "pieces of %d x %d", p->skip_rows, p->skip_keys);
    line("workspace", p->workspace_reason, "%.1f KiB", (double)p->workspace_bytes / 1024);
}

static json_t *plan_json(const qkv_attention_plan *p) {
    json_t *const reasons = json_set(
        NULL,
        "kernel:s isa:s arithmetic:s blocks:s threads:s work:s packing:s skipping:s workspace:s",
        p->kernel_reason, p->isa_reason, p->arithmetic_reason, p->block_reason, p->thread_reason,
        p->sharing_reason, p->packing_reason, p->skip_reason, p->workspace_reason);
    json_t *const object = json_set(
        NULL,
        "kernel:s isa:s arithmetic:s threads:d tasks:c query_block:d key_block:d tile_rows:d "
        "tile_keys:d own_heads:c shared_heads:c small_heads:c packed_heads:d",
        p->kernel, p->isa, p->arithmetic, p->n_threads, p->n_tasks, p->query_block, p->key_block,
        p->tile_rows, p->tile_keys, p->own_heads, p->shared_heads, p->small_heads, p->packed_heads);
    return json_set(object,
                    "packed_bytes:i skip_rows:d skip_keys:d pieces_full:c pieces_partial:c "
                    "pieces_hidden:c workspace_bytes:i reasons:o",
                    (int64_t)p->packed_bytes, p->skip_rows, p->skip_keys, p->pieces_full,
                    p->pieces_partial, p->pieces_hidden, (int64_t)p->workspace_bytes, reasons);
}

int attend_explain(qkv_ctx *ctx, const struct attend_problem *problem, json_t *json) {
    static const char *const names[] = { "forward", "backward" };
    for (int pass = 0; pass < (problem->grad_out ? 2 : 1); pass++) {
        qkv_attention_plan plan = qkv_attention_plan_init();
        plan.pass = (qkv_pass)pass;
        if (qkv_attention_explain(ctx, &problem->desc, &plan) != QKV_OK)
            return cli_fail("%s", qkv_ctx_message(ctx));
        if (json)
            json_object_set_new(json, names[pass], plan_json(&plan));
        else
            print_plan(names[pass], &plan);
    }
    return EXIT_OK;
}
