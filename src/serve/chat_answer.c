/* Events of chat requests in, through the parser, to deltas; and the whole answer out. A stream
 * takes its deltas from the parts that wait here (chat_stream.c). */
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "serve/chat.h"
#include "serve/conn.h"
#include "serve/hex.h"
#include "serve/internal.h"
#include "serve/response.h"

static struct chat *of(struct generation *g) {
    return (struct chat *)g;
}

sumi_status chat_open(struct chat *x, const struct ids *prompt, bool thinking, sumi_error *err) {
    const struct server_config *config = &x->g.s->config;
    struct answer_options options = {.reasoning = config->reasoning,
                                     .tools = config->tools,
                                     .tool_list = x->tools.list,
                                     .drop_calls = x->tools.drop,
                                     .single_call = x->tools.single,
                                     .thinking = thinking,
                                     .prompt = prompt->data,
                                     .n_prompt = prompt->n};
    x->choice = mem_zero((size_t)x->g.n_choice, sizeof *x->choice);
    if (!x->choice) return NO_MEMORY(err, (size_t)x->g.n_choice * sizeof *x->choice);
    if (!config->reasoning && !config->tools) return SUMI_OK;
    for (int32_t i = 0; i < x->g.n_choice; i++)
        TRY(answer_open(&x->choice[i].answer, config->tokenizer, &options, err));
    return SUMI_OK;
}

static void free_part(struct call_part *p) {
    buf_reset(&p->name);
    buf_reset(&p->args);
}

static void chat_free(struct generation *g) {
    struct chat *x = of(g);
    for (int32_t i = 0; x->choice && i < g->n_choice; i++) {
        struct chat_choice *o = &x->choice[i];
        if (o->answer) answer_close(o->answer);
        buf_reset(&o->content);
        buf_reset(&o->reasoning);
        buf_reset(&o->logprobs);
        buf_reset(&o->ids);
        for (size_t k = 0; k < o->cap_part; k++) free_part(&o->part[k]);
        mem_free(o->part);
    }
    mem_free(x->choice);
    mem_free(x->role);
    buf_reset(&x->echo);
    buf_reset(&x->prompt_text);
    buf_reset(&x->prompt_logprobs);
    mem_free(x);
}

/* The waiting part of a call: the last one when it is the same call, else a new one. */
static struct call_part *part_of(struct chat_choice *o, int32_t call) {
    if (o->n_part && o->part[o->n_part - 1].call == call) return &o->part[o->n_part - 1];
    if (o->n_part == o->cap_part) {
        struct call_part *p = mem_resize(o->part, o->cap_part + 4, sizeof *p);
        if (!p) return NULL;
        memset(p + o->cap_part, 0, 4 * sizeof *p);
        o->part = p;
        o->cap_part += 4;
    }
    struct call_part *p = &o->part[o->n_part++];
    p->call = call;
    p->start = false;
    buf_clear(&p->name);
    buf_clear(&p->args);
    return p;
}

static sumi_status take_call(struct chat_choice *o, const struct delta *d, sumi_error *err) {
    struct call_part *p = part_of(o, d->call);
    if (!p) return NO_MEMORY(err, sizeof *p);
    if (d->kind == DELTA_CALL_START) {
        p->start = o->parsed_call = true;
        buf_put(&p->name, d->text, d->n);
    } else buf_put(&p->args, d->text, d->n);
    return p->name.failed || p->args.failed ? NO_MEMORY(err, d->n) : SUMI_OK;
}

/* Only a stream collects: the parser itself keeps what a whole answer needs. */
static sumi_status take_deltas(struct chat *x, struct chat_choice *o, const struct delta *d,
                               size_t n, sumi_error *err) {
    for (size_t i = 0; x->g.params.stream && i < n; i++) {
        if (d[i].kind == DELTA_CONTENT) buf_put(&o->content, d[i].text, d[i].n);
        else if (d[i].kind == DELTA_REASONING) {
            if (x->include_reasoning) buf_put(&o->reasoning, d[i].text, d[i].n);
        } else TRY(take_call(o, &d[i], err));
    }
    return o->content.failed || o->reasoning.failed ? NO_MEMORY(err, n) : SUMI_OK;
}

static sumi_status parse(struct chat *x, struct chat_choice *o, const struct event *e,
                         sumi_error *err) {
    const struct delta *delta;
    size_t n;
    if (!o->answer) {
        for (size_t i = 0; i < e->n_piece; i++)
            buf_put(&o->content, e->piece[i].text, e->piece[i].n);
        return o->content.failed ? NO_MEMORY(err, o->content.cap) : SUMI_OK;
    }
    TRY(answer_push(o->answer, e->piece, e->n_piece, &delta, &n, err));
    TRY(take_deltas(x, o, delta, n, err));
    if (e->finish == FINISH_NONE) return SUMI_OK;
    TRY(answer_finish(o->answer, e->finish == FINISH_STOP, &delta, &n, err));
    return take_deltas(x, o, delta, n, err);
}

/* Logprobs and ids of the tokens; those of reasoning go when reasoning does. */
static void take_tokens(struct chat *x, struct chat_choice *o, const struct event *e) {
    const struct params *p = &x->g.params;
    for (size_t i = 0; i < e->n_token; i++) {
        int32_t before = o->answer ? answer_reasoning_tokens(o->answer) : 0;
        if (o->answer) answer_count_token(o->answer, e->token[i].id);
        if (o->answer && !x->include_reasoning && answer_reasoning_tokens(o->answer) > before)
            continue;
        if (p->sampling.n_logprobs >= 0) logprobs_put_chat(&x->g.style, &e->token[i], &o->logprobs);
        if (p->return_token_ids) buf_printf(&o->ids, "%s%d", o->ids.len ? "," : "", e->token[i].id);
    }
}

static sumi_status chat_event(struct generation *g, struct choice *c, const struct event *e,
                              sumi_error *err) {
    struct chat *x = of(g);
    struct chat_choice *o = &x->choice[c->index];
    if (e->prompt_token && x->prompt_logprobs.len == 0)
        logprobs_write_prompt(&g->style, e->prompt_token, (size_t)e->n_prompt, &x->prompt_logprobs);
    take_tokens(x, o, e);
    TRY(parse(x, o, e, err));
    if (e->finish != FINISH_NONE && o->answer && g->s->config.tools) {
        int series = 2 * g->params.stream + (answer_calls(o->answer) > 0);
        metrics_add(g->s->metrics, M_TOOL_PARSER, series, 1);
    }
    return o->logprobs.failed || o->ids.failed ? NO_MEMORY(err, o->ids.cap) : SUMI_OK;
}

const char *chat_finish_text(const struct chat *x, const struct choice *c) {
    const struct chat_choice *o = &x->choice[c->index];
    bool called = o->answer && !x->tools.drop && answer_calls(o->answer) > 0;
    if (c->finish == FINISH_STOP && called && !x->tools.named) return "\"tool_calls\"";
    return generation_finish_text(c->finish);
}

int64_t chat_reasoning_tokens(const struct chat *x, const struct choice *one) {
    int64_t sum = 0;
    if (!x->g.s->config.reasoning) return -1;
    for (int32_t i = 0; i < x->g.n_choice; i++)
        if (!one || one->index == i) sum += answer_reasoning_tokens(x->choice[i].answer);
    return sum;
}

static void put_calls(const struct answer_message *m, struct buf *out) {
    char id[17];
    if (!m->n_call) return;
    buf_puts(out, ",\"tool_calls\":[");
    for (size_t i = 0; i < m->n_call; i++) {
        random_hex(id, 8);
        buf_printf(out, "%s{\"id\":\"chatcmpl-tool-%s\",\"type\":\"function\",\"function\":{",
                   i ? "," : "", id);
        buf_puts(out, "\"name\":");
        json_put_string(out, m->call[i].name, m->call[i].name_len);
        buf_puts(out, ",\"arguments\":");
        json_put_string(out, m->call[i].arguments, m->call[i].arguments_len);
        buf_puts(out, "}}");
    }
    buf_putc(out, ']');
}

/* Content as the API says it: null when empty, except without a parser and for forced calls. */
static void put_content(struct chat *x, const struct answer_message *m, struct buf *out) {
    struct buf *echo = &x->echo;
    buf_puts(out, ",\"content\":");
    if (!m->content && !echo->len && !x->tools.forced) {
        buf_puts(out, "null");
        return;
    }
    buf_putc(out, '"');
    json_put_escaped(out, buf_text(echo), echo->len);
    if (m->content) json_put_escaped(out, m->content, m->content_len);
    buf_putc(out, '"');
}

static sumi_status put_message(struct chat *x, struct chat_choice *o, struct buf *out,
                               sumi_error *err) {
    struct answer_message m = {.content = buf_text(&o->content), .content_len = o->content.len};
    if (o->answer) TRY(answer_message(o->answer, &m, err));
    const char *reasoning = x->include_reasoning ? m.reasoning : NULL;
    buf_puts(out, "{\"role\":");
    json_put_text(out, x->role);
    put_content(x, &m, out);
    buf_puts(out, ",\"refusal\":null,\"annotations\":null,\"audio\":null,\"function_call\":null");
    put_calls(&m, out);
    response_put_field("reasoning", reasoning, m.reasoning_len, out);
    if (x->g.s->config.reasoning_content)
        response_put_field("reasoning_content", reasoning, m.reasoning_len, out);
    buf_putc(out, '}');
    return SUMI_OK;
}

static sumi_status put_choice(struct chat *x, struct choice *c, struct buf *out, sumi_error *err) {
    struct chat_choice *o = &x->choice[c->index];
    buf_printf(out, "{\"index\":%d,\"message\":", c->index);
    TRY(put_message(x, o, out, err));
    if (x->g.params.sampling.n_logprobs >= 0)
        buf_printf(out, ",\"logprobs\":{\"content\":[%s]}", buf_text(&o->logprobs));
    else buf_puts(out, ",\"logprobs\":null");
    buf_printf(out, ",\"finish_reason\":%s,\"stop_reason\":", chat_finish_text(x, c));
    generation_put_stop_reason(&x->g, c, out);
    if (x->g.params.return_token_ids) buf_printf(out, ",\"token_ids\":[%s]", buf_text(&o->ids));
    else buf_puts(out, ",\"token_ids\":null");
    buf_puts(out, ",\"routed_experts\":null,\"weight_versions\":null}");
    return SUMI_OK;
}

static sumi_status chat_whole(struct generation *g, struct buf *out, sumi_error *err) {
    struct chat *x = of(g);
    response_open(g, "chat.completion", out);
    buf_puts(out, ",\"choices\":[");
    for (int32_t i = 0; i < g->n_choice; i++) {
        if (i) buf_putc(out, ',');
        TRY(put_choice(x, &g->choice[i], out, err));
    }
    buf_puts(out, "],\"service_tier\":null,\"system_fingerprint\":");
    json_put_text(out, g->s->config.fingerprint);
    struct usage u = {.prompt = g->run[0].n_prompt,
                      .cached = g->s->config.prompt_tokens_details ? g->run[0].n_cached : -1,
                      .reasoning = chat_reasoning_tokens(x, NULL),
                      .write_nulls = true};
    for (int32_t i = 0; i < g->n_choice; i++) u.completion += g->choice[i].n_output;
    buf_puts(out, ",\"usage\":");
    response_put_usage(&u, out);
    buf_printf(out, ",\"prompt_logprobs\":%s,\"prompt_token_ids\":",
               x->prompt_logprobs.len ? x->prompt_logprobs.data : "null");
    if (x->prompt_logprobs.failed) out->failed = true;
    if (g->params.return_token_ids)
        response_put_ids(g->run[0].prompt.data, g->run[0].prompt.n, out);
    else buf_puts(out, "null");
    response_put_field("prompt_text", x->return_prompt_text ? buf_text(&x->prompt_text) : NULL,
                       x->prompt_text.len, out);
    buf_puts(out, ",\"kv_transfer_params\":null,\"ec_transfer_params\":null,\"metrics\":");
    response_put_metrics(g, out);
    buf_putc(out, '}');
    return SUMI_OK;
}

const struct generation_api chat_api = {
    .event = chat_event,
    .flush = chat_flush,
    .finish_stream = chat_finish_stream,
    .whole = chat_whole,
    .free = chat_free,
};
