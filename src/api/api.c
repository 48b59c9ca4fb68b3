/* The public interface: options, engine and session over what the command line uses. In come option
 * names and messages, out come pieces of answers; nothing here knows a terminal. */
#include <string.h>

#include "api/ask.h"
#include "api/setup.h"
#include "base/mem.h"
#include "base/option_table.h"

struct sumi_options {
    struct options *o;
};

struct sumi_engine {
    struct setup setup;
};

struct sumi_session {
    struct sumi_engine *engine;
    struct json_object *messages, *tools;
};

sumi_status sumi_options_open(sumi_options **out, sumi_error *err) {
    *out = NULL;
    sumi_options *o = mem_zero(1, sizeof *o);
    if (!o) return NO_MEMORY(err, sizeof *o);
    const struct opt_verb *verb = opt_find_verb(&option_table, "run");
    sumi_status status = options_open(&o->o, &option_table, verb, err);
    if (status != SUMI_OK) {
        mem_free(o);
        return status;
    }
    *out = o;
    return SUMI_OK;
}

void sumi_options_close(sumi_options *o) {
    if (!o) return;
    options_close(o->o);
    mem_free(o);
}

sumi_status sumi_options_set(sumi_options *o, const char *name, const char *value,
                             sumi_error *err) {
    return options_set(o->o, name, value, err);
}

static sumi_status start(struct setup *s, const struct options *o, sumi_error *err) {
    TRY(setup_load(s, o, WEIGHTS_FILE, err));
    TRY(setup_plan(s, err));
    TRY(setup_chat(s, err));
    return setup_engine(s, err);
}

sumi_status sumi_engine_open(sumi_engine **out, const sumi_options *o, sumi_error *err) {
    *out = NULL;
    sumi_engine *e = mem_zero(1, sizeof *e);
    if (!e) return NO_MEMORY(err, sizeof *e);
    sumi_status status = start(&e->setup, o->o, err);
    if (status != SUMI_OK) {
        sumi_engine_close(e);
        return status;
    }
    *out = e;
    return SUMI_OK;
}

void sumi_engine_close(sumi_engine *e) {
    if (!e) return;
    setup_close(&e->setup);
    mem_free(e);
}

sumi_status sumi_session_open(sumi_session **out, sumi_engine *e, sumi_error *err) {
    *out = NULL;
    sumi_session *s = mem_zero(1, sizeof *s);
    if (!s) return NO_MEMORY(err, sizeof *s);
    s->engine = e;
    s->messages = json_object_new_array();
    if (!s->messages) {
        mem_free(s);
        return NO_MEMORY(err, sizeof *s);
    }
    *out = s;
    return SUMI_OK;
}

void sumi_session_close(sumi_session *s) {
    if (!s) return;
    json_object_put(s->messages);
    json_object_put(s->tools);
    mem_free(s);
}

sumi_status sumi_session_tools(sumi_session *s, const char *json, sumi_error *err) {
    struct json_object *tools = NULL;
    if (json) TRY(json_parse(&tools, json, strlen(json), "tools", err));
    if (json && !json_is(tools, json_type_array)) {
        json_object_put(tools);
        return fail_param(err, SUMI_ERR_FORMAT, "tools", "tools: expected a JSON array");
    }
    json_object_put(s->tools);
    s->tools = tools;
    return SUMI_OK;
}

sumi_status sumi_session_say(sumi_session *s, const char *role, const char *text, sumi_error *err) {
    return message_add(s->messages, role, text, strlen(text), err);
}

/* Pieces go to the caller's function until it asks for an end. */
struct forward {
    int (*on_piece)(void *user, const sumi_piece *piece);
    void *user;
    volatile sig_atomic_t stop;
};

static void forward_delta(void *user, const struct delta *d) {
    static const sumi_piece_kind kind[] = {[DELTA_REASONING] = SUMI_REASONING,
                                           [DELTA_CONTENT] = SUMI_CONTENT,
                                           [DELTA_CALL_START] = SUMI_CALL_NAME,
                                           [DELTA_CALL_ARGS] = SUMI_CALL_ARGUMENTS};
    struct forward *f = user;
    sumi_piece piece = {.kind = kind[d->kind], .call = d->call, .text = d->text, .n = d->n};
    if (f->on_piece && !f->stop && f->on_piece(f->user, &piece)) f->stop = 1;
}

static sumi_status answer(sumi_session *s, const struct ids *ids, const struct sampling *sampling,
                          struct forward *f, sumi_result *result, sumi_error *err) {
    struct setup *e = &s->engine->setup;
    struct asked a = {0};
    struct ask q = {.prompt = ids,
                    .sampling = sampling,
                    .thinking = ask_thinking(e),
                    .tools = s->tools,
                    .interrupted = &f->stop,
                    .on_delta = forward_delta,
                    .user = f};
    sumi_status status = ask(e, &q, &a, err);
    if (status == SUMI_OK) status = message_add_answer(s->messages, &a, err);
    if (status == SUMI_OK && result)
        *result = (sumi_result){.prompt_tokens = a.n_prompt,
                                .output_tokens = a.n_output,
                                .reasoning_tokens = a.n_reasoning,
                                .tool_calls = answer_calls(a.answer),
                                .finish = finish_name(a.finish)};
    asked_reset(&a);
    return status;
}

sumi_status sumi_session_answer(sumi_session *s,
                                int (*on_piece)(void *user, const sumi_piece *piece), void *user,
                                sumi_result *result, sumi_error *err) {
    struct ids ids = {0};
    struct sampling sampling;
    size_t *stop_len = NULL;
    struct forward f = {.on_piece = on_piece, .user = user};
    struct setup *e = &s->engine->setup;
    sumi_status status = ask_render(e, s->messages, s->tools, &ids, err);
    if (status == SUMI_OK) status = ask_sampling(e, ids.n, false, &sampling, &stop_len, err);
    if (status == SUMI_OK) status = answer(s, &ids, &sampling, &f, result, err);
    mem_free(stop_len);
    mem_free(ids.data);
    return status;
}
