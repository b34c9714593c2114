#include "server/shell/statement_buffer.h"

#include <gtest/gtest.h>

namespace sluice::server {
namespace {

// Number of lines until the statement is complete; -1 if it never is.
int LinesUntilComplete(const std::vector<std::string>& lines) {
  StatementBuffer buffer;
  for (size_t i = 0; i < lines.size(); ++i) {
    buffer.Add(lines[i]);
    if (buffer.complete()) {
      return static_cast<int>(i) + 1;
    }
  }
  return -1;
}

TEST(StatementBuffer, EndsAtASemicolon) {
  EXPECT_EQ(LinesUntilComplete({"SELECT 1;"}), 1);
  EXPECT_EQ(LinesUntilComplete({"SELECT 1", "FROM t", ";"}), 3);
  EXPECT_EQ(LinesUntilComplete({"SELECT 1; -- the end"}), 1);
  EXPECT_EQ(LinesUntilComplete({"SELECT 1; SELECT 2", ";"}), 2) << "a second one has begun";
  EXPECT_EQ(LinesUntilComplete({"SELECT 1"}), -1);
}

// SQLFlow's J23: each is one statement, unchanged.
TEST(StatementBuffer, SemicolonsInsideQuotesDoNotCount) {
  EXPECT_EQ(LinesUntilComplete({R"(SELECT * FROM tbl WHERE a==";")", ";"}), 2);
  EXPECT_EQ(LinesUntilComplete({"SELECT 'a", "b;", "c';"}), 3);
  EXPECT_EQ(LinesUntilComplete({R"(SELECT "';")", ";"}), 2);
  EXPECT_EQ(LinesUntilComplete({R"(SELECT '";')", ";"}), 2);
  EXPECT_EQ(LinesUntilComplete({R"(SELECT 1 LABEL y INTO m WITH a="-- \";")", ";"}), 2);
  EXPECT_EQ(LinesUntilComplete({"SELECT 'it''s;'", ";"}), 2);
  EXPECT_EQ(LinesUntilComplete({R"(SELECT 'C:\';)"}), 1);
  EXPECT_EQ(LinesUntilComplete({"SELECT `a;b`", ";"}), 2);
  EXPECT_EQ(LinesUntilComplete({R"(SELECT E'it\'s;')", ";", "SELECT 2;"}), 2);
  EXPECT_EQ(LinesUntilComplete({R"(SELECT * FROM t LABEL y WITH a='it\'s;' INTO m;)"}), 1);
  EXPECT_EQ(LinesUntilComplete({"SELECT ARRAY[['a', 'b'],", "['[0-9]+', 'num']];"}), 2);
  EXPECT_EQ(LinesUntilComplete({"CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1;", "END;"}), 2);
}

TEST(StatementBuffer, CommentsAndDollarQuotesDoNotCount) {
  EXPECT_EQ(LinesUntilComplete({"-- don't; stop", "SELECT 1;"}), 2);
  EXPECT_EQ(LinesUntilComplete({"/* a; /* nested; */", "still; */ SELECT 1;"}), 2);
  EXPECT_EQ(LinesUntilComplete({"DO $x$ a; $y$ b;", "$x$", ";"}), 3);
  EXPECT_EQ(LinesUntilComplete({"SELECT $$;$$", ";"}), 2);
  EXPECT_EQ(LinesUntilComplete({"SELECT $1;"}), 1) << "a parameter is no quote";
  EXPECT_EQ(LinesUntilComplete({"SELECT a$b$ FROM t;"}), 1) << "nor is a name";
}

TEST(StatementBuffer, BlanksAndCommentsAreNoStatement) {
  StatementBuffer buffer;
  buffer.Add("  ");
  buffer.Add("-- 1. test");
  EXPECT_TRUE(buffer.at_beginning());
  EXPECT_FALSE(buffer.complete());
  buffer.Add("SELECT 1;");
  EXPECT_FALSE(buffer.at_beginning());
  EXPECT_EQ(buffer.Take(), "  \n-- 1. test\nSELECT 1;\n");
  EXPECT_TRUE(buffer.at_beginning());
  EXPECT_FALSE(buffer.complete());
}

TEST(StatementBuffer, OnlyCommentsFollowTheEnd) {
  for (const char* const line : {"SELECT 1;", "SELECT 1; -- a; b", "SELECT 1; /* ; */  ",
                                 "SELECT ';'; -- ';'", "SELECT 1;\t\r"}) {
    StatementBuffer buffer;
    buffer.Add(line);
    EXPECT_TRUE(buffer.complete()) << line;
  }
  for (const char* const line :
       {"SELECT 'a;b'", "SELECT 1; SELECT 2", "SELECT ';", "SELECT 1 -- ;"}) {
    StatementBuffer buffer;
    buffer.Add(line);
    EXPECT_FALSE(buffer.complete()) << line;
  }
}

}  // namespace
}  // namespace sluice::server
