/*
 * Training that is stopped and resumed gives the results of a run that was never stopped: the same
 * weights and log, bit for bit, wherever it was stopped and by whatever (a report, the flag,
 * SIGKILL), with other threads and instruction sets each time. A damaged checkpoint, or one of
 * another run, is refused.
 *
 * Usage: unit_train_resume [SEED]
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "tiny_run.h"

#include "files/safetensors.h"
#include "train/run_fields.h"

static const char checkpoint[] = "checkpoint.safetensors", run_key[] = "qkv_run";
static uint64_t draws;

static uint32_t below(uint32_t n) {
    draws = draws * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((draws >> 33) % n);
}

/* Any of the instruction sets, one to three threads. */
static qkv_ctx *any_ctx(void) {
    int n_isas = 0;
    while (qkv_isa_name(n_isas)) n_isas++;
    return make_ctx(qkv_isa_name((int)below((uint32_t)n_isas)), 1 + (int)below(3));
}

/* The smallest run; reports lie between its steps and at some of them. */
static qkv_train_options tiny_run(void) {
    qkv_train_options options = small_run();
    options.n_layers = 1;
    options.hidden = 8;
    options.intermediate = 12;
    options.n_steps = 9;
    options.batch = 4;
    options.report_every = 4;
    return options;
}

/* Runs on, from a checkpoint if there is one. */
static qkv_status run_on(qkv_train_options options, qkv_error *error) {
    qkv_ctx *const ctx = any_ctx();
    if (exists(checkpoint)) options.resume = out_path;
    const qkv_status status = qkv_train(ctx, &options, error);
    qkv_ctx_free(ctx);
    return status;
}

/* ---- Stops ----------------------------------------------------------------------------------- */

/* The flag is up all the time, so every call makes one step. */
static void test_a_step_at_a_time(void **state) {
    (void)state;
    qkv_train_options options = tiny_run();
    const int raised = 1;
    qkv_error error;
    const result expected = whole_run(&options);
    options.cancel = &raised;
    for (int64_t step = 1; step < options.n_steps; step++) {
        char says[64];
        snprintf(says, sizeof says, "training was stopped after step %d", (int)step);
        assert_int_equal(run_on(options, &error), QKV_ERR_CANCELLED);
        assert_string_equal(error.message, says);
        assert_true(exists(checkpoint));
        assert_false(exists("model.safetensors"));
    }
    if (run_on(options, &error) != QKV_OK) fail_msg("%s", error.message); /* the last is the end */
    assert_false(exists(checkpoint));
    expect_same(take_result(), &expected, "a step at a time");
    free_result(&expected);
}

static int stop_sometimes(void *user, const qkv_train_report *report) {
    (void)user, (void)report;
    return below(3) == 0;
}

static void test_random_stops(void **state) {
    (void)state;
    qkv_train_options options = small_run();
    qkv_error error;
    options.n_steps = 8;
    options.report_every = 1;
    const result expected = whole_run(&options);
    options.report = stop_sometimes;
    for (int round = 0; round < 5; round++) {
        qkv_status status;
        while ((status = run_on(options, &error)) == QKV_ERR_CANCELLED)
            assert_non_null(strstr(error.message, "training was stopped after step"));
        if (status != QKV_OK) fail_msg("%s", error.message);
        expect_same(take_result(), &expected, "stopped at random reports");
    }
    free_result(&expected);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A child that trains is killed after some seconds. 1: it had finished before. */
static int train_and_kill(const qkv_train_options *options, double seconds) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        qkv_error error;
        _exit(run_on(*options, &error) == QKV_OK ? 0 : 1);
    }
    const time_t whole = (time_t)seconds;
    const struct timespec wait = { whole, (long)(1e9 * (seconds - (double)whole)) };
    int status;
    nanosleep(&wait, NULL);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) return 0;
    assert_int_equal(WEXITSTATUS(status), 0); /* it could go on from what the last one left */
    return 1;
}

/*
 * Killed with SIGKILL at any moment, the checkpoint before or the new one is there. The moments are
 * those of what the whole run takes here.
 */
static void test_killed(void **state) {
    (void)state;
    qkv_train_options options = tiny_run();
    options.n_steps = 60;
    options.checkpoint_every = 1;
    const double began = now();
    const result expected = whole_run(&options);
    const double whole = now() - began;
    int n_kills = 0, n_resumed = 0;
    for (int round = 0; round < 4; round++) {
        int finished = 0;
        for (int kills = 0; kills < 12 && !finished; kills++, n_kills++) {
            n_resumed += exists(checkpoint);
            finished = train_and_kill(&options, 1e-3 * below(500) * whole);
        }
        qkv_error error;
        if (!finished && run_on(options, &error) != QKV_OK) fail_msg("%s", error.message);
        expect_same(take_result(), &expected, "killed");
        assert_int_not_equal(access(out_path, F_OK), 0); /* nothing else was left in the folder */
    }
    print_message("%d runs were killed, %d of them had been resumed\n", n_kills, n_resumed);
    free_result(&expected);
}

/* ---- Checkpoints of other runs --------------------------------------------------------------- */

static void stop_after_one_step(void) {
    qkv_train_options options = tiny_run();
    const int raised = 1;
    qkv_error error;
    options.cancel = &raised;
    assert_int_equal(run_on(options, &error), QKV_ERR_CANCELLED);
}

static void expect_error(qkv_train_options options, qkv_status wanted, const char *says) {
    qkv_error error = { QKV_OK, "" };
    qkv_ctx *const ctx = make_ctx(NULL, 1);
    const qkv_status status = qkv_train(ctx, &options, &error);
    qkv_ctx_free(ctx);
    if (status != wanted || !strstr(error.message, says))
        fail_msg("%s \"%s\", expected %s \"%s\"", qkv_status_name(status), error.message,
                 qkv_status_name(wanted), says);
}

static void expect_refused(qkv_train_options options, qkv_status wanted, const char *says) {
    options.resume = out_path;
    expect_error(options, wanted, says);
}

#define OTHER(change, says)                                                                        \
    do {                                                                                           \
        qkv_train_options options = tiny_run();                                                    \
        change;                                                                                    \
        expect_refused(options, QKV_ERR_ARGUMENT, "is of another run: " says);                     \
    } while (0)

static void test_other_options(void **state) {
    (void)state;
    stop_after_one_step();
    OTHER(options.n_layers = 2, "layers 1, not 2");
    OTHER(options.n_heads = 1, "heads 2, not 1");
    OTHER(options.hidden = 16, "hidden 8, not 16");
    OTHER(options.intermediate = 13, "intermediate 12, not 13");
    OTHER(options.vocab_size = 201, "vocab 200, not 201");
    OTHER(options.max_len = 17, "len 16, not 17");
    OTHER(options.n_steps = 10, "steps 9, not 10");
    OTHER(options.batch = 5, "batch 4, not 5");
    OTHER(options.warmup = 3, "warmup 2, not 3");
    OTHER(options.learning_rate = 0.25, "lr 0.0015, not 0.25");
    OTHER(options.weight_decay = 0.5, "weight_decay 0.01, not 0.5");
    OTHER(options.beta1 = 0.5, "beta1 0.9, not 0.5");
    OTHER(options.beta2 = 0.5, "beta2 0.98, not 0.5");
    OTHER(options.clip = 0, "clip 1, not 0");
    OTHER(options.eps = 1e-6, "eps 1e-08, not 1e-06");
    OTHER(options.seed = 8, "seed 7, not 8");
    OTHER(options.sinusoidal_positions = 1, "sinusoidal 0, not 1");
    OTHER(options.seed = 8; options.batch = 5, "batch 4, not 5; seed 7, not 8");
    write_text(FIRST_B "\t" FIRST_A "\n" SECOND_A "\t" SECOND_B "\n"); /* the same words */
    OTHER(options.seed = 7, "another corpus");
    write_text(TEXT);
    clear_out();
}

/* What is not named in a checkpoint may change. */
static void test_free_options(void **state) {
    (void)state;
    qkv_train_options options = tiny_run();
    qkv_error error;
    const result expected = whole_run(&options);
    stop_after_one_step();
    options.report_every = 3;
    options.checkpoint_every = 2;
    if (run_on(options, &error) != QKV_OK) fail_msg("%s", error.message);
    size_t n;
    char *const model = slurp("model.safetensors", &n);
    assert_int_equal(n, expected.n_model);
    assert_memory_equal(model, expected.model, n);
    free(model);
    free_result(&expected);
    clear_out();
}

/* Going on in another folder: the stopped one keeps its files. */
static void test_another_folder(void **state) {
    (void)state;
    qkv_train_options options = tiny_run();
    char stopped[TEMPORARY_PATH + 16];
    const result expected = whole_run(&options);
    qkv_ctx *const ctx = any_ctx();
    const int raised = 1;
    qkv_error error;
    options.cancel = &raised;
    for (int step = 1; step <= 5; step++) /* one report is in the log */
        assert_int_equal(run_on(options, &error), QKV_ERR_CANCELLED);
    snprintf(stopped, sizeof stopped, "%s/stopped", folder);
    assert_int_equal(rename(out_path, stopped), 0);
    options = tiny_run();
    options.resume = stopped;
    train(ctx, &options);
    expect_same(take_result(), &expected, "in another folder");
    assert_int_equal(rename(stopped, out_path), 0);
    assert_true(exists(checkpoint));
    clear_out();
    free_result(&expected);
    qkv_ctx_free(ctx);
}

/* Without resume the same run is not begun anew by mistake; another one is. */
static void test_begin_anew(void **state) {
    (void)state;
    qkv_train_options options = tiny_run();
    qkv_ctx *const ctx = make_ctx(NULL, 1);
    stop_after_one_step();
    expect_error(options, QKV_ERR_ARGUMENT, "this run was stopped after step 1: resume it, or");
    options.seed = 8;
    train(ctx, &options);
    assert_false(exists(checkpoint));
    expect_refused(tiny_run(), QKV_ERR_ARGUMENT, "train_run.txt: is of another run: seed 8, not 7");
    qkv_ctx_free(ctx);
    clear_out();
    expect_refused(options, QKV_ERR_IO, "no run was stopped here, or it was finished");
    assert_int_not_equal(rmdir(out_path), 0); /* no folder was made */
}

/* Sound files with the right checksums that cannot be: fields, sizes, types, tensors. */
static void write_forged(const qkvi_run_fields *fields, qkvi_stored_out *tensors, int64_t n) {
    char path[300], text[QKVI_RUN_BYTES];
    qkv_error error;
    snprintf(path, sizeof path, "%s/%s", out_path, checkpoint);
    qkvi_run_fields_print(fields, text);
    if (qkvi_safetensors_write(path, tensors, n, run_key, text, &error) != QKV_OK)
        fail_msg("%s", error.message);
}

/* ---- What is there already ------------------------------------------------------------------- */

static int fail_if_reported(void *user, const qkv_train_report *report) {
    (void)user, (void)report;
    fail_msg("a report");
    return 1;
}

static void unlink_out(const char *name) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", out_path, name);
    assert_int_equal(unlink(path), 0);
}

/*
 * A run that is finished is finished when it is resumed: with no step, and nothing else in the
 * folder.
 */
static void test_finished(void **state) {
    (void)state;
    qkv_train_options options = tiny_run();
    qkv_ctx *const ctx = any_ctx();
    const result expected = whole_run(&options);
    train(ctx, &options);
    options.resume = out_path;
    options.report = fail_if_reported;
    train(ctx, &options);
    size_t n;
    char *const model = slurp("model.safetensors", &n);
    unlink_out("model.safetensors"); /* then it is not */
    expect_refused(tiny_run(), QKV_ERR_IO, "no run was stopped here, or it was finished");
    model[n - 1] ^= 1;
    char path[300];
    snprintf(path, sizeof path, "%s/model.safetensors", out_path);
    assert_int_equal(qkvi_file_save(path, model, n, NULL), QKV_OK);
    expect_refused(tiny_run(), QKV_ERR_IO, "no run was stopped here, or it was finished");
    model[n - 1] ^= 1;
    assert_int_equal(qkvi_file_save(path, model, n, NULL), QKV_OK);
    train(ctx, &options);
    free(model);
    expect_same(take_result(), &expected, "finished");
    free_result(&expected);
    qkv_ctx_free(ctx);
}

/* In place: the run replaces the model that it began from. */
static void test_finished_from_itself(void **state) {
    (void)state;
    qkv_train_options options = tiny_run();
    qkv_ctx *const ctx = any_ctx();
    train(ctx, &options);
    options.from = out_path;
    options.seed = 9;
    train(ctx, &options);
    const result first = { .model = slurp("model.safetensors", &(size_t){ 0 }) };
    size_t n;
    options.resume = out_path;
    options.report = fail_if_reported;
    train(ctx, &options);
    char *const again = slurp("model.safetensors", &n);
    assert_memory_equal(again, first.model, n);
    free(again);
    free(first.model);
    clear_out();
    qkv_ctx_free(ctx);
}

static int raise_rate(void *user, const qkv_train_report *report) {
    (void)user;
    return report->step >= 3;
}

/*
 * A run that fails, or is stopped, leaves what an older one left: the model, its log, its record.
 */
static void test_failed_run_leaves_all(void **state) {
    (void)state;
    static const char *const names[] = { "model.safetensors", "train_log.tsv", "train_run.txt",
                                         "config.json", "vocab.txt" };
    enum { N = sizeof names / sizeof *names };
    qkv_train_options options = tiny_run();
    qkv_ctx *const ctx = any_ctx();
    char *before[N];
    size_t sizes[N], n;
    qkv_error error;
    train(ctx, &options);
    for (int f = 0; f < N; f++) before[f] = slurp(names[f], &sizes[f]);
    for (int turn = 0; turn < 3; turn++) {
        qkv_train_options other = tiny_run();
        other.seed = 11;
        other.report_every = 1;
        if (turn == 0)
            other.learning_rate = 99, other.clip = 0, other.eps = 1e-300; /* not finite */
        if (turn == 1) other.report = raise_rate, other.checkpoint_every = 0;
        if (turn == 2) other.text = "/nowhere";
        const qkv_status status = qkv_train(ctx, &other, &error);
        assert_int_equal(status, turn == 0   ? QKV_ERR_ARGUMENT
                                 : turn == 1 ? QKV_ERR_CANCELLED
                                             : QKV_ERR_IO);
        for (int f = 0; f < N; f++) {
            char *const now = slurp(names[f], &n);
            assert_int_equal(n, sizes[f]);
            assert_memory_equal(now, before[f], n);
            free(now);
        }
        if (exists(checkpoint)) unlink_out(checkpoint);
    }
    for (int f = 0; f < N; f++) free(before[f]);
    clear_out();
    qkv_ctx_free(ctx);
}

/* Another run's checkpoint stays until there is one of this run. */
static void test_failed_run_leaves_checkpoint(void **state) {
    (void)state;
    qkv_train_options options = tiny_run();
    qkv_ctx *const ctx = any_ctx();
    qkv_error error;
    const result expected = whole_run(&options);
    stop_after_one_step();
    options.seed = 8;
    options.learning_rate = 99, options.clip = 0, options.eps = 1e-300;
    assert_int_equal(qkv_train(ctx, &options, &error), QKV_ERR_ARGUMENT);
    if (run_on(tiny_run(), &error) != QKV_OK) fail_msg("%s", error.message);
    expect_same(take_result(), &expected, "after another run failed");
    free_result(&expected);
    qkv_ctx_free(ctx);
}

/* A checkpoint of before has no log; its lines were in the folder. */
static void test_checkpoint_of_before(void **state) {
    (void)state;
    qkv_train_options options = tiny_run();
    const int raised = 1;
    char path[300];
    qkvi_safetensors *file;
    qkvi_run_fields run;
    qkv_error error;
    const result expected = whole_run(&options);
    options.cancel = &raised;
    for (int step = 1; step <= 5; step++) /* one report is in the log */
        assert_int_equal(run_on(options, &error), QKV_ERR_CANCELLED);
    snprintf(path, sizeof path, "%s/%s", out_path, checkpoint);
    if (qkvi_safetensors_open(path, &file, &error)) fail_msg("%s", error.message);
    const char *const text = json_string_value(json_object_get(file->metadata, run_key));
    assert_int_equal(qkvi_run_fields_parse("x", text, &run, &error), QKV_OK);
    const int64_t n = (int64_t)qkvi_safetensors_find(file, "weights")->n_elems;
    qkvi_stored_out tensors[] = { { "adam.m", QKVI_F32, 1, { n }, NULL },
                                  { "adam.v", QKVI_F32, 1, { n }, NULL },
                                  { "weights", QKVI_F32, 1, { n }, NULL } };
    float *arenas[3];
    for (int t = 0; t < 3; t++) {
        tensors[t].data = arenas[t] = malloc((size_t)n * sizeof(float));
        assert_int_equal(qkvi_safetensors_read_raw(
                             file, qkvi_safetensors_find(file, tensors[t].name), arenas[t], NULL),
                         QKV_OK);
    }
    qkvi_safetensors_close(file);
    run.bits[QKVI_RUN_LOG] = 0;
    write_forged(&run, tensors, 3);
    for (int t = 0; t < 3; t++) free(arenas[t]);
    snprintf(path, sizeof path, "%s/train_log.tsv", out_path);
    assert_int_equal(qkvi_file_save(path, expected.log, expected.n_log, NULL), QKV_OK);
    if (run_on(tiny_run(), &error) != QKV_OK) fail_msg("%s", error.message);
    expect_same(take_result(), &expected, "from a checkpoint of before");
    free_result(&expected);
}

/* ---- Hostile files --------------------------------------------------------------------------- */

static void put_checkpoint(const char *bytes, size_t n) {
    char path[300];
    qkv_error error;
    snprintf(path, sizeof path, "%s/%s", out_path, checkpoint);
    if (qkvi_file_save(path, bytes, n, &error) != QKV_OK) fail_msg("%s", error.message);
}

/* Refused, or the same checkpoint. Returns 1 if it was refused. */
static int survives(qkv_ctx *ctx, const char *bytes, size_t n, const result *expected) {
    qkv_train_options options = tiny_run();
    qkv_error error = { QKV_OK, "" };
    options.resume = out_path;
    put_checkpoint(bytes, n);
    const qkv_status status = qkv_train(ctx, &options, &error);
    if (status == QKV_OK) {
        expect_same(take_result(), expected, "a changed checkpoint");
        mkdir(out_path, 0777);
        return 0;
    }
    assert_true(status == QKV_ERR_FORMAT || status == QKV_ERR_ARGUMENT ||
                status == QKV_ERR_UNSUPPORTED || status == QKV_ERR_LIMIT);
    assert_non_null(strstr(error.message, checkpoint));
    assert_false(exists("model.safetensors"));
    return 1;
}

static size_t header_bytes(const char *file) {
    size_t n = 0;
    for (int b = 7; b >= 0; b--) n = n << 8 | (unsigned char)file[b];
    return 8 + n;
}

static void test_damaged(void **state) {
    (void)state;
    const qkv_train_options options = tiny_run();
    const result expected = whole_run(&options);
    qkv_ctx *const ctx = make_ctx(NULL, 1);
    size_t n;
    stop_after_one_step();
    char *const file = slurp(checkpoint, &n);
    const size_t n_header = header_bytes(file);
    int n_accepted = 0;
    assert_true(n_header < 2048);
    for (size_t i = 0; i < n_header + 200; i++) {
        const size_t at = i < n_header ? i : n_header + below((uint32_t)(n - n_header));
        const char flip = (char)(1 << below(8));
        file[at] ^= flip;
        const int refused = survives(ctx, file, n, &expected);
        if (!refused && at >= n_header) fail_msg("byte %zu was changed unseen", at);
        n_accepted += !refused;
        file[at] ^= flip;
    }
    assert_true(n_accepted < 16); /* white space in the header, at most */
    for (int i = 0; i < 60; i++)
        assert_true(survives(ctx, file, i < 20 ? (size_t)i : below((uint32_t)n), &expected));
    assert_false(survives(ctx, file, n, &expected));
    free(file);
    free_result(&expected);
    qkv_ctx_free(ctx);
    clear_out();
}

/* A file to forge: the line of a sound one, and tensors of zeros. */
typedef struct forgery {
    qkvi_run_fields fields;
    qkvi_stored_out tensors[4];
    int64_t n_tensors;
} forgery;

static forgery forge(const qkvi_run_fields *whole, int64_t n, float *zeros) {
    return (forgery){ .fields = *whole,
                      .tensors = { { "adam.m", QKVI_F32, 1, { n }, zeros },
                                   { "adam.v", QKVI_F32, 1, { n }, zeros },
                                   { "weights", QKVI_F32, 1, { n }, zeros },
                                   { "z", QKVI_F32, 1, { 1 }, zeros } },
                      .n_tensors = 3 };
}

static void expect_forgery_refused(forgery *f, const char *says) {
    write_forged(&f->fields, f->tensors, f->n_tensors);
    expect_refused(tiny_run(), QKV_ERR_FORMAT, says);
}

#define FORGED(change, says)                                                                       \
    do {                                                                                           \
        f = forge(&whole, n, zeros);                                                               \
        change;                                                                                    \
        expect_forgery_refused(&f, says);                                                          \
    } while (0)

static void test_forged(void **state) {
    (void)state;
    char path[300];
    qkvi_safetensors *file;
    qkvi_run_fields whole;
    qkv_error error;
    stop_after_one_step();
    snprintf(path, sizeof path, "%s/%s", out_path, checkpoint);
    if (qkvi_safetensors_open(path, &file, &error) != QKV_OK) fail_msg("%s", error.message);
    const char *const text = json_string_value(json_object_get(file->metadata, run_key));
    assert_int_equal(qkvi_run_fields_parse("x", text, &whole, &error), QKV_OK);
    const int64_t n = (int64_t)file->tensors[0].n_elems;
    qkvi_safetensors_close(file);
    float *const zeros = calloc((size_t)n, sizeof *zeros);
    forgery f;
    assert_non_null(zeros);
    const uint64_t hash = qkvi_hash(QKVI_HASH_START, zeros, (size_t)n * sizeof *zeros);
    whole.bits[QKVI_RUN_WEIGHTS] = whole.bits[QKVI_RUN_M] = whole.bits[QKVI_RUN_V] = hash;
    FORGED(f.fields.bits[QKVI_RUN_STEP] = 10, "step 10 of 9 cannot be");
    FORGED(f.fields.bits[QKVI_RUN_STEP] = UINT64_MAX, "cannot be");
    FORGED(f.fields.bits[QKVI_RUN_SUM_STEPS] = 2, "step 1 of 9 cannot be");
    FORGED(f.fields.bits[QKVI_RUN_SUM_TOKENS] = UINT64_MAX, "cannot be");
    FORGED(f.fields.bits[QKVI_RUN_V]++, "the checksum of 'adam.v' is another");
    FORGED(f.tensors[2].shape[0] = n - 1, "no tensor 'weights' of");
    FORGED(f.tensors[0].type = QKVI_I32, "no tensor 'adam.m' of");
    FORGED(f.tensors[1].name = "adam.w", "no tensor 'adam.v' of");
    FORGED(f.n_tensors = 4, "no tensor 'log' of bytes");
    FORGED(f.n_tensors = 4; f.tensors[3].name = "log", "no tensor 'log' of bytes");
    FORGED(f.n_tensors = 2, "is not a checkpoint");
    free(zeros);
    clear_out();
}

/* Neither a checkpoint nor a file. */
static void test_no_file(void **state) {
    (void)state;
    char path[300];
    snprintf(path, sizeof path, "%s/%s", out_path, checkpoint);
    mkdir(out_path, 0777);
    assert_int_equal(mkdir(path, 0777), 0);
    expect_refused(tiny_run(), QKV_ERR_IO, checkpoint);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0666), 0);
    expect_refused(tiny_run(), QKV_ERR_IO, checkpoint);
    assert_int_equal(unlink(path), 0);
    put_checkpoint("", 0);
    expect_refused(tiny_run(), QKV_ERR_FORMAT, checkpoint);
    clear_out();
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_at_a_time),
        cmocka_unit_test(test_random_stops),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_other_options),
        cmocka_unit_test(test_free_options),
        cmocka_unit_test(test_begin_anew),
        cmocka_unit_test(test_another_folder),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_finished),
        cmocka_unit_test(test_finished_from_itself),
        cmocka_unit_test(test_failed_run_leaves_all),
        cmocka_unit_test(test_failed_run_leaves_checkpoint),
        cmocka_unit_test(test_checkpoint_of_before),
    };
    draws = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)draws);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
