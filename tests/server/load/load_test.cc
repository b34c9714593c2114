#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/shell/shell_fixture.h"
#include "tests/server/sluice_process.h"
#include "tests/support/postgres_server.h"

// `sluice load` and .import of the real binary, on both databases.
namespace sluice::server {
namespace {

using ::testing::HasSubstr;

class LoadTest : public ShellTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    if (postgres()) {
      if (testing::PostgresServer::Get() == nullptr) {
        GTEST_SKIP() << "no PostgreSQL server";
      }
      database_.emplace();
      source_ = database_->url();
    }
  }
  static bool postgres() { return GetParam(); }

  std::string File(const std::string& text, const std::string& name = "f.csv") {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  Outcome Load(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), "load");
    arguments.insert(arguments.end(), {"--source", source_});
    return Run(std::move(arguments), input);
  }
  std::string Csv(const std::string& sql) {
    const Outcome outcome = Sql({"--format", "csv", "-c", sql});
    return outcome.exit_code == 0 ? outcome.out : outcome.err;
  }

  std::optional<testing::PostgresTestDatabase> database_;
};

TEST_P(LoadTest, ANewTableHasTheTypesOfAllRows) {
  const Outcome outcome =
      Load({File("\xEF\xBB\xBFid,Price,name,ok,born,seen,zip,note\r\n"
                 "1,2,\"x, \"\"y\"\"\",true,2020-01-02,2020-01-02 10:20:30,01234,NA\r\n"
                 "2,NA,\"two\nlines\",FALSE,,2020-01-03T00:00:00,5,\r\n"
                 "3,2.5,\"\",true,1999-12-31,,7,\xC3\xA4\r\n"),
            "t"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("LOAD 3\n"));
  EXPECT_THAT(outcome.err, HasSubstr("NULL: 1 of"));
  const std::string price = postgres() ? "price" : "Price";
  EXPECT_EQ(Csv("SELECT id + 1 AS id, " + price + " AS p, name, ok, zip, note FROM t ORDER BY 1"),
            "id,p,name,ok,zip,note\n"
            "2,2,\"x, \"\"y\"\"\",t,01234,NA\n"
            "3,,\"two\nlines\",f,5,\n"
            "4,2.5,\"\",t,7,\xC3\xA4\n");
  const std::string types = Csv("\\d t");
  EXPECT_THAT(types, HasSubstr("id,bigint"));
  EXPECT_THAT(types, HasSubstr(price + ",double precision"));
  EXPECT_THAT(types, HasSubstr("ok,boolean"));
  EXPECT_THAT(types, HasSubstr("born,date"));
  EXPECT_THAT(types, HasSubstr("seen,timestamp"));
  EXPECT_THAT(types, HasSubstr(postgres() ? "zip,text" : "zip,TEXT"));
}

// Loaded tables belong to the user: no statement replaces one unasked.
TEST_P(LoadTest, ALoadedTableIsNoResultTable) {
  std::string rows = "a,y\n";
  for (int i = 0; i < 100; ++i) {
    rows += std::to_string(i) + (i % 2 == 0 ? ",yes\n" : ",no\n");
  }
  ASSERT_EQ(Load({File(rows), "t"}).exit_code, 0);
  ASSERT_EQ(Load({File(rows), "u"}).exit_code, 0);
  const Outcome trained =
      Sql({"-c", "SELECT * FROM t TO TRAIN LinearClassifier WITH train.epoch=1 LABEL y INTO m"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome predicted = Sql({"-c", "SELECT a FROM t TO PREDICT u.y USING m"});
  EXPECT_EQ(predicted.exit_code, 1);
  EXPECT_THAT(predicted.err, HasSubstr("42P07"));
}

TEST_P(LoadTest, WhatTheShellWritesComesBack) {
  const std::string newline = postgres() ? "chr(10)" : "char(10)";
  ASSERT_EQ(Sql({"-c",
                 "CREATE TABLE a(n bigint, x double precision, s text);"
                 "INSERT INTO a VALUES (1, 0.1, 'x'), (NULL, NULL, NULL), (-5, 1e300, ''),"
                 " (9223372036854775807, 0.30000000000000004, 'a\"b,' || " +
                     newline + " || 'c')"})
                .exit_code,
            0);
  const std::string rows = Csv("SELECT * FROM a");
  EXPECT_EQ(Load({File(rows), "b"}).exit_code, 0);
  EXPECT_EQ(Csv("SELECT * FROM b"), rows);
  EXPECT_EQ(Load({File(rows), "b", "--append"}).exit_code, 0);
  EXPECT_EQ(Csv("SELECT count(*) AS n FROM b"), "n\n8\n");
}

TEST_P(LoadTest, AnExistingTableIsAppendedToWhenItIsSaid) {
  ASSERT_EQ(Sql({"-c", "CREATE TABLE t(id bigint NOT NULL, name text DEFAULT 'x', price numeric)"})
                .exit_code,
            0);
  const std::string file = File("Price,ID\n2.50,7\nNA,8\n");
  const Outcome refused = Load({file, "t"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("ERROR 42P07: table"));
  EXPECT_THAT(refused.err, HasSubstr("HINT: --append"));
  const Outcome appended = Load({file, "t", "--append"});
  EXPECT_EQ(appended.exit_code, 0) << appended.err;
  EXPECT_THAT(appended.err, HasSubstr("LOAD 2\n"));
  EXPECT_EQ(Csv("SELECT id, name, price FROM t ORDER BY id"),
            postgres() ? "id,name,price\n7,x,2.50\n8,x,\n" : "id,name,price\n7,x,2.5\n8,x,\n");

  const Outcome unknown = Load({File("id,cost,colour\n1,2,3\n"), "t", "--append"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("ERROR 42703"));
  EXPECT_THAT(unknown.err, HasSubstr("has no column cost, colour\n"));
  EXPECT_THAT(unknown.err, HasSubstr("its columns are id, name, price"));
  EXPECT_THAT(Load({file, "nowhere", "--append"}).err, HasSubstr("42P01"));
}

// Nothing is left behind, and the place is in the form that editors understand.
TEST_P(LoadTest, ErrorsHaveLineAndColumnOfTheFile) {
  const auto error = [this](const std::string& text, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {File(text), "t"});
    const Outcome outcome = Load(more);
    EXPECT_EQ(outcome.exit_code, 1) << text;
    return outcome.err;
  };
  EXPECT_THAT(error("a,b\n1,2\n3\n"), HasSubstr("f.csv:3:1: 1 field where the header has 2"));
  EXPECT_THAT(error("a,b\n1,2\n3,4,5\n"), HasSubstr("f.csv:3:5: 3 fields where the header has 2"));
  EXPECT_THAT(error("a,b\n1,\"2\n"), HasSubstr("f.csv:2:3: a quote begins here"));
  EXPECT_THAT(error("a,b,A\n1,2,3\n"), HasSubstr("f.csv:1:5: column"));
  EXPECT_THAT(error(""), HasSubstr("the file is empty"));
  EXPECT_THAT(Load({(folder_ / "gone.csv").string(), "t"}).err, HasSubstr("58P01"));
  EXPECT_THAT(Load({folder_.string(), "t"}).err, HasSubstr("Is a directory"));
  EXPECT_EQ(Sql({"-c", "SELECT * FROM t"}).exit_code, 1) << "a table was left behind";

  ASSERT_EQ(Sql({"-c", "CREATE TABLE t(a bigint, b text CHECK (b <> 'bad'))"}).exit_code, 0);
  std::string rows = "b,a\n";
  for (int i = 0; i < 25'000; ++i) {  // more than one batch
    rows += "\"x\n\"," + std::to_string(i) + "\n";
  }
  EXPECT_THAT(error(rows + "x,many\n", {"--append"}), HasSubstr("f.csv:50002"));
  EXPECT_THAT(error(rows + "x,many\n", {"--append"}), HasSubstr("22P02"));
  EXPECT_THAT(error(rows + "bad,1\nx,2\n", {"--append"}), HasSubstr("f.csv:50002"));
  EXPECT_EQ(Csv("SELECT count(*) AS n FROM t"), "n\n0\n");
}

TEST_P(LoadTest, ReadsStandardInputAndOtherSeparators) {
  const Outcome piped = Run({"load", "-", "t", "--source", source_}, "a;b\n1;x,y\n");
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_EQ(
      RunInShell("printf 'a\\tb\\n2\\tz\\n' | " SLUICE_BINARY " load - t --append --source '" +
                 source_ + "' 2>&1")
          .exit_code,
      0);
  const ShellOutcome made = RunInShell("printf '1|NIL\\n2|y\\n' | " SLUICE_BINARY
                                       " load - u --no-header --null NIL --source '" +
                                       source_ + "' 2>&1");
  EXPECT_EQ(made.exit_code, 0) << made.output;
  EXPECT_EQ(Csv("SELECT * FROM t ORDER BY a"), "a,b\n1,\"x,y\"\n2,z\n");
  EXPECT_EQ(Csv("SELECT * FROM u ORDER BY 1"), "column_1,column_2\n1,\n2,y\n");
  EXPECT_EQ(Load({File("a\n1\n"), "v", "--separator", "ab"}).exit_code, 2);
}

TEST_P(LoadTest, TheShellImports) {
  File("a,b\n1,x\n", "my file.csv");
  const Outcome outcome =
      Sql({"--format", "csv", "-c",
           ".import '" + (folder_ / "my file.csv").string() +
               "' t\nSELECT * FROM t;\n.import "
               "--append '" +
               (folder_ / "my file.csv").string() + "' t\nSELECT count(*) AS n FROM t"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "a,b\n1,x\nn\n2\n");
  EXPECT_EQ(Sql({"-c", ".import only_one"}).exit_code, 1);
  // Not inside a transaction: loading is a transaction of its own.
  const Outcome inside =
      Sql({"-c", "BEGIN;\n.import '" + (folder_ / "my file.csv").string() + "' u\nCOMMIT;"});
  EXPECT_EQ(inside.exit_code, 1);
  EXPECT_THAT(inside.err, HasSubstr("25001"));
}

INSTANTIATE_TEST_SUITE_P(Databases, LoadTest, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& database) {
                           return database.param ? "postgresql" : "sqlite";
                         });

}  // namespace
}  // namespace sluice::server
