/*
 * Recognises chat templates: see chat.h. The expressions of a table are searched for in the
 * canonical spelling of a template (chat_spell.c).
 *
 * A template writes all white space outside of tags, except what trim_blocks and lstrip_blocks of
 * Jinja, which transformers sets, remove: a newline after a block, and blanks before it.
 */
#include "text/chat.h"

#include "files/base.h"

/* ---- The table ------------------------------------------------------------------------------- */

/* Tokens of the marks of ChatML, and so on. */
#define IM_END   "<|im_end|>"
#define EOT      "<|eot_id|>"
#define TURN_END "<end_of_turn>"
#define PHI_END  "<|end|>"

static const qkvi_chat_kind kinds[] = {
    { .name = "chatml",
      .before = "<|im_start|>user\n",
      .behind = IM_END "\n<|im_start|>assistant\n",
      .system_before = "<|im_start|>system\n",
      .system_behind = IM_END "\n",
      .end = IM_END },
    { .name = "gemma",
      .before = "<start_of_turn>user\n",
      .behind = TURN_END "\n<start_of_turn>model\n",
      .end = TURN_END,
      .has_bos = true,
      .trims = true },
    { .name = "llama2", .before = "[INST] ", .behind = " [/INST]", .has_bos = true, .trims = true },
    { .name = "llama3",
      .before = "<|start_header_id|>user<|end_header_id|>\n\n",
      .behind = EOT "<|start_header_id|>assistant<|end_header_id|>\n\n",
      .system_before = "<|start_header_id|>system<|end_header_id|>\n\n",
      .system_behind = EOT,
      .end = EOT,
      .has_bos = true,
      .trims = true },
    { .name = "mistral", .before = "[INST] ", .behind = " [/INST]", .has_bos = true },
    { .name = "mistral-v1", .before = " [INST] ", .behind = " [/INST]", .has_bos = true },
    { .name = "mistral-v3", .before = "[INST] ", .behind = "[/INST]", .has_bos = true },
    { .name = "mistral-tekken", .before = "[INST]", .behind = "[/INST]", .has_bos = true },
    { .name = "phi3",
      .before = "<|user|>\n",
      .behind = PHI_END "\n<|assistant|>\n",
      .system_before = "<|system|>\n",
      .system_behind = PHI_END "\n",
      .end = PHI_END },
    { .name = "zephyr",
      .before = "<|user|>\n",
      .behind = "<|assistant|>\n",
      .system_before = "<|system|>\n",
      .ends_in_eos = true },
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

const char qkvi_chat_names[] =
    "chatml, gemma, llama2, llama3, mistral, mistral-v1, mistral-v3, mistral-tekken, phi3, zephyr";

const qkvi_chat_kind *qkvi_chat_kind_of(const char *name) {
    for (int k = 0; k < N_KINDS; k++)
        if (strcmp(kinds[k].name, name) == 0) return &kinds[k];
    return NULL;
}

/* ---- Text outside of tags -------------------------------------------------------------------- */

/* Where a literal ends that goes on here; NULL: nowhere. */
static const char *literal_end(const char *at) {
    for (; *at && *at != '\''; at++)
        if (*at == '\\' && at[1]) at++;
    return *at ? at : NULL;
}

/* Behind the tag that begins here, whose literals may have its end in them. */
static const char *tag_end(const char *at) {
    const char end = at[1] == '{' ? '}' : '%';
    for (at += 2; *at && !(*at == end && at[1] == '}'); at++) {
        if (*at != '\'') continue;
        const char *const closing = literal_end(at + 1);
        if (!closing) return at + strlen(at);
        at = closing;
    }
    return *at ? at + 2 : at;
}

static bool is_tag(const char *at) { return at[0] == '{' && (at[1] == '{' || at[1] == '%'); }

/*
 * What Jinja writes of the blanks [from, end) between two tags, or the ends of the template: *from
 * … *end.
 */
static void cut_blanks(const char *text, const char **from, const char **end) {
    const bool behind_tag = *from > text, is_last = **end == '\0';
    const bool cut_left = behind_tag && *from - text >= 3 && (*from)[-3] == '-';
    if (cut_left || (!is_last && (*end)[2] == '-')) *end = *from;
    if (is_last && *end > *from && (*end)[-1] == '\n') (*end)--;
    if (behind_tag && *end > *from && (*from)[-2] == '%' && **from == '\n') (*from)++;
    if (is_last || (*end)[1] != '%') return;
    const char *at = *end;
    while (at > *from && (at[-1] == ' ' || at[-1] == '\t')) at--;
    if (at == text || at[-1] == '\n') *end = at;
}

/*
 * Whether nothing outside of tags is written. Zephyr's templates have a newline behind each of
 * their expressions, which is.
 */
static bool is_clean(const char *text, bool has_newlines) {
    const char *at = text;
    while (*at) {
        const char *from = at, *end = at;
        while (*end && !is_tag(end)) end++;
        const char *const next = end;
        for (const char *c = from; c < end; c++)
            if (!qkvi_chat_is_white(*c)) return false;
        cut_blanks(text, &from, &end);
        const bool is_behind = from > text && from[-1] == '}' && from[-2] == '}';
        if (end > from && !(has_newlines && is_behind && end - from == 1 && *from == '\n'))
            return false;
        at = *next ? tag_end(next) : next;
    }
    return true;
}

/* ---- Recognising ----------------------------------------------------------------------------- */

/* "'" LITERAL "'" and so on: one expression that writes a turn of the user. */
static const struct pattern {
    const char *kind;
    const char *turn;   /* in the one spelling */
    const char *answer; /* the literal before the answer; NULL: the turn has it */
    bool in_two;        /* a second expression writes the text, and a third its end */
} patterns[] = {
    { "chatml", "'<|im_start|>'+message['role']+'\\n'+message['content']+'<|im_end|>\\n'",
      "<|im_start|>assistant\\n", false },
    { "chatml", "'<|im_start|>'+message['role']+'\\n'+content+'<|im_end|>\\n'",
      "<|im_start|>assistant\\n", false },
    { "chatml", "'<|im_start|>user\\n'+message['content']+'<|im_end|>\\n'",
      "<|im_start|>assistant\\n", false },
    { "gemma", "'<start_of_turn>'+role+'\\n'+message['content']|trim+'<end_of_turn>\\n'",
      "<start_of_turn>model\\n", false },
    { "gemma", "'<start_of_turn>'+role+'\\n'+(first_user_prefixifloop.firstelse'')",
      "<start_of_turn>model\\n", true },
    { "llama3",
      "'<|start_header_id|>'+message['role']+'<|end_header_id|>\\n\\n'+message['content']|trim+"
      "'<|eot_id|>'",
      "<|start_header_id|>assistant<|end_header_id|>\\n\\n", false },
    { "phi3", "'<|user|>\\n'+message['content']+'<|end|>\\n<|assistant|>\\n'", NULL, false },
    { "phi3", "'<|user|>\\n'+message['content']+'<|end|>\\n'", "<|assistant|>\\n", false },
    { "zephyr", "'<|user|>\\n'+message['content']+eos_token", "<|assistant|>", false },
    { "llama2", "bos_token+'[INST] '+content.strip()+' [/INST]'", NULL, false },
    { "llama2", "'[INST] '+content.strip()+' [/INST]'", NULL, false },
    { "mistral", "'[INST] '+message['content']+' [/INST]'", NULL, false },
    { "mistral-v1", "' [INST] '+message['content']+' [/INST]'", NULL, false },
    { "mistral-v3", "'[INST] '+message['content']+'[/INST]'", NULL, false },
    { "mistral-tekken", "'[INST]'+message['content']+'[/INST]'", NULL, false },
};

/* "}}" follows, of Zephyr with a newline that is written. */
static bool ends_here(const char *at, bool has_newline) {
    if (has_newline) return strncmp(at, "}}\n", 3) == 0;
    if (*at == '-') at++;
    return strncmp(at, "}}", 2) == 0;
}

/* "{{" stands before. */
static bool begins_here(const char *text, const char *at) {
    if (at - text >= 3 && at[-1] == '-') at--;
    return at - text >= 2 && at[-1] == '{' && at[-2] == '{';
}

/* Whether the expression is all of a tag that writes it, or of one that gives it a name. */
static bool is_whole(const char *text, const char *at, size_t n, bool has_newline) {
    if (begins_here(text, at)) return ends_here(at + n, has_newline);
    return at > text && at[-1] == '=' &&
           (strncmp(at + n, "%}", 2) == 0 || strncmp(at + n, "-%}", 3) == 0);
}

/* Gemma 3: the text of a turn, and its end, are expressions of their own. */
static bool has_others(const char *text) {
    static const char *const others[] = { "message['content']|trim", "'<end_of_turn>\\n'" };
    for (int o = 0; o < 2; o++) {
        const char *const at = strstr(text, others[o]);
        if (!at || !begins_here(text, at) || !ends_here(at + strlen(others[o]), false))
            return false;
    }
    return true;
}

/* Whether the answer begins in that way: behind add_generation_prompt, if the template asks it. */
static bool begins_answer(const char *text, const struct pattern *p, const char **opening) {
    static const char asked[] = "add_generation_prompt";
    const bool has_newline = strcmp(p->kind, "zephyr") == 0;
    const char *at = strstr(text, asked), *next;
    *opening = "";
    if (!p->answer) return true;
    while (at && (next = strstr(at + 1, asked))) at = next;
    at = strstr(at ? at : text, at ? "{{" : p->answer);
    if (!at) return false;
    if (*at == '{') at += at[2] == '-' ? 3 : 2;
    if (*at != '\'') at--;
    if (*at != '\'' || strncmp(at + 1, p->answer, strlen(p->answer)) != 0) return false;
    at += 1 + strlen(p->answer);
    if (strncmp(at, "<think>\\n", 9) == 0) {
        *opening = "<think>\n";
        at += 9;
    }
    return *at == '\'' && ends_here(at + 1, has_newline);
}

/* ---- What a template says by itself ---------------------------------------------------------- */

/* The text of a literal, n bytes: "\n" is a newline, and other escapes are not expected. */
static char *unescape(const char *from, size_t n) {
    char *const text = malloc(n + 1);
    size_t to = 0;
    for (size_t i = 0; text && i < n; i++) {
        char c = from[i];
        if (c == '\\' && i + 1 < n) c = from[++i] == 'n' ? '\n' : from[i];
        text[to++] = c;
    }
    if (text) text[to] = '\0';
    return text;
}

/* A text in quotes as the one spelling has it: newlines are escaped. */
static void escape(const char *from, char *to, size_t room) {
    size_t n = 0;
    for (; *from && n + 3 < room; from++) {
        if (*from == '\n') to[n++] = '\\';
        to[n++] = *from == '\n' ? 'n' : *from;
    }
    to[n] = '\0';
}

/*
 * Llama 3.1 and later say two dates. A template that asks a clock has one for where there is none:
 * that is taken, as the same input is to give the same text.
 */
static qkv_status take_dates(const char *text, qkvi_chat *chat, bool *is_known) {
    static const char cut[] = "Cutting Knowledge Date: December 2023", date[] = "setdate_string='";
    char line[160];
    const char *const at = strstr(text, date), *const first = at ? at + sizeof date - 1 : NULL;
    const char *const end = first ? literal_end(first) : NULL;
    *is_known = strstr(text, cut) && strstr(text, "'Today Date: '+date_string+'\\n\\n'") && end &&
                end - first < 48;
    if (!*is_known) return QKV_OK;
    snprintf(line, sizeof line, "%s\nToday Date: %.*s\n\n", cut, (int)(end - first), first);
    chat->system = strdup(line);
    return chat->system ? QKV_OK : QKV_ERR_MEMORY;
}

/* A turn of the system that stands in the template as one literal. */
static qkv_status take_system(const char *text, qkvi_chat *chat, bool *is_known) {
    char before[80], behind[32];
    const bool is_llama3 = strcmp(chat->kind->name, "llama3") == 0;
    *is_known = false;
    if (strstr(text, "strftime_now") && !is_llama3) return QKV_OK;
    for (const char *at = text; (at = strstr(at, "system_message='")); at++)
        if (at[16] != '\'') return QKV_OK; /* said under conditions */
    *is_known = true;
    if (!chat->kind->system_before) return QKV_OK;
    before[0] = '\'';
    escape(chat->kind->system_before, before + 1, sizeof before - 1);
    escape(chat->kind->system_behind ? chat->kind->system_behind : "", behind, sizeof behind);
    const size_t n_before = strlen(before), n_behind = strlen(behind);
    for (const char *at = text; (at = strstr(at, before)); at++) {
        const char *const first = at + n_before, *const end = literal_end(first);
        if (is_llama3) return take_dates(text, chat, is_known);
        if (end == first) continue; /* what the caller says */
        *is_known = end && n_behind > 0 && (size_t)(end - first) > n_behind && !chat->system &&
                    memcmp(end - n_behind, behind, n_behind) == 0;
        if (!*is_known) return QKV_OK;
        chat->system = unescape(first, (size_t)(end - first) - n_behind);
        if (!chat->system) return QKV_ERR_MEMORY;
    }
    return QKV_OK;
}

static qkv_status recognise(const char *text, qkvi_chat *chat) {
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
        const struct pattern *const pattern = &patterns[p];
        const char *const at = strstr(text, pattern->turn);
        bool is_known = false;
        if (!at) continue;
        chat->kind = qkvi_chat_kind_of(pattern->kind);
        chat->has_bos = strstr(text, "bos_token") != NULL;
        is_known = is_clean(text, chat->kind->ends_in_eos) &&
                   is_whole(text, at, strlen(pattern->turn), chat->kind->ends_in_eos) &&
                   (!pattern->in_two || has_others(text)) &&
                   begins_answer(text, pattern, &chat->opening);
        if (is_known) QKV_TRY(take_system(text, chat, &is_known));
        if (!is_known) chat->kind = NULL;
        return QKV_OK;
    }
    return QKV_OK;
}

/* ---- Whole ----------------------------------------------------------------------------------- */

static qkv_status keep(const char *name, char **kept) {
    *kept = name ? strdup(name) : NULL;
    return name && !*kept ? QKV_ERR_MEMORY : QKV_OK;
}

static qkv_status read_template(const char *template, size_t n, qkvi_chat *chat) {
    enum { SHOWN = 60 };
    char *text;
    chat->is_there = true;
    QKV_TRY(qkvi_chat_spell(template, n, &text));
    const qkv_status status = memchr(template, '\0', n) ? QKV_OK : recognise(text, chat);
    free(text);
    if (status != QKV_OK || chat->kind) return status;
    return keep(QKVI_PRINTABLE_BYTES(4 * SHOWN, template, n < SHOWN ? n : SHOWN), &chat->begin);
}

qkv_status qkvi_chat_read(const char *template, size_t n, const char *bos, const char *eos,
                          qkvi_chat *chat) {
    *chat = (qkvi_chat){ .opening = "" };
    qkv_status status = template ? read_template(template, n, chat) : QKV_OK;
    if (status == QKV_OK) status = keep(bos, &chat->bos);
    if (status == QKV_OK) status = keep(eos, &chat->eos);
    if (status != QKV_OK) qkvi_chat_free(chat);
    return status;
}

void qkvi_chat_free(qkvi_chat *chat) {
    free(chat->begin);
    free(chat->bos);
    free(chat->eos);
    free(chat->system);
    *chat = (qkvi_chat){ 0 };
}
