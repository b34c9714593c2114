#include "base/status.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

namespace sluice {
namespace {

TEST(Status, OkHasNoDiagnostics) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::kOk);
  EXPECT_TRUE(status.diagnostics().empty());
  EXPECT_EQ(status.sqlstate(), "00000");
}

TEST(Status, EveryErrorHasASqlState) {
  EXPECT_EQ(SyntaxError("x").sqlstate(), "42601");
  EXPECT_EQ(ColumnNotFound("x").sqlstate(), "42703");
  EXPECT_EQ(TableNotFound("x").sqlstate(), "42P01");
  EXPECT_EQ(NotFound("x").sqlstate(), "42704");
  EXPECT_EQ(InvalidArgument("x").sqlstate(), "22023");
  EXPECT_EQ(Unimplemented("x").sqlstate(), "0A000");
  EXPECT_EQ(Cancelled("x").sqlstate(), "57014");
  EXPECT_EQ(Internal("x").sqlstate(), "XX000");
}

TEST(Status, AddKeepsEveryErrorInOrder) {
  Status all;
  all.Add(ColumnNotFound("first"));
  all.Add(OkStatus());
  all.Add(InvalidArgument("second"));
  ASSERT_EQ(all.diagnostics().size(), 2U);
  EXPECT_EQ(all.message(), "first");
  EXPECT_EQ(all.diagnostics()[1].message, "second");
}

TEST(Status, ACopyIsNotChangedByABuilder) {
  const Status original = InvalidArgument("wrong");
  Status copy = original;
  copy = std::move(copy).Hint("do this");
  EXPECT_EQ(original.diagnostics()[0].hint, "");
  EXPECT_EQ(copy.diagnostics()[0].hint, "do this");
}

TEST(Status, BecausePrefixesEveryMessage) {
  Status all = InvalidArgument("a");
  all.Add(InvalidArgument("b"));
  all = std::move(all).Because("binding");
  EXPECT_EQ(all.diagnostics()[0].message, "binding: a");
  EXPECT_EQ(all.diagnostics()[1].message, "binding: b");
}

TEST(Status, PlacesMoveWithTheTextThatTheyAreIn) {
  Status all = InvalidArgument("a").At({2, 3}).Hint("b");
  all.Add(InvalidArgument("c"));
  const Status within = all.Within({10, 20});
  EXPECT_EQ(within.diagnostics()[0].span, (Span{12, 13}));
  EXPECT_EQ(within.diagnostics()[1].span, (Span{10, 20}));
  EXPECT_EQ(within.diagnostics()[0].hint, "b");
  const Status moved = all.MovedTo({5, 6});
  EXPECT_EQ(moved.diagnostics()[0].span, (Span{5, 6}));
  EXPECT_EQ(moved.diagnostics()[1].span, (Span{5, 6}));
  EXPECT_EQ(all.diagnostics()[0].span, (Span{2, 3}));
  EXPECT_TRUE(OkStatus().Within({1, 2}).ok());
}

Result<int> Half(int number) {
  if (number % 2 != 0) {
    return InvalidArgument("odd");
  }
  return number / 2;
}

Result<int> Quarter(int number) {
  ASSIGN_OR_RETURN(const int half, Half(number));
  return Half(half);
}

TEST(Result, CarriesAValueOrAnError) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status().message(), "odd");
  EXPECT_FALSE(Quarter(3).ok());
}

TEST(Result, IsMovedCopiedAndAssigned) {
  // What is held is not destroyed twice, nor left.
  const auto held = std::make_shared<int>(7);
  {
    Result<std::shared_ptr<int>> first = held;
    Result<std::shared_ptr<int>> second = first;
    EXPECT_EQ(held.use_count(), 3);
    const Result<std::shared_ptr<int>> third = std::move(first);
    EXPECT_EQ(held.use_count(), 3);
    second = Internal("lost");
    EXPECT_EQ(second.status().message(), "lost");
    EXPECT_EQ(held.use_count(), 2);
    second = third;
    EXPECT_EQ(*second.value(), 7);
    second = *&second;
    EXPECT_EQ(held.use_count(), 3);
  }
  EXPECT_EQ(held.use_count(), 1);
  Result<std::unique_ptr<int>> error = Internal("none");
  Result<std::unique_ptr<int>> moved = std::move(error);
  EXPECT_FALSE(moved.ok());
  EXPECT_FALSE(error.ok());  // NOLINT: an error stays one
  EXPECT_FALSE(std::is_copy_constructible_v<Result<std::unique_ptr<int>>>);
}

TEST(Result, ATemporaryGivesItsValueAway) {
  // A reference would end with the Result, before a range-based for loop over it has begun.
  static_assert(std::is_same_v<decltype(Half(8).value()), int>);
  static_assert(std::is_same_v<decltype(*Half(8)), int>);
  int sum = 0;
  for (const char c : Result<std::string>(std::string(100, 'a')).value()) {
    sum += c;
  }
  EXPECT_EQ(sum, 100 * 'a');
}

TEST(RenderWithCaret, PointsAtTheColumnUnderMultibyteText) {
  const std::string sql = "SELECT *\nFROM t LABEL \u6807\u7b7e clss";
  const auto at = static_cast<int64_t>(sql.find("clss"));
  const Status status =
      ColumnNotFound("no column 'clss'").At({at, at + 4}).Hint("did you mean 'class'?");
  EXPECT_EQ(RenderWithCaret(status, sql),
            "ERROR 42703: no column 'clss'\n"
            "LINE 2:17: FROM t LABEL \u6807\u7b7e clss\n"
            "                           ^\n"
            "HINT: did you mean 'class'?\n");
}

TEST(RenderWithCaret, AVeryLongLineIsCutAroundThePlace) {
  const std::string sql = std::string(1'000'000, 'x') + "!" + std::string(1'000'000, 'y');
  const std::string text = RenderWithCaret(SyntaxError("odd").At({1'000'000, 1'000'001}), sql);
  EXPECT_LT(text.size(), 500U);
  const size_t line = text.find("LINE");
  const size_t next = text.find('\n', line) + 1;
  EXPECT_EQ(text[line + (text.find('^') - next)], '!');
}

TEST(RenderWithCaret, ASpanPastTheEndDoesNotCrash) {
  EXPECT_EQ(RenderWithCaret(SyntaxError("odd").At({99, 100}), "short"), "ERROR 42601: odd\n");
  EXPECT_NE(RenderWithCaret(SyntaxError("end").At({5, 5}), "short").find("^"), std::string::npos);
}

TEST(FindLineColumn, CountsCharactersNotBytes) {
  const std::string text = "a\n\u00e9\u00e9b";
  const LineColumn place = FindLineColumn(text, static_cast<int64_t>(text.find('b')));
  EXPECT_EQ(place.line, 2);
  EXPECT_EQ(place.column, 3);
}

TEST(NearestName, FindsTyposPrefixesAndNothingFar) {
  const std::vector<std::string> names = {"model.hidden_units", "train.epoch", "class"};
  EXPECT_EQ(NearestName("clss", names), "class");
  EXPECT_EQ(NearestName("zz", {"a", "b"}), std::nullopt);
  EXPECT_EQ(NearestName("aa", {"a", "b"}), "a");
  EXPECT_EQ(NearestName("hidden_units", names), "model.hidden_units");
  EXPECT_EQ(NearestName("TRAIN.EPOCHS", names), "train.epoch");
  EXPECT_EQ(NearestName("zzzzzzzz", names), std::nullopt);
  EXPECT_EQ(NearestName(std::string(100'000, 'a'), names), std::nullopt);
}

}  // namespace
}  // namespace sluice
