#include "elastic/worker/feature_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/dataset.pb.h"
#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {
namespace {

constexpr int64_t kRows = 1'000;

class FeatureReaderTest : public ::testing::Test {
 protected:
  FeatureReaderTest()
      : source_(SmallSource(kRows)),
        plan_(SmallPlan(1, 32)),
        network_(models::Network::Make(plan_.model()).value()) {}

  SplitRule Rule() const { return SplitRule::Make(plan_.split()).value(); }
  Result<std::unique_ptr<FeatureReader>> Make(const catalog::DatasetSpec& spec,
                                              FeatureReader::Options options) {
    return FeatureReader::Make(*source_, spec, network_->transform(), std::move(options));
  }

  struct Rows {
    models::FeatureBatch all, training, validation;
  };
  // The whole dataset, cut into shards of `rows_per_shard` rows, `rows` at a time.
  Rows Read(int64_t rows_per_shard, size_t rows, const SplitRule& split) {
    const catalog::DatasetSpec spec = source_->Spec(rows_per_shard);
    FeatureReader::Options options;
    options.split = split;
    const auto reader = Make(spec, options).value();
    Rows read;
    for (int shard = 0; shard < spec.shards_size(); ++shard) {
      EXPECT_TRUE(reader->Open(ShardId(shard)).ok());
      while (reader->Next(rows).value()) {
        EXPECT_LE(reader->rows(), rows);
        EXPECT_EQ(reader->features().rows, reader->rows());
        read.all.Append(reader->features());
        reader->AppendTraining(&read.training);
        reader->AppendValidation(&read.validation);
      }
      EXPECT_FALSE(reader->open());
    }
    return read;
  }

  std::unique_ptr<testing::MemorySource> source_;
  plan::TrainPlan plan_;
  std::unique_ptr<models::Network> network_;
};

void ExpectSame(const models::FeatureBatch& one, const models::FeatureBatch& other) {
  EXPECT_EQ(one.rows, other.rows);
  EXPECT_EQ(one.dense, other.dense);
  EXPECT_EQ(one.labels, other.labels);
  ASSERT_EQ(one.slots.size(), other.slots.size());
  for (size_t slot = 0; slot < one.slots.size(); ++slot) {
    EXPECT_EQ(one.slots[slot].ids, other.slots[slot].ids);
  }
}

TEST_F(FeatureReaderTest, TheRowsAreTheSameInWhateverPiecesTheyAreRead) {
  const Rows whole = Read(kRows, kRows, Rule());
  EXPECT_EQ(whole.all.rows, static_cast<size_t>(kRows));
  EXPECT_EQ(whole.training.rows + whole.validation.rows, whole.all.rows);
  EXPECT_GT(whole.validation.rows, 50U);
  for (const auto& [rows_per_shard, rows] :
       std::vector<std::pair<int64_t, size_t>>{{kRows, 7}, {100, 64}, {333, 1'024}, {1, 1}}) {
    const Rows pieces = Read(rows_per_shard, rows, Rule());
    ExpectSame(pieces.all, whole.all);
    ExpectSame(pieces.training, whole.training);
    ExpectSame(pieces.validation, whole.validation);
  }
}

TEST_F(FeatureReaderTest, WithoutARuleEveryRowTrains) {
  const Rows read = Read(300, 128, SplitRule());
  ExpectSame(read.training, read.all);
  EXPECT_EQ(read.validation.rows, 0U);
}

// The split's column is read whether or not it is a feature.
TEST_F(FeatureReaderTest, ASplitByAColumnReadsItBesideTheModelsOwn) {
  plan::Split split;
  split.set_kind(plan::Split::TIME);
  split.set_column("a");
  split.set_threshold(0.5);
  const Rows seen = Read(300, 128, SplitRule::Make(split).value());
  EXPECT_GT(seen.validation.rows, 100U);
  EXPECT_EQ(seen.training.rows + seen.validation.rows, static_cast<size_t>(kRows));

  std::vector<std::vector<double>> rows = SmallRows(kRows);
  for (std::vector<double>& row : rows) {
    row.push_back(row[0]);
  }
  source_ = std::make_unique<testing::MemorySource>(
      std::vector<std::string>{"a", "b", "c", "y", "copy of a"}, rows);
  split.set_column("copy of a");
  const Rows unseen = Read(300, 128, SplitRule::Make(split).value());
  ExpectSame(unseen.training, seen.training);
  ExpectSame(unseen.validation, seen.validation);
}

TEST_F(FeatureReaderTest, AColumnThatIsNotThereIsNamed) {
  const catalog::DatasetSpec spec = source_->Spec(kRows);
  FeatureReader::Options options;
  options.names = {"a", "b", "c", "yy"};
  const Status status = Make(spec, options).status();
  EXPECT_EQ(status.sqlstate(), "42703");
  EXPECT_EQ(status.message(), "the select has no column 'yy'");
  EXPECT_EQ(status.diagnostics()[0].hint, "did you mean 'y'?");
}

TEST_F(FeatureReaderTest, AnErrorEndsTheShardAndItMayBeReadAnew) {
  const catalog::DatasetSpec spec = source_->Spec(kRows);
  const auto reader = Make(spec, {}).value();
  source_->FailReads(0, 1, Unavailable("the database is away"));
  Status failed = reader->Open(ShardId(0));
  if (failed.ok()) {
    failed = reader->Next(10).status();
  }
  EXPECT_EQ(failed.code(), Code::kUnavailable);
  EXPECT_FALSE(reader->open());
  reader->Disconnect();
  ASSERT_TRUE(reader->Open(ShardId(0)).ok());
  EXPECT_TRUE(reader->Next(10).value());
  EXPECT_EQ(reader->rows(), 10U);
  EXPECT_EQ(reader->Open(ShardId(1)).code(), Code::kInternal) << "there is none";
}

}  // namespace
}  // namespace sluice::elastic
