#include "server/pgwire/backend_login.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/pgwire/scram.h"
#include "server/pgwire/scram_verifier.h"

// Logins at a server that cheats: what it says is what the tests make it say.
namespace sluice::server::pgwire {
namespace {

constexpr std::string_view kOffered("SCRAM-SHA-256\0\0", 15);
constexpr char kNonce[] = "nonce";
// A server chooses these as it likes.
constexpr char kSalt[] = "salt of a stranger";
constexpr char kServerFirst[] = "r=nonce+theirs,s=c2FsdCBvZiBhIHN0cmFuZ2Vy,i=1";

std::string Asks(Authentication kind, std::string_view rest = "") {
  std::string message;
  AppendAuthentication(message, kind, rest);
  return message;
}

std::string Ready() {
  std::string message;
  AppendKeyData(message, 1, 2);
  AppendReady(message, 'I');
  return message;
}

// SQLSTATE of the login; "": it is ready.
std::string LogIn(BackendSecret secret, const std::vector<std::string>& says) {
  BackendLogin login({kProtocol3, {{"user", "ann"}, {"database", "shop"}}}, std::move(secret), true,
                     kNonce);
  for (const std::string& bytes : says) {
    Result<std::string> answer = login.FromServer(bytes);
    if (answer.ok() && login.state() == BackendLogin::State::kProving) {
      answer = login.Prove();
    }
    if (!answer.ok()) {
      return answer.status().sqlstate();
    }
  }
  return login.state() == BackendLogin::State::kReady ? "" : "under way";
}

const BackendSecret& Password() {
  static const BackendSecret secret{"right", std::nullopt};
  return secret;
}
const BackendSecret& Keys() {
  static const BackendSecret secret{"", DeriveScramKeys("right", kSalt, 1)};
  return secret;
}

TEST(BackendLogin, AServerHasToProveThatItKnowsThePassword) {
  for (const BackendSecret& secret : {Password(), Keys()}) {
    const std::string scram = Asks(Authentication::kScram, kOffered);
    const std::string first = Asks(Authentication::kScramContinue, kServerFirst);
    EXPECT_EQ(LogIn(secret, {scram, first, Asks(Authentication::kOk), Ready()}), "28000");
    EXPECT_EQ(LogIn(secret, {scram, first, Ready()}), "08P01");
    EXPECT_EQ(LogIn(secret, {scram, Asks(Authentication::kOk), Ready()}), "28000");
    EXPECT_EQ(LogIn(secret, {scram, first, Asks(Authentication::kScramFinal, "v=AAAA")}), "28000");
    EXPECT_EQ(LogIn(secret, {scram, first, scram, Asks(Authentication::kOk), Ready()}), "08P01");
  }
}

TEST(BackendLogin, KeysAreForAServerThatAsks) {
  EXPECT_EQ(LogIn(Keys(), {Asks(Authentication::kOk), Ready()}), "28000");
  EXPECT_EQ(LogIn(Keys(), {Asks(Authentication::kPassword)}), "28000");
  EXPECT_EQ(LogIn(Keys(), {Asks(Authentication::kMd5, "salt")}), "28000");
}

TEST(BackendLogin, NothingIsReadyBeforeTheLogin) {
  EXPECT_EQ(LogIn(Password(), {Ready()}), "08P01");
  EXPECT_EQ(LogIn(Password(), {Asks(Authentication::kPassword), Ready()}), "08P01");
  EXPECT_EQ(LogIn(Password(), {Asks(Authentication::kOk), Ready()}),
            "");  // it trusts; asked() says so
}

}  // namespace
}  // namespace sluice::server::pgwire
