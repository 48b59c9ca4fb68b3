/* sumi trace: one prompt through a model, every intermediate array to a folder. The work is
 * model/trace.c's; here options become its parameters. */
#include "model/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "api/setup.h"

static sumi_status parse_ids(const char *text, int32_t vocab, struct ids *out, sumi_error *err) {
    for (const char *at = text; *at;) {
        char *end;
        long id = strtol(at, &end, 10);
        if (end == at || (*end && *end != ',') || id < 0 || id >= vocab)
            return fail_param(err, SUMI_ERR_ARG, "ids",
                              "--ids: expected ids from 0 to %d separated by commas, found "
                              "\"%.20s\"",
                              vocab - 1, at);
        if (!ids_push(out, (int32_t)id)) return NO_MEMORY(err, out->n * sizeof id);
        at = *end ? end + 1 : end;
    }
    return SUMI_OK;
}

static sumi_status prompt_ids(const struct setup *s, struct ids *out, sumi_error *err) {
    const char *ids = opt_string(s->o, "ids"), *prompt = opt_string(s->o, "prompt");
    if (!ids == !prompt)
        return fail_param(err, SUMI_ERR_ARG, "ids", "give the prompt as --ids or as --prompt");
    if (ids) TRY(parse_ids(ids, s->loaded.model->vocab, out, err));
    else if (!s->loaded.tokenizer)
        return fail_param(err, SUMI_ERR_MISSING, "prompt", "%s has no tokenizer: use --ids",
                          s->name);
    else TRY(tokenizer_encode(s->loaded.tokenizer, prompt, strlen(prompt), NULL, true, out, err));
    if (out->n == 0 || out->n > INT32_MAX)
        return fail_param(err, SUMI_ERR_ARG, "ids", "the prompt is empty");
    return SUMI_OK;
}

static sumi_status trace(struct setup *s, const struct options *o, sumi_error *err) {
    struct ids ids = {0};
    uint8_t *token_ok = NULL;
    sumi_status status;
    if (!opt_string(o, "out"))
        return fail_param(err, SUMI_ERR_ARG, "out", "name the folder for the arrays with --out");
    TRY(setup_load(s, o, WEIGHTS_FILE, err));
    if (s->replay)
        return fail_param(err, SUMI_ERR_ARG, "load-format",
                          "there is nothing to trace in a replay");
    TRY_OUT(prompt_ids(s, &ids, err));
    token_ok = loaded_token_mask(&s->loaded, err);
    if (!token_ok) TRY_OUT(SUMI_ERR_MEMORY);
    TRY_OUT(setup_device(s, err));
    struct trace_options t = {
        .ids = ids.data,
        .n_ids = (int32_t)ids.n,
        .out = opt_string(o, "out"),
        .bf16 = s->bf16,
        .chunk = (int32_t)opt_int(o, "chunk"),
        .generate = (int32_t)opt_int(o, "generate"),
        .route = opt_string(o, "route"),
        .layerwise = opt_string(o, "layerwise"),
        .token_ok = token_ok,
    };
    status = trace_run(s->loaded.model, s->device, &t, err);
out:
    mem_free(ids.data);
    mem_free(token_ok);
    return status;
}

int verb_trace(const struct options *o) {
    struct setup s = {0};
    sumi_error err = {0};
    cli_log_setup(o);
    sumi_status status = trace(&s, o, &err);
    setup_close(&s);
    return status == SUMI_OK ? EXIT_OK : cli_fail(&err);
}
