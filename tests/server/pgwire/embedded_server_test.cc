#include "server/pgwire/embedded/embedded_server.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/server/pgwire/wire_notation.h"

// The embedded back end over a SQLite database in memory, without a socket or a thread. Each file
// of embedded/*.txt is a conversation: "C: message" is what a client says, and the lines below it
// are what it hears. UPDATE_GOLDEN=1 writes them anew.
namespace sluice::server::pgwire {
namespace {

std::unique_ptr<EmbeddedServer> OpenServer(const std::string& url = "sqlite::memory:") {
  auto session = catalog::OpenEmbeddedSession(url, {"ann", "shop", "PostgreSQL 15.0", "15.0"});
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  return std::make_unique<EmbeddedServer>(*std::move(session), SessionSettings("15.0", "ann", {}));
}

std::string Field(BodyReader& reader) {
  const uint32_t size = reader.Uint32();
  return size == 0xffffffffU ? "NULL" : std::string(reader.Bytes(size));
}

// As wire_notation has them, but rows and columns whole: of a column its type, too.
std::vector<std::string> LinesOf(std::string& stream) {
  std::vector<std::string> lines;
  while (stream.size() >= kHeaderBytes) {
    const size_t size = 1 + ReadUint32(std::string_view(stream).substr(1));
    if (size > stream.size()) {
      break;
    }
    std::string message = stream.substr(0, size);
    stream.erase(0, size);
    BodyReader reader(std::string_view(message).substr(kHeaderBytes));
    if (message[0] == 'T' || message[0] == 'D') {
      std::string line = message[0] == 'T' ? "RowDescription" : "DataRow";
      for (uint16_t left = reader.Uint16(); left > 0; --left) {
        line += line.find(' ') == std::string::npos ? " " : " | ";
        if (message[0] == 'D') {
          line += Field(reader);
          continue;
        }
        const std::string name(reader.String());
        reader.Uint32();
        reader.Uint16();
        line += fmt::format("{} {}", name, reader.Uint32());
        reader.Bytes(8);
      }
      lines.push_back(line);
    } else {
      for (std::string& line : TakeLines(message, false)) {
        std::replace(line.begin(), line.end(), '\n', '$');  // of a row of COPY
        lines.push_back(std::move(line));
      }
    }
  }
  return lines;
}

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

class EmbeddedSessionsTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }

  // What the client hears of one Query.
  static std::vector<std::string> Ask(EmbeddedServer& server, const std::string& sql,
                                      EmbeddedServer::State* state = nullptr) {
    std::string query;
    AppendQuery(query, sql);
    server.Take(query);
    return GoOn(server, state);
  }
  static std::vector<std::string> GoOn(EmbeddedServer& server,
                                       EmbeddedServer::State* state = nullptr) {
    std::string said;
    EmbeddedServer::State after = EmbeddedServer::State::kMore;
    while (after == EmbeddedServer::State::kMore) {
      after = server.Work(&said);
    }
    if (state != nullptr) {
      *state = after;
    }
    return LinesOf(said);
  }

  const std::string file_ =
      (std::filesystem::temp_directory_path() / fmt::format("sluice_embedded_{}.db", getpid()))
          .string();
};

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

TEST_F(EmbeddedSessionsTest, AFileThatIsGoneIsNotMadeAnew) {
  EXPECT_EQ(catalog::OpenEmbeddedSession("sqlite:" + file_, {}).status().sqlstate(), "58P01");
  EXPECT_FALSE(std::filesystem::exists(file_));
}

}  // namespace
}  // namespace sluice::server::pgwire
