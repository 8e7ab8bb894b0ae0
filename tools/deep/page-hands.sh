# cost: 3.5
# A page under hands, in a browser: every key and control, the matrix and the map by mouse, wheel and fingers, saved files, every question
# of What if, and the keyboard alone.
. tools/deep/lib.sh
. tools/deep/page_tests.sh
page_tests hands
