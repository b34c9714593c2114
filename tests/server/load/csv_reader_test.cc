#include "server/load/csv_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace sluice::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

struct Table {
  std::vector<std::vector<std::string>> records;  // a quoted field begins with '
  std::vector<int64_t> lines;
  std::string error;
  char separator = 0;
};

Table Read(const std::string& text, char separator = ',', bool keep_empty_lines = false,
           bool lossy = false) {
  const std::unique_ptr<std::FILE, Close> file(std::tmpfile());
  std::fwrite(text.data(), 1, text.size(), file.get());
  std::rewind(file.get());
  CsvReader reader(file.get(), "f.csv", separator, lossy);
  if (keep_empty_lines) {
    reader.KeepEmptyLines();
  }
  Table table;
  for (;;) {
    const auto record = reader.Next();
    table.separator = reader.separator();
    if (!record.ok()) {
      table.error = record.status().ToString();
      return table;
    }
    if ((*record)->empty()) {
      return table;
    }
    std::vector<std::string>& fields = table.records.emplace_back();
    for (const CsvField& field : **record) {
      fields.push_back((field.quoted ? "'" : "") + std::string(field.text));
    }
    table.lines.push_back(reader.line());
  }
}

TEST(CsvReader, ReadsWhatTheStandardSays) {
  const Table table = Read("a,b,c\r\n1,\"x, \"\"y\"\"\",\n\"two\r\nlines\",,\"\"\nlast,\"q\",e");
  EXPECT_EQ(table.error, "");
  EXPECT_THAT(table.records,
              ElementsAre(ElementsAre("a", "b", "c"), ElementsAre("1", "'x, \"y\"", ""),
                          ElementsAre("'two\r\nlines", "", "'"), ElementsAre("last", "'q", "e")));
  EXPECT_THAT(table.lines, ElementsAre(1, 2, 3, 5));
}

TEST(CsvReader, LeavesOutTheByteOrderMarkAndEmptyLines) {
  const Table table = Read("\xEF\xBB\xBF\"a\",b\n\n1,2\n\r\n\n");
  EXPECT_EQ(table.error, "");
  EXPECT_THAT(table.records, ElementsAre(ElementsAre("'a", "b"), ElementsAre("1", "2")));
  EXPECT_THAT(table.lines, ElementsAre(1, 3));
  EXPECT_THAT(Read("a\n\n1\n", ',', true).records,
              ElementsAre(ElementsAre("a"), ElementsAre(""), ElementsAre("1")));
  EXPECT_THAT(Read("").records, ElementsAre());
  EXPECT_THAT(Read("\n\n").records, ElementsAre());
}

TEST(CsvReader, FindsTheSeparatorOfTheFirstLine) {
  EXPECT_EQ(Read("a,b;c,d\n1,2;3,4", 0).separator, ',');
  EXPECT_EQ(Read("a;b;\"x,y,z\"\n", 0).separator, ';');
  EXPECT_EQ(Read("a\tb\n1,5\t2,5\n", 0).separator, '\t');
  EXPECT_EQ(Read("a|b\n", 0).separator, '|');
  EXPECT_EQ(Read("alone\n1;2\n", 0).separator, ',');
}

// Every record, at every position relative to the read buffer's end.
TEST(CsvReader, RecordsMayLieAnywhere) {
  std::string text;
  std::vector<std::string> cells;
  for (size_t i = 0; text.size() < (size_t{3} << 20); ++i) {
    cells.push_back(std::string(i % 997, 'x') + "\"\n" + std::to_string(i));
    text += std::to_string(i) + ",\"" + std::string(i % 997, 'x') + "\"\"\n" + std::to_string(i) +
            "\"\r\n";
  }
  const Table table = Read(text);
  EXPECT_EQ(table.error, "");
  ASSERT_EQ(table.records.size(), cells.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    ASSERT_THAT(table.records[i], ElementsAre(std::to_string(i), "'" + cells[i])) << i;
    ASSERT_EQ(table.lines[i], static_cast<int64_t>(2 * i + 1));
  }
  const std::string large(5 << 20, 'y');
  EXPECT_THAT(Read("a\n\"" + large + "\"\n").records,
              ElementsAre(ElementsAre("a"), ElementsAre("'" + large)));
}

TEST(CsvReader, ReplacesBytesThatAreNoUtf8IfAsked) {
  const Table table = Read("a,\"x\"\"\xE4\"\n\xC3\xA4,\xC3\n", ',', false, true);
  EXPECT_EQ(table.error, "");
  EXPECT_THAT(table.records, ElementsAre(ElementsAre("a", "'x\"?"), ElementsAre("\xC3\xA4", "?")));
}

TEST(CsvReader, TellsWhatIsWrongWithItsPlace) {
  EXPECT_THAT(Read("a,b\n1,\"x\n2,y\n").error,
              HasSubstr("f.csv:2:3: a quote begins here, and none ends it"));
  EXPECT_THAT(Read("a,b\n1,\"x\" y\n").error, HasSubstr("f.csv:2:6: text follows the quote"));
  EXPECT_THAT(Read("a,b\n\"1\n1\",\"x\"y\n").error, HasSubstr("f.csv:3:7: text follows"));
  EXPECT_THAT(Read("a,b\rc,d\r").error, HasSubstr("f.csv:1:4: a carriage return"));
  EXPECT_THAT(Read("a,\xC3\xA4,\xE4\n").error, HasSubstr("f.csv:1:5: the byte 0xe4 is no UTF-8"));
  // Where the rest is UTF-8, another encoding would break it.
  EXPECT_THAT(Read("a,\xC3\xA4,\xE4\n").error, HasSubstr("--lossy loads ?"));
  EXPECT_THAT(Read("a,\xE4\n").error,
              HasSubstr("iconv -f WINDOWS-1252 -t UTF-8 'f.csv' > utf8.csv; or load ?"));
  EXPECT_THAT(Read(std::string("a\n1\0\n", 5)).error, HasSubstr("f.csv:2:2: a NUL byte"));
  EXPECT_THAT(Read("\xFF\xFE"
                   "a")
                  .error,
              HasSubstr("UTF-16"));
  EXPECT_THAT(Read("a,b\n1,\"x").error, HasSubstr("22P04"));
  EXPECT_THAT(
      Read("a\n\"" + std::string(CsvReader::kMaxRecordBytes + (size_t{4} << 20), 'x')).error,
      HasSubstr("f.csv:2:1: the record that begins here is longer than 64 MiB"));
}

}  // namespace
}  // namespace sluice::server
