#include "server/pgwire/router.h"

#include <algorithm>
#include <array>

#include "parser/parser.h"
#include "parser/splitter.h"

namespace sluice::server::pgwire {

std::string_view TextOf(std::string_view script, const Span& span) {
  return script.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin));
}

namespace {

// Each statement of ours has one of these.
constexpr std::array<std::string_view, 10> kOurWords = {
    "TO", "LABEL", "TRAIN", "MODEL", "MODELS", "JOB", "JOBS", "CANCEL", "WAIT", "SLUICE"};

bool IsWordByte(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '_' ||
         (static_cast<unsigned char>(byte) & 0x80U) != 0;
}

char Upper(char byte) {
  return byte >= 'a' && byte <= 'z' ? static_cast<char>(byte - 'a' + 'A') : byte;
}

bool EqualsWord(std::string_view text, std::string_view upper) {
  return text.size() == upper.size() &&
         std::equal(text.begin(), text.end(), upper.begin(),
                    [](char left, char right) { return Upper(left) == right; });
}

bool IsOurWord(std::string_view word) {
  if (Upper(word.front()) == 'L' && NearestName(word, {"LABEL"}).has_value()) {
    return true;  // a slip of the pen, which the splitter tells with what was meant
  }
  return std::any_of(kOurWords.begin(), kOurWords.end(),
                     [word](std::string_view ours) { return EqualsWord(word, ours); });
}

// Behind the quoted text that begins at `at`; the end where it is not closed.
size_t SkipQuoted(std::string_view sql, size_t at, bool escapes) {
  const char quote = sql[at];
  for (++at; at < sql.size(); ++at) {
    if (escapes && sql[at] == '\\') {
      ++at;
    } else if (sql[at] == quote) {
      return at + 1;  // a doubled one begins the next piece of the same text
    }
  }
  return sql.size();
}

size_t SkipBlockComment(std::string_view sql, size_t at) {
  int depth = 0;
  while (at < sql.size()) {
    if (sql.substr(at, 2) == "/*") {
      ++depth;
      at += 2;
    } else if (sql.substr(at, 2) == "*/") {
      at += 2;
      if (--depth == 0) {
        return at;
      }
    } else {
      ++at;
    }
  }
  return sql.size();
}

// Behind $tag$ ... $tag$; one byte further where none begins at `at`.
size_t SkipDollarQuoted(std::string_view sql, size_t at) {
  size_t end = at + 1;
  while (end < sql.size() && IsWordByte(sql[end])) {
    ++end;
  }
  if (end == sql.size() || sql[end] != '$') {
    return at + 1;
  }
  const std::string_view tag = sql.substr(at, end + 1 - at);
  const size_t close = sql.find(tag, end + 1);
  return close == std::string_view::npos ? sql.size() : close + tag.size();
}

std::string_view FirstWord(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && !IsWordByte(text[at])) {
    if (text.substr(at, 2) == "--") {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.substr(at, 2) == "/*") {
      at = SkipBlockComment(text, at);
    } else {
      ++at;
    }
  }
  size_t end = at;
  while (end < text.size() && IsWordByte(text[end])) {
    ++end;
  }
  return text.substr(at, end - at);
}

// Calls visit(begin, end) for each word and each $n outside of strings, quoted names and comments,
// until it says true; whether it did.
template <typename Visit>
bool ScanCode(std::string_view sql, const Visit& visit) {
  for (size_t at = 0; at < sql.size();) {
    const char byte = sql[at];
    const size_t begin = at;
    if (IsWordByte(byte)) {
      while (at < sql.size() && (IsWordByte(sql[at]) || sql[at] == '$')) {
        ++at;
      }
      const bool string_with_escapes =
          at == begin + 1 && Upper(byte) == 'E' && at < sql.size() && sql[at] == '\'';
      if (string_with_escapes) {
        at = SkipQuoted(sql, at, true);
      } else if (visit(begin, at)) {
        return true;
      }
    } else if (byte == '\'' || byte == '"') {
      at = SkipQuoted(sql, at, false);
    } else if (byte == '$' && at + 1 < sql.size() && sql[at + 1] >= '0' && sql[at + 1] <= '9') {
      for (++at; at < sql.size() && sql[at] >= '0' && sql[at] <= '9';) {
        ++at;
      }
      if (visit(begin, at)) {
        return true;
      }
    } else if (byte == '$') {
      at = SkipDollarQuoted(sql, at);
    } else if (byte == '-' && sql.substr(at, 2) == "--") {
      at = std::min(sql.find('\n', at), sql.size());
    } else if (byte == '/' && sql.substr(at, 2) == "/*") {
      at = SkipBlockComment(sql, at);
    } else {
      ++at;
    }
  }
  return false;
}

}  // namespace

bool MayBeOurs(std::string_view sql) {
  return ScanCode(sql, [sql](size_t begin, size_t end) {
    return sql[begin] != '$' && IsOurWord(sql.substr(begin, end - begin));
  });
}

std::vector<ParameterPlace> FindParameters(std::string_view sql) {
  constexpr size_t kMost = 65'535;  // Bind has room for so many
  std::vector<ParameterPlace> places;
  ScanCode(sql, [sql, &places](size_t begin, size_t end) {
    size_t number = 0;
    for (size_t at = begin + 1; sql[begin] == '$' && at < end && number <= kMost; ++at) {
      number = number * 10 + static_cast<size_t>(sql[at] - '0');
    }
    if (number >= 1 && number <= kMost) {
      places.push_back({number, begin, end});
    }
    return false;
  });
  return places;
}

namespace {

// Behind the parenthesis that closes the one at `at`; npos: none does.
size_t SkipParentheses(std::string_view sql, size_t at) {
  int depth = 0;
  while (at < sql.size()) {
    const char byte = sql[at];
    if (byte == '\'' || byte == '"') {
      at = SkipQuoted(sql, at, false);
    } else if (byte == '$') {
      at = SkipDollarQuoted(sql, at);
    } else if (sql.substr(at, 2) == "--") {
      at = std::min(sql.find('\n', at), sql.size());
    } else if (sql.substr(at, 2) == "/*") {
      at = SkipBlockComment(sql, at);
    } else {
      depth += byte == '(' ? 1 : byte == ')' ? -1 : 0;
      ++at;
      if (depth == 0) {
        return at;
      }
    }
  }
  return std::string_view::npos;
}

// Behind the first word of the text that is `word`; npos: none is.
size_t Behind(std::string_view sql, std::string_view word) {
  size_t behind = std::string_view::npos;
  ScanCode(sql, [sql, word, &behind](size_t begin, size_t end) {
    behind = EqualsWord(sql.substr(begin, end - begin), word) ? end : behind;
    return behind != std::string_view::npos;
  });
  return behind;
}

Span Trimmed(std::string_view sql, size_t begin, size_t end) {
  constexpr std::string_view kBlanks = " \t\r\n\f\v";
  begin = std::min(sql.find_first_not_of(kBlanks, begin), end);
  while (end > begin && (kBlanks.find(sql[end - 1]) != kBlanks.npos || sql[end - 1] == ';')) {
    --end;
  }
  return {static_cast<int64_t>(begin), static_cast<int64_t>(end)};
}

// Without the FOR READ ONLY of a cursor (libpqxx) behind it.
Span WithoutReadOnly(std::string_view sql, Span query) {
  constexpr std::array<std::string_view, 3> kReadOnly = {"FOR", "READ", "ONLY"};
  size_t found = 0;
  size_t begin = 0;
  const std::string_view text = TextOf(sql, query);
  ScanCode(text, [&](size_t word, size_t end) {
    if (found == kReadOnly.size() || !EqualsWord(text.substr(word, end - word), kReadOnly[found])) {
      found = 0;
    }
    if (EqualsWord(text.substr(word, end - word), kReadOnly[found])) {
      begin = found == 0 ? word : begin;
      ++found;
    }
    return false;
  });
  return found == kReadOnly.size() ? Trimmed(sql, static_cast<size_t>(query.begin),
                                             static_cast<size_t>(query.begin) + begin)
                                   : query;
}

// What a statement of the database has inside that may be ours; nullopt: it is none of those that
// have. psql sends DECLARE when FETCH_COUNT is set.
std::optional<Span> InsideOf(std::string_view statement) {
  const std::string_view first = FirstWord(statement);
  if (EqualsWord(first, "COPY")) {
    const size_t copy = static_cast<size_t>(first.data() - statement.data()) + first.size();
    const size_t open = statement.find('(', copy);
    const bool query = open < copy + statement.substr(copy).find(FirstWord(statement.substr(copy)));
    const size_t close = query ? SkipParentheses(statement, open) : std::string_view::npos;
    return close == std::string_view::npos ? std::nullopt
                                           : std::optional(Trimmed(statement, open + 1, close - 1));
  }
  const bool declares = EqualsWord(first, "DECLARE");
  if (!declares && !EqualsWord(first, "PREPARE")) {
    return std::nullopt;
  }
  const size_t begin = Behind(statement, declares ? "FOR" : "AS");
  return begin == std::string_view::npos
             ? std::nullopt
             : std::optional(
                   WithoutReadOnly(statement, Trimmed(statement, begin, statement.size())));
}

// Where a statement of the database has one of ours inside; nullopt: it has not.
std::optional<Route> RouteInside(std::string_view sql) {
  const std::optional<Span> inside = InsideOf(sql);
  if (!inside.has_value()) {
    return std::nullopt;
  }
  // What stands before is blank, so that places are those of the whole.
  const std::string blanked =
      std::string(static_cast<size_t>(inside->begin), ' ') + std::string(TextOf(sql, *inside));
  const parser::SplitScript split = parser::Split(blanked);
  if (split.pieces.empty() && !split.error.ok() &&
      !split.error.message().starts_with("unterminated")) {
    return Route{{}, split.error};  // a slip in one of ours
  }
  if (std::all_of(split.pieces.begin(), split.pieces.end(), [](const parser::Piece& piece) {
        return piece.kind == parser::Piece::Kind::kPlain;
      })) {
    return std::nullopt;
  }
  if (EqualsWord(FirstWord(sql), "PREPARE")) {
    return Route{{},
                 Unimplemented("a statement of Sluice cannot stand inside PREPARE")
                     .At(*inside)
                     .Hint("let the driver prepare it: the protocol's prepared statements take "
                           "it")};
  }
  if (split.pieces.size() > 1) {
    return Route{{},
                 Unimplemented("a cursor over a statement of Sluice is declared by itself")
                     .At(*inside)
                     .Hint("send the statements one by one")};
  }
  Part part;
  part.kind = Part::Kind::kOurs;
  part.span = Trimmed(sql, 0, sql.size());
  part.inside = inside;
  return Route{{part}, OkStatus()};
}

}  // namespace

std::optional<Route> RouteScript(std::string_view sql) {
  if (sql.size() > parser::kMaxScriptBytes || !MayBeOurs(sql)) {
    return std::nullopt;
  }
  if (std::optional<Route> inside = RouteInside(sql)) {
    return inside;
  }
  parser::SplitScript split = parser::Split(sql);
  Route route;
  bool ours = false;
  for (const parser::Piece& piece : split.pieces) {
    Part part;
    part.span = piece.span;
    const std::string_view first = FirstWord(TextOf(sql, piece.span));
    if (piece.kind != parser::Piece::Kind::kPlain) {
      ours = true;
      part.kind = EqualsWord(first, "SET") ? Part::Kind::kSet : Part::Kind::kOurs;
    } else {
      part.transaction = EqualsWord(first, "BEGIN") || EqualsWord(first, "START");
      Part* const before = route.parts.empty() ? nullptr : &route.parts.back();
      if (before != nullptr && before->kind == Part::Kind::kPlain) {
        before->span.end = part.span.end;
        before->transaction = before->transaction || part.transaction;
        continue;
      }
    }
    route.parts.push_back(part);
  }
  if (!split.error.ok()) {
    // A string that does not end, say: the database's own words fit its own text.
    if (!ours && split.error.message().starts_with("unterminated")) {
      return std::nullopt;
    }
    route.error = std::move(split.error);
    return route;
  }
  if (!ours) {
    return std::nullopt;
  }
  return route;
}

bool DeclaresForTransaction(std::string_view before) {
  return EqualsWord(FirstWord(before), "DECLARE") &&
         (Behind(before, "WITH") == std::string_view::npos ||
          Behind(before, "HOLD") == std::string_view::npos);
}

std::optional<std::string> DeallocatedName(std::string_view sql) {
  const std::string_view first = FirstWord(sql);
  const bool deallocate = EqualsWord(first, "DEALLOCATE");
  if (!deallocate && !EqualsWord(first, "DISCARD")) {
    return std::nullopt;
  }
  const parser::SplitScript split = parser::Split(sql);
  if (!split.error.ok() || split.pieces.size() != 1) {
    return std::nullopt;
  }
  std::string_view rest = sql.substr(static_cast<size_t>(first.data() + first.size() - sql.data()));
  std::string_view name = FirstWord(rest);
  if (deallocate && EqualsWord(name, "PREPARE")) {
    rest = rest.substr(static_cast<size_t>(name.data() + name.size() - rest.data()));
    name = FirstWord(rest);
  }
  if (EqualsWord(name, "ALL")) {
    return "";
  }
  if (!deallocate || name.empty()) {
    return std::nullopt;
  }
  const bool quoted = name.data() > sql.data() && name.data()[-1] == '"';
  std::string folded(name);
  if (quoted) {
    const size_t begin = static_cast<size_t>(name.data() - sql.data());
    const size_t end = sql.find('"', begin);
    folded = sql.substr(begin, end == std::string_view::npos ? end : end - begin);
  } else {
    std::transform(folded.begin(), folded.end(), folded.begin(), [](char byte) {
      return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
    });
  }
  return folded;
}

bool IsReadable(const std::map<std::string, std::string>& parameters) {
  constexpr std::array<std::string_view, 7> kHidesAscii = {
      "SJIS", "SHIFT_JIS_2004", "BIG5", "GBK", "GB18030", "UHC", "JOHAB"};
  const auto encoding = parameters.find("client_encoding");
  const auto strings = parameters.find("standard_conforming_strings");
  const bool hides =
      encoding != parameters.end() &&
      std::find(kHidesAscii.begin(), kHidesAscii.end(), encoding->second) != kHidesAscii.end();
  return !hides && (strings == parameters.end() || strings->second == "on");
}

}  // namespace sluice::server::pgwire
