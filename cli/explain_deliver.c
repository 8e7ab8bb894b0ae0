/* Where a lesson goes: the terminal, or the file of -o. */
#include "explain.h"

enum { PAGE_COMPONENTS = 8 };

void explain_begin(struct lesson *lesson, struct term *term,
                   const struct explain_options *options) {
    term_init(term, stdout, &options->common);
    lesson_begin(lesson, options->out ? PAGE_COMPONENTS : lesson_components(term), options->shapes);
}

qkv_status explain_deliver(struct lesson *lesson, struct term *term,
                           const struct explain_options *options, qkv_error *error) {
    qkv_status status = QKV_OK;
    if (lesson->failed)
        status = text_error(error, QKV_ERR_MEMORY, "out of memory");
    else if (options->out && cli_cancelled)
        status = text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    else if (options->out)
        status = lesson_page(lesson, options->out, error);
    else
        lesson_print(lesson, term);
    lesson_free(lesson);
    if (status == QKV_OK && options->out)
        cli_note(options->common.quiet, "qkv: wrote %s", options->out);
    return status;
}
