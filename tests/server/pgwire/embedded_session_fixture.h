#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/pgwire/embedded/embedded_server.h"
#include "tests/server/pgwire/wire_notation.h"

// The embedded back end over a SQLite database, without a socket or a thread.
namespace sluice::server::pgwire {

inline std::unique_ptr<EmbeddedServer> OpenServer(const std::string& url = "sqlite::memory:") {
  auto session = catalog::OpenEmbeddedSession(url, {"ann", "shop", "PostgreSQL 15.0", "15.0"});
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  return std::make_unique<EmbeddedServer>(*std::move(session), SessionSettings("15.0", "ann", {}));
}

inline std::string Field(BigEndianReader& reader) {
  const uint32_t size = reader.Take<uint32_t>();
  return size == 0xffffffffU ? "NULL" : std::string(reader.Bytes(size));
}

// As wire_notation has them, but rows and columns whole: of a column its type, too.
inline std::vector<std::string> LinesOf(std::string& stream) {
  std::vector<std::string> lines;
  while (stream.size() >= kHeaderBytes) {
    const size_t size = 1 + LoadBigEndian<uint32_t>(std::string_view(stream).substr(1));
    if (size > stream.size()) {
      break;
    }
    std::string message = stream.substr(0, size);
    stream.erase(0, size);
    BigEndianReader reader(std::string_view(message).substr(kHeaderBytes));
    if (message[0] == 'T' || message[0] == 'D') {
      std::string line = message[0] == 'T' ? "RowDescription" : "DataRow";
      for (uint16_t left = reader.Take<uint16_t>(); left > 0; --left) {
        line += line.find(' ') == std::string::npos ? " " : " | ";
        if (message[0] == 'D') {
          line += Field(reader);
          continue;
        }
        const std::string name(reader.String());
        reader.Take<uint32_t>();
        reader.Take<uint16_t>();
        line += fmt::format("{} {}", name, reader.Take<uint32_t>());
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

}  // namespace sluice::server::pgwire
