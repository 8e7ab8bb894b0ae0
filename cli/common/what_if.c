/* The values of --what-if: causal, no-scale, temperature=T, drop=TOKEN, cut=QUERY>KEY. */
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
               *token = value_of(question, "drop"), *edge = value_of(question, "cut");
    if (strcmp(question, "causal") == 0) {
        if (!what_if->run_options.causal) add_words(what_if, "causal", "");
        what_if->run_options.causal = 1;
    } else if (strcmp(question, "no-scale") == 0) {
        if (!what_if->run_options.no_scale) add_words(what_if, "without the scale", "");
        what_if->run_options.no_scale = 1;
    } else if (temperature) {
        if (what_if->run_options.temperature != 0)
            return cli_usage(command, "--what-if temperature is given twice");
        if (!number_real(temperature, &what_if->run_options.temperature) ||
            !(what_if->run_options.temperature >= 0.001 &&
              what_if->run_options.temperature <= 1000))
            return cli_usage(command,
                             "--what-if temperature: '%s' is not a number from 0.001 to 1000",
                             temperature);
        add_words(what_if, "temperature ", temperature);
    } else if (edge ? !strchr(edge, '>') : !token || !*token) {
        return cli_usage(command,
                         "--what-if: '%s' is none of causal, no-scale, temperature=T, drop=TOKEN, "
                         "cut=QUERY>KEY",
                         question);
    }
    return EXIT_OK;
}

int what_if_parse(const struct cli_command *command, const struct arg_texts *given,
                  struct what_if *what_if) {
    *what_if = (struct what_if){ .run_options = qkv_run_options_init(),
                                 .given = given,
                                 .any = given->n > 0 };
    int code = EXIT_OK;
    for (int i = 0; i < given->n && !code; i++) code = parse_one(command, given->list[i], what_if);
    return code;
}

int what_if_check_drop(const struct cli_command *command, const struct arg_texts *given,
                       const char *with) {
    for (int i = 0; i < given->n; i++)
        if (value_of(given->list[i], "drop") || value_of(given->list[i], "cut"))
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

/* ---- Edges ----------------------------------------------------------------------------------- */

/* A number, or every place of a token; how many. */
static int64_t mark(const char *word, size_t n_bytes, char *const *labels, int64_t n,
                    uint8_t *marks) {
    char copy[256];
    int64_t place, n_found = 0;
    if (n_bytes == 0 || n_bytes >= sizeof copy) return 0;
    snprintf(copy, sizeof copy, "%.*s", (int)n_bytes, word);
    const bool number = number_int(copy, 0, INT64_MAX, &place);
    for (int64_t i = 0; i < n; i++) {
        marks[i] = number ? i == place : label_is(labels[i], copy);
        n_found += marks[i];
    }
    return n_found;
}

/* "…@L.H", "…@L" or "…@L.*" without its end; *n: what is left of the bytes. */
static void read_place(const char *value, size_t *n, struct what_if_cut *cut) {
    const char *const at = strrchr(value, '@');
    char digits[24];
    cut->layer = cut->head = -1;
    *n = strlen(value);
    if (!at) return;
    const size_t bytes = strlen(at + 1);
    const bool all = bytes > 2 && strcmp(at + bytes - 1, ".*") == 0;
    snprintf(digits, sizeof digits, "%.*s", (int)(all ? bytes - 2 : bytes), at + 1);
    if (session_place(digits, &cut->layer, &cut->head) && !all)
        snprintf(cut->place, sizeof cut->place, " in head %" PRId64 ".%" PRId64, cut->layer,
                 cut->head);
    else if (number_int(digits, 0, INT32_MAX, &cut->layer))
        snprintf(cut->place, sizeof cut->place, " in layer %" PRId64, cut->layer);
    else
        cut->layer = cut->head = -1;
    if (cut->layer >= 0) *n = (size_t)(at - value);
}

/* At the first '>' with tokens on both sides, since tokens may have one, as <mask> has. */
static bool split(const char *value, size_t n, const struct what_if_edges *edges,
                  struct what_if_cut *cut) {
    for (size_t at = 1; at + 1 < n; at++) {
        if (value[at] != '>') continue;
        const int64_t n_queries = mark(value, at, edges->queries, edges->n_queries, cut->queries);
        const int64_t n_keys =
            mark(value + at + 1, n - at - 1, edges->keys, edges->n_keys, cut->keys);
        cut->n = n_queries * n_keys;
        if (cut->n > 0) return true;
    }
    return false;
}

/* Whether some query sees some of the keys at all. */
static bool is_seen(const struct what_if_edges *edges, const struct what_if_cut *cut) {
    int64_t first_key = 0, last_query = edges->n_queries - 1;
    while (!cut->keys[first_key]) first_key++;
    while (!cut->queries[last_query]) last_query--;
    return !edges->causal || first_key <= last_query;
}

qkv_status what_if_cut_read(const char *option, const char *value,
                            const struct what_if_edges *edges, struct what_if_cut *cut,
                            qkv_error *error) {
    size_t n;
    *cut = (struct what_if_cut){ .queries = calloc((size_t)edges->n_queries + 1, 1),
                                 .keys = calloc((size_t)edges->n_keys + 1, 1) };
    if (!cut->queries || !cut->keys) return text_no_memory(error);
    read_place(value, &n, cut);
    if (cut->layer >= edges->n_layers || cut->head >= edges->n_heads)
        return text_error(error, QKV_ERR_ARGUMENT,
                          "%s: '%s': the attention has layers 0 to %" PRId64
                          " of heads 0 to %" PRId64,
                          option, value, edges->n_layers - 1, edges->n_heads - 1);
    if (!split(value, n, edges, cut))
        return text_error(error, QKV_ERR_ARGUMENT,
                          "%s: '%s' names no query and key of the %" PRId64 " tokens", option,
                          value, edges->n_keys);
    if (is_seen(edges, cut)) return QKV_OK;
    return text_error(error, QKV_ERR_ARGUMENT,
                      "%s: '%s' is no edge: each token sees itself and those before it", option,
                      value);
}

void what_if_cut_list(const struct what_if_edges *edges, const struct what_if_cut *cut,
                      int64_t *list) {
    for (int64_t i = 0; i < edges->n_queries; i++)
        for (int64_t j = 0; cut->queries[i] && j < edges->n_keys; j++) {
            if (!cut->keys[j]) continue;
            const int64_t edge[] = { cut->layer, cut->head, i, j };
            memcpy(list, edge, sizeof edge);
            list += 4;
        }
}

void what_if_cut_free(struct what_if_cut *cut) {
    free(cut->queries);
    free(cut->keys);
}

static qkv_status add_cut(const char *value, const struct what_if_edges *edges,
                          struct what_if *what_if, qkv_error *error) {
    struct what_if_cut cut;
    qkv_status status = what_if_cut_read("--what-if cut", value, edges, &cut, error);
    int64_t *list = NULL;
    if (status == QKV_OK) {
        list = realloc(what_if->cuts, (size_t)(what_if->n_cuts + cut.n) * 4 * sizeof *list);
        if (!list) status = text_no_memory(error);
    }
    if (list) {
        what_if->cuts = list;
        what_if_cut_list(edges, &cut, list + 4 * what_if->n_cuts);
        what_if->n_cuts += cut.n;
        add_words(what_if, "without the edge ", value);
        if (cut.n > 1) text_append(what_if->words, WHAT_IF_WORDS, " (%" PRId64 " edges)", cut.n);
    }
    what_if_cut_free(&cut);
    return status;
}

/* ---- Of a text ------------------------------------------------------------------------------- */

static qkv_status add_dropped(const char *token, char *const *labels, int64_t n,
                              struct what_if *what_if, qkv_error *error) {
    if (!what_if->dropped) what_if->dropped = calloc((size_t)n + 1, 1);
    if (!what_if->dropped) return text_no_memory(error);
    what_if->inputs[0] = what_if->dropped;
    const int64_t n_found = drop(what_if, token, labels, n);
    if (n_found < 0) return text_no_memory(error);
    if (n_found > 0) return QKV_OK;
    return text_error(error, QKV_ERR_ARGUMENT,
                      "--what-if drop: '%s' is none of the %" PRId64 " tokens", token, n);
}

qkv_status what_if_of_text(const struct what_if *parsed, char *const *labels, int64_t n,
                           const struct what_if_edges *edges, struct what_if *what_if,
                           qkv_error *error) {
    qkv_status status = QKV_OK;
    *what_if = *parsed;
    for (int i = 0; i < parsed->given->n && status == QKV_OK; i++) {
        const char *const token = value_of(parsed->given->list[i], "drop"),
                          *const edge = value_of(parsed->given->list[i], "cut");
        if (token) status = add_dropped(token, labels, n, what_if, error);
        if (edge) status = add_cut(edge, edges, what_if, error);
    }
    what_if->run_options.cuts = what_if->cuts;
    what_if->run_options.n_cuts = what_if->n_cuts;
    what_if->run_options.cut_which = edges->which;
    return status;
}

void what_if_free(struct what_if *what_if) {
    free(what_if->dropped);
    free(what_if->cuts);
}

void what_if_caption(const struct what_if *what_if, struct caption *caption) {
    if (what_if->any)
        caption_add(caption, "MODIFIED: not what the model computed (%s). ", what_if->words);
}

void what_if_json(const struct what_if *what_if, json_t *object) {
    if (what_if->any) json_set(object, "modified:s what_if:t", WHAT_IF_BADGE, what_if->words);
}
