#!/bin/sh
# The one rule of dependence: core <- kernels <- attn <- model <- inspect <- view. A folder of src may include itself and what
# is left of it; the public headers follow the same order; the tool sees only include/qkv (and qkv-check, in cmd_check.c).
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

broken=$(
    forbid src/core '^(kernels|attn|model|inspect|view)/' 'core is the lowest layer'
    forbid src/kernels '^(attn|model|inspect|view)/' 'kernels may see only core'
    forbid src/attn '^(model|inspect|view)/' 'attn may see only core and kernels'
    forbid src/model '^(inspect|view)/' 'model is below inspect and view'
    forbid src/inspect '^view/' 'inspect is below view'
    for low in src/core src/kernels src/attn; do
        forbid $low '^<qkv/(model|inspect|view)[.]h>' 'a header of a higher layer'
        forbid $low '^<(jansson|utf8proc|zlib|cairo|pango)' 'libqkv links only libc, libm and pthread'
    done
    forbid src/model '^<qkv/(inspect|view)[.]h>' 'a header of a higher layer'
    forbid src/inspect '^<qkv/view[.]h>' 'a header of a higher layer'
    for middle in src/model src/inspect; do
        forbid $middle '^<(cairo|pango)' 'only view draws'
    done
    forbid src '[.][.]/' 'includes are relative to src'
    forbid cli '^(core|kernels|attn|model|inspect|view)/' 'the tool sees only include/qkv'
    forbid cli '^[^<].*/' 'the tool sees only include/qkv' | grep -v '^cli/cmd_check[.]c:.*includes check/' || true
)
if [ -n "$broken" ]; then
    printf '%s\n' "$broken" | sort -u >&2
    exit 1
fi
