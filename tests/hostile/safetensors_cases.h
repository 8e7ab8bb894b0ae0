/**
 * Hostile .safetensors files: the rows ST01 to ST35 of docs/hostile-inputs.md that are one file
 * each. The loader and the audit both read them.
 */
#ifndef QKV_TESTS_HOSTILE_SAFETENSORS_CASES_H
#define QKV_TESTS_HOSTILE_SAFETENSORS_CASES_H

#include "hostile/cage.h"

extern const hostile_file safetensors_cases[];
extern const size_t n_safetensors_cases;

/** file->number tensors of one float each. */
void make_many_tensors(FILE *out, const hostile_file *file);

#endif
