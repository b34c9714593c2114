#include "base/client_address.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(ClientAddress, OfIpv6IsTheNetwork) {
  EXPECT_EQ(NetworkOf("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
  EXPECT_EQ(NetworkOf("2001:db8:1:2::"), "2001:db8:1:2::");
  EXPECT_EQ(NetworkOf("fe80::1%eth0"), NetworkOf("fe80::2%252"));
  EXPECT_NE(NetworkOf("2001:db8:1:3::1"), NetworkOf("2001:db8:1:2::1"));
}

TEST(ClientAddress, OfAnythingElseIsItself) {
  for (const char* address : {"10.0.0.1", "[local]", ""}) {
    EXPECT_EQ(NetworkOf(address), address);
    EXPECT_EQ(PlainAddress(address), address);
  }
  EXPECT_EQ(PlainAddress("2001:db8::1"), "2001:db8::1");
}

// As a socket for both families says it.
TEST(ClientAddress, AnIpv4AddressIsTheSameInIpv6) {
  for (const char* mapped : {"::ffff:10.0.0.1", "::FFFF:10.0.0.1", "::ffff:a00:1"}) {
    EXPECT_EQ(NetworkOf(mapped), "10.0.0.1") << mapped;
    EXPECT_EQ(PlainAddress(mapped), "10.0.0.1") << mapped;
  }
}

}  // namespace
}  // namespace sluice
