#include "elastic/storage/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "elastic/parameters/parameter_shard.h"
#include "planner/plan.pb.h"
#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kSavedPartitions = 4;

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest()
      : path_(fs::temp_directory_path() / ("sluice-checkpoint-test-" + std::to_string(getpid()))),
        plan_(SmallPlan(1, 64)) {
    fs::remove_all(path_);
    network_ = models::Network::Make(plan_.model()).value();
  }
  ~CheckpointTest() override { fs::remove_all(path_); }

  CheckpointDirectory Open(uint32_t keep = 3) const {
    return CheckpointDirectory::Open(path_.string(), keep).value();
  }
  std::string Model() const { return DescribeModel(plan_.model(), *network_); }
  std::unique_ptr<ParameterShard> Shard(bool empty = false) const {
    return ParameterShard::Make(plan_.model(), *network_, {kSavedPartitions, false, empty}, nullptr)
        .value();
  }
  void Push(ParameterShard* shard, int64_t batch) const {
    std::vector<uint32_t> partitions;
    std::vector<int64_t> versions(kSavedPartitions, batch);
    std::vector<std::vector<float>> dense;
    PushRequest push;
    for (uint32_t p = 0; p < kSavedPartitions; ++p) {
      partitions.push_back(p);
      for (const PartitionLayout::Chunk& chunk : shard->rules().layout.chunks(p)) {
        dense.emplace_back(chunk.size(), 0.1F);
      }
    }
    for (const std::vector<float>& chunk : dense) {
      push.dense.emplace_back(chunk);
    }
    push.tables.resize(network_->tables().size());
    push.partitions = partitions;
    push.versions = versions;
    push.batch.batch = BatchIndex(batch);
    ASSERT_TRUE(shard->Push(push).ok());
  }
  static CheckpointDirectory::Contents Bytes(std::string bytes) {
    return [bytes = std::move(bytes)](const PartSink& sink) { return sink(bytes); };
  }
  void Write(CheckpointDirectory* directory, const ParameterShard& shard,
             const std::string& queue = "") const {
    const CheckpointDirectory::Draft draft = directory->Begin().value();
    CheckpointManifest manifest;
    manifest.model = Model();
    manifest.partitions = kSavedPartitions;
    manifest.queue_state = queue;
    for (uint32_t p = 0; p < kSavedPartitions; ++p) {
      manifest.files.push_back(
          CheckpointDirectory::WritePartition(draft.path, p, Bytes(shard.Save(p).value())).value());
    }
    ASSERT_TRUE(directory->Commit(draft, manifest).ok());
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_)) {
      if (entry.path().filename() != "lock") {
        names.push_back(entry.path().filename().string());
      }
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  fs::path path_;
  plan::TrainPlan plan_;
  std::unique_ptr<models::Network> network_;
};

TEST_F(CheckpointTest, P11_WhatOneWorldWroteAnotherLoads) {
  const auto shard = Shard();
  for (int64_t batch = 0; batch < 3; ++batch) {
    Push(shard.get(), batch);
  }
  CheckpointDirectory directory = Open();
  Write(&directory, *shard, "queue at 3");
  const auto found = directory.Newest(Model()).value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->manifest.queue_state, "queue at 3");
  for (uint32_t servers : {1U, 2U, 5U}) {
    std::vector<std::unique_ptr<ParameterShard>> world;
    for (uint32_t s = 0; s < servers; ++s) {
      world.push_back(Shard(true));
    }
    for (const CheckpointManifest::File& file : found->manifest.files) {
      const auto bytes = CheckpointDirectory::OpenPartition(found->path, file).value();
      ParameterShard& holder = *world[file.partition % servers];
      ASSERT_TRUE(holder.Load(file.partition, *bytes).ok());
      EXPECT_EQ(holder.Save(file.partition).value(), shard->Save(file.partition).value());
    }
  }
}

TEST_F(CheckpointTest, P12_ATornOrDamagedCheckpointIsPassedOver) {
  const auto shard = Shard();
  std::optional<CheckpointDirectory> opened = Open();
  CheckpointDirectory& directory = *opened;
  Push(shard.get(), 0);
  Write(&directory, *shard, "old");
  Push(shard.get(), 1);
  Write(&directory, *shard, "new");
  ASSERT_EQ(directory.Newest(Model()).value()->manifest.queue_state, "new");
  // Every file of the newest checkpoint, truncated or changed at every kind of position.
  for (const auto& entry : fs::directory_iterator(path_ / "checkpoint-2")) {
    std::string good;
    {
      std::ifstream in(entry.path(), std::ios::binary);
      good.assign(std::istreambuf_iterator<char>(in), {});
    }
    const auto write = [&](const std::string& bytes) {
      std::ofstream(entry.path(), std::ios::binary | std::ios::trunc) << bytes;
    };
    const size_t step = std::max<size_t>(1, good.size() / 23);
    for (size_t at = 0; at < good.size(); at += step) {
      for (const bool cut : {true, false}) {
        std::string bad = cut ? good.substr(0, at) : good;
        if (!cut) {
          bad[at] = static_cast<char>(bad[at] ^ 0x40);
        }
        write(bad);
        const auto found = directory.Newest(Model());
        ASSERT_TRUE(found.ok() && found->has_value()) << entry.path() << " " << at;
        EXPECT_EQ((*found)->manifest.queue_state, "old") << entry.path() << " " << at;
        EXPECT_EQ((*found)->damaged.size(), 1U);
      }
    }
    write(good);
    ASSERT_EQ(directory.Newest(Model()).value()->manifest.queue_state, "new");
  }
  // A process that dies while it writes leaves a draft, whatever is in it.
  const CheckpointDirectory::Draft draft = directory.Begin().value();
  ASSERT_TRUE(CheckpointDirectory::WritePartition(draft.path, 0, Bytes("half")).ok());
  EXPECT_EQ(directory.Newest(Model()).value()->manifest.queue_state, "new");
  EXPECT_EQ(Names().size(), 3U);
  opened.reset();
  EXPECT_EQ(Open().Newest(Model()).value()->manifest.cut, 2U);
  EXPECT_EQ(Names(), (std::vector<std::string>{"checkpoint-1", "checkpoint-2"}));
}

TEST_F(CheckpointTest, P13_TheNewestAreKept) {
  const auto shard = Shard();
  {
    CheckpointDirectory three = Open(3);
    for (int i = 0; i < 5; ++i) {
      Write(&three, *shard);
    }
  }
  EXPECT_EQ(Names(), (std::vector<std::string>{"checkpoint-3", "checkpoint-4", "checkpoint-5"}));
  CheckpointDirectory all = Open(0);
  for (int i = 0; i < 5; ++i) {
    Write(&all, *shard);
  }
  EXPECT_EQ(Names().size(), 8U);
}

// While one process writes, another would take its draft for a dead process's.
TEST_F(CheckpointTest, ADirectoryHasOneOpenerAtATime) {
  std::optional<CheckpointDirectory> first = Open();
  const CheckpointDirectory::Draft draft = first->Begin().value();
  const auto second = CheckpointDirectory::Open(path_.string(), 3);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("another job is writing"), std::string::npos);
  EXPECT_TRUE(fs::exists(draft.path));
  std::optional<CheckpointDirectory> copy = first;
  first.reset();
  EXPECT_FALSE(CheckpointDirectory::Open(path_.string(), 3).ok()) << "a copy is the same opener";
  copy.reset();
  EXPECT_TRUE(CheckpointDirectory::Open(path_.string(), 3).ok());
  EXPECT_FALSE(fs::exists(draft.path));
}

// A name that a slow writer may still use is not reused.
TEST_F(CheckpointTest, DraftsThatAreGivenUpDoNotShareAName) {
  CheckpointDirectory directory = Open();
  const std::string first = directory.Begin().value().path;
  CheckpointDirectory copy = directory;
  EXPECT_NE(copy.Begin().value().path, first);
}

TEST_F(CheckpointTest, ClearRemovesAllCheckpoints) {
  CheckpointDirectory directory = Open();
  Write(&directory, *Shard());
  Write(&directory, *Shard());
  ASSERT_TRUE(directory.Clear().ok());
  EXPECT_TRUE(Names().empty());
  EXPECT_FALSE(directory.Newest().value().has_value());
}

// Each file is intact, but belongs to the other checkpoint, or the other partition.
TEST_F(CheckpointTest, P12_FilesThatWereExchangedAreRefused) {
  const auto shard = Shard();
  CheckpointDirectory directory = Open();
  Push(shard.get(), 0);
  Write(&directory, *shard, "old");
  Push(shard.get(), 1);
  Write(&directory, *shard, "new");
  const CheckpointDirectory::Found newest = *directory.Newest().value();
  ASSERT_EQ(newest.manifest.queue_state, "new");
  std::set<std::string> digests;
  for (const CheckpointManifest::File& file : newest.manifest.files) {
    EXPECT_EQ(file.digest.size(), 64U);
    digests.insert(file.digest);
  }
  EXPECT_EQ(digests.size(), kSavedPartitions);
  const auto exchange = [&](const fs::path& one, const fs::path& other) {
    fs::rename(one, path_ / "aside");
    fs::rename(other, one);
    fs::rename(path_ / "aside", other);
  };
  const fs::path old_file = path_ / "checkpoint-1" / "partition-0";
  const fs::path new_file = path_ / "checkpoint-2" / "partition-0";
  ASSERT_EQ(fs::file_size(old_file), fs::file_size(new_file));
  exchange(old_file, new_file);
  EXPECT_EQ(directory.Newest().status().code(), Code::kInternal) << "both are damaged";
  exchange(old_file, new_file);
  EXPECT_EQ(directory.Newest().value()->manifest.queue_state, "new");
}

// The same bytes, written for another draft: the manifest refuses them.
TEST_F(CheckpointTest, P12_ADigestIsOfOneDraftAlone) {
  CheckpointDirectory directory = Open();
  std::optional<CheckpointManifest::File> before;
  for (const bool exchanged : {false, true}) {
    const CheckpointDirectory::Draft draft = directory.Begin().value();
    CheckpointManifest manifest;
    manifest.partitions = 2;
    for (uint32_t partition : {0U, 1U}) {
      manifest.files.push_back(
          CheckpointDirectory::WritePartition(draft.path, partition, Bytes("the same")).value());
    }
    EXPECT_NE(manifest.files[0].digest, manifest.files[1].digest);
    if (exchanged) {
      EXPECT_NE(manifest.files[0].digest, before->digest);
      manifest.files[0] = *before;
    }
    before = manifest.files[0];
    ASSERT_TRUE(directory.Commit(draft, manifest).ok());
    EXPECT_EQ(directory.Newest().value()->damaged.size(), exchanged ? 1U : 0U);
  }
}

// A draft that was given up is deleted when the next one begins, or the job ends.
TEST_F(CheckpointTest, ADraftThatWasGivenUpIsNotLeftBehind) {
  CheckpointDirectory directory = Open();
  for (int attempt = 0; attempt < 3; ++attempt) {
    const CheckpointDirectory::Draft draft = directory.Begin().value();
    ASSERT_TRUE(CheckpointDirectory::WritePartition(draft.path, 0, Bytes("half of it")).ok());
    EXPECT_EQ(Names().size(), 1U);
  }
  ASSERT_TRUE(directory.Clear().ok());
  EXPECT_TRUE(Names().empty());
}

TEST_F(CheckpointTest, P12_AManifestThatLacksAPartitionIsNotWhole) {
  CheckpointDirectory directory = Open();
  Write(&directory, *Shard(), "whole");
  const CheckpointDirectory::Draft draft = directory.Begin().value();
  CheckpointManifest manifest;
  manifest.model = Model();
  manifest.partitions = kSavedPartitions;
  manifest.files = {
      CheckpointDirectory::WritePartition(draft.path, 0, Bytes("one of four")).value()};
  ASSERT_TRUE(directory.Commit(draft, manifest).ok());
  const auto found = directory.Newest().value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->manifest.queue_state, "whole");
  ASSERT_EQ(found->damaged.size(), 1U);
  EXPECT_NE(found->damaged[0].find("1 of 4 partitions"), std::string::npos);
}

TEST_F(CheckpointTest, AManifestThatNamesFilesElsewhereOrTwiceIsNotWhole) {
  CheckpointDirectory directory = CheckpointDirectory::Open(path_.string(), 9).value();
  Write(&directory, *Shard(), "whole");
  for (const char* name : {"../lock", ""}) {
    const CheckpointDirectory::Draft draft = directory.Begin().value();
    CheckpointManifest manifest;
    manifest.partitions = 1;
    manifest.files = {{0, name, 0, 0, "draft", "a digest"}};
    ASSERT_TRUE(directory.Commit(draft, manifest).ok());
    EXPECT_EQ(directory.Newest().value()->manifest.queue_state, "whole");
  }
  const CheckpointDirectory::Draft draft = directory.Begin().value();
  CheckpointManifest manifest;
  manifest.partitions = 1;
  const auto file = CheckpointDirectory::WritePartition(draft.path, 0, Bytes("one")).value();
  manifest.files = {file, file};
  ASSERT_TRUE(directory.Commit(draft, manifest).ok());
  EXPECT_EQ(directory.Newest().value()->manifest.queue_state, "whole");
}

// Weights of one shape cannot be loaded into another.
TEST_F(CheckpointTest, E9_AModelOfAnotherShapeIsAnother) {
  CheckpointDirectory directory = Open();
  Write(&directory, *Shard());
  plan::TrainPlan wider = plan_;
  wider.mutable_model()->mutable_attributes(0)->mutable_numbers()->set_values(0, 17);
  const auto network = models::Network::Make(wider.model()).value();
  const auto found = directory.Newest(DescribeModel(wider.model(), *network));
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.status().message().find("another model"), std::string::npos);
  models::EmbeddingTable table = network_->tables()[0];
  const std::string shape = std::to_string(table.rows) + " x " + std::to_string(table.dimension);
  EXPECT_NE(Model().find(shape), std::string::npos) << Model();
}

TEST_F(CheckpointTest, E9_WrongDirectoriesAreClearErrors) {
  fs::create_directories(path_);
  std::ofstream(path_ / "thesis.tex") << "do not touch";
  const auto not_ours = CheckpointDirectory::Open(path_.string(), 3);
  ASSERT_FALSE(not_ours.ok());
  EXPECT_NE(not_ours.status().message().find("belongs to something else"), std::string::npos);
  EXPECT_FALSE(CheckpointDirectory::Open((path_ / "thesis.tex").string(), 3).ok());
  fs::remove_all(path_);

  CheckpointDirectory directory = Open();
  EXPECT_FALSE(directory.Newest(Model()).value().has_value());
  Write(&directory, *Shard());
  const auto other = directory.Newest("LinearClassifier");
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().message().find("another model"), std::string::npos);
  fs::resize_file(path_ / "checkpoint-1" / "partition-2", 5);
  const auto damaged = directory.Newest(Model());
  ASSERT_FALSE(damaged.ok());
  EXPECT_NE(damaged.status().message().find("damaged"), std::string::npos);
}

}  // namespace
}  // namespace sluice::elastic
