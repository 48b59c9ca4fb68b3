"""Small pieces of template language: ours and jinja2 give the same bytes, or both refuse."""
import jinja2
import pytest

from jinja_reference import expected, render

VARIABLES = {
    "s": "Hello, Wörld!  ", "t": "a,b,,c", "n": 7, "f": 2.5, "neg": -7, "big": 123456789012, "yes": True, "no": False,
    "none": None, "empty": "", "u64": 18446744073709551615, "l": [3, 1, 2], "ls": ["b", "A", "c", "a"], "e": [],
    "d": {"b": 1, "a": [1, 2.0, "x"], "c": {"k": None}}, "ml": "one\n  two\n\nthree\n", "uni": "ÄÖÜ straße ΑΣ ﬁ İ 😀",
    "q": "it's \"quoted\" \\ \t\n\x7f\u200b é", "html": "<a href='x'>&</a>", "num": "42", "pi": "3.14", "tag": "<|user|>",
    "floats": [0.1, 1.0, 1e7, 1e16, 1.5e300, 1e-5, 0.0001, 123456.75, -0.0, 5e-324],
    "people": [{"name": "Zoe", "age": 30, "tags": ["x"], "home": {"city": "Rom"}},
               {"name": "adam", "age": 25, "tags": [], "home": {"city": "Oslo"}},
               {"name": "Eve", "age": 30, "home": {}}],
    "schema": {"type": "object", "properties": {"items": {"type": "array", "items": {"type": "string"}}, "get": 1},
               "required": ["items"]},
    "tree": [{"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3, "kids": [{"v": 4, "kids": []}]}]}, {"v": 5, "kids": []}],
}

pytestmark = pytest.mark.filterwarnings("ignore:invalid escape")

# One snippet a line; \n stands for a line break.
SNIPPETS = r"""
{{ s }}|{{ n }}|{{ f }}|{{ yes }}|{{ none }}|{{ missing }}|{{ l }}|{{ d }}|{{ e }}|{{ empty }}
{{ floats }}|{{ floats|tojson }}
{{ q }}|{{ [q] }}|{{ q|tojson }}|{{ {q: q} }}
{{ uni }}|{{ [uni] }}|{{ uni|tojson(ensure_ascii=True) }}|{{ uni|tojson }}
{{ u64 }}|{{ [u64]|tojson }}|{{ u64 is integer }}
{{ 1 + 2 * 3 - 4 }}|{{ 7 / 2 }}|{{ 7 // 2 }}|{{ -7 // 2 }}|{{ 7 % 3 }}|{{ -7 % 3 }}|{{ 7 % -3 }}|{{ 2 ** 10 }}|{{ 2 ** -1 }}
{{ 6 / 3 }}|{{ 7.5 // 2 }}|{{ -7.5 // 2 }}|{{ -7.5 % 2 }}|{{ 7.5 % -2 }}|{{ 2 ** 0.5 }}|{{ -2 ** 2 }}|{{ 2 ** 3 ** 2 }}
{{ 1e3 }}|{{ 1_000 }}|{{ 0x1F }}|{{ 0b101 }}|{{ 0o17 }}|{{ 1.5e-3 }}|{{ 00 }}|{{ 1_0.5 }}
{{ 'a' ~ 1 ~ 2.0 ~ none ~ true ~ missing ~ [1] }}|{{ 'a' + 'b' }}|{{ 'ab' * 3 }}|{{ 3 * 'ab' }}|{{ [1] * 2 + [2] }}|{{ (1,) + (2,) }}
{{ "1" + 2 ~ 3 + "4" }}|{{ 2 * 3 ~ 4 }}
{{ 1 < 2 < 3 }}|{{ 1 < 3 < 2 }}|{{ 1 == 1.0 }}|{{ true == 1 }}|{{ 'a' < 'b' }}|{{ [1, 2] < [1, 3] }}|{{ 'é' > 'z' }}|{{ none == none }}
{{ 'ell' in s }}|{{ 'x' not in s }}|{{ 1 in l }}|{{ 'a' in d }}|{{ 'z' in missing }}|{{ not 1 in l }}|{{ 1 in (1, 2) }}|{{ '' in '' }}
{{ true and 'x' }}|{{ false or 'y' }}|{{ none or missing or 0 }}|{{ 0 and x.y }}|{{ not none }}|{{ 1 if yes else 2 }}|{{ 1 if no }}
{{ 'a' if no else 'b' if no else 'c' }}|{{ ('x' if yes else 'y') ~ 'z' }}
{{ s[0] }}|{{ s[-3] }}|{{ s[1:4] }}|{{ s[::-1] }}|{{ s[::2] }}|{{ s[10:2:-3] }}|{{ s[-4:] }}|{{ s[:100] }}|{{ s[5:2] }}|{{ s[99] }}
{{ l[0] }}|{{ l[-1] }}|{{ l[1:] }}|{{ l[::-1] }}|{{ l[::-2] }}|{{ l[:-1] }}|{{ l[7] }}|{{ l[none:2] }}|{{ l[true] }}|{{ (1,2,3)[1:] }}
{{ range(5)[1:3] | list }}|{{ range(10)[::3] | list }}|{{ range(5)[-1] }}|{{ range(3) }}|{{ range(1, 8, 3) }}|{{ range(5, 0, -2) | list }}
{{ d.b }}|{{ d['b'] }}|{{ d.c.k }}|{{ d.zz }}|{{ d['zz'] }}|{{ d.a[2] }}|{{ d.a.2 }}|{{ none.x }}|{{ n.x }}
{{ schema.properties.items.type }}|{{ schema.properties['items'].type }}|{{ schema['properties']['items']['items']['type'] }}
{{ schema.items is defined }}|{{ schema.keys is callable }}|{{ schema['keys'] is defined }}|{{ schema.nope is defined }}|{{ d.pop is defined }}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}|{% for k in d %}{{ k }}{% endfor %}|{{ d.keys() | list }}|{{ d.values() | list }}
{{ d.items() }}|{{ d.keys() }}|{{ d.values() }}|{{ d.items() | length }}|{{ d.items()[0] }}|{{ d.keys() is sequence }}
{{ d.get('b') }}|{{ d.get('x') }}|{{ d.get('x', 'dflt') }}|{{ d | items | list }}|{{ missing | items | list }}
{{ {'a': 1, 'b': [1, {'c': (1,)}], 2: none, 'a': 3} }}|{{ {} }}|{{ () }}|{{ (1,) }}|{{ (1, 2) }}|{{ [] }}|{{ [1, 'a', none] }}
{{ 'a' 'b' "c" }}|{{ 'it\'s' }}|{{ "\x41\u00e9\U0001F600\101\n\t\\\q" }}
{{ s | trim }}|{{ s | upper }}|{{ s | lower }}|{{ s | title }}|{{ 'hELLO wORLD' | capitalize }}|{{ uni | upper }}|{{ uni | lower }}
{{ uni | title }}|{{ uni.title() }}|{{ uni.capitalize() }}|{{ uni.swapcase() }}|{{ "they're bill's o-k (x)" | title }}|{{ "they're".title() }}
{{ s | length }}|{{ uni | length }}|{{ l | length }}|{{ d | count }}|{{ missing | length }}|{{ range(4) | length }}
{{ l | first }}|{{ l | last }}|{{ 'abc' | first }}|{{ 'abc' | last }}|{{ e | first }}|{{ d | first }}|{{ d | last }}
{{ l | join }}|{{ l | join(', ') }}|{{ people | join('; ', attribute='name') }}|{{ 'abc' | join('-') }}|{{ [1, none, 'x', missing] | join('|') }}
{{ missing | default('x') }}|{{ empty | default('x') }}|{{ empty | default('x', true) }}|{{ none | d('y') }}|{{ none | d('y', boolean=true) }}|{{ missing | default }}
{{ l | sort }}|{{ ls | sort }}|{{ ls | sort(case_sensitive=true) }}|{{ l | sort(reverse=true) }}|{{ people | sort(attribute='name') | map(attribute='name') | list }}
{{ people | sort(attribute='age,name') | map(attribute='name') | join(',') }}|{{ people | sort(attribute='age', reverse=true) | map(attribute='name') | join(',') }}
{{ ['a', 'A', 'b', 'a'] | unique | list }}|{{ [1, 1.0, true, 2] | unique | list }}|{{ ['a', 'A'] | unique(true) | list }}
{{ l | min }}|{{ l | max }}|{{ e | min }}|{{ ls | max }}|{{ people | max(attribute='age') | attr('x') }}|{{ (people | min(attribute='age')).name }}
{{ l | sum }}|{{ [0.5, 1] | sum }}|{{ people | sum(attribute='age') }}|{{ e | sum }}|{{ [[1], [2]] | sum(start=[]) }}
{{ people | map(attribute='name') | list }}|{{ ls | map('upper') | join }}|{{ people | map(attribute='home.city', default='?') | list }}|{{ people | map(attribute='name.0') | list }}
{{ people | selectattr('age', 'equalto', 30) | map(attribute='name') | list }}|{{ people | rejectattr('tags') | map(attribute='name') | list }}
{{ people | selectattr('tags', 'defined') | list | length }}|{{ people | selectattr('name', 'in', ['Eve']) | list | length }}
{{ [0, 1, '', 'a', none] | select | list }}|{{ range(6) | select('odd') | list }}|{{ range(6) | reject('divisibleby', 3) | list }}
{{ l | reverse | list }}|{{ 'abc' | reverse }}|{{ d | reverse | list }}|{{ missing | reverse | list }}|{{ ls | select('lower') | list }}
{{ 'abc' | list }}|{{ d | list }}|{{ range(3) | list }}|{{ missing | list }}|{{ (1, 2) | list }}
{{ range(7) | batch(3) | list }}|{{ range(7) | batch(3, 'x') | list }}|{{ e | batch(2) | list }}
{{ d | dictsort }}|{{ {'b': 1, 'A': 2} | dictsort }}|{{ {'b': 1, 'A': 2} | dictsort(true) }}|{{ {'b': 1, 'A': 2} | dictsort(by='value', reverse=true) }}
{{ -3 | abs }}|{{ -2.5 | abs }}|{{ '42' | int }}|{{ 'x' | int }}|{{ 'x' | int(5) }}|{{ '42.9' | int }}|{{ -2.9 | int }}|{{ 'ff' | int(0, 16) }}|{{ none | int }}|{{ true | int }}|{{ ' 1_0 ' | int }}|{{ '0x1A' | int(0, 16) }}|{{ '-5' | int }}
{{ '3.5' | float }}|{{ 'x' | float }}|{{ 'x' | float(1.5) }}|{{ 3 | float }}|{{ '1e3' | float }}|{{ 'inf' | float }}|{{ none | float }}|{{ '1__0' | float }}
{{ 2.5 | round }}|{{ 3.5 | round }}|{{ 2.675 | round(2) }}|{{ 7 | round }}|{{ 1234 | round(-2) }}|{{ 1250 | round(-2) }}|{{ -1250 | round(-2) }}|{{ 2.1 | round(0, 'ceil') }}|{{ 2.19 | round(1, 'floor') }}|{{ 1234.5 | round(-2) }}
{{ s | replace('l', 'L') }}|{{ s | replace('l', 'L', 1) }}|{{ 'abc' | replace('', '-') }}|{{ 111 | replace(1, 2) }}|{{ 'aaa'.replace('aa', 'b') }}|{{ 'abc'.replace('', '-', 2) }}
{{ ml | indent }}|{{ ml | indent(2, true) }}|{{ ml | indent('> ', blank=true) }}|{{ '' | indent(first=true) }}|{{ 'a\r\nb' | indent(1) }}
{{ 'x' | center(9) }}|{{ 'xy' | center(9) }}|{{ 'xy'.center(5) }}|{{ 'xy'.ljust(4, '.') }}|{{ 'xy'.rjust(4) }}|{{ 'abc'.center(6, '*') }}
{{ html | e }}|{{ html | escape | upper }}|{{ html | safe }}|{{ 'one two  three' | wordcount }}|{{ 'foo bar baz qux' | truncate(9) }}|{{ 'foo bar baz qux' | truncate(9, true, '..', 0) }}
{{ d | tojson }}|{{ l | tojson }}|{{ none | tojson }}|{{ yes | tojson }}|{{ 'é<>&' | tojson }}|{{ {1: 2, none: 3, true: 4, 2.5: 5} | tojson }}|{{ (1, (2,)) | tojson }}
{{ d | tojson(indent=2) }}|{{ {'b': {}, 'a': []} | tojson(indent=4, sort_keys=true) }}|{{ d | tojson(separators=(',', ':')) }}|{{ l | tojson(indent=0) }}|{{ l | tojson(indent='--') }}
{{ s.strip() }}|{{ s.lstrip('He') }}|{{ s.rstrip(' !') }}|{{ '  x '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ '\u00a0 x\u3000'.strip() }}|{{ 'abc' | trim('ac') }}
{{ t.split(',') }}|{{ t.split(',', 1) }}|{{ t.rsplit(',', 1) }}|{{ ' a  b c '.split() }}|{{ ' a  b c '.split(none, 1) }}|{{ ' a  b c '.rsplit(none, 1) }}|{{ ' a b '.split(' ') }}|{{ 'a'.split('x') }}|{{ ''.split() }}|{{ ''.split(',') }}|{{ t.split(sep=',', maxsplit=2) }}
{{ 'a</t>b</t>c'.split('</t>')[-1] }}|{{ 'abcabc'.rsplit('b') }}|{{ 'aXXbXXc'.rsplit('XX', 1)[0] }}|{{ 'aaaa'.rsplit('aa') }}|{{ 'aaa'.split('aa') }}
{{ 'a\nb\r\nc\x0bd'.splitlines() }}|{{ 'a\nb\n'.splitlines(true) }}|{{ ''.splitlines() }}|{{ '\n'.splitlines() }}
{{ s.startswith('Hell') }}|{{ s.endswith('!') }}|{{ s.startswith(('x', 'H')) }}|{{ s.startswith('e', 1) }}|{{ 'abc'.endswith('b', 0, 2) }}|{{ ''.startswith('') }}|{{ 'a'.startswith('', 5) }}
{{ s.find('o') }}|{{ s.rfind('o') }}|{{ s.find('zz') }}|{{ uni.find('ß') }}|{{ s.find('l', 4) }}|{{ s.find('H', -99) }}|{{ s.count('l') }}|{{ 'aaa'.count('aa') }}|{{ 'abc'.count('') }}|{{ s.index('W') }}|{{ 'abab'.rindex('ab') }}|{{ 'abc'.find('', 9) }}
{{ '-'.join(['a', 'b']) }}|{{ ''.join('abc') }}|{{ 'a=b=c'.partition('=') }}|{{ 'a=b=c'.rpartition('=') }}|{{ 'abc'.partition('x') }}|{{ 'abc'.rpartition('x') }}|{{ 'abc'.removeprefix('a') }}|{{ 'abc'.removesuffix('bc') }}|{{ 'abc'.removesuffix('') }}
{{ 'abc'.isalpha() }}|{{ '12'.isdigit() }}|{{ '1a'.isalnum() }}|{{ ' \n'.isspace() }}|{{ 'AB'.isupper() }}|{{ 'ab1'.islower() }}|{{ '²'.isdigit() }}|{{ '²'.isdecimal() }}|{{ '½'.isnumeric() }}|{{ ''.isalpha() }}|{{ 'é'.isascii() }}|{{ 'ǅ'.isupper() }}
{{ 'abc'.upper().lower().title() }}|{{ 'x'.upper is defined }}|{{ l.index(2) }}|{{ l.count(1) }}|{{ l.copy() }}|{{ (1, 1).count(1) }}
{{ '%s is %d, %.2f%%' % ('x', 3.7, 2.5) }}|{{ '%5s|%-5s|%05d|%+d|%x|%X|%o|%#x' % ('a', 'b', 42, 7, 255, 255, 8, 255) }}|{{ '%(a)s %(b)r' % {'a': 1, 'b': 'x'} }}|{{ '%s' % none }}|{{ '%e %g' % (12345.678, 0.0001) }}|{{ '%s' % [1, 2] }}
{{ '{} {}'.format(1, 'a') }}|{{ '{1} {0} {x}'.format(1, 2, x=3) }}|{{ '{:>5}|{:<5}|{:^5}|{:05d}|{:.2f}|{:,}|{:x}'.format('a', 'b', 'c', 42, 2.345, 1234567, 255) }}|{{ '{{}}'.format() }}|{{ '{!r}'.format('a') }}|{{ '{:.1%}'.format(0.25) }}|{{ '{:*^9}'.format('mid') }}|{{ '%s %s' | format('a', 1) }}|{{ '%(x)s' | format(x=3) }}
{{ missing is defined }}|{{ missing is undefined }}|{{ d.x is defined }}|{{ none is none }}|{{ s is string }}|{{ d is mapping }}|{{ l is iterable }}|{{ l is sequence }}|{{ d is sequence }}|{{ s is sequence }}|{{ n is number }}|{{ f is integer }}|{{ f is float }}|{{ yes is number }}|{{ yes is boolean }}|{{ yes is true }}|{{ 1 is true }}|{{ no is false }}
{{ missing is sequence }}|{{ missing is iterable }}|{{ missing is string }}|{{ n is iterable }}|{{ range(2) is sequence }}|{{ n is odd }}|{{ n is even }}|{{ 9 is divisibleby 3 }}|{{ 9 is divisibleby(2) }}|{{ 'AB' is upper }}|{{ 'ab' is lower }}|{{ n is eq 7 }}|{{ n is not equalto 7 }}|{{ n is gt 3 }}|{{ n is in [7] }}|{{ n is sameas none }}|{{ 'trim' is filter }}|{{ 'odd' is test }}
{{ x is defined and x.y }}|{{ (n is defined) and n > 3 }}|{{ n is not none }}|{{ not n is none }}|{{ n is none or s is string }}|{{ s is string and not s is mapping }}
{% if l %}A{% elif d %}B{% else %}C{% endif %}{% if e %}A{% elif none %}B{% else %}C{% endif %}{% if no %}x{% endif %}{% if missing %}x{% elif n == 7 %}y{% endif %}
{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }}{{ x }};{% endfor %}
{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}|{% for x in l %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }}{% endfor %}
{% for x in e %}x{% else %}none{% endfor %}|{% for x in missing %}x{% else %}none{% endfor %}|{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}|{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for x in l %}{% continue %}{% else %}ELSE{% endfor %}|{% for x in l %}{% break %}{% else %}ELSE{% endfor %}
{% for x in range(6) if x is even %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ ',' if not loop.last }}{% endfor %}|{% for x in range(6) if x > 9 %}{{ x }}{% else %}no{% endfor %}
{% for p in people if p.age == 30 %}{{ p.name }}{% if loop.nextitem is defined %}+{{ loop.nextitem.name }}{% endif %};{% endfor %}
{% for a, b in [(1, 2), [3, 4]] %}{{ a }}-{{ b }};{% endfor %}|{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}|{% for c in 'héy' %}{{ c }}.{% endfor %}
{% for n in tree recursive %}[{{ loop.depth }}:{{ n.v }}{{ loop(n.kids) if n.kids }}]{% endfor %}
{% for x in l %}{% for y in l %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}|{% for x in (1, 2) %}{% set outer = loop %}{% for y in (1, 2) %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}
{% for k, v in d | dictsort %}{{ k }}{{ v }}{% endfor %}|{% for x in l | sort %}{{ x }}{% endfor %}|{% for x in l if x %}{{ x }}{% endfor %}|{% for x in (l if yes else e) %}{{ x }}{% endfor %}|{% for x in 1, 2 %}{{ x }}{% endfor %}
{% set x = 1 %}{{ x }}{% for i in l %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}|{% for i in l %}{{ y is defined }}{% set y = i %}{{ y }}{% endfor %}{{ y is defined }}|{% for n in l %}{% endfor %}{{ n }}
{% set ns = namespace(a=1, b=[]) %}{% for i in l %}{% set ns.a = ns.a + i %}{% set ns.b = ns.b + [i] %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.zz is defined }}|{{ ns['a'] }}|{{ ns }}|{% set ns.new = 1 %}{{ ns.new }}
{% set ns = namespace({'x': 1}, y=2) %}{{ ns.x }}{{ ns.y }}|{% set a, b = 1, 2 %}{{ a }}{{ b }}|{% set a, ns.x = [3, 4] %}{{ a }}{{ ns.x }}|{% set t2 = 1, 2 %}{{ t2 }}
{% set x %}a{{ n }}b{% endset %}[{{ x }}]|{% set x | upper | replace('A', 'z') %}abc{% endset %}{{ x }}|{% filter upper | trim %} abc {{ s }} {% endfilter %}|{% set x %}{% set z = 1 %}{% endset %}{{ z is defined }}
{% with a = 1, b = n %}{{ a }}{{ b }}{% set c = 3 %}{{ c }}{% endwith %}{{ a is defined }}{{ c is defined }}|{% with %}x{% endwith %}|{% with a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{% endwith %}
{% macro m(a, b=2, c=b) %}{{ a }}{{ b }}{{ c }}{{ d is mapping }}{% endmacro %}{{ m(1) }}|{{ m(1, 5) }}|{{ m(b=7, a=3) }}|{{ m() }}|{{ m(1, c=9) }}|{{ m.name }}|{{ m }}
{% macro m() %}{{ varargs }}{{ kwargs }}{{ caller is defined }}{% endmacro %}{{ m(1, 2, x=3) }}|{{ m() }}
{% macro m(x) %}<{{ caller() }}{{ x }}>{% endmacro %}{% call m(1) %}body{{ n }}{% endcall %}|{% macro w() %}{{ caller('A', b='B') }}{% endmacro %}{% call(a, b) w() %}{{ a }}{{ b }}{% endcall %}
{% macro fib(n) %}{% if n < 2 %}{{ n }}{% else %}{{ fib(n - 1) | int + fib(n - 2) | int }}{% endif %}{% endmacro %}{{ fib(12) }}|{% macro r(x) %}{{ x.v }}{% for k in x.kids %}({{ r(k) }}){% endfor %}{% endmacro %}{{ r(tree[0]) }}
{% macro m() %}{{ later }}{% endmacro %}{% set later = 5 %}{{ m() }}|{% set v = 1 %}{% macro g() %}{{ v }}{% set v = 2 %}{{ v }}{% endmacro %}{{ g() }}{{ v }}|{% for i in l %}{% macro h() %}{{ i }}{% endmacro %}{{ h() }}{% endfor %}
{% macro m() %}{{ n }}{% endmacro %}{% for i in [1] %}{{ n }}{{ m() }}{% endfor %}{% set n = 1 %}{{ n }}{{ m() }}|{% if no %}{% set f = 1 %}{% endif %}{{ f }}|{% set s = s ~ '!' %}{{ s }}
{% macro a(x) %}{{ x | upper }}{% endmacro %}{{ a('x') ~ 'y' }}|{{ a('q') | lower }}|{{ [a('z')] }}|{% set f = a %}{{ f('k') }}|{% set ns = namespace(g=a) %}{{ ns.g('j') }}
{{ dict(a=1, b=2) }}|{{ dict([('x', 1)]) }}|{{ dict({'y': 1}, z=2) }}|{% set j = joiner('; ') %}{{ j() }}a{{ j() }}b{{ j() }}|{{ dict(**d).b }}|{{ range(*[1, 4]) | list }}
{{ strftime_now('%Y-%m-%d %H:%M:%S %j %a %A %b %B %d %e %-d %I %p %y %U %W %V %G %u %w %% %F %T %D %R %c %x %X %h %n%t %z %Z %f %C %k %l %s2'[:92]) }}
{{ strftime_now('%d %b %Y') }}|{{ strftime_now('Today is %A, %B %d, %Y.') }}|{{ strftime_now('%Q %') }}|{{ strftime_now('é %H') }}|{{ strftime_now('%_d %^a %-m %-H') }}
{% generation %}x{{ n }}{% set inner = 1 %}{% endgeneration %}{{ inner is defined }}|{% print 1, 2 %}|{% if n is defined %}{% endif %}
{# comment #}a{#- b -#} c |{# multi\nline #}\nx|{#+ y +#}\nz|{##}
  {% if yes %}  \n  a  {% endif %}  \n  b\n{{ n }}  \n  {{ n }}
a  {%- if yes -%}  b  {%- endif -%}  c|{{- n -}}  d  {{- n }} e
  {%+ if yes %}x{% endif +%}\ny|{% if yes -%}\n\n  z{%- endif %}
a\n   {% set x = 1 %}\n   {# c #}\n   b\n\n{% set y = 2 %}\n\nc
{% raw %}{{ not }} {% if %}{# #}{% endraw %}|{%- raw -%}  x  {%- endraw -%}  y|  {% raw %}\n a {% endraw %}\n b|\n  {% raw %}  {% endraw %}\n
line one\r\nline {% if yes %}\r\ntwo{% endif %}\rthree\n\n
{{ {'a': {'b': 1}}['a']['b'] }}|{{ {'a': {}}}}|{{ [[1, [2]]][0][1][0] }}|{{ (((1))) }}
x{{ 1\n+ 2 }}{% set\nx\n=\n3 %}{{ x }}|{{ "a\nb" }}|{{ 'tab	x' }}
{{ people[0].home.city }}|{{ people[1]['home']['city'] }}|{{ people[-1].home.city }}|{{ people[0].tags[0] }}|{{ (people | first).name }}|{{ people[9] is defined }}
{{ people | map(attribute='age') | unique | sort | join(',') }}|{{ people | selectattr('age', '>', 26) | map(attribute='name') | map('lower') | join(' ') }}|{{ ls | map('replace', 'a', 'X') | list }}
{% set gen = ls | map('upper') %}{{ gen | list }}{{ gen | list }}|{% set g2 = ls | select('equalto', 'zzz') %}{{ 'truthy' if g2 else 'falsy' }}|{{ 'A' in (ls | map('upper')) }}
{{ true | string ~ 1 | string }}|{{ 5 | string | length }}|{{ l | string }}|{{ none | string }}|{{ missing | string | length }}|{{ 3.0 | string }}
{{ tag ~ '<|user|>' }}|{{ tag | replace('user', 'x') }}|{{ 'x' ~ tag[2:4] ~ tag.split('|') | join('/') }}
{{ -n }}|{{ +n }}|{{ --n }}|{{ - n + 1 }}|{{ not not n }}|{{ -f | abs }}|{{ (-f) | abs }}|{{ 2 - -2 }}
{{ l is eq [3, 1, 2] }}|{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }}|{{ [1] == (1,) }}|{{ range(3) == range(0, 3) }}|{{ missing == missing2 }}|{{ none == missing }}|{{ 'a' != 'b' }}|{{ [1, [2]] == [1.0, [2]] }}
{% if 'a' in 'abc' and 'z' not in 'abc' or no %}ok{% endif %}|{% if not (yes and no) %}ok{% endif %}|{{ yes and no or 'z' }}|{{ (1 if yes else 2) + 1 }}|{{ 1 + 1 if yes else 2 }}
{{ loop is defined }}|{% for x in l %}{% if loop is defined %}{{ loop.index }}{% endif %}{% endfor %}|{{ caller is defined }}
{% for x in [1, 2, 3] -%}\n  {{ x }}\n{%- endfor %}|{% for x in [1] %}\n  y\n{% endfor %}\nz
{{ big * 1000 }}|{{ 9007199254740993 + 0 }}|{{ big / 7 }}|{{ 10 ** 15 }}|{{ 1 / 3 }}|{{ 2 / 3 * 3 }}|{{ 0.1 + 0.2 }}|{{ 1e308 * 10 }}|{{ -1e308 * 10 }}|{{ (1e308 * 10) | tojson }}
{{ ('x' is string) if yes else 'no' }}
{{ [1, 2, 3] | tojson | length }}|{{ '"' ~ s | tojson ~ '"' }}|{{ d.a | tojson | replace(' ', '') }}|{{ {'k': tag} | tojson }}|{{ schema | tojson }}
{{ {'a': missing}.a is defined }}|{{ [missing] }}|{{ [missing | default(1)] }}|{{ {'k': [none, true]} }}
{{ 'abc' | map('upper') | list }}|{{ 'a-b_c' | replace('-', '_') | upper }}|{{ '  a  ' | trim | length }}|{{ ml.split('\n') | length }}|{{ ml.strip().split('\n') | map('trim') | list }}
{{ 5.x }}|{{ n is eq 1 is eq 2 }}|{{ 'x' | int(7, base=1) }}|{% set w = {'k1': 1, 'k2': 2, 'k3': 3, 'k4': 4, 'k5': 5, 'k6': 6, 'k7': 7, 'k8': 8, 'k9': 9, 'a': 10} %}{{ w.k9 }}{{ w['a'] }}{{ w.zz is defined }}{{ 'k3' in w }}{{ 3 in w }}{{ w.get('k10', '-') }}{{ w == dict(w) }}{{ w | tojson(sort_keys=true) }}
{% set w = {'k1': 1, 'k2': 2, 'k3': 3, 'k1': 4, 'k5': 5, 'k6': 6, 'k7': 7, 'k8': 8, 'k1': 9, 'a': 10} %}{{ w }}{{ w.k1 }}|{{ {1: 'a', true: 'b', 1.0: 'c', 2: 'd', 3: 'e', 4: 'f', 5: 'g', 6: 'h', 7: 'i', 'x': 'j'} }}
{% macro m() %}{{ s is defined }}{% endmacro %}{{ m() }}{% set s = 1 %}{{ m() }}|{% set t %}{{ t is defined }}{% endset %}{{ t }}|{% for x in l %}{% for y in l %}{{ q is defined }}{% endfor %}{% set q = 1 %}{% endfor %}
{% with z = 1 %}{% for i in l %}{{ f is defined }}{% endfor %}{% set f = 2 %}{{ f }}{% endwith %}{{ f }}|{% macro g() %}{% filter upper %}{{ ml is defined }}{% endfilter %}{% set ml = 1 %}{% endmacro %}{{ g() }}|{% for i in l %}{{ d is defined }}{% if yes %}{% set d = 1 %}{% endif %}{% endfor %}
{% for x in l recursive %}{{ x }}{% else %}{% endfor %}|{% for i in range(3) %}{% for x in e %}{% else %}{% break %}{% endfor %}{{ i }}{% endfor %}|{% for i in range(3) %}{% set c %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endset %}{{ c }}{% endfor %}
{{ people[1:] | map(attribute='name') | join(' and ') }}|{{ people | selectattr('home.city') | list | length }}|{{ [['b', 2], ['a', 1]] | sort(attribute=0) }}|{{ [{'n': none}, {'n': 1}] | map(attribute='n') | list }}
{{ 'a' * 0 }}|{{ 'a' * -1 }}|{{ [1] * 0 }}|{{ '' ~ '' }}|{{ true + 1 }}|{{ true * 'x' }}|{{ 5 | round(2) }}
""".split("\n")[1:-1]

# Both sides must refuse.
ERRORS = r"""
{{ missing.x }}
{{ missing['x'] }}
{{ d.x.y }}
{{ missing() }}
{{ d.nope() }}
{{ missing + 1 }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ none + 1 }}
{{ 'a' - 'b' }}
{{ [1] + (1,) }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 'a' < 1 }}
{{ none < 1 }}
{{ missing < 1 }}
{{ 1 in 5 }}
{{ 1 in 'abc' }}
{{ missing in 'abc' }}
{{ n.x.y }}
{{ n() }}
{{ s() }}
{{ l | join(5, 6, 7) }}
{{ n | length }}
{{ ls | map('upper') | length }}
{{ ls | map('nofilter') | list }}
{{ ls | select('notest') | list }}
{{ ls | nofilter }}
{{ ls is notest }}
{{ [1, 'a'] | sort }}
{{ [1, none] | max }}
{{ ['a'] | sum }}
{{ missing | int }}
{{ missing | abs }}
{{ 'x' | abs }}
{{ 'x' | round }}
{{ missing | tojson }}
{{ range(3) | tojson }}
{{ [missing] | tojson }}
{{ d.items() | tojson }}
{{ ls | map('upper') | tojson }}
{{ n | items | list }}
{{ n | list }}
{{ n | first }}
{{ ls | map('upper') | last }}
{{ l.append(1) }}
{{ d.update({}) }}
{{ d.pop('a') }}
{{ ''.join([1]) }}
{{ 'a'.split('') }}
{{ 'a'.index('z') }}
{{ l.index(9) }}
{{ 'a'.startswith(1) }}
{{ 'a'.nope }}{{ 'a'.nope() }}
{{ s | replace('a') }}
{{ s | trim(1, 2) }}
{{ s | trim(x=1) }}
{{ raise_exception('boom') }}
{{ strftime_now() }}
{{ range() }}
{{ range('a') }}
{{ range(1, 2, 0) }}
{{ range(1000000) }}
{{ namespace(1) }}
{{ dict(1) }}
{{ dict([1]) }}
{% set d.x = 1 %}
{% set missing.x = 1 %}
{% set a, b = 1 %}
{% set a, b = [1] %}
{% set a, b = [1, 2, 3] %}
{% for a, b in [1] %}{% endfor %}
{% for a, b in [[1, 2, 3]] %}{% endfor %}
{% for x in 5 %}{% endfor %}
{% for x in none %}{% endfor %}
{% for x in l %}{{ loop(x) }}{% endfor %}
{% for x in l %}{% set loop = 1 %}{% endfor %}
{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{% endmacro %}{{ m(b=2) }}
{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}
{% macro m(a) %}{{ a.b }}{% endmacro %}{{ m() }}
{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}
{{ m() }}{% macro m() %}{% endmacro %}
{{ '%d' % 'x' }}
{{ '%s %s' % 'x' }}
{{ '%s' % ('x', 'y') }}
{{ 'abc' % 5 }}
{{ '%(a)s' % {} }}
{{ '{} {}'.format(1) }}
{{ '{x}'.format(1) }}
{{ '{'.format(1) }}
{{ s[::0] }}
{{ s['a':2] }}
{{ n[1:2] }}
{{ missing[1:2] }}
{{ d[1:2] }}
{{ -s }}
{{ -missing }}
{{ {[1]: 2} }}
{{ [1] in d }}
{{ d.get([1]) }}
{{ l | batch }}
{{ l | tojson(indent=[]) }}
{{ 1e400 | int }}
{{ missing ** 2 }}
{{ l | dictsort }}
{{ [[1], [2]] | unique | list }}
{{ 'a' is divisibleby 2 }}
{{ n is equalto }}
{{ n is defined 1 }}
{{ x is defined if y else z }}
{{ 
{{ n
{{ n }
{% if %}{% endif %}
{% if n %}
{% endif %}
{% for x in l %}
{% for x l %}{% endfor %}
{% for 1 in l %}{% endfor %}
{% set 1 = 2 %}
{% set n %}
{% set %}
{% macro %}{% endmacro %}
{% macro m(a=1, b) %}{% endmacro %}
{% else %}
{% elif %}
{% unknown %}
{% if n %}{% endfor %}
{% break %}
{% for x in l recursive %}{% else %}{% break %}{% endfor %}
{% for x in l %}{% macro m() %}{% continue %}{% endmacro %}{% endfor %}
{% raw %}x
{# x
{{ 'x }}
{{ n | }}
{{ n is }}
{{ n. }}
{{ n[ }}
{{ (1, 2 }}
{{ [1, 2 }}
{{ {1} }}
{{ {1: } }}
{{ f(a=1, 2) }}
{{ f(a=1, a=2) }}
{{ 1 +  }}
{{ * 2 }}
{{ n n }}
{{ a = 1 }}
{{ a ! b }}
{{ a; b }}
{{ ) }}
{{ $ }}
{{ a ? b : c }}
{{ '\x4' }}
{{ true = 1 }}
{% set true = 1 %}
{% call n %}{% endcall %}
{% call m() %}x{% endcall %}
{% with a %}{% endwith %}
{% filter nope %}{% endfilter %}
{% for x in l %}{{ x }}{% endfor %}{% endfor %}
""".split("\n")[1:-1]


def readable(source):
    return source.replace("\\n", "\n").replace("\\r", "\r") if not source.startswith("{{") else source


@pytest.mark.parametrize("source", SNIPPETS)
def test_a_snippet_gives_what_jinja2_gives(source):
    source = readable(source)
    want = expected(source, VARIABLES)
    assert isinstance(want, str), f"the table's snippet fails in jinja2: {want!r}"
    text, mask, error = render(source, VARIABLES)
    assert text == want, error
    assert len(mask) == len(text.encode())


@pytest.mark.parametrize("source", ERRORS)
def test_what_jinja2_refuses_is_refused(source):
    want = expected(source, VARIABLES)
    assert isinstance(want, Exception), f"jinja2 accepts this and gives {want!r}"
    text, _, error = render(source, VARIABLES)
    assert text is None
    assert "chat template, line 1" in error or isinstance(want, jinja2.exceptions.TemplateError) and "boom" in error


def test_the_tables_are_large():
    assert len(SNIPPETS) + len(ERRORS) > 250
