#include "parser/postgres_scanner.h"

#include <pg_query.h>

#include <string>

#include "base/lasting_threads.h"
#include "parser/lexer.h"

namespace sluice::parser {
namespace {

// PostgreSQL's scanner takes time quadratic in the nesting of comments. nullopt: an open token.
std::optional<std::string> WithoutComments(std::string_view sql) {
  std::string text;
  text.reserve(sql.size());
  Lexer lexer(sql);
  Token previous;
  while (true) {
    const size_t begin = lexer.position();
    const Result<Token> token = lexer.NextSql(previous);
    if (!token.ok()) {
      return std::nullopt;
    }
    if (token->kind == Token::Kind::kEnd) {
      return text;
    }
    const std::string_view blanks =
        sql.substr(begin, static_cast<size_t>(token->span.begin) - begin);
    if (!blanks.empty()) {  // strings on consecutive lines are one string
      text += blanks.find_first_of("\r\n") == std::string_view::npos ? ' ' : '\n';
    }
    text += token->text;
    previous = *token;
  }
}

}  // namespace

std::optional<std::vector<Span>> SplitByPostgres(std::string_view sql) {
  const std::string text(sql);
  PgQuerySplitResult split{};
  OnLastingThread([&] { split = pg_query_split_with_scanner(text.c_str()); });
  std::optional<std::vector<Span>> statements;
  if (split.error == nullptr) {
    statements.emplace();
    for (int i = 0; i < split.n_stmts; ++i) {
      const PgQuerySplitStmt& statement = *split.stmts[i];
      statements->push_back(
          {statement.stmt_location, statement.stmt_location + statement.stmt_len});
    }
  } else {
    split.n_stmts = 0;  // counted, but never allocated; freeing them would crash
  }
  pg_query_free_split_result(split);
  return statements;
}

bool PostgresParses(std::string_view statement) {
  if (statement.size() > kMaxParsedBytes || statement.find('\0') != std::string_view::npos) {
    return false;
  }
  const std::optional<std::string> text = WithoutComments(statement);
  if (!text) {
    return false;
  }
  PgQuerySplitResult parsed{};
  OnLastingThread([&] { parsed = pg_query_split_with_parser(text->c_str()); });
  const bool parses = parsed.error == nullptr && parsed.n_stmts == 1;
  if (parsed.error != nullptr) {
    parsed.n_stmts = 0;  // counted, but never allocated
  }
  pg_query_free_split_result(parsed);
  return parses;
}

}  // namespace sluice::parser
