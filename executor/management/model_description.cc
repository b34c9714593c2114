#include "executor/management/model_description.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/value.h"
#include "catalog/model_store.h"
#include "executor/contest/contest_description.h"
#include "executor/scoring/decision_threshold.h"
#include "models/metrics/decision_table.h"
#include "models/registry/registry.h"
#include "planner/explain.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

std::string CategorizerText(const models::Categorizer& categorizer) {
  const uint32_t buckets = categorizer.buckets();
  switch (categorizer.kind()) {
    case models::Categorizer::VOCABULARY:
      return fmt::format("vocabulary of {}{}", categorizer.vocabulary_size(),
                         categorizer.any_case() ? ", in any case" : "");
    case models::Categorizer::IDENTITY:
      return fmt::format("ids below {}", buckets);
    case models::Categorizer::HASH:
      return fmt::format("hashed into {}", buckets);
    case models::Categorizer::BUCKET:
      return fmt::format("cut at {} boundaries", categorizer.boundaries_size());
    case models::Categorizer::CROSS:
      return fmt::format("cross of {} into {}", categorizer.members_size(), buckets);
    case models::Categorizer::TIME_PART:
      return fmt::format("{} of the time", categorizer.time_part());
    default:  // from a newer version
      return fmt::format("{} buckets", buckets);
  }
}

std::string FeatureText(const models::Feature& feature) {
  std::string text;
  switch (feature.kind()) {
    case models::Feature::NUMERIC:
      text = !feature.time_part().empty() ? fmt::format("{} of the time", feature.time_part())
             : feature.logarithm()        ? "numeric, log scale"
                                          : "numeric";
      text += feature.decimal_comma() ? ", decimal comma" : "";
      text += feature.centred() ? fmt::format(", less {}", FormatDouble(feature.offset())) : "";
      text += feature.null_indicator() ? ", NULL indicator" : "";
      break;
    case models::Feature::TENSOR:
      text = fmt::format("tensor of {} numbers", feature.width());
      break;
    default:
      text = feature.format().kind() == models::TensorFormat::TEXT
                 ? fmt::format("words, hashed into {}", feature.categorizer().buckets())
                 : "category, " + CategorizerText(feature.categorizer());
      text += feature.representation() == models::Feature::EMBEDDING
                  ? fmt::format(", embedding of {}", feature.dimension())
                  : ", indicator";
      break;
  }
  if (feature.part() == models::Feature::WIDE) {
    text += ", wide part only";
  } else if (feature.part() == models::Feature::DEEP) {
    text += ", deep part only";
  } else if (!feature.tower().empty()) {
    text += fmt::format(", of the {}", feature.tower());
  }
  return text;
}

// How many training rows had NULL.
std::string NullText(const models::Feature& feature, const models::FeaturePlan& plan) {
  double share = 0;
  for (const uint32_t input : feature.inputs()) {
    if (input < static_cast<uint32_t>(plan.inputs_size())) {
      share = std::max(share, plan.inputs(static_cast<int>(input)).null_share());
    }
  }
  return share > 0 ? fmt::format(", {:.3g} % NULL", 100 * share) : "";
}

std::string LabelText(const models::LabelPlan& label) {
  if (label.kind() != models::LabelPlan::CLASS) {
    const char* const scale = label.curve() == models::LabelPlan::ROOT ? "its square root"
                              : label.curve() == models::LabelPlan::LOGARITHM
                                  ? "the logarithm of 1 + it"
                                  : nullptr;
    return scale == nullptr ? label.column()
                            : fmt::format("{}, learnt as {}{}", label.column(), scale,
                                          label.correction() != 0 && label.correction() != 1
                                              ? fmt::format("; predictions are taken times {:.6g}",
                                                            label.correction())
                                              : "");
  }
  constexpr int kShownClasses = 10;  // more would not help a reader
  std::string text = fmt::format("{} with {} classes: ", label.column(), label.classes_size());
  for (int i = 0; i < label.classes_size() && i < kShownClasses; ++i) {
    text += (i == 0 ? "" : ", ") + label.classes(i);
  }
  return text + (label.classes_size() > kShownClasses ? ", ..." : "");
}

std::string OptimizerText(const models::OptimizerSpec& optimizer) {
  std::string text = optimizer.name();
  for (const models::Attribute& argument : optimizer.arguments()) {
    text += fmt::format(" {}={}", argument.name(), planner::DescribeAttribute(argument));
  }
  return text;
}

// The models that a contest tried, and their results.
void AddContest(const plan::TrainPlan& plan, std::vector<DescriptionLine>* lines) {
  if (!plan.has_contest()) {
    return;
  }
  const plan::Contest& contest = plan.contest();
  lines->push_back({"contest", "result", plan.chosen_because()});
  for (const plan::Candidate& candidate : contest.candidates()) {
    lines->push_back({"candidate", candidate.name(), DescribeCandidate(contest, candidate)});
  }
}

// What the statement specified, and what was chosen where it did not.
void AddDecisions(const plan::TrainPlan& plan, std::vector<DescriptionLine>* lines) {
  const models::ModelSpec& model = plan.model();
  const auto add = [lines](const char* section, std::string name, std::string value) {
    lines->push_back({section, std::move(name), std::move(value)});
  };
  std::set<std::string> given;
  for (const models::Attribute& attribute : plan.given()) {
    given.insert(attribute.name());
    add("given", attribute.name(), planner::DescribeAttribute(attribute));
  }
  if (!plan.chosen_because().empty() && !plan.has_contest()) {  // shown with the candidates
    add("chosen", "type", plan.chosen_because());
  }
  for (const models::Attribute& attribute : model.attributes()) {
    if (given.count(attribute.name()) == 0 && planner::IsWorthShowing(attribute, model)) {
      add("chosen", attribute.name(), planner::DescribeAttribute(attribute));
    }
  }
  if (plan.optimum()) {
    add("chosen", "optimizer", "none: these weights have the least loss over all rows");
  }
  const models::ModelType* type = models::FindModelType(model.type());
  const bool deep = type == nullptr || type->family != models::ModelFamily::kLinear;
  const bool wide = type == nullptr || type->family != models::ModelFamily::kDeep;
  if (!plan.optimum() && deep && !model.deep_optimizer().name().empty()) {
    add("chosen", "optimizer", OptimizerText(model.deep_optimizer()));
  }
  if (!plan.optimum() && wide && !model.wide_optimizer().name().empty()) {
    add("chosen", deep ? "wide optimizer" : "optimizer", OptimizerText(model.wide_optimizer()));
  }
  if (model.members_size() == 0) {  // in a blend each member has its own
    for (auto& [name, what] : planner::DescribeSchedule(plan)) {
      add("chosen", name, what);
    }
  }
  add("chosen", "validation", planner::DescribeValidation(plan));
}

std::string NumberText(double value) {
  return fmt::format("{:.6g}", value);
}

// Each next to that of the previous version; those in a table of decisions become one line.
void AddMetrics(const catalog::ModelVersion& version, const plan::TrainPlan& plan,
                const catalog::ModelVersion* before, std::vector<DescriptionLine>* lines) {
  if (!plan.baseline().empty()) {
    lines->push_back({"metric", "baseline", plan.baseline()});
  }
  const std::vector<std::string> counts = models::DecisionMetrics();
  const std::vector<models::Decision> decisions = models::DecisionTable(version.metrics);
  for (const auto& [name, value] : version.metrics) {
    const bool in_table =
        !decisions.empty() && std::find(counts.begin(), counts.end(), name) != counts.end();
    if (in_table || std::isnan(value)) {  // NaN: the validation rows do not determine it
      continue;
    }
    std::string text = NumberText(value);
    for (const auto& [known, old] :
         before == nullptr ? decltype(version.metrics)() : before->metrics) {
      if (known == name) {
        text += fmt::format(" (version {}: {})", before->version, NumberText(old));
      }
    }
    lines->push_back({"metric", name, std::move(text)});
  }
  const models::LabelPlan& label = plan.model().features().label();
  if (decisions.empty() || label.classes_size() != 2) {
    return;
  }
  const std::optional<double> threshold = DecisionThreshold(plan, version);
  const std::string at = threshold ? fmt::format(", decided from {:.4g} on", *threshold) : "";
  const auto count = [&version](std::string_view name) {
    const auto found = std::find_if(version.metrics.begin(), version.metrics.end(),
                                    [name](const auto& one) { return one.first == name; });
    return found == version.metrics.end() ? std::string("?") : NumberText(found->second);
  };
  lines->push_back(
      {"confusion", fmt::format("actual '{}'{}", label.classes(1), at),
       fmt::format("predicted '{}': {}, '{}': {}", label.classes(1), count("true_positives"),
                   label.classes(0), count("false_negatives"))});
  lines->push_back(
      {"confusion", fmt::format("actual '{}'{}", label.classes(0), at),
       fmt::format("predicted '{}': {}, '{}': {}", label.classes(1), count("false_positives"),
                   label.classes(0), count("true_negatives"))});
  for (const models::Decision& one : decisions) {
    lines->push_back(
        {"threshold", fmt::format("{}", one.threshold),
         fmt::format("precision {:.3f}, recall {:.3f}, F1 {:.3f}, {:.3g} % of the rows said to be "
                     "'{}'",
                     one.precision(), one.recall(), one.f1(), 100 * one.taken(),
                     label.classes(1))});
  }
}

// The predicted classes for the rows of each class, most frequent first.
void AddConfusion(const plan::TrainPlan& plan, std::vector<DescriptionLine>* lines) {
  constexpr size_t kShown = 6;
  const models::LabelPlan& label = plan.model().features().label();
  std::map<uint32_t, std::vector<const plan::Confusion*>> by_actual;
  for (const plan::Confusion& cell : plan.confusion()) {
    if (std::max(cell.actual(), cell.predicted()) < static_cast<uint32_t>(label.classes_size())) {
      by_actual[cell.actual()].push_back(&cell);
    }
  }
  for (auto& [actual, cells] : by_actual) {
    std::stable_sort(cells.begin(), cells.end(),
                     [](const auto* a, const auto* b) { return a->rows() > b->rows(); });
    std::string text;
    double others = 0;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i >= kShown) {
        others += cells[i]->rows();
        continue;
      }
      text += fmt::format("{}'{}': {}", i == 0 ? "predicted " : ", ",
                          label.classes(static_cast<int>(cells[i]->predicted())),
                          NumberText(cells[i]->rows()));
    }
    text += others > 0 ? ", others: " + NumberText(others) : "";
    lines->push_back({"confusion",
                      fmt::format("actual '{}'", label.classes(static_cast<int>(actual))),
                      std::move(text)});
  }
}

// The meaning of the figures next to the features.
std::string ImportanceText(const plan::TrainPlan& plan, bool gains) {
  const plan::FeatureEffects& effects = plan.effects();
  if (gains) {
    return "the share of the gain of all splits that are a feature's";
  }
  const std::string rows =
      fmt::format("{} {} rows", effects.rows(), effects.validation() ? "validation" : "training");
  if (!effects.linear()) {
    return fmt::format("by how much the loss grows on {} where a feature's values are shuffled",
                       rows);
  }
  const models::LabelPlan& label = plan.model().features().label();
  return fmt::format(
      "how far a feature's values spread the prediction on {}; + and -: what one standard "
      "deviation adds to {}",
      rows,
      label.kind() == models::LabelPlan::CLASS && label.classes_size() == 2
          ? fmt::format("the log odds of '{}'", label.classes(1))
          : label.column());
}

std::string EffectText(const plan::FeatureEffects& effects, const std::string& feature) {
  for (const plan::FeatureEffect& effect : effects.features()) {
    if (effect.feature() != feature) {
      continue;
    }
    std::string text = fmt::format(", importance {:.3g} %", 100 * effect.share());
    if (effect.has_slope()) {
      text += fmt::format(", {:+.3g}", effect.slope());
    }
    if (effect.most() != effect.least()) {
      text += fmt::format(", most for '{}', least for '{}'", effect.most(), effect.least());
    }
    return text;
  }
  return "";
}

}  // namespace

std::vector<DescriptionLine> DescribeVersion(const catalog::ModelVersion& version,
                                             const plan::TrainPlan& plan,
                                             const std::map<std::string, double>& gains,
                                             const catalog::ModelVersion* before) {
  std::vector<DescriptionLine> lines;
  const auto add = [&lines](std::string section, std::string name, std::string value) {
    lines.push_back({std::move(section), std::move(name), std::move(value)});
  };
  const models::ModelSpec& model = plan.model();
  add("model", "name", version.name);
  add("model", "version",
      fmt::format("{}{}", version.version, version.live ? " (live)" : " (not live)"));
  add("model", "type", version.type);
  if (model.features().label().kind() != models::LabelPlan::NONE) {
    add("model", "label", LabelText(model.features().label()));
  }
  if (plan.parameter_count() > 0) {  // trees have none that could be counted in advance
    add("model", "parameters", fmt::format("{}", plan.parameter_count()));
  }
  if (model.has_graph()) {
    add("model", "graph",
        fmt::format("{} operators, {} dense parameters, {} tables", model.graph().nodes_size(),
                    model.graph().parameters_size(), model.graph().tables_size()));
  }
  if (!plan.threshold().empty()) {
    const std::optional<double> threshold = DecisionThreshold(plan, version);
    add("model", "decides",
        planner::DescribeThreshold(plan) +
            (threshold ? fmt::format(" ({:.6g})", *threshold) : std::string()));
  }
  if (!model.calibration().method().empty()) {
    add("model", "calibrated", planner::DescribeCalibration(model.calibration()));
  }
  add("model", "bytes", fmt::format("{}", version.weights_bytes));
  if (!model.loss().empty() && model.members_size() == 0) {  // trees have an objective
    add("model", "loss", model.loss());
  }
  if (!gains.empty() || plan.effects().features_size() > 0) {
    add("model", "importance", ImportanceText(plan, !gains.empty()));
  }
  AddContest(plan, &lines);
  for (const models::Feature& feature : model.features().features()) {
    const auto share = gains.find(feature.name());
    const std::string worth =
        gains.empty()
            ? EffectText(plan.effects(), feature.name())
            : fmt::format(", importance {:.3g} %", share == gains.end() ? 0 : 100 * share->second);
    add("feature", feature.name(),
        FeatureText(feature) + NullText(feature, model.features()) + worth);
  }
  for (const plan::LeftOut& column : plan.left_out()) {
    add("left out", column.column(), column.reason());
  }
  AddDecisions(plan, &lines);
  AddMetrics(version, plan, before, &lines);
  AddConfusion(plan, &lines);
  for (const std::string& warning : plan.warnings()) {
    add("warning", "", warning);
  }
  for (const std::string& note : plan.told()) {
    add("note", "", note);
  }
  add("lineage", "statement", version.statement);
  add("lineage", "job", fmt::format("{}", version.job));
  add("lineage", "rows trained", fmt::format("{}", version.rows));
  add("lineage", "created", FormatTimestamp(version.created_micros));
  add("lineage", "sha256 of the weights", version.weights_sha256);
  if (!version.lineage.empty()) {
    add("lineage", "details", version.lineage);
  }
  return lines;
}

}  // namespace sluice::executor
