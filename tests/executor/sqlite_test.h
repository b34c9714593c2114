#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "catalog/catalog.h"
#include "catalog/data_source.h"

namespace sluice::executor {

// A new SQLite file for the test, and its catalog.
class SqliteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/sluice-executor-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    auto database = catalog::OpenDatabase("sqlite:" + folder_ + "/test.db");
    ASSERT_TRUE(database.ok()) << database.status().ToString();
    source_ = std::move(database->source);
    catalog_ = std::move(database->catalog);
  }
  void TearDown() override {
    source_.reset();
    catalog_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::string folder_;
  std::unique_ptr<catalog::DataSource> source_;
  std::unique_ptr<catalog::Catalog> catalog_;
};

}  // namespace sluice::executor
