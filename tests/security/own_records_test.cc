#include <gmock/gmock.h>

#include "tests/security/doors.h"

// Sluice's records of result tables are for the roles that have those tables.
namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class OwnRecords : public Doors {};

TEST_P(OwnRecords, OfResultTables) {
  As(kAnn, "SELECT x, y FROM points TO TRAIN LinearClassifier LABEL y INTO hers;\n");
  As(kAnn, "SELECT x FROM points TO PREDICT her_result.y USING hers;\n");
  const std::string records = "SELECT * FROM sluice.result_tables;\n";
  EXPECT_THAT(As(kAnn, records), HasSubstr("her_result"));
  EXPECT_THAT(As(kBob, records), Not(HasSubstr("her_result")));
  // Refilled all the same, and by those who may write it.
  EXPECT_THAT(As(kAnn, "SELECT x FROM points TO PREDICT her_result.y USING hers;\n"),
              Not(HasSubstr("ERROR")));
  EXPECT_THAT(As(kBob,
                 "SELECT x, y FROM points TO TRAIN LinearClassifier LABEL y INTO his;\n"
                 "SELECT x FROM points TO PREDICT her_result.y USING his;\n"),
              HasSubstr("42"));
}

INSTANTIATE_TEST_SUITE_P(At, OwnRecords,
                         ::testing::Values(Door::kPostgres, Door::kGrpc, Door::kShell), NameOf);

// Both doors go to the server that the source names, as libpq does: host is what is verified and
// shown, hostaddr where it is.
class HostAddress : public Doors {};

TEST_P(HostAddress, IsWhereTheServerIs) {
  gateway_.reset();
  const std::string url = database_.url();  // postgresql://postgres@127.0.0.1:5432/name
  const size_t at = url.find('@') + 1;
  const size_t port = url.find(':', at);
  const std::string address = url.substr(at, port - at);
  Start("--auth password",
        url.substr(0, at) + "no-such-host.invalid" + url.substr(port) + "?hostaddr=" + address);
  EXPECT_THAT(As(kAnn, "SELECT current_user AS who;\n"), HasSubstr("doors_ann"));
  EXPECT_THAT(As(kAnn, "SELECT x, y FROM points TO TRAIN LinearClassifier LABEL y INTO hers;\n"),
              HasSubstr("LinearClassifier"));
}

INSTANTIATE_TEST_SUITE_P(At, HostAddress, ::testing::Values(Door::kPostgres, Door::kGrpc), NameOf);

}  // namespace
}  // namespace sluice
