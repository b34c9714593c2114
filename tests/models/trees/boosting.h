#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "models/trees/gradient_boosting.h"
#include "tests/models/networks/network_specs.h"

namespace sluice::models {

// Returns the batches of a list, pass after pass.
class Batches {
 public:
  explicit Batches(std::vector<FeatureBatch> batches,
                   size_t most_kept = GradientBoosting::BatchSource().most_kept)
      : batches_(std::move(batches)), most_kept_(most_kept) {}
  GradientBoosting::BatchSource Source() {
    return {[this]() -> Result<const FeatureBatch*> {
              return next_ < batches_.size() ? &batches_[next_++] : &end_;
            },
            [this] {
              next_ = 0;
              ++rewinds_;
              return OkStatus();
            },
            most_kept_};
  }
  int rewinds() const { return rewinds_; }

 private:
  std::vector<FeatureBatch> batches_;
  const size_t most_kept_;
  FeatureBatch end_;
  size_t next_ = 0;
  int rewinds_ = 0;
};

inline void SetInteger(ModelSpec* spec, const std::string& name, int64_t value) {
  Attribute* attribute = spec->add_attributes();
  attribute->set_name(name);
  attribute->set_integer(value);
}

inline ModelSpec TreeSpec(const std::string& type, int rounds = 10) {
  ModelSpec spec = Spec(type);
  SetInteger(&spec, "train.num_boost_round", rounds);
  SetInteger(&spec, "nthread", 1);
  return spec;
}

inline std::unique_ptr<GradientBoosting> MakeTrees(const ModelSpec& spec) {
  auto made = GradientBoosting::Make(spec);
  EXPECT_TRUE(made.ok()) << made.status().ToString();
  return made.ok() ? std::move(made).value() : nullptr;
}

// Two numbers and a category with four values; all three determine one of `classes` classes.
inline FeatureBatch ClassRows(size_t rows, uint32_t seed, int classes = 2) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  FeatureBatch batch;
  batch.rows = rows;
  batch.dense_width = 2;
  batch.slots.resize(1);
  for (size_t r = 0; r < rows; ++r) {
    const float a = normal(random);
    const float b = r % 10 == 0 ? NAN : normal(random);
    const auto c = static_cast<uint32_t>(random() % 4);
    batch.dense.insert(batch.dense.end(), {a, b});
    batch.slots[0].ids.push_back(c);
    const float score = a + (std::isnan(b) ? 1.5f : b * b) + (c == 2 ? 2.0f : 0.0f);
    batch.labels.push_back(
        static_cast<float>(std::clamp(static_cast<int>(std::floor(score)), 0, classes - 1)));
  }
  return batch;
}

inline ModelSpec ClassTrees(const std::string& type, int rounds = 20, int classes = 2) {
  ModelSpec spec = TreeSpec(type, rounds);
  AddNumber(&spec, "a");
  AddNumber(&spec, "b");
  AddCategory(&spec, "c", 4, 0);
  SetClasses(&spec, classes);
  return spec;
}

inline double Accuracy(GradientBoosting* trees, const FeatureBatch& batch) {
  std::vector<double> predictions;
  const Status status = trees->Predict(batch, &predictions);
  EXPECT_TRUE(status.ok()) << status.ToString();
  const size_t outputs = trees->outputs();
  EXPECT_EQ(predictions.size(), batch.rows * outputs);
  size_t right = 0;
  for (size_t r = 0; r < batch.rows; ++r) {
    const double* row = predictions.data() + r * outputs;
    const auto best =
        outputs == 1 ? (row[0] > 0.5f ? 1 : 0) : std::max_element(row, row + outputs) - row;
    right += static_cast<float>(best) == batch.labels[r] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(batch.rows);
}

inline Status Train(GradientBoosting* trees, Batches* train, Batches* validation = nullptr,
                    std::vector<GradientBoosting::Round>* rounds = nullptr,
                    std::stop_token stop = {}) {
  return trees->Train(
      train->Source(),
      validation == nullptr ? GradientBoosting::BatchSource{} : validation->Source(),
      [rounds](const GradientBoosting::Round& round) {
        if (rounds != nullptr) {
          rounds->push_back(round);
        }
      },
      stop);
}

}  // namespace sluice::models
