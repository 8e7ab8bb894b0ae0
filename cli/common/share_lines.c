/* Lines of a file as pieces: see share.h. */
#include "common/share.h"

bool share_next_line(void *user, struct text *piece, qkv_status *status, qkv_error *error) {
    struct lines *const lines = user;
    if (cli_cancelled) return false;
    if (!lines_next(lines, status, error)) {
        *status = lines_end(lines, error);
        return false;
    }
    if (*status == QKV_OK) {
        *piece = lines->line;
        return true;
    }
    *status = lines_error(lines, error);
    return false;
}

/* Lines count from 1. */
void share_failed_line(void *user, int64_t n, qkv_error *error) {
    struct lines at = *(const struct lines *)user;
    at.number = n + 1;
    lines_error(&at, error);
}
