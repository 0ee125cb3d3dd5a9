#include "octet/jinja/parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/jinja/expression_parser.h"

namespace octet::jinja {
namespace {

using Names = std::initializer_list<std::string_view>;

Statement statement_at(StatementKind kind, Location location) {
  Statement out;
  out.kind = kind;
  out.location = location;
  return out;
}

class Parser : private ExpressionParser {
 public:
  explicit Parser(std::string_view source) : ExpressionParser(tokenize(source)) {}

  Program run() {
    Program program;
    program.loop = name_id("loop");
    program.caller = name_id("caller");
    program.varargs = name_id("varargs");
    program.kwargs = name_id("kwargs");
    program.body = block({});
    program.names = take_names();
    return program;
  }

 private:
  /// Statements up to a block tag that begins with one of `ends`, which stays to be read (its name
  /// is the next token), or up to the end of the source when there are none.
  Block block(Names ends) {
    const Depth depth(*this);
    Block out;
    while (true) {
      Token& token = next();
      if (token.kind == TokenKind::kEnd) {
        if (ends.size() > 0) {
          fail_malformed(
              token.location, fmt::format("the template ends before {{% {} %}}", *(ends.end() - 1))
          );
        }
        return out;
      }
      if (token.kind == TokenKind::kData) {
        Statement text = statement_at(StatementKind::kText, token.location);
        text.text = std::move(token.text);
        out.push_back(std::move(text));
      } else if (token.kind == TokenKind::kPrintBegin) {
        out.push_back(print(token.location));
      } else {
        const Token& name = current();
        if (name.kind == TokenKind::kName &&
            std::find(ends.begin(), ends.end(), name.text) != ends.end()) {
          return out;
        }
        out.push_back(statement());
      }
    }
  }

  Statement print(Location location) {
    Statement out = statement_at(StatementKind::kPrint, location);
    out.expression = tuple(true);
    expect(TokenKind::kPrintEnd, "}}");
    return out;
  }

  void end_of_tag() { expect(TokenKind::kBlockEnd, "%}"); }

  /// Reads "endname %}".
  void end_of_block() {
    next();
    end_of_tag();
  }

  Statement statement() {
    using Handler = void (Parser::*)(Statement&);
    static const std::map<std::string_view, Handler> handlers = {
        {"if", &Parser::if_block},
        {"for", &Parser::for_block},
        {"set", &Parser::set},
        {"macro", &Parser::macro},
        {"call", &Parser::call_block},
        {"filter", &Parser::filter_block},
        {"with", &Parser::with_block},
        {"generation", &Parser::generation_block},
        {"break", &Parser::break_statement},
        {"continue", &Parser::continue_statement},
    };
    static constexpr std::array<std::string_view, 8> kUnsupported = {
        "include", "import", "from", "extends", "block", "autoescape", "trans", "do"};
    const Token& name = next();
    Statement out = statement_at(StatementKind::kText, name.location);
    const auto handler = name.kind == TokenKind::kName ? handlers.find(name.text) : handlers.end();
    if (handler != handlers.end()) {
      (this->*handler->second)(out);
      return out;
    }
    if (std::find(kUnsupported.begin(), kUnsupported.end(), name.text) != kUnsupported.end()) {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format(
              "line {}, column {}: the statement '{}' is not supported in chat templates",
              name.location.line,
              name.location.column,
              name.text
          )
      );
    }
    fail_malformed(name.location, fmt::format("there is no statement '{}'", name.text));
  }

  void if_block(Statement& out) {
    out.kind = StatementKind::kIf;
    while (true) {
      ExpressionPtr test = tuple(false);
      end_of_tag();
      out.branches.push_back({.test = std::move(test), .body = block({"elif", "else", "endif"})});
      if (!skip_name("elif")) {
        break;
      }
    }
    if (skip_name("else")) {
      end_of_tag();
      out.body = block({"endif"});
    }
    end_of_block();
  }

  void for_block(Statement& out) {
    out.kind = StatementKind::kFor;
    out.target = target_list();
    if (!skip_name("in")) {
      fail_malformed(current().location, "a for loop needs 'in'");
    }
    out.expression = tuple(false);
    if (skip_name("if")) {
      out.filter = expression();
    }
    out.recursive = skip_name("recursive");
    end_of_tag();
    ++loops_;
    out.body = block({"else", "endfor"});
    --loops_;
    if (skip_name("else")) {
      end_of_tag();
      out.otherwise = block({"endfor"});
    }
    end_of_block();
  }

  void set(Statement& out) {
    out.target = target_list();
    if (skip_operator("=")) {
      out.kind = StatementKind::kSet;
      out.expression = tuple(true);
      end_of_tag();
      return;
    }
    out.kind = StatementKind::kSetBlock;
    if (skip_operator("|")) {
      out.filter = filters(nullptr);
    }
    end_of_tag();
    const int outer_loops = std::exchange(loops_, 0);
    out.body = block({"endset"});
    loops_ = outer_loops;
    end_of_block();
  }

  void macro(Statement& out) {
    out.kind = StatementKind::kMacro;
    const Token& name = expect(TokenKind::kName, "the macro's name");
    out.name = name_id(name.text);
    out.macro = std::make_unique<MacroSyntax>();
    out.macro->text = name.text;
    expect_operator("(");
    parameters(*out.macro);
    end_of_tag();
    macro_body(*out.macro, "endmacro");
  }

  void call_block(Statement& out) {
    out.kind = StatementKind::kCall;
    out.macro = std::make_unique<MacroSyntax>();
    out.macro->text = "caller";
    if (skip_operator("(")) {
      parameters(*out.macro);
    }
    const Location location = current().location;
    out.expression = expression();
    if (out.expression->kind != ExpressionKind::kCall) {
      fail_malformed(location, "a call block needs a call");
    }
    end_of_tag();
    macro_body(*out.macro, "endcall");
  }

  void macro_body(MacroSyntax& macro, std::string_view end) {
    const int outer_loops = std::exchange(loops_, 0);
    const UsedNames outer = std::exchange(used_, {});
    macro.body = block({end});
    loops_ = outer_loops;
    macro.takes_varargs = used_.varargs;
    macro.takes_kwargs = used_.kwargs;
    macro.takes_caller = used_.caller;
    used_ = outer;
    end_of_block();
  }

  /// Behind "(".
  void parameters(MacroSyntax& macro) {
    while (!skip_operator(")")) {
      if (!macro.parameters.empty()) {
        expect_operator(",");
        if (skip_operator(")")) {
          return;
        }
      }
      const Token& name = expect(TokenKind::kName, "a parameter's name");
      Parameter parameter = {.text = name.text, .name = name_id(name.text)};
      const Location location = name.location;
      if (skip_operator("=")) {
        parameter.missing = expression();
      } else if (!macro.parameters.empty() && macro.parameters.back().missing != nullptr) {
        fail_malformed(location, "a parameter without default follows one with a default");
      }
      macro.parameters.push_back(std::move(parameter));
    }
  }

  void filter_block(Statement& out) {
    out.kind = StatementKind::kFilter;
    out.expression = filters(nullptr);
    end_of_tag();
    const int outer_loops = std::exchange(loops_, 0);
    out.body = block({"endfilter"});
    loops_ = outer_loops;
    end_of_block();
  }

  void with_block(Statement& out) {
    out.kind = StatementKind::kWith;
    while (current().kind != TokenKind::kBlockEnd) {
      if (!out.assignments.empty()) {
        expect_operator(",");
      }
      Target name = target();
      expect_operator("=");
      out.assignments.emplace_back(std::move(name), expression());
    }
    end_of_tag();
    out.body = block({"endwith"});
    end_of_block();
  }

  void generation_block(Statement& out) {
    out.kind = StatementKind::kScope;
    end_of_tag();
    const int outer_loops = std::exchange(loops_, 0);
    out.body = block({"endgeneration"});
    loops_ = outer_loops;
    end_of_block();
  }

  void leave_loop(Statement& out, StatementKind kind, std::string_view name) {
    if (loops_ == 0) {
      fail_malformed(out.location, fmt::format("'{}' is not inside a loop", name));
    }
    out.kind = kind;
    end_of_tag();
  }
  void break_statement(Statement& out) { leave_loop(out, StatementKind::kBreak, "break"); }
  void continue_statement(Statement& out) { leave_loop(out, StatementKind::kContinue, "continue"); }

  int loops_ = 0;
};

}  // namespace

Program parse(std::string_view source) {
  return Parser(source).run();
}

}  // namespace octet::jinja
