#include "executor/pods/shared_config.h"

#include <gtest/gtest.h>

#include "elastic/job/process.pb.h"

namespace sluice::executor {
namespace {

elastic::ProcessSpec Process(elastic::Role role, const std::string& name, uint64_t number) {
  elastic::ProcessConfig config;
  config.set_job("job7");
  config.set_token("t");
  config.set_name(name);
  elastic::ProcessSpec spec;
  spec.role = role;
  spec.name = name;
  if (role == elastic::Role::kWorker) {
    config.set_incarnation(number);
    spec.incarnation = elastic::Incarnation(number);
  } else {
    config.set_server_id(static_cast<uint32_t>(number));
    spec.server_index = elastic::ServerId(static_cast<uint32_t>(number));
  }
  spec.config = config.SerializeAsString();
  return spec;
}

PodPlace Place(const std::string& name, const std::string& number) {
  return {"/folder", "10.0.0.7", "node-1", name, number};
}

elastic::ProcessConfig Parsed(const std::string& bytes) {
  elastic::ProcessConfig config;
  EXPECT_TRUE(config.ParseFromString(bytes));
  return config;
}

TEST(SharedConfig, WorkersHaveTheSameAndEachPodItsNameAndNumber) {
  const auto one = SharedConfig(Process(elastic::Role::kWorker, "job7-worker-1", 4));
  const auto two = SharedConfig(Process(elastic::Role::kWorker, "job7-worker-2", 5));
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(*one, two.value());
  const elastic::ProcessConfig config =
      Parsed(ConfigIn(Place("job7-worker-2", "5"), elastic::Role::kWorker, *one).value());
  EXPECT_EQ(config.job(), "job7");
  EXPECT_EQ(config.token(), "t");
  EXPECT_EQ(config.name(), "job7-worker-2");
  EXPECT_EQ(config.incarnation(), 5U);
  EXPECT_EQ(config.listen_host(), "10.0.0.7");
  EXPECT_EQ(config.node(), "node-1");
}

TEST(SharedConfig, AServersNumberIsItsIndex) {
  const auto shared = SharedConfig(Process(elastic::Role::kParameterServer, "job7-ps-3", 3));
  const elastic::ProcessConfig config = Parsed(
      ConfigIn(Place("job7-ps-3", "3"), elastic::Role::kParameterServer, shared.value()).value());
  EXPECT_EQ(config.server_id(), 3U);
  EXPECT_EQ(config.incarnation(), 0U);
}

TEST(SharedConfig, WhatIsDamagedIsAnErrorWithTheProcessesName) {
  elastic::ProcessSpec damaged = Process(elastic::Role::kWorker, "job7-worker-1", 4);
  damaged.config = "\xff\xff";
  EXPECT_EQ(SharedConfig(damaged).status().message(),
            "the configuration of job7-worker-1 is damaged");
  for (const char* number : {"", "x", "5x", "-1", "99999999999999999999"}) {
    EXPECT_FALSE(ConfigIn(Place("w", number), elastic::Role::kWorker, "").ok()) << number;
  }
  EXPECT_FALSE(ConfigIn(Place("w", "1"), elastic::Role::kWorker, "\xff\xff").ok());
}

}  // namespace
}  // namespace sluice::executor
