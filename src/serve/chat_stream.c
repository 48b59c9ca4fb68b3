/* What waits for a choice goes out as one chunk. Concatenated, the chunks' deltas are the whole
 * answer byte for byte. */
#include <string.h>

#include "base/jsonw.h"
#include "serve/chat.h"
#include "serve/conn.h"
#include "serve/hex.h"
#include "serve/internal.h"
#include "serve/response.h"

static struct chat *of(struct generation *g) {
    return (struct chat *)g;
}

static void open_chunk(struct generation *g, int32_t index) {
    buf_puts(&g->frame, "data: ");
    response_open(g, "chat.completion.chunk", &g->frame);
    buf_printf(&g->frame, ",\"choices\":[{\"index\":%d,\"delta\":", index);
}

/* Running usage of one choice, with the comma before it. */
static void put_running_usage(struct generation *g, const struct choice *c, bool first) {
    if (!g->params.continuous_usage) return;
    struct usage u = {.prompt = c->run->n_prompt,
                      .completion = first ? 0 : c->n_output,
                      .cached = -1,
                      .reasoning = first ? -1 : chat_reasoning_tokens(of(g), c)};
    buf_puts(&g->frame, ",\"usage\":");
    response_put_usage(&u, &g->frame);
}

static void send_role(struct generation *g, const struct choice *c) {
    struct chat *x = of(g);
    struct buf *out = &g->frame;
    open_chunk(g, c->index);
    buf_puts(out, "{\"role\":");
    json_put_text(out, x->role);
    buf_puts(out, ",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}]");
    put_running_usage(g, c, true);
    buf_puts(out, ",\"prompt_token_ids\":");
    if (g->params.return_token_ids)
        response_put_ids(g->run[0].prompt.data, g->run[0].prompt.n, out);
    else buf_puts(out, "null");
    response_put_field("prompt_text", x->return_prompt_text ? buf_text(&x->prompt_text) : NULL,
                       x->prompt_text.len, out);
    buf_puts(out, "}\n\n");
    generation_send(g);
}

static void send_echo(struct generation *g, const struct choice *c) {
    struct chat *x = of(g);
    struct buf *out = &g->frame;
    if (!x->echo.len || !g->conn) return;
    open_chunk(g, c->index);
    buf_puts(out, "{\"content\":");
    json_put_string(out, x->echo.data, x->echo.len);
    buf_puts(out, "},\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]");
    put_running_usage(g, c, true);
    buf_puts(out, ",\"kv_transfer_params\":null}\n\n");
    generation_send(g);
}

/* One role chunk per choice, with the first output of any of them. */
static void begin(struct generation *g) {
    g->began = true;
    for (int32_t i = 0; i < g->n_choice && g->conn; i++) {
        send_role(g, &g->choice[i]);
        send_echo(g, &g->choice[i]);
    }
}

static void put_part(const struct call_part *p, struct buf *out) {
    char id[17];
    if (p->start) {
        random_hex(id, 8);
        buf_printf(out, "{\"id\":\"chatcmpl-tool-%s\",\"type\":\"function\",", id);
    } else buf_putc(out, '{');
    buf_printf(out, "\"index\":%d,\"function\":{", p->call);
    if (p->start) {
        buf_puts(out, "\"name\":");
        json_put_string(out, p->name.data, p->name.len);
        buf_putc(out, ',');
    }
    buf_puts(out, "\"arguments\":");
    json_put_string(out, p->args.len ? p->args.data : "", p->args.len);
    buf_puts(out, "}}");
}

static void put_text(const char *name, struct buf *text, const char **comma, struct buf *out) {
    if (!text->len) return;
    buf_printf(out, "%s\"%s\":", *comma, name);
    json_put_string(out, text->data, text->len);
    *comma = ",";
}

static void put_delta(struct generation *g, struct chat_choice *o) {
    struct buf *out = &g->frame;
    const char *comma = "";
    buf_putc(out, '{');
    put_text("content", &o->content, &comma, out);
    put_text("reasoning", &o->reasoning, &comma, out);
    if (g->s->config.reasoning_content) put_text("reasoning_content", &o->reasoning, &comma, out);
    if (o->n_part) buf_printf(out, "%s\"tool_calls\":[", comma);
    for (size_t i = 0; i < o->n_part; i++) {
        if (i) buf_putc(out, ',');
        put_part(&o->part[i], out);
    }
    if (o->n_part) buf_putc(out, ']');
    buf_putc(out, '}');
    buf_clear(&o->content);
    buf_clear(&o->reasoning);
    o->n_part = 0;
}

static void put_lists(struct generation *g, struct chat_choice *o) {
    struct buf *out = &g->frame;
    if (g->params.sampling.n_logprobs >= 0 && o->logprobs.len)
        buf_printf(out, ",\"logprobs\":{\"content\":[%s]}", o->logprobs.data);
    else buf_puts(out, ",\"logprobs\":null");
    buf_clear(&o->logprobs);
}

static void put_ids(struct generation *g, struct chat_choice *o) {
    if (g->params.return_token_ids) buf_printf(&g->frame, ",\"token_ids\":[%s]", buf_text(&o->ids));
    else buf_puts(&g->frame, ",\"token_ids\":null");
    buf_clear(&o->ids);
}

void chat_flush(struct generation *g, struct choice *c) {
    struct chat *x = of(g);
    struct chat_choice *o = &x->choice[c->index];
    struct buf *out = &g->frame;
    bool ends = c->finish != FINISH_NONE;
    bool anything =
        o->content.len || o->reasoning.len || o->n_part || o->logprobs.len || o->ids.len;
    if (o->closed || (!ends && !c->n_output)) return;
    if (!g->began) begin(g);
    if (!g->conn || (!ends && !anything)) return;
    open_chunk(g, c->index);
    put_delta(g, o);
    put_lists(g, o);
    buf_printf(out, ",\"finish_reason\":%s", chat_finish_text(x, c));
    if (ends) {
        buf_puts(out, ",\"stop_reason\":");
        generation_put_stop_reason(g, c, out);
    }
    put_ids(g, o);
    buf_puts(out, ends ? ",\"weight_versions\":null}]" : "}]");
    put_running_usage(g, c, false);
    if (ends && !g->params.include_usage) {
        buf_puts(out, ",\"system_fingerprint\":");
        json_put_text(out, g->s->config.fingerprint);
    }
    buf_puts(out, ",\"kv_transfer_params\":null}\n\n");
    o->closed = ends;
    c->unsent = 0;
    generation_send(g);
}

void chat_finish_stream(struct generation *g) {
    struct chat *x = of(g);
    struct buf *out = &g->frame;
    if (!g->params.include_usage) return;
    struct usage u = {.prompt = g->run[0].n_prompt,
                      .cached = g->s->config.prompt_tokens_details ? g->run[0].n_cached : -1,
                      .reasoning = chat_reasoning_tokens(x, NULL)};
    for (int32_t i = 0; i < g->n_choice; i++) u.completion += g->choice[i].n_output;
    buf_puts(out, "data: ");
    response_open(g, "chat.completion.chunk", out);
    buf_puts(out, ",\"choices\":[],\"usage\":");
    response_put_usage(&u, out);
    if (g->s->config.fingerprint) {
        buf_puts(out, ",\"system_fingerprint\":");
        json_put_text(out, g->s->config.fingerprint);
    }
    if (g->s->config.per_request_metrics && g->n_choice == 1) {
        buf_puts(out, ",\"metrics\":");
        response_put_metrics(g, out);
    }
    buf_puts(out, "}\n\n");
    generation_send(g);
}
