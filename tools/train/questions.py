"""Short questions with answers: knowledge tables, sums, lists, and copying in many forms.

Every kind returns (question, answer, value alone, reasoning or None, topic of a follow-up or None).
"""
import json
import re

import words as W
from dialect import upper
from openwords import Values

REPEAT = ["Repeat after me: {}", "Say this: {}", "Please repeat: {}", "Repeat: {}", "Say {}", "Echo {}", "Copy this: {}", "Write: {}", "Type {}",
          "Say exactly this: {}", "Repeat this text: {}", "Say \"{}\" back to me.", "Repeat \"{}\".", "Reply with only: {}", "Answer with \"{}\".",
          "Write \"{}\" and nothing else.", "Say \"{}\".", "repeat {}", "Please say \"{}\" again.", "Give me back this text: {}",
          "Respond with the text between the quotes: \"{}\"", "Print this: {}", "Say it once more: {}"]


class Questions(Values):
    """The part of the generator that asks."""

    def __init__(self, seed, held=False, pieces=()):
        super().__init__(seed, held, pieces)
        self.kinds = [getattr(self, k) for k in ("table", "table", "table", "add", "subtract", "multiply", "sequence", "compare",
                                                 "animals", "listing", "number_word", "count")]
        self.copies = [getattr(self, k) for k in ("repeat", "repeat", "repeat", "spell", "quote", "lookup", "lookup", "json_lookup", "to_json",
                                                  "extract", "extract", "inside", "after", "join", "respell", "respell", "mine")]

    # ---- knowledge and sums

    def table(self, topic=None, follow=False):
        topic = topic or self.choice(list(W.TABLES))
        rows, questions, answer, short = W.TABLES[topic]
        k, v = self.choice(rows)
        if topic == "opposite" and self.r.random() < 0.5 and k != "light":
            k, v = v, k
        q = short if follow else self.choice(questions)
        if self.r.random() < 0.15:
            q = q.replace("What is", "What's")
        return upper(q.format(k)), upper(answer.format(k, v)), v, None, topic

    def add(self):
        a, b = self.r.randint(1, 99), self.r.randint(1, 99)
        tens, ones = a // 10 * 10 + b // 10 * 10, a % 10 + b % 10
        why = f"{a % 10} + {b % 10} = {ones}. {a // 10 * 10} + {b // 10 * 10} = {tens}. {tens} + {ones} = {a + b}."
        return (self.choice(["What is {} + {}?", "How much is {} plus {}?", "Add {} and {}.", "{} + {} = ?", "{}+{}"]).format(a, b),
                f"{a} + {b} = {a + b}.", str(a + b), why, None)

    def subtract(self):
        b, c = self.r.randint(1, 60), self.r.randint(0, 39)
        a = b + c
        tens = b // 10 * 10
        why = f"{a} - {tens} = {a - tens}. {a - tens} - {b % 10} = {c}."
        return (self.choice(["What is {} - {}?", "How much is {} minus {}?", "{} - {} = ?", "{}-{}"]).format(a, b),
                f"{a} - {b} = {c}.", str(c), why, None)

    def multiply(self):
        a, b = self.r.randint(2, 12), self.r.randint(2, 12)
        return (self.choice(["What is {} x {}?", "How much is {} times {}?", "{} x {} = ?", "What is {}*{}?"]).format(a, b),
                f"{a} x {b} = {a * b}.", str(a * b), None, None)

    def sequence(self):
        what, xs = self.choice([("day", W.DAYS), ("month", W.MONTHS), ("letter", W.LETTERS), ("number", None)])
        after = self.r.random() < 0.5
        side = "after" if after else "before"
        if xs is None:
            i = self.r.randint(1, 198)
            x, y = str(i), str(i + 1 if after else i - 1)
        else:
            i = self.r.randrange(0, len(xs) - 1)
            x, y = (xs[i], xs[i + 1]) if after else (xs[i + 1], xs[i])
        return (self.choice(["Which {} comes {} {}?", "What {} is right {} {}?", "Name the {} {} {}."]).format(what, side, x),
                f"The {what} {side} {x} is {y}.", y, None, None)

    def compare(self):
        a, b = self.r.sample(range(1, 200), 2)
        big = self.r.random() < 0.5
        v = max(a, b) if big else min(a, b)
        word = "larger" if big else "smaller"
        return (self.choice(["Which is {2}, {0} or {1}?", "Of {0} and {1}, which is {2}?"]).format(a, b, word), f"{v} is {word}.", str(v),
                f"{max(a, b)} is more than {min(a, b)}.", None)

    def animals(self):
        i, j = self.r.sample(range(len(W.SIZE)), 2)
        big = self.r.random() < 0.5
        v = W.SIZE[max(i, j) if big else min(i, j)]
        word = "bigger" if big else "smaller"
        return (self.choice(["Which animal is {2}, a {0} or a {1}?", "Is a {0} or a {1} {2}?"]).format(W.SIZE[i], W.SIZE[j], word),
                f"The {v} is {word}.", v, None, None)

    def listing(self):
        xs = [self.odd() if self.r.random() < 0.5 else self.choice(W.OBJECT) for _ in range(self.r.randint(2, 6))]
        text, k = ", ".join(xs), self.r.randrange(5)
        if k == 0:
            why = ", ".join(f"{x} {i + 1}" for i, x in enumerate(xs)) + "."
            return f"How many words are in this list: {text}?", f"The list has {len(xs)} words.", str(len(xs)), why, None
        if k == 1:
            return f"What is the first word of this list: {text}?", f"The first word is {xs[0]}.", xs[0], None, None
        if k == 2:
            return f"What is the last word of this list: {text}?", f"The last word is {xs[-1]}.", xs[-1], None, None
        if k == 3:
            return f"Reverse this list: {text}", ", ".join(xs[::-1]), ", ".join(xs[::-1]), None, None
        text = self.choice([text, self.phrase(3, 9), upper(self.phrase(2, 4)) + "."])
        return self.choice(["Repeat after me: {}", "Say this: {}", "Please repeat: {}"]).format(text), text, text, None, None

    def number_word(self):
        i = self.r.randrange(len(W.NUMBERS))
        if self.r.random() < 0.5:
            ways = ["Write the number {} as a word.", "Spell out {}.", "How do you write {} in words?", "Which word means {}?"]
            return self.choice(ways).format(i), upper(W.NUMBERS[i]) + ".", W.NUMBERS[i], None, None
        ways = ["Write {} in digits.", "Which number is {}?", "Write {} as a number.", "How do you write {} in digits?"]
        return self.choice(ways).format(W.NUMBERS[i]), f"{i}.", str(i), None, None

    def count(self):
        a, n = self.r.randint(0, 60), self.r.randint(2, 9)
        xs = list(range(a, a + n + 1))
        down = self.r.random() < 0.3
        xs = xs[::-1] if down else xs
        text = ", ".join(map(str, xs))
        return f"Count {'down ' if down else ''}from {xs[0]} to {xs[-1]}.", text, text, None, None

    def question(self, topic=None, follow=True):
        """A question of this split; with a topic, a table question (in its follow-up form)."""
        while True:
            item = self.table(topic, follow) if topic else self.choice(self.kinds)()
            if self.fits(item[0]):
                return item

    # ---- copying: each of these can only be answered with what stands in the question

    def repeat(self):
        k = self.r.random()
        text = self.text() if k < 0.5 else self.phrase(1, 8) if k < 0.75 else self.odd() if k < 0.85 else ", ".join(
            self.text() for _ in range(self.r.randint(2, 4)))
        text = text.replace('"', "")
        return self.choice(REPEAT).format(text), text, text, None, None

    def spell(self):
        w = self.word()[:10]
        text = "-".join(w)
        return self.choice(["Spell {}.", "Spell the word {}.", "How do you spell {}?", "Spell \"{}\"."]).format(w), text, text, None, None

    def quote(self):
        v = self.text().replace('"', "")
        a, b = self.choice([('"', '"'), ("(", ")"), ("[", "]"), ("*", "*"), ("<b>", "</b>"), ("`", "`")])
        name = {'"': "quotes", "(": "brackets", "[": "square brackets", "*": "stars", "<b>": "b tags", "`": "backticks"}[a]
        return self.choice(["Put {1} around this: {0}", "Write {0} in {1}.", "Write this in {1}: {0}"]).format(v, name), a + v + b, a + v + b, None, None

    def fields(self, n=None):
        """Some names with values."""
        out = {}
        for _ in range(n or self.r.randint(2, 5)):
            out[self.identifier()] = self.choice([self.text, self.text, self.odd, self.integer, self.number])()
        return out

    @staticmethod
    def said(value):
        return value if isinstance(value, str) else json.dumps(value)

    def lookup(self):
        """One of several values, by its name, which may be written otherwise."""
        xs = self.fields()
        k = self.choice(list(xs))
        sep, glue = self.choice([": ", " = ", "=", " is ", " "]), self.choice([", ", "; ", "\n", " | "])
        body = glue.join(f"{n}{sep}{self.said(v)}" for n, v in xs.items())
        asked = k if self.chance(0.5) else self.spaced(k)
        q = self.choice(["{b}\nWhat is {k}?", "{b}. What is the {k}?", "What is {k} here: {b}", "Give me the {k}: {b}", "{b}\n{k}?"]).format(b=body, k=asked)
        return q, self.said(xs[k]), self.said(xs[k]), None, None

    def json_lookup(self):
        xs = self.fields()
        k = self.choice(list(xs))
        body = json.dumps(xs, ensure_ascii=False)
        asked = k if self.chance(0.5) else self.spaced(k)
        q = self.choice(["{b} What is {k}?", "What is {k} in {b}?", "{b}\nGive me the value of {k}.", "Read the {k} from this JSON: {b}"]).format(b=body, k=asked)
        return q, self.said(xs[k]), self.said(xs[k]), None, None

    def to_json(self):
        xs = self.fields(self.r.randint(1, 3))
        body = ", ".join(f"{n} {self.said(v)}" if self.chance(0.3) else f"{n}: {self.said(v)}" for n, v in xs.items())
        a = json.dumps(xs, ensure_ascii=False)
        return self.choice(["Write this as JSON: {}", "As JSON: {}", "Make a JSON object: {}", "JSON for {}"]).format(body), a, a, None, None

    def extract(self):
        """The one value of a kind in a sentence."""
        kind, make = self.choice([("email address", self.email), ("date", self.date), ("file", self.file), ("number", lambda: str(abs(self.integer()))),
                                  ("name", self.person), ("city", self.town), ("code", self.code), ("path", self.path), ("time", self.clock),
                                  ("link", self.url)])
        v = make()
        before, after = self.phrase(2, 6), self.phrase(1, 5)
        glue = {"city": "in ", "name": "by ", "time": "at ", "date": "on "}.get(kind, self.choice(["", "to ", "the " + kind + " "]))
        q = self.choice(["Which {k} is in this text: {t}", "Find the {k}: {t}", "{t}\nWhat is the {k}?", "Extract the {k} from: {t}", "Give me only the {k}. {t}"])
        return q.format(k=kind, t=f"{before} {glue}{v} {after}"), v, v, None, None

    def inside(self):
        v = self.text().replace('"', "").replace("(", "").replace(")", "")
        a, b, name = self.choice([('"', '"', "quotes"), ("(", ")", "brackets"), ("*", "*", "stars"), ("[", "]", "square brackets")])
        body = f"{self.phrase(1, 5)} {a}{v}{b} {self.phrase(1, 4)}"
        return self.choice(["What is in the {1}: {0}", "{0}\nWhat stands in {1}?", "Give me the text in {1}: {0}"]).format(body, name), v, v, None, None

    def after(self):
        """The word beside another one."""
        xs = list(dict.fromkeys(self.word() for _ in range(self.r.randint(4, 9))))
        if len(xs) < 3:
            return self.after()
        i, fore = self.r.randrange(1, len(xs) - 1), self.chance(0.6)
        v = xs[i + 1] if fore else xs[i - 1]
        side = "after" if fore else "before"
        return self.choice(["Which word comes {1} {2} in: {0}", "{0}\nWhich word is {1} {2}?"]).format(" ".join(xs), side, xs[i]), v, v, None, None

    def join(self):
        a, b, sep = self.odd(), self.odd(), self.choice(["-", "_", ".", "/", "+", "@", ""])
        name = {"-": "a dash", "_": "an underscore", ".": "a dot", "/": "a slash", "+": "a plus", "@": "an at sign", "": "nothing"}[sep]
        return self.choice(["Join {} and {} with {}.", "Write {} and {} with {} between."]).format(a, b, name), a + sep + b, a + sep + b, None, None

    @staticmethod
    def spaced(name):
        """max_rows, maxRows, max-rows -> max rows."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").replace("-", " ").lower().strip()

    def respell(self):
        """Names of programs and plain words."""
        xs = [self.word().lower() for _ in range(self.r.randint(2, 3))]
        plain, snake, camel, dashed = " ".join(xs), "_".join(xs), xs[0] + "".join(map(upper, xs[1:])), "-".join(xs)
        source = self.choice([plain, snake, camel, dashed])
        what, v = self.choice([("with blanks", plain), ("with underscores", snake), ("in camel case", camel), ("with dashes", dashed)])
        return self.choice(["Write {0} {1}.", "{0} {1}", "How is {0} written {1}?"]).format(source, what), v, v, None, None

    def mine(self):
        """Something that the user just said."""
        k, v = self.spaced(self.identifier()), self.text()
        return self.choice(["My {k} is {v}. What is my {k}?", "The {k} is {v}. What is the {k}?", "If the {k} is \"{v}\", what is the {k}?"]).format(k=k, v=v), v, v, None, None

    def copying(self):
        """A question that only the question answers; (question, answer)."""
        q, a, *_ = self.choice(self.copies)()
        return q, a
