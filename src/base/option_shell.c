/* The manual page and shell completions, made from the table alone. */
#include <stdio.h>
#include <string.h>

#include "base/option_impl.h"

/* Text for roff: backslashes, hyphens that are to stay hyphens, a dot or quote at a line's start.
 */
static void roff(struct buf *out, const char *s) {
    if (*s == '.' || *s == '\'') buf_puts(out, "\\&");
    for (; *s; s++) {
        if (*s == '\\') buf_puts(out, "\\e");
        else if (*s == '-') buf_puts(out, "\\-");
        else buf_putc(out, *s);
    }
}

static void manual_row(const struct opt_table *t, const struct opt_row *r, struct buf *out) {
    static const char *const fate[] = {"", "Accepted and ignored: ", "Refused: ",
                                       "Only the default is accepted: ", "(Not built yet.) "};
    struct buf may = {0};
    buf_puts(out, ".TP\n\\fB");
    if (r->flags & OPT_ENV_ONLY) {
        roff(out, r->env);
    } else {
        if (r->alias) {
            roff(out, r->alias);
            buf_putc(out, ' ');
        }
        buf_puts(out, "\\-\\-");
        roff(out, r->name);
    }
    buf_puts(out, "\\fR\n");
    buf_puts(out, fate[r->kind]);
    roff(out, r->text);
    buf_puts(out, ".");
    opt_describe_accept(r, &may);
    if (may.len) {
        buf_puts(out, " Accepts: ");
        roff(out, buf_text(&may));
        buf_putc(out, '.');
    }
    if (r->fallback && *r->fallback) {
        buf_puts(out, " Default: ");
        roff(out, r->fallback);
        buf_putc(out, '.');
    }
    if (r->env && !(r->flags & OPT_ENV_ONLY)) buf_printf(out, " Environment: %s.", r->env);
    buf_puts(out, " Commands:");
    for (size_t i = 0; i < t->n_verb; i++)
        if (r->verbs & t->verb[i].bit) buf_printf(out, " %s", t->verb[i].name);
    buf_puts(out, ".\n");
    buf_reset(&may);
}

void opt_manual(const struct opt_table *t, struct buf *out) {
    buf_printf(out, ".TH %s 1\n.SH NAME\n%s \\- ", t->program, t->program);
    roff(out, t->summary);
    buf_printf(out, "\n.SH SYNOPSIS\n.B %s\n.I COMMAND\n[MODEL] [options]\n.SH COMMANDS\n",
               t->program);
    for (size_t i = 0; i < t->n_verb; i++) {
        buf_printf(out, ".TP\n\\fB%s\\fR ", t->verb[i].name);
        roff(out, t->verb[i].usage);
        buf_putc(out, '\n');
        roff(out, t->verb[i].text ? t->verb[i].text : t->verb[i].summary);
        buf_putc(out, '\n');
    }
    for (size_t g = 0; g < t->n_group; g++) {
        buf_puts(out, ".SH OPTIONS: ");
        roff(out, t->group[g]->title);
        buf_putc(out, '\n');
        for (size_t i = 0; i < t->group[g]->n; i++) manual_row(t, &t->group[g]->row[i], out);
    }
    buf_puts(out, ".SH EXIT STATUS\n0 on success, 1 when the work failed, 2 for a wrong command "
                  "line.\n");
}

/* Options worth offering: what is refused or ignored is not. */
static bool offered(const struct opt_row *r, const struct opt_verb *v) {
    return r->verbs & v->bit && !(r->flags & OPT_ENV_ONLY) &&
           (r->kind == OPT_I || r->kind == OPT_N);
}

/* Literal words of `accept`, blank separated; "" when there are ranges only. */
static void literal_words(const struct opt_row *r, struct buf *out) {
    struct opt_word w;
    const char *at = r->accept;
    while (opt_next_word(&at, &w)) {
        if (w.range) continue;
        if (out->len) buf_putc(out, ' ');
        buf_put(out, w.text, w.n);
    }
}

/* Calls `each` for every offered row of every group. */
static void for_rows(const struct opt_table *t, const struct opt_verb *v, struct buf *out,
                     void (*each)(const struct opt_table *t, const struct opt_verb *v,
                                  const struct opt_row *r, struct buf *out)) {
    for (size_t g = 0; g < t->n_group; g++)
        for (size_t i = 0; i < t->group[g]->n; i++)
            if (offered(&t->group[g]->row[i], v)) each(t, v, &t->group[g]->row[i], out);
}

static void put_name(const struct opt_table *t, const struct opt_verb *v, const struct opt_row *r,
                     struct buf *out) {
    (void)t;
    (void)v;
    buf_printf(out, " --%s", r->name);
}

static void verb_words(const struct opt_table *t, struct buf *out) {
    for (size_t i = 0; i < t->n_verb; i++) buf_printf(out, "%s%s", i ? " " : "", t->verb[i].name);
}

static void bash_values(const struct opt_table *t, const struct opt_verb *v,
                        const struct opt_row *r, struct buf *out) {
    (void)t;
    struct buf words = {0};
    literal_words(r, &words);
    if (words.len && r->type != OPT_BOOL)
        buf_printf(out, "        %s:--%s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n",
                   v->name, r->name, buf_text(&words));
    buf_reset(&words);
}

static void bash(const struct opt_table *t, struct buf *out) {
    const char *p = t->program;
    buf_printf(out, "# bash completion of %s\n_%s() {\n", p, p);
    buf_puts(out, "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                  "    local verb=${COMP_WORDS[1]} words=\n"
                  "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W '");
    verb_words(t, out);
    buf_puts(out, "' -- \"$cur\"))\n        return\n    fi\n    case $verb:$prev in\n");
    for (size_t i = 0; i < t->n_verb; i++) for_rows(t, &t->verb[i], out, bash_values);
    buf_puts(out, "    esac\n    case $verb in\n");
    for (size_t i = 0; i < t->n_verb; i++) {
        buf_printf(out, "        %s) words='", t->verb[i].name);
        for_rows(t, &t->verb[i], out, put_name);
        buf_puts(out, "' ;;\n");
    }
    buf_printf(out,
               "    esac\n    case $cur in\n"
               "        -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
               "        *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n    esac\n}\n"
               "complete -o filenames -F _%s %s\n",
               p, p);
}

/* A description inside single quotes, cut at the first bracket so that it stays short. */
static void quoted_text(struct buf *out, const char *s, const char *drop) {
    for (; *s && *s != '('; s++)
        if (!strchr(drop, *s)) buf_putc(out, *s);
}

static void zsh_row(const struct opt_table *t, const struct opt_verb *v, const struct opt_row *r,
                    struct buf *out) {
    (void)t;
    (void)v;
    struct buf words = {0};
    buf_printf(out, "                '--%s[", r->name);
    quoted_text(out, r->text, "'[]:");
    buf_putc(out, ']');
    literal_words(r, &words);
    if (r->type != OPT_BOOL && words.len) buf_printf(out, ":value:(%s)", buf_text(&words));
    else if (r->type != OPT_BOOL) buf_puts(out, ":value:_files");
    buf_puts(out, "' \\\n");
    buf_reset(&words);
}

static void zsh(const struct opt_table *t, struct buf *out) {
    const char *p = t->program;
    buf_printf(out,
               "#compdef %s\n_%s() {\n    local -a verbs\n    if (( CURRENT == 2 )); then\n"
               "        verbs=(\n",
               p, p);
    for (size_t i = 0; i < t->n_verb; i++) {
        buf_printf(out, "            '%s:", t->verb[i].name);
        quoted_text(out, t->verb[i].summary, "':");
        buf_puts(out, "'\n");
    }
    buf_puts(out, "        )\n        _describe command verbs\n        return\n    fi\n"
                  "    local verb=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
                  "    case $verb in\n");
    for (size_t i = 0; i < t->n_verb; i++) {
        buf_printf(out, "        %s)\n            _arguments \\\n", t->verb[i].name);
        for_rows(t, &t->verb[i], out, zsh_row);
        buf_puts(out, "                '*:file:_files' ;;\n");
    }
    buf_printf(out, "    esac\n}\ncompdef _%s %s\n", p, p);
}

static void fish_row(const struct opt_table *t, const struct opt_verb *v, const struct opt_row *r,
                     struct buf *out) {
    struct buf words = {0};
    literal_words(r, &words);
    buf_printf(out, "complete -c %s -n '__fish_seen_subcommand_from %s' -l %s", t->program, v->name,
               r->name);
    if (r->type != OPT_BOOL && words.len) buf_printf(out, " -x -a '%s'", buf_text(&words));
    else if (r->type != OPT_BOOL) buf_puts(out, " -r");
    buf_puts(out, " -d '");
    quoted_text(out, r->text, "'");
    buf_puts(out, "'\n");
    buf_reset(&words);
}

static void fish(const struct opt_table *t, struct buf *out) {
    const char *p = t->program;
    buf_printf(out, "# fish completion of %s\n", p);
    for (size_t i = 0; i < t->n_verb; i++) {
        buf_printf(out, "complete -c %s -f -n __fish_use_subcommand -a %s -d '", p,
                   t->verb[i].name);
        quoted_text(out, t->verb[i].summary, "'");
        buf_puts(out, "'\n");
    }
    for (size_t i = 0; i < t->n_verb; i++) for_rows(t, &t->verb[i], out, fish_row);
}

sumi_status opt_completion(const struct opt_table *t, const char *shell, struct buf *out,
                           sumi_error *err) {
    if (strcmp(shell, "bash") == 0) bash(t, out);
    else if (strcmp(shell, "zsh") == 0) zsh(t, out);
    else if (strcmp(shell, "fish") == 0) fish(t, out);
    else return fail_with(err, SUMI_ERR_ARG, "expected bash, zsh or fish, found \"%.100s\"", shell);
    return SUMI_OK;
}
