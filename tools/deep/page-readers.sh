# cost: 2.5
# A page for readers of every kind, in a browser: axe-core's rules in every view, and contrasts, at three widths, light and dark.
. tools/deep/lib.sh
. tools/deep/page_tests.sh
page_tests readers
