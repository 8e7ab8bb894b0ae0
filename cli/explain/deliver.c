/* Makes a report, and shows it on the terminal or writes it to a file. */
#include "explain/explain.h"

static qkv_status deliver(struct report *report, struct term *term, const char *out,
                          qkv_error *error) {
    if (report->failed) return text_no_memory(error);
    if (out && cli_cancelled) return text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    if (out) return report_page(report, out, error);
    report_print(report, term);
    return QKV_OK;
}

qkv_status explain_report(struct explain *e, explain_maker *make, qkv_error *error) {
    enum { PAGE_COMPONENTS = 8, PAGE_WIDTH = 100, KEYS_ON_TERMINAL = 24, KEYS_ON_PAGE = 200 };
    const char *out = e->options->out;
    struct report report;
    struct term term;
    term_init(&term, stdout, &e->options->common);
    report_begin(&report, out ? PAGE_COMPONENTS : report_components(&term), e->options->shapes);
    e->width = out ? PAGE_WIDTH : term.width;
    e->n_rows = out ? KEYS_ON_PAGE : KEYS_ON_TERMINAL;
    qkv_status status = make(&report, e, error);
    if (status == QKV_OK) status = deliver(&report, &term, out, error);
    report_free(&report);
    if (status == QKV_OK && out) cli_note(e->options->common.quiet, "qkv: wrote %s", out);
    return status;
}
