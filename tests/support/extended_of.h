#pragma once

#include <optional>
#include <type_traits>
#include <variant>

#include "parser/parser.h"

namespace sluice {

// The statement, if it is extended SQL.
inline std::optional<parser::ExtendedStatement> ExtendedOf(const parser::Statement& statement) {
  return std::visit(
      [](const auto& any) -> std::optional<parser::ExtendedStatement> {
        if constexpr (std::is_constructible_v<parser::ExtendedStatement, decltype(any)>) {
          return any;
        } else {
          return std::nullopt;
        }
      },
      statement);
}

}  // namespace sluice
