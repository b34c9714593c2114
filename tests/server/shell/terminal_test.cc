#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/server/shell/shell_fixture.h"

// The shell as a person at a terminal sees it.
namespace sluice::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PromptTest : public TerminalTest {
 protected:
  void SetUp() override {
    TerminalTest::SetUp();
    ASSERT_EQ(Sql({"-c",
                   "CREATE TABLE employee(age integer NOT NULL, occupation text, income text);"
                   "CREATE INDEX by_age ON employee(age);"
                   "INSERT INTO employee VALUES (30, 'clerk', '<=50K'), (40, 'smith', '>50K')"})
                  .exit_code,
              0);
  }
  // What is shown from now on until the next prompt.
  std::string Answer(const std::string& typed) {
    Type(typed + "\n");
    std::string shown;
    const bool prompted = WaitForPrompt(&shown);
    EXPECT_TRUE(prompted) << shown;
    return shown;
  }
  bool WaitForPrompt(std::string* shown) {
    for (;;) {
      const size_t at = shown_.find("\nsluice> ");
      if (at != std::string::npos) {
        *shown = shown_.substr(0, at + 1);
        shown_.erase(0, at + 9);
        return true;
      }
      if (!ReadMore()) {
        *shown = shown_;
        return false;
      }
    }
  }
};

TEST_F(PromptTest, DescribesTablesModelsAndJobs) {
  Open();
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  EXPECT_THAT(Answer("\\d"), HasSubstr("employee"));
  EXPECT_THAT(Answer(".tables"), HasSubstr("employee"));
  EXPECT_THAT(Answer("\\dt x*"), HasSubstr("(0 rows)"));
  const std::string table = Answer("\\d employee");
  EXPECT_THAT(table, HasSubstr("age"));
  EXPECT_THAT(table, HasSubstr("not null"));
  EXPECT_THAT(table, HasSubstr("by_age"));
  EXPECT_THAT(Answer("\\d employe"), HasSubstr("did you mean 'employee'?"));
  EXPECT_THAT(Answer("\\dm"), HasSubstr("(0 rows)"));
  EXPECT_THAT(Answer("\\dj"), HasSubstr("(0 rows)"));
  EXPECT_THAT(Answer("\\?"), HasSubstr("\\timing"));
  EXPECT_THAT(Answer("\\h train"), HasSubstr("TO TRAIN type"));
  EXPECT_THAT(Answer("\\h DNNClassifier"), HasSubstr("model.hidden_units"));
  EXPECT_THAT(Answer("\\timng"), HasSubstr("did you mean \\timing?"));
  Type("\\q\n");
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(PromptTest, SwitchesWhatIsShown) {
  Open();
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  EXPECT_THAT(Answer("\\timing"), HasSubstr("Timing is on."));
  EXPECT_THAT(Answer("SELECT 1 AS n;"), HasSubstr("Time: "));
  EXPECT_THAT(Answer("\\timing off"), HasSubstr("Timing is off."));
  EXPECT_THAT(Answer("SELECT 1 AS n;"), Not(HasSubstr("Time: ")));
  Answer("\\x");
  const std::string expanded = Answer("SELECT age, income FROM employee;");
  EXPECT_THAT(expanded, HasSubstr("-[ RECORD 2 ]-"));
  EXPECT_THAT(expanded, HasSubstr("income | >50K"));
  Answer("\\x auto");
  EXPECT_THAT(Answer("SELECT age FROM employee;"), Not(HasSubstr("RECORD")));
  EXPECT_THAT(Answer("\\x perhaps"), HasSubstr("ERROR 42601"));
  Answer("\\o rows.txt");
  EXPECT_THAT(Answer("SELECT 'in the file' AS s;"), Not(HasSubstr("(1 row)")));
  Answer("\\o");
  EXPECT_THAT(ReadAll(folder_ / "rows.txt"), HasSubstr("in the file"));
  Answer("\\o | tr a-z A-Z > upper.txt");
  Answer("SELECT 'through a pipe' AS s;");
  Answer("\\o");
  EXPECT_THAT(ReadAll(folder_ / "upper.txt"), HasSubstr("THROUGH A PIPE"));
  Type("\x04");
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(PromptTest, TabCompletesNames) {
  Open();
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  Type("SELECT occ\t");
  ASSERT_TRUE(WaitFor("occupation ")) << shown_;
  Type("FROM emp\t");
  ASSERT_TRUE(WaitFor("employee ")) << shown_;
  Type("WHERE inc\t");
  ASSERT_TRUE(WaitFor("income ")) << shown_;
  Type("= '>50K';\n");
  ASSERT_TRUE(WaitFor("smith")) << shown_;
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  // Several candidates: first their common prefix, then the list.
  Type("SELECT * FROM employee TO TRAIN DNNCl\t WITH model.hid\t[4], train.e\t\t");
  ASSERT_TRUE(WaitFor("DNNClassifier ")) << shown_;
  ASSERT_TRUE(WaitFor("model.hidden_units=")) << shown_;
  ASSERT_TRUE(WaitFor("train.epoch")) << shown_;
  Type("\x03");
  ASSERT_TRUE(WaitFor("^C")) << shown_;  // input typed before that is discarded
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  std::ofstream(folder_ / "script_to_run.sql") << "SELECT 6 * 7 AS answer;";
  Type("\\i script_\t\n");
  ASSERT_TRUE(WaitFor("42")) << shown_;
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;  // input typed before that may be discarded
  Type("\x04");
  EXPECT_EQ(ExitCode(), 0);
}

// A pager gets output longer than the screen, and nothing else.
TEST_F(PromptTest, LongAnswersGoThroughThePager) {
  Open(80, 24, {{"PAGER", "sed 's/^/paged: /'"}});
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  EXPECT_THAT(Answer("SELECT 1 AS short;"), Not(HasSubstr("paged: ")));
  const std::string count =
      "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100) "
      "SELECT n FROM c;";
  const std::string paged = Answer(count);
  EXPECT_THAT(paged, HasSubstr("paged:   n"));
  EXPECT_THAT(paged, HasSubstr("paged:  100"));
  Answer("\\pset pager off");
  EXPECT_THAT(Answer(count), Not(HasSubstr("paged: ")));
  Answer("\\pset pager on");
  Answer("\\o all.txt");
  EXPECT_THAT(Answer(count), Not(HasSubstr("paged: ")));
  EXPECT_THAT(ReadAll(folder_ / "all.txt"), HasSubstr("(100 rows)"));
  Type("\x04");
  EXPECT_EQ(ExitCode(), 0);
}

// Leaving the pager ends a statement with an endless answer.
TEST_F(PromptTest, LeavingThePagerEndsTheStatement) {
  Open(80, 24, {{"PAGER", "head -n 3"}});
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  const std::string endless =
      Answer("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c;");
  EXPECT_THAT(endless, Not(HasSubstr("ERROR")));
  EXPECT_THAT(Answer("SELECT 40 + 2 AS n;"), HasSubstr("42"));
  Type("\x04");
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(PromptTest, APagerThatIsNotThereIsTold) {
  Open(80, 24, {{"PAGER", "no-such-pager"}});
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  const std::string shown = Answer(
      "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100) "
      "SELECT n FROM c;");
  EXPECT_THAT(shown, HasSubstr("there is no pager 'no-such-pager'"));
  Type("\x04");
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(PromptTest, WideAnswersAreFoldedToTheTerminal) {
  Open(60, 50);
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  std::string select = "SELECT 'the first' AS c0";
  for (int i = 1; i < 30; ++i) {
    select += ", " + std::to_string(i * 1'000'003) + " AS c" + std::to_string(i);
  }
  std::ofstream(folder_ / "wide.sql") << select << ";";
  const std::string shown = Answer("\\i wide.sql");
  std::istringstream lines(shown);
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.find_last_not_of('\r') + 1);
    EXPECT_LE(line.size(), 60U) << line;
  }
  EXPECT_THAT(shown, HasSubstr("29000087"));
  EXPECT_THAT(shown, HasSubstr("c29"));
  const std::string folded = Answer(
      "SELECT 1 AS n, 'words of a long sentence that has no room in one line of this "
      "narrow terminal' AS sentence;");
  EXPECT_THAT(folded, HasSubstr("narrow terminal"));
  EXPECT_THAT(folded, HasSubstr("---+---"));
  Type("\x04");
  EXPECT_EQ(ExitCode(), 0);
}

// Numbers that we computed have six digits in a table, and all digits for programs; the database's
// numbers are unchanged.
TEST_F(PromptTest, MeasuredNumbersHaveSixDigits) {
  const std::string train =
      "CREATE TABLE u AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
      "300) SELECT (i * 37) % 101 AS a, ((i * 37) % 101) * 0.123 + i % 3 AS y FROM n;";
  ASSERT_EQ(Sql({"-c", train}).exit_code, 0);
  const std::string evaluate =
      "SELECT a, y FROM u TO TRAIN LinearRegressor LABEL y INTO r; SELECT a, y FROM u TO EVALUATE "
      "r LABEL y WITH validation.metrics='rmse';";
  const auto longest_fraction = [](const std::string& text) {
    size_t longest = 0;
    for (size_t at = text.find('.'); at != std::string::npos; at = text.find('.', at + 1)) {
      const size_t end = std::min(text.find_first_not_of("0123456789", at + 1), text.size());
      longest = std::max(longest, end - at - 1);
    }
    return longest;
  };
  const Outcome table = Sql({"-c", evaluate});
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_LE(longest_fraction(table.out), 7U) << table.out;
  EXPECT_GT(longest_fraction(Sql({"--format", "csv", "-c", evaluate}).out), 12U);
  EXPECT_THAT(Sql({"-c", "SELECT 0.1 + 0.2 AS x"}).out, HasSubstr("0.30000000000000004"));
  const std::string predict =
      "SELECT a, a > 50 AS y FROM u TO TRAIN LinearClassifier LABEL y INTO c;"
      "SELECT a, a / 3.0 AS third FROM u WHERE a = 1 LIMIT 1 TO PREDICT y WITH "
      "predict.extra_outputs='probability' USING c;";
  const Outcome predicted = Sql({"-c", predict});
  EXPECT_THAT(predicted.out, HasSubstr("0.3333333333333333")) << predicted.err;
  const size_t last = predicted.out.rfind('|');
  ASSERT_NE(last, std::string::npos) << predicted.out;
  EXPECT_LE(longest_fraction(predicted.out.substr(last)), 10U) << predicted.out;
}

TEST_F(PromptTest, CtrlCInTheMiddleOfACommandClearsIt) {
  Open();
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  Type("\\i no_such");
  Type("\x03");
  ASSERT_TRUE(WaitFor("^C")) << shown_;  // input typed before that is discarded
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  EXPECT_THAT(Answer("\\i no_such_file"), HasSubstr("ERROR 58P01"));
  Type("\x04");
  EXPECT_EQ(ExitCode(), 0);
}

// A script's error has its file and line, including files that it includes.
TEST_F(PromptTest, ErrorsOfFilesHaveFileAndLine) {
  const std::string inner = (folder_ / "inner.sql").string();
  const std::string outer = (folder_ / "outer.sql").string();
  std::ofstream(inner) << "SELECT 1 AS a;\n\n\n  SELECT * FROM nowhere;\n";
  std::ofstream(outer) << "-- a comment\nSELECT 2 AS b;\n\\ir inner.sql\nSELECT 3 AS c;\n";
  const Outcome direct = Sql({"--format", "csv", "-f", inner});
  EXPECT_EQ(direct.exit_code, 1);
  EXPECT_THAT(direct.err, HasSubstr(inner + ":4: ERROR 42P01"));
  EXPECT_THAT(direct.err, HasSubstr("LINE 4:3:   SELECT * FROM nowhere;"));
  const Outcome nested = Sql({"--format", "csv", "-f", outer});
  EXPECT_EQ(nested.exit_code, 1);
  EXPECT_EQ(nested.out, "b\n2\na\n1\n") << "nothing runs behind the error";
  EXPECT_THAT(nested.err, HasSubstr(inner + ":4: ERROR 42P01"));
  EXPECT_THAT(nested.err, HasSubstr("read by " + outer + ":3"));
  // An error without a place gets the statement's.
  std::ofstream(inner) << "SELECT 1 AS a;\n\nSELECT abs(-9223372036854775807 - 1) AS n;\n";
  EXPECT_THAT(Sql({"-f", inner}).err, HasSubstr(inner + ":3: ERROR"));
  std::ofstream(outer) << "\n\\i " << outer << "\n";
  EXPECT_THAT(Sql({"-f", outer}).err, HasSubstr("files are being read, one from the other"));
  EXPECT_THAT(Sql({"-f", "-"}, "SELECT 1;\nSELEC 2;").err, HasSubstr("<stdin>:2: ERROR"));
  EXPECT_THAT(Sql({"-c", "SELECT * FROM nowhere"}).err, ::testing::StartsWith("ERROR 42P01"));
}

}  // namespace
}  // namespace sluice::server
