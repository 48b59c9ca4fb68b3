"""Training text for a small chat model: stories, questions, copying, tool calls and facts in long texts.

    data.py show [--seed N] [--held] [--count N] [--only KIND]     print some documents

Everything is a function of the seed. What must generalise is held out by construction: a combination whose hash falls into
one of eight buckets (a tool's verb and noun, a name, the key of a fact, a sum, a question's wording and subject) never occurs
in training text and is all that evaluation uses.
"""
import argparse

import words as W
from dialect import asks, render, says, upper
from tooltalk import ToolTalk


class Maker(ToolTalk):
    """Makes documents. held=False: training text; held=True: evaluation text from reserved combinations only."""

    # ---- stories

    def story(self, hero=None, animal=None):
        """Sentences of a story with a hero, a friend and one of several plots."""
        he = self.r.random() < 0.5
        hero, friend = hero or self.choice(W.FIRST), self.choice(W.FIRST)
        while friend == hero:
            friend = self.choice(W.FIRST)
        animal, (l, m) = animal or self.choice(W.ANIMAL), self.r.sample(W.PLACE, 2)
        names = dict(N=hero, A=animal, P="He" if he else "She", P2="he" if he else "she", Q="his" if he else "her", F=friend,
                     B=self.choice(W.ANIMAL), B2=self.choice(W.ANIMAL), O=self.choice(W.OBJECT), O3=self.choice(W.OBJECT),
                     O2="a " + self.choice(W.ADJ) + " " + self.choice(W.OBJECT), L=l, M=m, D=self.choice(W.FOOD))
        trait = self.choice(W.TRAIT)
        start = self.choice([f"Once upon a time there was a {trait} {animal} called {hero}.", f"{hero} was a {trait} {animal}.",
                             f"A {trait} {animal} called {hero} lived near the {m}."])
        end = self.choice(W.MORAL)
        arcs = self.r.sample(W.ARCS, 2 if self.r.random() < 0.25 else 1)
        body = [self.choice(v).format_map(names) for arc in arcs for v in arc]
        if self.r.random() < 0.3:
            body.insert(self.r.randint(0, len(body)), self.noise())
        return [start] + body + [end]

    def story_doc(self):
        if self.r.random() < 0.5:
            return ["[gMASK]<sop>", " ".join(self.story()) + "<|endoftext|>"]
        hero, animal = self.choice(W.FIRST), self.choice(W.ANIMAL)
        ask = self.choice(["Tell me a story about a {} called {}.", "Please write a short story: the hero is a {} called {}.",
                           "I want to hear about a {} with the name {}."]).format(animal, hero)
        turns = [asks(ask), says(" ".join(self.story(hero, animal)))]
        if self.r.random() < 0.3:
            turns += [asks(self.choice(["Who is the hero?", "What is the name of the hero?"])), says(f"The hero is {hero} the {animal}.")]
        return self.finish(turns)

    # ---- conversations

    def system(self):
        """A system message as clients send it, or None."""
        k = self.r.random()
        if k < 0.62:
            return None
        return self.choice(W.SYSTEM) if k < 0.88 else f"You are {upper(self.coined())}, a {self.choice(W.TRAIT)} {self.choice(W.JOB)}."

    def remembered(self):
        """(what, value) of something that a user tells about himself."""
        what = self.choice(["name", "city", "favourite food", "dog", "colour", "job", "password", "number"])
        return what, {"name": lambda: self.choice([self.choice(W.FIRST), upper(self.word()), self.choice(W.GIVEN), self.person()]), "city": self.town,
                      "favourite food": lambda: self.choice(W.FOOD), "dog": lambda: upper(self.word()), "colour": lambda: self.choice(W.ADJ[:9]),
                      "job": lambda: self.choice(W.JOB), "password": self.odd, "number": self.digits}[what]()

    def chat_doc(self):
        """Several turns: questions, follow-ups, things to remember, small talk, copying."""
        turns, known, topic, r = [], {}, None, self.r
        brief, persona = self.chance(0.1), upper(self.coined()) if self.chance(0.12) else None
        system = [f"You are {persona}, a {self.choice(W.TRAIT)} {self.choice(W.JOB)}."] if persona else []
        system += ["Answer with the bare value only."] if brief else []
        if not system and self.chance(0.3):
            system = [self.choice(W.SYSTEM)]
        if system:
            turns.append({"role": "system", "content": " ".join(system)})
        for _ in range(r.randint(1, 6)):
            k, follow, topic = r.random(), topic, None
            if k < 0.18:
                ways, answers = self.choice(W.SMALL_TALK[:8] if self.chance(0.35) else W.SMALL_TALK)
                answer = self.choice(answers)
                if persona and answer == W.SELF:
                    answer = system[0].replace("You are", "I am")
                elif persona and answer.startswith("My name is"):
                    answer = f"My name is {persona}."
                turns += [asks(self.choice(ways)), says(answer)]
            elif k < 0.25:
                what, value = self.remembered()
                known[what] = value
                turns += [asks(self.choice(["My {} is {}.", "Remember that my {} is {}.", "my {} is {}"]).format(what, value)),
                          says(f"I will remember that your {what} is {value}.")]
            elif k < 0.33 and known:
                what = self.choice(list(known))
                turns += [asks(self.choice(["What is my {}?", "Do you remember my {}?", "Tell me my {}."]).format(what)), says(f"Your {what} is {known[what]}.")]
            elif k < 0.36:
                x = upper(self.choice([self.coined, self.word, self.person])())
                turns += [asks(self.choice(W.UNKNOWN).format(x)), says("I do not know that.")]
            elif k < 0.375:
                turns += [asks(self.common_request(self.common_tool(sums=False))[0]), says("I have no tool for that.")]
            elif k < 0.52:
                q, a = self.copying()
                turns += [asks(q), says(a)]
            else:
                q, a, v, why, topic = self.question(follow if follow and self.chance(0.5) else None)
                if self.chance(0.12):  # as people type
                    q = q.lower() if topic and self.chance(0.6) else q.rstrip("?.")
                turns += [asks(q), says(v if brief else a, why)]
        return self.finish(turns)

    def copy_doc(self):
        """Several things to copy."""
        turns, system = [], self.system()
        if system:
            turns.append({"role": "system", "content": system})
        for _ in range(self.r.randint(1, 5)):
            q, a = self.copying()
            turns += [asks(q), says(a)]
        return self.finish(turns)

    # ---- needles

    def noise(self):
        f = dict(ADJ=self.choice(W.ADJ), OBJ=self.choice(W.OBJECT), OBJ2=self.choice(W.OBJECT), PLACE=self.choice(W.PLACE),
                 NAME=self.choice(W.FIRST), JOB=self.choice(W.JOB), FOOD=self.choice(W.FOOD), CITY=self.choice(W.CITY),
                 N=self.r.randint(2, 99))
        return self.choice(W.NOISE).format_map(f)

    def fact(self, key=None):
        """(statement, question, answer) about a thing of this split."""
        kind, statement, question, answer = self.choice(W.FACTS)
        v = {"name": lambda: self.name() if self.r.random() < 0.7 else self.person(), "digits": self.digits,
             "coined": lambda: self.odd() if self.r.random() < 0.5 else self.coined(2, 4), "place": lambda: self.choice(W.PLACE),
             "city": self.town, "price": lambda: self.digits(self.r.randint(1, 3)).lstrip("0") or "7"}[kind]()
        k = key or self.thing()
        return statement.format(K=k, V=v), question.format(K=k), answer.format(K=k, V=v)

    def facts(self, n):
        """n facts about different things; some things share their noun or their adjective."""
        keys = {}
        while len(keys) < n:
            k = self.thing()
            if self.r.random() < 0.25:
                k = f"{self.word().lower()} {self.choice(W.OBJECT)}"
            elif keys and self.r.random() < 0.3:
                a, o = self.choice(list(keys)).split()
                k = f"{a} {self.choice(W.OBJECT)}" if self.r.random() < 0.5 else f"{self.choice(W.ADJ)} {o}"
            if self.fits(k):
                keys[k] = None
        return [self.fact(k) for k in keys]

    def filler(self, chars):
        """About that many characters of stories and stray sentences, as a list of sentences."""
        out, n = [], 0
        while n < chars:
            s = self.story() if self.r.random() < 0.6 else [self.noise() for _ in range(4)]
            out += s
            n += sum(map(len, s)) + len(s)
        return out

    def needle_doc(self, max_chars=16500):
        r = self.r
        chars = int(300 * (max_chars / 300) ** (r.random() if r.random() < 0.7 else r.uniform(0.8, 1)))
        n = min(2 + chars // 400, r.randint(2, 24))
        facts, text = self.facts(n), self.filler(chars)
        for s, _, _ in facts:
            text.insert(r.randint(0, len(text)), s)
        asked = r.sample(facts, min(n, r.randint(1, 8)))
        body = " ".join(text)
        if r.random() < 0.3:
            turns = [{"role": "system", "content": "Use this text:\n" + body}, asks(asked[0][1]), says(asked[0][2])]
        else:
            turns = [asks(f"{body}\n\n{asked[0][1]}"), says(asked[0][2])]
        for _, q, a in asked[1:]:
            turns += [asks(q), says(a)]
        return self.finish(turns)

    # ---- documents

    def finish(self, turns, tools=()):
        """Choose the think switch and how much reasoning of earlier turns the text keeps."""
        return render(turns, tools, thinking=self.chance(0.6), keep_all=self.chance(0.5))

    def document(self):
        """One training document as render() gives it; about half of all tokens are tools, a quarter long texts."""
        kind = self.r.choices((self.story_doc, self.chat_doc, self.copy_doc, self.tool_doc, self.needle_doc), (8, 32, 24, 36, 6))[0]
        return kind()


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("what", choices=("show",))
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--held", action="store_true")
    ap.add_argument("--count", type=int, default=2)
    ap.add_argument("--only", choices=("story", "chat", "copy", "tool", "needle"))
    a = ap.parse_args()
    m = Maker(a.seed, a.held)
    makes = {"story": m.story_doc, "chat": m.chat_doc, "copy": m.copy_doc, "tool": m.tool_doc, "needle": lambda: m.needle_doc(900)}
    for kind, make in makes.items():
        if a.only in (None, kind):
            for _ in range(a.count):
                print("|".join(make()), "\n")


if __name__ == "__main__":
    main()
