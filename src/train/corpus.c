/* Calls of a corpus, which is a grammar or a text: see corpus.h. */
#include "train/corpus.h"

#include "files/file.h"
#include "text/vocab.h"
#include "train/grammar/grammar.h"
#include "train/run_fields.h"

enum { HELD_OUT_PAIRS = 1500 };

struct qkvi_corpus {
    qkvi_grammar *grammar; /* one of the two */
    qkvi_text *text;
    uint64_t grammar_hash;
};

static qkv_status corpus_new(qkvi_corpus **corpus, qkv_error *error) {
    *corpus = calloc(1, sizeof **corpus);
    return *corpus ? QKV_OK : qkvi_error_set(error, QKV_ERR_MEMORY, "out of memory");
}

qkv_status qkvi_corpus_open_grammar_memory(const char *name, const char *bytes, size_t n_bytes,
                                           qkvi_corpus **corpus, qkv_error *error) {
    QKV_TRY(corpus_new(corpus, error));
    (*corpus)->grammar_hash = qkvi_hash(QKVI_HASH_START, bytes, n_bytes);
    const qkv_status status = qkvi_grammar_parse(name, bytes, n_bytes, &(*corpus)->grammar, error);
    if (status != QKV_OK) {
        qkvi_corpus_free(*corpus);
        *corpus = NULL;
    }
    return status;
}

qkv_status qkvi_corpus_open_grammar(const char *path, qkvi_corpus **corpus, qkv_error *error) {
    char *bytes = NULL;
    size_t n_bytes = 0;
    *corpus = NULL;
    QKV_TRY(qkvi_file_load_text(path, QKVI_GRAMMAR_BYTES, &bytes, &n_bytes, error));
    const qkv_status status = qkvi_corpus_open_grammar_memory(QKVI_PRINTABLE(QKVI_NAME_BYTES, path),
                                                              bytes, n_bytes, corpus, error);
    free(bytes);
    return status;
}

qkv_status qkvi_corpus_open_text(const char *path, qkvi_corpus **corpus, qkv_error *error) {
    QKV_TRY(corpus_new(corpus, error));
    const qkv_status status = qkvi_text_open(path, &(*corpus)->text, error);
    if (status != QKV_OK) {
        qkvi_corpus_free(*corpus);
        *corpus = NULL;
    }
    return status;
}

void qkvi_corpus_free(qkvi_corpus *corpus) {
    if (!corpus) return;
    qkvi_grammar_free(corpus->grammar);
    qkvi_text_free(corpus->text);
    free(corpus);
}

uint64_t qkvi_corpus_hash(const qkvi_corpus *corpus) {
    return corpus->grammar ? corpus->grammar_hash : qkvi_text_hash(corpus->text);
}

const qkvi_grammar *qkvi_corpus_grammar(const qkvi_corpus *corpus) { return corpus->grammar; }

void qkvi_corpus_pair(const qkvi_corpus *corpus, qkvi_split split, int64_t index, uint64_t seed,
                      qkvi_pair *pair) {
    if (corpus->grammar)
        qkvi_grammar_pair(corpus->grammar, split, index, seed, pair);
    else
        qkvi_text_pair(corpus->text, split, index, seed, pair);
}

int qkvi_corpus_probe(const qkvi_corpus *corpus, int64_t index, uint64_t seed, qkvi_pair *pair) {
    return corpus->grammar ? qkvi_grammar_probe(corpus->grammar, index, seed, pair) : 0;
}

int64_t qkvi_corpus_held_out_pairs(const qkvi_corpus *corpus) {
    return corpus->grammar ? HELD_OUT_PAIRS : qkvi_text_n_pairs(corpus->text);
}

/* ---- Documents and translations ---- */

/* One sentence, and the next one if it belongs to it. */
static qkv_status say_pair(const qkvi_pair *pair, qkvi_growing *text) {
    if (text->n > 0) QKV_TRY(qkvi_growing_put(text, " ", 1));
    QKV_TRY(qkvi_growing_put(text, pair->a, (size_t)pair->a_bytes));
    if (!pair->is_next || pair->b_bytes == 0) return QKV_OK;
    QKV_TRY(qkvi_growing_put(text, " ", 1));
    return qkvi_growing_put(text, pair->b, (size_t)pair->b_bytes);
}

qkv_status qkvi_corpus_document(const qkvi_corpus *corpus, qkvi_split split, int64_t index,
                                uint64_t seed, int64_t enough, qkvi_growing *text,
                                qkv_error *error) {
    enum { MOST_PAIRS = 1 << 14 };
    qkv_status status = QKV_OK;
    if (corpus->text) {
        int64_t bytes;
        const char *const line =
            qkvi_text_line(corpus->text, qkvi_text_draw(corpus->text, split, index, seed), &bytes);
        status = qkvi_growing_put(text, line, (size_t)bytes);
    }
    for (int64_t p = 0; corpus->grammar && p < MOST_PAIRS && status == QKV_OK; p++) {
        qkvi_pair pair;
        if (text->n >= (size_t)enough) break;
        qkvi_grammar_pair(corpus->grammar, split, index * MOST_PAIRS + p, seed, &pair);
        status = say_pair(&pair, text);
    }
    if (status == QKV_OK) return QKV_OK;
    return qkvi_error_set(error, status, "no memory for a document");
}

void qkvi_corpus_translation(const qkvi_corpus *corpus, qkvi_split split, int64_t index,
                             uint64_t seed, qkvi_pair *pair) {
    qkvi_text_halves(corpus->text, qkvi_text_draw(corpus->text, split, index, seed), pair);
}

qkv_status qkvi_corpus_check_translations(const qkvi_corpus *corpus, qkv_error *error) {
    if (corpus->text) return qkvi_text_check_tabs(corpus->text, error);
    return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                          "a grammar has no translations: an encoder-decoder is trained on a text "
                          "of lines, source TAB target");
}

/* ---- Slots ---- */

typedef struct first_parse {
    const qkvi_sentence_frame *frame;
    qkvi_assignment assignment;
} first_parse;

static bool note_first(void *user, const qkvi_sentence_frame *frame,
                       const qkvi_assignment *assignment) {
    *(first_parse *)user = (first_parse){ frame, *assignment };
    return false;
}

/* The row of the evaluation that an element belongs to. */
static const char *slot_type(const qkvi_grammar *g, const qkvi_element *element,
                             const qkvi_assignment *assignment) {
    switch (element->kind) {
    case QKVI_FORM:
    case QKVI_AGREE: return g->classes[g->lexemes[assignment->lexeme[element->var]].class_id].type;
    case QKVI_PERSON:
        return element->form == QKVI_OWN  ? "possessive"
               : element->form < QKVI_OWN ? "pronoun"
                                          : "auxiliary";
    case QKVI_ARTICLE: return "article";
    case QKVI_LITERAL: break;
    }
    return strchr(".,?!", g->words[element->words[0]].key[0]) ? "punctuation" : "fixed word";
}

qkv_status qkvi_corpus_slots(const qkvi_corpus *corpus, const qkvi_pair *pair, qkvi_slot **slots,
                             int32_t *n_slots, qkv_error *error) {
    const qkvi_grammar *const g = corpus->grammar;
    qkvi_sentence sentence;
    first_parse parse = { 0 };
    *slots = NULL;
    *n_slots = 0;
    if (!g || !pair->counts_for_mlm) return QKV_OK;
    if (qkvi_grammar_split(g, pair->a, pair->a_bytes, pair->b_bytes ? pair->b : NULL, pair->b_bytes,
                           &sentence))
        qkvi_grammar_match(g, &sentence, 0, note_first, &parse);
    if (!parse.frame) return QKV_OK;
    const size_t n = (size_t)sentence.n, n_words = (size_t)g->n_words;
    const size_t head = (n * sizeof **slots + 15) / 16 * 16;
    int32_t *const set = qkvi_malloc_array(n_words, sizeof *set);
    char *const block = malloc(head + n * n_words * sizeof(const char *));
    if (!set || !block) {
        free(set);
        free(block);
        return qkvi_error_set(error, QKV_ERR_MEMORY, "out of memory");
    }
    *slots = (qkvi_slot *)(void *)block;
    const char **words = (const char **)(void *)(block + head);
    for (int32_t i = 0; i < sentence.n; ++i) {
        const int32_t word = sentence.words[i];
        sentence.words[i] = -1;
        const int32_t n_set = qkvi_grammar_admissible(g, &sentence, set);
        sentence.words[i] = word;
        const qkvi_element *const element = &g->elements[parse.frame->first_element + i];
        (*slots)[i] = (qkvi_slot){ .span = sentence.spans[i],
                                   .type = slot_type(g, element, &parse.assignment),
                                   .words = words,
                                   .n_words = n_set };
        for (int32_t k = 0; k < n_set; ++k) *words++ = g->words[set[k]].key;
    }
    *n_slots = sentence.n;
    free(set);
    return QKV_OK;
}

void qkvi_slots_free(qkvi_slot *slots) { free(slots); }

/* ---- Text for the vocabulary ---- */

/* Of a grammar: its words, then every printable character, so that other words can be spelled. */
static const char characters[] =
    "abcdefghijklmnopqrstuvwxyz0123456789!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

int64_t qkvi_corpus_n_texts(const qkvi_corpus *corpus) {
    return corpus->grammar ? corpus->grammar->n_said + (int64_t)sizeof characters - 1
                           : qkvi_text_n_lines(corpus->text);
}

const char *qkvi_corpus_text(const qkvi_corpus *corpus, int64_t index, int64_t *bytes,
                             int64_t *count) {
    *count = 1;
    if (!corpus->grammar) return qkvi_text_line(corpus->text, index, bytes);
    const qkvi_grammar *const g = corpus->grammar;
    *bytes = 1;
    if (index >= g->n_said) return &characters[index - g->n_said];
    *count = QKVI_WHOLE_WORD_COUNT;
    *bytes = (int64_t)strlen(g->words[g->said[index]].text);
    return g->words[g->said[index]].text;
}
