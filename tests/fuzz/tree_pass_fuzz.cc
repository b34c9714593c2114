#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/row_batch.h"
#include "models/features/feature_transform.h"
#include "models/model.pb.h"
#include "models/pass_training.h"
#include "models/trees/gradient_boosting.h"
#include "tests/fuzz/target.h"

// Messages of the passes that grow boosted trees. The first byte says whose they are: a master's to
// a worker (0), a worker's answer to the question of that number (1 to 20), or what an earlier
// training has remembered.
namespace sluice::models {
namespace {

constexpr size_t kRows = 40;
constexpr int kQuestions = 20;

ModelSpec TreesSpec() {
  ModelSpec spec;
  spec.set_type("xgboost.gbtree");
  FeaturePlan& features = *spec.mutable_features();
  for (const char* name : {"a", "b"}) {
    InputColumn* input = features.add_inputs();
    input->set_name(name);
    input->set_type(static_cast<int>(DataType::kDouble));
    Feature* feature = features.add_features();
    feature->set_name(name);
    feature->add_inputs(static_cast<uint32_t>(features.inputs_size() - 1));
    feature->set_kind(Feature::NUMERIC);
    feature->set_scale(1);
  }
  LabelPlan& label = *features.mutable_label();
  label.set_kind(LabelPlan::NUMBER);
  label.set_column("y");
  label.set_scale(1);
  label.set_type(static_cast<int>(DataType::kDouble));
  const auto set = [&spec](const char* name, int64_t value) {
    Attribute* attribute = spec.add_attributes();
    attribute->set_name(name);
    attribute->set_integer(value);
  };
  set("train.num_boost_round", 2);
  set("max_depth", 2);
  set("nthread", 1);
  set("train.early_stopping_rounds", 2);
  return spec;
}

FeatureBatch RowsFrom(size_t from) {
  FeatureBatch batch;
  batch.rows = kRows;
  batch.dense_width = 2;
  for (size_t r = from; r < from + kRows; ++r) {
    batch.dense.push_back(static_cast<float>(r * 37 % 11));
    batch.dense.push_back(static_cast<float>(r * 53 % 7));
    batch.labels.push_back(static_cast<float>(r % 5) + batch.dense.back());
  }
  return batch;
}

Status AddShards(PassSums* sums) {
  const FeatureBatch rows[] = {RowsFrom(0), RowsFrom(kRows)}, held_out = RowsFrom(2 * kRows);
  for (const int64_t shard : {0, 1}) {
    RETURN_IF_ERROR(sums->Add(shard, &rows[shard], &held_out));
  }
  return OkStatus();
}

void TellWorker(const ModelSpec& spec, std::string_view input) {
  const auto sums = PassSums::Make(spec).value();
  const Result<bool> follows = sums->Begin(std::string(input));
  if (follows.ok() && *follows && AddShards(sums.get()).ok()) {
    static_cast<void>(sums->Take());
  }
}

// All answers but the one of this number are right.
PassRun Workers(const ModelSpec& spec, int forged, std::string_view answer) {
  return [sums = std::shared_ptr<PassSums>(PassSums::Make(spec).value()), forged,
          answer = std::string(answer),
          asked = 0](const Pass& pass) mutable -> Result<std::vector<std::string>> {
    if (++asked == forged) {
      return std::vector<std::string>{answer};
    }
    ASSIGN_OR_RETURN(const bool follows, sums->Begin(pass.whole()));
    if (!follows) {
      Broken("a whole pass is enough for every worker");
    }
    RETURN_IF_ERROR(AddShards(sums.get()));
    return std::vector<std::string>{sums->Take()};
  };
}

void GoOnHere(const ModelSpec& spec, const TrainingMemory& memory) {
  const FeatureBatch rows = RowsFrom(0), held_out = RowsFrom(kRows), end;
  const auto source_of = [&end](const FeatureBatch& batch) {
    return GradientBoosting::BatchSource{
        .next = [&batch, &end, read = false]() mutable -> Result<const FeatureBatch*> {
          return std::exchange(read, true) ? &end : &batch;
        },
        .rewind = [] { return OkStatus(); }};
  };
  const auto trees = GradientBoosting::Make(spec).value();
  static_cast<void>(trees->Train(source_of(rows), source_of(held_out), {}, {}, {}, memory));
}

void HearTreePass(std::string_view input) {
  static const ModelSpec spec = TreesSpec();
  const int whose = input.empty() ? 0 : static_cast<uint8_t>(input.front());
  input.remove_prefix(input.empty() ? 0 : 1);
  if (whose == 0) {
    TellWorker(spec, input);
    return;
  }
  const auto trees = GradientBoosting::Make(spec).value();
  PassSearch search;
  if (whose <= kQuestions) {
    search.run = Workers(spec, whose, input);
  } else {
    search.run = Workers(spec, 0, {});
    const size_t first = std::min(static_cast<size_t>(whose) * 8, input.size());
    search.memory.remembered = {std::string(input.substr(0, first)),
                                std::string(input.substr(first))};
    GoOnHere(spec, search.memory);
  }
  static_cast<void>(trees->TrainByPasses(search, {}, true, {}, {}, {}));
}

}  // namespace
}  // namespace sluice::models

FUZZ_TARGET(tree_pass) {
  sluice::models::HearTreePass({reinterpret_cast<const char*>(data), size});
  return 0;
}
