/*
 * The command line of the tool: each line of the input is an argument, the first one the command.
 * Every command's options are parsed; `attend` then runs, on files of our own in the place of those
 * that the input names, which are never touched. Takes the place of cli/main.c.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/attend/attend.h"
#include "cli/common/term.h"
#include "fuzz/fuzz.h"

enum { MOST_ARGUMENTS = 64, MOST_BYTES = 4096, PATH_BYTES = 64 };

/* ---- Messages -------------------------------------------------------------------------------- */

/* The first message of a run is kept, not said. What it would say steers no terminal. */
static void check_message(void) {
    char *const escaped = term_escape(cli_kept, strlen(cli_kept));
    FUZZ_CHECK(escaped);
    for (const char *c = escaped; *c; c++) FUZZ_CHECK((unsigned char)*c >= ' ' && *c != 0x7f);
    free(escaped);
}

/* ---- Files of our own ------------------------------------------------------------------------ */

enum { N_OUTPUTS = 8 };
enum { FILE_Q, FILE_KV, FILE_BOOL, FILE_ADD, FILE_INTEGERS, FILE_X, FILE_W, FILE_BIAS, N_FILES };

static char folder[PATH_BYTES];
static char inputs[N_FILES][PATH_BYTES]; /* open and without a name: nothing stays behind */
static char outputs[N_OUTPUTS][PATH_BYTES];

static void make_folder(void) {
    strcpy(folder, "/dev/shm/qkv-fuzz-XXXXXX");
    if (mkdtemp(folder)) return;
    strcpy(folder, "/tmp/qkv-fuzz-XXXXXX");
    FUZZ_CHECK(mkdtemp(folder));
}

static void make_file(int file, qkv_array_type type, int rank, int64_t b, int64_t h, int64_t l,
                      int64_t d) {
    static uint8_t bytes[4096] = { 1, 0, 1 };
    const int64_t shape[4] = { b, h, l, d };
    qkv_array array = { .type = type, .rank = rank, .data = bytes, .n_elems = 1 };
    char path[2 * PATH_BYTES];
    for (int i = 0; i < rank; i++) array.n_elems *= array.shape[i] = shape[4 - rank + i];
    snprintf(path, sizeof path, "%s/input.npy", folder);
    FUZZ_CHECK(qkv_array_write(path, &array, NULL) == QKV_OK);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && unlink(path) == 0);
    snprintf(inputs[file], PATH_BYTES, "/proc/self/fd/%d", fd);
}

static void make_files(void) {
    make_folder();
    make_file(FILE_Q, QKV_ARRAY_F32, 4, 2, 2, 3, 4);
    make_file(FILE_KV, QKV_ARRAY_F32, 4, 2, 1, 5, 4);
    make_file(FILE_BOOL, QKV_ARRAY_BOOL, 2, 1, 1, 3, 5);
    make_file(FILE_ADD, QKV_ARRAY_F32, 2, 1, 1, 1, 4);
    make_file(FILE_INTEGERS, QKV_ARRAY_I64, 2, 1, 1, 3, 5);
    make_file(FILE_X, QKV_ARRAY_F32, 3, 1, 2, 3, 4);
    make_file(FILE_W, QKV_ARRAY_F32, 2, 1, 1, 4, 4);
    make_file(FILE_BIAS, QKV_ARRAY_F32, 1, 1, 1, 1, 4);
    FUZZ_CHECK(rmdir(folder) == 0);
    FUZZ_CHECK(freopen("/dev/null", "w", stdout)); /* of --json and --help */
}

/* A file that was named becomes one of ours: the usual one, or by its last letter another. */
static void replace(const char **path, int usual) {
    if (!*path) return;
    const int last = (*path)[strlen(*path) - 1] - '0';
    *path = inputs[last >= 0 && last < N_FILES ? last : usual];
}

static void replace_output(const char **path, int index) {
    if (!*path) return;
    snprintf(outputs[index], PATH_BYTES, "%.40s/%d.npy", folder, index);
    *path = outputs[index];
}

/* ---- A command line -------------------------------------------------------------------------- */

/* Names of files are judged first: as they were given, then as ours. */
static void attend(struct attend_options *options) {
    struct attend_rules rules;
    if (attend_rules_parse(&cmd_attend, options, &rules) != EXIT_OK) return;
    attend_rules_free(&rules);
    make_folder();
    replace(&options->q, FILE_Q);
    replace(&options->k, FILE_KV);
    replace(&options->v, FILE_KV);
    replace(&options->x, FILE_X);
    replace(&options->x_kv, FILE_X);
    replace(&options->wq, FILE_W);
    replace(&options->wk, FILE_W);
    replace(&options->wv, FILE_W);
    replace(&options->wo, FILE_W);
    replace(&options->bq, FILE_BIAS);
    replace(&options->bk, FILE_BIAS);
    replace(&options->bv, FILE_BIAS);
    replace(&options->bo, FILE_BIAS);
    replace(&options->mask, FILE_BOOL);
    replace(&options->mask_bits, FILE_INTEGERS);
    replace(&options->segments, FILE_INTEGERS);
    replace(&options->cu_seqlens, FILE_INTEGERS);
    replace(&options->cu_seqlens_k, FILE_INTEGERS);
    replace(&options->block_mask, FILE_BOOL);
    replace(&options->segments_q, FILE_INTEGERS);
    replace(&options->alibi, FILE_ADD);
    replace(&options->sink, FILE_ADD);
    replace(&options->grad_out, FILE_Q);
    replace(&options->grad_lse, FILE_ADD);
    replace_output(&options->o, 0);
    replace_output(&options->lse, 1);
    replace_output(&options->dq, 2);
    replace_output(&options->dk, 3);
    replace_output(&options->dv, 4);
    replace_output(&options->dsink, 5);
    replace_output(&options->dmask, 6);
    replace_output(&options->stats, 7);
    options->common.quiet = true;
    options->common.verbose = false;
    if (options->common.threads.value > 2) options->common.threads.value = 2;
    const int code = cmd_attend.run(&cmd_attend, options, 0, NULL);
    FUZZ_CHECK(code == EXIT_OK || code == EXIT_FAILED || code == EXIT_USAGE);
    for (int i = 0; i < N_OUTPUTS; i++) unlink(outputs[i]);
    FUZZ_CHECK(rmdir(folder) == 0); /* nothing else was written */
}

static void run(const struct cli_command *command, int argc, char **argv) {
    void *const options = calloc(1, command->options_bytes);
    bool help = false;
    int n_words = 0;
    FUZZ_CHECK(options);
    *cli_kept = '\0';
    const int code = args_parse(command, argc, argv, options, &n_words, &help);
    FUZZ_CHECK(code == EXIT_OK || code == EXIT_USAGE);
    if (code == EXIT_OK && !help) FUZZ_CHECK(n_words >= 0 && n_words <= command->max_words);
    if (code == EXIT_OK && help) help_print(command);
    if (code == EXIT_OK && !help && command == &cmd_attend) attend(options);
    FUZZ_CHECK(code == EXIT_OK || *cli_kept);
    check_message();
    free(options);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    char *argv[MOST_ARGUMENTS];
    int argc = 0;
    if (!inputs[0][0]) make_files();
    cli_commands = cli_all_commands;
    cli_keeps = true;
    if (n_bytes > MOST_BYTES) n_bytes = MOST_BYTES;
    char *const text = fuzz_alloc(n_bytes + 1);
    memcpy(text, bytes, n_bytes);
    text[n_bytes] = '\0';
    char *rest = text;
    while (rest && argc < MOST_ARGUMENTS) { /* each with its own end, for ASan to watch */
        argv[argc] = strdup(strsep(&rest, "\n"));
        FUZZ_CHECK(argv[argc++]);
    }
    char *words[MOST_ARGUMENTS]; /* args_parse moves them */
    memcpy(words, argv, (size_t)argc * sizeof *argv);
    const struct cli_command *const command = cli_command_find(argv[0]);
    run(command ? command : &cmd_attend, argc - 1, words + 1);
    for (int i = 0; i < argc; i++) free(argv[i]);
    free(text);
    return 0;
}
