/* In: text, and which of its bytes are trusted. Out: the added tokens in it. Knows nothing of what
 * lies between. */
#include "text/added.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/nfc.h"
#include "text/pretok_unicode.h"

static int compare_ids(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

sumi_status added_open(struct added *a, const struct vocab *v, const struct tokenizer_lists *lists,
                       sumi_error *err) {
    *a = (struct added){.vocab = v};
    struct buf b = {0};
    sumi_status status = SUMI_OK;
    a->ids = mem_alloc(lists->n_added * sizeof *a->ids);
    if (!a->ids) return NO_MEMORY(err, lists->n_added * sizeof *a->ids);
    for (size_t i = 0; i < lists->n_added; i++) {
        const struct added_token *t = &lists->added[i];
        a->ids[a->n++] = t->id;
        if (!t->normalized) {
            TRY_OUT(trie_add(&a->raw, t->text, t->len, t->id, err));
            continue;
        }
        buf_clear(&b);
        if (lists->nfc) TRY_OUT(nfc_append(t->text, t->len, NULL, &b, NULL, err));
        else buf_put(&b, t->text, t->len);
        TRY_OUT(b.failed ? NO_MEMORY(err, t->len) : SUMI_OK);
        TRY_OUT(trie_add(&a->normal, b.data, b.len, t->id, err));
    }
    qsort(a->ids, a->n, sizeof *a->ids, compare_ids);
out:
    buf_reset(&b);
    if (status != SUMI_OK) added_close(a);
    return status;
}

void added_close(struct added *a) {
    trie_reset(&a->raw);
    trie_reset(&a->normal);
    mem_free(a->ids);
    *a = (struct added){0};
}

/* ---- characters around a token ---- */

static bool is_space(uint32_t c) {
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

/* Whether a character that is newer than utf8proc is a letter, mark or decimal digit. */
static bool is_new_word(uint32_t c) {
    for (size_t i = 0; i < n_unicode_additions; i++) {
        const struct unicode_range *r = &unicode_additions[i];
        if (c < r->first || c > r->last) continue;
        return r->property[0] == 'L' || r->property[0] == 'M' || strcmp(r->property, "Nd") == 0;
    }
    return false;
}

/* Rust's \w: alphabetic, marks, decimal digits, connectors, joiners. */
static bool is_word(uint32_t c) {
    switch (utf8proc_category((int32_t)c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    case UTF8PROC_CATEGORY_CN: return is_new_word(c);
    default: /* the alphabetic symbols: circled and squared letters */
        return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) ||
               (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
               (c >= 0x1F170 && c <= 0x1F189);
    }
}

/* The character that ends at text[at], at > 0; returns where it starts. */
static size_t char_before(const char *text, size_t at, uint32_t *c) {
    size_t i = at - 1;
    while (i > 0 && ((unsigned char)text[i] & 0xC0) == 0x80) i--;
    utf8_decode(text + i, at - i, c);
    return i;
}

static bool stands_alone(const struct added_scan *s, size_t start, size_t end) {
    uint32_t c = 0;
    if (start > 0) {
        char_before(s->text, start, &c);
        if (is_word(c)) return false;
    }
    if (end < s->n) {
        utf8_decode(s->text + end, s->n - end, &c);
        if (is_word(c)) return false;
    }
    return true;
}

/* ---- the scan ---- */

/* Longest token of the set at text[at]; *id -1: none. With `trusted`, only whole within trusted
 * bytes, so that text before a marker cannot hide it by completing a longer one. */
static size_t longest_at(const struct trie *set, const struct added_scan *s, size_t at,
                         int32_t *id) {
    size_t end = at;
    *id = -1;
    int32_t node = 0;
    for (size_t i = at; i < s->n; i++) {
        if (s->trusted && !s->trusted[i]) break;
        node = trie_step(set, node, (unsigned char)s->text[i]);
        if (!node) break;
        if (set->node[node].value < 0) continue;
        *id = set->node[node].value;
        end = i + 1;
    }
    return end;
}

bool added_next(const struct added *a, const struct trie *set, struct added_scan *s) {
    if (set->n == 0) return false;
    while (s->at < s->n) {
        size_t start = s->at;
        if (!set->first[(unsigned char)s->text[start]]) {
            s->at++;
            continue;
        }
        size_t end = longest_at(set, s, start, &s->id);
        if (s->id < 0) {
            s->at++;
            continue;
        }
        /* A token that is found but not wanted still covers its text, as in the library. */
        s->at = end;
        uint32_t flags = a->vocab->entry[s->id].flags;
        if (!s->trusted && !s->specials && flags & TOKEN_SPECIAL) continue;
        if (flags & TOKEN_SINGLE_WORD && !stands_alone(s, start, end)) continue;
        uint32_t c = 0;
        if (flags & TOKEN_LSTRIP)
            for (size_t before; start > s->done; start = before) {
                before = char_before(s->text, start, &c);
                if (!is_space(c)) break;
            }
        if (flags & TOKEN_RSTRIP)
            for (int len; end < s->n; end += (size_t)len) {
                len = utf8_decode(s->text + end, s->n - end, &c);
                if (!is_space(c)) break;
            }
        s->start = start > s->done ? start : s->done;
        s->done = end;
        return true;
    }
    return false;
}
