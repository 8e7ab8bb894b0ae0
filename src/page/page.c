/**
 * The page: one HTML file with q, k and lse of heads, and the script that shows them.
 *
 * The order lets a browser show something early: a policy that allows only our own script and
 * style, by their hashes; the style; the frame of the page; the manifest (JSON); the first head;
 * the script; the other heads. docs/page.md describes every field. Texts of the caller are only in
 * the title, the manifest and the table for readers without scripts (plain.c), and are escaped
 * there.
 */
#include "attn/ctx.h"
#include "core/options.h"
#include "files/encode.h"
#include "files/file.h"
#include "page/head.h"
#include "page/mask.h"
#include "page/parts.h"

enum { MAX_RUNS = 1 << 16 };

/* The first text is also that of readers without scripts. */
static qkv_status take_runs(qkv_page *page, qkv_error *error) {
    if (page->n_texts < 0 || page->n_texts > MAX_RUNS)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "n_texts = %lld must be 0 to %d",
                              (long long)page->n_texts, MAX_RUNS);
    if (page->n_texts == 0) return QKV_OK;
    if (page->texts == NULL) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "texts is NULL");
    for (int64_t r = 0; r < page->n_texts; r++)
        if (page->texts[r].tokens == NULL)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "texts[%lld].tokens is NULL",
                                  (long long)r);
    const qkv_page_text *const first = &page->texts[0];
    page->tokens = first->tokens;
    page->special = first->special;
    page->segments = first->segments;
    page->words = first->words;
    page->image = first->image;
    return QKV_OK;
}

/* Other queries than keys; without them n_queries is n from here on. */
static qkv_status take_queries(qkv_page *page, qkv_error *error) {
    if (page->queries == NULL && page->n_queries != 0 && page->n_queries != page->n)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "n_queries = %lld is not n = %lld: queries is NULL",
                              (long long)page->n_queries, (long long)page->n);
    if (page->queries && page->queries->tokens == NULL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "queries->tokens is NULL");
    if (page->queries && page->n_texts > 0)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "queries together with n_texts = %lld",
                              (long long)page->n_texts);
    if (page->n_queries == 0) page->n_queries = page->n;
    return QKV_OK;
}

/* Rules that a page has: those of position, but none that needs a list of tokens. */
static uint32_t known_flags(void) {
    const qkv_rule *rule;
    uint32_t flags = 0;
    for (int r = 0; (rule = qkv_attention_rule(r)); r++) flags |= rule->flag;
    return flags & ~(uint32_t)QKV_SET_SEGMENTS;
}

/* The fields of rules; of an optional list its entry becomes the field that it stands for. */
static void copy_fields(const qkv_attention_desc *from, qkv_attention_desc *to) {
    const qkv_rule *rule;
    for (int r = 0; (rule = qkv_attention_rule(r)); r++) {
        for (int f = 0; f < rule->n_fields; f++) {
            const qkv_rule_field *const field = &rule->fields[f];
            const char *const given = (const char *)from + field->offset;
            const int64_t *list = NULL;
            if (field->nullable) memcpy(&list, given, sizeof list);
            if (list && from->flags & rule->flag)
                memcpy((char *)to + rule->fields[f - 1].offset, list, sizeof *list);
            if (!field->nullable) memcpy((char *)to + field->offset, given, sizeof list);
        }
    }
}

/* `rules`, of the sizes of the page; what is wrong in them the library says. */
static qkv_status take_rules(qkv_page *page, qkv_attention_desc *rules, qkv_error *error) {
    qkv_attention_desc given = { 0 };
    int64_t first, end;
    if (page->rules) QKV_TRY(qkvi_options_read(&given, sizeof given, page->rules, "rules", error));
    if (given.flags & ~known_flags())
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "rules.flags = 0x%x: 0x%x are no rules of a page",
                              (unsigned)given.flags, (unsigned)(given.flags & ~known_flags()));
    if (page->two_texts && (page->queries == NULL || given.flags))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "two_texts: queries of another text are in `queries`, and no rule of "
                              "position is set (0x%x)",
                              (unsigned)given.flags);
    qkv_attention_desc_contiguous(rules, 1, 1, 1, page->n_queries, page->n, 1, 1);
    rules->flags = given.flags;
    copy_fields(&given, rules);
    page->rules = rules;
    return qkv_attention_visible_keys(rules, 0, 0, 0, &first, &end, error);
}

/* ---------------------------------------------------------------------------------------------- */

static size_t style_bytes(void) { return (size_t)(qkvi_page_style_end - qkvi_page_style); }

static void add_begin(qkvi_bytes *file, const qkv_page *page, const qkvi_bytes *script) {
    qkvi_bytes_text(file,
                    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ");
    qkvi_page_add_hash(file, "script-src", script->data, script->n);
    qkvi_page_add_hash(file, "style-src", qkvi_page_style, style_bytes());
    qkvi_bytes_text(file,
                    "img-src data: blob:; base-uri 'none'; form-action 'none'\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                    "<link rel=\"icon\" href=\"data:,\">\n<title>");
    qkvi_page_add_shown(file, page->title ? page->title : "Attention");
    qkvi_bytes_text(file, "</title>\n<style>");
    qkvi_bytes_add(file, qkvi_page_style, style_bytes());
    qkvi_bytes_text(file, "</style>\n</head>\n<body>\n");
    qkvi_bytes_add(file, qkvi_page_shell, (size_t)(qkvi_page_shell_end - qkvi_page_shell));
}

static void add_head(qkvi_bytes *file, const qkv_page *page, int64_t i, int half) {
    qkvi_bytes_text(file, "<script type=\"application/octet-stream\" id=\"qkv-head-");
    qkvi_json_int(file, i);
    qkvi_bytes_text(file, "\">");
    qkvi_page_head_add(file, page, &page->heads[i], half);
    qkvi_bytes_text(file, "</script>\n");
}

/*
 * Heads from the i-th on that are measured together: some for each thread, of those that may fit.
 */
static int64_t heads_at_once(const qkv_page *page, int64_t i, size_t used) {
    const int64_t wanted = 4 * (int64_t)qkvi_pool_threads(page->ctx ? page->ctx->pool : NULL),
                  most = wanted < QKVI_PAGE_HEADS_AT_ONCE ? wanted : QKVI_PAGE_HEADS_AT_ONCE;
    int64_t n = 0;
    while (n < most && i + n < page->n_heads) {
        used += qkvi_page_head_bytes(page, &page->heads[i + n], 1);
        if (n > 0 && page->limit_bytes > 0 && used > (size_t)page->limit_bytes) break;
        n++;
    }
    return n;
}

/*
 * The heads that fit, in the order given; the first always. Text is counted as what it is at most.
 */
static qkv_status choose(const qkv_page *page, qkvi_page_measure *measures, qkv_page_result *result,
                         qkv_error *error) {
    size_t used = qkvi_page_fixed_bytes(page) + qkvi_page_add_script(NULL, page) + style_bytes();
    for (int64_t i = 0, measured = 0; i < page->n_heads; i++) {
        const int64_t n = i == measured ? heads_at_once(page, i, used) : 0;
        if (n) QKV_TRY(qkvi_page_measure_heads(page, i, n, measures, error));
        measured += n;
        used += qkvi_page_head_bytes(page, &page->heads[i], measures[i].half);
        if (i > 0 && page->limit_bytes > 0 && used > (size_t)page->limit_bytes) break;
        result->n_heads++;
        result->n_f16 += measures[i].half;
        if (measures[i].half && measures[i].error > result->max_error)
            result->max_error = measures[i].error;
    }
    return QKV_OK;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/*
 * The heads after the first, some at a time: while threads encode these, one writes those before.
 * Texts are used again, so memory is that of a few heads.
 */
enum { TEXTS = 8 };

struct stream {
    const qkv_page *page;
    const qkvi_page_measure *measures;
    qkvi_writer *writer; /* NULL: into memory */
    qkvi_bytes made;
    int64_t first; /* of the heads that are encoded */
    qkvi_bytes texts[2][TEXTS], *now, *before;
    int n_now, n_before;
    int64_t n_bytes;
    qkv_status status;
    qkv_error *error;
};

static void put(struct stream *s, const qkvi_bytes *text) {
    if (s->status != QKV_OK) return;
    if (!s->writer && !text->failed) qkvi_bytes_add(&s->made, text->data, text->n);
    if (text->failed || s->made.failed)
        s->status = qkvi_no_memory(s->error, "the page");
    else if (s->writer)
        s->status = qkvi_writer_put(s->writer, text->data, text->n, s->error);
    s->n_bytes += (int64_t)text->n;
}

/* Task 0 writes, the others encode a head each. */
static void stream_one(void *argument, int index) {
    struct stream *const s = argument;
    if (index == 0) {
        for (int t = 0; t < s->n_before; t++) put(s, &s->before[t]);
        return;
    }
    qkvi_bytes *const text = &s->now[index - 1];
    const int64_t i = s->first + index - 1;
    text->n = 0;
    add_head(text, s->page, i, s->measures[i].half);
}

static void put_heads(struct stream *s, int64_t n_heads) {
    s->now = s->texts[0], s->before = s->texts[1];
    s->first = 1;
    while (s->status == QKV_OK && (s->first < n_heads || s->n_before > 0)) {
        const int64_t left = n_heads - s->first;
        s->n_now = left < TEXTS ? (int)left : TEXTS;
        qkvi_pool_run(s->page->ctx ? s->page->ctx->pool : NULL, 1 + s->n_now, stream_one, s);
        qkvi_bytes *const written = s->before;
        s->before = s->now, s->now = written;
        s->n_before = s->n_now;
        s->first += s->n_now;
    }
    for (int t = 0; t < TEXTS; t++) {
        qkvi_bytes_free(&s->texts[0][t]);
        qkvi_bytes_free(&s->texts[1][t]);
    }
}

/* All that stands before the second head. */
static void add_most(qkvi_bytes *file, const qkv_page *page, const qkvi_page_measure *measures,
                     int64_t n_heads) {
    qkvi_bytes script = { 0 };
    qkvi_page_add_script(&script, page);
    add_begin(file, page, &script);
    qkvi_page_add_plain(file, page, &measures[0]);
    qkvi_page_add_manifest(file, page, measures, n_heads);
    add_head(file, page, 0, measures[0].half);
    qkvi_bytes_text(file, "<script>");
    qkvi_bytes_add(file, script.data, script.n);
    qkvi_bytes_text(file, "</script>\n");
    if (script.failed) file->failed = 1;
    qkvi_bytes_free(&script);
}

/* All of it, by the stream. */
static qkv_status put_all(struct stream *s, qkv_page_result *result) {
    static const char end[] = "</body>\n</html>\n";
    const qkvi_bytes last = { .data = (unsigned char *)(uintptr_t)end, .n = sizeof end - 1 };
    qkvi_bytes file = { 0 };
    add_most(&file, s->page, s->measures, result->n_heads);
    put(s, &file);
    qkvi_bytes_free(&file);
    put_heads(s, result->n_heads);
    put(s, &last);
    result->n_bytes = s->n_bytes;
    return s->status;
}

static qkv_status write_file(struct stream *s, const char *path, qkv_page_result *result) {
    qkvi_writer writer;
    QKV_TRY(qkvi_writer_begin(path, &writer, s->error));
    s->writer = &writer;
    if (put_all(s, result) == QKV_OK) return qkvi_writer_commit(&writer, s->error);
    qkvi_writer_end(&writer);
    return s->status;
}

static qkv_status make_text(struct stream *s, qkv_text **html, qkv_page_result *result) {
    qkv_text *const text = malloc(sizeof *text);
    if (!text || put_all(s, result) != QKV_OK) goto failed;
    const int64_t n = (int64_t)s->made.n;
    qkvi_bytes_add(&s->made, "", 1);
    if (s->made.failed) goto failed;
    *text = (qkv_text){ (char *)s->made.data, n };
    *html = text;
    return QKV_OK;
failed:
    free(text);
    qkvi_bytes_free(&s->made);
    return s->status != QKV_OK ? s->status : qkvi_no_memory(s->error, "the page");
}

/* To the path, or NULL: into memory. */
static qkv_status check_and_put(qkv_page *page, const char *path, qkv_text **html,
                                qkv_page_result *result, qkv_error *error) {
    qkv_attention_desc rules;
    QKV_TRY(take_runs(page, error));
    QKV_TRY(take_queries(page, error));
    QKV_TRY(qkvi_page_check(page, error));
    QKV_TRY(take_rules(page, &rules, error));
    qkvi_page_measure *const measures = qkvi_calloc_array((size_t)page->n_heads, sizeof *measures);
    if (measures == NULL) return qkvi_no_memory(error, "the heads");
    struct stream stream = { .page = page, .measures = measures, .error = error };
    qkv_status status = choose(page, measures, result, error);
    if (status == QKV_OK)
        status = path ? write_file(&stream, path, result) : make_text(&stream, html, result);
    free(measures);
    return status;
}

static qkv_status put_page(const qkv_page *given, const char *path, qkv_text **html,
                           qkv_page_result *result, qkv_error *error) {
    qkv_page page = { 0 };
    qkvi_page_lists lists;
    qkv_page_result made = qkv_page_result_init();
    if (given == NULL) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "page is NULL");
    QKV_TRY(qkvi_options_read(&page, sizeof page, given, "qkv_page", error));
    if (result) QKV_TRY(qkvi_options_read(&made, sizeof made, result, "qkv_page_result", error));
    made = qkv_page_result_init();
    qkv_status status = qkvi_page_lists_read(&page, &lists, error);
    if (status == QKV_OK) status = check_and_put(&page, path, html, &made, error);
    qkvi_page_lists_free(&lists);
    if (status == QKV_OK && result) qkvi_options_write(result, &made, sizeof made);
    return status;
}

qkv_status qkv_page_write(const qkv_page *page, const char *path, qkv_page_result *result,
                          qkv_error *error) {
    if (path == NULL) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "path is NULL");
    const char *const dot = strrchr(path, '.');
    if (dot == NULL || strcmp(dot, ".html") != 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s does not end in .html", path);
    return put_page(page, path, NULL, result, error);
}

qkv_status qkv_page_make(const qkv_page *page, qkv_text **html, qkv_page_result *result,
                         qkv_error *error) {
    if (html == NULL) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "html is NULL");
    *html = NULL;
    return put_page(page, NULL, html, result, error);
}
