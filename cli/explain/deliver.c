/* Where a report goes: the terminal, or the file of -o. */
#include "explain/explain.h"

enum { PAGE_COMPONENTS = 8 };

void explain_begin(struct report *report, struct term *term,
                   const struct explain_options *options) {
    term_init(term, stdout, &options->common);
    report_begin(report, options->out ? PAGE_COMPONENTS : report_components(term), options->shapes);
}

qkv_status explain_deliver(struct report *report, struct term *term,
                           const struct explain_options *options, qkv_error *error) {
    qkv_status status = QKV_OK;
    if (report->failed)
        status = text_error(error, QKV_ERR_MEMORY, "out of memory");
    else if (options->out && cli_cancelled)
        status = text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    else if (options->out)
        status = report_page(report, options->out, error);
    else
        report_print(report, term);
    report_free(report);
    if (status == QKV_OK && options->out)
        cli_note(options->common.quiet, "qkv: wrote %s", options->out);
    return status;
}
