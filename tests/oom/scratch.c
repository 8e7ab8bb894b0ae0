/* Hashes and files for the functions of a call: see sweep.h. No failure is injected here. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "limits/temporary.h"
#include "oom/sweep.h"

char oom_folder[TEMPORARY_PATH];
const char *oom_unwatched = "";

uint64_t oom_hash(uint64_t hash, const void *bytes, size_t n) {
    const unsigned char *const at = bytes;
    if (hash == 0) hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

uint64_t oom_hash_text(uint64_t hash, const char *text) {
    return text ? oom_hash(hash, text, strlen(text) + 1) : oom_hash(hash, "", 0);
}

uint64_t oom_hash_file(const char *path) {
    char bytes[4096];
    size_t n;
    uint64_t hash = oom_hash_text(0, path);
    FILE *const file = fopen(path, "rb");
    if (!file) return 0;
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0) hash = oom_hash(hash, bytes, n);
    fclose(file);
    return hash;
}

static void list_folder(const char *path, oom_files *files) {
    char inner[512];
    struct stat status;
    DIR *const folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (strstr(oom_unwatched, entry->d_name)) continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        const bool is_folder = lstat(inner, &status) == 0 && S_ISDIR(status.st_mode);
        oom_claim(files->n < 64, "few files are written");
        files->hashes[files->n++] = is_folder ? oom_hash_text(0, inner) : oom_hash_file(inner);
        if (is_folder) list_folder(inner, files);
    }
    if (folder) closedir(folder);
}

oom_files oom_list_files(void) {
    oom_files files = { .n = 0 };
    list_folder(oom_folder, &files);
    return files;
}

bool oom_has_file(const oom_files *files, uint64_t hash) {
    for (int i = 0; i < files->n; i++)
        if (files->hashes[i] == hash) return true;
    return false;
}

bool oom_same_files(const oom_files *a, const oom_files *b) {
    bool same = a->n == b->n;
    for (int i = 0; i < a->n; i++) same &= oom_has_file(b, a->hashes[i]);
    return same;
}

/* A link goes, what it leads to stays. */
static void remove_all(const char *path) {
    char inner[512];
    struct stat status;
    const bool is_folder = lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
    DIR *const folder = is_folder ? opendir(path) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        remove_all(inner);
    }
    if (folder) closedir(folder);
    remove(path);
}

void oom_put(const char *path, const void *bytes, size_t n) {
    remove_all(path);
    if (!bytes) return;
    FILE *const file = fopen(path, "wb");
    if (file && fwrite(bytes, 1, n, file) == n && fclose(file) == 0) return;
    perror(path);
    exit(1);
}

void oom_path(char path[256], const char *name) { snprintf(path, 256, "%s/%s", oom_folder, name); }

void oom_claim(bool is_so, const char *what) {
    if (is_so) return;
    fprintf(stderr, "not so: %s\n", what);
    abort();
}

void oom_must(qkv_status status, const qkv_error *error) {
    if (status == QKV_OK) return;
    fprintf(stderr, "%s: %s\n", qkv_status_name(status), error->message);
    exit(1);
}
