# cost: 5
# clang's UndefinedBehaviorSanitizer on the tool and on what attacks: the tests of the command line, hostile files and arguments, and
# NULL for every argument. Left out are tests that take long and call what others call, too.
. tools/deep/lib.sh
export UBSAN_OPTIONS=print_stacktrace=1
long='cli_(check|docs|inputs|interrupts|learn|manual|outputs|plot|resume|terminal)'
long="$long|hostile_attention_(addresses|fpstate|half_values|hidden|huge|nested|options|process|threads|values)"
some_tests ubsan "qkv-tool qkv_manual serve_client nulls" -R '^(hostile|cli|null)_' -E "^($long)\$" -LE long
echo "$n_cases cases"
