#include "server/statements/statement_record.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::server {
namespace {

using catalog::Dialect;

TEST(RecordedText, HasNoTextsAndNoComments) {
  EXPECT_EQ(RecordedText("SELECT *\n  FROM t -- of ann's\n WHERE name = 'O''Hara' AND n > 3",
                         Dialect::kPostgres),
            "SELECT * FROM t WHERE name = '...' AND n > ?");
  EXPECT_EQ(RecordedText("CREATE ROLE x PASSWORD $a$secret$a$", Dialect::kPostgres),
            "CREATE ROLE x PASSWORD '...'");
  EXPECT_EQ(RecordedText("SELECT E'it\\'s', U&'x', \"Na me\"", Dialect::kPostgres),
            "SELECT '...', U&'...', \"Na me\"");
  EXPECT_EQ(RecordedText("SELECT 'not closed", Dialect::kPostgres), "SELECT '...'");
  EXPECT_EQ(RecordedText("SELECT x'00ff' /* c */ FROM t", Dialect::kSqlite),
            "SELECT x'...' FROM t");
  EXPECT_EQ(RecordedText("SELECT $a$secret$a$ FROM t", Dialect::kSqlite), "...");
  EXPECT_EQ(RecordedText("SELECT $1 + $2 FROM t", Dialect::kSqlite), "SELECT $1 + $2 FROM t");
}

TEST(RecordedText, HasNoNumbers) {
  EXPECT_EQ(RecordedText("SELECT t1.x, -4111111111111111, 1.5e3 FROM t1 WHERE y=$2 LIMIT 0x1F",
                         Dialect::kPostgres),
            "SELECT t1.x, -?, ? FROM t1 WHERE y=$2 LIMIT ?");
}

TEST(RecordedText, HasNoTextsThatLookLikeSomethingElse) {
  // A name that SQLite does not find is a text.
  EXPECT_EQ(RecordedText("SELECT \"secret\", `a b` FROM t", Dialect::kSqlite),
            "SELECT \"...\", `a b` FROM t");
  // A list of ours looks like a name there.
  EXPECT_EQ(RecordedText("COLUMN c IN ['secret', 17]", Dialect::kSqlite), "COLUMN c IN [...]");
  // Where the server has standard_conforming_strings = off, the text does not end there.
  EXPECT_EQ(RecordedText("SELECT 'it\\'s secret', 1", Dialect::kPostgres), "SELECT '...' ...");
  // Nor does E'...' at SQLite's port, which SQLite itself would read otherwise.
  EXPECT_EQ(RecordedText("SELECT E'O\\'secret' AS v", Dialect::kSqlite), "SELECT E'...' ...");
}

TEST(RecordedText, IsCutOff) {
  const std::string text = "SELECT '" + std::string(10'000, 'x') + "', secret";
  EXPECT_EQ(RecordedText(text, Dialect::kPostgres), "SELECT '...' ...");
  std::string many = "SELECT 1";
  for (int i = 0; i < 10'000; ++i) {
    many += " + 1";
  }
  const std::string cut = RecordedText(many, Dialect::kPostgres);
  EXPECT_LT(cut.size(), 2'100);
  EXPECT_TRUE(cut.ends_with(" ..."));
}

}  // namespace
}  // namespace sluice::server
