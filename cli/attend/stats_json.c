/*
 * `qkv attend --stats F`: the statistics of each head as JSON, written directly as text, so that a
 * long head needs no tree of JSON values in memory.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "attend/attend.h"
#include "common/job.h"
#include "common/os.h"

/* 9 significant digits; null for what JSON cannot say. */
static void put_number(FILE *out, double x) {
    if (isfinite(x))
        fprintf(out, "%.9g", x);
    else
        fputs("null", out);
}

/* [..., ...], rows of `inner` numbers each as a list of its own where it is not 0. */
static void put_list(FILE *out, const char *name, const float *floats, const int64_t *integers,
                     int64_t n, int64_t inner) {
    fprintf(out, ",\n\"%s\":[", name);
    for (int64_t i = 0; i < n * (inner ? inner : 1); i++) {
        if (i) fputs(inner && i % inner == 0 ? "],\n[" : ",", out);
        if (i == 0 && inner) fputc('[', out);
        if (floats)
            put_number(out, (double)floats[i]);
        else
            fprintf(out, "%" PRId64, integers[i]);
    }
    fputs(inner && n ? "]]" : "]", out);
}

static const void *array_at(const struct attend_stats *s, const struct attend_array *a) {
    const void *array;
    memcpy(&array, (const char *)s + a->offset, sizeof array);
    return array;
}

/* The arrays of a group, n rows from `first` on, and the end of its object. */
static void put_group(FILE *out, const struct attend_stats *s, enum attend_group group,
                      int64_t first, int64_t n, int64_t inner) {
    for (const struct attend_array *a = attend_arrays; a < attend_arrays + ATTEND_ARRAYS; a++) {
        const int64_t width = a->is_top ? s->rows.top_k : inner ? inner : 1;
        if (a->group != group || width == 0) continue;
        const void *const array = array_at(s, a);
        put_list(out, a->name, a->is_integer ? NULL : (const float *)array + first * width,
                 a->is_integer ? (const int64_t *)array + first * width : NULL, n,
                 a->is_top ? width : inner);
    }
    fputs("}", out);
}

/* Of the rows that see a key and are not NaN; null if there is none. */
static double mean(const float *x, const int64_t *n_seen, int64_t n, int64_t inner, int64_t at) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        if (n_seen[i] > 0) sum += (double)x[i * inner + at], count++;
    return count ? sum / (double)count : NAN;
}

static void put_means(FILE *out, const struct attend_stats *s, int64_t first) {
    const qkv_attention_stats *r = &s->rows;
    fputs(",\n\"means\":{", out);
    for (int i = 0; i < ATTEND_NUMBERS; i++) {
        const float *const numbers = array_at(s, &attend_arrays[i]);
        fprintf(out, "%s\"%s\":", i ? "," : "", attend_arrays[i].name);
        put_number(out, mean(numbers + first, r->n_seen + first, s->rows_q, 1, 0));
    }
    fputs(",\"offset_mass\":[", out);
    for (int64_t n = 0; n < r->n_offsets; n++) {
        if (n) fputc(',', out);
        put_number(out, mean(r->offset_mass + first * r->n_offsets, r->n_seen + first, s->rows_q,
                             r->n_offsets, n));
    }
    fputs("]}", out);
}

/* Sums over the sequences of a batch: there is one of them, unless it is packed. */
static int64_t count(const struct attend_stats *s, const int64_t *of, int64_t b, int64_t h,
                     int64_t n_sequences) {
    int64_t sum = 0;
    for (int64_t n = 0; n < n_sequences; n++) sum += of[(b * n_sequences + n) * s->n_heads + h];
    return sum;
}

static void put_head(FILE *out, const struct attend_stats *s, const qkv_attention_desc *d,
                     const float *lse, int64_t b, int64_t h) {
    const qkv_attention_columns *c = &s->columns;
    const int64_t head = b * s->n_heads + h, n_sequences = s->n_batch ? d->n_batch / s->n_batch : 0;
    fprintf(out,
            "{\"batch\":%" PRId64 ",\"head\":%" PRId64 ",\"n_empty_rows\":%" PRId64
            ",\"n_nan_rows\":%" PRId64,
            b, h, count(s, s->rows.n_empty_rows, b, h, n_sequences),
            count(s, s->rows.n_nan_rows, b, h, n_sequences));
    put_means(out, s, head * s->rows_q);
    fprintf(out, ",\n\"rows\":{\"n\":%" PRId64, s->rows_q);
    put_list(out, "lse", lse + head * s->rows_q, NULL, s->rows_q, 0);
    put_group(out, s, OF_ROWS, head * s->rows_q, s->rows_q, 0);
    fprintf(out, ",\n\"keys\":{\"n\":%" PRId64, s->rows_k);
    put_group(out, s, OF_KEYS, head * s->rows_k, s->rows_k, 0);
    if (c->diagonal) {
        fprintf(out, ",\n\"diagonal\":{\"first\":%" PRId64, c->first_diagonal);
        put_group(out, s, OF_DIAGONAL, head * c->n_diagonals, c->n_diagonals, 0);
    }
    if (c->tile_mass) {
        fprintf(out, ",\n\"map\":{\"n_tiles_q\":%" PRId64 ",\"n_tiles_k\":%" PRId64, c->n_tiles_q,
                c->n_tiles_k);
        put_group(out, s, OF_MAP, head * c->n_tiles_q, c->n_tiles_q, c->n_tiles_k);
    }
    fputs("}", out);
}

/* What the numbers are, beside them: definitions.json, as one line. */
static void put_definitions(FILE *out) {
    extern const char attend_definitions_text[];
    fputs("\"definitions\":", out);
    for (const char *at = attend_definitions_text; *at; at++)
        if (*at != '\n') fputc(*at, out);
    fputs(",\n", out);
}

static void put_option(FILE *out, const char *name, const char *given, bool *any) {
    if (!given) return;
    json_t *const value = json_text(given);
    fprintf(out, "%s\"%s\":", *any ? "," : "", name);
    if (!json_put(out, value)) fputs("null", out);
    *any = true;
    json_decref(value);
}

static void put_real_option(FILE *out, const char *name, double value, bool *any) {
    fprintf(out, "%s\"%s\":", *any ? "," : "", name);
    put_number(out, value);
    *any = true;
}

/* The options that decide what row i sees and what a score is, as they were given. */
static void put_options(FILE *out, const struct attend_options *o, const qkv_attention_desc *d) {
    const struct {
        const char *name, *value;
    } given[] = { { "mask", o->mask },
                  { "mask_bits", o->mask_bits },
                  { "segments", o->segments },
                  { "segments_q", o->segments_q },
                  { "cu_seqlens", o->cu_seqlens },
                  { "cu_seqlens_k", o->cu_seqlens_k },
                  { "alibi", o->alibi },
                  { "sink", o->sink },
                  { "block_mask", o->block_mask } };
    const double root = 1 / sqrt((double)d->head_dim);
    fputs("\"scale\":", out);
    put_number(out, d->flags & QKV_SET_SCALE ? (double)d->scale : root);
    fputs(",\"options\":{", out);
    bool any = false;
    for (int r = 0; qkv_attention_rule(r); r++)
        put_option(out, qkv_attention_rule(r)->name, o->common.rules[r].text, &any);
    for (int i = 0; i < CLI_COUNT(given); i++) put_option(out, given[i].name, given[i].value, &any);
    if (o->block_len.set) put_real_option(out, "block_len", (double)o->block_len.value, &any);
    if (o->softcap.set) put_real_option(out, "softcap", o->softcap.value, &any);
    fputs("},\n", out);
}

int attend_stats_json(const struct attend_options *options, const struct attend_problem *problem,
                      const float *lse, struct attend_stats *s) {
    const qkv_attention_desc *d = &problem->desc;
    FILE *out = os_open_memory(&s->json, &s->n_json);
    if (!out) return cli_fail("out of memory");
    fprintf(out,
            "{\"n_batch\":%" PRId64 ",\"n_heads\":%" PRId64 ",\"len_q\":%" PRId64
            ",\"len_k\":%" PRId64 ",\"head_dim\":%" PRId64 ",\n",
            s->n_batch, s->n_heads, s->rows_q, s->rows_k, d->head_dim);
    put_options(out, options, d);
    put_definitions(out);
    fputs("\"offset_bounds\":[", out);
    for (int64_t n = 0; n <= s->rows.n_offsets; n++)
        fprintf(out, "%s%" PRId64, n ? "," : "", s->bounds[n]);
    fputs("],\n\"heads\":[\n", out);
    for (int64_t b = 0; b < s->n_batch; b++)
        for (int64_t h = 0; h < s->n_heads; h++) {
            if (b + h) fputs(",\n", out);
            put_head(out, s, d, lse, b, h);
        }
    fputs("]}\n", out);
    const bool failed = ferror(out);
    return os_close_memory(out) == 0 && !failed ? EXIT_OK : cli_fail("out of memory");
}
