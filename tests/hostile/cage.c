/* The cage: see cage.h. */
#include "hostile/cage.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "limits/limits.h"
#include "limits/temporary.h"
#include "sanitizers.h"

enum { MAX_CASES = 512 };

static const rlim_t most_bytes = 100000000;
/* Reference seconds (limits/limits.h): ten times what any case takes. */
static const double most_seconds = 5;

const int hostile_is_forked = !UNDER_ASAN && !UNDER_TSAN;

/* What a case says, in memory that parent and child share. */
typedef struct verdict {
    int is_said;
    qkv_status status;
    qkv_error error;
    rlim_t most_bytes; /* of address space, beyond what the case began with; 0: not known */
} verdict;

static struct {
    const hostile_family *family;
    verdict *shared;
    int n_cases;
    double seconds;
    rlim_t bytes;
    char slowest[200], largest[200];
} run;

static char folder[TEMPORARY_PATH];

const char *hostile_path(char path[512], const char *name) {
    snprintf(path, 512, "%s/%s", folder, name);
    return path;
}

/* ---- One case -------------------------------------------------------------------------------- */

static void limit(int resource, rlim_t most) {
    const struct rlimit both = { most, most };
    if (setrlimit((__rlimit_resource_t)resource, &both) != 0) _exit(99);
}

/* Bytes of address space that this process has ("VmSize:"), or has had at most ("VmPeak:"). */
static rlim_t address_space(const char *field) {
    char line[256];
    unsigned long long kibibytes = 0;
    FILE *const in = fopen("/proc/self/status", "r");
    if (!in) _exit(98);
    while (fgets(line, sizeof line, in))
        if (strncmp(line, field, strlen(field)) == 0)
            sscanf(line + strlen(field), "%llu", &kibibytes);
    fclose(in);
    return (rlim_t)kibibytes * 1024;
}

static void attempt_here(hostile_attempt *attempt, const void *input, verdict *said) {
    said->status = attempt(input, &said->error);
    said->is_said = 1;
}

static void be_caged(hostile_attempt *attempt, const void *input) {
    const struct rlimit no_core = { 0, 0 };
    signal(SIGSEGV, SIG_DFL); /* cmocka would go on in the child */
    signal(SIGABRT, SIG_DFL);
    setrlimit(RLIMIT_CORE, &no_core);
    const rlim_t before = address_space("VmSize:");
    limit(RLIMIT_AS, before + most_bytes);
    limit(RLIMIT_CPU, (rlim_t)ceil(limit_seconds(most_seconds)));
    attempt_here(attempt, input, run.shared);
    run.shared->most_bytes = address_space("VmPeak:") - before;
    exit(0); /* not _exit: where coverage is measured, children count too */
}

static void note_usage(const char *label, const struct rusage *usage) {
    const double seconds = (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
                           1e-6 * (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
    if (seconds > run.seconds) {
        run.seconds = seconds;
        snprintf(run.slowest, sizeof run.slowest, "%s", label);
    }
    if (run.shared->most_bytes > run.bytes) {
        run.bytes = run.shared->most_bytes;
        snprintf(run.largest, sizeof run.largest, "%s", label);
    }
}

static void run_caged(const char *label, hostile_attempt *attempt, const void *input) {
    struct rusage usage;
    int ended = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) be_caged(attempt, input);
    assert_true(child > 0);
    assert_int_equal(wait4(child, &ended, 0, &usage), child);
    note_usage(label, &usage);
    if (WIFSIGNALED(ended))
        fail_msg("%s: killed by signal %d%s", label, WTERMSIG(ended),
                 WTERMSIG(ended) == SIGXCPU || WTERMSIG(ended) == SIGKILL
                     ? ", after more CPU than a case may take"
                     : "");
    assert_int_equal(WEXITSTATUS(ended), 0);
}

static void check_message(const char *label, const char *message) {
    assert_non_null(memchr(message, '\0', sizeof run.shared->error.message));
    if (strlen(message) < 10) fail_msg("%s: \"%s\" says too little", label, message);
    for (const char *c = message; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            fail_msg("%s: byte 0x%02x in its message", label, (unsigned)*c);
}

void hostile_expect(const char *label, hostile_attempt *attempt, const void *input,
                    qkv_status status, const char *says) {
    verdict *const said = run.shared;
    memset(said, 0, sizeof *said);
    run.n_cases++;
    if (hostile_is_forked)
        run_caged(label, attempt, input);
    else
        attempt_here(attempt, input, said);
    assert_true(said->is_said);
    if (said->status != status || !strstr(said->error.message, says))
        fail_msg("%s: %s \"%s\", expected %s \"%s\"", label, qkv_status_name(said->status),
                 said->error.message, qkv_status_name(status), says);
    if (status != QKV_OK) check_message(label, said->error.message);
}

/* ---- A table of files ------------------------------------------------------------------------ */

void hostile_make_text(FILE *out, const hostile_file *file) {
    fwrite(file->text, 1, file->n_text, out);
}

void hostile_make_repeat(FILE *out, const hostile_file *file) {
    fputs(file->repeat->prefix, out);
    for (int r = 0; r < file->repeat->n; r++) fputs(file->repeat->piece, out);
    fputs(file->repeat->suffix, out);
}

static qkv_status read_path(const void *path, qkv_error *error) {
    return run.family->read(path, error);
}

static void test_file(void **state) {
    const hostile_file *const file = *state;
    char path[512], label[200];
    FILE *const out = fopen(hostile_path(path, run.family->file_name), "wb");
    assert_non_null(out);
    file->make(out, file);
    assert_int_equal(fclose(out), 0);
    snprintf(label, sizeof label, "%s %s", file->id, file->what);
    hostile_expect(label, read_path, path, file->status, file->says);
    if (file->status != QKV_OK && !strstr(run.shared->error.message, folder))
        fail_msg("%s: \"%s\" does not name the file", label, run.shared->error.message);
    unlink(path);
}

static int make_folder(void **state) {
    run.shared =
        mmap(NULL, sizeof *run.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)state; /* cmocka would put it in the place of every test's own */
    if (!mkdtemp(temporary("qkv-hostile", folder)) || run.shared == MAP_FAILED) return -1;
    if (run.family->begin) run.family->begin();
    return 0;
}

/* Fails if a file was left. */
static int remove_folder(void **state) {
    (void)state;
    if (run.family->end) run.family->end();
    return rmdir(folder);
}

int hostile_main(const hostile_family *family, const struct CMUnitTest *others, size_t n_others) {
    static struct CMUnitTest tests[MAX_CASES];
    static char labels[MAX_CASES][200];
    if (family->n_files + n_others > MAX_CASES) return fputs("MAX_CASES is too small\n", stderr), 1;
    run.family = family;
    for (size_t f = 0; f < family->n_files; f++) {
        const hostile_file *const file = &family->files[f];
        snprintf(labels[f], sizeof labels[f], "%s %s", file->id, file->what);
        tests[f] = (struct CMUnitTest){ .name = labels[f],
                                        .test_func = test_file,
                                        .initial_state = (void *)(uintptr_t)file };
    }
    for (size_t o = 0; o < n_others; o++) {
        tests[family->n_files + o] = others[o];
        if (!others[o].initial_state) tests[family->n_files + o].initial_state = folder;
    }
    const int failed = _cmocka_run_group_tests(family->name, tests, family->n_files + n_others,
                                               make_folder, remove_folder);
    printf("%s: %d cases", family->name, run.n_cases);
    if (hostile_is_forked)
        printf("; most CPU %.3f s (%s), most memory %.1f MB (%s)", run.seconds, run.slowest,
               (double)run.bytes * 1e-6, run.largest);
    puts("");
    return failed;
}
