/*
 * `qkv help --format`: completions for three shells, and those parts of manual pages that follow
 * from the table of commands.
 */
#ifndef QKV_CLI_HELP_FORMATS_H
#define QKV_CLI_HELP_FORMATS_H

#include "common/cli.h"

#define HELP_TAGLINE "exact attention, and what it looks at"

/* The help text of a command, and of one of its options; valid until the next call. */
const char *help_details(const struct cli_command *command);
const char *help_of(const struct cli_command *command, const struct cli_option *option);

/*
 * The length of the first clause of an option's help, which ends before " (", "; ", ": " or ". ".
 */
int help_brief_length(const char *help);

/* The suggestions for an option's value, in the notation of common/args.h; NULL: unknown. */
const char *help_suggest(const struct cli_option *option);

/* Parsed suggestions. text: "a b c", "heads" for "@heads", ".npy .safetensors", or "". */
struct help_values {
    enum { VALUES_UNKNOWN, VALUES_WORDS, VALUES_NAMED, VALUES_FOLDERS, VALUES_FILES } kind;
    char text[600]; /* VALUES_FILES with "": any file */
};
struct help_values help_values_of(const char *suggest);

/* Writes `length` bytes of text, with `escape` before each character that is in `special`. */
void help_write_escaped(const char *text, int length, const char *special, const char *escape);

/*
 * Writes a template (common/text.h); for a hole it calls the part of that name for each command.
 * The list of parts ends with a NULL name.
 */
struct help_part {
    const char *name;
    void (*write)(const struct cli_command *command);
};
void help_write_parts(const char *text, const struct help_part *parts);

/* Title, NAME, SYNOPSIS and OPTIONS of qkv-COMMAND(1); command NULL: of qkv(1), with COMMANDS. */
void help_scdoc(const struct cli_command *command);

/* Completions, and their templates (cli/texts.S). */
extern const char help_bash_text[], help_zsh_text[], help_fish_text[];
void help_bash(void);
void help_zsh(void);
void help_fish(void);

#endif
