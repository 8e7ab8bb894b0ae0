/*
 * The texts of a file on which a head fires most: for each text the largest weight of a query on
 * another token, without special tokens. Only the best texts are kept, so memory does not depend on
 * the size of the file.
 */
#include "heads/fires.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/conflicts.h"
#include "common/os.h"
#include "common/ranks.h"
#include "heads/texts.h"

enum { DEFAULT_TOP = 10 };

/* One text, its tokens copied. */
struct fire {
    int64_t line, query, key, n_queries, n_keys;
    float weight;
    int32_t *queries, *keys; /* [n]; one array if they are of one text */
};

struct fires {
    const struct heads_options *options;
    const struct session *session;
    qkv_attention_kind which;
    int64_t layer, head, n, most;
    int64_t n_silent; /* texts without a pair of tokens that counts */
    struct fire *list;
    uint8_t *of; /* [heads]: the one */
};

static void fire_free(struct fire *fire) {
    if (fire->keys != fire->queries) free(fire->keys);
    free(fire->queries);
}

/* ---- The list, best first -------------------------------------------------------------------- */

/* Is a behind b: a smaller weight, or the same in a later line? */
static bool is_behind(const struct fire *a, const struct fire *b) {
    if (a->weight != b->weight) return a->weight < b->weight;
    return a->line > b->line;
}

/* Of a full list the last one makes room. */
static void put_fire(struct fires *fires, const struct fire *fire) {
    int64_t at = fires->n;
    if (fires->n < fires->most)
        fires->n++;
    else
        fire_free(&fires->list[--at]);
    for (; at > 0 && is_behind(&fires->list[at - 1], fire); at--)
        fires->list[at] = fires->list[at - 1];
    fires->list[at] = *fire;
}

/* ---- One text -------------------------------------------------------------------------------- */

static uint8_t *words_of(const qkv_encoding *tokens) {
    uint8_t *const marks = malloc((size_t)tokens->n + 1);
    for (int64_t i = 0; marks && i < tokens->n; i++) marks[i] = !tokens->special[i];
    return marks;
}

static qkv_status find_sharpest(const struct fires *fires, const struct attention_view *view,
                                const struct texts_one *text, qkv_sharpest *sharpest,
                                qkv_error *error) {
    qkv_heads *heads = NULL;
    uint8_t *const from = words_of(view->queries.tokens), *const to = words_of(view->keys.tokens);
    qkv_status status = from && to ? QKV_OK : text_no_memory(error);
    if (status == QKV_OK)
        status = qkv_heads_open_run(fires->session->ctx, text->run, fires->which, text->b,
                                    &view->queries, &view->keys, &heads, error);
    if (status == QKV_OK) status = qkv_heads_sharpest(heads, fires->of, from, to, sharpest, error);
    qkv_heads_free(heads);
    free(from);
    free(to);
    return status;
}

/* A record: a fire without arrays, and the ids of queries and keys; those of one text once. */
static qkv_status pack_fire(const struct fire *fire, const qkv_encoding *queries,
                            const qkv_encoding *keys, struct text *record, qkv_error *error) {
    const size_t n_queries = queries == keys ? 0 : (size_t)queries->n, n_keys = (size_t)keys->n;
    record->n = sizeof *fire + (n_queries + n_keys) * sizeof(int32_t);
    record->bytes = malloc(record->n);
    if (!record->bytes) return text_no_memory(error);
    char *const ids = record->bytes + sizeof *fire;
    memcpy(record->bytes, fire, sizeof *fire);
    if (n_queries > 0) memcpy(ids, queries->ids, n_queries * sizeof(int32_t));
    memcpy(ids + n_queries * sizeof(int32_t), keys->ids, n_keys * sizeof(int32_t));
    return QKV_OK;
}

static qkv_status make_record(void *user, const struct texts_one *text, struct text *record,
                              qkv_error *error) {
    const struct fires *const fires = user;
    const struct attention_view view =
        pair_view(fires->session, text->input, text->pair, fires->which);
    const qkv_encoding *const queries = view.queries.tokens, *const keys = view.keys.tokens;
    qkv_sharpest best = qkv_sharpest_init();
    const qkv_status status = find_sharpest(fires, &view, text, &best, error);
    if (status != QKV_OK) return status;
    const struct fire fire = { .line = text->line,
                               .query = best.query,
                               .key = best.key,
                               .n_queries = queries->n,
                               .n_keys = keys->n,
                               .weight = best.weight };
    return pack_fire(&fire, queries, keys, record, error);
}

static int32_t *copy_ids(const char *from, int64_t n) {
    int32_t *const ids = malloc((size_t)(n + 1) * sizeof *ids);
    if (ids) memcpy(ids, from, (size_t)n * sizeof *ids);
    return ids;
}

/*
 * Is the record a fire and the ids of its tokens, and its pair among these? *two: queries have ids
 * of their own.
 */
static bool is_fire(const struct fires *fires, const struct text *record, struct fire *fire,
                    bool *two) {
    if (record->n < sizeof *fire) return false;
    memcpy(fire, record->bytes, sizeof *fire);
    const int64_t n_ids = (int64_t)((record->n - sizeof *fire) / sizeof(int32_t));
    *two = fires->which == QKV_CROSS;
    return record->n == sizeof *fire + (size_t)n_ids * sizeof(int32_t) && fire->line > 0 &&
           fire->n_keys >= 0 && fire->n_keys <= n_ids && fire->n_queries >= 0 &&
           (*two ? fire->n_queries == n_ids - fire->n_keys
                 : fire->n_keys == n_ids && fire->n_queries == n_ids) &&
           fire->query >= -1 && fire->query < fire->n_queries &&
           (fire->query < 0 || (fire->key >= 0 && fire->key < fire->n_keys));
}

static qkv_status take_record(void *user, const struct text *record, qkv_error *error) {
    struct fires *const fires = user;
    struct fire fire;
    bool two;
    if (!is_fire(fires, record, &fire, &two))
        return text_error(error, QKV_ERR_FORMAT, "a text in the journal has %zu bytes", record->n);
    fires->n_silent += fire.query < 0;
    if (fire.query < 0) return QKV_OK;
    if (fires->n == fires->most && is_behind(&fire, &fires->list[fires->n - 1])) return QKV_OK;
    const char *const ids = record->bytes + sizeof fire;
    fire.keys = copy_ids(ids + (two ? (size_t)fire.n_queries * sizeof(int32_t) : 0), fire.n_keys);
    fire.queries = two ? copy_ids(ids, fire.n_queries) : fire.keys;
    if (fire.queries && fire.keys) {
        put_fire(fires, &fire);
        return QKV_OK;
    }
    fire_free(&fire);
    return text_no_memory(error);
}

/* ---- Showing --------------------------------------------------------------------------------- */

static const qkv_tokenizer *query_tokenizer(const struct fires *fires) {
    return fires->which == QKV_SELF ? fires->session->tokenizer : fires->session->target;
}
static const qkv_tokenizer *key_tokenizer(const struct fires *fires) {
    return fires->which == QKV_DECODER ? fires->session->target : fires->session->tokenizer;
}

static json_t *place_json(const qkv_tokenizer *tokenizer, int64_t place, const int32_t *ids) {
    return json_set(NULL, "position:i token:o", place, token_json(tokenizer, ids[place]));
}

static json_t *ids_json(const qkv_tokenizer *tokenizer, const int32_t *ids, int64_t n) {
    json_t *const list = json_array();
    for (int64_t i = 0; i < n; i++) json_array_append_new(list, token_json(tokenizer, ids[i]));
    return list;
}

static json_t *fire_json(const struct fires *fires, const struct fire *fire) {
    const qkv_tokenizer *const from = query_tokenizer(fires), *const to = key_tokenizer(fires);
    const bool two = fire->keys != fire->queries;
    json_t *const object =
        json_set(NULL, "line:i weight:n query:o key:o tokens:o", fire->line, (double)fire->weight,
                 place_json(from, fire->query, fire->queries),
                 place_json(to, fire->key, fire->keys), ids_json(to, fire->keys, fire->n_keys));
    return json_set(object, "decoder_inputs:o",
                    two ? ids_json(from, fire->queries, fire->n_queries) : NULL);
}

static json_t *fires_json(const struct fires *fires, const struct texts *texts) {
    json_t *const list = json_array();
    for (int64_t i = 0; i < fires->n; i++)
        json_array_append_new(list, fire_json(fires, &fires->list[i]));
    return json_set(NULL, "attention:s layer:i head:i n_texts:i n_silent:i fires:o",
                    attention_key(fires->session, fires->which), fires->layer, fires->head,
                    texts->n_texts, fires->n_silent, list);
}

/* The tokens of a text, those of the pair marked. */
static void print_tokens(struct term *term, const struct fires *fires, const struct fire *fire) {
    const qkv_tokenizer *const tokenizer = key_tokenizer(fires);
    const bool one = fire->keys == fire->queries;
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *const out = os_open_memory(&text, &n_bytes);
    for (int64_t i = 0; out && i < fire->n_keys; i++) {
        char *const label = token_label(tokenizer, fire->keys[i]);
        const char *const mark = one && i == fire->query ? "*" : i == fire->key ? "_" : "";
        fprintf(out, "%s%s%s%s", i ? " " : "", mark, label ? label : "", mark);
        free(label);
    }
    if (out && os_close_memory(out) == 0) {
        term_wrap_at(term, text, 4);
    }
    free(text);
}

static void print_fires(const struct fires *fires, const struct texts *texts) {
    struct term term;
    struct caption line = { "" };
    char name[HEAD_NAME];
    term_init(&term, stdout, &fires->options->common);
    attention_head(fires->session, fires->which, fires->layer, fires->head, name);
    caption_add(&line, "%s: its largest weights over %" PRId64 " texts", name, texts->n_texts);
    term_wrap_styled(&term, STYLE_BOLD, line.text);
    term_newline(&term);
    for (int64_t i = 0; i < fires->n; i++) {
        const struct fire *const fire = &fires->list[i];
        char *const from = token_label(query_tokenizer(fires), fire->queries[fire->query]),
                    *const to = token_label(key_tokenizer(fires), fire->keys[fire->key]);
        line.text[0] = 0;
        caption_add(&line, "%.4f  line %" PRId64 "  %.200s %s %.200s", (double)fire->weight,
                    fire->line, from ? from : "", term.unicode ? "\u2192" : "->", to ? to : "");
        term_wrap(&term, line.text);
        print_tokens(&term, fires, fire);
        free(from);
        free(to);
    }
    term_newline(&term);
    line.text[0] = 0;
    caption_add(&line, "Of each text the largest weight of a token (query) on another one (key), "
                       "special tokens aside; the query stands between *, the key between _. "
                       "A large weight shows where the head looks, not what it is for.");
    if (fires->n_silent)
        caption_add(&line, " Texts without two such tokens: %" PRId64 ".", fires->n_silent);
    term_wrap(&term, line.text);
}

/* ---- The whole ------------------------------------------------------------------------------- */

int fires_check(const struct session *session, const struct heads_options *options) {
    int64_t layer, head;
    if (!session_place(options->fires, &layer, &head))
        return cli_usage(session->command, "--fires: '%s' is not L.H", options->fires);
    return session_check_head(session, pair_which(&options->which), "--fires", options->fires,
                              layer, head, "model");
}

static qkv_status fires_show(const struct fires *fires, const struct texts *texts,
                             qkv_error *error) {
    const char *const out = fires->options->out;
    json_t *const object = out || fires->options->common.json ? fires_json(fires, texts) : NULL;
    if (cli_cancelled) return text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    if (texts->n_cut)
        cli_note(fires->options->common.quiet, "qkv: %" PRId64 " of %" PRId64 " texts cut",
                 texts->n_cut, texts->n_texts);
    if (!out && !fires->options->common.json) {
        print_fires(fires, texts);
        return QKV_OK;
    }
    if (!object) return text_no_memory(error);
    if (!out)
        return json_print(stdout, object) ? QKV_OK
                                          : text_error(error, QKV_ERR_IO, "standard output failed");
    const qkv_status status = json_write_file(out, object, error);
    if (status == QKV_OK) cli_note(fires->options->common.quiet, "qkv: wrote %s", out);
    return status;
}

int fires_answer(const struct heads_job *job) {
    const struct heads_options *const options = job->texts.options;
    const qkv_run_options run_options = qkv_run_options_init();
    struct fires fires = { .options = options,
                           .session = &job->texts.session,
                           .which = job->texts.which,
                           .most = options->top.set ? options->top.value : DEFAULT_TOP };
    struct texts texts = { .session = fires.session,
                           .path = options->file,
                           .which = fires.which,
                           .flags = QKV_RUN_CAPTURE,
                           .run_options = &run_options,
                           .journal = options->journal,
                           .make = make_record,
                           .take = take_record,
                           .user = &fires };
    int64_t n_layers, n_heads;
    qkv_error error;
    session_sizes(fires.session, fires.which, &n_layers, &n_heads);
    (void)session_place(options->fires, &fires.layer, &fires.head);
    fires.list = calloc((size_t)fires.most + 1, sizeof *fires.list);
    fires.of = calloc((size_t)(n_layers * n_heads) + 1, 1);
    qkv_status status = fires.list && fires.of ? QKV_OK : text_no_memory(&error);
    int code = ranks_agree(cli_status(status, &error));
    if (code == EXIT_OK) {
        fires.of[fires.layer * n_heads + fires.head] = 1;
        status = texts_read(&texts, &error);
        if (status == QKV_OK && ranks_rank() == 0) status = fires_show(&fires, &texts, &error);
        code = cli_status(status, &error);
    }
    for (int64_t i = 0; i < fires.n; i++) fire_free(&fires.list[i]);
    free(fires.list);
    free(fires.of);
    return code;
}
