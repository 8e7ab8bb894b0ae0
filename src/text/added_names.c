/* Added tokens that a folder names: see added_list.h. */
#include "text/added_list.h"
#include "text/tokenizer_fields.h"

enum { MAX_NAMES = 4096 }; /* each is compared with those before it */

/*
 * A listed token that a field names is special; of extra ones only where the list has no switches,
 * and with Marian, where nothing else is.
 */
static void mark(const qkvi_added_list *list, qkvi_added_entry *known, int is_role) {
    const int is_older = (known->flags & QKVI_ENTRY_IS_OLDER) && !list->older_stay;
    known->flags |= QKVI_ADDED_NAMED;
    if (known->from != QKVI_FROM_LIST) return;
    if (is_role ? (known->flags & QKVI_ENTRY_IS_DEFAULT) != 0 : is_older)
        known->flags &= ~(unsigned)QKVI_ADDED_NORMALIZED;
    if (is_role || list->is_marian || is_older) known->flags |= QKVI_ADDED_SPECIAL;
}

/* 1 if the vocabulary has it. */
static int added_is_word(const qkvi_added_list *list, const qkvi_added_entry *entry) {
    return qkvi_pieces_find(&list->tokenizer->pieces, entry->content, entry->n_bytes) >= 0;
}

/* What is named: marked if it is listed, else added. */
static qkv_status put_named(qkvi_added_list *list, const char *file, const qkvi_named_token *token,
                            int is_role) {
    const qkvi_added_entry entry = { .content = token->content,
                                     .n_bytes = strlen(token->content),
                                     .file = file,
                                     .path = "special tokens",
                                     .id = -1,
                                     .flags = QKVI_ADDED_NAMED |
                                              (list->is_marian ? QKVI_ADDED_SPECIAL : token->flags),
                                     .from = QKVI_FROM_NAMES };
    const uint32_t first = qkvi_added_list_place(list, entry.content, entry.n_bytes);
    uint32_t i = first;
    if (++list->n_names > MAX_NAMES)
        return qkvi_error_set(list->error, QKV_ERR_LIMIT, "%s: above %d special tokens are named",
                              file, MAX_NAMES);
    for (; i < list->n_sorted && qkvi_added_is_same(&list->entries[list->sorted[i]], &entry); i++)
        mark(list, &list->entries[list->sorted[i]], is_role);
    if (i > first || (list->settings->is_other && !added_is_word(list, &entry))) return QKV_OK;
    for (i = list->n_sorted; i < list->n; i++) {
        if (!qkvi_added_is_same(&list->entries[i], &entry)) continue;
        list->entries[i].flags = entry.flags | (list->entries[i].flags & QKVI_ADDED_SPECIAL);
        return QKV_OK;
    }
    QKV_TRY(qkvi_added_list_check(list, &entry));
    return qkvi_added_list_put(list, &entry);
}

/* Fields that end in "_token" and are none of the seven. */
static int is_own_field(const char *name) {
    static const char *const seven[] = { "bos_token", "eos_token", "unk_token", "sep_token",
                                         "pad_token", "cls_token", "mask_token" };
    if (!qkvi_has_stem(name, "_token")) return 0;
    for (size_t i = 0; i < sizeof seven / sizeof *seven; i++)
        if (strcmp(seven[i], name) == 0) return 0;
    return 1;
}

/* Only special_tokens_map.json may have objects that do not say what they are. */
static int is_token(const qkvi_added_list *list, const qkvi_text_file *file, const json_t *value) {
    if (json_is_string(value)) return 1;
    return json_is_object(value) &&
           (file == &list->settings->files->special_tokens_map || json_object_get(value, "__type"));
}

static qkv_status put_fields(qkvi_added_list *list, const qkvi_text_file *file, const json_t *root,
                             int all_fields) {
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)root, key, value) {
        qkvi_named_token token;
        char escaped[96];
        if ((!all_fields && !is_own_field(key)) || !is_token(list, file, value)) continue;
        qkvi_escape(escaped, sizeof escaped, key, strlen(key));
        QKV_TRY(qkvi_settings_token(file->name, escaped, value, 1, &token, list->error));
        QKV_TRY(put_named(list, file->name, &token, 1));
    }
    return QKV_OK;
}

static qkv_status put_extra(qkvi_added_list *list, const qkvi_text_file *file, const char *field,
                            const json_t *value) {
    if (value == NULL || json_is_null(value)) return QKV_OK;
    if (json_is_object(value)) return put_fields(list, file, value, 1);
    if (!json_is_array(value))
        return qkvi_error_set(list->error, QKV_ERR_FORMAT, "%s: %s is neither a list nor an object",
                              file->name, field);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const int is_map = file == &list->settings->files->special_tokens_map;
        qkvi_named_token token;
        QKV_TRY(qkvi_settings_token(file->name, field, json_array_get(value, i), is_map, &token,
                                    list->error));
        QKV_TRY(put_named(list, file->name, &token, 0));
    }
    return QKV_OK;
}

static int is_empty(const json_t *value) {
    return json_array_size(value) == 0 && json_object_size(value) == 0;
}

/* A list of extra tokens: where it stands, and whether the field is there at all. */
struct extra {
    const qkvi_text_file *file;
    const json_t *value;
};

/* How many tokens of a list are such as T5's class has. */
static int64_t count_sentinels(const json_t *tokens) {
    int64_t n = 0;
    for (size_t i = 0; i < json_array_size(tokens); i++) {
        const json_t *const one = json_array_get(tokens, i);
        const char *const content =
            json_string_value(json_is_object(one) ? json_object_get(one, "content") : one);
        n += content && strstr(content, "<extra_id_");
    }
    return n;
}

/* <extra_id_0>, <extra_id_1>, …, as T5's class names them. */
static qkv_status put_sentinels(qkvi_added_list *list, int64_t n) {
    const char *const file = list->settings->files->tokenizer_config.name;
    if (n > MAX_NAMES)
        return qkvi_error_set(list->error, QKV_ERR_LIMIT, "%s: extra_ids is above %d", file,
                              MAX_NAMES);
    list->sentinels = calloc((size_t)n + 1, sizeof *list->sentinels);
    if (!list->sentinels) return qkvi_added_no_memory(list);
    for (int64_t i = 0; i < n; i++) {
        snprintf(list->sentinels[i], sizeof *list->sentinels, "<extra_id_%d>", (int)i);
        const qkvi_named_token token = { list->sentinels[i], QKVI_ADDED_SPECIAL, 0 };
        QKV_TRY(put_named(list, file, &token, 0));
    }
    return QKV_OK;
}

/*
 * T5's class adds its own to a list that has none of them, and to no list. Where the newer name of
 * the list is there they do not count. older: by the older name.
 */
static qkv_status put_own_extras(qkvi_added_list *list, const json_t *older, int counts) {
    const qkvi_settings *const s = list->settings;
    const qkvi_json_reader top = { s->files->tokenizer_config.name, "", s->tokenizer_config,
                                   list->error };
    const int64_t n = count_sentinels(older);
    int64_t n_own = 100;
    if (s->class->maker != QKVI_MADE_BY_T5) return QKV_OK;
    if (s->tokenizer_config) QKV_TRY(qkvi_json_take_int(&top, "extra_ids", INT32_MAX, &n_own));
    if (n > 0 && n_own > 0 && n != n_own)
        return qkvi_error_set(list->error, QKV_ERR_FORMAT,
                              "%s: extra_ids = %lld, additional_special_tokens has %lld of them",
                              top.file, (long long)n_own, (long long)n);
    return counts && n == 0 ? put_sentinels(list, n_own) : QKV_OK;
}

/*
 * Both names of the list in tokenizer_config.json and what special_tokens_map.json makes of it. The
 * older name counts where the newer is not there, or has nothing.
 */
static qkv_status put_extras(qkvi_added_list *list) {
    static const char now[] = "extra_special_tokens", then[] = "additional_special_tokens";
    const qkvi_settings *const s = list->settings;
    const qkvi_text_file *const config = &s->files->tokenizer_config;
    const qkvi_text_file *const map = &s->files->special_tokens_map;
    const json_t *const mapped = json_object_get(s->special_tokens_map, now);
    struct extra newer = { config, json_object_get(s->tokenizer_config, now) };
    struct extra older = { config, json_object_get(s->tokenizer_config, then) };
    if (older.value && is_empty(newer.value)) {
        newer = older;
        older.value = NULL;
    }
    if (json_is_object(newer.value)) {
        QKV_TRY(put_extra(list, newer.file, now, newer.value));
        newer.value = NULL;
    }
    if (json_is_object(mapped)) newer.value = NULL;
    QKV_TRY(put_extra(list, newer.file, now, newer.value));
    QKV_TRY(put_extra(list, map, now, mapped));
    if (json_object_get(s->special_tokens_map, then))
        older = (struct extra){ map, json_object_get(s->special_tokens_map, then) };
    if (newer.value || (mapped && !json_is_object(mapped)))
        return put_own_extras(list, older.value, 0);
    list->older_stay = 1; /* added_tokens.json was read before these were extra ones */
    QKV_TRY(put_extra(list, older.file, then, older.value));
    return put_own_extras(list, older.value, 1);
}

/*
 * What stands around texts is somewhere: a class that gives it a new id read the wrong vocabulary.
 */
static qkv_status check_around(const qkvi_added_list *list, const char *field, qkvi_named which) {
    const qkvi_settings *const s = list->settings;
    const qkvi_added_entry entry = { .content = s->named[which].content,
                                     .n_bytes = strlen(s->named[which].content) };
    const uint32_t place = qkvi_added_list_place(list, entry.content, entry.n_bytes);
    const int is_listed =
        place < list->n_sorted && qkvi_added_is_same(&list->entries[list->sorted[place]], &entry);
    const int is_lines = list->file == &s->files->vocab &&
                         (s->class->maker & (QKVI_MADE_BY_BERT | QKVI_MADE_BY_MPNET));
    if (s->named[which].is_given || is_listed || added_is_word(list, &entry)) return QKV_OK;
    if (is_lines)
        return qkvi_error_set(list->error, QKV_ERR_FORMAT, "%s: no line is %s", list->file->name,
                              entry.content);
    return qkvi_error_set(list->error, QKV_ERR_FORMAT, "%s: %s \"%s\" is not in it",
                          list->file->name, field, entry.content);
}

/* What is named: marked where it is listed, else added. */
static qkv_status added_list_names(qkvi_added_list *list) {
    const qkvi_settings *const s = list->settings;
    if (s->class->maker & (QKVI_MADE_BY_BERT | QKVI_MADE_BY_ROBERTA | QKVI_MADE_BY_MPNET)) {
        QKV_TRY(check_around(list, "sep_token", QKVI_SEP));
        QKV_TRY(check_around(list, "cls_token", QKVI_CLS));
    }
    if (s->class->maker & (QKVI_MADE_BY_XLM_ROBERTA | QKVI_MADE_BY_CLIP))
        QKV_TRY(check_around(list, "bos_token", QKVI_BOS));
    if (s->class->maker &
        (QKVI_MADE_BY_XLM_ROBERTA | QKVI_MADE_BY_CLIP | QKVI_MADE_BY_T5 | QKVI_MADE_BY_SIGLIP))
        QKV_TRY(check_around(list, "eos_token", QKVI_EOS));
    const char *const file =
        s->tokenizer_config ? s->files->tokenizer_config.name : list->file->name;
    for (int i = 0; i < QKVI_N_NAMED; i++)
        if (s->named[i].content) QKV_TRY(put_named(list, file, &s->named[i], 1));
    QKV_TRY(put_fields(list, &s->files->tokenizer_config, s->tokenizer_config, 0));
    QKV_TRY(put_fields(list, &s->files->special_tokens_map, s->special_tokens_map, 0));
    return put_extras(list);
}

/* ---- Ids ------------------------------------------------------------------------------------- */

/*
 * The first id that is free: behind the vocabulary, counted by its tokens, and behind what was
 * added.
 */
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
                          added_is_word(list, entry) ? "there it has" : "the next id is",
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
    QKV_TRY(added_list_names(list));
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
    free(list.sentinels);
    if (status == QKV_OK) status = qkvi_tokenizer_seal(tokenizer, file->name, s->error);
    if (status == QKV_OK) set_roles(s, tokenizer);
    return status;
}
