/*
 * os.h by the API of Windows, with files as numbers of its C library. Names are UTF-8 here and
 * UTF-16 there. Files are opened such that others may rename and remove them meanwhile, which
 * _wopen does not ask for: a file that is read can be replaced, as it can be by POSIX.
 *
 * What this system lacks, or gives to more than one call: files without a name, permissions of
 * POSIX, signals to threads, forks. Symbolic links are followed by the system alone.
 */
#include "core/os.h"

#include <windows.h>

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const DWORD share_all = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

/* ---- Memory ---------------------------------------------------------------------------------- */

void *qkvi_os_aligned(size_t alignment, size_t bytes) { return _aligned_malloc(bytes, alignment); }
void qkvi_os_aligned_free(void *pointer) { _aligned_free(pointer); }
void qkvi_os_prefer_large_pages(void *memory, size_t bytes) { (void)memory, (void)bytes; }

/* ---- Processors, threads, time --------------------------------------------------------------- */

/* Those of the group of this process: at most 64. Its mask is 0 where it spans groups. */
int qkvi_os_processors(void) {
    DWORD_PTR own = 0, all = 0;
    if (GetProcessAffinityMask(GetCurrentProcess(), &own, &all) && own)
        return __builtin_popcountll((unsigned long long)own);
    const DWORD n = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    return n > 0 && n < 1 << 20 ? (int)n : 1;
}

/* How one asks for them here was never tried, so there are none. */
bool qkvi_os_grants_amx(void) { return false; }
/* It was never built for AArch64. */
bool qkvi_os_has_neon(void) { return false; }
bool qkvi_os_has_dotprod(void) { return false; }

void qkvi_os_yield(void) { SwitchToThread(); }
void qkvi_os_watch_forks(void (*in_child)(void)) { (void)in_child; }
void qkvi_os_hold_signals(qkvi_os_signals *signals) { (void)signals; }
void qkvi_os_let_signals(const qkvi_os_signals *signals) { (void)signals; }

double qkvi_os_seconds(void) {
    LARGE_INTEGER ticks, ticks_a_second;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&ticks_a_second);
    return (double)ticks.QuadPart / (double)ticks_a_second.QuadPart;
}

long qkvi_os_process_id(void) { return (long)GetCurrentProcessId(); }

/* ---- Files ----------------------------------------------------------------------------------- */

static int to_errno(DWORD code) {
    switch (code) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_BAD_PATHNAME: return ENOENT;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION: return EACCES;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS: return EEXIST;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY: return ENOMEM;
    case ERROR_TOO_MANY_OPEN_FILES: return EMFILE;
    case ERROR_FILENAME_EXCED_RANGE: return ENAMETOOLONG;
    case ERROR_DIRECTORY: return ENOTDIR;
    case ERROR_DISK_FULL: return ENOSPC;
    case ERROR_WRITE_PROTECT: return EROFS;
    case ERROR_BROKEN_PIPE:
    case ERROR_NO_DATA: return EPIPE;
    default: return EIO;
    }
}

/* -1, and errno by the last error. */
static int failed(void) {
    errno = to_errno(GetLastError());
    return -1;
}

/* UTF-16 of a path, to be freed; NULL with errno. */
static wchar_t *wide(const char *path) {
    const int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    if (n <= 0) {
        errno = EILSEQ;
        return NULL;
    }
    wchar_t *const made = malloc((size_t)n * sizeof *made);
    if (made) MultiByteToWideChar(CP_UTF8, 0, path, -1, made, n);
    return made;
}

/* What POSIX has names for: what qkv's own calls are given where a path is "-". */
static HANDLE standard(DWORD which) {
    HANDLE copy = INVALID_HANDLE_VALUE;
    const HANDLE self = GetCurrentProcess();
    if (!DuplicateHandle(self, GetStdHandle(which), self, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS)) {
        failed();
        return INVALID_HANDLE_VALUE;
    }
    return copy;
}

/* Folders are opened, too, for what is asked about them. */
static HANDLE opened(const char *path, DWORD access, DWORD how) {
    if (strcmp(path, "/dev/stdin") == 0) return standard(STD_INPUT_HANDLE);
    if (strcmp(path, "/dev/stdout") == 0) return standard(STD_OUTPUT_HANDLE);
    wchar_t *const name = wide(strcmp(path, "/dev/null") == 0 ? "NUL" : path);
    if (!name) return INVALID_HANDLE_VALUE;
    const HANDLE file = CreateFileW(name, access, share_all, NULL, how,
                                    FILE_ATTRIBUTE_NORMAL | FILE_FLAG_BACKUP_SEMANTICS, NULL);
    free(name);
    if (file == INVALID_HANDLE_VALUE) failed();
    return file;
}

static int number_of(HANDLE file, int flags) {
    if (file == INVALID_HANDLE_VALUE) return -1;
    const int fd = _open_osfhandle((intptr_t)file, flags | _O_BINARY | _O_NOINHERIT);
    if (fd < 0) CloseHandle(file);
    return fd;
}

/* A standard stream may be a file of which the system says no more than its size. */
static int examine_size(HANDLE file, qkvi_os_about *about) {
    LARGE_INTEGER n_bytes;
    if (!GetFileSizeEx(file, &n_bytes)) return failed();
    about->kind = QKVI_OS_FILE;
    about->n_bytes = (uint64_t)n_bytes.QuadPart;
    return 0;
}

static int examine(HANDLE file, qkvi_os_about *about) {
    BY_HANDLE_FILE_INFORMATION found;
    *about = (qkvi_os_about){ .kind = QKVI_OS_OTHER, .permissions = 0666 };
    const DWORD type = GetFileType(file);
    if (type == FILE_TYPE_PIPE) about->kind = QKVI_OS_PIPE;
    if (type != FILE_TYPE_DISK) return 0;
    if (!GetFileInformationByHandle(file, &found)) return examine_size(file, about);
    const bool is_folder = found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY;
    about->kind = is_folder ? QKVI_OS_FOLDER : QKVI_OS_FILE;
    about->n_bytes = (uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow;
    about->volume = found.dwVolumeSerialNumber;
    about->id = (uint64_t)found.nFileIndexHigh << 32 | found.nFileIndexLow;
    const uint64_t changed = (uint64_t)found.ftLastWriteTime.dwHighDateTime << 32 |
                             found.ftLastWriteTime.dwLowDateTime; /* 100 ns since 1601 */
    about->changed_s = (int64_t)(changed / 10000000) - 11644473600;
    about->changed_ns = (long)(changed % 10000000) * 100;
    return 0;
}

int qkvi_os_examine(const char *path, qkvi_os_about *about) {
    const HANDLE file = opened(path, FILE_READ_ATTRIBUTES, OPEN_EXISTING);
    if (file == INVALID_HANDLE_VALUE) return -1;
    const int result = examine(file, about);
    CloseHandle(file);
    return result;
}
int qkvi_os_examine_open(int fd, qkvi_os_about *about) {
    return examine((HANDLE)_get_osfhandle(fd), about);
}

int qkvi_os_open_to_read(const char *path) {
    return number_of(opened(path, GENERIC_READ, OPEN_EXISTING), _O_RDONLY);
}
/* DELETE: it is renamed while it is open. */
int qkvi_os_create(const char *path) {
    return number_of(opened(path, GENERIC_WRITE | DELETE, CREATE_NEW), _O_WRONLY);
}
int qkvi_os_open_to_write(const char *path) {
    return number_of(opened(path, GENERIC_WRITE, OPEN_EXISTING), _O_WRONLY);
}
int qkvi_os_open_to_change(const char *path) {
    return number_of(opened(path, GENERIC_READ | GENERIC_WRITE, OPEN_ALWAYS), _O_RDWR);
}
void qkvi_os_close(int fd) { _close(fd); }

static int64_t read_some(int fd, void *bytes, size_t n, OVERLAPPED *at) {
    const size_t most = n < (size_t)1 << 30 ? n : (size_t)1 << 30;
    DWORD got = 0;
    if (ReadFile((HANDLE)_get_osfhandle(fd), bytes, (DWORD)most, &got, at)) return (int64_t)got;
    const DWORD code = GetLastError();
    if (code == ERROR_HANDLE_EOF || code == ERROR_BROKEN_PIPE) return 0;
    errno = to_errno(code);
    return -1;
}
int64_t qkvi_os_read_at(int fd, void *bytes, size_t n, uint64_t offset) {
    OVERLAPPED at = { .Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32) };
    return read_some(fd, bytes, n, &at);
}
int64_t qkvi_os_read_pipe(int fd, void *bytes, size_t n) { return read_some(fd, bytes, n, NULL); }

int qkvi_os_create_unnamed(const char *folder) { return (void)folder, -1; }
int qkvi_os_name(int fd, const char *path) {
    (void)fd, (void)path;
    errno = ENOSYS;
    return -1;
}

/* A new file has those of its folder. */
int qkvi_os_set_permissions(int fd, unsigned permissions) { return (void)fd, (void)permissions, 0; }

int qkvi_os_flush(int fd) { return _commit(fd) == 0 ? 0 : errno; }
int qkvi_os_flush_folder(const char *folder) { return (void)folder, 0; }

/* EACCES where a program has the old file open and does not share its removal. */
int qkvi_os_replace(const char *from, const char *to) {
    wchar_t *const old_name = wide(from), *const name = old_name ? wide(to) : NULL;
    const DWORD how = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
    const int result = !name ? -1 : MoveFileExW(old_name, name, how) ? 0 : failed();
    free(name);
    free(old_name);
    return result;
}
int qkvi_os_remove(const char *path) {
    wchar_t *const name = wide(path);
    const int result = !name ? -1 : DeleteFileW(name) ? 0 : failed();
    free(name);
    return result;
}
int qkvi_os_make_folder(const char *path) {
    wchar_t *const name = wide(path);
    const int result = !name ? -1 : CreateDirectoryW(name, NULL) ? 0 : failed();
    free(name);
    return result == 0 || errno == EEXIST ? 0 : -1;
}

int qkvi_os_read_link(const char *path, char *target, size_t n) {
    (void)path, (void)target, (void)n;
    errno = EINVAL;
    return -1;
}

static bool separates(char c) { return c == '/' || c == '\\'; }
static bool has_drive(const char *path) { return path[0] && path[1] == ':'; }

/* C:file is in the current folder of a drive, C:, and C:/file in its root, C:/. */
size_t qkvi_os_split(const char *path, size_t *n_folder) {
    const size_t root = has_drive(path) ? 2 : 0;
    size_t name = root;
    for (size_t i = root; path[i]; i++)
        if (separates(path[i])) name = i + 1;
    *n_folder = name > root + 1 ? name - 1 : name;
    return name;
}
bool qkvi_os_is_absolute(const char *path) { return has_drive(path) || separates(path[0]); }

FILE *qkvi_os_open_procfs(const char *path) { return (void)path, NULL; }

struct qkvi_os_list {
    HANDLE find;
    WIN32_FIND_DATAW found;
    bool has_next;
    char name[4 * MAX_PATH]; /* of UTF-16, at most 3 bytes for each */
};

/* The pattern of all names in a folder; NULL with errno. */
static wchar_t *pattern_of(const char *folder) {
    const size_t n = strlen(folder);
    char *const text = malloc(n + sizeof "/*");
    if (!text) return NULL;
    memcpy(text, folder, n);
    memcpy(text + n, "/*", sizeof "/*");
    wchar_t *const made = wide(text);
    free(text);
    return made;
}
qkvi_os_list *qkvi_os_list_open(const char *folder) {
    wchar_t *const pattern = pattern_of(folder);
    qkvi_os_list *list = pattern ? malloc(sizeof *list) : NULL;
    if (list) {
        list->find = FindFirstFileW(pattern, &list->found);
        list->has_next = list->find != INVALID_HANDLE_VALUE;
        if (!list->has_next) {
            failed();
            free(list);
            list = NULL;
        }
    }
    free(pattern);
    return list;
}
/* A name that is no Unicode has no UTF-8, and cannot be opened by these calls: it is left out. */
const char *qkvi_os_list_next(qkvi_os_list *list) {
    while (list->has_next) {
        const int n = WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, list->found.cFileName, -1,
                                          list->name, sizeof list->name, NULL, NULL);
        list->has_next = FindNextFileW(list->find, &list->found);
        if (n > 0) return list->name;
    }
    return NULL;
}
void qkvi_os_list_close(qkvi_os_list *list) {
    FindClose(list->find);
    free(list);
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* The C library has words for the oldest numbers only. */
const char *qkvi_os_reason(int cause, char *room, size_t n) {
    switch (cause) {
    case EADDRINUSE: return "Address already in use";
    case ECONNRESET: return "Connection reset by peer";
    case ELOOP: return "Too many levels of symbolic links";
    default: return strerror_s(room, n, cause) == 0 ? room : "unknown error";
    }
}

const char *qkvi_os_home(void) {
    static _Thread_local char home[4 * MAX_PATH];
    wchar_t name[MAX_PATH];
    const DWORD n = GetEnvironmentVariableW(L"USERPROFILE", name, MAX_PATH);
    if (n == 0 || n >= MAX_PATH) return NULL;
    return WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, name, -1, home, sizeof home, NULL,
                               NULL) > 0
               ? home
               : NULL;
}

const char *qkvi_os_trusted_variable(const char *name) { return getenv(name); }
