#include "common/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/term.h"
#include "core/os.h"

char cli_kept[CLI_MOST_MESSAGE];
bool cli_keeps;
int cli_cancelled;

/*
 * Names of files and words of the command line may hold anything: what could steer a terminal is
 * escaped. Of messages that are kept the first stays, which is the reason.
 */
static void say(const char *who, const char *format, va_list list) {
    char text[CLI_MOST_MESSAGE];
    const int n = snprintf(text, sizeof text, "%s", who);
    vsnprintf(text + n, sizeof text - (size_t)n, format, list);
    if (cli_keeps) {
        if (!*cli_kept) memcpy(cli_kept, text, sizeof text);
        return;
    }
    char *escaped = term_escape(text, strlen(text));
    fprintf(stderr, "%s\n", escaped ? escaped : "out of memory");
    free(escaped);
}

int cli_fail(const char *format, ...) {
    va_list list;
    va_start(list, format);
    say("qkv: ", format, list);
    va_end(list);
    return EXIT_FAILED;
}

int cli_usage(const struct cli_command *command, const char *format, ...) {
    va_list list;
    char who[64] = "qkv: ";
    if (command) snprintf(who, sizeof who, "qkv %s: ", command->name);
    va_start(list, format);
    say(who, format, list);
    va_end(list);
    if (cli_keeps) return EXIT_USAGE;
    fprintf(stderr, command ? "Try 'qkv help %s'.\n" : "Try 'qkv help'.\n",
            command ? command->name : "");
    return EXIT_USAGE;
}

int cli_status(qkv_status status, const qkv_error *error) {
    return status == QKV_OK ? EXIT_OK : cli_fail("%s", error->message);
}

void cli_note(bool quiet, const char *format, ...) {
    if (quiet || cli_keeps) return;
    va_list list;
    va_start(list, format);
    say("", format, list);
    va_end(list);
}

static int output_reason; /* errno of the first failure of standard output */

bool cli_flush(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return true;
    if (!output_reason) output_reason = errno;
    return false;
}

int cli_output_reason(void) { return output_reason; }

double cli_seconds(void) { return qkvi_os_seconds(); }
