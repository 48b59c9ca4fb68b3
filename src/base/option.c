/* The store of options: in come a table and a verb, out come values by name. Names are found here
 * (exact, alias, negated form, beginning, nearest); what a value may be is option_value.c's affair,
 * where it came from option_parse.c's. */
#include "base/option.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/option_impl.h"

static void value_reset(struct opt_value *v) {
    mem_free(v->text);
    for (size_t i = 0; i < v->n; i++) mem_free(v->item[i]);
    mem_free(v->item);
    json_object_put(v->whole);
    json_object_put(v->member);
    json_object_put(v->json);
}

void options_close(struct options *o) {
    if (!o) return;
    for (size_t i = 0; o->value && i < o->n_row; i++) value_reset(&o->value[i]);
    for (size_t i = 0; i < o->n_note; i++) mem_free(o->note[i]);
    mem_free(o->note);
    mem_free(o->value);
    mem_free(o->row);
    mem_free(o->unknown_env);
    mem_free(o);
}

const struct opt_verb *options_verb(const struct options *o) {
    return o->verb;
}

static sumi_status fill_defaults(struct options *o, sumi_error *err) {
    for (size_t i = 0; i < o->n_row; i++) {
        const struct opt_row *r = o->row[i];
        if (!r->fallback) continue;
        struct opt_input in = {
            .row = i, .source = OPT_FROM_DEFAULT, .label = r->name, .text = &r->fallback, .n = 1};
        TRY(opt_apply(o, &in, err));
    }
    return SUMI_OK;
}

sumi_status options_open(struct options **out, const struct opt_table *table,
                         const struct opt_verb *verb, sumi_error *err) {
    *out = NULL;
    size_t n = 0;
    for (size_t g = 0; g < table->n_group; g++)
        for (size_t i = 0; i < table->group[g]->n; i++)
            n += (table->group[g]->row[i].verbs & verb->bit) != 0;
    struct options *o = mem_zero(1, sizeof *o);
    if (!o) return NO_MEMORY(err, sizeof *o);
    o->table = table;
    o->verb = verb;
    o->row = mem_zero(n, sizeof *o->row);
    o->value = mem_zero(n, sizeof *o->value);
    if (!o->row || !o->value) {
        options_close(o);
        return NO_MEMORY(err, n * sizeof *o->value);
    }
    for (size_t g = 0; g < table->n_group; g++)
        for (size_t i = 0; i < table->group[g]->n; i++)
            if (table->group[g]->row[i].verbs & verb->bit)
                o->row[o->n_row++] = &table->group[g]->row[i];
    sumi_status status = fill_defaults(o, err);
    if (status != SUMI_OK) options_close(o);
    else *out = o;
    return status;
}

sumi_status opt_note(struct options *o, sumi_error *err, const char *fmt, ...) {
    struct buf text = {.max = 4096};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    char **list = mem_resize(o->note, o->n_note + 1, sizeof *list);
    char *copy = buf_take(&text);
    if (list) o->note = list;
    if (!list || !copy) {
        mem_free(copy);
        return NO_MEMORY(err, 4096);
    }
    o->note[o->n_note++] = copy;
    return SUMI_OK;
}

size_t options_note_count(const struct options *o) {
    return o->n_note;
}

const char *options_note(const struct options *o, size_t i) {
    return o->note[i];
}

const char *options_unknown_env(const struct options *o) {
    return o->unknown_env;
}

bool opt_form(const struct opt_row *r, int i, char *out, size_t n, bool *negated) {
    const char *name = r->name, *bare = name, *other = "no-";
    *negated = i > 0;
    if (i > 0 && r->type != OPT_BOOL) return false;
    if (strncmp(name, "enable-", 7) == 0) {
        bare = name + 7;
        other = "disable-";
    } else if (strncmp(name, "disable-", 8) == 0) {
        bare = name + 8;
        other = "enable-";
    }
    switch (i) {
    case 0: snprintf(out, n, "%s", name); return true;
    case 1: snprintf(out, n, "%s%s", other, bare); return true;
    case 2: snprintf(out, n, "no-%s", name); return bare != name;
    default: return false;
    }
}

/* Calls itself an alias of the row: one of the blank-separated words, without its dashes. */
static bool has_alias(const struct opt_row *r, const char *name, size_t n, int dashes) {
    for (const char *at = r->alias; at && *at;) {
        size_t len = strcspn(at, " ");
        int d = at[1] == '-' ? 2 : 1;
        if (d == dashes && len - (size_t)d == n && strncmp(at + d, name, n) == 0) return true;
        at += len;
        at += strspn(at, " ");
    }
    return false;
}

enum opt_match opt_lookup(const struct options *o, const char *name, size_t n, bool prefixes,
                          size_t *row, bool *negated) {
    char form[96];
    bool minus;
    size_t found = 0;
    for (size_t i = 0; i < o->n_row; i++) {
        const struct opt_row *r = o->row[i];
        if (r->flags & OPT_ENV_ONLY) continue;
        if ((strlen(r->name) == n && strncmp(r->name, name, n) == 0) || has_alias(r, name, n, 2)) {
            *row = i;
            *negated = false;
            return OPT_MATCH;
        }
    }
    /* Pass 0 takes whole negated forms, pass 1 beginnings of any form. */
    for (int pass = 0; pass < (prefixes ? 2 : 1) && !found; pass++)
        for (size_t i = 0; i < o->n_row; i++)
            for (int f = 0; opt_form(o->row[i], f, form, sizeof form, &minus); f++) {
                if (o->row[i]->flags & OPT_ENV_ONLY) break;
                if (strncmp(form, name, n) != 0 || (pass == 0 && form[n])) continue;
                if (found && *row == i && *negated == minus) continue;
                *row = i;
                *negated = minus;
                found++;
            }
    return found == 0 ? OPT_NO_MATCH : found == 1 ? OPT_MATCH : OPT_AMBIGUOUS;
}

size_t opt_index(const struct options *o, const char *name) {
    size_t i = 0;
    while (i < o->n_row && strcmp(o->row[i]->name, name) != 0) i++;
    return i;
}

/* Edits that turn a into b, a swap of neighbours counting once; capped so that the rows fit the
 * stack. Letters added at either side of a shared part are cheaper than letters replaced. */
static int distance(const char *a, const char *b) {
    enum { MAX = 80 };
    int row[3][MAX + 1];
    size_t na = strlen(a), nb = strlen(b);
    if (na > MAX || nb > MAX) return 2 * MAX;
    for (size_t j = 0; j <= nb; j++) row[1][j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        int *two = row[(i + 2) % 3], *one = row[i % 3], *now = row[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            int best = one[j - 1] + 2 * (a[i - 1] != b[j - 1]);
            if (one[j] + 1 < best) best = one[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                two[j - 2] + 1 < best)
                best = two[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[(na + 1) % 3][nb];
}

/* Near enough to suggest: a third of the longer name may differ. */
static bool is_near(int d, const char *a, const char *b) {
    size_t na = strlen(a), nb = strlen(b);
    return d <= 2 || (size_t)d * 2 <= (na > nb ? na : nb);
}

void opt_nearest(const struct options *o, const char *name, char *out, size_t n) {
    int best = 1 << 20;
    char form[96];
    bool negated;
    out[0] = 0;
    for (size_t i = 0; i < o->n_row; i++) {
        if (o->row[i]->flags & OPT_ENV_ONLY || o->row[i]->kind == OPT_R) continue;
        for (int f = 0; opt_form(o->row[i], f, form, sizeof form, &negated); f++) {
            int d = distance(name, form);
            if (d >= best || !is_near(d, name, form)) continue;
            best = d;
            snprintf(out, n, "--%s", form);
        }
    }
}

const struct opt_verb *opt_find_verb(const struct opt_table *t, const char *name) {
    for (size_t i = 0; i < t->n_verb; i++)
        if (strcmp(t->verb[i].name, name) == 0) return &t->verb[i];
    return NULL;
}

const struct opt_verb *opt_nearest_verb(const struct opt_table *t, const char *name) {
    const struct opt_verb *found = NULL;
    int best = 1 << 20;
    for (size_t i = 0; i < t->n_verb; i++) {
        int d = distance(name, t->verb[i].name);
        if (d >= best || !is_near(d, name, t->verb[i].name)) continue;
        best = d;
        found = &t->verb[i];
    }
    return found;
}

static const struct opt_value none;

static const struct opt_value *value_of(const struct options *o, const char *name) {
    size_t i = opt_index(o, name);
    assert(i < o->n_row);
    return i < o->n_row ? &o->value[i] : &none;
}

bool opt_given(const struct options *o, const char *name) {
    const struct opt_value *v = value_of(o, name);
    return v->source != OPT_FROM_DEFAULT || v->member_source != OPT_FROM_DEFAULT;
}

bool opt_positional(const struct options *o, const char *name) {
    return value_of(o, name)->positional;
}

enum opt_source opt_source(const struct options *o, const char *name) {
    return value_of(o, name)->source;
}

bool opt_bool(const struct options *o, const char *name) {
    return value_of(o, name)->b;
}

int64_t opt_int(const struct options *o, const char *name) {
    return value_of(o, name)->i;
}

double opt_double(const struct options *o, const char *name) {
    return value_of(o, name)->d;
}

const char *opt_string(const struct options *o, const char *name) {
    return value_of(o, name)->text;
}

struct opt_list opt_list(const struct options *o, const char *name) {
    const struct opt_value *v = value_of(o, name);
    return (struct opt_list){(const char *const *)v->item, v->n};
}

struct json_object *opt_json(const struct options *o, const char *name) {
    return value_of(o, name)->json;
}
