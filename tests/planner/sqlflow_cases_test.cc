// Column expressions, attributes and optimisations as SQLFlow reads them (sqlflow_cases.h).
#include "tests/planner/sqlflow_cases.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <string>

#include "parser/parser.h"
#include "planner/bind_optimize.h"
#include "planner/column_spec.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"

namespace sluice::planner {
namespace {

// A ColumnSpec in the notation of the recorded answers.
std::string Notation(const ColumnSpec& spec);

std::string Join(const std::vector<int64_t>& values) {
  std::string text;
  for (const int64_t value : values) {
    text += (text.empty() ? "" : " ") + std::to_string(value);
  }
  return "[" + text + "]";
}

std::string TensorNotation(const ColumnSpec& spec) {
  std::string text = spec.name + " dtype=";
  text += spec.element == ColumnSpec::ElementType::kInteger ? "int64" : "float32";
  text += " shape=" + Join(spec.shape);
  text += spec.delimiter.empty() ? "" : " delim=\"" + spec.delimiter + "\"";
  text += spec.key_value_delimiter.empty() ? "" : " kv=\"" + spec.key_value_delimiter + "\"";
  text += spec.weighted_elements ? " wtype=float32" : "";
  return text + (spec.kind == ColumnSpec::Kind::kSparse ? " sparse" : "");
}

std::string CategoryNotation(const char* name, const ColumnSpec& spec) {
  const ColumnSpec& inner = spec.inner[0];
  const std::string column = inner.kind == ColumnSpec::Kind::kName
                                 ? inner.name + " dtype=int64 shape=[]"
                                 : TensorNotation(inner);
  return std::string(name) + "(" + column + ", " + std::to_string(spec.buckets) + ")";
}

std::string BoundariesNotation(const std::vector<double>& boundaries) {
  std::string text;
  for (const double boundary : boundaries) {
    text += (text.empty() ? "" : " ") + FormatDouble(boundary);
  }
  return "[" + text + "]";
}

std::string Notation(const ColumnSpec& spec) {
  using ColumnKind = ColumnSpec::Kind;
  switch (spec.kind) {
    case ColumnKind::kStar:
      return "NUMERIC(* dtype=float32 shape=[1])";
    case ColumnKind::kName:
      return "NUMERIC(" + spec.name + " dtype=float32 shape=[1])";
    case ColumnKind::kDense:
    case ColumnKind::kSparse:
      return "NUMERIC(" + TensorNotation(spec) + ")";
    case ColumnKind::kBucket:
      return "BUCKET(" + Notation(spec.inner[0]) + ", " + BoundariesNotation(spec.boundaries) + ")";
    case ColumnKind::kCategoryId:
      return CategoryNotation("CATEGORY_ID", spec);
    case ColumnKind::kSequenceCategoryId:
      return CategoryNotation("SEQ_CATEGORY_ID", spec);
    case ColumnKind::kCategoryHash:
      return CategoryNotation("CATEGORY_HASH", spec);
    case ColumnKind::kWeighted:
      return "WEIGHTED(" + Notation(spec.inner[0]) + ")";
    case ColumnKind::kCross: {
      std::string members;
      for (const ColumnSpec& member : spec.inner) {
        members += (members.empty() ? "" : " ") +
                   (member.kind == ColumnKind::kName ? member.name : Notation(member));
      }
      return "CROSS([" + members + "], " + std::to_string(spec.buckets) + ")";
    }
    case ColumnKind::kEmbedding:
    case ColumnKind::kIndicator: {
      const bool plain = spec.inner[0].kind == ColumnKind::kName;
      const std::string inner = plain ? "nil" : Notation(spec.inner[0]);
      const std::string name = "name=" + (plain ? spec.inner[0].name : "") + ")";
      return spec.kind == ColumnKind::kIndicator
                 ? "INDICATOR(" + inner + ", " + name
                 : "EMBEDDING(" + inner + ", dim=" + std::to_string(spec.dimension) + ", \"" +
                       spec.combiner + "\", init=\"" + spec.initializer + "\", " + name;
    }
    default:
      return "?";
  }
}

TEST(SqlflowCases, ColumnExpressions) {
  // Our answers that differ from upstream's.
  const std::map<std::string, std::string> ours = {
      {"E18", "BUCKET(NUMERIC(c1 dtype=float32 shape=[1]), [0.5 1])"},
      {"E21", "CATEGORY_ID(MiXed dtype=int64 shape=[], 5)"},
      {"E40",
       "EMBEDDING(WEIGHTED(CATEGORY_ID(f dtype=int64 shape=[10] delim=\",\" kv=\":\" "
       "wtype=float32 sparse, 10)), dim=8, \"sum\", init=\"\", name=)"},
  };
  int seen = 0;
  for (const Case& one : Cases("ir", "E")) {
    SCOPED_TRACE(one.id + ": " + one.statement);
    ++seen;
    const parser::TrainStatement statement = Train(one.statement);
    const Result<ColumnSpec> spec = ReadColumn(statement.columns.at(0).columns.at(0));
    if (one.want == "reject") {
      EXPECT_FALSE(spec.ok());
      if (!spec.ok()) {
        EXPECT_TRUE(spec.status().diagnostics()[0].span.valid());
        EXPECT_FALSE(spec.status().diagnostics()[0].hint.empty());
      }
      continue;
    }
    ASSERT_TRUE(spec.ok()) << spec.status().ToString();
    const auto own = ours.find(one.id);
    const std::string upstream = std::regex_replace(one.upstream, std::regex("^OK → "), "");
    EXPECT_EQ(Notation(*spec), own == ours.end() ? upstream : own->second);
  }
  EXPECT_GT(seen, 30);
}

TEST(SqlflowCases, Attributes) {
  // Further than upstream, or different, with the reason.
  const std::map<std::string, bool> accepted = {
      {"G10", true},   // train.num_workers: elastic
      {"G13", true},   // names of optimizers in any case
      {"G20", true},   // hidden layers have a default
      {"G17", true},   // the linear part's optimizer is Ftrl
      {"G21", false},  // losses are a closed set: upstream passes any text to eval()
      {"G23", false},  // there is no such model; upstream finds out in Python
      {"G27", true},   // count:poisson
      {"G35", true},   // more than 128 workers
      {"G36", true},   // train.early_stopping_rounds
      {"G39", true},   // n_estimators
      {"G43", true},   // train.batch_size=-1
  };
  FakeSource source;
  FakeTable table;
  table.schema.columns = {ColumnOf("x", DataType::kDouble), ColumnOf("c", DataType::kInt64)};
  for (int64_t i = 0; i < 300; ++i) {
    table.rows.push_back({Value(static_cast<double>(i)), Value(i % 2)});
  }
  source.tables["t"] = table;
  int seen = 0;
  for (const Case& one : Cases("attr", "G")) {
    SCOPED_TRACE(one.id + ": " + one.statement);
    ++seen;
    const auto known = accepted.find(one.id);
    const bool accept = known != accepted.end() ? known->second : one.want == "same";
    const Result<plan::Plan> plan =
        MakePlan(Train(one.statement), source, source.models(), Options());
    EXPECT_EQ(plan.ok(), accept) << plan.status().ToString();
    if (!plan.ok()) {
      for (const Diagnostic& diagnostic : plan.status().diagnostics()) {
        EXPECT_TRUE(diagnostic.span.valid()) << diagnostic.message;
      }
    }
  }
  EXPECT_GT(seen, 30);
}

TEST(SqlflowCases, SuggestedNames) {
  FakeSource source;
  source.tables["t"] = SmallCensus(300);
  const std::map<std::string, std::string> hints = {{"G3", "model.hidden_units"},
                                                    {"G34", "train.num_boost_round"},
                                                    {"G42", "max_depth"},
                                                    {"G32", "xgboost.dart"}};
  for (const Case& one : Cases("attr", "G")) {
    const auto hint = hints.find(one.id);
    if (hint != hints.end()) {
      const auto plan = MakePlan(Train(one.statement), source, source.models(), Options());
      ASSERT_FALSE(plan.ok());
      EXPECT_NE(plan.status().ToString().find(hint->second), std::string::npos)
          << one.id << plan.status().ToString();
      EXPECT_NE(plan.status().ToString().find("unsupported attribute "), std::string::npos);
    }
  }
}

TEST(SqlflowCases, Optimize) {
  const std::map<std::string, std::vector<std::string>> variables = {
      {"A33", {"product"}}, {"H4", {"a", "b"}}, {"H5", {"s"}}};
  std::vector<Case> cases = Cases("ir", "H");
  for (const Case& one : Cases("ir", "A33")) {
    cases.push_back(one);
  }
  ASSERT_EQ(cases.size(), 6U);
  for (const Case& one : cases) {
    SCOPED_TRACE(one.id + ": " + one.statement);
    auto parsed = parser::Parse(one.statement);
    if (!parsed.ok()) {
      EXPECT_NE(one.want, "same") << parsed.status().ToString();
      continue;
    }
    const auto& statement = std::get<parser::OptimizeStatement>(parsed->at(0));
    const Result<BoundOptimize> bound = BindOptimize(statement);
    EXPECT_EQ(bound.ok(), one.want == "same") << bound.status().ToString();
    if (bound.ok()) {
      EXPECT_EQ(bound->variables, variables.at(one.id));
      EXPECT_NE(one.upstream.find("result=" + bound->result_column), std::string::npos);
      EXPECT_NE(one.upstream.find("type=" + bound->variable_type), std::string::npos);
      FakeSource source;
      FakeTable table;
      for (const char* name : {"price", "materials_cost", "other_cost", "product", "finishing",
                               "carpentry", "max_num", "a", "b", "s"}) {
        table.schema.columns.push_back(ColumnOf(name, DataType::kDouble));
      }
      source.tables["w"] = source.tables["woodcarving"] = table;
      EXPECT_EQ(MakePlan(statement, source, source.models(), Options()).status().sqlstate(),
                "0A000");
    }
  }
}

TEST(SqlflowCases, FunctionsAreNoAttributeValues) {
  for (const Case& one : Cases("ir", "D31")) {
    EXPECT_FALSE(parser::Parse(one.statement).ok());
  }
}

}  // namespace
}  // namespace sluice::planner
