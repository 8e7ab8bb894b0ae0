/*
 * The audit of safetensors files (`qkv info --strict`): every row of safetensors_cases.c with the
 * rules that it must find, all of them and no others, in the same cage as the loader; files of
 * more than one fault; and that no mutant of a valid file is called clean which does not open.
 */
#include "hostile/safetensors_cases.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/rng.h"
#include "core/status.h"
#include "files/audit.h"
#include "files/file.h"
#include "qkv/files.h"

enum { N_MUTATIONS = 20000, PURPOSE = 78 };
#define AUDITED QKV_ERR_DTYPE /* a class that no audit gives: its message is the list of rules */

/* Rules by commas, each once. The headers of most cases end anywhere, so that one is left out. */
static void collect(void *user, const qkv_finding *finding) {
    char *const rules = user;
    const size_t n = strlen(rules);
    if (strcmp(finding->rule, "unaligned-data") == 0) return;
    if (strstr(rules, finding->rule)) return;
    if (n < 300) snprintf(rules + n, 400 - n, "%s%s", n ? "," : "", finding->rule);
}

static qkv_status audit_file(const char *path, qkv_error *error) {
    char rules[400] = "";
    qkv_audit audit = qkv_audit_init();
    const qkv_status status = qkv_tensor_audit(path, collect, rules, &audit, error);
    if (status != QKV_OK) return status;
    return qkvi_error_set(error, AUDITED, "%s: [%s]", path, rules);
}

/* ---- More than one fault --------------------------------------------------------------------- */

static void print(void *user, const qkv_finding *finding) {
    fprintf(user, "%s %llu %s: %s\n", finding->rule, (unsigned long long)finding->offset,
            finding->tensor ? finding->tensor : "-", finding->text);
}

static void test_all_at_once(void **state) {
    (void)state;
    static const char header[] =
        "\n {\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
        "\"\\u0061\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12],\"x\":1},"
        "\"\\u202eb\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[16,20]},"
        "\"\xc3\xa9\":{\"dtype\":\"F31\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[20,24]},"
        "\"e\xcc\x81\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[24,32]}}\t ";
    static const char expected[] =
        "leading-blanks 8 -: 2 blanks before the header's '{'\n"
        "unknown-field 122 a: unknown field 'x'\n"
        "duplicate-key 222 \xc3\xa9: 'shape' is there again, after the one at byte 210\n"
        "dtype 190 \xc3\xa9: unknown dtype 'F31'\n"
        "after-header 315 -: 1 bytes that are not all spaces between the header's '}' and the "
        "data\n"
        "duplicate-key 64 -: 'a' is there again, after the one at byte 11\n"
        "invisible-character 129 \\xe2\\x80\\xaeb: U+202E in the name, which is not seen or turns "
        "the "
        "writing\n"
        "equal-names 258 e\xcc\x81: has other bytes than the name at byte 190, but is equal to it "
        "once "
        "normalised (NFC)\n"
        "not-at-0 317 a: is the first but does not begin at 0: it begins at 4\n"
        "hole 329 \\xe2\\x80\\xaeb: leaves a hole: it begins at 16, the tensors before it end at "
        "12\n"
        "trailing-bytes 349 -: 34 bytes of data, but its tensors need 32\n"
        "unaligned-data 317 -: the data begins at byte 317, which is not a multiple of 8\n"
        "not-finite 333 \\xe2\\x80\\xaeb: 1 NaN and 1 infinite values, the first at element 0\n"
        "not-finite 341 e\xcc\x81: 0 NaN and 1 infinite values, the first at element 0\n";
    enum { HEADER = sizeof header - 1, DATA = 34 };
    static uint8_t bytes[8 + HEADER + DATA];
    char *said = NULL;
    size_t n = 0;
    qkv_audit audit = qkv_audit_init();
    qkv_error error;
    bytes[0] = HEADER & 255;
    bytes[1] = HEADER >> 8;
    memcpy(bytes + 8, header, HEADER);
    memcpy(bytes + 8 + HEADER + 16, "\x01\x7e\x00\xfc", 4); /* f16: NaN, -inf */
    memcpy(bytes + 8 + HEADER + 24, "\0\0\0\0\0\0\xf0\x7f", 8);
    FILE *const out = open_memstream(&said, &n);
    if (qkvi_audit_memory("m", bytes, sizeof bytes, print, out, &audit, &error))
        fail_msg("%s", error.message);
    fclose(out);
    assert_string_equal(said, expected);
    assert_int_equal(audit.n_findings, 14);
    assert_int_equal(audit.n_tensors, 4); /* the hidden 'a' is none */
    assert_int_equal(audit.n_bytes, sizeof bytes);
    free(said);
}

static void test_arguments(void **state) {
    (void)state;
    qkv_audit audit = qkv_audit_init();
    qkv_error error;
    assert_int_equal(qkv_tensor_audit(NULL, print, NULL, &audit, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_tensor_audit("x", NULL, NULL, &audit, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_tensor_audit("x", print, NULL, NULL, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_tensor_audit("/dev/zero", print, NULL, &audit, &error), QKV_ERR_IO);
    assert_int_equal(qkv_tensor_audit("absent", print, NULL, &audit, &error), QKV_ERR_IO);
}

/* ---- Loader and audit agree ------------------------------------------------------------------ */

/* What the loader lets pass; of anything else a file that opens must be free. */
static void check_lax(void *user, const qkv_finding *finding) {
    static const char *const lax[] = { "unaligned-data", "unaligned-tensor",
                                       "empty-name",     "control-character",
                                       "equal-names",    "invisible-character",
                                       "not-finite" };
    for (size_t r = 0; r < sizeof lax / sizeof *lax; r++)
        if (strcmp(finding->rule, lax[r]) == 0) return;
    snprintf(user, 200, "%s: %s", finding->rule, finding->text);
}

static void check_agreement(int number, const char *bytes, size_t n, int64_t counts[2]) {
    qkvi_safetensors *file;
    qkv_audit audit = qkv_audit_init();
    qkv_error error;
    char strict[200] = "";
    const qkv_status loaded = qkvi_safetensors_open_memory("m", bytes, n, &file, &error);
    qkvi_safetensors_close(file);
    const qkv_status audited = qkvi_audit_memory("m", bytes, n, check_lax, strict, &audit, &error);
    if (audited != QKV_OK && audited != loaded)
        fail_msg("mutation %d: the loader says %s, the audit \"%s\"", number,
                 qkv_status_name(loaded), error.message);
    if (loaded == QKV_OK && *strict)
        fail_msg("mutation %d opens, but for the audit it has %s", number, strict);
    if (loaded != QKV_OK && audited == QKV_OK && !*strict)
        fail_msg("mutation %d does not open, but no finding says why", number);
    if (strncmp(strict, "refused", 7) == 0)
        fail_msg("mutation %d: the audit missed what the loader says: %s", number, strict);
    counts[loaded == QKV_OK]++;
}

/*
 * A few bytes of the header changed, or one put in or taken out, which the header's length follows
 * in most cases, so that what comes after it still means something.
 */
static size_t mutate(char *bytes, size_t n, uint32_t head, qkvi_rng *rng) {
    static const char pool[] = "{}[](),:\"\\ \n0123456789-.eEtfnulFDIx\x00\xff\x80";
    for (uint32_t change = 1 + qkvi_rng_below(rng, 3); change > 0; change--) {
        const size_t any = qkvi_rng_below(rng, 20) ? 8 + qkvi_rng_below(rng, head)
                                                   : qkvi_rng_below(rng, (uint32_t)n);
        const size_t at = any % n;
        const char byte = pool[qkvi_rng_below(rng, sizeof pool - 1)];
        const uint32_t kind = qkvi_rng_below(rng, 8);
        if (kind == 0) {
            memmove(bytes + at + 1, bytes + at, n++ - at);
            bytes[0] = (char)(bytes[0] + (qkvi_rng_below(rng, 8) > 0));
        } else if (kind == 1) {
            memmove(bytes + at, bytes + at + 1, --n - at);
            bytes[0] = (char)(bytes[0] - (qkvi_rng_below(rng, 8) > 0));
        }
        if (kind != 1) bytes[at] = byte;
    }
    return n;
}

static void mutate_file(const char *path, int n_mutations, int64_t counts[2]) {
    char *bytes;
    size_t n;
    qkv_error error;
    if (qkvi_file_load(path, 1 << 20, &bytes, &n, &error)) fail_msg("%s", error.message);
    const uint32_t head = (uint32_t)(uint8_t)bytes[0] + ((uint32_t)(uint8_t)bytes[1] << 8);
    for (int number = 0; number < n_mutations; number++) {
        qkvi_rng rng = qkvi_rng_make(1, PURPOSE, (uint64_t)number);
        char *const room = malloc(n + 4);
        assert_non_null(room);
        memcpy(room, bytes, n);
        const size_t n_mutant = mutate(room, n, head, &rng);
        char *const mutant = malloc(n_mutant); /* exact: a sanitizer sees the first byte beyond */
        assert_non_null(mutant);
        memcpy(mutant, room, n_mutant);
        check_agreement(number, mutant, n_mutant, counts);
        free(mutant);
        free(room);
    }
    free(bytes);
}

/* Of a file without findings, where the loader has the last word, and of one that has some. */
static void test_mutations(void **state) {
    (void)state;
    int64_t counts[2] = { 0 };
    mutate_file(QKV_TEST_DATA "/files/store_data/metadata.safetensors", N_MUTATIONS, counts);
    mutate_file(QKV_TEST_DATA "/files/store_data/mixed.safetensors", N_MUTATIONS, counts);
    assert_true(counts[0] > N_MUTATIONS / 5 && counts[1] > N_MUTATIONS / 50);
}

int main(void) {
    hostile_file *const rows = calloc(n_safetensors_cases, sizeof *rows);
    static char expected[512][100];
    if (!rows || n_safetensors_cases > 512) return 1;
    for (size_t c = 0; c < n_safetensors_cases; c++) {
        rows[c] = safetensors_cases[c];
        if (!rows[c].rules) continue; /* cannot be audited: the same error */
        if (*rows[c].rules == '!') {  /* or another text */
            rows[c].says = rows[c].rules + 1;
            continue;
        }
        snprintf(expected[c], sizeof expected[c], ": [%s]", rows[c].rules);
        rows[c].status = AUDITED;
        rows[c].says = expected[c];
    }
    const hostile_family family = {
        "hostile_audit", "hostile.safetensors", audit_file, rows, n_safetensors_cases, NULL, NULL
    };
    const struct CMUnitTest others[] = {
        cmocka_unit_test(test_all_at_once),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_mutations),
    };
    const int failed = hostile_main(&family, others, sizeof others / sizeof *others);
    free(rows);
    return failed;
}
