#include "elastic/worker/spilled_shards.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace sluice::elastic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

// Every kind of column, with every value that is not equal to itself or has two forms.
models::FeatureBatch EveryKind(size_t rows) {
  models::FeatureBatch batch;
  batch.rows = rows;
  batch.dense_width = 3;
  for (size_t row = 0; row < rows; ++row) {
    batch.dense.insert(batch.dense.end(),
                       {std::bit_cast<float>(0x7FC12345U), -0.0F, static_cast<float>(row) / 7});
    batch.labels.push_back(row % 2 == 0 ? std::numeric_limits<float>::infinity() : 1e-42F);
    batch.label_numbers.push_back(1e300 * static_cast<double>(row) + 0.1);
    batch.weights.push_back(static_cast<float>(row) + 0.5F);
    batch.groups.push_back(-static_cast<int64_t>(row) - (int64_t{1} << 40));
    batch.offsets.push_back(std::log(static_cast<float>(row) + 1));
  }
  models::IdSlot one, several, weighted;
  for (size_t row = 0; row < rows; ++row) {
    one.ids.push_back(static_cast<uint32_t>(row * 2'654'435'761U));  // a text's bucket; NULL's
    for (size_t i = 0; i < row % 3; ++i) {
      several.ids.push_back(static_cast<uint32_t>(i));
      weighted.ids.push_back(static_cast<uint32_t>(i));
      weighted.weights.push_back(0.25F);
    }
    several.ends.push_back(static_cast<uint32_t>(several.ids.size()));
    weighted.ends.push_back(static_cast<uint32_t>(weighted.ids.size()));
  }
  batch.slots = {one, several, weighted};
  return batch;
}

template <typename T>
std::string Bits(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::vector<std::string> Bits(const models::FeatureBatch& batch) {
  std::vector<std::string> bits = {std::to_string(batch.rows), std::to_string(batch.dense_width),
                                   Bits(batch.dense),          Bits(batch.labels),
                                   Bits(batch.label_numbers),  Bits(batch.weights),
                                   Bits(batch.groups),         Bits(batch.offsets)};
  for (const models::IdSlot& slot : batch.slots) {
    bits.insert(bits.end(), {Bits(slot.ids), Bits(slot.ends), Bits(slot.weights)});
  }
  return bits;
}

ShardRows Shard(size_t rows) {
  ShardRows shard;
  shard.train = EveryKind(rows);
  shard.validation = EveryKind(rows / 10);
  shard.rows_read = static_cast<int64_t>(rows + rows / 10);
  shard.checksum = 4711 + rows;
  return shard;
}

class SpilledShardsTest : public ::testing::Test {
 protected:
  SpilledShardsTest() {
    std::string made = (fs::temp_directory_path() / "sluice-spill-XXXXXX").string();
    folder_ = mkdtemp(made.data());
    options_.file.folder = folder_;
    options_.file.share_of_free = 1;
    options_.file.share_left = 0;
    options_.judges = false;
    options_.on_end = [this](const std::string& why) { ends_.push_back(why); };
  }
  ~SpilledShardsTest() override { fs::remove_all(folder_); }

  bool FolderIsEmpty() const { return fs::is_empty(folder_); }

  // The descriptors of this process on files in the folder, which have no names.
  std::vector<std::string> Descriptors() const {
    std::vector<std::string> found;
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      if (fs::read_symlink(entry.path(), error).string().starts_with(folder_)) {
        found.push_back(entry.path().string());
      }
    }
    return found;
  }
  // Opens the only one of them for writing.
  int OpenForDamage() const {
    const std::vector<std::string> files = Descriptors();
    EXPECT_EQ(files.size(), 1U);
    return open(files.at(0).c_str(), O_RDWR | O_CLOEXEC);
  }

  std::string folder_;
  SpilledShards::Options options_;
  std::vector<std::string> ends_;
};

TEST_F(SpilledShardsTest, GivesBackEveryBitOfEveryKindOfColumn) {
  SpilledShards spilled(options_);
  const size_t sizes[] = {1'000, 0, 1, 12'345};
  int64_t shard = 0;
  for (const size_t rows : sizes) {
    spilled.Keep(ShardId(shard), Shard(rows), 0);
    EXPECT_TRUE(spilled.Has(ShardId(shard++)));
  }
  EXPECT_FALSE(spilled.Has(ShardId(shard)));
  EXPECT_EQ(spilled.Read(ShardId(shard)), nullptr);
  for (int time = 0; time < 2; ++time) {
    shard = 0;
    for (const size_t rows : sizes) {
      const ShardRows kept = Shard(rows);
      spilled.Expect(ShardId(shard));
      EXPECT_EQ(spilled.Checksum(ShardId(shard)), kept.checksum);
      const auto read = spilled.Read(ShardId(shard));
      ASSERT_NE(read, nullptr) << rows;
      EXPECT_TRUE(Bits(read->train) == Bits(kept.train)) << rows;
      EXPECT_TRUE(Bits(read->validation) == Bits(kept.validation)) << rows;
      EXPECT_EQ(read->rows_read, kept.rows_read);
      EXPECT_EQ(read->checksum, kept.checksum);
      const auto validation = spilled.ReadValidation(ShardId(shard++));
      ASSERT_NE(validation, nullptr) << rows;
      EXPECT_EQ(validation->train.rows, 0U);
      EXPECT_TRUE(Bits(validation->validation) == Bits(kept.validation)) << rows;
      EXPECT_EQ(validation->checksum, kept.checksum);
    }
  }
  EXPECT_THAT(ends_, ElementsAre());
}

TEST_F(SpilledShardsTest, NobodyElseCanReadTheFileAndItHasNoName) {
  SpilledShards spilled(options_);
  spilled.Keep(ShardId(0), Shard(100), 0);
  EXPECT_TRUE(FolderIsEmpty());
  ASSERT_EQ(Descriptors().size(), 1U);
  struct stat about = {};
  ASSERT_EQ(stat(Descriptors().at(0).c_str(), &about), 0);
  EXPECT_EQ(about.st_nlink, 0U);
  EXPECT_EQ(about.st_mode & 07777, 0600U);
}

TEST_F(SpilledShardsTest, NothingIsLeftWhenItsProcessIsKilled) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  if (child == 0) {
    SpilledShards spilled(options_);
    spilled.Keep(ShardId(0), Shard(10'000), 0);
    const char there = spilled.Has(ShardId(0)) ? 'y' : 'n';
    (void)!write(pipes[1], &there, 1);
    pause();
  }
  char there = 0;
  ASSERT_EQ(read(pipes[0], &there, 1), 1);
  EXPECT_EQ(there, 'y');
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(FolderIsEmpty());
  close(pipes[0]);
  close(pipes[1]);
}

// Wherever one bit differs: the shard comes from the database again, and the others from the file.
TEST_F(SpilledShardsTest, ADamagedShardIsReadFromTheDatabase) {
  constexpr size_t kRowsEach = 300;
  for (const off_t place : {0, 8, 16, 24, 40, 120, 200, 1'000, 5'000, 12'000}) {
    SpilledShards spilled(options_);
    spilled.Keep(ShardId(0), Shard(kRowsEach), 0);
    spilled.Keep(ShardId(1), Shard(kRowsEach), 0);
    const int file = OpenForDamage();
    char byte = 0;
    ASSERT_EQ(pread(file, &byte, 1, place), 1);
    byte = static_cast<char>(byte ^ 0x10);
    ASSERT_EQ(pwrite(file, &byte, 1, place), 1);
    close(file);
    EXPECT_EQ(spilled.Read(ShardId(0)), nullptr) << place;
    EXPECT_FALSE(spilled.Has(ShardId(0)));
    EXPECT_EQ(spilled.Checksum(ShardId(0)), std::nullopt);
    const auto other = spilled.Read(ShardId(1));
    ASSERT_NE(other, nullptr);
    EXPECT_TRUE(Bits(other->train) == Bits(Shard(kRowsEach).train));
    // It can be kept again.
    spilled.Keep(ShardId(0), Shard(kRowsEach), 0);
    EXPECT_TRUE(Bits(spilled.Read(ShardId(0))->train) == Bits(Shard(kRowsEach).train));
  }
  EXPECT_THAT(ends_, ElementsAre());
}

TEST_F(SpilledShardsTest, AFileThatBecameShorterIsNoError) {
  SpilledShards spilled(options_);
  spilled.Keep(ShardId(0), Shard(1'000), 0);
  const int file = OpenForDamage();
  ASSERT_EQ(ftruncate(file, 5'000), 0);
  close(file);
  EXPECT_EQ(spilled.Read(ShardId(0)), nullptr);
  EXPECT_EQ(spilled.ReadValidation(ShardId(0)), nullptr);
}

TEST_F(SpilledShardsTest, TheBoundIsReachedHalfway) {
  options_.file.most_bytes = 150'000;
  SpilledShards spilled(options_);
  for (int64_t shard = 0; shard < 10; ++shard) {
    spilled.Keep(ShardId(shard), Shard(1'000), 0);
  }
  EXPECT_TRUE(spilled.Has(ShardId(0)));
  EXPECT_FALSE(spilled.Has(ShardId(9)));
  for (int64_t shard = 0; shard < 10; ++shard) {
    const auto read = spilled.Read(ShardId(shard));
    EXPECT_EQ(read != nullptr, spilled.Has(ShardId(shard)));
    EXPECT_TRUE(read == nullptr || Bits(read->train) == Bits(Shard(1'000).train));
  }
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_THAT(ends_[0], HasSubstr("shards (0.00 GB) from a local file, and the others from the "
                                  "database again: the limit of 0.0 GB is reached"));
}

TEST_F(SpilledShardsTest, ItNeverFillsTheDisk) {
  options_.file.share_left = 1;
  SpilledShards left(options_);
  left.Keep(ShardId(0), Shard(1'000), 0);
  options_.file.share_left = 0;
  options_.file.share_of_free = 0;
  SpilledShards share(options_);
  for (int64_t shard = 0; shard < 40; ++shard) {
    share.Keep(ShardId(shard), Shard(10'000), 0);
  }
  EXPECT_FALSE(left.Has(ShardId(0)));
  EXPECT_TRUE(share.Has(ShardId(0)));  // the room is looked at from time to time
  EXPECT_FALSE(share.Has(ShardId(39)));
  ASSERT_EQ(ends_.size(), 2U);
  EXPECT_THAT(ends_[0], HasSubstr("later epochs read the database again: the disk of '"));
  EXPECT_THAT(ends_[1], HasSubstr("has no more room for it"));
}

// Limits of this process for the size of a file, as `ulimit -f` sets them.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const struct rlimit limit = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = signal(SIGXFSZ, SIG_IGN);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  struct rlimit before_ = {};
  void (*handler_)(int) = nullptr;
};

TEST_F(SpilledShardsTest, AFailingDiskEndsTheKeepingOnly) {
  SpilledShards spilled(options_);
  spilled.Keep(ShardId(0), Shard(1'000), 0);
  {
    const FileLimit limit(100'000);
    for (int64_t shard = 1; shard < 5; ++shard) {
      spilled.Keep(ShardId(shard), Shard(1'000), 0);
    }
  }
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_THAT(ends_[0], HasSubstr("cannot write a file in '" + folder_ + "': File too large"));
  EXPECT_FALSE(spilled.Has(ShardId(4)));
  ASSERT_NE(spilled.Read(ShardId(0)), nullptr);
  EXPECT_TRUE(Bits(spilled.Read(ShardId(0))->train) == Bits(Shard(1'000).train));
}

// Beyond it a write would kill the process by a signal, which nobody ignores here.
TEST_F(SpilledShardsTest, TheProcessesOwnLimitForFilesIsABound) {
  const FileLimit limit(100'000);
  signal(SIGXFSZ, SIG_DFL);
  SpilledShards spilled(options_);
  for (int64_t shard = 0; shard < 5; ++shard) {
    spilled.Keep(ShardId(shard), Shard(1'000), 0);
  }
  EXPECT_TRUE(spilled.Has(ShardId(0)));
  EXPECT_FALSE(spilled.Has(ShardId(4)));
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_THAT(ends_[0], HasSubstr("the limit of 0.0 GB is reached"));
}

TEST_F(SpilledShardsTest, AFolderInMemoryIsNotUsed) {
  options_.file.folder = "/dev/shm";
  SpilledShards spilled(options_);
  spilled.Keep(ShardId(0), Shard(10), 0);
  EXPECT_FALSE(spilled.Has(ShardId(0)));
  EXPECT_THAT(ends_, ElementsAre("later epochs read the database again: '/dev/shm' is in memory"));
}

TEST_F(SpilledShardsTest, AFolderThatCannotBeWrittenIsToldOnce) {
  options_.file.folder = "/proc/sluice";
  SpilledShards spilled(options_);
  spilled.Keep(ShardId(0), Shard(10), 0);
  spilled.Keep(ShardId(1), Shard(10), 0);
  EXPECT_EQ(spilled.Read(ShardId(0)), nullptr);
  EXPECT_EQ(spilled.ReadValidation(ShardId(1)), nullptr);
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_THAT(ends_[0], HasSubstr("cannot make a file in '/proc/sluice'"));
}

// A database that gave its rows in no time is faster than any disk.
TEST_F(SpilledShardsTest, WhereTheDatabaseIsFasterItIsRead) {
  options_.judges = true;
  SpilledShards spilled(options_);
  for (int64_t shard = 0; shard < 100; ++shard) {
    spilled.Keep(ShardId(shard), Shard(10'000), 0);
  }
  EXPECT_FALSE(spilled.Has(ShardId(99)));
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_THAT(ends_[0], HasSubstr("writing there takes longer than reading the database"));
}

TEST_F(SpilledShardsTest, ADiskThatReadsSlowlyIsGivenUp) {
  options_.judges = true;
  SpilledShards spilled(options_);
  // Fast enough to write: only the first took the database long.
  for (int64_t shard = 0; shard < 100; ++shard) {
    spilled.Keep(ShardId(shard), Shard(10'000), shard == 0 ? 1e6 : 0);
  }
  ASSERT_TRUE(spilled.Has(ShardId(99)));
  int64_t read = 0;
  for (int64_t shard = 1; shard < 100; ++shard) {
    read += spilled.Read(ShardId(shard)) != nullptr ? 1 : 0;
  }
  EXPECT_GT(read, 0);
  EXPECT_LT(read, 99);
  EXPECT_FALSE(spilled.Has(ShardId(0)));
  EXPECT_TRUE(Descriptors().empty()) << "its room is free again";
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_EQ(ends_[0], "later epochs read the database again: the disk is slower than the database");
}

}  // namespace
}  // namespace sluice::elastic
