#include "server/statements/settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "parser/parser.h"
#include "server/statements/session.h"
#include "server/statements/statement.h"
#include "tests/support/recording_sink.h"

namespace sluice::server {
namespace {

class SettingsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/sluice-settings-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    database_ = catalog::OpenDatabase("sqlite:" + folder_.string() + "/test.db").value();
    session_ = std::make_unique<Session>(*database_.source, *database_.catalog, "tester");
  }
  void TearDown() override {
    session_.reset();
    database_ = {};
    std::filesystem::remove_all(folder_);
  }

  void Run(const std::string& sql) {
    RecordingSink sink;
    const Status status = RunScript(sql, *session_, sink, {});
    EXPECT_TRUE(status.ok()) << sql << status.ToString();
  }
  // The value after SET sluice.<name> = <value>.
  std::string After(const std::string& name, const std::string& value) {
    Run("SET sluice." + name + " = " + value);
    return Shown(name);
  }
  std::string Shown(const std::string& name) {
    parser::Name full;
    full.text = "sluice." + name;
    return session_->Shown(*FindSetting(full).value());
  }

  std::filesystem::path folder_;
  catalog::Database database_;
  std::unique_ptr<Session> session_;
};

TEST_F(SettingsTest, WhatTheDoorsRead) {
  EXPECT_EQ(session_->settings().progress_interval_ms, 1'000);
  EXPECT_FALSE(session_->settings().async);
  EXPECT_EQ(session_->settings().on_disconnect, OnDisconnect::kCancel);
  Run("SET sluice.progress = off; SET sluice.async = on; SET sluice.on_disconnect = detach");
  EXPECT_EQ(session_->settings().progress_interval_ms, std::nullopt);
  EXPECT_TRUE(session_->settings().async);
  EXPECT_EQ(session_->settings().on_disconnect, OnDisconnect::kDetach);
  Run("SET sluice.progress = '2min'");
  EXPECT_EQ(session_->settings().progress_interval_ms, 120'000);
}

TEST_F(SettingsTest, AreShownAsTheyAreSet) {
  EXPECT_EQ(Shown("progress"), "notice");
  EXPECT_EQ(After("progress", "off"), "off");
  EXPECT_EQ(After("progress", "5"), "5s");
  EXPECT_EQ(After("progress", "'90s'"), "90s");
  EXPECT_EQ(After("progress", "0.25"), "250ms");
  EXPECT_EQ(After("progress", "'0.5 min'"), "30s");
  EXPECT_EQ(After("progress", "'1 h'"), "1h");
  EXPECT_EQ(After("progress", "NOTICE"), "notice");
  EXPECT_EQ(After("progress", "false"), "off");
  EXPECT_EQ(After("async", "yes"), "on");
  EXPECT_EQ(After("async", "1"), "on");
  EXPECT_EQ(After("async", "'false'"), "off");
  EXPECT_EQ(After("on_disconnect", "Detach"), "detach");
  EXPECT_EQ(After("seed", "'12'"), "12");
}

// RESET, and SET ... TO DEFAULT.
TEST_F(SettingsTest, DefaultsAreWhatTheSessionBeganWith) {
  for (const SettingSpec& setting : Settings()) {
    const std::string before = session_->Shown(setting);
    const std::string other = setting.kind == SettingSpec::Kind::kInteger ? "17"
                              : setting.kind == SettingSpec::Kind::kWord  ? setting.words.back()
                              : setting.kind == SettingSpec::Kind::kFlag  ? "on"
                                                                          : "'7min'";
    Run("SET " + setting.name + " = " + other);
    EXPECT_NE(session_->Shown(setting), before) << setting.name;
    Run("SET " + setting.name + " TO DEFAULT");
    EXPECT_EQ(session_->Shown(setting), before) << setting.name;
    // SET accepts the value that is shown.
    Run("SET " + setting.name + " = '" + before + "'");
    EXPECT_EQ(session_->Shown(setting), before) << setting.name;
  }
}

}  // namespace
}  // namespace sluice::server
