/*
 * bounded PACE_FILE SECONDS COMMAND [ARGUMENT...]: runs a test, and ends it with all its processes
 *
 * - when together they used more CPU time than SECONDS times the pace (limits.h), or
 * - when they hang: for IDLE_SECONDS times the pace they used almost no CPU time, and did not wait
 *   for a processor.
 *
 * Neither happens because the machine is slow or busy. The command gets the pace in QKV_TEST_PACE.
 * Its exit status is passed on; the last line says how much CPU time it used.
 *
 * The command's temporary files are in a folder of its own, TMPDIR, and where there is a /dev/shm
 * also in QKV_TEST_SHM (temporary.h). They are removed however it ends, and also where a signal
 * ends this program.
 *
 * All processes are descendants of this one, which adopts orphans (PR_SET_CHILD_SUBREAPER). The CPU
 * time of a process is in /proc/PID/stat, with that of the children that it has waited for.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PROCESSES = 4096, IDLE_SECONDS = 120, NOT_RUN = 126, ENDED_HERE = 124 };

/*
 * Of one processor, and of the looks that found one of ours running, or ready to. A loop that
 * sleeps and looks is below; on a machine with much to do, a test waits for a processor, and is
 * ready.
 */
static const double IDLE_SHARE = 0.05;

static const struct timespec LOOK_EVERY = { 0, 250000000 };

typedef struct process {
    pid_t pid, parent;
    char name[64];
    double seconds;
    bool is_ready; /* it runs, waits for a processor, or for the disk */
    bool is_ours;
} process;

static struct {
    double pace, most_seconds;
    pid_t command;
    int n;
    process processes[MOST_PROCESSES];
} run;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* "PID (NAME) STATE PARENT …": fields 14 to 17 are the ticks; NAME may have spaces and brackets. */
static bool read_process(const char *pid, process *p) {
    char path[64], line[1024];
    unsigned long ticks[4];
    char state;
    int parent;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *const in = fopen(path, "r");
    if (!in) return false; /* it has ended */
    const bool is_read = fgets(line, sizeof line, in) != NULL;
    fclose(in);
    char *const open = is_read ? strchr(line, '(') : NULL, *const close = strrchr(line, ')');
    if (!open || !close ||
        sscanf(close + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu", &state,
               &parent, &ticks[0], &ticks[1], &ticks[2], &ticks[3]) != 6)
        return false;
    *p = (process){ .pid = (pid_t)atoi(pid),
                    .parent = (pid_t)parent,
                    .is_ready = state == 'R' || state == 'D' };
    snprintf(p->name, sizeof p->name, "%.*s", (int)(close - open - 1), open + 1);
    for (int k = 0; k < 4; k++) p->seconds += (double)ticks[k] / (double)sysconf(_SC_CLK_TCK);
    return true;
}

/* Marks our descendants: parents may come after their children in /proc. */
static void mark_ours(void) {
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < run.n; i++)
            for (int k = -1; k < run.n && !run.processes[i].is_ours; k++)
                if (run.processes[i].parent == (k < 0 ? getpid() : run.processes[k].pid) &&
                    (k < 0 || run.processes[k].is_ours))
                    more = run.processes[i].is_ours = true;
    }
}

/* CPU seconds of the command and of all that it started, now in run.processes if they live. */
static double look(void) {
    struct rusage waited_for;
    getrusage(RUSAGE_CHILDREN, &waited_for);
    const struct timeval *const user = &waited_for.ru_utime, *const sys = &waited_for.ru_stime;
    double seconds =
        (double)(user->tv_sec + sys->tv_sec) + 1e-6 * (double)(user->tv_usec + sys->tv_usec);
    DIR *const folder = opendir("/proc");
    if (!folder) return seconds;
    run.n = 0;
    for (const struct dirent *e; (e = readdir(folder)) && run.n < MOST_PROCESSES;)
        run.n +=
            isdigit((unsigned char)*e->d_name) && read_process(e->d_name, &run.processes[run.n]);
    closedir(folder);
    mark_ours();
    for (int i = 0; i < run.n; i++)
        seconds += run.processes[i].is_ours ? run.processes[i].seconds : 0;
    return seconds;
}

static bool some_are_ready(void) {
    for (int i = 0; i < run.n; i++)
        if (run.processes[i].is_ours && run.processes[i].is_ready) return true;
    return false;
}

static void kill_ours(void) {
    for (int i = 0; i < run.n; i++) {
        const process *const p = &run.processes[i];
        if (!p->is_ours) continue;
        printf("limits: killed %ld (%s), after %.2f s of CPU\n", (long)p->pid, p->name, p->seconds);
        kill(p->pid, SIGKILL);
    }
}

/* Waits for what has ended. Has the command? Then *status is its own. */
static bool command_has_ended(int *status) {
    bool has_ended = false;
    int of_one;
    for (pid_t pid; (pid = waitpid(-1, &of_one, WNOHANG)) > 0;)
        if (pid == run.command) {
            has_ended = true;
            *status = of_one;
        }
    return has_ended;
}

static int exit_code(int status) {
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    printf("limits: ended by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return 128 + WTERMSIG(status);
}

/* A stretch of time, at the end of which a test that did nothing hangs. */
typedef struct window {
    double began, seconds; /* of CPU, by then */
    int n_looks, n_ready;
} window;

static bool hangs(const window *w, double seconds, double length) {
    return seconds - w->seconds < IDLE_SHARE * length && w->n_ready <= IDLE_SHARE * w->n_looks;
}

/* Until the command ends or has to be ended. */
static int watch(const sigset_t *signals) {
    const double length = IDLE_SECONDS * run.pace;
    window w = { .began = now() };
    int status;
    while (!command_has_ended(&status)) {
        const int signal = sigtimedwait(signals, NULL, &LOOK_EVERY);
        if (signal == SIGCHLD) continue;
        const double seconds = look();
        if (signal > 0) return kill_ours(), 128 + signal;
        w.n_looks++;
        w.n_ready += some_are_ready();
        if (seconds > run.most_seconds) {
            printf("limits: more than %.0f s of CPU\n", run.most_seconds);
            return kill_ours(), ENDED_HERE;
        }
        if (now() - w.began <= length) continue;
        if (hangs(&w, seconds, length)) {
            printf("limits: it hangs, for %.0f s now\n", length);
            return kill_ours(), ENDED_HERE;
        }
        w = (window){ .began = now(), .seconds = seconds };
    }
    return exit_code(status);
}

/* ---- Temporary files ------------------------------------------------------------------------- */

static struct folder {
    const char *variable, *parent;
    char path[512];
} folders[] = { { "TMPDIR", "/tmp", "" }, { "QKV_TEST_SHM", "/dev/shm", "" } };

enum { FOLDERS = sizeof folders / sizeof *folders, REMOVES = 20, OPEN_FILES = 16 };

/* Without a folder the command has the variable that this program has, or none. */
static void make_folders(void) {
    const char *const given = getenv("TMPDIR");
    if (given && *given) folders[0].parent = given;
    for (int i = 0; i < FOLDERS; i++) {
        struct folder *const f = &folders[i];
        const int n = snprintf(f->path, sizeof f->path, "%s/qkv-test-XXXXXX", f->parent);
        if (n >= (int)sizeof f->path || !mkdtemp(f->path))
            *f->path = '\0';
        else
            setenv(f->variable, f->path, 1);
    }
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at) {
    (void)status, (void)type, (void)at;
    remove(path);
    return 0;
}

/* What the command should have removed is told, one name of each folder. */
static void tell_left(const char *path) {
    DIR *const folder = opendir(path);
    for (const struct dirent *e; folder && (e = readdir(folder));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        printf("limits: left behind: %s/%s\n", path, e->d_name);
        break;
    }
    if (folder) closedir(folder);
}

/* Again where what was killed has written meanwhile. */
static void remove_folders(void) {
    for (int i = 0; i < FOLDERS; i++) tell_left(folders[i].path);
    for (int i = 0; i < FOLDERS; i++)
        for (int n = 0; *folders[i].path && n < REMOVES; n++) {
            nftw(folders[i].path, remove_one, OPEN_FILES, FTW_DEPTH | FTW_PHYS);
            if (access(folders[i].path, F_OK) != 0) break;
            nanosleep(&(struct timespec){ .tv_nsec = LOOK_EVERY.tv_nsec / 4 }, NULL);
        }
}

/* ---------------------------------------------------------------------------------------------- */

static bool read_arguments(int argc, char **argv) {
    FILE *const in = argc > 3 ? fopen(argv[1], "r") : NULL;
    const bool is_read = in && fscanf(in, "%lf", &run.pace) == 1 && run.pace > 0;
    if (in) fclose(in);
    run.most_seconds = is_read ? run.pace * strtod(argv[2], NULL) : 0;
    return run.most_seconds > 0;
}

int main(int argc, char **argv) {
    static const int ends[] = { SIGCHLD, SIGHUP, SIGINT, SIGTERM };
    char pace[32];
    sigset_t signals, before;
    if (!read_arguments(argc, argv))
        return fputs("usage: bounded PACE_FILE SECONDS COMMAND [ARGUMENT...]\n", stderr), NOT_RUN;
    snprintf(pace, sizeof pace, "%.4f", run.pace);
    setenv("QKV_TEST_PACE", pace, 1);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&signals);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) sigaddset(&signals, ends[i]);
    sigprocmask(SIG_BLOCK, &signals, &before);
    make_folders();
    run.command = fork();
    if (run.command == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        execvp(argv[3], argv + 3);
        return perror(argv[3]), NOT_RUN;
    }
    if (run.command < 0) return perror("fork"), remove_folders(), NOT_RUN;
    const int code = watch(&signals);
    remove_folders();
    printf("limits: %.2f s of CPU, at most %.0f\n", look(), run.most_seconds);
    return code;
}
