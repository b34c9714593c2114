#include "server/pgwire/password_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace sluice::server::pgwire {
namespace {

class PasswordFileTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& text) {
    std::ofstream(path_) << text;
    chmod(path_.c_str(), 0600);
  }
  static Result<ScramVerifier> Ask(Verifiers& verifiers, const std::string& name) {
    std::promise<Result<ScramVerifier>> answer;
    verifiers.Find(name, [&](Result<ScramVerifier> found) { answer.set_value(std::move(found)); });
    return answer.get_future().get();
  }

  const std::string folder_ = (std::filesystem::temp_directory_path() /
                               ("sluice_password_file_" + std::to_string(getpid())))
                                  .string();
  const std::string path_ = folder_ + "/secrets/passwords";
};

TEST_F(PasswordFileTest, AUserHasTheLastPassword) {
  ASSERT_TRUE(SetPassword(path_, "ann", "first").ok());
  struct stat facts {};
  stat(path_.c_str(), &facts);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  ASSERT_TRUE(SetPassword(path_, "strange \"name\"", "pässwörd").ok());
  ASSERT_TRUE(SetPassword(path_, "ann", "second").ok());
  EXPECT_FALSE(IsPassword(path_, "ann", "first").value());
  EXPECT_TRUE(IsPassword(path_, "ann", "second").value());
  EXPECT_TRUE(IsPassword(path_, "strange \"name\"", "pässwörd").value());
  EXPECT_FALSE(IsPassword(path_, "strange \"name\"", "").value());
  EXPECT_FALSE(IsPassword(path_, "bob", "").value());
  EXPECT_FALSE(IsPassword(path_, "bob", "second").value());
  ASSERT_TRUE(RemovePassword(path_, "ann").ok());
  EXPECT_FALSE(IsPassword(path_, "ann", "second").value());
  EXPECT_EQ(RemovePassword(path_, "ann").sqlstate(), "42704");
  std::ifstream file(path_);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text.find("pässwörd"), std::string::npos);
  EXPECT_EQ(PrintPasswordFile(ParsePasswordFile(text).value()), text);
}

TEST_F(PasswordFileTest, WhoIsNotThereLooksTheSameEachTime) {
  ASSERT_TRUE(SetPassword(path_, "ann", "secret").ok());
  const auto once = OpenPasswordFile(path_);
  const auto again = OpenPasswordFile(path_);  // as after a restart
  ASSERT_TRUE(once.ok() && again.ok());
  const auto stranger = Ask(**once, "bob");
  ASSERT_TRUE(stranger.ok());
  EXPECT_TRUE(stranger->mock);
  EXPECT_EQ(stranger->salt, Ask(**again, "bob")->salt);
  EXPECT_NE(stranger->salt, Ask(**once, "carl")->salt);
  const auto ann = Ask(**once, "ann");
  EXPECT_EQ(ann->iterations, stranger->iterations);
  EXPECT_GE(ann->iterations, 600'000);
  EXPECT_EQ(ann->salt.size(), stranger->salt.size());
  // A new user can log in at once.
  ASSERT_TRUE(SetPassword(path_, "bob", "secret").ok());
  EXPECT_FALSE(Ask(**once, "bob")->mock);
}

TEST_F(PasswordFileTest, WhatIsWrongIsTold) {
  EXPECT_EQ(OpenPasswordFile(path_).status().message(),
            "there is no file of passwords '" + path_ + "'");
  EXPECT_EQ(SetPassword(path_, "", "p").code(), Code::kInvalidArgument);
  EXPECT_EQ(SetPassword(path_, "two\nlines", "p").code(), Code::kInvalidArgument);
  EXPECT_EQ(SetPassword(path_, "ann", "").message(), "a password is not empty");
  ASSERT_TRUE(SetPassword(path_, "ann", "secret").ok());
  chmod(path_.c_str(), 0644);
  EXPECT_EQ(OpenPasswordFile(path_).status().message(),
            "others may read '" + path_ + "': its mode is 0644");
  EXPECT_EQ(SetPassword(path_, "ann", "secret").code(), Code::kFailedPrecondition);
  Write("# a comment\n\n\"ann\" \"plain\"\n");
  EXPECT_EQ(OpenPasswordFile(path_).status().message(),
            "'" + path_ + "': line 3 is no user and SCRAM verifier");
  for (const char* line : {"ann", "\"ann\"", "\"ann", "\"ann\" \"SCRAM-SHA-256$1:YWJj$x:y\""}) {
    EXPECT_FALSE(ParsePasswordFile(line).ok()) << line;
  }
  // A running gateway refuses, and reveals no more to the client.
  Write("");
  const auto verifiers = OpenPasswordFile(path_);
  ASSERT_TRUE(verifiers.ok());
  std::filesystem::remove(path_);
  EXPECT_EQ(Ask(**verifiers, "ann").status().message(),
            "the gateway cannot read its file of passwords");
}

TEST_F(PasswordFileTest, SeveralAtOnceLoseNobody) {
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([this, i] {
        for (int k = 0; k < 4; ++k) {
          EXPECT_TRUE(SetPassword(path_, std::to_string(10 * i + k), "secret").ok());
        }
      });
    }
  }
  std::ifstream file(path_);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(ParsePasswordFile(text)->users.size(), 16U);
}

}  // namespace
}  // namespace sluice::server::pgwire
