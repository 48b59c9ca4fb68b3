/* The verbs and the list of option groups. The rows stand in option_table_*.c: http (how the server
 * speaks), model (what is loaded), engine (how it runs), own (what is sumi's alone). Rows that
 * other engines' users know keep their names, defaults and meaning. */
#include "base/option_table.h"

static const struct opt_verb verbs[] = {
    {"serve",
     VERB_SERVE,
     {"model", NULL},
     "[MODEL] [options]",
     "serve a model over HTTP",
     "Serves a model over HTTP with OpenAI's API: chat, completions, models, tokenize, metrics. "
     "MODEL is a directory, a .gguf file, or org/name[:file or quantisation] in the Hugging Face "
     "cache; without it the small model that ships with sumi is served, its parsers for reasoning "
     "and tool calls switched on."},
    {"run",
     VERB_RUN,
     {"model", "prompt"},
     "[MODEL [PROMPT]] [options]",
     "answer one prompt",
     "Answers one prompt and prints the answer while it is made. Without a prompt, and without "
     "--prompt, it is read from standard input."},
    {"chat",
     VERB_CHAT,
     {"model", NULL},
     "[MODEL] [options]",
     "talk to a model in the terminal",
     "Talks to a model. Ctrl-C stops an answer, /help lists the commands, /quit or Ctrl-D ends."},
    {"plan",
     VERB_PLAN,
     {"model", NULL},
     "[MODEL] [options]",
     "say what memory a model needs, without loading it",
     "Prints what the weights, the cache of keys and values and the work space take, and how many "
     "sequences of which length fit."},
    {"info",
     VERB_INFO,
     {"model", NULL},
     "[MODEL] [options]",
     "say what is in a checkpoint",
     "Prints configuration, tensor types, parameter count, stop tokens with their sources, and how "
     "the tags of the template are tokenised."},
    {"tokenize",
     VERB_TOKENIZE,
     {"model", "text"},
     "[MODEL [TEXT]] [options]",
     "turn text into token ids, or back",
     "Prints the token ids of TEXT, or of standard input; with --decode the text of ids."},
    {"trace",
     VERB_TRACE,
     {"model", NULL},
     "[MODEL] --out DIR [options]",
     "write intermediate results as .npy files",
     "Runs a prompt and writes one .npy file per array: logits, hidden, attn_out, mlp_out, "
     "final_norm, router_ids, router_weights, generated."},
    {"completion",
     VERB_COMPLETION,
     {"shell", NULL},
     "bash|zsh|fish",
     "print a completion script for a shell",
     "Prints a completion script: source it, or put it where the shell looks for such scripts."},
    {"version", VERB_VERSION, {NULL, NULL}, "", "print the version", NULL},
    {"help",
     VERB_HELP,
     {"topic", NULL},
     "[COMMAND|man]",
     "explain a command; 'help man' prints the manual page",
     NULL},
};

static const struct opt_group *const groups[] = {
#define X(name) &option_group_##name,
    OPTION_GROUPS(X)
#undef X
};

const struct opt_table option_table = {
    .program = "sumi",
    .summary = "Runs large language models and serves them over HTTP.",
    .group = groups,
    .n_group = sizeof groups / sizeof *groups,
    .verb = verbs,
    .n_verb = sizeof verbs / sizeof *verbs,
    .env_prefix = "VLLM_",
};
