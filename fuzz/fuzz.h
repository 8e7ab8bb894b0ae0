/*
 * What the fuzzers share. Each fuzz_<parser>.c defines LLVMFuzzerTestOneInput, the entry that
 * libFuzzer and replay.c call with bytes that may be anything; what it finds wrong ends the
 * process. A check may never depend on an earlier input.
 */
#ifndef QKV_FUZZ_H
#define QKV_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qkv/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

/* Ends the process unless the condition holds, in every build type. */
#define FUZZ_CHECK(condition) ((condition) ? (void)0 : fuzz_failed(__FILE__, __LINE__, #condition))
_Noreturn void fuzz_failed(const char *file, int line, const char *condition);

/*
 * Of a failure: the error names the same status and says something, in which nothing can steer a
 * terminal. Returns whether the status is QKV_OK.
 */
bool fuzz_accepted(qkv_status status, const qkv_error *error);

/* n bytes of memory without anything behind them, for ASan to watch; never NULL. */
void *fuzz_alloc(size_t n_bytes);

/*
 * Cuts the input behind each NUL that a '{' follows, and names the parts: the first, and up to n
 * others, which are there only if the input has them.
 */
struct qkvi_text_file;
void fuzz_parts(const uint8_t *bytes, size_t n_bytes, struct qkvi_text_file *first, int n,
                struct qkvi_text_file *const *others);

/* The input as a file, whose path stays the same; the next call replaces its content. */
const char *fuzz_file(const uint8_t *bytes, size_t n_bytes);

/*
 * Encodes a text, or a pair if b is not NULL, and checks what comes out: ids in range, places in
 * order and within their text. Invalid UTF-8 may be refused.
 */
void fuzz_encode(const qkv_tokenizer *tokenizer, const char *a, size_t a_bytes, const char *b,
                 size_t b_bytes);

/* An input read from the front; zeros follow its end. */
typedef struct fuzz_reader {
    const uint8_t *at;
    size_t left;
} fuzz_reader;

uint8_t fuzz_byte(fuzz_reader *reader);
uint64_t fuzz_u64(fuzz_reader *reader); /* little-endian */

#endif
