# Everything that starts threads, under ThreadSanitizer. Pictures are left out: glib and fontconfig are not instrumented and
# have threads of their own. A child of a process with threads may make threads (the pool does; docs of the sanitizer: at the
# host's risk).
. tools/deep/lib.sh
export TSAN_OPTIONS="die_after_fork=0:halt_on_error=1:exitcode=66"
preset_tests tsan -R '^(unit|prop|golden|hostile)_' -E 'unit_view_'
echo "$n_cases cases"
