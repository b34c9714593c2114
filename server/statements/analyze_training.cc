#include "server/statements/analyze_training.h"

#include <fmt/core.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/job_store.h"
#include "executor/executor.h"
#include "executor/jobs/job_profile.h"
#include "executor/result_rows.h"
#include "planner/explain.h"
#include "planner/plan.pb.h"
#include "server/statements/job_place.h"
#include "server/statements/plan_rows.h"
#include "server/statements/session.h"

namespace sluice::server {
namespace {

// Keeps the row that a training answers with; passes messages on.
class AnswerKeeper final : public executor::ResultSink {
 public:
  explicit AnswerKeeper(executor::ResultSink& client) : client_(client) {}

  Status Header(const Schema& schema) override {
    schema_ = schema;
    return OkStatus();
  }
  Status Rows(const RowBatch& batch) override {
    for (size_t i = 0; i < schema_.columns.size() && batch.rows > 0; ++i) {
      cells_.push_back(batch.columns[i].ValueAt(0));
    }
    return OkStatus();
  }
  void Notice(const std::string& message) override { client_.Notice(message); }
  void Progress(const elastic::Progress& progress) override { client_.Progress(progress); }
  void OutlivesClient(int64_t job) override { client_.OutlivesClient(job); }

  // By column, as text; NULLs are left out.
  std::vector<std::pair<std::string, std::string>> Texts() const {
    std::vector<std::pair<std::string, std::string>> texts;
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (!IsNull(cells_[i])) {
        texts.emplace_back(schema_.columns[i].name,
                           FormatValue(cells_[i], schema_.columns[i].type));
      }
    }
    return texts;
  }
  Result<int64_t> job() const {
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (schema_.columns[i].name == "job" && std::holds_alternative<int64_t>(cells_[i])) {
        return std::get<int64_t>(cells_[i]);
      }
    }
    return Internal("the training did not say which job it was");
  }

 private:
  executor::ResultSink& client_;
  Schema schema_;
  std::vector<Value> cells_;
};

// The plan as EXPLAIN (FORMAT JSON) shows it, "result" and "profile" (seconds).
std::string Json(const plan::Plan& plan, const AnswerKeeper& answer, const Profile& profile) {
  rapidjson::StringBuffer buffer;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> writer(buffer);
  writer.SetIndent(' ', 2);
  const auto key = [&writer](std::string_view name) {
    writer.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
  };
  writer.StartObject();
  key("plan");
  const std::string text = planner::ExplainJson(plan);
  writer.RawValue(text.data(), text.size(), rapidjson::kObjectType);
  key("result");
  writer.StartObject();
  for (const auto& [name, value] : answer.Texts()) {
    key(name);
    writer.String(value.c_str());
  }
  writer.EndObject();
  key("profile");
  writer.StartObject();
  for (size_t i = 0; i < kPhases; ++i) {
    key(PhaseName(Profile::At(i)));
    writer.Double(profile.Seconds(Profile::At(i)));
  }
  writer.EndObject();
  writer.EndObject();
  return buffer.GetString();
}

void AddText(const AnswerKeeper& answer, const Profile& profile, executor::ResultRows* rows) {
  rows->Add({"Result:"});
  for (const auto& [name, value] : answer.Texts()) {
    rows->Add({fmt::format("  {:<13} {}", name, value)});
  }
  rows->Add({"Profile:"});
  for (const auto& [phase, seconds] : executor::DescribeProfile(profile)) {
    rows->Add({fmt::format("  {:<13} {}", phase, seconds)});
  }
}

}  // namespace

Status CheckAnalyzable(const parser::ExplainPlanStatement& statement) {
  RETURN_IF_ERROR(CheckExplainable(statement.statement));
  return std::holds_alternative<parser::TrainStatement>(statement.statement)
             ? OkStatus()
             : Unimplemented("EXPLAIN ANALYZE is for trainings")
                   .At(statement.span)
                   .Hint("EXPLAIN without ANALYZE shows the plan of this statement");
}

Status AnalyzeTraining(const parser::ExplainPlanStatement& statement, const plan::Plan& plan,
                       executor::Context& context, Session& session, executor::ResultSink& sink) {
  AnswerKeeper answer(sink);
  plan::Plan trained = plan;
  if (const auto plan_anew = std::exchange(context.plan_with_all_classes, nullptr)) {
    context.plan_with_all_classes = [&trained, plan_anew]() -> Result<plan::Plan> {
      ASSIGN_OR_RETURN(trained, plan_anew());
      return trained;
    };
  }
  RETURN_IF_ERROR(RunJob(plan, context, session, answer, true));
  ASSIGN_OR_RETURN(const int64_t job, answer.job());
  ASSIGN_OR_RETURN(const std::vector<catalog::JobMetric> metrics,
                   context.catalog.JobsFor(context.stop)->Metrics(job));
  const Profile profile = executor::ProfileOf(metrics).value_or(Profile());
  executor::ResultRows rows(ExplainResult(statement));
  if (statement.json) {
    rows.Add({Json(trained, answer, profile)});
  } else {
    AddPlan(trained, session, &rows);
    AddText(answer, profile, &rows);
  }
  RETURN_IF_ERROR(rows.SendTo(sink));
  sink.Done("EXPLAIN");
  return OkStatus();
}

}  // namespace sluice::server
