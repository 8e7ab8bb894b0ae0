/*
 * Options of generation, over a model that is a hash function or, in part, the input's own bytes.
 * Options may be anything; what is accepted writes sequences within its limits: ids of the
 * vocabulary, no more of them than asked for, an end of the text only where the text ends, scores
 * in order, no string of stop in a text, the pieces that were told, joined, the text. Twice the
 * same call gives the same bits.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "model/generate/search.h"
#include "tests/generate_table.h"

enum { MOST_VOCAB = 300, MOST_WORDS = 8, MOST_TOLD = 1 << 16 };

/* An input, read. */
typedef struct fuzz_call {
    qkvi_lm_facts facts;
    qkv_generate_options options;
    int32_t prompt[8], eos[4], bad_words[MOST_WORDS * 3];
    int64_t bad_word_lengths[MOST_WORDS];
    char stops[3][8];
    const char *stop[3];
    uint32_t seed;
    uint8_t damage; /* logits that are no numbers: how often */
    int pieces;     /* on_text wants so many */
    char told[MOST_TOLD];
    size_t n_told;
    table_lm table;
} fuzz_call;

static int64_t small(fuzz_reader *reader) { return (int8_t)fuzz_byte(reader); }

/* Mostly a sensible number, seldom any bits. */
static double real(fuzz_reader *reader) {
    const uint8_t kind = fuzz_byte(reader);
    if (kind < 240) return (kind % 48 - 8) / 8.0;
    const uint64_t bits = fuzz_u64(reader);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static int64_t whole(fuzz_reader *reader) {
    const uint8_t kind = fuzz_byte(reader);
    return kind < 250 ? kind % 24 : (int64_t)fuzz_u64(reader);
}

static int tell(void *user, const char *bytes, size_t n) {
    fuzz_call *const c = user;
    FUZZ_CHECK(n > 0 && n <= sizeof c->told - c->n_told);
    memcpy(c->told + c->n_told, bytes, n);
    c->n_told += n;
    return --c->pieces == 0;
}

static void read_lists(fuzz_reader *in, fuzz_call *c) {
    qkv_generate_options *const o = &c->options;
    o->n_eos = fuzz_byte(in) % 5;
    for (int i = 0; i < 4; i++) c->eos[i] = (int32_t)small(in);
    o->eos = fuzz_byte(in) % 16 ? c->eos : NULL;
    o->n_bad_words = fuzz_byte(in) % (MOST_WORDS + 1);
    for (int i = 0; i < MOST_WORDS; i++)
        c->bad_word_lengths[i] = fuzz_byte(in) % 32 ? i % 3 + 1 : 0;
    for (int i = 0; i < MOST_WORDS * 3; i++) c->bad_words[i] = fuzz_byte(in) % 16;
    o->bad_words = c->bad_words;
    o->bad_word_lengths = c->bad_word_lengths;
    o->n_stop = fuzz_byte(in) % 4;
    for (int i = 0; i < 3; i++) {
        const size_t n = fuzz_byte(in) % 7;
        for (size_t b = 0; b < n; b++) c->stops[i][b] = (char)fuzz_byte(in);
        c->stop[i] = c->stops[i];
    }
    o->stop = c->stop;
}

static void read_options(fuzz_reader *in, fuzz_call *c) {
    qkv_generate_options *const o = &c->options;
    *o = (qkv_generate_options)qkv_generate_options_init();
    o->max_new = whole(in);
    o->min_new = whole(in);
    o->min_length = whole(in);
    o->n_beams = whole(in);
    o->n_return = whole(in);
    o->length_penalty = real(in);
    o->early_stopping = (qkv_early_stopping)(fuzz_byte(in) % 5);
    o->sample = fuzz_byte(in) % 2;
    o->seed = fuzz_u64(in);
    o->temperature = real(in);
    o->top_k = whole(in);
    o->top_p = real(in);
    o->repetition_penalty = real(in);
    o->no_repeat_ngram = whole(in);
    o->forced_bos = (int32_t)small(in);
    o->forced_eos = (int32_t)small(in);
    o->renormalize = fuzz_byte(in) % 2;
    o->no_eos = fuzz_byte(in) % 8 == 0;
    if (fuzz_byte(in) % 4 == 0) {
        o->on_text = tell;
        o->user = c;
    }
    c->pieces = fuzz_byte(in) % 32;
    read_lists(in, c);
    /* Most inputs must pass the door. */
    const uint8_t tame = fuzz_byte(in);
    if (tame % 2) o->n_beams = 1 + tame % 7;
    if (tame % 4 >= 2) o->forced_bos = o->forced_eos = -1;
    if (tame % 8 >= 4) o->temperature = o->repetition_penalty = o->top_p = o->length_penalty = 1;
}

static qkv_status damaged_step(void *self, int64_t n, const int32_t *ids, float *logits,
                               qkv_error *error) {
    fuzz_call *const c = self;
    const qkv_status status = table_step(&c->table, n, ids, logits, error);
    const uint32_t hash = table_mix(c->table.state[0]);
    if (c->damage && hash % 256 < c->damage)
        logits[hash % (uint64_t)(n * c->table.vocab)] = hash & 1 ? (float)NAN : -INFINITY;
    return status;
}

static qkv_status reorder(void *self, int64_t n, const int32_t *from, qkv_error *error) {
    return table_reorder(&((fuzz_call *)self)->table, n, from, error);
}

static bool is_in(const int32_t *ids, int64_t n, int32_t id) {
    for (int64_t i = 0; i < n; i++)
        if (ids[i] == id) return true;
    return false;
}

static void check_sequence(const fuzz_call *c, const qkvi_plan *plan, const qkv_sequence *s) {
    FUZZ_CHECK(s->n >= 0 && s->n <= plan->max_total - plan->lm.prompt_len);
    FUZZ_CHECK(isfinite(s->score) || (c->damage && s->score == -INFINITY));
    for (int64_t i = 0; i < s->n; i++) {
        FUZZ_CHECK(s->ids[i] >= 0 && s->ids[i] < plan->lm.vocab);
        if (i < s->n - 1) FUZZ_CHECK(!is_in(plan->eos, plan->n_eos, s->ids[i]));
    }
    if (s->end == QKV_END_EOS) FUZZ_CHECK(is_in(plan->eos, plan->n_eos, s->ids[s->n - 1]));
    if (s->end == QKV_END_MAX_NEW) FUZZ_CHECK(s->n == plan->o.max_new && !plan->model_limits);
    if (s->end == QKV_END_MODEL_LENGTH) FUZZ_CHECK(s->n == plan->lm.max_len - plan->lm.prompt_len);
    FUZZ_CHECK(s->text && s->text[s->n_bytes] == '\0');
    for (int64_t i = 0; i < plan->o.n_stop; i++)
        FUZZ_CHECK(!memmem(s->text, (size_t)s->n_bytes, plan->o.stop[i], strlen(plan->o.stop[i])));
}

static void check(const fuzz_call *c, const qkvi_plan *plan, const qkv_generation *made) {
    FUZZ_CHECK(made->n_sequences >= 1 && made->n_sequences <= plan->o.n_return);
    if (plan->o.n_beams == 1) FUZZ_CHECK(made->n_sequences == plan->o.n_return);
    for (int64_t i = 0; i < made->n_sequences; i++) {
        check_sequence(c, plan, made->sequences[i]);
        if (plan->o.n_beams > 1 && i > 0)
            FUZZ_CHECK(made->sequences[i - 1]->score >= made->sequences[i]->score);
    }
    if (plan->o.on_text) {
        FUZZ_CHECK((int64_t)c->n_told == made->sequences[0]->n_bytes);
        FUZZ_CHECK(memcmp(c->told, made->sequences[0]->text, c->n_told) == 0);
    }
}

static qkv_generation *run(fuzz_call *c, const qkvi_plan *plan) {
    const qkvi_lm lm = { c, damaged_step, reorder };
    qkv_generation *made;
    qkv_error error;
    float *const logits = fuzz_alloc((size_t)(plan->n_slots * c->facts.vocab) * sizeof *logits);
    c->table.seed = c->seed;
    c->table.vocab = c->facts.vocab;
    c->n_told = 0;
    table_prompt(&c->table, c->facts.prompt_len, c->prompt, logits);
    if (!fuzz_accepted(qkvi_search(plan, &lm, c->prompt, logits, &made, &error), &error))
        FUZZ_CHECK(made == NULL && c->damage > 0);
    free(logits);
    return made;
}

static void check_same(const qkv_generation *a, const qkv_generation *b) {
    FUZZ_CHECK((a == NULL) == (b == NULL));
    if (a == NULL) return;
    FUZZ_CHECK(a->n_sequences == b->n_sequences && a->n_steps == b->n_steps);
    for (int64_t i = 0; i < a->n_sequences; i++) {
        const qkv_sequence *const s = a->sequences[i], *const t = b->sequences[i];
        FUZZ_CHECK(s->n == t->n && memcmp(s->ids, t->ids, (size_t)s->n * sizeof *s->ids) == 0);
        FUZZ_CHECK(s->score == t->score && s->end == t->end);
    }
}

/* "[UNK]" and 255 others: all kinds of bytes that text has, with and without "##". */
static qkv_tokenizer *make_tokenizer(void) {
    static char vocab[1 << 14] = "[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\n";
    static const char *const marks[] = { "", "##", "a", "##b" };
    static const char *const letters[] = { "a", "b",  "\xC3\xA9", "\xE4\xBD\xA0",
                                           ".", "st", "op",       "'" };
    qkv_tokenizer *tokenizer = NULL;
    size_t n = strlen(vocab);
    for (int i = 0; i < 256; i++)
        n += (size_t)snprintf(vocab + n, sizeof vocab - n, "%s%s%s%s\n", marks[i % 4],
                              letters[i / 4 % 8], letters[i / 32], i % 3 ? "" : "s");
    FUZZ_CHECK(qkv_tokenizer_open_memory(vocab, n, NULL, 0, &tokenizer, NULL) == QKV_OK);
    return tokenizer;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    static qkv_tokenizer *tokenizer;
    static fuzz_call call;
    fuzz_reader in = { bytes, n_bytes };
    qkvi_plan plan;
    qkv_error error;
    if (tokenizer == NULL) tokenizer = make_tokenizer();
    memset(&call, 0, sizeof call);
    call.facts.vocab = 1 + (fuzz_byte(&in) % 4 ? fuzz_byte(&in) % 40 : MOST_VOCAB - 1);
    call.facts.max_len = 1 + fuzz_byte(&in) % 40;
    static const int32_t never[] = { 0, 0, 0 }; /* the eos alone, and two of them */
    static const int64_t never_lengths[] = { 1, 2 };
    call.facts.eos = &table_eos;
    call.facts.never = never;
    call.facts.never_lengths = never_lengths;
    call.facts.n_eos = fuzz_byte(&in) % 2;
    call.facts.n_never = fuzz_byte(&in) % 4 == 0 ? 2 : 0;
    call.facts.prompt_len = 1 + fuzz_byte(&in) % 8;
    for (int i = 0; i < 8; i++) call.prompt[i] = fuzz_byte(&in) % (int32_t)call.facts.vocab;
    call.seed = (uint32_t)fuzz_u64(&in);
    call.table.sharp = fuzz_byte(&in) % 2;
    call.damage = fuzz_byte(&in) % 4 ? 0 : fuzz_byte(&in);
    read_options(&in, &call);
    call.options.tokenizer = tokenizer;
    if (!fuzz_accepted(qkvi_plan_make(&plan, &call.options, &call.facts, &error), &error)) return 0;
    const int pieces = call.pieces;
    qkv_generation *const made = run(&call, &plan);
    if (made) check(&call, &plan, made);
    call.pieces = pieces;
    qkv_generation *const again = run(&call, &plan);
    check_same(made, again);
    qkv_generation_free(made);
    qkv_generation_free(again);
    return 0;
}
