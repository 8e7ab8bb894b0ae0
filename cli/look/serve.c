/* `look --serve`: texts that a browser sends. See job.h. */
#include <string.h>

#include "look/job.h"
#include "serve/text_site.h"

static qkv_status make_page(void *user, const struct text *text, qkv_text **page,
                            qkv_error *error) {
    return look_service_page(user, (struct look_input){ .text = text }, true, page, NULL, error);
}

int look_serve(const struct cli_command *command, const struct look_options *options,
               const char *first) {
    struct look_service *service;
    int code = look_service_open(&service, command, options, false);
    if (code == EXIT_OK) {
        const struct text_site site = { .port = (int)options->port.value,
                                        .quiet = options->common.quiet,
                                        .session = look_service_session(service),
                                        .first = { (char *)(uintptr_t)first,
                                                   first ? strlen(first) : 0 },
                                        .make = make_page,
                                        .user = service };
        code = text_site_serve(&site);
    }
    look_service_close(service);
    /* Ctrl-C is how this ends */
    if (code == EXIT_OK) __atomic_store_n(&cli_cancelled, 0, __ATOMIC_RELAXED);
    return code;
}
