/* The command line's first word: in comes argv, out goes the exit status of a verb. Knows verbs by
 * name and nothing of what they do. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/option_table.h"
#include "cli/cli.h"

extern char **environ;

static const struct {
    unsigned bit;
    int (*run)(const struct options *o);
} verbs[] = {
    {VERB_SERVE, verb_serve},     {VERB_RUN, verb_run},
    {VERB_CHAT, verb_chat},       {VERB_PLAN, verb_plan},
    {VERB_INFO, verb_info},       {VERB_TOKENIZE, verb_tokenize},
    {VERB_TRACE, verb_trace},     {VERB_COMPLETION, verb_completion},
    {VERB_VERSION, verb_version}, {VERB_HELP, verb_help},
};

static bool is_option(const char *name) {
    for (size_t g = 0; g < option_table.n_group; g++)
        for (size_t i = 0; i < option_table.group[g]->n; i++)
            if (strcmp(option_table.group[g]->row[i].name, name) == 0) return true;
    return false;
}

int cli_fail(const sumi_error *err) {
    fprintf(stderr, "sumi: %s\n", err->msg[0] ? err->msg : sumi_status_text(err->status));
    bool usage = (err->status == SUMI_ERR_ARG || err->status == SUMI_ERR_UNSUPPORTED) &&
                 is_option(err->param);
    return usage ? EXIT_USAGE : EXIT_FAILED;
}

bool cli_print(struct buf *b) {
    bool ok = !b->failed && fwrite(buf_text(b), 1, b->len, stdout) == b->len && fflush(stdout) == 0;
    buf_reset(b);
    return ok;
}

void cli_log_setup(const struct options *o) {
    enum log_level level = LOG_INFO;
    bool quiet = options_verb(o)->bit != VERB_SERVE && !opt_given(o, "log-level");
    if (quiet) level = LOG_WARNING;
    else log_level_parse(opt_string(o, "log-level"), &level);
    log_set_level(level);
    for (size_t i = 0; i < options_note_count(o); i++) log_warning("%s", options_note(o, i));
}

sumi_status cli_read_stdin(char **text, size_t *n, sumi_error *err) {
    struct buf b = {.max = 16 << 20};
    char piece[1 << 14];
    ssize_t got;
    *text = NULL;
    while ((got = read(STDIN_FILENO, piece, sizeof piece)) > 0) buf_put(&b, piece, (size_t)got);
    if (got < 0) {
        buf_reset(&b);
        return fail_with(err, SUMI_ERR_IO, "standard input: %s", strerror(errno));
    }
    *n = b.len;
    *text = buf_take(&b);
    return *text ? SUMI_OK
                 : fail_with(err, SUMI_ERR_LIMIT, "standard input: more than 16 MiB of text");
}

static int usage_error(const struct opt_verb *verb, const sumi_error *err) {
    struct buf b = {0};
    opt_usage(&option_table, verb, &b);
    fprintf(stderr, "%ssumi %s: %s\n", buf_text(&b), verb->name, err->msg);
    buf_reset(&b);
    return EXIT_USAGE;
}

static int unknown_verb(const char *word) {
    const struct opt_verb *near = opt_nearest_verb(&option_table, word);
    fprintf(stderr, "usage: sumi COMMAND [MODEL] [options]\nsumi: unknown command \"%.100s\"",
            word);
    if (near) fprintf(stderr, "; did you mean \"sumi %s\"?\n", near->name);
    else fprintf(stderr, "; the commands are listed by: sumi help\n");
    return EXIT_USAGE;
}

static int overview(void) {
    struct buf b = {0};
    opt_overview(&option_table, &b);
    return cli_print(&b) ? EXIT_OK : EXIT_FAILED;
}

/* What every verb does the same: --help, --print-config, the check of the environment. */
static int run_verb(const struct opt_verb *verb, const struct options *o) {
    sumi_error err = {0};
    struct buf b = {0};
    if (!(verb->bit & VERB_HELP) && opt_string(o, "help")) {
        sumi_status status = opt_help(&option_table, verb, opt_string(o, "help"), &b, &err);
        if (status == SUMI_OK) return cli_print(&b) ? EXIT_OK : EXIT_FAILED;
        buf_reset(&b);
        return usage_error(verb, &err);
    }
    if (verb->bit & VERBS_LOAD && opt_bool(o, "fail-on-environ-validation") &&
        options_unknown_env(o)) {
        fail_with(&err, SUMI_ERR_ARG, "the environment variable %.200s is not known",
                  options_unknown_env(o));
        return usage_error(verb, &err);
    }
    if (verb->bit & VERBS_LOAD && opt_bool(o, "print-config")) {
        opt_print_config(o, &b);
        return cli_print(&b) ? EXIT_OK : EXIT_FAILED;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (verbs[i].bit == verb->bit) return verbs[i].run(o);
    return EXIT_FAILED;
}

int main(int argc, char **argv) {
    if (argc < 2) return overview();
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) word = "version";
    if (strcmp(word, "--help=man") == 0) {
        struct buf b = {0};
        opt_manual(&option_table, &b);
        return cli_print(&b) ? EXIT_OK : EXIT_FAILED;
    }
    if (strncmp(word, "--help", 6) == 0 || strcmp(word, "-h") == 0) return overview();
    const struct opt_verb *verb = opt_find_verb(&option_table, word);
    if (!verb) return unknown_verb(word);
    struct options *o;
    sumi_error err = {0};
    int result;
    if (options_open(&o, &option_table, verb, &err) != SUMI_OK) return cli_fail(&err);
    if (options_parse(o, argc - 2, (const char *const *)argv + 2, (const char *const *)environ,
                      &err) != SUMI_OK)
        result = usage_error(verb, &err);
    else result = run_verb(verb, o);
    options_close(o);
    return result;
}
