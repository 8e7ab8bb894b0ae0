/** The page's script and style as a file holds them. */
#ifndef QKVI_VIEW_PAGE_CODE_H
#define QKVI_VIEW_PAGE_CODE_H

#include "view/bytes.h"

/** Zeros are empty ones. */
typedef struct qkvi_page_code {
    qkvi_bytes style, script;
} qkvi_page_code;

void qkvi_page_code_make(qkvi_page_code *code);
void qkvi_page_code_free(qkvi_page_code *code);

#endif
