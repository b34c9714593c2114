#include "tests/support/postgres_server.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "catalog/data_source.h"

namespace sluice::testing {
namespace {

constexpr const char* kGiven = "SLUICE_TEST_POSTGRES";
constexpr const char* kBinaries = "/usr/lib/postgresql/15/bin";

int FreePort() {
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  int port = 0;
  if (bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
      getsockname(probe, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
    port = ntohs(address.sin_port);
  }
  close(probe);
  return port;
}

// PostgreSQL refuses to run as root.
std::string AsOwner(const std::string& command) {
  return geteuid() == 0 ? "runuser -u postgres -- " + command : command;
}

bool Run(const std::string& command) {
  return std::system(command.c_str()) == 0;
}

bool ExecuteOn(const std::string& url, const std::string& sql) {
  auto source = catalog::OpenDataSource(url);
  if (!source.ok()) {
    std::fprintf(stderr, "%s\n", source.status().ToString().c_str());
    return false;
  }
  const auto done = (*source)->Execute(sql, nullptr, {});
  if (!done.ok()) {
    std::fprintf(stderr, "%s\n", done.status().ToString().c_str());
  }
  return done.ok();
}

}  // namespace

PostgresServer* PostgresServer::Get() {
  static const std::unique_ptr<PostgresServer> server = GivenOrOwn();
  return server.get();
}

std::unique_ptr<PostgresServer> PostgresServer::GivenOrOwn() {
  if (const char* given = std::getenv(kGiven);
      given != nullptr && *given != '\0' && std::string(given) != "none") {
    std::unique_ptr<PostgresServer> server(new PostgresServer());
    const std::string url = given;
    server->url_prefix_ = url.substr(0, url.rfind('/') + 1);
    return server;
  }
  // All roles are trusted except this one and its members, for tests of passwords.
  return StartOwn(fmt::format("host all {0},+{0} 127.0.0.1/32 scram-sha-256", kPasswordRole));
}

std::unique_ptr<PostgresServer> PostgresServer::StartOwn(const std::string& rules) {
  if (const char* given = std::getenv(kGiven); given != nullptr && std::string(given) == "none") {
    return nullptr;
  }
  std::unique_ptr<PostgresServer> server(new PostgresServer());
  if (!std::filesystem::exists(std::string(kBinaries) + "/initdb")) {
    std::fprintf(stderr, "no PostgreSQL 15 in %s\n", kBinaries);
    return nullptr;
  }
  std::string directory =
      (std::filesystem::temp_directory_path() / "sluice-postgres-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) {
    std::perror("mkdtemp");
    return nullptr;
  }
  server->directory_ = directory;
  if (geteuid() == 0 && !Run("chown postgres " + directory)) {
    return nullptr;
  }
  const int port = FreePort();
  const std::string data = directory + "/data";
  const bool started =
      Run(AsOwner(fmt::format("{}/initdb -D {} -U postgres -A trust -E UTF8 --locale=C.UTF-8 "
                              "--no-sync > {}/initdb.log 2>&1",
                              kBinaries, data, directory))) &&
      Run(AsOwner(fmt::format(
          "sed -i '1i host all postgres 127.0.0.1/32 trust\\n{}' {}/pg_hba.conf", rules, data))) &&
      Run(AsOwner(fmt::format("{}/pg_ctl -D {} -w -l {}/server.log -o '-p {} -c fsync=off "
                              "-c listen_addresses=127.0.0.1 -c unix_socket_directories={}' "
                              "start > /dev/null 2>&1",
                              kBinaries, data, data, port, directory)));
  if (!started) {
    std::fprintf(stderr, "PostgreSQL did not start; see %s\n", directory.c_str());
    return nullptr;
  }
  server->url_prefix_ = fmt::format("postgresql://postgres@127.0.0.1:{}/", port);
  return server;
}

bool PostgresServer::Restart(const std::string& mode) const {
  return !directory_.empty() &&
         Run(AsOwner(fmt::format("{}/pg_ctl -D {}/data -w -m {} restart > /dev/null 2>&1",
                                 kBinaries, directory_, mode)));
}

PostgresServer::~PostgresServer() {
  if (directory_.empty()) {
    return;
  }
  Run(AsOwner(fmt::format("{}/pg_ctl -D {}/data -m immediate stop > /dev/null 2>&1", kBinaries,
                          directory_)));
  std::error_code error;
  std::filesystem::remove_all(directory_, error);
}

PostgresTestDatabase::PostgresTestDatabase() {
  const PostgresServer* server = PostgresServer::Get();
  if (server == nullptr) {
    return;
  }
  std::random_device random;
  name_ = fmt::format("test_{}_{:08x}", getpid(), random());
  // A copy of files takes a tenth of the time of one through the log; and while template1 is
  // copied, nobody can connect to it.
  if (ExecuteOn(server->url_prefix() + "postgres",
                "CREATE DATABASE " + name_ + " TEMPLATE template0 STRATEGY file_copy")) {
    url_ = server->url_prefix() + name_;
  }
}

PostgresTestDatabase::~PostgresTestDatabase() {
  if (!url_.empty()) {
    ExecuteOn(PostgresServer::Get()->url_prefix() + "postgres",
              "DROP DATABASE " + name_ + " WITH (FORCE)");
  }
}

}  // namespace sluice::testing
