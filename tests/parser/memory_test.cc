#include <gmock/gmock.h>

#include <string>

#include "parser/parser.h"
#include "tests/support/allocation_meter.h"

// Memory for a script in addition to its own text.
namespace sluice::parser {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

std::string Repeat(std::string_view text, size_t bytes) {
  std::string repeated(text);
  while (repeated.size() < bytes) {
    repeated += repeated;
  }
  return repeated.substr(0, (bytes + text.size() - 1) / text.size() * text.size());
}

std::string Training(const std::string& attributes) {
  return "SELECT a, y FROM t TO TRAIN DNNClassifier WITH " + attributes + " LABEL y INTO m;";
}

struct Cost {
  Status status;
  size_t peak = 0;
};
Cost Measure(const std::string& script) {
  const AllocationMeter meter;
  Cost cost;
  cost.status = Parse(script).status();
  cost.peak = meter.Peak();
  return cost;
}

TEST(ParserMemoryTest, LongListsAreRefusedBeforeTheyAreRead) {
  for (const char* element : {"1,", "'a',", "[1],", "[],", "-1,", "(1),", "x,", "1+1,"}) {
    const Cost cost = Measure(Training("hidden_units=[" + Repeat(element, 2 * kMebibyte) + "1]"));
    EXPECT_EQ(cost.status.sqlstate(), "54000") << element;
    EXPECT_LT(cost.peak, kMebibyte) << element;
  }
  EXPECT_LT(Measure(Training("a=[" + Repeat("1,", 50 * kMebibyte) + "1]")).peak, kMebibyte);
  const Cost cost = Measure(Training("hidden_units=[" + Repeat("1,", 2 * kMebibyte) + "1]"));
  EXPECT_EQ(cost.status.message(), "the clauses of this statement have more than 1048576 bytes");
  const Span span = cost.status.diagnostics().front().span;
  EXPECT_EQ(span.begin, 19 + (1 << 20));
}

TEST(ParserMemoryTest, ListsTakeAtMostFourTimesTheirText) {
  const size_t most = kMebibyte - 200;
  for (const char* element : {"1,", "'a',", "[1],", "[[],[]],", "(1),", "[x,y],"}) {
    const std::string text = Repeat(element, most);
    for (const std::string& list : {"[" + text + "1]", "([" + text + "1])", "-[" + text + "1]"}) {
      const Cost cost = Measure(Training("hidden_units=" + list));
      EXPECT_EQ(cost.status.sqlstate(), "54000") << element;
      EXPECT_LT(cost.peak, 4 * text.size()) << list.substr(0, 10);
    }
  }
  for (const char* element :
       {"1.00000000000000000000000000000000000000000000000000000000000000,",
        "'a text of sixty-four bytes, which is about as long as some are',"}) {
    const std::string text = Repeat(element, most);
    const Cost cost = Measure(Training("a=[" + text + "1]"));
    EXPECT_TRUE(cost.status.ok()) << cost.status.ToString();
    EXPECT_LT(cost.peak, 4 * text.size()) << element;
  }
}

// A short element takes many times the memory of its text, so elements are counted: the memory of
// all lists in a statement is compared with that of the longest allowed clauses.
TEST(ParserMemoryTest, ShortElementsAreFewEnough) {
  constexpr size_t kMaxElements = size_t{1} << 14;
  struct Case {
    const char* text;
    size_t elements;
  };
  for (const Case& one : {Case{"1,", 1}, Case{"'a',", 1}, Case{"x,", 1}, Case{"[],", 1},
                          Case{"[1],", 2}, Case{"[[1],[2]],", 5}, Case{"[[[]]],", 3}}) {
    const size_t times = kMaxElements / one.elements - 1;
    const std::string text = Repeat(one.text, times * std::string_view(one.text).size());
    const Cost cost = Measure(Training("a=[" + text + "1]"));
    EXPECT_TRUE(cost.status.ok()) << one.text << cost.status.ToString();
    EXPECT_LT(cost.peak, 4 * kMebibyte) << one.text;
  }
}

TEST(ParserMemoryTest, NestedLists) {
  for (const char* open : {"[", "(", "([", "- ", "[-("}) {
    const Cost cost = Measure(Training("a=" + Repeat(open, kMebibyte / 2)));
    EXPECT_EQ(cost.status.sqlstate(), "54001") << open;
    EXPECT_LT(cost.peak, kMebibyte) << open;
  }
}

TEST(ParserMemoryTest, TheSelectMayBeLong) {
  const std::string script =
      "SELECT " + Repeat("a, ", 20 * kMebibyte) + "y FROM t TO TRAIN DNNClassifier LABEL y INTO m;";
  const Cost cost = Measure(script);
  EXPECT_TRUE(cost.status.ok()) << cost.status.ToString();
  EXPECT_LT(cost.peak, 4 * script.size());
}

TEST(ParserMemoryTest, ManyStatements) {
  for (const char* statement : {"a;", "SELECT 1;", "SHOW JOBS;", "DROP MODEL m;"}) {
    const Cost cost = Measure(Repeat(statement, 8 * kMebibyte));
    EXPECT_EQ(cost.status.sqlstate(), "54000") << statement;
    EXPECT_LT(cost.peak, 64 * kMebibyte) << statement;
  }
}

TEST(ParserMemoryTest, OptionsOfExplain) {
  const Cost cost = Measure("EXPLAIN (" + Repeat("a ", 8 * kMebibyte) + ") SELECT 1");
  EXPECT_TRUE(cost.status.ok()) << cost.status.ToString();
  EXPECT_LT(cost.peak, 32 * kMebibyte);
}

}  // namespace
}  // namespace sluice::parser
