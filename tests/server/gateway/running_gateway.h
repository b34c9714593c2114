#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "server/gateway/gateway.h"
#include "server/gateway/gateway_client.h"

namespace sluice::server {

// A gateway in this process, over a new SQLite file.
class RunningGateway : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() /
             ("sluice_running_gateway_" + std::to_string(getpid()) + ".db"))
                .string();
    RemoveFiles();
    config_.source = "sqlite:" + path_;
    config_.grpc = "127.0.0.1:0";
    config_.user = "ann";
    config_.max_statements = 2;
  }
  void TearDown() override {
    gateway_.reset();
    RemoveFiles();
  }
  void Start() {
    auto gateway = Gateway::Start(config_);
    ASSERT_TRUE(gateway.ok()) << gateway.status().ToString();
    gateway_ = std::move(*gateway);
  }
  std::unique_ptr<GatewayClient> Connect() {
    auto client = GatewayClient::Connect({gateway_->address(), "", "bob"});
    EXPECT_TRUE(client.ok()) << client.status().ToString();
    return client.ok() ? std::move(*client) : nullptr;
  }
  void RemoveFiles() const {
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::filesystem::remove(path_ + suffix);
    }
  }

  std::string path_;
  Config config_;
  std::unique_ptr<Gateway> gateway_;
};

}  // namespace sluice::server
