/* Pages of texts that a reader types: see text_site.h. */
#include "serve/text_site.h"

#include <stdlib.h>
#include <string.h>

#include "common/os.h"
#include "common/predict.h"
#include "common/text.h"
#include "serve/serve.h"

extern const char serve_start_text[], serve_style_text[], serve_script_text[];

/* The start page fetches from its own address only, and no other page may frame it. */
static const char start_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/* A page of `look` has a policy of its own inside. */
static const char page_policy[] = "frame-ancestors 'self'";
static const char error_policy[] = "default-src 'none'; style-src 'self'; frame-ancestors 'self'";
static const char html[] = "text/html; charset=utf-8";

struct service {
    const struct text_site *site;
    struct serve_answer start; /* made before there is a thread that uses the model */
};

/* ---- Answers --------------------------------------------------------------------------------- */

/* Ends what was printed into bytes of the answer. */
static void take(FILE *out, struct serve_answer *answer, int status, const char *type,
                 const char *policy) {
    const bool failed = ferror(out) != 0;
    if (os_close_memory(out) != 0 || failed) {
        serve_refuse(answer, 500);
        return;
    }
    answer->status = status;
    answer->type = type;
    answer->policy = policy;
}

static void put_hole(void *user, const char *hole) {
    const struct service *const service = ((void **)user)[0];
    FILE *const out = ((void **)user)[1];
    const struct session *const session = service->site->session;
    if (strcmp(hole, "model") == 0) {
        char *const source = term_escape(session->info->source, strlen(session->info->source));
        if (source) html_put(out, source, strlen(source));
        free(source);
    }
    if (strcmp(hole, "text") == 0 && service->site->first.n > 0)
        html_put(out, service->site->first.bytes, service->site->first.n);
    if (strcmp(hole, "hint") == 0 && session->info->has_mlm) {
        char *const mask = mask_name(session);
        if (mask) fputs(", with ", out);
        if (mask) html_put(out, mask, strlen(mask));
        if (mask) fputs(" for a word to predict", out);
        free(mask);
    }
}

static void make_start(struct service *service) {
    struct serve_answer *const start = &service->start;
    FILE *const out = os_open_memory(&start->bytes, &start->n);
    const void *const user[2] = { service, out };
    if (!out) {
        serve_refuse(start, 500);
        return;
    }
    template_write(out, serve_start_text, put_hole, (void *)(uintptr_t)user);
    take(out, start, 200, html, start_policy);
}

/* A copy of what is there. */
static void answer_with(struct serve_answer *answer, struct serve_answer what) {
    *answer = what;
    answer->bytes = malloc(what.n + 1);
    if (answer->bytes && what.bytes)
        memcpy(answer->bytes, what.bytes, what.n);
    else
        serve_refuse(answer, 500);
}

static void answer_file(struct serve_answer *answer, const char *text, const char *type) {
    char *const bytes = (char *)(uintptr_t)text; /* read only */
    answer_with(answer, (struct serve_answer){ 200, type, start_policy, bytes, strlen(text) });
}

static void answer_error(struct serve_answer *answer, const char *message) {
    FILE *const out = os_open_memory(&answer->bytes, &answer->n);
    char *const escaped = term_escape(message, strlen(message));
    if (!out || !escaped) {
        if (out) os_close_memory(out);
        serve_refuse(answer, 500);
    } else {
        fputs("<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>qkv look</title>"
              "<link rel=\"stylesheet\" href=\"start.css\">\n<p class=\"error\" role=\"alert\">",
              out);
        html_put(out, escaped, strlen(escaped));
        fputs("</p></html>\n", out);
        take(out, answer, 422, html, error_policy);
    }
    free(escaped);
}

/* ---- A text ---------------------------------------------------------------------------------- */

static void answer_text(const struct text_site *site, const struct text *text,
                        struct serve_answer *answer) {
    qkv_error error;
    qkv_text *page = NULL;
    if (site->make(site->user, text, &page, &error) != QKV_OK) {
        answer_error(answer, error.message);
    } else {
        *answer = (struct serve_answer){ 200, html, page_policy, page->bytes, (size_t)page->n };
        page->bytes = NULL; /* the server frees them */
    }
    qkv_text_free(page);
}

/* "application/x-www-form-urlencoded", perhaps with a charset. */
static bool is_form(struct http_text type) {
    static const char form[] = "application/x-www-form-urlencoded";
    const size_t n = sizeof form - 1;
    return type.at && type.n >= n && memcmp(type.at, form, n) == 0 &&
           (type.n == n || type.at[n] == ';');
}

static void compute_page(void *user, const struct http_request *request,
                         struct serve_answer *answer) {
    const struct service *const service = user;
    struct text text = { malloc(request->body.n + 1), 0 };
    if (!text.bytes)
        serve_refuse(answer, 500);
    else if (!is_form(request->type))
        serve_refuse(answer, 415);
    else if (!http_form(request->body, "text", text.bytes, &text.n))
        serve_refuse(answer, 400);
    else
        answer_text(service->site, &text, answer);
    free(text.bytes);
}

static bool answer_request(void *user, const struct http_request *request, struct http_text name,
                           struct serve_answer *answer) {
    const struct service *const service = user;
    const bool is_page = http_is(name, "page");
    if (!is_page && !http_is(name, "") && !http_is(name, "start.css") && !http_is(name, "start.js"))
        serve_refuse(answer, 404);
    else if (is_page != request->is_post)
        serve_refuse(answer, 405);
    else if (is_page)
        return false;
    else if (http_is(name, "start.css"))
        answer_file(answer, serve_style_text, "text/css; charset=utf-8");
    else if (http_is(name, "start.js"))
        answer_file(answer, serve_script_text, "text/javascript; charset=utf-8");
    else
        answer_with(answer, service->start);
    return true;
}

int text_site_serve(const struct text_site *site) {
    struct service service = { .site = site };
    const struct serve_site served = { .port = site->port,
                                       .quiet = site->quiet,
                                       .answer = answer_request,
                                       .compute = compute_page,
                                       .user = &service };
    make_start(&service);
    const int code = serve(&served);
    free(service.start.bytes);
    return code;
}
