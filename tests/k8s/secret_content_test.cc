#include "k8s/secret_content.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice::k8s {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Object SecretWith(const std::string& data) {
  return ReadObject(R"({"metadata":{"name":"s"},"data":)" + data + "}", "a Secret").value();
}

TEST(SecretContent, IsDecoded) {
  EXPECT_THAT(SecretContent(SecretWith(R"({"source":"cG9zdGdyZXM=","empty":""})")).value(),
              UnorderedElementsAre(Pair("source", "postgres"), Pair("empty", "")));
  EXPECT_TRUE(SecretContent(SecretWith("null")).value().empty());
}

TEST(SecretContent, OfADamagedOneNothingIsTold) {
  const auto content = SecretContent(SecretWith(R"({"source":"hunter2 !"})"));
  ASSERT_FALSE(content.ok());
  EXPECT_THAT(content.status().ToString(), Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace sluice::k8s
