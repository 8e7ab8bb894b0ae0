/* Ids of added tokens, and what a tokenizer has of them: see added_list.h. */

#include "model/text/added_list.h"
#include "model/text/tokenizer_json.h"

/* The first id that is free: behind the vocabulary, counted by its tokens, and behind what was added. */
static int32_t first_free(const qkvi_added_list *list, uint32_t n) {
    const int32_t size = list->tokenizer->pieces.n_sorted;
    int32_t free = size;
    for (uint32_t i = 0; i < n; i++)
        if (list->entries[i].given >= free) free = list->entries[i].given + 1;
    return free;
}

static qkv_status check_id(const qkvi_added_list *list, const qkvi_added_entry *entry) {
    char escaped[96];
    qkvi_escape(escaped, sizeof escaped, entry->content, entry->n_bytes);
    if (entry->given >= QKVI_PIECES_MAX_IDS)
        return qkvi_error_set(list->error, QKV_ERR_LIMIT,
                              "%s: added token \"%s\" has id %d, the limit is %d", entry->file,
                              escaped, entry->given, QKVI_PIECES_MAX_IDS - 1);
    if (entry->id < 0 || entry->id == entry->given) return QKV_OK;
    return qkvi_error_set(list->error, QKV_ERR_FORMAT,
                          "%s: added token \"%s\" has id %lld, the vocabulary disagrees: %s %d",
                          entry->file, escaped, (long long)entry->id,
                          qkvi_added_is_word(list, entry) ? "there it has" : "the next id is",
                          entry->given);
}

/* The id of what has none in the vocabulary. */
static int32_t new_id(const qkvi_added_list *list, const qkvi_added_entry *entry, int32_t *next) {
    const int keeps = list->is_marian && entry->id >= 0;
    const int32_t id = keeps ? (int32_t)entry->id : *next;
    ++*next;
    return id;
}

static qkv_status give_ids(qkvi_added_list *list) {
    int32_t next = first_free(list, 0);
    for (uint32_t i = 0; i < list->n; i++) {
        qkvi_added_entry *const entry = &list->entries[i];
        const int begins =
            i > 0 && entry->from != QKVI_FROM_BASE && list->entries[i - 1].from == QKVI_FROM_BASE;
        if (begins) next = first_free(list, i); /* transformers adds in two calls */
        int32_t id = entry->first < i ? list->entries[entry->first].given : -1;
        if (id < 0) id = qkvi_pieces_find(&list->tokenizer->pieces, entry->content, entry->n_bytes);
        entry->given = id >= 0 ? id : new_id(list, entry, &next);
        QKV_TRY(check_id(list, entry));
    }
    return QKV_OK;
}

/* What was special or named stays so. */
static unsigned flags_of(const qkvi_added_list *list, const qkvi_added_entry *entry) {
    const unsigned stay = QKVI_ADDED_SPECIAL | QKVI_ADDED_NAMED;
    unsigned flags = entry->flags & ~(unsigned)(QKVI_ENTRY_IS_DEFAULT | QKVI_ENTRY_IS_OLDER);
    const qkvi_added *const added = &list->tokenizer->added;
    if (entry->given < added->n_ids) flags |= added->flags[entry->given] & stay;
    return flags;
}

static qkv_status add_all(qkvi_added_list *list) {
    for (uint32_t i = 0; i < list->n; i++) {
        const qkvi_added_entry *const entry = &list->entries[i];
        if (qkvi_added_add(&list->tokenizer->added, entry->given, entry->content, entry->n_bytes,
                           flags_of(list, entry)) != QKV_OK)
            return qkvi_added_no_memory(list);
    }
    return QKV_OK;
}

static qkv_status make_list(qkvi_added_list *list, const json_t *root) {
    QKV_TRY(qkvi_added_list_read(list, root));
    QKV_TRY(qkvi_added_list_sort(list));
    QKV_TRY(qkvi_added_list_names(list));
    QKV_TRY(give_ids(list));
    return add_all(list);
}

int32_t qkvi_settings_id(const qkvi_settings *s, qkvi_named which, const qkv_tokenizer *tokenizer) {
    const char *content = s->named[which].content;
    return content ? qkv_tokenizer_id(tokenizer, content, strlen(content)) : -1;
}

static void set_roles(const qkvi_settings *s, qkv_tokenizer *tokenizer) {
    static const qkvi_named named[QKVI_N_ROLES] = { [QKV_TOKEN_UNK] = QKVI_UNK,
                                                    [QKV_TOKEN_SEP] = QKVI_SEP,
                                                    [QKV_TOKEN_PAD] = QKVI_PAD,
                                                    [QKV_TOKEN_CLS] = QKVI_CLS,
                                                    [QKV_TOKEN_MASK] = QKVI_MASK };
    for (int role = 0; role < QKVI_N_ROLES; role++) {
        const int32_t id = qkvi_settings_id(s, named[role], tokenizer);
        if (id >= 0 || s->class->maker != QKVI_MADE_BY_FILE) tokenizer->special[role] = id;
    }
}

qkv_status qkvi_settings_add_tokens(const qkvi_settings *s, const json_t *root,
                                    qkv_tokenizer *tokenizer) {
    const qkvi_text_file *const file = root ? &s->files->tokenizer : &s->files->vocab;
    qkvi_added_list list = { .settings = s,
                             .tokenizer = tokenizer,
                             .is_marian = s->class->maker == QKVI_MADE_BY_MARIAN,
                             .file = file,
                             .error = s->error };
    qkv_status status = make_list(&list, root);
    free(list.entries);
    free(list.sorted);
    if (status == QKV_OK) status = qkvi_tokenizer_seal(tokenizer, file->name, s->error);
    if (status == QKV_OK) set_roles(s, tokenizer);
    return status;
}
