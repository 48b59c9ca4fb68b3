"""Write src/text/pretok_unicode.c: characters that Unicode 14 does not have and Unicode 16 does.

    make_unicode.py > src/text/pretok_unicode.c

PCRE2 of Debian 12 knows Unicode 14, the regular expressions of the `tokenizers` library know Unicode 16. What lies
between is asked of the library itself, one property at a time. Needs Python 3.11 (its unicodedata is Unicode 14).
"""
import sys
import unicodedata

from tokenizers import Regex, pre_tokenizers

CATEGORIES = ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp").split()
SCRIPTS = ("Han", "Hangul", "Hiragana", "Katakana")
HEAD = """/* Made by tools/make_unicode.py with tokenizers %s: characters that Unicode 14 does not have and
 * Unicode 16 does, by general category and, for some, by script. */
#include "text/pretok_unicode.h"

const struct unicode_range unicode_additions[] = {
"""


def ranges(prop, text):
    """Characters of text that the library's \\p{prop} matches, as [first, last]."""
    split = pre_tokenizers.Split(Regex(r"\p{%s}" % prop), "removed", invert=True)
    out = []
    for c in (ord(c) for piece, _ in split.pre_tokenize_str(text) for c in piece):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def main():
    import tokenizers
    if unicodedata.unidata_version != "14.0.0":
        sys.exit(f"this Python knows Unicode {unicodedata.unidata_version}, needed is 14.0.0 (Python 3.11)")
    new = "".join(chr(c) for c in range(0x110000)
                  if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) == "Cn")
    rows = sorted((first, last, name) for name in CATEGORIES for first, last in ranges(name, new))
    rows += [(first, last, name) for name in SCRIPTS for first, last in ranges(name, new)]
    print(HEAD % tokenizers.__version__, end="")
    for first, last, name in rows:
        print(f'    {{0x{first:X}, 0x{last:X}, "{name}"}},')
    print("};")
    print("const size_t n_unicode_additions = sizeof unicode_additions / sizeof *unicode_additions;")


if __name__ == "__main__":
    main()
