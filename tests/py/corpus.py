"""Mixed text made from a seed: what people and programs write, and what nobody does."""
import random

ZWJ, VS16 = "\u200d", "\ufe0f"
SCRIPTS = [  # first and last code point of a run of letters or marks
    (0x4E00, 0x9FFF), (0x3041, 0x3096), (0x30A1, 0x30FA), (0xAC00, 0xD7A3), (0x0621, 0x064A), (0x064B, 0x0652),
    (0x0905, 0x0939), (0x093E, 0x094D), (0x0E01, 0x0E3A), (0x0410, 0x044F), (0x0391, 0x03C9), (0x05D0, 0x05EA),
    (0x00C0, 0x017F), (0x1E00, 0x1EFF), (0x10A0, 0x10FF), (0x1C80, 0x1C8A), (0x2EBF0, 0x2EC00), (0x1D400, 0x1D7FF)]
EMOJI = (0x1F300, 0x1F5FF), (0x1F600, 0x1F64F), (0x1F680, 0x1F6FF), (0x1F900, 0x1FAFF), (0x2600, 0x27BF)
SPACES = " \t\n\r\v\f\x1c\x1f\x85\xa0\u1680\u180e\u2000\u2009\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"
DIGITS = "0123456789", "٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "²³¹¼½¾", "ⅠⅡⅢⅳ", "①②③⑳", "𝟎𝟏𝟐", "\U00010D40\U00010D41", "〇一二三"
CODE = ["for (int i = 0; i < n; i++) {\n    sum += x[i] * y[i];\n}\n", "def f(self, x: int = 3) -> None:\n\treturn x**2\n",
        "SELECT * FROM t WHERE a >= 10 AND b IS NOT NULL;", "<div class=\"x\">&nbsp;</div>\r\n", "#include <stdio.h>\n\n\n",
        "{\"name\": \"f\", \"args\": [1, 2.5e-3, null]}", "https://example.org/a/b?c=d&e=%20#f", "//////////\r\n\r\n  // x",
        "'''doc'''", "a->b::c<d>(&e)", "0x7fff_ffff", "user@example.org", "\\begin{x}\\end{x}", "1.2.3.4:8080/path_to/file.txt"]
TAILS = ["'s", "'S", "'t", "'re", "'VE", "'m", "'LL", "'d", "'D", "’s", "'\u017f", "'K", "'\u212a", "'l", "'x", "'", "'re's"]


class Corpus:
    def __init__(self, seed, extra=()):
        self.r, self.extra = random.Random(seed), list(extra)
        self.words = [self.new_word() for _ in range(3000)]

    def new_word(self):
        return "".join(self.r.choice("bcdfghjklmnpqrstvwxz") + self.r.choice("aeiouy") + self.r.choice(["", "", "n", "r", "s", "ll"])
                       for _ in range(self.r.randint(1, 4)))

    def word(self):
        w = self.words[min(int(self.r.expovariate(0.004)), len(self.words) - 1)] if self.r.random() < 0.9 else self.new_word()
        k = self.r.random()
        w = w.title() if k < 0.15 else w.upper() if k < 0.2 else w
        return w + (self.r.choice(TAILS) if self.r.random() < 0.08 else "")

    def sentence(self):
        return " ".join(self.word() + (self.r.choice(",;:") if self.r.random() < 0.1 else "")
                        for _ in range(self.r.randint(3, 15))) + self.r.choice([".", "!", "?", "...", "?!", ""]) + self.r.choice([" ", "\n", "\r\n", "\n\n"])

    def script(self):
        a, b = self.r.choice(SCRIPTS)
        return "".join(chr(self.r.randint(a, b)) for _ in range(self.r.randint(1, 12))) + self.r.choice(["", " ", "。", "، ", "\n"])

    def marks(self):
        """Letters with combining marks, some in an order that normalisation changes."""
        return "".join(self.r.choice("aeiouAEncszK가각ᄀ\u1161か") + "".join(chr(self.r.choice([0x301, 0x300, 0x308, 0x323, 0x327, 0x3099, 0x5B0, 0x11A8, 0x345]))
                       for _ in range(self.r.randint(0, 3))) for _ in range(self.r.randint(1, 8)))

    def emoji(self):
        one = lambda: chr(self.r.randint(*self.r.choice(EMOJI)))
        return self.r.choice([one(), one() + VS16, one() + ZWJ + one() + ZWJ + one(), one() + "\U0001F3FD", "\U0001F1E9\U0001F1EA", "\U0001FAE8", one() * 5])

    def run(self):
        """A run of one kind, sometimes long."""
        n = self.r.choice([1, 2, 3, 4, 7, 15, 40, 200])
        k = self.r.random()
        if k < 0.3:
            return "".join(self.r.choice(SPACES) for _ in range(n))
        if k < 0.45:
            return self.r.choice([" ", "\n", "\t", "\r\n", "  \n"]) * n
        if k < 0.75:
            d = self.r.choice(DIGITS)
            return "".join(self.r.choice(d) for _ in range(n))
        if k < 0.9:
            return self.r.choice("-=*#._~!/?|+<>") * n
        return self.r.choice("aAzéЖ漢ا") * n

    def noise(self):
        if self.r.random() < 0.4:
            return "".join(chr(self.r.randint(0, 0x9F)) for _ in range(self.r.randint(1, 10)))
        out = []
        for _ in range(self.r.randint(1, 8)):
            c = self.r.choice([self.r.randint(0, 0xFFFF), self.r.randint(0, 0x10FFFF), self.r.randint(0x1C80, 0x1E030), self.r.randint(0x10000, 0x1FFFF)])
            out.append(chr(c if not 0xD800 <= c < 0xE000 else 0xFFFD))
        return "".join(out)

    def marker(self):
        """Text of added tokens, whole, cut or doubled."""
        if not self.extra:
            return self.word()
        t = self.r.choice(self.extra)
        return self.r.choice([t, t, " " + t + " ", t * 2, t[:self.r.randint(0, len(t))], t[self.r.randint(0, len(t)):], t[:1] + t, self.word() + t])

    def record(self, size):
        kinds = [self.sentence] * 8 + [lambda: self.r.choice(CODE)] * 4 + [self.script] * 4 + [self.marks, self.emoji, self.run, self.run, self.noise, self.marker]
        out, n = [], 0
        while n < size:
            out.append(self.r.choice(kinds)())
            n += len(out[-1].encode())
        return "".join(out)

    def records(self, total):
        """Texts of 1 byte to some KB, together at least `total` bytes, and a few long runs."""
        out, n = ["", "a", " ", "\n", "é", "\U0001F600"], 0
        while n < total:
            out.append(self.record(int(self.r.choice([1, 10, 50, 300, 2000, 8000]) * (0.5 + self.r.random()))))
            n += len(out[-1].encode())
        long = max(total // 100, 1000)
        return out + [c * (long // len(c.encode())) for c in ("a", " ", "7", "A", "é", "漢", "\n", "ab", ". ", "\u0301", " \n")]
