#include "server/pgwire/upstream.h"

#include <gtest/gtest.h>

#include <string>

#include "server/pgwire/tls_context_internal.h"

namespace sluice::server::pgwire {
namespace {

// What libpq would obey on the gateway's own connections, and a login at the port must not evade.
TEST(UpstreamTest, WhatTheSourceSaysOfTlsHoldsAtThePort) {
  const std::string source = "postgresql://sluice@db/shop?sslmode=verify-full&";
  const auto upstream =
      UpstreamOf(source +
                 "sslrootcert=/ca.pem&sslcrl=/revoked.pem&sslcrldir=/revoked&"
                 "ssl_min_protocol_version=TLSv1.3&ssl_max_protocol_version=tlsv1.3");
  ASSERT_TRUE(upstream.ok()) << upstream.status().ToString();
  EXPECT_EQ(upstream->tls_root, "/ca.pem");
  EXPECT_EQ(upstream->tls_revoked, "/revoked.pem");
  EXPECT_EQ(upstream->tls_revoked_folder, "/revoked");
  EXPECT_EQ(upstream->least_tls, "TLSv1.3");
  EXPECT_EQ(upstream->most_tls, "tlsv1.3");
  EXPECT_EQ(UpstreamOf(source + "channel_binding=require").status().sqlstate(), "0A000");
  EXPECT_TRUE(UpstreamOf(source + "channel_binding=prefer").ok());
}

TEST(UpstreamTest, WhatCannotBeReadIsAnErrorAtTheStart) {
  Upstream upstream;
  upstream.tls_mode = "verify-ca";
  EXPECT_TRUE(ClientTls(upstream).ok());
  upstream.tls_revoked = "/no/such/file.crl";
  EXPECT_FALSE(ClientTls(upstream).ok());
  upstream.tls_revoked.clear();
  upstream.least_tls = "TLSv9";
  EXPECT_FALSE(ClientTls(upstream).ok());
}

}  // namespace
}  // namespace sluice::server::pgwire
