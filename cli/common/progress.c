/* Progress on a terminal: one line of standard error, rewritten at most ten times a second. */
#include <time.h>

#include "common/cli.h"
#include "common/os.h"
#include "common/term.h"

void progress_begin(struct progress *progress, bool quiet) {
    *progress = (struct progress){ .on = !quiet && os_is_terminal(stderr), .start = cli_seconds() };
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

/* ---- A clock --------------------------------------------------------------------------------- */

static struct timespec half_a_second_from_now(void) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += 500000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

static void *tell_time(void *data) {
    struct progress_clock *const clock = data;
    pthread_mutex_lock(&clock->lock);
    while (!clock->ended) {
        const struct timespec at = half_a_second_from_now();
        pthread_cond_timedwait(&clock->changed, &clock->lock, &at);
        if (clock->ended) break;
        char line[160];
        snprintf(line, sizeof line, "%s ... %.0f s", clock->what,
                 cli_seconds() - clock->progress.start);
        progress_text(&clock->progress, line);
    }
    pthread_mutex_unlock(&clock->lock);
    return NULL;
}

void progress_clock_begin(struct progress_clock *clock, const char *what, bool quiet) {
    *clock = (struct progress_clock){ .what = what };
    progress_begin(&clock->progress, quiet);
    if (!clock->progress.on || pthread_mutex_init(&clock->lock, NULL) != 0) return;
    if (pthread_cond_init(&clock->changed, NULL) != 0) {
        pthread_mutex_destroy(&clock->lock);
        return;
    }
    clock->running = pthread_create(&clock->thread, NULL, tell_time, clock) == 0;
    if (clock->running) return;
    pthread_cond_destroy(&clock->changed);
    pthread_mutex_destroy(&clock->lock);
}

void progress_clock_end(struct progress_clock *clock) {
    if (!clock->running) return;
    pthread_mutex_lock(&clock->lock);
    clock->ended = true;
    pthread_cond_signal(&clock->changed);
    pthread_mutex_unlock(&clock->lock);
    pthread_join(clock->thread, NULL);
    pthread_cond_destroy(&clock->changed);
    pthread_mutex_destroy(&clock->lock);
    progress_end(&clock->progress);
}
