#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/server/pgwire/embedded_session_fixture.h"

// An outsider at the door over SQLite: what a session must not do, by every way round that SQLite
// has, and values and names that no client expects.
namespace sluice::server::pgwire {
namespace {

class EmbeddedGuardTest : public EmbeddedSessionsTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_->session().Run("CREATE TABLE sluice_models (name TEXT)").ok());
    ASSERT_TRUE(server_->session().Run("INSERT INTO sluice_models VALUES ('m')").ok());
    Ask(*server_, "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)");
    Ask(*server_, "CREATE TABLE \"a(;b\" (a INTEGER)");
  }
  void ExpectRefused(const std::string& sql) {
    const auto heard = Ask(*server_, sql);
    EXPECT_TRUE(heard.front().starts_with("ErrorResponse 42501 | permission denied"))
        << sql << ": " << heard.front();
  }
  std::string First(const std::string& sql) { return Ask(*server_, sql).front(); }

  const std::unique_ptr<EmbeddedServer> server_ = OpenServer();
};

TEST_F(EmbeddedGuardTest, NoOtherFiles) {
  for (const char* sql : {
           "ATTACH 'other.db' AS o",
           "ATTACH DATABASE '' AS o",
           "ATTACH ':memory:' AS o",
           "ATTACH 'file:/etc/passwd?mode=ro' AS o",
           "/* VACUUM */ ATTACH 'other.db' AS o",
           "ATTACH (SELECT 'other.db') AS o",
           "attach database 'other.db' as pg_catalog",
           "DETACH pg_catalog",
           "DETACH information_schema",
           "VACUUM INTO 'copy.db'",
           "VACUUM main INTO 'copy.db'",
           "VACUUM INTO (SELECT 'copy' || '.db')",
           "SELECT load_extension('x')",
           "SELECT Load_Extension('x', 'y')",
           "SELECT load_extension('x') FROM t; SELECT 1",
           "VACUUM INTO (SELECT load_extension('x'))",
           "SELECT fts3_tokenizer('simple')",
           "SELECT FTS3_Tokenizer('evil', x'4141414141414141')",
       }) {
    ExpectRefused(sql);
  }
  for (const char* sql : {"SELECT readfile('/etc/passwd')", "SELECT writefile('/tmp/x', 'y')"}) {
    EXPECT_TRUE(First(sql).starts_with("ErrorResponse ")) << sql;
  }
  EXPECT_EQ(First("VACUUM"), "CommandComplete VACUUM");
  EXPECT_FALSE(std::filesystem::exists("copy.db"));
}

// What SQLite counts for AUTOINCREMENT is in one table, of Sluice's jobs, too.
TEST_F(EmbeddedGuardTest, NumbersOfRowsAreSqlitesOwn) {
  Ask(*server_, "CREATE TABLE n (id INTEGER PRIMARY KEY AUTOINCREMENT, a INTEGER)");
  Ask(*server_, "INSERT INTO n (a) VALUES (1), (2)");
  Ask(*server_, "CREATE TABLE watched (a INTEGER)");
  Ask(*server_, "CREATE TRIGGER w AFTER DELETE ON watched BEGIN DELETE FROM sqlite_sequence; END");
  Ask(*server_, "INSERT INTO watched VALUES (1)");
  for (const char* sql : {
           "INSERT INTO sqlite_sequence VALUES ('sluice_jobs', 9223372036854775807)",
           "INSERT OR REPLACE INTO main.sqlite_sequence VALUES ('sluice_jobs', 1)",
           "UPDATE sqlite_sequence SET seq = 0",
           "UPDATE \"SQLITE_Sequence\" SET name = 'sluice_jobs'",
           "DELETE FROM sqlite_sequence WHERE name = 'sluice_jobs'",
           "WITH x AS (SELECT 1) DELETE FROM [sqlite_sequence]",
           "DELETE FROM watched",
       }) {
    ExpectRefused(sql);
  }
  EXPECT_EQ(Ask(*server_, "SELECT name, seq FROM sqlite_sequence")[1], "DataRow n | 2");
  EXPECT_EQ(First("ALTER TABLE n RENAME TO m"), "CommandComplete ALTER TABLE");
  EXPECT_EQ(First("INSERT INTO m (a) VALUES (3)"), "CommandComplete INSERT 0 1");
  EXPECT_EQ(Ask(*server_, "SELECT name, seq FROM sqlite_sequence")[1], "DataRow m | 3");
  EXPECT_EQ(First("DROP TABLE m"), "CommandComplete DROP TABLE");
  EXPECT_EQ(Ask(*server_, "SELECT count(*) FROM sqlite_sequence")[1], "DataRow 0");
}

// A table that goes takes rows of others with it, whose triggers are the client's.
TEST_F(EmbeddedGuardTest, NoTriggerOfADroppedTablesRowsChangesNumbers) {
  Ask(*server_, "CREATE TABLE n (id INTEGER PRIMARY KEY AUTOINCREMENT)");
  Ask(*server_, "INSERT INTO n VALUES (7)");
  Ask(*server_, "CREATE TABLE parent (id INTEGER PRIMARY KEY)");
  Ask(*server_, "CREATE TABLE child (p INTEGER REFERENCES parent ON DELETE CASCADE)");
  Ask(*server_, "CREATE TRIGGER w AFTER DELETE ON child BEGIN DELETE FROM sqlite_sequence; END");
  Ask(*server_, "INSERT INTO parent VALUES (1)");
  Ask(*server_, "INSERT INTO child VALUES (1)");
  ExpectRefused("DROP TABLE parent");
  EXPECT_EQ(Ask(*server_, "SELECT seq FROM sqlite_sequence")[1], "DataRow 7");
}

// VACUUM is prepared, and others after it, before it runs.
TEST_F(EmbeddedGuardTest, AVacuumThatWasPreparedEarlierRuns) {
  std::string said;
  AppendMessage(said, 'P', std::string("v\0VACUUM\0\0\0", 11));
  AppendMessage(said, 'P', std::string("s\0SELECT 1\0\0\0", 13));
  AppendMessage(said, 'B', std::string("\0v\0\0\0\0\0\0\0", 9));
  AppendMessage(said, 'E', std::string("\0\0\0\0\0", 5));
  AppendMessage(said, 'S', {});
  server_->Take(said);
  EXPECT_EQ(GoOn(*server_)[3], "CommandComplete VACUUM");
}

// A matcher that goes back, or into itself, would overflow its stack, or take for ever.
TEST_F(EmbeddedGuardTest, NoPatternEndsTheSession) {
  const std::string many(40'000, '(');
  for (const std::string& pattern :
       {many, "(a*)*" + many, std::string(many.size(), '*'),
        std::string("(((a{1,1000}){1,1000}){1,1000})"), std::string("\\1")}) {
    EXPECT_EQ(First("SELECT relname FROM pg_class WHERE relname ~ '" + pattern + "'"),
              "ErrorResponse 42000 | invalid regular expression")
        << pattern.substr(0, 40);
  }
  const std::string balanced = many + std::string(many.size(), ')');
  EXPECT_FALSE(First("SELECT relname FROM pg_class WHERE relname ~ '" + balanced + "'").empty());
  EXPECT_EQ(First("SELECT count(*) FROM t WHERE replace(hex(zeroblob(500000)), '0', 'a') REGEXP "
                  "'^(a|aa)+$'"),
            "RowDescription count(*) 20");
  EXPECT_EQ(Ask(*server_, "SELECT a FROM t")[1], "DataRow 1");
}

TEST_F(EmbeddedGuardTest, NoPragmasThatHarm) {
  for (const char* sql : {
           "PRAGMA writable_schema = 1",
           "PRAGMA writable_schema(ON)",
           "PRAGMA main.writable_schema = RESET",
           "PRAGMA public.writable_schema = 1",
           "PRAGMA journal_mode = OFF",
           "PRAGMA journal_mode(DELETE)",
           "PRAGMA synchronous = OFF",
           "PRAGMA locking_mode = EXCLUSIVE",
           "PRAGMA mmap_size = 1000000000",
           "PRAGMA page_size = 512",
           "PRAGMA auto_vacuum = FULL",
           "PRAGMA max_page_count = 1",
           "PRAGMA schema_version = 7",
           "PRAGMA encoding = 'UTF-16'",
           "PRAGMA temp_store_directory = '/tmp'",
           "PRAGMA hard_heap_limit = 1000",
           "PRAGMA soft_heap_limit = 1000",
           "PRAGMA trusted_schema = ON",
           "PRAGMA busy_timeout = 100000000",
           "PRAGMA query_only = 1",
       }) {
    ExpectRefused(sql);
  }
  EXPECT_TRUE(First("SELECT * FROM pragma_writable_schema('1')").starts_with("ErrorResponse "));
  EXPECT_TRUE(First("SELECT * FROM pragma_journal_mode('off')").starts_with("ErrorResponse "));
  EXPECT_EQ(Ask(*server_, "SELECT name FROM pragma_table_info('t')")[1], "DataRow a");
  EXPECT_TRUE(First("UPDATE sqlite_master SET sql = 'x'").starts_with("ErrorResponse "));
  EXPECT_TRUE(First("DELETE FROM sqlite_schema").starts_with("ErrorResponse "));
}

TEST_F(EmbeddedGuardTest, NoChangesOfSluicesTables) {
  for (const char* sql : {
           "DELETE FROM sluice_models",
           "INSERT INTO main.sluice_models VALUES ('x')",
           "REPLACE INTO \"Sluice_Models\" VALUES ('x')",
           "UPDATE public.sluice_models SET name = 'x'",
           "WITH x AS (SELECT 1) DELETE FROM [sluice_models]",
           "DROP TABLE sluice_models",
           "ALTER TABLE sluice_models ADD COLUMN x",
           "ALTER TABLE sluice_models RENAME TO mine",
           "CREATE TABLE sluice_jobs (a)",
           "CREATE TABLE sluice_jobs AS SELECT 1",
           "CREATE VIEW sluice_jobs AS SELECT 1",
           "CREATE VIRTUAL TABLE sluice_jobs USING fts5(a)",
           "CREATE INDEX i ON sluice_models (name)",
           "CREATE TRIGGER g AFTER INSERT ON sluice_models BEGIN SELECT 1; END",
           "ALTER TABLE t RENAME TO sluice_jobs",
           "ALTER TABLE t RENAME TO \"SLUICE_jobs\"",
           "ALTER TABLE t RENAME TO 'sluice_jobs'",
           "ALTER TABLE \"a(;b\" RENAME TO [sluice_jobs]",
           "ALTER TABLE t RENAME TO sluice",
           "ALTER/* ( */TABLE t RENAME--\nTO `sluice_jobs`",
           "CREATE/* ( */TRIGGER \"g(\" AFTER INSERT ON t BEGIN DELETE FROM 'sluice_models'; END",
           "CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM sluice_models; END",
           "CREATE TRIGGER g AFTER INSERT ON t BEGIN UPDATE \"sluice_models\" SET name = 1; END",
           "CREATE TEMP TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM main.sluice_models; END",
           "CREATE TABLE mine (m TEXT REFERENCES sluice_models (name))",
           "CREATE TABLE mine (m TEXT, FOREIGN KEY (m) REFERENCES \"Sluice_Models\" (name))",
           "CREATE TABLE mine (m TEXT references/* ( */'sluice_models')",
           "CREATE TABLE mine (m TEXT REFERENCES sluice.models (name))",
           "CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM sluice.models; END",
           "ALTER TABLE t RENAME TO sluice.jobs",
           "ALTER TABLE t ADD COLUMN m TEXT REFERENCES [sluice_models]",
           // A byte order mark is a blank.
           "CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM \xEF\xBB\xBFsluice_models; END",
           "CREATE \xEF\xBB\xBFTRIGGER g AFTER INSERT ON t BEGIN DELETE FROM sluice_models; END",
           "CREATE TABLE mine (m TEXT REFERENCES \xEF\xBB\xBFsluice_models)",
           "\xEF\xBB\xBF"
           "ALTER TABLE t RENAME TO \xEF\xBB\xBFsluice_jobs",
       }) {
    ExpectRefused(sql);
  }
  EXPECT_EQ(Ask(*server_, "SELECT name FROM sluice_models")[1], "DataRow m");
  EXPECT_EQ(First("CREATE VIEW models AS SELECT * FROM sluice_models"),
            "CommandComplete CREATE VIEW");
  EXPECT_EQ(First("CREATE TABLE refers (a REFERENCES refers (a), \"references\" sluice_text)"),
            "CommandComplete CREATE TABLE");
  EXPECT_EQ(First("CREATE TABLE log (n INTEGER)"), "CommandComplete CREATE TABLE");
  EXPECT_EQ(First("CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO log SELECT count(*) FROM"
                  " log; END"),
            "CommandComplete CREATE TRIGGER");
  EXPECT_EQ(First("INSERT INTO t VALUES (2)"), "CommandComplete INSERT 0 1");
}

// A few bytes must not become gigabytes.
TEST_F(EmbeddedGuardTest, NoStatementTakesAllMemory) {
  EXPECT_TRUE(First("SELECT $400000000").starts_with("ErrorResponse 42P02"));
  EXPECT_TRUE(First("PREPARE p AS SELECT $400000000").starts_with("ErrorResponse 42P02"));
  std::string series = "1";
  for (int i = 1; i <= 25; ++i) {
    series = "(SELECT g FROM generate_series(" + series + ", 1) g)";
    const auto answer = Ask(*server_, "SELECT current_user, " + series);
    if (i <= 3) {
      EXPECT_EQ(answer.at(1), "DataRow ann | 1") << answer.at(0);
    }
  }
  EXPECT_TRUE(
      First("SET my.own = '" + std::string(100'000, 'x') + "'").starts_with("ErrorResponse 54000"));
  for (int i = 0; i < 1'000; ++i) {
    Ask(*server_, fmt::format("SET my.own{} = 1", i));
  }
  EXPECT_TRUE(First("SET my.other = 1").starts_with("ErrorResponse 54000"));
  EXPECT_EQ(First("SET my.own1 = 2"), "CommandComplete SET");
}

// What is made of the schema is the session's to read only, and a table of its name does not stand
// in its place.
TEST_F(EmbeddedGuardTest, CatalogsAreNotForged) {
  Ask(*server_, "SELECT 1 FROM pg_class");
  for (const char* sql : {
           "DELETE FROM pg_catalog.pg_class",
           "INSERT INTO pg_catalog.pg_roles (rolname) VALUES ('root')",
           "CREATE TABLE pg_catalog.mine (a)",
           "DROP TABLE pg_catalog.pg_class",
           "CREATE VIEW information_schema.mine AS SELECT 1",
           "CREATE TRIGGER pg_catalog.g AFTER INSERT ON pg_class BEGIN SELECT 1; END",
           "CREATE TEMP TRIGGER g AFTER INSERT ON pg_catalog.pg_class BEGIN DELETE FROM t; END",
           "CREATE INDEX pg_catalog.i ON pg_class (relname)",
       }) {
    ExpectRefused(sql);
  }
  for (const char* sql : {"CREATE TEMP TABLE pg_class (relname TEXT, relkind TEXT)",
                          "CREATE TABLE pg_namespace (oid INTEGER)",
                          "CREATE TEMP VIEW pg_attribute AS SELECT 1 AS attname"}) {
    Ask(*server_, sql);
  }
  const auto heard = Ask(*server_,
                         "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid ="
                         " c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid WHERE"
                         " c.relname = 't' AND a.attname = 'a' AND nspname = 'public'");
  EXPECT_EQ(heard[1], "DataRow t") << heard[0];
}

// A name that stands for nothing is an error, as in PostgreSQL, and no number.
TEST_F(EmbeddedGuardTest, CastsToTheNamesOfThings) {
  const auto value = [this](const std::string& sql) { return Ask(*server_, sql).at(1); };
  const std::string oid = value("SELECT oid FROM pg_class WHERE relname = 't'");
  EXPECT_EQ(value("SELECT 't'::regclass::oid"), oid);
  EXPECT_EQ(value("SELECT 'public.t'::pg_catalog.regclass::oid"), oid);
  EXPECT_EQ(value("SELECT to_regclass('t')"), oid);
  EXPECT_EQ(value("SELECT 'pg_class'::regclass::oid"), "DataRow 1259");
  EXPECT_EQ(value("SELECT 'bigint'::regtype::oid"), "DataRow 20");
  EXPECT_EQ(value("SELECT 'int4'::regtype::oid"), "DataRow 23");
  EXPECT_TRUE(First("SELECT 'nosuch'::regclass").starts_with("ErrorResponse 42P01 | no such table"))
      << First("SELECT 'nosuch'::regclass");
  EXPECT_TRUE(First("SELECT 'nosuch'::regtype").starts_with("ErrorResponse 42704 | no such type"))
      << First("SELECT 'nosuch'::regtype");
  EXPECT_EQ(value("SELECT to_regclass('nosuch')"), "DataRow NULL");
}

TEST_F(EmbeddedGuardTest, ShadowTablesAreNotWritten) {
  EXPECT_EQ(First("CREATE VIRTUAL TABLE docs USING fts5(body)"), "CommandComplete CREATE TABLE");
  EXPECT_EQ(First("INSERT INTO docs VALUES ('a cat')"), "CommandComplete INSERT 0 1");
  EXPECT_EQ(Ask(*server_, "SELECT body FROM docs WHERE docs MATCH 'cat'")[1], "DataRow a cat");
  EXPECT_TRUE(First("UPDATE docs_data SET block = x'00'").starts_with("ErrorResponse "));
  EXPECT_TRUE(First("DROP TABLE docs_content").starts_with("ErrorResponse "));
  EXPECT_EQ(First("CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1)"),
            "CommandComplete CREATE TABLE");
  EXPECT_TRUE(First("DELETE FROM boxes_node").starts_with("ErrorResponse "));
  EXPECT_EQ(Ask(*server_, "SELECT count(*) FROM pg_class WHERE relname = 'docs'")[1], "DataRow 1");
  EXPECT_EQ(First("DROP TABLE docs"), "CommandComplete DROP TABLE");
}

TEST_F(EmbeddedGuardTest, StrangeNamesAndManyColumns) {
  const std::string longest(200'000, 'n');
  EXPECT_EQ(First("CREATE TABLE " + longest + " (" + longest + " INTEGER)"),
            "CommandComplete CREATE TABLE");
  EXPECT_EQ(First("SELECT " + longest + " FROM " + longest), "RowDescription " + longest + " 20");
  EXPECT_EQ(Ask(*server_, "SELECT count(*) FROM pg_attribute WHERE length(attname) = 200000")[1],
            "DataRow 1");
  EXPECT_EQ(First("CREATE TABLE \"\" (\"\" INTEGER, \" \" TEXT, \"a\"\"b\" TEXT)"),
            "CommandComplete CREATE TABLE");
  EXPECT_EQ(
      Ask(*server_, "SELECT count(*) FROM information_schema.columns WHERE table_name = ''")[1],
      "DataRow 3");
  const auto columns = [](int count) {
    std::string list;
    for (int i = 0; i < count; ++i) {
      list += fmt::format("{}c{} INTEGER", i == 0 ? "" : ", ", i);
    }
    return list;
  };
  EXPECT_TRUE(First("CREATE TABLE much (" + columns(10'000) + ")")
                  .starts_with("ErrorResponse 54000 | too many columns"));
  EXPECT_EQ(First("CREATE TABLE wide (" + columns(1'500) + ")"), "CommandComplete CREATE TABLE");
  EXPECT_EQ(Ask(*server_, "SELECT count(*) FROM pg_attribute WHERE attname LIKE 'c%'")[1],
            "DataRow 1500");
  EXPECT_EQ(Ask(*server_, "INSERT INTO wide (c0, c1499) VALUES (1, 2); SELECT * FROM wide").back(),
            "ReadyForQuery I");
}

TEST_F(EmbeddedGuardTest, StrangeValues) {
  Ask(*server_, "CREATE TABLE v (i INTEGER, f REAL, t TEXT, b BLOB, d DATE)");
  Ask(*server_,
      "INSERT INTO v VALUES (9e999, 9e999, CAST(x'610062' AS TEXT), x'0001', 'no date'),"
      " ('x', 'y', 7, 'text', 5), (NULL, 9e999 - 9e999, x'ff', 1, NULL)");
  EXPECT_EQ(Ask(*server_, "SELECT * FROM v"),
            (std::vector<std::string>{
                "RowDescription i 25 | f 25 | t 25 | b 25 | d 25",
                "DataRow Infinity | Infinity | \\x610062 | \\x0001 | no date",
                "DataRow x | y | 7 | text | 5",
                "DataRow NULL | NULL | \\xff | 1 | NULL",
                "CommandComplete SELECT 3",
                "ReadyForQuery I",
            }));
  EXPECT_EQ(Ask(*server_, "SELECT -9e999 AS n, 0.0 * 9e999 AS z")[1], "DataRow -Infinity | NULL");
  EXPECT_TRUE(First("SELECT zeroblob(2000000000)").starts_with("ErrorResponse "));
}

// A search that nobody could interrupt ends.
TEST_F(EmbeddedGuardTest, RegularExpressionsEnd) {
  const std::string text(5'000, 'a');
  EXPECT_EQ(Ask(*server_, "SELECT '" + text + "b' REGEXP '(a+)+$' AS m")[1], "DataRow 0");
  EXPECT_EQ(Ask(*server_, "SELECT 'public.points' REGEXP '^(public|pg_.*)\\.p[a-z]+$' AS m")[1],
            "DataRow 1");
  EXPECT_TRUE(First("SELECT 'aa' REGEXP '(a)\\1'").starts_with("ErrorResponse "));
}

// Views and triggers that lead nowhere do not keep anybody from looking around.
TEST_F(EmbeddedGuardTest, BrokenSchemasAreShown) {
  Ask(*server_, "CREATE TABLE gone (a INTEGER); CREATE VIEW nowhere AS SELECT * FROM gone");
  Ask(*server_, "DROP TABLE gone");
  Ask(*server_, "CREATE VIEW endless AS SELECT * FROM endless");
  EXPECT_EQ(Ask(*server_, "SELECT relname FROM pg_class WHERE relkind = 'v' ORDER BY 1")[1],
            "DataRow endless");
  EXPECT_EQ(Ask(*server_, "SELECT count(*) FROM information_schema.views")[1], "DataRow 2");
}

}  // namespace
}  // namespace sluice::server::pgwire
