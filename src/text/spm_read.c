/**
 * The file of a SentencePiece model, a protocol buffer: sentencepiece
 * src/sentencepiece_model.proto.
 *
 *     1 pieces {1 piece · 2 score · 3 type}, ids in their order     2 trainer_spec
 *     3 normalizer_spec     4 self_test_data, not read     5 denormalizer_spec
 *
 * Other fields are skipped, absent ones have the defaults of the .proto, and of repeated ones the
 * last counts. Stricter than the reference: a piece must be UTF-8 without NUL of at most 1 KiB and
 * occur once, scores must be finite, types known.
 */
#include <float.h>
#include <math.h>

#include "files/utf8.h"
#include "text/protobuf.h"
#include "text/spm.h"

enum { NAME_BYTES = 64 };

/* A name of a special piece, from the trainer's part. */
struct special_name {
    char bytes[NAME_BYTES];
    size_t n;
};

/* The file being read. */
struct reader {
    const char *name;
    qkv_error *error;
    qkvi_spm *spm;
    size_t capacity; /* of types and scores */
    int32_t model_type;
    struct special_name bos, eos, pad;
};

/* "FILE: …" */
#define FAIL(r, status, ...) qkvi_file_fail((r)->error, (status), (r)->name, __VA_ARGS__)

static qkv_status no_memory(const struct reader *r) {
    return FAIL(r, QKV_ERR_MEMORY, "no memory for the vocabulary");
}

/* "FILE: piece ID "…" WHAT" */
static qkv_status refuse_piece(const struct reader *r, int32_t id, const char *what) {
    const struct qkvi_text_piece piece = r->spm->pieces.tokens[id];
    return FAIL(r, QKV_ERR_FORMAT, "piece %d \"%s\" %s", id,
                QKVI_PRINTABLE_BYTES(96, r->spm->pieces.bytes + piece.offset, (size_t)piece.length),
                what);
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

static qkv_status reserve_piece(struct reader *r, int32_t id) {
    size_t capacity = r->capacity; /* of both: what grew alone grows again */
    if (qkvi_reserve(&r->spm->types, &capacity, (size_t)id + 1, 1) != QKV_OK ||
        qkvi_reserve(&r->spm->scores, &r->capacity, (size_t)id + 1, sizeof(float)) != QKV_OK)
        return no_memory(r);
    return QKV_OK;
}

static qkv_status add_piece(struct reader *r, const char *bytes, size_t n_bytes, float score,
                            int32_t type) {
    qkvi_pieces *pieces = &r->spm->pieces;
    const int32_t id = pieces->n_ids;
    if (id >= QKVI_SPM_MAX_PIECES)
        return FAIL(r, QKV_ERR_LIMIT, "more than %d pieces, the limit", QKVI_SPM_MAX_PIECES);
    if (n_bytes > QKVI_PIECE_MAX_BYTES)
        return FAIL(r, QKV_ERR_LIMIT, "piece %d has %zu bytes, the limit is %d", id, n_bytes,
                    QKVI_PIECE_MAX_BYTES);
    QKV_TRY(reserve_piece(r, id));
    if (qkvi_pieces_add(pieces, id, bytes, n_bytes) != QKV_OK) return no_memory(r);
    if (n_bytes == 0) return refuse_piece(r, id, "is empty");
    if (memchr(bytes, 0, n_bytes)) return refuse_piece(r, id, "contains a NUL");
    if (qkvi_utf8_valid(bytes, n_bytes) < n_bytes) return refuse_piece(r, id, "is not valid UTF-8");
    if (!isfinite(score)) return refuse_piece(r, id, "has a score that is no finite number");
    if (type < QKVI_SPM_NORMAL || type > QKVI_SPM_BYTE)
        return FAIL(r, QKV_ERR_FORMAT, "piece %d has type %d, must be 1 to 6", id, type);
    r->spm->types[id] = (uint8_t)type;
    r->spm->scores[id] = score;
    return QKV_OK;
}

static qkv_status read_piece(struct reader *r, qkvi_protobuf message) {
    qkvi_protobuf_field field;
    const char *bytes = "";
    size_t n_bytes = 0;
    float score = 0;
    int32_t type = QKVI_SPM_NORMAL;
    for (int is_there = 1;;) {
        QKV_TRY(qkvi_protobuf_next(&message, &field, &is_there));
        if (!is_there) return add_piece(r, bytes, n_bytes, score, type);
        if (field.number == 1) {
            QKV_TRY(qkvi_protobuf_need_bytes(&message, &field, "a piece"));
            bytes = field.bytes;
            n_bytes = field.n_bytes;
        } else if (field.number == 2) {
            QKV_TRY(qkvi_protobuf_float(&message, &field, "the score of a piece", &score));
        } else if (field.number == 3) {
            QKV_TRY(qkvi_protobuf_int(&message, &field, "the type of a piece", &type));
        }
    }
}

/* ---- The trainer's and the normalisers' parts ------------------------------------------------ */

static qkv_status read_special(const struct reader *r, const qkvi_protobuf *message,
                               const qkvi_protobuf_field *field, const char *what,
                               struct special_name *name) {
    QKV_TRY(qkvi_protobuf_need_bytes(message, field, what));
    if (field->n_bytes > NAME_BYTES)
        return FAIL(r, QKV_ERR_LIMIT, "%s has %zu bytes, the limit is %d", what, field->n_bytes,
                    NAME_BYTES);
    memcpy(name->bytes, field->bytes, field->n_bytes);
    name->n = field->n_bytes;
    return QKV_OK;
}

static qkv_status read_surface(const struct reader *r, const qkvi_protobuf *message,
                               const qkvi_protobuf_field *field) {
    QKV_TRY(qkvi_protobuf_need_bytes(message, field, "trainer_spec.unk_surface"));
    if (field->n_bytes > QKVI_SPM_MAX_SURFACE)
        return FAIL(r, QKV_ERR_LIMIT, "trainer_spec.unk_surface has %zu bytes, the limit is %d",
                    field->n_bytes, QKVI_SPM_MAX_SURFACE);
    if (qkvi_utf8_valid(field->bytes, field->n_bytes) < field->n_bytes)
        return FAIL(r, QKV_ERR_FORMAT, "trainer_spec.unk_surface is not valid UTF-8");
    memcpy(r->spm->unk_surface, field->bytes, field->n_bytes);
    r->spm->unk_surface_bytes = (uint32_t)field->n_bytes;
    return QKV_OK;
}

static qkv_status read_trainer_field(struct reader *r, const qkvi_protobuf *message,
                                     const qkvi_protobuf_field *field) {
    switch (field->number) {
    case 3: return qkvi_protobuf_int(message, field, "trainer_spec.model_type", &r->model_type);
    case 24:
        return qkvi_protobuf_bool(message, field, "trainer_spec.treat_whitespace_as_suffix",
                                  &r->spm->rules.whitespace_as_suffix);
    case 35:
        return qkvi_protobuf_bool(message, field, "trainer_spec.byte_fallback",
                                  &r->spm->byte_fallback);
    case 44: return read_surface(r, message, field);
    case 46: return read_special(r, message, field, "trainer_spec.bos_piece", &r->bos);
    case 47: return read_special(r, message, field, "trainer_spec.eos_piece", &r->eos);
    case 48: return read_special(r, message, field, "trainer_spec.pad_piece", &r->pad);
    default: return QKV_OK;
    }
}

static qkv_status read_trainer(struct reader *r, qkvi_protobuf message) {
    qkvi_protobuf_field field;
    for (int is_there = 1;;) {
        QKV_TRY(qkvi_protobuf_next(&message, &field, &is_there));
        if (!is_there) return QKV_OK;
        QKV_TRY(read_trainer_field(r, &message, &field));
    }
}

/* spec names the part in messages. */
static qkv_status read_rules(const struct reader *r, qkvi_protobuf message, const char *spec,
                             qkvi_spm_rules *rules) {
    char name[sizeof "denormalizer_spec.remove_extra_whitespaces" + 8];
    qkvi_protobuf_field field;
    for (int is_there = 1;;) {
        QKV_TRY(qkvi_protobuf_next(&message, &field, &is_there));
        if (!is_there) return QKV_OK;
        int *flag = NULL;
        const char *what = "precompiled_charsmap";
        if (field.number == 3) flag = &rules->add_dummy_prefix, what = "add_dummy_prefix";
        if (field.number == 4)
            flag = &rules->remove_extra_whitespaces, what = "remove_extra_whitespaces";
        if (field.number == 5) flag = &rules->escape_whitespaces, what = "escape_whitespaces";
        snprintf(name, sizeof name, "%s.%s", spec, what);
        if (flag) QKV_TRY(qkvi_protobuf_bool(&message, &field, name, flag));
        if (field.number != 2) continue;
        QKV_TRY(qkvi_protobuf_need_bytes(&message, &field, name));
        qkvi_charsmap_free(&rules->map);
        char where[512];
        snprintf(where, sizeof where, "%s: %s", r->name, name);
        QKV_TRY(qkvi_charsmap_open(&rules->map, where, field.bytes, field.n_bytes, r->error));
    }
}

static qkv_status read_field(struct reader *r, const qkvi_protobuf *file,
                             const qkvi_protobuf_field *field) {
    static const char *const names[] = { "", "pieces",           "trainer_spec", "normalizer_spec",
                                         "", "denormalizer_spec" };
    if (field->number > 5 || field->number == 4) return QKV_OK;
    QKV_TRY(qkvi_protobuf_need_bytes(file, field, names[field->number]));
    const qkvi_protobuf inner = qkvi_protobuf_inner(file, field);
    if (field->number == 1) return read_piece(r, inner);
    if (field->number == 2) return read_trainer(r, inner);
    qkvi_spm_rules *rules = field->number == 3 ? &r->spm->rules : &r->spm->back;
    return read_rules(r, inner, names[field->number], rules);
}

static qkv_status read_file(struct reader *r, const char *bytes, size_t n_bytes) {
    qkvi_protobuf file = { .file = r->name, .bytes = bytes, .n_bytes = n_bytes, .error = r->error };
    qkvi_protobuf_field field;
    for (int is_there = 1;;) {
        QKV_TRY(qkvi_protobuf_next(&file, &field, &is_there));
        if (!is_there) return QKV_OK;
        QKV_TRY(read_field(r, &file, &field));
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

static qkv_status check_kind(const struct reader *r) {
    static const char *const kinds[] = { "", "UNIGRAM", "BPE", "WORD", "CHAR" };
    if (r->model_type == 1) return QKV_OK;
    const int is_known = r->model_type > 1 && r->model_type <= 4;
    return FAIL(r, QKV_ERR_UNSUPPORTED,
                "trainer_spec.model_type = %d %s is not supported, only UNIGRAM", r->model_type,
                is_known ? kinds[r->model_type] : "(unknown)");
}

static int is_segment(const void *user, int32_t id) {
    const qkvi_spm *spm = user;
    return spm->types[id] == QKVI_SPM_NORMAL || spm->types[id] == QKVI_SPM_USER_DEFINED;
}

static int is_symbol(const void *user, int32_t id) {
    const qkvi_spm *spm = user;
    return spm->types[id] == QKVI_SPM_USER_DEFINED;
}

static qkv_status take_byte_piece(const struct reader *r, int32_t id) {
    qkvi_spm *spm = r->spm;
    const struct qkvi_text_piece piece = spm->pieces.tokens[id];
    const int byte = qkvi_spm_byte(spm->pieces.bytes + piece.offset, (size_t)piece.length);
    if (byte < 0) return refuse_piece(r, id, "is of type BYTE but is not <0x00> to <0xFF>");
    if (!spm->byte_fallback)
        return refuse_piece(r, id, "is of type BYTE, but trainer_spec.byte_fallback is false");
    spm->byte_ids[byte] = id;
    return QKV_OK;
}

/* The unknown piece, those of bytes, and the score of what is unknown. */
static qkv_status take_types(const struct reader *r) {
    qkvi_spm *spm = r->spm;
    float smallest = FLT_MAX; /* as the reference, which may see none */
    for (int32_t id = 0; id < spm->pieces.n_ids; id++) {
        if (spm->types[id] == QKVI_SPM_UNKNOWN) {
            if (spm->unk >= 0) return refuse_piece(r, id, "is a second one of type UNKNOWN");
            spm->unk = id;
        }
        if (spm->types[id] == QKVI_SPM_BYTE) QKV_TRY(take_byte_piece(r, id));
        if (spm->types[id] != QKVI_SPM_NORMAL) continue;
        if (spm->scores[id] < smallest) smallest = spm->scores[id];
    }
    spm->unknown_score = smallest - 10.0f;
    if (spm->unk < 0) return FAIL(r, QKV_ERR_FORMAT, "no piece is of type UNKNOWN");
    for (int byte = 0; byte < 256 && spm->byte_fallback; byte++)
        if (spm->byte_ids[byte] < 0)
            return FAIL(r, QKV_ERR_FORMAT,
                        "trainer_spec.byte_fallback is true, but there is no piece "
                        "<0x%02X> of type BYTE",
                        (unsigned)byte);
    return QKV_OK;
}

static qkv_status build_trie(const struct reader *r, qkvi_trie *trie, qkvi_trie_chooses *chooses) {
    const qkv_status status = qkvi_trie_build(trie, &r->spm->pieces, chooses, r->spm);
    if (status == QKV_ERR_LIMIT)
        return FAIL(r, status,
                    "the pieces begin in more than %d ways, the "
                    "limit",
                    QKVI_TRIE_MAX_NODES);
    return status == QKV_OK ? QKV_OK : no_memory(r);
}

static qkv_status build_tries(const struct reader *r) {
    qkvi_spm *spm = r->spm;
    QKV_TRY(build_trie(r, &spm->trie, is_segment));
    QKV_TRY(build_trie(r, &spm->rules.symbols, is_symbol));
    if (spm->trie.n_units == 0)
        return FAIL(r, QKV_ERR_FORMAT, "no piece is of type NORMAL or USER_DEFINED");
    for (uint32_t i = 0; i < spm->trie.n_units; i++) {
        qkvi_trie_unit *unit = &spm->trie.units[i];
        if (unit->id < 0) continue;
        unit->score = spm->scores[unit->id];
        if (spm->types[unit->id] == QKVI_SPM_USER_DEFINED) /* by its length: spm_encode.c */
            unit->score = (float)(spm->pieces.tokens[unit->id].length * 0.1 - 0.1);
    }
    return QKV_OK;
}

/* The id of a control piece, -1 if there is none of the name. */
static int32_t control(const qkvi_spm *spm, const struct special_name *name) {
    const int32_t id = qkvi_spm_id(spm, name->bytes, name->n);
    return spm->types[id] == QKVI_SPM_CONTROL ? id : -1;
}

static qkv_status finish(struct reader *r) {
    qkvi_spm *spm = r->spm;
    QKV_TRY(check_kind(r));
    if (qkvi_pieces_seal(&spm->pieces) != QKV_OK) return no_memory(r);
    if (spm->pieces.n_hidden > 0)
        return refuse_piece(r, spm->pieces.first_hidden, "is there more than once");
    QKV_TRY(take_types(r));
    QKV_TRY(build_tries(r));
    spm->rewrites_back = spm->back.map.n_units > 0;
    spm->bos = control(spm, &r->bos);
    spm->eos = control(spm, &r->eos);
    spm->pad = control(spm, &r->pad);
    return QKV_OK;
}

qkv_status qkvi_spm_open(qkvi_spm *spm, const char *name, const char *bytes, size_t n_bytes,
                         qkv_error *error) {
    const qkvi_spm_rules rules = { .add_dummy_prefix = 1,
                                   .remove_extra_whitespaces = 1,
                                   .escape_whitespaces = 1 };
    *spm = (qkvi_spm){ .rules = rules, .back = rules, .unk = -1 };
    for (int byte = 0; byte < 256; byte++) spm->byte_ids[byte] = -1;
    memcpy(spm->unk_surface, " \xE2\x81\x87 ", 5);
    spm->unk_surface_bytes = 5;
    struct reader r = { .name = name,
                        .error = error,
                        .spm = spm,
                        .model_type = 1,
                        .bos = { "<s>", 3 },
                        .eos = { "</s>", 4 },
                        .pad = { "<pad>", 5 } };
    qkv_status status = QKV_OK;
    if (n_bytes > QKVI_SPM_MAX_BYTES)
        status = qkvi_error_set(error, QKV_ERR_LIMIT, "%s has %zu bytes, the limit is %d", name,
                                n_bytes, QKVI_SPM_MAX_BYTES);
    if (status == QKV_OK) status = read_file(&r, bytes, n_bytes);
    if (status == QKV_OK) status = finish(&r);
    if (status != QKV_OK) qkvi_spm_free(spm);
    return status;
}

static void free_rules(qkvi_spm_rules *rules) {
    qkvi_charsmap_free(&rules->map);
    qkvi_trie_free(&rules->symbols);
}

void qkvi_spm_free(qkvi_spm *spm) {
    qkvi_pieces_free(&spm->pieces);
    qkvi_trie_free(&spm->trie);
    free_rules(&spm->rules);
    free_rules(&spm->back);
    free(spm->types);
    free(spm->scores);
    *spm = (qkvi_spm){ 0 };
}

/* The value of an upper-case hexadecimal digit, or -1. */
static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int qkvi_spm_byte(const char *piece, size_t n_bytes) {
    if (n_bytes != 6 || memcmp(piece, "<0x", 3) != 0 || piece[5] != '>') return -1;
    const int high = hex_digit(piece[3]), low = hex_digit(piece[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

int32_t qkvi_spm_id(const qkvi_spm *spm, const char *piece, size_t n_bytes) {
    const int32_t id = qkvi_pieces_find(&spm->pieces, piece, n_bytes);
    return id >= 0 ? id : spm->unk;
}
