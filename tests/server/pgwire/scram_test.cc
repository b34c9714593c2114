#include "server/pgwire/scram.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace sluice::server::pgwire {
namespace {

// RFC 7677, section 3: the password is "pencil".
constexpr const char* kVerifier =
    "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
    "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
constexpr const char* kClientNonce = "rOprNGfwEbeRWgbNEkqO";
constexpr const char* kServerNonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
constexpr const char* kClientFirst = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
constexpr const char* kServerFirst =
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
constexpr const char* kClientFinal =
    "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
constexpr const char* kServerFinal = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
const std::string kHash(32, '\x5A');  // of some certificate

ScramVerifier Pencil() {
  return ParseScramVerifier(kVerifier).value();
}

std::unique_ptr<ScramServer> Server(std::optional<std::string> binding = std::nullopt,
                                    const ScramVerifier& verifier = Pencil()) {
  return std::make_unique<ScramServer>(verifier, std::move(binding), kServerNonce);
}

// The server's status for a whole conversation.
Status Answer(const std::string& mechanism, const std::string& first, const std::string& final,
              std::optional<std::string> binding = std::nullopt) {
  const auto server = Server(std::move(binding));
  const auto asked = server->First(mechanism, first);
  if (!asked.ok()) {
    return asked.status();
  }
  return server->Final(final).status();
}

TEST(Scram, TheExampleOfTheStandard) {
  const auto server = Server();
  EXPECT_EQ(server->First(kScramSha256, kClientFirst).value(), kServerFirst);
  EXPECT_EQ(server->Final(kClientFinal).value(), kServerFinal);
  const ScramKeys keys = DeriveScramKeys("pencil", Pencil().salt, 4096);
  EXPECT_EQ(server->client_key(), keys.client_key);
  EXPECT_EQ(Pencil().server_key, keys.server_key);
}

struct Login {
  Status status;
  std::string mechanism;
  std::string client_key;
};

// A client and a server, each with or without TLS.
Login LogIn(ScramClient& client, ScramServer& server, bool offer_plus) {
  std::vector<std::string> offered;
  for (const std::string_view mechanism : server.mechanisms()) {
    if (offer_plus || mechanism != kScramSha256Plus) {
      offered.emplace_back(mechanism);
    }
  }
  Login login;
  const auto begin = client.First(offered);
  login.status = begin.status();
  if (!login.status.ok()) {
    return login;
  }
  login.mechanism = begin.value().mechanism;
  const auto server_first = server.First(login.mechanism, begin.value().message);
  login.status = server_first.status();
  if (!login.status.ok()) {
    return login;
  }
  const auto client_final = client.Final(server_first.value());
  login.status = client_final.status();
  if (!login.status.ok()) {
    return login;
  }
  const auto server_final = server.Final(client_final.value());
  login.status = server_final.status();
  if (!login.status.ok()) {
    return login;
  }
  login.status = client.Verify(server_final.value());
  login.client_key = server.client_key();
  return login;
}

TEST(Scram, ClientAndServerBindToTheChannelWhereBothHaveOne) {
  struct Case {
    std::optional<std::string> client, server;
    bool offer_plus;
    std::string mechanism, sqlstate;
  };
  const std::string other(32, '\x5B');
  const std::vector<Case> cases = {
      {std::nullopt, std::nullopt, true, "SCRAM-SHA-256", ""},
      {std::nullopt, kHash, true, "SCRAM-SHA-256", ""},  // a client that cannot bind
      {kHash, std::nullopt, true, "SCRAM-SHA-256", ""},  // a server that cannot
      {kHash, kHash, true, "SCRAM-SHA-256-PLUS", ""},
      {kHash, kHash, false, "SCRAM-SHA-256", "28000"},      // an attacker removed it from the offer
      {other, kHash, true, "SCRAM-SHA-256-PLUS", "28000"},  // a man in the middle
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& each = cases[i];
    ScramClient client("pencil", each.client, kClientNonce);
    const auto server = Server(each.server);
    const Login login = LogIn(client, *server, each.offer_plus);
    EXPECT_EQ(login.mechanism, each.mechanism) << i;
    EXPECT_EQ(login.status.ok() ? "" : login.status.sqlstate(), each.sqlstate)
        << i << login.status.ToString();
  }
}

TEST(Scram, AClientKeyLogsInAsThePasswordDoes) {
  ScramClient first("pencil", kHash, kClientNonce);
  const auto gateway = Server(kHash);
  const Login login = LogIn(first, *gateway, true);
  ASSERT_TRUE(login.status.ok()) << login.status.ToString();
  ScramClient second(ScramKeys{login.client_key, Pencil().server_key}, std::nullopt, "other");
  const auto upstream = Server();
  EXPECT_TRUE(LogIn(second, *upstream, true).status.ok());
  ScramClient wrong(ScramKeys{std::string(32, 'k'), Pencil().server_key}, std::nullopt, "other");
  EXPECT_EQ(LogIn(wrong, *Server(), true).status.sqlstate(), "28P01");
}

TEST(Scram, AWrongPasswordAndAnUnknownRoleLookTheSame) {
  const auto ask = [](const ScramVerifier& verifier, const std::string& password) {
    ScramClient client(password, std::nullopt, kClientNonce);
    const auto server = Server(std::nullopt, verifier);
    const Login login = LogIn(client, *server, true);
    EXPECT_EQ(login.client_key, "");
    return login.status.ToString();
  };
  const std::string wrong = ask(Pencil(), "pen");
  EXPECT_EQ(wrong, "ERROR 28P01: password authentication failed");
  EXPECT_EQ(ask(MockScramVerifier("secret", "nobody", kPostgresScramIterations), "pencil"), wrong);
  // Even knowing how a mock verifier is made does not help to log in.
  ScramVerifier mock = Pencil();
  mock.mock = true;
  EXPECT_EQ(ask(mock, "pencil"), wrong);

  const ScramVerifier one = MockScramVerifier("secret", "one", kPostgresScramIterations);
  EXPECT_EQ(one.salt, MockScramVerifier("secret", "one", kPostgresScramIterations).salt);
  EXPECT_NE(one.salt, MockScramVerifier("secret", "two", kPostgresScramIterations).salt);
  EXPECT_NE(one.salt, MockScramVerifier("other secret", "one", kPostgresScramIterations).salt);
  EXPECT_EQ(one.salt.size(), Pencil().salt.size());
  EXPECT_EQ(one.iterations, Pencil().iterations);
}

TEST(Scram, AServerThatDoesNotKnowThePasswordIsFoundOut) {
  const auto verify = [](const std::string& server_final) {
    ScramClient client("pencil", std::nullopt, kClientNonce);
    EXPECT_TRUE(client.First({std::string(kScramSha256)}).ok());
    EXPECT_TRUE(client.Final(kServerFirst).ok());
    return client.Verify(server_final);
  };
  // The client's first message has no user name here, so its signature differs from the example's.
  EXPECT_EQ(verify(kServerFinal).sqlstate(), "28000");
  EXPECT_EQ(verify("v=").sqlstate(), "28000");
  EXPECT_EQ(verify("e=invalid-proof").sqlstate(), "28000");
  EXPECT_EQ(verify("").sqlstate(), "08P01");
  EXPECT_EQ(verify("x=1").sqlstate(), "08P01");
  EXPECT_EQ(verify(std::string(kServerFinal) + ",").sqlstate(), "08P01");
}

TEST(Scram, AServersFirstMessageIsReadStrictly) {
  const auto final = [](const std::string& server_first) {
    ScramClient client("pencil", std::nullopt, "abc");
    EXPECT_TRUE(client.First({std::string(kScramSha256)}).ok());
    const auto answer = client.Final(server_first);
    return answer.ok() ? "" : answer.status().sqlstate();
  };
  EXPECT_EQ(final("r=abcdef,s=QSXCR+Q6sek8bf92,i=4096"), "");
  for (const char* wrong :
       {"", "r=abcdef", "r=abcdef,s=QSXCR+Q6sek8bf92", "r=abcdef,s=QSXCR+Q6sek8bf92,i=",
        "r=abcdef,s=QSXCR+Q6sek8bf92,i=0", "r=abcdef,s=QSXCR+Q6sek8bf92,i=-1",
        "r=abcdef,s=QSXCR+Q6sek8bf92,i=04096", "r=abcdef,s=QSXCR+Q6sek8bf92,i=4096x",
        "r=abcdef,s=QSXCR+Q6sek8bf92,i=99999999999", "r=abcdef,s=QSXCR+Q6sek8bf92,i=4096,",
        "r=abcdef,s=QSXCR+Q6sek8bf92,i=4096,x=1", "r=abcdef,s=,i=4096", "r=abcdef,s=!,i=4096",
        "r=abcdef,s=QSX,i=4096", "r=abc,s=QSXCR+Q6sek8bf92,i=4096",
        "r=abX,s=QSXCR+Q6sek8bf92,i=4096", "r=,s=QSXCR+Q6sek8bf92,i=4096",
        "m=x,r=abcdef,s=QSXCR+Q6sek8bf92,i=4096", "s=QSXCR+Q6sek8bf92,r=abcdef,i=4096"}) {
    EXPECT_EQ(final(wrong), "08P01") << wrong;
  }
  EXPECT_EQ(final("r=abcdef,s=QSXCR+Q6sek8bf92,i=1000001"), "0A000");
  EXPECT_EQ(final("r=abcdef,s=" + std::string(2000, 'A') + ",i=1"), "08P01");
}

TEST(Scram, AClientTakesTheBestThatIsOffered) {
  EXPECT_EQ(ScramClient("x", kHash, "n").First({"OAUTHBEARER"}).status().sqlstate(), "0A000");
  EXPECT_EQ(ScramClient("x", std::nullopt, "n").First({"SCRAM-SHA-256-PLUS"}).status().sqlstate(),
            "0A000");
  EXPECT_EQ(ScramClient("x", kHash, "n").First({"SCRAM-SHA-256-PLUS"})->message,
            "p=tls-server-end-point,,n=,r=n");
  EXPECT_EQ(ScramClient("x", kHash, "n").First({"SCRAM-SHA-256"})->message, "y,,n=,r=n");
  EXPECT_EQ(ScramClient("x", std::nullopt, "n").First({"SCRAM-SHA-256"})->message, "n,,n=,r=n");
}

TEST(Scram, TheFlagsAreTreatedAsTheServerTreatsThem) {
  const auto sqlstate = [&](const char* mechanism, const std::string& first, bool tls) {
    const auto server = Server(tls ? std::optional<std::string>(kHash) : std::nullopt);
    const auto asked = server->First(mechanism, first);
    return asked.ok() ? "" : asked.status().sqlstate();
  };
  const char* const plain = "SCRAM-SHA-256";
  const char* const plus = "SCRAM-SHA-256-PLUS";
  EXPECT_EQ(sqlstate(plain, "n,,n=,r=x", false), "");
  EXPECT_EQ(sqlstate(plain, "n,,n=,r=x", true), "");
  EXPECT_EQ(sqlstate(plain, "y,,n=,r=x", false), "");
  EXPECT_EQ(sqlstate(plain, "y,,n=,r=x", true), "28000");  // a downgrade
  EXPECT_EQ(sqlstate(plus, "p=tls-server-end-point,,n=,r=x", true), "");
  EXPECT_EQ(sqlstate(plus, "p=tls-server-end-point,,n=,r=x", false), "08P01");
  EXPECT_EQ(sqlstate(plus, "p=tls-unique,,n=,r=x", true), "08P01");
  EXPECT_EQ(sqlstate(plus, "n,,n=,r=x", true), "08P01");
  EXPECT_EQ(sqlstate(plus, "y,,n=,r=x", true), "08P01");
  EXPECT_EQ(sqlstate(plain, "p=tls-server-end-point,,n=,r=x", true), "08P01");
  EXPECT_EQ(sqlstate("PLAIN", "n,,n=,r=x", true), "08P01");
  EXPECT_EQ(sqlstate(plain, "n,a=admin,n=,r=x", false), "0A000");
  EXPECT_EQ(sqlstate(plain, "n,,m=what,n=,r=x", false), "0A000");
  EXPECT_EQ(sqlstate(plain, "n,,n=,r=x,y=extension", false), "");
  EXPECT_EQ(sqlstate(plain, "n,,n=,r=x,1=extension", false), "08P01");
  EXPECT_EQ(sqlstate(plain, "n,,n=,r=", false), "08P01");
  EXPECT_EQ(sqlstate(plain, "n,,n=,r=\x7F", false), "08P01");
}

// A successful conversation, with each of its bytes truncated, dropped, doubled or changed.
TEST(Scram, NothingButTheRightBytesLogsIn) {
  const std::string first = kClientFirst;
  const std::string final = kClientFinal;
  ASSERT_TRUE(Answer("SCRAM-SHA-256", first, final).ok());
  const auto altered = [](const std::string& text) {
    std::vector<std::string> all = {"", text + text, text + '\0', text + ",", text + "A"};
    for (size_t i = 0; i < text.size(); ++i) {
      all.push_back(text.substr(0, i));
      all.push_back(text.substr(0, i) + text.substr(i + 1));
      all.push_back(text.substr(0, i) + text[i] + text.substr(i));
      for (const int flip : {1, 0x20, 0x80}) {
        std::string other = text;
        other[i] = static_cast<char>(other[i] ^ flip);
        all.push_back(other);
      }
    }
    return all;
  };
  for (const std::string& other : altered(final)) {
    if (other != final) {  // a character dropped or doubled next to an equal one
      EXPECT_FALSE(Answer("SCRAM-SHA-256", first, other).ok()) << other;
    }
  }
  for (const std::string& other : altered(first)) {
    if (other != first) {
      EXPECT_FALSE(Answer("SCRAM-SHA-256", other, final).ok()) << other;
    }
  }
}

TEST(Scram, MessagesComeInTheirTurn) {
  EXPECT_EQ(Server()->Final(kClientFinal).status().sqlstate(), "08P01");
  const auto twice = Server();
  EXPECT_TRUE(twice->First(kScramSha256, kClientFirst).ok());
  EXPECT_EQ(twice->First(kScramSha256, kClientFirst).status().sqlstate(), "08P01");
  EXPECT_EQ(twice->Final(kClientFinal).status().sqlstate(), "08P01");
  // One proof per conversation.
  const auto again = Server();
  EXPECT_TRUE(again->First(kScramSha256, kClientFirst).ok());
  EXPECT_FALSE(again->Final("c=biws,r=x,p=x").ok());
  EXPECT_EQ(again->Final(kClientFinal).status().sqlstate(), "08P01");
  ScramClient client("x", std::nullopt, "n");
  EXPECT_EQ(client.Final(kServerFirst).status().sqlstate(), "08P01");
  EXPECT_EQ(client.Verify(kServerFinal).sqlstate(), "08P01");
}

TEST(Scram, LongMessagesAreNotLookedAt) {
  const std::string longest = "n,,n=,r=" + std::string(kMostScramBytes - 8, 'x');
  EXPECT_TRUE(Server()->First(kScramSha256, longest).ok());
  const auto refused = Server()->First(kScramSha256, longest + "x");
  EXPECT_EQ(refused.status().diagnostics()[0].detail, "it has 1025 bytes; 1 to 1024 are allowed");
}

TEST(Scram, VerifiersAreReadStrictly) {
  const std::string good = kVerifier;
  EXPECT_TRUE(ParseScramVerifier(good).ok());
  const auto md5 = ParseScramVerifier("md53175bce1d3201d16594cebf9d7eb3f9d");
  EXPECT_NE(md5.status().diagnostics()[0].hint.find("password_encryption"), std::string::npos);
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(ParseScramVerifier(good.substr(0, i)).ok()) << i;
    std::string longer = good;
    longer.insert(i, 1, '=');
    EXPECT_FALSE(ParseScramVerifier(longer).ok()) << longer;
  }
  const std::string keys = good.substr(good.rfind('$'));
  for (const char* how : {"SCRAM-SHA-256$0:QSXCR+Q6sek8bf92", "SCRAM-SHA-256$-1:QSXCR+Q6sek8bf92",
                          "SCRAM-SHA-256$4294967297:QSXCR+Q6sek8bf92", "SCRAM-SHA-256$4096:",
                          "SCRAM-SHA-256$:QSXCR+Q6sek8bf92", "SCRAM-SHA-1$4096:QSXCR+Q6sek8bf92",
                          "SCRAM-SHA-256$ 4096:QSXCR+Q6sek8bf92"}) {
    EXPECT_FALSE(ParseScramVerifier(how + keys).ok()) << how;
  }
  EXPECT_FALSE(ParseScramVerifier(good + "\n").ok());
  EXPECT_FALSE(ParseScramVerifier("").ok());
}

}  // namespace
}  // namespace sluice::server::pgwire
