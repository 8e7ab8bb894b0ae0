/* See journal.h. */
#include "common/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/cli.h"
#include "common/os.h"
#include "common/ranks.h"
#include "core/os.h"

struct journal {
    FILE *file;
    const char *path, *also;
    int64_t n_found; /* answers */
    bool is_at_end;  /* what comes is added */
};

struct head {
    uint64_t n;
    uint32_t mark, check;
};

char **cli_words;
static const char magic[] = "QKVJRNL1";

static qkv_status fail(const struct journal *j, qkv_error *error, const char *what) {
    return text_error(error, QKV_ERR_IO, "%s: %s: %s", j->path, what, strerror(errno));
}

/* ---- Records --------------------------------------------------------------------------------- */

static uint32_t crc_of(uint32_t crc, const void *bytes, size_t n) {
    return n > 0 ? (uint32_t)crc32_z(crc, bytes, n) : crc;
}

uint32_t journal_mark(const struct text *piece) { return crc_of(0, piece->bytes, piece->n); }

static uint32_t check_of(const struct head *head, const char *data) {
    const uint32_t crc =
        crc_of(crc_of(0, &head->n, sizeof head->n), &head->mark, sizeof head->mark);
    return crc_of(crc, data, head->n);
}

static qkv_status write_record(struct journal *j, uint32_t mark, const struct text *data,
                               qkv_error *error) {
    struct head head = { .n = data->n, .mark = mark };
    head.check = check_of(&head, data->bytes);
    if (fwrite(&head, sizeof head, 1, j->file) != 1 ||
        (data->n > 0 && fwrite(data->bytes, data->n, 1, j->file) != 1) || fflush(j->file) != 0)
        return fail(j, error, "cannot be written");
    return QKV_OK;
}

/*
 * The file ends here, or at a record that is cut short, which the next one overwrites. Between
 * reading and writing a stream there must be a seek (C17, 7.21.5.3).
 */
static qkv_status end_at(struct journal *j, off_t at, qkv_error *error) {
    if (ferror(j->file)) return fail(j, error, "cannot be read");
    if (fseeko(j->file, at, SEEK_SET) != 0 || os_truncate(j->file, at) != 0)
        return fail(j, error, "cannot be written");
    j->is_at_end = true;
    return QKV_OK;
}

static qkv_status damaged(const struct journal *j, off_t at, qkv_error *error) {
    return text_error(error, QKV_ERR_FORMAT, "%s: damaged at byte %" PRId64, j->path, (int64_t)at);
}

/* The next record, its data to be freed; bytes NULL: there is none. */
static qkv_status read_record(struct journal *j, struct head *head, struct text *data,
                              qkv_error *error) {
    const off_t at = ftello(j->file);
    *data = (struct text){ NULL, 0 };
    if (fread(head, sizeof *head, 1, j->file) != 1) return end_at(j, at, error);
    if (head->n > RANKS_MOST_BYTES) return damaged(j, at, error);
    data->bytes = malloc(head->n + 1);
    if (!data->bytes) return text_no_memory(error);
    data->bytes[head->n] = '\0';
    data->n = fread(data->bytes, 1, head->n, j->file);
    if (data->n == head->n && check_of(head, data->bytes) == head->check) return QKV_OK;
    const bool is_cut = data->n < head->n;
    free(data->bytes);
    *data = (struct text){ NULL, 0 };
    if (is_cut) return end_at(j, at, error);
    return damaged(j, at, error);
}

/* ---- Whose it is ----------------------------------------------------------------------------- */

/* Words that change no answer; value: they have one. */
static bool is_left_out(const char *word, bool *value) {
    static const char *const with_value[] = { "--journal", "--threads" };
    *value = false;
    for (int i = 0; i < CLI_COUNT(with_value); i++) {
        const size_t n = strlen(with_value[i]);
        if (strncmp(word, with_value[i], n) != 0 || (word[n] && word[n] != '=')) continue;
        *value = !word[n];
        return true;
    }
    return strcmp(word, "--quiet") == 0;
}

char *command_text(size_t *n) {
    char *text = NULL;
    FILE *const out = os_open_memory(&text, n);
    if (!out) return NULL;
    fprintf(out, "qkv %s", qkv_version());
    for (char **word = cli_words; word && *word; word++) {
        bool value;
        if (!is_left_out(*word, &value))
            fprintf(out, " %s", *word);
        else if (value && word[1])
            word++;
    }
    return os_close_memory(out) == 0 ? text : NULL;
}

static void add_file(FILE *out, const char *name, const char *path) {
    qkvi_os_about about;
    if (qkvi_os_examine(path, &about) != 0 || about.kind != QKVI_OS_FILE) return;
    fprintf(out, "%s %" PRIu64 " %" PRId64 ".%09ld\n", name, about.n_bytes, about.changed_s,
            about.changed_ns);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In order; those for which there was memory. */
static size_t names_in(const char *folder, char ***names) {
    size_t n = 0, room = 0;
    qkvi_os_list *const list = qkvi_os_list_open(folder);
    for (const char *name; list && (name = qkvi_os_list_next(list));) {
        if (n == room) {
            char **const more = realloc(*names, (room = 2 * room + 16) * sizeof *more);
            if (!more) break;
            *names = more;
        }
        if (!((*names)[n] = strdup(name))) break;
        n++;
    }
    if (list) qkvi_os_list_close(list);
    if (n > 0) qsort(*names, n, sizeof **names, by_name);
    return n;
}

/* Modules of a sentence model, such as its pooling, have folders of their own. */
static void add_folder(FILE *out, const char *folder, bool is_inner) {
    char **names = NULL;
    const size_t n = names_in(folder, &names);
    for (size_t i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        add_file(out, names[i], path);
        if (!is_inner && names[i][0] != '.') add_folder(out, path, true);
        free(names[i]);
    }
    free(names);
}

static char *files_text(const struct journal *j, const char *model, size_t *n) {
    char *text = NULL;
    FILE *const out = os_open_memory(&text, n);
    if (!out) return NULL;
    if (!model)
        fputs("embedded\n", out);
    else
        add_file(out, "", model), add_folder(out, model, false);
    if (j->also) add_file(out, "", j->also);
    return os_close_memory(out) == 0 ? text : NULL;
}

static qkv_status of_other_work(const struct journal *j, bool is_command, const char *stored,
                                qkv_error *error) {
    if (is_command)
        return text_error(error, QKV_ERR_ARGUMENT, "%s: of another command: %.200s", j->path,
                          stored);
    return text_error(error, QKV_ERR_ARGUMENT, "%s: the model's files%s%s have changed since",
                      j->path, j->also ? " or " : "", j->also ? j->also : "");
}

/*
 * A record of the beginning: it is there and the same, or is written. is_command: else of the
 * model.
 */
static qkv_status agree_on(struct journal *j, char *mine, size_t n, bool is_command,
                           qkv_error *error) {
    struct head head;
    struct text stored = { NULL, 0 };
    qkv_status status = mine ? QKV_OK : text_no_memory(error);
    if (status == QKV_OK && !j->is_at_end) status = read_record(j, &head, &stored, error);
    if (status == QKV_OK && stored.bytes && (stored.n != n || memcmp(stored.bytes, mine, n) != 0))
        status = of_other_work(j, is_command, stored.bytes, error);
    if (status == QKV_OK && !stored.bytes)
        status = write_record(j, 0, &(struct text){ mine, n }, error);
    free(stored.bytes);
    free(mine);
    return status;
}

static qkv_status begin(struct journal *j, const char *model, qkv_error *error) {
    char found[sizeof magic - 1];
    size_t n = 0;
    const size_t n_magic = fread(found, 1, sizeof found, j->file);
    if (n_magic == 0 && !ferror(j->file)) {
        j->is_at_end = true;
        if (fwrite(magic, sizeof found, 1, j->file) != 1)
            return fail(j, error, "cannot be written");
    } else if (n_magic < sizeof found || memcmp(found, magic, sizeof found) != 0) {
        return text_error(error, QKV_ERR_FORMAT, "%s: is no journal", j->path);
    }
    char *const command = command_text(&n);
    qkv_status status = agree_on(j, command, n, true, error);
    if (status != QKV_OK) return status;
    char *const files = files_text(j, model, &n);
    return agree_on(j, files, n, false, error);
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static qkv_status open_file(struct journal *j, qkv_error *error) {
    qkvi_os_about about;
    j->file = os_open_to_change(j->path);
    if (!j->file) return fail(j, error, "cannot be opened");
    if (qkvi_os_examine_open(fileno(j->file), &about) != 0 || about.kind != QKVI_OS_FILE)
        return text_error(error, QKV_ERR_IO, "%s: is no file", j->path);
    if (os_lock(j->file) != 0)
        return text_error(error, QKV_ERR_IO, "%s: another command is using it", j->path);
    return QKV_OK;
}

struct journal *journal_open(const char *path, const char *model, const char *also,
                             qkv_error *error) {
    struct journal *const j = calloc(1, sizeof *j);
    if (!j) {
        text_no_memory(error);
        return NULL;
    }
    j->path = path;
    j->also = also;
    qkv_status status = open_file(j, error);
    if (status == QKV_OK) status = begin(j, model, error);
    if (status == QKV_OK) return j;
    if (j->file) fclose(j->file);
    free(j);
    return NULL;
}

void journal_close(struct journal *j, bool done, bool quiet) {
    if (!j) return;
    if (done)
        qkvi_os_remove(j->path);
    else
        cli_note(quiet, "qkv: %s keeps what was done: the same command goes on from there",
                 j->path);
    fclose(j->file);
    free(j);
}

/* ---- Answers --------------------------------------------------------------------------------- */

qkv_status journal_next(struct journal *j, uint32_t mark, struct text *answer, bool *found,
                        qkv_error *error) {
    struct head head;
    *found = false;
    if (j->is_at_end) return QKV_OK;
    const qkv_status status = read_record(j, &head, answer, error);
    if (status != QKV_OK || !answer->bytes) return status;
    j->n_found++;
    *found = head.mark == mark;
    if (*found) return QKV_OK;
    free(answer->bytes);
    return text_error(error, QKV_ERR_ARGUMENT,
                      "%s: answer %" PRId64 " is to other text than there is now", j->path,
                      j->n_found);
}

qkv_status journal_end(struct journal *j, int64_t n, qkv_error *error) {
    while (!j->is_at_end) {
        struct head head;
        struct text answer;
        const qkv_status status = read_record(j, &head, &answer, error);
        if (status != QKV_OK) return status;
        if (answer.bytes) j->n_found++;
        free(answer.bytes);
    }
    if (j->n_found <= n) return QKV_OK;
    return text_error(error, QKV_ERR_ARGUMENT,
                      "%s: has answers to %" PRId64 " pieces of the input, which now has %" PRId64
                      ": lines may be added, not taken away",
                      j->path, j->n_found, n);
}

qkv_status journal_add(struct journal *j, uint32_t mark, const struct text *answer,
                       qkv_error *error) {
    return write_record(j, mark, answer, error);
}
