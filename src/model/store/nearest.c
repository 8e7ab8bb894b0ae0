/* See nearest.h. */
#include "model/store/nearest.h"

#include "model/base.h"

int qkvi_edit_distance(const char *a, const char *b) {
    int row[QKVI_NEAREST_BYTES + 1]; /* one at a time */
    const size_t n = strlen(a), m = strlen(b);
    if (n > QKVI_NEAREST_BYTES || m > QKVI_NEAREST_BYTES) return INT32_MAX;
    for (size_t j = 0; j <= m; j++) row[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            const int change = diagonal + (a[i - 1] != b[j - 1]);
            const int gap = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < gap ? change : gap;
        }
    }
    return row[m];
}
