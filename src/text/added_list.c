/* Added tokens that a folder lists: see added_list.h. */

#include "text/added_list.h"
#include "core/sort.h"
#include "files/utf8.h"
#include "text/tokenizer_fields.h"
#include "text/unicode.h"

qkv_status qkvi_added_no_memory(const qkvi_added_list *list) {
    return qkvi_no_memory(list->error, "the added tokens");
}

qkv_status qkvi_added_list_put(qkvi_added_list *list, const qkvi_added_entry *entry) {
    if (qkvi_reserve(&list->entries, &list->capacity, list->n + 1, sizeof *entry) != QKV_OK)
        return qkvi_added_no_memory(list);
    qkvi_added_entry *const last = &list->entries[list->n];
    *last = *entry;
    last->n_bytes = strlen(last->content);
    last->at = last->first = list->n++;
    last->given = -1;
    return QKV_OK;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* {"content": "<mask>", "lstrip": true, …} */
static qkv_status put_object(qkvi_added_list *list, const char *file, const char *path, int from,
                             const json_t *object, int64_t id) {
    const qkvi_json_reader reader = { file, path, object, list->error };
    qkvi_added_entry entry = { .file = file, .path = path, .id = id, .from = from };
    QKV_TRY(qkvi_json_need_string(&reader, "content", &entry.content));
    QKV_TRY(qkvi_tokenizer_take_flags(&reader, &entry.flags));
    if (!json_object_get(object, "normalized")) entry.flags |= QKVI_ENTRY_IS_DEFAULT;
    return qkvi_added_list_put(list, &entry);
}

/* [{"id": 5, "content": …}, …] of a tokenizer.json. */
static qkv_status put_json(qkvi_added_list *list, const json_t *root, int from) {
    static const char path[] = "added_tokens";
    const char *const file = list->settings->files->tokenizer.name;
    const qkvi_json_reader top = { file, "", root, list->error };
    const json_t *array = NULL;
    QKV_TRY(qkvi_json_take_array(&top, path, &array));
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *object = json_array_get(array, i);
        const qkvi_json_reader reader = { file, path, object, list->error };
        int64_t id = -1;
        if (!json_is_object(object))
            return qkvi_error_set(list->error, QKV_ERR_FORMAT, "%s: %s[%zu] is no object", file,
                                  path, i);
        QKV_TRY(qkvi_json_need_int(&reader, "id", QKVI_PIECES_MAX_IDS - 1, &id));
        QKV_TRY(put_object(list, file, path, from, object, id));
    }
    return QKV_OK;
}

/* {"50264": {"content": "<mask>", …}, …} of tokenizer_config.json. */
static qkv_status put_decoder(qkvi_added_list *list, const json_t *decoder) {
    static const char path[] = "added_tokens_decoder";
    const char *const file = list->settings->files->tokenizer_config.name;
    const char *key;
    const json_t *value;
    if (!json_is_object(decoder))
        return qkvi_error_set(list->error, QKV_ERR_FORMAT, "%s: %s is no object", file, path);
    json_object_foreach((json_t *)decoder, key, value) {
        const size_t n = strlen(key);
        if (n == 0 || n > 7 || strspn(key, "0123456789") != n || !json_is_object(value))
            return qkvi_error_set(list->error, QKV_ERR_FORMAT,
                                  "%s: an entry of %s is not \"id\": {…}", file, path);
        QKV_TRY(put_object(list, file, path, QKVI_FROM_LIST, value, atoi(key)));
    }
    return QKV_OK;
}

/* Of the names that files give, not the class: those that a class gives are marked later. */
static int added_is_named(const qkvi_added_list *list, const char *content, int by_files) {
    for (int i = 0; i < QKVI_N_NAMED; i++) {
        const qkvi_named_token *named = &list->settings->named[i];
        if (named->content && (named->is_given || !by_files) &&
            strcmp(named->content, content) == 0)
            return 1;
    }
    return 0;
}

/* {"<mask>": 50264}: without switches, also where a special token of the name has some. */
static qkv_status put_older(qkvi_added_list *list) {
    const char *const file = list->settings->files->added_tokens.name;
    const char *key;
    const json_t *value;
    json_object_foreach(list->settings->added_tokens, key, value) {
        const int is_special = added_is_named(list, key, 1);
        if (!json_is_integer(value))
            return qkvi_error_set(list->error, QKV_ERR_FORMAT, "%s: an id is no integer", file);
        const qkvi_added_entry entry = { .content = key,
                                         .file = file,
                                         .path = "the added tokens",
                                         .id = json_integer_value(value),
                                         .flags = QKVI_ENTRY_IS_OLDER |
                                                  (is_special ? QKVI_ADDED_SPECIAL
                                                              : QKVI_ADDED_NORMALIZED),
                                         .from = QKVI_FROM_LIST };
        QKV_TRY(qkvi_added_list_put(list, &entry));
    }
    return QKV_OK;
}

/* ---- What cannot be -------------------------------------------------------------------------- */

static qkv_status refuse_marian(const qkvi_added_list *list, const qkvi_added_entry *entry,
                                const char *what) {
    return qkvi_error_set(list->error, QKV_ERR_UNSUPPORTED,
                          "%s: added token \"%s\" with %s is not supported for %s", entry->file,
                          QKVI_PRINTABLE_BYTES(96, entry->content, entry->n_bytes), what,
                          list->settings->class->name);
}

/* White space at either end. */
static int is_blank_edged(const qkvi_added_entry *entry) {
    size_t at = entry->n_bytes - 1;
    int32_t first = 0, last = 0;
    while (at > 0 && ((unsigned char)entry->content[at] & 0xC0) == 0x80) at--;
    qkvi_utf8_next(entry->content, entry->n_bytes, &first);
    qkvi_utf8_next(entry->content + at, entry->n_bytes - at, &last);
    return qkvi_char_group_of(first) == QKVI_GROUP_SPACE ||
           qkvi_char_group_of(last) == QKVI_GROUP_SPACE;
}

/*
 * Marian's code looks for all tokens at once in the raw text, and what is special is what names
 * them. What it does with words and with tokens of white space is its own: refused.
 */
static qkv_status make_marian(qkvi_added_list *list) {
    const qkvi_added_entry *strips = NULL;
    for (uint32_t i = 0; i < list->n; i++) {
        qkvi_added_entry *const entry = &list->entries[i];
        entry->flags &=
            ~(unsigned)(QKVI_ADDED_SPECIAL | QKVI_ADDED_NORMALIZED | QKVI_ENTRY_IS_DEFAULT);
        if (entry->flags & QKVI_ADDED_SINGLE_WORD)
            return refuse_marian(list, entry, "\"single_word\": true");
        if (entry->flags & (QKVI_ADDED_LSTRIP | QKVI_ADDED_RSTRIP)) strips = entry;
    }
    for (uint32_t i = 0; i < list->n && strips; i++)
        if (list->entries[i].n_bytes > 0 && is_blank_edged(&list->entries[i]))
            return refuse_marian(list, strips,
                                 "\"lstrip\" or \"rstrip\" beside one of white space");
    return QKV_OK;
}

/* Of lists for another vocabulary: what is named has its place in this one, too. */
static qkv_status drop_listed(qkvi_added_list *list) {
    for (uint32_t i = 0; i < list->n; i++) {
        const qkvi_added_entry *const entry = &list->entries[i];
        if (added_is_named(list, entry->content, 0)) continue;
        return qkvi_error_set(
            list->error, QKV_ERR_UNSUPPORTED,
            "%s: added token \"%s\" beside separate vocabularies is not supported", entry->file,
            QKVI_PRINTABLE_BYTES(96, entry->content, entry->n_bytes));
    }
    list->n = 0;
    return QKV_OK;
}

/* ---- In order -------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b) {
    const qkvi_added_entry *const x = a, *const y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    if (x->from == QKVI_FROM_BASE || x->id == y->id) return x->at < y->at ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

int qkvi_added_is_same(const qkvi_added_entry *a, const qkvi_added_entry *b) {
    return a->n_bytes == b->n_bytes && memcmp(a->content, b->content, a->n_bytes) == 0;
}

qkv_status qkvi_added_list_check(const qkvi_added_list *list, const qkvi_added_entry *entry) {
    char escaped[96];
    qkvi_escape(escaped, sizeof escaped, entry->content, entry->n_bytes);
    if (entry->n_bytes == 0 || entry->n_bytes > QKVI_ADDED_MAX_BYTES)
        return qkvi_error_set(list->error, entry->n_bytes ? QKV_ERR_LIMIT : QKV_ERR_FORMAT,
                              "%s: added token \"%s\" has %zu bytes, must be 1 to %d", entry->file,
                              escaped, entry->n_bytes, QKVI_ADDED_MAX_BYTES);
    if (entry->from == QKVI_FROM_NAMES || (entry->id >= 0 && entry->id < QKVI_PIECES_MAX_IDS))
        return QKV_OK;
    return qkvi_error_set(list->error, entry->id < 0 ? QKV_ERR_FORMAT : QKV_ERR_LIMIT,
                          "%s: %s: \"%s\" has id %lld, the limit is %d", entry->file, entry->path,
                          escaped, (long long)entry->id, QKVI_PIECES_MAX_IDS - 1);
}

/* Of one list, an id is that of one token; the same token may be in two files. */
static qkv_status sort_by_id(qkvi_added_list *list) {
    for (uint32_t i = 0; i < list->n; i++) QKV_TRY(qkvi_added_list_check(list, &list->entries[i]));
    if (list->n > 1) qsort(list->entries, list->n, sizeof *list->entries, by_id);
    for (uint32_t i = 0; i < list->n; i++) list->entries[i].at = list->entries[i].first = i;
    for (uint32_t i = 1; i < list->n; i++) {
        const qkvi_added_entry *const a = &list->entries[i - 1], *const b = &list->entries[i];
        if (a->from == QKVI_FROM_BASE || a->from != b->from || a->id != b->id ||
            qkvi_added_is_same(a, b))
            continue;
        return qkvi_error_set(list->error, QKV_ERR_FORMAT, "%s: %s: two tokens have id %lld",
                              b->file, b->path, (long long)b->id);
    }
    return QKV_OK;
}

qkv_status qkvi_added_list_read(qkvi_added_list *list, const json_t *root) {
    const qkvi_settings *const s = list->settings;
    const json_t *const decoder = json_object_get(s->tokenizer_config, "added_tokens_decoder");
    if (root && s->class->maker == QKVI_MADE_BY_FILE) QKV_TRY(put_json(list, root, QKVI_FROM_BASE));
    if (decoder) {
        QKV_TRY(put_decoder(list, decoder));
    } else {
        QKV_TRY(put_older(list));
        if (root) QKV_TRY(put_json(list, root, QKVI_FROM_LIST));
    }
    if (list->is_marian) QKV_TRY(make_marian(list));
    if (s->is_other) QKV_TRY(drop_listed(list));
    return sort_by_id(list);
}

/* ---- By content ------------------------------------------------------------------------------ */

static int compare(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    const int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
    return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static int by_content(const void *a, const void *b, void *user) {
    const qkvi_added_entry *const entries = user;
    const qkvi_added_entry *const x = &entries[*(const uint32_t *)a];
    const qkvi_added_entry *const y = &entries[*(const uint32_t *)b];
    const int order = compare(x->content, x->n_bytes, y->content, y->n_bytes);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

qkv_status qkvi_added_list_sort(qkvi_added_list *list) {
    if (list->n == 0) return QKV_OK;
    list->sorted = qkvi_malloc_array(list->n, sizeof *list->sorted);
    if (list->sorted == NULL) return qkvi_added_no_memory(list);
    for (uint32_t i = 0; i < list->n; i++) list->sorted[i] = i;
    qkvi_sort(list->sorted, list->n, sizeof *list->sorted, by_content, list->entries);
    list->n_sorted = list->n;
    for (uint32_t i = 1; i < list->n; i++) {
        const qkvi_added_entry *const before = &list->entries[list->sorted[i - 1]];
        qkvi_added_entry *const entry = &list->entries[list->sorted[i]];
        if (qkvi_added_is_same(before, entry)) entry->first = before->first;
    }
    return QKV_OK;
}

/* The first place in the order whose content is not less. */
uint32_t qkvi_added_list_place(const qkvi_added_list *list, const char *content, size_t n_bytes) {
    uint32_t low = 0, high = list->n_sorted;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const qkvi_added_entry *const entry = &list->entries[list->sorted[middle]];
        if (compare(entry->content, entry->n_bytes, content, n_bytes) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
