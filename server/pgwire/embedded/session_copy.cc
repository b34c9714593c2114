#include <fmt/core.h>

#include "base/letter_case.h"
#include "server/pgwire/embedded/session_reader_internal.h"

namespace sluice::server::pgwire {
namespace {

using StatementKind = SessionStatement::Kind;

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
    const std::string format = LowerAscii(reader.TakeValue());
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

}  // namespace

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
    if (reader.AtEnd()) {
      return reader.Unexpected();
    }
    int64_t end;
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

}  // namespace sluice::server::pgwire
