#!/bin/sh
# layers_checker.sh CHECKER: small trees with one include each, which the checker must refuse or accept.
set -eu
checker=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
n_wrong=0

# expect VERDICT FILE INCLUDE [HEADER]: the verdict (refused or accepted) on a tree in which FILE has the line `#include INCLUDE`, and
# HEADER is a file of its own
expect() {
    rm -rf "${tree:?}"/*
    mkdir -p "$tree/src/core" "$tree/cli" "$tree/$(dirname "$2")"
    if [ -n "${4:-}" ]; then
        mkdir -p "$tree/$(dirname "$4")"
        : >"$tree/$4"
    fi
    printf '/* a file */\n  #  include %s\n' "$3" >"$tree/$2"
    verdict=accepted
    python3 "$checker" "$tree" >/dev/null 2>&1 || verdict=refused
    [ "$verdict" = "$1" ] || {
        echo "$2 with #include $3 was $verdict" >&2
        n_wrong=$((n_wrong + 1))
    }
}

expect accepted src/core/a.c '"core/status.h"'
expect refused src/core/a.c '"kernels/table.h"'
expect refused src/core/a.h '"attn/ctx.h"'
expect refused src/core/a.c '<qkv/model.h>'
expect refused src/core/a.c '"qkv/model.h"'
expect refused src/core/a.c '"../attn/ctx.h"'
expect accepted src/kernels/tmpl/a.h '"core/cpu.h"'
expect refused src/kernels/tmpl/a.h '"attn/desc.h"'
expect refused src/attn/a.c '"model/run.h"'
expect refused src/attn/a.c '<jansson.h>'
expect accepted src/attn/a.c '"kernels/table.h"'
expect refused src/attn/a.c '"layer/linear.h"'
expect refused src/attn/a.c '"onnx/node.h"'
expect accepted src/onnx/a.c '"attn/ctx.h"'
expect refused src/onnx/a.c '"layer/linear.h"'
expect refused src/onnx/a.c '<jansson.h>'
expect refused src/layer/a.c '"onnx/node.h"'
expect refused src/model/a.c '<qkv/onnx.h>'
expect accepted src/layer/a.c '"attn/ctx.h"'
expect refused src/layer/a.c '"model/weights/params.h"'
expect refused src/layer/a.c '<qkv/model.h>'
expect refused src/layer/a.c '<jansson.h>'
expect accepted src/files/a.c '"core/status.h"'
expect accepted src/files/a.c '<zlib.h>'
expect refused src/files/a.c '"text/tokenizer.h"'
expect refused src/files/a.c '"attn/ctx.h"'
expect accepted src/text/a.c '"files/json.h"'
expect refused src/text/a.c '"layer/linear.h"'
expect refused src/text/a.c '"model/model_impl.h"'
expect refused src/text/a.c '<cairo.h>'
expect accepted src/gguf/a.c '"text/settings.h"'
expect refused src/gguf/a.c '"model/config/config.h"'
expect refused src/gguf/a.c '"qkv/model.h"'
expect accepted src/model/a.c '"gguf/gguf.h"'
expect accepted src/model/arch/a.c '"model/weights/params.h"'
expect accepted src/model/arch/a.c '"layer/linear.h"'
expect refused src/model/arch/a.c '"model/config/config.h"'
expect refused src/model/a.c '"model/generate/search.h"'
expect accepted src/model/generate/a.c '"model/model_impl.h"'
expect refused src/model/a.c '"train/eval.h"'
expect refused src/train/a.c '"inspect/labels.h"'
expect accepted src/train/a.c '"train/grammar/grammar.h"'
expect refused src/train/grammar/a.c '"train/trainer.h"'
expect refused src/attic/a.c '"core/status.h"'
expect accepted src/inspect/a.c '"model/model_impl.h"'
expect refused src/inspect/a.c '"view/color.h"'
expect refused src/inspect/a.c '<qkv/picture.h>'
expect refused src/inspect/a.c '"page/head.h"'
expect accepted src/page/a.c '"inspect/colors.h"'
expect refused src/page/a.c '"view/theme.h"'
expect refused src/page/a.c '<qkv/picture.h>'
expect refused src/page/a.c '<cairo.h>'
expect refused src/view/a.c '"page/head.h"'
expect accepted src/view/a.c '<cairo/cairo.h>'
expect accepted src/view/a.c '"inspect/stats.h"'
expect accepted cli/a.c '<qkv/picture.h>'
expect accepted cli/a.c '"qkv/picture.h"'
expect accepted cli/main.c '"common/args.h"' cli/common/args.h
expect refused cli/main.c '"args.h"'
expect accepted cli/map/a.c '"common/args.h"' cli/common/args.h
expect accepted cli/map/a.c '"map/map.h"' cli/map/map.h
expect refused cli/map/a.c '"look/text.h"' cli/look/text.h
expect refused cli/common/a.c '"look/text.h"' cli/look/text.h
expect accepted cli/look/a.c '"sinks/seen.h"' cli/sinks/seen.h
expect refused cli/sinks/a.c '"look/text.h"' cli/look/text.h
expect refused cli/look/a.c '"heads/heads.h"' cli/heads/heads.h
expect accepted cli/a.c '<sys/stat.h>'
expect refused cli/a.c '"core/status.h"'
expect refused cli/a.c '"check/check.h"'
expect accepted cli/bench/cmd_check.c '"check/check.h"'
expect refused cli/bench/cmd_check.c '"attn/ctx.h"'
expect accepted cli/bench/a.c '"suite/suite.h"'
expect refused cli/map/a.c '"suite/suite.h"'
expect accepted bench/suite/a.c '"suite/peak.h"'
expect accepted bench/suite/a.c '<qkv/kv.h>'
expect refused bench/suite/a.c '"common/cli.h"'
[ "$n_wrong" -eq 0 ]
