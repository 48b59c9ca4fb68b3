/* Regular expressions of tokenizer.json (Oniguruma's default syntax) in PCRE2's terms. */
#ifndef SUMI_TEXT_PRETOK_REGEX_H
#define SUMI_TEXT_PRETOK_REGEX_H

#include "base/buf.h"
#include "base/status.h"

/* Appends to `out` a PCRE2 pattern (for PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE |
 * PCRE2_NO_AUTO_POSSESS, newline LF) that matches what Oniguruma 6.9 with Unicode 16 does. pattern
 * [n] is valid UTF-8. Additions are given for characters newer than `unicode`, PCRE2's Unicode
 * major version. Callouts stand where a match could go on for long without the match limit seeing
 * it.
 * Errors: FORMAT for what is no regular expression; UNSUPPORTED, naming the construct, for what
 * the two engines read differently or what could run code, recurse or reach limits of PCRE2:
 * back references, callouts, verbs, set operations, POSIX brackets, ...; LIMIT for over 64 KiB or
 * groups nested over 64 deep; MEMORY. */
sumi_status regex_translate(const char *pattern, size_t n, int unicode, struct buf *out,
                            sumi_error *err);

#endif
