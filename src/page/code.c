/** The script of a page, one <script> element, and its hash for the policy. See parts.h. */
#include "page/parts.h"

#include "files/encode.h"
#include "page/sha256.h"

void qkvi_page_add_hash(qkvi_bytes *file, const char *what, const void *data, size_t n) {
    uint8_t digest[32];
    qkvi_sha256(data, n, digest);
    qkvi_bytes_text(file, what);
    qkvi_bytes_text(file, " 'sha256-");
    qkvi_base64_add(file, digest, sizeof digest);
    qkvi_bytes_text(file, "'; ");
}

size_t qkvi_page_add_script(qkvi_bytes *script, const qkv_page *page) {
    const struct {
        const char *begin, *end;
        int is_used;
    } parts[] = { { qkvi_page_script, qkvi_page_script_end, 1 },
                  { qkvi_page_tables, qkvi_page_tables_end, page->n_tables > 0 },
                  { qkvi_page_image, qkvi_page_image_end, page->image != NULL },
                  { qkvi_page_made_by, qkvi_page_made_by_end, page->made_by != NULL },
                  { qkvi_page_main, qkvi_page_main_end, 1 } };
    size_t bytes = 0;
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        const size_t n = parts[p].is_used ? (size_t)(parts[p].end - parts[p].begin) : 0;
        if (script) qkvi_bytes_add(script, parts[p].begin, n);
        bytes += n;
    }
    return bytes;
}
