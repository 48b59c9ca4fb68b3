/* What the parts of the option machinery share among themselves. */
#ifndef SUMI_BASE_OPTION_IMPL_H
#define SUMI_BASE_OPTION_IMPL_H

#include "base/option.h"

struct opt_value {
    enum opt_source source; /* of the whole value */
    bool positional, noted;
    bool b;
    int64_t i;
    double d;
    char *text;
    char **item; /* [n] */
    size_t n;
    struct json_object *whole;  /* the value given as one text */
    struct json_object *member; /* object collected from --x.member, or NULL */
    enum opt_source member_source;
    struct json_object *json; /* both merged */
};

struct options {
    const struct opt_table *table;
    const struct opt_verb *verb;
    size_t n_row;
    const struct opt_row **row; /* [n_row] rows of this verb */
    struct opt_value *value;    /* [n_row] */
    char **note;
    size_t n_note;
    char *unknown_env;
};

/* One value on its way in. */
struct opt_input {
    size_t row;
    enum opt_source source;
    const char *label;       /* as the user wrote it, for messages */
    const char *const *text; /* [n]; n 0: a bare flag */
    size_t n;
    bool negated;       /* the bare flag means false */
    const char *member; /* dotted path below a JSON option, or NULL */
    bool append;        /* --x.member+ */
};

enum opt_match { OPT_NO_MATCH, OPT_MATCH, OPT_AMBIGUOUS };

/* Finds a long name without dashes (exact name, long alias, negated form, then an unambiguous
 * beginning if `prefixes`). */
enum opt_match opt_lookup(const struct options *o, const char *name, size_t n, bool prefixes,
                          size_t *row, bool *negated);
/* The option of this verb nearest to `name`, as "--name" in out, or "". */
void opt_nearest(const struct options *o, const char *name, char *out, size_t n);

sumi_status opt_apply(struct options *o, const struct opt_input *in, sumi_error *err);
sumi_status opt_note(struct options *o, sumi_error *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
size_t opt_index(const struct options *o, const char *name); /* n_row: not there */

struct opt_word { /* one alternative of `accept` */
    const char *text;
    size_t n;          /* the word before '=' */
    const char *canon; /* what it means (may be the word itself) */
    size_t canon_n;
    bool range;
};
bool opt_next_word(const char **at, struct opt_word *w);
void opt_describe_accept(const struct opt_row *r, struct buf *out); /* "auto, 1..65535" */
bool opt_parse_bool(const char *text, bool *out);

/* Forms of a row's name: i = 0 the name itself, then the negated ones of a boolean. False at the
 * end. */
bool opt_form(const struct opt_row *r, int i, char *out, size_t n, bool *negated);

#endif
