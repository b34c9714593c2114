#include "catalog/sql/sql_text.h"

#include <gmock/gmock.h>

#include "catalog/sql/select_shape.h"

namespace sluice::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Tokens(std::string_view sql, Dialect dialect) {
  std::vector<std::string> texts;
  for (const SqlToken& token : TokenizeSql(sql, dialect)) {
    texts.emplace_back(sql.substr(token.begin, token.end - token.begin));
  }
  return texts;
}

TEST(SqlText, TokensOfPostgres) {
  EXPECT_THAT(
      Tokens("a.\"B\"\"c\" -- x\n'it''s' /* /* n */ ; */ E'\\'' $t$ ; $t$ $1 1.5e3",
             Dialect::kPostgres),
      ElementsAre("a", ".", "\"B\"\"c\"", "'it''s'", "E'\\''", "$t$ ; $t$", "$", "1", "1.5e3"));
}

TEST(SqlText, CommentsAndEscapesEndWhereTheDatabaseEndsThem) {
  EXPECT_THAT(Tokens("a -- b\rc", Dialect::kPostgres), ElementsAre("a", "c"));
  EXPECT_THAT(Tokens("a -- b\rc\nd", Dialect::kSqlite), ElementsAre("a", "d"));
  // A string continued on the next line follows the same rules.
  EXPECT_THAT(Tokens("E'a'\n '\\'; b' c", Dialect::kPostgres), ElementsAre("E'a'\n '\\'; b'", "c"));
  EXPECT_THAT(Tokens("E'a' '\\' c", Dialect::kPostgres), ElementsAre("E'a'", "'\\'", "c"));
}

TEST(SqlText, AStringBehindANumber) {
  EXPECT_THAT(Tokens("$1$$;$$ 2$a$;$a$", Dialect::kPostgres),
              ElementsAre("$", "1", "$$;$$", "2", "$a$;$a$"));
}

TEST(SqlText, TokensOfSqlite) {
  EXPECT_THAT(Tokens("[a b] `c` /* /* n */ d 'e\\' x", Dialect::kSqlite),
              ElementsAre("[a b]", "`c`", "d", "'e\\'", "x"));
}

TEST(SqlText, WhatIsNotClosedReachesToTheEnd) {
  for (const std::string_view sql : {"'abc", "\"abc", "/* abc", "$a$ b", "[abc", "`a", "E'\\"}) {
    for (const Dialect dialect : {Dialect::kPostgres, Dialect::kSqlite}) {
      for (const SqlToken& token : TokenizeSql(sql, dialect)) {
        EXPECT_LE(token.end, sql.size()) << sql;
      }
    }
  }
}

TEST(SqlText, DepthCountsParentheses) {
  const std::vector<SqlToken> tokens = TokenizeSql("a (b (c) d) e", Dialect::kPostgres);
  std::vector<int> depths;
  for (const SqlToken& token : tokens) {
    depths.push_back(token.depth);
  }
  EXPECT_THAT(depths, ElementsAre(0, 0, 1, 1, 2, 1, 1, 0, 0));
}

TEST(SqlText, TrimTakesSemicolonsOnly) {
  EXPECT_EQ(TrimStatement(" \n SELECT ';' ; ; ", Dialect::kPostgres), "SELECT ';'");
  EXPECT_EQ(TrimStatement("SELECT 1 -- ;", Dialect::kPostgres), "SELECT 1 -- ;");
  EXPECT_EQ(TrimStatement(" ; ", Dialect::kSqlite), "");
}

TEST(SqlText, Quoting) {
  EXPECT_EQ(QuoteName("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(QuoteText("it's", Dialect::kPostgres), "'it''s'");
  EXPECT_EQ(QuoteText("a\\'", Dialect::kPostgres), "E'a\\\\'''");
  EXPECT_EQ(QuoteText("a\\'", Dialect::kSqlite), "'a\\'''");
}

TEST(SqlText, TableNames) {
  const auto plain = ParseTableName("Lab.Result", Dialect::kPostgres);
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->schema, "lab");
  EXPECT_EQ(plain->name, "result");
  EXPECT_EQ(ParseTableName("Result", Dialect::kSqlite)->name, "Result");
  EXPECT_EQ(ParseTableName("\"A \"\"b\"", Dialect::kPostgres)->Quoted(), "\"A \"\"b\"");
  for (const std::string_view wrong : {"", "a.", ".a", "a.b.c", "a b", "a;", "'a'", "a.\"\""}) {
    EXPECT_FALSE(ParseTableName(wrong, Dialect::kPostgres).ok()) << wrong;
  }
}

TEST(SelectShape, OneTableWithAndWithoutCondition) {
  const auto plain = FindSingleTable("select a, b+1 as c from lab.t ;", Dialect::kPostgres);
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->list, "a, b+1 as c");
  EXPECT_EQ(plain->table, "lab.t");
  EXPECT_EQ(plain->With("x"), "SELECT a, b+1 as c\nFROM lab.t\nWHERE x");
  const auto filtered = FindSingleTable("SELECT * FROM \"T\" x WHERE a = 1 OR b IS NOT NULL -- end",
                                        Dialect::kPostgres);
  ASSERT_TRUE(filtered.has_value());
  EXPECT_EQ(filtered->Qualified("ctid"), "x.ctid");
  EXPECT_EQ(filtered->With("y"),
            "SELECT *\nFROM \"T\" AS x\nWHERE (a = 1 OR b IS NOT NULL\n) AND y");
}

TEST(SelectShape, WordsInsideParenthesesDoNotCount) {
  EXPECT_TRUE(
      FindSingleTable("SELECT extract(year FROM d), (SELECT 1 LIMIT 1) FROM t"
                      " WHERE x IN (SELECT y FROM u GROUP BY y)",
                      Dialect::kPostgres));
  EXPECT_TRUE(FindSingleTable("SELECT a IS DISTINCT FROM b FROM t", Dialect::kPostgres));
}

TEST(SelectShape, OtherShapes) {
  for (const std::string_view select : {"SELECT DISTINCT a FROM t",
                                        "SELECT a FROM t, u",
                                        "SELECT a FROM t JOIN u USING (a)",
                                        "SELECT a FROM t GROUP BY a",
                                        "SELECT a FROM t ORDER BY a",
                                        "SELECT a FROM t LIMIT 3",
                                        "SELECT a FROM t WHERE a > 1 LIMIT 3",
                                        "SELECT a FROM t UNION SELECT a FROM u",
                                        "SELECT a FROM t WHERE b UNION SELECT a FROM u",
                                        "SELECT a FROM f(1)",
                                        "SELECT a FROM (SELECT 1) t",
                                        "WITH w AS (SELECT 1) SELECT * FROM w",
                                        "VALUES (1)",
                                        "SELECT 1",
                                        "SELECT a FROM t FOR UPDATE",
                                        "SELECT a FROM ONLY t",
                                        "SELECT a FROM t AS x (y)",
                                        "SELECT a FROM t TABLESAMPLE SYSTEM (1)",
                                        "SELECT row_number() OVER w FROM t WINDOW w AS ()",
                                        "SELECT a INTO u FROM t",
                                        "SELECT a FROM t WHERE",
                                        "SELECT a FROM t; SELECT b FROM u",
                                        "SELECT FROM t",
                                        "TABLE t",
                                        "",
                                        "SELECT a FROM"}) {
    EXPECT_FALSE(FindSingleTable(select, Dialect::kPostgres).has_value()) << select;
  }
}

TEST(SelectShape, CalledFunctionsAreFound) {
  EXPECT_THAT(CalledFunctions("SELECT Abs(a), \"My F\"(b), c, CURRENT_DATE FROM t WHERE x = 'f(1)'",
                              Dialect::kPostgres),
              ElementsAre("My F", "abs", "current_date"));
  EXPECT_THAT(CalledFunctions("SELECT a, b FROM t", Dialect::kSqlite), IsEmpty());
}

}  // namespace
}  // namespace sluice::catalog
