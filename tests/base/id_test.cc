#include "base/id.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace sluice {
namespace {

struct DayKind {
  using Number = uint32_t;
  static constexpr Number kFirst = 1;
  static constexpr IdUse kUse = IdUse::kOrdinal;
};
using Day = Id<DayKind>;

struct MonthKind {
  using Number = uint32_t;
  static constexpr Number kFirst = 1;
  static constexpr IdUse kUse = IdUse::kOrdinal;
};
using Month = Id<MonthKind>;

struct TicketKind {
  using Number = int64_t;
  static constexpr Number kFirst = 1;
  static constexpr IdUse kUse = IdUse::kSequence;
};
using Ticket = Id<TicketKind>;

struct NameKind {
  using Number = uint64_t;
  static constexpr Number kFirst = 0;
  static constexpr IdUse kUse = IdUse::kName;
};
using Name = Id<NameKind>;

// Neither an id of another kind nor a bare number converts to an id, nor an id to a number.
static_assert(!std::is_convertible_v<Month, Day> && !std::is_constructible_v<Day, Month>);
static_assert(!std::is_assignable_v<Day&, Month>);
static_assert(!std::is_convertible_v<uint32_t, Day> && std::is_constructible_v<Day, uint32_t>);
static_assert(!std::is_assignable_v<Day&, uint32_t>);
static_assert(!std::is_convertible_v<Day, uint32_t> && !std::is_constructible_v<uint32_t, Day>);
static_assert(!std::is_constructible_v<bool, Day>);

// An id is as cheap as its number.
static_assert(sizeof(Day) == sizeof(uint32_t) && sizeof(Ticket) == sizeof(int64_t));
static_assert(std::is_trivially_copyable_v<Day> && std::is_trivially_destructible_v<Day>);
static_assert(std::is_standard_layout_v<Day>);

template <typename Left, typename Right>
concept Comparable = requires(Left left, Right right) {
  left == right;
};
template <typename Left, typename Right>
concept Ordered = requires(Left left, Right right) {
  left < right;
};
template <typename Left, typename Right>
concept Addable = requires(Left left, Right right) {
  left + right;
};
template <typename Left, typename Right>
concept Subtractable = requires(Left left, Right right) {
  left - right;
};
template <typename One>
concept Countable = requires(One one) {
  ++one;
  one++;
  --one;
  one--;
};
template <typename One>
concept Indexed = requires(One one) {
  one.index();
  One::At(0);
};

static_assert(Comparable<Day, Day> && !Comparable<Day, Month> && !Comparable<Day, uint32_t>);
static_assert(Ordered<Name, Name> && !Ordered<Day, Month> && !Ordered<Day, int>);
static_assert(Addable<Day, int64_t> && !Addable<Day, Day> && !Addable<Day, Month>);
static_assert(Subtractable<Day, Day> && Subtractable<Day, int> && !Subtractable<Day, Month>);
static_assert(Countable<Day> && Indexed<Day>);
static_assert(Countable<Ticket> && !Indexed<Ticket>);
static_assert(!Addable<Ticket, int64_t> && !Subtractable<Ticket, Ticket>);
static_assert(!Countable<Name> && !Indexed<Name> && !Subtractable<Name, Name>);

static_assert(Day::First() == Day(1) && Day().value() == 0);
static_assert(Month::First() == Month(1) && Ticket::First() == Ticket(1));
static_assert(Name::First() == Name(0));
static_assert(Day(3) < Day(4) && Day(3) != Day(4));

TEST(Id, OrdinalsCount) {
  Day day = Day::First();
  EXPECT_EQ(++day, Day(2));
  EXPECT_EQ(day++, Day(2));
  EXPECT_EQ(day.Next(), Day(4));
  EXPECT_EQ(--day, Day(2));
  EXPECT_EQ(day--, Day(2));
  EXPECT_EQ(day, Day(1));
  EXPECT_EQ(day + 6, Day(7));
  EXPECT_EQ(Day(7) - 6, Day(1));
  EXPECT_EQ(Day(7) - Day(2), 5);
  EXPECT_EQ(Day(2) - Day(7), -5);
  constexpr uint32_t kLargest = std::numeric_limits<uint32_t>::max();
  EXPECT_EQ(Day(kLargest) - Day(0), int64_t{kLargest});
}

TEST(Id, AListHasAPlaceForEach) {
  const std::vector<const char*> days = {"Monday", "Tuesday"};
  EXPECT_STREQ(days[Day::First().index()], "Monday");
  EXPECT_EQ(Day::At(1), Day(2));
  EXPECT_EQ(Day::At(1).index(), 1U);
}

TEST(Id, IsKeptInMapsAndPrinted) {
  const std::map<Ticket, int> sorted = {{Ticket(2), 20}, {Ticket(-1), 10}};
  EXPECT_EQ(sorted.begin()->second, 10);
  const std::unordered_set<Name> names = {Name(4), Name(4), Name(5)};
  EXPECT_EQ(names.size(), 2U);
  EXPECT_TRUE(names.contains(Name(5)));
  EXPECT_EQ(fmt::format("ticket {} on day {}", Ticket(-7), Day(5)), "ticket -7 on day 5");
  EXPECT_EQ(::testing::PrintToString(Ticket(-7)), "-7");
}

}  // namespace
}  // namespace sluice
