/* See rules.h. */
#include "common/rules.h"
#include "common/job.h"
#include "common/number.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t far = INT64_MAX / 4;

/* ---- Options --------------------------------------------------------------------------------- */

enum form { FORM_WHERE, FORM_NUMBER, FORM_NUMBERS, FORM_LIST, FORM_FLAG };

static enum form form_of(const qkv_rule *rule) {
    if (rule->flag == QKV_SET_CAUSAL) return FORM_WHERE;
    for (int f = 0; f < rule->n_fields; f++)
        if (rule->fields[f].per_batch) return FORM_LIST;
    return rule->n_fields == 0 ? FORM_FLAG : rule->n_fields == 1 ? FORM_NUMBER : FORM_NUMBERS;
}

/* A rule of this many numbers, "window_left" and "window_right" of window: "LEFT,RIGHT". */
static void name_numbers(const qkv_rule *rule, char *text, size_t bytes) {
    const size_t prefix = strlen(rule->name) + 1;
    for (int f = 0; f < rule->n_fields; f++)
        text_append(text, bytes, "%s%s", f ? "," : "", rule->fields[f].name + prefix);
    for (char *c = text; *c; c++) *c = (char)toupper((unsigned char)*c);
}

/* What help and completions show, made once for all rules. */
static struct made {
    char name[32], argument[64];
    struct cli_option option;
} made[ARG_MOST_RULES];

/* How a value is written, and which member of struct arg_rule it goes into. */
static const struct {
    enum arg_kind kind;
    const char *argument;
    size_t member;
} forms[] = {
    [FORM_WHERE] = { ARG_TEXT, "WHERE", offsetof(struct arg_rule, text) },
    [FORM_NUMBER] = { ARG_INT, "N", offsetof(struct arg_rule, number) },
    [FORM_NUMBERS] = { ARG_TEXT, "", offsetof(struct arg_rule, text) },
    [FORM_LIST] = { ARG_TEXT, "N[,N...]", offsetof(struct arg_rule, text) },
    [FORM_FLAG] = { ARG_FLAG, "", offsetof(struct arg_rule, set) },
};

static void make(int index, const qkv_rule *rule) {
    const enum form form = form_of(rule);
    struct made *const m = &made[index];
    const size_t value =
        offsetof(struct cli_common, rules) + (size_t)index * sizeof(struct arg_rule);
    snprintf(m->name, sizeof m->name, "--%s", rule->name);
    for (char *c = m->name; *c; c++) *c = (char)(*c == '_' ? '-' : *c);
    snprintf(m->argument, sizeof m->argument, "%s", forms[form].argument);
    if (form == FORM_NUMBERS) name_numbers(rule, m->argument, sizeof m->argument);
    m->option = (struct cli_option){ .name = m->name, .kind = forms[form].kind };
    if (form != FORM_FLAG) m->option.argument = m->argument;
    if (form == FORM_WHERE) m->option.suggest = "top-left|bottom-right";
    m->option.offset = value + forms[form].member;
    if (form != FORM_NUMBER) return;
    m->option.min = rule->fields[0].least;
    m->option.max = rule->fields[0].most;
}

static const struct made *made_at(int index) {
    const qkv_rule *const rule = index < ARG_MOST_RULES ? qkv_attention_rule(index) : NULL;
    if (rule && !made[index].option.name) make(index, rule);
    return rule ? &made[index] : NULL;
}

const struct cli_option *rules_option(const char *names, int index) {
    for (; index > 0 && *names; index--) {
        names += strcspn(names, "|");
        names += *names == '|';
    }
    const size_t length = strcspn(names, "|");
    const qkv_rule *rule;
    for (int r = 0; length > 0 && (rule = qkv_attention_rule(r)); r++)
        if (strlen(rule->name) == length && memcmp(rule->name, names, length) == 0)
            return &made_at(r)->option;
    return NULL;
}

/* Its index in the table of the library. */
static int index_of(uint32_t flag) {
    int r = 0;
    while (qkv_attention_rule(r)->flag != flag) r++;
    return r;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* A list of numbers from `least`, which becomes what is given of a rule. */
static bool read_into(struct rules *rules, int index, const char *text, int64_t least) {
    rules->given[index].values = number_list(text, least, far, &rules->given[index].n);
    return rules->given[index].values;
}

/* Numbers in a list, from the least that the rule has, or where that is far away from anywhere. */
static int read_list(const struct cli_command *command, int index, int64_t least, const char *text,
                     struct rules *rules) {
    const int64_t low = least < -1 ? -far : least;
    if (read_into(rules, index, text, low)) return EXIT_OK;
    return cli_usage(command, "%s: '%s' is not a list of whole numbers%s", made_at(index)->name,
                     text, low == 0 ? " from 0" : "");
}

static int read_numbers(const struct cli_command *command, int index, const char *text,
                        struct rules *rules) {
    const qkv_rule *const rule = qkv_attention_rule(index);
    const qkv_rule_field *const field = &rule->fields[0];
    if (read_into(rules, index, text, field->least) && rules->given[index].n == rule->n_fields)
        return EXIT_OK;
    if (!field->least_means)
        return cli_usage(command, "%s: '%s' is not %s", made_at(index)->name, text,
                         made_at(index)->argument);
    return cli_usage(command, "%s: '%s' is not %s (%" PRId64 ": %s)", made_at(index)->name, text,
                     made_at(index)->argument, field->least, field->least_means);
}

/* top-left, bottom-right, or the offset of the queries: of another rule. */
static int read_where(const struct cli_command *command, const char *text, struct rules *rules) {
    rules->causal = CAUSAL_OFFSETS;
    if (strcmp(text, "top-left") == 0) rules->causal = CAUSAL_TOP_LEFT;
    if (strcmp(text, "bottom-right") == 0) rules->causal = CAUSAL_BOTTOM_RIGHT;
    if (rules->causal != CAUSAL_OFFSETS) return EXIT_OK;
    if (read_into(rules, index_of(QKV_SET_Q_OFFSET), text, -far)) return EXIT_OK;
    return cli_usage(command, "--causal: '%s' is not top-left, bottom-right or a list of offsets",
                     text);
}

int rules_parse_one(const struct cli_command *command, uint32_t flag, const char *text,
                    struct rules *rules) {
    const int index = index_of(flag);
    const qkv_rule *const rule = qkv_attention_rule(index);
    if (!text) return EXIT_OK;
    switch (form_of(rule)) {
    case FORM_WHERE: return read_where(command, text, rules);
    case FORM_LIST: return read_list(command, index, rule->fields[0].least, text, rules);
    default: return read_numbers(command, index, text, rules);
    }
}

int rules_parse_causal(const struct cli_command *command, const char *text, struct rules *rules) {
    int64_t offset;
    if (text && strcmp(text, "top-left") != 0 && strcmp(text, "bottom-right") != 0 &&
        !number_int(text, -INT64_MAX / 4, INT64_MAX / 4, &offset))
        return cli_usage(command, "--causal: '%s' is not top-left, bottom-right or an offset",
                         text);
    return rules_parse_one(command, QKV_SET_CAUSAL, text, rules);
}

static int keep(int64_t value, int index, struct rules *rules) {
    rules->given[index].values = malloc(sizeof value);
    if (!rules->given[index].values) return cli_fail("out of memory");
    *rules->given[index].values = value;
    rules->given[index].n = 1;
    return EXIT_OK;
}

static bool is_given(const struct arg_rule *rule) {
    return rule->set || rule->number.set || rule->text;
}

static int check_needs(const struct cli_command *command, const struct cli_common *options,
                       int index) {
    const uint32_t needs = qkv_attention_rule(index)->needs;
    if (!needs || is_given(&options->rules[index_of(needs)])) return EXIT_OK;
    const char *const other = made_at(index_of(needs))->name;
    return cli_usage(command, "%s needs %s: without it every key is seen anyway",
                     made_at(index)->name, other);
}

int rules_parse(const struct cli_command *command, const struct cli_common *options,
                struct rules *rules) {
    const struct arg_rule *const causal = &options->rules[index_of(QKV_SET_CAUSAL)],
                                 *const offset = &options->rules[index_of(QKV_SET_Q_OFFSET)];
    *rules = (struct rules){ 0 };
    if (causal->text && offset->text)
        return cli_usage(command,
                         "--causal names the offset already: not together with --q-offset");
    int code = EXIT_OK;
    for (int r = 0; !code && made_at(r); r++) {
        const struct arg_rule *const given = &options->rules[r];
        if (is_given(given)) code = check_needs(command, options, r);
        if (!code && (given->number.set || given->set)) code = keep(given->number.value, r, rules);
        if (!code) code = rules_parse_one(command, qkv_attention_rule(r)->flag, given->text, rules);
    }
    if (code) rules_free(rules);
    return code;
}

/* ---- The descriptor -------------------------------------------------------------------------- */

/* One number per batch from a list of one, or of one per batch. */
static int apply_list(struct rules *rules, int index, const qkv_rule_field *field,
                      qkv_attention_desc *desc) {
    const int n = rules->given[index].n;
    const bool is_where = rules->causal == CAUSAL_OFFSETS && field->nullable;
    const char *const name = is_where ? "--causal" : made_at(index)->name;
    const int64_t most = !field->limit                        ? INT64_MAX
                         : strcmp(field->limit, "len_k") == 0 ? desc->len_k
                                                              : desc->len_q;
    if (n != 1 && n != desc->n_batch)
        return cli_fail("%s: %d numbers for %" PRId64 " batches", name, n, desc->n_batch);
    int64_t *const list = calloc((size_t)desc->n_batch + 1, sizeof *list);
    if (!list) return cli_fail("out of memory");
    rules->given[index].per_batch = list;
    for (int64_t b = 0; b < desc->n_batch; b++) {
        list[b] = rules->given[index].values[n == 1 ? 0 : b];
        if (list[b] > most)
            return cli_fail("%s: %" PRId64 " is more than the array's length, %" PRId64, name,
                            list[b], most);
    }
    memcpy((char *)desc + field->offset, &rules->given[index].per_batch, sizeof list);
    return EXIT_OK;
}

static int apply_one(struct rules *rules, int index, qkv_attention_desc *desc) {
    const qkv_rule *const rule = qkv_attention_rule(index);
    const bool lists = form_of(rule) == FORM_LIST;
    for (int f = 0; f < rule->n_fields; f++) {
        const qkv_rule_field *const field = &rule->fields[f];
        if (lists && !field->per_batch) continue;
        const int code = lists ? apply_list(rules, index, field, desc) : EXIT_OK;
        if (code) return code;
        if (!lists)
            memcpy((char *)desc + field->offset, &rules->given[index].values[f], sizeof(int64_t));
    }
    desc->flags |= rule->flag;
    return EXIT_OK;
}

int rules_apply(struct rules *rules, qkv_attention_desc *desc) {
    int code = EXIT_OK;
    if (rules->causal) desc->flags |= QKV_SET_CAUSAL;
    if (rules->causal == CAUSAL_BOTTOM_RIGHT) {
        desc->flags |= QKV_SET_Q_OFFSET;
        desc->q_offset = desc->len_k - desc->len_q;
    }
    for (int r = 0; !code && made_at(r); r++)
        if (rules->given[r].values) code = apply_one(rules, r, desc);
    return code;
}

void rules_free(struct rules *rules) {
    for (int r = 0; r < ARG_MOST_RULES; r++) {
        free(rules->given[r].values);
        free(rules->given[r].per_batch);
    }
    *rules = (struct rules){ 0 };
}
