/*
 * What LeakSanitizer is not told of in tests that draw. fontconfig keeps what it parsed until the
 * process ends. Each font map has a thread of pango's, which ends after the picture, when it likes:
 * glib gives it memory once more while it ends, and who holds that at the end of the process is not
 * always seen. What else glib gives lies in slabs, of which LeakSanitizer sees the whole only:
 * objects of pango's that we lose are found by tests/oom, which counts blocks.
 */
#ifndef QKV_TESTS_LOST_BY_OTHERS_H
#define QKV_TESTS_LOST_BY_OTHERS_H

#define LOST_BY_OTHERS "leak:libfontconfig\nleak:libglib-2.0\n"

/* LeakSanitizer asks here. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);

#endif
