#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "parser/parser.h"
#include "parser/printer.h"
#include "tests/support/ast_dump.h"

namespace sluice::parser {

// Laws for every text: an error has a place inside the text (except for a script that is too long);
// statements follow each other; Parse(Print(s)) == s except for spans. Returns the violated one.
inline std::optional<std::string> BrokenLaw(std::string_view script) {
  const auto size = static_cast<int64_t>(script.size());
  const Result<std::vector<Statement>> statements = Parse(script);
  if (!statements.ok()) {
    const Status status = statements.status();
    for (const Diagnostic& diagnostic : status.diagnostics()) {
      const Span span = diagnostic.span;
      if (diagnostic.code == Code::kInternal) {
        return "an internal error: " + status.ToString();
      }
      if (!span.valid() || span.begin > span.end || span.end > size) {
        return "an error without a place: " + status.ToString();
      }
    }
    return std::nullopt;
  }
  int64_t behind = 0;
  for (const Statement& statement : statements.value()) {
    const Span span = std::visit([](const auto& node) { return node.span; }, statement);
    if (span.begin < behind || span.end <= span.begin || span.end > size) {
      return "a statement's span is not behind the last one's: " + Dump(statement, true);
    }
    behind = span.end;
    const std::string printed = Print(statement);
    const Result<std::vector<Statement>> again = Parse(printed);
    if (!again.ok()) {
      return "cannot read back " + printed + "\n" + again.status().ToString();
    }
    if (again.value().size() != 1) {
      return "reads back as several statements: " + printed;
    }
    if (!EqualIgnoringSpans(again.value().front(), statement)) {
      return "reads back otherwise: " + printed + "\n" + Dump(statement, false) + "\n" +
             Dump(again.value().front(), false);
    }
  }
  return std::nullopt;
}

}  // namespace sluice::parser
