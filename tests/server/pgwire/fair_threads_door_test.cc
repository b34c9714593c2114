// Many long statements of one user over SQLite leave threads for the others.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/server/pgwire/sqlite_door_fixture.h"

namespace sluice {
namespace {

TEST_F(SqliteDoorTest, AUsersLongStatementsLeaveThreadsForOthers) {
  Start("--pg 127.0.0.1:0 --auth trust 2>/dev/null");
  std::ofstream(home_ + "/program.py")
      << "where = 'host=127.0.0.1 port=" << port_ << " dbname=shop sslmode=disable user='"
      << R"(
import os, psycopg
def connect(user):
    return psycopg.connect(where + user, autocommit=True)
def state(connection):
    result = connection.pgconn.get_result()
    return result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
held = [connect('ann') for _ in range(8 + 2 * os.cpu_count())]
for one in held:
    one.pgconn.send_query(
        b'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n')
print(connect('bob').execute('SELECT 7').fetchall())
# One that waits can be cancelled, one that waits and whose client has gone does not run.
held[-1].pgconn.get_cancel().cancel()
print(state(held[-1]))
held.pop().close()
for one in held[:-1]:
    one.close()
held[-1].pgconn.get_cancel().cancel()
print(state(held[-1]))
while held[-1].pgconn.get_result() is not None:
    pass
print(held[-1].execute('SELECT 8').fetchall())
)";
  EXPECT_EQ(RunInShell("timeout 100 /usr/bin/python3 " + home_ + "/program.py 2>&1").output,
            "[(7,)]\nb'57014'\nb'57014'\n[(8,)]\n");
}

}  // namespace
}  // namespace sluice
