/* Hashes and files for the parts of a call; see sweep.h. Nothing here is ever disturbed. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "oom/sweep.h"

char oom_folder[64];

uint64_t oom_hash(uint64_t hash, const void *bytes, size_t n) {
    const unsigned char *const at = bytes;
    if (hash == 0) hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

uint64_t oom_hash_text(uint64_t hash, const char *text) {
    return text ? oom_hash(hash, text, strlen(text) + 1) : oom_hash(hash, "", 0);
}

static uint64_t hash_file(uint64_t hash, const char *path) {
    char bytes[4096];
    size_t n;
    FILE *const file = fopen(path, "rb");
    if (!file) return oom_hash_text(hash, "cannot be opened");
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0) hash = oom_hash(hash, bytes, n);
    fclose(file);
    return hash;
}

/* Names in a folder are hashed in order; a folder's own are added up, so that no order is needed. */
uint64_t oom_hash_path(const char *path) {
    char inner[512];
    struct stat status;
    uint64_t sum = 0;
    if (lstat(path, &status) != 0) return 0;
    if (!S_ISDIR(status.st_mode)) return hash_file(0, path);
    DIR *const folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        const uint64_t content = oom_hash_path(inner);
        sum += oom_hash(oom_hash_text(0, entry->d_name), &content, sizeof content);
    }
    if (folder) closedir(folder);
    return oom_hash(0, &sum, sizeof sum);
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
