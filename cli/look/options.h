/* Options of `qkv look`. */
#ifndef QKV_CLI_LOOK_OPTIONS_H
#define QKV_CLI_LOOK_OPTIONS_H

#include "sinks/seen.h"

#define PICTURES ".png .svg .pdf"
#define ENDINGS  ".html " PICTURES " .json .csv .npy"
#define ALIGNED  PICTURES " .json .txt" /* with --align */

struct look_options {
    struct cli_common common;
    const char *pair, *out, *heads, *file, *windows;
    struct pair_options which;
    bool align; /* --align, which implies --cross (align.c) */
    struct arg_int top;
    struct arg_texts what_if;
    /* Arrays in place of a text (arrays.c) */
    const char *q, *k, *tokens, *q_tokens, *causal, *window, *sinks, *alibi;
    struct arg_real scale, softcap;
    struct arg_int kv_len;
    bool lens;               /* common/lens.h, or for a page lens.c */
    const char *against;     /* the second model (against.c) */
    bool effect;             /* a page has the effect of each head (effects.c) */
    struct arg_texts groups; /* --group: groups of heads that are ablated together */
    bool serve;              /* job.c, cli/serve */
    bool mpi;                /* of arrays */
    struct arg_int port;
    bool norms, rollout; /* text_flow.c, of an image image.c */
    struct arg_int fuse; /* qkv_rollout_heads */
    /* --image (image.c) */
    const char *image, *query;
    bool smooth;
    struct arg_real opacity;
    struct sink_options sink;
};

static inline qkv_attention_kind look_which(const struct look_options *options) {
    return options->align ? QKV_CROSS : pair_which(&options->which);
}
/* What stands for all heads of a layer in a rollout: "the mean of its heads"; and as a word. */
static inline const char *look_fused(const struct look_options *options) {
    static const char *const names[] = { "the mean of its heads", "the largest weight of its heads",
                                         "the smallest weight of its heads" };
    return names[options->fuse.value];
}
static inline const char *look_fuse(const struct look_options *options) {
    static const char *const names[] = { "mean", "max", "min" };
    return names[options->fuse.value];
}
static inline int64_t look_top(const struct look_options *options) {
    return options->top.set ? options->top.value : 5;
}

#endif
