/*
 * A main without libFuzzer: runs every file of the named files and folders through the entry, so
 * that any compiler can replay a corpus. Fails if there is none.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"

enum { PATH_BYTES = 1024 };

static int n_inputs;

static void replay_file(const char *path, size_t n_bytes) {
    FILE *const file = fopen(path, "rb");
    FUZZ_CHECK(file);
    uint8_t *const bytes = fuzz_alloc(n_bytes);
    FUZZ_CHECK(fread(bytes, 1, n_bytes, file) == n_bytes);
    fclose(file);
    fprintf(stderr, "%s\n", path); /* the last line names the culprit of a crash */
    LLVMFuzzerTestOneInput(bytes, n_bytes);
    free(bytes);
    n_inputs++;
}

static void replay(const char *path) {
    struct stat status;
    FUZZ_CHECK(stat(path, &status) == 0);
    if (S_ISREG(status.st_mode)) replay_file(path, (size_t)status.st_size);
    if (!S_ISDIR(status.st_mode)) return;
    DIR *const folder = opendir(path);
    FUZZ_CHECK(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char name[PATH_BYTES];
        if (entry->d_name[0] == '.') continue;
        FUZZ_CHECK(snprintf(name, sizeof name, "%s/%s", path, entry->d_name) < PATH_BYTES);
        replay(name);
    }
    closedir(folder);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) replay(argv[i]);
    printf("%d inputs\n", n_inputs);
    return n_inputs ? EXIT_SUCCESS : EXIT_FAILURE;
}
