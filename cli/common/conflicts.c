/* Finds options by their names in the command's table, whose kinds tell which were given. */
#include "common/conflicts.h"

#include <string.h>

#include <qkv/files.h>

static bool is_set(const struct cli_option *option, const void *options) {
    const void *field = (const char *)options + option->offset;
    switch (option->kind) {
    case ARG_FLAG: return *(const bool *)field;
    case ARG_TEXT: return *(const char *const *)field != NULL;
    case ARG_TEXTS: return ((const struct arg_texts *)field)->n > 0;
    case ARG_INT:
    case ARG_CHOICE: return ((const struct arg_int *)field)->set;
    case ARG_REAL: return ((const struct arg_real *)field)->set;
    case ARG_RULES: break; /* stands for options, and is none */
    }
    return false;
}

/* One name of n bytes; NULL: it was not given. */
static const char *find(const struct cli_command *command, const void *options, int n_words,
                        const char *name, size_t n) {
    static const char word[] = "a text";
    const struct cli_option *option;
    if (strncmp(name, word, n) == 0) return n_words > 0 ? word : NULL;
    for (int i = 0; (option = args_option(command, i)); i++)
        if (strlen(option->name) == n && memcmp(option->name, name, n) == 0)
            return is_set(option, options) ? option->name : NULL;
    return NULL;
}

const char *option_first(const struct cli_command *command, const void *options, int n_words,
                         const char *names) {
    const char *found = NULL;
    while (*names && !found) {
        const size_t n = strcspn(names, "|");
        found = find(command, options, n_words, names, n);
        names += n + (names[n] == '|');
    }
    return found;
}

int conflicts_check(const struct cli_command *command, const void *options, int n_words,
                    const struct option_conflict *list, int n) {
    for (const struct option_conflict *c = list; c < list + n; c++) {
        const char *others = c->with ? c->with : c->without,
                   *this = c->these ? option_first(command, options, n_words, c->these) : "",
                   *other = option_first(command, options, n_words, others);
        if (this && !other == !c->with)
            return cli_usage(command, c->message ? c->message : "%s together with %s", this, other);
    }
    return EXIT_OK;
}

int path_ending(const char *path, const char *endings) {
    const char *dot = path ? strrchr(path, '.') : NULL;
    for (int i = 0; dot && *endings; i++) {
        const size_t n = strcspn(endings, " ");
        if (strlen(dot) == n && memcmp(dot, endings, n) == 0) return i;
        endings += n + (endings[n] == ' ');
    }
    return -1;
}

int path_check_ending(const struct cli_command *command, const char *path, const char *endings) {
    if (!path || path_ending(path, endings) >= 0) return EXIT_OK;
    return cli_usage(command, "-o: '%s' ends in none of %s", path, endings);
}

int path_check_out(const struct cli_command *command, const struct cli_common *common,
                   const char *path, const char *endings) {
    qkv_error error;
    const int code = path_check_ending(command, path, endings);
    if (code || !path) return code;
    if (common->json || common->jsonl)
        return cli_usage(command, "-o together with %s", common->json ? "--json" : "--jsonl");
    return qkv_file_writable(path, &error) == QKV_OK ? EXIT_OK : cli_fail("%s", error.message);
}

int scale_check(const struct cli_command *command, const struct arg_real *scale) {
    if (!scale->set || (float)scale->value != 0) return EXIT_OK;
    return cli_usage(command, "--scale: %g is no factor: as a float it is 0", scale->value);
}
