# cost: 4
# Pictures on a system with many fonts, Chinese, Japanese and Korean ones and coloured signs among them: what draws, under the sanitizers and as
# users have it. Elsewhere tests draw with fonts of their own (cmake/test_fonts.cmake).
. tools/deep/lib.sh
export QKV_TEST_FONTS=/etc/fonts/fonts.conf
for family in "Noto Sans CJK JP" "Noto Color Emoji"; do
    fc-list "$family" | grep .
done
export LSAN_OPTIONS="suppressions=$PWD/tests/fonts.lsan:print_suppressions=0"
some_tests asan "" -R '^unit_view_'
some_tests release "example_sentence_heatmap qkv-tool" -R '^(unit_view_|example_sentence_heatmap$|cli_(map|plot|train)$)'
echo "$n_cases cases"
