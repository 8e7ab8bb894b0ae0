/* See fuzz.h. */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "text/settings.h"

void fuzz_failed(const char *file, int line, const char *condition) {
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}

bool fuzz_accepted(qkv_status status, const qkv_error *error) {
    if (status == QKV_OK) return true;
    FUZZ_CHECK(error->status == status);
    FUZZ_CHECK(strcmp(qkv_status_name(status), "unknown status") != 0);
    const size_t n = strnlen(error->message, sizeof error->message);
    FUZZ_CHECK(n > 0 && n < sizeof error->message);
    for (size_t i = 0; i < n; i++)
        FUZZ_CHECK((unsigned char)error->message[i] >= ' ' && error->message[i] != 0x7f);
    return false;
}

void *fuzz_alloc(size_t n_bytes) {
    void *const memory = malloc(n_bytes ? n_bytes : 1);
    FUZZ_CHECK(memory);
    return memory;
}

void fuzz_parts(const uint8_t *bytes, size_t n_bytes, qkvi_text_file *first, int n,
                qkvi_text_file *const *others) {
    const char *at = (const char *)bytes, *const end = at + n_bytes;
    qkvi_text_file *part = first;
    for (int i = 0; part; i++) {
        const char *const nul = i < n && at < end ? memmem(at, (size_t)(end - at), "\0{", 2) : NULL;
        part->bytes = at;
        part->n_bytes = (size_t)((nul ? nul : end) - at);
        at = nul ? nul + 1 : end;
        part = nul ? others[i] : NULL;
    }
}

const char *fuzz_file(const uint8_t *bytes, size_t n_bytes) {
    static char path[32];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        FUZZ_CHECK(fd >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    FUZZ_CHECK(ftruncate(fd, 0) == 0);
    FUZZ_CHECK(n_bytes == 0 || pwrite(fd, bytes, n_bytes, 0) == (ssize_t)n_bytes);
    return path;
}

static void check_encoding(const qkv_tokenizer *tokenizer, const qkv_encoding *encoding,
                           size_t longest_bytes, bool is_pair) {
    int64_t before = 0;
    FUZZ_CHECK(encoding->n >= 0);
    for (int64_t i = 0; i < encoding->n; i++) {
        const int64_t begin = encoding->begin[i], end = encoding->end[i];
        size_t bytes = 0;
        FUZZ_CHECK(encoding->special[i] <= 1);
        FUZZ_CHECK(begin >= 0 && end >= begin && end <= (int64_t)longest_bytes);
        FUZZ_CHECK(qkv_tokenizer_token(tokenizer, encoding->ids[i], &bytes));
        if (end == begin || is_pair) continue;
        FUZZ_CHECK(begin >= before);
        before = begin;
    }
}

void fuzz_encode(const qkv_tokenizer *tokenizer, const char *a, size_t a_bytes, const char *b,
                 size_t b_bytes) {
    qkv_encoding *encoding;
    qkv_error error;
    const qkv_status status =
        qkv_tokenizer_encode(tokenizer, a, a_bytes, b, b_bytes, &encoding, &error);
    if (fuzz_accepted(status, &error))
        check_encoding(tokenizer, encoding, a_bytes > b_bytes ? a_bytes : b_bytes, b != NULL);
    FUZZ_CHECK((status == QKV_OK) == (encoding != NULL));
    qkv_encoding_free(encoding);
}

uint8_t fuzz_byte(fuzz_reader *reader) {
    if (!reader->left) return 0;
    reader->left--;
    return *reader->at++;
}

uint64_t fuzz_u64(fuzz_reader *reader) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value |= (uint64_t)fuzz_byte(reader) << 8 * i;
    return value;
}
