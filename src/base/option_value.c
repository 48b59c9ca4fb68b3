/* What a value may be: texts come in with the row they are meant for, checked and converted values
 * go into the store. Where a text came from matters only for precedence and for messages. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/option_impl.h"

bool opt_parse_bool(const char *text, bool *out) {
    static const char *const yes[] = {"true", "1", "yes", "on"}, *const no[] = {"false", "0", "no",
                                                                                "off"};
    for (int i = 0; i < 4; i++) {
        if (strcasecmp(text, yes[i]) == 0) return *out = true, true;
        if (strcasecmp(text, no[i]) == 0) return *out = false, true;
    }
    return false;
}

/* 1000^k for the lower-case suffixes, 1024^k for the upper-case ones; 0: no such suffix. */
static int64_t suffix_factor(char c) {
    const char *lower = "kmgt", *upper = "KMGT", *p;
    int64_t factor = 1;
    if (c && (p = strchr(lower, c)))
        for (const char *q = lower; q <= p; q++) factor *= 1000;
    else if (c && (p = strchr(upper, c)))
        for (const char *q = upper; q <= p; q++) factor *= 1024;
    else factor = 0;
    return factor;
}

bool opt_parse_size(const char *text, int64_t *out) {
    bool minus = *text == '-';
    int64_t value = 0, factor = 1;
    if (minus || *text == '+') text++;
    size_t n_digit = strspn(text, "0123456789");
    const char *fraction = text[n_digit] == '.' ? text + n_digit + 1 : NULL;
    size_t n_fraction = fraction ? strspn(fraction, "0123456789") : 0;
    const char *end = fraction ? fraction + n_fraction : text + n_digit;
    if (n_digit + n_fraction == 0) return false;
    if (*end) {
        factor = suffix_factor(*end);
        if (!factor || end[1]) return false;
    }
    if (fraction && factor % 1000 != 0) return false; /* 25.6K would be no whole number */
    for (size_t i = 0; i < n_digit; i++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, text[i] - '0', &value))
            return false;
    if (__builtin_mul_overflow(value, factor, &value)) return false;
    for (size_t i = 0; i < n_fraction && factor >= 10; i++) {
        factor /= 10;
        if (__builtin_add_overflow(value, factor * (fraction[i] - '0'), &value)) return false;
    }
    *out = minus ? -value : value;
    return true;
}

static bool parse_int(const char *text, int64_t *out) {
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno || strchr(" \t\n", *text)) return false;
    *out = v;
    return true;
}

static bool parse_number(const char *text, double *out) {
    char *end;
    if (strspn(text, "+-.0123456789eE") != strlen(text)) return false;
    *out = strtod(text, &end);
    return end != text && !*end && isfinite(*out);
}

bool opt_next_word(const char **at, struct opt_word *w) {
    if (!*at || !**at) return false;
    size_t len = strcspn(*at, "|");
    w->text = w->canon = *at;
    w->n = w->canon_n = len;
    w->range = false;
    for (size_t i = 0; i + 1 < len; i++) w->range |= (*at)[i] == '.' && (*at)[i + 1] == '.';
    const char *eq = memchr(*at, '=', len);
    if (eq) {
        w->n = (size_t)(eq - *at);
        w->canon = eq + 1;
        w->canon_n = len - w->n - 1;
    }
    *at += len;
    if (**at) ++*at;
    return true;
}

void opt_describe_accept(const struct opt_row *r, struct buf *out) {
    struct opt_word w;
    const char *at = r->accept, *sep = "";
    while (opt_next_word(&at, &w)) {
        buf_puts(out, sep);
        if (w.range && *w.text == '>') buf_puts(out, "above ");
        buf_put(out, w.text + (*w.text == '>'), w.n - (*w.text == '>'));
        sep = ", ";
    }
}

/* Compares a number with "lo..hi", ">lo..hi", "lo..", "..hi". */
static bool in_range(const struct opt_word *w, double x) {
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)w->n, w->text);
    char *dots = strstr(text, ".."), *lo = text;
    if (!dots) return false;
    *dots = 0;
    bool open = *lo == '>';
    lo += open;
    if (*lo && (open ? x <= strtod(lo, NULL) : x < strtod(lo, NULL))) return false;
    return !dots[2] || x <= strtod(dots + 2, NULL);
}

static bool is_numeric(const struct opt_row *r) {
    return r->type == OPT_INT || r->type == OPT_SIZE || r->type == OPT_NUMBER;
}

static bool to_number(const struct opt_row *r, const char *text, double *d, int64_t *i) {
    *i = 0;
    if (r->type == OPT_NUMBER) return parse_number(text, d);
    if (!(r->type == OPT_SIZE ? opt_parse_size(text, i) : parse_int(text, i))) return false;
    *d = (double)*i;
    return true;
}

/* True if one alternative of `accept` takes the text; canon (of the size n) receives what it
 * stands for. */
static bool accepted(const struct opt_row *r, const char *accept, const char *text, char *canon,
                     size_t n) {
    struct opt_word w;
    double d = 0, e;
    int64_t i;
    bool number = is_numeric(r) && to_number(r, text, &d, &i);
    snprintf(canon, n, "%s", text);
    while (opt_next_word(&accept, &w)) {
        char word[96];
        snprintf(word, sizeof word, "%.*s", (int)w.n, w.text);
        if (w.range) {
            if (number && in_range(&w, d)) return true;
        } else if (strcmp(word, text) == 0) {
            snprintf(canon, n, "%.*s", (int)w.canon_n, w.canon);
            return true;
        } else if (number && to_number(r, word, &e, &i) && d == e) {
            return true;
        }
    }
    return false;
}

static sumi_status refuse(const struct opt_row *r, const char *label, const char *text,
                          sumi_error *err) {
    struct buf may = {0};
    opt_describe_accept(r, &may);
    if (r->fallback && *r->fallback && strcmp(r->fallback, "[]") != 0) {
        if (may.len) buf_puts(&may, ", ");
        buf_puts(&may, r->fallback);
    }
    const char *value = text ? text : "";
    char blank = text ? ' ' : '\0';
    if (r->kind == OPT_R)
        fail_param(err, SUMI_ERR_UNSUPPORTED, r->name, "%s is not supported: %s", label, r->text);
    else if (r->kind == OPT_D)
        fail_param(err, SUMI_ERR_UNSUPPORTED, r->name, "%s%.1s%.200s is not supported: %s%s%s",
                   label, &blank, value, r->text, may.len ? "; accepted: " : "", buf_text(&may));
    else
        fail_param(err, SUMI_ERR_UNSUPPORTED, r->name, "%s%.1s%.200s is not supported yet%s%s",
                   label, &blank, value, may.len ? "; accepted: " : "", buf_text(&may));
    buf_reset(&may);
    return SUMI_ERR_UNSUPPORTED;
}

static sumi_status wrong_value(const struct opt_row *r, const char *label, const char *text,
                               sumi_error *err) {
    static const char *const type[] = {
        "true or false", "a whole number", "a whole number (also 1k = 1000, 1K = 1024, m, g, t)",
        "a number",      "a text",         "a list",
        "JSON"};
    struct buf may = {0};
    opt_describe_accept(r, &may);
    bool words = r->type == OPT_TEXT || r->type == OPT_LIST;
    fail_param(err, SUMI_ERR_ARG, r->name, "%s: expected %s%s%s%s, found \"%.200s\"", label,
               may.len && words ? "one of" : type[r->type], may.len && !words ? " (" : " ",
               buf_text(&may), may.len && !words ? ")" : "", text);
    buf_reset(&may);
    return SUMI_ERR_ARG;
}

static sumi_status set_text(struct opt_value *v, const char *text, sumi_error *err) {
    char *copy = mem_string(text, strlen(text));
    if (!copy) return NO_MEMORY(err, strlen(text));
    mem_free(v->text);
    v->text = copy;
    return SUMI_OK;
}

/* One text for a bool, number or text row. */
static sumi_status set_scalar(struct options *o, const struct opt_input *in, const char *text,
                              sumi_error *err) {
    const struct opt_row *r = o->row[in->row];
    struct opt_value *v = &o->value[in->row];
    char canon[512];
    bool limited = r->kind == OPT_D || r->kind == OPT_N;
    if (r->type == OPT_BOOL) {
        bool b, fallback = false;
        if (!opt_parse_bool(text, &b)) return wrong_value(r, in->label, text, err);
        if (r->fallback) opt_parse_bool(r->fallback, &fallback);
        if ((limited && b != fallback && !accepted(r, r->accept, b ? "true" : "false", canon, 8)) ||
            (r->kind == OPT_R && b != fallback))
            return refuse(r, in->label, in->n ? text : NULL, err);
        v->b = b;
        return set_text(v, b ? "true" : "false", err);
    }
    if (limited) {
        bool fallback = r->fallback && (accepted(r, r->fallback, text, canon, sizeof canon) ||
                                        strcmp(r->fallback, text) == 0);
        if (!fallback && in->source != OPT_FROM_DEFAULT &&
            !accepted(r, r->accept, text, canon, sizeof canon))
            return refuse(r, in->label, text, err);
    } else if (r->accept && !accepted(r, r->accept, text, canon, sizeof canon)) {
        return wrong_value(r, in->label, text, err);
    }
    if (r->accept) text = canon;
    if (is_numeric(r) && !(*text == 0 && r->flags & OPT_MAYBE) && !to_number(r, text, &v->d, &v->i))
        return wrong_value(r, in->label, text, err);
    return set_text(v, text, err);
}

/* Items as separate texts, or one text that is a JSON array of strings. */
static sumi_status set_list(struct options *o, const struct opt_input *in, sumi_error *err) {
    const struct opt_row *r = o->row[in->row];
    struct opt_value *v = &o->value[in->row];
    struct json_object *array = NULL;
    size_t n = in->n;
    if (n == 1 && in->text[0][0] == '[') {
        TRY(json_parse(&array, in->text[0], strlen(in->text[0]), in->label, err));
        n = json_object_array_length(array);
    }
    if ((r->kind == OPT_N || r->kind == OPT_D) && n > 0 && in->source != OPT_FROM_DEFAULT) {
        json_object_put(array);
        return refuse(r, in->label, in->text[0], err);
    }
    char **item = mem_zero(n, sizeof *item);
    sumi_status status = item ? SUMI_OK : NO_MEMORY(err, n * sizeof *item);
    for (size_t i = 0; i < n && status == SUMI_OK; i++) {
        const char *text = in->text[array ? 0 : i];
        char canon[512];
        if (array) {
            struct json_object *e = json_object_array_get_idx(array, i);
            if (!json_is(e, json_type_string)) {
                status = wrong_value(r, in->label, text, err);
                break;
            }
            text = json_object_get_string(e);
        }
        if (r->accept && !accepted(r, r->accept, text, canon, sizeof canon))
            status = wrong_value(r, in->label, text, err);
        else if (!(item[i] = mem_string(text, strlen(text)))) status = NO_MEMORY(err, strlen(text));
    }
    json_object_put(array);
    if (status != SUMI_OK) {
        for (size_t i = 0; item && i < n; i++) mem_free(item[i]);
        mem_free(item);
        return status;
    }
    for (size_t i = 0; i < v->n; i++) mem_free(v->item[i]);
    mem_free(v->item);
    v->item = item;
    v->n = n;
    return SUMI_OK;
}

/* A member's value: JSON if it is JSON, a number with a suffix, else the text itself. */
static struct json_object *member_value(const char *text, size_t n) {
    struct json_object *o = NULL;
    int64_t i;
    char number[64];
    if (json_parse(&o, text, n, "", NULL) == SUMI_OK) return o;
    snprintf(number, sizeof number, "%.*s", (int)(n < 63 ? n : 63), text);
    if (n < sizeof number && opt_parse_size(number, &i)) return json_object_new_int64(i);
    return json_object_new_string_len(text, (int)n);
}

static sumi_status set_member(struct opt_value *v, const struct opt_input *in, const char *text,
                              sumi_error *err) {
    if (!v->member && !(v->member = json_object_new_object())) return NO_MEMORY(err, 64);
    struct json_object *at = v->member;
    const char *path = in->member;
    char key[256];
    for (;;) {
        size_t n = strcspn(path, ".");
        if (n == 0 || n >= sizeof key)
            return fail_with(err, SUMI_ERR_ARG, "%s: expected member names separated by dots",
                             in->label);
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        path += n;
        if (!*path++) break;
        struct json_object *next = json_get(at, key);
        if (!json_is(next, json_type_object)) {
            next = json_object_new_object();
            if (!next || json_object_object_add(at, key, next) != 0) return NO_MEMORY(err, 64);
        }
        at = next;
    }
    if (!in->append) {
        if (json_object_object_add(at, key, member_value(text, strlen(text))) != 0)
            return NO_MEMORY(err, 64);
        return SUMI_OK;
    }
    struct json_object *list = json_get(at, key);
    if (!json_is(list, json_type_array)) {
        list = json_object_new_array();
        if (!list || json_object_object_add(at, key, list) != 0) return NO_MEMORY(err, 64);
    }
    while (*text) {
        size_t n = strcspn(text, ",");
        if (json_object_array_add(list, member_value(text, n)) != 0) return NO_MEMORY(err, 64);
        text += n;
        text += *text == ',';
    }
    return SUMI_OK;
}

static sumi_status merge(struct json_object *into, struct json_object *from, sumi_error *err) {
    json_object_object_foreach(from, key, value) {
        struct json_object *old = json_get(into, key);
        if (json_is(old, json_type_object) && json_is(value, json_type_object)) {
            TRY(merge(old, value, err));
        } else if (json_object_object_add(into, key, json_object_get(value)) != 0) {
            json_object_put(value);
            return NO_MEMORY(err, 64);
        }
    }
    return SUMI_OK;
}

/* Members beat the whole value unless that came from a stronger source. */
static sumi_status merge_json(struct opt_value *v, sumi_error *err) {
    json_object_put(v->json);
    v->json = NULL;
    bool members = v->member && v->member_source >= v->source;
    if (v->whole && json_object_deep_copy(v->whole, &v->json, NULL) != 0) return NO_MEMORY(err, 64);
    if (!members) return SUMI_OK;
    if (!json_is(v->json, json_type_object)) {
        json_object_put(v->json);
        if (!(v->json = json_object_new_object())) return NO_MEMORY(err, 64);
    }
    return merge(v->json, v->member, err);
}

static sumi_status set_json(struct options *o, const struct opt_input *in, const char *text,
                            sumi_error *err) {
    const struct opt_row *r = o->row[in->row];
    struct opt_value *v = &o->value[in->row];
    bool limited = (r->kind == OPT_D || r->kind == OPT_N) && in->source != OPT_FROM_DEFAULT;
    if (in->member) {
        if (limited) return refuse(r, in->label, text, err);
        TRY(set_member(v, in, text, err));
        v->member_source = in->source;
        return merge_json(v, err);
    }
    struct json_object *value = NULL;
    TRY(json_parse(&value, text, strlen(text), in->label, err));
    sumi_status status = SUMI_OK;
    char canon[64];
    if (limited && value && !(v->whole && json_object_equal(v->whole, value)))
        status = refuse(r, in->label, text, err);
    else if (value && r->accept &&
             !accepted(r, r->accept, json_type_to_name(json_object_get_type(value)), canon,
                       sizeof canon))
        status = wrong_value(r, in->label, text, err);
    if (status != SUMI_OK) {
        json_object_put(value);
        return status;
    }
    json_object_put(v->whole);
    v->whole = value;
    v->source = in->source;
    return merge_json(v, err);
}

sumi_status opt_apply(struct options *o, const struct opt_input *in, sumi_error *err) {
    const struct opt_row *r = o->row[in->row];
    struct opt_value *v = &o->value[in->row];
    enum opt_source *source = in->member ? &v->member_source : &v->source;
    const char *text = in->n ? in->text[0] : r->type == OPT_BOOL ? "true" : "";
    if (in->n == 0 && in->negated) text = "false";
    if (in->source < *source) return SUMI_OK;
    if (in->source == *source && in->source == OPT_FROM_COMMAND && !in->member)
        TRY(opt_note(o, err, "%s is given more than once; the last one counts", in->label));
    if (r->kind == OPT_R && r->type != OPT_BOOL && in->source != OPT_FROM_DEFAULT)
        return refuse(r, in->label, NULL, err);
    if (r->kind == OPT_A && in->source != OPT_FROM_DEFAULT) {
        if (!v->noted && !(r->flags & OPT_QUIET))
            TRY(opt_note(o, err, "%s is accepted and ignored: %s", in->label, r->text));
        v->noted = true;
        *source = in->source;
        return SUMI_OK;
    }
    if (r->type == OPT_LIST) TRY(set_list(o, in, err));
    else if (r->type == OPT_JSON) TRY(set_json(o, in, text, err));
    else TRY(set_scalar(o, in, text, err));
    *source = in->source;
    return SUMI_OK;
}
