#include "elastic/master/world_checkpoint.h"

#include <gtest/gtest.h>

namespace sluice::elastic {
namespace {

using Written = WorldCheckpoint::Written;

CheckpointManifest ManifestAt(int64_t steps) {
  CheckpointManifest manifest;
  manifest.steps = steps;
  return manifest;
}

CheckpointManifest::File FileOf(const std::string& name) {
  CheckpointManifest::File file;
  file.name = name;
  return file;
}

TEST(WorldCheckpoint, IsOfferedThenBegunThenWritten) {
  WorldCheckpoint checkpoint;
  EXPECT_FALSE(checkpoint.offered());
  checkpoint.Offer({7, "draft7"});
  EXPECT_TRUE(checkpoint.offered());
  EXPECT_EQ(checkpoint.Begin(ManifestAt(12)), "draft7");
  EXPECT_FALSE(checkpoint.offered()) << "one worker writes it";
  EXPECT_EQ(checkpoint.OnWritten("draft7", FileOf("parameters")), Written::kComplete);
  const std::optional<WorldCheckpoint::Cut> cut = checkpoint.Take();
  ASSERT_TRUE(cut.has_value());
  EXPECT_EQ(cut->draft.cut, 7U);
  EXPECT_EQ(cut->manifest.steps, 12);
  ASSERT_EQ(cut->manifest.files.size(), 1U);
  EXPECT_EQ(cut->manifest.files[0].name, "parameters");
  EXPECT_FALSE(checkpoint.Take().has_value());
}

TEST(WorldCheckpoint, OneThatIsBeingWrittenCanBeGivenUp) {
  WorldCheckpoint checkpoint;
  EXPECT_FALSE(checkpoint.Drop());
  checkpoint.Offer({1, "draft1"});
  EXPECT_FALSE(checkpoint.Drop()) << "nobody has begun: it is still wanted";
  EXPECT_TRUE(checkpoint.offered());
  checkpoint.Begin(ManifestAt(1));
  EXPECT_TRUE(checkpoint.Drop());
  EXPECT_EQ(checkpoint.OnWritten("draft1", FileOf("late")), Written::kObsolete);
}

TEST(WorldCheckpoint, AnotherDraftsFileIsObsolete) {
  WorldCheckpoint checkpoint;
  checkpoint.Offer({1, "draft1"});
  checkpoint.Begin(ManifestAt(1));
  checkpoint.Offer({2, "draft2"});
  EXPECT_EQ(checkpoint.OnWritten("draft1", FileOf("late")), Written::kObsolete);
  EXPECT_TRUE(checkpoint.offered());
}

TEST(WorldCheckpoint, AFailureLeavesItToBeDropped) {
  WorldCheckpoint checkpoint;
  checkpoint.Offer({1, "draft1"});
  checkpoint.Begin(ManifestAt(1));
  EXPECT_EQ(checkpoint.OnWritten("draft1", Unavailable("the disk is full")), Written::kFailed);
  EXPECT_TRUE(checkpoint.Drop());
  EXPECT_FALSE(checkpoint.Take().has_value());
}

}  // namespace
}  // namespace sluice::elastic
