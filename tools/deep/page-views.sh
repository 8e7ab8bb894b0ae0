# cost: 3.5
# What a page looks like, in a browser: every view at four widths, light and dark, with large letters, in print and with forced colours;
# sizes, and what opening and drawing cost, a head of 32,768 tokens among it.
. tools/deep/lib.sh
. tools/deep/page_tests.sh
page_tests views
