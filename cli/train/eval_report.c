/* An evaluation as a table by slot type, or as a JSON object. */
#include "train/train.h"

#include <inttypes.h>

static double percent(int64_t part, int64_t whole) { return 100 * ((double)part / (double)whole); }

/* "97.1 %", or a dash where nothing was measured. */
static void print_percent(int64_t part, int64_t whole) {
    if (whole > 0)
        printf("  %6.1f %%", percent(part, whole));
    else
        printf("  %8s", "-");
}

static void print_row(const qkv_eval_row *row, struct term *term) {
    term_put(term, row->slot, 24, false);
    printf(" %7" PRId64, row->n_blanks);
    print_percent(row->n_top1_admissible, row->n_blanks);
    printf(" %7" PRId64, row->n_single);
    print_percent(row->n_top1_single, row->n_single);
    printf("  %6.3f\n", row->mass);
}

void print_ratio(const char *what, int64_t right, int64_t n) {
    if (n > 0)
        printf("%-40s %5.1f %%  (%" PRId64 " of %" PRId64 ")\n", what, percent(right, n), right, n);
}

static void print_table(const qkv_eval_report *report, const struct cli_common *common) {
    struct term term;
    term_init(&term, stdout, common);
    printf("%-24s %7s  %8s %7s  %8s  %6s\n", "slot", "blanks", "top-1 ok", "one ok", "top-1 is",
           "mass");
    for (int64_t i = 0; i < report->n_rows; i++) print_row(report->rows[i], &term);
    print_row(report->total, &term);
    printf("\nMLM loss %.4f\n", report->mlm_loss);
    print_ratio("next sentence right", report->n_pairs_right, report->n_pairs);
    print_ratio("pronoun probes right", report->n_probes_right, report->n_probes);
    char head[64];
    snprintf(head, sizeof head, "head %" PRId64 ".%" PRId64 " looks at the antecedent",
             report->head_layer, report->head_index);
    print_ratio(head, report->n_head_probes_right, report->n_head_probes);
    puts("\ntop-1 ok: the likeliest word is admissible; one ok: blanks with one admissible\n"
         "word; top-1 is: it is that word; mass: mean probability of the admissible words.");
}

static json_t *row_json(const qkv_eval_row *row) {
    return json_set(NULL, "slot:t n_blanks:i n_top1_admissible:i n_single:i n_top1_single:i mass:n",
                    row->slot, row->n_blanks, row->n_top1_admissible, row->n_single,
                    row->n_top1_single, row->mass);
}

static void print_json(const qkv_eval_report *report) {
    json_t *rows = json_array();
    for (int64_t i = 0; i < report->n_rows; i++)
        json_array_append_new(rows, row_json(report->rows[i]));
    json_t *const object = json_set(
        NULL,
        "total:o slots:o mlm_loss:n n_pairs:i n_pairs_right:i n_probes:i "
        "n_probes_right:i head_layer:i head:i n_head_probes:i n_head_probes_right:i",
        row_json(report->total), rows, report->mlm_loss, report->n_pairs, report->n_pairs_right,
        report->n_probes, report->n_probes_right, report->head_layer, report->head_index,
        report->n_head_probes, report->n_head_probes_right);
    json_print(stdout, object);
}

void eval_print(const qkv_eval_report *report, const struct cli_common *common) {
    if (common->json)
        print_json(report);
    else
        print_table(report, common);
}

int eval_and_print(qkv_ctx *ctx, const qkv_model *model, const char *text, const char *grammar,
                   uint64_t seed, const struct cli_common *common) {
    qkv_eval_report *report = NULL;
    qkv_error error;
    struct progress_clock clock;
    progress_clock_begin(&clock, "measuring", common->quiet);
    const qkv_status status = qkv_eval(ctx, model, text, grammar, seed, &report, &error);
    progress_clock_end(&clock);
    if (status != QKV_OK) return cli_fail("%s", error.message);
    eval_print(report, common);
    qkv_eval_report_free(report);
    return EXIT_OK;
}
