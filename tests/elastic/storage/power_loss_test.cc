#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "elastic/storage/checkpoint.h"

// The disk operations of checkpoints, and their order. This program's fsync, rename, unlink and
// unlinkat replace the system's, and forward to them.
namespace sluice::elastic {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;

// Called before each operation on the observed thread; empty: not observed.
thread_local std::function<void(const std::string& call, const std::string& name)> watcher;

void Tell(const std::string& call, const std::string& path) {
  if (watcher) {
    watcher(call, fs::path(path).filename().string());
  }
}

template <typename Function>
Function* System(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int fsync(int descriptor) {
  std::error_code error;
  Tell("sync", fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor), error).string());
  return System<int(int)>("fsync")(descriptor);
}

extern "C" int rename(const char* from, const char* to) noexcept {
  Tell("rename", to);
  return System<int(const char*, const char*)>("rename")(from, to);
}

extern "C" int unlink(const char* path) noexcept {
  Tell("remove", path);
  return System<int(const char*)>("unlink")(path);
}

extern "C" int unlinkat(int folder, const char* path, int flags) noexcept {
  Tell("remove", path);
  return System<int(int, const char*, int)>("unlinkat")(folder, path, flags);
}

namespace {

CheckpointDirectory::Contents Bytes(std::string bytes) {
  return [bytes = std::move(bytes)](const PartSink& sink) { return sink(bytes); };
}

class PowerLoss : public ::testing::Test {
 protected:
  ~PowerLoss() override {
    watcher = {};
    fs::remove_all(folder_);
  }
  void Write(const std::string& queue) {
    const CheckpointDirectory::Draft draft = directory_.Begin().value();
    draft_ = fs::path(draft.path).filename().string();
    CheckpointManifest manifest;
    manifest.partitions = 3;
    manifest.queue_state = queue;
    manifest.files =
        CheckpointDirectory::WritePartitions(draft.path, {{0, Bytes("zero")}, {1, Bytes("one")}})
            .value();
    manifest.files.push_back(
        CheckpointDirectory::WritePartition(draft.path, 2, Bytes("two")).value());
    ASSERT_TRUE(directory_.Commit(draft, manifest).ok());
  }

  const fs::path folder_ =
      fs::temp_directory_path() / ("sluice-power-loss-" + std::to_string(getpid()));
  CheckpointDirectory directory_ = [this] {
    fs::remove_all(folder_);
    return CheckpointDirectory::Open(folder_.string(), 0).value();
  }();
  std::string draft_;
};

// When a checkpoint gets its name, all of it is on the disk, and so is the name when Commit
// returns: a machine that loses its power leaves a complete checkpoint, or none.
TEST_F(PowerLoss, P12_ACheckpointIsOnTheDiskBeforeItHasItsName) {
  std::vector<std::string> calls;
  watcher = [&](const std::string& call, const std::string& name) {
    calls.push_back(call + " " + name);
  };
  Write("");
  const auto named = std::find(calls.begin(), calls.end(), "rename checkpoint-1");
  ASSERT_NE(named, calls.end()) << ::testing::PrintToString(calls);
  const std::vector<std::string> before(calls.begin(), named), after(named, calls.end());
  EXPECT_THAT(before, Contains("sync partition-0"));
  EXPECT_THAT(before, Contains("sync partition-2"));
  EXPECT_THAT(before, Contains("sync manifest"));
  EXPECT_EQ(before.back(), "sync " + draft_);
  EXPECT_THAT(after, Contains("sync " + folder_.filename().string()));
}

TEST_F(PowerLoss, P12_AJobsEndIsOnTheDiskWhole) {
  std::vector<std::string> calls;
  watcher = [&](const std::string& call, const std::string& name) {
    calls.push_back(call + " " + name);
  };
  ASSERT_TRUE(directory_.SetCommittingJob(7).ok());
  EXPECT_EQ(calls, (std::vector<std::string>{"sync draft-ending", "rename ending",
                                             "sync " + folder_.filename().string()}));
  EXPECT_EQ(*directory_.CommittingJob(), 7);
}

// A process that is killed while it removes checkpoints, at whatever call, leaves the newest of
// them complete, or none; and as long as there is one, the mark that its job has ended.
TEST_F(PowerLoss, P12_ARemovalMayBeInterruptedAnywhere) {
  Write("old");
  Write("new");
  ASSERT_TRUE(directory_.SetCommittingJob(7).ok());
  std::vector<std::string> seen;
  watcher = [&](const std::string&, const std::string&) {
    const auto found = directory_.Newest();
    const std::string what = !found.ok()           ? found.status().message()
                             : !found->has_value() ? "none"
                             : directory_.CommittingJob()->has_value()
                                 ? (*found)->manifest.queue_state
                                 : "to be continued";
    if (seen.empty() || seen.back() != what) {
      seen.push_back(what);
    }
  };
  ASSERT_TRUE(directory_.Clear().ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"new", "none"}));
  EXPECT_FALSE(directory_.CommittingJob()->has_value());
}

}  // namespace
}  // namespace sluice::elastic
