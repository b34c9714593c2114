#include "base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/log_format.h"

namespace sluice::log {
namespace {

TEST(LogField, IsOneValueOfOneLine) {
  EXPECT_EQ(Field("ann"), "ann");
  EXPECT_EQ(Field("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(Field("jürgen"), "jürgen");
  EXPECT_EQ(Field(""), "\"\"");
  EXPECT_EQ(Field("ann address=1.2.3.4"), "\"ann address=1.2.3.4\"");
  EXPECT_EQ(Field("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(Field("a\n2026-01-01T00:00:00 info process=sluice login"),
            "\"a\\n2026-01-01T00:00:00 info process=sluice login\"");
  // Ends of lines, and what a terminal or an editor obeys, in Unicode; bytes that are no UTF-8.
  EXPECT_EQ(Field("a\u0085b\u2028c\u2029d"), "\"a\\u0085b\\u2028c\\u2029d\"");
  EXPECT_EQ(Field("\u009b2J"), "\"\\u009b2J\"");
  EXPECT_EQ(Field("ann\u202enimda\u2066b"), "\"ann\\u202enimda\\u2066b\"");
  EXPECT_EQ(Field("a\x9b\xc3("), "\"a\\x9b\\xc3(\"");
  EXPECT_EQ(Field("東京🙂"), "東京🙂");
  EXPECT_EQ(Field(std::string("a\0\x1b[2Jb\x7f", 8)), "\"a\\x00\\x1b[2Jb\\x7f\"");
}

using LogDeathTest = ::testing::Test;

// In a process of its own: Start is for once.
TEST_F(LogDeathTest, JsonIsAnObjectALine) {
  const auto write = [] {
    WriteAs(Format::kJson);
    Start("gateway", Level::kInfo);
    Info("trainingjob begun name={} path=C:\\x", Field("a \"b\"\n"));
    _exit(0);
  };
  EXPECT_EXIT(
      write(), ::testing::ExitedWithCode(0),
      R"(\{"time":"[0-9T:.-]+[+-][0-9:]+","level":"info","process":"gateway",)"
      R"re("message":"trainingjob begun name=\\"a \\\\\\"b\\\\\\"\\\\n\\" path=C:\\\\x"\})re");
}

}  // namespace
}  // namespace sluice::log
