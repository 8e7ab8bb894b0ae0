# clang's UndefinedBehaviorSanitizer, which stops at what gcc's does not see: pointers that leave their arrays, 0 added to NULL, numbers
# that do not fit. The libraries, the tool and the scalar kernels; for those of vectors see HACKING.md. Left out are tests that take
# long and call what others call, too.
. tools/deep/lib.sh
export UBSAN_OPTIONS=print_stacktrace=1
long='unit_(map_tree|train_resume)|prop_(net|bert|attention_dp)|golden_unicode'
long="$long|cli_(check|inputs|interrupts|manual|outputs|plot|resume|terminal)"
long="$long|hostile_attention_(addresses|fpstate|half_values|hidden|huge|nested|options|process|threads|values)"
preset_tests ubsan -R '^(unit|prop|golden|hostile|cli|null)_' -E "^($long)\$"
echo "$n_cases cases"
