/*
 * The tests draw with fonts of their own (cmake/test_fonts.cmake), whatever the system has: those
 * of DejaVu, and no other. Run by ctest, which sets the environment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pango/pangocairo.h>

#include "lost_by_others.h"

const char *__lsan_default_suppressions(void) { return LOST_BY_OTHERS; }

static void test_only_dejavu(void **state) {
    (void)state;
    PangoFontFamily **families;
    int n, n_own = 0;
    if (getenv("QKV_TEST_FONTS")) skip(); /* tools/deep/fonts.sh asks for others */
    pango_font_map_list_families(pango_cairo_font_map_get_default(), &families, &n);
    for (int f = 0; f < n; f++) {
        const char *const name = pango_font_family_get_name(families[f]);
        const int is_alias = !strcmp(name, "Sans") || !strcmp(name, "Serif") ||
                             !strcmp(name, "Monospace") || !strcmp(name, "System-ui");
        if (strncmp(name, "DejaVu ", 7) != 0 && !is_alias)
            fail_msg("a test may draw with %s", name);
        n_own += !is_alias;
    }
    assert_true(n_own >= 1);
    g_free(families);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_only_dejavu) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
