"""Templates with what Jinja2 makes of them, one JSON object a line: template, variables, and out or error.

jinja_cases.py written          templates written by hand, each about one part of the language
jinja_cases.py random SEED N    random templates
jinja_cases.py chat SEED N      random templates of what chat templates are made of
jinja_cases.py render           cases {template, variables} from standard input

Jinja2 is set up as the transformers library does for chat templates.
"""

import json
import random
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

VARIABLES = {
    "zero": 0, "one": 1, "many": 12, "minus": -7, "half": 0.5, "big": 1e20, "tiny": 1.5e-7, "yes": True, "no": False, "nothing": None,
    "empty": "", "word": "Hello", "line": "  two words \n", "accents": "\u00e9t\u00e9 \u00c4\u00df \u0416\u0436 \U0001f999", "quotes": "it's \"so\" \\ <b>&",
    "numbers": [3, 1, 2], "words": ["b", "A", "c", "a"], "nested": [[1, 2], [3]], "void": [],
    "person": {"name": "Ada", "age": 36, "tags": ["x", "y"], "none": None}, "people": [{"name": "Bo", "age": 2}, {"name": "al", "age": 1}, {"age": 3}],
    "messages": [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": " Hi \n"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"b": 1, "A": [True, None, "x"]}}}]},
    ],
}

WRITTEN = [
    # White space
    "a\n{% if yes %}\nb\n{% endif %}\nc\n", "a\n  {% if yes %}\n  b\n  {% endif %}\n  c", "a  {%- if yes -%}  b  {%- endif -%}  c", "a {{- word -}} b",
    "a {{ word }}\n\nb", "  {%+ if yes %}x{% endif %}", "{% if yes +%}\nx{% endif %}", "a{# note #}b", "a\n  {# note #}\nb", "a {#- note -#} b", "x\r\ny\rz\n\n",
    "{% raw %}{{ x }} {% if %}{% endraw %}|", "{%- raw -%}  {{ x }}  {%- endraw -%} y", "  {{ word }}\n  {{ word }}\n", "{{ '{{' }}{{ '%}' }}", "\n{% set x = 1 %}\n\n{{ x }}",
    "{% for i in numbers %}\n- {{ i }}\n{% endfor %}\nend", "a\t{% set x = 2 %}\tb", "text\n   {%- set x = 1 %}\n   {{ x }}", "{{ {'a': {'b': 1}}['a'] }}", "{{ {'a':{}} }}", "\u00a0{%- if yes %}x{% endif %}",
    # Literals
    "{{ 1 }} {{ 1.5 }} {{ 1e3 }} {{ 1_000 }} {{ 'a' 'b' }} {{ \"q'\" }} {{ 'n\\n\\t\\\\ \\x41 \\u00e9 \\q' }}", "{{ true }} {{ True }} {{ none }} {{ None }} {{ false }}",
    "{{ [1, 'a', none, true, 1.0] }} {{ (1, 2) }} {{ (1,) }} {{ () }} {{ {'a': 1, 2: 'b'} }} {{ [] }} {{ {} }}", "{{ 1, 2 }}", "{{ half }} {{ big }} {{ tiny }} {{ 1e16 }} {{ 1e15 }} {{ 0.1 }} {{ 100.0 }} {{ 1e-5 }} {{ 0.0001 }}",
    "{{ accents }} {{ [accents] }} {{ [quotes] }} {{ [line] }} {{ ['\\x00\\x7f\\u200b'] }}", "{{ person }} {{ people }}",
    # Operators
    "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 }} {{ 2 ** -1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}", "{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ -2 ** 2 }} {{ 2 - 3 - 4 }}",
    "{{ 'a' + 'b' }} {{ 'a' * 3 }} {{ [1] + [2] }} {{ [0] * 2 }} {{ 'a' ~ 1 ~ none ~ true }}", "{{ 1 < 2 < 3 }} {{ 1 < 2 > 3 }} {{ 1 == 1.0 }} {{ 'a' < 'b' }} {{ 1 != 2 }} {{ true == 1 }}",
    "{{ 1 in numbers }} {{ 9 not in numbers }} {{ 'el' in word }} {{ 'name' in person }} {{ 1 in missing }}", "{{ not yes }} {{ yes and word }} {{ empty or 'x' }} {{ no and 1 }} {{ not 1 == 2 }}",
    "{{ 'a' if yes else 'b' }} {{ 'a' if no }} {{ 'a' if no else 'b' if no else 'c' }}", "{{ 'x%sy' % 1 }} {{ '%d %5.2f %r %%' % (3, 1.5, 'q') }} {{ '%(a)s' % {'a': 1} }} {{ '%-4s|%4s' % ('a', 'b') }}",
    "{{ 1 + 'a' }}", "{{ none + 1 }}", "{{ 1 / 0 }}", "{{ [1] < ['a'] }}", "{{ missing + 1 }}", "{{ -'a' }}", "{{ 1 < 'a' }}", "{{ [1,2] < [1,3] }} {{ (1,2) == [1,2] }}", "{{ 3 * 'ab' }} {{ -1 * 'ab' }}|",
    # Access
    "{{ person.name }} {{ person['name'] }} {{ person.nope }} {{ numbers[0] }} {{ numbers[-1] }} {{ numbers[9] }} {{ word[1] }} {{ word[-1] }}", "{{ nested[0][1] }} {{ nested.0.1 }} {{ people[1].name }} {{ messages[2].tool_calls[0].function.name }}",
    "{{ missing.x }}", "{{ missing }}|{{ missing == missing }}|{{ missing is defined }}", "{{ person.nope.x }}", "{{ person.items() | list }} {{ person.keys() | list }} {{ person.values() | list }}", "{{ person.get('name') }} {{ person.get('x') }} {{ person.get('x', 5) }}",
    "{{ numbers[1:] }} {{ numbers[:-1] }} {{ numbers[::-1] }} {{ numbers[::2] }} {{ word[1:3] }} {{ word[::-1] }} {{ accents[1:4] }} {{ word[:99] }} {{ word[-99:2] }} {{ numbers[5:] }} {{ numbers[2:0:-1] }}", "{{ messages[1:] | length }}",
    "{{ numbers.append(4) }}", "{{ person.update({'a': 1}) }}", "{{ word.__class__ }}", 
    # Strings
    "{{ line.strip() }}|{{ line.lstrip() }}|{{ line.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'abcba'.lstrip('ab') }}", "{{ word.upper() }} {{ accents.upper() }} {{ accents.lower() }} {{ 'hello wORLD it\\'s'.title() }} {{ 'hELLO'.capitalize() }}",
    "{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a  b c '.split(none, 1) }} {{ ''.split() }} {{ ''.split(',') }}", "{{ 'a\\nb\\r\\nc\\n'.splitlines() }} {{ 'a\\nb'.splitlines(true) }}",
    "{{ word.startswith('He') }} {{ word.endswith('x') }} {{ word.startswith(('x', 'H')) }} {{ 'aXbX'.replace('X', '--') }} {{ 'aaa'.replace('a', 'b', 2) }} {{ 'ab'.replace('', '-') }}", "{{ word.find('l') }} {{ word.rfind('l') }} {{ word.find('z') }} {{ word.index('l') }} {{ word.count('l') }} {{ accents.find('\u0416') }}",
    "{{ ', '.join(words) }} {{ ''.join([]) }}", "{{ '{} {}'.format(1, 'a') }} {{ '{0}{1}{0}'.format('a', 'b') }} {{ '{x}'.format(x=3) }} {{ '{{}}'.format() }}", "{{ '12'.isdigit() }} {{ 'a1'.isalpha() }} {{ 'ab'.isalpha() }} {{ 'a1'.isalnum() }} {{ ' \\n'.isspace() }} {{ 'AB'.isupper() }} {{ 'aB'.islower() }} {{ ''.isdigit() }}",
    "{{ '7'.zfill(3) }} {{ '-7'.zfill(4) }} {{ 'a.b.c'.partition('.') }} {{ 'a.b.c'.rpartition('.') }} {{ 'ab'.partition('x') }} {{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.py'.removesuffix('.py') }}", "{{ word.index('z') }}", "{{ ','.join([1]) }}", "{{ word.nope() }}",
    # Filters
    "{{ word | upper }} {{ word | lower }} {{ 'hello big-world (x)' | title }} {{ 'hELLO w' | capitalize }} {{ line | trim }}| {{ 'xxa' | trim('x') }}", "{{ numbers | length }} {{ word | count }} {{ person | length }} {{ missing | length }} {{ accents | length }}",
    "{{ missing | default('d') }} {{ empty | default('d') }} {{ empty | default('d', true) }} {{ nothing | d('x') }}|{{ missing | default }}|", "{{ numbers | sort }} {{ words | sort }} {{ words | sort(case_sensitive=true) }} {{ numbers | sort(reverse=true) }} {{ people[:2] | sort(attribute='age') | map(attribute='age') | list }}",
    "{{ person | dictsort }} {{ {'b': 1, 'A': 2, 'a': 3} | dictsort }} {{ {'b': 1, 'A': 2} | dictsort(true) }} {{ {'b': 1, 'A': 2} | dictsort(by='value', reverse=true) }}", "{{ numbers | join('-') }} {{ people | join(', ', attribute='age') }} {{ [1, none, 'a'] | join }}",
    "{{ numbers | first }} {{ numbers | last }} {{ void | first }}| {{ word | first }} {{ numbers | reverse | list }} {{ word | reverse }}", "{{ numbers | min }} {{ numbers | max }} {{ words | min }} {{ words | max(case_sensitive=true) }} {{ void | max }}| {{ numbers | sum }} {{ people | sum(attribute='age') }}",
    "{{ words | map('upper') | list }} {{ people | map(attribute='name', default='?') | list }} {{ numbers | map('string') | join }} {{ words | map('replace', 'a', 'z') | list }}", "{{ numbers | select('odd') | list }} {{ numbers | reject('equalto', 1) | list }} {{ [0, 1, '', 'a'] | select | list }} {{ people | selectattr('name') | list | length }} {{ people | selectattr('age', 'gt', 1) | map(attribute='age') | list }} {{ people | rejectattr('name', 'defined') | list }}",
    "{{ '3' | int }} {{ '3.7' | int }} {{ 'x' | int }} {{ 'x' | int(9) }} {{ 3.9 | int }} {{ 'ff' | int(0, 16) }} {{ ' 4 ' | int }} {{ '3.5' | float }} {{ 'x' | float }} {{ 3 | float }} {{ none | int }}", "{{ 2.5 | round }} {{ 3.5 | round }} {{ 2.345 | round(2) }} {{ 2.1 | round(0, 'ceil') }} {{ 2.9 | round(method='floor') }} {{ 1234 | round(-2) }} {{ -3 | abs }} {{ 2.675 | round(2) }}",
    "{{ person | tojson }} {{ person | tojson(indent=2) }} {{ [] | tojson(indent=2) }} {{ accents | tojson }} {{ quotes | tojson }} {{ [1.0, 1e20, true, none] | tojson }} {{ 'a\\n\\x01\\x7f' | tojson }}", "{{ {'b': 1, 'a': [1, {'x': 2}]} | tojson(sort_keys=true, separators=(',', ':')) }} {{ accents | tojson(ensure_ascii=true) }} {{ {1: 2, none: 3, true: 4} | tojson }}", "{{ missing | tojson }}",
    "{{ 'a\\n\\nb\\nc' | indent }}|{{ 'a\\nb' | indent(2, true) }}|{{ 'a\\n\\nb' | indent(2, blank=true) }}|{{ 'a\\nb' | indent('> ') }}|", "{{ 'one two three four' | truncate(9) }}|{{ 'one two three four' | truncate(9, true) }}|{{ 'one two three' | truncate(12) }}|{{ 'one two three four' | truncate(9, end='!', leeway=0) }}|", "{{ 'the quick-brown fox' | wordcount }} {{ [1, 2, 2, 'a', 'A'] | unique | list }} {{ words | unique | list }} {{ person | items | list }} {{ [1, 2, 3] | batch(2) | list }} {{ [1, 2, 3] | batch(2, 0) | list }}",
    "{{ 'a%sb' | format(3) }} {{ '%(x)s' | format(x=1) }} {{ 5 | string + 'a' }} {{ 'ab' | list }} {{ person | list }} {{ person | attr('nope') }}|", "{{ word | nope }}", "{{ missing | dictsort }}", "{{ 5 | length }}", "{{ -3 | abs }} {{ -word | length }}",
    "{% filter upper %}a {{ word }}{% endfilter %} {% filter replace('a', 'b') | upper %}aa{% endfilter %}", "{{ quotes | safe }} {{ 'x' | replace('x', 'y') | upper }}",
    # Tests
    "{{ word is string }} {{ 1 is string }} {{ 1 is number }} {{ true is number }} {{ 1.0 is float }} {{ 1 is integer }} {{ true is integer }} {{ true is boolean }} {{ none is none }} {{ person is mapping }} {{ numbers is mapping }}", "{{ numbers is sequence }} {{ word is sequence }} {{ person is sequence }} {{ 1 is sequence }} {{ word is iterable }} {{ 1 is iterable }} {{ missing is iterable }} {{ missing is undefined }}",
    "{{ 4 is even }} {{ 3 is odd }} {{ 6 is divisibleby(3) }} {{ 6 is divisibleby 4 }} {{ 1 is eq 1 }} {{ 1 is equalto 2 }} {{ 1 is ne 1 }} {{ 1 is lt 2 }} {{ 2 is ge(2) }} {{ 'a' is in words }} {{ 'z' is not in words }} {{ 1 is sameas 1 }} {{ true is sameas true }} {{ true is true }} {{ 1 is true }} {{ no is false }}",
    "{{ 'AB' is upper }} {{ 'ab' is lower }} {{ range is callable }} {{ word is callable }} {{ 'upper' is filter }} {{ word is not string }} {{ not word is string }} {{ word is defined and yes }} {{ 'a' if word is defined else 'b' }}", "{{ 1 is nope }}", "{{ 'a' is odd }}",
    # Statements
    "{% if no %}a{% elif yes %}b{% else %}c{% endif %}{% if void %}x{% endif %}{% if missing %}y{% endif %}", "{% for x in numbers %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}", "{% for x in numbers %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}",
    "{% for k, v in person.items() %}{{ k }}={{ v }};{% endfor %}{% for k in person %}{{ k }}{% endfor %}{% for c in 'ab' %}[{{ c }}]{% endfor %}{% for (a, b) in [(1, 2)] %}{{ a }}{{ b }}{% endfor %}", "{% for x in void %}a{% else %}none{% endfor %}{% for x in missing %}a{% else %}none{% endfor %}", "{% for x in numbers if x > 1 %}{{ loop.index }}:{{ x }} {% endfor %}{% for x in numbers if x > 9 %}a{% else %}e{% endfor %}",
    "{% for x in range(5) %}{% if x == 1 %}{% continue %}{% endif %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in numbers %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }} {% endfor %}", "{% for x in nested recursive %}[{% if x is iterable %}{{ loop(x) }}{% else %}{{ x }}{% endif %}{{ loop.depth }}]{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for a, b in numbers %}{% endfor %}",
    "{% set x = 1 %}{% for i in numbers %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}", "{% set ns = namespace(x=0, y='a') %}{% for i in numbers %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y }}{{ ns.z }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, 2 %}{{ c }}", "{% set x %}a {{ word }} {% endset %}[{{ x }}]{% set y | upper %}abc{% endset %}{{ y }}", "{% if yes %}{% set x = 5 %}{% endif %}{{ x }}", "{% set person.name = 1 %}", "{% set x = [1] %}{% set x = x + [2] %}{{ x }}",
    "{% macro m(a, b=2, c='z') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(1, c='q') }} {{ m() }}", "{% macro m(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}", "{% macro m() %}{{ late }}{% endmacro %}{% set late = 'seen' %}{{ m() }}", "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(3) }}",
    "{% macro wrap(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call wrap('b') %}x{{ word }}{% endcall %}", "{% macro each(l) %}{% for x in l %}{{ caller(x) }};{% endfor %}{% endmacro %}{% call(v) each(numbers) %}<{{ v }}>{% endcall %}", "{% with a = 1, b = one %}{{ a }}{{ b }}{% set c = 3 %}{% endwith %}{{ c }}{{ a }}", "{% generation %}a {{ word }}{% set q = 1 %}{% endgeneration %}{{ q }}",
    "{% set sep = joiner(', ') %}{% for x in numbers %}{{ sep() }}{{ x }}{% endfor %}", "{{ range(3) | list }} {{ range(1, 7, 2) | list }} {{ range(3, 0, -1) | list }} {{ dict(a=1, b=2) }} {{ dict([('x', 1)], y=2) }}", "{{ raise_exception('no') }}", "{% if no %}{{ raise_exception('no') }}{% endif %}ok", "{{ strftime_now('%Y') | length }}", "{% for i in range(3) %}{% for j in range(2) %}{{ loop.index }}{{ i }}{{ j }} {% endfor %}{{ loop.index }}{% endfor %}",
    # Broken
    "{% if yes %}", "{{ 1 +", "{{ }}", "{% endif %}", "{% nope %}", "{{ 'a }}", "{# a", "{% raw %}a", "{% for x numbers %}{% endfor %}", "{{ (1 }}", "{{ 1 ] }}", "{% set %}", "{% else %}", "{{ a b }}", "{% macro m( %}{% endmacro %}", "{% break %}",
    # As templates use them
    "{{ bos }}{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] | trim + '<|im_end|>' + '\\n' }}{% endfor %}{% if add %}{{ '<|im_start|>assistant\\n' }}{% endif %}", "{%- for message in messages -%}\n    {%- if message.role == 'user' -%}\n        {{- 'U:' ~ message.content | trim -}}\n    {%- elif message.tool_calls is defined and message.tool_calls -%}\n        {%- for call in message.tool_calls -%}\n            {{- call.function | tojson -}}\n            {%- for k, v in call.function.arguments | dictsort -%}{{ k }}:{{ v }}{%- if not loop.last %},{% endif -%}{%- endfor -%}\n        {%- endfor -%}\n    {%- endif -%}\n{%- endfor -%}",
    "{%- macro show(v) -%}\n{%- if v is string -%}'{{ v }}'\n{%- elif v is mapping -%}{ {%- for k, x in v | dictsort -%}{{ k }}:{{ show(x) }}{{ ',' if not loop.last }}{%- endfor -%} }\n{%- elif v is sequence -%}[{%- for x in v -%}{{ show(x) }}{{ ',' if not loop.last }}{%- endfor -%}]\n{%- else -%}{{ v }}{%- endif -%}\n{%- endmacro -%}\n{{ show(person) }}{{ show(messages) }}", "{% set ns = namespace(last=-1) %}{% for m in messages[::-1] %}{% set index = (messages | length - 1) - loop.index0 %}{% if ns.last == -1 and m.role == 'user' %}{% set ns.last = index %}{% endif %}{% endfor %}{{ ns.last }}",
    "{% set content = 'a<think>b</think>c' %}{{ content.split('</think>')[-1].lstrip('\\n') }}{{ content.split('</think>')[0].rstrip('\\n').split('<think>')[-1] }}", "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | first | trim }}", "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% endif %}{{ system }}{{ loop_messages | length }}",
]


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: "2026" if form == "%Y" else form
    return env


ENVIRONMENT = environment()


def rendered(template, variables):
    case = {"template": template, "variables": variables}
    try:
        case["out"] = ENVIRONMENT.from_string(template).render(**variables)
    except Exception as error:  # every error is an error for the other side too
        case["error"] = str(error)
    return case


class Writer:
    """Random templates whose parts mostly fit together."""

    def __init__(self, rng):
        self.rng = rng
        self.names = {"text": ["word", "line", "accents", "quotes", "empty"], "number": ["zero", "one", "many", "minus", "half"], "list": ["numbers", "words", "nested", "void"], "flag": ["yes", "no"]}

    def pick(self, *options):
        return self.rng.choice(options)

    def text(self, depth):
        if depth <= 0:
            return self.pick(*self.names["text"], "'a'", "'x y'", "'-'", "\"it's\"", "'\\n'", "person.name", "messages[1].content")
        t = lambda: self.text(depth - 1)
        n = lambda: self.number(depth - 1)
        return self.pick(
            lambda: f"({t()} ~ {self.any(depth - 1)})", lambda: f"({t()} + {t()})", lambda: f"({t()} | {self.pick('upper', 'lower', 'trim', 'title', 'capitalize', 'reverse', 'string', 'indent', 'indent(2, true)')})", lambda: f"({t()}).{self.pick('strip', 'upper', 'lower', 'title', 'lstrip', 'rstrip', 'capitalize')}()",
            lambda: f"({t()}).replace({self.text(0)}, {self.text(0)})", lambda: f"({t()})[{self.slice()}]", lambda: f"({self.list(depth - 1)} | join({self.text(0)}))", lambda: f"({t()} if {self.flag(depth - 1)} else {t()})", lambda: f"({self.any(depth - 1)} | tojson)", lambda: f"({self.any(depth - 1)} | string)",
            lambda: f"({t()} * {self.pick(0, 1, 2)})", lambda: f"('%s|%s' % ({self.any(depth - 1)}, {t()}))", lambda: f"({t()} | default('d', true))", lambda: f"({t()}).split({self.pick('', chr(39) + 'o' + chr(39), chr(39) + ' ' + chr(39))})[0]", lambda: f"({n()} | round(1) | string)", lambda: f"({t()} | truncate({self.pick(5, 8, 20)}))", lambda: f"({t()} or {t()})",
        )()

    def number(self, depth):
        if depth <= 0:
            return self.pick(*self.names["number"], "0", "1", "2", "7", "2.5", "person.age")
        n = lambda: self.number(depth - 1)
        return self.pick(
            lambda: f"({n()} {self.pick('+', '-', '*', '//', '%', '/')} {n()})", lambda: f"({self.text(depth - 1)} | length)", lambda: f"({self.list(depth - 1)} | length)", lambda: f"({n()} | abs)", lambda: f"({n()} | int)", lambda: f"({n()} | round)", lambda: f"(-{n()})", lambda: f"({n()} if {self.flag(depth - 1)} else {n()})",
            lambda: f"({self.text(depth - 1)} | int(3))", lambda: f"({self.text(depth - 1)}).count({self.pick(chr(39) + 'l' + chr(39), chr(39) + ' ' + chr(39))})", lambda: f"([{n()}, {n()}] | {self.pick('min', 'max', 'sum', 'first', 'last')})", lambda: f"({self.text(depth - 1)}).find('o')", lambda: f"({self.text(depth - 1)} | wordcount)",
        )()

    def list(self, depth):
        if depth <= 0:
            return self.pick(*self.names["list"], "[]", "[1, 'a']", "person.tags")
        l = lambda: self.list(depth - 1)
        return self.pick(
            lambda: f"({l()} + {l()})", lambda: f"[{self.any(depth - 1)}, {self.any(depth - 1)}]", lambda: f"({l()})[{self.slice()}]", lambda: f"({l()} | reverse | list)", lambda: f"({l()} | map('string') | list)", lambda: f"({l()} | select | list)", lambda: f"({l()} | map('string') | sort)", lambda: f"({self.text(depth - 1)}).split()",
            lambda: f"({self.text(depth - 1)} | list)", lambda: f"({l()} | unique | list)", lambda: f"(person.{self.pick('keys', 'values', 'items')}() | list)", lambda: f"({l()} | batch(2) | list)", lambda: f"(people | map(attribute='{self.pick('age', 'name')}', default='?') | list)", lambda: f"(person | dictsort)", lambda: f"({self.text(depth - 1)}).splitlines()", lambda: f"range({self.pick(0, 2, 4)}) | list",
        )()

    def flag(self, depth):
        if depth <= 0:
            return self.pick(*self.names["flag"], "true", "false", "missing", "word", "void", "nothing")
        a = lambda: self.any(depth - 1)
        return self.pick(
            lambda: f"(not {self.flag(depth - 1)})", lambda: f"({self.flag(depth - 1)} {self.pick('and', 'or')} {self.flag(depth - 1)})", lambda: f"({self.number(depth - 1)} {self.pick('<', '<=', '>', '>=', '==', '!=')} {self.number(depth - 1)})", lambda: f"({a()} {self.pick('==', '!=')} {a()})", lambda: f"({a()} is {self.pick('string', 'number', 'mapping', 'sequence', 'none', 'defined', 'boolean', 'not string', 'integer', 'float', 'iterable')})",
            lambda: f"({self.text(depth - 1)} {self.pick('in', 'not in')} {self.text(depth - 1)})", lambda: f"({a()} {self.pick('in', 'not in')} {self.list(depth - 1)})", lambda: f"({self.text(depth - 1)}).startswith({self.text(0)})", lambda: f"({self.text(depth - 1)} < {self.text(depth - 1)})",
        )()

    def any(self, depth):
        return self.pick(self.text, self.text, self.number, self.list, self.flag, lambda d: self.pick("person", "nothing", "people[1]", "{'k': " + self.number(0) + "}", "messages[2]"))(depth)

    def slice(self):
        part = lambda: self.pick("", "0", "1", "2", "-1", "-2", "5")
        return f"{part()}:{part()}" + self.pick("", "", ":", ":2", ":-1")

    def space(self):
        return self.pick("", "", " ", "\n", "  ", "\n  ", " \n\n", "\t")

    def tag(self, inside):
        return "{%" + self.pick("", "", "-", "+") + " " + inside + " " + self.pick("", "", "-") + "%}"

    def printed(self, expression):
        return "{{" + self.pick("", "", "-") + " " + expression + " " + self.pick("", "", "-") + "}}"

    def block(self, depth):
        return "".join(self.space() + self.statement(depth) for _ in range(self.rng.randint(1, 3))) + self.space()

    def statement(self, depth):
        if depth <= 0:
            return self.pick(lambda: self.printed(self.any(1)), lambda: self.pick("text", "a b", "{# note #}", "{#- note -#}", "x\n"))()
        b = lambda: self.block(depth - 1)
        return self.pick(
            lambda: self.printed(self.any(self.rng.randint(1, 3))), lambda: self.tag("if " + self.flag(2)) + b() + self.tag("elif " + self.flag(1)) + b() + self.tag("else") + b() + self.tag("endif"), lambda: self.tag("if " + self.flag(2)) + b() + self.tag("endif"),
            lambda: self.tag("for x in " + self.list(1)) + b() + self.printed(self.pick("x", "loop.index", "loop.last", "x ~ loop.index0", "loop.length")) + self.tag("endfor"), lambda: self.tag("for x in " + self.list(1) + " if x" + self.pick("", " is string", " is not none")) + b() + self.tag("else") + b() + self.tag("endfor"), lambda: self.tag("for k, v in person.items()") + self.printed("k ~ '=' ~ v") + b() + self.tag("endfor"),
            lambda: self.tag("set s = " + self.any(2)) + self.printed("s") + b(), lambda: self.tag("set s") + b() + self.tag("endset") + self.printed("s"), lambda: self.tag("macro m(a, b='d')") + b() + self.printed("a ~ b") + self.tag("endmacro") + self.printed(f"m({self.any(1)})") + self.printed(f"m({self.text(1)}, b={self.number(1)})"), lambda: self.tag("filter " + self.pick("upper", "trim", "replace('a', 'o')", "indent(1)")) + b() + self.tag("endfilter"),
            lambda: self.tag("set ns = namespace(n=0)") + self.tag("for x in " + self.list(1)) + self.tag("set ns.n = ns.n + 1") + self.tag("endfor") + self.printed("ns.n"), lambda: self.tag("with q = " + self.any(1)) + b() + self.printed("q") + self.tag("endwith"), lambda: self.tag("generation") + b() + self.tag("endgeneration"), lambda: self.tag("raw") + " {{ x }} " + self.tag("endraw"),
            lambda: self.tag("for x in range(4)") + self.tag("if x == " + self.pick("1", "2")) + self.tag(self.pick("break", "continue")) + self.tag("endif") + self.printed("x") + self.tag("endfor"),
        )()


class ChatWriter(Writer):
    """What chat templates are made of: messages, text, white space, conditions, loops, macros, JSON."""

    def text(self, depth):
        if depth <= 0:
            return self.pick("word", "line", "quotes", "accents", "empty", "'a'", "'x y'", "'\\n'", "person.name", "message.role", "message.content", "messages[0]['content']", "messages[-1].role")
        t = lambda: self.text(depth - 1)
        return self.pick(
            lambda: f"({t()} ~ {t()})", lambda: f"({t()} + {t()})", lambda: f"({t()} | {self.pick('upper', 'lower', 'trim', 'capitalize', 'string')})", lambda: f"({t()}).{self.pick('strip', 'upper', 'lower', 'lstrip', 'rstrip')}()", lambda: f"({t()}).replace({self.text(0)}, {self.text(0)})",
            lambda: f"({t()})[{self.pick('1:', ':2', ':-1', '-3:', '1:3', '::-1')}]", lambda: f"({self.list(depth - 1)} | join({self.text(0)}))", lambda: f"({t()} if {self.flag(depth - 1)} else {t()})", lambda: f"({self.data(depth - 1)} | tojson)", lambda: f"({t()} | default('d', true))", lambda: f"({t()}).split({self.pick(chr(39) + 'o' + chr(39), chr(39) + ' ' + chr(39))})[{self.pick('0', '-1')}]", lambda: f"({t()} or {t()})",
        )()

    def number(self, depth):
        if depth <= 0:
            return self.pick("zero", "one", "many", "minus", "1", "2", "7", "person.age", "messages | length", "loop.index0")
        n = lambda: self.number(depth - 1)
        return self.pick(lambda: f"({n()} {self.pick('+', '-', '*')} {n()})", lambda: f"({n()} % {self.pick('2', '3')})", lambda: f"({self.text(depth - 1)} | length)", lambda: f"({n()} | int)", lambda: f"({n()} if {self.flag(depth - 1)} else {n()})")()

    def list(self, depth):
        if depth <= 0:
            return self.pick("words", "person.tags", "['x', 'y']", "void")
        l = lambda: self.list(depth - 1)
        return self.pick(lambda: f"({l()} + {l()})", lambda: f"[{self.text(depth - 1)}, {self.text(depth - 1)}]", lambda: f"({l()})[{self.pick('1:', ':1', '::-1')}]", lambda: f"(messages | map(attribute='role') | list)", lambda: f"({self.text(depth - 1)}).split()", lambda: "(messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list)", lambda: "(messages | rejectattr('role', 'equalto', 'user') | map(attribute='role') | list)")()

    def flag(self, depth):
        if depth <= 0:
            return self.pick("yes", "no", "true", "false", "missing", "word", "empty", "nothing", "loop.first", "loop.last", "message.tool_calls", "messages[0].role == 'system'")
        t = lambda: self.text(depth - 1)
        return self.pick(
            lambda: f"(not {self.flag(depth - 1)})", lambda: f"({self.flag(depth - 1)} {self.pick('and', 'or')} {self.flag(depth - 1)})", lambda: f"({self.number(depth - 1)} {self.pick('<', '<=', '>', '>=', '==', '!=')} {self.number(depth - 1)})", lambda: f"({t()} {self.pick('==', '!=', 'in', 'not in')} {t()})", lambda: f"({t()} in {self.list(depth - 1)})", lambda: f"({self.pick('message.content', 'message.tool_calls', 'missing', 'person', 'words', 'nothing', 'one', 'yes')} is {self.pick('', 'not ')}{self.pick('string', 'number', 'mapping', 'none', 'defined', 'boolean', 'iterable')})", lambda: f"({t()}).{self.pick('startswith', 'endswith')}({self.text(0)})", lambda: f"('{self.pick('name', 'role', 'nope')}' in {self.pick('person', 'message')})",
        )()

    def data(self, depth):
        return self.pick(lambda: self.text(depth), lambda: self.number(depth), lambda: self.list(depth), lambda: f"({self.flag(0)})", lambda: self.pick("person", "people", "messages[2]", "message", "nested", "nothing", "half", "{'k': one}"))()

    def any(self, depth):
        return self.pick(self.text, self.text, self.text, self.number)(depth)

    def statement(self, depth):
        if depth <= 0:
            return self.pick(lambda: self.printed(self.any(1)), lambda: self.pick("text", "a b", "{# note #}", "{#- note -#}", "x\n", "<|turn>", "</s>"))()
        b = lambda: self.block(depth - 1)
        return self.pick(
            lambda: self.printed(self.any(self.rng.randint(1, 3))), lambda: self.tag("if " + self.flag(2)) + b() + self.tag("elif " + self.flag(1)) + b() + self.tag("else") + b() + self.tag("endif"), lambda: self.tag("if " + self.flag(2)) + b() + self.tag("endif"), lambda: self.tag("for x in " + self.list(1)) + b() + self.printed(self.pick("x", "loop.index", "x ~ loop.index0", "loop.length")) + self.tag("endfor"),
            lambda: self.tag("for x in " + self.list(1) + " if x != 'a'") + b() + self.printed("x") + self.tag("endfor"), lambda: self.tag("for k, v in person.items()") + self.printed("k") + b() + self.tag("endfor"), lambda: self.tag("set s = " + self.any(2)) + self.printed("s") + b(), lambda: self.tag("set s") + b() + self.tag("endset") + self.printed("s"), lambda: self.tag("macro m(a, b='d')") + self.printed("a ~ b") + "t" + self.tag("endmacro") + self.printed(f"m({self.text(1)})") + self.printed(f"m({self.text(1)}, b={self.text(1)})"),
            lambda: self.tag("set ns = namespace(n=0, t='')") + self.tag("for x in " + self.list(1)) + self.tag("set ns.n = ns.n + 1") + self.tag("set ns.t = ns.t ~ x") + self.tag("endfor") + self.printed("ns.n ~ ns.t"), lambda: self.tag("filter " + self.pick("upper", "trim")) + b() + self.tag("endfilter"), lambda: self.tag("generation") + b() + self.tag("endgeneration"), lambda: self.tag("for x in range(4)") + self.tag("if x == " + self.pick("1", "2")) + self.tag(self.pick("break", "continue")) + self.tag("endif") + self.printed("x") + self.tag("endfor"),
        )()

    def tag(self, inside):
        return "{%" + self.pick("", "-") + " " + inside + " " + self.pick("", "-") + "%}"

    def template(self):
        return self.tag("for message in messages") + self.block(2) + self.tag("endfor")


def main():
    mode = sys.argv[1]
    if mode == "written":
        cases = [rendered(template, VARIABLES) for template in WRITTEN]
    elif mode == "random":
        rng = random.Random(int(sys.argv[2]))
        cases = [rendered(Writer(rng).block(2), VARIABLES) for _ in range(int(sys.argv[3]))]
    elif mode == "chat":
        rng = random.Random(int(sys.argv[2]))
        cases = [rendered(ChatWriter(rng).template(), VARIABLES) for _ in range(int(sys.argv[3]))]
    else:
        cases = [rendered(case["template"], case["variables"]) for case in map(json.loads, sys.stdin)]
    for case in cases:
        if mode != "render":
            del case["variables"]
        print(json.dumps(case))


if sys.argv[1:] == ["variables"]:
    print(json.dumps(VARIABLES))
elif __name__ == "__main__":
    main()
