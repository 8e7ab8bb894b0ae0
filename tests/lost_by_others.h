/*
 * Leaks of other libraries that LeakSanitizer must not report in tests that draw. fontconfig keeps
 * what it has parsed until the process ends. Each font map of pango has a thread, which ends some
 * time after the picture; glib allocates memory while it ends, to which LeakSanitizer does not
 * always find a pointer. Other memory of glib is in slabs, which LeakSanitizer sees only as a
 * whole: tests/oom, which counts blocks, finds objects of pango that we do not free.
 */
#ifndef QKV_TESTS_LOST_BY_OTHERS_H
#define QKV_TESTS_LOST_BY_OTHERS_H

#define LOST_BY_OTHERS "leak:libfontconfig\nleak:libglib-2.0\n"

/* LeakSanitizer asks here. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);

#endif
