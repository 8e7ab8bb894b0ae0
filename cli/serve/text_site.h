/*
 * A site where a reader types a text and sees a page of it: the start page, and a page for each
 * text.
 */
#ifndef QKV_CLI_SERVE_TEXT_SITE_H
#define QKV_CLI_SERVE_TEXT_SITE_H

#include "common/session.h"
#include "common/text.h"

struct text_site {
    int port; /* 0: any that is free */
    bool quiet;
    const struct session *session; /* whose model and mask the start page names */
    struct text first;             /* that the start page has; bytes NULL: none */
    /*
     * Makes the page of a text, to be freed with qkv_text_free. Its message is shown in the page's
     * place. On one thread, which alone uses the model.
     */
    qkv_status (*make)(void *user, const struct text *text, qkv_text **page, qkv_error *error);
    void *user;
};

/* Answers until cli_cancelled. An exit code, having said what is wrong. */
int text_site_serve(const struct text_site *site);

#endif
