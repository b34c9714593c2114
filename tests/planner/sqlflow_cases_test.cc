// SQLFlow's own answers (tests/data/sqlflow_cases.json): `same` means the same meaning, `reject` an
// error, anything else what the case says. Where language.md goes beyond, the exception stands here
// with its reason.
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <rapidjson/istreamwrapper.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "fake_source.h"
#include "models/model.pb.h"
#include "parser/parser.h"
#include "planner/bind_optimize.h"
#include "planner/column_spec.h"
#include "planner/derive.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"

namespace sluice::planner {
namespace {

struct Case {
  std::string id, stage, statement, upstream, want;
  std::map<std::string, std::string> saved_models;
};

const rapidjson::Document& Data() {
  static const rapidjson::Document* document = [] {
    auto* parsed = new rapidjson::Document;
    std::ifstream in(std::string(SLUICE_SOURCE_DIR) + "/tests/data/sqlflow_cases.json");
    rapidjson::IStreamWrapper wrapper(in);
    parsed->ParseStream(wrapper);
    return parsed;
  }();
  return *document;
}

std::vector<Case> Cases(const std::string& stage, const std::string& prefix) {
  std::vector<Case> cases;
  for (const auto& entry : Data()["cases"].GetArray()) {
    Case one{entry["id"].GetString(),        entry["stage"].GetString(),
             entry["statement"].GetString(), entry["upstream"].GetString(),
             entry["want"].GetString(),      {}};
    if (one.stage != stage || one.id.rfind(prefix, 0) != 0) {
      continue;
    }
    if (entry.HasMember("saved_models")) {
      for (const auto& model : entry["saved_models"].GetObject()) {
        one.saved_models[model.name.GetString()] = model.value.GetString();
      }
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

DataType TypeOf(const std::string& type) {
  if (type == "FLOAT" || type == "DOUBLE" || type == "DECIMAL") {
    return DataType::kDouble;
  }
  if (type == "TEXT" || type == "VARCHAR" || type == "CHAR") {
    return DataType::kText;
  }
  return type == "BOOL"       ? DataType::kBool
         : type == "DATETIME" ? DataType::kTimestamp
                              : DataType::kInt64;
}

Value CellOf(const rapidjson::Value& cell, DataType type) {
  if (cell.IsNull()) {
    return std::monostate();
  }
  switch (type) {
    case DataType::kDouble:
      return cell.IsString() ? std::stod(cell.GetString()) : cell.GetDouble();
    case DataType::kBool:
      return cell.GetInt64() != 0;
    case DataType::kTimestamp:
      return int64_t{1577836800000000};
    case DataType::kInt64:
      return cell.GetInt64();
    default:
      return std::string(cell.GetString());
  }
}

// The recorded tables. The labels of some have one class only; the planner refuses those, so rows
// that do not touch the case's point are added.
void AddFixtures(FakeSource* source) {
  for (const auto& entry : Data()["fixtures"].GetObject()) {
    FakeTable table;
    const auto& names = entry.value["Names"];
    for (rapidjson::SizeType i = 0; i < names.Size(); ++i) {
      table.schema.columns.push_back(
          ColumnOf(names[i].GetString(), TypeOf(entry.value["Types"][i].GetString())));
    }
    for (const auto& row : entry.value["Rows"].GetArray()) {
      std::vector<Value> cells;
      for (rapidjson::SizeType i = 0; i < row.Size(); ++i) {
        cells.push_back(CellOf(row[i], table.schema.columns[i].type));
      }
      table.rows.push_back(std::move(cells));
    }
    if (table.rows.size() == 1 || entry.name == "one.t") {
      table.rows.push_back(table.rows.back());
      table.rows.back().back() = int64_t{1};
    }
    source->tables[entry.name.GetString()] = std::move(table);
  }
}

parser::TrainStatement Train(const std::string& text) {
  auto parsed = parser::Parse(text);
  SLUICE_CHECK(parsed.ok(), text + ": " + parsed.status().ToString());
  return std::get<parser::TrainStatement>(parsed->at(0));
}

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
  // What we want where it is not upstream's answer.
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
  // Beyond or against upstream, with the reason.
  const std::map<std::string, bool> accepted = {
      {"G10", true},   // train.num_workers: elastic
      {"G13", true},   // names of optimizers in any case
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
    const Result<plan::Plan> plan = MakePlan(Train(one.statement), source, Options());
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
      const auto plan = MakePlan(Train(one.statement), source, Options());
      ASSERT_FALSE(plan.ok());
      EXPECT_NE(plan.status().ToString().find(hint->second), std::string::npos)
          << one.id << plan.status().ToString();
      EXPECT_NE(plan.status().ToString().find("unsupported attribute "), std::string::npos);
    }
  }
}

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

// The same words out of a recorded answer.
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

// SQLFlow's derivation knows no model; a network of either task is planned here.
Result<plan::Plan> PlanCase(std::string statement, FakeSource& source, const Case& one) {
  const bool number = one.statement.find("kv.train") != std::string::npos &&
                      one.statement.find("wkv") == std::string::npos;
  const bool vector = one.id == "F50";
  const char* type = number || vector ? "DNNRegressor" : "DNNClassifier";
  statement = std::regex_replace(statement, std::regex("TO TRAIN e WITH a=1"),
                                 std::string("TO TRAIN ") + type + " WITH model.hidden_units=[4]");
  auto parsed = parser::Parse(statement);
  if (!parsed.ok()) {
    return parsed.status();
  }
  return std::visit(
      [&](const auto& node) -> Result<plan::Plan> {
        if constexpr (std::is_constructible_v<parser::ExtendedStatement, decltype(node)>) {
          return MakePlan(node, source, Options());
        } else {
          return Internal("not an extended statement");
        }
      },
      parsed->at(0));
}

TEST(SqlflowCases, Derivation) {
  const std::map<std::string, std::vector<std::string>> ours = {
      {"F9", {"c1 number", "c2 number"}},      // LABEL in any case
      {"F21", {"c6 words FEMALE MALE NULL"}},  // EMBEDDING of text: its vocabulary
      {"F25", {"c1 ids 100", "c2 ids 100"}},   // a pattern passes over the label
      {"F34", {"feature tensor 5"}},           // key:value with "," and ":"
      {"F36", {"a number"}},                   // SMALLINT
      {"F42", {"s ids 4"}},                    // ragged CSV: ids
      {"F43", {"s words 1 2.5 x"}},            // one word makes a column of words
      {"F45", {"s ids 8"}},                    // a list of one id is a list too
      {"F46", {"s words 09:15 12:30"}},        // times are no key:value
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
      EXPECT_EQ(plan->predict().table(), "iris.p");
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
      EXPECT_EQ(MakePlan(statement, source, Options()).status().sqlstate(), "0A000");
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
