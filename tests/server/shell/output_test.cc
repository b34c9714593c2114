#include "server/shell/output.h"

#include <gtest/gtest.h>

#include <limits>

#include "executor/result_rows.h"
#include "server/shell/table_output.h"

namespace sluice::server {
namespace {

std::string Print(OutputFormat format, const executor::ResultRows& rows) {
  std::string text;
  const auto printer = RowPrinter::Make(format, [&text](std::string_view part) {
    text += part;
    return OkStatus();
  });
  EXPECT_TRUE(printer->Header(rows.schema()).ok());
  EXPECT_TRUE(printer->Rows(rows.ToBatch()).ok());
  EXPECT_TRUE(printer->Finish().ok());
  return text;
}

executor::ResultRows Sample() {
  executor::ResultRows rows(Schema{{{"name", DataType::kText, "text"},
                                    {"n", DataType::kInt64, "bigint"},
                                    {"x", DataType::kDouble, "double"},
                                    {"ok", DataType::kBool, "boolean"}}});
  rows.Add({std::string("a"), int64_t{1}, 0.5, true});
  rows.Add({std::string("say \"hi\",\nyou"), int64_t{-20}, Value(), false});
  rows.Add({Value(), Value(), std::numeric_limits<double>::quiet_NaN(), Value()});
  rows.Add({std::string(), int64_t{0}, 1e300, true});
  return rows;
}

TEST(Output, TableAlignsNumbersRightAndLeavesNullEmpty) {
  EXPECT_EQ(Print(OutputFormat::kTable, Sample()),
            "      name      |  n  |   x    | ok\n"
            "----------------+-----+--------+----\n"
            " a              |   1 |    0.5 | t\n"
            " say \"hi\",\\nyou | -20 |        | f\n"
            "                |     |    NaN |\n"
            "                |   0 | 1e+300 | t\n"
            "(4 rows)\n\n");
}

TEST(Output, CsvQuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(Print(OutputFormat::kCsv, Sample()),
            "name,n,x,ok\n"
            "a,1,0.5,t\n"
            "\"say \"\"hi\"\",\nyou\",-20,,f\n"
            ",,NaN,\n"
            "\"\",0,1e+300,t\n");
}

TEST(Output, JsonIsOneObjectPerLine) {
  EXPECT_EQ(Print(OutputFormat::kJson, Sample()),
            "{\"name\": \"a\", \"n\": 1, \"x\": 0.5, \"ok\": true}\n"
            "{\"name\": \"say \\\"hi\\\",\\nyou\", \"n\": -20, \"x\": null, \"ok\": false}\n"
            "{\"name\": null, \"n\": null, \"x\": \"NaN\", \"ok\": null}\n"
            "{\"name\": \"\", \"n\": 0, \"x\": 1e+300, \"ok\": true}\n");
}

TEST(Output, JsonNumbersKeepEveryDigit) {
  executor::ResultRows rows(Schema{{{"n", DataType::kText, "numeric(22,2)"},
                                    {"l", DataType::kText, "numeric[]"},
                                    {"t", DataType::kText, "text"}}});
  rows.Add({std::string("12345678901234567891.12"), std::string("{1}"), std::string("1")});
  rows.Add({std::string("-0.50"), Value(), Value()});
  rows.Add({std::string("NaN"), Value(), Value()});
  rows.Add({std::string("-Infinity"), Value(), Value()});
  EXPECT_EQ(Print(OutputFormat::kJson, rows),
            "{\"n\": 12345678901234567891.12, \"l\": \"{1}\", \"t\": \"1\"}\n"
            "{\"n\": -0.50, \"l\": null, \"t\": null}\n"
            "{\"n\": \"NaN\", \"l\": null, \"t\": null}\n"
            "{\"n\": \"-Infinity\", \"l\": null, \"t\": null}\n");
}

TEST(Output, JsonHasNoBareWordsAndNoLooseNumbers) {
  executor::ResultRows rows(Schema{{{"n", DataType::kText, "numeric"}}});
  const std::vector<std::string> texts = {"01", "1.",  ".5", "+1",  "1e",        "1e+", "-",
                                          "",   "0x1", "1 ", "1 2", "-Infinity", "NaN"};
  std::string expected;
  for (const std::string& text : texts) {
    rows.Add({text});
    expected += "{\"n\": \"" + text + "\"}\n";
  }
  EXPECT_EQ(Print(OutputFormat::kJson, rows), expected);
}

TEST(Output, JsonReplacesWhatIsNotUtf8) {
  executor::ResultRows rows(
      Schema{{{"t", DataType::kText, "text"}, {"b", DataType::kBytes, "bytea"}}});
  rows.Add({std::string("a\xFF\xC0\xAF\xED\xA0\x80 \xE4\xBD\xA0\x01"), std::string("\x00\xFF", 2)});
  EXPECT_EQ(Print(OutputFormat::kJson, rows),
            "{\"t\": \"a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD "
            "\xE4\xBD\xA0\\u0001\", \"b\": \"\\\\x00ff\"}\n");
}

// JSON lets DEL and C1's control characters (U+009B is ESC [) stand in a text as they are.
TEST(Output, JsonOfADatabaseDrivesNoTerminal) {
  executor::ResultRows rows(
      Schema{{{"t", DataType::kText, "text"}, {"j", DataType::kText, "jsonb"}}});
  rows.Add(
      {std::string("\x1b[2J\x7f\xC2\x9B"), std::string("{\"a\xC2\x9B\": [\"\x7f\xC2\xA0\"]}")});
  EXPECT_EQ(Print(OutputFormat::kJson, rows),
            "{\"t\": \"\\u001b[2J\\u007f\\u009b\", "
            "\"j\": {\"a\\u009b\":[\"\\u007f\xC2\xA0\"]}}\n");
}

TEST(Output, TableShowsControlCharactersHarmlesslyAndCountsWideOnes) {
  executor::ResultRows rows(Schema{{{"t", DataType::kText, "text"}, {"u", DataType::kText, ""}}});
  rows.Add({std::string("\x1b[2J"), std::string("x")});
  rows.Add({std::string("\xE4\xBD\xA0\xE5\xA5\xBD"), std::string("y")});
  EXPECT_EQ(Print(OutputFormat::kTable, rows),
            "    t    | u\n"
            "---------+---\n"
            " \\x1b[2J | x\n"
            " \xE4\xBD\xA0\xE5\xA5\xBD    | y\n"
            "(2 rows)\n\n");
  EXPECT_EQ(DisplayWidth("\xE4\xBD\xA0\xE5\xA5\xBD"), 4U);
  EXPECT_EQ(DisplayWidth("\xC3\xA9"), 1U);
}

TEST(Output, TablePrintsManyRowsInPages) {
  std::string text;
  int writes = 0;
  const auto printer = RowPrinter::Make(OutputFormat::kTable, [&](std::string_view part) {
    text += part;
    ++writes;
    return OkStatus();
  });
  executor::ResultRows rows(Schema{{{"n", DataType::kInt64, "bigint"}}});
  for (int64_t i = 0; i < 2'500; ++i) {
    rows.Add({i});
  }
  ASSERT_TRUE(printer->Header(rows.schema()).ok());
  ASSERT_TRUE(printer->Rows(rows.ToBatch()).ok());
  EXPECT_GE(writes, 2) << "rows are not held back until the end";
  ASSERT_TRUE(printer->Finish().ok());
  EXPECT_NE(text.find("(2500 rows)"), std::string::npos);
  EXPECT_EQ(text.find("  n\n"), text.rfind("  n\n")) << "one header";
}

TEST(Output, AWriteErrorIsReturned) {
  const auto printer = RowPrinter::Make(OutputFormat::kCsv,
                                        [](std::string_view) { return Unavailable("disk full"); });
  executor::ResultRows rows(Schema{{{"n", DataType::kInt64, "bigint"}}});
  ASSERT_TRUE(printer->Header(rows.schema()).ok());
  EXPECT_EQ(printer->Finish().message(), "disk full");
}

TEST(Output, KnowsItsFormats) {
  EXPECT_EQ(ParseOutputFormat("json"), OutputFormat::kJson);
  EXPECT_EQ(ParseOutputFormat("xml"), std::nullopt);
}

}  // namespace
}  // namespace sluice::server
