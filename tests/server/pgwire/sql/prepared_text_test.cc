#include "server/pgwire/sql/prepared_text.h"

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
  const std::string sql =
      "execute p(1, f(2, 'a,)'), array[3, 4], $$,$$, \"a,b\" /* , */, -5 ) -- so\n;";
  const auto execute = ReadExecuteText(sql);
  ASSERT_TRUE(execute.has_value());
  std::vector<std::string> arguments;
  for (const Span& each : execute->arguments) {
    arguments.push_back(
        sql.substr(static_cast<size_t>(each.begin), static_cast<size_t>(each.end - each.begin)));
  }
  EXPECT_EQ(arguments, (std::vector<std::string>{"1", "f(2, 'a,)')", "array[3, 4]", "$$,$$",
                                                 "\"a,b\" /* , */", "-5"}));
  EXPECT_EQ(execute->begin, 0);
  EXPECT_TRUE(ReadExecuteText("EXECUTE p")->arguments.empty());
  EXPECT_EQ(ReadExecuteText("EXPLAIN (FORMAT JSON) EXECUTE p")->begin, 22);
  EXPECT_EQ(ReadExecuteText("explain analyze verbose execute p")->begin, 24);
  for (const char* text : {"EXECUTE", "EXECUTE p(1", "EXECUTE p 1", "EXECUTE IMMEDIATE x", "p",
                           "EXPLAIN p", "EXPLAIN", "EXPLAIN SELECT execute"}) {
    EXPECT_FALSE(ReadExecuteText(text).has_value()) << text;
  }
  EXPECT_EQ(ArgumentsQuery(0), "SELECT");
  EXPECT_EQ(ArgumentsQuery(0, catalog::Dialect::kSqlite), "SELECT NULL");
  EXPECT_EQ(ArgumentsQuery(2), "SELECT $1, $2");
  EXPECT_FALSE(ReadExecuteText("EXECUTE p ()").has_value());
  EXPECT_FALSE(ReadExecuteText("EXECUTE p (1, , 2)").has_value());
}

Result<BoundText> Bind(std::string_view prepared, const std::vector<std::string>& types,
                       std::string_view sql, const AnsweredRow& arguments) {
  return BindArguments(prepared, {}, types, sql, *ReadExecuteText(sql), arguments);
}

TEST(PreparedTextTest, ArgumentsStandWhereTheParametersStood) {
  const std::string prepared =
      "select * from t where a = $1 and b = $2 label y into m with seed=$3, note=$4, epoch=$5";
  const std::string sql = "EXPLAIN EXECUTE p(1 -- one\n, now(), 7, '8', 4 + 5)";
  const auto bound =
      Bind(prepared, {"int"}, sql, {{23, 25, 25, 25, 25}, {"1", "it's", "7", "8", "9"}});
  ASSERT_TRUE(bound.ok()) << bound.status().ToString();
  EXPECT_EQ(bound->text,
            "EXPLAIN select * from t where a = CAST(('1') AS int) and b = ('it''s') "
            "label y into m with seed=7, note='8', epoch=9");
  // Arguments map to their own places, the rest to the EXECUTE.
  const auto place = [&](const std::string& text) {
    const auto begin = static_cast<int64_t>(bound->text.find(text));
    return bound->PlaceOf({begin, begin + 1}).begin;
  };
  EXPECT_EQ(place("EXPLAIN"), 0);
  EXPECT_EQ(place("select"), 8);
  EXPECT_EQ(place("('1')"), static_cast<int64_t>(sql.find('1')));
  EXPECT_EQ(place(" and b"), 8);
  EXPECT_EQ(place("it''s"), static_cast<int64_t>(sql.find("now()")));
  EXPECT_EQ(place("9"), static_cast<int64_t>(sql.find("4 + 5")));
}

TEST(PreparedTextTest, TypesOfArguments) {
  const auto null =
      Bind("select $1 label y into m", {"int"}, "EXECUTE p(NULL)", {{23}, {std::nullopt}});
  ASSERT_TRUE(null.ok());
  EXPECT_EQ(null->text, "select CAST((NULL) AS int) label y into m");
  // A text that was declared as text is not a number.
  const auto text =
      Bind("select 1 label y into m with note=$1", {"text"}, "EXECUTE p(1 || '2')", {{25}, {"12"}});
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->text, "select 1 label y into m with note='12'");
  const auto wrong = Bind("select 1 label y into m with note=$1", {"int"}, "EXECUTE p(f(2))",
                          {{23}, {"no number"}});
  EXPECT_EQ(wrong.status().sqlstate(), "22P02");
  EXPECT_EQ(wrong.status().diagnostics().back().span, (Span{10, 14}));
}

TEST(PreparedTextTest, ArgumentsThatDoNotFit) {
  EXPECT_EQ(
      Bind("select $1, $2 label y into m", {}, "EXECUTE p(1)", {{25}, {"1"}}).status().sqlstate(),
      "42601");
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
