#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "tests/server/pgwire/door_fixture.h"
#include "tests/server/pgwire/sqlite_door_fixture.h"

// Clients as installed, each used by one program (clients/any_*) over both databases: it connects
// with TLS, explores the catalogs, trains, predicts, reads an error and cancels. Also the example
// notebooks, whose cells must give the outputs stored in them.
namespace sluice {
namespace {

struct AnyClient {
  std::string name;
  std::string command;  // in the folder of the programs; login arguments are appended
};

void PrintTo(const AnyClient& client, std::ostream* out) {
  *out << client.name;
}

std::vector<AnyClient> AnyClients() {
  const std::string examples = SLUICE_SOURCE_DIR "/sql_examples/";
  return {
      {"Asyncpg", "/usr/bin/python3 any_asyncpg.py"},
      {"SqlalchemyAndPandas", "/usr/bin/python3 any_sqlalchemy.py"},
      {"Odbc", "/usr/bin/python3 any_pyodbc.py"},
      {"DbdPg", "perl any_dbd_pg.pl"},
      {"LibPq", SLUICE_LIB_PQ_CLIENT},
      {"Libpqxx", SLUICE_PQXX_CLIENT},
      {"NodePostgres",
       "env NODE_PATH=/usr/local/share/sluice-tests/usr/share/nodejs node any_node_postgres.js"},
      {"PostgresJs",
       "env NODE_PATH=/usr/local/share/sluice-tests/npm/node_modules node any_postgres_js.js"},
      {"Pgcli", "/usr/bin/python3 any_pgcli.py"},
      {"NotebookOfPsycopg",
       "/usr/bin/python3 run_notebook.py " + examples + "notebook_psycopg.ipynb"},
      {"NotebookOfSqlalchemy",
       "/usr/bin/python3 run_notebook.py " + examples + "notebook_sqlalchemy.ipynb"},
  };
}

std::string RunAnyClient(const AnyClient& client, const std::string& home,
                         const std::string& conninfo) {
  return RunInShell(fmt::format("cd {}/tests/server/pgwire/clients && HOME={} {} '{}' 2>&1",
                                SLUICE_SOURCE_DIR, home, client.command, conninfo))
      .output;
}

// scripts/install_packages could not get it: it comes from npm, and not from Debian.
bool IsLeftOut(const AnyClient& client) {
  return client.name == "PostgresJs" &&
         !std::filesystem::exists("/usr/local/share/sluice-tests/npm/node_modules/postgres");
}

class ClientOverSqlite : public SqliteDoorTest, public ::testing::WithParamInterface<AnyClient> {};

TEST_P(ClientOverSqlite, DoesWhatItDoes) {
  if (IsLeftOut(GetParam())) {
    GTEST_SKIP() << "npm has not installed postgres.js";
  }
  Start();
  EXPECT_EQ(RunAnyClient(GetParam(), home_, Conninfo()), "ok\n");
}

class ClientOverPostgres : public DoorTest, public ::testing::WithParamInterface<AnyClient> {};

TEST_P(ClientOverPostgres, DoesWhatItDoes) {
  if (IsLeftOut(GetParam())) {
    GTEST_SKIP() << "npm has not installed postgres.js";
  }
  Start();
  EXPECT_EQ(RunAnyClient(GetParam(), home_, Conninfo()), "ok\n");
}

const auto kNameOfClient = [](const auto& client) { return client.param.name; };
INSTANTIATE_TEST_SUITE_P(Clients, ClientOverSqlite, ::testing::ValuesIn(AnyClients()),
                         kNameOfClient);
INSTANTIATE_TEST_SUITE_P(Clients, ClientOverPostgres, ::testing::ValuesIn(AnyClients()),
                         kNameOfClient);

}  // namespace
}  // namespace sluice
