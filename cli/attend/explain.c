/* `qkv attend --explain`: which path the library takes, and why, as a table or as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "attend/attend.h"

static void line(const char *name, const char *reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void line(const char *name, const char *reason, const char *format, ...) {
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

static void add(json_t *object, const char *name, json_t *value) {
    json_object_set_new(object, name, value);
}

static json_t *plan_json(const qkv_attention_plan *p) {
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        { "threads", p->n_threads },
        { "tasks", p->n_tasks },
        { "query_block", p->query_block },
        { "key_block", p->key_block },
        { "tile_rows", p->tile_rows },
        { "tile_keys", p->tile_keys },
        { "own_heads", p->own_heads },
        { "shared_heads", p->shared_heads },
        { "small_heads", p->small_heads },
        { "packed_heads", p->packed_heads },
        { "packed_bytes", (int64_t)p->packed_bytes },
        { "skip_rows", p->skip_rows },
        { "skip_keys", p->skip_keys },
        { "pieces_full", p->pieces_full },
        { "pieces_partial", p->pieces_partial },
        { "pieces_hidden", p->pieces_hidden },
        { "workspace_bytes", (int64_t)p->workspace_bytes },
    };
    json_t *object =
        json_pack("{s:s,s:s,s:s}", "kernel", p->kernel, "isa", p->isa, "arithmetic", p->arithmetic);
    for (int i = 0; i < CLI_COUNT(numbers); i++)
        add(object, numbers[i].name,
            numbers[i].value < 0 ? json_null() : json_integer(numbers[i].value));
    add(object, "reasons",
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "kernel", p->kernel_reason, "isa",
                  p->isa_reason, "arithmetic", p->arithmetic_reason, "blocks", p->block_reason,
                  "threads", p->thread_reason, "work", p->sharing_reason, "packing",
                  p->packing_reason, "skipping", p->skip_reason, "workspace", p->workspace_reason));
    return object;
}

int attend_explain(qkv_ctx *ctx, const struct attend_problem *problem, json_t *json) {
    static const char *const names[] = { "forward", "backward" };
    for (int pass = 0; pass < (problem->grad_out ? 2 : 1); pass++) {
        qkv_attention_plan plan = qkv_attention_plan_init();
        plan.pass = (qkv_pass)pass;
        if (qkv_attention_explain(ctx, &problem->desc, &plan) != QKV_OK)
            return cli_fail("%s", qkv_ctx_message(ctx));
        if (json)
            add(json, names[pass], plan_json(&plan));
        else
            print_plan(names[pass], &plan);
    }
    return EXIT_OK;
}
