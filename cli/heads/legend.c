/* The legend below the table of heads: what columns mean, and the rules of labels that occur. */
#include <inttypes.h>
#include <string.h>

#include "heads/heads.h"

static void add_item(char *text, size_t bytes, bool *first, const char *name, const char *link,
                     const char *what) {
    text_append(text, bytes, "%s%s%s%s", *first ? "" : "; ", name, link, what);
    *first = false;
}

static void print_columns(struct term *term, const struct heads *heads,
                          const struct layout *layout) {
    char text[4000] = "";
    const qkv_head_number *column;
    bool first = true;
    for (int c = 0; (column = head_column_at(c)); c++)
        if (layout->shown[c])
            add_item(text, sizeof text, &first, column->title, " = ", column->what);
    text_append(
        text, sizeof text,
        heads->options->image
            ? ". Means over the patches (queries). What stands before a patch is the one to "
              "its left, or the last one of the row above."
            : ". Means over the tokens that look (queries), but for [CLS], [SEP] and [PAD] "
              "if there are others.");
    if (heads->which == QKV_CROSS)
        text_append(
            text, sizeof text,
            " Queries are tokens that the decoder read, keys those of the text: there are no "
            "distances between them and no places in common, so numbers and labels of "
            "these are left out.");
    if (layout->n_hidden)
        text_append(text, sizeof text,
                    " %d more columns: a wider terminal, --columns, --json or -o FILE.csv.",
                    layout->n_hidden);
    if (heads->options->like)
        text_append(
            text, sizeof text,
            " Distance from head %s: sqrt(mean over columns of ((a - b) / sd)^2), sd the standard "
            "deviation of the column over all heads.",
            heads->options->like);
    term_wrap(term, text);
}

static bool occurs(const struct heads *heads, const char *label) {
    for (int64_t i = 0; i < heads->n_rows; i++)
        if (strcmp(heads->rows[i].label, label) == 0) return true;
    return false;
}

/* The rules of the labels that are there, and what would need probes. */
static void print_rules(struct term *term, const struct heads *heads) {
    char text[2000] = "Labels, the first rule that holds: ";
    const qkv_head_rule *rule;
    bool first = true;
    for (int i = 0; (rule = qkv_head_rule_at(i)); i++) {
        char condition[80];
        if (!occurs(heads, rule->label)) continue;
        snprintf(condition, sizeof condition, "%s %s %g", rule->number, rule->or_equal ? ">=" : ">",
                 rule->threshold);
        add_item(text, sizeof text, &first, rule->label, " if ", condition);
    }
    if (first) snprintf(text, sizeof text, "No rule gives a label");
    if (!heads->text.input)
        text_append(text, sizeof text, "; beside it, the share of texts that have it");
    text_append(text, sizeof text, ".");
    if (!heads->probes && heads->which == QKV_SELF)
        text_append(text, sizeof text,
                    " duplicate, induction and coreference-like are found out by --probes.");
    term_wrap(term, text);
}

static void print_probes(struct term *term, const struct heads *heads) {
    char text[600];
    const qkv_probe_report *probes = heads->probes;
    snprintf(text, sizeof text,
             "Probes (*): %" PRId64 " texts of %" PRId64 " random tokens said twice",
             probes->n_texts, probes->period);
    if (probes->n_probes)
        text_append(text, sizeof text,
                    "; %" PRId64 " sentences with a masked pronoun, in which chance is %.2f",
                    probes->n_probes, probes->chance);
    text_append(text, sizeof text, ". %s", heads->probe_note);
    term_wrap(term, text);
}

void heads_legend(struct term *term, const struct heads *heads, const struct layout *layout) {
    term_style(term, STYLE_DIM);
    print_columns(term, heads, layout);
    term_style(term, STYLE_DIM);
    if (!heads->options->image) print_rules(term, heads);
    term_style(term, STYLE_DIM);
    if (heads->probes) print_probes(term, heads);
    term_style(term, STYLE_NONE);
}
