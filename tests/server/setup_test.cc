#include <gmock/gmock.h>

#include "tests/server/pgwire/door_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// A person tried the shell before the administrator started a gateway with a login of its own.
class SetupTest : public DoorTest {
 protected:
  void SetUp() override {
    DoorTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    Direct(
        fmt::format("CREATE ROLE {0} LOGIN; CREATE ROLE {1} LOGIN; GRANT CREATE ON DATABASE {2}"
                    " TO {0}, {1}; GRANT SELECT ON points TO {0}, {1}",
                    first_, gateway_login_, Name()));
  }
  void TearDown() override {
    if (!IsSkipped()) {
      for (const std::string& role : {first_, gateway_login_}) {
        DropRole(role);
      }
    }
    DoorTest::TearDown();
  }
  ShellOutcome Train(const std::string& role) const {
    return RunInShell(fmt::format(
        "HOME={} {} sql --source postgresql://{}{} -c 'SELECT x, y FROM "
        "points TO TRAIN LinearClassifier LABEL y INTO m_{}' 2>&1",
        home_, SLUICE_BINARY, role, database_.url().substr(database_.url().find('@')), role));
  }
  // The command in the hint, for this test's server and its superuser.
  ShellOutcome RunHint(const std::string& error) const {
    const size_t begin = error.find("sluice setup --adopt");
    if (begin == std::string::npos) {
      return {1, error};
    }
    std::string command = error.substr(begin, error.find('\n', begin) - begin);
    command.replace(0, std::string("sluice").size(), SLUICE_BINARY);
    const std::string database = " -d " + Name();
    EXPECT_TRUE(command.ends_with(database)) << command;
    command.resize(command.size() - database.size());
    return RunInShell(fmt::format("{} -X '{}' 2>&1", command, database_.url()));
  }

  const std::string first_ = fmt::format("ann_{}", getpid());
  const std::string gateway_login_ = fmt::format("gateway_{}", getpid());
};

TEST_F(SetupTest, TheHintGivesTheCatalogToTheGatewaysLogin) {
  ASSERT_EQ(Train(first_).exit_code, 0);
  const ShellOutcome refused = Train(gateway_login_);
  EXPECT_THAT(refused.output, HasSubstr("42501"));
  const ShellOutcome adopted = RunHint(refused.output);
  ASSERT_EQ(adopted.exit_code, 0) << adopted.output;
  EXPECT_EQ(Train(gateway_login_).exit_code, 0);
  EXPECT_EQ(Direct("SELECT string_agg(name, ',' ORDER BY length(name)) FROM sluice.models").output,
            fmt::format("m_{},m_{}\n", first_, gateway_login_))
      << "with what was there";
}

TEST_F(SetupTest, ACatalogThatRunsSomebodysFunctionIsNotAdopted) {
  ASSERT_EQ(Train(first_).exit_code, 0);
  for (const char* const trap :
       {"CREATE TRIGGER t BEFORE INSERT ON sluice.jobs FOR EACH ROW EXECUTE FUNCTION f_trigger()",
        "ALTER TABLE sluice.jobs ALTER COLUMN error SET DEFAULT f()",
        "ALTER TABLE sluice.jobs ADD CHECK (f() = '')",
        "CREATE POLICY p ON sluice.jobs USING (f() = '')",
        "CREATE INDEX trap ON sluice.jobs ((f()))",
        "CREATE RULE r AS ON INSERT TO sluice.jobs DO ALSO SELECT f()"}) {
    Direct(
        "CREATE FUNCTION f() RETURNS text IMMUTABLE RETURN '';"
        " CREATE FUNCTION f_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'");
    ASSERT_EQ(Direct(trap).exit_code, 0) << trap;
    EXPECT_THAT(RunHint(Train(gateway_login_).output).output, HasSubstr("drop it first")) << trap;
    Direct("DROP FUNCTION f CASCADE; DROP FUNCTION f_trigger CASCADE");
  }
}

TEST_F(SetupTest, AnotherSchemaOfThisNameIsLeftAlone) {
  Direct(fmt::format("CREATE SCHEMA sluice AUTHORIZATION {}; CREATE TABLE sluice.jobs (id int)",
                     first_));
  const ShellOutcome refused = Train("postgres");
  EXPECT_THAT(refused.output, HasSubstr("42P06"));
  EXPECT_THAT(refused.output, HasSubstr("holds other tables, such as jobs"));
}

}  // namespace
}  // namespace sluice
