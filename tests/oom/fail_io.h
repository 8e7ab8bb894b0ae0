/*
 * Reading and writing that fails on demand. The linker's --wrap redirects calls of our libraries to
 * __wrap_…. Calls of other libraries are not redirected, since ours do all reading and writing of
 * models, arrays and pictures themselves. The n-th call after fail_io_arm fails with ENOSPC
 * (writing) or EIO (reading), or every one from the n-th on. Functions that clean up after a
 * failure (unlink, rmdir, close) always work; fclose closes, and then reports a failure.
 */
#ifndef OOM_FAIL_IO_H
#define OOM_FAIL_IO_H

#include <stdbool.h>
#include <stdint.h>

void fail_io_arm(int64_t n, bool from_on);
int64_t fail_io_disarm(int64_t *n_calls); /* as fail_alloc_disarm */

#endif
