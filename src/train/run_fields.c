/* The state of a run in one line of text: see run_fields.h. */
#include "train/run_fields.h"

enum kind { WHOLE, REAL, HASH };

#define KNOWN(index, text, kind, value) { text, kind },
static const struct {
    const char *name;
    enum kind kind;
} known[QKVI_RUN_FIELDS] = { QKVI_RUN_TABLE(KNOWN) };

static const char check_name[] = "check=";

/* What a field is where it is left out: what it was before there was a choice. */
static uint64_t usual(int field) {
    if (field == QKVI_RUN_EPS) return qkvi_real_bits(1e-8);
    return field == QKVI_RUN_ACCUMULATE || field == QKVI_RUN_SLICES;
}
static int may_be_left_out(int field) { return field >= QKVI_RUN_ARCH; }

uint64_t qkvi_real_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

double qkvi_bits_real(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint64_t qkvi_hash(uint64_t hash, const void *bytes, size_t n) {
    const unsigned char *const b = bytes;
    for (size_t i = 0; i < n; i++) hash = (hash ^ b[i]) * 0x100000001b3u;
    return hash;
}

void qkvi_run_fields_of(const qkvi_trainer *t, qkvi_run_fields *fields) {
    const qkv_train_options *const o = t->options;
#define VALUE(index, text, kind, value) value,
    *fields = (qkvi_run_fields){ { QKVI_RUN_TABLE(VALUE) } };
#undef VALUE
}

/* ---- Text ------------------------------------------------------------------------------------ */

void qkvi_run_fields_print(const qkvi_run_fields *fields, char text[QKVI_RUN_BYTES]) {
    size_t n = 0;
    for (int f = 0; f < QKVI_RUN_FIELDS; f++) {
        const unsigned long long bits = fields->bits[f];
        if (may_be_left_out(f) && bits == usual(f)) continue;
        n += (size_t)snprintf(text + n, QKVI_RUN_BYTES - n,
                              known[f].kind == WHOLE ? "%s=%llu " : "%s=%016llx ", known[f].name,
                              bits);
    }
    snprintf(text + n, QKVI_RUN_BYTES - n, "%s%016llx", check_name,
             (unsigned long long)qkvi_hash(QKVI_HASH_START, text, n));
}

/* "NAME=NUMBER ", exactly as it is printed; NULL if it is not that. */
static const char *take(const char *text, const char *name, enum kind kind, uint64_t *bits) {
    const size_t n_name = strlen(name);
    const char *const number = text + n_name + 1;
    if (strncmp(text, name, n_name) != 0 || text[n_name] != '=') return NULL;
    const size_t n = strspn(number, kind == WHOLE ? "0123456789" : "0123456789abcdef");
    if (n == 0 || n > 20 || number[n] != ' ') return NULL;
    *bits = strtoull(number, NULL, kind == WHOLE ? 10 : 16);
    return number + n + 1;
}

qkv_status qkvi_run_fields_parse(const char *name, const char *text, qkvi_run_fields *fields,
                                 qkv_error *error) {
    char check[sizeof check_name + 16];
    const char *at = text;
    for (int f = 0; at && f < QKVI_RUN_FIELDS; f++) {
        const char *const rest = take(at, known[f].name, known[f].kind, &fields->bits[f]);
        if (!rest && may_be_left_out(f)) fields->bits[f] = usual(f);
        if (rest || !may_be_left_out(f)) at = rest;
    }
    if (!at)
        return qkvi_error_set(error, QKV_ERR_FORMAT,
                              "%s: is damaged, or the checkpoint of another version", name);
    snprintf(check, sizeof check, "%s%016llx", check_name,
             (unsigned long long)qkvi_hash(QKVI_HASH_START, text, (size_t)(at - text)));
    if (strcmp(at, check) == 0) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_FORMAT,
                          "%s: is damaged: the checksum of its line of options is another", name);
}

/* ---- Comparing ------------------------------------------------------------------------------- */

/* As the tool calls them. */
static const char *compute_name(uint64_t compute) {
    static const char *const names[] = { "f32", "bf16", "bf16-dp", "bf16-amx" };
    return compute < sizeof names / sizeof *names ? names[compute] : "something else";
}

static int print_difference(char *text, size_t n_bytes, int field, uint64_t stored, uint64_t ours) {
    const char *const name = known[field].name;
    if (field == QKVI_RUN_GRAMMAR)
        return snprintf(text, n_bytes, stored ? "a grammar, not a text" : "a text, not a grammar");
    if (field == QKVI_RUN_CORPUS) return snprintf(text, n_bytes, "another corpus");
    if (field == QKVI_RUN_FROM) return snprintf(text, n_bytes, "from another model");
    if (field == QKVI_RUN_COMPUTE)
        return snprintf(text, n_bytes, "compute %s, not %s", compute_name(stored),
                        compute_name(ours));
    if (known[field].kind == REAL)
        return snprintf(text, n_bytes, "%s %.9g, not %.9g", name, qkvi_bits_real(stored),
                        qkvi_bits_real(ours));
    return snprintf(text, n_bytes, "%s %llu, not %llu", name, (unsigned long long)stored,
                    (unsigned long long)ours);
}

/* A run that is finished may have replaced the model that it began from. */
static int is_same(const qkvi_run_fields *stored, const qkvi_run_fields *ours, int field) {
    if (stored->bits[field] == ours->bits[field]) return 1;
    return field == QKVI_RUN_FROM && stored->bits[field] != 0 &&
           stored->bits[QKVI_RUN_STEP] == stored->bits[QKVI_RUN_STEPS] &&
           stored->bits[QKVI_RUN_WEIGHTS] == ours->bits[field];
}

qkv_status qkvi_run_fields_match(const char *name, const qkvi_run_fields *stored,
                                 const qkvi_run_fields *ours, qkv_error *error) {
    char list[400] = "";
    size_t n = 0;
    for (int f = QKVI_RUN_GRAMMAR; f < QKVI_RUN_LOG; f++) {
        if (is_same(stored, ours, f)) continue;
        if (n > 0 && n < sizeof list) n += (size_t)snprintf(list + n, sizeof list - n, "; ");
        if (n < sizeof list)
            n += (size_t)print_difference(list + n, sizeof list - n, f, stored->bits[f],
                                          ours->bits[f]);
    }
    if (n == 0) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s: is of another run: %s", name, list);
}
