#include "server/gateway/client_login_internal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHere[] = "ipv4:127.0.0.1:4711";
constexpr char kElsewhere[] = "ipv4:10.1.2.3:4711";

TEST(ClientLogin, WhatIsSentIsRead) {
  EXPECT_EQ(BasicAuthorization("Aladdin", "open sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
  for (const std::string password : {"p", "pa", "pas", "pass", "a:b", "ü\n\x01", ""}) {
    const auto login = ReadLogin(BasicAuthorization("ann", password), kHere, false);
    ASSERT_TRUE(login.ok()) << login.status().ToString();
    EXPECT_EQ(login->role, "ann");
    EXPECT_EQ(login->password, password);
    EXPECT_EQ(login->address, "127.0.0.1");
  }
  const auto mapped = ReadLogin("", "ipv6:%5B::ffff:10.1.2.3%5D:4711", false);
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ(mapped->address, "10.1.2.3");
  const auto nobody = ReadLogin("", kElsewhere, false);
  ASSERT_TRUE(nobody.ok());
  EXPECT_EQ(nobody->role, "");
  EXPECT_EQ(nobody->address, "10.1.2.3");
}

TEST(ClientLogin, WhatIsNoLoginIsRefusedAndNotRepeated) {
  for (const std::string sent :
       {"Basic", "Basic ", "Basic !!!!", "Bearer s3cret", "basic QWxhZGRpbjpvcGVu",
        "Basic QWxhZGRpbg==", "Basic QQA6QQ=="}) {
    const auto login = ReadLogin(sent, kHere, true);
    EXPECT_EQ(login.status().sqlstate(), "28000") << sent;
    EXPECT_THAT(login.status().ToString(), Not(HasSubstr("s3cret")));
  }
  EXPECT_FALSE(ReadLogin("Basic " + std::string(100'000, 'Q'), kHere, true).ok());
}

TEST(ClientLogin, APasswordInTheClearFromAnotherMachineIsNotTaken) {
  const std::string sent = BasicAuthorization("ann", "pw");
  const auto clear = ReadLogin(sent, kElsewhere, false);
  EXPECT_EQ(clear.status().sqlstate(), "28000");
  EXPECT_THAT(clear.status().diagnostics()[0].hint, HasSubstr("--tls-cert"));
  EXPECT_TRUE(ReadLogin(sent, kElsewhere, true).ok());
  for (const char* peer : {kHere, "ipv6:[::1]:4711", "ipv6:%5B::1%5D:4711", "unix:/run/s"}) {
    EXPECT_TRUE(ReadLogin(sent, peer, false).ok()) << peer;
  }
  EXPECT_FALSE(ReadLogin(sent, "ipv6:%5B2001:db8::1%5D:4711", false).ok());
  const std::string served = "postgresql://gateway@db:5432/d";
  EXPECT_FALSE(ReadSqlflowLogin("postgresql://ann:pw@db:5432/d", served, kElsewhere, false).ok());
  const auto login = ReadSqlflowLogin("postgresql://ann:p%40w@db:5432/d", served, kElsewhere, true);
  ASSERT_TRUE(login.ok()) << login.status().ToString();
  EXPECT_EQ(login->role, "ann");
  EXPECT_EQ(login->password, "p@w");
}

}  // namespace
}  // namespace sluice::server
