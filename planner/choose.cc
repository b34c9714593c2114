#include "planner/choose.h"

#include <fmt/core.h>

#include <algorithm>

#include "catalog/data_source.h"
#include "planner/choose_internal.h"
#include "planner/plan.pb.h"

namespace sluice::planner {
namespace {

// With validation rows to stop by, a network trains at most this many epochs, or until this many
// rows have been trained (some ten seconds): most tables are at their best after 20 to 100 epochs.
constexpr int64_t kMaxEpochs = 200;
constexpr int64_t kMaxTrainedRows = 30'000'000;
// Without validation rows: until about this many rows have been trained.
constexpr int64_t kWantedRows = 600'000;
// Epochs without improvement after which the learning rate is lowered; after three times as many,
// when lowering it twice has not helped, the training ends.
constexpr uint32_t kPlateau = 3;
constexpr uint32_t kPatience = 3 * kPlateau;

// Models of fewer rows are judged by folds: the metric of a tenth of them would be noise. With
// fewer than the second number, a fold may lack a class.
constexpr int64_t kFoldedRows = 4'000;
constexpr int64_t kMinFoldedRows = 50;
constexpr uint32_t kFolds = 5;
// Limits for a fold's training steps, in all and without improvement. The smallest tables get fewer
// passes: what a network memorises from them helps with rows similar to them, but not with others
// (housing, whose last rows are other towns: RMSE 6.1 after 50 epochs, 9.0 after 150).
constexpr int64_t kMaxFoldSteps = 6'000;
constexpr int64_t kFoldPatienceSteps = 400;
constexpr int64_t kMaxFoldEpochs = 300;
constexpr int64_t kMaxEpochsOfFewRows = 50;

// Below this number of rows none are set aside: a hundred validation rows tell little, and training
// would miss them.
constexpr int64_t kMinSplitRows = 1'000;
// A network with so few rows is trained for about this many steps, which suits 32,560 rows, too:
// after 200 epochs it has memorised housing's 400 rows (RMSE 10.4, against 6.5 after 32 epochs).
constexpr int64_t kWantedSteps = 400;
// A linear model with so few rows is cheap to train to its optimum, in steps over all rows at once.
constexpr uint32_t kExactEpochs = 2'000;
constexpr int64_t kSmallTableRows = 10'000;
constexpr double kSmallTableFraction = 0.1;
constexpr double kFraction = 0.05;
// The share of rows that decides when a network stops: with 1,600 rows of the census, one seed in
// four stops after the second epoch.
constexpr double kStoppingFraction = 0.1;
// Enough for an AUC to three digits; more rows would only cost time and memory.
constexpr double kMaxValidationRows = 20'000;

}  // namespace

Schedule ChooseSchedule(models::ModelFamily family, int64_t rows, bool epochs_open,
                        bool validates) {
  const bool linear = family == models::ModelFamily::kLinear;
  const bool trees = family == models::ModelFamily::kTrees;
  const int64_t some_rows = std::max<int64_t>(rows, 1);
  Schedule schedule;
  schedule.batch_size = rows < 2'000 ? 32 : rows < 10'000 ? 128 : 256;
  if (rows < kMinSplitRows && linear && epochs_open) {
    schedule.batch_size = Unsigned(some_rows);
    schedule.epochs = kExactEpochs;
    return schedule;
  }
  if (epochs_open && validates && !trees) {
    schedule.epochs = Unsigned(std::clamp(kMaxTrainedRows / some_rows, int64_t{1}, kMaxEpochs));
    if (schedule.epochs > kPlateau) {
      schedule.patience = kPatience;
      schedule.plateau = kPlateau;
    }
    return schedule;
  }
  int64_t epochs = (kWantedRows + some_rows - 1) / some_rows;
  if (rows < kMinSplitRows && !linear) {
    epochs = kWantedSteps * schedule.batch_size / some_rows;
  }
  schedule.epochs = Unsigned(std::clamp(epochs, int64_t{1}, kMaxEpochs));
  return schedule;
}

uint32_t ChooseFolds(int64_t rows) {
  return rows >= kMinFoldedRows && rows < kFoldedRows ? kFolds : 0;
}

Schedule ChooseFoldSchedule(int64_t rows) {
  Schedule schedule;
  schedule.batch_size = ChooseSchedule(models::ModelFamily::kDeep, rows, true, true).batch_size;
  const int64_t steps = std::max<int64_t>(rows / schedule.batch_size, 1);
  // With so few rows that 400 steps are more than 50 epochs, allow as many epochs as that takes.
  const int64_t most =
      rows < kMinSplitRows ? std::max(kMaxEpochsOfFewRows, kWantedSteps / steps) : kMaxFoldEpochs;
  schedule.epochs = Unsigned(std::clamp(kMaxFoldSteps / steps, int64_t{1}, most));
  schedule.patience =
      Unsigned(std::clamp(kFoldPatienceSteps / steps, int64_t{kPatience}, kMaxFoldEpochs));
  return schedule;
}

Status ChooseSplit(const AttributeSet& attributes, models::ModelFamily family, int64_t rows,
                   const std::string& group_column, uint64_t seed, plan::Split* split) {
  split->set_seed(
      static_cast<uint64_t>(attributes.Integer("split.seed").value_or(static_cast<int64_t>(seed))));
  const std::string kind = attributes.Text("split.kind").value_or("auto");
  const std::optional<double> asked = attributes.Number("split.fraction");
  const bool deep =
      family == models::ModelFamily::kDeep || family == models::ModelFamily::kWideDeep;
  const bool stops =
      deep && !attributes.Given("train.epoch") && !attributes.Given("train.max_steps");
  const double small = rows < kSmallTableRows ? kSmallTableFraction
                       : stops                ? kStoppingFraction
                                              : kFraction;
  const double chosen =
      std::min(small, kMaxValidationRows / static_cast<double>(std::max<int64_t>(rows, 1)));
  split->set_fraction(asked.value_or(chosen));
  const bool by_select = attributes.Text("validation.select").has_value();
  const bool no_share = by_select || kind == "none" || kind == "column";
  for (const char* name : {"split.fraction", "split.seed"}) {
    const bool fixed = kind == "time" && std::string_view(name) == "split.seed";
    const bool none = std::string_view(name) == "split.fraction" && asked && *asked <= 0;
    if (attributes.Given(name) && !none && (no_share || fixed)) {
      return Conflict(
                 attributes, name,
                 fmt::format("{} has nothing to decide: {} says what the validation rows are", name,
                             by_select ? std::string("validation.select")
                                       : fmt::format("split.kind='{}'", kind)))
          .Hint("leave it out");
    }
  }
  if (const auto select = attributes.Text("validation.select")) {
    if (kind != "auto") {
      return Conflict(attributes, "split.kind",
                      "split.kind and validation.select both say what the validation rows are")
          .Hint("leave one of them out");
    }
    split->set_kind(plan::Split::SELECT);
    split->set_select(*select);
    split->set_fraction(0);
    return OkStatus();
  }
  const std::optional<std::string> column = attributes.Text("split.column");
  const bool by_column = kind == "hash" || kind == "time" || kind == "column";
  if (by_column && !column) {
    return Conflict(attributes, "split.kind",
                    fmt::format("split.kind='{}' needs the attribute split.column", kind));
  }
  if (column && !by_column) {
    return Conflict(
        attributes, "split.column",
        fmt::format("split.column is for split.kind hash, time or column, not {}", kind));
  }
  split->set_column(column.value_or(""));
  if (kind == "hash") {
    split->set_kind(plan::Split::HASH);
  } else if (kind == "time") {
    split->set_kind(plan::Split::TIME);
  } else if (kind == "column") {
    split->set_kind(plan::Split::COLUMN);
    split->set_fraction(0);
  } else if (kind == "none" || (asked && *asked <= 0) ||
             (kind == "auto" && !asked && rows < kMinSplitRows)) {
    split->set_kind(plan::Split::NONE);
    split->set_fraction(0);
  } else if (!group_column.empty()) {
    if (kind == "random") {
      return Conflict(attributes, "split.kind",
                      fmt::format("split.kind='random' would tear the rows of one query apart, and "
                                  "{} is the group column",
                                  group_column))
          .Hint(fmt::format("leave split.kind out: the split is by hash of {}", group_column));
    }
    split->set_kind(plan::Split::HASH);  // the rows of one query must stay together
    split->set_column(group_column);
  } else {
    split->set_kind(plan::Split::RANDOM);
  }
  return OkStatus();
}

}  // namespace sluice::planner
