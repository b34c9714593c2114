#include "elastic/collective/mesh.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/elastic/collective/mesh_members.h"

namespace sluice::elastic {
namespace {

TEST(Mesh, StrangersAndOldWorldsAreTurnedAway) {
  const std::vector<Listener> listeners = MemberListeners(2);
  Mesh::Options stranger = MemberOptions(listeners, 1);
  stranger.key = "guessed";
  ASSERT_TRUE(Mesh::Open(stranger, listeners[1], {}).ok());  // it cannot know yet
  Mesh::Options old = MemberOptions(listeners, 1);
  old.world = WorldId(6);
  ASSERT_TRUE(Mesh::Open(old, listeners[1], {}).ok());
  Mesh::Options options = MemberOptions(listeners, 0);
  options.open_seconds = 0.5;
  EXPECT_EQ(Mesh::Open(options, listeners[0], {}).status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace sluice::elastic
