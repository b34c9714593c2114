#include "base/same_secret.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

TEST(SameSecret, ComparesEveryByte) {
  const std::string secret("a\0secret\xff", 9);
  EXPECT_TRUE(SameSecret(secret, std::string(secret)));
  EXPECT_TRUE(SameSecret("", ""));
  EXPECT_FALSE(SameSecret(secret, secret + "x"));
  EXPECT_FALSE(SameSecret(secret, ""));
  for (size_t i = 0; i < secret.size(); ++i) {
    std::string other = secret;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_FALSE(SameSecret(secret, other)) << i;
  }
}

}  // namespace
}  // namespace sluice
