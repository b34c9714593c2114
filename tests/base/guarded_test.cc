#include "base/guarded.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

namespace sluice {
namespace {

TEST(Guarded, WhatEscapesBecomesAStatus) {
  EXPECT_EQ(Guarded("a test", []() -> Status { throw std::bad_alloc(); }).sqlstate(), "53200");
  EXPECT_EQ(Guarded("a test", []() -> Status { throw std::length_error("long"); }).sqlstate(),
            "XX000");
  EXPECT_EQ(Guarded("a test", []() -> Result<std::string> { throw 7; }).status().sqlstate(),
            "XX000");
  EXPECT_NE(Guarded("a test", [] { throw std::out_of_range("beyond"); }).message().find("beyond"),
            std::string::npos);
}

TEST(Guarded, WhatIsGivenIsHandedOn) {
  EXPECT_TRUE(Guarded("a test", [] {}).ok());
  EXPECT_EQ(Guarded("a test", [] { return NotFound("nothing"); }).message(), "nothing");
  EXPECT_EQ(*Guarded("a test", []() -> Result<int> { return 7; }), 7);
}

}  // namespace
}  // namespace sluice
