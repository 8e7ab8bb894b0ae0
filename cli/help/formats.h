/*
 * What `qkv help --format` writes for other programs: completions of three shells, and the parts of
 * a manual page that the table of commands decides. All of it comes from that table.
 */
#ifndef QKV_CLI_HELP_FORMATS_H
#define QKV_CLI_HELP_FORMATS_H

#include "common/cli.h"

#define HELP_TAGLINE "exact attention, and what it looks at"

/* The text of a command, and of one of its options, which holds until the next call. */
const char *help_details(const struct cli_command *command);
const char *help_of(const struct cli_command *command, const struct cli_option *option);

/*
 * The option's first clause, for one line beside it: where its help has " (", "; ", ": " or ". ".
 */
int help_brief_length(const char *help);

/* What may stand for an option's value, in the language of common/args.h; NULL: nothing known. */
const char *help_suggest(const struct cli_option *option);

/* A suggestion taken apart. text: "a b c", "heads" of "@heads", ".npy .safetensors", or "". */
struct help_values {
    enum { VALUES_UNKNOWN, VALUES_WORDS, VALUES_NAMED, VALUES_FOLDERS, VALUES_FILES } kind;
    char text[600]; /* VALUES_FILES with "": any file */
};
struct help_values help_values_of(const char *suggest);

/* Writes text, with escape before each character of special. */
void help_write_escaped(const char *text, int length, const char *special, const char *escape);

/* Fills each hole of a text with what its part writes of every command; the list ends with NULL. */
struct help_part {
    const char *name;
    void (*write)(const struct cli_command *command);
};
void help_write_parts(const char *text, const struct help_part *parts);

/* Title, NAME, SYNOPSIS and OPTIONS of qkv-COMMAND(1); of qkv(1), with COMMANDS, if it is NULL. */
void help_scdoc(const struct cli_command *command);

/* Completions, and their texts (cli/texts.S), with holes. */
extern const char help_bash_text[], help_zsh_text[], help_fish_text[];
void help_bash(void);
void help_zsh(void);
void help_fish(void);

#endif
