#include "elastic/parameters/partition_map.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::elastic {
namespace {

std::map<ServerId, std::string> Servers(std::initializer_list<uint32_t> ids) {
  std::map<ServerId, std::string> servers;
  for (uint32_t id : ids) {
    servers.emplace(ServerId(id), fmt::format("server{}", id));
  }
  return servers;
}

size_t Changed(const std::vector<ServerId>& a, const std::vector<ServerId>& b) {
  size_t changed = 0;
  for (size_t p = 0; p < a.size(); ++p) {
    changed += a[p] != b[p] ? 1 : 0;
  }
  return changed;
}

auto Unbacked(const PartitionMap& map) {
  return std::count(map.backup.begin(), map.backup.end(), kNoServer);
}

void ExpectEven(const PartitionMap& map) {
  for (const auto& [id, address] : map.servers) {
    const double share =
        static_cast<double>(map.primary.size()) / static_cast<double>(map.servers.size());
    EXPECT_NEAR(static_cast<double>(map.PrimariesOf(id).size()), share, 1);
  }
  for (size_t p = 0; p < map.primary.size(); ++p) {
    EXPECT_TRUE(map.servers.contains(map.primary[p]));
    EXPECT_NE(map.primary[p], map.backup[p]);
  }
}

TEST(PartitionMap, EveryServerGetsAnEqualShareAndABackup) {
  for (uint32_t count = 1; count < 10; ++count) {
    std::map<ServerId, std::string> servers;
    for (uint32_t id = 0; id < count; ++id) {
      servers.emplace(ServerId(id * 3), "");
    }
    const PartitionMap map = PlaceEvenly(servers, 64, true);
    EXPECT_EQ(map.version, MapVersion(1));
    ExpectEven(map);
    EXPECT_EQ(Unbacked(map), count == 1 ? 64 : 0);
    EXPECT_EQ(Unbacked(PlaceEvenly(servers, 64, false)), 64);
  }
}

TEST(PartitionMap, P20_FewPartitionsMoveWhenServersComeAndGo) {
  const PartitionMap two = PlaceEvenly(Servers({0, 1}), 64, true);
  const PartitionMap four = Rebalanced(two, Servers({0, 1, 2, 3}), true);
  ExpectEven(four);
  EXPECT_EQ(Changed(two.primary, four.primary), 32U);
  const PartitionMap three = Rebalanced(four, Servers({0, 1, 2}), true);
  ExpectEven(three);
  EXPECT_LE(Changed(four.primary, three.primary), 17U);
  EXPECT_EQ(three.version, MapVersion(3));
  for (const PartitionCopy& copy : CopiesFor(four, three)) {
    EXPECT_EQ(copy.from, four.primary[copy.partition]);
    EXPECT_NE(copy.to, four.backup[copy.partition]) << "it has a copy";
  }
}

TEST(PartitionMap, BackupsTakeOverAndWhatHasNoneIsNamed) {
  const PartitionMap map = PlaceEvenly(Servers({0, 1, 2}), 12, true);
  std::vector<uint32_t> orphans;
  const PartitionMap one_less = WithoutServers(map, {ServerId(1)}, &orphans);
  EXPECT_TRUE(orphans.empty());
  EXPECT_EQ(one_less.version, MapVersion(2));
  for (uint32_t p = 0; p < 12; ++p) {
    EXPECT_EQ(one_less.primary[p], map.primary[p] == ServerId(1) ? map.backup[p] : map.primary[p]);
    EXPECT_NE(one_less.backup[p], ServerId(1));
  }
  WithoutServers(map, {ServerId(0), ServerId(1)}, &orphans);
  EXPECT_EQ(orphans.size(), 4U) << "those of 0 have their backups on 1";
  const PartitionMap healed = Rebalanced(one_less, Servers({0, 2, 3}), true);
  ExpectEven(healed);
}

TEST(PartitionMap, ABackupLiesOnAnotherNodeWhereThereIsOne) {
  const std::map<ServerId, std::string> nodes = {
      {ServerId(0), "a"}, {ServerId(1), "a"}, {ServerId(2), "b"}};
  const PartitionMap apart = PlaceEvenly(Servers({0, 1, 2}), 12, true, nodes);
  for (size_t p = 0; p < apart.primary.size(); ++p) {
    EXPECT_NE(nodes.at(apart.primary[p]), nodes.at(apart.backup[p])) << p;
  }
  const PartitionMap together = PlaceEvenly(Servers({0, 1}), 12, true, nodes);
  EXPECT_TRUE(together.Check().ok()) << "on one node a backup is better than none";
  EXPECT_EQ(Unbacked(together), 0);
}

}  // namespace
}  // namespace sluice::elastic
