/*
 * The line of a checkpoint that says which run it is of: as it is, and again with the checksum that
 * it should have, which a fuzzer cannot guess. What is accepted is the same run after it was
 * written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "train/run_fields.h"

static void check(const char *text) {
    qkvi_run_fields fields, again, other = { 0 };
    char written[QKVI_RUN_BYTES];
    qkv_error error;
    if (!fuzz_accepted(qkvi_run_fields_parse("x", text, &fields, &error), &error)) return;
    qkvi_run_fields_print(&fields, written);
    FUZZ_CHECK(qkvi_run_fields_parse("x", written, &again, &error) == QKV_OK);
    FUZZ_CHECK(memcmp(&fields, &again, sizeof fields) == 0);
    FUZZ_CHECK(qkvi_run_fields_match("x", &again, &fields, &error) == QKV_OK);
    fuzz_accepted(qkvi_run_fields_match("x", &fields, &other, &error), &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    static const char check_name[] = "check=";
    const size_t room = n_bytes + sizeof check_name + 16;
    char *const text = fuzz_alloc(room);
    memcpy(text, bytes, n_bytes);
    text[n_bytes] = '\0';
    check(text);
    const char *const old = strstr(text, check_name);
    const size_t n = old ? (size_t)(old - text) : strlen(text);
    snprintf(text + n, room - n, "%s%016llx", check_name,
             (unsigned long long)qkvi_hash(QKVI_HASH_START, text, n));
    check(text);
    free(text);
    return 0;
}
