/* `qkv attend`: attention on arrays in files, forward and, with --grad-out, backward. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "attend.h"
#include "input.h"
#include "session.h"

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
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:i}", "n_batch", (json_int_t)d->n_batch,
                     "n_heads", (json_int_t)d->n_heads, "n_kv_heads", (json_int_t)d->n_kv_heads,
                     "len_q", (json_int_t)d->len_q, "len_k", (json_int_t)d->len_k, "head_dim",
                     (json_int_t)d->head_dim, "head_dim_v", (json_int_t)d->head_dim_v, "isa",
                     qkv_ctx_isa(ctx), "threads", qkv_ctx_threads(ctx));
}

/* What is asked for: --explain, -o, or both. */
static int attend_problem(const struct attend_options *options, qkv_ctx *ctx,
                          const struct attend_problem *problem) {
    struct attend_results results = { 0 };
    json_t *json = options->common.json ? problem_json(ctx, &problem->desc) : NULL;
    int code = options->explain ? attend_explain(ctx, problem, json) : EXIT_OK;
    if (!code && options->o) {
        code = attend_results_alloc(options, problem, &results);
        if (!code) code = attend_outputs_check(options);
        if (!code && attend_compute(ctx, problem, options->common.quiet, &results) != QKV_OK)
            code = cli_cancelled ? EXIT_FAILED : cli_fail("%s", qkv_ctx_message(ctx));
        if (!code && results.stats)
            code = attend_stats_json(options, problem, results.lse, results.stats);
        if (!code) code = attend_outputs_write(options, problem, &results);
        if (!code) report(options, ctx, problem, &results);
        if (json) json_object_set_new(json, "seconds", json_real(results.seconds));
        attend_results_free(&results);
    }
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
    int code = attend_rules_parse(command, options, &rules);
    if (!code) code = session_context(command, &options->common, &ctx);
    if (!code) code = attend_problem_read(options, &rules, &problem);
    if (!code) code = attend_problem(options, ctx, &problem);
    attend_problem_free(&problem);
    attend_rules_free(&rules);
    qkv_ctx_destroy(ctx);
    return code;
}

#define IN_FILE  ".npy .npz .safetensors"
#define OUT_FILE ".npy .npz"
#define FILE_OPTION(option_name, field_name, is_required, endings, text)                           \
    {                                                                                              \
        .name = option_name, .argument = "F", .help = text, .kind = ARG_TEXT,                      \
        .offset = offsetof(struct attend_options, field_name), .required = is_required,            \
        .suggest = endings                                                                         \
    }

static const struct cli_option attend_table[] = {
    FILE_OPTION("--q", q, true, IN_FILE, "queries [B,H,Lq,D], [H,Lq,D] or [Lq,D]"),
    FILE_OPTION("--k", k, true, IN_FILE, "keys; may have fewer heads, a divisor of q's (GQA)"),
    FILE_OPTION("--v", v, true, IN_FILE, "values; may have another D than q and k"),
    FILE_OPTION("-o", o, false, OUT_FILE,
                "where the output goes (.npy, .npz:NAME); only --explain works without it"),
    FILE_OPTION("--lse", lse, false, OUT_FILE,
                "where log-sum-exp of each row's scores goes (.npy, .npz:NAME)"),
    FILE_OPTION("--stats", stats, false, ".json",
                "where statistics of the weights go, as JSON: entropy, greatest weights, distances "
                "and more of each query; what each key receives; weight by offset, and a map of "
                "tiles; of any length"),
    FILE_OPTION("--mask", mask, false, IN_FILE,
                "a mask, aligned on the right as in numpy: booleans, true may see; or numbers that "
                "are added to scores. A last dimension n with 1 < n < Lk hides the other keys"),
    FILE_OPTION("--mask-bits", mask_bits, false, IN_FILE,
                "a boolean mask as bytes of 8 keys, the least significant bit first"),
    FILE_OPTION("--block-mask", block_mask, false, IN_FILE,
                "booleans, one for each block of queries and of keys, aligned on the right: blocks "
                "that are false are hidden, and not computed"),
    { .name = "--block-len",
      .argument = "N",
      .help = "queries and keys of a block of --block-mask: 32, 64, 96 or 128 (default: 64)",
      .kind = ARG_INT,
      .min = 32,
      .max = 128,
      .offset = offsetof(struct attend_options, block_len) },
    FILE_OPTION("--cu-seqlens", cu_seqlens, false, IN_FILE,
                "integers [N+1]: rows from the n-th to the next are a sequence of its own, of N "
                "packed one after another; the arrays have one batch, everything that is given for "
                "each batch is for each sequence, and masks count from its beginning"),
    FILE_OPTION("--cu-seqlens-k", cu_seqlens_k, false, IN_FILE,
                "the same for k and v, where it is not that of q"),
    { .name = "--causal",
      .argument = "WHERE",
      .help = "query i sees keys up to i + offset: top-left (offset 0), bottom-right (Lk - Lq), an "
              "offset, or one for each batch: 3,5",
      .kind = ARG_TEXT,
      .offset = offsetof(struct attend_options, causal),
      .suggest = "top-left|bottom-right" },
    { .name = "--prefix",
      .argument = "N[,N...]",
      .help = "with --causal: the first N keys are seen by all, in all batches or in each",
      .kind = ARG_TEXT,
      .offset = offsetof(struct attend_options, prefix) },
    { .name = "--window",
      .argument = "LEFT,RIGHT",
      .help = "query i sees keys from i + offset - LEFT to i + offset + RIGHT; -1: unbounded",
      .kind = ARG_TEXT,
      .offset = offsetof(struct attend_options, window) },
    { .name = "--chunk",
      .argument = "N",
      .help = "query i sees the keys of its own chunk of N, that of i + offset",
      .kind = ARG_INT,
      .min = 1,
      .max = INT64_C(1) << 48,
      .offset = offsetof(struct attend_options, chunk) },
    FILE_OPTION("--segments", segments, false, IN_FILE,
                "integers [B,Lk] or [Lk]: queries see the keys of their own segment (document)"),
    FILE_OPTION("--segments-q", segments_q, false, IN_FILE,
                "the queries' segments, [B,Lq] or [Lq], where they are not those of the keys"),
    { .name = "--kv-len",
      .argument = "N[,N...]",
      .help = "keys that exist, in all batches or in each",
      .kind = ARG_TEXT,
      .offset = offsetof(struct attend_options, kv_len) },
    { .name = "--q-len",
      .argument = "N[,N...]",
      .help = "queries that exist; the rows of the others are 0, their lse -inf",
      .kind = ARG_TEXT,
      .offset = offsetof(struct attend_options, q_len) },
    { .name = "--q-offset",
      .argument = "N[,N...]",
      .help =
          "position of query 0 among the keys, for --window, --chunk and --alibi without --causal",
      .kind = ARG_TEXT,
      .offset = offsetof(struct attend_options, q_offset) },
    { .name = "--scale",
      .argument = "X",
      .help = "factor of the scores (default: 1/sqrt(D))",
      .kind = ARG_REAL,
      .offset = offsetof(struct attend_options, scale) },
    { .name = "--softcap",
      .argument = "X",
      .help = "scores s become X tanh(s / X)",
      .kind = ARG_REAL,
      .offset = offsetof(struct attend_options, softcap) },
    FILE_OPTION("--alibi", alibi, false, IN_FILE,
                "slopes [H]: slope (j - i - offset) is added to the score of query i and key j"),
    FILE_OPTION("--sink", sink, false, IN_FILE,
                "scores [H] of no key: part of every row's softmax and lse, not of the output"),
    { .name = "--dropout",
      .argument = "P,SEED",
      .help = "each weight becomes 0 with probability P, the others are divided by 1 - P; SEED, "
              "batch, head, query and key decide which (Philox 4x32-10)",
      .kind = ARG_TEXT,
      .offset = offsetof(struct attend_options, dropout) },
    FILE_OPTION("--grad-out", grad_out, false, IN_FILE,
                "gradient of the output; asks for the backward pass"),
    FILE_OPTION("--grad-lse", grad_lse, false, IN_FILE, "gradient of lse, if it has one"),
    FILE_OPTION("--dq", dq, false, OUT_FILE, "where the gradient of q goes (.npy, .npz:NAME)"),
    FILE_OPTION("--dk", dk, false, OUT_FILE, "where the gradient of k goes (.npy, .npz:NAME)"),
    FILE_OPTION("--dv", dv, false, OUT_FILE, "where the gradient of v goes (.npy, .npz:NAME)"),
    FILE_OPTION("--dsink", dsink, false, OUT_FILE,
                "where the gradient of the sinks goes (.npy, .npz:NAME)"),
    FILE_OPTION(
        "--dmask", dmask, false, OUT_FILE,
        "where the gradient of a mask of numbers goes (.npy, .npz:NAME), in the mask's shape"),
    { .name = "--dtype",
      .argument = "f32|bf16|f16",
      .help = "the type to which q, k, v and --grad-out are rounded and in which the output and "
              "gradients are written (bf16 as f32 arrays, because .npy lacks it; with bf16, .npy "
              "of the type <V2 are read, too). lse and --dsink stay f32 (default: f32)",
      .kind = ARG_CHOICE,
      .offset = offsetof(struct attend_options, dtype) },
    { .name = "--class",
      .argument = "auto|f32|dp|amx",
      .help = "with what 16-bit inputs are computed; f32: converted, which is exact, and the "
              "result rounded once; dp: bf16 only, by dot products of pairs, weights rounded to "
              "bf16; amx: the same, of 32 at a time (default: auto, the fastest here)",
      .kind = ARG_CHOICE,
      .offset = offsetof(struct attend_options, arithmetic) },
    { .name = "--explain",
      .help = "say which path the computation takes, and why: kernel, instruction set, blocks, "
              "threads, memory",
      .kind = ARG_FLAG,
      .offset = offsetof(struct attend_options, explain) },
};

const struct cli_command cmd_attend = {
    .name = "attend",
    .summary = "exact attention on arrays in files, and its gradients",
    .words = "",
    .details =
        "Computes softmax(scale q k' + mask) v without ever storing a matrix of Lq x Lk. Inputs F "
        "are F.npy, F.npz:NAME or F.safetensors:NAME; floating-point types are converted to "
        "--dtype, f32 if there is none. Outputs are F.npy or F.npz:NAME; those with the same F.npz "
        "go into one new file. A row that sees no key gets 0, and lse -inf. The bits of the output "
        "depend neither on threads nor on the instruction set. Either all files that were asked "
        "for are written, or none.\n\n"
        "    qkv attend --q q.npy --k k.npy --v v.npy --causal bottom-right -o o.npy\n"
        "    qkv attend --q q.npy --k k.npy --v v.npy --causal 0 -o o.npy --stats stats.json",
    .max_words = 0,
    .takes = TAKES_COMPUTE | TAKES_JSON | TAKES_QUIET | TAKES_VERBOSE,
    .options = attend_table,
    .n_options = CLI_COUNT(attend_table),
    .options_bytes = sizeof(struct attend_options),
    .run = attend,
};
