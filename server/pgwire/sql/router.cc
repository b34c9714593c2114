#include "server/pgwire/sql/router.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>

#include "parser/parser.h"
#include "parser/splitter.h"
#include "server/pgwire/sql/prepared_text.h"
#include "server/pgwire/sql/sql_words_internal.h"

namespace sluice::server::pgwire {
namespace {

// Every statement of ours has one of these words.
constexpr std::array<std::string_view, 12> kOurWords = {
    "TO",   "LABEL",   "TRAIN",  "MODEL", "MODELS", "JOB",
    "JOBS", "CLUSTER", "CANCEL", "WAIT",  "SLUICE", "SHOW"};  // SHOW MODLES

bool IsOurWord(std::string_view word) {
  if (Upper(word.front()) == 'L' && NearestName(word, {"LABEL"}).has_value()) {
    return true;  // a misspelling; the splitter's error suggests the right word
  }
  return std::any_of(kOurWords.begin(), kOurWords.end(),
                     [word](std::string_view ours) { return EqualsWord(word, ours); });
}

}  // namespace

bool MayBeOurs(std::string_view sql) {
  return ScanCode(sql, [sql](size_t begin, size_t end) {
    return sql[begin] != '$' && IsOurWord(sql.substr(begin, end - begin));
  });
}

namespace {

// Without a trailing FOR READ ONLY of a cursor (libpqxx).
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

// The inner statement, which may be ours, of one of the database's statements; nullopt: it can have
// none. psql sends DECLARE when FETCH_COUNT is set.
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
  const size_t begin = BehindWord(statement, declares ? "FOR" : "AS");
  return begin == std::string_view::npos
             ? std::nullopt
             : std::optional(
                   WithoutReadOnly(statement, Trimmed(statement, begin, statement.size())));
}

// The route for a database statement with one of ours inside; nullopt: it has none.
std::optional<Route> RouteInside(std::string_view sql) {
  const std::optional<Span> inside = InsideOf(sql);
  if (!inside.has_value()) {
    return std::nullopt;
  }
  // The text before it is blanked, so that places are those in the whole text.
  const std::string blanked =
      std::string(static_cast<size_t>(inside->begin), ' ') + std::string(TextOf(sql, *inside));
  const parser::SplitScript split = parser::Split(blanked);
  if (split.pieces.empty() && !split.error.ok() && !parser::IsUnterminated(split.error)) {
    return Route{{}, split.error};  // a misspelling in one of ours
  }
  if (std::all_of(split.pieces.begin(), split.pieces.end(), [](const parser::Piece& piece) {
        return piece.kind == parser::Piece::Kind::kPlain;
      })) {
    return std::nullopt;
  }
  const bool prepares = EqualsWord(FirstWord(sql), "PREPARE");
  if (split.pieces.size() > 1) {
    return Route{
        {},
        Unimplemented(prepares ? "a statement of Sluice must be prepared on its own"
                               : "a cursor over a statement of Sluice must be declared on its own")
            .At(*inside)
            .Hint("send the statements one by one")};
  }
  Part part;
  part.kind = prepares ? Part::Kind::kPrepare : Part::Kind::kOurs;
  part.span = Trimmed(sql, 0, sql.size());
  part.inside = inside;
  return Route{{part}, OkStatus()};
}

// Whether the text may refer to prepared statements of ours.
bool UsesPrepared(std::string_view sql) {
  constexpr std::array<std::string_view, 3> kWords = {"EXECUTE", "DEALLOCATE", "DISCARD"};
  return std::any_of(kWords.begin(), kWords.end(), [sql](std::string_view word) {
    return BehindWord(sql, word) != std::string_view::npos;
  });
}

}  // namespace

std::optional<Route> RouteScript(std::string_view sql, const IsPrepared& is_prepared) {
  const bool executes =
      is_prepared != nullptr && sql.size() <= parser::kMaxScriptBytes && UsesPrepared(sql);
  if (sql.size() > parser::kMaxScriptBytes || (!MayBeOurs(sql) && !executes)) {
    return std::nullopt;
  }
  if (std::optional<Route> inside = RouteInside(sql)) {
    return inside;
  }
  parser::SplitScript split = parser::Split(sql);
  Route route;
  bool ours = false;
  std::map<std::string, bool> changed;  // names so far: is it ours?
  bool all_forgotten = false;
  const auto is_ours = [&](const std::string& name) {
    const auto here = changed.find(name);
    return here != changed.end() ? here->second
                                 : !all_forgotten && is_prepared != nullptr && is_prepared(name);
  };
  for (const parser::Piece& piece : split.pieces) {
    Part part;
    part.span = piece.span;
    const std::string_view text = TextOf(sql, piece.span);
    const std::string_view first = FirstWord(text);
    const std::optional<ExecuteText> execute =
        executes || !changed.empty() ? ReadExecuteText(text) : std::nullopt;
    const std::optional<std::string> forgets =
        executes || !changed.empty() ? DeallocatedName(text) : std::nullopt;
    const std::optional<Route> inside =
        EqualsWord(first, "PREPARE") ? RouteInside(text) : std::nullopt;
    if (piece.kind != parser::Piece::Kind::kPlain) {
      ours = true;
      const bool sets = EqualsWord(first, "SET") || EqualsWord(first, "RESET");
      part.kind = sets ? Part::Kind::kSet : Part::Kind::kOurs;
    } else if (execute.has_value() && is_ours(execute->name)) {
      ours = true;
      part.kind = Part::Kind::kExecute;
    } else if (forgets.has_value()) {
      ours = true;
      part.kind = Part::Kind::kForget;
      part.name = *forgets;
      if (forgets->empty()) {
        changed.clear();
        all_forgotten = true;
      } else {
        changed[*forgets] = false;
      }
    } else if (inside.has_value() && inside->error.ok()) {
      ours = true;
      part = inside->parts.front();
      for (Span* const span : {&part.span, &*part.inside}) {
        span->begin += piece.span.begin;
        span->end += piece.span.begin;
      }
      if (const auto prepare =
              ReadPrepareText(TextOf(sql, {part.span.begin, part.inside->begin}))) {
        changed[prepare->name] = true;
      }
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
    // For example an unterminated string: the database's own error fits its own text best. More
    // statements than we read at once are no error to it.
    if (!ours && (parser::IsUnterminated(split.error) || split.too_many_plain)) {
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

std::optional<PrepareOfOurs> ReadPrepareOfOurs(std::string_view sql) {
  if (!EqualsWord(FirstWord(sql), "PREPARE")) {
    return std::nullopt;
  }
  const std::optional<Route> route = RouteScript(sql);
  if (!route.has_value()) {
    return std::nullopt;
  }
  PrepareOfOurs prepare;
  prepare.error = route->error;
  if (prepare.error.ok()) {
    if (route->parts.size() != 1 || route->parts.front().kind != Part::Kind::kPrepare) {
      return std::nullopt;
    }
    prepare.inside = *route->parts.front().inside;
    prepare.head = ReadPrepareText(sql.substr(0, static_cast<size_t>(prepare.inside.begin)));
  }
  return prepare;
}

bool DeclaresForTransaction(std::string_view before) {
  return EqualsWord(FirstWord(before), "DECLARE") &&
         (BehindWord(before, "WITH") == std::string_view::npos ||
          BehindWord(before, "HOLD") == std::string_view::npos);
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
