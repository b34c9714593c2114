#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/source_url.h"
#include "tests/support/postgres_server.h"

namespace sluice::catalog {
namespace {

TEST(PostgresConnect, ARefusedLoginOfAJobSaysWhatTheServerNeeds) {
  const auto server =
      testing::PostgresServer::StartOwn("host all +sluice_jobs 127.0.0.1/32 reject");
  if (server == nullptr) {
    GTEST_SKIP() << "no PostgreSQL";
  }
  const std::string url = server->url_prefix() + "postgres";
  const auto administrator = OpenDataSource(url).value();
  for (const char* const sql : {"CREATE ROLE sluice_jobs",
                                "CREATE ROLE sluice_job_0123456789abcdef LOGIN IN ROLE "
                                "sluice_jobs"}) {
    ASSERT_TRUE(administrator->Execute(sql, nullptr, {}).ok());
  }
  const Status refused = OpenCatalog(WithRole(url, "sluice_job_0123456789abcdef")).status();
  EXPECT_EQ(refused.sqlstate(), "28000") << refused.ToString();
  EXPECT_THAT(refused.ToString(), ::testing::HasSubstr("a line for +sluice_jobs"));
}

}  // namespace
}  // namespace sluice::catalog
