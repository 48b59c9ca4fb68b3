"""Values of every look, most of them in no list: what teaches a model to copy instead of to remember.

`Values` is the base of the generator: a random source, the split into training and evaluation, and words, names, dates,
files, codes, sentences. Everything is a function of the seed (and of the tokenizer's pieces, if given).
"""
import random
import zlib

import words as W
from dialect import upper

LOWER = "aaabcdeeeefghiijklmnnoopqrrssttuuvwxyz"
CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
EXTENSIONS = W.words("png txt csv mp3 pdf json log md jpg zip py c h html xml tar wav yaml bin dat")
DOMAINS = W.words("org net com io de dev info example.com example.org co.uk local lan")


def is_held(key):
    """True if a combination is reserved for evaluation."""
    return zlib.crc32(key.encode()) % 8 == 0


class Values:
    """Draws values. held=False: training; held=True: evaluation, from reserved combinations only.

    pieces: bare words of the tokenizer; joined at random they make every token occur in something to copy."""

    def __init__(self, seed, held=False, pieces=()):
        self.r, self.held, self.pieces = random.Random(seed), held, list(pieces)

    def choice(self, xs):
        return xs[int(self.r.random() * len(xs))]

    def chance(self, p):
        return self.r.random() < p

    def fits(self, key):
        return is_held(key) == self.held

    def pair(self, xs, ys, sep=" "):
        """One of xs and one of ys whose combination belongs to this split."""
        while True:
            key = self.choice(xs) + sep + self.choice(ys)
            if self.fits(key):
                return key

    # ---- single words

    def coined(self, lo=2, hi=3):
        """An invented word of simple syllables."""
        return "".join(self.choice("bdfgklmnprstvz") + self.choice("aeiou") + self.choice(["", "", "n", "r", "l", "s"])
                       for _ in range(self.r.randint(lo, hi)))

    def english(self):
        """A word that could be English: parts of words put together."""
        k = self.r.random()
        w = self.choice(W.ROOT if k < 0.7 else W.MORE)
        if k < 0.3 or k > 0.9:
            w = self.choice(W.PREFIX) + w
        if k > 0.2:
            w += self.choice(W.SUFFIX)
        return w

    def letters(self, lo=2, hi=9, alphabet=LOWER):
        return "".join(self.choice(alphabet) for _ in range(self.r.randint(lo, hi)))

    def joined(self):
        """Random pieces of the tokenizer in one word."""
        return "".join(self.choice(self.pieces) for _ in range(self.r.choice((1, 2, 2, 3, 4)))) if self.pieces else self.letters()

    def town(self):
        """A place that no list knows, or one that it knows."""
        k = self.r.random()
        if k < 0.2:
            return self.choice(W.CITY)
        if k < 0.75:
            return self.choice(W.STEM) + self.choice(W.ENDING)
        if k < 0.85:
            return f"{self.choice(W.STEM)}{self.choice(W.ENDING)} {upper(self.coined(1, 2))}"
        return upper(self.choice([self.coined, self.letters, self.english, self.joined])())

    def odd(self):
        """A word from anywhere: lists, parts of words, invented, random letters, random pieces."""
        k = self.r.random()
        if k < 0.22:
            return self.choice(W.MORE)
        if k < 0.42:
            return self.english()
        if k < 0.54:
            return self.coined(1, 4)
        if k < 0.62:
            return (self.choice(W.STEM) + self.choice(W.ENDING)).lower()
        if k < 0.77:
            w = self.letters()
            return w.upper() if self.chance(0.15) else w
        if k < 0.91:
            return self.joined()
        return self.choice(W.MORE) + self.choice(["", "-", "_", ""]) + (self.odd() if self.chance(0.6) else self.digits(2))

    def word(self):
        """An odd word of letters only."""
        while True:
            w = self.odd()
            if w.isalpha():
                return w

    def identifier(self):
        """A name as programs have it."""
        k, w = self.r.random(), self.choice(W.MORE) if self.chance(0.6) else self.word().lower()
        if k < 0.35:
            return w
        if k < 0.6:
            return f"{w}_{self.choice(W.MORE) if self.chance(0.7) else self.word().lower()}"
        if k < 0.72:
            return f"{w}_{self.choice(['id', 'name', 'date', 'type', 'code', 'url', 'count', 'max', 'min', 'to', 'from', 'no', 'cm', 'ms', 'len'])}"
        if k < 0.75:
            return f"{self.choice(['min', 'num', 'is', 'has', 'use', 'no', 'new', 'old', 'start', 'end', 'with', 'for', 'first'])}_{w}"
        if k < 0.83:
            return w + upper(self.choice(W.MORE))
        if k < 0.86:
            return f"{w}-{self.choice(W.MORE)}"
        return self.odd().replace("-", "_")

    # ---- names and things of the split

    def name(self):
        """A person: of the split's lists, or open."""
        return self.pair(W.FIRST, W.LAST) if self.chance(0.5) else self.person()

    def person(self):
        first = self.choice(W.GIVEN) if self.chance(0.6) else upper(self.word())
        last = self.choice(W.SURNAME) if self.chance(0.5) else upper(self.word()) if self.chance(0.6) else self.choice(W.STEM) + self.choice(W.ENDING)
        return f"{self.choice(['Dr.', 'Mr.', 'Mrs.', 'Prof.'])} {last}" if self.chance(0.06) else f"{first} {last}"

    def thing(self):
        return self.pair(W.ADJ, W.OBJECT)

    # ---- figures

    def digits(self, n=None):
        return "".join(self.choice("0123456789") for _ in range(n or self.r.randint(3, 6)))

    def code(self):
        """Ids and codes."""
        k = self.r.random()
        if k < 0.3:
            return f"{self.letters(1, 3, CAPITALS)}-{self.digits()}"
        if k < 0.45:
            return self.letters(2, 5, CAPITALS)
        if k < 0.6:
            return self.letters(6, 12, "0123456789abcdef")
        if k < 0.7:
            return f"{self.letters(1, 4, CAPITALS)}{self.digits(self.r.randint(1, 5))}"
        if k < 0.78:
            return f"v{self.r.randint(0, 9)}.{self.r.randint(0, 20)}.{self.r.randint(0, 9)}"
        if k < 0.86:
            return f"{self.word().lower()}-{self.digits(2)}"
        if k < 0.93:
            return self.letters(4, 9, CAPITALS + CAPITALS.lower() + "0123456789")
        return "-".join(self.letters(2, 4, CAPITALS + "0123456789") for _ in range(3))

    def date(self):
        y, m, d = self.r.randint(1950, 2049), self.r.randint(1, 12), self.r.randint(1, 28)
        k = self.r.random()
        if k < 0.7:
            return f"{y}-{m:02d}-{d:02d}"
        return f"{d} {W.MONTHS[m - 1]} {y}" if k < 0.8 else f"{d:02d}.{m:02d}.{y}" if k < 0.9 else f"{W.MONTHS[m - 1]} {d}"

    def clock(self):
        h, m = self.r.randint(0, 23), self.r.randint(0, 59)
        return f"{h:02d}:{m:02d}" if self.chance(0.6) else f"{h % 12 + 1} {self.choice(['am', 'pm'])}" if self.chance(0.5) else f"{h % 12 + 1}:{m:02d}"

    def integer(self):
        return self.r.choice((self.r.randint(0, 20), self.r.randint(0, 999), self.r.randint(0, 9999), self.r.randint(-20, 99999)))

    def number(self):
        """A number, often with decimals; whole ones are ints, as JSON clients write them."""
        r = self.r
        x = r.choice((r.randint(0, 200) / 2, round(r.uniform(0, 99), 2), round(r.uniform(0, 9), 1), round(r.uniform(0, 2000), 2), r.randint(1, 500),
                      round(r.uniform(-40, 40), 1), r.randint(0, 4000) / 4, round(r.uniform(0, 1), 3)))
        return int(x) if x == int(x) else x

    # ---- places in computers

    def file(self):
        stem = self.odd() if self.chance(0.5) else f"{self.odd()}{self.choice('_-')}{self.odd() if self.chance(0.4) else self.digits(self.r.randint(1, 4))}"
        return f"{stem}.{self.choice(EXTENSIONS)}"

    def host(self):
        parts = [self.odd().replace("_", "-") + (self.digits(1) if self.chance(0.3) else "") for _ in range(self.r.choice((1, 1, 2, 3)))]
        return ".".join(p.lower() for p in parts) + "." + self.choice(DOMAINS)

    def path(self):
        k = self.r.random()
        if k < 0.3:
            return self.file()
        if k < 0.4:
            return f"~/{self.odd()}/{self.file()}"
        folders = [self.odd() if self.chance(0.6) else self.choice(["home", "var", "usr", "etc", "data", "opt", "srv"]) for _ in range(self.r.randint(1, 3))]
        return ("/" if self.chance(0.8) else "") + "/".join(folders) + ("/" + self.file() if self.chance(0.75) else "")

    def email(self):
        user = self.odd() if self.chance(0.5) else f"{self.odd()}.{self.odd()}" if self.chance(0.5) else self.choice(W.GIVEN).lower()
        return f"{user}@{self.host() if self.chance(0.5) else self.odd() + '.' + self.choice(DOMAINS)}".replace("_", "")

    def url(self):
        return self.choice(["https://", "https://", "http://", "www."]) + self.host() + (f"/{self.odd()}" if self.chance(0.5) else "")

    def sql(self):
        a, b, c = self.word().lower(), self.word().lower(), self.word().lower()
        return self.choice([f"select * from {a}", f"select {a}, {c} from {b}", f"select count(*) from {a}",
                            f"SELECT {a} FROM {b} WHERE {c} = {self.integer()}", f"delete from {a} where {b} = '{c}'",
                            f"select {a} from {b} order by {c}", f"update {a} set {b} = {self.integer()}"])

    def command(self):
        return self.choice([f"{self.word().lower()} -{self.letters(1, 1)} {self.file()}", f"ls {self.path()}", f"{self.word().lower()} --{self.odd()}",
                            f"echo {self.phrase(1, 3)}", f"{self.word().lower()} {self.odd()} {self.file()}", f"python3 {self.odd()}.py", f"make {self.odd()}"])

    # ---- several words

    def phrase(self, lo=2, hi=6):
        """Words in a row, in no sense; no comma, no stop."""
        plain = self.chance(0.3)
        text = " ".join(self.choice(W.FUNCTION) if self.chance(0.35) else self.choice(W.MORE) if plain or self.chance(0.4) else self.word()
                        for _ in range(self.r.randint(lo, hi)))
        return upper(text) if self.chance(0.3) else text

    def sentence(self):
        """Something that a person could write in a message."""
        k = self.r.random()
        if k < 0.35:
            return self.phrase(3, 9)
        noun, other, adj = (self.choice(W.OBJECT) if self.chance(0.3) else self.word().lower() for _ in range(3))
        text = self.choice([
            "the {n} is {a}", "my {n} does not work", "please bring the {n}", "the {n} in the {o} is on the {p}", "we meet at {t}",
            "I lost the {n}", "the {o} is out of {n}", "{n} is broken", "no {n} today", "buy {n} and {o}", "I will be late", "do not forget the {n}",
            "see you in {c}", "who has the {n}", "thanks for the {n}", "{n} or {o}", "happy birthday {f}", "call {f} about the {n}", "it is too {a} here",
            "the {a} {n} runs {o}", "I like {n} more than {o}", "can you send {n}", "is there any {n} left", "how {a} is your {n}",
            "{f} lives in {c}", "all {n} must be {a}", "never {o} the {n}", "a {n} for {f}", "when does the {n} start"]).format(
                n=noun, o=other, a=self.choice(W.ADJ) if self.chance(0.5) else adj, p=self.choice(W.PLACE), t=self.clock(), c=self.town(),
                f=self.choice(W.GIVEN))
        return upper(text) if self.chance(0.5) else text

    def text(self):
        """A string argument or value of any look."""
        k = self.r.random()
        if k < 0.10:
            return self.sentence()
        if k < 0.17:
            return self.phrase()
        if k < 0.29:
            return self.odd()
        if k < 0.37:
            return upper(self.odd())
        if k < 0.43:
            return f"{upper(self.odd())} {upper(self.odd())}"
        if k < 0.52:
            return self.town()
        if k < 0.61:
            return self.name()
        if k < 0.65:
            return self.thing()
        if k < 0.68:
            return "The " + self.thing().title()
        for limit, make in ((0.74, self.code), (0.79, self.file), (0.82, self.host), (0.85, self.email), (0.88, self.path), (0.90, self.url),
                            (0.95, self.date), (0.97, self.clock), (0.985, self.sql)):
            if k < limit:
                return make()
        return self.command()
