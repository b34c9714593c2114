#include "server/pgwire/sql/prepared_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "parser/parser.h"
#include "parser/printer.h"
#include "parser/splitter.h"
#include "server/pgwire/sql/column_types.h"
#include "server/pgwire/sql/parameters.h"
#include "server/pgwire/sql/sql_words_internal.h"

namespace sluice::server::pgwire {
namespace {

// Reads a statement from its beginning. Each member function skips the blanks and comments before
// what it reads.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool Word(std::string_view upper) {
    SkipBlanks();
    const std::string_view word = WordHere();
    if (!EqualsWord(word, upper)) {
      return false;
    }
    at_ += word.size();
    return true;
  }

  // As the database folds it.
  std::optional<std::string> Name() {
    SkipBlanks();
    std::string name;
    if (at_ < text_.size() && text_[at_] == '"') {
      for (++at_; at_ < text_.size(); ++at_) {
        if (text_[at_] == '"' && text_.substr(at_ + 1, 1) != "\"") {
          ++at_;
          return name;
        }
        at_ += text_[at_] == '"' ? 1 : 0;
        name += text_[at_];
      }
      return std::nullopt;
    }
    name = WordHere();
    at_ += name.size();
    std::transform(name.begin(), name.end(), name.begin(), [](char byte) {
      return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
    });
    return name.empty() ? std::nullopt : std::optional(name);
  }

  // The items between parentheses, separated by commas; nothing if there is no parenthesis.
  // nullopt: it is not closed.
  std::optional<std::vector<Span>> List() {
    SkipBlanks();
    std::vector<Span> list;
    if (at_ == text_.size() || text_[at_] != '(') {
      return list;
    }
    const size_t end = SkipParentheses(text_, at_);
    if (end == std::string_view::npos) {
      return std::nullopt;
    }
    size_t begin = at_ + 1;
    int brackets = 0;
    for (size_t at = begin; at < end; ++at) {
      const char byte = text_[at];
      brackets += byte == '[' ? 1 : byte == ']' ? -1 : 0;
      if (byte == '(') {
        at = SkipParentheses(text_, at) - 1;
      } else if (byte == '\'' || byte == '"') {
        at = SkipQuoted(text_, at, false) - 1;
      } else if (byte == '$') {
        at = SkipDollarQuoted(text_, at) - 1;
      } else if (text_.substr(at, 2) == "/*") {
        at = SkipBlockComment(text_, at) - 1;
      } else if ((byte == ',' && brackets == 0) || at == end - 1) {
        list.push_back(Trimmed(text_, begin, at));
        begin = at + 1;
      }
    }
    at_ = end;
    return list;
  }

  // Where the next thing begins.
  int64_t Place() {
    SkipBlanks();
    return static_cast<int64_t>(at_);
  }

  bool AtEnd() {
    SkipBlanks();
    return at_ == text_.size() || text_[at_] == ';';
  }

 private:
  void SkipBlanks() {
    while (at_ < text_.size()) {
      if (text_.substr(at_, 2) == "--") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        at_ = SkipBlockComment(text_, at_);
      } else if (std::string_view(" \t\r\n\f\v").find(text_[at_]) != std::string_view::npos) {
        ++at_;
      } else {
        return;
      }
    }
  }
  std::string_view WordHere() const {
    size_t end = at_;
    while (end < text_.size() && (IsWordByte(text_[end]) || (end > at_ && text_[end] == '$'))) {
      ++end;
    }
    return text_.substr(at_, end - at_);
  }

  std::string_view text_;
  size_t at_ = 0;
};

// An SQL constant as a parameter such as a driver sends; nullopt: not a constant.
std::optional<std::pair<uint32_t, std::optional<std::string>>> Constant(std::string_view text) {
  if (EqualsWord(text, "NULL")) {
    return std::pair(kUnspecifiedOid, std::nullopt);
  }
  if (EqualsWord(text, "TRUE") || EqualsWord(text, "FALSE")) {
    return std::pair(kBoolOid, std::string(text));
  }
  if (text.size() >= 2 && text.front() == '\'') {
    std::string value;
    size_t at = 1;
    for (; at < text.size() && (text[at] != '\'' || text.substr(at + 1, 1) == "'"); ++at) {
      value += text[at];
      at += text[at] == '\'' ? 1 : 0;
    }
    return at + 1 == text.size() ? std::optional(std::pair(kTextOid, std::optional(value)))
                                 : std::nullopt;
  }
  const bool number = text.find_first_of("0123456789") != std::string_view::npos &&
                      text.find_first_not_of("0123456789.+-eE") == std::string_view::npos;
  return number ? std::optional(std::pair(kUnspecifiedOid, std::optional(std::string(text))))
                : std::nullopt;
}

// As an attribute's value: a constant as written, anything else as computed.
Result<std::string> AttributeText(std::string_view argument, const BoundParameter& computed,
                                  const ParameterPlace& place) {
  const auto constant = Constant(argument);
  BoundParameter parameter = computed;
  if (constant.has_value()) {
    parameter.type = constant->first;
    parameter.value = constant->second;
  }
  const Span span = {static_cast<int64_t>(place.begin), static_cast<int64_t>(place.end)};
  ASSIGN_OR_RETURN(const parser::AttributeValue value, ParameterAttribute(parameter, span));
  return parser::Print(value);
}

}  // namespace

std::optional<PrepareText> ReadPrepareText(std::string_view before) {
  Reader reader(before);
  if (!reader.Word("PREPARE")) {
    return std::nullopt;
  }
  std::optional<std::string> name = reader.Name();
  const std::optional<std::vector<Span>> types = reader.List();
  if (!name.has_value() || !types.has_value() || !reader.Word("AS") || !reader.AtEnd()) {
    return std::nullopt;
  }
  PrepareText prepare{*std::move(name), {}};
  for (const Span& type : *types) {
    prepare.types.emplace_back(TextOf(before, type));
  }
  return prepare;
}

Status NameIsTaken(std::string_view name) {
  return AlreadyExists(fmt::format("prepared statement \"{}\" already exists", name))
      .SqlState("42P05");
}

Status NoPrepared(std::string_view name) {
  return NotFound(fmt::format("prepared statement \"{}\" does not exist", name)).SqlState("26000");
}

Status CheckPreparedText(std::string_view text, const std::vector<uint32_t>& types) {
  const Result<BoundText> unbound = BindText(text, types, {}, nullptr);
  return unbound.ok() ? unbound->Moved(parser::Parse(unbound->text).status())
                      : parser::Parse(text).status();
}

std::optional<ExecuteText> ReadExecuteText(std::string_view sql) {
  Reader reader(sql);
  if (reader.Word("EXPLAIN")) {
    reader.List();
    while (reader.Word("ANALYZE") || reader.Word("VERBOSE")) {
    }
  }
  ExecuteText execute;
  execute.begin = reader.Place();
  if (!reader.Word("EXECUTE")) {
    return std::nullopt;
  }
  std::optional<std::string> name = reader.Name();
  std::optional<std::vector<Span>> arguments = reader.List();
  if (!name.has_value() || !arguments.has_value() || !reader.AtEnd() ||
      std::any_of(arguments->begin(), arguments->end(),
                  [](const Span& argument) { return argument.begin >= argument.end; })) {
    return std::nullopt;
  }
  execute.name = *std::move(name);
  execute.arguments = *std::move(arguments);
  return execute;
}

std::string ArgumentsQuery(size_t parameters, catalog::Dialect dialect) {
  if (parameters == 0 && dialect == catalog::Dialect::kSqlite) {
    return "SELECT NULL";
  }
  std::string query = "SELECT";
  for (size_t i = 1; i <= parameters; ++i) {
    query += fmt::format("{}${}", i == 1 ? " " : ", ", i);
  }
  return query;
}

std::optional<std::string> DeallocatedName(std::string_view sql) {
  Reader reader(sql);
  const bool deallocate = reader.Word("DEALLOCATE");
  if (!deallocate && !reader.Word("DISCARD")) {
    return std::nullopt;
  }
  const parser::SplitScript split = parser::Split(sql);
  if (!split.error.ok() || split.pieces.size() != 1) {
    return std::nullopt;
  }
  if (deallocate) {
    reader.Word("PREPARE");
  }
  if (reader.Word("ALL")) {
    return "";
  }
  return deallocate ? reader.Name() : std::nullopt;
}

Result<BoundText> BindArguments(std::string_view prepared, const std::vector<uint32_t>& oids,
                                const std::vector<std::string>& types, std::string_view sql,
                                const ExecuteText& execute, const AnsweredRow& arguments,
                                catalog::Dialect dialect) {
  const size_t expected = std::max(types.size(), CountParameters(prepared));
  if (execute.arguments.size() != expected || arguments.values.size() < expected) {
    return SyntaxError(fmt::format("wrong number of parameters for prepared statement \"{}\"",
                                   execute.name))
        .Detail(
            fmt::format("Expected {} parameters but got {}.", expected, execute.arguments.size()));
  }
  Span argument;
  Result<BoundText> substituted =
      Substitute(prepared, [&](const ParameterPlace& place, bool attribute) -> Result<std::string> {
        const size_t index = place.number - 1;
        argument = execute.arguments[index];
        const bool declared = index < types.size();
        BoundParameter parameter;
        const bool sqlite = dialect == catalog::Dialect::kSqlite;
        parameter.type = declared || sqlite    ? arguments.types[index]
                         : index < oids.size() ? oids[index]
                                               : kUnspecifiedOid;
        if (arguments.values[index].has_value()) {
          parameter.value = *arguments.values[index];
        }
        if (attribute) {
          return AttributeText(TextOf(sql, execute.arguments[index]), parameter, place);
        }
        if (!declared) {
          return sqlite ? SqliteLiteral(parameter) : ParameterLiteral(parameter);
        }
        parameter.type = sqlite ? parameter.type : uint32_t{kUnspecifiedOid};
        ASSIGN_OR_RETURN(const std::string value,
                         sqlite ? SqliteLiteral(parameter) : ParameterLiteral(parameter));
        return fmt::format("CAST({} AS {})", value, types[index]);
      });
  if (!substituted.ok()) {
    return Status(substituted.status()).At(argument);
  }
  BoundText bound = *std::move(substituted);
  // Everything but the arguments maps to the EXECUTE.
  const std::string_view explain = sql.substr(0, static_cast<size_t>(execute.begin));
  const auto shift = static_cast<int64_t>(explain.size());
  const std::vector<ParameterPlace> places = FindParameters(prepared);
  std::vector<BoundText::Replaced> replaced;
  int64_t before = shift;
  for (size_t i = 0; i < bound.replaced.size(); ++i) {
    const BoundText::Replaced& part = bound.replaced[i];
    argument = execute.arguments[places[i].number - 1];
    replaced.push_back({execute.begin, execute.begin, before, shift + part.new_begin});
    replaced.push_back(
        {argument.begin, argument.end, shift + part.new_begin, shift + part.new_end});
    before = shift + part.new_end;
  }
  bound.text.insert(0, explain);
  replaced.push_back(
      {execute.begin, execute.begin, before, static_cast<int64_t>(bound.text.size()) + 1});
  bound.replaced = std::move(replaced);
  return bound;
}

}  // namespace sluice::server::pgwire
