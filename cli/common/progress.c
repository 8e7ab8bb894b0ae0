/* Progress on a terminal: one line of standard error, rewritten at most ten times a second. */
#include <unistd.h>

#include "common/cli.h"
#include "common/term.h"

void progress_begin(struct progress *progress, bool quiet) {
    *progress = (struct progress){ .on = !quiet && isatty(STDERR_FILENO), .start = cli_seconds() };
    progress->last = progress->start + 0.9; /* nothing before a second has passed */
}

static void show_call(void *user, int64_t done, int64_t total) {
    struct progress *progress = user;
    progress_bar(progress, progress->what, done, total);
}

qkv_call_options progress_call(struct progress *progress, const char *what, bool quiet) {
    qkv_call_options call = qkv_call_options_init();
    progress_begin(progress, quiet);
    progress->what = what;
    call.cancel = &cli_cancelled;
    call.progress = show_call;
    call.progress_user = progress;
    return call;
}

void progress_text(struct progress *progress, const char *text) {
    const double now = cli_seconds();
    if (!progress->on || now < progress->last + 0.1) return;
    progress->last = now;
    progress->shown = true;
    fprintf(stderr, "\r%s\033[K", text);
    fflush(stderr);
}

void progress_bar(struct progress *progress, const char *what, int64_t done, int64_t total) {
    enum { CELLS = 30 };
    if (!progress->on || total <= 0) return;
    char bar[CELLS + 1], line[160];
    const int filled = (int)((double)done / (double)total * CELLS);
    for (int i = 0; i < CELLS; i++) bar[i] = i < filled ? '#' : '-';
    bar[CELLS] = '\0';
    const double spent = cli_seconds() - progress->start;
    const double left = done > 0 ? spent / (double)done * (double)(total - done) : 0;
    snprintf(line, sizeof line, "%s [%s] %3d %%  %.0f s left", what, bar,
             (int)(100.0 * (double)done / (double)total), left);
    progress_text(progress, line);
}

void progress_end(struct progress *progress) {
    if (progress->shown) fputs("\r\033[K", stderr);
    progress->shown = false;
}
