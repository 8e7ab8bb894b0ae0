/* Encodes turns by a chat template: see chat.h. */
#include "text/chat.h"

#include "files/utf8.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

const char *qkv_tokenizer_chat(const qkv_tokenizer *tokenizer) {
    if (!tokenizer || !tokenizer->chat.is_there) return NULL;
    return tokenizer->chat.kind ? tokenizer->chat.kind->name : "";
}

/* ---- White space ----------------------------------------------------------------------------- */

/* Without what is white at both ends. Bytes that are no UTF-8 stay, and are an error later. */
static void trim(const char **text, size_t *n) {
    int32_t code;
    size_t used, kept = 0;
    while (*n > 0 && (used = qkvi_utf8_next(*text, *n, &code)) > 0 && qkvi_char_strips(code)) {
        *text += used;
        *n -= used;
    }
    for (size_t at = 0; at < *n; at += used) {
        used = qkvi_utf8_next(*text + at, *n - at, &code);
        if (used == 0) return;
        if (!qkvi_char_strips(code)) kept = at + used;
    }
    *n = kept;
}

/* ---- The text of a turn ---------------------------------------------------------------------- */

typedef struct turn {
    const qkvi_chat_kind *kind;
    const qkvi_chat *chat; /* bos, eos; and all else, if the kind is that of the files */
    bool is_own;
} turn;

static void add(qkvi_bytes *out, const char *text) {
    if (text) qkvi_bytes_text(out, text);
}

static void write_turn(const turn *t, const char *text, size_t n, qkvi_bytes *out) {
    const qkvi_chat_kind *const kind = t->kind;
    if (t->is_own ? t->chat->has_bos : kind->has_bos) add(out, t->chat->bos);
    if (t->is_own && t->chat->system) {
        add(out, kind->system_before);
        add(out, t->chat->system);
        add(out, kind->system_behind);
    }
    if (kind->trims) trim(&text, &n);
    add(out, kind->before);
    qkvi_bytes_add(out, text, n);
    if (kind->ends_in_eos) {
        add(out, t->chat->eos);
        add(out, "\n");
    }
    add(out, kind->behind);
    if (t->is_own) add(out, t->chat->opening);
}

/* ---- Which template -------------------------------------------------------------------------- */

static int32_t id_of(const qkv_tokenizer *tokenizer, const char *token) {
    return token ? qkv_tokenizer_id(tokenizer, token, strlen(token)) : -1;
}

/* The files' own, which must be known. */
static qkv_status take_own(const qkv_tokenizer *tokenizer, turn *t, qkv_error *error) {
    t->is_own = true;
    t->kind = tokenizer->chat.kind;
    if (t->kind) return QKV_OK;
    if (!tokenizer->chat.is_there)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "the files of the model have no chat template; known are %s",
                              qkvi_chat_names);
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                          "the chat template of the model, \"%s\" and so on, is not known; known "
                          "are %s",
                          tokenizer->chat.begin, qkvi_chat_names);
}

/* One that was named: without its marks the model never saw it. */
static qkv_status take_named(const qkv_tokenizer *tokenizer, const char *name, turn *t,
                             qkv_error *error) {
    t->kind = qkvi_chat_kind_of(name);
    if (!t->kind)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "chat = \"%s\" is none of %s",
                              QKVI_PRINTABLE(96, name), qkvi_chat_names);
    if (t->kind->end && id_of(tokenizer, t->kind->end) < 0)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s: the vocabulary has no token %s",
                              name, t->kind->end);
    return QKV_OK;
}

qkv_status qkv_tokenizer_encode_turn(const qkv_tokenizer *tokenizer, const char *chat,
                                     const char *text, size_t text_bytes, qkv_encoding **encoding,
                                     int32_t *end, qkv_error *error) {
    turn t = { 0 };
    qkvi_bytes whole = { 0 };
    QKV_TRY(qkvi_need(encoding, "encoding", error));
    *encoding = NULL;
    QKV_TRY(qkvi_need(tokenizer, "tokenizer", error));
    QKV_TRY(qkvi_need(end, "end", error));
    if (text_bytes > 0) QKV_TRY(qkvi_need(text, "text", error));
    t.chat = &tokenizer->chat;
    QKV_TRY(chat ? take_named(tokenizer, chat, &t, error) : take_own(tokenizer, &t, error));
    *end = id_of(tokenizer, t.kind->end);
    write_turn(&t, text_bytes ? text : "", text_bytes, &whole);
    const qkv_status status = whole.failed
                                  ? qkvi_no_memory(error, "a turn")
                                  : qkvi_tokenizer_encode_bare(tokenizer, (const char *)whole.data,
                                                               whole.n, encoding, error);
    qkvi_bytes_free(&whole);
    return status;
}
