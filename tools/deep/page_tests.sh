# page_tests GROUP: a group of the checks of tests/page/browser.py, whose last line is "N cases" (sourced). The page of `qkv look -o
# FILE.html`, and of `look --serve`, in Debian's Chromium, headless and without a network.
page_tests() {
    ./dev build release
    export FONTCONFIG_FILE="$PWD/build/release/fonts.conf"
    python=$(browser_python)
    "$python" tests/page/browser.py build/release/qkv build/release/make_page "build/deep/page-$1" "$1"
}
