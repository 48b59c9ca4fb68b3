/* Pieces of answers as JSON text. */
#include "serve/response.h"

#include <string.h>

#include "base/jsonw.h"
#include "serve/internal.h"

void response_put_usage(const struct usage *u, struct buf *out) {
    buf_printf(out, "{\"prompt_tokens\":%lld,\"total_tokens\":%lld,\"completion_tokens\":%lld",
               (long long)u->prompt, (long long)(u->prompt + u->completion),
               (long long)u->completion);
    if (u->cached >= 0) {
        buf_printf(out, ",\"prompt_tokens_details\":{\"cached_tokens\":%lld", (long long)u->cached);
        if (u->write_nulls)
            buf_puts(out, ",\"created_cache_tokens\":null,\"multimodal_tokens\":null");
        buf_putc(out, '}');
    } else if (u->write_nulls) buf_puts(out, ",\"prompt_tokens_details\":null");
    if (u->reasoning >= 0)
        buf_printf(out, ",\"completion_tokens_details\":{\"reasoning_tokens\":%lld}",
                   (long long)u->reasoning);
    else if (u->write_nulls) buf_puts(out, ",\"completion_tokens_details\":null");
    buf_putc(out, '}');
}

void response_open(const struct generation *g, const char *object, struct buf *out) {
    buf_puts(out, "{\"id\":");
    json_put_text(out, g->id);
    buf_printf(out, ",\"object\":\"%s\",\"created\":%lld,\"model\":", object,
               (long long)g->created);
    json_put_text(out, g->s->config.served_name.item[0]);
}

void response_put_field(const char *name, const char *text, size_t n, struct buf *out) {
    buf_printf(out, ",\"%s\":", name);
    if (text) json_put_string(out, text, n);
    else buf_puts(out, "null");
}

void response_put_ids(const int32_t *id, size_t n, struct buf *out) {
    buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) buf_printf(out, "%s%d", i ? "," : "", id[i]);
    buf_putc(out, ']');
}

static void put_ms(const char *name, int64_t ns, struct buf *out) {
    buf_printf(out, "\"%s\":", name);
    json_put_double(out, ns > 0 ? (double)ns * 1e-6 : 0);
}

void response_put_metrics(const struct generation *g, struct buf *out) {
    const struct choice *c = &g->choice[0];
    if (!g->s->config.per_request_metrics || g->n_choice != 1 || !c->first_ns || !c->scheduled_ns) {
        buf_puts(out, "null");
        return;
    }
    buf_putc(out, '{');
    put_ms("time_to_first_token_ms", c->first_ns - c->scheduled_ns, out);
    buf_putc(out, ',');
    put_ms("generation_time_ms", c->last_ns - c->first_ns, out);
    buf_putc(out, ',');
    put_ms("queue_time_ms", c->scheduled_ns - g->submitted_ns, out);
    buf_putc(out, ',');
    put_ms("mean_itl_ms", c->n_output > 1 ? (c->last_ns - c->first_ns) / (c->n_output - 1) : 0,
           out);
    buf_puts(out, ",\"tokens_per_second\":");
    int64_t ns = c->last_ns - c->scheduled_ns;
    json_put_double(out, ns > 0 ? (double)c->n_output / ((double)ns * 1e-9) : 0);
    buf_putc(out, '}');
}
