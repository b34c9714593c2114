#include "server/pgwire/prepared_text.h"

#include <gtest/gtest.h>

namespace sluice::server::pgwire {
namespace {

TEST(PreparedTextTest, NameAndTypesOfPrepare) {
  const auto prepare =
      ReadPrepareText("PREPARE /* a */ \"Pl\"\"an\" (int, numeric(10, 2) , text[]) AS ");
  ASSERT_TRUE(prepare.has_value());
  EXPECT_EQ(prepare->name, "Pl\"an");
  EXPECT_EQ(prepare->types, (std::vector<std::string>{"int", "numeric(10, 2)", "text[]"}));
  EXPECT_TRUE(ReadPrepareText("prepare P as")->types.empty());
  EXPECT_EQ(ReadPrepareText("prepare P as")->name, "p");
  for (const char* text : {"PREPARE as", "PREPARE p", "PREPARE p (int AS", "PREPARE p q AS",
                           "PREPARE \"p AS", "PREPARE TRANSACTION 'x'", ""}) {
    EXPECT_FALSE(ReadPrepareText(text).has_value()) << text;
  }
}

TEST(PreparedTextTest, ArgumentsOfExecute) {
  const auto execute = ReadExecuteText(
      "execute p(1, f(2, 'a,)'), array[3, 4], $$,$$, \"a,b\" /* , */, -5 ) -- so\n;");
  ASSERT_TRUE(execute.has_value());
  EXPECT_EQ(execute->arguments, (std::vector<std::string>{"1", "f(2, 'a,)')", "array[3, 4]",
                                                          "$$,$$", "\"a,b\" /* , */", "-5"}));
  EXPECT_TRUE(ReadExecuteText("EXECUTE p")->arguments.empty());
  for (const char* text : {"EXECUTE", "EXECUTE p(1", "EXECUTE p 1", "EXECUTE IMMEDIATE x", "p"}) {
    EXPECT_FALSE(ReadExecuteText(text).has_value()) << text;
  }
}

TEST(PreparedTextTest, ArgumentsStandWhereTheParametersStood) {
  const std::string prepared =
      "select * from t where a = $1 and b = $2 label y into m with seed=$3, note=$4";
  const auto bound = BindArguments(prepared, {"int"}, {"p", {"1 -- one", "now()", "7", "'it''s'"}});
  ASSERT_TRUE(bound.ok()) << bound.status().ToString();
  EXPECT_EQ(bound->text,
            "select * from t where a = CAST((1 -- one\n) AS int) and b = (now()) "
            "label y into m with seed=7, note='it''s'");
  EXPECT_EQ(bound->PlaceOf({30, 35}).begin, 0);  // the EXECUTE's
}

TEST(PreparedTextTest, RefusedArguments) {
  const auto few = BindArguments("select $1, $2 label y into m", {}, {"p", {"1"}});
  EXPECT_EQ(few.status().sqlstate(), "42601");
  EXPECT_EQ(few.status().diagnostics().front().detail, "Expected 2 parameters but got 1.");
  const auto many = BindArguments("select 1 label y into m", {}, {"p", {"1"}});
  EXPECT_EQ(many.status().sqlstate(), "42601");
  const auto expression =
      BindArguments("select 1 label y into m with seed=$1", {}, {"p", {"1 + f(2)"}});
  EXPECT_EQ(expression.status().sqlstate(), "0A000");
}

TEST(PreparedTextTest, NamesThatAreForgotten) {
  EXPECT_EQ(DeallocatedName("DEALLOCATE S_1"), "s_1");
  EXPECT_EQ(DeallocatedName("deallocate prepare \"S_1\";"), "S_1");
  EXPECT_EQ(DeallocatedName("DEALLOCATE ALL"), "");
  EXPECT_EQ(DeallocatedName("discard all"), "");
  EXPECT_EQ(DeallocatedName("discard plans"), std::nullopt);
  EXPECT_EQ(DeallocatedName("select 1"), std::nullopt);
  EXPECT_EQ(DeallocatedName("deallocate a; deallocate b"), std::nullopt);
}

}  // namespace
}  // namespace sluice::server::pgwire
