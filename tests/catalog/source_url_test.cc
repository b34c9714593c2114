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
  // Not names of new files.
  EXPECT_FALSE(ParseSourceUrl("sqlite://a.db").ok());
  EXPECT_FALSE(ParseSourceUrl("sqlite:///a.db?mode=ro").ok());
  EXPECT_EQ(ParseSourceUrl("sqlite:what?.db")->path, "what?.db");
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

TEST(SourceUrl, ItsServerAndDatabase) {
  EXPECT_EQ(DatabaseIn("postgresql://me@host:5432/a%20b?sslmode=require"), "a b");
  EXPECT_EQ(DatabaseIn("postgresql://host/a?dbname=b"), "b");
  EXPECT_EQ(DatabaseIn("postgresql://host"), "");
  EXPECT_TRUE(IsSameServer("postgresql://me@host:1/a?sslmode=require", "postgresql://host:1/b"));
  EXPECT_TRUE(IsSameServer("postgresql:///a?host=/tmp&port=1", "postgresql:///b?port=1&host=/tmp"));
  for (const char* other :
       {"postgresql://host/a", "postgresql://host:2/a", "postgresql://other:1",
        "postgresql://host:1/a?host=other", "postgresql://host:1?hostaddr=::1"}) {
    EXPECT_FALSE(IsSameServer("postgresql://me@host:1/a", other)) << other;
  }
}

// A token, or a password alone, has no scheme that could be repeated.
TEST(SourceUrl, TextsThatAreNoUrlsAreNotRepeated) {
  for (const char* text :
       {"s3cret", "s3cret:s3cret", "s3cret/s3cret", "s3cret@host", "s3cret s3cret://",
        "s3crets3crets3crets3cret://host", "sqlite:a.db?key=s3cret", "sqlite://s3cret"}) {
    const Status refused = ParseSourceUrl(text).status();
    EXPECT_FALSE(refused.ok()) << text;
    EXPECT_THAT(refused.ToString(), Not(HasSubstr("s3cret"))) << text;
  }
}

// In any spelling, and in the middle of other text.
TEST(SourceUrl, NoSecretIsShown) {
  for (const char* text : {
           "postgresql://me:s3cret@host/db",
           "postgresql://me:s3cret@s3cret@host/db",
           "postgresql://me:s3cret/s3cret@host/db",
           "postgres://host/db?password=s3cret&sslmode=require",
           "postgresql://host/db?sslmode=require&sslpassword=s3cret",
           "postgresql://host/db?PASSWORD=s3cret",
           "cannot connect to postgresql://me:s3cret@host/db: refused",
           "host=h password=s3cret dbname=d",
           "host=h password = s3cret dbname=d",
           "host=h password= 's3cret' dbname=d",
           "host=h password='s3cret s3cret\\' s3cret' dbname=d",
           "--source=postgresql://me:s3cret@host/db",
           "-dpostgresql://me:s3cret@host/db",
           "mysql://root:s3cret@tcp(127.0.0.1:3306)/?maxAllowed=0",
           "source = postgresql://me:s3cret@host/db",
           "postgresql://me@host/db?pass%77ord=s3cret",
           "postgresql://me:s3c?s3cret@host/db",
           "postgresql://me:s3cret @host/db",
           "postgresql://me:s s3cret @host/db?sslmode=require",
           "host=h password=a\\ s3cret dbname=d",
       }) {
    EXPECT_THAT(WithoutSecrets(text), Not(HasSubstr("s3cret"))) << text;
  }
  EXPECT_EQ(
      WithoutSecrets("cannot reach postgresql://me:x@host:5432/db?sslpassword=y&sslmode=a now"),
      "cannot reach postgresql://me@host:5432/db?sslpassword=***&sslmode=a now");
  for (const char* text : {"", " ", "sqlite:my.db", "postgresql://me@host:5432/db", "a=b c='d e'",
                           "=", "password", "password="}) {
    EXPECT_THAT(WithoutSecrets(text), ::testing::StartsWith(text)) << text;
  }
  EXPECT_THAT(ParseSourceUrl("host=h password=s3cret dbname=d").status().ToString(),
              Not(HasSubstr("s3cret")));
}

TEST(SourceUrl, TheSameDatabaseForAnotherRole) {
  const auto as = [](const char* url, const char* role) {
    return WithRole(ParseSourceUrl(url)->text, role);
  };
  EXPECT_EQ(as("postgresql://gw:pw@h:5432/d", "ann"), "postgresql://ann@h:5432/d");
  EXPECT_EQ(as("postgresql://h/d?sslmode=require&user=gw&password=x", "ann"),
            "postgresql://ann@h/d?sslmode=require");
  EXPECT_EQ(as("postgresql:///d", "ann"), "postgresql://ann@/d");
  // A role is a plain name, whatever characters it contains.
  EXPECT_EQ(as("postgresql://gw@h/d", "a@b:c/d?e=f&g%"),
            "postgresql://a%40b%3Ac%2Fd%3Fe%3Df%26g%25@h/d");
  EXPECT_EQ(RoleIn(as("postgresql://gw@h/d", "a@b:c/d?e=f&g%")), "a@b:c/d?e=f&g%");
  EXPECT_EQ(RoleIn("postgresql://ann@h/d"), "ann");
  EXPECT_EQ(RoleIn("postgresql://ann@h/d?user=bob"), "bob");
  EXPECT_EQ(RoleIn("postgresql://h/d"), "");
}

}  // namespace
}  // namespace sluice::catalog
