#include "parser/splitter.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "parser/lexer.h"
#include "parser/parser.h"
#include "parser/postgres_scanner.h"

namespace sluice::parser {
namespace {

std::vector<std::string> Texts(const std::string& script) {
  std::vector<std::string> texts;
  const SplitScript split = Split(script);
  EXPECT_TRUE(split.error.ok()) << split.error.ToString();
  for (const Piece& piece : split.pieces) {
    texts.push_back(script.substr(static_cast<size_t>(piece.span.begin),
                                  static_cast<size_t>(piece.span.end - piece.span.begin)));
  }
  return texts;
}

using Strings = std::vector<std::string>;

TEST(SplitterTest, CutsAtSemicolonsOnly) {
  EXPECT_EQ(Texts("SELECT 1;SELECT 2"), (Strings{"SELECT 1", "SELECT 2"}));
  EXPECT_EQ(Texts(" ;; SELECT ';' ; -- it's; nothing\n"), (Strings{"SELECT ';'"}));
  EXPECT_EQ(Texts("SELECT $$;$$; SELECT $a$;$b$;$a$"),
            (Strings{"SELECT $$;$$", "SELECT $a$;$b$;$a$"}));
  EXPECT_EQ(Texts("SELECT E'\\';'; SELECT '\\'; SELECT \";\""),
            (Strings{"SELECT E'\\';'", "SELECT '\\'", "SELECT \";\""}));
  EXPECT_EQ(Texts("SELECT 1 /* /* ; */ ; */; SELECT 2"),
            (Strings{"SELECT 1 /* /* ; */ ; */", "SELECT 2"}));
  EXPECT_EQ(Texts("SELECT 1 -- a\r; SELECT 2"), (Strings{"SELECT 1 -- a", "SELECT 2"}));
  EXPECT_EQ(Texts("SELECT E'a'\n'b\\';'; SELECT 2").size(), 2U);
  EXPECT_EQ(Texts("CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2); SELECT 3").size(), 2U);
}

// If they differ on plain SQL, libpg_query's scanner decides: for it $ is a character of its own
// and E'\'; ...' one string, while for our lexer $E is a parameter of SQLite.
TEST(SplitterTest, PostgresHasTheLastWordOnPlainSql) {
  EXPECT_EQ(Texts("SELECT 1; SELECT $E'\\'; SELECT 2 --'; SELECT 3"),
            (Strings{"SELECT 1", "SELECT $E'\\'; SELECT 2 --'", "SELECT 3"}));
  const SplitScript split = Split("DELETE FROM t RETURNING $E'\\'; SELECT 2 --'");
  ASSERT_EQ(split.pieces.size(), 1U);
  EXPECT_TRUE(split.pieces.front().returns_rows);
}

// libpg_query's scanner does not apply to these.
// A process has 1,024 keys, and libgomp ends it where there is none.
TEST(SplitterTest, ManyThreadsLeaveKeysToOthers) {
  for (int i = 0; i < 1'100; ++i) {
    std::jthread([] { EXPECT_TRUE(PostgresParses("SELECT 1")); });
  }
  pthread_key_t key{};
  ASSERT_EQ(pthread_key_create(&key, nullptr), 0);
  pthread_key_delete(key);
}

TEST(SplitterTest, KnowsWhatPostgresDoesNot) {
  EXPECT_EQ(Texts("SELECT `a;b` FROM t; SELECT 2"), (Strings{"SELECT `a;b` FROM t", "SELECT 2"}));
  EXPECT_EQ(Texts("SELECT [a;b] FROM [it's]; SELECT 2"),
            (Strings{"SELECT [a;b] FROM [it's]", "SELECT 2"}));
  EXPECT_EQ(Texts("SELECT x[1], ARRAY[';']; SELECT 2"),
            (Strings{"SELECT x[1], ARRAY[';']", "SELECT 2"}));
  EXPECT_EQ(Texts("/* a /* b */ SELECT 1; SELECT 2"),
            (Strings{"/* a /* b */ SELECT 1", "SELECT 2"}));
  EXPECT_EQ(Texts("PRAGMA a; DESCRIBE b; SELECT 1; USE c"),
            (Strings{"PRAGMA a", "DESCRIBE b", "SELECT 1", "USE c"}));
  EXPECT_EQ(Texts("SELECT 1e; SELECT 12abc"), (Strings{"SELECT 1e", "SELECT 12abc"}));
  EXPECT_EQ(Texts("CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT CASE 1 WHEN 1 THEN 2 END; "
                  "DELETE FROM c; END; SELECT 2")
                .size(),
            2U);
  EXPECT_EQ(Texts("CREATE PROCEDURE p() BEGIN ATOMIC SELECT 1; SELECT 2; END; SELECT 3").size(),
            2U);
  EXPECT_EQ(Texts("SELECT 1); SELECT (2; SELECT 3)"),
            (Strings{"SELECT 1)", "SELECT (2; SELECT 3)"}));
  EXPECT_EQ(Texts("CREATE TRIGGER x BEGIN SELECT 1; SELECT 2"),
            (Strings{"CREATE TRIGGER x BEGIN SELECT 1", "SELECT 2"}));
}

TEST(SplitterTest, ClausesFollowTheirOwnRules) {
  EXPECT_EQ(
      Texts("SELECT 1 TO TRAIN x WITH a=\"it\\\"s; b\", c=\"d;\" INTO m; SELECT 'a\\'").size(), 2U);
  EXPECT_EQ(Texts("SELECT 1 LABEL y INTO \"a;b\" ; SELECT 2"),
            (Strings{"SELECT 1 LABEL y INTO \"a;b\"", "SELECT 2"}));
}

TEST(SplitterTest, TellsWhereTypingStops) {
  for (const char* blank : {"", " -- a;\n", "/* a */\n"}) {
    EXPECT_EQ(EndOf(blank), ScriptEnd::kBlank) << blank;
  }
  for (const char* complete :
       {"SELECT 1;", "SELECT E'it\\'s'; -- end\n",
        "SELECT * FROM t WITH a='it\\'s' LABEL y INTO m;", "SELECT * FROM t TO TRIAN x;",
        "SHOW MODLES;", "SELECT ARRAY[['a'],['[it''s']];",
        "CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END;"}) {
    EXPECT_EQ(EndOf(complete), ScriptEnd::kComplete) << complete;
  }
  for (const char* open : {"SELECT 1", "SELECT 1; SELECT 2", "SELECT 1 -- ;", "SELECT (1;",
                           "SELECT 1 LABEL y INTO m -- ;\n", "SELECT * FROM t TO TRIAN x",
                           "CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1;"}) {
    EXPECT_EQ(EndOf(open), ScriptEnd::kInStatement) << open;
  }
  for (const char* token : {"SELECT 'a;", "SELECT E'it\\';", "SELECT \"a;", "SELECT $$ a;",
                            "SELECT 1 LABEL y WITH a='it\\'s;", "SELECT 1; /* a;"}) {
    EXPECT_EQ(EndOf(token), ScriptEnd::kInToken) << token;
  }
}

TEST(SplitterTest, ErrorComesAfterThePiecesBeforeIt) {
  const SplitScript split = Split("SELECT 1; SELECT 'abc");
  EXPECT_EQ(split.pieces.size(), 1U);
  EXPECT_EQ(split.error.message(), "unterminated string");
  EXPECT_EQ(split.error.diagnostics().front().span.begin, 17);
}

TEST(SplitterTest, FirstErrorOfAScriptIsReported) {
  const Status status = Parse("SHOW MODELS now; SELECT 'abc").status();
  EXPECT_EQ(status.diagnostics().front().span.begin, 12);
}

// Our lexer alone splits plain PostgreSQL as libpg_query's scanner does, so both find the same ends
// of statements.
TEST(SplitterTest, AgreesWithPostgres) {
  const std::vector<std::string> lexemes = {
      "SELECT",        "a",     "1",  "'x;'",   "''", "E'\\';'", "\"q;\"", "$$;$$",
      "$t$;$$;$t$",    "(",     ")",  ";",      ";",  ";",       "--c;\n", "/*c;*/",
      "/*a/*;*/b*/",   "[1]",   "::", "->>",    ",",  "FROM",    "$1",     "U&'\\0041;'",
      "b$c$",          "1.5e3", "<=", "INSERT", "\n", "x.y",     "é",      "'it''s;'",
      "E'a'\n 'b\\';'"};
  std::mt19937_64 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string script = "SELECT ";
    int open = 0;
    for (int i = 0; i < 25; ++i) {
      const std::string& lexeme = lexemes[random() % lexemes.size()];
      open += lexeme == "(" ? 1 : 0;
      if (lexeme != ")" || --open >= 0) {
        script += lexeme + " ";
      }
      open = std::max(open, 0);
    }
    script += std::string(static_cast<size_t>(open), ')');
    const auto theirs = SplitByPostgres(script);
    ASSERT_TRUE(theirs.has_value()) << script;
    Lexer lexer(script);
    Token token;
    int depth = 0;
    bool keyword = false;
    std::vector<int64_t> ours;  // ends of the statements that hold a keyword: they drop the others
    while (true) {
      const Result<Token> next = lexer.NextSql(token);
      ASSERT_TRUE(next.ok()) << script;
      token = next.value();
      const bool end = token.kind == Token::Kind::kEnd;
      if (end || (token.IsSymbol(";") && depth == 0)) {
        if (keyword) {
          ours.push_back(token.span.begin);
        }
        keyword = false;
        if (end) {
          break;
        }
      }
      keyword = keyword || token.IsWord("SELECT") || token.IsWord("FROM") || token.IsWord("INSERT");
      depth += token.IsSymbol("(") ? 1 : 0;
      depth -= token.IsSymbol(")") && depth > 0 ? 1 : 0;
    }
    std::vector<int64_t> ends;
    for (const Span& span : *theirs) {
      ends.push_back(span.end);
    }
    if (!ours.empty() && !ends.empty()) {  // the last statement's end may exclude blanks
      ours.back() = ends.back() = 0;
    }
    ASSERT_EQ(ours, ends) << script;
  }
}

}  // namespace
}  // namespace sluice::parser
