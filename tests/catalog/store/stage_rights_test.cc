#include <gmock/gmock.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/catalog/store/stores_fixture.h"

namespace sluice::catalog {
namespace {

using StageRightsTest = StoresTest;

// Rights of a schema are one row of the database, which only one session at a time may change.
TEST_P(StageRightsTest, AreGivenToManyRolesAtTheSameMoment) {
  if (!postgres()) {
    EXPECT_TRUE(catalog().AllowStaging().ok());
    return;
  }
  const std::string suffix = url().substr(url().rfind('_') + 1);
  const auto role = [&suffix](int i) { return "stager_" + std::to_string(i) + "_" + suffix; };
  constexpr int kRoles = 8;
  for (int i = 0; i < kRoles; ++i) {
    Run("CREATE ROLE " + role(i));
  }
  {
    std::vector<std::jthread> threads;
    threads.reserve(kRoles);
    for (int i = 0; i < kRoles; ++i) {
      threads.emplace_back([this, &role, i] {
        for (int k = 0; k < 2; ++k) {  // once from what is remembered
          const Status allowed = catalog().For({role(i)})->AllowStaging();
          EXPECT_TRUE(allowed.ok()) << allowed.ToString();
        }
      });
    }
  }
  EXPECT_EQ(Select("SELECT count(*) FROM pg_roles WHERE rolname LIKE 'stager_%_" + suffix +
                   "' AND has_schema_privilege(oid, 'sluice_stage', 'CREATE')")[0][0],
            std::to_string(kRoles));
  EXPECT_EQ(Select("SELECT count(*) FROM pg_namespace, aclexplode(nspacl) AS a WHERE nspname ="
                   " 'sluice_stage' AND a.grantee = 0")[0][0],
            "0");
  for (int i = 0; i < kRoles; ++i) {
    Run("DROP OWNED BY " + role(i));
    Run("DROP ROLE " + role(i));
  }
  EXPECT_EQ(catalog().For({"nobody_at_all"})->AllowStaging().sqlstate(), "42704");
}

ON_BOTH_DATABASES(StageRightsTest);

}  // namespace
}  // namespace sluice::catalog
