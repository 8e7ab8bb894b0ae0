/*
 * Parses a command line by the tables of args.h. Long options (`--x VALUE`, `--x=VALUE`), the
 * short -o, -v and -h, `--` to end them, words and options in any order, the last of a repeated
 * option wins. A word that begins with '-' is never taken for a text: that takes `--` before it.
 */
#include "common/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/number.h"
#include "common/rules.h"

#define OPTIONS struct cli_common

static const struct {
    unsigned takes;
    struct cli_option option;
} common_options[] = {
    { TAKES_MODEL, OPTION_FILE("--model", "DIR|NAME", model, "/ .safetensors .gguf") },
    { TAKES_MODEL | TAKES_FINITE, OPTION_FLAG("--check-finite", check_finite) },
    { TAKES_WEIGHTS, OPTION_CHOICE("--weights", "file|f32|bf16|int8", weights) },
    { TAKES_HEAD, OPTION_FILE("--head", "L.H", head, "@heads") },
    { TAKES_HEAD, OPTION_INT("--layer", "L", layer, 0, INT32_MAX) },
    { TAKES_TERM, OPTION_CHOICE("--theme", "light|dark", theme) },
    { TAKES_TERM, OPTION_CHOICE("--color", "auto|always|never", color) },
    { TAKES_TERM, OPTION_FLAG("--ascii", ascii) },
    { TAKES_TRUNCATE, OPTION_FLAG("--truncate", truncate) },
    { TAKES_IDS, OPTION_FLAG("--ids", ids) },
    { TAKES_JSON, OPTION_FLAG("--json", json) },
    { TAKES_JSONL, OPTION_FLAG("--jsonl", jsonl) },
    { TAKES_COMPUTE, OPTION_INT("--threads", "N", threads, 1, 1024) },
    { TAKES_COMPUTE, OPTION_FILE("--isa", "NAME", isa, "scalar|avx2|avx512|avx512bf16|neon") },
    { TAKES_QUIET, OPTION_FLAG("--quiet", quiet) },
    { TAKES_VERBOSE, OPTION_FLAG("-v", verbose) },
};

static const struct cli_option *own_option(const struct cli_command *command, int index) {
    for (int i = 0; i < command->n_options; i++) {
        const struct cli_option *const option = &command->options[i], *rule;
        if (option->kind != ARG_RULES && index-- == 0) return option;
        for (int r = 0; option->kind == ARG_RULES && (rule = rules_option(option->argument, r));
             r++)
            if (index-- == 0) return rule;
    }
    return NULL;
}

int args_n_own(const struct cli_command *command) {
    int n = 0;
    while (own_option(command, n)) n++;
    return n;
}

const struct cli_option *args_option(const struct cli_command *command, int index) {
    const struct cli_option *const own = own_option(command, index);
    if (own) return own;
    index -= args_n_own(command);
    for (int i = 0; i < CLI_COUNT(common_options); i++)
        if ((command->takes & common_options[i].takes) && index-- == 0)
            return &common_options[i].option;
    return NULL;
}

bool args_takes(const struct cli_command *command, const char *name) {
    const struct cli_option *option;
    for (int i = 0; (option = args_option(command, i)); i++)
        if (strcmp(option->name, name) == 0) return true;
    return false;
}

void args_apply(const struct cli_command *command, const void *options, void *into) {
    const struct cli_option *option;
    for (int i = 0; (option = args_option(command, i)); i++) {
        const void *const field = (const char *)options + option->offset;
        const struct arg_int *const number = field;
        const struct arg_real *const real = field;
        char *const target = (char *)into + option->into;
        if (option->into && option->kind == ARG_INT && number->set)
            memcpy(target, &number->value, sizeof number->value);
        if (option->into && option->kind == ARG_REAL && real->set)
            memcpy(target, &real->value, sizeof real->value);
    }
}

/*
 * Edits (insert, delete, replace) that turn a into b; words longer than 31 bytes are far from
 * everything.
 */
static int edit_distance(const char *a, const char *b) {
    const int n = (int)strlen(a), m = (int)strlen(b);
    int row[32];
    if (n > 31 || m > 31) return 99;
    for (int j = 0; j <= m; j++) row[j] = j;
    for (int i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[m];
}

const char *args_nearest(const char *word, const char *const *names) {
    const char *nearest = NULL;
    int least = (int)strlen(word) / 3 + 1;
    for (; *names; names++) {
        const int distance = edit_distance(word, *names);
        if (distance <= least && distance < (int)strlen(*names) - 1) {
            least = distance - 1;
            nearest = *names;
        }
    }
    return nearest;
}

static int unknown_option(const struct cli_command *command, const char *word) {
    const char *names[64] = { "--help" };
    int n = 1;
    const struct cli_option *option;
    for (int i = 0; n < CLI_COUNT(names) - 1 && (option = args_option(command, i)); i++)
        if (option->name[1] == '-') names[n++] = option->name;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    const char *nearest = args_nearest(name, names);
    if (nearest)
        return cli_usage(command, "unknown option '%s'; did you mean '%s'?", name, nearest);
    return cli_usage(command, "unknown option '%s' ('--' goes before a text that begins with '-')",
                     name);
}

/* The place of a word in "light|dark", or -1. */
static int choice_index(const char *choices, const char *word) {
    for (int i = 0;; i++) {
        const size_t length = strcspn(choices, "|");
        if (strlen(word) == length && memcmp(choices, word, length) == 0) return i;
        if (choices[length] == '\0') return -1;
        choices += length + 1;
    }
}

static int store(const struct cli_command *command, const struct cli_option *option,
                 const char *value, void *options) {
    void *field = (char *)options + option->offset;
    struct arg_int *number = field;
    struct arg_real *real = field;
    struct arg_texts *texts = field;
    switch (option->kind) {
    case ARG_FLAG: *(bool *)field = true; break;
    case ARG_TEXT:
        if (*value == '\0') return cli_usage(command, "%s: an empty value", option->name);
        *(const char **)field = value;
        break;
    case ARG_TEXTS:
        if (*value == '\0') return cli_usage(command, "%s: an empty value", option->name);
        if (texts->n == ARG_MOST_TEXTS)
            return cli_usage(command, "%s is given more than %d times", option->name,
                             ARG_MOST_TEXTS);
        texts->list[texts->n++] = value;
        break;
    case ARG_INT:
        if (!number_int(value, option->min, option->max, &number->value))
            return cli_usage(command, "%s: '%s' is not a whole number from %lld to %lld",
                             option->name, value, (long long)option->min, (long long)option->max);
        number->set = true;
        break;
    case ARG_REAL:
        if (!number_real(value, &real->value))
            return cli_usage(command, "%s: '%s' is not a finite number", option->name, value);
        real->set = true;
        break;
    case ARG_CHOICE:
        number->value = choice_index(option->argument, value);
        if (number->value < 0)
            return cli_usage(command, "%s: '%s' is not one of %s", option->name, value,
                             option->argument);
        number->set = true;
        break;
    case ARG_RULES: break; /* stands for options, and is none */
    }
    return EXIT_OK;
}

/* One option at argv[i]; *used says how many words of argv it took. */
static int parse_option(const struct cli_command *command, char **argv, int left, void *options,
                        uint64_t *seen, int *used) {
    const char *word = argv[0];
    const size_t length = strcspn(word, "=");
    const struct cli_option *option;
    int place = 0;
    while ((option = args_option(command, place)) &&
           (strlen(option->name) != length || memcmp(option->name, word, length) != 0))
        place++;
    if (!option) return unknown_option(command, word);
    *seen |= (uint64_t)1 << place;
    const char *value = word[length] == '=' ? word + length + 1 : NULL;
    *used = 1;
    if (option->kind == ARG_FLAG) {
        if (value) return cli_usage(command, "%s takes no value", option->name);
    } else if (!value) {
        if (left < 2)
            return cli_usage(command, "%s: %s is missing", option->name, option->argument);
        value = argv[1];
        *used = 2;
    }
    return store(command, option, value, options);
}

/* What may have been meant by a word too many: a second text, or a text without its quotes. */
static const char *word_hint(const struct cli_command *command, int n_words, char **words) {
    if (command->max_words == 0) return "";
    const bool quoted = command->max_words == 1 && n_words == 2 && strchr(words[0], ' ');
    return quoted && args_takes(command, "--pair") ? " (a second text is --pair TEXT)"
                                                   : " (put a text in quotes)";
}

static int check_complete(const struct cli_command *command, uint64_t seen, int n_words,
                          char **words) {
    if (n_words > command->max_words)
        return cli_usage(command, "unexpected argument '%s'%s", words[command->max_words],
                         word_hint(command, n_words, words));
    const struct cli_option *option;
    for (int i = 0; (option = args_option(command, i)); i++)
        if (option->required && !(seen >> i & 1))
            return cli_usage(command, "%s %s is missing", option->name, option->argument);
    return EXIT_OK;
}

int args_parse(const struct cli_command *command, int argc, char **argv, void *options,
               int *n_words, bool *help) {
    uint64_t seen = 0;
    int n = 0, i = 0;
    while (i < argc) {
        char *word = argv[i];
        if (strcmp(word, "--") == 0) {
            for (i++; i < argc; i++) argv[n++] = argv[i];
        } else if (word[0] != '-' || word[1] == '\0') {
            argv[n++] = word;
            i++;
        } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            *help = true;
            return EXIT_OK;
        } else {
            int used = 1;
            const int code = parse_option(command, argv + i, argc - i, options, &seen, &used);
            if (code) return code;
            i += used;
        }
    }
    *n_words = n;
    return check_complete(command, seen, n, argv);
}
