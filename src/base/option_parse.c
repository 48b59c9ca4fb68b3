/* The grammar of a command line and of the environment: words in, (row, value) pairs out to
 * option_value.c. It knows how many words an option takes and nothing about what they mean. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/option_impl.h"

struct words {
    int argc, at;
    const char *const *argv;
    int n_positional;
};

/* "--flag" with '_' turned to '-' up to the first '.' or '='; members keep their spelling. */
static bool normalise(const char *word, size_t n, char *out, size_t size) {
    bool name = true;
    if (n >= size) return false;
    for (size_t i = 0; i < n; i++) {
        if (word[i] == '.') name = false;
        out[i] = name && word[i] == '_' ? '-' : word[i];
    }
    out[n] = 0;
    return true;
}

static bool alias_is(const struct opt_row *r, const char *flag, size_t n) {
    for (const char *at = r->alias; at && *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        if (len == n && strncmp(at, flag, n) == 0) return true;
        at += len;
    }
    return false;
}

/* A short alias: "-tp", or one letter with digits behind it ("-O3"); then *value is the rest. */
static bool find_short(const struct options *o, const char *flag, size_t *row, const char **value) {
    for (size_t i = 0; i < o->n_row; i++)
        if (alias_is(o->row[i], flag, strlen(flag))) return *row = i, true;
    if (strlen(flag) > 2 && strspn(flag + 2, "0123456789") == strlen(flag + 2))
        for (size_t i = 0; i < o->n_row; i++)
            if (alias_is(o->row[i], flag, 2)) return *row = i, *value = flag + 2, true;
    return false;
}

static sumi_status unknown(const struct options *o, const char *flag, sumi_error *err) {
    char near[96];
    size_t row;
    const char *rest = NULL;
    if (flag[0] == '-' && flag[1] == '-' && find_short(o, flag + 1, &row, &rest) && !rest)
        return fail_param(err, SUMI_ERR_ARG, flag, "unknown option %.100s; did you mean %s?", flag,
                          flag + 1);
    opt_nearest(o, flag + strspn(flag, "-"), near, sizeof near);
    return fail_param(err, SUMI_ERR_ARG, flag, "unknown option %.100s%s%s%s", flag,
                      *near ? "; did you mean " : "", near, *near ? "?" : "");
}

static sumi_status ambiguous(const struct options *o, const char *flag, sumi_error *err) {
    struct buf list = {.max = 600};
    const char *name = flag + 2;
    char form[96];
    bool negated;
    for (size_t i = 0; i < o->n_row; i++)
        for (int f = 0; opt_form(o->row[i], f, form, sizeof form, &negated); f++)
            if (!(o->row[i]->flags & OPT_ENV_ONLY) && strncmp(form, name, strlen(name)) == 0)
                buf_printf(&list, "%s--%s", list.len ? ", " : "", form);
    fail_param(err, SUMI_ERR_ARG, flag, "%s is the beginning of several options: %s", flag,
               buf_text(&list));
    buf_reset(&list);
    return SUMI_ERR_ARG;
}

static bool is_negative_number(const char *word) {
    return word[0] == '-' && word[1] && strspn(word + 1, ".0123456789") == strlen(word + 1);
}

/* A word that begins an option: not "-", a negative number, or text with a blank before any '='. */
static bool is_flag(const char *word) {
    if (word[0] != '-' || !word[1] || is_negative_number(word)) return false;
    size_t n = strcspn(word, " \n=");
    return !word[n] || word[n] == '=';
}

/* Gathers the words that belong to the option and applies them. */
static sumi_status take(struct options *o, struct words *w, struct opt_input *in, const char *value,
                        sumi_error *err) {
    const struct opt_row *r = o->row[in->row];
    bool list = r->type == OPT_LIST;
    if (value) {
        in->text = &value;
        in->n = 1;
        if (r->type == OPT_BOOL && in->negated)
            return fail_param(err, SUMI_ERR_ARG, r->name, "%s takes no value", in->label);
    } else if (r->type != OPT_BOOL && !(r->flags & OPT_STOP)) {
        in->text = w->argv + w->at;
        while (w->at < w->argc && (in->n == 0 || list) && !is_flag(w->argv[w->at])) {
            w->at++;
            in->n++;
        }
        if (in->n == 0 && !list && !(r->flags & OPT_MAYBE))
            return fail_param(err, SUMI_ERR_ARG, r->name,
                              "%s needs a value (a value that begins with '-': %s=VALUE)",
                              in->label, in->label);
    }
    return opt_apply(o, in, err);
}

static sumi_status flag(struct options *o, struct words *w, sumi_error *err) {
    const char *word = w->argv[w->at++];
    const char *eq = strchr(word, '=');
    const char *value = eq ? eq + 1 : NULL, *dot;
    char name[256];
    bool append = false;
    if (!normalise(word, eq ? (size_t)(eq - word) : strlen(word), name, sizeof name))
        return fail_param(err, SUMI_ERR_ARG, "", "option name longer than 255 characters");
    struct opt_input in = {.source = OPT_FROM_COMMAND, .label = name};
    char base[256];
    snprintf(base, sizeof base, "%s", name);
    if ((dot = strchr(name, '.')) != NULL && !is_negative_number(name)) {
        size_t n = strlen(name);
        base[dot - name] = 0;
        in.member = dot + 1;
        if (name[n - 1] == '+') {
            append = true;
            name[n - 1] = 0;
        }
    }
    in.append = append;
    if (base[1] == '-') {
        switch (opt_lookup(o, base + 2, strlen(base + 2), true, &in.row, &in.negated)) {
        case OPT_NO_MATCH: return unknown(o, base, err);
        case OPT_AMBIGUOUS: return ambiguous(o, base, err);
        case OPT_MATCH: break;
        }
    } else if (!find_short(o, base, &in.row, &value)) {
        return unknown(o, base, err);
    }
    if (in.member && o->row[in.row]->type != OPT_JSON)
        return fail_param(err, SUMI_ERR_ARG, o->row[in.row]->name,
                          "%s has no members: it is no "
                          "JSON option",
                          base);
    TRY(take(o, w, &in, value, err));
    if (o->row[in.row]->flags & OPT_STOP) w->at = w->argc;
    return SUMI_OK;
}

static sumi_status positional(struct options *o, struct words *w, sumi_error *err) {
    const char *word = w->argv[w->at++];
    const char *name =
        w->n_positional < OPT_MAX_POSITIONAL ? o->verb->positional[w->n_positional] : NULL;
    if (!name) return fail_param(err, SUMI_ERR_ARG, "", "unexpected argument \"%.200s\"", word);
    w->n_positional++;
    struct opt_input in = {.row = opt_index(o, name),
                           .source = OPT_FROM_COMMAND,
                           .label = name,
                           .text = &word,
                           .n = 1};
    TRY(opt_apply(o, &in, err));
    o->value[in.row].positional = true;
    return SUMI_OK;
}

static const char *env_find(const char *const *environment, const char *name, size_t n) {
    for (; *environment; environment++)
        if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
            return *environment + n + 1;
    return NULL;
}

static sumi_status row_env(struct options *o, size_t row, const char *const *environment,
                           sumi_error *err) {
    for (const char *at = o->row[row]->env; at && *at;) {
        size_t n = strcspn(at, ",");
        const char *value = env_find(environment, at, n);
        char label[96];
        snprintf(label, sizeof label, "%.*s", (int)n, at);
        if (value && *value) {
            struct opt_input in = {
                .row = row, .source = OPT_FROM_ENV, .label = label, .text = &value, .n = 1};
            return opt_apply(o, &in, err);
        }
        at += n;
        at += *at == ',';
    }
    return SUMI_OK;
}

static bool env_known(const struct options *o, const char *name, size_t n) {
    const struct opt_table *t = o->table;
    for (size_t g = 0; g < t->n_group; g++)
        for (size_t i = 0; i < t->group[g]->n; i++)
            for (const char *at = t->group[g]->row[i].env; at && *at;) {
                size_t len = strcspn(at, ",");
                if (len == n && strncmp(at, name, n) == 0) return true;
                at += len;
                at += *at == ',';
            }
    return false;
}

static sumi_status unknown_env(struct options *o, const char *const *environment, sumi_error *err) {
    for (; *environment; environment++) {
        size_t n = strcspn(*environment, "=");
        bool ours = false;
        for (const char *at = o->table->env_prefix; at && *at; at += *at == ',') {
            size_t len = strcspn(at, ",");
            ours |= len <= n && strncmp(*environment, at, len) == 0;
            at += len;
        }
        if (!ours || env_known(o, *environment, n)) continue;
        TRY(opt_note(o, err, "the environment variable %.*s is not used", (int)(n < 200 ? n : 200),
                     *environment));
        if (!o->unknown_env && !(o->unknown_env = mem_string(*environment, n)))
            return NO_MEMORY(err, n);
    }
    return SUMI_OK;
}

static sumi_status config_file(struct options *o, sumi_error *err) {
    size_t row = opt_index(o, "config");
    if (row == o->n_row || o->value[row].source == OPT_FROM_DEFAULT) return SUMI_OK;
    const char *path = o->value[row].text;
    char *text;
    size_t n;
    TRY(file_read(path, 1 << 20, &text, &n, err));
    sumi_status status = options_config(o, text, n, path, err);
    mem_free(text);
    return status;
}

/* The command line goes first: a weaker source never overwrites a stronger one, and the name of
 * the config file is on it. */
sumi_status options_parse(struct options *o, int argc, const char *const *argv,
                          const char *const *environment, sumi_error *err) {
    struct words w = {.argc = argc, .argv = argv};
    bool only_positional = false;
    while (w.at < argc) {
        if (!only_positional && strcmp(argv[w.at], "--") == 0) {
            only_positional = true;
            w.at++;
        } else if (!only_positional && is_flag(argv[w.at])) {
            TRY(flag(o, &w, err));
        } else {
            TRY(positional(o, &w, err));
        }
    }
    TRY(config_file(o, err));
    if (!environment) return SUMI_OK;
    for (size_t i = 0; i < o->n_row; i++) TRY(row_env(o, i, environment, err));
    return unknown_env(o, environment, err);
}

sumi_status options_set(struct options *o, const char *name, const char *value, sumi_error *err) {
    struct opt_input in = {
        .source = OPT_FROM_COMMAND, .label = name, .text = &value, .n = value != NULL};
    if (opt_lookup(o, name, strlen(name), false, &in.row, &in.negated) != OPT_MATCH)
        return unknown(o, name, err);
    return opt_apply(o, &in, err);
}
