# cost: 4
# What a page says, in a browser: weights against `qkv attend` and `look --json`, findings and effects against `qkv heads`, cross-attention,
# decoders, windows, several texts, arrays, tables, maps, hostile tokens, no scripts, `look --serve`.
. tools/deep/lib.sh
. tools/deep/page_tests.sh
page_tests numbers
