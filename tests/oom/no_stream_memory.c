/*
 * A preloaded library: memory streams of the C library get no memory to grow beyond about 16 kB.
 * All other allocations succeed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t bytes);

__attribute__((visibility("default"))) void *malloc(size_t bytes) {
    Dl_info caller;
    if (bytes > 20000 && dladdr(__builtin_return_address(0), &caller) && caller.dli_sname &&
        strstr(caller.dli_sname, "IO_str")) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(bytes);
}
