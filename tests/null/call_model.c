/* Tokenizers, models, runs, training, generation: see nulls.h. */
#include <string.h>

#include "null/models.h"
#include "null/nulls.h"
#include "qkv/files.h"
#include "qkv/generate.h"
#include "qkv/train.h"
#include "qkv/vision.h"

#define MODEL  QKV_TEST_ROOT "/models/default"
#define GOLDEN QKV_TEST_DATA "/golden/"

qkv_model *null_bert;
qkv_encoding *null_tokens;
qkv_run *null_run;
qkv_run *null_pair_run;
static qkv_model *gpt2, *bart, *electra, *classifier, *tagger, *answerer;
static qkv_model *clip;
static qkv_encoding *image;
static float pixels[3 * 12 * 12];
static qkv_image *picture;
static const uint8_t rgb[3 * 5 * 5];
static const qkv_tokenizer *tokenizer;
static qkv_run *gpt2_run, *electra_run, *classifier_run, *tagger_run, *clip_run;
static const qkv_encoding *inputs[1];
static int32_t ids[] = { 5, 6, 7, 8 };
static const qkv_encoding numbers = { .n = 4, .ids = ids };
static const qkv_encoding *const number_inputs[] = { &numbers };
static const char text[] = "the dog saw [MASK] .";

void null_model_begin(void) {
    null_must(qkv_model_open(MODEL, NULL, &null_bert, &null_error));
    null_must(qkv_model_open(GOLDEN "decoder/gpt2_1/mild", NULL, &gpt2, &null_error));
    null_must(qkv_model_open(GOLDEN "decoder/bart_1/mild", NULL, &bart, &null_error));
    null_must(qkv_model_open(GOLDEN "family/electra_1", NULL, &electra, &null_error));
    null_must(qkv_model_open(GOLDEN "classify/modernbert_mean", NULL, &classifier, &null_error));
    null_must(qkv_model_open(GOLDEN "classify/bert_tokens", NULL, &tagger, &null_error));
    null_must(qkv_model_open(GOLDEN "classify/roberta_answers", NULL, &answerer, &null_error));
    null_must(qkv_model_open(GOLDEN "vision/clip_1", NULL, &clip, &null_error));
    null_must(qkv_image_encode(qkv_model_images(clip), 12, 12, pixels, 0, &image, &null_error));
    null_must(qkv_image_from_rgb(rgb, 5, 5, &picture, &null_error));
    null_must(qkv_model_run(null_ctx, qkv_model_images(clip), 1,
                            (const qkv_encoding *const *)&image, 0, NULL, &clip_run, &null_error));
    tokenizer = qkv_model_tokenizer(null_bert, QKV_SOURCE);
    null_must(qkv_tokenizer_encode(tokenizer, text, strlen(text), text, strlen(text), &null_tokens,
                                   &null_error));
    inputs[0] = null_tokens;
    null_must(qkv_model_run(null_ctx, null_bert, 1, inputs, QKV_RUN_CAPTURE | QKV_RUN_HIDDEN, NULL,
                            &null_run, &null_error));
    null_must(qkv_model_run(null_ctx, gpt2, 1, number_inputs, QKV_RUN_CAPTURE, NULL, &gpt2_run,
                            &null_error));
    null_must(
        qkv_model_run(null_ctx, electra, 1, number_inputs, 0, NULL, &electra_run, &null_error));
    null_must(qkv_model_run(null_ctx, classifier, 1, number_inputs, 0, NULL, &classifier_run,
                            &null_error));
    null_must(qkv_model_run(null_ctx, tagger, 1, number_inputs, 0, NULL, &tagger_run, &null_error));
    qkv_run_options pairs = qkv_run_options_init();
    pairs.targets = number_inputs;
    null_must(qkv_model_run(null_ctx, bart, 1, number_inputs, QKV_RUN_CAPTURE, &pairs,
                            &null_pair_run, &null_error));
    null_must(qkv_file_write(NULL_FOLDER "/text", "the red dog\tsaw a cat\n", 22, &null_error));
}

static qkv_status some(int is_there) { return is_there ? QKV_OK : QKV_ERR_ARGUMENT; }

/* ---- Tokens ---------------------------------------------------------------------------------- */

static qkv_status tokenizer_open(void) {
    qkv_tokenizer *own;
    return qkv_tokenizer_open(P(0, MODEL), QKV_SOURCE, P(1, &own), P(2, &null_error));
}
static qkv_status tokenizer_open_target(void) {
    qkv_tokenizer *own;
    return qkv_tokenizer_open(P(0, MODEL), QKV_TARGET, P(1, &own), P(2, &null_error));
}
static qkv_status tokenizer_open_memory(void) {
    static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n", config[] = "{}";
    qkv_tokenizer *own;
    return qkv_tokenizer_open_memory(P(0, vocab), strlen(vocab), P(1, config), strlen(config),
                                     P(2, &own), P(3, &null_error));
}
static qkv_status tokenizer_free(void) {
    qkv_tokenizer *own;
    null_must(qkv_tokenizer_open(MODEL, QKV_SOURCE, &own, &null_error));
    qkv_tokenizer_free(P(0, own));
    return QKV_OK;
}
static qkv_status encode(void) {
    qkv_encoding *made;
    return qkv_tokenizer_encode(P(0, tokenizer), P(1, text), strlen(text), P(2, text), 0,
                                P(3, &made), P(4, &null_error));
}
static qkv_status encode_turn(void) {
    static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n",
                      config[] = "{\"chat_template\":\"{% for message in messages %}"
                                 "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% endfor %}\"}";
    qkv_tokenizer *own;
    qkv_encoding *made;
    int32_t end;
    null_must(
        qkv_tokenizer_open_memory(vocab, strlen(vocab), config, strlen(config), &own, &null_error));
    const qkv_status status =
        qkv_tokenizer_encode_turn(P(0, own), P(1, "mistral"), P(2, text), strlen(text), P(3, &made),
                                  P(4, &end), P(5, &null_error));
    if (status == QKV_OK) qkv_encoding_free(made);
    qkv_tokenizer_free(own);
    return status;
}
static qkv_status chat(void) {
    qkv_tokenizer_chat(P(0, tokenizer));
    return QKV_OK;
}
static qkv_status encoding_free(void) {
    qkv_encoding_free(P(0, null_tokens));
    return QKV_OK;
}
static qkv_status tokenizer_cut(void) {
    qkv_tokenizer_cut(P(0, tokenizer), P(1, null_tokens), 5);
    return QKV_OK;
}
static qkv_status decode(void) {
    qkv_text *made;
    return qkv_tokenizer_decode(P(0, tokenizer), P(1, ids), 4, 0, P(2, &made), P(3, &null_error));
}
static qkv_status show(void) {
    qkv_text *made;
    return qkv_tokenizer_show(P(0, tokenizer), 7, P(1, &made), P(2, &null_error));
}
static qkv_status text_free(void) {
    qkv_text *made;
    null_must(qkv_tokenizer_show(tokenizer, 7, &made, &null_error));
    qkv_text_free(P(0, made));
    return QKV_OK;
}
static qkv_status size(void) { return some(qkv_tokenizer_size(P(0, tokenizer)) > 0); }
static qkv_status token(void) {
    size_t bytes;
    return some(qkv_tokenizer_token(P(0, tokenizer), 7, P(1, &bytes)) != NULL);
}
static qkv_status id(void) { return some(qkv_tokenizer_id(P(0, tokenizer), P(1, "the"), 3) >= 0); }
static qkv_status tokenizer_file(void) {
    uint64_t digest;
    return some(qkv_tokenizer_file(P(0, tokenizer), 0, P(1, &digest)) != NULL);
}
static qkv_status special(void) {
    return some(qkv_tokenizer_special(P(0, tokenizer), QKV_TOKEN_CLS) >= 0);
}

/* ---- Models ---------------------------------------------------------------------------------- */

static qkv_status model_open(void) {
    const qkv_model_open_options options = qkv_model_open_options_init();
    qkv_model *own;
    return qkv_model_open(P(0, MODEL), P(1, &options), P(2, &own), P(3, &null_error));
}
static qkv_status model_open_memory(void) {
    const qkv_model_open_options options = qkv_model_open_options_init();
    qkv_model *own;
    size_t n[3];
    char *const bytes[] = { null_load(MODEL "/config.json", &n[0]),
                            null_load(MODEL "/vocab.txt", &n[1]),
                            null_load(MODEL "/model.safetensors", &n[2]) };
    return qkv_model_open_memory(P(0, bytes[0]), n[0], P(1, bytes[1]), n[1], P(2, bytes[2]), n[2],
                                 P(3, &options), P(4, &own), P(5, &null_error));
}
static qkv_status model_free(void) {
    qkv_model_free(P(0, electra));
    return QKV_OK;
}
static qkv_status get_info(void) { return some(qkv_model_get_info(P(0, null_bert)) != NULL); }
static qkv_status model_tokenizer(void) {
    return some(qkv_model_tokenizer(P(0, null_bert), QKV_SOURCE) != NULL);
}
static qkv_status target_tokenizer(void) {
    return some(qkv_model_tokenizer(P(0, null_bert), QKV_TARGET) != NULL);
}
static qkv_status file(void) { return some(qkv_model_file(P(0, null_bert), 0) != NULL); }
static qkv_status unused(void) {
    qkv_model_unused(P(0, null_bert), 0);
    return QKV_OK;
}
static qkv_status warning(void) {
    qkv_model_warning(P(0, null_bert), 0);
    return QKV_OK;
}
static qkv_status prompt(void) { return some(qkv_model_prompt(P(0, null_bert), 0) != NULL); }
static qkv_status encode_sentence(void) {
    qkv_encoding *made;
    int64_t n_prompt;
    return qkv_model_encode_sentence(P(0, null_bert), P(1, "query: "), P(2, text), strlen(text),
                                     P(3, &made), P(4, &n_prompt), P(5, &null_error));
}
static void visit_bad(void *user, const qkv_not_finite *found) { (void)user, (void)found; }
static qkv_status check_finite(void) {
    static int user;
    return qkv_model_check_finite(P(0, null_bert), P(1, visit_bad), P(2, &user)) == 0
               ? QKV_OK
               : QKV_ERR_ARGUMENT;
}
static qkv_status word_vector(void) {
    static float vector[4096];
    return qkv_model_word_vector(P(0, null_bert), 5, P(1, vector), P(2, &null_error));
}
static qkv_status sinusoids(void) {
    static float table[8];
    return qkv_sinusoids(2, 4, P(0, table), P(1, &null_error));
}

/* ---- Running --------------------------------------------------------------------------------- */

static float logits[1 << 16];

static qkv_status run_free(void) {
    qkv_run_free(P(0, electra_run));
    return QKV_OK;
}
static qkv_status run(void) {
    const qkv_run_options options = qkv_run_options_init();
    qkv_run *made;
    return qkv_model_run(P(0, null_ctx), P(1, null_bert), 1, P(2, inputs), 0, P(3, &options),
                         P(4, &made), P(5, &null_error));
}
static qkv_status hidden(void) {
    return some(qkv_run_hidden(P(0, null_run), QKV_SELF, 0, 0) != NULL);
}
static qkv_status decoder_hidden(void) {
    return some(qkv_run_hidden(P(0, null_pair_run), QKV_DECODER, 0,
                               qkv_model_get_info(bart)->n_decoder_layers) != NULL);
}
static qkv_status capture(void) {
    qkv_capture made = qkv_capture_init();
    return qkv_run_capture(P(0, null_run), QKV_SELF, 0, 0, P(1, &made), P(2, &null_error));
}
static qkv_status run_weights(void) {
    return qkv_run_weights(P(0, null_run), QKV_SELF, 0, 0, 0, P(1, logits), P(2, &null_error));
}
static qkv_status mlm(void) {
    return qkv_model_logits(P(0, null_ctx), P(1, null_bert), P(2, null_run), QKV_HEAD_MASKED, 0, 1,
                            P(3, logits), P(4, &null_error));
}
static qkv_status lm(void) {
    return qkv_model_logits(P(0, null_ctx), P(1, gpt2), P(2, gpt2_run), QKV_HEAD_NEXT, 0, 1,
                            P(3, logits), P(4, &null_error));
}
static qkv_status nsp(void) {
    return qkv_model_nsp(P(0, null_ctx), P(1, null_bert), P(2, null_run), 0, P(3, logits),
                         P(4, &null_error));
}
static qkv_status discriminate(void) {
    return qkv_model_discriminate(P(0, null_ctx), P(1, electra), P(2, electra_run), 0, P(3, logits),
                                  P(4, &null_error));
}
static qkv_status images(void) { return some(qkv_model_images(P(0, clip)) != NULL); }
static qkv_status image_encode(void) {
    qkv_encoding *own = NULL;
    return qkv_image_encode(P(0, qkv_model_images(clip)), 12, 12, P(1, pixels), 0, P(2, &own),
                            P(3, &null_error));
}
static qkv_status image_match(void) {
    static double shares[1], matches[1];
    return qkv_image_match(P(0, clip), P(1, logits), 1, P(2, logits), P(3, matches), P(4, shares),
                           P(5, &null_error));
}
static qkv_status image_see(void) {
    qkv_encoding *own = NULL;
    return qkv_image_see(P(0, qkv_model_images(clip)), P(1, picture), P(2, NULL), P(3, &own),
                         P(4, &null_error));
}
static qkv_status image_token(void) {
    static char name[32];
    *name = 0;
    qkv_image_token(P(0, image), 1, P(1, name));
    return some(*name != 0);
}
static qkv_status pool(void) {
    return qkv_model_pool(P(0, null_ctx), P(1, qkv_model_images(clip)), P(2, clip_run), 0,
                          P(3, logits), P(4, &null_error));
}
static qkv_status pad(void) {
    qkv_encoding own = numbers;
    return qkv_model_pad(P(0, clip), P(1, &own), P(2, &null_error));
}
static qkv_status joint(void) {
    return qkv_model_joint(P(0, null_ctx), P(1, qkv_model_images(clip)), P(2, clip_run), 0,
                           P(3, logits), P(4, &null_error));
}
static qkv_status classify(void) {
    return qkv_model_classify(P(0, null_ctx), P(1, classifier), P(2, classifier_run), 0,
                              P(3, logits), P(4, &null_error));
}
static qkv_status classify_tokens(void) {
    return qkv_model_classify_tokens(P(0, null_ctx), P(1, tagger), P(2, tagger_run), 0,
                                     P(3, logits), P(4, &null_error));
}
static qkv_status probabilities(void) {
    double p[64];
    return qkv_model_probabilities(P(0, classifier), P(1, &numbers), 1, P(2, logits), P(3, p),
                                   P(4, &null_error));
}
static qkv_status answers(void) {
    static int64_t begin[] = { 0, 0, 1, 1 }, end[] = { 0, 1, 2, 1 };
    const qkv_encoding input = { .n = 4, .begin = begin, .end = end };
    const double p[8] = { 0 };
    qkv_answer found[3];
    int64_t n = 0;
    return qkv_model_answers(P(0, answerer), P(1, &input), P(2, p), 3, P(3, found), sizeof *found,
                             P(4, &n), P(5, &null_error));
}
static qkv_status label(void) { return some(qkv_model_label(P(0, classifier), 0) != NULL); }
static qkv_status embed(void) {
    const qkv_embed_options options = qkv_embed_options_init();
    return qkv_model_embed(P(0, null_ctx), P(1, null_bert), 1, P(2, inputs), P(3, &options),
                           P(4, logits), P(5, &null_error));
}
static qkv_status fill(void) {
    qkv_candidate candidates[3];
    return qkv_model_candidates(P(0, null_ctx), P(1, null_bert), P(2, null_run), QKV_HEAD_MASKED, 0,
                                1, 3, P(3, candidates), sizeof(qkv_candidate), P(4, &null_error));
}
static qkv_status next(void) {
    qkv_candidate candidates[3];
    return qkv_model_candidates(P(0, null_ctx), P(1, gpt2), P(2, gpt2_run), QKV_HEAD_NEXT, 0, 1, 3,
                                P(3, candidates), sizeof(qkv_candidate), P(4, &null_error));
}

/* ---- Training and writing -------------------------------------------------------------------- */

static qkv_status train(void) {
    qkv_train_options own = qkv_train_options_init();
    own.text = NULL_FOLDER "/text";
    own.out = NULL_FOLDER "/model";
    own.n_layers = own.n_heads = own.n_steps = own.batch = 1;
    own.warmup = 0;
    own.hidden = own.intermediate = 4;
    own.vocab_size = 200;
    own.max_len = 8;
    return qkv_train(P(0, null_ctx), P(1, &own), P(2, &null_error));
}
static qkv_status eval_on(int grammar) {
    qkv_eval_report *report;
    return qkv_eval(P(0, null_ctx), P(1, null_bert), grammar ? NULL : P(2, NULL_FOLDER "/text"),
                    grammar ? P(3, MODEL "/grammar.txt") : NULL, 1, P(4, &report),
                    P(5, &null_error));
}
/* One of text and grammar. */
static qkv_status eval(void) { return eval_on(0); }
static qkv_status eval_free(void) {
    qkv_eval_report *report;
    null_must(qkv_eval(null_ctx, null_bert, NULL_FOLDER "/text", NULL, 1, &report, &null_error));
    qkv_eval_report_free(P(0, report));
    return QKV_OK;
}
static qkv_eval_work *eval_work(void) {
    qkv_eval_work *work;
    null_must(qkv_eval_open(null_ctx, null_bert, NULL_FOLDER "/text", &work, &null_error));
    return work;
}
static qkv_status eval_open(void) {
    qkv_eval_work *work = NULL;
    const qkv_status status = qkv_eval_open(
        P(0, null_ctx), P(1, null_bert), P(2, NULL_FOLDER "/text"), P(3, &work), P(4, &null_error));
    qkv_eval_work_free(work);
    return status;
}
static qkv_status eval_piece(void) {
    qkv_eval_work *const work = eval_work();
    char *piece;
    size_t n;
    const qkv_status status =
        qkv_eval_piece(P(0, work), 0, P(1, &piece), P(2, &n), P(3, &null_error));
    qkv_eval_work_free(work);
    return status;
}
static qkv_status eval_measure(void) {
    qkv_eval_work *const work = eval_work();
    char *answer;
    size_t n;
    const qkv_status status = qkv_eval_measure(P(0, work), P(1, "+the dog"), 8, P(2, &answer),
                                               P(3, &n), P(4, &null_error));
    qkv_eval_work_free(work);
    return status;
}
static qkv_status eval_take(void) {
    qkv_eval_work *const work = eval_work();
    static const char nothing[24]; /* no pairs, no blanks */
    const qkv_status status =
        qkv_eval_take(P(0, work), P(1, nothing), sizeof nothing, P(2, &null_error));
    qkv_eval_work_free(work);
    return status;
}
static qkv_status eval_finish(void) {
    qkv_eval_work *const work = eval_work();
    qkv_eval_report *report = NULL;
    const qkv_status status = qkv_eval_finish(P(0, work), P(1, &report), P(2, &null_error));
    qkv_eval_report_free(report);
    qkv_eval_work_free(work);
    return status;
}
static qkv_status eval_work_free(void) {
    qkv_eval_work_free(P(0, eval_work()));
    return QKV_OK;
}
static void visit_sentence(void *user, const char *sentence, size_t n_bytes, int said) {
    (void)user, (void)sentence, (void)n_bytes, (void)said;
}
static qkv_status eval_sentences(void) {
    qkv_sentence_score score = qkv_sentence_score_init();
    static int user;
    return qkv_eval_sentences(P(0, MODEL "/grammar.txt"), P(1, NULL_FOLDER "/text"),
                              P(2, visit_sentence), P(3, &user), P(4, &score), P(5, &null_error));
}
static qkv_status generate_options_read(void) {
    qkv_generate_options own = qkv_generate_options_init();
    return qkv_generate_options_read(P(0, gpt2), P(1, &own), P(2, &null_error));
}
static qkv_generate_options generate_options(void) {
    qkv_generate_options own = qkv_generate_options_init();
    own.max_new = 2;
    return own;
}
static qkv_status generate(void) {
    const qkv_generate_options own = generate_options();
    qkv_generation *made;
    return qkv_generate(P(0, null_ctx), P(1, gpt2), P(2, &numbers), P(3, &own), P(4, &made),
                        P(5, &null_error));
}
static qkv_status generation_free(void) {
    const qkv_generate_options own = generate_options();
    qkv_generation *made;
    null_must(qkv_generate(null_ctx, gpt2, &numbers, &own, &made, &null_error));
    qkv_generation_free(P(0, made));
    return QKV_OK;
}
static qkv_status perplexity(void) {
    qkv_perplexity_report report = qkv_perplexity_report_init();
    return qkv_perplexity(P(0, null_ctx), P(1, gpt2), 1, P(2, number_inputs), 0, P(3, &report),
                          P(4, &null_error));
}
static qkv_status pair_perplexity(void) {
    qkv_perplexity_report report = qkv_perplexity_report_init();
    return qkv_perplexity_pairs(P(0, null_ctx), P(1, bart), 1, P(2, number_inputs),
                                P(3, number_inputs), P(4, &report), P(5, &null_error));
}

const null_call null_model[] = {
    { "qkv_tokenizer_open", tokenizer_open, "rrn" },
    { "qkv_tokenizer_open: target", tokenizer_open_target, "rrn" },
    { "qkv_tokenizer_open_memory", tokenizer_open_memory, "rnrn" },
    { "qkv_tokenizer_free", tokenizer_free, "n" },
    { "qkv_tokenizer_encode", encode, "rrnrn" },
    { "qkv_tokenizer_encode_turn", encode_turn, "rnrrrn" },
    { "qkv_tokenizer_chat", chat, "n" },
    { "qkv_encoding_free", encoding_free, "n" },
    { "qkv_tokenizer_cut", tokenizer_cut, "nn" },
    { "qkv_tokenizer_decode", decode, "rrrn" },
    { "qkv_tokenizer_show", show, "rrn" },
    { "qkv_text_free", text_free, "n" },
    { "qkv_tokenizer_size", size, "-" },
    { "qkv_tokenizer_token", token, "--" },
    { "qkv_tokenizer_id", id, "--" },
    { "qkv_tokenizer_special", special, "-" },
    { "qkv_tokenizer_file", tokenizer_file, "-n" },
    { "qkv_model_open", model_open, "rnrn" },
    { "qkv_model_open_memory", model_open_memory, "rrrnrn" },
    { "qkv_model_free", model_free, "n" },
    { "qkv_model_get_info", get_info, "-" },
    { "qkv_model_tokenizer", model_tokenizer, "-" },
    { "qkv_model_tokenizer: target", target_tokenizer, "-" },
    { "qkv_model_file", file, "-" },
    { "qkv_model_unused", unused, "n" },
    { "qkv_model_warning", warning, "n" },
    { "qkv_model_prompt", prompt, "-" },
    { "qkv_model_check_finite", check_finite, "nnn" },
    { "qkv_model_encode_sentence", encode_sentence, "rnrrrn" },
    { "qkv_model_word_vector", word_vector, "rrn" },
    { "qkv_sinusoids", sinusoids, "rn" },
    { "qkv_run_free", run_free, "n" },
    { "qkv_model_run", run, "rrrnrn" },
    { "qkv_run_hidden", hidden, "-" },
    { "qkv_run_hidden: decoder", decoder_hidden, "-" },
    { "qkv_run_capture", capture, "rrn" },
    { "qkv_run_weights", run_weights, "rrn" },
    { "qkv_model_logits", mlm, "rrrrn" },
    { "qkv_model_logits: next", lm, "rrrrn" },
    { "qkv_model_nsp", nsp, "rrrrn" },
    { "qkv_model_discriminate", discriminate, "rrrrn" },
    { "qkv_model_classify", classify, "rrrrn" },
    { "qkv_model_classify_tokens", classify_tokens, "rrrrn" },
    { "qkv_model_probabilities", probabilities, "rnrrn" },
    { "qkv_model_answers", answers, "rrrrrn" },
    { "qkv_model_label", label, "-" },
    { "qkv_model_images", images, "-" },
    { "qkv_image_encode", image_encode, "rrrn" },
    { "qkv_image_see", image_see, "rrnrn" },
    { "qkv_image_token", image_token, "--" },
    { "qkv_model_pool", pool, "rrrrn" },
    { "qkv_model_pad", pad, "rrn" },
    { "qkv_model_joint", joint, "rrrrn" },
    { "qkv_image_match", image_match, "rrrrnn" },
    { "qkv_model_embed", embed, "rrrnrn" },
    { "qkv_model_candidates", fill, "rrrrn" },
    { "qkv_model_candidates: next", next, "rrrrn" },
    { "qkv_train", train, "rrn" },
    { "qkv_eval", eval, "rr-nrn" },
    { "qkv_eval_report_free", eval_free, "n" },
    { "qkv_eval_open", eval_open, "rrnrn" },
    { "qkv_eval_piece", eval_piece, "rrrn" },
    { "qkv_eval_measure", eval_measure, "rrrrn" },
    { "qkv_eval_take", eval_take, "rrn" },
    { "qkv_eval_finish", eval_finish, "rrn" },
    { "qkv_eval_work_free", eval_work_free, "n" },
    { "qkv_eval_sentences", eval_sentences, "rrnnrn" },
    { "qkv_generate_options_read", generate_options_read, "rrn" },
    { "qkv_generate", generate, "rrnnrn" },
    { "qkv_generation_free", generation_free, "n" },
    { "qkv_perplexity", perplexity, "rrrrn" },
    { "qkv_perplexity_pairs", pair_perplexity, "rrrrrn" },
    { 0 },
};
