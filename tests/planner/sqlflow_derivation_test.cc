// Features that SQLFlow derives from a table (sqlflow_cases.h), compared with ours.
#include "tests/planner/sqlflow_cases.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "models/model.pb.h"
#include "planner/derive.h"
#include "planner/plan.pb.h"
#include "tests/planner/plan_of.h"

namespace sluice::planner {
namespace {

// A feature in few words: "c3 ids 10 indicator".
std::string Facts(const models::Feature& feature, const models::FeaturePlan& plan) {
  using models::Categorizer;
  using models::Feature;
  std::string text = plan.inputs(static_cast<int>(feature.inputs(0))).name();
  for (int i = 1; i < feature.inputs_size(); ++i) {
    text += " " + plan.inputs(static_cast<int>(feature.inputs(i))).name();
  }
  if (feature.kind() == Feature::NUMERIC) {
    return text + " number";
  }
  if (feature.kind() == Feature::TENSOR) {
    return text + " tensor " + std::to_string(feature.width());
  }
  const Categorizer& categorizer = feature.categorizer();
  switch (categorizer.kind()) {
    case Categorizer::VOCABULARY: {
      std::set<std::string> words(categorizer.vocabulary().begin(), categorizer.vocabulary().end());
      text += " words";
      for (const std::string& word : words) {
        text += " " + word;
      }
      break;
    }
    case Categorizer::IDENTITY:
      text += " ids " + std::to_string(categorizer.oov_bucket());
      break;
    case Categorizer::CROSS:
      text += " cross " + std::to_string(categorizer.buckets());
      break;
    default:
      text += " hash " + std::to_string(categorizer.null_bucket() < 0 ? categorizer.buckets()
                                                                      : categorizer.null_bucket());
      break;
  }
  return text + (feature.weighted() ? " weighted" : "");
}

// The same form from a recorded answer.
std::vector<std::string> UpstreamFacts(std::string upstream) {
  std::vector<std::string> facts;
  upstream = std::regex_replace(upstream, std::regex("^OK → "), "");
  const std::regex parts(R"(^(.*?) ⏎ (.*)$)");
  const std::regex number(R"(^NUMERIC\((\S+) dtype=\S+ shape=\[1\]\)$)");
  const std::regex tensor(R"(^NUMERIC\((\S+) dtype=\S+ shape=\[(\d+)\] fmt=.*\)$)");
  const std::regex ids(
      R"(^(?:INDICATOR|EMBEDDING)?\(?CATEGORY_ID\((\S+) dtype=.*maxid=\d+, (\d+)\).*$)");
  const std::regex words(R"(^.*CATEGORY_ID\((\S+) .*vocab=\[([^\]]*)\].*$)");
  const std::regex cross(R"(^CROSS\(\[(.*)\], (\d+)\)$)");
  const std::regex weighted(R"(^EMBEDDING\(WEIGHTED\(CATEGORY_HASH\((\S+) .*, (\d+)\)\), .*$)");
  for (std::smatch match; !upstream.empty();) {
    std::string line = upstream;
    if (std::regex_match(upstream, match, parts)) {
      line = match[1];
      upstream = match[2].str();
    } else {
      upstream.clear();
    }
    if (line.rfind("label ", 0) == 0 || line.rfind("queries: ", 0) == 0) {
      continue;
    }
    std::smatch found;
    if (std::regex_match(line, found, number)) {
      facts.push_back(found[1].str() + " number");
    } else if (std::regex_match(line, found, tensor)) {
      facts.push_back(found[1].str() + " tensor " + found[2].str());
    } else if (std::regex_match(line, found, words)) {
      facts.push_back(found[1].str() + " words " + found[2].str());
    } else if (std::regex_match(line, found, ids)) {
      facts.push_back(found[1].str() + " ids " + found[2].str());
    } else if (std::regex_match(line, found, cross)) {
      facts.push_back(found[1].str() + " cross " + found[2].str());
    } else if (std::regex_match(line, found, weighted)) {
      facts.push_back(found[1].str() + " hash " + found[2].str() + " weighted");
    } else {
      facts.push_back("? " + line);
    }
  }
  return facts;
}

// SQLFlow derives features without a model; here a network for either task is planned.
Result<plan::Plan> PlanCase(std::string statement, FakeSource& source, const Case& one) {
  const bool number = one.statement.find("kv.train") != std::string::npos &&
                      one.statement.find("wkv") == std::string::npos;
  const bool vector = one.id == "F50";
  const char* type = number || vector ? "DNNRegressor" : "DNNClassifier";
  statement = std::regex_replace(statement, std::regex("TO TRAIN e WITH a=1"),
                                 std::string("TO TRAIN ") + type + " WITH model.hidden_units=[4]");
  return PlanOf(statement, source);
}

TEST(SqlflowCases, Derivation) {
  const std::map<std::string, std::vector<std::string>> ours = {
      {"F9", {"c1 number", "c2 number"}},      // LABEL in any case
      {"F21", {"c6 words FEMALE MALE NULL"}},  // EMBEDDING of text: its vocabulary
      {"F25", {"c1 ids 100", "c2 ids 100"}},   // a pattern skips the label
      {"F34", {"feature tensor 5"}},           // key:value with "," and ":"
      {"F36", {"a number"}},                   // SMALLINT
      {"F42", {"s ids 4"}},                    // ragged CSV: ids
      {"F43", {"s words 1 2.5 x"}},            // a column with one word is a column of words
      {"F45", {"s ids 8"}},                    // a list with one id is a list, too
      {"F46", {"s number", "s hash 24"}},      // times of day are not key:value
      {"F48", {"s words a b", "n number"}},    // NULLs do not crash
      {"F49", {"x number"}},                   // text label
  };
  int seen = 0;
  for (const Case& one : Cases("derive", "F")) {
    SCOPED_TRACE(one.id + ": " + one.statement);
    ++seen;
    FakeSource source;
    AddFixtures(&source);
    for (const auto& [name, statement] : one.saved_models) {
      const auto trained = PlanCase(statement, source, one);
      ASSERT_TRUE(trained.ok()) << trained.status().ToString();
      catalog::ModelVersion version;
      version.name = name;
      version.plan = trained->train().SerializeAsString();
      ASSERT_TRUE(source.models().Put(version, "", false).ok());
    }
    const auto plan = PlanCase(one.statement, source, one);
    if (one.want.rfind("reject", 0) == 0 || one.want.rfind("ours: reject", 0) == 0) {
      EXPECT_FALSE(plan.ok());
      continue;
    }
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    if (plan->has_predict()) {
      EXPECT_EQ(plan->predict().table().schema(), "iris");
      EXPECT_EQ(plan->predict().table().name(), "p");
      EXPECT_EQ(plan->predict().column(), "class");
      continue;
    }
    const models::FeaturePlan& features = plan->train().model().features();
    std::vector<std::string> facts;
    for (const models::Feature& feature : features.features()) {
      facts.push_back(Facts(feature, features));
    }
    const auto own = ours.find(one.id);
    EXPECT_EQ(facts, own == ours.end() ? UpstreamFacts(one.upstream) : own->second);
    EXPECT_FALSE(features.label().column().empty());
  }
  EXPECT_GT(seen, 30);
}

}  // namespace
}  // namespace sluice::planner
