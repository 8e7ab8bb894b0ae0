/* The values of --what-if: causal, no-scale, temperature=T, drop=TOKEN. */
#include "common/what_if.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/job.h"
#include "common/number.h"

/* What follows "name=" in a question; NULL if it is another one. */
static const char *value_of(const char *question, const char *name) {
    const size_t n = strlen(name);
    return strncmp(question, name, n) == 0 && question[n] == '=' ? question + n + 1 : NULL;
}

static void add_words(struct what_if *what_if, const char *before, const char *words) {
    text_append(what_if->words, WHAT_IF_WORDS, "%s%s%.80s", *what_if->words ? ", " : "", before,
                words);
}

static int parse_one(const struct cli_command *command, const char *question,
                     struct what_if *what_if) {
    const char *temperature = value_of(question, "temperature"),
               *token = value_of(question, "drop");
    if (strcmp(question, "causal") == 0) {
        if (!what_if->asked.causal) add_words(what_if, "causal", "");
        what_if->asked.causal = 1;
    } else if (strcmp(question, "no-scale") == 0) {
        if (!what_if->asked.no_scale) add_words(what_if, "without the scale", "");
        what_if->asked.no_scale = 1;
    } else if (temperature) {
        if (what_if->asked.temperature != 0)
            return cli_usage(command, "--what-if temperature is given twice");
        if (!number_real(temperature, &what_if->asked.temperature) ||
            !(what_if->asked.temperature >= 0.001 && what_if->asked.temperature <= 1000))
            return cli_usage(command,
                             "--what-if temperature: '%s' is not a number from 0.001 to 1000",
                             temperature);
        add_words(what_if, "temperature ", temperature);
    } else if (!token || !*token) {
        return cli_usage(command,
                         "--what-if: '%s' is none of causal, no-scale, temperature=T, drop=TOKEN",
                         question);
    }
    return EXIT_OK;
}

int what_if_parse(const struct cli_command *command, const struct arg_texts *given,
                  struct what_if *what_if) {
    *what_if =
        (struct what_if){ .asked = qkv_run_options_init(), .given = given, .any = given->n > 0 };
    int code = EXIT_OK;
    for (int i = 0; i < given->n && !code; i++) code = parse_one(command, given->list[i], what_if);
    return code;
}

int what_if_check_drop(const struct cli_command *command, const struct arg_texts *given,
                       const char *with) {
    for (int i = 0; i < given->n; i++)
        if (value_of(given->list[i], "drop"))
            return cli_usage(command, "--what-if %s together with %s have other tokens",
                             given->list[i], with);
    return EXIT_OK;
}

/*
 * "without door", where the token stands once; else which are meant: "without the (all 2, at tokens
 * 1 and 4)", "without the (token 4, one of 2)".
 */
static void say_dropped(struct what_if *what_if, const char *label, const uint8_t *is,
                        int64_t n_found, int64_t n_alike, int64_t n) {
    char places[160];
    add_words(what_if, "without ", label);
    if (n_alike < 2) return;
    label_where(is, n, places, sizeof places);
    if (n_found == n_alike)
        text_append(what_if->words, WHAT_IF_WORDS, " (all %" PRId64 ", at tokens %s)", n_found,
                    places);
    else
        text_append(what_if->words, WHAT_IF_WORDS, " (token %s, one of %" PRId64 ")", places,
                    n_alike);
}

/* A place from 0, or every place of a token; how many. -1: no memory. */
static int64_t drop(struct what_if *what_if, const char *token, char *const *labels, int64_t n) {
    int64_t place, n_found = 0, n_alike = 0;
    const char *label = NULL;
    const bool number = number_int(token, 0, INT64_MAX, &place);
    uint8_t *const is = calloc((size_t)n + 1, 1);
    if (!is) return -1;
    for (int64_t i = 0; i < n; i++) {
        if (number ? i != place : !label_is(labels[i], token)) continue;
        what_if->dropped[i] = is[i] = 1;
        if (n_found++ == 0) label = labels[i];
    }
    for (int64_t i = 0; label && i < n; i++) n_alike += is[i] || strcmp(labels[i], label) == 0;
    if (label) say_dropped(what_if, label, is, n_found, n_alike, n);
    free(is);
    return n_found;
}

qkv_status what_if_of_text(const struct what_if *parsed, char *const *labels, int64_t n,
                           struct what_if *what_if, qkv_error *error) {
    *what_if = *parsed;
    for (int i = 0; i < parsed->given->n; i++) {
        const char *token = value_of(parsed->given->list[i], "drop");
        if (!token) continue;
        if (!what_if->dropped) what_if->dropped = calloc((size_t)n + 1, 1);
        if (!what_if->dropped) return text_no_memory(error);
        what_if->inputs[0] = what_if->dropped;
        const int64_t n_found = drop(what_if, token, labels, n);
        if (n_found < 0) return text_no_memory(error);
        if (n_found == 0)
            return text_error(error, QKV_ERR_ARGUMENT,
                              "--what-if drop: '%s' is none of the %" PRId64 " tokens", token, n);
    }
    return QKV_OK;
}

void what_if_free(struct what_if *what_if) { free(what_if->dropped); }
