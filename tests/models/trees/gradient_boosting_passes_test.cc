#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/trees/boosting.h"

// How often rows are read: once where they are kept packed, and the model does not depend on it.
namespace sluice::models {
namespace {

// More rows than libxgboost takes at a time; a dense number that is sometimes missing, one with
// many values, and a category.
std::vector<FeatureBatch> ManyRows() {
  std::vector<FeatureBatch> batches;
  for (uint32_t seed = 1; seed <= 9; ++seed) {
    batches.push_back(ClassRows(9'000, seed));
  }
  return batches;
}

struct Trained {
  std::string bytes;
  int rewinds = 0;
};

Trained TrainOn(const ModelSpec& spec, std::vector<FeatureBatch> batches, size_t most_kept) {
  Batches train(std::move(batches), most_kept);
  const auto trees = MakeTrees(spec);
  const Status status = Train(trees.get(), &train);
  EXPECT_TRUE(status.ok()) << status.ToString();
  auto bytes = trees->Save();
  return {bytes.ok() ? std::move(bytes).value() : "", train.rewinds()};
}

// Whoever grows the trees, and how often the source is rewound if rows may not be kept.
struct Grower {
  const char* type;
  int rewinds;
};
constexpr Grower kGrowers[] = {{"xgboost.gbtree", 1},  // cuts, bins
                               {"xgboost.dart", 3}};   // sizes, cuts, bins, columns of bins

void ExpectOnePassIfKept(ModelSpec spec, const std::vector<FeatureBatch>& batches) {
  for (const Grower& grower : kGrowers) {
    spec.set_type(grower.type);
    const Trained kept = TrainOn(spec, batches, 512U << 20U);
    EXPECT_EQ(kept.rewinds, 0) << grower.type;
    const Trained read = TrainOn(spec, batches, 0);
    EXPECT_EQ(read.rewinds, grower.rewinds) << grower.type;
    EXPECT_EQ(read.bytes, kept.bytes) << grower.type;
  }
}

TEST(PassesTest, DenseRows) {
  ExpectOnePassIfKept(ClassTrees("xgboost.gbtree", 3), ManyRows());
}

TEST(PassesTest, WeighedRows) {
  std::vector<FeatureBatch> batches = ManyRows();
  for (FeatureBatch& batch : batches) {
    for (size_t r = 0; r < batch.rows; ++r) {
      batch.weights.push_back(static_cast<float>(1 + r % 3) / 2);
    }
  }
  ExpectOnePassIfKept(ClassTrees("xgboost.gbtree", 3), batches);
}

TEST(PassesTest, RowsWithSeveralIds) {
  ModelSpec spec = TreeSpec("xgboost.gbtree", 3);
  AddNumber(&spec, "a");
  Feature* ids = AddCategory(&spec, "ids", 60, 0);
  ids->mutable_format()->set_kind(TensorFormat::CSV);
  ids->mutable_format()->set_delimiter(",");
  ids->mutable_format()->set_sparse(true);
  spec.mutable_features()->mutable_inputs(1)->set_type(static_cast<int>(DataType::kText));
  SetClasses(&spec, 2);
  std::mt19937 random(1);
  std::vector<FeatureBatch> batches(2);  // libxgboost's dart is slow on sparse columns
  for (FeatureBatch& batch : batches) {
    batch.rows = 9'000;
    batch.dense_width = 1;
    batch.slots.resize(1);
    for (size_t r = 0; r < batch.rows; ++r) {
      bool low = false;
      for (size_t i = random() % 5; i > 0; --i) {
        batch.slots[0].ids.push_back(static_cast<uint32_t>(random() % 60));
        low = low || batch.slots[0].ids.back() < 12;
      }
      batch.slots[0].ends.push_back(static_cast<uint32_t>(batch.slots[0].ids.size()));
      batch.dense.push_back(r % 7 == 0 ? NAN : static_cast<float>(random() % 1000));
      batch.labels.push_back(low ? 1 : 0);
    }
  }
  ExpectOnePassIfKept(spec, batches);
}

TEST(PassesTest, MethodsOnNumbersReadOnceAndKeepNoSecondCopy) {
  for (const char* method : {"exact", "approx"}) {
    ModelSpec spec = ClassTrees("xgboost.gbtree", 3);
    SetText(&spec, "tree_method", method);
    const Trained kept = TrainOn(spec, ManyRows(), 512U << 20U);
    const Trained read = TrainOn(spec, ManyRows(), 0);
    EXPECT_EQ(kept.rewinds + read.rewinds, 0) << method;
    EXPECT_EQ(read.bytes, kept.bytes) << method;
  }
}

// Sixty numbers that are all different: packed, they take more than libxgboost's bins.
TEST(PassesTest, RowsThatTakeMoreThanMayBeKeptAreReadAgain) {
  ModelSpec spec = TreeSpec("xgboost.gbtree", 2);
  constexpr size_t kColumns = 60;
  for (size_t c = 0; c < kColumns; ++c) {
    AddNumber(&spec, "c" + std::to_string(c));
  }
  SetClasses(&spec, 2);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform;
  std::vector<FeatureBatch> batches(10);
  for (FeatureBatch& batch : batches) {
    batch.rows = 4'000;
    batch.dense_width = kColumns;
    for (size_t i = 0; i < batch.rows * kColumns; ++i) {
      batch.dense.push_back(uniform(random));
    }
    for (size_t r = 0; r < batch.rows; ++r) {
      batch.labels.push_back(batch.dense[r * kColumns] > batch.dense[r * kColumns + 1] ? 1 : 0);
    }
  }
  for (const Grower& grower : kGrowers) {
    spec.set_type(grower.type);
    const Trained kept = TrainOn(spec, batches, 20'000'000);
    EXPECT_EQ(kept.rewinds, 0) << grower.type;
    const Trained read = TrainOn(spec, batches, 5'000'000);
    EXPECT_EQ(read.rewinds, grower.rewinds) << "dropped in the middle of the first pass";
    EXPECT_EQ(read.bytes, kept.bytes) << grower.type;
  }
  // With few columns libxgboost takes more than the packed rows, which are kept whatever they take.
  EXPECT_EQ(TrainOn(ClassTrees("xgboost.gbtree", 2), ManyRows(), 1).rewinds, 0);
}

// A piece of a table with many columns has fewer rows; the model must not depend on that.
TEST(PassesTest, RowsWithManyColumns) {
  ModelSpec spec = TreeSpec("xgboost.gbtree", 2);
  constexpr size_t kColumns = 400;
  for (size_t c = 0; c < kColumns; ++c) {
    AddNumber(&spec, "c" + std::to_string(c));
  }
  SetClasses(&spec, 2);
  std::mt19937 random(1);
  std::vector<FeatureBatch> batches(4);
  for (FeatureBatch& batch : batches) {
    batch.rows = 2'000;
    batch.dense_width = kColumns;
    for (size_t r = 0; r < batch.rows; ++r) {
      float sum = 0;
      for (size_t c = 0; c < kColumns; ++c) {
        const auto number = static_cast<float>(random() % (1 + c * 10));
        batch.dense.push_back(number);
        sum += c < 5 ? number : 0;
      }
      batch.labels.push_back(sum > 45 ? 1 : 0);
    }
  }
  ExpectOnePassIfKept(spec, batches);
}

}  // namespace
}  // namespace sluice::models
