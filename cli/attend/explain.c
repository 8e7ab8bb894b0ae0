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
    json_t *const reasons =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "kernel", p->kernel_reason, "isa",
                  p->isa_reason, "arithmetic", p->arithmetic_reason, "blocks", p->block_reason,
                  "threads", p->thread_reason, "work", p->sharing_reason, "packing",
                  p->packing_reason, "skipping", p->skip_reason, "workspace", p->workspace_reason);
    return json_pack(
        "{s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}",
        JSON_FIELD(p, kernel), JSON_FIELD(p, isa), JSON_FIELD(p, arithmetic), "threads",
        json_count(p->n_threads), "tasks", json_count(p->n_tasks), JSON_COUNT(p, query_block),
        JSON_COUNT(p, key_block), JSON_COUNT(p, tile_rows), JSON_COUNT(p, tile_keys),
        JSON_COUNT(p, own_heads), JSON_COUNT(p, shared_heads), JSON_COUNT(p, small_heads),
        JSON_COUNT(p, packed_heads), JSON_COUNT(p, packed_bytes), JSON_COUNT(p, skip_rows),
        JSON_COUNT(p, skip_keys), JSON_COUNT(p, pieces_full), JSON_COUNT(p, pieces_partial),
        JSON_COUNT(p, pieces_hidden), JSON_COUNT(p, workspace_bytes), "reasons", reasons);
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
