# Everything that starts threads or is made for callers with threads, under ThreadSanitizer. Parsers and tokenizers do neither.
# Pictures are left out: glib and fontconfig are not instrumented and have threads of their own. die_after_fork=0: a child of a
# process with threads makes its own, as the pool promises. hostile_attention_steady has a malloc of its own, as the sanitizer does.
. tools/deep/lib.sh
export TSAN_OPTIONS="die_after_fork=0:allocator_may_return_null=1:halt_on_error=1:exitcode=66"
preset_tests tsan -R '^(unit|prop|golden)_|^hostile_attention_(nested|process|threads)$' \
    -E '_(view|tokenizer|corpus|store|vocab|unicode|strings|grammar)'
echo "$n_cases cases"
