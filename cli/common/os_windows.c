/*
 * os.h by the API of Windows. Words of the command line and names of files are UTF-8 here and
 * UTF-16 there. Consoles are told to read UTF-8 and the escapes of terminals; standard streams are
 * bytes, without other ends of lines.
 */
#include "common/os.h"

#include <windows.h>

#include <bcrypt.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <pthread.h>
#include <shellapi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/os.h"

enum { ROOM = 4096 };

/* ---- UTF-16 ---------------------------------------------------------------------------------- */

static char *put(char *at, uint32_t code) {
    static const uint8_t marks[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    const int n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, code >>= 6) at[i] = (char)(0x80 | (code & 63));
    at[0] = (char)(marks[n] | code);
    return at + n;
}

/*
 * To be freed; NULL: no memory. One surrogate without the other becomes three bytes that are no
 * UTF-8, so that it is refused where the text is read. The system would put U+FFFD there.
 */
static char *narrow(const wchar_t *text) {
    char *const made = malloc(3 * wcslen(text) + 1), *at = made;
    for (; made && *text; text++) {
        uint32_t code = *text;
        if (code >= 0xD800 && code < 0xDC00 && text[1] >= 0xDC00 && text[1] < 0xE000)
            code = 0x10000 + ((code - 0xD800) << 10) + (*++text - 0xDC00u);
        at = put(at, code);
    }
    if (made) *at = '\0';
    return made;
}

static int failed(int cause) {
    errno = cause;
    return -1;
}

/* ---- This process ---------------------------------------------------------------------------- */

/* Those of main are in the code page of the system, and have * replaced by names of files. */
static void take_words(int *argc, char ***argv) {
    int n = 0;
    wchar_t **const words = CommandLineToArgvW(GetCommandLineW(), &n);
    char **const made = words ? calloc((size_t)n + 1, sizeof *made) : NULL;
    bool whole = made != NULL;
    for (int i = 0; whole && i < n; i++) whole = (made[i] = narrow(words[i])) != NULL;
    if (whole) {
        *argc = n;
        *argv = made;
    }
    LocalFree(words);
}

/* A console that understands escapes, as those of Windows 10 do, says so as other terminals do. */
static void prepare_console(DWORD which) {
    const HANDLE console = GetStdHandle(which);
    DWORD mode;
    if (!GetConsoleMode(console, &mode) ||
        !SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING) || getenv("TERM"))
        return;
    _putenv_s("TERM", "xterm-256color");
    _putenv_s("COLORTERM", "truecolor");
}

static void open_if_closed(int fd) {
    if (_get_osfhandle(fd) >= 0) return; /* -1, or -2 */
    const int nothing = _open("NUL", fd == 0 ? _O_WRONLY : _O_RDONLY);
    if (nothing < 0 || nothing == fd) return;
    _dup2(nothing, fd);
    _close(nothing);
}

/* Those of the console, which other programs have after this one. */
static UINT pages_before[2];
static void leave_console(void) {
    SetConsoleOutputCP(pages_before[0]);
    SetConsoleCP(pages_before[1]);
}

void os_begin(int *argc, char ***argv) {
    for (int fd = 0; fd <= 2; fd++) {
        open_if_closed(fd);
        _setmode(fd, _O_BINARY);
    }
    pages_before[0] = GetConsoleOutputCP();
    pages_before[1] = GetConsoleCP();
    if (SetConsoleOutputCP(CP_UTF8) && SetConsoleCP(CP_UTF8)) atexit(leave_console);
    prepare_console(STD_OUTPUT_HANDLE);
    prepare_console(STD_ERROR_HANDLE);
    take_words(argc, argv);
}

/* The C library takes a handler away before it calls it. SIGBREAK: Ctrl-Break, a closed console. */
void os_catch_interrupts(void (*met)(int number)) {
    signal(SIGINT, met);
    signal(SIGTERM, met);
    signal(SIGBREAK, met);
}

/* As Ctrl-C without a handler, whose code shells know. */
void os_end_by(int number) {
    (void)number;
    fflush(NULL);
    leave_console();
    ExitProcess((UINT)STATUS_CONTROL_C_EXIT);
}

/* Only a writer is told, and its errno may be EINVAL: what the system said is kept beside it. */
bool os_reader_gone(void) {
    return GetFileType(GetStdHandle(STD_OUTPUT_HANDLE)) == FILE_TYPE_PIPE &&
           (_doserrno == ERROR_NO_DATA || _doserrno == ERROR_BROKEN_PIPE ||
            _doserrno == ERROR_PIPE_NOT_CONNECTED);
}

size_t os_self(char *path, size_t room) {
    wchar_t name[ROOM / 2];
    const DWORD n = GetModuleFileNameW(NULL, name, ROOM / 2);
    char *const made = n > 0 && n < ROOM / 2 ? narrow(name) : NULL;
    const size_t length = made ? strlen(made) : 0;
    const bool fits = length > 0 && length < room;
    for (size_t i = 0; fits && i <= length; i++) path[i] = (char)(made[i] == '\\' ? '/' : made[i]);
    free(made);
    return fits ? length : 0;
}

/* There is no MPI here. */
void os_become(const char *path, char *const words[]) { (void)path, (void)words; }

/*
 * Adds a word as CommandLineToArgvW reads it: in quotation marks, with a backslash before each
 * within, and twice as many before a mark as there are in front of it.
 */
static bool add_word(char *line, size_t *n, const char *word) {
    size_t n_before = 0; /* backslashes */
    if (*n + 2 * strlen(word) + 4 > ROOM) return false;
    if (*n > 0) line[(*n)++] = ' ';
    line[(*n)++] = '"';
    for (; *word; word++) {
        if (*word == '"') {
            memset(line + *n, '\\', n_before + 1);
            *n += n_before + 1;
        }
        n_before = *word == '\\' ? n_before + 1 : 0;
        line[(*n)++] = *word;
    }
    for (size_t i = 0; i < n_before; i++) line[(*n)++] = '\\';
    line[(*n)++] = '"';
    line[*n] = '\0';
    return true;
}

/* What a process is started by; UTF-16 has no more elements than UTF-8. */
struct start {
    wchar_t program[ROOM / 2], line[ROOM];
};

static bool is_started(struct start *start, const char *line, PROCESS_INFORMATION *process) {
    STARTUPINFOW how = { .cb = sizeof how };
    const DWORD n = GetModuleFileNameW(NULL, start->program, ROOM / 2);
    return n > 0 && n < ROOM / 2 &&
           MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, line, -1, start->line, ROOM) &&
           CreateProcessW(start->program, start->line, NULL, NULL, TRUE, 0, NULL, NULL, &how,
                          process);
}

int os_run_self(char *const words[], int *code, int *signal) {
    PROCESS_INFORMATION process;
    char line[ROOM];
    DWORD status = 1;
    size_t n = 0;
    *code = *signal = 0;
    for (int i = 0; words[i]; i++)
        if (!add_word(line, &n, words[i])) return failed(E2BIG);
    struct start *const start = malloc(sizeof *start);
    const bool runs = start && is_started(start, line, &process);
    free(start);
    if (!runs) return failed(ENOMEM);
    WaitForSingleObject(process.hProcess, INFINITE);
    GetExitCodeProcess(process.hProcess, &status);
    CloseHandle(process.hThread);
    CloseHandle(process.hProcess);
    *code = (int)status;
    return 0;
}

int os_random(void *bytes, size_t n) {
    return BCryptGenRandom(NULL, bytes, (ULONG)n, BCRYPT_USE_SYSTEM_PREFERRED_RNG) == 0
               ? 0
               : failed(EIO);
}

/* ---- Streams --------------------------------------------------------------------------------- */

/* _isatty is also true of NUL. */
bool os_is_terminal(FILE *stream) {
    DWORD mode;
    return GetConsoleMode((HANDLE)_get_osfhandle(_fileno(stream)), &mode);
}

int os_columns(FILE *stream) {
    CONSOLE_SCREEN_BUFFER_INFO about;
    if (!GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(_fileno(stream)), &about)) return 0;
    return about.srWindow.Right - about.srWindow.Left + 1;
}

FILE *os_open_text(const char *path, const char **reason) {
    qkvi_os_about about;
    const int fd = qkvi_os_open_to_read(path);
    *reason = fd < 0 || qkvi_os_examine_open(fd, &about) != 0 ? strerror(errno)
              : about.kind == QKVI_OS_FOLDER                  ? "is a folder"
              : about.kind == QKVI_OS_OTHER                   ? "is neither a file nor a pipe"
                                                              : NULL;
    FILE *const file = *reason ? NULL : _fdopen(fd, "rb");
    if (file) return file;
    if (!*reason) *reason = strerror(errno);
    if (fd >= 0) qkvi_os_close(fd);
    return NULL;
}

/* Of a pipe nobody sees whether it still has a writer while there are bytes in it. */
static size_t peek_pipe(HANDLE pipe, char *bytes, size_t n) {
    enum { MOST_MS = 50 }; /* for those behind the first ones */
    DWORD there = 0;
    for (int ms = 0; ms < MOST_MS && there<n; ms += there> 0) {
        if (!PeekNamedPipe(pipe, bytes, (DWORD)n, &there, NULL, NULL)) return 0; /* its end */
        if (there < n) Sleep(1);
    }
    return there;
}

size_t os_peek(const char *path, char *bytes, size_t n) {
    qkvi_os_about about;
    const int fd = qkvi_os_open_to_read(path);
    int64_t there = 0;
    if (fd < 0) return 0;
    if (qkvi_os_examine_open(fd, &about) == 0 && about.kind == QKVI_OS_FILE)
        there = qkvi_os_read_at(fd, bytes, n, 0);
    else if (about.kind == QKVI_OS_PIPE)
        there = (int64_t)peek_pipe((HANDLE)_get_osfhandle(fd), bytes, n);
    qkvi_os_close(fd);
    return there > 0 ? (size_t)there : 0;
}

int os_getc(FILE *in) { return _getc_nolock(in); }

/* Streams to memory are files of the folder for temporary ones, which are gone when closed. */
struct memory {
    FILE *out;
    char **bytes;
    size_t *n;
    struct memory *next;
};
static struct memory *memories;
static pthread_mutex_t memories_lock = PTHREAD_MUTEX_INITIALIZER;

static FILE *open_temporary(void) {
    wchar_t folder[MAX_PATH + 1], path[MAX_PATH + 1];
    if (!GetTempPathW(MAX_PATH + 1, folder) || !GetTempFileNameW(folder, L"qkv", 0, path))
        return NULL;
    const HANDLE file =
        CreateFileW(path, GENERIC_READ | GENERIC_WRITE | DELETE, 0, NULL, CREATE_ALWAYS,
                    FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
    if (file == INVALID_HANDLE_VALUE) return NULL;
    const int fd = _open_osfhandle((intptr_t)file, _O_RDWR | _O_BINARY | _O_NOINHERIT);
    FILE *const stream = fd >= 0 ? _fdopen(fd, "w+b") : NULL;
    if (!stream && fd >= 0) _close(fd);
    if (fd < 0) CloseHandle(file);
    return stream;
}

FILE *os_open_memory(char **bytes, size_t *n) {
    struct memory *const memory = malloc(sizeof *memory);
    FILE *const out = memory ? open_temporary() : NULL;
    *bytes = NULL;
    *n = 0;
    if (!out) {
        free(memory);
        return NULL;
    }
    pthread_mutex_lock(&memories_lock);
    *memory = (struct memory){ out, bytes, n, memories };
    memories = memory;
    pthread_mutex_unlock(&memories_lock);
    return out;
}

static struct memory taken(const FILE *out) {
    struct memory found = { .out = NULL };
    pthread_mutex_lock(&memories_lock);
    for (struct memory **at = &memories; *at && !found.out; at = &(*at)->next) {
        if ((*at)->out != out) continue;
        struct memory *const gone = *at;
        found = *gone;
        *at = gone->next;
        free(gone);
        break;
    }
    pthread_mutex_unlock(&memories_lock);
    return found;
}

/* bytes is there also if this fails, as open_memstream has it. */
int os_close_memory(FILE *out) {
    const struct memory memory = taken(out);
    const bool whole = fflush(out) == 0 && !ferror(out);
    const int64_t end = _ftelli64(out);
    char *const bytes = whole && end >= 0 ? malloc((size_t)end + 1) : NULL;
    bool read = bytes != NULL;
    if (read) {
        rewind(out);
        read = fread(bytes, 1, (size_t)end, out) == (size_t)end;
        bytes[end] = '\0';
        *memory.bytes = bytes;
        *memory.n = (size_t)end;
    }
    return fclose(out) == 0 && read ? 0 : EOF;
}

FILE *os_open_to_change(const char *path) {
    const int fd = qkvi_os_open_to_change(path);
    FILE *const file = fd >= 0 ? _fdopen(fd, "r+b") : NULL;
    if (fd >= 0 && !file) qkvi_os_close(fd);
    return file;
}

/* A byte behind all: one that is locked cannot be read by others. */
int os_lock(FILE *file) {
    OVERLAPPED at = { .OffsetHigh = 0x40000000 };
    return LockFileEx((HANDLE)_get_osfhandle(_fileno(file)),
                      LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
               ? 0
               : failed(EWOULDBLOCK);
}

int os_truncate(FILE *file, int64_t n) { return _chsize_s(_fileno(file), n) == 0 ? 0 : -1; }

/* ---- Processors ------------------------------------------------------------------------------ */

void os_cpus_get(os_cpus *cpus) { memset(cpus, 0, sizeof *cpus); }
void os_cpus_set(const os_cpus *cpus) { (void)cpus; }
