#include "server/pgwire/embedded/embedded_server.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/server/pgwire/embedded_session_fixture.h"
#include "tests/server/pgwire/wire_notation.h"

// The embedded back end over a SQLite database in memory, without a socket or a thread. Each file
// of embedded/*.txt is a conversation: "C: message" is sent by a client, and the lines below it are
// the answers. UPDATE_GOLDEN=1 rewrites them.
namespace sluice::server::pgwire {
namespace {

std::string Play(const std::filesystem::path& file, size_t piece) {
  const std::unique_ptr<EmbeddedServer> server = OpenServer();
  std::ifstream in(file);
  std::string line;
  std::string text;
  while (std::getline(in, line)) {
    if (line.empty() || line.front() == '#') {
      text += line + "\n";
    }
    if (!line.starts_with("C: ")) {
      continue;
    }
    text += line + "\n";
    const std::string message = MessageOf(line.substr(3));
    std::string said;
    for (size_t at = 0; at < message.size(); at += piece) {
      server->Take(std::string_view(message).substr(at, piece));
      while (server->Work(&said) == EmbeddedServer::State::kMore) {
      }
    }
    for (const std::string& heard : LinesOf(said)) {
      text += heard + "\n";
    }
    EXPECT_EQ(said, "") << "part of a message";
  }
  return text;
}

std::vector<std::filesystem::path> EmbeddedFiles() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/server/pgwire/embedded")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class EmbeddedServerTest : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(EmbeddedServerTest, SpeaksAsWritten) {
  std::ifstream file(GetParam());
  std::ostringstream written;
  written << file.rdbuf();
  const std::string played = Play(GetParam(), SIZE_MAX / 2);
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(GetParam()) << played;
    return;
  }
  EXPECT_EQ(played, written.str());
  EXPECT_EQ(Play(GetParam(), 1), written.str()) << "byte by byte";
}

INSTANTIATE_TEST_SUITE_P(Files, EmbeddedServerTest, ::testing::ValuesIn(EmbeddedFiles()),
                         [](const auto& file) { return file.param.stem().string(); });

TEST_F(EmbeddedSessionsTest, WaitsForALockWithoutAThread) {
  std::ofstream(file_).close();
  const auto one = OpenServer("sqlite:" + file_);
  Ask(*one, "CREATE TABLE t (a INTEGER)");
  const auto two = OpenServer("sqlite:" + file_);
  Ask(*one, "BEGIN; INSERT INTO t VALUES (1)");
  EmbeddedServer::State state = EmbeddedServer::State::kIdle;
  EXPECT_TRUE(Ask(*two, "INSERT INTO t VALUES (2)", &state).empty());
  EXPECT_EQ(state, EmbeddedServer::State::kLocked);
  EXPECT_TRUE(GoOn(*two, &state).empty());
  Ask(*one, "COMMIT");
  EXPECT_EQ(GoOn(*two, &state).front(), "CommandComplete INSERT 0 1");
  EXPECT_EQ(state, EmbeddedServer::State::kIdle);

  Ask(*one, "BEGIN; INSERT INTO t VALUES (3)");
  Ask(*two, "INSERT INTO t VALUES (4)", &state);
  EXPECT_EQ(state, EmbeddedServer::State::kLocked);
  two->StopWaiting(Status(Code::kUnavailable, "database is locked").SqlState("55P03"));
  EXPECT_EQ(GoOn(*two, &state).front(), "ErrorResponse 55P03 | database is locked");
  EXPECT_EQ(Ask(*two, "SELECT count(*) FROM t")[1], "DataRow 2") << "it goes on";
}

TEST_F(EmbeddedSessionsTest, SaysWhatAStatementBehindWithHasDone) {
  std::ofstream(file_).close();
  const auto server = OpenServer("sqlite:" + file_);
  Ask(*server, "CREATE TABLE t (a INTEGER)");
  const std::string with = "/* a comment */ WITH n(i) AS (SELECT 1 UNION ALL SELECT 2) ";
  EXPECT_EQ(Ask(*server, with + "INSERT INTO t SELECT i FROM n").front(),
            "CommandComplete INSERT 0 2");
  EXPECT_EQ(Ask(*server, with + "UPDATE t SET a = 3 WHERE a IN (SELECT i FROM n)").front(),
            "CommandComplete UPDATE 2");
  EXPECT_EQ(Ask(*server, with + "SELECT i FROM n").at(3), "CommandComplete SELECT 2");
  EXPECT_EQ(Ask(*server, with + "DELETE FROM t WHERE a IN (SELECT i + 2 FROM n)").front(),
            "CommandComplete DELETE 2");
}

TEST_F(EmbeddedSessionsTest, StopsWhereEnoughIsSaidAndGoesOn) {
  const auto server = OpenServer();
  std::string query;
  AppendQuery(query,
              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000)"
              " SELECT i, 'some text' AS t FROM n");
  server->Take(query);
  size_t rows = 0;
  int rounds = 0;
  EmbeddedServer::State state = EmbeddedServer::State::kMore;
  while (state == EmbeddedServer::State::kMore) {
    std::string said;
    state = server->Work(&said);
    EXPECT_LT(said.size(), size_t{300} << 10);
    ++rounds;
    for (const std::string& line : LinesOf(said)) {
      rows += line.starts_with("DataRow") ? 1 : 0;
    }
  }
  EXPECT_EQ(rows, 100000U);
  EXPECT_GT(rounds, 5);
}

TEST_F(EmbeddedSessionsTest, LetsOthersWorkWhereItHasWrittenNothing) {
  std::ofstream(file_).close();
  const auto server = OpenServer("sqlite:" + file_);
  Ask(*server, "CREATE TABLE t (a INTEGER); CREATE TEMP TABLE mine (a INTEGER)");
  EXPECT_TRUE(server->LetOthersWork("SELECT * FROM t LABEL a INTO m").ok());
  const Status temporary = server->LetOthersWork("SELECT * FROM \"Mine\" LABEL a INTO m");
  EXPECT_EQ(temporary.sqlstate(), "0A000") << temporary.ToString();
  Ask(*server, "BEGIN; SELECT * FROM t");
  EXPECT_TRUE(server->LetOthersWork("SELECT * FROM t LABEL a INTO m").ok());
  const auto other = OpenServer("sqlite:" + file_);
  EXPECT_EQ(Ask(*other, "INSERT INTO t VALUES (1)").front(), "CommandComplete INSERT 0 1")
      << "no lock is left";
  EXPECT_EQ(Ask(*server, "SELECT count(*) FROM t")[1], "DataRow 1");
  EXPECT_EQ(Ask(*server, "INSERT INTO t VALUES (2)").back(), "ReadyForQuery T");
  EXPECT_EQ(server->LetOthersWork("SELECT * FROM t LABEL a INTO m").sqlstate(), "25001");
}

// The catalogs follow the schema, including transactions that are rolled back.
TEST_F(EmbeddedSessionsTest, CatalogsFollowTheSchema) {
  std::ofstream(file_).close();
  const auto shared = catalog::MakeSharedCatalogs();
  const auto open = [&] {
    auto session = catalog::OpenEmbeddedSession("sqlite:" + file_,
                                                {"ann", "shop", "PostgreSQL 15.0", "15.0"}, shared);
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    return std::make_unique<EmbeddedServer>(*std::move(session),
                                            SessionSettings("15.0", "ann", {}));
  };
  const auto one = open();
  const auto two = open();
  const auto tables = [](EmbeddedServer& server) {
    std::string names;
    for (const std::string& line :
         Ask(server, "SELECT relname FROM pg_class WHERE relkind = 'r' ORDER BY 1")) {
      names += line.starts_with("DataRow ") ? line.substr(8) + " " : "";
      names += line.starts_with("ErrorResponse") ? line : "";
    }
    return names;
  };
  EXPECT_EQ(tables(*one), "");
  Ask(*one, "CREATE TABLE a (i INTEGER)");
  EXPECT_EQ(tables(*one), "a ");
  EXPECT_EQ(tables(*two), "a ");
  Ask(*one, "BEGIN; CREATE TABLE b (i INTEGER)");
  EXPECT_EQ(tables(*one), "a b ");
  EXPECT_EQ(tables(*two), "a ");
  Ask(*one, "ROLLBACK");
  EXPECT_EQ(tables(*one), "a ");
  // The schema's version is the same as in the transaction that was rolled back.
  Ask(*one, "CREATE TABLE c (i INTEGER)");
  EXPECT_EQ(tables(*one), "a c ");
  EXPECT_EQ(tables(*two), "a c ");
  Ask(*one, "BEGIN; SAVEPOINT s; CREATE TABLE d (i INTEGER)");
  EXPECT_EQ(tables(*one), "a c d ");
  Ask(*one, "ROLLBACK TO s");
  Ask(*one, "CREATE TABLE e (i INTEGER)");
  EXPECT_EQ(tables(*one), "a c e ");
  Ask(*one, "COMMIT");
  EXPECT_EQ(tables(*one), "a c e ");
  EXPECT_EQ(tables(*two), "a c e ");
  EXPECT_EQ(tables(*open()), "a c e ");
  // Relations without rows are created when they are queried, even in a read-only transaction.
  Ask(*two, "BEGIN; SELECT * FROM a");
  EXPECT_EQ(Ask(*two, "SELECT polname FROM pg_catalog.pg_policy").front(),
            "RowDescription polname 25");
  Ask(*two, "ROLLBACK");
  EXPECT_EQ(Ask(*two, "SELECT polname FROM pg_catalog.pg_policy").front(),
            "RowDescription polname 25");
  // An open reader keeps reading the old content.
  Ask(*two,
      "BEGIN; DECLARE c CURSOR FOR SELECT relname FROM pg_class WHERE relkind = 'r' ORDER BY 1");
  EXPECT_EQ(Ask(*two, "FETCH c")[1], "DataRow a");
  Ask(*two, "CREATE TABLE f (i INTEGER)");
  tables(*two);
  EXPECT_EQ(Ask(*two, "FETCH ALL c")[1], "DataRow c");
  Ask(*two, "COMMIT");
  EXPECT_EQ(tables(*two), "a c e f ");
}

TEST_F(EmbeddedSessionsTest, AFileThatWasReplacedHasItsOwnCatalogs) {
  const auto shared = catalog::MakeSharedCatalogs();
  const auto open = [&] {
    auto session = catalog::OpenEmbeddedSession("sqlite:" + file_,
                                                {"ann", "shop", "PostgreSQL 15.0", "15.0"}, shared);
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    return std::make_unique<EmbeddedServer>(*std::move(session),
                                            SessionSettings("15.0", "ann", {}));
  };
  const std::string names = "SELECT relname FROM pg_class WHERE relkind = 'r'";
  for (const std::string name : {"DataRow a", "DataRow b"}) {  // both see the first schema
    std::filesystem::remove(file_);
    std::ofstream(file_).close();
    const auto server = open();
    Ask(*server, "CREATE TABLE " + name.substr(8) + " (i INTEGER)");
    EXPECT_EQ(Ask(*server, names)[1], name);
    EXPECT_EQ(Ask(*open(), names)[1], name);
  }
}

TEST_F(EmbeddedSessionsTest, AFullDiskAndADamagedFileAreErrors) {
  std::ofstream(file_).close();
  const auto server = OpenServer("sqlite:" + file_);
  Ask(*server, "CREATE TABLE t (a TEXT)");
  ASSERT_TRUE(server->session().Run("PRAGMA max_page_count = 10").ok());
  const std::string fill =
      "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000)"
      " SELECT hex(zeroblob(100)) FROM n";
  EXPECT_EQ(Ask(*server, fill),
            (std::vector<std::string>{"ErrorResponse 53100 | database or disk is full",
                                      "ReadyForQuery I"}));
  EXPECT_EQ(Ask(*server, "BEGIN; " + fill).back(), "ReadyForQuery E");
  EXPECT_EQ(Ask(*server, "COMMIT").front(), "CommandComplete ROLLBACK");
  EXPECT_EQ(Ask(*server, "SELECT count(*) FROM t")[1], "DataRow 0");
  ASSERT_TRUE(server->session().Run("PRAGMA max_page_count = 1000000").ok());
  EXPECT_EQ(Ask(*server, fill).front(), "CommandComplete INSERT 0 1000");

  const auto size = static_cast<size_t>(std::filesystem::file_size(file_));
  std::fstream damage(file_, std::ios::in | std::ios::out | std::ios::binary);
  damage.seekp(4096);
  damage << std::string(size - 4096, 'x');
  damage.close();
  const auto reader = OpenServer("sqlite:" + file_);
  EXPECT_EQ(Ask(*reader, "SELECT count(*) FROM t"),
            (std::vector<std::string>{"ErrorResponse XX001 | database disk image is malformed",
                                      "ReadyForQuery I"}));
  EXPECT_EQ(Ask(*reader, "SELECT 1")[1], "DataRow 1");
  std::ofstream(file_) << std::string(10'000, 'x');
  EXPECT_EQ(catalog::OpenEmbeddedSession("sqlite:" + file_, {}).status().sqlstate(), "XX001");
}

// A mistake is an error; a query that is valid in PostgreSQL but unsupported here returns no rows.
TEST_F(EmbeddedSessionsTest, QueriesOfCatalogsThatNobodyForesaw) {
  const auto server = OpenServer();
  Ask(*server, "CREATE TABLE t (i INTEGER)");
  const std::pair<const char*, const char*> asked[] = {
      {"SELECT relnam FROM pg_class", "ErrorResponse 42703 | no such column: relnam | @8"},
      {"SELECT c.relnam FROM pg_class c", "ErrorResponse 42703 | no such column: c.relnam | @8"},
      {"SELECT 1 FROM pg_class, nope", "ErrorResponse 42P01 | no such table: nope | @25"},
      {"SELECT relname FRM pg_class ORDER", "ErrorResponse 42601 | "},
      {"SELECT x FROM pg_of_the_future", "RowDescription x 25"},
      {"SELECT row_to_json(c) AS j FROM pg_class c", "RowDescription j 25"},
      {"SELECT pg_of_the_future(oid) AS f FROM pg_class", "RowDescription f 25"},
      {"SELECT ctid FROM pg_class", "RowDescription ctid 25"},
      {"SELECT l.x FROM pg_class c, LATERAL (SELECT c.oid AS x) l", "RowDescription x 25"},
  };
  for (const auto& [sql, answer] : asked) {
    EXPECT_EQ(Ask(*server, sql).front().substr(0, std::string(answer).size()), answer) << sql;
  }
}

TEST_F(EmbeddedSessionsTest, AFileThatIsGoneIsNotMadeAnew) {
  EXPECT_EQ(catalog::OpenEmbeddedSession("sqlite:" + file_, {}).status().sqlstate(), "58P01");
  EXPECT_FALSE(std::filesystem::exists(file_));
}

}  // namespace
}  // namespace sluice::server::pgwire
