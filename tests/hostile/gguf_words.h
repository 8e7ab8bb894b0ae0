/*
 * GGUF files made from words in a string. G: the beginning of a file, with the numbers of words K
 * and T, which mark keys and tensors; s:TEXT: a string; 1:N 2:N 4:N 8:N: a number of so many bytes;
 * f:X: an f32; a:N: zeros up to a multiple of N; z:N: N zeros; x:HH: a byte.
 */
#ifndef QKV_TESTS_HOSTILE_GGUF_WORDS_H
#define QKV_TESTS_HOSTILE_GGUF_WORDS_H

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "hostile/cage.h"

static void put_number(FILE *out, uint64_t value, int n_bytes) {
    for (int b = 0; b < n_bytes; b++) fputc((int)(value >> 8 * b & 255), out);
}

static void put_start(FILE *out, const char *words) {
    uint64_t n_tensors = 0, n_keys = 0;
    for (const char *at = words; (at = strpbrk(at, "TK")); at++) {
        const int is_alone = (at == words || at[-1] == ' ') && (at[1] == ' ' || at[1] == '\0');
        n_tensors += is_alone && *at == 'T';
        n_keys += is_alone && *at == 'K';
    }
    fwrite("GGUF", 1, 4, out);
    put_number(out, 3, 4);
    put_number(out, n_tensors, 8);
    put_number(out, n_keys, 8);
}

static void put_word(FILE *out, const char *word, size_t n, const char *words) {
    const char *const rest = word + 2;
    float real;
    uint32_t bits;
    switch (*word) {
    case 'G': put_start(out, words); break;
    case 's':
        put_number(out, n - 2, 8);
        fwrite(rest, 1, n - 2, out);
        break;
    case 'f':
        real = strtof(rest, NULL);
        memcpy(&bits, &real, sizeof bits);
        put_number(out, bits, 4);
        break;
    case 'a':
        while (ftell(out) % atol(rest)) fputc(0, out);
        break;
    case 'z':
        for (long i = atol(rest); i > 0; i--) fputc(0, out);
        break;
    case 'x': fputc((int)strtoul(rest, NULL, 16), out); break;
    case 'T':
    case 'K': break;
    default: put_number(out, strtoull(rest, NULL, 0), *word - '0');
    }
}

static void make_words(FILE *out, const hostile_file *file) {
    for (const char *at = file->text; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        put_word(out, at, n, file->text);
        at += n;
    }
}

#define WORDS(words) .make = make_words, .text = (words)
#define KEY(name)    " K s:" name
#define U32(n)       " 4:4 4:" n

#endif
