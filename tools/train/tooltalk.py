"""Tools, requests for them, calls, results: the conversations in which the model uses tools.

A tool is (schema, phrase): the phrase asks for it in plain words, or is (parameters, ways) of an everyday tool.
"""
import json
import re

import toolwords as T
import words as W
from dialect import asks, says, upper
from questions import Questions

SIMPLE = re.compile(r"[^\s,;:=\"'?!]+")


def shown(value):
    """A value as people write it."""
    return value if isinstance(value, str) else json.dumps(value)


class ToolTalk(Questions):
    """The part of the generator that speaks of tools."""

    # ---- schemas

    def parameter(self, taken):
        """(name, schema) of a parameter."""
        kind = self.r.choices(("string", "integer", "number", "boolean", "enum"), (42, 20, 11, 13, 14))[0]
        while True:
            values, free = None, self.chance(0.6)
            if kind == "enum":
                name = self.choice(list(T.ENUMS))
                values = T.ENUMS[name]
                if free:
                    name, values = self.identifier(), self.options()
            else:
                name = self.identifier() if free else self.choice(T.KEYS) if self.chance(0.25) and kind != "boolean" else self.choice(T.PARAMS[kind])
            if name not in taken:
                break
        schema = {"type": "string", "enum": values} if values else {"type": kind}
        if self.chance(0.35):
            about = self.choice([f"the {self.spaced(name)} to use", self.phrase(2, 5), f"{self.choice(W.MORE)} of the {self.choice(W.MORE)}",
                                 f"The {self.spaced(name)}.", f"{upper(self.spaced(name))} of the {self.choice(T.NOUN)}", f"{upper(self.spaced(name))}, e.g. "
                                 + shown(self.value(schema)), f"The {self.spaced(name)}, for example {shown(self.value(schema))}"])
            schema = {"description": about, **schema} if self.chance(0.2) else {**schema, "description": about}
        if self.chance(0.03):
            schema["default"] = self.value(schema)
        return name, schema

    def options(self):
        """Values of an enum."""
        make = self.choice([self.odd, self.odd, lambda: self.choice(W.MORE), lambda: self.letters(1, 3) + self.digits(1), self.english])
        return list(dict.fromkeys(make() for _ in range(self.r.randint(2, 5))))

    def value(self, schema):
        if "enum" in schema:
            return self.choice(schema["enum"])
        return {"string": self.text, "integer": self.integer, "number": self.number, "boolean": lambda: self.chance(0.5)}[schema["type"]]()

    def wrap(self, name, about, props, need):
        """The JSON object of a tool, with the small differences that clients have."""
        params = {"type": "object", "properties": props}
        if need or self.chance(0.6):
            params["required"] = need
        if self.chance(0.1):
            params["additionalProperties"] = False
        f = {"name": name}
        if about:
            f["description"] = about
        if props or self.chance(0.8):
            f["parameters"] = params
        if self.chance(0.05):
            f["strict"] = True
        return {"type": "function", "function": f}

    def common_tool(self, sums=True):
        """A tool of everyday life; the wordings that ask for it replace the phrase. sums=False: none that the model needs no tool for."""
        name, about, params, ways = self.choice(T.COMMON)
        while not sums and name in T.SUMS:
            name, about, params, ways = self.choice(T.COMMON)
        known = {"integer", "number", "boolean"}
        keys = {k: self.choice(T.RENAMES.get(k, [k])) if self.chance(0.4) else k for k in params}
        if len(set(keys.values())) < len(keys):
            keys = {k: k for k in params}
        props = {}
        for k, t in params.items():
            props[keys[k]] = s = {"type": "string", "enum": t} if isinstance(t, list) else {
                "type": "boolean" if t == "on" else "integer" if t == "small" else t if t in known else "string"}
            if self.chance(0.3):
                s["description"] = self.choice([f"The {k}", f"{upper(k)} to use", f"{upper(k)}, e.g. {shown(self.slot(t))}", f"The {k} of the request."])
        need = [keys[k] for k in params if all("{" + k + "}" in w for w in ways)]
        if self.chance(0.15):
            name = self.identifier()
        return self.wrap(name, self.choice(about), props, need), (params, ways, keys)

    def slot(self, kind):
        """A value for a parameter of an everyday tool."""
        if isinstance(kind, list):
            return self.choice(kind)
        make = {"city": self.town, "name": lambda: self.name() if self.chance(0.7) else self.choice(W.GIVEN), "place": lambda: self.choice(W.PLACE),
                "text": lambda: self.choice([self.thing, self.phrase, self.sentence, self.text, self.odd])(), "path": self.path, "date": self.date,
                "currency": lambda: self.choice(["euros", "dollars", "pounds", "yen", "francs"]) if self.chance(0.6) else self.letters(3, 3, W.LETTERS),
                "symbol": lambda: self.letters(2, 5, W.LETTERS), "on": lambda: self.chance(0.5), "small": lambda: self.r.randint(1, 60),
                "integer": lambda: abs(self.integer()), "number": lambda: abs(self.number()), "boolean": lambda: self.chance(0.5), "time": self.clock,
                "email": self.email, "word": self.odd, "code": self.code, "url": self.url, "command": self.command, "unit": lambda: self.choice(T.UNITS),
                "sum": lambda: f"{self.r.randint(2, 999)} {self.choice('+-*/')} {self.r.randint(2, 999)}"}
        return make[kind]()

    def tool(self, key=None):
        """A tool of this split: (schema, phrase that asks for it)."""
        if key is None and not self.held and self.chance(0.2):
            return self.common_tool()
        opaque = False
        if key is None and self.chance(0.06):
            name, phrase = self.choice(T.NO_ARGS)
            props = {}
        else:
            key, phrase, name = self.named(key)
            props = {}
            opaque = self.chance(0.1)
            if opaque:
                name = self.identifier()  # only the description tells what it does
            for _ in range(self.r.choices((0, 1, 2, 3, 4), (7, 30, 32, 22, 9))[0]):
                p, s = self.parameter(props)
                props[p] = s
        about = self.about(phrase)
        if not opaque and self.chance(0.08):
            about = self.choice(["", "", upper(self.phrase(2, 6)) + "."])  # only the name tells
        return self.wrap(name, about, props, [p for p in props if self.chance(0.7)]), phrase

    def named(self, key):
        """(verb and noun, phrase, name) of a new tool."""
        if key is None and self.chance(0.1):  # a verb with a particle
            verb, part = self.choice(T.PHRASAL).split() if self.chance(0.7) else (self.word().lower(), self.choice(["up", "down", "off", "out", "in"]))
            noun = self.choice(T.NOUN) if self.chance(0.4) else self.choice(W.MORE) if self.chance(0.6) else self.word().lower()
            phrase = f"{verb} the {noun} {part}" if self.chance(0.6) else f"{verb} {part} the {noun}"
            return f"{verb} {noun}", phrase, self.choice([f"{verb}{part}", f"{verb}_{part}", f"{verb}_{part}_{noun}", f"{verb}{part}_{noun}"])
        verbs = T.VERB if self.chance(0.5) else T.MORE_VERBS
        if key is None:
            k = self.r.random()
            key = (self.pair(verbs, T.NOUN if self.chance(0.5) else W.MORE) if k < 0.5 else f"{self.choice(verbs)} {self.word().lower()}" if k < 0.85
                   else f"{self.word().lower()} {self.word().lower()}")
        phrase = key.replace(" ", " the ", 1)
        if self.chance(0.25):
            extra = self.choice(W.MORE) if self.chance(0.6) else self.word().lower()
            key, phrase = key.replace(" ", f" {extra} ", 1), phrase.replace(" the ", f" the {extra} ", 1)
        k, parts = self.r.random(), key.split(" ")
        name = "_".join(parts)
        if k < 0.10:
            name = parts[0] + "".join(map(upper, parts[1:]))
        elif k < 0.13:
            name = "-".join(parts)
        elif k < 0.16:
            name = "".join(map(upper, parts))
        elif k < 0.19:
            name = f"{self.word().lower()}_{name}"
        elif k < 0.21:
            name = "".join(parts)
        elif k < 0.24:
            name = "_".join(parts[1:] + parts[:1])
        return key, phrase, name

    def about(self, phrase):
        """A description that says what the phrase says."""
        verb, _, rest = phrase.partition(" ")
        k = self.r.random()
        if k < 0.15 and verb in T.SAME:
            verb = self.choice([v for v in T.SAME[verb] if " me" not in v])
        if k > 0.9:
            rest = rest.replace("the ", self.choice(["a ", "your ", "one ", "a given "]), 1)
        text = f"{verb} {rest}".strip()
        form = self.r.random()
        if form < 0.72:
            return upper(text) + self.choice(T.TAILS) + self.choice([".", ".", ".", ""])
        if form < 0.8 and verb.isalpha():
            return upper(f"{verb}s {rest}") + self.choice(T.TAILS) + "."
        return self.choice(["Use this to {}.", "Tool to {}.", "This tool can {}.", "A tool that helps to {}.", "Call it to {}."]).format(text)

    def toolbox(self):
        """Some tools with different names."""
        tools = [self.tool() for _ in range(self.r.choices((1, 2, 3, 4, 5, 6), (20, 26, 26, 14, 9, 5))[0])]
        verb, _, noun = tools[0][0]["function"]["name"].partition("_")
        if self.chance(0.25) and verb in T.VERB and noun in T.NOUN:  # add a close relative
            near = f"{verb} {self.choice(T.NOUN)}" if self.chance(0.6) else f"{self.choice(T.VERB)} {noun}"
            if self.fits(near):
                tools.append(self.tool(near))
        names = {}
        for t in tools:
            names.setdefault(t[0]["function"]["name"], t)
        tools = list(names.values())
        self.r.shuffle(tools)
        return tools

    # ---- requests

    def common_request(self, tool):
        """-> (question of the user, the call it asks for)."""
        (params, ways, keys), said, args = tool[1], {}, {}
        way = self.choice(ways)
        for k, t in params.items():
            if "{" + k + "}" in way:
                v = args[keys[k]] = self.slot(t)
                said[k] = ("on" if v else "off") if t == "on" else shown(v)
        text = way.format_map(said)
        if self.chance(0.25) and text[-1] in "?." and not text.endswith('".'):
            text = text[:-1] + self.choice([" today", " now", " please", " for me", ", please", " right now"]) + text[-1] if way[-2] != "}" else text
        if self.chance(0.1):
            text = text.replace("What is", "What's").replace("How is", "How's")
        return text, {"name": tool[0]["function"]["name"], "arguments": args}

    def spoken(self, name, value):
        """How a user mentions an argument: (text, it may stand before 'and')."""
        label = name if self.chance(0.22) else self.spaced(name)
        if isinstance(value, bool):
            return self.choice(T.TRUE if value else T.FALSE).format(label), True
        v = shown(value)
        if not isinstance(value, str) and self.chance(0.08):
            v += " " + self.choice(T.UNITS)
        short = bool(SIMPLE.fullmatch(v))
        if isinstance(value, str) and self.chance(0.25 if short else 0.45 if "," not in v else 1.0):
            v, short = (f'"{v}"' if self.chance(0.85) or "'" in v else f"'{v}'"), True
        if name in T.NATURAL and self.chance(0.4):
            return T.NATURAL[name].format(v), short
        if self.chance(0.04):
            return self.choice([f"{v} as {label}", f"{v} as the {label}", f"use {v} as {label}"]), True
        form = self.choice(T.PAIRED)
        return (form.format(v, label) if form == "use {} as {}" else form.format(label, v)), short

    def core(self, phrase):
        """The phrase as a user says it: a or my for the, another verb for the tool's."""
        if any(phrase == p for _, p in T.NO_ARGS):
            return phrase
        verb, _, rest = phrase.partition(" ")
        if verb in T.SAME and self.chance(0.18):
            verb = self.choice(T.SAME[verb])
        rest = rest.replace("the ", self.choice(["the ", "the ", "the ", "a ", "my ", "this ", "", "our "]), 1)
        return f"{verb} {rest}".strip()

    def request(self, tool):
        """-> (what the user says, the call it asks for)."""
        f = tool[0]["function"]
        params = f.get("parameters", {"properties": {}})
        props, need = params["properties"], params.get("required", [])
        args = {k: self.value(s) for k, s in props.items() if k in need or self.chance(0.5)}
        phrase = self.core(tool[1])
        rest = list(args.items())
        strings = [k for k, s in props.items() if s["type"] == "string" and "enum" not in s]
        if len(strings) == 1 and strings[0] in args and self.chance(0.2):  # one string alone needs no name
            v = args[strings[0]]
            rest = [x for x in rest if x[0] != strings[0]]
            phrase += f' "{v}"' if self.chance(0.7) or not SIMPLE.fullmatch(v) else f" {v}"
        elif rest and self.chance(0.1):  # an enum's value may stand alone
            k, v = rest[0]
            others = [s for n, s in props.items() if n != k and "enum" in s]
            if "enum" in props[k] and not others and not isinstance(v, bool):
                rest = rest[1:]
                phrase += self.choice([f", {v}", f" in {v}", f" ({v})"])
        said = [self.spoken(k, v) for k, v in rest]
        if self.chance(0.65):
            self.r.shuffle(said)
        return self.arrange(phrase, said), {"name": f["name"], "arguments": args}

    def arrange(self, phrase, said):
        """Phrase and arguments in one sentence or several."""
        if not said:
            return phrase
        texts, k = [s for s, _ in said], self.r.random()
        if k < 0.06:
            return phrase + ":\n" + "\n".join("- " + t for t in texts) if self.chance(0.5) else phrase + "\n" + "\n".join(texts)
        if k < 0.12:
            return f"{phrase}. " + ". ".join(map(upper, texts))
        if k < 0.16:
            return f"{phrase} ({', '.join(texts)})"
        glue = self.choice([", ", ", ", " ", ": ", " with "]) if not texts[0].startswith(("with", "using", "set", "use", "and", "not")) else self.choice([" ", ", "])
        out = phrase + glue + texts[0]
        for i, t in enumerate(texts[1:]):
            calm = said[i][1]
            last = i == len(texts) - 2
            out += (self.choice([" and ", ", and ", ", "]) if last and calm and not t.startswith("and ") else
                    " " if calm and self.chance(0.08) else ", ") + t
        return out

    # ---- results

    def result(self):
        """A tool result and the sentence that reports it."""
        k = self.r.random()
        if k < 0.12:
            why = self.choice(["not found", "no access", "timeout", "out of stock", "wrong code", "already done"]) if self.chance(0.6) else self.phrase(2, 4)
            return json.dumps({"error": why}), f"That did not work: {why}."
        if k < 0.25:
            return self.choice([json.dumps({"status": "ok"}), "ok", json.dumps({"ok": True}), json.dumps({"success": True}), "done", "OK"]), "Done."
        if k < 0.37:
            text = self.choice([self.text, self.phrase, self.sentence, lambda: shown(self.number())])()
            return text, f"The result is {text}."
        out = {}
        for _ in range(self.r.choices((1, 2, 3), (45, 40, 15))[0]):
            name, schema = self.parameter(out)
            out[name] = self.value(schema)
        told = " and ".join(f"the {self.spaced(n)} is {shown(v)}" for n, v in out.items())
        return json.dumps(out, ensure_ascii=False), upper(told) + "."

    # ---- turns

    def tool_turn(self, tools, kind):
        """One request with its calls, results and answer."""
        if kind == "none":
            return self.absent_turn(tools)
        if kind == "chat":
            return self.plain_turn(tools)
        plain = [t for t in tools if isinstance(t[1], str)]
        if kind == "one" or not plain:
            picked = [self.choice(tools)]
            if isinstance(picked[0][1], tuple):
                said, call = self.common_request(picked[0])
                result, told = self.result()
                return [asks(said), says("", f"I need {call['name']}.", [call]), {"role": "tool", "content": result}, says(told)]
        else:
            picked = [self.choice(plain) for _ in range(self.r.choice((2, 2, 3)))]
        said, calls = zip(*[self.request(t) for t in picked])
        asked = self.choice(T.PLEASE).format(self.choice(["; then ", "; also ", "; and "]).join(said))
        asked = asked if self.chance(0.1) else upper(asked)
        results, told = zip(*[self.result() for _ in calls])
        names = [c["name"] for c in calls]
        if kind == "chain":  # one call at a time, each after the result of the last
            turns = [asks(asked + self.choice([" One after the other.", " Step by step.", " One at a time."]))]
            for i, call in enumerate(calls):
                turns += [says("", f"Next I need {names[i]}.", [call]), {"role": "tool", "content": results[i]}]
        else:
            turns = [asks(asked), says("", "I need " + ", then ".join(names) + ".", calls)]
            turns += [{"role": "tool", "content": x} for x in results]
        return turns + [says(" ".join(told))]

    def absent_turn(self, tools):
        """A request that no tool of the box can fulfil: another verb and another noun than all of them have."""
        here = json.dumps([t[0] for t in tools]).lower()
        decline = says("I have no tool for that.", "No tool fits.")
        if self.chance(0.3):
            for _ in range(20):
                tool = self.common_tool(sums=False)
                about = tool[0]["function"]
                said = self.common_request(tool)[0]
                if not any(w in here for w in re.findall(r"[a-z]{4,}", (about["description"] + " " + about["name"]).lower())):
                    return [asks(said), decline]
        while True:
            key = self.pair(T.VERB if self.chance(0.6) else T.MORE_VERBS, T.NOUN if self.chance(0.6) else W.MORE)
            if self.chance(0.3):
                key = f"{self.choice(T.VERB)} {self.word().lower()}"
            if self.chance(0.2):  # the verb of a tool that is there, for something else
                verb = self.choice(tools)[0]["function"]["name"].split("_")[0]
                key = f"{verb} {key.split()[1]}" if verb in T.VERB else key
            verb, noun = key.split()
            if noun not in here and (verb not in here or self.chance(0.5)):
                break
        phrase = self.core(key.replace(" ", " the ", 1))
        said = [self.spoken(*self.argument()) for _ in range(self.r.randint(0, 2))]
        return [asks(upper(self.choice(T.PLEASE).format(self.arrange(phrase, said)))), decline]

    def plain_turn(self, tools):
        """A question or small talk beside tools, which needs none."""
        here = json.dumps([t[0] for t in tools]).lower()
        if self.chance(0.3):
            while True:
                ways, answers = self.choice(W.SMALL_TALK)
                asked = self.choice(ways)
                if not any(w in here and w in asked.lower() for w in ("time", "date", "day", "song", "music", "joke", "poem", "program", "speak")):
                    return [asks(asked), says(answers[0])]
        sums = any(w in here for w in ("expression", "numbers", "multiply", "calculat", "count"))
        q, a, _, why, _ = self.question("capital" if sums else None, False)
        return [asks(q), says(a, why)]

    def argument(self):
        name, schema = self.parameter(())
        return name, self.value(schema)

    def tool_doc(self):
        tools, turns = self.toolbox(), []
        system = self.system()
        if system:
            turns.append({"role": "system", "content": system})
        for _ in range(self.r.choices((1, 2, 3), (55, 28, 17))[0]):
            turns += self.tool_turn(tools, self.r.choices(("one", "many", "chain", "none", "chat"), (62, 13, 6, 9, 10))[0])
        if self.chance(0.25):  # stop right after a call
            while turns[-1]["role"] == "tool" or not turns[-1].get("calls"):
                if len(turns) < 3 or turns[-1]["role"] == "user":
                    return self.tool_doc()
                turns.pop()
        return self.finish(turns, [t[0] for t in tools])
