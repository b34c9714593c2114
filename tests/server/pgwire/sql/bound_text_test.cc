#include "server/pgwire/sql/bound_text.h"

#include <gtest/gtest.h>

namespace sluice::server::pgwire {
namespace {

using Values = std::vector<std::optional<std::string>>;

TEST(BoundTextTest, AParameterIsAnExpressionInTheSelectAndAValueInOurClauses) {
  const Values values = {"4", "it's", "3"};
  const auto bound = BindText(
      "SELECT * FROM t WHERE x < $1 AND s = $2 AND '$3' <> '' -- $3\n"
      "TO TRAIN x WITH a.b=$3, a.c=$2 LABEL y INTO m",
      {23, 0, 0}, {}, &values);
  ASSERT_TRUE(bound.ok()) << bound.status().ToString();
  EXPECT_EQ(bound->text,
            "SELECT * FROM t WHERE x < ('4'::pg_catalog.int4) AND s = ('it''s') AND '$3' <> '' -- "
            "$3\nTO TRAIN x WITH a.b=3, a.c='it''s' LABEL y INTO m");
}

TEST(BoundTextTest, PlacesAreThoseOfTheTextThatWasSent) {
  const Values values = {"12345"};
  const std::string sql = "SELECT $1 FROM nope LABEL y INTO m";
  const auto bound = BindText(sql, {25}, {}, &values);
  ASSERT_TRUE(bound.ok());
  const auto at = [&](const std::string& word) {
    return bound->PlaceOf({static_cast<int64_t>(bound->text.find(word)),
                           static_cast<int64_t>(bound->text.find(word) + word.size())});
  };
  EXPECT_EQ(at("SELECT"), (Span{0, 6}));
  EXPECT_EQ(at("12345").begin, 7);  // $1
  EXPECT_EQ(at("nope").begin, static_cast<int64_t>(sql.find("nope")));
  EXPECT_FALSE(bound->PlaceOf(Span()).valid());
}

TEST(BoundTextTest, WithoutValuesAllAreNull) {
  const auto bound = BindText("SELECT $1, $2 FROM t TO PREDICT USING m", {20}, {}, nullptr);
  ASSERT_TRUE(bound.ok()) << bound.status().ToString();
  EXPECT_EQ(bound->text.find('$'), std::string::npos);
  EXPECT_NE(bound->text.find("NULL"), std::string::npos);
}

TEST(BoundTextTest, WhatDoesNotFitIsRefused) {
  const Values two_bytes = {std::string("\x01\x02", 2)};
  EXPECT_FALSE(BindText("SELECT $1", {23}, {1}, &two_bytes).ok()) << "no int4";
}

TEST(BoundTextTest, StrangeParametersAreAsTheDatabaseShowsThem) {
  constexpr uint32_t kInet = 869;
  constexpr uint32_t kOfAUser = 99'999;
  EXPECT_EQ(StrangeParameters({23, kInet, kOfAUser, 0}, {}), (std::vector<size_t>{2}));
  EXPECT_EQ(StrangeParameters({23, kInet, kOfAUser, 0}, {1}), (std::vector<size_t>{1, 2}));
  EXPECT_EQ(StrangeParameters({kInet, kInet}, {0, 1}), (std::vector<size_t>{1}));
  const Values values = {"\x02\x20", "whatever", std::nullopt};
  const ShownParameters shown = {{0, {"10.0.0.1/32", "inet"}},
                                 {1, {std::nullopt, "public.\"My type\""}}};
  const auto bound =
      BindText("SELECT $1, $2, $3 FROM t TO PREDICT USING m WITH a.b=$1", {kInet, kOfAUser, 23},
               {1}, &values, catalog::Dialect::kPostgres, shown);
  ASSERT_TRUE(bound.ok()) << bound.status().ToString();
  EXPECT_EQ(
      bound->text,
      "SELECT ('10.0.0.1/32'::inet), (NULL::public.\"My type\"), (NULL::pg_catalog.int4) FROM t "
      "TO PREDICT USING m WITH a.b='10.0.0.1/32'");
  EXPECT_TRUE(BindText("SELECT $1", {kOfAUser}, {}, nullptr).ok()) << "to be described";
}

TEST(BoundTextTest, ParametersAreCounted) {
  EXPECT_EQ(CountParameters("SELECT $2, '$9', $tag$ $7 $tag$, \"$8\", a$5 -- $6"), 2U);
  EXPECT_EQ(CountParameters("SELECT 1"), 0U);
  EXPECT_EQ(CountParameters("SELECT $99999999999999999999"), 0U);
}

}  // namespace
}  // namespace sluice::server::pgwire
