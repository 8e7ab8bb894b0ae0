/* `qkv attend`: attention on arrays in files, forward and, with --grad-out, backward. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "attend/attend.h"
#include "common/job.h"
#include "common/session.h"

/* -v: one line on standard error. */
static void report(const struct attend_options *options, const qkv_ctx *ctx,
                   const struct attend_problem *problem, const struct attend_results *results) {
    const qkv_attention_desc *d = &problem->desc;
    if (options->common.verbose)
        fprintf(stderr,
                "qkv: %" PRId64 " x %" PRId64 " heads, %" PRId64 " queries, %" PRId64
                " keys: %.3f ms, %s, %d threads\n",
                d->n_batch, d->n_heads, d->len_q, d->len_k, results->seconds * 1e3,
                qkv_ctx_isa(ctx), qkv_ctx_threads(ctx));
}

static json_t *problem_json(const qkv_ctx *ctx, const qkv_attention_desc *d) {
    return json_set(NULL,
                    "n_batch:i n_heads:i n_kv_heads:i len_q:i len_k:i head_dim:i head_dim_v:i "
                    "isa:s threads:d",
                    d->n_batch, d->n_heads, d->n_kv_heads, d->len_q, d->len_k, d->head_dim,
                    d->head_dim_v, qkv_ctx_isa(ctx), qkv_ctx_threads(ctx));
}

/* The results, in files and, where -o names none, printed. */
static int deliver(const struct attend_options *options, qkv_ctx *ctx,
                   const struct attend_problem *problem, const struct attend_results *results,
                   json_t *json) {
    const int code = attend_outputs_write(options, problem, results);
    if (code || !attend_prints(options)) return code;
    return attend_print(ctx, options, problem, results, json);
}

/* The results: computed, and delivered. */
static int results_of(const struct attend_options *options, qkv_ctx *ctx,
                      const struct attend_problem *problem, struct attend_results *results,
                      json_t *json) {
    int code = attend_print_check(options, problem);
    if (!code) code = attend_results_alloc(options, problem, results);
    if (!code) code = attend_outputs_check(options);
    if (!code && attend_compute(ctx, problem, options->common.quiet, results) != QKV_OK)
        code = cli_cancelled ? EXIT_FAILED : cli_fail("%s", qkv_ctx_message(ctx));
    if (!code && problem->made) code = attend_join(ctx, problem, results);
    if (!code && results->stats)
        code = attend_stats_json(options, problem, results->lse, results->stats);
    if (!code) code = deliver(options, ctx, problem, results, json);
    if (!code) report(options, ctx, problem, results);
    if (json) json_object_set_new(json, "seconds", json_real(results->seconds));
    return code;
}

/* What is asked for: --explain, the results, or both. The path comes first, but after steps. */
static int attend_problem(const struct attend_options *options, qkv_ctx *ctx,
                          const struct attend_problem *problem) {
    struct attend_results results = { 0 };
    json_t *json = options->common.json ? problem_json(ctx, &problem->desc) : NULL;
    const bool steps = options->explain && problem->made;
    int code = options->explain && !steps ? attend_explain(ctx, problem, json) : EXIT_OK;
    if (!code && (options->o || attend_prints(options))) {
        code = results_of(options, ctx, problem, &results, json);
        attend_results_free(&results);
    }
    if (!code && steps) code = attend_explain(ctx, problem, json);
    if (!code && json && !json_print(stdout, json_incref(json))) code = EXIT_FAILED;
    json_decref(json);
    return code;
}

static int attend(const struct cli_command *command, const void *data, int n_words, char **words) {
    (void)n_words, (void)words;
    const struct attend_options *options = data;
    cli_catch_interrupts();
    struct attend_rules rules;
    struct attend_problem problem = { 0 };
    qkv_ctx *ctx = NULL;
    int code = options->mpi ? attend_ranks_check(command, options) : EXIT_OK;
    if (code) return code;
    code = attend_rules_parse(command, options, &rules);
    if (!code && options->mpi) {
        code = attend_ranks(command, options, &rules);
        attend_rules_free(&rules);
        return code;
    }
    if (!code) code = session_context(command, &options->common, &ctx);
    if (!code) code = attend_problem_read(ctx, options, &rules, &problem);
    if (!code) code = attend_problem(options, ctx, &problem);
    attend_problem_free(&problem);
    attend_rules_free(&rules);
    qkv_ctx_free(ctx);
    return code;
}

#define IN_FILE  ".npy .npz .safetensors .csv .tsv"
#define OUT_FILE ".npy .npz"
#define OPTIONS  struct attend_options

#define IN(name, field)  OPTION_FILE(name, "F", field, IN_FILE)
#define OUT(name, field) OPTION_FILE(name, "F", field, OUT_FILE)

static const struct cli_option attend_table[] = {
    IN("--q", q),
    IN("--k", k),
    IN("--v", v),
    IN("--x", x),
    IN("--x-kv", x_kv),
    IN("--wq", wq),
    IN("--wk", wk),
    IN("--wv", wv),
    IN("--wo", wo),
    IN("--bq", bq),
    IN("--bk", bk),
    IN("--bv", bv),
    IN("--bo", bo),
    OPTION_INT("--heads", "N", heads, 1, 65536),
    OPTION_FLAG("--transposed-weights", transposed),
    OUT("-o", o),
    OUT("--lse", lse),
    OPTION_FILE("--stats", "F", stats, ".json"),
    IN("--mask", mask),
    IN("--mask-bits", mask_bits),
    IN("--block-mask", block_mask),
    OPTION_INT("--block-len", "N", block_len, 32, 128),
    IN("--cu-seqlens", cu_seqlens),
    IN("--cu-seqlens-k", cu_seqlens_k),
    { .kind = ARG_RULES, .argument = "causal|prefix|window|chunk" },
    IN("--segments", segments),
    IN("--segments-q", segments_q),
    { .kind = ARG_RULES, .argument = "kv_len|q_len|q_offset" },
    OPTION_REAL("--scale", "X", scale),
    OPTION_REAL("--softcap", "X", softcap),
    IN("--alibi", alibi),
    IN("--sink", sink),
    OPTION_TEXT("--dropout", "P,SEED", dropout),
    IN("--grad-out", grad_out),
    IN("--grad-lse", grad_lse),
    OUT("--dq", dq),
    OUT("--dk", dk),
    OUT("--dv", dv),
    OUT("--dsink", dsink),
    OUT("--dmask", dmask),
    OPTION_CHOICE("--dtype", "f32|bf16|f16", dtype),
    OPTION_CHOICE("--class", "auto|f32|dp|amx", arithmetic),
    OPTION_FLAG("--explain", explain),
    OPTION_FLAG("--mpi", mpi),
};

const struct cli_command cmd_attend = {
    .name = "attend",
    .summary = "exact attention on arrays in files, and its gradients",
    .words = "",
    .takes = TAKES_COMPUTE | TAKES_JSON | TAKES_QUIET | TAKES_VERBOSE,
    COMMAND_OPTIONS(attend_table),
    .run = attend,
};
