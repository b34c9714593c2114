#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/model.pb.h"
#include "planner/plan.pb.h"
#include "tests/planner/plan_of.h"

namespace sluice::planner {

// Tables with much that can be wrong.
class StatementErrors : public ::testing::Test {
 protected:
  StatementErrors() {
    source_.tables["t"] = SmallCensus(400);
    source_.tables["full"] = FullCensus(400);
    source_.tables["empty"] = SmallCensus(0);
    FakeTable odd;
    odd.schema.columns = {
        ColumnOf("x", DataType::kDouble),     ColumnOf("same", DataType::kText),
        ColumnOf("nothing", DataType::kText), ColumnOf("price", DataType::kDouble),
        ColumnOf("name", DataType::kText),    ColumnOf("photo", DataType::kBytes),
        ColumnOf("many", DataType::kInt64)};
    for (int64_t i = 0; i < 1200; ++i) {
      odd.rows.push_back({Value(static_cast<double>(i % 9)), Value(std::string("one")), Value(),
                          Value(static_cast<double>(i) * 1.25),
                          Value("n" + std::to_string(i % 600)), Value(std::string("bytes")),
                          Value(i)});
    }
    source_.tables["odd"] = odd;
    FakeTable twins;
    twins.schema.columns = {ColumnOf("a", DataType::kInt64), ColumnOf("A", DataType::kInt64),
                            ColumnOf("c", DataType::kInt64)};
    source_.tables["twins"] = twins;
  }

  Result<plan::Plan> Plan(const std::string& text) {
    script_ = text;
    return PlanOf(text, source_);
  }

  // "SQLSTATE message @place [hint]" of every error.
  std::vector<std::string> Errors(const std::string& text) {
    const Result<plan::Plan> plan = Plan(text);
    std::vector<std::string> errors;
    for (const Diagnostic& error : plan.status().diagnostics()) {
      const std::string place =
          error.span.valid()
              ? script_.substr(static_cast<size_t>(error.span.begin),
                               static_cast<size_t>(error.span.end - error.span.begin))
              : "nowhere";
      errors.push_back(error.sqlstate + " " + error.message + " @" + place +
                       (error.hint.empty() ? "" : " [" + error.hint + "]"));
    }
    return errors;
  }

  void StoreModel(const std::string& name, const std::string& statement) {
    const auto plan = Plan(statement);
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    catalog::ModelVersion version;
    version.name = name;
    version.type = plan->train().model().type();
    version.plan = plan->train().SerializeAsString();
    ASSERT_TRUE(source_.models().Put(version, "", false).ok());
  }

  FakeSource source_;
  std::string script_;
};

}  // namespace sluice::planner
