#include "server/shell/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::server {
namespace {

using ::testing::ElementsAre;

// The parts; commands begin with '>'.
std::vector<std::string> Parts(const std::string& script) {
  std::vector<std::string> parts;
  for (const ScriptPart& part : SplitAtCommands(script)) {
    parts.push_back((part.command ? ">" : "") + script.substr(part.begin, part.end - part.begin));
  }
  return parts;
}

TEST(Script, MostAreOnePart) {
  EXPECT_THAT(Parts("SELECT 1;\nSELECT 2"), ElementsAre("SELECT 1;\nSELECT 2"));
  EXPECT_THAT(Parts(""), ElementsAre());
}

TEST(Script, CommandsStandWhereAStatementCouldBegin) {
  EXPECT_THAT(Parts("SELECT 1;\n\\d t\nSELECT 2;\n"),
              ElementsAre("SELECT 1;\n", ">\\d t", "SELECT 2;\n"));
  EXPECT_THAT(Parts("  .tables\n\\q"), ElementsAre(">  .tables", ">\\q"));
  EXPECT_THAT(Parts("-- a\n\\timing\n"), ElementsAre("-- a\n", ">\\timing"));
  for (const std::string script : {"SELECT '\n\\d t\n'", "/*\n\\d t\n*/", "SELECT $$\n.tables\n$$;",
                                   "SELECT 1\n.5", "SELECT a\n.b", "SELECT \"\n\\d\n\""}) {
    EXPECT_THAT(Parts(script), ElementsAre(script));
  }
}

TEST(Script, CommandsStandBehindAStatement) {
  EXPECT_THAT(Parts("SELECT 1; \\dt t\nSELECT 2"),
              ElementsAre("SELECT 1; ", ">\\dt t", "SELECT 2"));
  EXPECT_THAT(Parts("SELECT '\\d'; SELECT 2 \\d"), ElementsAre("SELECT '\\d'; SELECT 2 \\d"));
  EXPECT_THAT(Parts("SELECT '; \\d'; -- ; \\d"), ElementsAre("SELECT '; \\d'; -- ; \\d"));
}

TEST(Script, DataOfCopyFollowIt) {
  const std::string script =
      "SELECT 1; copy t FROM stdin;\n1;\n\\d\n\\.\nCOPY u (a) FROM STDIN WITH (FORMAT csv);\n2\n";
  const std::vector<ScriptPart> parts = SplitAtCommands(script);
  EXPECT_THAT(Parts(script), ElementsAre("SELECT 1; copy t FROM stdin;\n",
                                         "COPY u (a) FROM STDIN WITH (FORMAT csv);\n"));
  EXPECT_EQ(parts.at(0).copied, "1;\n\\d\n");
  EXPECT_EQ(parts.at(1).copied, "2\n");
  EXPECT_EQ(SplitAtCommands("COPY t FROM STDIN").at(0).copied, "");
  for (const char* other : {"COPY t FROM '/stdin';", "COPY t TO STDOUT;",
                            "SELECT 'COPY t FROM STDIN';", "COPY t FROM STDIN; SELECT 1;"}) {
    EXPECT_EQ(SplitAtCommands(other).at(0).copied, std::nullopt) << other;
  }
}

}  // namespace
}  // namespace sluice::server
