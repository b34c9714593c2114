#include "server/statements/login_name.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::server {
namespace {

TEST(LoginName, WhatPostgresWouldCutOffIsRefused) {
  EXPECT_TRUE(CheckLoginNames(std::string(63, 'a'), std::string(63, 'b')).ok());
  EXPECT_EQ(CheckLoginNames(std::string(64, 'a'), "b").sqlstate(), "28000");
  EXPECT_EQ(CheckLoginNames("a", std::string(64, 'b')).sqlstate(), "28000");
}

}  // namespace
}  // namespace sluice::server
