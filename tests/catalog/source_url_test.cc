#include "catalog/source_url.h"

#include <gmock/gmock.h>

namespace sluice::catalog {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(SourceUrl, Sqlite) {
  EXPECT_EQ(ParseSourceUrl("sqlite:a/b.db")->path, "a/b.db");
  EXPECT_EQ(ParseSourceUrl("sqlite:/a.db")->path, "/a.db");
  EXPECT_EQ(ParseSourceUrl("sqlite:///a.db")->path, "/a.db");
  EXPECT_EQ(ParseSourceUrl("sqlite::memory:")->path, ":memory:");
  EXPECT_FALSE(ParseSourceUrl("sqlite:").ok());
}

TEST(SourceUrl, ThePasswordIsTakenOut) {
  const auto url = ParseSourceUrl("postgresql://me:p%40ss@host:5433/db?sslmode=require");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->text, "postgresql://me@host:5433/db?sslmode=require");
  EXPECT_EQ(url->password, "p@ss");
  const auto setting = ParseSourceUrl("postgres://host/db?password=secret&application_name=x");
  EXPECT_EQ(setting->text, "postgresql://host/db?application_name=x");
  EXPECT_EQ(setting->password, "secret");
  const auto odd = ParseSourceUrl("postgresql://me:p@ss@host/db");
  EXPECT_EQ(odd->text, "postgresql://me@host/db");
  EXPECT_EQ(odd->password, "p@ss");
  EXPECT_EQ(ParseSourceUrl("postgresql://me@host/db")->password, "");
}

TEST(SourceUrl, UnknownKindsDoNotRepeatSecrets) {
  const auto url = ParseSourceUrl("mysql://me:secret@host/db");
  ASSERT_FALSE(url.ok());
  EXPECT_THAT(url.status().ToString(), HasSubstr("mysql"));
  EXPECT_THAT(url.status().ToString(), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace sluice::catalog
