/* The GLM-4.7 way of writing an answer:
 *
 *   <think>reasoning</think>text<tool_call>name<arg_key>k</arg_key><arg_value>v</arg_value>...
 *   </tool_call>text...
 *
 * Text and markers flow in; reasoning, content and calls with typed JSON arguments flow out. Where
 * models stray from the form:
 *   - <think> in content opens reasoning again; inside reasoning it vanishes, as </think> in
 *     content does
 *   - a call ends reasoning without </think>
 *   - <tool_call> begins a call only once a name that is declared (without declarations: any single
 *     word) is complete, by <arg_key> or </tool_call>. As soon as it can no longer become one, what
 *     was read is given back as text of the state it came from
 *   - </tool_call> ends a call anywhere, also inside a value: of a string what arrived is kept, of
 *     another type nothing
 *   - of a repeated key the first value counts, since a stream has already sent it */
#include <string.h>

#include "base/jsonw.h"
#include "chat/coerce.h"
#include "chat/parse.h"

enum { THINK, END_THINK, CALL, END_CALL, KEY, END_KEY, VALUE, END_VALUE, N_MARKER };

#define BIT(m)        (1u << (m))
#define THINK_MARKERS (BIT(THINK) | BIT(END_THINK))
#define CALL_MARKERS \
    (BIT(CALL) | BIT(END_CALL) | BIT(KEY) | BIT(END_KEY) | BIT(VALUE) | BIT(END_VALUE))

static const struct marker markers[N_MARKER] = {
    [THINK] = {"<think>", false, COUNT_BEGINS},
    [END_THINK] = {"</think>", false, COUNT_ENDS},
    [CALL] = {"<tool_call>", false, COUNT_MAY_END},
    [END_CALL] = {"</tool_call>", false, COUNT_NOTHING},
    [KEY] = {"<arg_key>", true, COUNT_NOTHING},
    [END_KEY] = {"</arg_key>", true, COUNT_NOTHING},
    [VALUE] = {"<arg_value>", true, COUNT_NOTHING},
    [END_VALUE] = {"</arg_value>", true, COUNT_NOTHING},
};

/* Beyond this many bytes between <tool_call> and <arg_key> it is no name. */
enum { NAME_MAX_BYTES = 512 };

enum place {
    IN_CONTENT,
    IN_REASONING,
    IN_NAME,
    IN_CALL, /* between pairs; text is dropped */
    IN_KEY,
    AFTER_KEY, /* text is dropped */
    IN_VALUE
};

struct glm47 {
    enum place place;
    enum place origin;         /* IN_NAME: what the call interrupts, IN_CONTENT or IN_REASONING */
    bool may_imply;            /* a </think> now would show that all before it was reasoning */
    struct json_object *tools; /* referenced, or NULL: any name is a call */
    struct json_object *function; /* declaration of the call in progress, or NULL */
    struct buf name;              /* IN_NAME: text since <tool_call> */
    struct buf key, value;
    struct buf seen; /* keys of this call as JSON strings, "\n" before, between and after them */
    size_t n_pair;
    struct json_object *schema; /* of the value in progress, or NULL */
    bool streamed;              /* it is a string, written as it arrives */
    bool ignored;               /* its key came before */
    struct buf scratch;
};

/* Where thinking stands at the end of the prompt. Only the current turn counts. */
enum opening { NEVER_OPENED, OPENED, CLOSED };

static const char *const roles[] = {"<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"};

static int32_t added_id(const struct tokenizer *t, const char *text) {
    int32_t id = tokenizer_find(t, text, strlen(text));
    return id >= 0 && tokenizer_is_added(t, id) ? id : -1;
}

static bool is_role(const struct tokenizer *t, int32_t id) {
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (added_id(t, roles[i]) == id) return true;
    return false;
}

static enum opening opening_by_id(const struct tokenizer *t, const int32_t *prompt, size_t n) {
    int32_t think = added_id(t, markers[THINK].text), end = added_id(t, markers[END_THINK].text);
    int32_t call = added_id(t, markers[CALL].text);
    while (n--) {
        if (prompt[n] == think) return OPENED;
        if (prompt[n] == end || (call >= 0 && prompt[n] == call)) return CLOSED;
        if (tokenizer_is_added(t, prompt[n]) && is_role(t, prompt[n])) break;
    }
    return NEVER_OPENED;
}

static bool ends_with(const char *s, size_t n, const char *end) {
    size_t len = strlen(end);
    return n >= len && !memcmp(s + n - len, end, len);
}

/* Without tokens of their own the tags could be anybody's text: only the very end is trusted. */
static sumi_status opening_by_text(const struct tokenizer *t, const int32_t *prompt, size_t n,
                                   enum opening *out, sumi_error *err) {
    size_t tail = n < 16 ? n : 16;
    struct buf text = {0};
    tokenizer_decode(t, prompt + n - tail, tail, false, &text);
    if (text.failed) return NO_MEMORY(err, tail);
    const char *s = buf_text(&text);
    size_t len = text.len;
    while (len && chat_is_space(s[len - 1])) len--;
    *out = ends_with(s, len, markers[END_THINK].text) ? CLOSED
           : ends_with(s, len, markers[THINK].text)   ? OPENED
                                                      : NEVER_OPENED;
    buf_reset(&text);
    return SUMI_OK;
}

/* Starts in reasoning when the prompt leaves it open, else in content. Where the template arguments
 * turn thinking off and the prompt agrees, both tags are ordinary text. */
static sumi_status glm_open(void *state, const struct tokenizer *t, const struct answer_options *o,
                            uint32_t *enabled, sumi_error *err) {
    struct glm47 *g = state;
    enum opening opening = NEVER_OPENED;
    if (o->tool_list && json_is(o->tool_list, json_type_array) &&
        json_object_array_length(o->tool_list))
        g->tools = json_object_get(o->tool_list);
    if (o->reasoning && o->n_prompt) {
        bool ids =
            added_id(t, markers[THINK].text) >= 0 && added_id(t, markers[END_THINK].text) >= 0;
        if (ids) opening = opening_by_id(t, o->prompt, o->n_prompt);
        else TRY(opening_by_text(t, o->prompt, o->n_prompt, &opening, err));
    }
    g->place = opening == OPENED ? IN_REASONING : IN_CONTENT;
    g->may_imply = opening == NEVER_OPENED;
    *enabled = o->reasoning && (o->thinking || opening == OPENED) ? THINK_MARKERS : 0;
    if (o->tools) *enabled |= CALL_MARKERS;
    return SUMI_OK;
}

static void glm_close(void *state) {
    struct glm47 *g = state;
    json_object_put(g->tools);
    buf_reset(&g->name);
    buf_reset(&g->key);
    buf_reset(&g->value);
    buf_reset(&g->seen);
    buf_reset(&g->scratch);
}

static uint32_t glm_expects(const void *state) {
    switch (((const struct glm47 *)state)->place) {
    case IN_CONTENT:
    case IN_REASONING: return THINK_MARKERS | BIT(CALL);
    case IN_NAME: return THINK_MARKERS | BIT(CALL) | BIT(KEY) | BIT(END_CALL);
    case IN_CALL: return BIT(KEY) | BIT(END_CALL) | BIT(CALL);
    case IN_KEY: return BIT(END_KEY) | BIT(END_CALL);
    case AFTER_KEY: return BIT(VALUE) | BIT(KEY) | BIT(END_CALL) | BIT(CALL);
    case IN_VALUE: return BIT(END_VALUE) | BIT(END_CALL);
    }
    return 0;
}

static bool glm_in_reasoning(const void *state) {
    return ((const struct glm47 *)state)->place == IN_REASONING;
}

static void keep(struct buf *b, struct collect *out, const char *s, size_t n) {
    buf_put(b, s, n);
    if (b->failed) out->failed = true;
}

/* Text of a place where all text is shown. */
static void put_text(enum place place, struct collect *out, const char *s, size_t n) {
    if (place == IN_REASONING) collect_reasoning(out, s, n);
    else collect_content(out, s, n);
}

/* ---- the name ---- */

static void begin_name(struct glm47 *g) {
    g->origin = g->place == IN_REASONING ? IN_REASONING : IN_CONTENT;
    g->place = IN_NAME;
    buf_clear(&g->name);
}

static const char *name_so_far(struct glm47 *g, size_t *n) {
    const char *s = buf_text(&g->name);
    *n = g->name.len;
    chat_strip(&s, n);
    return s;
}

static bool name_is_complete(struct glm47 *g) {
    size_t n;
    const char *s = name_so_far(g, &n);
    return g->tools ? tool_find(g->tools, s, n) != NULL : n > 0;
}

/* Whether more text may still make a name of it. */
static bool name_is_possible(struct glm47 *g) {
    size_t n;
    const char *s = name_so_far(g, &n), *end = buf_text(&g->name) + g->name.len;
    if (g->name.len > NAME_MAX_BYTES) return false;
    if (!n) return true;
    if (g->tools)
        return tool_find(g->tools, s, n) || tool_name_begins(g->tools, s, (size_t)(end - s));
    for (size_t i = 0; i < n; i++)
        if (chat_is_space(s[i])) return false;
    return true;
}

/* It was no call: the marker and n bytes after it are text of the place they came from. */
static void give_back(struct glm47 *g, struct collect *out, size_t n) {
    g->place = g->origin;
    put_text(g->place, out, markers[CALL].text, strlen(markers[CALL].text));
    put_text(g->place, out, buf_text(&g->name), n);
}

static size_t name_text(struct glm47 *g, struct collect *out, const char *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        keep(&g->name, out, s + i, 1);
        if (name_is_possible(g)) continue;
        give_back(g, out, g->name.len - 1);
        return i;
    }
    return n;
}

static void begin_call(struct glm47 *g, struct collect *out) {
    size_t n;
    const char *name = name_so_far(g, &n);
    if (g->origin == IN_REASONING) collect_end_reasoning(out);
    else collect_end_content(out);
    g->function = g->tools ? tool_find(g->tools, name, n) : NULL;
    g->may_imply = false;
    g->n_pair = 0;
    buf_clear(&g->seen);
    keep(&g->seen, out, "\n", 1);
    collect_call(out, name, n);
    g->place = IN_CALL;
}

/* ---- pairs ---- */

static void flush(struct glm47 *g, struct collect *out) {
    if (g->scratch.failed) out->failed = true;
    collect_arguments(out, buf_text(&g->scratch), g->scratch.len);
    buf_clear(&g->scratch);
}

/* Opens the object or continues it: everything of a pair but its value. */
static void put_key(struct glm47 *g) {
    buf_puts(&g->scratch, g->n_pair++ ? ", " : "{");
    json_put_string(&g->scratch, buf_text(&g->key), g->key.len);
    buf_puts(&g->scratch, ": ");
}

/* True if this call already had the key; else notes it. */
static bool is_repeated(struct glm47 *g, struct collect *out) {
    struct buf line = {0};
    buf_putc(&line, '\n');
    json_put_string(&line, buf_text(&g->key), g->key.len);
    buf_putc(&line, '\n');
    bool found = !line.failed && g->seen.len &&
                 memmem(g->seen.data, g->seen.len, line.data, line.len) != NULL;
    if (line.failed) out->failed = true;
    else if (!found) keep(&g->seen, out, line.data + 1, line.len - 1);
    buf_reset(&line);
    return found;
}

static void begin_key(struct glm47 *g) {
    buf_clear(&g->key);
    g->place = IN_KEY;
}

static void begin_value(struct glm47 *g, struct collect *out) {
    const char *key = buf_text(&g->key);
    size_t n = g->key.len;
    chat_strip(&key, &n);
    buf_drop(&g->key, (size_t)(key - buf_text(&g->key)));
    buf_cut(&g->key, n);
    g->ignored = is_repeated(g, out);
    g->schema = g->function ? tool_parameter(g->function, buf_text(&g->key)) : NULL;
    g->streamed = coerce_is_string(g->function, g->schema);
    buf_clear(&g->value);
    g->place = IN_VALUE;
    if (g->ignored || !g->streamed) return;
    put_key(g);
    buf_putc(&g->scratch, '"');
    flush(g, out);
}

static void value_text(struct glm47 *g, struct collect *out, const char *s, size_t n) {
    if (g->ignored) return;
    if (!g->streamed) {
        keep(&g->value, out, s, n);
        return;
    }
    json_put_escaped(&g->scratch, s, n);
    flush(g, out);
}

static void end_value(struct glm47 *g, struct collect *out) {
    g->place = IN_CALL;
    if (g->ignored) return;
    if (g->streamed) {
        buf_putc(&g->scratch, '"');
    } else {
        put_key(g);
        coerce_put(&g->scratch, g->function, g->schema, buf_text(&g->value), g->value.len);
    }
    flush(g, out);
}

static void end_call(struct glm47 *g, struct collect *out) {
    if (g->place == IN_VALUE && g->streamed && !g->ignored) buf_putc(&g->scratch, '"');
    buf_puts(&g->scratch, g->n_pair ? "}" : "{}");
    flush(g, out);
    g->place = IN_CONTENT;
}

/* ---- events ---- */

static size_t glm_text(void *state, struct collect *out, const char *s, size_t n) {
    struct glm47 *g = state;
    switch (g->place) {
    case IN_CONTENT:
    case IN_REASONING: put_text(g->place, out, s, n); break;
    case IN_NAME: return name_text(g, out, s, n);
    case IN_KEY: keep(&g->key, out, s, n); break;
    case IN_VALUE: value_text(g, out, s, n); break;
    case IN_CALL:
    case AFTER_KEY: break;
    }
    return n;
}

static void marker_as_text(struct glm47 *g, struct collect *out, int m) {
    glm_text(g, out, markers[m].text, strlen(markers[m].text));
}

static void marker_in_content(struct glm47 *g, struct collect *out, int m) {
    switch (m) {
    case THINK:
        collect_end_content(out);
        g->place = IN_REASONING;
        g->may_imply = false;
        break;
    case END_THINK:
        if (g->may_imply) collect_implied_reasoning(out);
        g->may_imply = false;
        break;
    case CALL: begin_name(g); break;
    default: marker_as_text(g, out, m);
    }
}

static void marker_in_reasoning(struct glm47 *g, struct collect *out, int m) {
    switch (m) {
    case THINK: break;
    case END_THINK:
        collect_end_reasoning(out);
        g->place = IN_CONTENT;
        g->may_imply = false;
        break;
    case CALL: begin_name(g); break;
    default: marker_as_text(g, out, m);
    }
}

static void glm_marker(void *state, struct collect *out, int m);

static void marker_in_name(struct glm47 *g, struct collect *out, int m) {
    if ((m == KEY || m == END_CALL) && name_is_complete(g)) {
        begin_call(g, out);
        if (m == KEY) begin_key(g);
        else end_call(g, out);
        return;
    }
    give_back(g, out, g->name.len);
    glm_marker(g, out, m);
}

/* Between pairs and between a key and its value; `m` is no part of data here. */
static void marker_in_call(struct glm47 *g, struct collect *out, int m) {
    switch (m) {
    case KEY: begin_key(g); break;
    case END_CALL: end_call(g, out); break;
    case CALL: /* the one before was left open */
        end_call(g, out);
        begin_name(g);
        break;
    default:
        if (m == VALUE && g->place == AFTER_KEY) begin_value(g, out);
    }
}

static void glm_marker(void *state, struct collect *out, int m) {
    struct glm47 *g = state;
    switch (g->place) {
    case IN_CONTENT: marker_in_content(g, out, m); break;
    case IN_REASONING: marker_in_reasoning(g, out, m); break;
    case IN_NAME: marker_in_name(g, out, m); break;
    case IN_CALL:
    case AFTER_KEY: marker_in_call(g, out, m); break;
    case IN_KEY:
        if (m == END_KEY) g->place = AFTER_KEY;
        else if (m == END_CALL) end_call(g, out);
        else marker_as_text(g, out, m);
        break;
    case IN_VALUE:
        if (m == END_VALUE) end_value(g, out);
        else if (m == END_CALL) end_call(g, out);
        else marker_as_text(g, out, m);
        break;
    }
}

/* An unfinished name is a call only if the model stopped by itself: cut off by the budget it may be
 * the beginning of another one. A call cut off by the budget keeps its JSON open, so that clients
 * see it is not whole. */
static void glm_end(void *state, struct collect *out, bool complete) {
    struct glm47 *g = state;
    if (g->place == IN_NAME && complete && g->tools && name_is_complete(g)) begin_call(g, out);
    if (g->place == IN_NAME) give_back(g, out, g->name.len);
    if (g->place == IN_REASONING) {
        collect_end_reasoning(out);
        return;
    }
    if (g->place != IN_CONTENT) {
        if (complete) {
            end_call(g, out);
        } else if (!g->n_pair) {
            collect_arguments(out, "{", 1);
        }
    }
    collect_end(out);
}

const struct dialect dialect_glm47 = {.name = "glm47",
                                      .alias = "glm45",
                                      .marker = markers,
                                      .n_marker = N_MARKER,
                                      .state_size = sizeof(struct glm47),
                                      .strip_content = true,
                                      .open = glm_open,
                                      .close = glm_close,
                                      .expects = glm_expects,
                                      .in_reasoning = glm_in_reasoning,
                                      .on_text = glm_text,
                                      .on_marker = glm_marker,
                                      .on_end = glm_end};
