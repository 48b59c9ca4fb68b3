/* strftime_now: a moment and a pattern in, text out, with the names of the C locale whatever the
 * process has set. Directives as glibc has them; a naive local time, so the zone is empty. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "text/template_eval.h"

static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};

/* Directives that stand for others. */
static const char *composite(char c) {
    switch (c) {
    case 'c': return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x': return "%m/%d/%y";
    case 'F': return "%Y-%m-%d";
    case 'T':
    case 'X': return "%H:%M:%S";
    case 'R': return "%H:%M";
    case 'r': return "%I:%M:%S %p";
    default: return NULL;
    }
}

static int days_in_year(int year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 366 : 365;
}

/* ISO 8601: week 1 holds the year's first Thursday. */
static int iso_week(const struct tm *t, int *year) {
    int weekday = (t->tm_wday + 6) % 7;
    int week = (t->tm_yday - weekday + 10) / 7;
    *year = t->tm_year + 1900;
    if (week < 1) {
        --*year;
        int yday = t->tm_yday + days_in_year(*year);
        return (yday - weekday + 10) / 7;
    }
    if (week == 53 && t->tm_yday - weekday + 3 >= days_in_year(*year)) {
        ++*year;
        return 1;
    }
    return week;
}

/* A number with its width and the pad character that stands for it by default. */
struct field {
    long value;
    int width;
    char pad;
};

static bool number(char c, const struct tm *t, struct field *out) {
    int iso_year, week = iso_week(t, &iso_year), year = t->tm_year + 1900;
    int hour = t->tm_hour % 12 ? t->tm_hour % 12 : 12;
    switch (c) {
    case 'd': *out = (struct field){t->tm_mday, 2, '0'}; return true;
    case 'e': *out = (struct field){t->tm_mday, 2, ' '}; return true;
    case 'H': *out = (struct field){t->tm_hour, 2, '0'}; return true;
    case 'k': *out = (struct field){t->tm_hour, 2, ' '}; return true;
    case 'I': *out = (struct field){hour, 2, '0'}; return true;
    case 'l': *out = (struct field){hour, 2, ' '}; return true;
    case 'j': *out = (struct field){t->tm_yday + 1, 3, '0'}; return true;
    case 'm': *out = (struct field){t->tm_mon + 1, 2, '0'}; return true;
    case 'M': *out = (struct field){t->tm_min, 2, '0'}; return true;
    case 'S': *out = (struct field){t->tm_sec, 2, '0'}; return true;
    case 'f': *out = (struct field){0, 6, '0'}; return true;
    case 'u': *out = (struct field){t->tm_wday ? t->tm_wday : 7, 1, '0'}; return true;
    case 'w': *out = (struct field){t->tm_wday, 1, '0'}; return true;
    case 'y': *out = (struct field){year % 100, 2, '0'}; return true;
    case 'Y': *out = (struct field){year, 1, '0'}; return true;
    case 'C': *out = (struct field){year / 100, 2, '0'}; return true;
    case 'G': *out = (struct field){iso_year, 1, '0'}; return true;
    case 'g': *out = (struct field){iso_year % 100, 2, '0'}; return true;
    case 'V': *out = (struct field){week, 2, '0'}; return true;
    case 'U': *out = (struct field){(t->tm_yday + 7 - t->tm_wday) / 7, 2, '0'}; return true;
    case 'W':
        *out = (struct field){(t->tm_yday + 7 - (t->tm_wday + 6) % 7) / 7, 2, '0'};
        return true;
    default: return false;
    }
}

static const char *word(char c, const struct tm *t, int *length) {
    *length = 99;
    switch (c) {
    case 'a': *length = 3; return days[t->tm_wday];
    case 'A': return days[t->tm_wday];
    case 'b':
    case 'h': *length = 3; return months[t->tm_mon];
    case 'B': return months[t->tm_mon];
    case 'p': return t->tm_hour < 12 ? "AM" : "PM";
    case 'P': return t->tm_hour < 12 ? "am" : "pm";
    case 'z':
    case 'Z': return "";
    case 'n': return "\n";
    case 't': return "\t";
    case '%': return "%";
    default: return NULL;
    }
}

/* Puts the directive at p, behind the percent sign; returns the bytes it takes, 0: none. */
static size_t directive(struct buf *b, const char *p, size_t n, const struct tm *t) {
    size_t used = n && strchr("-_0^", *p) && *p ? 1 : 0;
    char flag = used ? *p : 0;
    if (used == n) return 0;
    struct field f;
    int length;
    const char *text = word(p[used], t, &length);
    if (text && flag == '^') {
        for (int i = 0; text[i] && i < length; i++)
            buf_putc(b, text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - 32) : text[i]);
    } else if (text) {
        buf_printf(b, "%.*s", length, text);
    } else if (number(p[used], t, &f)) {
        if (flag == '_' || flag == '0') f.pad = flag == '_' ? ' ' : '0';
        if (flag == '-') f.width = 1;
        buf_printf(b, f.pad == '0' ? "%0*ld" : "%*ld", f.width, f.value);
    } else {
        return 0;
    }
    return used + 1;
}

static void put_time(struct buf *b, const char *p, size_t n, const struct tm *t) {
    for (size_t i = 0; i < n; i++) {
        if (p[i] != '%') {
            buf_putc(b, p[i]);
            continue;
        }
        const char *other = i + 1 < n ? composite(p[i + 1]) : NULL;
        if (other) {
            /* One level: a composite holds no composite. */
            for (const char *q = other; *q; q++) {
                if (*q == '%') q += directive(b, q + 1, strlen(q + 1), t);
                else buf_putc(b, *q);
            }
            i++;
            continue;
        }
        size_t used = directive(b, p + i + 1, n - i - 1, t);
        if (!used) buf_putc(b, '%');
        i += used;
    }
}

sumi_status tpl_strftime(struct eval *ev, const struct str *format, struct value *out) {
    time_t now = ev->limits.now ? (time_t)ev->limits.now : time(NULL);
    struct tm t;
    if (!localtime_r(&now, &t)) return tpl_fail(ev, "strftime_now: a time out of range");
    if (format->n > 4096) return tpl_limit(ev, "strftime_now: a format over 4096 bytes");
    struct buf b = {0};
    put_time(&b, format->p, format->n, &t);
    size_t mark = tpl_mark(ev);
    sumi_status status = b.failed
                             ? NO_MEMORY(ev->err, b.len)
                             : tpl_put(ev, buf_text(&b), b.len, !format->mask && format->trusted);
    buf_reset(&b);
    return status == SUMI_OK ? tpl_take(ev, mark, out) : status;
}
