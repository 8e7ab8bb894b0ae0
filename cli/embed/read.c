/*
 * The texts of `qkv embed`: words of the command line, or a text a line. A line has a vector even
 * if it is empty, so that vectors and lines stay together.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "embed/embed.h"

enum { MAX_TEXTS = 1 << 24 };

static qkv_status grow(struct embed *e, qkv_error *error) {
    if (e->n < e->room) return QKV_OK;
    const int64_t room = e->room ? 2 * e->room : 64;
    if (room > MAX_TEXTS) return text_error(error, QKV_ERR_LIMIT, "more than %d texts", MAX_TEXTS);
    struct text *texts = realloc(e->texts, (size_t)room * sizeof(*texts));
    if (texts) e->texts = texts;
    qkv_encoding **encodings = realloc(e->encodings, (size_t)room * sizeof(qkv_encoding *));
    if (encodings) e->encodings = encodings;
    if (!texts || !encodings) return text_no_memory(error);
    e->room = room;
    return QKV_OK;
}

/* To the length that the model's sentence vectors are made for. */
static qkv_status fit(struct embed *e, qkv_encoding *encoding, qkv_error *error) {
    const int64_t longest = e->session->info->sentence_len;
    e->n_cut += encoding->n > longest;
    return text_shorten(e->session, e->session->tokenizer, longest, "the text", "makes vectors of",
                        NULL, encoding, error);
}

qkv_status embed_encode(struct embed *e, const char *bytes, size_t n_bytes, qkv_encoding **encoding,
                        qkv_error *error) {
    const qkv_status status = qkv_model_encode_sentence(e->session->model, e->prompt, bytes,
                                                        n_bytes, encoding, &e->n_prompt, error);
    return status == QKV_OK ? fit(e, *encoding, error) : status;
}

static qkv_status add(struct embed *e, const char *bytes, size_t n_bytes, qkv_error *error) {
    qkv_status status = grow(e, error);
    if (status != QKV_OK) return status;
    qkv_encoding *encoding = NULL;
    status = embed_encode(e, bytes, n_bytes, &encoding, error);
    char *copy = status == QKV_OK ? malloc(n_bytes + 1) : NULL;
    if (status == QKV_OK && !copy) status = text_no_memory(error);
    if (status != QKV_OK) {
        qkv_encoding_free(encoding);
        return status;
    }
    memcpy(copy, bytes, n_bytes);
    e->encodings[e->n] = encoding;
    e->texts[e->n++] = (struct text){ copy, n_bytes };
    return QKV_OK;
}

static qkv_status add_line(void *user, const struct text *line, qkv_error *error) {
    return add(user, line->n ? line->bytes : "", line->n, error);
}

/* The names that --prompt may have, for a message. */
static void name_prompts(const struct embed *e, char names[], size_t room) {
    const qkv_prompt *prompt;
    *names = '\0';
    for (int64_t p = 0; (prompt = qkv_model_prompt(e->session->model, p)); p++) {
        char *const name = term_escape(prompt->name, strlen(prompt->name));
        text_append(names, room, "%s%s", p > 0 ? ", " : "", name ? name : "?");
        free(name);
    }
    if (!qkv_model_prompt(e->session->model, 0)) text_append(names, room, "none");
}

/* The text of --prompt, or the one that the model's files choose. */
qkv_status embed_find_prompt(struct embed *e, qkv_error *error) {
    const char *const name = e->options->prompt;
    char names[400];
    const qkv_prompt *prompt;
    if (e->options->no_prompt) return QKV_OK;
    for (int64_t p = 0; (prompt = qkv_model_prompt(e->session->model, p)); p++) {
        if (name ? strcmp(name, prompt->name) != 0 : !prompt->is_default) continue;
        e->prompt = prompt->text;
        return QKV_OK;
    }
    if (!name) return QKV_OK;
    name_prompts(e, names, sizeof names);
    return text_error(error, QKV_ERR_ARGUMENT, "--prompt '%s': the model's prompts are: %s", name,
                      names);
}

static void tell_prompt(const struct embed *e) {
    if (!e->prompt || !*e->prompt) return;
    cli_note(e->options->common.quiet, "qkv: before each text stands the prompt '%s'", e->prompt);
}

qkv_status embed_read(struct embed *e, int n_words, char **words, qkv_error *error) {
    qkv_status status = embed_find_prompt(e, error);
    if (status == QKV_OK && e->options->file)
        status =
            lines_each(e->options->file, e->options->common.quiet, NULL, "", add_line, e, error);
    for (int w = 0; status == QKV_OK && w < n_words; w++)
        status = add(e, words[w], strlen(words[w]), error);
    if (status == QKV_OK && e->n == 0)
        status = text_error(error, QKV_ERR_FORMAT, "there is no text");
    const char *similar = e->options->similar;
    if (status == QKV_OK && similar) status = add(e, similar, strlen(similar), error);
    if (status == QKV_OK) tell_prompt(e);
    if (status == QKV_OK && e->n_cut > 0)
        cli_note(e->options->common.quiet,
                 "qkv: %" PRId64 " of %" PRId64 " texts cut to %" PRId64 " tokens", e->n_cut, e->n,
                 e->session->info->sentence_len);
    return status;
}

void embed_free(struct embed *e) {
    for (int64_t i = 0; i < e->n; i++) {
        free(e->texts[i].bytes);
        qkv_encoding_free(e->encodings[i]);
    }
    free(e->texts);
    free(e->encodings);
    free(e->vectors);
    free(e->lengths);
}
