#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "catalog/data_source.h"
#include "server/gateway/gateway.h"
#include "server/gateway/gateway_client.h"
#include "tests/support/postgres_server.h"
#include "tests/support/recording_sink.h"

namespace sluice::server {

// A gateway in this process over a new PostgreSQL server, with two users who log in with passwords.
// Neither has rights in schema sluice.
class TwoUsers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL server";
    }
    admin_ = catalog::OpenDataSource(database_.url()).value();
    const std::string own = database_.url().substr(database_.url().rfind('_') + 1);
    ann_ = "ann_" + own;
    bob_ = "bob_" + own;
    const std::string group = testing::kPasswordRole;
    Admin("DO $$ BEGIN CREATE ROLE " + group +
          " LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$");
    for (const std::string& role : {ann_, bob_}) {
      Admin("CREATE ROLE " + role + " LOGIN PASSWORD '" + PasswordOf(role) + "' IN ROLE " + group);
      Admin("CREATE SCHEMA AUTHORIZATION " + role);
      made_.push_back(role);
    }
    const auto asked = catalog::OpenDataSourceAs(database_.url(), ann_, PasswordOf(ann_));
    if (asked.status().sqlstate() == "28000") {
      GTEST_SKIP() << "the server's pg_hba.conf does not ask members of " << group;
    }
    ASSERT_TRUE(asked.ok()) << asked.status().ToString();
    config_.source = database_.url();
    config_.grpc = "127.0.0.1:0";
    config_.user = "gateway";
    Start();
  }
  void TearDown() override {
    gateway_.reset();
    for (const std::string& role : made_) {
      Admin("DROP OWNED BY " + role + " CASCADE");
      Admin("DROP ROLE " + role);
    }
  }
  void Start() {
    auto gateway = Gateway::Start(config_);
    ASSERT_TRUE(gateway.ok()) << gateway.status().ToString();
    gateway_ = std::move(*gateway);
  }

  static std::string PasswordOf(const std::string& role) { return "of:" + role + "ü"; }
  void Admin(const std::string& sql) {
    const auto done = admin_->Execute(sql, nullptr, {});
    ASSERT_TRUE(done.ok()) << sql << "\n" << done.status().ToString();
  }
  Result<std::unique_ptr<GatewayClient>> LogIn(const std::string& role,
                                               const std::string& password) {
    return GatewayClient::Connect({gateway_->address(), "", "somebody", role, password});
  }
  Status Run(const std::string& role, const std::string& script, RecordingSink& sink) {
    ASSIGN_OR_RETURN(const auto client, LogIn(role, PasswordOf(role)));
    return client->Run(script, {}, sink);
  }
  Status Run(const std::string& role, const std::string& script) {
    RecordingSink sink;
    return Run(role, script, sink);
  }
  void MustRun(const std::string& role, const std::string& script) {
    const Status status = Run(role, script);
    ASSERT_TRUE(status.ok()) << script << "\n" << RenderWithCaret(status, script);
  }

  testing::PostgresTestDatabase database_;
  std::unique_ptr<catalog::DataSource> admin_;
  std::string ann_, bob_;
  std::vector<std::string> made_;
  Config config_;
  std::unique_ptr<Gateway> gateway_;
};

}  // namespace sluice::server
