/* Help texts and the resolved configuration, made from the table alone. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/jsonw.h"
#include "base/option_impl.h"

enum { WIDTH = 96, COLUMN = 26 };

static const char *meta(const struct opt_row *r) {
    static const char *const name[] = {"", "N", "N", "X", "TEXT", "TEXT ...", "JSON"};
    return name[r->type];
}

/* Words of `text` from column `at` on, broken at WIDTH, continued at `indent`. */
static void wrap(struct buf *out, const char *text, size_t at, size_t indent) {
    bool first = true;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (!first && at + 1 + n > WIDTH) {
            buf_printf(out, "\n%*s", (int)indent, "");
            at = indent;
            first = true;
        }
        if (!first) {
            buf_putc(out, ' ');
            at++;
        }
        buf_put(out, text, n);
        at += n;
        first = false;
        text += n;
        text += strspn(text, " ");
    }
    buf_putc(out, '\n');
}

/* "what it does (one of ...; default ...; environment ...)", or what becomes of it. */
static void describe(const struct opt_row *r, struct buf *out) {
    struct buf may = {0};
    opt_describe_accept(r, &may);
    const char *sep = " (";
    if (r->kind == OPT_A) buf_printf(out, "accepted and ignored: %s", r->text);
    else if (r->kind == OPT_R) buf_printf(out, "refused: %s", r->text);
    else if (r->kind == OPT_D) buf_printf(out, "only the default is accepted: %s", r->text);
    else buf_puts(out, r->text);
    if (r->kind == OPT_N) {
        buf_printf(out, "%snot built yet: only the default is accepted", sep);
        sep = "; ";
    }
    if (may.len && (r->kind == OPT_I || r->kind == OPT_N || r->kind == OPT_D)) {
        buf_printf(out, "%s%s%s", sep, r->kind == OPT_I ? "" : "and ", buf_text(&may));
        sep = "; ";
    }
    bool off = r->type == OPT_BOOL && r->fallback && strcmp(r->fallback, "false") == 0;
    if (r->fallback && *r->fallback && !off && r->kind != OPT_R) {
        buf_printf(out, "%sdefault %s", sep, r->fallback);
        sep = "; ";
    }
    if (r->env && !(r->flags & OPT_ENV_ONLY)) {
        buf_printf(out, "%senvironment: %s", sep, r->env);
        sep = "; ";
    }
    if (*sep == ';') buf_putc(out, ')');
    buf_reset(&may);
}

static void show_row(const struct opt_row *r, struct buf *out) {
    struct buf head = {0}, text = {0};
    buf_puts(&head, "  ");
    if (r->flags & OPT_ENV_ONLY) {
        buf_puts(&head, r->env);
    } else {
        for (const char *at = r->alias; at && *at; at += strspn(at, " ")) {
            size_t n = strcspn(at, " ");
            buf_put(&head, at, n);
            buf_puts(&head, ", ");
            at += n;
        }
        buf_printf(&head, "--%s%s%s", r->name, r->type == OPT_BOOL ? "" : " ", meta(r));
    }
    buf_puts(out, buf_text(&head));
    if (head.len + 1 > COLUMN) buf_printf(out, "\n%*s", COLUMN, "");
    else buf_printf(out, "%*s", COLUMN - (int)head.len, "");
    describe(r, &text);
    wrap(out, buf_text(&text), COLUMN, COLUMN);
    out->failed |= head.failed | text.failed;
    buf_reset(&head);
    buf_reset(&text);
}

void opt_usage(const struct opt_table *t, const struct opt_verb *verb, struct buf *out) {
    buf_printf(out, "usage: %s %s%s%s\n", t->program, verb->name, *verb->usage ? " " : "",
               verb->usage);
}

/* Rows of the verb for which keep() holds, under their group titles. Returns how many. */
static size_t show_rows(const struct opt_table *t, const struct opt_verb *verb,
                        bool (*keep)(const struct opt_group *g, const struct opt_row *r,
                                     const char *topic),
                        const char *topic, struct buf *out) {
    size_t shown = 0;
    for (size_t g = 0; g < t->n_group; g++) {
        const struct opt_group *group = t->group[g];
        bool title = false;
        for (size_t i = 0; i < group->n; i++) {
            const struct opt_row *r = &group->row[i];
            if (!(r->verbs & verb->bit) || !keep(group, r, topic)) continue;
            if (!title) buf_printf(out, "\n%s:\n", group->title);
            title = true;
            show_row(r, out);
            shown++;
        }
    }
    return shown;
}

static bool keep_common(const struct opt_group *g, const struct opt_row *r, const char *topic) {
    (void)g;
    (void)topic;
    return r->flags & OPT_COMMON;
}

static bool keep_all(const struct opt_group *g, const struct opt_row *r, const char *topic) {
    (void)g;
    (void)r;
    (void)topic;
    return true;
}

static bool keep_group(const struct opt_group *g, const struct opt_row *r, const char *topic) {
    (void)r;
    return strncasecmp(g->title, topic, strlen(topic)) == 0;
}

static bool keep_name(const struct opt_group *g, const struct opt_row *r, const char *topic) {
    (void)g;
    return !(r->flags & OPT_ENV_ONLY) && strcmp(r->name, topic) == 0;
}

static bool keep_part(const struct opt_group *g, const struct opt_row *r, const char *topic) {
    (void)g;
    return strstr(r->name, topic) != NULL;
}

sumi_status opt_help(const struct opt_table *t, const struct opt_verb *verb, const char *topic,
                     struct buf *out, sumi_error *err) {
    char name[96];
    bool all = topic && strcmp(topic, "all") == 0;
    if (!topic || !*topic || all) {
        opt_usage(t, verb, out);
        buf_putc(out, '\n');
        wrap(out, verb->text ? verb->text : verb->summary, 0, 0);
        if (all) {
            show_rows(t, verb, keep_all, NULL, out);
            return SUMI_OK;
        }
        size_t n_row = 0, n = show_rows(t, verb, keep_common, NULL, out);
        for (size_t g = 0; g < t->n_group; g++)
            for (size_t i = 0; i < t->group[g]->n; i++)
                n_row += (t->group[g]->row[i].verbs & verb->bit) != 0;
        if (n < n_row)
            buf_printf(out,
                       "\nAll %zu options: --help=all. One of them, or a group: --help=NAME.\n",
                       n_row);
        return SUMI_OK;
    }
    topic += strspn(topic, "-");
    snprintf(name, sizeof name, "%s", topic);
    for (char *p = name; *p; p++)
        if (*p == '_') *p = '-';
    if (show_rows(t, verb, keep_name, name, out)) return SUMI_OK;
    if (show_rows(t, verb, keep_group, topic, out)) return SUMI_OK;
    if (show_rows(t, verb, keep_part, name, out)) return SUMI_OK;
    struct buf titles = {.max = 600};
    for (size_t g = 0; g < t->n_group; g++)
        buf_printf(&titles, "%s%s", g ? ", " : "", t->group[g]->title);
    fail_with(err, SUMI_ERR_MISSING,
              "no option or group is called \"%.100s\"; all options: --help=all; groups: %s", topic,
              buf_text(&titles));
    buf_reset(&titles);
    return SUMI_ERR_MISSING;
}

void opt_overview(const struct opt_table *t, struct buf *out) {
    buf_printf(out, "usage: %s COMMAND [MODEL] [options]\n\n", t->program);
    wrap(out, t->summary, 0, 0);
    buf_puts(out, "\nCommands:\n");
    for (size_t i = 0; i < t->n_verb; i++) {
        buf_printf(out, "  %-12s", t->verb[i].name);
        wrap(out, t->verb[i].summary, 14, 14);
    }
    buf_printf(out, "\nOptions of a command: %s COMMAND --help\n", t->program);
}

static bool is_plain(const char *s) {
    static const char *const taken[] = {"true", "false", "null", "yes", "no", "on", "off"};
    if (!*s || strchr("-?:,[]{}#&*!|>'\"%@` ~", *s)) return false;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcasecmp(s, taken[i]) == 0) return false;
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || strchr(":#,[]{}\\", *s)) return false;
    return true;
}

static void put_text(struct buf *out, const char *s) {
    if (is_plain(s)) buf_puts(out, s);
    else json_put_text(out, s);
}

void opt_print_config(const struct options *o, struct buf *out) {
    static const char *const from[] = {"default", "environment", "config file", "command line"};
    for (size_t i = 0; i < o->n_row; i++) {
        const struct opt_row *r = o->row[i];
        const struct opt_value *v = &o->value[i];
        if ((r->kind != OPT_I && r->kind != OPT_N) || r->flags & (OPT_ENV_ONLY | OPT_STOP) ||
            strcmp(r->name, "config") == 0 || strcmp(r->name, "print-config") == 0)
            continue;
        enum opt_source source = v->source > v->member_source ? v->source : v->member_source;
        bool unset = r->type == OPT_LIST   ? source == OPT_FROM_DEFAULT && !v->n
                     : r->type == OPT_JSON ? !v->json
                                           : !v->text;
        if (unset) {
            buf_printf(out, "# %s:\n", r->name);
            continue;
        }
        if (r->flags & OPT_SECRET) {
            buf_printf(out, "# %s: set, not shown # %s\n", r->name, from[source]);
            continue;
        }
        buf_printf(out, "%s: ", r->name);
        if (r->type == OPT_LIST) {
            buf_putc(out, '[');
            for (size_t k = 0; k < v->n; k++) {
                buf_puts(out, k ? ", " : "");
                put_text(out, v->item[k]);
            }
            buf_putc(out, ']');
        } else if (r->type == OPT_JSON) {
            json_put_value(out, v->json, true);
        } else if (r->type == OPT_TEXT) {
            put_text(out, v->text);
        } else {
            buf_puts(out, v->text);
        }
        buf_printf(out, " # %s\n", from[source]);
    }
}
