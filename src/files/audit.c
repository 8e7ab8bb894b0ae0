/*
 * The audit of a safetensors file: its header as a whole, and the calls of the other parts. See
 * audit.h.
 */
#include "files/audit.h"

#include <stdarg.h>

#include "core/options.h"
#include "files/safetensors_parts.h"

void qkvi_audit_find(qkvi_audit *audit, const char *rule, uint64_t offset, const char *shown,
                     const char *format, ...) {
    char text[800];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    audit->n_findings++;
    audit->visit(audit->user, &(qkv_finding){ rule, shown, text, offset });
}

qkv_status qkvi_audit_no_memory(qkvi_audit *audit) {
    return qkvi_error_set(audit->error, QKV_ERR_MEMORY, "%s: no memory to audit it",
                          audit->source.name);
}

/* What an error says after the name of the file. */
static const char *text_of(const qkvi_audit *audit, const qkv_error *error) {
    const size_t n = strlen(audit->source.name);
    const int is_named = strncmp(error->message, audit->source.name, n) == 0;
    return is_named && strlen(error->message) > n + 2 ? error->message + n + 2 : error->message;
}

/* ---- The header as a whole ------------------------------------------------------------------- */

/* 0 where the header's length says that there is none. */
static qkv_status load_header(qkvi_audit *audit, qkvi_json_limits *limits, int *is_there) {
    uint64_t length;
    qkv_error error;
    QKV_TRY(qkvi_header_limits(limits, audit->error));
    const qkv_status status = qkvi_header_length(&audit->source, limits, &length, &error);
    *is_there = status == QKV_OK;
    if (status == QKV_ERR_FORMAT) {
        qkvi_audit_find(audit, "header-length", 0, NULL, "%s", text_of(audit, &error));
        return QKV_OK;
    }
    if (status != QKV_OK) return qkvi_error_set(audit->error, status, "%s", error.message);
    audit->n_header = (size_t)length;
    audit->data_start = 8 + length;
    audit->header = malloc(audit->n_header + 1);
    if (!audit->header) return qkvi_audit_no_memory(audit);
    return qkvi_source_read(&audit->source, 8, audit->header, audit->n_header, audit->error);
}

/* Where the '{' is, whatever comes before it. */
static size_t find_start(qkvi_audit *audit) {
    size_t at = 0;
    if (audit->n_header >= 3 && memcmp(audit->header, "\xef\xbb\xbf", 3) == 0) {
        qkvi_audit_find(audit, "byte-order-mark", 8, NULL, "a byte order mark before the header");
        at = 3;
    }
    const size_t start = qkvi_json_skip_blanks(audit->header, audit->n_header, at);
    if (start > at)
        qkvi_audit_find(audit, "leading-blanks", 8 + at, NULL, "%zu blanks before the header's '{'",
                        start - at);
    return start;
}

/* Only spaces may follow the '}'. */
static void check_after(qkvi_audit *audit, size_t at) {
    size_t end = audit->n_header;
    while (end > at && audit->header[end - 1] == ' ') end--;
    while (at < end && audit->header[at] == ' ') at++;
    if (at < end)
        qkvi_audit_find(audit, "after-header", 8 + at, NULL,
                        "%zu bytes that are not all spaces between the header's '}' and the data",
                        end - at);
}

/* Members of the root. *is_whole: the header is JSON to its end. */
static qkv_status walk_root(qkvi_audit *audit, qkvi_json_limits limits, int *is_whole) {
    int is_broken;
    qkv_error error;
    size_t at = find_start(audit);
    limits.max_array = 0; /* told tensor by tensor */
    const qkv_status status =
        qkvi_json_scan(audit->source.name, audit->header, audit->n_header, &limits, &error);
    if (status == QKV_ERR_FORMAT) {
        qkvi_audit_find(audit, "too-deep", 8, NULL, "%s", text_of(audit, &error));
        return QKV_OK;
    }
    if (status != QKV_OK) return qkvi_error_set(audit->error, status, "%s", error.message);
    QKV_TRY(
        qkvi_json_walk(audit->header, audit->n_header, &at, &is_broken, qkvi_audit_member, audit));
    *is_whole = !is_broken;
    if (is_broken)
        qkvi_audit_find(audit, "not-json", 8 + at, NULL, "no JSON object %s here",
                        at < audit->n_header ? "goes on" : "ends");
    else
        check_after(audit, at);
    return QKV_OK;
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* The last word is the loader's. */
static qkv_status ask_loader(qkvi_audit *audit, const char *path) {
    const qkvi_source *const source = &audit->source;
    qkvi_safetensors *file;
    qkv_error error;
    const qkv_status status =
        source->is_file ? qkvi_safetensors_open(path, &file, &error)
                        : qkvi_safetensors_open_memory(path, source->bytes, (size_t)source->n_bytes,
                                                       &file, &error);
    qkvi_safetensors_close(file);
    if (status == QKV_ERR_IO || status == QKV_ERR_MEMORY)
        return qkvi_error_set(audit->error, status, "%s", error.message);
    if (status != QKV_OK) qkvi_audit_find(audit, "refused", 8, NULL, "%s", text_of(audit, &error));
    return QKV_OK;
}

static qkv_status audit_source(qkvi_audit *audit, const char *path) {
    qkvi_json_limits limits;
    int is_there, is_whole = 0;
    QKV_TRY(load_header(audit, &limits, &is_there));
    if (!is_there) return QKV_OK;
    QKV_TRY(walk_root(audit, limits, &is_whole));
    QKV_TRY(qkvi_audit_duplicates(audit, &audit->keys, NULL));
    QKV_TRY(qkvi_audit_names(audit));
    if (is_whole) QKV_TRY(qkvi_audit_data(audit));
    return audit->n_findings ? QKV_OK : ask_loader(audit, path);
}

/* Of an open source, which it closes. */
static qkv_status run_audit(qkvi_audit *job, const char *path, qkv_audit *audit) {
    job->is_complete = 1;
    const qkv_status status = audit_source(job, path);
    const qkv_audit made = { .n_bytes = job->source.n_bytes,
                             .n_tensors = job->n_tensors,
                             .n_findings = job->n_findings };
    qkvi_options_write(audit, &made, sizeof made);
    qkvi_source_close(&job->source);
    qkvi_keys_free(&job->keys);
    free(job->header);
    free(job->tensors);
    free(job->tensor_keys);
    return status;
}

qkv_status qkv_tensor_audit(const char *path, void (*visit)(void *user, const qkv_finding *finding),
                            void *user, qkv_audit *audit, qkv_error *error) {
    qkvi_audit job = { .visit = visit, .user = user, .error = error };
    QKV_TRY(qkvi_need(path, "path", error));
    QKV_TRY(qkvi_need(visit, "visit", error));
    QKV_TRY(qkvi_need(audit, "audit", error));
    qkv_audit none = qkv_audit_init();
    QKV_TRY(qkvi_options_read(&none, sizeof none, audit, "qkv_audit", error));
    none = qkv_audit_init();
    qkvi_options_write(audit, &none, sizeof none);
    QKV_TRY(qkvi_source_open(path, &job.source, error));
    return run_audit(&job, path, audit);
}

qkv_status qkvi_audit_memory(const char *name, const void *bytes, size_t n_bytes,
                             void (*visit)(void *user, const qkv_finding *finding), void *user,
                             qkv_audit *audit, qkv_error *error) {
    qkvi_audit job = { .visit = visit, .user = user, .error = error };
    *audit = qkv_audit_init();
    QKV_TRY(qkvi_source_memory(name, bytes, n_bytes, &job.source, error));
    return run_audit(&job, name, audit);
}
