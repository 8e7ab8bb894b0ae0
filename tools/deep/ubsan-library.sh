# cost: 5
# clang's UndefinedBehaviorSanitizer, which stops at what gcc's does not see: pointers that leave their arrays, 0 added to NULL, numbers
# that do not fit. The libraries and the scalar kernels; for those of vectors see HACKING.md. Left out are tests that take long
# and call what others call, too.
. tools/deep/lib.sh
export UBSAN_OPTIONS=print_stacktrace=1
long='unit_(map_tree|train_resume)|prop_(net|bert|attention_dp)|golden_unicode'
some_tests ubsan nulls -R '^(unit|prop|golden)_' -E "^($long)\$" -LE long
echo "$n_cases cases"
