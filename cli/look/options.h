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
    /* --image (image.c) */
    const char *image, *query;
    bool rollout, smooth;
    struct arg_int fuse; /* qkv_rollout_heads */
    struct arg_real opacity;
    struct sink_options sink;
};

static inline qkv_attention_kind look_which(const struct look_options *options) {
    return options->align ? QKV_CROSS : pair_which(&options->which);
}
static inline int64_t look_top(const struct look_options *options) {
    return options->top.set ? options->top.value : 5;
}

#endif
