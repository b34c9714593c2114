// What a gateway with --audit writes, compared with what its clients did at each of its doors.
#include <fcntl.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/sluice_process.h"
#include "tests/support/postgres_server.h"

namespace sluice::server {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A statement as the audit has it, from its two lines.
struct Audited {
  std::string door, sql, outcome;
  bool operator==(const Audited&) const = default;
};
void PrintTo(const Audited& one, std::ostream* out) {
  *out << one.door << ": " << one.sql << " -> " << one.outcome;
}

// The parameter: whether the gateway is over PostgreSQL.
class AuditTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::string folder = (fs::temp_directory_path() / "sluice_audit_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    home_ = folder;
    source_ = "sqlite:" + home_ + "/test.db";
    if (postgres()) {
      database_ = std::make_unique<testing::PostgresTestDatabase>();
      if (database_->url().empty()) {
        GTEST_SKIP() << "no PostgreSQL server";
      }
      source_ = database_->url();
    }
    const std::string numbers = postgres() ? "generate_series(1, 300) AS n(i)"
                                           : "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT "
                                             "i + 1 FROM n WHERE i < 300) SELECT i FROM n) AS n";
    ASSERT_EQ(RunInShell(fmt::format("{} sql --source '{}' -c \"CREATE TABLE points AS SELECT i * "
                                     "1.0 AS x, i % 7 AS z, i % 2 AS y FROM {}\" 2>&1",
                                     SLUICE_BINARY, source_, numbers))
                  .exit_code,
              0);
  }
  void TearDown() override {
    gateway_.reset();
    fs::remove_all(home_);
  }
  static bool postgres() { return GetParam(); }
  std::string Log() const { return home_ + "/audit.jsonl"; }

  // False: the gateway has ended.
  bool Start(const std::string& options = "") {
    gateway_ = std::make_unique<BackgroundProcess>(
        fmt::format("HOME={0} exec {1} serve --source '{2}' --auth trust --grpc 127.0.0.1:0 --pg "
                    "127.0.0.1:0 --audit {3} {4} 2>{0}/errors",
                    home_, SLUICE_BINARY, source_, Log(), options));
    const std::string grpc = gateway_->ReadLine();  // gRPC on 127.0.0.1:1234
    const std::string door = gateway_->ReadLine();  // PostgreSQL on 127.0.0.1:1234, ...
    const size_t colon = door.find(':');
    if (colon == std::string::npos) {
      return false;
    }
    grpc_ = grpc.substr(grpc.rfind(' ') + 1);
    port_ = std::to_string(std::stoi(door.substr(colon + 1)));
    return true;
  }
  std::string DatabaseName() const {
    return postgres() ? source_.substr(source_.rfind('/') + 1) : "shop";
  }
  std::string Conninfo() const {
    return fmt::format("host=127.0.0.1 port={} user=postgres dbname={}", port_, DatabaseName());
  }
  ShellOutcome Psql(const std::string& script, const std::string& options = "") const {
    std::ofstream(home_ + "/psql.sql") << script;
    return RunInShell(fmt::format("psql -XAt -v ON_ERROR_STOP=1 {} '{}' < {}/psql.sql 2>&1",
                                  options, Conninfo(), home_));
  }
  ShellOutcome Grpc(const std::string& script) const {
    std::ofstream(home_ + "/grpc.sql") << script;
    return RunInShell(fmt::format("HOME={0} {1} sql --gateway {2} --user eve -f {0}/grpc.sql 2>&1",
                                  home_, SLUICE_BINARY, grpc_));
  }

  std::string Text(const std::string& path = "") const {
    std::ifstream file(path.empty() ? Log() : path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // Its lines, each of which has to be an object of JSON with a time and an event.
  std::vector<rapidjson::Document> Lines(const std::string& path = "") const {
    std::vector<rapidjson::Document> lines;
    std::istringstream text(Text(path));
    for (std::string line; std::getline(text, line);) {
      rapidjson::Document document;
      document.Parse(line.c_str(), line.size());
      const bool object = !document.HasParseError() && document.IsObject();
      EXPECT_TRUE(object && document.HasMember("time") && document.HasMember("event")) << line;
      if (object) {
        lines.push_back(std::move(document));
      }
    }
    return lines;
  }
  static std::string Get(const rapidjson::Value& line, const char* name) {
    const auto found = line.FindMember(name);
    return found == line.MemberEnd() ? ""
           : found->value.IsString() ? found->value.GetString()
           : found->value.IsInt64()  ? std::to_string(found->value.GetInt64())
           : found->value.IsBool()   ? (found->value.GetBool() ? "true" : "false")
                                     : "?";
  }
  // Statements in the order of their beginnings; one without an end has the outcome "".
  std::vector<Audited> Statements() const {
    std::vector<std::pair<std::string, Audited>> statements;
    for (const rapidjson::Document& line : Lines()) {
      const std::string id = Get(line, "statement");
      if (Get(line, "event") == "begin") {
        statements.push_back({id, {Get(line, "door"), Get(line, "sql"), ""}});
      } else if (Get(line, "event") == "end") {
        const auto begun = std::find_if(statements.begin(), statements.end(),
                                        [&](const auto& one) { return one.first == id; });
        EXPECT_NE(begun, statements.end()) << "an end without a beginning: " << id;
        if (begun != statements.end()) {
          EXPECT_EQ(begun->second.outcome, "") << "a second end";
          begun->second.outcome = Get(line, "outcome");
        }
      }
    }
    std::vector<Audited> all;
    for (auto& [id, statement] : statements) {
      all.push_back(std::move(statement));
    }
    return all;
  }
  // The end of the latest statement that contains this; an empty object if there is none.
  rapidjson::Document EndOf(const std::string& part) const {
    std::string id;
    rapidjson::Document end(rapidjson::kObjectType);
    for (rapidjson::Document& line : Lines()) {
      if (Get(line, "event") == "begin" && Get(line, "sql").find(part) != std::string::npos) {
        id = Get(line, "statement");
      } else if (Get(line, "event") == "end" && Get(line, "statement") == id) {
        end = std::move(line);
      }
    }
    return end;
  }
  static std::vector<std::string> Texts(const rapidjson::Value& line, const char* name) {
    std::vector<std::string> texts;
    const auto found = line.FindMember(name);
    if (found != line.MemberEnd() && found->value.IsArray()) {
      for (const auto& one : found->value.GetArray()) {
        texts.emplace_back(one.GetString());
      }
    }
    return texts;
  }
  // False after a minute.
  bool Comes(const std::function<bool()>& what) const {
    for (int i = 0; i < 1'200; ++i) {
      if (what()) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  bool Begins(const std::string& part) const {
    return Comes([&] { return Text().find(part) != std::string::npos; });
  }

  std::string home_, source_, grpc_, port_;
  std::unique_ptr<testing::PostgresTestDatabase> database_;
  std::unique_ptr<BackgroundProcess> gateway_;
};
INSTANTIATE_TEST_SUITE_P(Databases, AuditTest, ::testing::Values(false, true),
                         [](const auto& tested) { return tested.param ? "Postgres" : "Sqlite"; });

// Runs until it is ended.
constexpr const char* kLongTraining =
    "SELECT a.x, b.x AS w, a.y FROM points a, points b, points c TO TRAIN DNNClassifier WITH "
    "model.hidden_units=[64, 64], train.epoch=200, train.max_steps=100000000 LABEL y INTO long_one";

TEST_P(AuditTest, IsWhatTheClientsDidAtEachDoor) {
  ASSERT_TRUE(Start());
  EXPECT_EQ(Psql("SELECT x, z, y FROM points TO TRAIN LinearClassifier WITH train.epoch=1 LABEL y "
                 "INTO m;\n"
                 "SELECT x, z FROM points WHERE x < 123456.5 TO PREDICT p.y USING m;\n")
                .exit_code,
            0);
  EXPECT_NE(Psql("SELECT x, z FROM points TO PREDICT p.y USING nothing;").exit_code, 0);
  EXPECT_EQ(Grpc("CREATE TABLE u (name text); INSERT INTO u VALUES ('s3cret');\n"
                 "SELECT x, z FROM points TO PREDICT y USING m;\n"
                 "SELECT x FROM points WHERE x < 3;")
                .exit_code,
            0);
  EXPECT_NE(Grpc("SELECT 's3cret' FROM missing; SELECT 1;").exit_code, 0);
  EXPECT_NE(Grpc("SELECT 's3cret' TO NONSENSE;").exit_code, 0);
  gateway_.reset();

  EXPECT_THAT(
      Statements(),
      ElementsAre(
          Audited{"postgresql",
                  "SELECT x, z, y FROM points TO TRAIN LinearClassifier WITH train.epoch=? LABEL y "
                  "INTO m",
                  "ok"},
          Audited{"postgresql", "SELECT x, z FROM points WHERE x < ? TO PREDICT p.y USING m", "ok"},
          Audited{"postgresql", "SELECT x, z FROM points TO PREDICT p.y USING nothing", "42704"},
          Audited{"grpc", "CREATE TABLE u (name text)", "ok"},
          Audited{"grpc", "INSERT INTO u VALUES ('...')", "ok"},
          Audited{"grpc", "SELECT x, z FROM points TO PREDICT y USING m", "ok"},
          Audited{"grpc", "SELECT x FROM points WHERE x < ?", "ok"},
          Audited{"grpc", "SELECT '...' FROM missing", "42P01"},
          Audited{"grpc", "SELECT '...' TO NONSENSE", "42601"}));
  EXPECT_THAT(Text(), Not(HasSubstr("s3cret")));
  EXPECT_THAT(Text(), Not(HasSubstr("123456")));

  const rapidjson::Document trained = EndOf("TO TRAIN");
  EXPECT_EQ(Get(trained, "rows_read"), "300");
  EXPECT_NE(Get(trained, "snapshot"), "");
  EXPECT_NE(Get(trained, "job"), "");
  EXPECT_THAT(Texts(trained, "columns"), ::testing::UnorderedElementsAre("x", "z", "y"));
  ASSERT_TRUE(trained.HasMember("models"));
  const rapidjson::Value& made = trained["models"][0];
  EXPECT_EQ(Get(made, "name"), "m");
  EXPECT_EQ(Get(made, "version"), "1");
  EXPECT_EQ(Get(made, "sha256").size(), 64U);

  const rapidjson::Document predicted = EndOf("TO PREDICT y USING m");
  EXPECT_EQ(Get(predicted, "role"), "eve");
  EXPECT_EQ(Get(predicted, "address"), "127.0.0.1");
  EXPECT_EQ(Get(predicted, "rows_sent"), "300");
  EXPECT_NE(Get(predicted, "snapshot"), "");
  EXPECT_THAT(Texts(predicted, "columns"), ::testing::UnorderedElementsAre("x", "z"));
  ASSERT_TRUE(predicted.HasMember("models"));
  EXPECT_EQ(Get(predicted["models"][0], "sha256"), Get(made, "sha256"));
  const rapidjson::Document plain = EndOf("SELECT x FROM points");
  EXPECT_EQ(Get(plain, "rows_sent"), "2");
  EXPECT_THAT(Texts(plain, "columns"), ElementsAre("x"));
}

TEST_P(AuditTest, HasCancelsAndSurvivesSigkill) {
  ASSERT_TRUE(Start());
  std::ofstream(home_ + "/long.sql") << kLongTraining << ";\n";
  {
    BackgroundProcess psql(
        fmt::format("exec psql -XAt '{}' -f {}/long.sql 2>&1", Conninfo(), home_));
    ASSERT_TRUE(Begins("INTO long_one"));
    kill(psql.pid(), SIGINT);
    ASSERT_TRUE(Comes([&] { return Get(EndOf("INTO long_one"), "outcome") == "57014"; })) << Text();
  }
  const std::vector<rapidjson::Document> lines = Lines();
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const rapidjson::Document& line) {
    return Get(line, "event") == "cancel" && Get(line, "door") == "postgresql" &&
           Get(line, "role") == "postgres" && Get(line, "address") == "127.0.0.1";
  })) << Text();

  BackgroundProcess client(fmt::format("HOME={0} exec {1} sql --gateway {2} -f {0}/long.sql 2>&1",
                                       home_, SLUICE_BINARY, grpc_));
  ASSERT_TRUE(Comes([&] { return Statements().size() == 2; })) << Text();
  kill(gateway_->pid(), SIGKILL);
  gateway_.reset();
  EXPECT_THAT(Statements(), ElementsAre(::testing::Field(&Audited::outcome, "57014"),
                                        ::testing::Field(&Audited::outcome, "")));
  EXPECT_TRUE(Text().ends_with("\n"));
}

TEST_P(AuditTest, HasWhoGrantsWhatToWhom) {
  if (!postgres()) {
    GTEST_SKIP() << "SQLite has no roles";
  }
  ASSERT_TRUE(Start());
  ASSERT_EQ(Psql("SELECT x, y FROM points TO TRAIN LinearClassifier WITH train.epoch=1 LABEL y "
                 "INTO m;\nGRANT USAGE ON MODEL m TO public;\nREVOKE USAGE ON MODEL m FROM public;")
                .exit_code,
            0);
  const rapidjson::Document granted = EndOf("GRANT USAGE");
  EXPECT_THAT(Texts(granted, "granted_to"), ElementsAre("public"));
  EXPECT_EQ(Get(granted["models"][0], "name"), "m");
  EXPECT_THAT(Texts(EndOf("REVOKE USAGE"), "revoked_from"), ElementsAre("public"));
}

TEST_P(AuditTest, NothingRunsWithoutIt) {
  ASSERT_TRUE(Start());
  fs::rename(Log(), Log() + ".1");
  fs::create_directory(Log());
  const ShellOutcome refused = Grpc("CREATE TABLE made (a integer);");
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.output, HasSubstr("the audit cannot be written"));
  EXPECT_THAT(Psql("SELECT x, y FROM points TO TRAIN LinearClassifier LABEL y INTO m;").output,
              HasSubstr("the audit cannot be written"));
  fs::remove(Log());
  EXPECT_EQ(Grpc("CREATE TABLE made (a integer);").exit_code, 0) << "it was not made before";
  EXPECT_EQ(Statements().size(), 1U);
}

TEST_P(AuditTest, AGatewayThatCannotWriteItDoesNotStart) {
  std::ofstream(home_ + "/errors") << "";
  fs::create_symlink("/dev/full", Log());
  EXPECT_FALSE(Start());
  EXPECT_THAT(Text(home_ + "/errors"), HasSubstr("the audit cannot be written"));
  fs::remove(Log());
}

TEST_P(AuditTest, GoesOnInANewFileWhenTheOldOneWasRenamed) {
  ASSERT_TRUE(Start());
  ASSERT_EQ(Grpc("SELECT 1;").exit_code, 0);
  fs::rename(Log(), Log() + ".1");
  ASSERT_EQ(Grpc("SELECT 2;").exit_code, 0);
  EXPECT_THAT(Statements(), ElementsAre(Audited{"grpc", "SELECT ?", "ok"}));
  EXPECT_EQ(Lines(Log() + ".1").size(), 3U) << "the start, and the first statement";
  struct stat file {};
  ASSERT_EQ(stat(Log().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777U, 0600U);
}

TEST_P(AuditTest, HasWhatAnExecuteRunsAndWhatStandsBehindLongTexts) {
  ASSERT_TRUE(Start());
  ASSERT_EQ(Grpc("SELECT * FROM points LABEL y INTO m;").exit_code, 0);
  const ShellOutcome ran = Grpc(
      "PREPARE p (double precision) AS SELECT * FROM points WHERE x = $1 TO PREDICT y USING m;"
      "EXECUTE p (17);\n/*" +
      std::string(70'000, 'x') + "*/ SELECT '" + std::string(70'000, 'y') +
      "' AS a, z FROM points WHERE x = 1;\nSELECT 1 AS a WHERE 1 IN (" +
      [] {
        std::string more = "1";
        for (int i = 0; i < 40'000; ++i) {
          more += ",1";
        }
        return more;
      }() +
      ");");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  gateway_.reset();
  EXPECT_THAT(Text(), HasSubstr("EXECUTE p (?) : SELECT * FROM points WHERE x = $1 TO PREDICT"));
  EXPECT_THAT(Text(), HasSubstr("\"SELECT '...' AS a, z FROM points WHERE x = ?\""));
  EXPECT_THAT(Text(), HasSubstr(" ...\",\"sql_sha256\":\""));
  EXPECT_THAT(Text(), HasSubstr("\"sql_bytes\":80028}"));
}

// Over SQLite the door's plain statements have no other record; a server has its own.
// Drivers describe what they are about to execute; what is refused then is never executed.
TEST_P(AuditTest, HasWhatIsRefusedWhenItIsDescribed) {
  ASSERT_TRUE(Start());
  const ShellOutcome described =
      Psql("SELECT x FROM points TO PREDICT scored.y USING nobodys \\gdesc\n");
  EXPECT_THAT(described.output, HasSubstr("nobodys"));
  EXPECT_THAT(Text(), HasSubstr("USING nobodys"));
  EXPECT_THAT(Text(), HasSubstr("42704"));
}

TEST_P(AuditTest, HasPlainStatementsOfTheDoorOverSqlite) {
  if (postgres()) {
    GTEST_SKIP() << "they are the server's to record";
  }
  ASSERT_TRUE(Start());
  EXPECT_EQ(Psql("CREATE TABLE u (name text);\nINSERT INTO u VALUES ('s3cret'), ('other');\n"
                 "SELECT name FROM u WHERE name <> 's3cret';\nBEGIN; COMMIT;\n")
                .exit_code,
            0);
  EXPECT_NE(Psql("SELECT * FROM missing;").exit_code, 0);
  EXPECT_NE(Psql("SELEKT 's3cret';").exit_code, 0);
  const ShellOutcome bound = RunInShell(fmt::format(
      "/usr/bin/python3 -c \"import psycopg; c = psycopg.connect('{} sslmode=disable', "
      "autocommit=True); print(c.execute('SELECT name FROM u WHERE name = %s AND 1 = 1', "
      "('s3cret',)).fetchall())\" 2>&1",
      Conninfo()));
  EXPECT_EQ(bound.output, "[('s3cret',)]\n");
  gateway_.reset();
  EXPECT_THAT(
      Statements(),
      ElementsAre(Audited{"postgresql", "CREATE TABLE u (name text)", "ok"},
                  Audited{"postgresql", "INSERT INTO u VALUES ('...'), ('...')", "ok"},
                  Audited{"postgresql", "SELECT name FROM u WHERE name <> '...'", "ok"},
                  Audited{"postgresql", "BEGIN", "ok"}, Audited{"postgresql", "COMMIT", "ok"},
                  Audited{"postgresql", "SELECT * FROM missing", "42P01"},
                  Audited{"postgresql", "SELEKT '...'", "42601"},
                  Audited{"postgresql", "SELECT name FROM u WHERE name = $1 AND ? = ?", "ok"}));
  const rapidjson::Document selected = EndOf("SELECT name");
  EXPECT_EQ(Get(selected, "rows_sent"), "1");
  EXPECT_THAT(Texts(selected, "columns"), ElementsAre("name"));
  EXPECT_THAT(Text(), Not(HasSubstr("s3cret")));
}

}  // namespace
}  // namespace sluice::server
