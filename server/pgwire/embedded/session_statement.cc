#include "server/pgwire/embedded/session_statement.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/letter_case.h"
#include "server/pgwire/embedded/session_reader_internal.h"
#include "server/pgwire/sql/prepared_text.h"

namespace sluice::server::pgwire {
namespace {

using StatementKind = SessionStatement::Kind;

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
    statement.name = LowerAscii(*name);
    if (statement.name == "role" || statement.name == "authorization") {
      return Status(Code::kPermissionDenied,
                    "a session over SQLite stays the user that has logged in")
          .SqlState("42501");
    }
    while (reader.TakeSymbol(".")) {
      statement.name += "." + LowerAscii(reader.TakeName().value_or(""));
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
  statement.name = folds ? LowerAscii(*name) : *name;
  while (reader.TakeSymbol(".")) {
    statement.name += "." + LowerAscii(reader.TakeName().value_or(""));
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
  } else if (reader.Token() != nullptr &&
             reader.Token()->kind == catalog::SqlToken::Kind::kNumber) {
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
