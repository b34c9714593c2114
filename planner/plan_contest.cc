#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "models/metrics/metric.h"
#include "parser/printer.h"
#include "planner/choose.h"
#include "planner/error_list.h"
#include "planner/metric_list.h"
#include "planner/model_spec_internal.h"
#include "planner/plan_contest_internal.h"
#include "planner/plan_train_internal.h"
#include "planner/rare_class_internal.h"

namespace sluice::planner {
namespace {

// With fewer rows, models are judged by folds: a tenth of the rows would be too noisy.
constexpr int64_t kFoldedRows = 4'000;
constexpr uint32_t kFolds = 5;
constexpr double kFraction = 0.1;
constexpr double kMaxValidationRows = 20'000;
// Of more rows, this many are enough to find the best candidate.
constexpr int64_t kMaxRows = 1'000'000;
constexpr int64_t kSampleRows = 500'000;
constexpr int64_t kTreePatience = 10;

bool SetsRowCount(const AttributeSet& attributes) {
  const auto& entries = attributes.entries();
  return std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.second.given &&
           (entry.first.starts_with("split.") || entry.first == "validation.select");
  });
}

parser::Attribute MakeAttribute(const char* name, parser::AttributeValue value) {
  parser::Attribute attribute;
  attribute.name.text = name;
  attribute.name.parts = {name};
  attribute.value = std::move(value);
  return attribute;
}

bool IsTreeModel(const plan::TrainPlan& plan) {
  return FindIn(plan.model().attributes(), "train.num_boost_round") != nullptr;
}

// Adjacent rows often belong to one entity (a town, a customer, a day) and would reveal each other,
// so they are held out together: in many runs, with some rows of each class.
uint32_t RowsTogether(const BoundTrain& bound) {
  constexpr int64_t kMaxTogether = 16;
  constexpr int64_t kMinRuns = 25;
  const int64_t rows = bound.statistics.rows;
  int64_t together = std::min(kMaxTogether, rows / kMinRuns);
  const auto label = bound.select.columns.Find(bound.features.label().column());
  if (label && bound.features.label().kind() == models::LabelPlan::CLASS) {
    for (const auto& [value, share] : bound.statistics.columns[*label].common_values) {
      const auto of_class = static_cast<int64_t>(share * static_cast<double>(rows));
      together = std::min(together, of_class / int64_t{kFolds});
    }
  }
  return static_cast<uint32_t>(std::max<int64_t>(together, 1));
}

// Changes a plan with validation rows of its own to the contest's.
void JudgeBy(const plan::Contest& contest, plan::TrainPlan* plan) {
  *plan->mutable_split() = contest.split();
  const bool folded = plan->folds() > 0;
  plan->set_folds(0);
  plan->set_refits(false);      // the contest's winner is
  plan->clear_weight_decays();  // a candidate of its own
  if (IsTreeModel(*plan) && plan->early_stopping().patience() == 0) {
    const models::Attribute* patience =
        FindIn(plan->model().attributes(), "train.early_stopping_rounds");
    if (patience == nullptr || patience->integer() == 0) {
      SetAttribute("train.early_stopping_rounds", kTreePatience,
                   plan->mutable_model()->mutable_attributes());
    }
    plan->mutable_early_stopping()->set_patience(kTreePatience);
    plan->mutable_early_stopping()->set_metric(contest.metric());
  }
  if (folded) {
    plan->mutable_early_stopping()->set_chosen(true);
  }
}

}  // namespace

bool FillContestRows(const BoundTrain& bound, const plan::TrainPlan& plan, plan::Contest* contest) {
  const bool given = SetsRowCount(bound.attributes);
  *contest->mutable_split() = plan.split();
  plan::Split* split = contest->mutable_split();
  const bool here = plan.strategy().kind() == plan::Strategy::LOCAL;
  contest->set_refits(!given && here);
  if (given) {
    return split->kind() != plan::Split::NONE;
  }
  const int64_t rows = bound.statistics.rows;
  const bool at_random =
      split->kind() == plan::Split::RANDOM ||
      (split->kind() == plan::Split::NONE && bound.features.group_column().empty());
  if (at_random) {
    split->set_kind(plan::Split::RANDOM);
    split->set_fraction(
        std::min(kFraction, kMaxValidationRows / static_cast<double>(std::max<int64_t>(rows, 1))));
    WidenForRareClass(bound, split);
  }
  if (at_random && here && rows < kFoldedRows) {
    // Each fold has rows: in so small a table, each row in turn is of another fold.
    const auto folds = static_cast<uint32_t>(std::clamp<int64_t>(rows, 2, kFolds));
    contest->set_folds(folds);
    split->set_folds(folds);
    split->set_together(RowsTogether(bound));
  }
  if (here && rows > kMaxRows) {
    contest->set_sample_rows(kSampleRows);
  }
  return split->kind() != plan::Split::NONE;
}

Status FillContestMetric(const AttributeSet& attributes, const char* name,
                         const plan::TrainPlan& plan, plan::Contest* contest) {
  const models::Task task = models::TaskOf(plan.model());
  const std::optional<std::string> asked = attributes.Text(name);
  if (!asked) {
    contest->set_metric(task == models::Task::kRegression  ? "rmse"
                        : task == models::Task::kRanking   ? "ndcg"
                        : task == models::Task::kQuantiles ? "pinball_loss"
                                                           : "log_loss");
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const auto names, ReadMetrics(*asked, plan.model(), attributes.SpanOf(name)));
  if (names.size() != 1) {
    return InvalidArgument(fmt::format("{} must be one metric, not {}", name, names.size()))
        .At(attributes.SpanOf(name));
  }
  const std::string canonical = models::Metrics::CanonicalName(names.front());
  contest->set_metric(canonical.empty() ? names.front() : canonical);
  return OkStatus();
}

Result<plan::Candidate> MakeCandidate(const ContestSetup& ground, const plan::TrainPlan& plan,
                                      const plan::Contest& contest, const models::ModelType& type,
                                      const std::vector<parser::Attribute>& settings) {
  parser::TrainStatement statement = ground.request.training;
  parser::Name name;
  name.text = type.name;
  name.parts = {type.name};
  name.span = statement.span;
  statement.model_type = name;
  plan::Candidate candidate;
  std::vector<std::string> told;
  for (const parser::Attribute& setting : settings) {
    statement.attributes.push_back(setting);
    told.push_back(fmt::format("{}={}", setting.name.text, parser::Print(setting.value)));
  }
  candidate.set_settings(fmt::format("{}", fmt::join(told, ", ")));
  const bool here = plan.strategy().kind() == plan::Strategy::LOCAL;
  if (here && !ground.bound.attributes.Given("engine.strategy")) {
    statement.attributes.push_back(MakeAttribute("engine.strategy", {std::string("local"), {}}));
  }
  // A network with few rows has a schedule of its own, for folds.
  const bool deep =
      type.family == models::ModelFamily::kDeep || type.family == models::ModelFamily::kWideDeep;
  if (!SetsRowCount(ground.bound.attributes) && !(deep && contest.folds() > 0)) {
    statement.attributes.push_back(MakeAttribute("split.fraction", {kFraction, {}}));
  }
  ASSIGN_OR_RETURN(const BoundTrain bound, BindTrain(statement, ground.source, ground.models,
                                                     ground.options, &ground.bound));
  ASSIGN_OR_RETURN(*candidate.mutable_plan(),
                   PlanCandidate(statement, bound, ground.options, plan));
  plan::TrainPlan* own = candidate.mutable_plan();
  if (here && own->strategy().kind() != plan::Strategy::LOCAL) {
    return Unimplemented("it takes several processes");
  }
  const bool trees = type.family == models::ModelFamily::kTrees;
  if (!here && own->strategy().kind() == plan::Strategy::LOCAL &&
      (!trees || GrownByWorkers(bound, *own))) {
    *own->mutable_strategy() = plan.strategy();  // each candidate has the job's processes
    if (trees) {
      MakePasses(own->mutable_strategy());
    }
  }
  own->clear_label_trials();  // other scales become candidates
  own->set_statement(plan.statement());
  *own->mutable_given() = plan.given();
  JudgeBy(contest, own);
  return candidate;
}

namespace {

// All candidates of a contest are judged by held-out rows, even where the statement's own choice
// alone would not be; show that type the way it is tried.
void ShowAsCandidate(plan::TrainPlan* plan) {
  const plan::Contest& contest = plan->contest();
  plan->set_threshold(contest.candidates(0).plan().threshold());
  plan->clear_label_trials();
  const auto own = std::find_if(contest.candidates().begin(), contest.candidates().end(),
                                [plan](const plan::Candidate& candidate) {
                                  return candidate.plan().model().type() == plan->model().type();
                                });
  if (plan->strategy().kind() != plan::Strategy::LOCAL) {
    uint32_t servers = plan->strategy().parameter_servers();
    uint32_t most = plan->strategy().max_parameter_servers();
    for (const plan::Candidate& candidate : contest.candidates()) {
      servers = std::max(servers, candidate.plan().strategy().parameter_servers());
      most = std::max(most, candidate.plan().strategy().max_parameter_servers());
    }
    plan->mutable_strategy()->set_parameter_servers(servers);  // for which room is found
    plan->mutable_strategy()->set_max_parameter_servers(most);
  }
  if (own == contest.candidates().end()) {
    return;
  }
  *plan->mutable_model()->mutable_attributes() = own->plan().model().attributes();
  *plan->mutable_early_stopping() = own->plan().early_stopping();
  plan->set_folds(0);
  plan->set_refits(false);
  plan->set_epochs(own->plan().epochs());
  auto* notes = plan->mutable_notes();
  notes->erase(std::remove(notes->begin(), notes->end(), kNeverStops), notes->end());
}

Options WithAllClasses(Options options) {
  options.classes_of_sample = false;
  return options;
}

}  // namespace

Result<plan::Plan> PlanTraining(const parser::TrainStatement& statement,
                                catalog::DataSource& source, catalog::ModelStore& models,
                                const Options& options) {
  ContestRequest request;
  Status errors = ReadContestRequest(statement, &request);
  const bool search = request.search_span.valid();
  const Result<BoundTrain> bound =
      BindTrain(request.training, source, models, search ? WithAllClasses(options) : options);
  errors.Add(bound.status());
  RETURN_IF_ERROR(errors);
  ASSIGN_OR_RETURN(plan::Plan result, PlanTrain(request.training, *bound, source, options));
  plan::TrainPlan* plan = result.mutable_train();
  if (plan->model().features().label().classes_of_sample() &&
      plan->strategy().kind() != plan::Strategy::LOCAL) {
    return PlanTraining(statement, source, models, WithAllClasses(options));
  }
  plan->set_statement(statement.written);
  const ContestSetup ground{request, *bound, source, models, options};
  if (search) {
    if (bound->user_type) {
      return Unimplemented("tune.* does not search over a user-defined model type")
          .At(request.search_span)
          .Hint("train it with each of the settings, into a model of its own");
    }
    RETURN_IF_ERROR(FillSearch(ground, plan));
  } else {
    RETURN_IF_ERROR(FillKinds(ground, plan));
  }
  if (plan->has_contest()) {
    ShowAsCandidate(plan);
  }
  RETURN_IF_ERROR(CheckHeldOutRows(*bound, *plan));
  return result;
}

}  // namespace sluice::planner
