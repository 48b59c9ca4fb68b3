/* Events of completion requests in; chunks of a stream or one whole answer out. */
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "serve/completions.h"
#include "serve/conn.h"
#include "serve/internal.h"
#include "serve/response.h"

static struct completion *of(struct generation *g) {
    return (struct completion *)g;
}

sumi_status completion_open(struct completion *x, sumi_error *err) {
    x->choice = mem_zero((size_t)x->g.n_choice, sizeof *x->choice);
    x->prompt = mem_zero((size_t)x->g.n_run, sizeof *x->prompt);
    return x->choice && x->prompt ? SUMI_OK
                                  : NO_MEMORY(err, (size_t)x->g.n_choice * sizeof *x->choice);
}

static void completion_free(struct generation *g) {
    struct completion *x = of(g);
    for (int32_t i = 0; x->choice && i < g->n_choice; i++) {
        buf_reset(&x->choice[i].text);
        buf_reset(&x->choice[i].ids);
        logprobs_reset_lists(&x->choice[i].logprobs);
    }
    for (int32_t i = 0; x->prompt && i < g->n_run; i++) {
        buf_reset(&x->prompt[i].echo);
        buf_reset(&x->prompt[i].logprobs);
    }
    mem_free(x->choice);
    mem_free(x->prompt);
    mem_free(x);
}

/* Prompt logprobs come with the first event of the first choice and serve all choices. */
static void take_prompt(struct completion *x, struct choice *c, const struct event *e) {
    struct generation *g = &x->g;
    int32_t run = (int32_t)(c->run - g->run);
    bool echo = g->params.echo && g->params.sampling.n_logprobs >= 0;
    if (!e->prompt_token) return;
    for (int32_t i = 0; echo && i < g->params.n; i++) {
        struct logprobs_lists *l = &x->choice[run * g->params.n + i].logprobs;
        for (int32_t k = 0; k < e->n_prompt; k++)
            logprobs_put_lists(&g->style, &e->prompt_token[k], l);
    }
    if (x->prompt_logprobs)
        logprobs_write_prompt(&g->style, e->prompt_token, (size_t)e->n_prompt,
                              &x->prompt[run].logprobs);
}

static sumi_status completion_event(struct generation *g, struct choice *c, const struct event *e,
                                    sumi_error *err) {
    struct completion *x = of(g);
    struct completion_choice *o = &x->choice[c->index];
    if (!o->began) {
        struct buf *echo = &x->prompt[c->run - g->run].echo;
        buf_put(&o->text, buf_text(echo), echo->len);
        o->began = true;
    }
    take_prompt(x, c, e);
    if (!x->echo_only) {
        for (size_t i = 0; i < e->n_piece; i++) buf_put(&o->text, e->piece[i].text, e->piece[i].n);
        for (size_t i = 0; i < e->n_token; i++) {
            if (g->params.sampling.n_logprobs >= 0)
                logprobs_put_lists(&g->style, &e->token[i], &o->logprobs);
            if (g->params.return_token_ids)
                buf_printf(&o->ids, "%s%d", o->ids.len ? "," : "", e->token[i].id);
        }
    }
    return o->text.failed || o->ids.failed ? NO_MEMORY(err, o->text.cap) : SUMI_OK;
}

static void put_logprobs(struct generation *g, struct completion_choice *o, struct buf *out) {
    buf_puts(out, ",\"logprobs\":");
    if (g->params.sampling.n_logprobs >= 0) logprobs_write_lists(&o->logprobs, out);
    else buf_puts(out, "null");
}

static void put_ids(struct generation *g, struct completion_choice *o, struct buf *out) {
    buf_puts(out, ",\"token_ids\":");
    if (g->params.return_token_ids) buf_printf(out, "[%s]", buf_text(&o->ids));
    else buf_puts(out, "null");
    buf_clear(&o->ids);
}

static void put_prompt_ids(struct generation *g, const struct choice *c, bool wanted,
                           struct buf *out) {
    buf_puts(out, ",\"prompt_token_ids\":");
    if (wanted && g->params.return_token_ids)
        response_put_ids(c->run->prompt.data, c->run->prompt.n, out);
    else buf_puts(out, "null");
}

static struct usage usage_of(const struct generation *g, const struct choice *one) {
    struct usage u = {.cached = -1, .reasoning = -1};
    if (one) {
        u.prompt = one->run->n_prompt;
        u.completion = one->n_output;
        return u;
    }
    for (int32_t i = 0; i < g->n_run; i++) u.prompt += g->run[i].n_prompt;
    for (int32_t i = 0; i < g->n_choice; i++) u.completion += g->choice[i].n_output;
    return u;
}

static void put_fingerprint(const struct generation *g, struct buf *out) {
    buf_puts(out, ",\"system_fingerprint\":");
    json_put_text(out, g->s->config.fingerprint);
}

static void completion_flush(struct generation *g, struct choice *c) {
    struct completion_choice *o = &of(g)->choice[c->index];
    struct buf *out = &g->frame;
    bool ends = c->finish != FINISH_NONE;
    bool anything = o->text.len || o->ids.len || o->logprobs.token.len;
    if (o->closed || (!ends && !anything)) return;
    bool first = c->unsent == c->n_output;
    buf_puts(out, "data: ");
    response_open(g, "text_completion", out);
    buf_printf(out, ",\"choices\":[{\"index\":%d,\"text\":", c->index);
    json_put_string(out, buf_text(&o->text), o->text.len);
    buf_clear(&o->text);
    put_logprobs(g, o, out);
    buf_printf(out, ",\"finish_reason\":%s,\"stop_reason\":", generation_finish_text(c->finish));
    generation_put_stop_reason(g, c, out);
    put_prompt_ids(g, c, first, out);
    put_ids(g, o, out);
    buf_puts(out, ",\"weight_versions\":null}]");
    if (g->params.continuous_usage) {
        struct usage u = usage_of(g, c);
        buf_puts(out, ",\"usage\":");
        response_put_usage(&u, out);
    }
    if (ends && !g->params.include_usage) put_fingerprint(g, out);
    buf_puts(out, ",\"kv_transfer_params\":null}\n\n");
    o->closed = ends;
    c->unsent = 0;
    g->began = true;
    generation_send(g);
}

static void completion_finish_stream(struct generation *g) {
    struct buf *out = &g->frame;
    if (!g->params.include_usage) return;
    struct usage u = usage_of(g, NULL);
    if (g->s->config.prompt_tokens_details) u.cached = g->run[0].n_cached;
    buf_puts(out, "data: ");
    response_open(g, "text_completion", out);
    buf_puts(out, ",\"choices\":[],\"usage\":");
    response_put_usage(&u, out);
    if (g->s->config.fingerprint) put_fingerprint(g, out);
    buf_puts(out, "}\n\n");
    generation_send(g);
}

static void put_choice(struct generation *g, struct choice *c, struct buf *out) {
    struct completion_choice *o = &of(g)->choice[c->index];
    struct buf *prompt = &of(g)->prompt[c->run - g->run].logprobs;
    buf_printf(out, "{\"index\":%d,\"text\":", c->index);
    json_put_string(out, buf_text(&o->text), o->text.len);
    put_logprobs(g, o, out);
    buf_printf(out, ",\"finish_reason\":%s,\"stop_reason\":", generation_finish_text(c->finish));
    generation_put_stop_reason(g, c, out);
    put_ids(g, o, out);
    buf_printf(out, ",\"prompt_logprobs\":%s", prompt->len ? prompt->data : "null");
    if (prompt->failed) out->failed = true;
    put_prompt_ids(g, c, true, out);
    buf_puts(out, ",\"routed_experts\":null,\"weight_versions\":null}");
}

static sumi_status completion_whole(struct generation *g, struct buf *out, sumi_error *err) {
    (void)err;
    response_open(g, "text_completion", out);
    buf_puts(out, ",\"choices\":[");
    for (int32_t i = 0; i < g->n_choice; i++) {
        if (i) buf_putc(out, ',');
        put_choice(g, &g->choice[i], out);
    }
    buf_puts(out, "],\"service_tier\":null");
    put_fingerprint(g, out);
    struct usage u = usage_of(g, NULL);
    u.write_nulls = true;
    if (g->s->config.prompt_tokens_details) u.cached = g->run[g->n_run - 1].n_cached;
    buf_puts(out, ",\"usage\":");
    response_put_usage(&u, out);
    buf_puts(out, ",\"kv_transfer_params\":null,\"ec_transfer_params\":null,\"metrics\":");
    response_put_metrics(g, out);
    buf_putc(out, '}');
    return SUMI_OK;
}

const struct generation_api completion_api = {
    .event = completion_event,
    .flush = completion_flush,
    .finish_stream = completion_finish_stream,
    .whole = completion_whole,
    .free = completion_free,
};
