# page_tests GROUP: a group of the checks of tests/page/browser.py, whose last line is "N cases" (sourced). The page of `qkv look -o
# FILE.html`, and of `look --serve`, in Debian's Chromium, headless and without a network. Playwright and axe-core come from PyPI
# into an environment of their own, the first time.
page_tests() {
    ./dev build release
    export FONTCONFIG_FILE="$PWD/build/release/fonts.conf"
    environment=build/deep/page_environment
    python=$environment/bin/python
    [ -x $python ] || python3 -m venv $environment
    $python -c 'import playwright, axe_playwright_python' 2>/dev/null ||
        $python -m pip install -q --disable-pip-version-check playwright axe-playwright-python
    $python tests/page/browser.py build/release/qkv build/release/make_page "build/deep/page-$1" "$1"
}
