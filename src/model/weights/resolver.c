/* Names of stored tensors: see resolver.h for the rules. */
#include "model/weights/resolver.h"

#include "files/base.h"
#include "kernels/table.h"

enum { MAX_SPELLING = 160, MAX_SPELLINGS = 4, MAX_COMPARED = 4096, N_NEAREST = 3, N_IGNORED = 3 };

qkv_status qkvi_resolver_make(const qkvi_safetensors *file, const qkvi_spelling *spelling,
                              qkvi_resolver *resolver, qkv_error *error) {
    resolver->file = file;
    resolver->spelling = spelling;
    resolver->ties = true;
    resolver->used = calloc((size_t)file->n_tensors + 1, 1);
    return resolver->used ? QKV_OK : qkvi_no_memory(error, "tensor names");
}

void qkvi_resolver_free(qkvi_resolver *resolver) {
    free(resolver->used);
    resolver->used = NULL;
}

/* ---- Spellings ------------------------------------------------------------------------------- */

/* The older spelling of a layer norm's parameter; 0 if name is none. */
static int old_layer_norm(const char *name, char spelling[MAX_SPELLING]) {
    const int is_weight = qkvi_ends_with(name, "LayerNorm.weight");
    if (!is_weight && !qkvi_ends_with(name, "LayerNorm.bias")) return 0;
    const size_t stem = strlen(name) - strlen(is_weight ? "weight" : "bias");
    snprintf(spelling, MAX_SPELLING, "%.*s%s", (int)stem, name, is_weight ? "gamma" : "beta");
    return 1;
}

/* Rules 1 to 3: all spellings of a name, the likeliest first. */
static int spellings_of(const char *prefix, const char *name,
                        char spellings[MAX_SPELLINGS][MAX_SPELLING]) {
    const size_t n = strlen(prefix);
    int count = 2;
    snprintf(spellings[0], MAX_SPELLING, "%s", name);
    if (strncmp(name, prefix, n) == 0)
        snprintf(spellings[1], MAX_SPELLING, "%s", name + n);
    else
        snprintf(spellings[1], MAX_SPELLING, "%s%s", prefix, name);
    for (int s = 0; s < 2; s++) {
        char modern
            [MAX_SPELLING]; /* a copy: gcc cannot tell that rows of one array do not overlap */
        memcpy(modern, spellings[s], sizeof modern);
        count += old_layer_norm(modern, spellings[count]);
    }
    return count;
}

const qkvi_stored *qkvi_resolve_own(const qkvi_resolver *resolver, const char *name) {
    char spellings[MAX_SPELLINGS][MAX_SPELLING];
    const qkvi_safetensors *const file = resolver->file;
    const int count = spellings_of(resolver->spelling->prefix, name, spellings);
    for (int s = 0; s < count; s++) {
        const qkvi_stored *const tensor = qkvi_safetensors_find(file, spellings[s]);
        if (tensor) return tensor;
    }
    /* An alias is followed once: what it names is stored, or the alias is no help. */
    for (int s = 0; s < count; s++) {
        const json_t *const alias = json_object_get(file->metadata, spellings[s]);
        const char *const target = json_string_value(alias);
        const qkvi_stored *const tensor = target ? qkvi_safetensors_find(file, target) : NULL;
        if (tensor) return tensor;
    }
    const char *const *const other = resolver->spelling->other;
    const bool has_other = other[0] && strcmp(name, other[0]) == 0;
    return has_other ? qkvi_safetensors_find(file, other[1]) : NULL;
}

/* The first copy of a tie's source that is stored. */
static const qkvi_stored *find_copy(const qkvi_resolver *resolver, const qkvi_tie *tie) {
    const qkvi_stored *tensor = NULL;
    for (size_t c = 0; !tensor && c < QKVI_TIE_COPIES && tie->copies[c]; c++)
        tensor = qkvi_resolve_own(resolver, tie->copies[c]);
    return tensor;
}

const qkvi_stored *qkvi_resolve(const qkvi_resolver *resolver, const char *name) {
    const qkvi_spelling *const spelling = resolver->spelling;
    if (spelling->bias[0] && strcmp(name, spelling->bias[0]) == 0) {
        const qkvi_stored *const own = qkvi_resolve_own(resolver, spelling->bias[1]);
        if (own || !resolver->ties) return own;
    }
    const qkvi_stored *tensor = qkvi_resolve_own(resolver, name);
    for (size_t t = 0; !tensor && resolver->ties && t < QKVI_TIES; t++)
        if (spelling->ties[t].source && strcmp(name, spelling->ties[t].source) == 0)
            tensor = find_copy(resolver, &spelling->ties[t]);
    return tensor;
}

/* ---- What is missing ------------------------------------------------------------------------- */

/* The N_NEAREST stored names, escaped, as one text. */
static void nearest_names(const qkvi_safetensors *file, const char *name, char *text,
                          size_t text_bytes) {
    const qkvi_stored *best[N_NEAREST] = { NULL };
    int best_distance[N_NEAREST];
    size_t at = 0;
    for (int64_t t = 0; t < file->n_tensors && t < MAX_COMPARED; t++) {
        const int d = qkvi_edit_distance(name, file->tensors[t].name);
        int place = N_NEAREST;
        while (place > 0 && (!best[place - 1] || d < best_distance[place - 1])) place--;
        for (int p = N_NEAREST - 1; p > place; p--) {
            best[p] = best[p - 1];
            best_distance[p] = best_distance[p - 1];
        }
        if (place == N_NEAREST) continue;
        best[place] = &file->tensors[t];
        best_distance[place] = d;
    }
    snprintf(text, text_bytes, "nothing");
    for (int p = 0; p < N_NEAREST && best[p] && at < text_bytes; p++) {
        char printable[100];
        qkvi_escape(printable, sizeof printable, best[p]->name, strlen(best[p]->name));
        at += (size_t)snprintf(text + at, text_bytes - at, "%s'%s'", p ? ", " : "", printable);
    }
}

static qkv_status missing(const qkvi_safetensors *file, const char *name, qkv_error *error) {
    char nearest[360];
    for (int64_t t = 0; t < file->n_tensors; t++)
        if (qkvi_ends_with(file->tensors[t].name, "kernel"))
            return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                                  "%s: tensors are named as in TensorFlow ('…kernel'); convert the "
                                  "model with transformers first",
                                  file->source.name);
    nearest_names(file, name, nearest, sizeof nearest);
    return qkvi_error_set(error, QKV_ERR_FORMAT,
                          "%s: tensor '%s' is missing; the nearest names are %s", file->source.name,
                          name, nearest);
}

/* ---- Loading --------------------------------------------------------------------------------- */

static qkv_status check_row(const qkvi_safetensors *file, const qkvi_stored *tensor,
                            const qkvi_param *row, qkv_error *error) {
    char stored[200], wanted[64], printable[100];
    int64_t shape[QKVI_STORED_AXES];
    const int rank = qkvi_param_stored_shape(row, shape);
    const char *const home = qkvi_safetensors_home(file, tensor)->source.name;
    int same = tensor->rank == rank;
    for (int d = 0; same && d < rank; d++) same = tensor->shape[d] == shape[d];
    if (same && qkvi_elem_is_float(tensor->type)) return QKV_OK;
    qkvi_escape(printable, sizeof printable, tensor->name, strlen(tensor->name));
    if (same)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: unsupported dtype in tensor '%s': integers are no weights", home,
                              printable);
    return qkvi_error_set(error, QKV_ERR_SHAPE,
                          "%s: tensor '%s' has shape %s, config.json asks for %s", home, printable,
                          qkvi_shape_text(tensor->rank, tensor->shape, stored, sizeof stored),
                          qkvi_shape_text(rank, shape, wanted, sizeof wanted));
}

qkv_status qkvi_resolver_check(qkvi_resolver *resolver, const qkvi_param_table *table,
                               qkv_error *error) {
    for (int64_t r = 0; r < table->n_rows; r++) {
        const char *const name = qkvi_param_stored_name(&table->rows[r]);
        const qkvi_stored *const tensor = qkvi_resolve(resolver, name);
        if (!tensor) return missing(resolver->file, name, error);
        QKV_TRY(check_row(resolver->file, tensor, &table->rows[r], error));
    }
    return QKV_OK;
}

void qkvi_resolver_skip(qkvi_resolver *resolver, const qkvi_stored *tensor) {
    if (tensor) resolver->used[tensor - resolver->file->tensors] = 1;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static bool same_shape(const qkvi_stored *a, const qkvi_stored *b) {
    return a->rank == b->rank && a->n_elems == b->n_elems &&
           memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0;
}

/* By pieces, into room for two of them. */
static qkv_status compare_pieces(const qkvi_resolver *resolver, const qkvi_stored *a,
                                 const qkvi_stored *b, float *room, bool *same, qkv_error *error) {
    for (size_t at = 0; *same && at < a->n_elems; at += QKVI_PIECE_ELEMS) {
        const size_t left = a->n_elems - at, n = left < QKVI_PIECE_ELEMS ? left : QKVI_PIECE_ELEMS;
        QKV_TRY(qkvi_safetensors_read_part(resolver->file, a, at, n, room, error));
        QKV_TRY(qkvi_safetensors_read_part(resolver->file, b, at, n, room + n, error));
        *same = memcmp(room, room + n, n * sizeof *room) == 0;
    }
    return QKV_OK;
}

qkv_status qkvi_resolver_compare(const qkvi_resolver *resolver, const qkvi_stored *a,
                                 const qkvi_stored *b, bool *same, qkv_error *error) {
    const size_t n = a->n_elems < QKVI_PIECE_ELEMS ? a->n_elems : QKVI_PIECE_ELEMS;
    *same = a == b;
    if (*same || !same_shape(a, b) || !qkvi_elem_is_float(a->type) || !qkvi_elem_is_float(b->type))
        return QKV_OK;
    float *const room = malloc(2 * n * sizeof *room + 1);
    if (!room)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory to compare two tensors",
                              resolver->file->source.name);
    *same = true;
    const qkv_status status = compare_pieces(resolver, a, b, room, same, error);
    free(room);
    return status;
}

/* ---- What is left ---------------------------------------------------------------------------- */

/* Masks, and numbers that can be counted. */
static int is_buffer(const qkvi_spelling *spelling, const char *name) {
    for (size_t i = 0; i < N_IGNORED; i++)
        if (spelling->ignored[i] && qkvi_ends_with(name, spelling->ignored[i])) return 1;
    return qkvi_ends_with(name, "position_ids") || qkvi_ends_with(name, "token_type_ids");
}

/* "NAME", or "NAME in SHARD", escaped, to be freed; NULL without memory. */
static char *name_with_shard(const qkvi_safetensors *file, const qkvi_stored *tensor) {
    char text[QKVI_NAME_BYTES];
    qkvi_escape(text, 200, tensor->name, strlen(tensor->name));
    if (file->n_shards) {
        const char *const home = qkvi_safetensors_home(file, tensor)->source.name;
        const size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, " in %s", qkvi_path_name(home));
    }
    return strdup(text);
}

qkv_status qkvi_resolver_unused(const qkvi_resolver *resolver, char ***names, int64_t *n_names,
                                qkv_error *error) {
    const qkvi_safetensors *const file = resolver->file;
    *n_names = 0;
    *names = calloc((size_t)file->n_tensors + 1, sizeof **names);
    if (!*names) return qkvi_no_memory(error, "tensor names");
    for (int64_t t = 0; t < file->n_tensors; t++) {
        const char *const name = file->tensors[t].name;
        if (resolver->used[t] || is_buffer(resolver->spelling, name)) continue;
        char *const copy = name_with_shard(file, &file->tensors[t]);
        if (!copy) return qkvi_no_memory(error, "tensor names");
        (*names)[(*n_names)++] = copy;
    }
    return QKV_OK;
}
