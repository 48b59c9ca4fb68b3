/* Options as data: one table says which options exist, what they accept and what they mean, and
 * everything else follows from it: parsing, environment, config file, help, man page, completion.
 * The machinery knows no option by name; src/base/option_table.h holds sumi's own table.
 *
 * Precedence: command line over config file over environment over default. */
#ifndef SUMI_BASE_OPTION_H
#define SUMI_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/status.h"

enum opt_type {
    OPT_BOOL,   /* --x, --no-x; --enable-x and --disable-x are each other's negation */
    OPT_INT,    /* a whole number */
    OPT_SIZE,   /* a whole number, with k m g t (powers of 1000) or K M G T (of 1024) */
    OPT_NUMBER, /* a finite number */
    OPT_TEXT,
    OPT_LIST, /* several texts: --x a b c; on one flag also a JSON array: --x '["a", "b"]' */
    OPT_JSON  /* a JSON value; also --x.member value, --x.member+ item */
};

/* What becomes of an option: docs/command-line.md. */
enum opt_class {
    OPT_I, /* works as described */
    OPT_A, /* accepted and ignored; a note says so once */
    OPT_R, /* refused by name (a boolean may be given its default) */
    OPT_D, /* the default and the values in `accept` pass, others are refused */
    OPT_N  /* not built yet: as D, with another message */
};

enum opt_flag {
    OPT_COMMON = 1,   /* in the short help */
    OPT_ENV_ONLY = 2, /* an environment variable without a flag; `name` is for the accessors */
    OPT_SECRET = 4,   /* its value is never printed */
    OPT_MAYBE = 8,    /* the value may be left out (then "") */
    OPT_STOP = 16,    /* nothing after it is parsed: --help */
    OPT_QUIET = 32    /* class A without a note */
};

struct opt_row {
    const char *name;     /* long name, dashes, without the leading "--" */
    const char *alias;    /* others as written, blank separated: "-tp --old-name"; or NULL */
    const char *fallback; /* default as text, or NULL: unset */
    const char *accept;   /* alternatives separated by '|': word, word=meaning, lo..hi with either
                             side open, >lo..hi to leave lo out; NULL: anything of the type.
                             Classes D and N: the values that pass beside the default */
    const char *env;      /* environment variables, comma separated, first set one wins; or NULL */
    const char *text;     /* I and N: what it does; A: why it may be ignored; R, D: why refused */
    unsigned verbs;       /* bits of the verbs that take it */
    enum opt_type type;
    enum opt_class kind;
    unsigned flags;
};

struct opt_group {
    const char *title;
    const struct opt_row *row;
    size_t n;
};

enum { OPT_MAX_POSITIONAL = 2 };
struct opt_verb {
    const char *name;
    unsigned bit;
    const char *positional[OPT_MAX_POSITIONAL]; /* names of the rows they set, or NULL */
    const char *usage;                          /* "[MODEL] [options]" */
    const char *summary;                        /* one line */
    const char *text;                           /* a paragraph for --help and the manual, or NULL */
};

struct opt_table {
    const char *program, *summary;
    const struct opt_group *const *group; /* [n_group] */
    size_t n_group;
    const struct opt_verb *verb;
    size_t n_verb;
    const char *env_prefix; /* comma separated: variables that start so but are in no row get a
                               note */
};

enum opt_source { OPT_FROM_DEFAULT, OPT_FROM_ENV, OPT_FROM_FILE, OPT_FROM_COMMAND };

struct opt_list {
    const char *const *item;
    size_t n;
};

struct options;

/* Everything at its default. `table` and `verb` are kept. */
sumi_status options_open(struct options **out, const struct opt_table *table,
                         const struct opt_verb *verb, sumi_error *err);
void options_close(struct options *o); /* NULL is fine */
const struct opt_verb *options_verb(const struct options *o);

/* Reads environment ("NAME=value" strings, NULL at the end; or NULL), argv[0..argc) (without
 * program and verb) and the file that the option named "config" holds, if there is one. Errors are
 * SUMI_ERR_ARG or SUMI_ERR_UNSUPPORTED with the option in err->param. */
sumi_status options_parse(struct options *o, int argc, const char *const *argv,
                          const char *const *environment, sumi_error *err);
/* Sets one option as the command line would. value NULL: a bare flag. */
sumi_status options_set(struct options *o, const char *name, const char *value, sumi_error *err);
/* Applies a config file's text; `what` names it in messages. */
sumi_status options_config(struct options *o, const char *text, size_t n, const char *what,
                           sumi_error *err);

/* Things to tell the user once the log is set up: ignored options, repeated ones. */
size_t options_note_count(const struct options *o);
const char *options_note(const struct options *o, size_t i);
/* First variable with a known prefix that no row names, or NULL. */
const char *options_unknown_env(const struct options *o);

/* Values, borrowed until the next set or close. The name must be in the table: that is asserted. */
bool opt_given(const struct options *o, const char *name); /* not from the default */
bool opt_positional(const struct options *o, const char *name);
enum opt_source opt_source(const struct options *o, const char *name);
bool opt_bool(const struct options *o, const char *name);
int64_t opt_int(const struct options *o, const char *name);        /* 0 when unset */
double opt_double(const struct options *o, const char *name);      /* 0 when unset */
const char *opt_string(const struct options *o, const char *name); /* NULL when unset */
struct opt_list opt_list(const struct options *o, const char *name);
struct json_object *opt_json(const struct options *o, const char *name); /* NULL when unset */

/* A whole number as OPT_SIZE takes it. */
bool opt_parse_size(const char *text, int64_t *out);

/* Words, option names or verbs nearest to a mistyped one; NULL if nothing is near. */
const struct opt_verb *opt_find_verb(const struct opt_table *t, const char *name);
const struct opt_verb *opt_nearest_verb(const struct opt_table *t, const char *name);

/* Texts made from the table. */
void opt_usage(const struct opt_table *t, const struct opt_verb *verb, struct buf *out);
/* topic NULL or "": the common options; "all"; a group's title; an option; a part of a name.
 * SUMI_ERR_MISSING when nothing matches. */
sumi_status opt_help(const struct opt_table *t, const struct opt_verb *verb, const char *topic,
                     struct buf *out, sumi_error *err);
void opt_overview(const struct opt_table *t, struct buf *out); /* the verbs */
void opt_manual(const struct opt_table *t, struct buf *out);   /* roff, section 1 */
/* shell: "bash", "zsh" or "fish". */
sumi_status opt_completion(const struct opt_table *t, const char *shell, struct buf *out,
                           sumi_error *err);
/* The resolved options as a config file that options_config reads back to the same values. */
void opt_print_config(const struct options *o, struct buf *out);

#endif
