/*
 * Reads results of `qkv bench --json`. The file is not trusted: fields that are used are checked,
 * others are ignored.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "common/json.h"
#include "common/lines.h"

enum { MOST_BYTES = 4 << 20, MOST_CASES = 1000, MOST_NAME = 200 };

static int broken(const char *path, int index, const char *rule) {
    return cli_fail("%s: case %d: %s", path, index, rule);
}

/* The whole file, or an exit code, having said why; to be freed. */
static int read_all(const char *path, struct text *text) {
    qkv_error error;
    FILE *const file = open_text(path, &error);
    if (!file) return cli_status(error.status, &error);
    int code = text_read(file, MOST_BYTES, text) ? EXIT_OK : cli_fail("out of memory");
    if (!code && ferror(file))
        code = cli_fail("%s: %s", path, strerror(errno));
    else if (!code && text->n > MOST_BYTES)
        code = cli_fail("%s: more than %d bytes", path, MOST_BYTES);
    fclose(file);
    return code;
}

/* A field that is a finite number of at least 0; absent or null where `optional`: 0. */
static bool read_number(const json_t *object, const char *name, bool optional, double *value) {
    const json_t *field = json_object_get(object, name);
    *value = json_number_value(field);
    if (optional && (!field || json_is_null(field))) return true;
    return json_is_number(field) && isfinite(*value) && *value >= 0;
}

static bool printable(const char *text) {
    size_t n = 0;
    while (text[n] >= ' ' && text[n] <= '~') n++;
    return text[n] == '\0' && n > 0 && n <= MOST_NAME;
}

static int read_case(const char *path, struct bench_file *file, const json_t *object) {
    struct bench_result *r = &file->results[file->n];
    const json_t *name = json_object_get(object, "case"), *busy = json_object_get(object, "busy");
    if (!json_is_object(object)) return broken(path, file->n, "is no object");
    if (!json_is_string(name) || json_string_length(name) != strlen(json_string_value(name)) ||
        !printable(json_string_value(name)))
        return broken(path, file->n, "\"case\" is no name: 1 to 200 characters of ASCII");
    r->name = json_string_value(name);
    for (int i = 0; i < file->n; i++)
        if (strcmp(file->results[i].name, r->name) == 0)
            return broken(path, file->n, "has the name of another");
    if (!read_number(object, "seconds", false, &r->seconds) || !(r->seconds > 0))
        return broken(path, file->n, "\"seconds\" is no number above 0");
    if (!read_number(object, "gflops", false, &r->gflops))
        return broken(path, file->n, "\"gflops\" is no number from 0");
    if (!read_number(object, "share", true, &r->share))
        return broken(path, file->n, "\"share\" is neither null nor a number from 0");
    if (busy && !json_is_boolean(busy)) /* files from before have none */
        return broken(path, file->n, "\"busy\" is neither true nor false");
    r->busy = json_is_true(busy);
    file->n++;
    return EXIT_OK;
}

static int read_fields(const char *path, struct bench_file *file) {
    const json_t *isa = json_object_get(file->json, "isa");
    const json_t *threads = json_object_get(file->json, "threads");
    const json_t *cases = json_object_get(file->json, "cases");
    if (!json_is_object(file->json) || !json_is_array(cases))
        return cli_fail("%s: is no result of qkv bench --json: it has no array \"cases\"", path);
    if (!json_is_string(isa) || !printable(json_string_value(isa)))
        return cli_fail("%s: \"isa\" is no name", path);
    if (!json_is_integer(threads) || json_integer_value(threads) < 1)
        return cli_fail("%s: \"threads\" is no number from 1", path);
    if (json_array_size(cases) > MOST_CASES)
        return cli_fail("%s: more than %d cases", path, MOST_CASES);
    file->isa = json_string_value(isa);
    file->threads = json_integer_value(threads);
    file->results = calloc(json_array_size(cases) + 1, sizeof *file->results);
    int code = file->results ? EXIT_OK : cli_fail("out of memory");
    for (size_t i = 0; i < json_array_size(cases) && !code; i++)
        code = read_case(path, file, json_array_get(cases, i));
    return code;
}

int bench_file_read(const char *path, struct bench_file *file) {
    struct text text = { NULL, 0 };
    json_error_t error;
    *file = (struct bench_file){ 0 };
    int code = read_all(path, &text);
    if (!code) file->json = json_loadb(text.bytes, text.n, JSON_REJECT_DUPLICATES, &error);
    free(text.bytes);
    if (code) return code;
    if (!file->json)
        return cli_fail("%s: no JSON: line %d, column %d", path, error.line, error.column);
    code = read_fields(path, file);
    if (code) bench_file_free(file);
    return code;
}

void bench_file_free(struct bench_file *file) {
    free(file->results);
    json_decref(file->json);
    *file = (struct bench_file){ 0 };
}
