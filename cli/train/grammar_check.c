/* How much of a text a grammar can generate, and which parts not, as lines or as JSON. */
#include "train/train.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MOST_SHOWN = 10 }; /* sentences that are not said; JSON has all */

static void keep_what_is_not_said(void *user, const char *sentence, size_t n_bytes, int said) {
    if (!said) json_array_append_new(user, json_bytes(sentence, n_bytes));
}

static void print_lines(const qkv_sentence_score *score, const json_t *wrong) {
    const size_t n = json_array_size(wrong);
    print_ratio("sentences that the grammar says", score->n_said, score->n_sentences);
    print_ratio("of these, held out from training", score->n_held_out, score->n_said);
    if (score->n_unfinished)
        printf("lines that end within a sentence: %" PRId64 "\n", score->n_unfinished);
    for (size_t i = 0; i < n && i < MOST_SHOWN; i++) {
        const json_t *const text = json_array_get(wrong, i);
        char *shown = term_escape(json_string_value(text), json_string_length(text));
        printf("not said: %s\n", shown ? shown : "");
        free(shown);
    }
    if (n > MOST_SHOWN) printf("and %zu more (--json has all)\n", n - MOST_SHOWN);
}

int grammar_check_print(const char *grammar, const char *text, const struct cli_common *common) {
    qkv_sentence_score score = qkv_sentence_score_init();
    qkv_error error;
    json_t *wrong = json_array();
    text_say_mark(grammar, common->quiet);
    text_say_mark(text, common->quiet);
    const qkv_status status =
        qkv_eval_sentences(grammar, text, keep_what_is_not_said, wrong, &score, &error);
    if (status == QKV_OK && common->json)
        json_print(stdout, json_set(NULL,
                                    "n_sentences:i n_said:i n_held_out:i n_unfinished:i "
                                    "not_said:o",
                                    score.n_sentences, score.n_said, score.n_held_out,
                                    score.n_unfinished, json_incref(wrong)));
    else if (status == QKV_OK)
        print_lines(&score, wrong);
    json_decref(wrong);
    return cli_status(status, &error);
}
