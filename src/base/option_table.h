/* sumi's own options and verbs: the only place where they are listed, and the only list of the
 * environment variables that sumi reads. What each is good for stands in the rows. */
#ifndef SUMI_BASE_OPTION_TABLE_H
#define SUMI_BASE_OPTION_TABLE_H

#include "base/option.h"

enum {
    VERB_SERVE = 1,
    VERB_RUN = 2,
    VERB_CHAT = 4,
    VERB_PLAN = 8,
    VERB_INFO = 16,
    VERB_TOKENIZE = 32,
    VERB_TRACE = 64,
    VERB_COMPLETION = 128,
    VERB_VERSION = 256,
    VERB_HELP = 512,

    VERBS_ALL = 1023,
    VERBS_TALK = VERB_SERVE | VERB_RUN | VERB_CHAT,     /* render conversations */
    VERBS_ENGINE = VERBS_TALK | VERB_PLAN,              /* plan or own an engine */
    VERBS_STEP = VERBS_ENGINE | VERB_TRACE,             /* run a model */
    VERBS_LOAD = VERBS_STEP | VERB_INFO | VERB_TOKENIZE /* open a checkpoint */
};

extern const struct opt_table option_table;

/* Reasons that several lists share. */
#define WHY_PYTHON      "there is no Python to load it into"
#define WHY_OTHER_KINDS "it belongs to kinds of models that sumi does not run"

/* The rows, one list a subject. */
#define OPTION_GROUPS(X)                                                                      \
    X(command)                                                                                \
    X(sumi)                                                                                   \
    X(prompt)                                                                                 \
    X(address) X(frontend) X(model) X(load) X(kernel) X(output) X(parallel) X(cache) X(media) \
        X(lora) X(log) X(scheduler) X(config) X(check) X(environment)
#define X(name) extern const struct opt_group option_group_##name;
OPTION_GROUPS(X)
#undef X

/* One row; further fields (.env, .alias, .flags) may follow. */
#define OPTION(class_, type_, verbs_, name_, fallback_, accept_, text_, ...)           \
    {                                                                                  \
        .kind = OPT_##class_, .type = OPT_##type_, .verbs = (verbs_), .name = (name_), \
        .fallback = (fallback_), .accept = (accept_), .text = (text_), __VA_ARGS__     \
    }
#define OPTION_GROUP(name, title_)                                     \
    const struct opt_group option_group_##name = {title_, rows_##name, \
                                                  sizeof rows_##name / sizeof *rows_##name}

#endif
