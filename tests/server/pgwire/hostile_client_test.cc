#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <string>
#include <string_view>

#include "server/pgwire/messages.h"
#include "tests/server/pgwire/door_fixture.h"
#include "tests/server/pgwire/raw_client.h"

// Clients that misbehave: the door and other sessions continue.
namespace sluice {
namespace {

using server::pgwire::AppendStartup;
using server::pgwire::AppendUint32;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

using HostileClientTest = DoorTest;

TEST_F(HostileClientTest, NobodyIsOwedMuchBeforeLogin) {
  Start();
  for (const uint32_t length : {0U, 7U, 10'241U, 0x7fffffffU, 0xffffffffU}) {
    const RawClient client(port_);
    std::string startup;
    AppendUint32(startup, length);
    client.Send(startup + std::string(64, 'x'));
    EXPECT_THAT(client.ReadAll(), HasSubstr("invalid length of startup packet")) << length;
  }
  {
    const RawClient garbage(port_);
    garbage.Send(std::string("GET / HTTP/1.1\r\nHost: sluice\r\n\r\n"));
    EXPECT_THAT(garbage.ReadAll(), HasSubstr("invalid length"));
  }
  EXPECT_EQ(Psql("SELECT 1;", "-Atq").output, "1\n");
}

TEST_F(HostileClientTest, NobodyIsTwoUsers) {
  Start();
  for (const char* const name : {"user", "database"}) {
    for (const char* const first : {"", "postgres"}) {
      const RawClient client(port_);
      std::string startup;
      AppendStartup(startup, {server::pgwire::kProtocol3,
                              {{name, first}, {name, "postgres"}, {"user", "postgres"}}});
      client.Send(startup);
      EXPECT_THAT(client.ReadAll(), HasSubstr(fmt::format("names {} twice", name)));
    }
  }
}

TEST_F(HostileClientTest, NewerClientsAreToldWhatIsSpoken) {
  Start();
  const RawClient client(port_);
  std::string startup;
  AppendStartup(startup, {server::pgwire::kProtocol3 + 2,
                          {{"user", "postgres"}, {"database", Name()}, {"_pq_.news", "1"}}});
  client.Send(startup);
  const std::string ready("Z\0\0\0\5I", 6);
  const std::string said = client.ReadUntil(ready);
  const std::string told("v\0\0\0\26\0\3\0\0\0\0\0\1_pq_.news\0R", 24);
  EXPECT_EQ(said.substr(0, told.size()), told);
  EXPECT_THAT(said, HasSubstr(ready));
}

TEST_F(HostileClientTest, LengthsThatCannotBeEndTheirSessionOnly) {
  Start();
  for (const uint32_t length : {0U, 3U, 0x40000000U, 0xffffffffU}) {
    const RawClient client(port_);
    client.LogIn(Name());
    std::string message = "Q";
    AppendUint32(message, length);
    client.Send(message + "SHOW JOBS");
    EXPECT_NE(client.ReadAll(), "") << length;
  }
  EXPECT_TRUE(
      Becomes("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
              " AND backend_type = 'client backend' AND application_name = ''"
              " AND pid <> pg_backend_pid() AND query = ''",
              "0"));
}

TEST_F(HostileClientTest, WhoGoesWithMuchUnreadBehindATrainingIsMissed) {
  Start();
  {
    const RawClient client(port_);
    client.LogIn(Name());
    client.Send(QueryMessage(kLongTraining));
    ASSERT_TRUE(Becomes("SELECT state FROM sluice.jobs", "RUNNING"));
    client.Send(QueryMessage("SELECT '" + std::string(200'000, 'x') + "'"));
  }
  EXPECT_TRUE(Becomes("SELECT state FROM sluice.jobs", "CANCELLED"));
}

// A statement in the extended protocol, with its Sync.
std::string Extended(const std::string& sql) {
  std::string bytes;
  server::pgwire::AppendParse(bytes, {.name = "", .sql = sql, .types = {}});
  server::pgwire::AppendMessage(bytes, 'B', std::string(8, '\0'));
  server::pgwire::AppendMessage(bytes, 'D', std::string("P\0", 2));
  server::pgwire::AppendMessage(bytes, 'E', std::string(5, '\0'));
  server::pgwire::AppendMessage(bytes, 'S', {});
  return bytes;
}

// A client's own rows are not taken for the answers to what the gateway asks in its session: who
// acts there.
TEST_F(HostileClientTest, NobodyAnswersForTheServer) {
  Start();
  ASSERT_THAT(Psql("SELECT x, y FROM points TO TRAIN LinearClassifier LABEL y INTO seen;").output,
              HasSubstr("seen"));
  const std::string spoof =
      "SELECT '0'::text, 'nobody'::text, (SELECT NULL::text FROM pg_sleep(0.7))";
  const std::string ready("Z\0\0\0\5I", 6);
  {  // a COPY that fails before it has read the Sync behind it
    const RawClient client(port_);
    client.LogIn(Name());
    for (const char* sql : {"CREATE TEMP TABLE copied (a text)",
                            "CREATE FUNCTION pg_temp.f() RETURNS trigger LANGUAGE plpgsql AS"
                            " $$ BEGIN RAISE EXCEPTION 'no'; END $$",
                            "CREATE TRIGGER t BEFORE INSERT ON copied FOR EACH STATEMENT"
                            " EXECUTE FUNCTION pg_temp.f()"}) {
      client.Send(QueryMessage(sql));
      client.ReadUntil(ready);
    }
    client.Send(Extended("COPY copied FROM STDIN") + Extended(spoof) + QueryMessage("SHOW MODELS"));
    const std::string all = client.ReadUntil("SHOW");
    EXPECT_THAT(all, AllOf(HasSubstr("nobody"), HasSubstr("LinearClassifier")));
    EXPECT_LT(all.find("nobody"), all.find("LinearClassifier"));
  }
  {  // Syncs that it has not read, among its rows
    const RawClient client(port_);
    client.LogIn(Name());
    client.Send(QueryMessage("CREATE TEMP TABLE copied (a int)"));
    client.ReadUntil(ready);
    client.Send(QueryMessage("COPY copied FROM STDIN"));
    client.ReadUntil("G");
    std::string burst;
    server::pgwire::AppendMessage(burst, 'd', "x\n");
    server::pgwire::AppendMessage(burst, 'S', {});
    client.Send(burst + Extended(spoof) + QueryMessage("SHOW MODELS"));
    EXPECT_THAT(client.ReadAll(), AllOf(HasSubstr("08P01"), Not(HasSubstr("SHOW"))));
  }
}

TEST_F(HostileClientTest, WhoReadsNothingCostsNoMemory) {
  Start();
  const RawClient client(port_);
  client.LogIn(Name());
  client.Send(QueryMessage("SELECT repeat('x', 1000) FROM generate_series(1, 400000)"));
  const auto resident = [this] {
    std::ifstream status(fmt::format("/proc/{}/statm", gateway_->pid()));
    size_t pages = 0;
    status >> pages >> pages;
    return pages * 4096;
  };
  EXPECT_EQ(Psql("SELECT 1;", "-Atq").output, "1\n");
  const size_t before = resident();
  // The back end waits for room.
  EXPECT_TRUE(
      Becomes("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'ClientWrite'"
              " AND datname = current_database()",
              "1"));
  EXPECT_LT(resident(), before + (size_t{32} << 20));
}

// A machine that lost its power closes nothing: the kernel asks after it, at both ends of a
// session.
TEST_F(HostileClientTest, AMachineThatVanishesIsMissedWithinMinutes) {
  Start();
  const RawClient client(port_);
  client.LogIn(Name());
  EXPECT_THAT(
      RunInShell(fmt::format("ss -tnpoH state established | grep ',pid={},'", gateway_->pid()))
          .output,
      AllOf(ContainsRegex(":" + port_ + " .*timer:\\(keepalive,([0-9.]*sec|[0-9]+ms|1min)"),
            Not(HasSubstr("119min"))));
}

TEST_F(HostileClientTest, EveryMessageInEveryState) {
  Start();
  EXPECT_EQ(
      RunInShell(fmt::format("/usr/bin/python3 {}/tests/server/pgwire/clients/every_message.py"
                             " {} {} 1 2>&1",
                             SLUICE_SOURCE_DIR, port_, Name()))
          .output,
      "ok\n");
}

TEST_F(HostileClientTest, WrongCancelKeysCancelNothing) {
  Start();
  const RawClient client(port_);
  const std::string greeting = client.LogIn(Name());
  const size_t at = greeting.rfind(std::string("K\0\0\0\14", 5));
  ASSERT_NE(at, std::string::npos);
  const uint32_t process = LoadBigEndian<uint32_t>(std::string_view(greeting).substr(at + 5));
  const uint32_t key = LoadBigEndian<uint32_t>(std::string_view(greeting).substr(at + 9));
  client.Send(QueryMessage("SELECT pg_sleep(60)"));
  const std::string sleeps =
      "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'"
      " AND datname = current_database() AND state = 'active'";
  ASSERT_TRUE(Becomes(sleeps, "1"));
  const auto cancel = [this](uint32_t of, uint32_t with) {
    const RawClient canceller(port_);
    std::string request;
    server::pgwire::AppendCancelRequest(request, of, with);
    canceller.Send(request);
    EXPECT_EQ(canceller.ReadAll(), "");  // nobody hears how it went
  };
  for (const uint32_t wrong : {key + 1, ~key, 0U}) {
    cancel(process, wrong);
    cancel(process + 1, key);
  }
  EXPECT_EQ(Direct(sleeps).output, "1\n");
  cancel(process, key);
  EXPECT_THAT(client.ReadUntil("57014"), HasSubstr("57014"));
}

TEST_F(HostileClientTest, AServerWithoutRoomSaysSoItself) {
  const std::string role = "few_" + Name();
  ASSERT_EQ(Direct(fmt::format("CREATE ROLE {0} LOGIN CONNECTION LIMIT 1; GRANT SELECT ON points"
                               " TO {0}",
                               role))
                .exit_code,
            0);
  Start();
  const std::string train = "SELECT * FROM points TO TRAIN xgboost.gbtree LABEL y INTO m;";
  // The statement needs a connection beside the session's own.
  EXPECT_THAT(Psql(train + "\nSELECT 'still here';", "-At", role).output,
              ::testing::AllOf(HasSubstr("ERROR:  53300"), HasSubstr("CONNECTION LIMIT"),
                               HasSubstr("still here")));
  BackgroundProcess first(
      fmt::format("exec psql -X '{}' -c 'SELECT pg_sleep(60)' 2>&1", Conninfo(role)));
  ASSERT_TRUE(Becomes("SELECT count(*) FROM pg_stat_activity WHERE usename = '" + role + "'", "1"));
  EXPECT_THAT(Psql("SELECT 1;", "-At", role).output,
              HasSubstr("FATAL:  too many connections for role"));
  kill(first.pid(), SIGKILL);
  gateway_.reset();
  Direct(fmt::format("DROP OWNED BY {0}; DROP ROLE {0}", role));
}

TEST_F(HostileClientTest, ABackEndThatEndsIsToldInItsOwnWords) {
  Start();
  const RawClient idle(port_);
  idle.LogIn(Name());
  const std::string end =
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname ="
      " current_database() AND application_name = '' AND pid <> pg_backend_pid()"
      " AND backend_type = 'client backend' AND query = ''";
  Direct(end);
  EXPECT_THAT(idle.ReadAll(), HasSubstr("57P01"));
  EXPECT_EQ(Psql("SELECT 1;", "-Atq").output, "1\n");
}

}  // namespace
}  // namespace sluice
