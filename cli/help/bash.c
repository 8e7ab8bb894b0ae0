/*
 * Completion for bash. The script is a small interpreter of the suggestions of common/args.h and the table
 * as two case statements.
 */
#include <stdio.h>

#include "help/formats.h"

static const char head[] =
    "# Completion of qkv for bash, made by `qkv help --format bash`. It needs nothing but bash.\n"
    "\n"
    "# The heads L.H of the model in use, as `qkv info` counts them.\n"
    "_qkv_heads() {\n"
    "    local i model=${QKV_MODEL-} name layers heads\n"
    "    for ((i = 2; i < COMP_CWORD - 1; i++)); do\n"
    "        [[ ${COMP_WORDS[i]} == --model ]] || continue\n"
    "        model=${COMP_WORDS[i + 1]}\n"
    "        [[ $model != '=' ]] || model=${COMP_WORDS[i + 2]}\n"
    "    done\n"
    "    \"${COMP_WORDS[0]}\" info -- ${model:+\"$model\"} 2>/dev/null |\n"
    "        while read -r name layers _ heads _; do\n"
    "            [[ $name == layers && $layers$heads =~ ^[0-9]+$ ]] || continue\n"
    "            for ((i = 0; i < layers * heads; i++)); do\n"
    "                echo \"$((i / heads)).$((i % heads))\"\n"
    "            done\n"
    "        done\n"
    "}\n"
    "\n"
    "# _qkv_suggest WHAT WORD: what may stand for a word. WHAT: a|b|c, words; /, folders; .npy, "
    "files\n"
    "# that end so; *, files; @heads; @commands.\n"
    "_qkv_suggest() {\n"
    "    local part parts\n"
    "    read -ra parts <<<\"$1\"\n"
    "    for part in \"${parts[@]}\"; do\n"
    "        case $part in\n"
    "        '*') compgen -f -- \"$2\" ;;\n"
    "        /) compgen -d -- \"$2\" ;;\n"
    "        .*) compgen -d -- \"$2\"; compgen -f -X \"!*$part\" -- \"$2\" ;;\n"
    "        @heads) compgen -W \"$(_qkv_heads)\" -- \"$2\" ;;\n"
    "        @commands) compgen -W \"$_qkv_commands\" -- \"$2\" ;;\n"
    "        *) compgen -W \"${part//|/ }\" -- \"$2\" ;;\n"
    "        esac\n"
    "    done | sort -u\n"
    "}\n"
    "\n";

static const char tail[] =
    "_qkv() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} i what\n"
    "    COMPREPLY=()\n"
    "    if ((COMP_CWORD == 1)); then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$_qkv_commands --help --version\" -- "
    "\"$word\")\n"
    "        return\n"
    "    fi\n"
    "    # --option=value comes in three words\n"
    "    if [[ $word == '=' ]]; then\n"
    "        word=\n"
    "    elif [[ $before == '=' ]]; then\n"
    "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        [[ ${COMP_WORDS[i]} != -- ]] || return\n"
    "    done\n"
    "    if what=$(_qkv_value \"${COMP_WORDS[1]}\" \"$before\"); then\n"
    "        :\n"
    "    elif [[ $word == -* ]] || ! what=$(_qkv_value \"${COMP_WORDS[1]}\" ''); then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$(_qkv_options \"${COMP_WORDS[1]}\")\" -- "
    "\"$word\")\n"
    "        return\n"
    "    fi\n"
    "    case $what in */* | *.* | '*') compopt -o filenames 2>/dev/null ;; esac\n"
    "    mapfile -t COMPREPLY < <(_qkv_suggest \"$what\" \"$word\")\n"
    "}\n"
    "complete -F _qkv qkv\n";

static void write_options(const struct cli_command *command) {
    printf("    %s) echo \"", command->name);
    const struct cli_option *option;
    for (int i = 0; (option = args_option(command, i)); i++) printf("%s ", option->name);
    puts("--help\" ;;");
}

/* A line for each option that takes a value; the words of the command, if any, stand under ''. */
static void write_values(const struct cli_command *command) {
    const struct cli_option *option;
    for (int i = 0; (option = args_option(command, i)); i++) {
        if (option->kind == ARG_FLAG) continue;
        const char *what = help_suggest(option);
        printf("    '%s %s') echo '%s' ;;\n", command->name, option->name, what ? what : "");
    }
    if (command->max_words > 0)
        printf("    '%s ') echo '%s' ;;\n", command->name,
               command->suggest ? command->suggest : "");
}

void help_bash(void) {
    fputs(head, stdout);
    const struct cli_command *command;
    fputs("_qkv_commands='", stdout);
    for (int i = 0; (command = cli_command_at(i)); i++) printf(i ? " %s" : "%s", command->name);
    puts("'\n\n# _qkv_options COMMAND\n_qkv_options() {\n    case $1 in");
    for (int i = 0; (command = cli_command_at(i)); i++) write_options(command);
    puts("    esac\n}\n\n# _qkv_value COMMAND OPTION: what the option takes; fails if it takes no "
         "value\n_qkv_value() {\n    case \"$1 $2\" in");
    for (int i = 0; (command = cli_command_at(i)); i++) write_values(command);
    puts("    *) return 1 ;;\n    esac\n}\n");
    fputs(tail, stdout);
}
