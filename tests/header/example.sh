#!/bin/sh
# example.sh HEADER COMPILER...: the first example of a header's first comment compiles as it is shown, in a function that has
# the arrays and sizes that it names.
set -eu
header=$1
shift
{
    echo '#include <stdio.h>'
    echo "#include \"$header\""
    echo 'int example(const float *q, const float *k, const float *v, float *o);'
    echo 'int example(const float *q, const float *k, const float *v, float *o) {'
    awk '/^ \*     /  { print substr($0, 3); found = 1; next } found { exit }' "$header"
    echo '    return 0; }'
} | "$@" -
