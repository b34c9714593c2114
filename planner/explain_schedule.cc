#include <fmt/core.h>
#include <fmt/ranges.h>

#include "models/registry/registry.h"
#include "planner/explain_internal.h"
#include "planner/grouped_number.h"

namespace sluice::planner {
namespace {

std::string NameOfMetric(const std::string& metric) {
  return metric == "own_loss" ? "own_loss, the mean of loss() over the validation rows" : metric;
}

std::string ScheduleOf(const plan::TrainPlan& plan) {
  if (plan.optimum()) {
    return plan.refits() ? "to the least loss over the training rows; then over all rows"
                         : "to the least loss over all training rows";
  }
  const bool open = plan.early_stopping().plateau() > 0 || plan.folds() > 0;
  std::string text = fmt::format("{}{} epoch{} of batches of {}{}", open ? "at most " : "",
                                 plan.epochs(), plan.epochs() == 1 ? "" : "s", plan.batch_size(),
                                 plan.shuffle() ? ", shuffled" : "");
  if (plan.folds() > 0) {
    text += "; then on all rows for as many as were best over the folds";
  }
  if (plan.refits()) {
    text += "; then on all rows for as many as were best";
  }
  if (plan.weight_decays_size() > 0) {
    text += fmt::format("; with a weight decay of {} (AdamW), too: the folds decide",
                        fmt::join(plan.weight_decays(), " and "));
  }
  if (plan.max_steps() > 0) {
    text += fmt::format(", at most {} steps", GroupDigits(plan.max_steps()));
  }
  return text;
}

}  // namespace

bool IsWorthShowing(const models::Attribute& attribute, const models::ModelSpec& model) {
  const std::string& name = attribute.name();
  return name != "model.loss_reduction" && name != "train.nthread" && name != "verbosity" &&
         name != "importance_type" && (name != "loss.delta" || model.loss() == "Huber");
}

std::string DescribeValidation(const plan::TrainPlan& plan) {
  const bool contest = plan.has_contest();
  const plan::Split& split = contest ? plan.contest().split() : plan.split();
  const uint32_t folds = contest ? plan.contest().folds() : plan.folds();
  return folds == 0
             ? DescribeSplit(split)
             : fmt::format("{} folds{} (seed {}), each judged by {} of the others", folds,
                           split.together() > 1
                               ? fmt::format(" of {} neighbouring rows at a time", split.together())
                               : "",
                           split.seed(),
                           contest                                           ? "models"
                           : plan.optimum() || models::IsTrees(plan.model()) ? "a model"
                                                                             : "a network");
}

std::string DescribeCalibration(const models::Calibration& calibration) {
  const std::string how = calibration.method() == "platt"
                              ? "by Platt's method: a curve of two numbers for each class"
                              : "by isotonic regression: any curve that rises, for each class";
  if (calibration.curves_size() == 0) {
    return how + ", fitted on the validation rows";
  }
  return how + fmt::format(
                   ", fitted on {} validation rows: log loss {:.6g} before, {:.6g} after; "
                   "Brier score {:.6g} before, {:.6g} after",
                   calibration.rows(), calibration.log_loss_before(), calibration.log_loss_after(),
                   calibration.brier_before(), calibration.brier_after());
}

std::vector<std::pair<std::string, std::string>> DescribeSchedule(const plan::TrainPlan& plan) {
  std::vector<std::pair<std::string, std::string>> lines;
  const plan::EarlyStopping& stopping = plan.early_stopping();
  const bool trees = models::IsTrees(plan.model());
  if (!trees) {
    lines.emplace_back("schedule", ScheduleOf(plan));
  }
  if (stopping.patience() > 0) {
    lines.emplace_back(
        "stops", fmt::format("after {} {} without a better {}{}", stopping.patience(),
                             trees ? "rounds" : "epochs", NameOfMetric(stopping.metric()),
                             !trees ? ""
                             : plan.folds() > 0
                                 ? "; then on all rows for as many as were best in the middle fold"
                             : plan.refits() ? "; then on all rows for as many as were best"
                                             : ""));
  }
  if (const uint32_t plateau = stopping.plateau(); plateau > 0) {
    lines.emplace_back(
        "slows", fmt::format("learning rate x 0.3 after {} epoch{} without a better {}", plateau,
                             plateau == 1 ? "" : "s", stopping.metric()));
  }
  return lines;
}

}  // namespace sluice::planner
