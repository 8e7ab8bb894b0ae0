/** The page's script and style as a file holds them. */
#ifndef QKVI_VIEW_PAGE_CODE_H
#define QKVI_VIEW_PAGE_CODE_H

#include "view/bytes.h"

/** Zeros are empty ones. */
typedef struct qkvi_page_code {
    qkvi_bytes style, script;
    qkvi_bytes names; /* a line "before after" for each name that is another in the file */
} qkvi_page_code;

void qkvi_page_code_make(qkvi_page_code *code);
/** A script without spaces in fewer words (page_short.c). */
void qkvi_script_shorten(qkvi_bytes *code, const char *at, const char *end);
/** The same with shorter names of what it declares, which lines (nullable) tells (page_names.c). */
void qkvi_script_rename(qkvi_bytes *code, qkvi_bytes *lines, const char *at, const char *end);
void qkvi_page_code_free(qkvi_page_code *code);

#endif
