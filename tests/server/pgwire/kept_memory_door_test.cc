// What clients make a gateway over SQLite keep or compute: limits instead of its end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "server/pgwire/messages.h"
#include "tests/server/pgwire/raw_client.h"
#include "tests/server/pgwire/sqlite_door_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class KeptMemoryTest : public SqliteDoorTest {
 protected:
  void SetUp() override {
    SqliteDoorTest::SetUp();
    Start("--pg 127.0.0.1:0 --auth trust --memory-limit 512 2>/dev/null");
  }
  std::string Grpc(const std::string& script) const {
    std::ofstream(home_ + "/grpc.sql") << script;
    return RunInShell(fmt::format("HOME={0} {1} sql --gateway 127.0.0.1:{2} -f {0}/grpc.sql 2>&1 "
                                  "| cut -c1-300",
                                  home_, SLUICE_BINARY, grpc_port_))
        .output;
  }
  // The most bytes that the gateway had so far.
  int64_t Peak() const {
    const std::string kilobytes =
        RunInShell(fmt::format("awk '/VmHWM/ {{print $2}}' /proc/{}/status", gateway_->pid()))
            .output;
    return std::stoll(kilobytes) << 10U;
  }
  // Runs a program of Python with a connection `c`.
  std::string WithPsycopg(const std::string& program) const {
    std::ofstream(home_ + "/program.py")
        << "import psycopg\nc = psycopg.connect('" << Conninfo()
        << " sslmode=disable', autocommit=True)\nc.prepare_threshold = None\n"
        << program;
    return RunInShell("/usr/bin/python3 " + home_ + "/program.py 2>&1").output;
  }
};

// 128 MiB for SQLite, a quarter of that for a value.
TEST_F(KeptMemoryTest, AValueHasItsLimitAtBothDoors) {
  for (const std::string value :
       {"randomblob(1000000000)", "zeroblob(1000000000)",
        "replace(printf('%.*c', 100000, 'x'), 'x', printf('%.*c', 10000, 'y'))",
        "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT "
        "group_concat(printf('%.*c', 1000000, 'x')) FROM n)",
        "hex(zeroblob(30000000))"}) {
    EXPECT_THAT(Psql("SELECT " + value + " AS v;").output, HasSubstr("54000")) << value;
    EXPECT_THAT(Grpc("SELECT " + value + " AS v;"), HasSubstr("54000")) << value;
    EXPECT_THAT(Psql("SELECT x, y, " + value +
                     " AS v FROM points TO TRAIN LinearClassifier LABEL y INTO m;")
                    .output,
                HasSubstr("54000"))
        << value;
  }
  EXPECT_EQ(Psql("SELECT length(randomblob(30000000));", "-At").output, "30000000\n");
}

// The copies of its cells on their way to the client count.
TEST_F(KeptMemoryTest, ARowHasItsLimitAtBothDoors) {
  const std::string row = "SELECT zeroblob(20000000) AS a, zeroblob(20000000) AS b";
  for (const std::string& statement : {row + ";", "COPY (" + row + ") TO STDOUT;"}) {
    EXPECT_THAT(Psql(statement).output, HasSubstr("53200")) << statement;
  }
  EXPECT_THAT(Grpc(row + ";"), HasSubstr("53200"));
  // The memory is there again.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Psql("SELECT zeroblob(15000000);", "-At").output.size(), 30'000'003U);
    EXPECT_THAT(Grpc("SELECT zeroblob(15000000);"), HasSubstr("0000"));
  }
}

TEST_F(KeptMemoryTest, PreparedStatementsAndPortalsHaveALimit) {
  const std::string counts = R"(
def fill(make):
    made = 0
    try:
        while made < 1000000:
            make(made)
            made += 1
    except psycopg.Error as e:
        print(e.sqlstate, made > 100)
many = ' -- ' + 'x' * 60000
fill(lambda i: c.execute(f'PREPARE p{i} AS SELECT {i}' + many))
c.execute('DEALLOCATE ALL')
c.execute('PREPARE again AS SELECT 1')
print(c.execute('EXECUTE again').fetchall())
c.execute('DEALLOCATE ALL')
def parse(i, sql):
    r = c.pgconn.prepare(f'q{i}'.encode(), (sql + many).encode())
    if r.error_message:
        raise psycopg.errors.lookup(r.error_field(psycopg.pq.DiagnosticField.SQLSTATE).decode())()
fill(lambda i: parse(i, 'SELECT 1'))
c.execute('DEALLOCATE ALL')
)";
  EXPECT_EQ(WithPsycopg(counts), "53400 True\n[(1,)]\n53400 True\n");
}

TEST_F(KeptMemoryTest, SoHaveThoseOfSluicesStatements) {
  EXPECT_EQ(Psql("SELECT x, y FROM points TO TRAIN LinearClassifier WITH train.epoch=1 LABEL y "
                 "INTO m;",
                 "-o /dev/null -q -v ON_ERROR_STOP=1")
                .exit_code,
            0);
  const std::string program = R"(
made, state = 0, ''
many = ' /* ' + 'x' * 100000 + ' */ '
while made < 100000 and not state:
    r = c.pgconn.prepare(f'q{made}'.encode(),
                         ('SELECT x' + many + 'FROM points TO PREDICT y USING m').encode())
    if r.error_message:
        state = r.error_field(psycopg.pq.DiagnosticField.SQLSTATE).decode()
    made += 1
print(state, made > 100)
print(c.execute('SELECT x FROM points WHERE id < 3 TO PREDICT y USING m').rowcount)
)";
  EXPECT_EQ(WithPsycopg(program), "53400 True\n2\n");
}

// What stays between two messages of a client: not more than is left for everybody else.
TEST_F(KeptMemoryTest, OpenCursorsAndPortalsLeaveMemoryForOthers) {
  const std::string cursors = R"(
import itertools
number = itertools.count()
where = 'CONNINFO sslmode=disable'
others = psycopg.connect(where.replace('user=ann', 'user=bob'), autocommit=True)
def large():
    print(others.execute('SELECT length(randomblob(25000000))').fetchall())
def hold(sessions):
    states = set()
    for size in [25000000] * 6 + [8000000] * 6 + [2000000] * 6 + [500000] * 6 + [100000] * 6:
        for one in sessions:
            name = f'c{next(number)}'
            try:
                one.execute(f'DECLARE {name} CURSOR WITH HOLD FOR SELECT length(b), b FROM '
                            f'(SELECT randomblob({size}) AS b UNION ALL SELECT 1)')
                one.execute(f'MOVE 1 FROM {name}')
            except psycopg.Error as e:
                states.add(e.sqlstate)
    print(states)
hold([c])
large()
c.execute('CLOSE ALL')
# Several sessions of one user are counted together.
more = [psycopg.connect(where, autocommit=True) for _ in range(4)]
hold(more)
large()
for one in more:
    one.close()
# A cache that a client makes large is given back.
c.execute('PRAGMA cache_size = 100000')
c.execute('CREATE TABLE wide AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n '
          'WHERE i < 90) SELECT randomblob(1000000) AS b FROM n')
c.execute('BEGIN')
c.execute('DECLARE w CURSOR FOR SELECT CAST(sum(length(hex(b))) AS INTEGER) AS n FROM wide '
          'UNION ALL SELECT 1')
print(c.execute('FETCH 1 FROM w').fetchall())
large()
)";
  std::string program = cursors;
  const std::string_view conninfo = "CONNINFO";
  program.replace(program.find(conninfo), conninfo.size(), Conninfo());
  EXPECT_EQ(WithPsycopg(program),
            "{'53200'}\n[(25000000,)]\n{'53200'}\n[(25000000,)]\n[(180000000,)]\n"
            "[(25000000,)]\n");
}

// PostgreSQL's functions of arrays, which are ours over SQLite, take no multiple of an array's
// text.
TEST_F(KeptMemoryTest, FunctionsOfArraysTakeNoMultipleOfTheirText) {
  const std::string array = "('{' || replace(hex(zeroblob(5000000)), '00', '1,') || '1}')";
  // What the text itself takes, several times.
  EXPECT_EQ(
      Psql("SELECT length(" + array + "), length('x' || " + array + " || 'y');", "-At").output,
      "10000003|10000005\n");
  const int64_t before = Peak();
  EXPECT_EQ(Psql("SELECT array_length(" + array + ", 1);", "-At").output, "5000001\n");
  EXPECT_EQ(Psql("SELECT array_upper(" + array + ", 1);", "-At").output, "5000001\n");
  EXPECT_EQ(Psql("SELECT array_lower(" + array + ", 1);", "-At").output, "1\n");
  EXPECT_EQ(Psql("SELECT length(array_to_string(" + array + ", ''));", "-At").output, "5000001\n");
  EXPECT_EQ(Psql("SELECT pg_array_get(" + array + ", 5000001);", "-At").output, "1\n");
  EXPECT_EQ(Psql("SELECT pg_any_equals('2', " + array + ");", "-At").output, "0\n");
  constexpr int64_t kCopies = int64_t{100} << 20U;
  EXPECT_LT(Peak() - before, kCopies);
  EXPECT_THAT(Psql("SELECT array_to_string(" + array + ", printf('%.*c', 1000, 'x'));").output,
              HasSubstr("54000"));
  EXPECT_THAT(
      Psql("SELECT string_to_array(replace(hex(zeroblob(15000000)), '00', ','), ',');").output,
      HasSubstr("54000"));
  EXPECT_THAT(Psql("SELECT parse_ident(" + array + ");").output, HasSubstr("name is too long"));
}

TEST_F(KeptMemoryTest, AMessageOfManyTokensIsRefused) {
  const std::string refused = R"(
large = 'SELECT ' + '1,' * 45000000 + '1'
for prepare in (False, True):
    try:
        c.execute(large, prepare=prepare)
    except psycopg.Error as e:
        print(e.sqlstate)
import psycopg.pq
print(c.pgconn.prepare(b'', large.encode()).error_field(psycopg.pq.DiagnosticField.SQLSTATE))
many = 'CREATE TABLE many (a INTEGER); INSERT INTO many VALUES (1)' + ',(1)' * 100000
c.execute(many)
print(c.execute('SELECT count(*) FROM many').fetchall())
# A long text is one.
print(c.execute("SELECT length('{}') AS n".format('x' * 30000000)).fetchall())
)";
  // The message itself, a few times.
  constexpr int64_t kSome = int64_t{1000} << 20U;
  const int64_t before = Peak();
  EXPECT_EQ(WithPsycopg(refused), "54000\n54000\nb'54000'\n[(100001,)]\n[(30000000,)]\n");
  EXPECT_LT(Peak() - before, kSome);
  std::ofstream(home_ + "/tokens.sql") << "SELECT " << [] {
    std::string ones;
    for (int i = 0; i < 10'000'000; ++i) {
      ones += "1,";
    }
    return ones;
  }() << "1;";
  EXPECT_THAT(RunInShell(fmt::format("HOME={0} {1} sql --gateway 127.0.0.1:{2} -f {0}/tokens.sql "
                                     "2>&1 | cut -c1-300",
                                     home_, SLUICE_BINARY, grpc_port_))
                  .output,
              HasSubstr("54000"));
  EXPECT_LT(Peak() - before, kSome);
}

// Which of them the gateway would keep until the rest comes: each, over SQLite.
TEST_F(KeptMemoryTest, UnfinishedMessagesOfAUserHaveALimit) {
  const auto begin = [](char type, size_t size) {
    std::string message(1, type);
    server::pgwire::AppendUint32(message, static_cast<uint32_t>(size + 4));
    return message + std::string(size_t{1} << 20, ' ');
  };
  constexpr size_t kMiB = size_t{1} << 20;
  for (const char type : {'Q', 'P', 'B', 'd'}) {
    const RawClient first(port_), second(port_);
    first.LogIn("shop");
    second.LogIn("shop");
    first.Send(begin(type, 120 * kMiB));
    EXPECT_EQ(Psql("SELECT 1;", "-At").output, "1\n") << type;  // the door has read the message
    second.Send(begin(type, 10 * kMiB));
    EXPECT_THAT(second.ReadAll(), HasSubstr("C53200")) << type;
  }
  const RawClient large(port_);
  large.LogIn("shop");
  large.Send(begin('B', 900 * kMiB));
  EXPECT_THAT(large.ReadAll(), HasSubstr("C53200"));
  const RawClient whole(port_);
  whole.LogIn("shop");
  whole.Send(QueryMessage("SELECT 1" + std::string(50 * kMiB, ' ')));
  EXPECT_THAT(whole.ReadUntil("SELECT 1"), HasSubstr("SELECT 1"));
}

// They wait in the gateway until the prediction has ended. A role has half of 256 MiB.
TEST_F(KeptMemoryTest, RowsForACopyHaveALimit) {
  ASSERT_EQ(Psql("SELECT x, y FROM points TO TRAIN LinearClassifier WITH train.epoch=1 LABEL y "
                 "INTO m;",
                 "-o /dev/null -q -v ON_ERROR_STOP=1")
                .exit_code,
            0);
  const auto copy = [](int rows) {
    return fmt::format(
        "COPY (SELECT x, printf('%.*c', 1000000, 'z') AS z FROM points WHERE id <= "
        "{} TO PREDICT y USING m) TO STDOUT;\n",
        rows);
  };
  EXPECT_THAT(Psql(copy(150)).output.substr(0, 1000), HasSubstr("53200"));
  const std::string twice = Psql(copy(150) + copy(60) + copy(60) + "SELECT 'after';", "-At").output;
  EXPECT_GT(twice.size(), 120'000'000U);
  EXPECT_THAT(twice.substr(twice.size() - 100), HasSubstr("after"));
}

}  // namespace
}  // namespace sluice
