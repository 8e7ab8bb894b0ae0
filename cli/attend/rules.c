/*
 * Parses the options of `qkv attend` that are numbers or words, in which every mistake is a usage
 * error. common/rules.c parses rules of visibility.
 */
#include <stdlib.h>
#include <string.h>

#include "attend/attend.h"
#include "common/conflicts.h"
#include "common/job.h"
#include "common/number.h"

/* P,SEED */
static int parse_dropout(const struct cli_command *command, const char *text,
                         struct attend_rules *rules) {
    if (!text) return EXIT_OK;
    const char *comma = strchr(text, ',');
    char *const share = comma ? strndup(text, (size_t)(comma - text)) : NULL;
    rules->drops = share && number_real(share, &rules->dropout) && rules->dropout >= 0 &&
                   rules->dropout <= 1 && number_int(comma + 1, 0, INT64_MAX, &rules->dropout_seed);
    free(share);
    return rules->drops ? EXIT_OK
                        : cli_usage(command,
                                    "--dropout: '%s' is not P,SEED, P from 0 to 1 and SEED a "
                                    "whole number from 0",
                                    text);
}

/* F.npy or F.npz:NAME */
static bool is_array_file(const char *path) {
    const char *const inside = strstr(path, ".npz:");
    return inside ? inside[5] != '\0' : text_ends(path, ".npy");
}

#define GRADIENTS "--grad-out|--grad-lse|--dq|--dk|--dv|--dsink|--dmask"

/* q, k and v, or what they are made of. */
static const struct option_conflict inputs[] = {
    { .these = "--x",
      .with = "--q|--k|--v",
      .message = "%s together with %s: q, k and v are made of --x" },
    { .these = "--x-kv|--wq|--wk|--wv|--bq|--bk|--bv|--wo|--bo|--heads|--transposed-weights",
      .without = "--x",
      .message = "%s needs --x" },
    { .these = "--x", .without = "--wq", .message = "%s needs --wq F: queries are x W_Q" },
    { .these = "--x", .without = "--wk", .message = "%s needs --wk F: keys are x W_K" },
    { .these = "--x", .without = "--wv", .message = "%s needs --wv F: values are x W_V" },
    { .these = "--bo", .without = "--wo", .message = "%s needs --wo" },
    { .these = "--x",
      .with = GRADIENTS,
      .message = "%s together with %s: gradients are those of --q, --k and --v" },
    { .without = "--q|--x", .message = "--q F is missing" },
    { .without = "--k|--x", .message = "--k F is missing" },
    { .without = "--v|--x", .message = "--v F is missing" },
};

static int check_files(const struct cli_command *command, const struct attend_options *options) {
    const struct {
        const char *name, *path;
    } outputs[] = { { "-o", options->o },         { "--lse", options->lse },
                    { "--dq", options->dq },      { "--dk", options->dk },
                    { "--dv", options->dv },      { "--dsink", options->dsink },
                    { "--dmask", options->dmask } };
    for (int i = 0; i < CLI_COUNT(outputs); i++) {
        const char *path = outputs[i].path;
        if (path && !options->o && options->explain && !options->x)
            return cli_usage(command, "%s needs -o: --explain alone computes nothing",
                             outputs[i].name);
        if (path && !is_array_file(path))
            return cli_usage(command, "%s: '%s' is neither F.npy nor F.npz:NAME", outputs[i].name,
                             path);
        for (int j = 0; path && j < i; j++)
            if (outputs[j].path && strcmp(path, outputs[j].path) == 0)
                return cli_usage(command, "%s and %s name the same file", outputs[j].name,
                                 outputs[i].name);
    }
    const struct attend_options *const o = options;
    const bool gradients = o->dq || o->dk || o->dv || o->dsink || o->dmask;
    const struct {
        bool wrong;
        const char *what;
    } rules[] = {
        { gradients && !o->grad_out, "--dq, --dk, --dv, --dsink and --dmask need --grad-out" },
        { !gradients && o->grad_out && (o->o || !o->explain),
          "--grad-out needs one of --dq, --dk, --dv, --dsink, --dmask" },
        { o->grad_lse && !o->grad_out, "--grad-lse needs --grad-out" },
        { o->dsink && !o->sink, "--dsink needs --sink" },
        { o->dmask && !o->mask, "--dmask needs --mask" },
        { o->segments_q && !o->segments, "--segments-q needs --segments" },
        { o->cu_seqlens_k && !o->cu_seqlens, "--cu-seqlens-k needs --cu-seqlens" },
        { o->block_len.set && !o->block_mask, "--block-len needs --block-mask" },
        { o->x && o->dtype.value != QKV_F32,
          "--x goes with --dtype f32, in which it is projected" },
        { o->mask && o->mask_bits, "--mask and --mask-bits are the same mask: give one" },
    };
    for (int i = 0; i < CLI_COUNT(rules); i++)
        if (rules[i].wrong) return cli_usage(command, "%s", rules[i].what);
    return EXIT_OK;
}

int attend_rules_parse(const struct cli_command *command, const struct attend_options *options,
                       struct attend_rules *rules) {
    *rules = (struct attend_rules){ 0 };
    int code = conflicts_check(command, options, 0, inputs, CLI_COUNT(inputs));
    if (!code) code = check_files(command, options);
    if (!code) code = rules_parse(command, &options->common, &rules->seen);
    if (!code) code = parse_dropout(command, options->dropout, rules);
    if (!code && options->softcap.set && !(options->softcap.value > 0))
        code = cli_usage(command, "--softcap: %g is not above 0", options->softcap.value);
    if (code) attend_rules_free(rules);
    return code;
}

void attend_rules_free(struct attend_rules *rules) {
    rules_free(&rules->seen);
    *rules = (struct attend_rules){ 0 };
}
