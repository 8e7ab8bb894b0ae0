/* The site of `look --serve`: a start page with a field for a text, and a page for each text. */
#ifndef QKV_CLI_SERVE_TEXT_SITE_H
#define QKV_CLI_SERVE_TEXT_SITE_H

#include "common/session.h"
#include "common/text.h"

struct text_site {
    int port; /* 0: any free port */
    bool quiet;
    const struct session *session; /* the start page names its model and mask token */
    struct text first;             /* the text on the start page; bytes NULL: none */
    /*
     * Makes the page of a text, to be freed with qkv_text_free. The message of a failure is shown
     * in its place. Called on one thread, the only one that uses the model.
     */
    qkv_status (*make)(void *user, const struct text *text, qkv_text **page, qkv_error *error);
    void *user;
};

/* Runs the server until cli_cancelled is set. Returns an exit code, having said what is wrong. */
int text_site_serve(const struct text_site *site);

#endif
