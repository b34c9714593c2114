// With which login a TrainingJob reads.
#include "server/statements/training_job_login.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "executor/pods/training_jobs.h"

namespace sluice::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kOwn[] = "postgresql://gateway:0wn@db.example:5433/shop?sslmode=verify-full";

Result<Login> LoginOf(const std::string& url, const std::string& own = kOwn) {
  executor::TrainingJobRequest request;
  request.spec.source_secret = "the-secret";
  request.source_url = url;
  return TrainingJobLogin(request, own, "gateway");
}

TEST(TrainingJobLogin, IsARoleOfItsOwnAtTheGatewaysServer) {
  const auto login = LoginOf("postgresql://ann:s3c%20ret@db.example:5433/shop");
  ASSERT_TRUE(login.ok()) << login.status().ToString();
  EXPECT_EQ(login->role, "ann");
  EXPECT_EQ(login->password, "s3c ret");
  EXPECT_EQ(login->database, "");
  EXPECT_EQ(LoginOf("postgres://ann@db.example:5433/another?password=p")->database, "another");
}

TEST(TrainingJobLogin, IsNeverTheGatewaysOwn) {
  for (const char* url : {kOwn, "postgresql://gateway:an0ther@db.example:5433/another",
                          "postgresql://gatewa%79@db.example:5433/shop",
                          "postgresql://ann@db.example:5433/shop?user=gateway",
                          "postgresql://db.example:5433/shop?user=ann&user=gateway"}) {
    const Status refused = LoginOf(url).status();
    EXPECT_EQ(refused.sqlstate(), "28000") << url;
    EXPECT_THAT(refused.ToString(),
                AllOf(HasSubstr("the Secret 'the-secret' holds the gateway's own login"),
                      Not(HasSubstr("0wn")), Not(HasSubstr("0ther"))))
        << url;
  }
  EXPECT_THAT(LoginOf("postgresql://db.example:5433/shop").status().ToString(),
              HasSubstr("names no role"));
}

// The catalog would be written with the TrainingJob's login there.
TEST(TrainingJobLogin, IsNotAtAnotherServer) {
  for (const char* url : {"postgresql://ann:s3cret@s3cret.example:5433/shop",
                          "postgresql://ann:s3cret@db.example/shop",
                          "postgresql://ann:s3cret@db.example:5433/shop?host=s3cret.example",
                          "postgresql://ann:s3cret@db.example:5433/shop?hostaddr=10.0.0.1",
                          "postgresql://ann:s3cret@db.example:s3cret/shop"}) {
    EXPECT_THAT(
        LoginOf(url).status().ToString(),
        AllOf(HasSubstr("the Secret 'the-secret' names another server"), Not(HasSubstr("s3cret"))))
        << url;
  }
}

TEST(TrainingJobLogin, RepeatsNothingOfASecretThatIsNoUrl) {
  for (const char* text : {"s3cret", "sqlite:s3cret", "mysql://s3cret@s3cret/s3cret",
                           "postgresql://ann:s3cret?s3cret@db.example:5433/shop"}) {
    EXPECT_THAT(LoginOf(text).status().ToString(),
                AllOf(HasSubstr("'the-secret' does not hold the URL"), Not(HasSubstr("s3cret"))))
        << text;
  }
  EXPECT_THAT(LoginOf("postgresql://ann@db.example/shop", "sqlite:a.db").status().ToString(),
              HasSubstr("serves a SQLite file"));
}

}  // namespace
}  // namespace sluice::server
