#include "server/pgwire/embedded/session_statement.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "catalog/sql/sql_text.h"
#include "server/pgwire/prepared_text.h"
#include "server/pgwire/sql_words_internal.h"

namespace sluice::server::pgwire {
namespace {

using catalog::SqlToken;
using StatementKind = SessionStatement::Kind;

class SessionReader {
 public:
  explicit SessionReader(std::string_view sql)
      : sql_(sql), tokens_(catalog::TokenizeSql(sql, catalog::Dialect::kPostgres)) {}

  bool AtEnd() const { return at_ >= tokens_.size(); }
  std::string_view Text() const {
    return AtEnd() ? std::string_view()
                   : sql_.substr(tokens_[at_].begin, tokens_[at_].end - tokens_[at_].begin);
  }
  bool Is(std::string_view upper) const { return !AtEnd() && EqualsWord(Text(), upper); }
  bool Take(std::string_view upper) {
    const bool is = Is(upper);
    at_ += is ? 1 : 0;
    return is;
  }
  bool TakeSymbol(std::string_view symbol) {
    const bool is = Text() == symbol;
    at_ += is ? 1 : 0;
    return is;
  }
  // The end of the statement without these last words, if it ends with them.
  size_t EndWithout(std::initializer_list<std::string_view> words) const {
    if (tokens_.size() < at_ + words.size()) {
      return sql_.size();
    }
    const size_t first = tokens_.size() - words.size();
    size_t at = first;
    for (const std::string_view word : words) {
      const SqlToken& token = tokens_[at++];
      if (!EqualsWord(sql_.substr(token.begin, token.end - token.begin), word)) {
        return sql_.size();
      }
    }
    return tokens_[first].begin;
  }
  void Skip() { ++at_; }
  Span Place() const {
    if (AtEnd()) {
      return {static_cast<int64_t>(sql_.size()), static_cast<int64_t>(sql_.size())};
    }
    return {static_cast<int64_t>(tokens_[at_].begin), static_cast<int64_t>(tokens_[at_].end)};
  }
  const SqlToken* Token() const { return AtEnd() ? nullptr : &tokens_[at_]; }
  // A name, folded as PostgreSQL folds it.
  std::optional<std::string> TakeName() {
    if (AtEnd() || (tokens_[at_].kind != SqlToken::Kind::kWord &&
                    tokens_[at_].kind != SqlToken::Kind::kQuotedName)) {
      return std::nullopt;
    }
    auto name = catalog::ParseTableName(Text(), catalog::Dialect::kPostgres);
    ++at_;
    return name.ok() ? std::optional(name->name) : std::nullopt;
  }
  // The value of a literal: 'x', x, "x", 5.
  std::string TakeValue() {
    std::string value;
    if (AtEnd()) {
      return value;
    }
    const SqlToken& token = tokens_[at_];
    std::string_view text = Text();
    if (token.kind == SqlToken::Kind::kString || token.kind == SqlToken::Kind::kQuotedName) {
      const bool escapes = text[0] == 'E' || text[0] == 'e';
      const size_t open = escapes ? 1 : 0;
      const char quote = text[open];
      for (size_t i = open + 1; i + 1 < text.size(); ++i) {
        char c = text[i];
        if (escapes && c == '\\' && i + 2 < text.size()) {
          c = text[++i];
          c = c == 't' ? '\t' : c == 'n' ? '\n' : c;
        } else if (c == quote && text[i + 1] == quote) {
          ++i;
        }
        value += c;
      }
    } else {
      value = text;
    }
    ++at_;
    return value;
  }
  std::string_view Rest() const {
    return AtEnd() ? std::string_view() : sql_.substr(tokens_[at_].begin);
  }
  Status Unexpected() const {
    return AtEnd() ? SyntaxError("syntax error at end of input").At(Place())
                   : SyntaxError(fmt::format("syntax error at or near \"{}\"", Text())).At(Place());
  }

 private:
  const std::string_view sql_;
  const std::vector<SqlToken> tokens_;
  size_t at_ = 0;
};

using SessionRead = Result<std::optional<SessionStatement>>;

SessionStatement StatementOf(StatementKind kind, std::string tag) {
  SessionStatement statement{.kind = kind};
  statement.tag = std::move(tag);
  return statement;
}

// [NOT] DEFERRABLE, ISOLATION LEVEL x, READ ONLY, READ WRITE: SQLite's transactions are always
// serializable.
bool TakeModes(SessionReader& reader, SessionStatement* statement) {
  while (!reader.AtEnd()) {
    if (reader.Take("ISOLATION")) {
      if (!reader.Take("LEVEL")) {
        return false;
      }
      if (reader.Take("READ")) {
        if (!reader.Take("COMMITTED") && !reader.Take("UNCOMMITTED")) {
          return false;
        }
      } else if (reader.Take("REPEATABLE")) {
        if (!reader.Take("READ")) {
          return false;
        }
      } else if (!reader.Take("SERIALIZABLE")) {
        return false;
      }
    } else if (reader.Take("READ")) {
      statement->read_only = reader.Is("ONLY");
      if (!reader.Take("ONLY") && !reader.Take("WRITE")) {
        return false;
      }
    } else if (reader.Take("NOT")) {
      if (!reader.Take("DEFERRABLE")) {
        return false;
      }
    } else if (!reader.Take("DEFERRABLE") && !reader.TakeSymbol(",") && !reader.Take("DEFERRED") &&
               !reader.Take("IMMEDIATE") && !reader.Take("EXCLUSIVE")) {
      return false;
    }
  }
  return true;
}

SessionRead ReadBegin(SessionReader& reader, std::string tag) {
  SessionStatement statement = StatementOf(StatementKind::kBegin, std::move(tag));
  static_cast<void>(reader.Take("TRANSACTION") || reader.Take("WORK"));
  return TakeModes(reader, &statement) ? SessionRead(statement) : reader.Unexpected();
}

SessionRead ReadEnd(SessionReader& reader, StatementKind kind, std::string tag) {
  SessionStatement statement = StatementOf(kind, std::move(tag));
  static_cast<void>(reader.Take("TRANSACTION") || reader.Take("WORK"));
  if (kind == StatementKind::kRollback && reader.Take("TO")) {
    reader.Take("SAVEPOINT");
    statement.kind = StatementKind::kRollbackTo;
    const auto name = reader.TakeName();
    if (!name.has_value()) {
      return reader.Unexpected();
    }
    statement.name = *name;
  } else if (reader.Take("AND")) {
    statement.chain = !reader.Take("NO");
    reader.Take("CHAIN");
  } else if (reader.Is("PREPARED")) {
    return Unimplemented("two-phase commit is not there over SQLite").At(reader.Place());
  }
  return reader.AtEnd() ? SessionRead(statement) : reader.Unexpected();
}

SessionRead ReadSet(SessionReader& reader) {
  SessionStatement statement = StatementOf(StatementKind::kSet, "SET");
  if (reader.Take("LOCAL")) {
    statement.local = true;
  } else if (reader.Take("SESSION")) {
    if (reader.Take("CHARACTERISTICS")) {
      reader.Take("AS");
      reader.Take("TRANSACTION");
      statement.kind = StatementKind::kModes;
      statement.value = "session";
      return TakeModes(reader, &statement) ? SessionRead(statement) : reader.Unexpected();
    }
  }
  if (reader.Take("TRANSACTION")) {
    statement.kind = StatementKind::kModes;
    return TakeModes(reader, &statement) ? SessionRead(statement) : reader.Unexpected();
  }
  if (reader.Take("TIME")) {
    if (!reader.Take("ZONE")) {
      return reader.Unexpected();
    }
    statement.name = "timezone";
  } else {
    const auto name = reader.TakeName();
    if (!name.has_value()) {
      return reader.Unexpected();
    }
    statement.name = catalog::LowerAscii(*name);
    if (statement.name == "role" || statement.name == "authorization") {
      return Status(Code::kPermissionDenied,
                    "a session over SQLite stays the user that has logged in")
          .SqlState("42501");
    }
    while (reader.TakeSymbol(".")) {
      statement.name += "." + catalog::LowerAscii(reader.TakeName().value_or(""));
    }
    if (statement.name == "names") {
      statement.name = "client_encoding";
    } else if (!reader.TakeSymbol("=") && !reader.Take("TO")) {
      return reader.Unexpected();
    }
  }
  if (reader.AtEnd()) {
    return reader.Unexpected();
  }
  while (!reader.AtEnd()) {
    if (reader.TakeSymbol(",")) {
      statement.value += ", ";
    } else if (reader.TakeSymbol("-")) {
      statement.value += "-";
    } else {
      statement.value += reader.TakeValue();
    }
  }
  return SessionRead(statement);
}

SessionRead ReadName(SessionReader& reader, StatementKind kind, std::string tag) {
  SessionStatement statement = StatementOf(kind, std::move(tag));
  if (kind == StatementKind::kDeallocate) {
    reader.Take("PREPARE");
  }
  if (kind == StatementKind::kShow && reader.Take("TIME")) {
    reader.Take("ZONE");
    statement.name = "timezone";
    return SessionRead(statement);
  }
  if (kind == StatementKind::kShow && reader.Take("TRANSACTION")) {
    reader.Take("ISOLATION");
    reader.Take("LEVEL");
    statement.name = "transaction_isolation";
    return SessionRead(statement);
  }
  if (reader.Take("ALL")) {
    return SessionRead(statement);
  }
  const auto name = reader.TakeName();
  if (!name.has_value()) {
    return reader.Unexpected();
  }
  const bool folds = kind == StatementKind::kShow || kind == StatementKind::kReset;
  statement.name = folds ? catalog::LowerAscii(*name) : *name;
  while (reader.TakeSymbol(".")) {
    statement.name += "." + catalog::LowerAscii(reader.TakeName().value_or(""));
  }
  return reader.AtEnd() ? SessionRead(statement) : reader.Unexpected();
}

// The statement after AS or FOR.
SessionRead ReadInner(SessionReader& reader, std::string_view sql, SessionStatement statement) {
  if (reader.AtEnd()) {
    return reader.Unexpected();
  }
  statement.inner = {reader.Place().begin, static_cast<int64_t>(sql.size())};
  return SessionRead(statement);
}

SessionRead ReadDeclare(SessionReader& reader, std::string_view sql) {
  SessionStatement statement = StatementOf(StatementKind::kDeclare, "DECLARE CURSOR");
  const auto name = reader.TakeName();
  if (!name.has_value()) {
    return reader.Unexpected();
  }
  statement.name = *name;
  while (!reader.AtEnd() && !reader.Is("CURSOR")) {
    if (reader.Is("BINARY")) {
      return Unimplemented("binary cursors are not there over SQLite").At(reader.Place());
    }
    reader.Skip();
  }
  reader.Take("CURSOR");
  if (reader.Take("WITH")) {
    statement.hold = true;
    reader.Take("HOLD");
  } else if (reader.Take("WITHOUT")) {
    reader.Take("HOLD");
  }
  if (!reader.Take("FOR")) {
    return reader.Unexpected();
  }
  // As libpqxx writes it; every cursor here is.
  const size_t end = reader.EndWithout({"FOR", "READ", "ONLY"});
  return ReadInner(reader, sql.substr(0, end), std::move(statement));
}

SessionRead ReadFetch(SessionReader& reader, StatementKind kind, std::string tag) {
  SessionStatement statement = StatementOf(kind, std::move(tag));
  const Span place = reader.Place();
  const bool forward = reader.Take("FORWARD");
  if (reader.Take("ALL")) {
    statement.count = -1;
  } else if (!forward && reader.Take("NEXT")) {
    statement.count = 1;
  } else if (reader.Token() != nullptr && reader.Token()->kind == SqlToken::Kind::kNumber) {
    const std::string_view text = reader.Text();
    std::from_chars(text.data(), text.data() + text.size(), statement.count);
    reader.Skip();
  } else if (reader.Is("BACKWARD") || reader.Is("PRIOR") || reader.Is("FIRST") ||
             reader.Is("LAST") || reader.Is("ABSOLUTE") || reader.Is("RELATIVE") ||
             reader.Text() == "-") {
    return Status(Code::kFailedPrecondition, "cursor can only scan forward")
        .SqlState("55000")
        .At(place)
        .Hint("cursors over SQLite go forward: FETCH n FROM name, FETCH ALL FROM name");
  }
  static_cast<void>(reader.Take("FROM") || reader.Take("IN"));
  const auto name = reader.TakeName();
  if (!name.has_value()) {
    return reader.Unexpected();
  }
  statement.name = *name;
  return SessionRead(statement);
}

Status TakeCopyOption(SessionReader& reader, SessionStatement::CopyOptions* options,
                      bool* null_given, bool* delimiter_given) {
  const auto one = [&reader](char* out) -> Status {
    reader.Take("AS");
    const Span place = reader.Place();
    const std::string value = reader.TakeValue();
    if (value.size() != 1) {
      return InvalidArgument("COPY wants one single-byte character here").At(place);
    }
    *out = value[0];
    return OkStatus();
  };
  if (reader.Take("FORMAT")) {
    const Span place = reader.Place();
    const std::string format = catalog::LowerAscii(reader.TakeValue());
    options->binary = format == "binary";
    options->csv = format == "csv";
    return options->binary || options->csv || format == "text"
               ? OkStatus()
               : InvalidArgument(fmt::format("COPY format \"{}\" not recognized", format))
                     .At(place);
  }
  if (reader.Take("CSV")) {
    options->csv = true;
    return OkStatus();
  }
  if (reader.Take("BINARY")) {
    options->binary = true;
    return OkStatus();
  }
  if (reader.Take("HEADER")) {
    options->header = true;
    if (reader.Is("FALSE") || reader.Is("OFF")) {
      options->header = false;
    }
    if (reader.Is("FALSE") || reader.Is("OFF") || reader.Is("TRUE") || reader.Is("ON")) {
      reader.Skip();
    }
    return OkStatus();
  }
  if (reader.Take("DELIMITER") || reader.Take("DELIMITERS")) {
    *delimiter_given = true;
    return one(&options->delimiter);
  }
  if (reader.Take("QUOTE")) {
    return one(&options->quote);
  }
  if (reader.Take("ESCAPE")) {
    return one(&options->escape);
  }
  if (reader.Take("NULL")) {
    reader.Take("AS");
    options->null = reader.TakeValue();
    *null_given = true;
    return OkStatus();
  }
  if (reader.Take("ENCODING")) {
    reader.TakeValue();
    return OkStatus();
  }
  if (reader.Is("BINARY") || reader.Is("FREEZE") || reader.Is("FORCE_QUOTE") ||
      reader.Is("FORCE_NULL") || reader.Is("FORCE_NOT_NULL") || reader.Is("FORCE")) {
    return Unimplemented(fmt::format("COPY with {} is not there over SQLite", reader.Text()))
        .At(reader.Place());
  }
  return reader.Unexpected();
}

SessionRead ReadCopy(SessionReader& reader, std::string_view sql) {
  SessionStatement statement = StatementOf(StatementKind::kCopyIn, "COPY");
  const int64_t begin = reader.Place().begin;
  if (reader.Text() == "(") {
    const size_t close = SkipParentheses(sql, static_cast<size_t>(begin));
    if (close == std::string_view::npos) {
      return SyntaxError("syntax error at end of input");
    }
    statement.inner = {begin + 1, static_cast<int64_t>(close) - 1};
    while (!reader.AtEnd() && std::cmp_less(reader.Place().begin, close)) {
      reader.Skip();
    }
  } else {
    int64_t end = begin;
    if (reader.AtEnd()) {
      return reader.Unexpected();
    }
    do {
      end = reader.Place().end;
      reader.Skip();
      if (!reader.TakeSymbol(".")) {
        break;
      }
    } while (!reader.AtEnd());
    statement.table = TextOf(sql, {begin, end});
    if (reader.Text() == "(") {
      const size_t open = static_cast<size_t>(reader.Place().begin);
      const size_t close = SkipParentheses(sql, open);
      if (close == std::string_view::npos) {
        return SyntaxError("syntax error at end of input");
      }
      statement.columns = sql.substr(open, close - open);
      while (!reader.AtEnd() && std::cmp_less(reader.Place().begin, close)) {
        reader.Skip();
      }
    }
  }
  const bool in = reader.Take("FROM");
  if (!in && !reader.Take("TO")) {
    return reader.Unexpected();
  }
  statement.kind = in ? StatementKind::kCopyIn : StatementKind::kCopyOut;
  if (!reader.Take("STDIN") && !reader.Take("STDOUT")) {
    return Status(Code::kPermissionDenied, "COPY from and to files of the server is not there")
        .SqlState("42501")
        .At(reader.Place())
        .Hint("COPY ... FROM STDIN or TO STDOUT; psql's \\copy does so");
  }
  static_cast<void>(reader.Take("WITH"));
  const bool list = reader.TakeSymbol("(");
  bool null_given = false;
  bool delimiter_given = false;
  while (!reader.AtEnd() && reader.Text() != ")") {
    RETURN_IF_ERROR(TakeCopyOption(reader, &statement.copy, &null_given, &delimiter_given));
    if (list) {
      reader.TakeSymbol(",");
    }
  }
  if (list && !reader.TakeSymbol(")")) {
    return reader.Unexpected();
  }
  if (statement.copy.csv) {
    statement.copy.null = null_given ? statement.copy.null : "";
    statement.copy.delimiter = delimiter_given ? statement.copy.delimiter : ',';
  }
  return reader.AtEnd() ? SessionRead(statement) : reader.Unexpected();
}

constexpr std::array<std::string_view, 23> kSessionFirstWords = {
    "BEGIN",   "START",   "COMMIT",  "END",    "ROLLBACK", "ABORT",  "SAVEPOINT", "RELEASE",
    "SET",     "RESET",   "SHOW",    "LISTEN", "UNLISTEN", "NOTIFY", "DISCARD",   "DEALLOCATE",
    "PREPARE", "EXECUTE", "DECLARE", "FETCH",  "MOVE",     "CLOSE",  "COPY"};

}  // namespace

Result<std::optional<SessionStatement>> ReadSessionStatement(std::string_view sql) {
  const std::string_view first = FirstWord(sql);
  if (std::none_of(kSessionFirstWords.begin(), kSessionFirstWords.end(),
                   [first](std::string_view word) { return EqualsWord(first, word); })) {
    return std::optional<SessionStatement>();
  }
  SessionReader reader(sql);
  reader.Skip();
  const auto is = [first](std::string_view word) { return EqualsWord(first, word); };
  if (is("BEGIN")) {
    return ReadBegin(reader, "BEGIN");
  }
  if (is("START")) {
    return ReadBegin(reader, "START TRANSACTION");
  }
  if (is("COMMIT") || is("END")) {
    return ReadEnd(reader, StatementKind::kCommit, "COMMIT");
  }
  if (is("ROLLBACK") || is("ABORT")) {
    return ReadEnd(reader, StatementKind::kRollback, "ROLLBACK");
  }
  if (is("SAVEPOINT")) {
    return ReadName(reader, StatementKind::kSavepoint, "SAVEPOINT");
  }
  if (is("RELEASE")) {
    reader.Take("SAVEPOINT");
    return ReadName(reader, StatementKind::kRelease, "RELEASE");
  }
  if (is("SET")) {
    return ReadSet(reader);
  }
  if (is("RESET")) {
    return ReadName(reader, StatementKind::kReset, "RESET");
  }
  if (is("SHOW")) {
    return ReadName(reader, StatementKind::kShow, "SHOW");
  }
  if (is("LISTEN") || is("UNLISTEN") || is("NOTIFY")) {
    return SessionRead(StatementOf(StatementKind::kListen, is("LISTEN")   ? "LISTEN"
                                                           : is("NOTIFY") ? "NOTIFY"
                                                                          : "UNLISTEN"));
  }
  if (is("DISCARD")) {
    return SessionRead(StatementOf(StatementKind::kDiscard, "DISCARD ALL"));
  }
  if (is("DEALLOCATE")) {
    return ReadName(reader, StatementKind::kDeallocate, "DEALLOCATE");
  }
  if (is("PREPARE")) {
    while (!reader.AtEnd() && !(reader.Is("AS") && reader.Token()->depth == 0)) {
      reader.Skip();
    }
    const auto prepare = ReadPrepareText(sql.substr(0, static_cast<size_t>(reader.Place().end)));
    if (!prepare.has_value() || !reader.Take("AS")) {
      return SyntaxError("PREPARE needs a name: PREPARE name [(type, ...)] AS a statement");
    }
    SessionStatement statement = StatementOf(StatementKind::kPrepare, "PREPARE");
    statement.name = prepare->name;
    statement.types = prepare->types;
    return ReadInner(reader, sql, std::move(statement));
  }
  if (is("EXECUTE")) {
    const auto execute = ReadExecuteText(sql);
    if (!execute.has_value()) {
      return SyntaxError("EXECUTE needs a name: EXECUTE name [(expression, ...)]");
    }
    SessionStatement statement = StatementOf(StatementKind::kExecute, "EXECUTE");
    statement.name = execute->name;
    for (const Span& argument : execute->arguments) {
      statement.arguments.emplace_back(sql.substr(
          static_cast<size_t>(argument.begin), static_cast<size_t>(argument.end - argument.begin)));
    }
    return SessionRead(statement);
  }
  if (is("DECLARE")) {
    return ReadDeclare(reader, sql);
  }
  if (is("FETCH") || is("MOVE")) {
    return ReadFetch(reader, is("FETCH") ? StatementKind::kFetch : StatementKind::kMove,
                     is("FETCH") ? "FETCH" : "MOVE");
  }
  if (is("CLOSE")) {
    return ReadName(reader, StatementKind::kClose, "CLOSE CURSOR");
  }
  return ReadCopy(reader, sql);
}

}  // namespace sluice::server::pgwire
