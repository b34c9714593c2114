#include "server/pgwire/sql/router.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <string>
#include <vector>

namespace sluice::server::pgwire {
namespace {

TEST(RouterTest, WordsOfOursInStringsNamesAndCommentsDoNotCount) {
  for (const char* sql : {
           "select 1",
           "select 'TO TRAIN x'",
           "select e'it\\'s label' from t",
           "select \"label\" from \"to\"",
           "select $$ label y into m $$, $x$ to $x$, $1",
           "select 1 -- label y into m\n",
           "select 1 /* label /* nested */ to train */",
           "select tomorrow, relabel, models_1 from jobs_archive",
           "insert into t values ('to'), ('it''s a label')",
       }) {
    EXPECT_FALSE(MayBeOurs(sql)) << sql;
  }
  for (const char* sql :
       {"select * from t Label y into m", "SHOW jobs", "show Cluster", "select 1 TO\tPREDICT a.b",
        "wait job 3", "set sluice.seed=1", "select * from t lable y into m"}) {
    EXPECT_TRUE(MayBeOurs(sql)) << sql;
  }
}

TEST(RouterTest, WhatTheDatabaseUnderstandsIsItsOwn) {
  for (const char* sql : {
           "grant select on t to x",
           "select label from t",
           "select t.label, job from model t where label = 1 order by label",
           "alter table a rename to b; select 1",
           "select interval '1' day to hour",
           "select 'to train",  // the database has the better error
           "copy t to stdout",
           "",
           ";;",
           "create table model (job int)",
           "show job.id",
           "show work_mem",
           "select * from t join r on t.a similar to r.pattern",
           "declare level cursor with hold for select 1",
           "copy (select 1 from r where 'a' similar to r.b) to stdout",
           "prepare p as select 1 from t where a similar to train",
       }) {
    EXPECT_FALSE(RouteScript(sql).has_value()) << sql;
  }
}

TEST(RouterTest, MoreStatementsThanAreReadAtOncePass) {
  std::string sql;
  for (int i = 0; i < (1 << 18) + 1; ++i) {
    sql += "BEGIN TO;";  // a word of ours
  }
  EXPECT_FALSE(RouteScript(sql).has_value());
}

TEST(RouterTest, AMisspeltShowIsNotPassedOn) {
  const std::optional<Route> route = RouteScript("select 1; show modles");
  ASSERT_TRUE(route.has_value());
  ASSERT_EQ(route->parts.size(), 2U);
  EXPECT_EQ(route->parts[1].kind, Part::Kind::kOurs);
}

TEST(RouterTest, AScriptIsCutWhereOursBeginsAndEnds) {
  const std::string sql = "select 1; select 2; select * from t label y into m; begin; select 3";
  const auto route = RouteScript(sql);
  ASSERT_TRUE(route.has_value());
  ASSERT_TRUE(route->error.ok());
  ASSERT_EQ(route->parts.size(), 3U);
  const auto text = [&sql](const Part& part) {
    return sql.substr(static_cast<size_t>(part.span.begin),
                      static_cast<size_t>(part.span.end - part.span.begin));
  };
  EXPECT_EQ(text(route->parts[0]), "select 1; select 2");
  EXPECT_EQ(route->parts[0].kind, Part::Kind::kPlain);
  EXPECT_EQ(text(route->parts[1]), "select * from t label y into m");
  EXPECT_EQ(route->parts[1].kind, Part::Kind::kOurs);
  EXPECT_EQ(text(route->parts[2]), "begin; select 3");
  EXPECT_TRUE(route->parts[2].transaction);
}

TEST(RouterTest, ASlipInOursIsToldByUs) {
  const auto route = RouteScript("select * from t to trian x label y into m");
  ASSERT_TRUE(route.has_value());
  EXPECT_EQ(route->error.sqlstate(), "42601");
}

TEST(RouterTest, OursInsideOthers) {
  const std::string ours = "select x, ')' from t /* for ( */ to predict using m";
  for (const std::string& sql : {
           "DECLARE c NO SCROLL CURSOR FOR\n" + ours,
           "declare \"for\" cursor with hold for " + ours + " ;",
           "DECLARE \"c\" CURSOR FOR " + ours + " FOR READ ONLY",
           "COPY (" + ours + ") TO STDOUT (FORMAT binary)",
           "copy ( " + ours + "\n) to stdout with (format csv, header)",
       }) {
    const auto route = RouteScript(sql);
    ASSERT_TRUE(route.has_value()) << sql;
    ASSERT_TRUE(route->error.ok()) << sql << route->error.ToString();
    const auto part = std::find_if(route->parts.begin(), route->parts.end(),
                                   [](const Part& each) { return each.inside.has_value(); });
    ASSERT_NE(part, route->parts.end()) << sql;
    EXPECT_EQ(part->kind, Part::Kind::kOurs);
    EXPECT_EQ(sql.substr(static_cast<size_t>(part->inside->begin),
                         static_cast<size_t>(part->inside->end - part->inside->begin)),
              ours);
  }
  const auto slip = RouteScript("declare c cursor for select * from t to trian x label y into m");
  ASSERT_TRUE(slip.has_value());
  EXPECT_EQ(slip->error.diagnostics().front().span.begin, 40);
  const auto two = RouteScript("declare c cursor for " + ours + "; fetch all from c");
  ASSERT_TRUE(two.has_value());
  EXPECT_EQ(two->error.sqlstate(), "0A000");
  const auto prepare = RouteScript("PREPARE p (int) AS " + ours);
  ASSERT_TRUE(prepare.has_value() && prepare->error.ok());
  ASSERT_EQ(prepare->parts.size(), 1U);
  EXPECT_EQ(prepare->parts[0].kind, Part::Kind::kPrepare);
  EXPECT_EQ(prepare->parts[0].inside->begin, 19);
  const auto two_prepared = RouteScript("PREPARE p AS " + ours + "; EXECUTE p");
  ASSERT_TRUE(two_prepared.has_value());
  EXPECT_EQ(two_prepared->error.sqlstate(), "0A000");
  for (const char* sql : {
           "DECLARE c CURSOR FOR select label from t",
           "COPY (select 1) TO STDOUT",
           "COPY t (label, job) TO STDOUT",
           "PREPARE p (int) AS select label from model where to_x = $1",
       }) {
    EXPECT_FALSE(RouteScript(sql).has_value()) << sql;
  }
}

TEST(RouterTest, ExecutesWhatIsPrepared) {
  const auto known = [](std::string_view name) { return name == "p"; };
  const std::string sql = "begin; execute P (1, 'to'); execute q; commit";
  const auto route = RouteScript(sql, known);
  ASSERT_TRUE(route.has_value() && route->error.ok());
  ASSERT_EQ(route->parts.size(), 3U);
  EXPECT_EQ(route->parts[1].kind, Part::Kind::kExecute);
  EXPECT_EQ(sql.substr(static_cast<size_t>(route->parts[1].span.begin), 19), "execute P (1, 'to')");
  EXPECT_EQ(route->parts[2].kind, Part::Kind::kPlain);
  EXPECT_FALSE(RouteScript(sql).has_value());
  EXPECT_FALSE(RouteScript("execute q(1)", known).has_value());
  EXPECT_FALSE(RouteScript("select 'execute p'", known).has_value());
  EXPECT_FALSE(RouteScript("create table t as execute p", known).has_value());
}

TEST(RouterTest, FollowsWhatTheScriptPreparesAndForgets) {
  const auto known = [](std::string_view name) { return name == "p"; };
  const auto kinds = [&](const std::string& sql) {
    std::vector<Part::Kind> all;
    const auto route = RouteScript(sql, known);
    for (const Part& part : route.has_value() ? route->parts : std::vector<Part>()) {
      all.push_back(part.kind);
    }
    return all;
  };
  using Kind = Part::Kind;
  EXPECT_EQ(kinds("deallocate p; execute p"), (std::vector{Kind::kForget, Kind::kPlain}));
  EXPECT_EQ(kinds("discard all; execute p"), (std::vector{Kind::kForget, Kind::kPlain}));
  EXPECT_EQ(kinds("deallocate q; execute p"), (std::vector{Kind::kForget, Kind::kExecute}));
  EXPECT_EQ(kinds("deallocate p; prepare p as show jobs; execute p"),
            (std::vector{Kind::kForget, Kind::kPrepare, Kind::kExecute}));
  const std::string sql = "deallocate p; prepare p as select * from t label y into m";
  const auto route = RouteScript(sql, known);
  ASSERT_TRUE(route.has_value() && route->error.ok());
  ASSERT_EQ(route->parts.size(), 2U);
  EXPECT_EQ(route->parts[0].name, "p");
  EXPECT_EQ(sql.substr(static_cast<size_t>(route->parts[1].inside->begin)),
            "select * from t label y into m");
}

TEST(RouterTest, EncodingsThatHideAsciiAreNotRead) {
  EXPECT_TRUE(IsReadable({}));
  EXPECT_TRUE(IsReadable({{"client_encoding", "LATIN1"}, {"standard_conforming_strings", "on"}}));
  EXPECT_FALSE(IsReadable({{"client_encoding", "SJIS"}}));
  EXPECT_FALSE(IsReadable({{"standard_conforming_strings", "off"}}));
}

}  // namespace
}  // namespace sluice::server::pgwire
