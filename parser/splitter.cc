#include "parser/splitter.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "parser/lexer.h"
#include "parser/postgres_scanner.h"
#include "parser/statement_reader.h"

namespace sluice::parser {
namespace {

// All statements of a script are parsed before the first one runs; each takes some hundred bytes.
constexpr size_t kMaxStatements = 1 << 18;

size_t Offset(int64_t offset) {
  return static_cast<size_t>(offset);
}

void TrimEnd(std::string_view script, Span& span) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  const std::string_view text = script.substr(0, Offset(span.end));
  span.end = static_cast<int64_t>(text.find_last_not_of(kBlanks)) + 1;
}

// The next statement of the lexer's script; nullopt at its end. Comments alone are not a statement.
Result<std::optional<Piece>> Next(std::string_view script, Lexer& lexer, Overruns& overruns) {
  while (true) {
    lexer.SkipToStatement();
    const size_t text_begin = lexer.position();
    ASSIGN_OR_RETURN(const Token first, lexer.NextSql(Token()));
    if (first.kind == Token::Kind::kEnd) {
      return std::optional<Piece>();
    }
    if (!first.IsSymbol(";")) {
      ASSIGN_OR_RETURN(Piece piece, StatementReader(lexer, overruns).Read(text_begin, first));
      if (piece.kind == Piece::Kind::kPlain) {
        TrimEnd(script, piece.span);
      }
      return std::optional<Piece>(piece);
    }
  }
}

bool Overlap(const Span& left, const Span& right) {
  return left.begin < right.end && right.begin < left.end;
}

// The plain statement at `cut`; nullopt when our lexer finds another kind of statement there.
std::optional<Piece> ReadCut(std::string_view script, const Span& cut) {
  const std::string_view text = script.substr(0, Offset(cut.end));
  Lexer lexer(text);
  lexer.Seek(Offset(cut.begin));
  Overruns overruns;
  Result<std::optional<Piece>> piece = Next(text, lexer, overruns);
  if (!piece.ok() || !piece.value() || piece.value()->kind != Piece::Kind::kPlain) {
    return std::nullopt;
  }
  piece.value()->span.end = cut.end;
  return std::move(piece).value();
}

// Consecutive plain pieces as libpg_query's scanner cuts them. They stay unchanged if the scanner
// cannot read the text, or if it omits statements: it does not know those that begin with DESCRIBE
// or PRAGMA.
std::vector<Piece> CutPlainSql(std::string_view script, std::vector<Piece> ours) {
  const Span run = {ours.front().span.begin, ours.back().span.end};
  std::optional<std::vector<Span>> cuts =
      SplitByPostgres(script.substr(Offset(run.begin), Offset(run.end - run.begin)));
  if (!cuts) {
    return ours;
  }
  std::vector<Piece> merged;
  auto next = ours.begin();
  for (Span& cut : *cuts) {
    cut.begin += run.begin;
    cut.end += run.begin;
    TrimEnd(script, cut);
    while (next != ours.end() && next->span.end <= cut.begin) {
      merged.push_back(*next++);
    }
    if (next != ours.end() && next->span.end == cut.end) {
      merged.push_back(*next++);
      continue;
    }
    std::optional<Piece> theirs = ReadCut(script, cut);
    if (!theirs) {
      return ours;
    }
    merged.push_back(*theirs);
    while (next != ours.end() && Overlap(next->span, cut)) {
      ++next;
    }
  }
  merged.insert(merged.end(), next, ours.end());
  return merged;
}

}  // namespace

SplitScript Split(std::string_view script) {
  SplitScript split;
  std::vector<Piece> pieces;
  Lexer lexer(script);
  Overruns overruns;
  while (true) {
    Result<std::optional<Piece>> piece = Next(script, lexer, overruns);
    if (!piece.ok()) {
      split.error = piece.status();
      break;
    }
    if (!piece.value()) {
      break;
    }
    if (pieces.size() == kMaxStatements) {
      split.error =
          SyntaxError(fmt::format("the script has more than {} statements", kMaxStatements))
              .SqlState("54000")
              .At(piece.value()->span)
              .Hint("split the script, or load data by COPY or .import");
      split.too_many_plain = std::all_of(pieces.begin(), pieces.end(), [](const Piece& read) {
        return read.kind == Piece::Kind::kPlain;
      });
      return split;
    }
    pieces.push_back(*std::move(piece).value());
  }
  std::vector<Piece> run;
  const auto flush = [&run, &split, script] {
    if (!run.empty()) {
      std::vector<Piece> cut = CutPlainSql(script, std::exchange(run, {}));
      std::move(cut.begin(), cut.end(), std::back_inserter(split.pieces));
    }
  };
  for (const Piece& piece : pieces) {
    if (piece.kind == Piece::Kind::kPlain && !piece.foreign) {
      run.push_back(piece);
    } else {
      flush();
      split.pieces.push_back(piece);
    }
  }
  flush();
  return split;
}

ScriptEnd EndOf(std::string_view script) {
  Lexer lexer(script);
  Overruns overruns;
  ScriptEnd end = ScriptEnd::kBlank;
  while (true) {
    Lexer behind = lexer;
    const Result<std::optional<Piece>> piece = Next(script, lexer, overruns);
    if (!piece.ok() && IsUnterminated(piece.status())) {
      return ScriptEnd::kInToken;
    }
    if (piece.ok() && !piece.value()) {
      return end;
    }
    if (piece.ok()) {
      behind.Seek(Offset(piece.value()->span.end));
    }
    Token token;
    do {  // to the ';', also of a statement that will be refused
      const Result<Token> next = behind.NextSql(token);
      if (!next.ok()) {
        return ScriptEnd::kInToken;
      }
      token = *next;
    } while (!token.EndsStatement());
    if (token.kind == Token::Kind::kEnd || overruns.open_bodies > 0) {
      return ScriptEnd::kInStatement;
    }
    lexer = behind;
    end = ScriptEnd::kComplete;
  }
}

bool IsUnterminated(const Status& error) {
  return error.message().starts_with("unterminated");
}

}  // namespace sluice::parser
