#include <gmock/gmock.h>

#include "tests/server/shell/shell_fixture.h"
#include "tests/support/postgres_server.h"

// COPY from and to the shell; only PostgreSQL has it.
namespace sluice::server {
namespace {

using ::testing::HasSubstr;

class CopyTest : public TerminalTest {
 protected:
  void SetUp() override {
    TerminalTest::SetUp();
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL server";
    }
    source_ = database_.url();
    ASSERT_EQ(Sql({"-c", "CREATE TABLE t (a integer, b text)"}).exit_code, 0);
  }

  sluice::testing::PostgresTestDatabase database_;
};

TEST_F(CopyTest, DataStandInTheScript) {
  const Outcome copied = Sql({},
                             "COPY t FROM STDIN;\n1\tx;y\n2\t\\N\n\\.\n"
                             "COPY t FROM STDIN (FORMAT csv);\n3,\"\n\\d\"\n\\.\n"
                             "COPY (SELECT * FROM t ORDER BY a) TO STDOUT;\n");
  EXPECT_EQ(copied.exit_code, 0) << copied.err;
  EXPECT_EQ(copied.out, "1\tx;y\n2\t\\N\n3\t\\n\\\\d\n");
  EXPECT_EQ(copied.err, "COPY 2\nCOPY 1\n");
}

TEST_F(CopyTest, AWrongLineIsAnErrorAtItsStatement) {
  const Outcome copied = Sql({}, "SELECT 1 AS a;\nCOPY t FROM STDIN;\nx\ty\n\\.\nSELECT 2 AS a;\n");
  EXPECT_EQ(copied.exit_code, 1);
  EXPECT_THAT(copied.err, HasSubstr("<stdin>:2: ERROR 22P02"));
}

TEST_F(CopyTest, ACommandReadsStandardInput) {
  EXPECT_EQ(Sql({"-c", "COPY t FROM STDIN"}, "1\tx\n2\ty\n").exit_code, 0);
  EXPECT_EQ(Sql({"-c", "COPY t TO STDOUT"}).out, "1\tx\n2\ty\n");
}

TEST_F(CopyTest, LinesAreTyped) {
  Open();
  ASSERT_TRUE(WaitFor("sluice> "));
  Type("COPY t FROM STDIN;\n");
  ASSERT_TRUE(WaitFor("end with"));
  Type("7\tx\n\\.\n");
  EXPECT_TRUE(WaitFor("COPY 1"));
  Type("SELECT a + 1 AS seen FROM t; \\timing\n");
  EXPECT_TRUE(WaitFor("Timing is on."));
}

}  // namespace
}  // namespace sluice::server
