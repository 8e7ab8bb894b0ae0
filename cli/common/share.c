/*
 * The first rank reads pieces, hands them out, and works on pieces itself. Each other rank holds up
 * to two pieces: one it works on, and the next, so that it need not wait. Between two of its own
 * pieces the first rank collects answers and hands out more. Messages:
 *
 *     to a rank:         { piece, 0 }, the piece       at the end { -1, status }, error message
 *     to the first rank: { piece, 0 }, the answer      or { piece, status }, error message
 */
#include "common/share.h"

#include <stdlib.h>
#include <string.h>

#include "common/journal.h"
#include "common/ranks.h"

/* WINDOW times the ranks: the most pieces from the oldest without an answer to the newest. */
enum { PIECES_A_RANK = 2, WINDOW = 64 };

struct head {
    int64_t piece, status;
};

/* A piece that was handed out, or its answer. */
struct slot {
    bool is_there;
    bool is_kept; /* in the journal */
    qkv_status status;
    uint32_t mark;      /* of the piece, where there is a journal */
    struct text answer; /* or the message of a failure */
};

struct sharing {
    const struct share *share;
    struct journal *journal; /* or NULL */
    int64_t given, taken, window;
    struct slot *slots; /* [window]: of pieces taken … given - 1 */
    int *held;          /* [size]: pieces that a rank has */
    bool is_over;       /* nothing more is handed out */
    qkv_status status;  /* of the pieces that were taken; at last of the input, if these are OK */
    qkv_error *error;
    qkv_error at_end; /* why the input ended early; its status may be QKV_OK */
};

/* ---- Messages -------------------------------------------------------------------------------- */

static void tell(int to, int64_t piece, qkv_status status, const struct text *text) {
    const struct head head = { piece, status };
    char *const bytes = malloc(sizeof head + text->n);
    if (!bytes) abort(); /* which ends the job */
    memcpy(bytes, &head, sizeof head);
    if (text->n > 0) memcpy(bytes + sizeof head, text->bytes, text->n);
    ranks_send(to, bytes, sizeof head + text->n);
}

/* A message without its head; the answer to be freed. */
static bool hear(bool wait, int *from, struct head *head, struct text *text) {
    char *bytes;
    size_t n;
    if (!ranks_receive(wait, from, &bytes, &n)) return false;
    memcpy(head, bytes, sizeof *head);
    *text = (struct text){ bytes, n - sizeof *head };
    memmove(bytes, bytes + sizeof *head, text->n);
    return true;
}

static qkv_status too_long(qkv_error *error) {
    return text_error(error, QKV_ERR_LIMIT, "a message between ranks is longer than 1 GiB");
}

/* The answer, or the message of a failure. */
static qkv_status make(const struct share *share, const struct text *piece, struct text *answer) {
    qkv_error error;
    *answer = (struct text){ NULL, 0 };
    qkv_status status = share->make(share->user, piece, answer, &error);
    if (status == QKV_OK && answer->n > RANKS_MOST_BYTES - sizeof(struct head)) {
        free(answer->bytes);
        status = too_long(&error);
    }
    if (status == QKV_OK) return QKV_OK;
    answer->bytes = strdup(error.message);
    answer->n = answer->bytes ? strlen(answer->bytes) : 0;
    return status;
}

/* ---- The other ranks ------------------------------------------------------------------------- */

static qkv_status work(const struct share *share, qkv_error *error) {
    for (;;) {
        struct head head;
        struct text piece, answer;
        int from;
        hear(true, &from, &head, &piece);
        if (head.piece < 0) {
            if (head.status != QKV_OK)
                text_error(error, (qkv_status)head.status, "%.*s", (int)piece.n, piece.bytes);
            free(piece.bytes);
            return (qkv_status)head.status;
        }
        const qkv_status status = make(share, &piece, &answer);
        tell(0, head.piece, status, &answer);
        free(answer.bytes);
        free(piece.bytes);
    }
}

/* ---- The first rank -------------------------------------------------------------------------- */

static struct slot *slot_of(const struct sharing *s, int64_t piece) {
    return &s->slots[piece % s->window];
}

static void put(struct sharing *s, int64_t piece, qkv_status status, struct text answer) {
    struct slot *const slot = slot_of(s, piece);
    slot->is_there = true;
    slot->status = status;
    slot->answer = answer;
}

/* What has been answered and whose turn it is. */
static void take(struct sharing *s) {
    for (; s->taken < s->given && slot_of(s, s->taken)->is_there; s->taken++) {
        struct slot *const slot = slot_of(s, s->taken);
        if (s->status == QKV_OK && slot->status != QKV_OK) {
            const struct text *const said = &slot->answer;
            if (said->bytes)
                s->status = text_error(s->error, slot->status, "%.*s", (int)said->n, said->bytes);
            else
                s->status = text_no_memory(s->error);
            if (s->share->failed) s->share->failed(s->share->user, s->taken, s->error);
        } else if (s->status == QKV_OK) {
            s->status = s->share->take(s->share->user, &slot->answer, s->error);
            if (s->status == QKV_OK && s->journal && !slot->is_kept)
                s->status = journal_add(s->journal, slot->mark, &slot->answer, s->error);
        }
        free(slot->answer.bytes);
        *slot = (struct slot){ .is_there = false };
    }
    s->is_over |= s->status != QKV_OK;
}

/* The next piece, if there is one and room for its answer. */
static bool next_piece(struct sharing *s, struct text *piece) {
    qkv_status status = QKV_OK;
    if (s->is_over || s->given - s->taken >= s->window) return false;
    s->is_over = !s->share->next(s->share->user, piece, &status, &s->at_end);
    if (!s->is_over && piece->n > RANKS_MOST_BYTES - sizeof(struct head)) {
        status = too_long(&s->at_end);
        s->is_over = true;
    }
    s->at_end.status = status;
    if (!s->is_over) s->given++;
    return !s->is_over;
}

/*
 * Is the answer to the newest piece in the journal? Then it is taken at once, as all before it
 * were.
 */
static bool is_answered(struct sharing *s, const struct text *piece) {
    struct slot *const slot = slot_of(s, s->given - 1);
    struct text answer;
    bool found;
    if (!s->journal) return false;
    slot->mark = journal_mark(piece);
    const qkv_status status = journal_next(s->journal, slot->mark, &answer, &found, &s->at_end);
    if (status != QKV_OK) {
        s->at_end.status = status;
        s->is_over = true;
        s->given--;
    } else if (found) {
        slot->is_kept = true;
        put(s, s->given - 1, QKV_OK, answer);
        take(s);
    }
    return found || status != QKV_OK;
}

/* The next one without an answer. */
static bool next(struct sharing *s, struct text *piece) {
    while (next_piece(s, piece))
        if (!is_answered(s, piece)) return true;
    return false;
}

/* One each, then a second one each. */
static void hand_out(struct sharing *s) {
    struct text piece;
    for (int most = 1; most <= PIECES_A_RANK; most++)
        for (int rank = 1; rank < ranks_size(); rank++) {
            if (s->held[rank] >= most || !next(s, &piece)) continue;
            tell(rank, s->given - 1, QKV_OK, &piece);
            s->held[rank]++;
        }
}

static bool collect(struct sharing *s, bool wait) {
    struct head head;
    struct text answer;
    int from;
    if (!hear(wait, &from, &head, &answer)) return false;
    s->held[from]--;
    put(s, head.piece, (qkv_status)head.status, answer);
    return true;
}

static bool has_held(const struct sharing *s) {
    for (int rank = 1; rank < ranks_size(); rank++)
        if (s->held[rank] > 0) return true;
    return false;
}

static void lead(struct sharing *s) {
    struct text piece, answer;
    for (;;) {
        while (ranks_size() > 1 && collect(s, false))
            ;
        take(s);
        hand_out(s);
        if (next(s, &piece)) {
            const int64_t own = s->given - 1;
            const qkv_status status = make(s->share, &piece, &answer);
            put(s, own, status, answer);
        } else if (has_held(s)) {
            collect(s, true);
        } else {
            break;
        }
    }
    take(s);
    if (s->status == QKV_OK && s->at_end.status == QKV_OK && s->journal && !cli_cancelled)
        s->status = journal_end(s->journal, s->given, s->error);
    if (s->status != QKV_OK || s->at_end.status == QKV_OK) return;
    s->status = s->at_end.status;
    *s->error = s->at_end;
}

qkv_status share_run(const struct share *share, qkv_error *error) {
    const int size = ranks_size();
    if (ranks_rank() > 0) return work(share, error);
    struct sharing s = { .share = share,
                         .window = (int64_t)WINDOW * size,
                         .error = error,
                         .at_end = { .status = QKV_OK } };
    s.slots = calloc((size_t)s.window, sizeof *s.slots);
    s.held = calloc((size_t)size, sizeof *s.held);
    if (!s.slots || !s.held) s.status = text_no_memory(error);
    if (s.status == QKV_OK && share->journal) {
        s.journal = journal_open(share->journal, share->model, share->also, error);
        if (!s.journal) s.status = error->status;
    }
    if (s.status == QKV_OK) lead(&s);
    journal_close(s.journal, s.status == QKV_OK && !cli_cancelled, share->quiet);
    for (int rank = 1; rank < size; rank++) {
        const struct text said = { error->message, s.status ? strlen(error->message) : 0 };
        tell(rank, -1, s.status, &said);
    }
    free(s.slots);
    free(s.held);
    return s.status;
}

/* ---- Lines of a file as pieces --------------------------------------------------------------- */

bool share_next_line(void *user, struct text *piece, qkv_status *status, qkv_error *error) {
    struct lines *const lines = user;
    if (cli_cancelled) return false;
    if (!lines_next(lines, status, error)) {
        *status = lines_end(lines, error);
        return false;
    }
    if (*status == QKV_OK) {
        *piece = lines->line;
        return true;
    }
    *status = lines_error(lines, error);
    return false;
}

/* Lines count from 1. */
void share_failed_line(void *user, int64_t n, qkv_error *error) {
    struct lines at = *(const struct lines *)user;
    at.number = n + 1;
    lines_error(&at, error);
}
