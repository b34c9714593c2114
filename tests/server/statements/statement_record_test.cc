#include "server/statements/statement_record.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::server {
namespace {

using catalog::Dialect;

std::string Recorded(std::string_view sql, Dialect dialect) {
  return RecordedText(sql, dialect, 2'000);
}

TEST(RecordedText, HasNoTextsAndNoComments) {
  EXPECT_EQ(Recorded("SELECT *\n  FROM t -- of ann's\n WHERE name = 'O''Hara' AND n > 3",
                     Dialect::kPostgres),
            "SELECT * FROM t WHERE name = '...' AND n > ?");
  EXPECT_EQ(Recorded("CREATE ROLE x PASSWORD $a$secret$a$", Dialect::kPostgres),
            "CREATE ROLE x PASSWORD '...'");
  EXPECT_EQ(Recorded("SELECT E'it\\'s', U&'x', \"Na me\"", Dialect::kPostgres),
            "SELECT '...', U&'...', \"Na me\"");
  EXPECT_EQ(Recorded("SELECT 'not closed", Dialect::kPostgres), "SELECT '...'");
  EXPECT_EQ(Recorded("SELECT x'00ff' /* c */ FROM t", Dialect::kSqlite), "SELECT x'...' FROM t");
  EXPECT_EQ(Recorded("SELECT $a$secret text$a$ FROM t", Dialect::kSqlite), "SELECT '...' FROM t");
  EXPECT_EQ(Recorded("SELECT $1 + $2 FROM t", Dialect::kSqlite), "SELECT $1 + $2 FROM t");
}

TEST(RecordedText, HasNoNumbers) {
  EXPECT_EQ(Recorded("SELECT t1.x, -4111111111111111, 1.5e3 FROM t1 WHERE y=$2 LIMIT 0x1F",
                     Dialect::kPostgres),
            "SELECT t1.x, -?, ? FROM t1 WHERE y=$2 LIMIT ?");
}

TEST(RecordedText, HasNoTextsThatLookLikeSomethingElse) {
  // A name that SQLite does not find is a text.
  EXPECT_EQ(Recorded("SELECT \"secret\", `a b` FROM t", Dialect::kSqlite),
            "SELECT \"...\", `a b` FROM t");
  // A list of ours looks like a name there.
  EXPECT_EQ(Recorded("COLUMN c IN ['secret', 17]", Dialect::kSqlite), "COLUMN c IN [...]");
  // At SQLite's port, which SQLite itself would read otherwise.
  EXPECT_EQ(Recorded("SELECT E'O\\'secret' AS v", Dialect::kSqlite), "SELECT '...' AS v");
}

TEST(RecordedText, HidesNothingThatRuns) {
  const std::string long_comment = "/*" + std::string(70'000, 'x') + "*/ SELECT a FROM t";
  EXPECT_EQ(Recorded(long_comment, Dialect::kPostgres), "SELECT a FROM t");
  const std::string long_text = "SELECT '" + std::string(70'000, 'x') + "', a FROM t";
  EXPECT_EQ(Recorded(long_text, Dialect::kPostgres), "SELECT '...', a FROM t");
  EXPECT_EQ(Recorded("SELECT '\\' AS z, a FROM t", Dialect::kPostgres),
            "SELECT '...' AS z, a FROM t");
  EXPECT_EQ(Recorded("SELECT '\\' AS z, a FROM t", Dialect::kSqlite),
            "SELECT '...' AS z, a FROM t");
  EXPECT_EQ(Recorded("DELETE FROM t /* $a$ */", Dialect::kSqlite), "DELETE FROM t");
  EXPECT_EQ(Recorded("DELETE FROM t WHERE a = '$a$' OR b = '$a$'", Dialect::kSqlite),
            "DELETE FROM t WHERE a = '...' OR b = '...'");
  EXPECT_EQ(Recorded("SELECT [it's], b, [it's] FROM t", Dialect::kSqlite),
            "SELECT [...], b, [...] FROM t");
  EXPECT_EQ(Recorded("SELECT x::text, `it's`, b FROM t", Dialect::kSqlite),
            "SELECT CAST(x AS TEXT), `it's`, b FROM t");
}

TEST(RecordedText, IsCutOff) {
  std::string many = "SELECT 1";
  for (int i = 0; i < 10'000; ++i) {
    many += " + 1";
  }
  const std::string cut = Recorded(many, Dialect::kPostgres);
  EXPECT_EQ(cut.size(), 2'004);
  EXPECT_TRUE(cut.ends_with(" ..."));
  EXPECT_EQ(ShortText("SELECT \"\u00e4\"", 9), "SELECT \" ...") << "not inside a character";
}

}  // namespace
}  // namespace sluice::server
