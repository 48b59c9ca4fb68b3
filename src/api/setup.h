/* From options to something that answers: model files, memory, template and parsers, device,
 * engine. Shared by the verbs that load a model; each takes the stages it needs, in this order. */
#ifndef SUMI_API_SETUP_H
#define SUMI_API_SETUP_H

#include "api/memory.h"
#include "base/option.h"
#include "chat/dialect.h"
#include "chat/prompt.h"
#include "engine/engine.h"
#include "model/load.h"
#include "model/runner.h"

struct setup {
    const struct options *o; /* borrowed */

    /* setup_load */
    char *path;           /* directory or file; NULL only with dummy or replay weights */
    char *name;           /* MODEL as typed, or the name of the shipped model */
    bool shipped;         /* no MODEL was given: the one that comes with sumi */
    bool replay;          /* no weights: requests say what is answered */
    bool bf16;            /* activations; else float32 */
    char *tokenizer_path; /* or NULL */
    char *template_text;  /* --chat-template, or NULL */
    struct loaded loaded;
    int64_t weight_bytes;

    /* setup_plan */
    struct memory_plan plan;

    /* setup_chat */
    struct chat_template *chat_template; /* NULL: the model has none */
    struct prompt_env prompt;
    const struct dialect *reasoning, *tools;
    struct json_object *sampling; /* defaults (object) or NULL */
    int32_t max_tokens_cap, default_max_tokens;

    /* setup_engine */
    struct device *device;
    struct runner *runner;
    struct stepper stepper;
    int32_t *eos; /* [loaded.n_stop] */
    struct engine *engine;
    struct step_watch {
        int64_t n_prompt; /* rows to watch for on a terminal; 0: nothing is shown */
        int64_t done;
        struct stepper inner;
    } watch;
};

/* Finds the files and reads them. `weights` is what the verb needs; --load-format may lower it. */
sumi_status setup_load(struct setup *s, const struct options *o, enum weight_source weights,
                       sumi_error *err);
sumi_status setup_plan(struct setup *s, sumi_error *err);
sumi_status setup_chat(struct setup *s, sumi_error *err);
sumi_status setup_engine(struct setup *s, sumi_error *err);
/* --device, --cpu-isa and --threads: opens what steps run on; setup_engine does it itself. */
sumi_status setup_device(struct setup *s, sumi_error *err);
void setup_close(struct setup *s); /* any stage, also after a failure */

/* Model, sizes, stop ids with their sources, memory: one log line each. */
void setup_log(const struct setup *s);

/* Where files come from, without opening them (setup_find.c). */
sumi_status setup_find_model(struct setup *s, sumi_error *err);
/* The folder of the running program, NUL-terminated; cut to size. */
sumi_status program_folder(char *out, size_t size, sumi_error *err);
sumi_status setup_find_tokenizer(struct setup *s, sumi_error *err);
sumi_status setup_find_template(struct setup *s, sumi_error *err);

#endif
