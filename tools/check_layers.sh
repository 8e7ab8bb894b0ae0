#!/bin/sh
# The one rule of dependence: core <- kernels <- attn <- layer <- model <- inspect, and beside each other page and view, which see all of
# these. onnx sees attn and what is left of it, and only onnx itself sees onnx. dist sees attn and what is left of it, and mpi
# sees dist; no other layer sees these two, or the header of MPI.
# A folder of src may include itself and what is left of it; the public headers follow the same order; the tool sees only include/qkv (and qkv-check, in cmd_check.c).
# Libraries of others stay in their layer too. Prints every line that breaks the rule. check_layers.sh [TREE]
set -eu
cd "${1:-$(dirname "$0")/..}"

# includes FOLDER: "file:line:name" of everything it includes, <…> with its brackets; "qkv/…" is read as <qkv/…>
includes() {
    find "$1" -name '*.[chS]' -exec grep -HnE '^[[:space:]]*#[[:space:]]*include' {} + |
        sed -E 's/^([^:]*:[0-9]+):[[:space:]]*#[[:space:]]*include[[:space:]]*("([^"]*)"|(<[^>]*>)).*/\1:\3\4/; s/:(qkv\/.*)$/:<\1>/'
}

# forbid FOLDER PATTERN REASON: no include of FOLDER may match the extended regular expression
forbid() {
    [ -d "$1" ] || return 0
    includes "$1" | awk -F: -v pattern="$2" -v reason="$3" \
        '$3 ~ pattern { print $1 ":" $2 ": includes " $3 ": " reason }'
}

# The tool sees include/qkv and its own folder; its rooms include themselves, common and, of other rooms, those that rooms_below lists.
rooms_below='look:heads look:attend look:serve'
check_tool() {
    includes cli | while IFS=: read -r file line name; do
        case $name in
        \<*) continue ;;
        check/check.h) [ "$file" = cli/bench/cmd_check.c ] && continue ;;
        elf_notes.h) [ "${file%.S}" != "$file" ] && continue ;;
        esac
        from=${file#cli/}
        from=${from%/*} to=${name%%/*}
        if [ ! -f "cli/$name" ]; then
            echo "$file:$line: includes $name: the tool sees only include/qkv"
        elif [ "$from" != "${file#cli/}" ] && [ "$to" != "$from" ] && [ "$to" != common ]; then
            case " $rooms_below " in
            *" $from:$to "*) ;;
            *) echo "$file:$line: includes $name: $from does not see $to" ;;
            esac
        fi
    done
}

broken=$(
    forbid src/core '^(kernels|attn|onnx|dist|mpi|layer|model|inspect|page|view)/' 'core is the lowest layer'
    forbid src/kernels '^(attn|onnx|dist|mpi|layer|model|inspect|page|view)/' 'kernels may see only core'
    forbid src/attn '^(onnx|dist|mpi|layer|model|inspect|page|view)/' 'attn may see only core and kernels'
    forbid src/onnx '^(dist|mpi|layer|model|inspect|page|view)/' 'onnx may see only core, kernels and attn'
    forbid src/dist '^(onnx|mpi|layer|model|inspect|page|view)/|^<(mpi|qkv/mpi)[.]h>' 'dist may see only core, kernels and attn'
    forbid src/mpi '^(onnx|layer|model|inspect|page|view)/' 'mpi may see only core, kernels, attn and dist'
    for upper in layer model inspect page view; do
        forbid src/$upper '^(onnx/|<qkv/onnx[.]h>)' 'nothing is built on onnx'
        forbid src/$upper '^((dist|mpi)/|<(mpi|qkv/mpi)[.]h>)' 'nothing is built on dist and mpi'
    done
    forbid src/layer '^(model|inspect|page|view)/' 'layer is below model, inspect, page and view'
    forbid src/model '^(inspect|page|view)/' 'model is below inspect, page and view'
    forbid src/inspect '^(page|view)/' 'inspect is below page and view'
    forbid src/page '^(view/|<qkv/picture[.]h>)' 'page and view lie beside each other'
    forbid src/view '^(page/|<qkv/page[.]h>)' 'page and view lie beside each other'
    for low in src/core src/kernels src/attn src/onnx src/layer; do
        forbid $low '^<qkv/(model|inspect|page|picture)[.]h>' 'a header of a higher layer'
        forbid $low '^<(jansson|utf8proc|zlib|cairo|pango)' 'libqkv links only libc, libm and pthread'
    done
    forbid src/model '^<qkv/(inspect|page|picture)[.]h>' 'a header of a higher layer'
    forbid src/inspect '^<qkv/(page|picture)[.]h>' 'a header of a higher layer'
    for middle in src/model src/inspect src/page; do
        forbid $middle '^<(cairo|pango)' 'only view draws'
    done
    forbid src '[.][.]/' 'includes are relative to src'
    check_tool
)
if [ -n "$broken" ]; then
    printf '%s\n' "$broken" | sort -u >&2
    exit 1
fi
