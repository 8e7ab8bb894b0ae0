/*
 * qkv in a browser: the calls that a page makes. One model is open; a text, or an image, becomes
 * the answers of `qkv look`, made by the code of `qkv look`. A module of WASI without main, for one
 * thread.
 *
 * A call leaves its answer in live_answer, of live_bytes bytes, until the next call: JSON, a page,
 * or, where it returned -1, the reason. A text, or a name, of n bytes of UTF-8 is written to
 * live_room(n) first. engine.mjs is the other side.
 */
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/json.h"
#include "live/engine.h"
#include "look/job.h"

/* What cli/look/cmd_look.c has, without a command line. */
static const struct cli_command look_command = {
    .name = "look",
    .takes = TAKES_TEXTS | TAKES_HEAD | TAKES_IMAGES,
};

static struct look_options options; /* service keeps its address */
static struct look_service *service;
static char *name;       /* of the model */
static struct text room; /* what the caller wrote */
static char *answer;     /* from malloc; NULL: the message of error */
static size_t answer_bytes;
static qkv_error error;
static json_t *seen; /* of live_both, until live_seen; NULL */

/* ---- Answers --------------------------------------------------------------------------------- */

static void forget(void) {
    free(answer);
    answer = NULL;
    answer_bytes = 0;
}

static int failed(const char *message) {
    forget();
    if (message != error.message) snprintf(error.message, sizeof error.message, "%s", message);
    return -1;
}

/* Takes the reference. */
static int answer_json(json_t *object) {
    forget();
    FILE *const out = open_memstream(&answer, &answer_bytes);
    const bool written = out && object && json_put(out, object);
    json_decref(object);
    if (out && fclose(out) == 0 && written) return 0;
    return failed("out of memory");
}

const char *live_answer(void) { return answer ? answer : error.message; }
size_t live_bytes(void) { return answer ? answer_bytes : strlen(error.message); }

/* Room for n bytes; 0: no memory. What it had before is gone. */
char *live_room(size_t n) {
    free(room.bytes);
    room = (struct text){ malloc(n + 1), n };
    if (room.bytes) room.bytes[n] = '\0';
    return room.bytes;
}

/* ---- The model ------------------------------------------------------------------------------- */

static json_t *about(const struct session *session) {
    const qkv_model_info *const info = session->info;
    return json_pack("{s:o,s:s,s:I,s:s,s:o,s:b,s:b}", "source", json_text(info->source),
                     "architecture", info->architecture, "most", (json_int_t)info->max_len, "isa",
                     qkv_ctx_isa(session->ctx), "mask", live_mask(service), "texts",
                     session->tokenizer != NULL, "images",
                     qkv_model_images(session->model) != NULL);
}

/*
 * Closes the model that is open, and opens the one whose folder or file was written, or, of an
 * empty name, the one whose files live_file has.
 */
int live_open(void) {
    look_service_close(service);
    service = NULL;
    cli_keeps = true; /* of messages the first is the reason */
    *cli_kept = '\0';
    free(name);
    name = room.bytes ? strdup(room.bytes) : NULL;
    options = (struct look_options){ .common = { .quiet = true, .model = name } };
    if (look_service_open(&service, &look_command, &options, true) == EXIT_OK)
        return answer_json(about(look_service_session(service)));
    look_service_close(service);
    service = NULL;
    static const char prefix[] = "qkv: ";
    const size_t n = sizeof prefix - 1;
    return failed(cli_kept + (strncmp(cli_kept, prefix, n) == 0 ? n : 0));
}

/* ---- Texts and images ------------------------------------------------------------------------ */

static bool is_open(void) { return service && room.bytes; }

/* How many tokens the text is, and its words: live_words_json. */
int live_words(void) {
    if (!is_open()) return failed("no model is open");
    json_t *object = NULL;
    if (live_words_json(service, &room, &object, &error) != QKV_OK) return failed(error.message);
    return answer_json(object);
}

/* What was written is a text, or the path of an image. */
static struct look_input written(int image) {
    return image ? (struct look_input){ .image = room.bytes }
                 : (struct look_input){ .text = &room };
}

/* What `qkv look TEXT --json` prints. */
int live_look(int image) {
    if (!is_open()) return failed("no model is open");
    json_t *object = NULL;
    if (look_service_json(service, written(image), &object, &error) != QKV_OK)
        return failed(error.message);
    return answer_json(object);
}

static int page_of(int image, int maps, json_t **object) {
    if (!is_open()) return failed("no model is open");
    qkv_text *page = NULL;
    forget();
    if (look_service_page(service, written(image), maps, &page, object, &error) != QKV_OK)
        return failed(error.message);
    answer = page->bytes;
    answer_bytes = (size_t)page->n;
    page->bytes = NULL;
    qkv_text_free(page);
    return 0;
}

/* The file of `qkv look TEXT -o FILE.html`; without maps it is there sooner. */
int live_page(int image, int maps) { return page_of(image, maps, NULL); }

/* Both, of one pass through the model: the page without maps here, the object by live_seen next. */
int live_both(int image) {
    json_decref(seen);
    seen = NULL;
    return page_of(image, 0, &seen);
}
int live_seen(void) {
    json_t *const object = seen;
    if (!object) return failed("no page was made");
    seen = NULL;
    return answer_json(object);
}
