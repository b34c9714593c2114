#include "server/pgwire/pod_login.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "catalog/data_source.h"
#include "catalog/source_url.h"
#include "server/pgwire/key_desk.h"
#include "server/pgwire/scram_keys.h"
#include "server/pgwire/scram_verifier.h"
#include "tests/server/pgwire/stranger.h"
#include "tests/support/eventually.h"

// What a server that cheats, or hangs, gets of the logins of a job's pods.
namespace sluice::server::pgwire {
namespace {

constexpr char kPassword[] = "ann's password";
constexpr std::string_view kOffered("SCRAM-SHA-256\0\0", 15);

std::string Asks(Authentication kind, std::string_view rest = "") {
  std::string message;
  AppendAuthentication(message, kind, rest);
  return message;
}
std::string Refuses(const std::string& sqlstate) {
  std::string message;
  AppendError(message, Status(Code::kPermissionDenied, "no").SqlState(sqlstate), {}, 0, "FATAL");
  return message;
}
std::string Url(const Stranger& server) {
  return fmt::format("postgresql://ann@127.0.0.1:{}/shop", server.port());
}

Result<catalog::DatabaseLogin> LoginAt(std::vector<std::string> says) {
  const Stranger server(std::move(says));
  return PodLogin({Url(server), kPassword}, Url(server), TicketOffice());
}

// A job that does not begin is better than a password in a Secret.
TEST(PodLogin, NoPasswordForAServerThatDoesNotProveItself) {
  const std::string scram = Asks(Authentication::kScram, kOffered);
  for (const std::vector<std::string>& says : std::vector<std::vector<std::string>>{
           {scram, Asks(Authentication::kOk)},
           {scram, Asks(Authentication::kScramContinue, "r=x,s=AAAA,i=1")},
           {scram, Asks(Authentication::kScramContinue, "i=0")},
           {"HTTP/1.1 400 Bad Request\r\n\r\n"},
           {scram, Refuses("28P01")}}) {
    const auto login = LoginAt(says);
    EXPECT_FALSE(login.ok()) << login->secret;
  }
}

TEST(PodLogin, ThePasswordWhereTheServerAsksForItOtherwise) {
  for (const std::vector<std::string>& says : std::vector<std::vector<std::string>>{
           {Refuses("28000")},  // it wants a client's certificate
           {Asks(Authentication::kScram, std::string_view("OAUTHBEARER\0\0", 13))}}) {
    const auto login = LoginAt(says);
    ASSERT_TRUE(login.ok()) << login.status().ToString();
    EXPECT_EQ(login->secret, kPassword);
  }
}

// Connections that a process has given up do not stay with its desk.
TEST(KeyDeskAtAStranger, AServerThatHangsIsLeftWithTheVisitor) {
  const auto desk = KeyDesk::Start();
  ASSERT_TRUE(desk.ok());
  const Stranger server({});
  const std::string keys = KeySecret(DeriveScramKeys(kPassword, "salt", 1));
  std::stop_source stop;
  {
    const std::jthread visitor(
        [&] { EXPECT_FALSE(catalog::OpenDataSource(Url(server), keys, stop.get_token()).ok()); });
    EXPECT_TRUE(Eventually([&] { return server.came() == 1; }));
    stop.request_stop();
  }
  EXPECT_TRUE(Eventually([&] { return server.left() == 1; }));
}

}  // namespace
}  // namespace sluice::server::pgwire
