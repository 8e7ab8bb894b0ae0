/*
 * qkv: the tool. From the command line to a command (commands.c), and the exit code.
 *
 * Results go to standard output, everything else to standard error. Exit codes: 0; 1, it failed; 2,
 * the command line is wrong; after a signal, that signal (129, 130, 143 in a shell). A closed pipe
 * is a quiet failure. The locale is never set, so numbers have a point.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/journal.h"
#include "common/os.h"
#include "common/ranks.h"

static int run(const struct cli_command *command, int argc, char **argv) {
    void *options = calloc(1, command->options_bytes);
    if (!options) return cli_fail("out of memory");
    bool help = false;
    int n_words = 0;
    int code = args_parse(command, argc, argv, options, &n_words, &help);
    if (code == EXIT_OK && help) {
        code = help_print(command);
    } else if (code == EXIT_OK && n_words < command->min_words &&
               !(((struct cli_common *)options)->jsonl)) {
        code = cli_usage(command, "%s is missing", command->words);
    } else if (code == EXIT_OK) {
        code = command->run(command, options, n_words, argv);
    }
    free(options);
    return code;
}

static int dispatch(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) return cli_usage(NULL, "a command is missing");
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return help_print(NULL);
    if (strcmp(name, "--version") == 0) {
        printf("qkv %s\n", qkv_version());
        return EXIT_OK;
    }
    const struct cli_command *command = cli_command_find(name);
    if (command) return run(command, argc - 2, argv + 2);
    const char *nearest = cli_command_nearest(name);
    if (nearest) return cli_usage(NULL, "unknown command '%s'; did you mean '%s'?", name, nearest);
    return cli_usage(NULL, "unknown command '%s'", name);
}

int main(int argc, char **argv) {
    cli_commands = cli_all_commands;
    os_begin(&argc, &argv);
    if (argc > 1) ranks_hand_over(argv);
    cli_words = argv + (argc > 0);
    int code = dispatch(argc, argv);
    const bool written = cli_flush();
    if (cli_keeps)
        return EXIT_OK; /* the first rank has the job's exit code, and mpirun ends the others */
    if (cli_cancelled) {
        fputs("qkv: interrupted\n", stderr);
        os_end_by(cli_signal());
    }
    if (!written) {
        if (cli_output_reason() != EPIPE && !os_reader_gone())
            cli_fail("standard output: %s", strerror(cli_output_reason()));
        if (code == EXIT_OK) code = EXIT_FAILED;
    }
    return code;
}
