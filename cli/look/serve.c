/*
 * `qkv look --serve`: a page on this computer that follows what its reader types. Each text is looked
 * at as by `qkv look TEXT -o FILE.html`, with the same options, and what the model refuses is shown in
 * the page's place.
 */
#include <string.h>

#include "look/job.h"
#include "serve/text_site.h"

struct service {
    struct look_job job;
    struct text pair; /* of --pair; bytes NULL: none */
    qkv_text *page;   /* of the text that is answered */
};

static qkv_status make_page(void *user, const struct text *text, qkv_text **page,
                            qkv_error *error) {
    struct service *const service = user;
    const qkv_status status = text_job_answer(
        &service->job.texts, text, service->pair.bytes ? &service->pair : NULL, NULL, error);
    *page = service->page;
    service->page = NULL;
    return status;
}

static struct text as_text(const char *words) {
    return (struct text){ (char *)(uintptr_t)words, words ? strlen(words) : 0 };
}

int look_serve(const struct cli_command *command, const struct look_options *options,
               const char *first) {
    struct look_options asked = *options; /* each text writes a page, and says nothing */
    struct service service = { .pair = as_text(options->pair) };
    const struct text_site site = { .port = (int)options->port.value,
                                    .quiet = options->common.quiet,
                                    .session = &service.job.texts.session,
                                    .first = as_text(first),
                                    .make = make_page,
                                    .user = &service };
    asked.out = "page.html"; /* its ending says what is asked for */
    asked.sink.page = &service.page;
    int code = look_job_open(&service.job, command, &asked);
    asked.common.quiet = true;
    if (code == EXIT_OK) code = text_site_serve(&site);
    look_job_close(&service.job);
    /* Ctrl-C is how this ends */
    if (code == EXIT_OK) __atomic_store_n(&cli_cancelled, 0, __ATOMIC_RELAXED);
    return code;
}
