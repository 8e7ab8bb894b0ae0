/* Completion for fish: a `complete` per command and option, from the table of commands. */
#include <stdio.h>
#include <string.h>

#include "help/formats.h"

static const char head[] =
    "# Completion of qkv for fish, made by `qkv help --format fish`.\n"
    "\n"
    "# True while no command is there yet; __qkv_command NAME: while that command is there.\n"
    "function __qkv_no_command\n"
    "    test (count (commandline -opc)) -eq 1\n"
    "end\n"
    "\n"
    "function __qkv_command\n"
    "    set -l words (commandline -opc)\n"
    "    test (count $words) -gt 1; and test $words[2] = $argv[1]\n"
    "end\n"
    "\n"
    "# The heads L.H of the model in use, as `qkv info` counts them.\n"
    "function __qkv_heads\n"
    "    set -l words (commandline -opc)\n"
    "    set -l model $QKV_MODEL\n"
    "    for i in (seq 2 (count $words))\n"
    "        switch $words[$i]\n"
    "            case --model\n"
    "                set model $words[(math $i + 1)]\n"
    "            case '--model=*'\n"
    "                set model (string replace -- --model= '' $words[$i])\n"
    "        end\n"
    "    end\n"
    "    set -l sizes (qkv info -- $model 2>/dev/null | string match -r '^layers +(\\d+) of "
    "(\\d+)')\n"
    "    test (count $sizes) -eq 3; or return\n"
    "    for layer in (seq 0 (math $sizes[2] - 1))\n"
    "        for head in (seq 0 (math $sizes[3] - 1))\n"
    "            echo $layer.$head\n"
    "        end\n"
    "    end\n"
    "end\n"
    "\n"
    "# __qkv_files ENDING...: folders, and files that end so.\n"
    "function __qkv_files\n"
    "    set -l word (commandline -ct | string replace -r -- '^--[^=]*=' '')\n"
    "    set -l endings (string escape --style=regex -- $argv)\n"
    "    complete -C \"__qkv_any_file $word\" | string match -r -- \"^.*(?:/|\"(string join '|' "
    "$endings)\")(?:\\t.*)?\\$\"\n"
    "end\n"
    "\n"
    "complete -c qkv -f\n"
    "complete -c qkv -n __qkv_no_command -l help -d 'the list of commands'\n"
    "complete -c qkv -n __qkv_no_command -l version -d 'the version'\n";

static void write_quoted(const char *text, int length) {
    putchar('\'');
    help_write_escaped(text, length, "'\\", "\\");
    putchar('\'');
}

/* " -a '…'": words, or the output of a function. */
static void write_values(const char *suggest) {
    const struct help_values values = help_values_of(suggest);
    switch (values.kind) {
    case VALUES_UNKNOWN: break;
    case VALUES_WORDS: printf(" -a '%s'", values.text); break;
    case VALUES_NAMED: printf(" -a '(__qkv_%s)'", values.text); break;
    case VALUES_FOLDERS: fputs(" -a '(__fish_complete_directories)'", stdout); break;
    case VALUES_FILES:
        if (*values.text)
            printf(" -k -a '(__qkv_files %s)'", values.text);
        else
            fputs(" -a '(__fish_complete_path)'", stdout);
        break;
    }
}

static void write_option(const struct cli_command *command, const struct cli_option *option) {
    const char *help = help_of(command, option);
    const bool is_long = option->name[1] == '-';
    printf("complete -c qkv -n '__qkv_command %s' -%c %s", command->name, is_long ? 'l' : 's',
           option->name + 1 + is_long);
    if (option->kind != ARG_FLAG) {
        fputs(" -x", stdout);
        write_values(help_suggest(option));
    }
    fputs(" -d ", stdout);
    write_quoted(help, help_brief_length(help));
    putchar('\n');
}

static void write_command(const struct cli_command *command) {
    putchar('\n');
    const struct cli_option *option;
    for (int i = 0; (option = args_option(command, i)); i++) write_option(command, option);
    if (command->suggest) {
        printf("complete -c qkv -n '__qkv_command %s'", command->name);
        write_values(command->suggest);
        putchar('\n');
    }
    printf("complete -c qkv -n '__qkv_command %s' -l help -d 'options and what they mean'\n",
           command->name);
}

void help_fish(void) {
    fputs(head, stdout);
    const struct cli_command *command;
    for (int i = 0; (command = cli_command_at(i)); i++) {
        printf("complete -c qkv -n __qkv_no_command -a %s -d ", command->name);
        write_quoted(command->summary, help_brief_length(command->summary));
        putchar('\n');
    }
    puts("\nfunction __qkv_commands");
    for (int i = 0; (command = cli_command_at(i)); i++) printf("    echo %s\n", command->name);
    puts("end");
    for (int i = 0; (command = cli_command_at(i)); i++) write_command(command);
}
