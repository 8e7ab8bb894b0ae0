/* `qkv look`: where each token looks. Its table of options. */
#include "look/job.h"

#include <stdlib.h>

static int look(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct look_options *o = data;
    const int code = look_check(command, o, n_words);
    if (code) return code;
    if (o->out || o->q || o->windows || o->serve) cli_catch_interrupts();
    if (o->serve) return look_serve(command, o, n_words > 0 ? words[0] : NULL);
    return o->q ? look_arrays(command, o) : look_texts(command, o, n_words, words);
}

#define OPTIONS struct look_options

static const struct cli_option look_table[] = {
    OPTION_TEXT("--pair", "TEXT", pair),
    PAIR_TABLE(which),
    OPTION_FLAG("--align", align),
    OPTION_INT("--top", "N", top, 1, 1000),
    OPTION_FILE("--file", "F", file, "*"),
    OPTION_TEXT("--slide", "N[,STRIDE]", windows),
    WHAT_IF_ROW(what_if),
    OPTION_TEXT("--heads", "L.H,L.H...", heads),
    OPTION_FILE("--q", "F", q, ".npy .npz .safetensors .csv .tsv"),
    OPTION_FILE("--k", "F", k, ".npy .npz .safetensors .csv .tsv"),
    OPTION_FILE("--tokens", "F", tokens, "*"),
    OPTION_FILE("--q-tokens", "F", q_tokens, "*"),
    OPTION_FILE("--causal", "top-left|bottom-right|OFFSET", causal, "top-left|bottom-right"),
    OPTION_TEXT("--window", "LEFT,RIGHT", window),
    OPTION_REAL("--scale", "X", scale),
    OPTION_CHOICE("--pool", "peak|mass", sink.pool),
    OPTION_CHOICE("--plot", "queries|received|offsets", sink.plot),
    OPTION_CHOICE("--map", "cosine|inner", sink.map),
    OPTION_FLAG("--lens", lens),
    OPTION_FLAG("--effect", effect),
    OPTION_TEXTS("--group", "layers|labels|all|L.H,L.*...", groups),
    OPTION_FILE("--against", "MODEL", against, "/"),
    OPTION_FLAG("--serve", serve),
    OPTION_INT("--port", "N", port, 1, 65535),
    OPTION_FLAG("--mpi", mpi),
    PICTURE_TABLE(sink.picture),
    OPTION_FILE("-o", "FILE", out, ".html .png .svg .pdf .npy .csv .json"),
};

const struct cli_command cmd_look = {
    .name = "look",
    .summary = "where each token looks: predictions, all heads, one heat map",
    .words = "TEXT",
    .max_words = 1,
    .takes = TAKES_TEXTS | TAKES_HEAD,
    COMMAND_OPTIONS(look_table),
    .run = look,
};
