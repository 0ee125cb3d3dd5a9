// Small valid templates, grammars and replies: where fuzzing begins.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace octet::test {

inline std::map<std::string, std::vector<std::string>> chat_seeds() {
  return {
      {"jinja",
       {"{% for m in messages %}{{ '<|turn>' + m['role'] ~ m.content | trim }}{% endfor %}",
        "{%- macro f(x, y=1) -%}{{ x | dictsort }}{% endmacro %}{{ f(d) }}{% set ns = "
        "namespace(a=1) "
        "%}{% set ns.a = l[::-1] %}{{ ns.a | tojson(indent=2) }}",
        "{% filter upper %}{{ a.split('x', 1)[0][1:] * n }}{% endfilter %}{{ '%s %d' % (a, n) }}",
        "{% for x in l recursive %}{{ loop.index }}{% else %}{% endfor %}{% call(q) f() %}{% "
        "endcall %}"}},
      {"grammar",
       {std::string("\0[a-z]+(x|y){2,3}\\d", 20),
        "\1root ::= \"a\" b*\nb ::= [^x-z] | (root)?",
        R"(2{"type":"object","properties":{"a":{"type":["integer","null"],"minimum":-5},"b":{"enum":["x",1]}},"required":["a"]})",
        R"(3{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","pattern":"^a|b$"}}}})"}},
      {"reply",
       {"<|channel>thought\nHm.<channel|>One "
        "moment.<|tool_call>call:f{a:<|\"|>x<|\"|>,b:[1,{c:null}]}<tool_call|>",
        R"("a":"x\n\u00e9\ud83e\udd9c",b:'q',c:True,d:1e5}})"}},
  };
}

}  // namespace octet::test
