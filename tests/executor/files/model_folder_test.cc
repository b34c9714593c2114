#include "executor/files/model_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace sluice::executor {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMost = 1 << 20;

class ModelFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/sluice-files-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    root_ = path_ / "root";
  }
  void TearDown() override { fs::remove_all(path_); }

  ModelFolder Inside() const { return ModelFolder(root_.string()); }

  fs::path path_, root_;
};

TEST_F(ModelFolderTest, WritesForItsUserAlone) {
  const ModelFolder folder = Inside();
  ASSERT_TRUE(folder.Write("m.sluice", "first", false, {}).ok());
  EXPECT_EQ(folder.Read("m.sluice", kMost).value(), "first");
  struct stat found = {};
  ASSERT_EQ(stat((root_ / "m.sluice").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
  ASSERT_EQ(stat(root_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0700U);

  const Status again = folder.Write("m.sluice", "second", false, {});
  EXPECT_EQ(again.sqlstate(), "58P02");
  EXPECT_EQ(folder.Read("m.sluice", kMost).value(), "first");
  ASSERT_TRUE(folder.Write("m.sluice", "second", true, {}).ok());
  EXPECT_EQ(folder.Read("m.sluice", kMost).value(), "second");
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator()), 1)
      << "no drafts are left";
}

TEST_F(ModelFolderTest, NamesStayInside) {
  const ModelFolder folder = Inside();
  ASSERT_TRUE(folder.Write("a.sluice", "a", false, {}).ok());
  fs::create_directory(root_ / "sub");
  EXPECT_TRUE(folder.Write("sub/b.sluice", "b", false, {}).ok());
  std::ofstream(path_ / "secret.sluice") << "secret";
  fs::create_symlink(path_, root_ / "out");
  fs::create_symlink(path_ / "secret.sluice", root_ / "link.sluice");
  const std::vector<std::string> names = {"../secret.sluice",
                                          "sub/../../secret.sluice",
                                          "/etc/passwd",
                                          "",
                                          ".",
                                          "..",
                                          "./a.sluice",
                                          "sub//b.sluice",
                                          "out/secret.sluice",
                                          "link.sluice",
                                          "sub/",
                                          std::string("a.sluice\0b", 10)};
  for (const std::string& name : names) {
    const auto read = folder.Read(name, kMost);
    EXPECT_FALSE(read.ok()) << name;
  }
  EXPECT_EQ(folder.Read("../secret.sluice", kMost).status().sqlstate(), "42501");
  EXPECT_EQ(folder.Read("out/secret.sluice", kMost).status().sqlstate(), "58P01") << "no folder";
  EXPECT_EQ(folder.Read("link.sluice", kMost).status().sqlstate(), "42501");
  EXPECT_FALSE(folder.Write("out/new.sluice", "x", true, {}).ok());
  EXPECT_FALSE(folder.Write("link.sluice", "x", true, {}).ok());
  EXPECT_FALSE(folder.Write("../new.sluice", "x", true, {}).ok());
  EXPECT_FALSE(fs::exists(path_ / "new.sluice"));
  std::string content;
  std::ifstream(path_ / "secret.sluice") >> content;
  EXPECT_EQ(content, "secret");
}

TEST_F(ModelFolderTest, WithoutAFolderThereAreNoFiles) {
  EXPECT_EQ(ModelFolder("").Read("m.sluice", kMost).status().sqlstate(), "42501");
  EXPECT_EQ(ModelFolder("").Write("m.sluice", "x", false, {}).sqlstate(), "42501");
}

TEST_F(ModelFolderTest, AShellsUserNamesAnyFile) {
  const ModelFolder anywhere(std::nullopt);
  const std::string file = (path_ / "m.sluice").string();
  ASSERT_TRUE(anywhere.Write(file, "mine", false, {}).ok());
  EXPECT_EQ(anywhere.Read((path_ / "x/../m.sluice").string(), kMost).status().sqlstate(), "58P01");
  EXPECT_EQ(anywhere.Read(file, kMost).value(), "mine");
  EXPECT_EQ(anywhere.Read(file, 3).status().sqlstate(), "53200");
  EXPECT_EQ(anywhere.Read(path_.string(), kMost).status().sqlstate(), "22023") << "a folder";
  EXPECT_EQ(anywhere.Write((path_ / "none/m.sluice").string(), "x", false, {}).sqlstate(), "58P01");
  ASSERT_EQ(mkfifo((path_ / "pipe.sluice").c_str(), 0600), 0);
  EXPECT_EQ(anywhere.Read((path_ / "pipe.sluice").string(), kMost).status().sqlstate(), "22023");
  EXPECT_FALSE(anywhere.Write((path_ / "pipe.sluice").string(), "x", true, {}).ok());
}

TEST_F(ModelFolderTest, ACancelledExportLeavesNothing) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(Inside().Write("m.sluice", "x", false, stop.get_token()).code(), Code::kCancelled);
  EXPECT_TRUE(fs::is_empty(root_));
}

}  // namespace
}  // namespace sluice::executor
