/*
 * Options of the command line: one table per command says name, argument, range and where the value
 * goes. Parsing, help, and error texts all read that table, so they cannot disagree; what an option
 * means is written in cli/help/COMMAND.txt.
 */
#ifndef QKV_CLI_COMMON_ARGS_H
#define QKV_CLI_COMMON_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values with a mark of whether the option was given. A text was given if it is not NULL. */
struct arg_int {
    bool set;
    int64_t value;
};
struct arg_real {
    bool set;
    double value;
};

/* An option that may be given several times. */
enum { ARG_MOST_TEXTS = 16 };
struct arg_texts {
    int n;
    const char *list[ARG_MOST_TEXTS];
};

/* The option of a rule of visibility (rules.h); which member it uses depends on its kind. */
enum { ARG_MOST_RULES = 16 };
struct arg_rule {
    const char *text;
    struct arg_int number;
    bool set;
};

enum arg_kind {
    ARG_FLAG,   /* bool */
    ARG_TEXT,   /* const char * */
    ARG_TEXTS,  /* struct arg_texts */
    ARG_INT,    /* struct arg_int, min … max */
    ARG_REAL,   /* struct arg_real, finite */
    ARG_CHOICE, /* struct arg_int: which of the words of `argument`, "light|dark" */
    ARG_RULES,  /* stands for the options of the rules named in `argument`: rules_option */
};

struct cli_option {
    const char *name;     /* "--pair", "-o" */
    const char *argument; /* "TEXT"; NULL for a flag */
    enum arg_kind kind;
    size_t offset; /* of the value in the command's struct of options */
    int64_t min, max;
    bool required;
    const char *suggest; /* for completions */
    size_t into;         /* offset in a struct of the library that args_apply sets; 0: none */
};

/*
 * Rows of a command's table. A file that uses them defines OPTIONS as the command's struct of
 * options, which has the member `field`. `endings` are what a shell suggests for a file, as below.
 */
#define OPTION_ROW(name_, argument_, kind_, field, ...)                                            \
    {                                                                                              \
        .name = name_, .argument = argument_, .kind = kind_, .offset = offsetof(OPTIONS, field),   \
        __VA_ARGS__                                                                                \
    }
#define OPTION_FLAG(name, field)            OPTION_ROW(name, NULL, ARG_FLAG, field, )
#define OPTION_TEXT(name, argument, field)  OPTION_ROW(name, argument, ARG_TEXT, field, )
#define OPTION_TEXTS(name, argument, field) OPTION_ROW(name, argument, ARG_TEXTS, field, )
#define OPTION_REAL(name, argument, field)  OPTION_ROW(name, argument, ARG_REAL, field, )
#define OPTION_CHOICE(name, words, field)   OPTION_ROW(name, words, ARG_CHOICE, field, )
#define OPTION_INT(name, argument, field, least, most)                                             \
    OPTION_ROW(name, argument, ARG_INT, field, .min = least, .max = most)
/* Numbers that args_apply also puts into the field `into_` of INTO, a struct of the library. */
#define OPTION_INT_INTO(name, field, least, most, into_)                                           \
    OPTION_ROW(name, "N", ARG_INT, field, .min = least, .max = most, .into = offsetof(INTO, into_))
#define OPTION_REAL_INTO(name, field, into_)                                                       \
    OPTION_ROW(name, "X", ARG_REAL, field, .into = offsetof(INTO, into_))
#define OPTION_FILE(name, argument, field, endings)                                                \
    OPTION_ROW(name, argument, ARG_TEXT, field, .suggest = endings)
#define OPTION_NEEDED(name, argument, field, endings)                                              \
    OPTION_ROW(name, argument, ARG_TEXT, field, .suggest = endings, .required = true)

/*
 * `suggest` is what a shell suggests for a value, or for the words of a command: "a|b|c", these
 * words; "/", folders; ".npy .csv", files that end so; "/ .npy", both; "*", any file; "@heads", the
 * heads of the model; "@commands"; "@numbers" and "@labels", names of numbers and labels of heads.
 * NULL: nothing, or the words of an ARG_CHOICE.
 */

/* Options that several commands share; a command's struct of options begins with this one. */
struct cli_common {
    const char *model, *head, *isa;
    struct arg_int layer, threads, theme, color, weights;
    bool truncate, ids, json, jsonl, ascii, quiet, verbose, check_finite;
    struct arg_rule rules[ARG_MOST_RULES]; /* in the order of the library's table */
};

enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* Which of the shared options a command takes. */
enum {
    TAKES_MODEL = 1u << 0,      /* --model, --check-finite */
    TAKES_HEAD = 1u << 1,       /* --head, --layer */
    TAKES_COMPUTE = 1u << 2,    /* --threads, --isa */
    TAKES_TERM = 1u << 3,       /* --color, --ascii, --theme */
    TAKES_TRUNCATE = 1u << 4,   /* --truncate */
    TAKES_JSON = 1u << 5,       /* --json */
    TAKES_JSONL = 1u << 6,      /* --jsonl */
    TAKES_QUIET = 1u << 7,      /* --quiet */
    TAKES_VERBOSE = 1u << 8,    /* -v */
    TAKES_FINITE = 1u << 9,     /* --check-finite, of a command without --model */
    TAKES_TOKENIZER = 1u << 10, /* no option: session_open also opens a tokenizer alone */
    TAKES_WEIGHTS = 1u << 11,   /* --weights */
    TAKES_IDS = 1u << 13,       /* --ids */
    TAKES_IMAGES = 1u << 12,    /* a model that reads images only will do; no option of its own */
    /* A command that asks a model and prints its answer. */
    TAKES_ANSWER = TAKES_MODEL | TAKES_WEIGHTS | TAKES_COMPUTE | TAKES_TERM | TAKES_JSON |
                   TAKES_QUIET | TAKES_VERBOSE,
    /* What a command takes that looks at texts through a model. */
    TAKES_TEXTS = TAKES_MODEL | TAKES_WEIGHTS | TAKES_COMPUTE | TAKES_TERM | TAKES_TRUNCATE |
                  TAKES_IDS | TAKES_JSON | TAKES_JSONL | TAKES_QUIET | TAKES_VERBOSE
};

struct cli_command;

/*
 * The index-th option that a command takes, its own first, then the shared ones; NULL past the
 * end.
 */
const struct cli_option *args_option(const struct cli_command *command, int index);
/* Does it take the option of that name? */
bool args_takes(const struct cli_command *command, const char *name);
/* How many of its options are its own. */
int args_n_own(const struct cli_command *command);

/*
 * Parses argv[0 … argc) into the command's struct of options (zeroed) and moves the words that
 * are no options to the front of argv, n_words of them. Returns 0, or prints and returns
 * EXIT_USAGE; *help is set if --help was met, and nothing after it is looked at.
 */
int args_parse(const struct cli_command *command, int argc, char **argv, void *options,
               int *n_words, bool *help);

/* Copies the numbers that the command line gives into `into`, a struct of the type INTO. */
void args_apply(const struct cli_command *command, const void *options, void *into);

/* The name nearest to a misspelt one, or NULL if none is near. names ends with NULL. */
const char *args_nearest(const char *word, const char *const *names);

#endif
